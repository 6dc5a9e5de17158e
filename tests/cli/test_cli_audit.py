"""``audit``: the reviewer's report, as text and as data."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from conftest import Ran
from microfiche.conversation import Record

Run = Callable[..., Ran]


def test_the_report_names_every_turn_and_every_pass(run: Run, work: Path) -> None:
    assert run("compact", work, "--model", "claude-opus-5", "--budget", "20k").code == 0
    ran = run("audit", work)
    assert ran.code == 0, ran.err
    with Record.open(work, read_only=True) as record:
        chat = record.conversation(record.conversations()[0].name)
        turns = {entry.turn for entry, _ in chat.state().messages}
        passes = [entry.id for entry in chat.state().events]
    lines = ran.text.split("\n")
    assert turns <= {int(line.split()[0]) for line in lines if line.split()[:1] and line.split()[0].isdigit()}
    assert all(any(line.split()[:1] == [str(id)] and "compaction" in line for line in lines) for id in passes)
    data = json.loads(run("audit", work, "--json").text)
    assert data["sound"] and {turn["number"] for turn in data["turns"]} == turns
    assert [event["entry"] for event in data["events"] if event["kind"] == "compaction"] == passes


def test_at_a_pass_it_says_what_was_not_seen(run: Run, work: Path) -> None:
    assert run("compact", work, "--model", "claude-opus-5", "--budget", "20k").code == 0
    with Record.open(work, read_only=True) as record:
        event = record.conversation(record.conversations()[0].name).state().events[-1].id
    data = json.loads(run("audit", work, "--at", event, "--json").text)
    assert data["not_considered"] and data["seen"]
    assert "page" in {each["form"] for each in data["not_considered"]}
    assert run("audit", work, "--at", event).code == 0


def test_an_entry_that_is_not_there_is_named(run: Run, work: Path) -> None:
    ran = run("audit", work, "--at", 99_999)
    assert ran.code == 1 and "99999" in ran.err
