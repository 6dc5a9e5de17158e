"""A path walked entry by entry, and the tree that paths are of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from microfiche import fit
from microfiche.conversation import Conversation
from microfiche.formats import convert
from microfiche.ladder.projection import Projection
from microfiche.ladder.summary import block
from microfiche.ladder.treatments import Form, documents, treatments
from microfiche.messages import History, Image, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from microfiche.pages.atlas import remember
from microfiche.pages.render import Page
from microfiche.pages.script import Spot
from microfiche.path import IMPORT, PathState
from microfiche.record import Entry, Ref

from .answers import Key, Reduced

PASSES = frozenset({"compaction", "undo", "trim"})
"""Kinds of entries that change in which form parts stand."""


Stands = dict[Key, tuple[Form, int]]
"""The parts that do not stand word for word: their form, and the entry since which they have it."""


class Walk:
    """A path walked entry by entry, with the event since which each part stands as it does.

    ``known`` keeps what an event left, for walks of other paths that come by it.
    """

    def __init__(self, known: dict[int, Stands] | None = None) -> None:
        self.state = PathState()
        self.stands: Stands = {}
        self._known: dict[int, Stands] = {} if known is None else known

    def add(self, entry: Entry) -> None:
        # The glyphs of old pages, whatever fonts there are now.
        for data in entry.payload.get("atlases", ()) if entry.kind == "compaction" else ():
            remember(data)
        self.state.add(entry)
        if entry.kind not in ("compaction", "undo") or imported(entry):
            return
        if entry.id not in self._known:
            self._known[entry.id] = {
                key: (form, self._since(key, form, entry.id)) for key, form in self._forms().items()
            }
        self.stands = self._known[entry.id]

    def _since(self, key: Key, form: Form, now: int) -> int:
        old = self.stands.get(key)
        return old[1] if old is not None and old[0].name == form.name else now

    def _forms(self) -> dict[Key, Form]:
        state = self.state
        if not state.plan:
            return {}
        history = state.history(state.planned)
        found = treatments(fit.source_of(history, state.planned)[0], state.plan, stand_ins(history, state))
        keys = {place: key for place, key, _ in _places(state, state.planned)}
        return {keys[place]: form for place, form in found.items()}

    def reduced(self) -> Iterator[Reduced]:
        for key, turn, part in self.parts():
            if key in self.stands:
                form, event = self.stands[key]
                yield reduced_part(turn, key, part, form, event)

    def compacted(self) -> Iterator[Reduced]:
        """What the session's own compactions took from its model, each part by the first that did."""
        for key, turn, part in self.parts():
            passes = (each for each in self.state.imported if covers(each, turn) and key.entry < each.id)
            event = next(passes, None)
            if event is not None and key.inner < 0:
                yield reduced_part(turn, key, part, Form("elsewhere"), event.id)

    def told_by(self, event: Entry, text: str) -> tuple[bool, bool]:
        """As :meth:`holds`, of what the session's model saw behind a compaction of its own."""
        wanted = _plain(text)
        summarised = wanted in _plain(event.payload["summary"])
        kept = (spoken(message) for entry, message in self.state.messages if not covers(event, entry.turn or 0))
        return summarised or wanted in _plain("\n".join(kept)), summarised

    def parts(self) -> Iterator[tuple[Key, int, Part]]:
        """Every part of the path, those in results behind their result, with its turn."""
        for entry, message in self.state.messages:
            for at, part in enumerate(message.parts):
                yield Key(entry.id, at), entry.turn or 0, part
                if isinstance(part, ToolResult):
                    for inner, each in enumerate(part.parts):
                        yield Key(entry.id, at, inner), entry.turn or 0, each

    def forms_of(self, turn: int) -> tuple[dict[str, int], tuple[int, ...]]:
        """How many parts of a turn have each form, and the pages on which they stand."""
        forms: Counter[str] = Counter()
        pages: set[int] = set()
        for key, number, _ in self.parts():
            if number == turn and (key.inner < 0 or key in self.stands):
                form = self.stands[key][0] if key in self.stands else Form("verbatim")
                forms[form.name] += 1
                pages.update(form.pages)
        return dict(sorted(forms.items())), tuple(sorted(pages))

    def holds(self, text: str) -> tuple[bool, bool]:
        """Whether a text can be read in the context, and whether a summary has it."""
        state = self.state
        wire = state.planned or state.wire()
        history = state.history(wire)
        made = fit.stood_for(history, state.plan, stand_ins(history, state))
        wanted = _plain(text)
        summary = _plain(block(state.plan.summaries, state.plan.recall)) if state.plan.summaries else ""
        return wanted in _plain("\n".join(_readable(made))), wanted in summary


def imported(entry: Entry) -> bool:
    """Whether it is a compaction that the session made itself, before it was imported."""
    return entry.kind == "compaction" and entry.payload["why"] == IMPORT


