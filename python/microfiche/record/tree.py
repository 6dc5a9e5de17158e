"""Conversations: a name with a tip in the tree of entries; append, move, fork, label, and what stands on a path."""

from __future__ import annotations

import sqlite3
import unicodedata
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from microfiche.errors import BadInput, Conflict, Damaged, NameTaken, NoSuchEntry, TurnOpen
from microfiche.messages import Message, ToolCall

from . import sqlite
from .entries import PATH_KINDS, SIDE_KINDS, SPEAKING, Draft, Entry, OpenCalls, Ref, renumber, words
from .reading import entries_of, no_entry, rows_of

if TYPE_CHECKING:
    from .record import Hit, Record
    from .writing import Writer

_CHUNK = 64
_LONGEST_NAME = 200

Tip = int | None
"""The number of a path entry; ``None`` is before everything."""

Expected = Tip | Literal["seen"]
"""Where a writer thinks the tip is; ``seen`` is where its handle last saw it."""


class Standing(NamedTuple):
    """Where a conversation is: its tip, and the highest turn number it has given out."""

    name: str
    tip: Tip
    turns: int


@dataclass(frozen=True, slots=True)
class Label:
    """A checkpoint: a name on a turn boundary. ``id`` is the entry that set it, ``entry`` the one it marks.

    ``moved`` tells that it was asked for where a call was open, and so marks the boundary before.
    """

    name: str
    entry: Tip
    id: int
    moved: bool = False


class Branch(NamedTuple):
    """A leaf of the tree, and the turn it belongs to; ``current`` if it is the tip."""

    tip: int
    turn: int
    current: bool


