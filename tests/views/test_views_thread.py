"""The thread shows everything that happened, each event once and at its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import microfiche as mf
from hypothesis import given, settings
from hypothesis import strategies as st
from microfiche.conversation import Record
from microfiche.messages import ToolCall
from microfiche.record import PATH_KINDS, SIDE_KINDS
from microfiche.views.thread import data, events, markdown, marker
from microfiche.views.tree import stretches

MODEL = "claude-haiku-4-5"


def talk(at: int, size: int = 3_000) -> list[dict[str, Any]]:
    call = {"type": "tool_use", "id": f"t{at}", "name": "Bash", "input": {"command": f"run {at}"}}
    text = " ".join(f"w{at}x{each}" for each in range(size // 6))
    result = {"type": "tool_result", "tool_use_id": f"t{at}", "content": text}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


def lived(path: Path) -> None:
    """A record in which every kind of entry stands."""
    with Record.open(path) as record:
        chat = record.conversation("life")
        chat.append({"role": "user", "content": "Find the leak."})
        chat.append(talk(0))
        chat.checkpoint("early")
        for at in range(1, 40):
            chat.append(talk(at))
        chat.started(ToolCall("t99", "Bash", "{}"))
    with Record.open(path) as record:  # the call that was running is noted as interrupted
        chat = record.conversation("life")
        fit = chat.compact(model=MODEL, budget=40_000)
        chat.undo()
        chat.unpin(chat.pin("keep me"))
        chat.fail(ConnectionError("reset"), context=fit)
        chat.claim("It leaks.", rests_on=[("execution", 3)])
        chat.thread.side("import", chat.tip, {"note": "damaged line passed over", "where": "s:5"})
        chat.checkpoint("later")
        chat.append(talk(40))
        chat.rewind("later", report="Nothing there.")
        chat.resume(model=MODEL, budget=8_000, policy=mf.Policy(rungs=("omit",)))
        chat.fork("other")


def test_every_kind_of_entry_has_words_and_data(tmp_path: Path) -> None:
    lived(tmp_path / "work.mf")
    with Record.open(tmp_path / "work.mf", read_only=True) as record:
        kinds = set()
        for entry in record.entries():
            kinds.add(entry.kind)
            told = marker(entry)
            assert told and (told != entry.kind or entry.kind == "message")
            as_data = json.loads(json.dumps(data(entry)))
            assert as_data["entry"] == entry.id and as_data["leaf"] == entry.leaf.hex()
            assert ("message" in as_data) == (entry.message is not None)
        assert kinds == PATH_KINDS | SIDE_KINDS


def test_the_thread_has_each_event_once_behind_what_it_is_about(tmp_path: Path) -> None:
    lived(tmp_path / "work.mf")
    with Record.open(tmp_path / "work.mf", read_only=True) as record:
        chat = record.conversation("life")
        listed = list(events(chat))
        ids = [entry.id for entry in listed]
        assert len(set(ids)) == len(ids)
        path = [entry.id for entry in chat.thread.path()]
        assert [id for id in ids if id in set(path)] == path
        at = {entry.id: place for place, entry in enumerate(listed)}
        for entry in listed:
            if entry.kind in ("label", "failure", "claim", "import"):
                assert at[entry.id] > at[entry.about or 0]
        shown = {entry.kind for entry in listed}
        assert shown >= {"label", "label_loss", "failure", "claim", "import", "interruption", "compaction", "trim"}
        text = "".join(markdown(chat))
        for entry in listed:
            if entry.kind not in ("message", "report"):
                assert f"(entry {entry.id}, " in text
            else:
                assert f"## Turn {entry.turn} · " in text
        assert text.index("**compaction**") < text.index("**undo**") < text.index("**trim**")


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 10**6)), max_size=25))
def test_stretches_are_the_tree(tmp_path_factory: Any, steps: list[tuple[bool, int]]) -> None:
    with Record.open(tmp_path_factory.mktemp("tree") / "work.mf") as record:
        chat = record.conversation("a")
        written: list[int] = []
        for branch, choice in steps:
            if branch and written:
                chat.branch([None, *written][choice % (len(written) + 1)])
            else:
                written.append(chat.append({"role": "user", "content": f"said {len(written)}"})[0].id)
        found: list[int] = []
        waiting = [(root, None) for root in stretches(chat)]
        current = []
        while waiting:
            stretch, parent = waiting.pop()
            assert stretch.nodes[0].parent == parent
            for before, node in zip(stretch.nodes, stretch.nodes[1:], strict=False):
                assert node.parent == before.id != chat.tip
                assert chat.thread.children(before.id) == [node.id]
            last = stretch.nodes[-1].id
            assert len(stretch.branches) != 1 or last == chat.tip
            assert [each.nodes[0].id for each in stretch.branches] == chat.thread.children(last)
            found += [node.id for node in stretch.nodes]
            current += [node.id for node in stretch.nodes if stretch.current]
            waiting += [(each, last) for each in stretch.branches]
        assert sorted(found) == written
        assert sorted(current) == [entry.id for entry in chat.thread.path()]
