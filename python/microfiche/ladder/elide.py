"""Rung 1: old uneventful tool results become placeholders.

A rule looks at the shape of a call (a path, a range, a command, content to write) and at what
came back, never at a tool's name: names belong to vendors, shapes to the field. Errors, failed
checks and diagnostics stay whatever their size.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from microfiche.errors import BadInput
from microfiche.messages import Opaque, Text, ToolCall, ToolResult, Turn
from microfiche.pages.script import Spot, clean_name

PLACEHOLDER_VERSION = 1

FILES = frozenset(
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
    ]
)
_TARGETS = FILES | {"uri", "url"}
COMMANDS = frozenset(["command", "cmd", "script", "code", "shell", "commands"])
CONTENTS = frozenset(
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
        "edits",
        "new_source",
    ]
)
_PATCHES = frozenset(["patch", "diff"])
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

# Searched in lower case, which takes a third of the time of IGNORECASE. Names such as TypeError hold
# the word without a boundary before it.
# The letters that any of them begins with are asked first: that is a fifth of the time.
_TROUBLE = re.compile(
    r"(?=[acdefikmnprstuw1-9✗✘✖❌])(?:"
    r"(?:error|exception|failure|warning)s?\b"
    r"|\b(?:err|traceback|fail(?:ed|s|ing)?|not ok|fatal|panic(?:ked)?|cannot|can't|could not|unable|denied|refused"
    r"|undefined|unresolved|unexpected|invalid|missing|not found|no such|segfault|dumped|killed|assert(?:ion)?"
    r"|abort(?:ed)?|timed out|timeout|conflicts?|[1-9]\d* problems?"
    r"|(?:exit|return)(?:ed|s)?(?: with)?(?: code| status)?:? [1-9]\d*)\b"
    r"|[✗✘✖❌])"
)

# What a checker or a test run prints, as against a file that merely speaks of errors: tools that are
# given a path do both, and only a file may be superseded.
_FINDINGS = re.compile(
    r"^(?:(?:\w+ )?error\b|traceback|fatal\b|fail(?:ed|ures?)?\b|panic|[✗✘✖❌])"
    r"|:\d+(?::\d+)?:? (?:fatal )?(?:error|warning)\b"
    r"|\b[1-9]\d* (?:failed|failing|failures?|errors?|warnings?|problems?)\b",
    re.MULTILINE,
)

# What stands in the output of a command that went wrong, though nothing flagged it: an error at the
# beginning of a line, as against a listing of code that speaks of errors.
_DIAGNOSTICS = re.compile(
    r"^[^\w\n]{0,3}[\w.]*(?:error|exception|warning|panic)s?\b *(?:[:(\[]|$)"
    r"|(?:exit|return)(?:ed|s)?(?: with)?(?: code| status)?:? [1-9]\d*\b"
    r"|\b(?:command not found|permission denied|no such file or directory|segmentation fault|core dumped|timed out"
    r"|connection refused|panicked at|err!|[1-9]\d* \w+ failed|not ok|conflict \()",
    re.MULTILINE,
)
# From so many characters on the output of a command is long. Measured in benches/elision.py.
_OUTPUT = 1_200

# A log repeats itself: over so many lines, few line shapes. Measured by line shape, so that a
# listing of code, which has many shapes, is not taken for one.
_LOG_LINES = 40
_LOG_SHAPES = 0.35
_LOG_TAIL_LINES = 8
_LOG_TAIL_CHARS = 800

_INFINITE = 1 << 60

_WHY = {
    "superseded": "turn {by} has a later result for the same call",
    "repeated": "turn {by} has the same text",
    "written": "a write that succeeded",
    "log": "a long log without trouble in it, its last lines below",
    "output": "long output without an error in it, its last lines below",
    "rule": "uneventful by the settings of this conversation",
    "flagged": "uneventful by the word of its tool",
    "empty": "nothing but blanks",
    "recalled": "turn {by} can be recalled again",
    "searched": "the search can be made again",
}
WHYS = tuple(_WHY)

_PLACEHOLDER = re.compile(
    r"\[[\d,]+ characters of this [A-Za-z0-9_.:-]{1,64} result left out: "
    rf"(?:{'|'.join(why.replace('{by}', '[0-9]+') for why in _WHY.values())}); "
    r"(?:recall of turn \d+ returns them|they are on record as turn \d+, no recall from here)\]"
    rf"(?:\n[\s\S]{{0,{_LOG_TAIL_CHARS}}})?"
)


@dataclass(frozen=True, slots=True)
class Elision:
    """Why a result is a placeholder.

    ``why``: ``superseded`` (turn ``by`` read the same again), ``repeated`` (turn ``by`` holds the
    same text), ``written`` (the plain success of a write), ``log`` and ``output`` (long, of a command;
    the last ``keep`` characters stay), ``rule`` (one that the policy gave says so), ``flagged`` (its tool says
    so), ``empty``; of our own
    tools ``recalled`` (what turn ``by`` says) and ``searched``.
    """

    why: str
    by: int = 0
    keep: int = 0

    def placeholder(self, result: ToolResult, turn: int, recall: bool) -> str:
        """The text that stands for the result: what it was, how long, why, and where it is to be had."""
        text = result.text
        tool = clean_name(result.name) if result.name else "tool"
        what = f"{len(text) - self.keep:,} characters of this {tool} result left out"
        why = _WHY[self.why].format(by=self.by)
        where = (
            f"recall of turn {turn} returns them"
            if recall
            else f"they are on record as turn {turn}, no recall from here"
        )
        line = f"[{what}: {why}; {where}]"
        return f"{line}\n{text[-self.keep :]}" if self.keep else line


# How the answers of our own tools begin (see microfiche.agent_tools); nobody else's tool of that name is meant.
_RECALLED = re.compile(r"\[turn (\d{1,18}), page \d+ of \d+\]\n")
_SEARCHED = re.compile(r"\[search, page \d+: ")


def is_placeholder(text: str) -> bool:
    """Whether a text is a placeholder of ours, and nothing else."""
    return _PLACEHOLDER.fullmatch(text) is not None


def elide(
    turns: Sequence[Turn],
    protected: int,
    frozen: Callable[[Spot], bool],
    floor: int,
    rules: Sequence[Rule] = (),
    protect: Sequence[str] = (),
) -> dict[Spot, Elision]:
    """The results of turns before ``protected`` (a turn number) that nobody will miss, by spot.

    All turns are looked at, since a later read may stand in the protected tail. ``frozen`` spots
    and results of fewer than ``floor`` characters are passed over, and so are those of tools whose name fits
    one of the patterns ``protect``. The first of the ``rules`` that has an opinion decides, else the tool's own
    word (:attr:`~microfiche.messages.ToolResult.uneventful`), before the rules here.
    Linear in the history's size.
    """
    found: dict[Spot, Elision] = {}
    later = _Later()
    for turn, spot, call, result in _backwards(turns):
        if result.error:
            continue
        text = result.text
        shape = _Shape.of(call)
        large = len(text) >= floor
        if turn.number < protected and large and not frozen(spot) and _plain(result):
            ruled = _opinion(rules, protect, call, result, turn.number)
            elision = later.judge(text, shape, call) if ruled is None else _RULED[ruled]
            if elision is not None and len(text) - elision.keep >= floor:
                found[spot] = elision
        later.add(text, shape, call, turn.number, large)
    return found


Rule = Callable[[ToolCall | None, ToolResult], bool | None]
"""What says of a call and its result whether nobody will miss it: yes, no, or no opinion (``None``)."""


_RULED = {"": None, "rule": Elision("rule"), "flagged": Elision("flagged")}


def _opinion(
    rules: Sequence[Rule], protect: Sequence[str], call: ToolCall | None, result: ToolResult, turn: int
) -> str | None:
    """What the policy, then the tool itself says of a result: why it may go, empty if it stays, ``None`` if nothing."""
    name = result.name or (call.name if call is not None else "")
    if any(fnmatchcase(name, pattern) for pattern in protect):
        return ""
    asked = (_ask(rule, at, call, result, name, turn) for at, rule in enumerate(rules))
    told = next((told for told in asked if told is not None), None)
    if told is not None:
        return "rule" if told else ""
    if result.uneventful is not None:
        return "flagged" if result.uneventful else ""
    return None


def _ask(rule: Rule, at: int, call: ToolCall | None, result: ToolResult, name: str, turn: int) -> bool | None:
    try:
        return rule(call, result)
    except Exception as error:
        rule_name = getattr(rule, "__qualname__", None) or type(rule).__qualname__
        raise BadInput(
            f"the rule {rule_name} raised {type(error).__name__}: {str(error)[:200]}",
            f"policy.rules[{at}], on the result of {name or 'an unknown tool'} in turn {turn}",
            "mend the rule (no opinion is None; the call may be None) or take it out; nothing was changed",
        ) from error


class _Later:
    """What the results behind the one at hand show."""

    def __init__(self) -> None:
        self.reads: dict[tuple[str, str], _Ranges] = {}
        self.runs: dict[tuple[str, str], int] = {}
        self.texts: dict[str, int] = {}

    def add(self, text: str, shape: _Shape, call: ToolCall | None, turn: int, large: bool) -> None:
        if shape.target is not None:
            self.reads.setdefault(shape.target, _Ranges()).add(*shape.shown(text), turn)
        # A short complaint that nobody flagged does not stand for what an earlier call gave.
        if call is not None and (large or not _TROUBLE.search(text.lower())):
            self.runs.setdefault((call.name, call.arguments), turn)
        if large:
            self.texts.setdefault(text, turn)

    def judge(self, text: str, shape: _Shape, call: ToolCall | None) -> Elision | None:
        """Why nobody will miss the result of a call, if so."""
        if not text.strip():
            return Elision("empty")
        if call is not None and call.name == "recall" and (of := _RECALLED.match(text)):
            return Elision("recalled", int(of[1]))
        if call is not None and call.name == "search" and _SEARCHED.match(text):
            return Elision("searched")
        if text in self.texts:
            return Elision("repeated", self.texts[text])
        if shape.target is not None and shape.target in self.reads:
            turn = self.reads[shape.target].covering(*shape.shown(text))
            if turn is not None and not _FINDINGS.search(text.lower()):
                return Elision("superseded", turn)
        run = self.runs.get((call.name, call.arguments)) if call is not None and not shape.writes else None
        if not (run or shape.writes or shape.command):
            return None
        lower = text.lower()
        if _TROUBLE.search(lower):
            # A word of trouble may stand in a listing. In the output of a command only its beginning of a line tells.
            calm = shape.command and not run and not _FINDINGS.search(lower) and not _DIAGNOSTICS.search(lower)
            return Elision("output", keep=_log_tail(text)) if calm and len(text) >= _OUTPUT else None
        if run:
            return Elision("superseded", run)
        if shape.writes:
            return Elision("written")
        if _is_log(text):
            return Elision("log", keep=_log_tail(text))
        return Elision("output", keep=_log_tail(text)) if len(text) >= _OUTPUT else None


class _Ranges:
    """Ranges of lines, each with a turn; none lies within another, so that starts and stops rise together."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.rest: list[tuple[int, int]] = []

    def add(self, start: int, stop: int, turn: int) -> None:
        if self.covering(start, stop) is not None:
            return
        first = last = bisect_left(self.starts, start)
        while last < len(self.rest) and self.rest[last][0] <= stop:
            last += 1
        self.starts[first:last] = [start]
        self.rest[first:last] = [(stop, turn)]

    def covering(self, start: int, stop: int) -> int | None:
        """The turn of a range that holds every line from ``start`` up to ``stop``."""
        at = bisect_right(self.starts, start) - 1
        return self.rest[at][1] if at >= 0 and self.rest[at][0] >= stop else None


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
        if keys & COMMANDS:
            return cls(command=True)
        if keys & _PATCHES or (keys & FILES and keys & CONTENTS):
            return cls(writes=True)
        if not any(key.lower() in _TARGETS and isinstance(value, str) for key, value in arguments.items()):
            return cls()
        rest = {key: value for key, value in arguments.items() if key.lower() not in _RANGES}
        try:
            lines = _lines({key.lower(): value for key, value in arguments.items()})
        except (TypeError, ValueError):
            return cls()
        return cls(target=(call.name, json.dumps(rest, sort_keys=True)), lines=lines)

    def shown(self, text: str) -> tuple[int, int]:
        """The first line and the one behind the last that a result shows: no more than asked for, nor than it has."""
        start, stop = self.lines
        return start, min(stop, start + text.count("\n") + (not text.endswith("\n")))


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


_DIGITS = re.compile(r"\d+")


def _is_log(text: str) -> bool:
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) < _LOG_LINES:
        return False
    # All lines at once: one call for each would be most of the time that eliding takes.
    plain = _DIGITS.sub("0", "\n".join(line[:60] for line in lines))
    shapes = {line[:12] for line in plain.split("\n")}
    return len(shapes) <= _LOG_SHAPES * len(lines)


def _log_tail(text: str) -> int:
    """How many characters at the end are its last few lines."""
    tail = "\n".join(text.split("\n")[-_LOG_TAIL_LINES:])
    return min(len(tail), _LOG_TAIL_CHARS)