class Thread:
    """A conversation of a record, as the storage sees it.

    A handle remembers the tip it last saw; a write of the path checks it, so that of two writers
    one wins and the other gets a :class:`Conflict` that names the new tip. :meth:`refresh` takes
    the new one over. A handle may be shared by threads, whose writes then follow each other.
    """

    def __init__(self, record: Record, name: str) -> None:
        """Use :meth:`Record.thread`."""
        check_name(name)
        self.record = record
        self.name = name
        self._seen = self.tip

    @property
    def standing(self) -> Standing:
        """Tip and turn counter as they are now, whoever moved them."""
        with self.record._reading() as db:
            return _standing(db, self.name)

    @property
    def tip(self) -> Tip:
        """Where the conversation is now."""
        return self.standing.tip

    @property
    def seen(self) -> Tip:
        """The tip that this handle last saw: what a write is checked against."""
        return self._seen

    def refresh(self) -> Tip:
        """Take over the tip as it is now."""
        self._seen = self.tip
        return self._seen

    # Writing

    def append(
        self,
        messages: Sequence[Message],
        *,
        expect_tip: Expected = "seen",
        meta: Mapping[str, Any] | Sequence[Mapping[str, Any] | None] | None = None,
    ) -> list[Entry]:
        """Add a stretch of messages that leaves no call open, in one transaction.

        ``meta`` is kept in the payload of the first assistant message of the stretch (of its first
        message if there is none), or of each message if it is a list. A result whose call is
        nowhere is kept as it came: a log does not mend. Raises :class:`TurnOpen`, which names the
        calls, and :class:`Conflict`.
        """
        if not messages:
            raise BadInput("nothing to append", self.name, "pass at least one message")
        metas: list[Mapping[str, Any]] = [{} for _ in messages]
        if isinstance(meta, Mapping):
            metas[next((at for at, each in enumerate(messages) if each.role == "assistant"), 0)] = meta
        elif meta is not None:
            if len(meta) != len(messages):
                raise BadInput(f"{len(meta)} metas for {len(messages)} messages", self.name, "pass one a message")
            metas = [each or {} for each in meta]
        drafts = [Draft("message", each, message=message) for message, each in zip(messages, metas, strict=True)]
        return self.commit(drafts, expect_tip=expect_tip)

    def append_event(
        self,
        kind: str,
        payload: Mapping[str, Any] | None = None,
        *,
        about: int | None = None,
        message: Message | None = None,
        expect_tip: Expected = "seen",
    ) -> Entry:
        """Add one event to the path: a compaction, undo, trim, pin, unpin, or a report with its message."""
        if kind not in PATH_KINDS - {"message"}:
            raise BadInput(f"{kind!r} is no event of a path", self.name, "use append, move or side")
        return self.commit([Draft(kind, payload or {}, about, message)], expect_tip=expect_tip)[0]

    def side(self, kind: str, about: int | None = None, payload: Mapping[str, Any] | None = None) -> Entry:
        """Add an entry beside the path, wherever the tip is. Moves, labels and forks have their own methods."""
        if kind not in SIDE_KINDS - {"move", "label", "fork"}:
            raise BadInput(f"{kind!r} is no entry beside a path", self.name, "use append_event, move, label or fork")
        return self.commit([Draft(kind, payload or {}, about)])[0]

    def started(self, call: ToolCall) -> Entry:
        """Leave a trace before a tool runs: a side entry about the tip."""
        return self.side("started", self.tip, {"call": call.id, "name": call.name, "arguments": call.arguments})

    def move(self, tip: Tip, payload: Mapping[str, Any] | None = None, *, expect_tip: Expected = "seen") -> Entry:
        """Put the tip on another path entry of this conversation; ``None`` is before everything.

        Only a turn boundary will do: :class:`TurnOpen` says so, and names the boundary before.
        """
        return self.commit([Draft("move", payload or {}, tip)], expect_tip=expect_tip)[0]

    def label(self, name: str, entry: int | None = None, payload: Mapping[str, Any] | None = None) -> Label:
        """Name a turn boundary, by default the tip; a name that is set again moves.

        Asked for inside a turn, or while a call that was started has no result, it marks the last
        closed boundary and says so in ``moved``.
        """
        with self.record._reading() as db:
            target = _standing(db, self.name).tip if entry is None else entry
            boundary = _boundary(db, target, self.name)
            running = db.execute("SELECT 1 FROM running WHERE conversation = ?", (self.name,)).fetchone()
        moved = boundary != target or (entry is None and running is not None)
        said = {**(payload or {}), "name": name} | ({"moved": True} if moved else {})
        return Label(name, boundary, self.commit([Draft("label", said, boundary)])[0].id, moved)

    def fork(self, name: str, entry: Tip | Literal["tip"] = "tip", payload: Mapping[str, Any] | None = None) -> Thread:
        """Copy the path to ``entry``, by default the tip, into a new conversation; gives that.

        What stands on the path gets new numbers, labels in force and claims about it come along,
        and every reference to what was copied is rewritten; others still name the entry of the
        source. Turn numbers stay, and the new conversation counts on after the source's highest.
        Its first entry is the fork note, about the entry of the source that it forked from.
        """
        copy = Thread(self.record, name)
        with self.record._transaction() as writer:
            db = writer.connection
            standing = _standing(db, self.name)
            tip = standing.tip if entry == "tip" else entry
            _demand_boundary(db, tip, self.name)
            if db.execute("SELECT 1 FROM conversations WHERE name = ?", (name,)).fetchone():
                raise NameTaken(f"a conversation {name!r} exists", str(self.record.path), "choose another name")
            path = path_ids(db, tip)
            copied = set(path)
            labels = _labels(db, self.name).values()
            beside = [label.id for label in labels if label.entry is None or label.entry in copied]
            beside += [id for id, about in _sides(db, self.name, "claim") if about in copied]
            beside.sort()
            note = {**(payload or {}), "from": self.name, "entries": len(path), "turns": standing.turns}
            writer.add(Draft("fork", note, tip), name, None, None, None)
            number = {id: writer.next + at for at, id in enumerate([*path, *beside])}
            for ids in (path, beside):
                for at in range(0, len(ids), _CHUNK):
                    _copy(writer, name, ids[at : at + _CHUNK], number)
            settle(db, Standing(name, None if tip is None else number[tip], standing.turns))
        copy.refresh()
        return copy

    def commit(self, drafts: Sequence[Draft], *, expect_tip: Expected = "seen") -> list[Entry]:
        """Write entries of any kind but forks in one transaction: all or none.

        Path entries follow each other from the tip; a ``move`` sets it to what it is ``about``.
        Calls must be closed before any path event, before a move and at the end. The tip must be
        ``expect_tip``, by default the one last seen, if any draft is a path entry or a move.
        """
        waiting = OpenCalls()
        open_after = [self._check(draft, waiting) for draft in drafts]
        self._demand_closed(waiting)
        steers = any(draft.kind in PATH_KINDS or draft.kind == "move" for draft in drafts)
        numbers: list[int] = []
        with self.record._transaction() as writer:
            db = writer.connection
            _, tip, turns = _standing(db, self.name)
            expected = self._seen if expect_tip == "seen" else expect_tip
            if steers and tip != expected:
                raise Conflict(
                    f"the tip is at {tip}, not at {expected}: another writer was here, and nothing was written",
                    self.name,
                    "read what is new, refresh, and decide again",
                    tip=tip,
                )
            turn = _turn_of(db, tip)
            for draft, still_open in zip(drafts, open_after, strict=True):
                if isinstance(draft.about, int) and not 0 < draft.about < writer.next:
                    raise no_entry(draft.about, writer.next - 1, self.name)
                if draft.kind in PATH_KINDS:
                    if draft.message is not None and draft.message.role in ("user", "assistant"):
                        turns = turn = turns + 1
                    tip = writer.add(draft, self.name, tip, turn, still_open)
                    numbers.append(tip)
                elif draft.kind in ("move", "label"):
                    writer.flush()
                    target = writer.number_of(draft.about) if isinstance(draft.about, Draft) else draft.about
                    _demand_boundary(db, target, self.name)
                    more = {"from": None if tip is None else Ref(tip)} if draft.kind == "move" else {}
                    numbers.append(writer.add(draft, self.name, None, None, None, more))
                    if draft.kind == "move":
                        tip, turn = target, _turn_of(db, target)
                else:
                    numbers.append(writer.add(draft, self.name, None, None, None))
            settle(db, Standing(self.name, tip, turns))
            writer.flush()
            entries = entries_of(db, rows_of(db, numbers))
        if steers:
            self._seen = tip
        return entries

    def _check(self, draft: Draft, waiting: OpenCalls) -> int:
        """Refuse a draft that has no place here; the calls open after it."""
        if draft.kind not in PATH_KINDS | SIDE_KINDS - {"fork"}:
            raise BadInput(f"{draft.kind!r} is no kind of entry to write", self.name, "see PATH_KINDS and SIDE_KINDS")
        if (draft.message is not None) != (draft.kind in SPEAKING):
            raise BadInput(f"a {draft.kind} with or without a message", self.name, "messages and reports hold one")
        if draft.kind == "started" and not isinstance(draft.payload.get("call"), str):
            raise BadInput("a started call needs its id as 'call'", self.name, "use started")
        if draft.kind == "unpin" and draft.about is None:
            raise BadInput("an unpin needs the pin that it is about", self.name, "pass its number as about")
        if draft.kind == "label" and not isinstance(draft.payload.get("name"), str):
            raise BadInput("a label needs its 'name'", self.name, "use label")
        if draft.kind == "message" and draft.message is not None:
            waiting.follow(draft.message)
        elif draft.kind in PATH_KINDS or draft.kind == "move":
            self._demand_closed(waiting)
        return len(waiting)

    def _demand_closed(self, waiting: OpenCalls) -> None:
        if calls := waiting.calls:
            named = ", ".join(f"{call.id} ({call.name})" for call in calls[:5])
            more = f" and {len(calls) - 5} more" if len(calls) > 5 else ""
            raise TurnOpen(
                f"no result for call {named}{more}",
                self.name,
                "append the assistant message together with all results of its calls",
                calls=tuple(call.id for call in calls),
            )

    # Reading

    def path(
        self, tip: Expected | Literal["tip"] = "tip", kinds: Sequence[str] | None = None, last: int | None = None
    ) -> Iterator[Entry]:
        """The entries from the root to ``tip``, by default the current one, read as they are asked for.

        ``kinds`` leaves out all others; ``last`` all but the newest so many.
        """
        with self.record._reading() as db:
            at = _standing(db, self.name).tip if tip == "tip" else self._seen if tip == "seen" else tip
            if at is not None:
                _demand(db, at, self.name)
            ids = path_ids(db, at, kinds)
        return self._stream(ids if last is None else ids[max(len(ids) - last, 0) :])

    def _stream(self, ids: Sequence[int]) -> Iterator[Entry]:
        for at in range(0, len(ids), _CHUNK):
            with self.record._reading() as db:
                found = entries_of(db, rows_of(db, ids[at : at + _CHUNK]))
            yield from found

    def turn(self, number: int) -> tuple[Message, ...]:
        """The original messages of a turn; 0 is the head. :class:`NoSuchEntry` if there is none."""
        return tuple(entry.message for entry in self.turn_entries(number) if entry.message is not None)

    def turn_entries(self, number: int) -> list[Entry]:
        """The entries that hold the messages of a turn.

        Messages without a turn of their own that were added to it on several branches count where
        they stand on the current path, else where they were added last.
        """
        with self.record._reading() as db:
            rows = db.execute(
                "SELECT id, parent, kind FROM entries WHERE conversation = ? AND turn = ? ORDER BY id",
                (self.name, number),
            ).fetchall()
            kinds = {id: kind for id, _, kind in rows}
            parents = {id: parent for id, parent, _ in rows}
            leaves = sorted(kinds.keys() - set(parents.values()))
            if len(leaves) > 1:
                current = set(path_ids(db, _standing(db, self.name).tip))
                leaves = leaves if current.isdisjoint(kinds) else [max(current & kinds.keys())]
            at: Tip = leaves[-1] if leaves else None
            chain: list[int] = []
            while at is not None and at in kinds:
                if kinds[at] in SPEAKING:
                    chain.append(at)
                at = parents[at]
            if not chain:
                raise NoSuchEntry(f"no turn {number}", self.name, f"turns go to {_standing(db, self.name).turns}")
            return entries_of(db, rows_of(db, chain[::-1]))

    def sides(self, kind: str | None = None, about: int | None = None) -> list[Entry]:
        """Entries beside the path, oldest first: those of a kind, those about an entry, or all."""
        where, values = "conversation = ? AND turn IS NULL AND kind <> 'message'", [self.name]
        if kind is not None:
            where, values = f"{where} AND kind = ?", [*values, kind]
        ids_about: tuple[int, ...] = ()
        if about is not None:
            where, ids_about = f"{where} AND about = ?", (about,)
        with self.record._reading() as db:
            rows = db.execute(
                f"SELECT {sqlite.COLUMNS} FROM entries WHERE {where} ORDER BY id", (*values, *ids_about)
            ).fetchall()
            return entries_of(db, rows)

    def labels(self) -> dict[str, Label]:
        """The labels in force by name, in the order they were set."""
        with self.record._reading() as db:
            return _labels(db, self.name)

    def pins(self, tip: Expected | Literal["tip"] = "tip") -> list[Entry]:
        """The pins on the path that no later unpin on it is about."""
        found: dict[int, Entry] = {}
        for entry in self.path(tip, ("pin", "unpin")):
            if entry.kind == "pin":
                found[entry.id] = entry
            elif entry.about is not None:
                found.pop(entry.about, None)
        return list(found.values())

    def claims(self) -> list[Entry]:
        """What was claimed in this conversation, on whatever branch."""
        return self.sides("claim")

    def running(self) -> list[Entry]:
        """The calls that were started and have neither result nor interruption."""
        with self.record._reading() as db:
            sql = "SELECT entry FROM running WHERE conversation = ? ORDER BY entry"
            return entries_of(db, rows_of(db, [id for (id,) in db.execute(sql, (self.name,))]))

    def boundary(self, entry: Tip = None) -> Tip:
        """The last turn boundary at or before a path entry, by default the tip."""
        with self.record._reading() as db:
            return _boundary(db, _standing(db, self.name).tip if entry is None else entry, self.name)

    def children(self, entry: Tip) -> list[int]:
        """The path entries that follow an entry; of ``None``, the roots."""
        with self.record._reading() as db:
            if entry is None:
                where = "conversation = ? AND turn IS NOT NULL AND parent IS NULL"
                return [id for (id,) in db.execute(f"SELECT id FROM entries WHERE {where} ORDER BY id", (self.name,))]
            return [id for (id,) in db.execute("SELECT id FROM entries WHERE parent = ? ORDER BY id", (entry,))]

    def branches(self) -> list[Branch]:
        """The leaves of the tree, oldest first. None is current while the tip stands inside the tree."""
        with self.record._reading() as db:
            tip = _standing(db, self.name).tip
            sql = (
                "SELECT id, turn FROM entries e WHERE conversation = ? AND turn IS NOT NULL"
                " AND NOT EXISTS (SELECT 1 FROM entries c WHERE c.parent = e.id) ORDER BY id"
            )
            return [Branch(id, turn, id == tip) for id, turn in db.execute(sql, (self.name,))]

    def search(self, text: str, limit: int = 20, offset: int = 0) -> list[Hit]:
        """Turns of this conversation that hold a text: see :meth:`Record.search`."""
        return self.record.search(text, self.name, limit, offset)


