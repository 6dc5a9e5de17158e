"""The record: one SQLite file that is only ever added to, and a list of its heads beside it."""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

from microfiche.errors import Damaged, NoSuchEntry, ReadOnly, RecordError, StorageFailed

from . import sqlite
from .entries import Draft, Entry, words
from .merkle import Frontier, check_growth, check_inclusion, growth_path, inclusion_path
from .reading import blobs_of, entries_of, no_entry, nodes_of, rows_of
from .tree import Standing, Thread
from .verify import Verdict, verify
from .writing import Commit, Writer, follow_calls, searchable

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

_CHUNK = 64
_WORD = re.compile(r"\w+")


class Head(NamedTuple):
    """What a record is known by: how many entries, and the root of the tree over them in hexadecimal."""

    size: int
    root: str


class Hit(NamedTuple):
    """A turn that holds a text, and the newest entry of it that does."""

    conversation: str
    turn: int
    entry: int


@dataclass(frozen=True, slots=True)
class Proof:
    """That an entry stands in the tree of a head: its leaf and at most ⌈log2 size⌉ hashes of 32 bytes."""

    entry: int
    leaf: bytes
    head: Head
    path: tuple[bytes, ...]

    def holds(self, head: Head | tuple[int, str] | None = None) -> bool:
        """Whether the proof is right for ``head``, by default the one it came with."""
        size, root = head if head is not None else self.head
        return check_inclusion(self.leaf, self.entry, size, self.path, bytes.fromhex(root))


@dataclass(frozen=True, slots=True)
class Growth:
    """That the tree of ``new`` begins with the tree of ``old``: nothing was rewritten, only added."""

    old: Head
    new: Head
    path: tuple[bytes, ...]

    @property
    def holds(self) -> bool:
        return check_growth(
            self.old.size, bytes.fromhex(self.old.root), self.new.size, bytes.fromhex(self.new.root), self.path
        )


def _now() -> int:
    return time.time_ns() // 1000


