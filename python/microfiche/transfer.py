"""Histories into a record, and out of it again in the form they came in."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from microfiche import formats
from microfiche.conversation import Conversation, Options, Record
from microfiche.errors import BadInput, NameTaken, NothingLoaded
from microfiche.formats import convert
from microfiche.formats.beside import Beside, Compaction, Place
from microfiche.ladder.own import refuse_own
from microfiche.messages import History, Message, Note, Text, ToolResult, split_turns
from microfiche.path import IMPORT
from microfiche.record import Draft, Entry, OpenCalls
from microfiche.record.tree import check_name
from microfiche.validate.draft import NO_RESULT

_SYSTEM = {"anthropic": "system", "openai_responses": "instructions", "gemini": "systemInstruction"}
"""Where a request body of a wire has its system prompt; Chat Completions has it in the list."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import wrote: messages and turns, of branches too, and notes; ``tip`` is the path's last entry.

    ``branches`` are the names of those off the path that are new or grew, each a checkpoint at its end;
    ``compactions`` and ``names`` count what became events.
    """

    conversation: Conversation
    messages: int
    turns: int
    tip: int
    notes: tuple[Note, ...]
    branches: tuple[str, ...] = ()
    compactions: int = 0
    names: int = 0

    def __bool__(self) -> bool:
        """Whether anything was written."""
        return bool(self.messages or self.branches or self.compactions or self.names)


def import_history(
    record: Record, history: History, name: str, *, source: str = "", beside: Beside | None = None
) -> Imported:
    """Put a history into a record as a new conversation, in one transaction.

    Its messages stand on the path with the wire that they came in. One side entry of kind ``import``
    says where they are from and keeps what else a request body holds (system prompt, tools, other
    fields); one each says what the reader noted, and calls without a result, which get one that says so: a
    path holds no open call. What stood ``beside`` it (see :func:`microfiche.formats.whole`) becomes a tree: branches
    off the path with a checkpoint at the end of each, compactions as events on the path, names as checkpoints.

    Raises :class:`NameTaken`, :class:`BadInput` for a history without messages, and
    :class:`~microfiche.errors.OwnOutput` for one that holds our own pages or placeholders.
    """
    check_importable(history, name, source)
    chat = record.conversation(name)
    if chat.tip is not None or any(each.name == name for each in record.conversations()):
        raise NameTaken(f"a conversation {name!r} exists", str(record.path), "choose another name, or update that one")
    return _write(chat, history, beside or Beside(), source)


def update_history(chat: Conversation, history: History, *, source: str = "", beside: Beside | None = None) -> Imported:
    """Add to an imported conversation what its session has said since, in one transaction.

    What of the session is in the conversation already, on whatever branch, stays as it is. A last turn that was
    not whole when it was imported is written anew as a branch beside its first form; where the session itself went
    back, the tip goes along, and what it left is a branch. Nothing new is nothing written.

    Raises :class:`BadInput` if the path holds what the session does not.
    """
    check_importable(history, chat.name, source)
    return _write(chat, history, beside or Beside(), source)


def _write(chat: Conversation, history: History, beside: Beside, source: str) -> Imported:
    """Write what is not there yet of the history, and of what is beside it."""
    there = _There(chat)
    tree = _Writing(chat, history.wire, there)
    first = tree.begin(0, Place(0, 0), history.messages)
    start = tree.end(0)
    moved = start != chat.tip
    if moved:
        tree.drafts.append(Draft("move", {"why": "import"}, start))
    tree.say(0, history.messages[first:], [each for each in beside.compactions if each.at.branch == 0])
    tip = tree.end(0)
    added = tree.branches(beside)
    if tree.drafts and tree.drafts[-1].kind == "label":
        tree.drafts.append(Draft("move", {"why": "import"}, tip))
    there.demand_all_found()
    named = tree.names(beside)
    notes = [note for note in (*history.notes, *beside.notes) if (note.where, note.what) not in there.notes]
    if moved:
        notes.append(Note(source, there.why_moved(start)))
    lines = [(note, tip) for note in notes] + [(Note(source, what), at) for what, at in tree.unanswered]
    if not tree.drafts:
        return Imported(chat, 0, 0, chat.tip or 0, ())
    spoken = [draft.message for draft in tree.drafts if draft.message is not None]
    turns = sum(message.role in ("user", "assistant") for message in spoken)
    told = {"source": source, "messages": len(spoken), "turns": turns, **_beside(history)}
    written = chat.thread.commit(
        [
            *tree.drafts,
            Draft("import", told, tip),
            *(Draft("import", {"note": note.what, "where": note.where}, about) for note, about in lines),
        ]
    )
    on_path = written[tree.drafts.index(tip)].id if isinstance(tip, Draft) else tip
    notes = [note for note, _ in lines]
    return Imported(chat, len(spoken), turns, on_path or 0, tuple(notes), added, tree.compactions, named)


class _There:
    """What a conversation holds, as far as a session can be found in it again."""

    def __init__(self, chat: Conversation) -> None:
        self.chat = chat
        self.tip = chat.tip
        self.entries: dict[int, Entry] = {}
        self.notes: set[tuple[str, str]] = set()
        self.compactions: set[str] = set()
        self.labels = chat.thread.labels()
        self._children: dict[int | None, list[Entry]] = {}
        self._next: dict[int | None, dict[Any, list[Entry]]] = {}
        self._found: set[int] = set()
        self._imported = 0
        for entry in chat.record.entries(conversation=chat.name):
            told = entry.payload
            if entry.on_path:
                self.entries[entry.id] = entry
                self._children.setdefault(entry.parent, []).append(entry)
            elif entry.kind == "import" and "note" in told:
                self.notes.add((told["where"], told["note"]))
            elif entry.kind == "import":
                self._imported = max(self._imported, entry.about or 0)
            if entry.kind == "compaction" and told["why"] == IMPORT:
                self.compactions.add(told["where"])
        self._path: dict[int, None] = {}
        at = self.tip
        while at is not None:
            self._path[at] = None
            at = self.entries[at].parent

    def follow(self, begin: int | None, said: Sequence[Message]) -> list[Entry]:
        """The entries that hold these messages one behind the other, as far as there are any."""
        found: list[Entry] = []
        at = begin
        for message in said:
            same = (each for each in self._behind(at).get(_key(message), ()) if self._says(each) == message)
            entry = next(same, None)
            if entry is None:
                break
            found.append(entry)
            at = entry.id
        self._found.update(each.id for each in found)
        return found

    def _behind(self, at: int | None) -> dict[Any, list[Entry]]:
        """The messages that follow an entry, over events and results that an import put in; those of the path first."""
        if at not in self._next:
            nearest: list[Entry] = []
            waiting = list(self._children.get(at, ()))
            while waiting:
                each = waiting.pop()
                if self._says(each) is not None:
                    nearest.append(each)
                else:
                    waiting += self._children.get(each.id, ())
            nearest.sort(key=lambda each: (each.id not in self._path, -each.id))
            index: dict[Any, list[Entry]] = {}
            for each in nearest:
                said = self._says(each)
                assert said is not None
                index.setdefault(_key(said), []).append(each)
            self._next[at] = index
        return self._next[at]

    @staticmethod
    def _says(entry: Entry) -> Message | None:
        return _own(entry, entry.message) if entry.message is not None else None

    def last_said(self, at: int | Draft | None) -> int | Draft | None:
        """The last entry at or before one that says something of the session."""
        while isinstance(at, int) and self._says(self.entries[at]) is None:
            at = self.entries[at].parent
        return at

    def bounds(self, found: Sequence[Entry], said: Sequence[Message]) -> list[int | None]:
        """Behind each of the entries of these messages, the boundary there; ``None`` where a call is open.

        Behind the last stands the tip, if nothing was said between the two. A turn that has no result for a call that
        is answered behind ``found`` was not whole: from there on there is none.
        """
        late = {result.call_id for message in said[len(found) :] for result in message.results}
        out: list[int | None] = []
        for at, entry in enumerate(found):
            end: int | None = found[at + 1].parent if at + 1 < len(found) else None
            if at + 1 == len(found):
                end = self._end(entry, whole=len(found) == len(said))
            if late and end is not None and self._added(entry.id, end) & late:
                return out + [None] * (len(found) - at)
            out.append(end if end is not None and not self.entries[end].open else None)
        return out

    def _end(self, last: Entry, whole: bool) -> int | None:
        if self.last_said(self.tip) == last.id and (whole or not last.open):
            return self.tip
        waiting = [last]
        while waiting and whole:
            each = waiting.pop()
            if not each.open:
                return each.id
            waiting += [child for child in self._children.get(each.id, ()) if self._says(child) is None]
        return last.id

    def _added(self, first: int, last: int) -> set[str]:
        """The calls for which an import put in results, from an entry to one behind it."""
        calls: set[str] = set()
        at: int | None = last
        while at is not None and at >= first:
            entry = self.entries[at]
            if entry.message is not None and (number := entry.payload.get("added", 0)):
                calls.update(part.call_id for part in entry.message.parts[-number:] if isinstance(part, ToolResult))
            at = entry.parent
        return calls

    def demand_all_found(self) -> None:
        """Refuse a path that holds more than the session does, but for a last turn that was not whole."""
        path = [self.entries[id] for id in reversed(self._path) if self._says(self.entries[id]) is not None]
        same = next((at for at, each in enumerate(path) if each.id not in self._found), len(path))
        spoken = [at for at, each in enumerate(path) if each.message and each.message.role in ("user", "assistant")]
        last = max(spoken, default=0)
        if same < last or (same < len(path) and path[last].id > self._imported):
            raise BadInput(
                f"the path and the session part at message {same + 1}",
                self.chat.name,
                "import it under another name, or branch to where the two still agree",
            )

    def why_moved(self, start: int | Draft | None) -> str:
        """Why the tip is not where it was."""
        at = self.tip
        while at is not None and self.entries[at].parent != start:
            at = self.entries[at].parent
        turn = self.entries[at].turn if at is not None else 0
        left = any(id in self._found for id in self._path if not isinstance(start, int) or id > start)
        if at is None or left:
            return "the session went back: what followed is a branch"
        return f"turn {turn} was not whole before: it stands anew"


def _key(message: Message) -> Any:
    """What tells most messages apart at once."""
    return message.role, len(message.parts), message.text, tuple(call.id for call in message.calls)


class _Writing:
    """The drafts of an import: the conversation, its branches, its compactions and names."""

    def __init__(self, chat: Conversation, wire: str, there: _There) -> None:
        self.wire = wire
        self.turns = chat.thread.standing.turns
        self.there = there
        self.drafts: list[Draft] = []
        self.unanswered: list[tuple[str, Draft]] = []
        self.compactions = 0
        # Of each branch: where it begins, behind each of its own messages the boundary that stands there or before, and
        # the first turn of its path.
        self._begin: dict[int, _Spot] = {}
        self._behind: dict[int, list[_Spot]] = {}
        self._first: dict[int, int] = {}

    def begin(self, branch: int, start: Place, said: Sequence[Message]) -> int:
        """Begin a branch with what is there of its messages, up to a boundary; so many are."""
        begin = self._at(start) if branch else _Spot(None, 0)
        self._begin[branch], self._behind[branch] = begin, []
        self._first[branch] = self._first[start.branch] if branch and begin.turn else self.turns + 1
        if isinstance(begin.entry, Draft):
            return 0
        found = self.there.follow(begin.entry, said)
        bounds = self.there.bounds(found, said)
        whole = max((at for at, end in enumerate(bounds, 1) if end is not None), default=0)
        spot = begin
        for entry, end in zip(found[:whole], bounds, strict=False):
            spot = _Spot(end, entry.turn or 0) if end is not None else spot
            self._behind[branch].append(spot)
        if whole and not begin.turn:
            self._first[branch] = found[0].turn or 0
        return whole

    def end(self, branch: int) -> int | Draft | None:
        return self._at(Place(branch, len(self._behind[branch]))).entry

    def _at(self, place: Place) -> _Spot:
        """The boundary at a place, or before it."""
        behind = self._behind[place.branch]
        at = min(place.messages, len(behind))
        return behind[at - 1] if at > 0 else self._begin[place.branch]

    def say(self, branch: int, said: Sequence[Message], passes: Sequence[Compaction]) -> None:
        """Write messages behind those that the branch has, and the compactions between them."""
        messages, added, ends = _closed(said, self.wire)
        behind, waiting = self._behind[branch], OpenCalls()
        here = behind[-1] if behind else self._begin[branch]
        due = deque(sorted((each for each in passes if each.where not in self.there.compactions), key=lambda e: e.at))
        turn, done = here.turn, 0

        def settle() -> None:
            nonlocal here
            while due and due[0].at.messages <= len(behind):
                here = _Spot(self._compacted(due.popleft()), turn)
                if behind:
                    behind[-1] = here

        settle()
        for end in ends:
            for at in range(done, end):
                payload = {"wire": self.wire} | ({"added": len(added[at])} if at in added else {})
                draft = Draft("message", payload, message=messages[at])
                self.drafts.append(draft)
                if messages[at].role in ("user", "assistant"):
                    self.turns = turn = self.turns + 1
                waiting.follow(messages[at])
                self.unanswered += [(what, draft) for what in added.get(at, ())]
            done = end
            if not len(waiting):
                here = _Spot(draft, turn)
            behind.append(here)
            if not len(waiting):
                settle()

    def _compacted(self, found: Compaction) -> Draft:
        last = self._at(Place(found.at.branch, found.at.messages - found.kept)).turn
        payload: dict[str, Any] = {"why": IMPORT, "trigger": found.trigger, "where": found.where}
        payload["span"] = [self._first[found.at.branch] if last else 0, last]
        payload |= {"before": {"tokens": found.before}, "after": {"tokens": found.after}, "summary": found.summary}
        draft = Draft("compaction", payload)
        self.drafts.append(draft)
        self.compactions += 1
        return draft

    def branches(self, beside: Beside) -> tuple[str, ...]:
        """Write of the branches what is not there yet, and a checkpoint at the end of each; their names."""
        written = []
        for number, each in enumerate(beside.branches, 1):
            first = self.begin(number, each.start, each.messages)
            if first < len(each.messages):
                self.drafts.append(Draft("move", {"why": "import"}, self.end(number)))
                self.say(number, each.messages[first:], [c for c in beside.compactions if c.at.branch == number])
            end, old = self.end(number), self.there.labels.get(each.name)
            if old is None or self.there.last_said(old.entry) != self.there.last_said(end):
                self.drafts.append(Draft("label", {"name": each.name, "where": each.where}, end))
                written.append(each.name)
        return tuple(written)

    def names(self, beside: Beside) -> int:
        """Write the names that are not in force yet."""
        before = len(self.drafts)
        for each in {each.name: each for each in beside.names}.values():
            if each.name not in self.there.labels:
                said = {"name": each.name, "what": each.kind, "where": each.where}
                self.drafts.append(Draft("label", said, self._at(each.at).entry))
        return len(self.drafts) - before


class _Spot(NamedTuple):
    """A turn boundary: the entry, and the turn it belongs to."""

    entry: int | Draft | None
    turn: int


def check_importable(history: History, name: str, source: str = "") -> None:
    """Raise what :func:`import_history` would, as far as no record is needed to know."""
    check_name(name)
    refuse_own(history)
    if not history.messages:
        raise BadInput("no message to import", source, "name a session that has some")


def _beside(history: History) -> dict[str, Any]:
    """What a history holds beside its messages."""
    told: dict[str, Any] = {"format": history.format, "wire": history.wire, "bare": history.bare}
    for name, value in (("model", history.model), ("usage", history.usage)):
        if value is not None:
            told[name] = value
    if history.format in formats.WIRES:
        body, _ = formats.write(replace(history, messages=[]), history.wire)
        request = {key: value for key, value in body.items() if key != formats.list_key(history.wire)}
        if request or not history.bare:
            told["request"] = request
    elif history.tool_names:
        told["tool_names"] = list(history.tool_names)
    return told


def _closed(said: Sequence[Message], wire: str) -> tuple[list[Message], dict[int, list[str]], list[int]]:
    """The messages with a result for every call; what was said of those added, by the place of their message.

    Then, for each message of ``said``, how many of these stand up to it and what was put behind it.

    A call is open if no result comes before the next call of the same id.
    """
    head, turns = split_turns(said)
    waiting: dict[str, list[tuple[int, str]]] = {}
    unanswered: dict[int, list[tuple[str, str]]] = {}

    def give_up(id: str) -> None:
        for at, name in waiting.pop(id, ()):
            unanswered.setdefault(at, []).append((id, name))

    for at, turn in enumerate(turns):
        for message in turn.messages:
            for result in message.results:
                if calls := waiting.get(result.call_id):
                    calls.pop(0)
            for id in dict.fromkeys(call.id for call in message.calls):
                give_up(id)
            for call in message.calls:
                waiting.setdefault(call.id, []).append((at, call.name))
    for id in list(waiting):
        give_up(id)

    messages, added = list(head), {}
    ends = list(range(1, len(head) + 1))
    for at, turn in enumerate(turns):
        held, shift = list(turn.messages), 0
        if at in unanswered:
            place, held = _answered(held, [id for id, _ in unanswered[at]], wire)
            added[len(messages) + place] = [f"no result for call {id} ({name})" for id, name in unanswered[at]]
            shift = len(held) - len(turn.messages)
        for number in range(1, len(turn.messages) + 1):
            ends.append(len(messages) + number + (shift if at in unanswered and number >= place else 0))
        messages += held
    return messages, added, ends


def _answered(said: Sequence[Message], calls: Sequence[str], wire: str) -> tuple[int, list[Message]]:
    """The messages of a turn with results that say there was none; and which of them holds these."""
    results = tuple(ToolResult(id, (Text(NO_RESULT),), error=True) for id in calls)
    place = max((at for at, message in enumerate(said) if message.role == "tool"), default=0)
    # Chat Completions has a message for each result, the others one for all of a batch.
    if place and wire != "openai_chat":
        held = replace(said[place], parts=(*said[place].parts, *results))
        return place, [*said[:place], held, *said[place + 1 :]]
    return place + 1, [*said[: place + 1], Message("tool", results), *said[place + 1 :]]


def export_messages(chat: Conversation, format: str | None = None) -> tuple[Any, list[Note]]:
    """The messages of the path in their native form: a list, or the request body that was imported.

    What came in as a request body or a list goes out equal to it, with what was said since. ``format``
    names another wire; the notes say what it cannot carry. :class:`NothingLoaded` if there is no message.
    """
    state = chat.state()
    if not state.messages:
        raise NothingLoaded("the conversation holds no message", chat.name, "append or import first")
    own = state.wire() or "openai_chat"
    lost: Counter[str] = Counter()
    messages = list(_as_wire(state.messages, own, lost))
    told = imported_with(chat)
    key = formats.list_key(own)
    body, notes = formats.write(History(messages, own, wire=own), own)
    body = {**told.get("request", {}), key: body[key]} if told.get("wire") == own else {key: body[key]}
    if format is not None and format != own:
        body, notes = formats.write(formats.read(body, own), format)
        key = formats.list_key(format)
    whole = told.get("bare") is False and "request" in told
    return (body if whole else body[key]), [*formats.common.counted("write", lost), *notes]


def _as_wire(said: Iterable[tuple[Entry, Message]], wire: str, lost: Counter[str]) -> Iterator[Message]:
    for entry, said_there in said:
        message = _own(entry, said_there)
        if message is None:
            continue
        if entry.payload.get("wire", "") == wire:
            yield message
        elif (kept := convert.carried(message, lost)) is not None:
            yield kept


def _own(entry: Entry, message: Message) -> Message | None:
    """The message without results that an import put in; None if nothing else was in it."""
    number = entry.payload.get("added", 0)
    if not number:
        return message
    return replace(message, parts=message.parts[:-number]) if len(message.parts) > number else None


def imported_with(chat: Conversation) -> Mapping[str, Any]:
    """What the newest import of this conversation, or of the one it was forked from, tells; empty if there was none."""
    name, seen = chat.name, set[str]()
    while name not in seen:
        seen.add(name)
        told = [
            each.payload for each in chat.record.entries(conversation=name, kind="import") if "format" in each.payload
        ]
        if told:
            return told[-1]
        name = next((fork.payload["from"] for fork in chat.record.entries(conversation=name, kind="fork")), name)
    return {}


def standing_options(chat: Conversation, wire: str) -> Options:
    """System prompt and tools of the newest call, else of the import, in the form of a wire: options for a context."""
    told = imported_with(chat)
    history = History([], wire, wire=wire)
    if (call := _newest_call(chat)) is not None:
        own = call["format"]
        history = History([], own, wire=own, tools=call["tools"])
        if call["system"] is not None:
            history.system = formats.system_message(call["system"], own)
    elif "request" in told:
        own = told["wire"]
        given = formats.read({**told["request"], formats.list_key(own): []}, own)
        history = History([], own, wire=own, system=given.system, tools=given.tools)
    elif "tool_names" in told:
        history.tools = formats.tools.stubs(told["tool_names"], wire)[0]
    body, _ = formats.write(history, wire)
    options: Options = {}
    if history.system is not None:
        lead = body[formats.list_key(wire)]
        options["system"] = lead[0]["content"] if wire == "openai_chat" else body[_SYSTEM[wire]]
    if history.tools is not None:
        options["tools"] = body["tools"]
    return options


def _newest_call(chat: Conversation) -> dict[str, Any] | None:
    """What the newest call or pass on the path was asked with, as the conversation keeps it."""
    state = chat.state()
    entries = sorted([*(entry for entry, _ in state.messages), *state.events], key=lambda entry: -entry.id)
    kept = next((entry.payload["asked"] for entry in entries if "asked" in entry.payload), None)
    return json.loads(kept) if kept is not None else None


__all__ = [
    "Imported",
    "check_importable",
    "export_messages",
    "import_history",
    "imported_with",
    "standing_options",
    "update_history",
]
