"""Histories into a record, and out of it again in the form they came in."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from microfiche import formats
from microfiche.conversation import Conversation, Options, Record
from microfiche.errors import BadInput, NameTaken, NothingLoaded
from microfiche.fit import refuse_own
from microfiche.formats import convert
from microfiche.messages import History, Message, Note, Text, ToolResult, split_turns
from microfiche.record import Draft, Entry
from microfiche.record.tree import check_name
from microfiche.validate.draft import NO_RESULT

_SYSTEM = {"anthropic": "system", "openai_responses": "instructions", "gemini": "systemInstruction"}
"""Where a request body of a wire has its system prompt; Chat Completions has it in the list."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import wrote: messages and turns on the path, notes beside it; ``tip`` is the last message's entry."""

    conversation: Conversation
    messages: int
    turns: int
    tip: int
    notes: tuple[Note, ...]


def import_history(
    record: Record, history: History, name: str, *, source: str = "", asides: Sequence[Note] = ()
) -> Imported:
    """Put a history into a record as a new conversation, in one transaction.

    Its messages stand on the path with the wire that they came in. One side entry of kind ``import``
    says where they are from and keeps what else a request body holds (system prompt, tools, other
    fields); one each says what the reader noted, ``asides`` (see :func:`microfiche.formats.asides`)
    and calls without a result, which get one that says so: a path holds no open call.

    Raises :class:`NameTaken`, :class:`BadInput` for a history without messages, and
    :class:`~microfiche.errors.OwnOutput` for one that holds our own pages or placeholders.
    """
    check_importable(history, name, source)
    chat = record.conversation(name)
    if chat.tip is not None or any(each.name == name for each in record.conversations()):
        raise NameTaken(f"a conversation {name!r} exists", str(record.path), "choose another name, or update that one")
    return _write(chat, history, history.messages, source, asides)


def update_history(chat: Conversation, history: History, *, source: str = "", asides: Sequence[Note] = ()) -> Imported:
    """Add to an imported conversation what its session has said since, in one transaction.

    The path has to hold the beginning of ``history``. If the last turn was not whole when it was
    imported, it is written anew as a branch beside its first form; nothing is lost. Nothing new is nothing written.

    Raises :class:`BadInput` if the path is not the beginning of the history.
    """
    check_importable(history, chat.name, source)
    stripped = [(entry, kept) for entry, message in chat.state().messages if (kept := _own(entry, message)) is not None]
    said, now = [message for _, message in stripped], history.messages
    same = next((at for at, (a, b) in enumerate(zip(said, now, strict=False)) if a != b), min(len(said), len(now)))
    last = max((at for at, message in enumerate(said) if message.role in ("user", "assistant")), default=0)
    newest = stripped[last][0].id if stripped else 0
    whole = not any("added" in entry.payload for entry, _ in chat.state().messages if entry.id >= newest)
    imported = max((entry.about or 0 for entry in chat.thread.sides("import") if "format" in entry.payload), default=0)
    if same < last or (same < len(said) and newest > imported):
        raise BadInput(
            f"the path and the session part at message {same + 1}",
            chat.name,
            "import it under another name, or branch to where the two still agree",
        )
    if same == len(said) and (whole or same == len(now)):
        return _write(chat, history, now[same:], source, asides)
    # Back to a turn boundary: the call of a late result may stand turns before.
    before = stripped[last][0].parent
    boundary = None if before is None else chat.thread.boundary(before)
    first = next(at for at, (entry, _) in enumerate(stripped) if entry.id > (boundary or 0))
    return _write(chat, history, now[first:], source, asides, stripped[first][0])


def _write(
    chat: Conversation,
    history: History,
    said: Sequence[Message],
    source: str,
    asides: Sequence[Note],
    instead: Entry | None = None,
) -> Imported:
    """Write messages of the history and what is to be noted, behind the tip or in place of ``instead``."""
    messages, added = _closed(said, history.wire)
    turns = sum(message.role in ("user", "assistant") for message in messages)
    if not messages:
        return Imported(chat, 0, 0, chat.tip or 0, ())
    drafts = [
        Draft("message", {"wire": history.wire} | ({"added": len(added[at])} if at in added else {}), message=message)
        for at, message in enumerate(messages)
    ]
    told = {"source": source, "messages": len(messages), "turns": turns, **_beside(history)}
    known = {(entry.payload["where"], entry.payload["note"]) for entry in _notes(chat)}
    lines = [(note, drafts[-1]) for note in (*history.notes, *asides) if (note.where, note.what) not in known]
    lines += [(Note(source, what), drafts[at]) for at, calls in added.items() for what in calls]
    moves = []
    if instead is not None:
        moves = [Draft("move", {"why": "import"}, instead.parent)]
        what = f"turn {instead.turn} was not whole before: it stands anew"
        lines.append((Note(source, what), drafts[0]))
    notes = [Draft("import", {"note": note.what, "where": note.where}, about) for note, about in lines]
    written = chat.thread.commit([*moves, *drafts, Draft("import", told, drafts[-1]), *notes])
    tip = written[len(moves) + len(drafts) - 1].id
    return Imported(chat, len(messages), turns, tip, tuple(note for note, _ in lines))


def _notes(chat: Conversation) -> Iterator[Entry]:
    return (entry for entry in chat.thread.sides("import") if "note" in entry.payload)


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


def _closed(said: Sequence[Message], wire: str) -> tuple[list[Message], dict[int, list[str]]]:
    """The messages with a result for every call; what was said of those added, by the place of their message.

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
    for at, turn in enumerate(turns):
        held = list(turn.messages)
        if at in unanswered:
            place, held = _answered(held, [id for id, _ in unanswered[at]], wire)
            added[len(messages) + place] = [f"no result for call {id} ({name})" for id, name in unanswered[at]]
        messages += held
    return messages, added


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
