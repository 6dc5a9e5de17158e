"""What the model saw, what it no longer saw, when and why: told from the record alone.

Nothing here is remembered: every answer is folded from entries, so it is the same on the day of the call
and a year later, after no compaction and after fifty.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from microfiche import fit, formats
from microfiche.conversation import Conversation
from microfiche.errors import BadInput, NoSuchEntry, PlanMismatch
from microfiche.formats import convert
from microfiche.ladder.projection import Projection
from microfiche.ladder.summarize import block
from microfiche.ladder.treatments import Form, documents, treatments
from microfiche.messages import History, Image, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult, digest
from microfiche.pages.guide import spans
from microfiche.pages.render import Page
from microfiche.pages.script import Spot
from microfiche.path import PathState, Sheet
from microfiche.record import Entry, Head, Ref

FORMS = {
    "placeholder": "a tool result of which a line stands, that says what it was",
    "marker": "an image of which a line stands",
    "shortened": "a large result of which beginning and end stand, its middle on pages or left out",
    "page": "drawn on pages",
    "not_drawn": "reasoning, or data that no page shows; the turn stands on pages without it",
    "summary": "in a summary that names its turn",
    "omitted": "left out, and named as such",
    "other_wire": "left out because another provider's wire does not carry it",
    "branch": "on a branch that was left",
}
"""The forms in which a part can stand in a context, other than word for word."""


class Key(NamedTuple):
    """A part of the record: its entry, its place in the message, and in a result (-1: the part itself)."""

    entry: int
    part: int
    inner: int = -1


@dataclass(frozen=True, slots=True)
class Reduced:
    """A part that a context holds in another form than its own, or not at all.

    ``kind`` is ``text``, ``image``, ``call``, ``result``, ``reasoning`` or ``opaque``; ``form`` one of
    :data:`FORMS`; ``event`` the entry since which it stands so. ``pages`` are the numbers of pages where it
    can be read, ``characters`` the length of its text.
    """

    turn: int
    key: Key
    kind: str
    form: str
    event: int
    pages: tuple[int, ...] = ()
    why: str = ""
    characters: int = 0


@dataclass(frozen=True, slots=True)
class Removed:
    """A part that an event reduced, with the original."""

    reduced: Reduced
    original: Part


@dataclass(frozen=True, slots=True)
class Seen:
    """The context of a call, made again.

    ``recorded`` is the digest that was kept with the call, ``digest`` that of what was made again:
    ``proven`` tells that they are equal. ``redrawn`` tells that the pages came out as they were to the
    pixel; where this version draws other glyphs, the pages' identities stand on record, and in ``messages``
    (native, of ``wire``) a line stands for each. ``sheets`` are all pages of the plan as the record keeps them,
    ``pages`` their files if redrawn; the numbers of those shown are ``shown``. ``system`` and ``tools`` are native.
    """

    entry: int
    at: int | None
    model: str
    wire: str
    recorded: str
    digest: str
    redrawn: bool
    system: Any
    tools: list[Any] | None
    messages: list[Any] = field(repr=False)
    sheets: tuple[Sheet, ...] = field(repr=False)
    shown: tuple[int, ...] = ()
    pages: tuple[bytes, ...] = field(repr=False, default=())

    @property
    def proven(self) -> bool:
        return self.digest == self.recorded


@dataclass(frozen=True, slots=True)
class Step:
    """What an entry did to a turn: the forms of its parts from then on, and how many have each.

    ``readable`` tells whether the text that was asked for can still be read anywhere in the context
    (``None`` if a turn was asked for), ``summarised`` whether a summary has it.
    """

    entry: int
    kind: str
    why: str
    time: int
    forms: dict[str, int]
    pages: tuple[int, ...] = ()
    readable: bool | None = None
    summarised: bool | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """A turn's way through all passes, oldest step first; the first is its entry."""

    turn: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """One thing that a claim rests on: an entry of the record, with the turn it belongs to and its words.

    ``of`` is the claim, ``branch`` tells that the entry is not on the current path.
    """

    of: int
    kind: str
    entry: int
    turn: int | None
    what: str
    text: str
    branch: bool