class Record:
    """An append-only log of conversations.

    Threads may share one; every call that writes is one transaction, and readers never wait for it.
    ``path`` is the file, ``read_only`` whether it was opened for reading.
    """

    def __init__(self, path: Path, read_only: bool, wait: float, clock: Callable[[], int]) -> None:
        """Use :meth:`open`."""
        self.path = path
        self.read_only = read_only
        self._wait = wait
        self._clock = clock
        self._writer: sqlite3.Connection | None = None
        self._idle: list[sqlite3.Connection] = []
        self._mode = "ro"
        self._lock = threading.RLock()  # held by a write from beginning to end
        self._pool = threading.Lock()  # held for an instant, so that readers never wait for a writer
        self._frontier: Frontier | None = None
        self._heads_file: int | None = None
        self._heads_unwritten = b""
        self._closed = False
        self._made = False

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        create: bool = True,
        read_only: bool = False,
        *,
        wait: float = 10.0,
        clock: Callable[[], int] = _now,
    ) -> Self:
        """Open the record in a file, made if absent and ``create`` says so.

        ``wait`` is how long, in seconds, a write waits for another process; ``clock`` tells the
        time of commits in microseconds since 1970. A record that no other process has open gets
        an interruption for each call that was started and has no result. As a context manager, a record
        that was made here and holds no entry when an error leaves the block is removed again.

        Raises :class:`NotARecord`, :class:`NewerFormat`, :class:`ReadOnly`, :class:`Locked` or
        :class:`StorageFailed`.
        """
        record = cls(Path(path), read_only, wait, clock)
        try:
            if read_only:
                connection, record._mode = sqlite.open_for_reading(record.path, wait)
                record._idle.append(connection)
            else:
                record._made = not record.path.exists()
                record._writer = sqlite.open_for_writing(record.path, create, wait)
                if record._open_heads_file():
                    record._mend_heads_file()
                    record.note_interruptions()
                record._share_heads_file()
                if not record.path.exists():
                    raise StorageFailed("the file was removed while it was opened", str(record.path), "open it again")
        except BaseException:
            record._discard()
            raise
        return record

    def close(self) -> None:
        """Close the file. A second call does nothing."""
        with self._lock:
            with self._pool:
                self._closed = True
                for connection in (*self._idle, *([self._writer] if self._writer else [])):
                    connection.close()
                self._idle, self._writer = [], None
            if self._heads_file is not None:
                os.close(self._heads_file)
                self._heads_file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is None:
            self.close()
        else:
            self._discard()

    def _discard(self) -> None:
        """Close the file, and remove it if it was made here and nothing was written to it."""
        with self._lock:
            writer, self._writer = self._writer, None
            self.close()
            if writer is not None:
                if self._made:
                    sqlite.discard(writer, self.path)
                writer.close()

    # Reading

    @property
    def head(self) -> Head:
        """The size and root of the record now: what to keep elsewhere."""
        with self._reading() as db:
            row = db.execute("SELECT size, root FROM heads ORDER BY size DESC LIMIT 1").fetchone()
        return Head(row[0], row[1].hex()) if row else Head(0, Frontier().root.hex())

    def heads(self, after: int = 0) -> list[Commit]:
        """The head of every commit that made the record larger than ``after``, oldest first."""
        with self._reading() as db:
            rows = db.execute("SELECT size, root, time FROM heads WHERE size > ? ORDER BY size", (after,)).fetchall()
        return [Commit(size, root.hex(), when) for size, root, when in rows]

    @property
    def heads_path(self) -> Path:
        """The list of heads beside the record: a line ``size root time`` a commit."""
        return Path(f"{self.path}.heads")

    def conversations(self) -> list[Standing]:
        """Every conversation by name: where its tip is and how many turns were numbered."""
        with self._reading() as db:
            return [Standing(*row) for row in db.execute("SELECT name, tip, turns FROM conversations ORDER BY name")]

    def thread(self, name: str) -> Thread:
        """The conversation of that name. It is there from its first entry on."""
        return Thread(self, name)

    def entry(self, id: int) -> Entry:
        """One entry by its number; :class:`NoSuchEntry` if there is none."""
        with self._reading() as db:
            row = db.execute(f"SELECT {sqlite.COLUMNS} FROM entries WHERE id = ?", (id,)).fetchone()
            if row is None:
                (last,) = db.execute("SELECT coalesce(max(id), 0) FROM entries").fetchone()
                raise no_entry(id, last, str(self.path))
            return entries_of(db, [row])[0]

    def entries(
        self, first: int = 1, last: int | None = None, *, conversation: str | None = None, kind: str | None = None
    ) -> Iterator[Entry]:
        """Entries in order of writing, read as they are asked for."""
        where, values = "id BETWEEN ? AND ?", [] if conversation is None else [conversation]
        if conversation is not None:
            where += " AND conversation = ?"
        if kind is not None:
            where += " AND kind = ?"
            values.append(kind)
        last = self.head.size if last is None else last
        while first <= last:
            with self._reading() as db:
                sql = f"SELECT {sqlite.COLUMNS} FROM entries WHERE {where} ORDER BY id LIMIT {_CHUNK}"
                found = entries_of(db, db.execute(sql, (first, last, *values)).fetchall())
            yield from found
            if len(found) < _CHUNK:
                return
            first = found[-1].id + 1

    def blob(self, digest: bytes | str) -> bytes:
        """A blob by its SHA-256 (bytes or hexadecimal); :class:`NoSuchEntry` if there is none."""
        key = bytes.fromhex(digest) if isinstance(digest, str) else digest
        with self._reading() as db:
            found = blobs_of(db, [key])
        if key not in found:
            raise NoSuchEntry(f"no blob {key.hex()}", str(self.path))
        return found[key]

    def search(self, text: str, conversation: str | None = None, limit: int = 20, offset: int = 0) -> list[Hit]:
        """Turns that hold the words of ``text`` one behind the other, newest first; case and accents do not count.

        The last word may be the beginning of one. Words are runs of letters, digits and ``_``.
        """
        found = _WORD.findall(searchable(text))
        if not found:
            return []
        query = '"' + " ".join(found) + '" *'
        where, values = ("", ()) if conversation is None else ("AND e.conversation = ?", (conversation,))
        sql = (
            "SELECT e.conversation, e.turn, max(e.id) FROM search JOIN entries e ON e.id = search.rowid"
            f" WHERE search MATCH ? {where} GROUP BY e.conversation, e.turn ORDER BY 3 DESC LIMIT ? OFFSET ?"
        )
        with self._reading() as db:
            return [Hit(*row) for row in db.execute(sql, (query, *values, limit, offset))]

    # Proving

    def verify(
        self,
        head: Head | tuple[int, str] | str | None = None,
        heads: str | os.PathLike[str] | Iterable[tuple[Any, ...]] | None = None,
        derived: bool = False,
    ) -> Verdict:
        """Whether everything that the record holds is what was written.

        Reads every entry and blob once, recomputes leaves, roots, tips and turn counters, and
        compares the heads with the list beside the record. ``head`` is one kept elsewhere
        (``(size, root)`` or ``"size root"``), ``heads`` a list of such, or the path of a file with a
        line each. ``derived`` also compares the search, the indexes and the running calls with what
        the entries make of them. The verdict is true if sound; else it names the first bad entry.
        """
        beside = self.heads_path.read_bytes() if self.heads_path.exists() else None
        if beside is not None and not beside.endswith(b"\n"):
            # A crash may have torn the last line; opening for writing mends it, reading passes over it.
            whole, _, torn = beside.rstrip(b"\0").rpartition(b"\n")
            if any(_head_line(commit).startswith(torn) for commit in self.heads()[-_CHUNK:]):
                beside = whole + b"\n" if whole else b""
        with self._reading() as db:
            return verify(db, str(self.path), beside, head, heads, derived)

    def proof(self, entry: int, size: int | None = None) -> Proof:
        """That ``entry`` stands in the tree of ``size`` entries, by default the whole."""
        with self._reading() as db:
            head = self._head_at(db, size)
            if not 0 < entry <= head.size:
                raise NoSuchEntry(f"no entry {entry} in a record of {head.size}", str(self.path))
            node = nodes_of(db)
            return Proof(entry, node(entry, 0), head, inclusion_path(entry, head.size, node))

    def growth(self, old: Head | tuple[int, str], size: int | None = None) -> Growth:
        """That the record only added to ``old``; the proof does not hold if it did not."""
        old = Head(*old[:2])
        with self._reading() as db:
            head = self._head_at(db, size)
            if not 0 <= old.size <= head.size:
                raise NoSuchEntry(f"no head of size {old.size} in a record of {head.size}", str(self.path))
            return Growth(old, head, growth_path(old.size, head.size, nodes_of(db)))

    def _head_at(self, db: sqlite3.Connection, size: int | None) -> Head:
        (whole,) = db.execute("SELECT coalesce(max(id), 0) FROM entries").fetchone()
        size = whole if size is None else size
        if not 0 <= size <= whole:
            raise NoSuchEntry(f"no tree of size {size} in a record of {whole}", str(self.path))
        return Head(size, Frontier.restore(size, nodes_of(db)).root.hex())

    # Copies

    def export(self, stream: IO[str]) -> None:
        """Write all of it as lines of JSON: see :mod:`microfiche.record.portable`."""
        from .portable import export

        export(self, stream)

    @classmethod
    def import_(cls, stream: Iterable[str], path: str | os.PathLike[str]) -> Self:
        """Make a record in a new file of what :meth:`export` wrote; entries, blobs and heads are equal to the byte."""
        from .portable import import_

        return import_(cls, stream, Path(path))

    def backup(self, path: str | os.PathLike[str]) -> Head:
        """Copy the record as it is now, while others write, to a new file; gives the head of the copy.

        Nothing is left behind if it fails.
        """
        target = Path(path)
        beside = Path(f"{target}.heads")
        for each in (target, beside):
            if each.exists():
                raise RecordError("the file exists already", str(each), "choose another name")
        try:
            with self._reading() as db, sqlite.faults(target):
                copy = sqlite.connect(target, "rwc", self._wait)
                try:
                    db.backup(copy)
                    rows = copy.execute("SELECT size, root, time FROM heads ORDER BY size").fetchall()
                finally:
                    copy.close()
            lines = (_head_line(Commit(size, root.hex(), when)) for size, root, when in rows)
            try:
                beside.write_bytes(b"".join(lines))
            except OSError as exc:
                what = f"the list of heads cannot be written ({exc.strerror})"
                raise StorageFailed(what, str(beside), "make room, or choose another place") from None
        except BaseException:
            for each in (target, beside, Path(f"{target}-journal")):
                each.unlink(missing_ok=True)
            raise
        return Head(rows[-1][0], rows[-1][1].hex()) if rows else Head(0, Frontier().root.hex())

    # Derived tables

    def rebuild(self) -> None:
        """Make the search, the list of running calls and the indexes anew from the entries."""
        with self._lock, sqlite.faults(self.path):
            db = self._writing()
            db.execute("BEGIN IMMEDIATE")
            try:
                self._derive(db)
                db.execute("REINDEX")
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise

    def _derive(self, db: sqlite3.Connection) -> None:
        db.execute("INSERT INTO search (search) VALUES ('delete-all')")
        db.execute("DELETE FROM running")
        last = 0
        while True:
            sql = f"SELECT {sqlite.COLUMNS} FROM entries WHERE id > ? ORDER BY id LIMIT {_CHUNK}"
            found = entries_of(db, db.execute(sql, (last,)).fetchall())
            for each in found:
                if each.message is not None and (text := words(each.message)):
                    db.execute("INSERT INTO search (rowid, text) VALUES (?, ?)", (each.id, searchable(text)))
                follow_calls(db, each.id, each.conversation, each.kind, each.about, each.payload, each.message)
            if not found:
                return
            last = found[-1].id

    def note_interruptions(self) -> list[Entry]:
        """Write an interruption for every call that was started and has no result.

        :meth:`open` does it when nobody else has the record open. Where the system cannot tell
        (no ``flock``), call it when you know.
        """
        with self._reading() as db:
            if db.execute("SELECT 1 FROM running").fetchone() is None:
                return []
        written = []
        with self._transaction() as writer:
            db = writer.connection
            for id, name in db.execute("SELECT entry, conversation FROM running ORDER BY entry").fetchall():
                started = entries_of(db, rows_of(db, [id]))[0]
                payload = {"call": started.payload["call"], "name": started.payload.get("name", "")}
                written.append(writer.add(Draft("interruption", payload, about=id), name, None, None, None))
        return [self.entry(id) for id in written]

    # Underneath

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._pool:
            if self._closed:
                raise RecordError("the record is closed", str(self.path), "open it again")
            connection = self._idle.pop() if self._idle else None
        with sqlite.faults(self.path):
            if connection is None:
                connection = sqlite.connect(self.path, self._mode, self._wait)
            try:
                yield connection
            finally:
                with self._pool:
                    if self._closed or connection.in_transaction:
                        connection.close()
                    else:
                        self._idle.append(connection)

    def _writing(self) -> sqlite3.Connection:
        if self._closed:
            raise RecordError("the record is closed", str(self.path), "open it again")
        if self._writer is None:
            raise ReadOnly("the record was opened for reading", str(self.path), "open it without read_only")
        return self._writer

    @contextmanager
    def _transaction(self) -> Iterator[Writer]:
        """All or nothing. The head, on disk and beside it, follows when the block ends without an error."""
        with self._lock, sqlite.faults(self.path):
            db = self._writing()
            db.execute("BEGIN IMMEDIATE")
            try:
                frontier, last = self._grown(db)
                writer = Writer(db, frontier, max(self._clock(), last + 1))
                before = frontier.size
                yield writer
                commit = writer.seal() if frontier.size > before else None
                db.execute("COMMIT")
            except BaseException:
                self._frontier = None
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
            self._frontier = frontier
            if commit is not None:
                self._publish(commit)

    def _grown(self, db: sqlite3.Connection) -> tuple[Frontier, int]:
        """The frontier of the record as it is on disk, and the time of its last commit."""
        (size,) = db.execute("SELECT coalesce(max(id), 0) FROM entries").fetchone()
        head = db.execute("SELECT size, root, time FROM heads ORDER BY size DESC LIMIT 1").fetchone()
        known, root, last = head or (0, Frontier().root, 0)
        frontier = self._frontier
        if frontier is None or frontier.size != size or frontier.root != root:
            frontier = Frontier.restore(size, nodes_of(db))
        if known != size or frontier.root != root:
            raise Damaged(f"the head of size {known} is not that of its {size} entries", str(self.path))
        return frontier, last

    # The list of heads beside the record

    def _open_heads_file(self) -> bool:
        """Open it; whether nobody else has the record open for writing."""
        try:
            self._heads_file = os.open(self.heads_path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as exc:
            raise ReadOnly(f"the list of heads cannot be written ({exc.strerror})", str(self.heads_path)) from None
        if fcntl is None:
            return False
        try:
            fcntl.flock(self._heads_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def _share_heads_file(self) -> None:
        # Held for as long as the record is open: it is how others know that our calls may still be running.
        if fcntl is not None and self._heads_file is not None:
            with suppress(OSError):
                fcntl.flock(self._heads_file, fcntl.LOCK_SH)

    def _mend_heads_file(self) -> None:
        """Add the lines that a crash kept from being written; finish a torn one."""
        assert self._heads_file is not None
        size = os.fstat(self._heads_file).st_size
        start = max(0, size - 4096)
        os.lseek(self._heads_file, start, os.SEEK_SET)
        tail = os.read(self._heads_file, 4096)
        if (kept := tail.rstrip(b"\0")) != tail:  # a file system that grew the file and lost the bytes
            os.ftruncate(self._heads_file, start + len(kept))
            tail = kept
        whole, _, torn = tail.rpartition(b"\n")
        listed = [int(line.split(b" ")[0]) for line in whole.split(b"\n")[bool(start) :] if line[:1].isdigit()]
        lines = [_head_line(commit) for commit in self.heads(after=max(listed, default=0))]
        if lines and torn and lines[0].startswith(torn):
            lines[0] = lines[0][len(torn) :]
        self._heads_unwritten = b"".join(lines)
        self._write_heads()

    def _publish(self, commit: Commit) -> None:
        self._heads_unwritten += _head_line(commit)
        self._write_heads()

    def _write_heads(self) -> None:
        # The commit stands whatever happens here, so a full disk must not make it look as if it did not.
        if self._heads_file is not None and self._heads_unwritten:
            with suppress(OSError):
                written = os.write(self._heads_file, self._heads_unwritten)
                self._heads_unwritten = self._heads_unwritten[written:]


def _head_line(commit: Commit) -> bytes:
    return f"{commit.size} {commit.root} {commit.time}\n".encode("ascii")
