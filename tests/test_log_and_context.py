"""The log and what is made of it: nothing that is sent leads back into the log, and the log misses nothing."""

from __future__ import annotations

import dataclasses
import gc
import json
import re
import sqlite3
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import builders
import microfiche as mf
import pytest
from builders import Story
from microfiche.agent_tools import PIN_KINDS
from microfiche.conversation import VERSIONS, Conversation
from microfiche.record import Entry, Ref, Thread
from microfiche.views.links import links_of
from microfiche.views.thread import markdown

MODEL = "claude-haiku-4-5"


def round_(at: int, size: int = 3_000) -> list[dict[str, Any]]:
    """A call and its result that no rule elides."""
    return Story(calls=at).uses(("ask", {"question": at}, f"of {at}:\n{builders.code(at, size)}")).native("anthropic")


@pytest.fixture
def chat(tmp_path: Path) -> Iterator[Conversation]:
    with mf.Record.open(tmp_path / "work.mf") as record:
        yield record.conversation("work")


def grow(chat: Conversation, rounds: int, first: int = 0) -> None:
    if chat.tip is None:
        chat.append({"role": "user", "content": "Find the leak."})
    for at in range(first, first + rounds):
        chat.append(round_(at))


# Two things


def test_what_makes_contexts_knows_no_record() -> None:
    code = (
        "import sys; import microfiche.fit, microfiche.ladder.projection, microfiche.ladder.compact;"
        "print([name for name in sys.modules if name == 'sqlite3' or name.startswith('microfiche.record')])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.strip() == "[]"


def test_no_way_leads_from_a_context_to_the_record(chat: Conversation) -> None:
    grow(chat, 20)
    fit = chat.context(model=MODEL, budget=12_000)
    assert fit.pages
    seen: set[int] = set()
    waiting: list[Any] = [fit]
    passed_by = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, passed_by):
            continue
        seen.add(id(each))
        assert not isinstance(each, mf.Record | Conversation | Thread | Entry | sqlite3.Connection)
        waiting += gc.get_referents(each)
    assert len(seen) > 100


def test_an_entry_cannot_be_changed_and_nothing_offers_to(chat: Conversation) -> None:
    (entry,) = chat.append({"role": "user", "content": "Find the leak."})
    for field in dataclasses.fields(entry):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(entry, field.name, None)
    words = re.compile(r"edit|update|delete|remove|replace|rewrite|write|truncate|purge|set_|redact|vacuum|amend")
    for holder in (mf.Record, Conversation, Thread, Entry):
        assert not [name for name in dir(holder) if not name.startswith("_") and words.search(name)]


def ruin(value: Any) -> None:
    """Change everything in native data that can be changed."""
    if isinstance(value, dict):
        for each in value.values():
            ruin(each)
        value["ruined"] = True
        for name in ("text", "content", "name"):
            if isinstance(value.get(name), str):
                value[name] = "ruined"
    elif isinstance(value, list):
        for each in value:
            ruin(each)
        value.append("ruined")


def test_changing_what_was_given_out_changes_nothing(chat: Conversation) -> None:
    given: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "Find the leak."}]}]
    for at in range(20):
        given += round_(at)
    kept = json.dumps(given)
    chat.append(given)
    chat.compact(model=MODEL, budget=12_000)
    asked: dict[str, Any] = {"model": MODEL, "budget": 12_000}
    digest, turns = chat.context(**asked).digest, [chat.recall(turn) for turn in range(1, 22)]
    entries = list(chat.record.entries())
    ruin(given)
    for _ in range(2):
        fit = chat.context(**asked)
        assert fit.digest == digest
        ruin(fit.request)
        ruin(fit.messages)
    for turn in range(1, 22):
        ruin(chat.recall(turn))
    assert [chat.recall(turn) for turn in range(1, 22)] == turns
    assert json.dumps([message for turn in turns for message in turn]) == kept
    assert chat.context(**asked).digest == digest
    assert list(chat.record.entries()) == entries and chat.record.verify(derived=True)


# Complete


