"""How fast the record is, and how it grows. Run: pytest benches/test_record.py -s -o addopts="" """

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from microfiche.messages import Message, Text, ToolCall, ToolResult
from microfiche.record import Record, Thread

WORDS = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text().split()


def prose(source: random.Random, words: int) -> str:
    return " ".join(source.choices(WORDS, k=words))


def stretch(source: random.Random, at: int) -> list[Message]:
    """Ten messages: a question and three rounds of a tool; results of about 1,500 characters, with their natives."""
    out = [Message("user", (Text(prose(source, 20)),), native={"role": "user"})]
    for round in range(3):
        id = f"toolu_{at}_{round}"
        text = prose(source, 220)
        native = {"type": "tool_result", "tool_use_id": id, "content": text}
        out += [
            Message("assistant", (Text(prose(source, 12)), ToolCall(id, "read_file", '{"path": "src/main.py"}'))),
            Message("tool", (ToolResult(id, (Text(text),), name="read_file", native=native),)),
            Message("assistant", (Text(prose(source, 30)),)),
        ]
    return out


def clocked(task: Callable[[], object]) -> float:
    began = time.perf_counter()
    task()
    return time.perf_counter() - began


def report(what: str, figure: str) -> None:
    print(f"\n  {what:<52} {figure}", end="")


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A record of 100,000 entries on one path."""
    source = random.Random(1)
    path = tmp_path_factory.mktemp("large") / "work.mf"
    with Record.open(path) as record:
        t = record.thread("t")
        for hundred in range(100):
            t.append([m for at in range(100) for m in stretch(source, hundred * 100 + at)])
    report("file of 100,000 entries", f"{path.stat().st_size / 1e6:.0f} MB")
    yield path


def test_append(tmp_path: Path) -> None:
    source = random.Random(2)
    with Record.open(tmp_path / "work.mf") as record:
        t = record.thread("t")
        stretches = [stretch(source, at) for at in range(400)]
        times = sorted(clocked(lambda each=each: t.append(each)) for each in stretches)
        report(
            "append of 10 messages, fsync included, p50 / p99", f"{times[200] * 1e3:.1f} / {times[396] * 1e3:.1f} ms"
        )
        more = [stretch(source, at) for at in range(400, 600)]
        began = time.process_time()
        for each in more:
            t.append(each)
        report("append of 10 messages, processor time", f"{(time.process_time() - began) / 200 * 1e3:.1f} ms")
        chars = sum(len(m.text) + sum(len(r.text) for r in m.results) for each in [*stretches, *more] for m in each)
    report("file per character of text, natives included", f"{(tmp_path / 'work.mf').stat().st_size / chars:.2f} bytes")
    plain = Path(tmp_path / "plain")
    with plain.open("wb", buffering=0) as file:

        def write() -> None:
            file.write(b"x" * 20_000)
            os.fsync(file.fileno())

        times = sorted(clocked(write) for _ in range(200))
        report(
            "for comparison: write and fsync of 20 kB, p50 / p99", f"{times[100] * 1e3:.1f} / {times[198] * 1e3:.1f} ms"
        )


def test_open_verify_path_search_fork(large: Path) -> None:
    records: list[Record] = []
    report("open of 100,000 entries", f"{clocked(lambda: records.append(Record.open(large))) * 1e3:.1f} ms")
    with records[0] as record:
        t: Thread = record.thread("t")
        ends = [e.id for e in record.entries(9_990, 10_010) if e.on_path and not e.open]
        tip = min(ends, key=lambda id: abs(id - 10_000))
        report("path of 10,000 messages", f"{clocked(lambda: sum(1 for _ in t.path(tip))) * 1e3:.0f} ms")
        report("first entry of a path of 100,000", f"{clocked(lambda: next(t.path())) * 1e3:.0f} ms")
        report("turn by its number", f"{clocked(lambda: t.turn(50_000)) * 1e3:.2f} ms")
        began = time.process_time()
        took = clocked(lambda: record.verify().sound or pytest.fail("unsound"))
        busy = time.process_time() - began
        report(
            "verify, by the clock / by processor time",
            f"{record.head.size / took:,.0f} / {record.head.size / busy:,.0f} entries/s",
        )
        assert record.head.size / busy > 30_000
        began = time.process_time()
        took = clocked(lambda: record.verify(derived=True).sound or pytest.fail("unsound"))
        busy = time.process_time() - began
        report(
            "verify with the search, clock / processor time",
            f"{record.head.size / took:,.0f} / {record.head.size / busy:,.0f} entries/s",
        )
        report("newest 20 of the thread", f"{clocked(lambda: list(t.path(last=20))) * 1e3:.0f} ms")
        report("search, two words, 20 of many", f"{clocked(lambda: t.search('the record')) * 1e3:.1f} ms")
        report("search, a rare phrase", f"{clocked(lambda: t.search('laid out in one walk over')) * 1e3:.1f} ms")
        proof = record.proof(77_777)
        report("inclusion proof", f"{clocked(lambda: record.proof(5)) * 1e3:.2f} ms, {32 * len(proof.path)} bytes")
        tip = min(
            (e.id for e in record.entries(990, 1_010) if e.on_path and not e.open), key=lambda id: abs(id - 1_000)
        )
        before = record.head.size
        report("fork of 1,000 messages", f"{clocked(lambda: t.fork('f', tip)) * 1e3:.0f} ms")
        assert record.head.size == before + 1 + tip


def test_growth(tmp_path: Path) -> None:
    source = random.Random(3)
    with Record.open(tmp_path / "work.mf") as record:
        t = record.thread("t")
        t.append([m for at in range(1000) for m in stretch(source, at)])

        def size() -> int:
            record._writing().execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return record.path.stat().st_size

        before = size()
        report("growth of the file by a message", f"{before / 10_000:.0f} bytes")
        for at in range(50):
            t.append_event("compaction", {"why": "threshold", "ranges": [[at, at + 20]] * 4, "pages": ["ab" * 32] * 2})
        report("growth of the file by a pass over 10,000 entries", f"{(size() - before) / 50:.0f} bytes")
