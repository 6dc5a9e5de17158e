"""The tree of a conversation in stretches: what follows each other between two partings of the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from microfiche.conversation import Conversation
from microfiche.record import Entry

from .thread import marker


class Node(NamedTuple):
    """A path entry, as light as the tree needs it: what the user asked, the assistant answered, the event was."""

    id: int
    parent: int | None
    turn: int
    kind: str
    asked: str = ""
    answered: str = ""
    what: str = ""

    @classmethod
    def of(cls, entry: Entry) -> Node:
        said = entry.message.text if entry.message is not None and entry.message.text.strip() else ""
        role = entry.message.role if entry.message is not None else ""
        return cls(
            entry.id,
            entry.parent,
            entry.turn or 0,
            entry.kind,
            said if role == "user" else "",
            said if role == "assistant" else "",
            "" if entry.kind == "message" else marker(entry),
        )


@dataclass(slots=True)
class Stretch:
    """Entries that follow each other, and the stretches behind the last; ``current`` on the way to the tip."""

    nodes: list[Node]
    current: bool
    branches: list[Stretch] = field(default_factory=list)

    @property
    def asked(self) -> str:
        """What the user said first."""
        return next((node.asked for node in self.nodes if node.asked), "")

    @property
    def answered(self) -> str:
        """What the assistant said last."""
        return next((node.answered for node in reversed(self.nodes) if node.answered), "")

    @property
    def events(self) -> Iterator[Node]:
        return (node for node in self.nodes if node.what)


def stretches(chat: Conversation) -> list[Stretch]:
    """The roots of the tree, cut where branches part and at the tip."""
    tip = chat.tip
    children: dict[int | None, list[Node]] = {}
    parents: dict[int, int | None] = {}
    for entry in chat.record.entries(conversation=chat.name):
        if entry.on_path:
            children.setdefault(entry.parent, []).append(Node.of(entry))
            parents[entry.id] = entry.parent
    way: set[int] = set()
    at = tip
    while at is not None:
        way.add(at)
        at = parents[at]
    roots: list[Stretch] = []
    waiting = [(root, roots) for root in reversed(children.get(None, []))]
    while waiting:
        node, siblings = waiting.pop()
        stretch = Stretch([node], node.id in way)
        siblings.append(stretch)
        while len(after := children.get(node.id, [])) == 1 and node.id != tip:
            node = after[0]
            stretch.nodes.append(node)
        waiting += [(child, stretch.branches) for child in reversed(after)]
    return roots


def tree(chat: Conversation, forks: Sequence[Entry]) -> dict[str, Any]:
    """The tree as plain data, each stretch with the entry it follows; ``forks`` are all fork notes of the record."""
    own = next((fork for fork in forks if fork.conversation == chat.name), None)
    listed: list[dict[str, Any]] = []
    waiting = list(reversed(stretches(chat)))
    while waiting:
        stretch = waiting.pop()
        first, last = stretch.nodes[0], stretch.nodes[-1]
        listed.append(
            {
                "parent": first.parent,
                "entries": [first.id, last.id],
                "turns": [first.turn, last.turn],
                "current": stretch.current,
                "tip": last.id == chat.tip,
                "asked": stretch.asked,
                "answered": stretch.answered,
                "events": [{"entry": node.id, "kind": node.kind, "what": node.what} for node in stretch.events],
            }
        )
        waiting += reversed(stretch.branches)
    return {
        "conversation": chat.name,
        "tip": chat.tip,
        "turns": chat.thread.standing.turns,
        "forked_from": {"conversation": own.payload["from"], "entry": own.about} if own is not None else None,
        "stretches": listed,
        "checkpoints": {label.name: label.entry for label in chat.thread.labels().values()},
        "forks": [{"conversation": f.conversation, "entry": f.about} for f in forks if f.payload["from"] == chat.name],
    }
