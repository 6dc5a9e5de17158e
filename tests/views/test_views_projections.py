"""Three projections of one record: every line is of an entry and leads to it, and nothing in them runs."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import builders
import nbformat
import pytest
from microfiche.conversation import Conversation, Record
from microfiche.views.deck import deck, slides_html, slides_markdown
from microfiche.views.links import links_of
from microfiche.views.notebook import notebook, notebook_markdown
from microfiche.views.projections import PROJECTIONS, project
from microfiche.views.thread import markdown

GOLDEN = Path(__file__).parents[1] / "data" / "golden" / "0.1.mf"


@pytest.fixture
def chat(tmp_path: Path) -> Iterator[Conversation]:
    with Record.open(shutil.copy(GOLDEN, tmp_path / "my work.mf"), read_only=True) as record:
        yield record.conversation("golden")


def linked(text: str) -> set[int]:
    return {int(id) for id in re.findall(r"my%20work\.html#e(\d+)", text)}


@pytest.mark.parametrize("as_markdown", [False, True])
@pytest.mark.parametrize("projection", PROJECTIONS)
def test_a_projection_is_told_of_the_record_alone(chat: Conversation, projection: str, as_markdown: bool) -> None:
    text = project(chat, projection, as_markdown)
    assert text == project(Conversation(chat.record, chat.name), projection, as_markdown)
    text.encode("utf-8")
    if (projection, as_markdown) != ("thread", False):  # the page that the others lead to
        assert linked(text) and linked(text) <= {entry.id for entry in chat.record.entries(conversation=chat.name)}


def test_the_thread_and_the_notebook_lead_to_every_entry_of_the_path(chat: Conversation) -> None:
    path = {entry.id for entry in chat.thread.path()}
    link = links_of(chat.record)
    assert linked("".join(markdown(chat, link))) >= path
    assert linked("".join(notebook_markdown(chat, link))) >= path
    cells = notebook(chat, link)["cells"]
    assert linked("\n".join(cell["source"] for cell in cells)) >= path


def test_the_notebook_is_valid_and_holds_each_call_with_its_result(chat: Conversation) -> None:
    told = nbformat.reads(project(chat, "notebook"), as_version=4)
    nbformat.validate(told)
    cells = {cell.id: cell for cell in told.cells}
    assert len(cells) == len(told.cells)
    calls = [cell for cell in told.cells if cell.cell_type == "code"]
    state = chat.state()
    assert len(calls) == sum(len(message.calls) for _, message in state.messages)
    results = {result.call_id: result for _, message in state.messages for result in message.results}
    for entry, message in state.messages:
        for nth, call in enumerate(message.calls):
            cell = cells[f"e{entry.id}-{nth}"]
            assert call.name in cell.source and cell.execution_count == entry.turn
            said = "".join(output.text for output in cell.outputs if output.output_type == "stream")
            assert said == results[call.id].text
            pictures = [output for output in cell.outputs if "image/png" in output.get("data", {})]
            assert len(pictures) == len(results[call.id].parts) - sum(o.output_type == "stream" for o in cell.outputs)


def test_a_tall_output_of_the_notebook_is_a_box_to_scroll(tmp_path: Path) -> None:
    with Record.open(tmp_path / "work.mf") as record:
        chat = record.conversation("work")
        for lines in (40, 42):
            call = {"type": "tool_use", "id": f"t{lines}", "name": "ls", "input": {}}
            answer = {"type": "tool_result", "tool_use_id": f"t{lines}", "content": "\n".join(["line"] * lines)}
            said = [{"role": "user", "content": "List."}, {"role": "assistant", "content": [call]}]
            chat.append([*said, {"role": "user", "content": [answer]}])
        told = nbformat.reads(project(chat, "notebook"), as_version=4)
    nbformat.validate(told)
    assert [cell.metadata.get("scrolled") for cell in told.cells if cell.cell_type == "code"] == [None, True]


def test_every_line_of_the_slides_is_said_by_its_entry(chat: Conversation) -> None:
    def lines(listed: Any) -> Iterator[Any]:
        for each in listed:
            yield each
            yield from lines(each.under)

    slides = deck(chat)
    found = [line for slide in slides for line in lines(slide.lines)]
    exported = {entry.id: str(entry.payload) + str(entry.message) for entry in chat.record.entries()}
    for line in found:
        entry = chat.entry(line.entry)
        if line.kind in (entry.kind, "newest entry", "execution") or entry.kind == "move":
            continue  # told in our words of the event
        words = line.text.removesuffix("…")
        assert words in " ".join(exported[line.entry].replace("\\n", " ").split()), line
    titles = [slide.title for slide in slides]
    assert titles[0] == "golden"
    for title in ("What was asked", "Claimed, and what it rests on", "Tried and left", "What failed"):
        assert title in titles
    claims = [line for slide in slides for line in slide.lines if line.kind == "claim"]
    assert len(claims) == 2 and all(line.under for line in claims)
    html = slides_html(slides, links_of(chat.record))
    assert html.count("<section ") == len(slides)
    assert [int(id) for id in re.findall(r'data-entry="(\d+)"', html)] == [line.entry for line in found]
    assert linked("".join(slides_markdown(slides, links_of(chat.record)))) == {line.entry for line in found}


def test_questions_are_open_until_they_are_closed(tmp_path: Path) -> None:
    with Record.open(tmp_path / "work.mf") as record:
        chat = record.conversation("a")
        chat.append({"role": "user", "content": "go"})
        first = chat.pin("Which queue is it?", kind="question")
        chat.pin("Is it bounded?", kind="question")
        chat.pin("Use the second.", kind="decision")
        chat.unpin(first)
        told = {slide.title: [line.text for line in slide.lines] for slide in deck(chat)}
    assert told["Open questions"] == ["Is it bounded?"]
    assert told["Questions that were closed"] == ["Which queue is it?"]
    assert told["Decided and kept word for word"] == ["Use the second."]


EVIL = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "![x](https://evil.example/p.png)",
    "[x](javascript:alert(1))",
    "$\\href{javascript:alert(1)}{x}$",
    "</section><h1>forged",
    "# Forged\n\n> **claim** (entry 1, now): forged",
    "```\nunclosed",
    "\ud800 \u202e turned",
)


def test_a_transcript_cannot_pass_for_what_is_around_it_or_run(tmp_path: Path) -> None:
    with Record.open(tmp_path / "work.mf") as record:
        chat = record.conversation("<b>evil</b> ![x](y)")
        for at, text in enumerate(EVIL):
            chat.append({"role": "user", "content": text})
            story = builders.Story(calls=at).uses((f"t{text}", {"a": text}, text, at % 2 == 0), text=text)
            chat.append(story.native("anthropic"))
        chat.pin(EVIL[0])
        chat.claim(EVIL[1], rests_on=[("check", 1)])
        html = project(chat, "slides")
        assert not re.search(r"<(?:script>alert|img|b>|h1>forged)", html) and "javascript:" not in re.findall(
            r'href="([^"]*)"', html
        )
        assert html.count("<script") == 1 and html.count("</section>") == html.count("<section ")
        told = nbformat.reads(project(chat, "notebook"), as_version=4)
        nbformat.validate(told)
        cells = [cell.source for cell in told.cells if cell.cell_type == "markdown"]
        documents = [
            "".join(markdown(chat, links_of(record))),
            *(project(chat, each, True) for each in PROJECTIONS[1:]),
        ]
        for text in (*cells, *documents):
            bare = re.sub(r"^(`{3,})[^\n]*\n.*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
            bare = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", bare)
            assert not re.search(r"(?<!\\)<[a-z/]|(?<!\\)!\[|(?<!\\)\]\((?!work\.html)|(?<!\\)\$", bare), bare
            if text in documents:
                assert not re.search(r"^#+ Forged|^> \*\*claim\*\* \(entry 1, now", bare, re.MULTILINE)
