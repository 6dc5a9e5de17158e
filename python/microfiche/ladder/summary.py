"""A summary as data, and the text by which it stands in a context.

Tokens are estimated here as UTF-8 bytes over 2, the densest family of :mod:`microfiche.models.tokens`,
since the summariser may be any model.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

VERSION = 1
"""Of the prompt and of the wording of the block."""

Kind = Literal["decision", "open question", "failure", "fact", "artifact"]

HEADINGS: dict[Kind, str] = {
    "decision": "Decisions",
    "open question": "Open questions",
    "failure": "Failures",
    "fact": "Facts",
    "artifact": "Artifacts, from the record",
}
KINDS: tuple[Kind, ...] = tuple(HEADINGS)
"""In the order in which they stand in a block; too long an answer loses its last lines in this order."""

Span = tuple[int, int]
"""The first and last turn of a pointer, by number."""

LINE = 400
"""Characters of a line; what is longer is cut, with the count."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a summary: what holds, on one line of text, and the turns it rests on."""

    kind: Kind
    text: str
    turns: tuple[Span, ...]

    def __str__(self) -> str:
        word = "turn" if len(self.turns) == 1 and self.turns[0][0] == self.turns[0][1] else "turns"
        where = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in self.turns)
        return f"- {self.text} ({word} {where})"


@dataclass(frozen=True, slots=True)
class Summary:
    """What stands for turns ``first`` to ``last``. ``cut`` counts the lines left out for length."""

    first: int
    last: int
    lines: tuple[Line, ...]
    cut: int = 0

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the summary as JSON in ASCII."""
        data = [VERSION, self.first, self.last, [[each.kind, each.text, each.turns] for each in self.lines], self.cut]
        return hashlib.sha256(json.dumps(data, separators=(",", ":")).encode("ascii")).hexdigest()


POINTERS = 8
"""Pointers that a line shows."""


def tokens(text: str) -> int:
    """Estimated tokens of a text for the densest model: UTF-8 bytes over 2, rounded up."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // 2)


def block(summaries: Iterable[Summary], recall: bool) -> str:
    """The text that stands for the summarised turns; :func:`is_block` knows it."""
    where = _RECALL if recall else _NO_RECALL
    return "\n".join(chain.from_iterable(_block(each, where) for each in summaries))


_RECALL = "the tool named recall returns the exact text of a turn by its number."
_NO_RECALL = "the exact text of a turn is kept on record under its number, no recall is offered here."


def _block(summary: Summary, where: str) -> Iterator[str]:
    first, last = summary.first, summary.last
    turns = f"turn {first}" if first == last else f"turns {first}-{last}"
    yield f"Summary of {turns}, by a model from their text; a line names the turns it comes from, {where}"
    for kind, heading in HEADINGS.items():
        lines = [each for each in summary.lines if each.kind == kind]
        if lines:
            yield heading
            yield from map(str, lines)
    if summary.cut:
        yield f"[{summary.cut:,} more {'line' if summary.cut == 1 else 'lines'} left out for length]"


_OPENING = re.compile(
    r"Summary of turns? \d+(?:-\d+)?, by a model from their text; a line names the turns it comes from, "
    rf"(?:{re.escape(_RECALL)}|{re.escape(_NO_RECALL)})"
)
_POINTER = re.compile(r"\d+(?:-\d+)?(?:, \d+(?:-\d+)?)*\)")
_CUT = re.compile(r"\[[\d,]+ more lines? left out for length\]")


def is_block(text: str) -> bool:
    """Whether a text is the block of summaries of ours, and nothing else."""
    if not text.startswith("Summary of turn"):
        return False
    opening, *rest = text.split("\n")
    return _OPENING.fullmatch(opening) is not None and all(map(_of_block, rest))


def _of_block(line: str) -> bool:
    if line.startswith("- "):
        before, _, pointer = line.rpartition(" (turn")
        return bool(before) and _POINTER.fullmatch(pointer.removeprefix("s").removeprefix(" ")) is not None
    return line in HEADINGS.values() or _OPENING.fullmatch(line) is not None or _CUT.fullmatch(line) is not None


def clip(text: str, length: int) -> str:
    """The text, or its beginning and end around a count of the characters left out."""
    if len(text) <= length:
        return text
    tail = length // 3
    left_out = len(text) - length
    return f"{text[: length - tail]}[... {left_out:,} characters left out ...]{text[len(text) - tail :]}"


def one_line(text: str, length: int) -> str:
    """A text on one line, without control characters, cut at ``length`` characters with the count."""
    flat = " ".join(_CONTROLS.sub(" ", text.encode("utf-8", "backslashreplace").decode()).split())
    return clip(flat, length)


_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def json_of(text: str) -> Any:
    """The JSON object or list that a text is; ``None`` if it is none."""
    if text[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
