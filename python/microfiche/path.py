"""A path of the record as the ladder's source: its turns with their numbers, its plan, its pins.

Everything here is folded from entries and from nothing else, so that the context of any call can be
made again from the record alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from microfiche.formats import convert
from microfiche.ladder.difference import apply
from microfiche.ladder.plan import Plan
from microfiche.messages import History, Message
from microfiche.record import Entry

NOTHING = Plan()


@dataclass(frozen=True, slots=True)
class Pin:
    """A text that stands word for word in every context: the entry that set it, its kind, the text."""

    entry: int
    kind: str
    text: str


@dataclass(slots=True)
class PathState:
    """What a path amounts to at its end.

    ``messages`` are all that were said, each with its turn and the wire its native objects are of.
    ``plan`` is the plan in force; ``spared`` the turns of undone passes, as ranges; ``events`` the
    entries that changed the plan, oldest first.
    """

    messages: list[tuple[Entry, Message]] = field(default_factory=list)
    plan: Plan = NOTHING
    spared: list[tuple[int, int]] = field(default_factory=list)
    pins: dict[int, Pin] = field(default_factory=dict)
    events: list[Entry] = field(default_factory=list)
    _plans: dict[int, Plan] = field(default_factory=dict)

    def add(self, entry: Entry) -> None:
        """Take one more entry of the path into account."""
        if entry.message is not None:
            self.messages.append((entry, entry.message))
        match entry.kind:
            case "compaction":
                self._plans[entry.id] = self.plan
                self.plan = apply(self.plan, entry.payload["plan"])
                self.events.append(entry)
            case "undo":
                undone = next(each for each in self.events if each.id == entry.about)
                self.plan = self._plans.get(undone.id, NOTHING)
                first, last = undone.payload["span"]
                self.spared.append((first, last))
                self.events.append(entry)
            case "trim":
                trimmed = (entry.payload["first"], entry.payload["last"])
                self.plan = replace(self.plan, archive=None, summaries=(), omitted=(trimmed,))
                self.events.append(entry)
            case "pin":
                self.pins[entry.id] = Pin(entry.id, entry.payload["kind"], entry.payload["text"])
            case "unpin":
                self.pins.pop(entry.about or 0, None)
            case _:
                pass

    def plan_before(self, event: int) -> Plan:
        """The plan that stood before a compaction of this path."""
        return self._plans[event]

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