def test_every_event_of_a_session_is_an_entry(chat: Conversation) -> None:
    record = chat.record
    by_url = {"type": "image", "source": {"type": "url", "url": "https://example.org/screen.png"}}
    by_id = {"type": "image", "source": {"type": "file", "file_id": "file_011CN"}}
    asks = {"role": "user", "content": [{"type": "text", "text": "What is on these?"}, by_url, by_id]}
    call = {"type": "tool_use", "id": "t1", "name": "query", "input": {"sql": "SELECT 1"}, "audit": "warehouse/run-17"}
    calls = {"role": "assistant", "content": [{"type": "text", "text": "I look."}, call]}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "no such table", "is_error": True}
    results = {"role": "user", "content": [result]}
    says = {"role": "assistant", "content": "There is none."}
    refused = (400, {"error": {"type": "invalid_request_error", "message": "prompt is too long: 9000 tokens > 7000"}})

    def context() -> mf.Context:
        return chat.context(model=MODEL, budget=100_000, max_tokens=500)

    pins: list[Any] = []
    script: list[tuple[Callable[[], Any], list[str]]] = [
        (lambda: chat.append(asks), ["message"]),
        (lambda: chat.started(call), ["started"]),
        (lambda: chat.append([calls, results], context=context()), ["message", "message"]),
        (lambda: chat.fail(ConnectionError("reset"), context=context()), ["failure"]),
        (lambda: chat.append(says, context=context()), ["message"]),
        (lambda: pins.append(chat.pin("Use the replica.", kind="decision")), ["pin"]),
        (lambda: chat.claim("There is no such table.", rests_on=[("query", 4)]), ["claim"]),
        (lambda: chat.checkpoint("asked"), ["label"]),
        (lambda: chat.append([m for at in range(5, 15) for m in round_(at)]), ["message"] * 20),
        (lambda: chat.recover(refused, context=context()), ["failure", "compaction"]),
        (lambda: chat.rewind("asked", report="No use."), ["move", "report"]),
        (lambda: chat.unpin(pins[0]), ["unpin"]),
    ]
    for at, (act, kinds) in enumerate(script):
        size = record.head.size
        act()
        assert [entry.kind for entry in record.entries(size + 1)] == kinds, f"step {at}"
    assert chat.recall(1) == [asks] and chat.recall(2) == [calls, results] and chat.recall(3) == [says]
    everything = list(record.entries())
    assert [entry.id for entry in everything] == list(range(1, record.head.size + 1))
    # Of pictures that stand elsewhere the record holds where, and no bytes.
    assert not everything[0].blobs
    failures = [entry.payload for entry in everything if entry.kind == "failure"]
    assert failures[0]["what"] == "reset" and failures[1]["used"] == 9_000 and failures[1]["limit"] == 7_000
    assert record.verify(derived=True)


def test_every_parent_is_there_and_before(chat: Conversation) -> None:
    grow(chat, 3)
    chat.checkpoint("here")
    for at in range(4):
        grow(chat, 2, first=10 * at + 10)
        chat.rewind("here", report=f"{at}")
    chat.fork("other").append({"role": "user", "content": "There."})
    chat.branch(None)
    chat.append({"role": "user", "content": "Another root."})
    entries = {entry.id: entry for entry in chat.record.entries()}
    roots = 0
    for entry in entries.values():
        if entry.on_path and entry.parent is not None:
            parent = entries[entry.parent]
            assert parent.id < entry.id, "no way leads round in a circle"
            assert parent.on_path and parent.conversation == entry.conversation
        else:
            assert entry.parent is None
            roots += entry.on_path
    assert roots == 3


# Passes


def test_a_pass_says_when_why_what_and_how_it_is_seen(chat: Conversation) -> None:
    grow(chat, 30)
    first = chat.compact(model=MODEL, budget=20_000)
    grow(chat, 10, first=30)
    second = chat.context(model=MODEL, budget=20_000)
    drawn: list[str] = []
    for fit, why in ((first, "by hand"), (second, "threshold")):
        event = chat.entry(fit.entry or 0)
        told = event.payload
        assert event.kind == "compaction" and event.on_path and event.time > 0
        assert set(told) == {
            *("why", "span", "plan", "wire", "pages", "before", "after", "rungs", "atlases", "versions"),
            *("context", "model", "estimate", "asked"),
        }
        assert told["why"] == why and told["wire"] == "anthropic" and told["versions"] == VERSIONS
        assert told["context"] == fit.digest and told["estimate"] == told["after"]["tokens"] == fit.tokens
        assert told["before"]["tokens"] > told["after"]["tokens"]
        begin, end = told["span"]
        assert 1 < begin <= end == fit.plan.archive.last  # type: ignore[union-attr]
        # Only what is new is named: full pages of the pass before are not.
        digests = [page[4] for page in told["pages"]["then"]]
        assert [*drawn[: told["pages"]["keep"]], *digests] == [page.digest for page in fit.drawn or fit.pages]
        drawn = [page.digest for page in fit.drawn or fit.pages]
        seen = mf.audit(chat).context_at(event)
        assert seen.proven and seen.digest == fit.digest and seen.messages == fit.messages
    events = [chat.entry(fit.entry or 0).payload for fit in (first, second)]
    assert events[1]["pages"]["keep"] > 0 and events[1]["span"][0] > events[0]["span"][1]