@dataclass(frozen=True, slots=True)
class Evidence:
    """A claim and every link below it; a claim that another rests on is followed, once."""

    claim: int
    text: str
    links: tuple[Link, ...]


def audit(chat: Conversation) -> Audit:
    """The audit of a conversation: see :class:`Audit`."""
    return Audit(chat)


class Audit:
    """What an agent knew: the context of each call, what was missing from it, and which event did that."""

    def __init__(self, chat: Conversation) -> None:
        self.chat = chat

    # One call

    def context_at(self, entry: int | Entry) -> Seen:
        """The context that a call was made under, made again and held against the digest recorded with it.

        ``entry`` is an assistant message that was appended with its context, a failure, or a compaction
        (whose context is what the model saw from then on).

        :class:`~microfiche.errors.BadInput` if no context was recorded with it.
        """
        call = self._call(entry)
        state = self._state(call.at).state
        history = call.history(state)
        made = redrawn = None
        try:
            made = fit.again(history, state.plan, call.model)
            redrawn = made.digest == call.recorded
        except PlanMismatch:
            redrawn = False
        if not redrawn:
            # The glyphs are others now: what identifies the pages stands on record.
            made = fit.again(history, state.plan, call.model, _stand_ins(history, state))
        assert made is not None
        return Seen(
            entry=call.entry,
            at=call.at,
            model=call.model,
            wire=call.wire,
            recorded=call.recorded,
            digest=made.digest,
            redrawn=redrawn,
            system=call.system,
            tools=call.tools,
            messages=made.messages,
            sheets=state.sheets,
            shown=tuple(page.number for page in made.projection.visible),
            pages=tuple(page.png for page in made.projection.drawn) if redrawn else (),
        )

    def not_considered(self, entry: int | Entry) -> tuple[Reduced, ...]:
        """Every part of what was said before a call that was absent from its context or reduced, oldest turn first.

        With what stood on branches that had been left. ``entry`` is any message or event of a path: where
        no context was recorded with it, the plan in force before it counts.
        """
        found = self._entry(entry)
        if "asked" in found.payload:
            call = self._call(found)
            walk, wire = self._state(call.at), call.wire
        else:
            walk = self._state(found.parent if found.on_path else found.about)
            wire = walk.state.planned or walk.state.wire()
        out = [*walk.reduced(), *_left_behind(walk.state, wire, found.id)]
        out += self._elsewhere(found.id, {each.id for each, _ in walk.state.messages})
        return tuple(sorted(out, key=lambda each: (each.turn, each.key)))

    # One event

    def removed(self, event: int | Entry) -> tuple[Removed, ...]:
        """What a pass took out of the context or reduced, with the originals."""
        found = self._entry(event)
        if found.kind not in _PASSES:
            raise BadInput(f"entry {found.id} is a {found.kind}", "removed", "name a compaction, undo or trim")
        walk = self._state(found.id)
        parts = {key: part for key, _, part in walk.parts()}
        return tuple(Removed(each, parts[each.key]) for each in walk.reduced() if each.event == found.id)

    # One turn

    def trace(self, turn: int | None = None, text: str | None = None) -> tuple[Trace, ...]:
        """When a turn came, and each event that changed the form in which it stood; of a text, every turn that has it.

        :class:`~microfiche.errors.NoSuchEntry` for a turn that is not there; nothing for a text that is nowhere.
        """
        if (turn is None) == (text is None):
            raise BadInput("neither or both of a turn and a text", "trace", "name one of them")
        if turn is not None:
            return (self._trace(turn, None),)
        assert text is not None
        turns = sorted({hit.turn for hit in self.chat.search(text, limit=10_000)})
        return tuple(self._trace(each, text) for each in turns)

    def _trace(self, turn: int, text: str | None) -> Trace:
        entries = self.chat.thread.turn_entries(turn)
        tip, gone = self._way(entries[-1].id)
        walk = _Walk()
        steps: list[Step] = []
        last: tuple[dict[str, int], tuple[int, ...]] | None = None
        for entry in self.chat.thread.path(tip):
            walk.add(entry)
            if entry.id == entries[-1].id:
                whole = {"verbatim": sum(len(each.message.parts) for each in entries if each.message is not None)}
                steps.append(Step(entries[0].id, entries[0].kind, "", entries[0].time, whole, readable=_true(text)))
                last = (whole, ())
            if entry.kind not in _PASSES or last is None:
                continue
            now = walk.forms_of(turn)
            readable, summarised = walk.holds(text) if text is not None else (None, None)
            if now != last or readable != steps[-1].readable:
                why = _why(entry)
                steps.append(Step(entry.id, entry.kind, why, entry.time, now[0], now[1], readable, summarised))
                last = now
        if gone is not None:
            left = self.chat.record.entry(gone)
            readable = None if text is None else False
            steps.append(Step(left.id, left.kind, _why(left), left.time, {"branch": 1}, (), readable))
        return Trace(turn, tuple(steps))

    def _way(self, entry: int) -> tuple[int | None, int | None]:
        """A tip whose path holds the entry, and the move that left it if that is not the current one."""
        tree = _Tree(self.chat)
        tip = self.chat.tip
        if entry in tree.path(tip):
            return tip, None
        left = tree.left(tree.size + 1)
        if entry in left:
            return _number(self.chat.record.entry(left[entry]).payload.get("from")), left[entry]
        return entry, None

    # Claims

    def evidence(self, claim: int | Entry) -> Evidence:
        """What a claim rests on: the queries, documents, executions and checks, each from the record itself.

        :class:`~microfiche.errors.BadInput` if the entry is no claim.
        """
        first = self._entry(claim)
        if first.kind != "claim":
            raise BadInput(f"entry {first.id} is a {first.kind}, no claim", "evidence", "name a claim")
        path = _Tree(self.chat).path(self.chat.tip)
        links: list[Link] = []
        waiting, seen = [first], {first.id}
        while waiting:
            each = waiting.pop(0)
            for told in each.payload["rests_on"]:
                on = self.chat.record.entry(told["entry"].entry)
                words = on.payload.get("text", "") if on.message is None else spoken(on.message)
                links.append(Link(each.id, told["kind"], on.id, on.turn, on.kind, words, on.id not in path))
                if on.kind == "claim" and on.id not in seen:
                    seen.add(on.id)
                    waiting.append(on)
        return Evidence(first.id, first.payload["text"], tuple(links))

    # All of it

    def report(self, at: int | Entry | None = None) -> Report:
        """Both truths: the whole history as it was said, and the sequence of events that decided what the model saw.

        With ``at``, also what that call saw and did not.
        """
        record, tree = self.chat.record, _Tree(self.chat)
        path = tree.path(self.chat.tip)
        verdict = record.verify()
        turns: dict[tuple[int, bool], list[Entry]] = {}
        events = []
        for entry in record.entries(conversation=self.chat.name):
            if entry.message is not None:
                turns.setdefault((entry.turn or 0, entry.id in path), []).append(entry)
            if entry.kind not in ("message", "started"):
                events.append(_event(entry))
        seen = None
        missing: tuple[Reduced, ...] = ()
        if at is not None:
            found = self._entry(at)
            seen = self.context_at(found) if "asked" in found.payload else None
            missing = self.not_considered(found)
        history = tuple(_turn_line(number, here, entries) for (number, here), entries in sorted(turns.items()))
        return Report(
            conversation=self.chat.name,
            head=record.head,
            sound=bool(verdict),
            fault="" if verdict else str(verdict.reason),
            turns=history,
            events=tuple(events),
            seen=seen,
            not_considered=missing,
        )

    # Underneath

    def _entry(self, entry: int | Entry) -> Entry:
        found = self.chat.record.entry(entry.id if isinstance(entry, Entry) else entry)
        if found.conversation != self.chat.name:
            raise NoSuchEntry(f"entry {found.id} is of conversation {found.conversation!r}", self.chat.name)
        return found

    def _call(self, entry: int | Entry) -> _Call:
        found = self._entry(entry)
        told = found.payload
        if "asked" not in told:
            cure = "name a message that was appended with its context, a failure or a compaction"
            raise BadInput(f"no context was recorded with entry {found.id}", self.chat.name, cure)
        asked = json.loads(told["asked"])
        at = found.id if found.kind == "compaction" else _number(told.get("at"))
        native = told.get("pending") or told.get("request", {}).get("pending")
        if found.kind == "message":
            pending = tuple(self._said_between(at, found))
        else:
            pending = tuple(formats.read(native, prefer=asked["format"]).messages) if native else ()
        return _Call(
            found.id, at, told["model"], asked["format"], told["context"], asked["system"], asked["tools"], pending
        )

    def _said_between(self, at: int | None, call: Entry) -> Iterator[Message]:
        """Messages that a context had as pending: those that were written between it and the answer."""
        before = [entry for entry in self.chat.thread.path(call.parent) if entry.message is not None]
        ids = _Tree(self.chat).path(call.parent)
        on_path = at is None or at in ids
        for entry in before:
            later = entry.id > (at or 0) if on_path else entry.time == call.time
            if later and entry.message is not None:
                yield entry.message

    def _state(self, tip: int | None) -> _Walk:
        walk = _Walk()
        for entry in self.chat.thread.path(tip):
            walk.add(entry)
        return walk

    def _elsewhere(self, before: int, path: set[int]) -> Iterator[Reduced]:
        """What stood on branches that had been left when an entry was written."""
        left = _Tree(self.chat).left(before)
        for id, event in left.items():
            if id in path:
                continue
            entry = self.chat.record.entry(id)
            if entry.message is None:
                continue
            for part, each in enumerate(entry.message.parts):
                yield _reduced(entry.turn or 0, Key(id, part), each, Form("branch"), event)