def check_name(name: str) -> None:
    """Refuse what cannot name a conversation."""
    if not name or len(name) > _LONGEST_NAME or any(unicodedata.category(char) in ("Cc", "Cs") for char in name):
        cure = f"use 1 to {_LONGEST_NAME} characters, no control characters"
        raise BadInput(f"{name[:50]!r} cannot name a conversation", cure=cure)


def path_ids(db: sqlite3.Connection, tip: Tip, kinds: Sequence[str] | None = None) -> array[int]:
    """The numbers of the entries from the root to ``tip``."""
    if tip is None:
        return array("q")
    # A parent comes before its child; the test keeps a forged file from leading in circles.
    sql = (
        "WITH RECURSIVE up (id, parent, kind) AS (SELECT id, parent, kind FROM entries WHERE id = ?"
        " UNION ALL SELECT e.id, e.parent, e.kind FROM up JOIN entries e ON e.id = up.parent AND e.id < up.id)"
        " SELECT id, parent, kind FROM up"
    )
    last: Tip = tip
    found = array("q")
    for id, parent, kind in db.execute(sql, (tip,)):
        last = parent
        if kinds is None or kind in kinds:
            found.append(id)
    if last is not None:
        raise Damaged("is missing from the path", f"entry {last}", entry=last)
    found.reverse()
    return found


