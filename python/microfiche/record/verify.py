"""Whether a record holds what was written: one reading of every entry and blob, everything recomputed."""

from __future__ import annotations

import os
import re
import secrets
import sqlite3
import zlib
from array import array
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from microfiche.errors import BadInput, Damaged
from microfiche.messages import Message

from . import sqlite
from .entries import PATH_KINDS, SIDE_KINDS, leaf_data, unpack, words
from .merkle import EMPTY, HASH, Frontier, leaf_hash
from .tree import Standing, check_name
from .writing import follow_calls, searchable

_INT, _MAYBE = (int,), (int, type(None))
_TYPES = (_INT, (str,), (str,), _MAYBE, _MAYBE, _MAYBE, _MAYBE, _INT, (bytes,), (bytes,), (str,))
_SEGMENT = 64 << 20
"""Bytes of memory for a search made to compare with."""
_FREQUENT = 64
"""Places of a word from which they are compared by their sum."""
_HEAD = re.compile(r"(\d{1,18}) ([0-9a-f]{64})(?: (\d{1,18}))?")


@dataclass(frozen=True, slots=True)
class Verdict:
    """True if the record is sound.

    Otherwise ``entry`` is the first bad entry (``None`` if no single entry can be named), ``where``
    the place in words, ``reason`` what is wrong with it. ``size`` and ``root`` (hexadecimal) are of
    what was read; ``heads`` counts the heads from outside the file that were held against it, those of the list
    beside the record among them, and ``kept`` those that the caller gave: only these are evidence against
    somebody who can write the list too.
    """

    sound: bool
    size: int
    root: str
    heads: int = 0
    entry: int | None = None
    where: str = ""
    reason: str = ""
    kept: int = 0

    def __bool__(self) -> bool:
        return self.sound

    @property
    def against(self) -> str:
        """What the record was held against, in words."""
        return held_against(self.heads, self.kept)


def held_against(heads: int, kept: int) -> str:
    """What a record was held against that fits so many heads, of which so many were kept elsewhere."""
    elsewhere = f"{kept:,} kept elsewhere"
    if heads == kept:
        return f"{elsewhere} {'fits' if kept == 1 else 'fit'}" if kept else "no head was there to hold it against"
    beside = heads - kept
    fit = "the head of the list beside it fits" if beside == 1 else f"the {beside:,} heads of the list beside it fit"
    return f"{fit}, and {elsewhere}" if kept else f"{fit}, none kept elsewhere was given"


class Seen(NamedTuple):
    """A head that was seen outside the file: in the list beside it, or wherever a user kept it."""

    size: int
    root: str
    time: int | None
    source: str


class _Bad(Exception):
    def __init__(self, reason: str, where: str, entry: int | None = None) -> None:
        self.reason, self.where, self.entry = reason, where, entry


def _span(first: int, last: int) -> str:
    return f"entry {last}" if first == last else f"entries {first}..{last}"


def parse_heads(text: bytes, source: str) -> list[Seen]:
    """The lines ``size root [time]`` of a list of heads; :class:`BadInput` names the first that is none."""
    out = []
    for number, line in enumerate(text.split(b"\n"), 1):
        if not line and number > text.count(b"\n"):
            break
        match = _HEAD.fullmatch(line.decode("latin-1"))
        if match is None:
            raise BadInput("not 'size root time'", f"{source}, line {number}", "restore the list from a copy")
        out.append(Seen(int(match[1]), match[2], int(match[3]) if match[3] else None, f"{source}, line {number}"))
    return out


