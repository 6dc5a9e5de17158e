"""Contexts of a record: what fills the window, passes as events, and the way back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import microfiche as mf
import pytest
from conftest import Ran, listing
from microfiche import formats
from microfiche import models as catalogue
from microfiche.conversation import Record
from microfiche.transfer import standing_options

Run = Callable[..., Ran]
MODEL = "claude-opus-5"


def told(ran: Ran) -> Any:
    assert ran.code == 0, ran.err
    return json.loads(ran.text)


def head(record: Path) -> tuple[int, str]:
    with Record.open(record, read_only=True) as held:
        return held.head


@pytest.mark.parametrize("model, budget", [(MODEL, None), (MODEL, "20k"), ("gpt-5.6-sol", "30k")])
def test_what_fills_the_window_adds_up_and_records_nothing(
    run: Run, work: Path, model: str, budget: str | None
) -> None:
    run("pin", work, "Heights are in centimetres.", "--kind", "definition")
    before = head(work)
    shown = told(run("context", work, "--model", model, "--json", *(["--budget", budget] if budget else [])))
    assert sum(shown["spent"].values()) == shown["tokens"]
    assert shown["tokens"] + shown["free"] == shown["budget"]
    assert shown["spent"]["pins"] > 0 and shown["spent"]["tools"] > 0 and shown["spent"]["text"] > 0
    assert shown["pass_due"] == (budget is not None) == (shown["spent"]["pages"] > 0)
    assert head(work) == before
    with Record.open(work) as held:
        chat, wire = held.conversation("harbour"), shown["format"]
        tokens = int(budget[:-1]) * 1000 if budget else None
        made = chat.preview(model=model, budget=tokens, format=wire, **standing_options(chat, wire))
        assert made.tokens == shown["tokens"]
    pages = sum(page.tokens for page in made.pages)
    assert shown["spent"]["pages"] >= pages


def test_context_is_a_table_for_people(run: Run, work: Path) -> None:
    text = run("context", work, "--model", MODEL, "--budget", "20k").text
    rows = re.findall(r"^(\w[\w ]*?) +([\d,]+) +[\d.]+%", text, re.MULTILINE)
    numbers = {name: int(number.replace(",", "")) for name, number in rows}
    assert numbers.pop("budget") == 20_000 == sum(numbers.values())
    assert "the next call makes a pass first" in text


def test_a_learnt_ratio_stands_in_the_table(run: Run, work: Path) -> None:
    plain = told(run("context", work, "--model", MODEL, "--budget", "400k", "--json"))
    with Record.open(work) as held:
        chat = held.conversation("harbour")
        fit = chat.context(model=MODEL, budget=400_000)
        chat.fail((400, {"error": {"message": f"prompt is too long: {fit.tokens * 2} tokens > 60000 maximum"}}), fit)
    learnt = told(run("context", work, "--model", MODEL, "--budget", "400k", "--json"))
    assert learnt["spent"]["learnt"] > 0.9 * plain["tokens"]
    assert sum(learnt["spent"].values()) == learnt["tokens"] == learnt["budget"] - learnt["free"]


def test_compact_takes_a_record_and_leaves_an_event(run: Run, work: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = run("compact", work, "--model", MODEL, "--budget", "20k", "--out", out)
    assert ran.code == 0 and "Recorded as entry 79." in ran.text
    context = json.loads((out / "context.json").read_text())
    assert mf.validate(context, "anthropic") == [] and mf.count(context, model=MODEL) <= 20_000
    assert {tool["name"] for tool in context["tools"]} >= {"Bash", "Read"}
    with Record.open(work, read_only=True) as held:
        event = held.entry(79)
        assert event.kind == "compaction" and event.payload["after"]["tokens"] <= 20_000
        assert held.verify(derived=True)
    log = run("log", work).text
    assert "compacted (by hand) for claude-opus-5" in log
    # The event is small and the history is whole.
    assert told(run("show", work, 5, "--json"))
    again = run("compact", work, "--model", MODEL, "--budget", "20k")
    assert again.code == 1 and "nothing_new" in again.err


def test_the_pages_of_a_session_and_of_its_record_are_the_same(
    run: Run, work: Path, harbour: Path, tmp_path: Path
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    assert run("compact", harbour, "--model", MODEL, "--budget", "20k", "--out", one).code == 0
    assert run("compact", work, "--model", MODEL, "--budget", "20k", "--out", two).code == 0
    pages = [name for name in listing(one) if name.startswith("page-")]
    assert len(pages) > 3
    assert [listing(one)[name] for name in pages] == [listing(two)[name] for name in pages]


def test_a_dry_run_on_a_record_records_and_writes_nothing(run: Run, work: Path, tmp_path: Path) -> None:
    before = head(work)
    ran = run("compact", work, "--model", MODEL, "--budget", "20k", "--out", tmp_path / "out", "--dry-run")
    assert ran.code == 0 and "Nothing was recorded (--dry-run)." in ran.text
    assert head(work) == before and not (tmp_path / "out").exists()


@pytest.mark.parametrize("option", [("--plan", "plan.json"), ("--from", "atif"), ("--prompt", "x")])
def test_options_of_sessions_are_refused_for_a_record(run: Run, work: Path, option: tuple[str, str]) -> None:
    ran = run("compact", work, "--model", MODEL, *option)
    assert ran.code == 2 and option[0] in ran.err


def test_name_is_refused_for_a_session(run: Run, harbour: Path) -> None:
    ran = run("compact", harbour, "--model", MODEL, "--name", "x", "--dry-run")
    assert ran.code == 2 and "--name" in ran.err


def test_system_prompt_and_tools_from_files(run: Run, work: Path, harbour: Path, tmp_path: Path) -> None:
    system, tools, out = tmp_path / "system.txt", tmp_path / "tools.json", tmp_path / "out"
    system.write_text("You look after a harbour. ⚓")
    definitions = [{"name": "Bash", "description": "Runs a command.", "input_schema": {"type": "object"}}]
    tools.write_text(json.dumps(definitions))
    for session in (work, harbour):
        ran = run("compact", session, "--model", MODEL, "--budget", "20k", "--out", out, "--system", system,
                  "--tools", tools)  # fmt: skip
        assert ran.code == 0, ran.err
        context = json.loads((out / "context.json").read_text())
        assert context["tools"] == definitions and "⚓" in str(context["system"])
    # The next context of the record is asked with what the newest was asked with.
    shown = told(run("context", work, "--model", MODEL, "--json"))
    assert shown["spent"]["system"] > 5
    tools.write_text("{}")
    ran = run("compact", work, "--model", MODEL, "--tools", tools)
    assert ran.code == 1 and "not a list" in ran.err


def test_shake_draws_nothing(run: Run, work: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = told(run("shake", work, "--model", MODEL, "--only", "images", "--out", out, "--json"))
    assert done["pages"] == [] and done["after"]["images"] < done["before"]["images"]
    assert not done["elided"] and not list(out.glob("page-*"))
    both = told(run("shake", work, "--model", MODEL, "--json"))
    assert both["elided"] and both["after"]["tokens"] < done["after"]["tokens"]
    assert both["entry"] == done["entry"] + 1


def test_a_dry_run_of_a_shake_is_what_the_shake_will_be(run: Run, work: Path, tmp_path: Path) -> None:
    asked = ("shake", work, "--model", MODEL, "--only", "images", "--out", tmp_path / "out", "--json")
    before = work.read_bytes()
    dry = told(run(*asked, "--dry-run"))
    assert work.read_bytes() == before and not (tmp_path / "out").exists()
    done = told(run(*asked))
    assert dry["entry"] is None and done["entry"]
    assert (dry["images"], dry["after"]) == (done["images"], done["after"]) and done["images"]
    ran = run("shake", work, "--model", MODEL, "--only", "elide", "--dry-run")
    assert ran.code == 0 and "Nothing was recorded (--dry-run)." in ran.text


def test_a_dry_run_refuses_what_the_pass_would(run: Run, work: Path) -> None:
    """Kind: a dry run that reports a success, where the pass itself says that there is nothing to do."""
    for command in (("shake", "--only", "reasoning"), ("compact",)):
        asked = (command[0], work, "--model", MODEL, *command[1:])
        codes = [run(*asked, *more).code for more in ((), ("--dry-run",), (), ("--dry-run",))]
        assert codes[-2:] == [1, 1]


def test_what_a_pass_removed_is_shown_with_the_originals(run: Run, work: Path, harbour: Path) -> None:
    event = told(run("shake", work, "--model", MODEL, "--json"))["entry"]
    removed = told(run("show", work, "--removed", event, "--json"))
    with Record.open(work, read_only=True) as held:
        plan = held.conversation("harbour").state().plan
    results = [each for each in removed if each["kind"] == "result"]
    images = [each for each in removed if each["kind"] == "image"]
    assert len(results) == len(plan.elided) > 0 and len(images) == len(plan.dropped) > 0
    said = [result.text for message in formats.read(harbour.read_bytes()).messages for result in message.results]
    for each in results:
        text = "\n".join(part["text"] for part in each["original"]["parts"] if part["type"] == "text")
        assert text in said
    text = run("show", work, "--removed", event)
    assert text.text.count("── turn ") == len(removed) and f"by entry {event}" in text.err
    wrong = run("show", work, "--removed", 1)
    assert wrong.code == 1 and "message" in wrong.err


def test_retry_tells_its_three_answers_apart(run: Run, tmp_path: Path) -> None:
    record, out = tmp_path / "work.mf", tmp_path / "out"
    with Record.open(record) as held:
        held.thread("a").side("import", None, {"note": "nothing yet"})
    ran = run("retry", record)
    assert ran.code == 1 and "holds no message" in ran.err
    with Record.open(record) as held:
        chat = held.conversation("a")
        chat.append({"role": "user", "content": "go"})
    ran = run("retry", record)
    assert ran.code == 1 and "nothing failed" in ran.err
    with Record.open(record) as held:
        chat = held.conversation("a")
        fit = chat.context(model=MODEL, system="Be brief.", max_tokens=77)
        chat.fail(ConnectionError("reset by peer"), context=fit)
    assert run("retry", record, "--out", out).code == 0
    assert json.loads((out / "context.json").read_text()) == fit.request


def test_a_model_of_unknown_window_needs_a_budget(run: Run, work: Path) -> None:
    for command in ("context", "compact", "shake"):
        ran = run(command, work, "--model", "somebody-else-1")
        assert ran.code == 2 and "--budget" in ran.err


@pytest.mark.parametrize("model, budget", [("gpt-5.6-sol", "30k"), ("gemini-3.1-pro-preview", "30k"), (MODEL, "30k")])
def test_a_session_goes_out_in_the_form_of_the_model_s_provider(
    run: Run, work: Path, tmp_path: Path, model: str, budget: str
) -> None:
    own = catalogue.find(model).wire
    shown = told(run("context", work, "--model", model, "--budget", budget, "--json"))
    assert shown["format"] == own
    receipt = told(run("compact", work, "--model", model, "--budget", budget, "--out", tmp_path / "out", "--json"))
    context = json.loads((tmp_path / "out" / "context.json").read_text())
    assert receipt["format"] == own and mf.validate(context, own) == [] and context["tools"]
    # What came as a list keeps its own form, whatever the model.
    body = json.dumps([{"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {}}]}]).encode()
    run("import", "-", work, "--name", "list", stdin=body)
    shown = told(run("context", work, "--name", "list", "--model", model, "--json"))
    assert shown["format"] == "anthropic"