def _standing(db: sqlite3.Connection, name: str) -> Standing:
    row = db.execute("SELECT name, tip, turns FROM conversations WHERE name = ?", (name,)).fetchone()
    return Standing(*row) if row else Standing(name, None, 0)


def settle(db: sqlite3.Connection, standing: Standing) -> None:
    """Write where a conversation is now."""
    if db.execute("SELECT 1 FROM conversations WHERE name = ?", (standing.name,)).fetchone():
        name, tip, turns = standing
        db.execute("UPDATE conversations SET tip = ?, turns = ? WHERE name = ?", (tip, turns, name))
    else:
        db.execute("INSERT INTO conversations (name, tip, turns) VALUES (?, ?, ?)", standing)


def _turn_of(db: sqlite3.Connection, tip: Tip) -> int:
    if tip is None:
        return 0
    row = db.execute("SELECT turn FROM entries WHERE id = ?", (tip,)).fetchone()
    return row[0] if row else 0


def _demand(db: sqlite3.Connection, id: int, name: str) -> tuple[Tip, int]:
    """Parent and open calls of a path entry of the conversation."""
    sql = "SELECT parent, open FROM entries WHERE id = ? AND conversation = ? AND turn IS NOT NULL"
    row: tuple[Tip, int] | None = db.execute(sql, (id, name)).fetchone()
    if row is None:
        raise NoSuchEntry(f"no path entry {id}", name, "name an entry that the log or the tree lists")
    return row


