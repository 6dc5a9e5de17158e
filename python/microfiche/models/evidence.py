"""What readings say about how small a model reads, and which cell follows from them.

A reading is a count of right answers at one cell, with who took it, when and on what. A grade asks for:

* ``exact``: at least 95 % of at least 40 ordinary lines without a fault, or of a published battery of that size that
  asks for whole lines of code or text;
* ``working``: at least 80 % of at least 20 ordinary lines;
* ``gist``: at least 90 % of at least 40 questions on content, or at least 80 % of at least 12 random identifiers.
  Identifiers alone give no more: they stand out on a page, an ordinary line among hundreds like it does not.

A grade holds at its cell and at larger ones, and includes the grades below it. For each fidelity the smallest cell with
that grade is taken, never one under 5×10: below, our own font is told apart by machine only. Without any, 9×16.
A larger cell that was read worse than the grade asks, in as large a number, speaks against a smaller one; but for mono
ink, which is read worse than grey, only against mono.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from microfiche.errors import BadInput

if TYPE_CHECKING:
    from pathlib import Path

Fidelity = Literal["exact", "working", "gist"]
FIDELITIES: tuple[Fidelity, ...] = ("exact", "working", "gist")
Ink = Literal["grey", "mono"]

KINDS = {
    "lines": "ordinary lines without a fault",
    "battery": "lines of a published battery",
    "identifiers": "random identifiers",
    "gist": "questions on content",
    "never": "questions on what was never said, answered so",
    "F1": "F1 on tool output",
}
"""What was counted."""

EXACT, EXACT_LEAST = 0.95, 40
WORKING, WORKING_LEAST = 0.80, 20
GIST, GIST_LEAST = 0.90, 40
IDENTIFIERS, IDENTIFIERS_LEAST = 0.80, 12
SMALLEST = (5, 10)


@dataclass(frozen=True, slots=True)
class Cell:
    """The pixels of one character, ``width`` × ``height``, and why a model is given them.

    ``grade`` is ``measured`` where ``evidence`` is a reading by this very model, ``default``
    otherwise; ``date`` is the month of the reading.
    """

    width: int
    height: int
    ink: Ink = "grey"
    evidence: str = ""
    date: str = ""
    grade: Literal["measured", "default"] = "default"

    def __str__(self) -> str:
        return f"{self.width}x{self.height}"


@dataclass(frozen=True, slots=True)
class Reading:
    """``right`` of ``n`` of a ``kind`` (see :data:`KINDS`) at a cell.

    ``cell`` is ``None`` where the source only says that it is far smaller than 9×16; ``score`` stands where it gives
    no counts.

    ``by`` says who took it, ``date`` the month, ``on`` the text, the glyphs and the page.
    """

    kind: str
    cell: tuple[int, int] | None
    right: int | None
    n: int | None
    by: str
    date: str
    on: str
    ink: Ink = "grey"
    score: float | None = None

    @property
    def rate(self) -> float:
        if self.right is None or not self.n:
            return self.score or 0.0
        return self.right / self.n

    @property
    def grades(self) -> frozenset[Fidelity]:
        """The fidelities that it is evidence for."""
        n = self.n or 0
        if self.kind in ("lines", "battery") and self.rate >= EXACT and n >= EXACT_LEAST:
            return frozenset(FIDELITIES)
        if self.kind in ("lines", "battery") and self.rate >= WORKING and n >= WORKING_LEAST:
            return frozenset(("working", "gist"))
        if self.kind == "gist" and self.rate >= GIST and n >= GIST_LEAST:
            return frozenset(("gist",))
        if self.kind == "identifiers" and self.rate >= IDENTIFIERS and n >= IDENTIFIERS_LEAST:
            return frozenset(("gist",))
        return frozenset()

    def __str__(self) -> str:
        cell = f"{self.cell[0]}x{self.cell[1]} {self.ink}" if self.cell is not None else "cells far smaller than 9x16"
        what = KINDS[self.kind]
        count = f"{self.right}/{self.n} {what}" if self.n else f"{what} {self.score:g}"
        return f"{count} at {cell}, {self.on}; {self.by}, {self.date}"


def reading_of(data: Mapping[str, Any], where: str) -> Reading:
    """A reading of plain data; :class:`BadInput` says what is wrong with it."""
    try:
        made = Reading(**{**data, "cell": tuple(data["cell"]) if data["cell"] is not None else None})
        cell = made.cell
        sound = made.kind in KINDS and made.ink in ("grey", "mono") and all((made.by, made.date, made.on))
        sound = sound and (cell is None or (len(cell) == 2 and all(type(side) is int and side > 0 for side in cell)))
        counted = type(made.right) is int and type(made.n) is int and 0 <= made.right <= made.n and made.n > 0
        scored = made.right is None and made.n is None and isinstance(made.score, int | float) and 0 <= made.score <= 1
        if not sound or not (counted or scored):
            raise ValueError("a value is out of range")
    except (TypeError, ValueError, KeyError) as error:
        raise BadInput(f"no reading ({error})", where, "remove it, or take it anew with `microfiche probe`") from None
    return made


def cells_of(readings: Sequence[Reading], default: Cell) -> dict[Fidelity, Cell]:
    """The cell for each fidelity, with what speaks for it."""
    return {fidelity: _cell(fidelity, readings, default) for fidelity in FIDELITIES}


def _cell(fidelity: Fidelity, readings: Sequence[Reading], default: Cell) -> Cell:
    for reading in candidates(fidelity, readings):
        width, height = _used(reading)
        if width * height <= default.width * default.height and not against(fidelity, reading, readings):
            return Cell(width, height, reading.ink, str(reading), reading.date, "measured")
    return default


def candidates(fidelity: Fidelity, readings: Iterable[Reading]) -> list[Reading]:
    """The readings that are evidence for a fidelity, the smallest cell first, of one the most answers."""
    found = [reading for reading in readings if fidelity in reading.grades]
    return sorted(found, key=lambda each: (_area(_used(each)), -(each.n or 0)))


def against(fidelity: Fidelity, reading: Reading, readings: Iterable[Reading]) -> Reading | None:
    """A reading of the same kind and at least the number, at a cell as large or larger, that misses the grade.

    What was misread in mono may be read in grey.
    """
    for other in readings:
        same = other.kind == reading.kind and (other.n or 0) >= (reading.n or 0) and other is not reading
        same = same and other.ink in ("grey", reading.ink)
        if same and _area(_used(other)) >= _area(_used(reading)) and fidelity not in other.grades:
            return other
    return None


def _used(reading: Reading) -> tuple[int, int]:
    width, height = reading.cell or SMALLEST
    return (width, height) if width >= SMALLEST[0] and height >= SMALLEST[1] else SMALLEST


def _area(cell: tuple[int, int]) -> int:
    return cell[0] * cell[1]


def reasoning(readings: Sequence[Reading], cells: Mapping[Fidelity, Cell]) -> Iterator[tuple[Fidelity, str]]:
    """Why each fidelity has its cell, a line each."""
    asks = {
        "exact": f"{EXACT:.0%} of {EXACT_LEAST} ordinary lines",
        "working": f"{WORKING:.0%} of {WORKING_LEAST} ordinary lines",
        "gist": f"{GIST:.0%} of {GIST_LEAST} questions or {IDENTIFIERS:.0%} of {IDENTIFIERS_LEAST} identifiers",
    }
    for fidelity in FIDELITIES:
        cell = cells[fidelity]
        found = candidates(fidelity, readings)
        if cell.grade == "measured":
            yield fidelity, f"{cell}, since it asks for {asks[fidelity]} and there are {cell.evidence}"
        elif found:
            other = against(fidelity, found[0], readings)
            yield fidelity, f"{cell}, the default: {found[0]} would do, but {other or 'its cell is larger'}"
        else:
            best = f"; of {len(readings)} readings none is that" if readings else "; there is no reading of this model"
            yield fidelity, f"{cell}, the default, since it asks for {asks[fidelity]}{best}"


# Readings of the user


def user_file() -> Path:
    """Where a user's own readings are kept: ``MICROFICHE_READINGS``, else the user's data directory (XDG)."""
    from pathlib import Path  # slow to import

    named = os.environ.get("MICROFICHE_READINGS")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "microfiche" / "readings.json"


def user_readings() -> Mapping[str, tuple[Reading, ...]]:
    """The user's own readings by the bare name of the model; :class:`BadInput` for a faulty file."""
    path = user_file()
    try:
        told = path.stat()
    except OSError:
        return {}
    return _read(path, told.st_mtime_ns, told.st_size)


@lru_cache(maxsize=4)
def _read(path: Path, changed: int, size: int) -> Mapping[str, tuple[Reading, ...]]:
    where = str(path)
    try:
        data = json.loads(path.read_bytes())
        if data["version"] != 1:
            raise ValueError(f"version {data['version']!r}")
        models = dict(data["models"]).items()
        return {name: tuple(reading_of(each, f"{where}, {name}") for each in told) for name, told in models}
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise BadInput(f"no file of readings ({error})", where, "move it away, or mend it") from None


def add_readings(model: str, readings: Iterable[Reading]) -> Path:
    """Keep readings of a model (its bare name) for the catalogue, in place of those of the same kind, cell and ink."""
    path = user_file()
    fresh = list(readings)
    told = {name: list(known) for name, known in user_readings().items()}
    replaced = {(each.kind, each.cell, each.ink) for each in fresh}
    kept = [each for each in told.get(model, ()) if (each.kind, each.cell, each.ink) not in replaced]
    told[model] = [*kept, *fresh]
    data = {"version": 1, "models": {name: [asdict(each) for each in known] for name, known in sorted(told.items())}}
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    draft.write_text(json.dumps(data, indent=1) + "\n", "utf-8")
    draft.replace(path)
    return path