def _given(
    head: tuple[int, str] | str | None, heads: str | os.PathLike[str] | Iterable[tuple[Any, ...]] | None
) -> list[Seen]:
    """The heads of a caller; a fault in them is the caller's, not the record's."""
    out = []
    if isinstance(head, str):
        out += parse_heads(head.strip().encode(), "the head given")
    elif head is not None:
        out.append(Seen(int(head[0]), str(head[1]).lower(), None, "the head given"))
    if isinstance(heads, str | os.PathLike):
        out += parse_heads(Path(heads).read_bytes(), str(heads))
    elif heads is not None:
        for at, (size, root, *time) in enumerate(heads, 1):
            out.append(Seen(int(size), str(root).lower(), int(time[0]) if time else None, f"head {at} of those given"))
    return out


def verify(
    db: sqlite3.Connection,
    path: str,
    beside: bytes | None,
    head: tuple[int, str] | str | None,
    heads: str | os.PathLike[str] | Iterable[tuple[Any, ...]] | None,
    derived: bool,
) -> Verdict:
    """See :meth:`Record.verify`; ``beside`` is the list of heads beside the record, if there is one."""
    given = _given(head, heads)
    walk = _Walk(db, path)
    torn: _Bad | None = None
    listed: list[Seen] = []
    if beside is not None:
        try:
            listed = parse_heads(beside, f"{path}.heads")
        except BadInput as exc:
            torn = _Bad(f"a line of the list of heads is {exc.what}", exc.where)
    seen = [*listed, *given]
    db.execute("BEGIN")
    try:
        try:
            walk.entries(seen)
            if torn is not None:
                raise torn
            walk.conversations()
            if (name := sqlite.schema_fault(db)) is not None:
                raise _Bad("its definition was changed, added or removed", f"schema, {name}")
            if derived:
                _derived(db)
        except (sqlite3.DatabaseError, UnicodeDecodeError) as exc:
            # SQLite gives up inside the row that it cannot read.
            at = walk.frontier.size + 1
            raise _Bad(f"SQLite cannot read it ({exc})", f"near entry {at}", None if walk.done else at) from None
    except _Bad as bad:
        told = bad.entry, bad.where, bad.reason
        return Verdict(False, walk.frontier.size, walk.frontier.root.hex(), len(seen), *told, len(given))
    finally:
        with suppress(sqlite3.Error):  # SQLite has rolled back by itself where it could not read on
            db.execute("ROLLBACK")
    return Verdict(True, walk.frontier.size, walk.frontier.root.hex(), len(seen), kept=len(given))


@dataclass(slots=True)
class _Conversation:
    """What the entries read so far make of a conversation."""

    index: int
    tip: int | None = None
    turns: int = 0
    copies: int = 0


