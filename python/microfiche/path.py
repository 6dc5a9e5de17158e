"""A path of the record as the ladder's source: its turns with their numbers, its plan, its pins.

Everything here is folded from entries and from nothing else, so that the context of any call can be
made again from the record alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from microfiche.formats import convert
from microfiche.ladder.difference import apply, plan_of, told
from microfiche.ladder.plan import Plan
from microfiche.messages import History, Message
from microfiche.pages.render import Page, Segment, cut
from microfiche.record import Entry

NOTHING = Plan()
_NOTHING = told(NOTHING)

IMPORT = "import"
"""Why a compaction stands on a path that the session made itself, before it was imported."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A text that stands word for word in every context: the entry that set it, its kind, the text."""

    entry: int
    kind: str
    text: str


class Sheet(NamedTuple):
    """What the record keeps of a page: all of its identity, and where on the pages its text stands.

    ``depth`` is bits of a pixel; ``turns`` the first and last on it; ``start`` and ``end`` as in
    :class:`~microfiche.pages.render.Page`.
    """

    number: int
    width: int
    height: int
    depth: int
    digest: str
    turns: tuple[int, int]
    start: tuple[int, int]
    end: tuple[int, int]

    @classmethod
    def of(cls, page: Page) -> Sheet:
        turns = (min(page.turns, default=0), max(page.turns, default=0))
        depth = 2 if page.ink == "grey" else 1
        return cls(page.number, page.width, page.height, depth, page.digest, turns, page.start, page.end)

    @staticmethod
    def patch(old: Sequence[Sheet], pages: Iterable[Page]) -> dict[str, Any]:
        """What :meth:`patched` needs to make the sheets of these pages of the ``old`` ones: those after the first new.

        A full page stays as it is, so that a pass names its own pages and no others.
        """
        new = [Sheet.of(page) for page in pages]
        keep = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
        return {"keep": keep, "then": [list(each) for each in new[keep:]]}

    @staticmethod
    def patched(old: Sequence[Sheet], patch: dict[str, Any]) -> tuple[Sheet, ...]:
        then = (
            Sheet(number, width, height, depth, digest, tuple(turns), tuple(start), tuple(end))
            for number, width, height, depth, digest, turns, start, end in patch["then"]
        )
        return (*old[: patch["keep"]], *then)

    def page(self, turns: Iterable[int], document: Sequence[Segment]) -> Page:
        """A page that stands for this one where its pixels are not needed: its file is its digest.

        ``turns`` are the numbers that turns have, ``document`` is what was drawn.
        """
        first, last = self.turns
        return Page(
            png=f"page {self.number} {self.digest}".encode("ascii"),
            width=self.width,
            height=self.height,
            number=self.number,
            cell=(0, 0),
            ink="grey" if self.depth == 2 else "mono",
            segments=cut(document, self.start, self.end),
            start=self.start,
            end=self.end,
            turns=tuple(turn for turn in turns if first <= turn <= last),
            escapes={},
            cells=0,
            known_digest=self.digest,
        )


@dataclass(slots=True)
class PathState:
    """What a path amounts to at its end.

    ``messages`` are all that were said, each with its turn and the wire its native objects are of.
    ``plan`` is the plan in force, ``planned`` the wire that its places of parts hold for, ``sheets`` its
    pages in their order; ``spared`` the turns of undone passes, as ranges; ``trims`` those that a resume left
    out for good, by the entry that says so, until the pass before it is undone; ``events`` the entries that changed
    the plan, oldest first. ``imported`` are compactions that a session brought along: they say what its own model saw,
    and change no plan.
    """

    messages: list[tuple[Entry, Message]] = field(default_factory=list)
    planned: str = ""
    sheets: tuple[Sheet, ...] = ()
    spared: list[tuple[int, int]] = field(default_factory=list)
    trims: dict[int, tuple[int, int]] = field(default_factory=dict)
    pins: dict[int, Pin] = field(default_factory=dict)
    events: list[Entry] = field(default_factory=list)
    imported: list[Entry] = field(default_factory=list)
    # Plans as data: of all that a path went through, only those that are asked for are read.
    _told: Any = field(default_factory=lambda: _NOTHING)
    _plan: Plan | None = NOTHING
    _before: dict[int, tuple[Any, str, tuple[Sheet, ...]]] = field(default_factory=dict)

    @property
    def plan(self) -> Plan:
        if self._plan is None:
            self._plan = plan_of(self._told)
        return self._plan

    def add(self, entry: Entry) -> None:
        """Take one more entry of the path into account."""
        if entry.message is not None:
            self.messages.append((entry, entry.message))
        match entry.kind:
            case "compaction" if entry.payload["why"] == IMPORT:
                self.imported.append(entry)
            case "compaction":
                self._before[entry.id] = (self._told, self.planned, self.sheets)
                self._told, self._plan = apply(self._told, entry.payload["plan"]), None
                self.planned = entry.payload["wire"]
                self.sheets = Sheet.patched(self.sheets, entry.payload["pages"])
                self.events.append(entry)
            case "undo":
                undone = next(each for each in self.events if each.id == entry.about)
                (self._told, self.planned, self.sheets), self._plan = self._before[undone.id], None
                self.trims = {id: span for id, span in self.trims.items() if id < undone.id}
                first, last = undone.payload["span"]
                self.spared.append((first, last))
                self.events.append(entry)
            case "trim":
                # The pass before it left the stretch out; from here on every plan does.
                self.trims[entry.id] = (entry.payload["first"], entry.payload["last"])
                self.events.append(entry)
            case "pin":
                self.pins[entry.id] = Pin(entry.id, entry.payload["kind"], entry.payload["text"])
            case "unpin":
                self.pins.pop(entry.about or 0, None)
            case _:
                pass

    @property
    def compactions(self) -> list[Entry]:
        """Passes in force: those that no undo took back."""
        undone = {each.about for each in self.events if each.kind == "undo"}
        return [each for each in self.events if each.kind == "compaction" and each.id not in undone]

    def wire(self) -> str:
        """The wire of the newest message that has one; empty if none has."""
        return next((w for entry, _ in reversed(self.messages) if (w := entry.payload.get("wire", ""))), "")

    def history(self, wire: str, pending: Iterable[Message] = ()) -> History:
        """The path as a history of one wire; native objects of another are left out of its messages.

        ``pending`` messages, of that wire, follow as turns that are not written yet.
        """
        lost: Any = _Tally()
        messages: list[Message] = []
        numbers: list[int] = []
        for entry, message in self.messages:
            told = message
            if entry.payload.get("wire", "") != wire:
                carried = convert.carried(message, lost)
                # A turn keeps its place and number even where nothing of it can be carried.
                told = carried if carried is not None else Message(message.role, ())
            if told.role in ("user", "assistant"):
                numbers.append(entry.turn or 0)
            messages.append(told)
        highest = max(numbers, default=0)
        for message in pending:
            if message.role in ("user", "assistant"):
                highest += 1
                numbers.append(highest)
            messages.append(message)
        pins = tuple(f"[{pin.kind}] {pin.text}" for pin in self.pins.values())
        return History(messages, wire, wire=wire, numbers=tuple(numbers), pins=pins)


class _Tally(dict[str, int]):
    def __missing__(self, key: str) -> int:
        return 0


def fold(entries: Iterable[Entry]) -> PathState:
    """The state at the end of a path."""
    state = PathState()
    for entry in entries:
        state.add(entry)
    return state
