"""Moving about in the tree, undoing passes, pinning: each leaves one event and says what it did."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Ran
from microfiche.conversation import Record
from microfiche.messages import ToolCall

Run = Callable[..., Ran]
MODEL = "claude-opus-5"


def told(ran: Ran) -> Any:
    assert ran.code == 0, ran.err
    return json.loads(ran.text)


def tip(record: Path) -> int | None:
    with Record.open(record, read_only=True) as held:
        return held.conversations()[0].tip


def size(record: Path) -> int:
    with Record.open(record, read_only=True) as held:
        return held.head.size


def test_branch_moves_the_tip_and_back(run: Run, work: Path) -> None:
    path = run("log", work, "--json").out
    assert told(run("branch", work, 1, "--json")) == {"conversation": "harbour", "entry": 79, "from": 77, "tip": 1}
    assert tip(work) == 1
    assert "The tip of harbour is entry 77; it was entry 1." in run("branch", work, 77).text
    assert run("log", work, "--json").out == path
    assert told(run("branch", work, 0, "--json"))["tip"] is None
    assert run("verify", work, "--derived").code == 0


def test_branch_wants_a_turn_boundary_of_the_conversation(run: Run, work: Path) -> None:
    with Record.open(work, read_only=True) as held:
        inside = next(entry.id for entry in held.conversation("harbour").thread.path() if entry.open)
    before = size(work)
    ran = run("branch", work, inside)
    assert ran.code == 1 and "no turn boundary" in ran.err and f"take {inside - 1}" in ran.err
    assert run("branch", work, 999).code == 1
    assert size(work) == before


def test_fork_copies_the_path(run: Run, work: Path) -> None:
    run("pin", work, "keep me")
    made = told(run("fork", work, "other", "--json"))
    with Record.open(work, read_only=True) as held:
        one, two = held.conversation("harbour"), held.conversation("other")
        assert made["tip"] == two.tip and [pin.text for pin in two.pins()] == ["keep me"]
        assert [m for _, m in one.state().messages] == [m for _, m in two.state().messages]
    early = told(run("fork", work, "early", "--name", "harbour", "--at", 1, "--json"))
    assert early["from"] == {"conversation": "harbour", "entry": 1}
    ran = run("fork", work, "other", "--name", "harbour")
    assert ran.code == 1 and "exists" in ran.err
    assert run("verify", work, "--derived").code == 0


def test_checkpoint_and_rewind_with_a_report(run: Run, work: Path) -> None:
    run("branch", work, 1)
    assert told(run("checkpoint", work, "before refactor", "--json"))["at"] == 1
    run("branch", work, 77)
    done = told(run("rewind", work, "before refactor", "--report", "tried X; failed because Y", "--json"))
    assert (done["entry"], done["turns_left"], done["tip"]) == (1, 40, done["report"])
    log = run("log", work).text
    assert "report after a rewind to before refactor" in log and "tried X; failed because Y" in log
    again = run("rewind", work, "before refactor")
    assert "Back at before refactor (entry 1), 1 turn left behind." in again.text
    stale = run("rewind", work, "before refactor", "--planned-on", 77)
    assert stale.code == 1 and "planned on entry 77" in stale.err
    unknown = run("rewind", work, "nowhere")
    assert unknown.code == 1 and "there are before refactor" in unknown.err


def test_a_checkpoint_while_a_call_runs_says_so(run: Run, tmp_path: Path) -> None:
    record = tmp_path / "work.mf"
    with Record.open(record) as held:
        chat = held.conversation("a")
        chat.append({"role": "user", "content": "go"})
        chat.started(ToolCall("t1", "Bash", "{}"))
        assert "the last closed boundary" in run("checkpoint", record, "here").text


def test_undo_takes_back_the_newest_pass(run: Run, work: Path) -> None:
    ran = run("undo", work)
    assert ran.code == 1 and "no pass to undo" in ran.err
    event = told(run("compact", work, "--model", MODEL, "--budget", "20k", "--json"))["entry"]
    assert run("undo", work, 1).code == 1
    assert told(run("undo", work, event, "--json")) == {"conversation": "harbour", "entry": 80, "undone": event}
    with Record.open(work, read_only=True) as held:
        assert not held.conversation("harbour").state().plan
    assert f"pass of entry {event} taken back" in run("log", work).text


def test_pins_are_set_listed_and_let_go(run: Run, work: Path) -> None:
    first = told(run("pin", work, "A leak is memory that grows.", "--kind", "definition", "--json"))
    second = told(run("pin", work, "Which makers?", "--kind", "question", "--json"))
    assert [pin["entry"] for pin in told(run("pins", work, "--json"))] == [first["entry"], second["entry"]]
    assert [pin["text"] for pin in told(run("pins", work, "--kind", "question", "--json"))] == ["Which makers?"]
    assert "definition  A leak is memory that grows." in run("pins", work).text
    assert f"Pin {second['entry']} let go." in run("unpin", work, second["entry"]).text
    assert [pin["kind"] for pin in told(run("pins", work, "--json"))] == ["definition"]
    assert run("unpin", work, second["entry"]).code == 1
    assert run("pin", work, "  ").code == 1


@pytest.mark.parametrize(
    "command",
    [
        ("branch", 1),
        ("fork", "other"),
        ("checkpoint", "x"),
        ("pin", "x"),
        ("undo",),
        ("compact", "--model", MODEL),
        ("shake", "--model", MODEL),
    ],
    ids=lambda command: command[0],
)
def test_what_would_write_says_so_of_a_record_it_may_not_write(
    run: Run, work: Path, command: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = size(work)

    def denied(path: Path, *args: Any) -> Any:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("microfiche.record.sqlite.open_for_writing", denied)
    ran = run(command[0], work, *command[1:])
    assert ran.code == 1 and str(work) in ran.err and ran.err.count("\n") == 1
    monkeypatch.undo()
    assert size(work) == before
