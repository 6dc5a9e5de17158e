"""A writer that dies at any instant leaves whole turns, and the next append works."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from microfiche.messages import ToolCall
from microfiche.record import Record
from record_lives import Clock, calls, fresh, results, said, says, tool_turn, user

WRITER = """
import sys
from microfiche.messages import Message, Text, ToolCall, ToolResult
from microfiche.record import Record
with Record.open(sys.argv[1]) as record:
    t = record.thread("t")
    print("open", flush=True)
    at = t.standing.turns
    while True:
        call = ToolCall(f"c{at}", "bash", "{}")
        t.append([Message("user", (Text(f"do {at} " + "x" * (at % 7 * 700)),))])
        t.started(call)
        answer = Message("tool", (ToolResult(call.id, (Text(f"out {at} " * (at % 5 * 100)),)),))
        t.append([Message("assistant", (call,)), answer, Message("assistant", (Text("ok"),))])
        if at % 10 == 0:
            t.label(f"l{at}")
        at += 3
"""


def check_whole(path: Path) -> None:
    """Sound, no call open, no turn in part; and it goes on."""
    with Record.open(path) as record:
        verdict = record.verify(derived=True)
        assert verdict, verdict
        t = record.thread("t")
        entries = list(t.path())
        assert not entries or entries[-1].open == 0
        groups = [entry.turn for entry in entries]
        for at, entry in enumerate(entries):
            if entry.message is not None and entry.message.calls:
                assert groups[at + 1] == groups[at] and entries[at + 1].message is not None
        # What ran when the process died has left its trace.
        answered = {result.call_id for entry in entries if entry.message for result in entry.message.results}
        started = {entry.payload["call"]: entry.id for entry in t.sides("started")}
        interrupted = {entry.about for entry in t.sides("interruption")}
        assert {id for call, id in started.items() if call not in answered} == interrupted
        assert t.running() == []
        before = said(t)
        t.append([user("on"), *tool_turn("again"), says("fine")])
        assert said(t)[: len(before)] == before
        assert record.verify(derived=True)


@pytest.mark.parametrize("kills", [30, pytest.param(300, marks=pytest.mark.full)])
def test_a_writer_killed_at_random_instants(tmp_path: Path, kills: int) -> None:
    source = random.Random(kills)
    path = tmp_path / "work.mf"
    grown = 0
    for kill in range(kills):
        if kill % 10 == 9:  # begin anew, so that creation is hit too
            for each in tmp_path.glob("work.mf*"):
                each.unlink()
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        if kill % 10 == 9:
            time.sleep(source.uniform(0.08, 0.2))  # about when Python has started and the file is made
        else:
            writer.stdout.readline()
            time.sleep(source.uniform(0, 0.05))
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        if kill % 3 == 0 or kills < 100:
            check_whole(path)
        with Record.open(path) as record:
            grown = max(grown, record.head.size)
    assert grown > 30


def copies(folder: Path, into: Path, log: bytes, heads: bytes) -> Path:
    """The files as a crash leaves them: the database, so much of its log, so much of the list; no shared memory."""
    for each in into.iterdir():
        each.unlink()
    shutil.copy(folder / "work.mf", into / "work.mf")
    (into / "work.mf-wal").write_bytes(log)
    (into / "work.mf.heads").write_bytes(heads)
    return into / "work.mf"


@pytest.mark.parametrize("torn", ["cut", "zeros", "noise"])
def test_copies_taken_at_every_512_bytes_of_a_commit(tmp_path: Path, torn: str) -> None:
    (tmp_path / "live").mkdir()
    (tmp_path / "copy").mkdir()
    folder = tmp_path / "live"
    source = random.Random(torn)
    with fresh(folder) as record:
        t = record.thread("t")
        t.append([user("one"), says("two")])
        first = said(t)
        old_log = (folder / "work.mf-wal").read_bytes()
        old_heads = (folder / "work.mf.heads").read_bytes()
        t.append([user("three " * 700), calls("a", "b"), results("a", "b", text="x" * 900), says("four")])
        second = said(t)
        log = (folder / "work.mf-wal").read_bytes()
        heads = (folder / "work.mf.heads").read_bytes()
        assert log.startswith(old_log) and len(log) > len(old_log) + 8 * 512
        seen = set()
        for cut in [*range(len(old_log), len(log), 512), len(log)]:
            rest = {"cut": b"", "zeros": bytes(len(log) - cut), "noise": source.randbytes(len(log) - cut)}[torn]
            # The line of a commit follows it, so a log that is not whole has the list of before.
            for line in (old_heads, heads) if cut == len(log) else (old_heads,):
                path = copies(folder, tmp_path / "copy", log[:cut] + rest, line)
                with Record.open(path, clock=Clock(2_000_000_000_000_000)) as copy:
                    c = copy.thread("t")
                    assert said(c) in (first, second)
                    seen.add(len(said(c)))
                    assert copy.verify(derived=True)
                    c.append(tool_turn("next"))
                    assert copy.verify(derived=True) and len(said(c)) in (4, 8)
        assert seen == {2, 6}


def test_a_list_torn_inside_a_line(tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    with fresh(tmp_path) as record:
        t = record.thread("t")
        t.append([user("one")])
        t.started(ToolCall("a", "bash", "{}"))
        log = (tmp_path / "work.mf-wal").read_bytes()
        heads = (tmp_path / "work.mf.heads").read_bytes()
        for cut in range(0, len(heads), 7):
            path = copies(tmp_path, tmp_path / "copy", log, heads[:cut])
            check_whole(path)
            assert (tmp_path / "copy" / "work.mf.heads").read_bytes().startswith(heads)
