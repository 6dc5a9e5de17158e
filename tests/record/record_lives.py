"""Messages and random lives of conversations for the tests of the record."""

from __future__ import annotations

import random
from pathlib import Path

from microfiche.messages import Image, Message, Text, ToolCall, ToolResult
from microfiche.record import Draft, Record, Ref, Thread


class Clock:
    """Microseconds that pass one by one."""

    def __init__(self, now: int = 1_700_000_000_000_000) -> None:
        self.now = now

    def __call__(self) -> int:
        self.now += 1
        return self.now


def fresh(folder: Path, name: str = "work.mf") -> Record:
    return Record.open(folder / name, clock=Clock())


def user(text: str) -> Message:
    return Message("user", (Text(text, native={"type": "text", "text": text}),), native={"role": "user"})


def says(text: str) -> Message:
    return Message("assistant", (Text(text),))


def calls(*ids: str, name: str = "read_file") -> Message:
    return Message("assistant", (Text("let me see"), *(ToolCall(id, name, '{"path": "a.py"}') for id in ids)))


def results(*ids: str, text: str = "def main(): ...") -> Message:
    return Message("tool", tuple(ToolResult(id, (Text(text),), name="read_file") for id in ids))


def shot(id: str, data: bytes) -> Message:
    return Message("tool", (ToolResult(id, (Text("screen"), Image(data, owner="tool")), name="screenshot"),))


def tool_turn(id: str, text: str = "def main(): ...") -> list[Message]:
    return [calls(id), results(id, text=text)]


def said(thread: Thread, tip: int | None = None) -> list[Message]:
    """The messages of a path."""
    return [e.message for e in thread.path(thread.tip if tip is None else tip) if e.message is not None]


def live(record: Record, source: random.Random, steps: int, name: str = "life") -> list[Thread]:
    """Let conversations live: appends, moves, labels, events, forks, claims, calls that fail. Gives all of them."""
    threads = [record.thread(name)]
    for step in range(steps):
        thread = source.choice(threads)
        ids = [f"c{step}", f"d{step}"]
        match source.randrange(12):
            case 0 | 1 | 2:
                thread.append([user(f"do {step} " + "x" * source.choice((3, 40, 3000)))])
            case 3 | 4 | 5:
                for id in ids[: source.randrange(3)]:
                    thread.started(ToolCall(id, "read_file", "{}"))
                thread.append(
                    [calls(*ids), results(*ids, text=f"result {step} " * source.choice((1, 200))), says("ok")]
                )
            case 6:
                data = source.randbytes(source.choice((40, 2000)))
                thread.append([calls(ids[0]), shot(ids[0], data)], meta={"context": f"{step:064x}"})
            case 7 if ends := boundaries(thread):
                thread.move(source.choice([None, *ends]))
            case 8 if ends := boundaries(thread):
                thread.label(source.choice("abc"), source.choice(ends))
            case 9 if thread.tip is not None:
                pinned = thread.append_event("pin", {"text": f"fact {step}", "from": Ref(thread.tip)})
                if source.random() < 0.5:
                    thread.append_event("unpin", about=pinned.id)
            case 10 if (tip := thread.tip) is not None:
                first = next(iter(thread.path())).id
                atlas = source.choice((b"atlas one", b"atlas two"))
                thread.append_event("compaction", {"span": [Ref(first), Ref(tip)], "atlas": atlas})
                thread.commit([Draft("claim", {"text": "c", "rests_on": [("query", Ref(tip))]}, about=tip)])
            case 11 if len(threads) < 4:
                threads.append(thread.fork(f"{name}-{record.head.size}"))
    return threads


def boundaries(thread: Thread) -> list[int]:
    """Every turn boundary of the tree."""
    name = thread.name
    return [e.id for e in thread.record.entries(conversation=name) if e.on_path and e.open == 0]