_PASSES = frozenset({"compaction", "undo", "trim"})


@dataclass(frozen=True, slots=True)
class _Call:
    """A call as it is on record."""

    entry: int
    at: int | None
    model: str
    wire: str
    recorded: str
    system: Any
    tools: list[Any] | None
    pending: tuple[Message, ...]

    def history(self, state: PathState) -> History:
        history = state.history(self.wire, self.pending)
        if self.system is not None:
            history.system = formats.system_message(self.system, self.wire)
        if self.tools is not None:
            history.tools = self.tools
        return history


class _Walk:
    """A path walked entry by entry, with the event since which each part stands as it does."""

    def __init__(self) -> None:
        self.state = PathState()
        self._stands: dict[Key, tuple[Form, int]] = {}

    def add(self, entry: Entry) -> None:
        self.state.add(entry)
        if entry.kind not in ("compaction", "undo"):
            return
        before, self._stands = self._stands, {}
        for key, form in self._forms().items():
            old = before.get(key)
            self._stands[key] = (form, old[1] if old is not None and old[0].name == form.name else entry.id)

    def _forms(self) -> dict[Key, Form]:
        state = self.state
        if not state.plan:
            return {}
        history = state.history(state.planned)
        found = treatments(fit.source_of(history, state.planned)[0], state.plan, _stand_ins(history, state))
        keys = {place: key for place, key, _ in _places(state, state.planned)}
        return {keys[place]: form for place, form in found.items()}

    def reduced(self) -> Iterator[Reduced]:
        for key, turn, part in self.parts():
            if key in self._stands:
                form, event = self._stands[key]
                yield _reduced(turn, key, part, form, event)

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
            if number == turn and (key.inner < 0 or key in self._stands):
                form = self._stands[key][0] if key in self._stands else Form("verbatim")
                forms[form.name] += 1
                pages.update(form.pages)
        return dict(sorted(forms.items())), tuple(sorted(pages))

    def holds(self, text: str) -> tuple[bool, bool]:
        """Whether a text can be read in the context, and whether a summary has it."""
        state = self.state
        wire = state.planned or state.wire()
        history = state.history(wire)
        made = fit.stood_for(history, state.plan, _stand_ins(history, state))
        wanted = _plain(text)
        summary = _plain(block(state.plan.summaries, state.plan.recall)) if state.plan.summaries else ""
        return wanted in _plain("\n".join(_readable(made))), wanted in summary


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


