"""Rung 1: old uneventful tool results become placeholders.

A rule looks at the shape of a call (a path, a range, a command, content to write) and at what
came back, never at a tool's name: names belong to vendors, shapes to the field. Errors, failed
checks and diagnostics stay whatever their size.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from microfiche.messages import Opaque, Text, ToolCall, ToolResult, Turn
from microfiche.pages.script import Spot

PLACEHOLDER_VERSION = 1

_PATHS = frozenset(
    [
        "path",
        "file",
        "file_path",
        "filepath",
        "filename",
        "file_name",
        "notebook_path",
        "absolute_path",
        "target_file",
        "uri",
        "url",
    ]
)
_COMMANDS = frozenset(["command", "cmd", "script", "code", "shell", "commands"])
_CONTENTS = frozenset(
    [
        "content",
        "contents",
        "file_text",
        "new_string",
        "new_str",
        "new_text",
        "old_string",
        "old_str",
        "insert_text",
        "replacement",
        "patch",
        "diff",
        "edits",
        "new_source",
        "text",
        "body",
    ]
)
_RANGES = frozenset(
    [
        "offset",
        "limit",
        "start_line",
        "end_line",
        "line_start",
        "line_end",
        "view_range",
        "start",
        "end",
        "from_line",
        "to_line",
    ]
)

_TROUBLE = re.compile(
    r"\b(?:errors?|exceptions?|traceback|fail(?:ed|ures?|s|ing)?|fatal|panic(?:ked)?|warnings?|cannot|denied"
    r"|undefined|not found|no such|segfault|assert(?:ion)?|abort(?:ed)?|timed out|conflict)\b",
    re.IGNORECASE,
)

# A log repeats itself: over so many lines, few line shapes. Measured by line shape, so that a
# listing of code, which has many shapes, is not taken for one.
_LOG_LINES = 40
_LOG_SHAPES = 0.35
_LOG_TAIL_LINES = 8
_LOG_TAIL_CHARS = 800

_INFINITE = 1 << 60


@dataclass(frozen=True, slots=True)
class Elision:
    """Why a result is a placeholder.

    ``why``: ``superseded`` (turn ``by`` read the same again), ``repeated`` (turn ``by`` holds the
    same text), ``written`` (the plain success of a write), ``log`` (its last ``keep`` characters
    stay), ``empty``.
    """

    why: str
    by: int = 0
    keep: int = 0

    def placeholder(self, result: ToolResult, turn: int, recall: bool) -> str:
        """The text that stands for the result: what it was, how long, why, and where it is to be had."""
        text = result.text
        what = f"{len(text) - self.keep:,} characters of this {result.name or 'tool'} result left out"
        why = {
            "superseded": f"turn {self.by} has a later result for the same call",
            "repeated": f"turn {self.by} has the same text",
            "written": "a write that succeeded",
            "log": "a long log without trouble in it, its last lines follow",
            "empty": "nothing but blanks",
        }[self.why]
        where = (
            f"recall of turn {turn} returns them"
            if recall
            else f"they are on record as turn {turn}, no recall from here"
        )
        line = f"[{what}: {why}; {where}]"
        return f"{line}\n{text[-self.keep :]}" if self.keep else line


PLACEHOLDER = re.compile(
    r"\A\[[\d,]+ characters of this .{1,200}? result left out: [^\n]{1,120}; "
    r"(?:recall of turn \d+ returns them|they are on record as turn \d+, no recall from here)\]"
)
"""What a placeholder of ours begins with, to recognise one in an input."""


def elide(
    turns: Sequence[Turn],
    protected: int,
    frozen: Callable[[Spot], bool],
    floor: int,
) -> dict[Spot, Elision]:
    """The results of turns before ``protected`` (a turn number) that nobody will miss, by spot.

    All turns are looked at, since a later read may stand in the protected tail. ``frozen`` spots
    and results of fewer than ``floor`` characters are passed over. Linear in the history's size.
    """
    found: dict[Spot, Elision] = {}
    reads: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
    runs: dict[tuple[str, str], int] = {}
    texts: dict[str, int] = {}
    for turn, spot, call, result in _backwards(turns):
        text = result.text
        shape = _Shape.of(call)
        candidate = (
            turn.number < protected and not result.error and len(text) >= floor and not frozen(spot) and _plain(result)
        )
        if candidate:
            elision = _judge(text, shape, call, reads, runs, texts)
            if elision is not None:
                found[spot] = elision
        if result.error:
            continue
        if shape.target is not None:
            start, stop = shape.lines
            seen = stop if stop < _INFINITE else start + text.count("\n")
            reads.setdefault(shape.target, []).append((start, seen, turn.number))
        if call is not None:
            runs.setdefault((call.name, call.arguments), turn.number)
        if len(text) >= floor:
            texts.setdefault(text, turn.number)
    return found


def _judge(
    text: str,
    shape: _Shape,
    call: ToolCall | None,
    reads: dict[tuple[str, str], list[tuple[int, int, int]]],
    runs: dict[tuple[str, str], int],
    texts: dict[str, int],
) -> Elision | None:
    if not text.strip():
        return Elision("empty")
    if text in texts:
        return Elision("repeated", texts[text])
    if shape.target is not None:
        start, stop = shape.lines
        last = stop if stop < _INFINITE else start + text.count("\n")
        for later_start, later_stop, turn in reversed(reads.get(shape.target, ())):
            if later_start <= start and last <= later_stop:
                return Elision("superseded", turn)
    trouble = _TROUBLE.search(text) is not None
    if call is not None and not trouble and not shape.writes and (call.name, call.arguments) in runs:
        return Elision("superseded", runs[call.name, call.arguments])
    if trouble:
        return None
    if shape.writes:
        return Elision("written")
    if shape.command and _is_log(text):
        return Elision("log", keep=_log_tail(text))
    return None


def _backwards(turns: Sequence[Turn]) -> Iterator[tuple[Turn, Spot, ToolCall | None, ToolResult]]:
    """Results newest first, each with the call of its turn that it answers."""
    for turn in reversed(turns):
        calls = {call.id: call for message in turn.messages for call in message.calls}
        for m in range(len(turn.messages) - 1, -1, -1):
            parts = turn.messages[m].parts
            for p in range(len(parts) - 1, -1, -1):
                part = parts[p]
                if isinstance(part, ToolResult):
                    yield turn, (turn.number, m, p), calls.get(part.call_id), part


def _plain(result: ToolResult) -> bool:
    """Only text (and private copies): a result with an image or an unknown block is left whole."""
    return all(isinstance(p, Text) or (isinstance(p, Opaque) and p.private) for p in result.parts)


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a call's arguments say it does."""

    target: tuple[str, str] | None = None
    lines: tuple[int, int] = (1, _INFINITE)
    command: bool = False
    writes: bool = False

    @classmethod
    def of(cls, call: ToolCall | None) -> _Shape:
        if call is None:
            return cls()
        try:
            arguments = json.loads(call.arguments)
        except (ValueError, RecursionError):
            return cls()
        if not isinstance(arguments, dict):
            return cls()
        keys = {str(key).lower() for key in arguments}
        if keys & _COMMANDS:
            return cls(command=True)
        paths = [value for key, value in arguments.items() if key.lower() in _PATHS and isinstance(value, str)]
        if keys & _CONTENTS:
            return cls(writes=True)
        if not paths:
            return cls()
        rest = {key: value for key, value in arguments.items() if key.lower() not in _RANGES}
        try:
            lines = _lines({key.lower(): value for key, value in arguments.items()})
        except (TypeError, ValueError):
            return cls()
        return cls(target=(call.name, json.dumps(rest, sort_keys=True)), lines=lines)


def _lines(arguments: dict[str, Any]) -> tuple[int, int]:
    """The first line and the one behind the last that a call asks for, counted from 1."""

    def number(*names: str) -> int | None:
        for name in names:
            value = arguments.get(name)
            if value is not None:
                return int(value)
        return None

    view = arguments.get("view_range")
    if isinstance(view, list) and len(view) == 2:
        return int(view[0]), _INFINITE if int(view[1]) < 0 else int(view[1]) + 1
    start = number("offset", "start_line", "line_start", "start", "from_line")
    end = number("end_line", "line_end", "end", "to_line")
    limit = number("limit")
    first = 1 if start is None else start
    if end is not None:
        return first, end + 1
    return first, _INFINITE if limit is None else first + limit


def _is_log(text: str) -> bool:
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) < _LOG_LINES:
        return False
    shapes = {re.sub(r"\d+", "0", line[:60])[:12] for line in lines}
    return len(shapes) <= _LOG_SHAPES * len(lines)


def _log_tail(text: str) -> int:
    """How many characters at the end are its last few lines."""
    tail = "\n".join(text.split("\n")[-_LOG_TAIL_LINES:])
    return min(len(tail), _LOG_TAIL_CHARS)