def _boundary(db: sqlite3.Connection, tip: Tip, name: str) -> Tip:
    while tip is not None:
        parent, calls = _demand(db, tip, name)
        if not calls:
            break
        tip = parent
    return tip


def _demand_boundary(db: sqlite3.Connection, tip: Tip, name: str) -> None:
    if (before := _boundary(db, tip, name)) != tip:
        waiting = OpenCalls()
        for entry in entries_of(db, rows_of(db, [id for id in path_ids(db, tip) if before is None or id > before])):
            if entry.message is not None:
                waiting.follow(entry.message)
        calls = tuple(call.id for call in waiting.calls)
        raise TurnOpen(
            f"entry {tip} is no turn boundary: no result yet for call {', '.join(calls)}",
            name,
            f"take {before}, the boundary before",
            calls=calls,
        )


def _sides(db: sqlite3.Connection, name: str, kind: str) -> list[tuple[int, Tip]]:
    sql = "SELECT id, about FROM entries WHERE conversation = ? AND kind = ? AND kind <> 'message' ORDER BY id"
    return db.execute(sql, (name, kind)).fetchall()


def _labels(db: sqlite3.Connection, name: str) -> dict[str, Label]:
    lost = {about for _, about in _sides(db, name, "label_loss")}
    found: dict[str, Label] = {}
    ids = [id for id, _ in _sides(db, name, "label") if id not in lost]
    for entry in entries_of(db, rows_of(db, ids)):
        said = entry.payload["name"]
        found.pop(said, None)
        found[said] = Label(said, entry.about, entry.id, entry.payload.get("moved", False))
    return found


def _copy(writer: Writer, name: str, ids: Sequence[int], number: Mapping[int, int]) -> None:
    rows = rows_of(writer.connection, ids)
    for row, entry in zip(rows, entries_of(writer.connection, rows), strict=True):
        parent = None if entry.parent is None else number[entry.parent]
        about = None if entry.about is None else number.get(entry.about, entry.about)
        found = words(entry.message) if entry.message is not None else ""
        text = renumber(row[-1], number)
        writer.add_packed(name, entry.kind, parent, about, entry.turn, entry.open, b"".join(entry.blobs), text, found)