def _true(text: str | None) -> bool | None:
    return None if text is None else True


def _stand_ins(history: History, state: PathState) -> list[Page]:
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
    return ((at, part) for at, part in enumerate(parts) if native or _carried(part))


def _carried(part: Part) -> bool:
    return convert.carried(Message("user", (part,)), Counter()) is not None


def _left_behind(state: PathState, wire: str, call: int) -> Iterator[Reduced]:
    """Parts that the wire of a call does not carry: the call itself is the event."""
    for entry, message in state.messages:
        if entry.payload.get("wire", "") == wire:
            continue
        for at, part in enumerate(message.parts):
            if not _carried(part):
                yield _reduced(entry.turn or 0, Key(entry.id, at), part, Form("other_wire"), call)


def _reduced(turn: int, key: Key, part: Part, form: Form, event: int) -> Reduced:
    size = len(spoken(Message("user", (part,))))
    return Reduced(turn, key, _kind(part), form.name, event, form.pages, form.why, size)


def _kind(part: Part) -> str:
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


class _Tree:
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
                self.moves.append((entry.id, _number(entry.payload.get("from")), entry.about))

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


def _number(reference: Any) -> int | None:
    return reference.entry if isinstance(reference, Ref) and isinstance(reference.entry, int) else None


def _why(entry: Entry) -> str:
    told = entry.payload
    match entry.kind:
        case "compaction":
            return str(told["why"])
        case "undo":
            return f"of {entry.about}"
        case "move" | "report":
            return f"to {told['label']}" if "label" in told else f"to entry {entry.about}"
    return ""