def test_markers_stand_between_the_messages_they_came_between(chat: Conversation) -> None:
    for at in range(4):
        grow(chat, 12, first=20 * at)
        chat.compact(model=MODEL, budget=20_000)
    path = list(chat.thread.path())
    passes = [entry.id for entry in path if entry.kind == "compaction"]
    assert len(passes) == 4
    text = "".join(markdown(chat, links_of(chat.record)))
    told = [int(id) for id in re.findall(r"#e(\d+)\)", text)]
    on_path = {entry.id for entry in path}
    assert list(dict.fromkeys(id for id in told if id in on_path)) == [entry.id for entry in path]
    marks = [int(id) for id in re.findall(r"^> \*\*compaction\*\* \(\[entry (\d+)\]", text, re.MULTILINE)]
    assert marks == passes
    headings = [(found.start(), int(found[1])) for found in re.finditer(r"^## Turn (\d+) · ", text, re.MULTILINE)]
    for event in passes:
        at = text.index(f"> **compaction** ([entry {event}]")
        turn = chat.entry(event).turn
        assert max(number for place, number in headings if place < at) == turn
        assert all(number > (turn or 0) for place, number in headings if place > at)


# Pins


def test_kinds_of_pins_are_kept_listed_and_closed(tmp_path: Path) -> None:
    kinds = (*PIN_KINDS, "hypothesis")
    with mf.Record.open(tmp_path / "work.mf") as record:
        chat = record.conversation("work")
        grow(chat, 2)
        for kind in kinds:
            for at in range(2):
                chat.pin(f"{kind} number {at}", kind=kind)
    with mf.Record.open(tmp_path / "work.mf") as record:
        chat = record.conversation("work")
        assert [pin.kind for pin in chat.pins()] == [kind for kind in kinds for _ in range(2)]
        for kind in kinds:
            pins = chat.pins(kind)
            assert [pin.text for pin in pins] == [f"{kind} number {at}" for at in range(2)]
            assert [record.entry(pin.entry).payload["kind"] for pin in pins] == [kind] * 2
        question, other = chat.pins("question")
        closed = chat.unpin(question)
        assert (closed.kind, closed.about, closed.parent) == ("unpin", question.entry, other.entry + 2)
        assert chat.pins("question") == [other]
        with pytest.raises(mf.NoSuchEntry):
            chat.unpin(question)
        sent = json.dumps(chat.context(model=MODEL).messages)
        assert "[question] question number 1" in sent and "question number 0" not in sent
        assert record.entry(question.entry).payload["text"] == "question number 0"


# Numbers and references


def test_a_number_of_a_turn_is_its_own_for_ever(chat: Conversation) -> None:
    said: dict[int, Any] = {}

    def check() -> None:
        for entry, _ in chat.state().messages:
            said.setdefault(entry.turn or 0, chat.recall(entry.turn or 0))
        for turn, told in said.items():
            assert chat.recall(turn) == told

    grow(chat, 8)
    chat.checkpoint("here")
    for at in range(5):
        grow(chat, 10, first=20 * at + 20)
        chat.compact(model=MODEL, budget=12_000)
        check()
        if at in (1, 3):
            chat.rewind("here", report=f"way {at}")
            check()
    assert len([entry for entry in chat.record.entries() if entry.kind == "compaction"]) >= 5
    highest = max(said)
    fork = chat.fork("other")
    mine = {entry.turn or 0 for entry, _ in fork.state().messages}
    assert mine == {entry.turn or 0 for entry, _ in chat.state().messages} < set(said)
    assert {turn: fork.recall(turn) for turn in mine} == {turn: said[turn] for turn in mine}
    grow(fork, 2, first=500)
    grow(chat, 1, first=600)
    assert min(e.turn or 0 for e, _ in fork.state().messages if (e.turn or 0) not in mine) == highest + 1
    assert chat.recall(highest + 1) == round_(600) and fork.recall(highest + 1) == round_(500)
    check()


def references(value: Any) -> Iterator[int]:
    if isinstance(value, Ref):
        yield value.entry
    elif isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from references(each)


def test_a_fork_of_a_life_refers_to_itself_alone(chat: Conversation) -> None:
    chat.append({"role": "user", "content": "Find the leak."})
    for at in range(20):
        fit = chat.context(model=MODEL, budget=12_000)
        entry = chat.append(round_(at), context=fit)[0]
        if at % 5 == 2:
            chat.pin(f"fact {at}")
            chat.checkpoint(f"at {at}")
            chat.claim(f"so {at}", rests_on=[("query", entry), ("document", 1)])
    chat.compact(model=MODEL, budget=9_000)
    fork = chat.fork("b").fork("c")
    note, *own = list(chat.record.entries(conversation="c"))
    assert note.kind == "fork" and {entry.conversation for entry in own} == {"c"}
    ids = {entry.id for entry in own}
    found = 0
    for entry in own:
        assert set(references(entry.payload)) <= ids
        assert entry.about is None or entry.about in ids
        found += len(list(references(entry.payload)))
    assert found > 20
    assert [pin.text for pin in fork.pins()] == [pin.text for pin in chat.pins()]
    assert all(pin.entry in ids for pin in fork.pins())
    assert {label.entry for label in fork.thread.labels().values()} <= ids and len(fork.thread.labels()) == 4
    for claim in fork.thread.claims():
        assert {link.entry for link in mf.audit(fork).evidence(claim).links} <= ids
    assert fork.context(model=MODEL, budget=9_000).digest == chat.context(model=MODEL, budget=9_000).digest