def covers(event: Entry, turn: int) -> bool:
    """Whether a turn is in the span of a compaction."""
    first, last = event.payload["span"]
    return bool(first <= turn <= last)


def _readable(made: Projection) -> Iterator[str]:
    """Every text that a context shows, as text or on a page."""
    for message in made.messages:
        yield spoken(message)
    for page in made.shown:
        yield page.text
    for pages in made.results.values():
        for page in pages:
            yield page.text


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def stand_ins(history: History, state: PathState) -> list[Page]:
    """Pages as the record keeps them, in the place of drawn ones."""
    if not state.sheets:
        return []
    source, _ = fit.source_of(history, history.wire)
    numbers = [turn.number for turn in source.turns]
    drawn_of = documents(source, state.plan, len(state.sheets))
    return [sheet.page(numbers, document) for sheet, document in zip(state.sheets, drawn_of, strict=True)]


def _places(state: PathState, wire: str) -> Iterator[tuple[Spot, Key, Part]]:
    """Where the parts of a path stand in its history of a wire: their place there, and in the record."""
    turn, at = 0, 0
    for entry, message in state.messages:
        if message.role in ("user", "assistant"):
            turn, at = entry.turn or 0, 0
        elif turn:
            at += 1
        else:
            continue
        native = entry.payload.get("wire", "") == wire
        for p, (part, original) in enumerate(_kept(message.parts, native)):
            yield (turn, at, p), Key(entry.id, part), original
            if isinstance(original, ToolResult):
                for i, (inner, each) in enumerate(_kept(original.parts, native)):
                    yield (turn, at, p, i), Key(entry.id, part, inner), each


def _kept(parts: Sequence[Part], native: bool) -> Iterator[tuple[int, Part]]:
    return ((at, part) for at, part in enumerate(parts) if native or carried(part))


def carried(part: Part) -> bool:
    """Whether every wire carries a part."""
    return convert.carried(Message("user", (part,)), Counter()) is not None


def left_behind(state: PathState, wire: str, call: int) -> Iterator[Reduced]:
    """Parts that the wire of a call does not carry: the call itself is the event."""
    for entry, message in state.messages:
        if entry.payload.get("wire", "") == wire:
            continue
        for at, part in enumerate(message.parts):
            if not carried(part):
                yield reduced_part(entry.turn or 0, Key(entry.id, at), part, Form("other_wire"), call)


def reduced_part(turn: int, key: Key, part: Part, form: Form, event: int) -> Reduced:
    size = len(spoken(Message("user", (part,))))
    return Reduced(turn, key, kind_of(part), form.name, event, form.pages, form.why, size)


def kind_of(part: Part) -> str:
    match part:
        case Text():
            return "text"
        case Image():
            return "image"
        case ToolCall():
            return "call"
        case ToolResult():
            return "result"
        case Reasoning():
            return "reasoning"
        case Opaque():
            return "opaque"


def spoken(message: Message) -> str:
    """The words of a message: texts, calls with their arguments, results."""
    out = []
    for part in message.parts:
        match part:
            case Text():
                out.append(part.text)
            case ToolCall():
                out.append(f"{part.name} {part.arguments}")
            case ToolResult():
                out.append(part.text)
            case _:
                pass
    return "\n".join(out)


class Tree:
    """The path entries of a conversation by their parents, and the moves over them."""

    def __init__(self, chat: Conversation) -> None:
        self.parents: dict[int, int | None] = {}
        self.moves: list[tuple[int, int | None, int | None]] = []
        self.size = 0
        for entry in chat.record.entries(conversation=chat.name):
            self.size = entry.id
            if entry.on_path:
                self.parents[entry.id] = entry.parent
            elif entry.kind == "move":
                self.moves.append((entry.id, number_of(entry.payload.get("from")), entry.about))

    def leaves(self) -> list[int]:
        """The path entries that nothing follows, oldest first."""
        return sorted(self.parents.keys() - set(self.parents.values()))

    def path(self, tip: int | None) -> set[int]:
        found: set[int] = set()
        while tip is not None:
            found.add(tip)
            tip = self.parents[tip]
        return found

    def left(self, before: int) -> dict[int, int]:
        """The entries that stood on no current path when entry ``before`` was written, each with the move that left it.

        An entry that a later move came back to is named too: the caller knows its path.
        """
        out: dict[int, int] = {}
        for id, start, end in self.moves:
            if id < before:
                out.update(dict.fromkeys(self.path(start) - self.path(end), id))
        return out


def number_of(reference: Any) -> int | None:
    return reference.entry if isinstance(reference, Ref) and isinstance(reference.entry, int) else None


def why(entry: Entry) -> str:
    told = entry.payload
    match entry.kind:
        case "compaction":
            return str(told["why"])
        case "undo":
            return f"of {entry.about}"
        case "move" | "report":
            return f"to {told['label']}" if "label" in told else f"to entry {entry.about}"
    return ""