# The report


@dataclass(frozen=True, slots=True)
class TurnLine:
    """A turn as it was said: its number, who spoke, how much, the digest of its canonical form, its first words."""

    number: int
    on_path: bool
    role: str
    characters: int
    digest: str
    begins: str


@dataclass(frozen=True, slots=True)
class Event:
    """An entry that is no message: what it was, and what it changed, as data."""

    entry: int
    kind: str
    time: int
    what: str
    told: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Report:
    """The whole of a conversation for a reviewer. ``str()`` is the text, :meth:`to_dict` plain data."""

    conversation: str
    head: Head
    sound: bool
    fault: str
    turns: tuple[TurnLine, ...]
    events: tuple[Event, ...]
    seen: Seen | None
    not_considered: tuple[Reduced, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; pages stand by their digests."""
        data: dict[str, Any] = {
            "conversation": self.conversation,
            "head": {"size": self.head.size, "root": self.head.root},
            "sound": self.sound,
            "fault": self.fault,
            "turns": [asdict(each) for each in self.turns],
            "events": [{**asdict(replace(each, told={})), "told": dict(each.told)} for each in self.events],
            "not_considered": [asdict(each) | {"key": list(each.key)} for each in self.not_considered],
        }
        if self.seen is not None:
            seen = self.seen
            data["seen"] = {
                "entry": seen.entry,
                "at": seen.at,
                "model": seen.model,
                "wire": seen.wire,
                "digest": seen.digest,
                "proven": seen.proven,
                "redrawn": seen.redrawn,
                "messages": len(seen.messages),
                "pages": [sheet._asdict() for sheet in seen.sheets if sheet.number in seen.shown],
            }
        return data

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"Conversation {self.conversation}"
        state = "sound" if self.sound else f"NOT SOUND: {self.fault}"
        yield f"Record of {self.head.size:,} entries, root {self.head.root}: {state}"
        yield ""
        yield f"What was said: {len(self.turns):,} turns"
        for turn in self.turns:
            branch = "" if turn.on_path else " (branch)"
            yield f"  {turn.number:>5} {turn.role:<9} {turn.characters:>9,} {turn.digest[:12]}{branch}  {turn.begins}"
        yield ""
        yield f"What changed what the model saw, and what stands beside: {len(self.events):,} events"
        for event in self.events:
            yield f"  {event.entry:>5} {_day(event.time)} {event.kind}: {event.what}"
            for line in event.told.get("summary", ()):
                yield f"          {line}"
        if self.seen is None and not self.not_considered:
            return
        yield ""
        if self.seen is not None:
            seen = self.seen
            proof = "proven by its digest" if seen.proven else f"NOT PROVEN: {seen.digest} was recorded otherwise"
            pages = "" if seen.redrawn else "; its pages are drawn otherwise now, their identities are those on record"
            yield f"What the call of entry {seen.entry} saw: context {seen.recorded}, {proof}{pages}"
            yield f"  {len(seen.messages):,} messages, {len(seen.shown):,} pages, for {seen.model}"
        yield f"What it did not, or reduced: {len(self.not_considered):,} parts"
        for each in self.not_considered:
            pages_of = f" {spans(each.pages)}" if each.pages else ""
            why = f" ({each.why})" if each.why else ""
            yield (
                f"  turn {each.turn:>5} {each.kind:<9} {each.characters:>9,} characters: "
                f"{each.form}{pages_of}{why}, by entry {each.event}"
            )


def _day(time: int) -> str:
    return datetime.fromtimestamp(time // 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _turn_line(number: int, on_path: bool, entries: Sequence[Entry]) -> TurnLine:
    messages = [entry.message for entry in entries if entry.message is not None]
    words = "\n".join(filter(None, map(spoken, messages)))
    begins = " ".join(words[:200].split())[:80]
    return TurnLine(number, on_path, messages[0].role, len(words), digest(messages), begins)


def _event(entry: Entry) -> Event:
    told, payload = {}, entry.payload
    what = _why(entry)
    if entry.kind == "compaction":
        before, after = payload["before"]["tokens"], payload["after"]["tokens"]
        first, last = payload["span"]
        pages = [Sheet.patched((), {"keep": 0, "then": payload["pages"]["then"]})]
        told = {
            "why": payload["why"],
            "model": payload["model"],
            "span": [first, last],
            "before": before,
            "after": after,
            "context": payload["context"],
            "pages": [sheet._asdict() for sheet in pages[0]],
            "summary": list(_summary_lines(payload["plan"])),
        }
        what = f"{payload['why']}, turns {first}-{last}, {before:,} to {after:,} tokens, {len(pages[0])} new pages"
    elif entry.kind in ("pin", "claim"):
        what = f"{payload.get('kind', 'claim')}: {payload['text']}"
    elif entry.kind == "trim":
        what = f"turns {payload['first']}-{payload['last']}"
    elif entry.kind in ("label", "label_loss"):
        what = str(payload["name"])
    elif entry.kind == "failure":
        what = f"{payload['error']}: {payload['what']}"
    elif entry.kind == "unpin":
        what = f"pin {entry.about}"
    elif entry.kind == "fork":
        what = f"of {payload['from']}"
    return Event(entry.id, entry.kind, entry.time, what, told)


def _summary_lines(change: Any) -> Iterator[str]:
    """The lines of summaries that a difference of plans brings."""
    told = change.get("in", {}).get("summaries") if isinstance(change, dict) else None
    for summary in (told or {}).get("more", (told or {}).get("to", ())):
        for line in summary["lines"]:
            yield f"[{line['kind']}] {line['text']}"


__all__ = [
    "FORMS",
    "Audit",
    "Event",
    "Evidence",
    "Key",
    "Link",
    "Reduced",
    "Removed",
    "Report",
    "Seen",
    "Step",
    "Trace",
    "audit",
]
