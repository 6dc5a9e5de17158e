"""What a session holds beside the conversation that is read from it: branches, compactions, names, notes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ..messages import History, Message, Note, Opaque


class Place(NamedTuple):
    """Between two messages: so many of a branch stand before it. Branch 0 is the conversation."""

    branch: int
    messages: int


@dataclass(frozen=True, slots=True)
class Branch:
    """Messages off the conversation: where they part from it or an earlier branch, and where in the file they end."""

    name: str
    start: Place
    messages: tuple[Message, ...]
    where: str


@dataclass(frozen=True, slots=True)
class Compaction:
    """A compaction that the session itself made: of what stood before ``at``, its ``summary`` and the newest ``kept``
    messages stayed.

    ``before`` and ``after`` are tokens, where the file tells them.
    """

    at: Place
    where: str
    trigger: str = ""
    before: int | None = None
    after: int | None = None
    summary: str = ""
    kept: int = 0


@dataclass(frozen=True, slots=True)
class Name:
    """A title or tag that the session gave, and the place it names."""

    name: str
    kind: str
    at: Place
    where: str


@dataclass(slots=True)
class Beside:
    """All of it. Branches are numbered from 1, in an order in which each parts from one before it."""

    branches: list[Branch] = field(default_factory=list)
    compactions: list[Compaction] = field(default_factory=list)
    names: list[Name] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)


def of_wire(history: History, where: str) -> Beside:
    """The compactions that a provider left in a list: each stands before the message that holds its summary."""
    beside = Beside()
    for at, message in enumerate(history.messages):
        for part in message.parts:
            if isinstance(part, Opaque) and part.kind == "compaction":
                told = part.native.get("content") if isinstance(part.native, dict) else None
                summary = told if isinstance(told, str) else ""
                beside.compactions.append(
                    Compaction(Place(0, at), f"{where}, message {at + 1}", "provider", None, None, summary)
                )
    return beside