@dataclass
class _Walk:
    """One reading of the record in order."""

    db: sqlite3.Connection
    path: str
    frontier: Frontier = field(default_factory=Frontier)
    known: dict[str, _Conversation] = field(default_factory=dict)
    done: bool = False

    def entries(self, seen: Iterable[Seen]) -> None:
        outside: dict[int, list[Seen]] = {}
        for each in seen:
            outside.setdefault(each.size, []).append(each)
        blobs = _Blobs(self.db)
        commits = self.db.execute("SELECT size, root, time FROM heads NOT INDEXED ORDER BY size")
        commit = commits.fetchone()
        frontier, known = self.frontier, self.known
        owners, turns, opens = array("i", [-1]), array("q", [0]), array("q", [0])
        types: set[tuple[type, ...]] = set()
        fits = 0  # the size of the last head that fits
        commit_time = -1 << 63
        agreed = 0  # the size of the last head from outside that fits
        for each in outside.get(0, ()):
            self._hold(each, EMPTY.hex(), None, 0)
        for row in self.db.execute(f"SELECT {sqlite.COLUMNS} FROM entries NOT INDEXED ORDER BY id"):
            id, name, kind, parent, about, turn, open, time, nodes, named, payload = row
            number = frontier.size + 1
            where = f"entry {number}"
            if id != number:
                reason = f"is missing: entry {id} follows" if id > number else f"entry {id} stands out of order"
                raise _Bad(reason, where, number)
            shape = tuple(map(type, row))
            if shape not in types:
                if not all(found in allowed for found, allowed in zip(shape, _TYPES, strict=True)):
                    raise _Bad("a column holds a value of another type", where, id)
                types.add(shape)
            leaf = leaf_hash(leaf_data(id, name, kind, parent, about, turn, open, time, named, payload))
            if leaf != nodes[:HASH]:
                raise _Bad("its columns, payload or blobs are not what its leaf says", where, id)
            if frontier.push(leaf) != nodes:
                raise _Bad("the nodes of the tree that it completes are not what they were", where, id)
            if named:
                blobs.follow(named, where, id)
            if (talk := known.get(name)) is None:
                try:
                    check_name(name)
                except BadInput as exc:
                    raise _Bad(exc.what, where, id) from None
                talk = known[name] = _Conversation(len(known))
            if about is not None and not 0 < about < id:
                raise _Bad(f"it is about entry {about}, which is not before it", where, id)
            if kind in PATH_KINDS:
                before = 0
                if turn is None or open is None:
                    raise _Bad(f"a {kind} without turn or count of open calls", where, id)
                if parent is not None:
                    if not 0 < parent < id or owners[parent] != talk.index:
                        raise _Bad(f"its parent {parent} is no path entry before it in its conversation", where, id)
                    before = turns[parent]
                if parent != talk.tip:
                    raise _Bad(f"its parent is {parent}, where the tip was {talk.tip}", where, id)
                if talk.copies:
                    talk.copies -= 1
                    right = before <= turn <= talk.turns
                else:
                    right = turn in (before, talk.turns + 1)
                    talk.turns = max(talk.turns, turn)
                if not right:
                    raise _Bad(f"turn {turn} cannot follow turn {before}", where, id)
                talk.tip = id
                owners.append(talk.index)
                turns.append(turn)
                opens.append(open)
            elif kind in SIDE_KINDS:
                if not parent is turn is open is None:
                    raise _Bad(f"a {kind} cannot stand on a path", where, id)
                if kind in ("move", "label"):
                    if about is not None and (owners[about] != talk.index or opens[about]):
                        raise _Bad(f"a {kind} to entry {about}, no turn boundary of its conversation", where, id)
                    if kind == "move":
                        talk.tip = about
                elif kind == "fork":
                    self._fork(talk, payload, where, id)
                owners.append(-1)
                turns.append(0)
                opens.append(0)
            else:
                raise _Bad(f"an unknown kind {kind!r}", where, id)
            if fits == number - 1:
                if time <= commit_time:
                    raise _Bad("its time is not after that of the commit before", where, id)
                commit_time = time
            elif time != commit_time:
                raise _Bad("its time is not that of its commit", where, id)
            ends = commit is not None and commit[0] <= id
            if ends or id in outside:
                root = frontier.root
                if ends:
                    if commit[0] != id:
                        raise _Bad("stands out of order", f"the head of size {commit[0]}", id)
                    if commit[1] != root:
                        raise _Bad(f"the head of size {id} does not fit its entries", _span(fits + 1, id), fits + 1)
                    if commit[2] != time:
                        raise _Bad("its time is not that of its last entry", f"the head of size {id}", id)
                    fits = id
                for each in outside.get(id, ()):
                    self._hold(each, root.hex(), time if ends else None, agreed)
                    if not ends and each.time is not None:
                        raise _Bad(f"no commit ended at entry {id}", each.source, id)
                agreed = id if id in outside else agreed
                if ends:
                    commit = commits.fetchone()
        self.done = True
        size = frontier.size
        blobs.end()
        if commit is not None:
            raise _Bad(f"cut off: a head of size {commit[0]} was written", f"entry {size + 1}", size + 1)
        if fits != size:
            raise _Bad("no head was written over them", _span(fits + 1, size), fits + 1)
        for beyond in sorted(outside):
            if beyond > size:
                raise _Bad(f"cut off: {outside[beyond][0].source} is of size {beyond}", f"entry {size + 1}", size + 1)

    def _hold(self, seen: Seen, root: str, time: int | None, agreed: int) -> None:
        if seen.root != root:
            first, last = agreed + 1, seen.size
            sure = first if agreed or first == last else None
            raise _Bad(f"rewritten, or not the record of {seen.source}", _span(first, last), sure)
        if time is not None and seen.time is not None and seen.time != time:
            raise _Bad("its time is not that of the commit", seen.source, seen.size)

    @staticmethod
    def _fork(talk: _Conversation, payload: str, where: str, id: int) -> None:
        try:
            said, _ = unpack(payload, lambda _: b"")
            talk.copies, talk.turns = said["entries"], said["turns"]
            if not all(type(count) is int and count >= 0 for count in (talk.copies, talk.turns)):
                raise ValueError("counts nothing")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise _Bad("a fork note that cannot be read", where, id) from None

    def conversations(self) -> None:
        found = {row[0]: row[1:] for row in self.db.execute("SELECT name, tip, turns FROM conversations NOT INDEXED")}
        for name in [*self.known, *sorted(found.keys() - self.known.keys(), key=repr)]:
            talk, row = self.known.get(name), found.get(name)
            where = f"conversation {name!r}"
            if talk is None:
                raise _Bad("no entry belongs to it", where)
            if row is None:
                raise _Bad("its row is missing", where, talk.tip)
            if row[0] != talk.tip or type(row[0]) is not type(talk.tip):
                raise _Bad(f"its tip is {row[0]!r}, where the entries say {talk.tip}", where, talk.tip)
            if row[1] != talk.turns or type(row[1]) is not int:
                raise _Bad(f"its turn counter is {row[1]!r}, where the entries say {talk.turns}", where, talk.tip)


