"""The agent's own tools: their definitions for each provider, and answers that equal the record."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import builders
import microfiche as mf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from microfiche.agent_tools import HITS, NAMES, PAGE
from microfiche.conversation import Conversation, Record
from microfiche.ladder.elide import is_placeholder

MODEL = {
    "anthropic": "claude-haiku-4-5",
    "openai_chat": "gpt-5.6-sol",
    "openai_responses": "gpt-5.6-sol",
    "gemini": "gemini-3-pro",
}


def call(wire: str, name: str, id: str = "call_1", **arguments: Any) -> dict[str, Any]:
    """The native call that a model of a wire makes."""
    text = json.dumps(arguments)
    return {
        "anthropic": {"type": "tool_use", "id": id, "name": name, "input": arguments},
        "openai_chat": {"id": id, "type": "function", "function": {"name": name, "arguments": text}},
        "openai_responses": {"type": "function_call", "call_id": id, "name": name, "arguments": text},
        "gemini": {"functionCall": {"name": name, "args": arguments}},
    }[wire]


def batch(wire: str, made: dict[str, Any], result: dict[str, Any]) -> list[dict[str, Any]]:
    """A call and its result as the messages of a wire."""
    return {
        "anthropic": [{"role": "assistant", "content": [made]}, {"role": "user", "content": [result]}],
        "openai_chat": [{"role": "assistant", "content": None, "tool_calls": [made]}, result],
        "openai_responses": [made, result],
        "gemini": [{"role": "model", "parts": [made]}, {"role": "user", "parts": [result]}],
    }[wire]


def told(wire: str, result: dict[str, Any]) -> str:
    """The text of a native result."""
    match wire:
        case "anthropic":
            content = result["content"]
            return content if isinstance(content, str) else content[0]["text"]
        case "openai_chat":
            return result["content"]
        case "openai_responses":
            output = result["output"]
            return output if isinstance(output, str) else output[0]["text"]
    response = result["functionResponse"]["response"]
    return response.get("output", response.get("error"))


def failed(wire: str, result: dict[str, Any]) -> bool | None:
    """Whether a native result says that it is an error; ``None`` where the wire cannot say so."""
    match wire:
        case "anthropic":
            return bool(result.get("is_error"))
        case "gemini":
            return "error" in result["functionResponse"]["response"]
    return None


def story(rounds: int = 6) -> builders.Story:
    made = builders.Story().user("Find the leak.")
    for at in range(rounds):
        made.read(f"src/part{at}.py", f"begin of part{at}\n{builders.code(at, 3_000)}\nend of part{at}")
    return made.says("The cache in part3 never lets go.")


@pytest.fixture
def record(tmp_path: Path) -> Any:
    with Record.open(tmp_path / "work.mf") as opened:
        yield opened


def chat_of(record: Record, wire: str, made: builders.Story | None = None) -> Conversation:
    chat = record.conversation(f"triage-{wire}")
    chat.append((made or story()).native(wire), format=wire)
    return chat


@pytest.mark.parametrize("provider", [*builders.WIRES, "openai"])
def test_definitions_are_sound_requests(provider: str) -> None:
    definitions = mf.tools(provider)
    wire = "openai_chat" if provider == "openai" else provider
    fit = mf.compact(story().native(wire), model=MODEL[wire], tools=definitions, format=wire, budget=100_000)
    assert fit.request["tools"] == definitions and not mf.validate(fit.request, wire)
    assert re.findall(r'"name": "(\w+)"', json.dumps(definitions)) == list(NAMES)
    # A tool of that name makes placeholders and guides offer a recall.
    assert mf.compact(
        story(40).native(wire), model=MODEL[wire], tools=definitions, format=wire, budget=12_000
    ).plan.recall


def test_an_unknown_provider_is_refused() -> None:
    with pytest.raises(mf.BadInput, match="anthropic"):
        mf.tools("nobody")


@pytest.mark.parametrize("wire", builders.WIRES)
def test_results_can_be_appended_and_sent(record: Record, wire: str) -> None:
    chat = chat_of(record, wire)
    for at, (name, arguments) in enumerate(
        [
            ("recall", {"turn": 2}),
            ("search", {"text": "begin of part4"}),
            ("pin", {"text": "A leak is memory that grows.", "kind": "definition"}),
            ("checkpoint", {"label": "found"}),
            ("recall", {"turn": 999}),
        ]
    ):
        made = call(wire, name, f"call_{at}", **arguments)
        chat.append([*builders.Story().user("Go on.").native(wire), *batch(wire, made, chat.answer(made))], format=wire)
    fit = chat.context(model=MODEL[wire], tools=mf.tools(wire))
    assert not mf.validate(fit.request, wire)


@pytest.mark.parametrize("wire", builders.WIRES)
def test_a_recall_equals_the_record_page_by_page(record: Record, wire: str) -> None:
    long = builders.code(1, 3 * PAGE + 17)
    chat = chat_of(record, wire, builders.Story().user("Look.").uses(("run", {"command": "dump"}, long)))
    pages = []
    while True:
        text = told(wire, chat.answer(call(wire, "recall", turn=2, page=len(pages) + 1)))
        head, _, body = text.partition("\n")
        number, count = map(int, re.fullmatch(r"\[turn 2, page (\d+) of (\d+)\]", head).groups())  # type: ignore[union-attr]
        assert number == len(pages) + 1 and len(body) <= PAGE
        pages.append(body)
        if number == count:
            break
    assert len(pages) == 4
    whole = "".join(pages)
    assert long in whole and "call run:\n" in whole and json.loads(whole.split("\n")[1]) == {"command": "dump"}


def test_a_recall_returns_the_picture(record: Record) -> None:
    picture = builders.png(30, 20, noise=1)
    chat = chat_of(record, "anthropic", builders.Story().user("Look.").uses(("shot", {}, ("seen", picture))))
    native = chat.answer(call("anthropic", "recall", turn=2))
    assert native["content"][1] == {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": builders._b64(picture)},
    }


def test_reasoning_is_named_and_not_shown(record: Record) -> None:
    made = builders.Story().user("Look.").says("Done.", thinking="the secret thought of mine")
    chat = chat_of(record, "anthropic", made)
    for name, arguments in (("recall", {"turn": 2}), ("search", {"text": "secret thought"})):
        text = told("anthropic", chat.answer(call("anthropic", name, **arguments)))
        assert "thought of mine" not in text and "turn 2" in text


def test_a_search_is_paged(record: Record) -> None:
    made = builders.Story()
    for at in range(2 * HITS + 3):
        made.user(f"needle number {at}").says("noted")
    chat = chat_of(record, "anthropic", made)
    found: list[int] = []
    for page in (1, 2, 3, 4):
        text = told("anthropic", chat.answer(call("anthropic", "search", text="needle number", page=page)))
        assert len(text) < HITS * 250
        found += map(int, re.findall(r"^turn (\d+): .*needle", text, re.M))
    assert found == list(range(4 * HITS + 5, 0, -2))
    assert "no more turn holds" in text


@pytest.mark.parametrize("wire", builders.WIRES)
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("recall", {}),
        ("recall", {"turn": 0}),
        ("recall", {"turn": True}),
        ("recall", {"turn": 10**30}),
        ("recall", {"turn": 2, "page": 2}),
        ("recall", {"turn": "2; drop"}),
        ("search", {}),
        ("search", {"text": "  "}),
        ("search", {"text": "a", "page": -1}),
        ("pin", {"text": "x" * 2_001}),
        ("pin", {"text": "x", "kind": "song"}),
        ("pin", {"text": "x", "kind": ["decision"]}),
        ("checkpoint", {"label": 3}),
        ("rewind", {"label": "nowhere", "report": "so"}),
        ("rewind", {"label": "nowhere"}),
        ("delete", {}),
    ],
)
def test_bad_arguments_come_back_as_an_error(tmp_path: Path, wire: str, name: str, arguments: dict[str, Any]) -> None:
    with Record.open(tmp_path / "work.mf") as record:
        chat = chat_of(record, wire, story(1))
        size = record.head.size
        result = chat.answer(call(wire, name, **arguments))
        assert failed(wire, result) in (True, None) and told(wire, result)
        assert record.head.size == size


@pytest.mark.parametrize("arguments", ["", "[]", "{", "null", '"x"', "[" * 50_000])
def test_arguments_that_are_no_object(record: Record, arguments: str) -> None:
    chat = chat_of(record, "openai_chat", story(1))
    made = {"id": "c", "type": "function", "function": {"name": "recall", "arguments": arguments}}
    assert "turn is no whole number" in told("openai_chat", chat.answer(made)) or "no JSON object" in told(
        "openai_chat", chat.answer(made)
    )


def test_numbers_as_some_providers_write_them(record: Record) -> None:
    chat = chat_of(record, "gemini")
    assert told("gemini", chat.answer(call("gemini", "recall", turn=2.0))).startswith("[turn 2, page 1 of 1]")
    assert told("gemini", chat.answer(call("gemini", "recall", turn="2"))).startswith("[turn 2, page 1 of 1]")


def test_what_is_no_call_is_the_programmers_error(record: Record) -> None:
    chat = chat_of(record, "anthropic", story(1))
    for wrong in (None, 3, "recall", {}, {"id": "x"}):
        with pytest.raises(mf.BadInput):
            chat.answer(wrong)


@pytest.mark.parametrize("wire", builders.WIRES)
def test_a_rewind_waits_for_the_append_that_closes_its_batch(record: Record, wire: str) -> None:
    chat = chat_of(record, wire)
    chat.answer(call(wire, "checkpoint", label="before"))
    mark, before = chat.tip, chat.context(model=MODEL[wire]).messages
    chat.append(builders.Story().user("Try the allocator.").says("It is not that.").native(wire), format=wire)
    tip = chat.tip
    made = call(wire, "rewind", "call_9", label="before", report="not the allocator")
    result = chat.answer(made)
    assert chat.tip == tip
    written = chat.append(batch(wire, made, result), format=wire)
    assert written[-1].message is not None and written[-1].kind == "message"
    after = chat.context(model=MODEL[wire]).messages
    assert after[: len(before)] == before and len(after) == len(before) + 1
    assert "not the allocator" in str(after[-1])
    # The batch stays, on the path that was left, and nothing is asked for twice.
    path = [entry.id for entry in chat.thread.path()]
    assert written[0].id not in path and path[-2] == mark
    assert chat.recall(written[0].turn or 0)
    chat.append(builders.Story().says("Then the cache.").native(wire), format=wire)
    assert "not the allocator" in str(chat.context(model=MODEL[wire]).messages)
    assert record.verify(derived=True)


def test_a_rewind_that_is_never_appended_does_nothing(record: Record) -> None:
    chat = chat_of(record, "anthropic")
    chat.checkpoint("before")
    chat.append({"role": "user", "content": "Go on."})
    chat.answer(call("anthropic", "rewind", "call_8", label="before", report="so"))
    other = call("anthropic", "recall", "call_9", turn=1)
    chat.append(batch("anthropic", other, chat.answer(other)))
    assert [entry.kind for entry in chat.thread.path()].count("report") == 0
    # A second one of another turn is not the first.
    made = call("anthropic", "rewind", "call_10", label="before", report="this one")
    chat.append(batch("anthropic", made, chat.answer(made)))
    assert "this one" in str(chat.context(model=MODEL["anthropic"]).messages[-1])


def test_a_checkpoint_marks_the_last_closed_boundary_and_says_so(record: Record) -> None:
    chat = chat_of(record, "anthropic")
    boundary = chat.tip
    made = call("anthropic", "checkpoint", label="here")
    chat.started(made)
    assert "last complete turn" in told("anthropic", chat.answer(made))
    label = chat.thread.labels()["here"]
    assert label.entry == boundary and label.moved


def test_what_was_recalled_is_the_first_thing_elided_again(record: Record) -> None:
    chat = chat_of(record, "anthropic", story(3))
    made = call("anthropic", "recall", "call_r", turn=2)
    found = call("anthropic", "search", "call_s", text="begin of")
    foreign = {"type": "tool_use", "id": "call_f", "name": "search", "input": {"text": "begin of"}}
    answers = {each["id"]: chat.answer(each) for each in (made, found)}
    chat.append(batch("anthropic", made, answers["call_r"]))
    chat.append(batch("anthropic", found, answers["call_s"]))
    own = {"type": "tool_result", "tool_use_id": "call_f", "content": "of somebody else's tool\n" + "it found\n" * 60}
    chat.append(batch("anthropic", foreign, own))
    # In the tail it stays, whatever the pass: it was asked for just now.
    policy = mf.Policy(rungs=("elide",))
    with pytest.raises(mf.NothingToCompact):
        chat.compact(model=MODEL["anthropic"], policy=policy)
    chat.append(builders.Story().user(builders.prose(1, 9_000)).says("I see.").native("anthropic"))
    fit = chat.compact(model=MODEL["anthropic"], policy=policy, tools=mf.tools("anthropic"), budget=40_000)
    stands = {
        block["tool_use_id"]: block["content"]
        for message in fit.messages
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_result"
    }
    line = "turn 2 can be recalled again"
    assert is_placeholder(stands["call_r"]) and line in stands["call_r"]
    assert stands["call_f"] == own["content"]
    assert all(not is_placeholder(text) for id, text in stands.items() if id.startswith("toolu"))


@settings(max_examples=60, deadline=None)
@given(st.text(min_size=1, max_size=300))
def test_any_text_is_found_bounded_or_told(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    with Record.open(tmp_path_factory.mktemp("any") / "work.mf") as record:
        chat = record.conversation("x")
        chat.append({"role": "user", "content": text})
        recalled = told("anthropic", chat.answer(call("anthropic", "recall", turn=1)))
        assert recalled == f"[turn 1, page 1 of 1]\nuser:\n{text}\n"
        assert len(told("anthropic", chat.answer(call("anthropic", "search", text=text)))) < 2_000