def standings(db: sqlite3.Connection, path: str) -> list[Standing]:
    """Where the entries put every conversation; :class:`Damaged` if they are not sound."""
    walk = _Walk(db, path)
    try:
        walk.entries(())
    except _Bad as bad:
        raise Damaged(bad.reason, bad.where, entry=bad.entry) from None
    return [Standing(name, talk.tip, talk.turns) for name, talk in walk.known.items()]


class _Blobs:
    """The blobs in the order of first mention: each must be the next that the entries name."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.rows = db.execute("SELECT id, digest, size, crc, data FROM blobs NOT INDEXED ORDER BY id")
        self.seen: set[bytes] = set()

    def follow(self, named: bytes, where: str, entry: int) -> None:
        for at in range(0, len(named), HASH):
            digest = named[at : at + HASH]
            if digest in self.seen:
                continue
            row = self.rows.fetchone()
            if row is None or row[0] != len(self.seen) + 1 or row[1] != digest:
                raise _Bad(f"blob {digest.hex()} is missing or out of order", where, entry)
            try:
                _, _, size, crc, data = row
                if zlib.crc32(data) != crc:
                    raise ValueError("its stored bytes were changed")
                sqlite.whole(data, size, digest)
            except (ValueError, TypeError) as exc:
                raise _Bad(f"blob {digest.hex()} is not what it was ({exc})", where, entry) from None
            self.seen.add(digest)

    def end(self) -> None:
        if (row := self.rows.fetchone()) is not None:
            raise _Bad("no entry names it", f"blob {row[0]}")


def _derived(db: sqlite3.Connection) -> None:
    """Hold the search, the running calls and the indexes against what the entries make of them."""
    for (line,) in db.execute("PRAGMA integrity_check(1)"):
        if line != "ok":
            raise _Bad(line, "SQLite's check of tables and indexes")
    fresh = sqlite3.connect(":memory:", isolation_level=None)
    try:
        for statement in sqlite.statements():
            if statement.startswith(("CREATE TABLE running", "CREATE VIRTUAL TABLE search")):
                fresh.execute(statement)
        # One segment of the search for all, as far as memory may go, and none merged: it is read once.
        fresh.execute("INSERT INTO search (search, rank) VALUES ('automerge', 0)")
        fresh.execute("INSERT INTO search (search, rank) VALUES ('hashsize', ?)", (_SEGMENT,))
        fresh.execute("BEGIN")
        for id, name, kind, about, said, message in _told(db):
            follow_calls(fresh, id, name, kind, about, said, message)
            if message is not None and (found := words(message)):
                fresh.execute("INSERT INTO search (rowid, text) VALUES (?, ?)", (id, searchable(found)))
        fresh.execute("COMMIT")
        for what, sql in (
            ("running", "SELECT entry, conversation, call FROM running ORDER BY entry"),
            ("search", "SELECT id, sz FROM search_docsize ORDER BY id"),
        ):
            if db.execute(sql).fetchall() != fresh.execute(sql).fetchall():
                raise _Bad("is not what the entries make of it; rebuild makes it anew", f"table {what}")
        if not _same_search(db, fresh):
            raise _Bad("is not what the entries make of it; rebuild makes it anew", "table search")
    except Damaged as exc:
        raise _Bad(exc.what, exc.where, exc.entry) from None
    finally:
        fresh.close()


def _told(db: sqlite3.Connection) -> Iterator[tuple[int, str, str, int | None, dict[str, Any], Message | None]]:
    """Entries that were held against their leaves before, without native objects."""
    kept: dict[bytes, bytes] = {}

    def blob(digest: bytes) -> bytes:
        if (found := kept.get(digest)) is None:
            size, data = db.execute("SELECT size, data FROM blobs WHERE digest = ?", (digest,)).fetchone()
            if len(kept) > 256:
                kept.clear()
            found = kept[digest] = sqlite.inflated(data, size)
        return found

    for row in db.execute("SELECT id, conversation, kind, about, payload FROM entries NOT INDEXED ORDER BY id"):
        try:
            yield *row[:4], *unpack(row[4], blob, native=False)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as exc:
            raise _Bad(f"cannot be read ({exc!r})", f"entry {row[0]}", row[0]) from None


def _same_search(one: sqlite3.Connection, other: sqlite3.Connection) -> bool:
    """Whether two searches hold the same words at the same places.

    Places of rare words are compared one by one, those of frequent ones by a sum that nobody can aim at: its
    factors are drawn anew each time.
    """
    draw = secrets.SystemRandom()
    a, b = draw.randrange(1 << 20, 1 << 30), draw.randrange(1 << 20, 1 << 30)
    place = f'((doc * {a} + "offset" * {b}) % 2147483647)'
    frequent = f"SELECT count(*), sum({place} * {place} % 2147483629) FROM temp.places WHERE term = ?"
    rare = 'SELECT term, doc, col, "offset" FROM temp.places WHERE term >= ? AND term <= ?'
    both = (one, other)
    try:
        for db in both:
            db.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab(main, search, row)")
            db.execute("CREATE VIRTUAL TABLE temp.places USING fts5vocab(main, search, instance)")
        counts = [db.execute("SELECT term, doc, cnt FROM temp.words") for db in both]
        first, last, gathered = "", "", 0

        def run_differs() -> bool:
            if not gathered:
                return False
            mine, theirs = (db.execute(rare, (first, last)) for db in both)
            return any(x != y for x, y in zip_longest(mine, theirs))

        for mine, theirs in zip_longest(*counts):
            if mine != theirs:
                return False
            term, _, count = mine
            if count >= _FREQUENT:
                if run_differs():
                    return False
                gathered = 0
                if one.execute(frequent, (term,)).fetchall() != other.execute(frequent, (term,)).fetchall():
                    return False
                continue
            first, last, gathered = term if not gathered else first, term, gathered + count
        return not run_differs()
    finally:
        for db in both:
            for name in ("words", "places"):
                with suppress(sqlite3.Error):
                    db.execute(f"DROP TABLE IF EXISTS temp.{name}")
