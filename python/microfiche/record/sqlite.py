"""The SQLite file of a record: its tables, the triggers that keep them append-only, opening, faults."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from microfiche.errors import Damaged, Locked, NewerFormat, NotARecord, ReadOnly, RecordError, StorageFailed

APPLICATION_ID = 0x6D666368
"""``mfch``, at byte 68 of the file (https://www.sqlite.org/fileformat.html, 1.3.17)."""

_MAGIC = b"SQLite format 3\0"

FORMAT = 1
"""The format that this version writes, kept as SQLite's ``user_version``."""

COLUMNS = "id, conversation, kind, parent, about, turn, open, time, nodes, blobs, payload"
"""Of ``entries``, in the order of the leaf; ``nodes`` is the leaf and what it completes."""

_TABLES = """
CREATE TABLE entries (
  id INTEGER PRIMARY KEY,
  conversation TEXT NOT NULL,
  kind TEXT NOT NULL,
  parent INTEGER,
  about INTEGER,
  turn INTEGER,
  open INTEGER,
  time INTEGER NOT NULL,
  nodes BLOB NOT NULL,
  blobs BLOB NOT NULL,
  payload TEXT NOT NULL
) STRICT;
CREATE TABLE blobs (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, size INTEGER NOT NULL, crc INTEGER NOT NULL,
  data BLOB NOT NULL) STRICT;
CREATE TABLE heads (size INTEGER PRIMARY KEY, root BLOB NOT NULL, time INTEGER NOT NULL) STRICT;
CREATE TABLE conversations (name TEXT PRIMARY KEY, tip INTEGER, turns INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE running (entry INTEGER PRIMARY KEY, conversation TEXT NOT NULL, call BLOB NOT NULL) STRICT;
CREATE INDEX entries_parent ON entries (parent) WHERE parent IS NOT NULL;
CREATE INDEX entries_about ON entries (about) WHERE about IS NOT NULL;
CREATE INDEX entries_turn ON entries (conversation, turn) WHERE turn IS NOT NULL;
CREATE INDEX entries_kind ON entries (conversation, kind) WHERE kind <> 'message';
CREATE VIRTUAL TABLE search USING fts5 (text, content='', tokenize='unicode61 remove_diacritics 2');
"""

_REFUSE = "SELECT RAISE(ABORT, 'a record is only ever added to')"
_TRIGGERS = [
    f"CREATE TRIGGER {table}_{event.lower()} BEFORE {event} ON {table} BEGIN {_REFUSE}; END;\n"
    for table in ("entries", "blobs", "heads")
    for event in ("UPDATE", "DELETE")
]
# INSERT OR REPLACE deletes without firing a DELETE trigger, but not before this one has fired.
_TRIGGERS += [
    f"CREATE TRIGGER {table}_insert BEFORE INSERT ON {table} WHEN {wrong} BEGIN {_REFUSE}; END;\n"
    for table, wrong in (
        ("entries", "NEW.id IS NOT coalesce((SELECT max(id) FROM entries), 0) + 1"),
        (
            "blobs",
            "NEW.id IS NOT coalesce((SELECT max(id) FROM blobs), 0) + 1"
            " OR EXISTS (SELECT 1 FROM blobs WHERE digest = NEW.digest)",
        ),
        ("heads", "NEW.size <= coalesce((SELECT max(size) FROM heads), 0)"),
        ("conversations", "EXISTS (SELECT 1 FROM conversations WHERE name = NEW.name)"),
    )
]
_TRIGGERS += [
    f"CREATE TRIGGER conversations_delete BEFORE DELETE ON conversations BEGIN {_REFUSE}; END;\n",
    "CREATE TRIGGER conversations_update BEFORE UPDATE ON conversations"
    f" WHEN NEW.name <> OLD.name OR NEW.turns < OLD.turns BEGIN {_REFUSE}; END;\n",
]
SCHEMA = _TABLES + "".join(_TRIGGERS)


def is_database(path: str | Path) -> bool:
    """Whether a file is a database, and so no session."""
    with Path(path).open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


@contextmanager
def faults(where: Path | str) -> Iterator[None]:
    """Tell SQLite's faults as ours."""
    try:
        yield
    except sqlite3.Error as exc:
        raise _told(exc, str(where)) from exc
    except UnicodeDecodeError as exc:  # SQLite quoted a damaged schema in its complaint
        raise Damaged(f"the file is damaged ({exc})", str(where)) from exc


def _told(exc: sqlite3.Error, where: str) -> RecordError:
    code = getattr(exc, "sqlite_errorcode", 0) or 0
    match code & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return Locked("another process is writing", where, "try again, or wait longer")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            return ReadOnly("the record cannot be written", where, "open it with read_only=True, or allow writing")
        case sqlite3.SQLITE_FULL:
            return StorageFailed("the disk is full; nothing of this was written", where, "make room")
        case sqlite3.SQLITE_NOTADB:
            return NotARecord("not a record", where, "name a file that microfiche made")
        case sqlite3.SQLITE_CANTOPEN:
            return StorageFailed("the file or its folder cannot be opened", where, "check the path and its permissions")
        case sqlite3.SQLITE_TOOBIG:
            return StorageFailed("a value is larger than SQLite can hold", where, "keep it in a file, and name that")
        case sqlite3.SQLITE_CORRUPT:
            return Damaged(f"the file is damaged ({exc})", where)
        case sqlite3.SQLITE_IOERR | sqlite3.SQLITE_PROTOCOL | sqlite3.SQLITE_NOLFS:
            return StorageFailed(f"the file system failed ({exc})", where, "check the disk; use a local one")
    if isinstance(exc, sqlite3.OperationalError) and "decode to UTF-8" in str(exc):
        return Damaged("a text is not UTF-8", where)
    return RecordError(f"SQLite refused: {exc}", where)


def connect(path: Path, mode: str, wait: float) -> sqlite3.Connection:
    """A connection in autocommit that waits for others up to ``wait`` seconds.

    ``mode`` is SQLite's: ``rwc``, ``rw``, ``ro`` or ``immutable``.
    """
    query = "mode=ro&immutable=1" if mode == "immutable" else f"mode={mode}"
    uri = path.absolute().as_uri() + "?" + query
    connection = sqlite3.connect(uri, uri=True, timeout=wait, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA cell_size_check = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def open_for_writing(path: Path, create: bool, wait: float) -> sqlite3.Connection:
    """The writer's connection, the tables made if the file is new and ``create`` allows it.

    SQLite refuses at once, whatever the timeout, when two turn on the write-ahead log or recover it together, so that
    the waiting is done here.
    """
    end = time.monotonic() + wait
    while True:
        try:
            return _open_for_writing(path, create, wait)
        except Locked:
            if time.monotonic() >= end:
                raise
            time.sleep(0.005)


def _open_for_writing(path: Path, create: bool, wait: float) -> sqlite3.Connection:
    fresh = not path.exists()
    if fresh and not create:
        raise NotARecord("no such file", str(path), "check the path, or let it be created")
    with faults(path):
        connection = connect(path, "rwc" if create else "rw", wait)
    try:
        with faults(path):
            if _is_blank(connection):
                if not create:
                    raise NotARecord("an empty file", str(path), "check the path, or let it be created")
                _demand_log(connection, path)
                connection.execute("BEGIN IMMEDIATE")
                if _is_blank(connection):
                    for statement in statements():
                        connection.execute(statement)
                    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                    connection.execute(f"PRAGMA user_version = {FORMAT}")
                connection.execute("COMMIT")
            check_format(connection, path)
            _demand_log(connection, path)
            if not os.access(path, os.W_OK):
                raise ReadOnly("the file cannot be written", str(path), "open it with read_only=True, or allow writing")
    except BaseException as exc:
        if fresh and not isinstance(exc, Locked):  # where another process holds it, it is the other's to make
            discard(connection, path)
        connection.close()
        raise
    return connection


def discard(connection: sqlite3.Connection, path: Path) -> None:
    """Remove a record that was just made, if it holds no entry and nobody else has it open; close the connection.

    Whoever has a record open for writing shares a lock on its list of heads.
    """
    beside = Path(f"{path}.heads")
    with suppress(OSError, sqlite3.Error):
        lock = os.open(beside, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _holds_entries(connection, path):
                return
            connection.close()
            for each in (path, Path(f"{path}-wal"), Path(f"{path}-shm"), Path(f"{path}-journal"), beside):
                each.unlink(missing_ok=True)
        finally:
            os.close(lock)


def _holds_entries(connection: sqlite3.Connection, path: Path) -> bool:
    asked = "SELECT 1 FROM entries"
    try:
        return not _is_blank(connection) and connection.execute(asked).fetchone() is not None
    except sqlite3.Error:  # no room for the log's index: then there may be no log, and the file itself tells
        log = Path(f"{path}-wal")
        if log.exists() and log.stat().st_size:
            return True
        with closing(connect(path, "immutable", 0)) as file:
            return not _is_blank(file) and file.execute(asked).fetchone() is not None


def open_for_reading(path: Path, wait: float) -> tuple[sqlite3.Connection, str]:
    """A connection that only reads, and the mode that served: a folder we may not write in needs ``immutable``."""
    if not path.exists():
        raise NotARecord("no such file", str(path), "check the path")
    modes = ["ro"] if Path(f"{path}-wal").exists() else ["ro", "immutable"]
    for mode in modes:
        connection = None
        try:
            with faults(path):
                connection = connect(path, mode, wait)
                check_format(connection, path)
                return connection, mode
        except (StorageFailed, ReadOnly):
            if connection is not None:
                connection.close()
            if mode == modes[-1]:
                raise
        except BaseException:
            if connection is not None:
                connection.close()
            raise
    raise AssertionError("unreachable")


def check_format(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse what is no record, and what is newer than we are."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise NotARecord("a database, but not a record", str(path), "name a file that microfiche made")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if not 0 < version <= FORMAT:
        raise NewerFormat(
            f"the record is of format {version}, this version knows up to {FORMAT}", str(path), "update microfiche"
        )


def _is_blank(connection: sqlite3.Connection) -> bool:
    empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    return bool(empty and connection.execute("PRAGMA application_id").fetchone()[0] == 0)


def _demand_log(connection: sqlite3.Connection, path: Path) -> None:
    if (mode := connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]) != "wal":
        raise StorageFailed(
            f"the file system cannot keep a write-ahead log (journal mode stays {mode})",
            str(path),
            "put the record on a local disk; network file systems lack shared memory",
        )


def statements() -> Iterator[str]:
    """The statements of the schema, one by one."""
    statement = ""
    for line in SCHEMA.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement.strip()
            statement = ""


def schema_of(connection: sqlite3.Connection) -> dict[str, str]:
    """Name -> SQL of every table, index and trigger but the search's own."""
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")
    return {name: sql for name, sql in rows if name != "search" and not name.startswith("search_")}


@cache
def _expected() -> tuple[tuple[str, str], ...]:
    connection = sqlite3.connect(":memory:")
    try:
        for statement in statements():
            connection.execute(statement)
        return tuple(schema_of(connection).items())
    finally:
        connection.close()


def schema_fault(connection: sqlite3.Connection) -> str | None:
    """The first table, index or trigger that is not as this format has it."""
    found, expected = schema_of(connection), dict(_expected())
    for name in sorted(found.keys() | expected.keys()):
        if found.get(name) != expected.get(name):
            return name
    return None


def deflated(data: bytes) -> bytes:
    """The bytes to store: zlib's where that is smaller."""
    packed = zlib.compress(data, 6)
    return packed if len(packed) < len(data) else data


def inflated(data: bytes, size: int) -> bytes:
    """The bytes of a blob of ``size`` bytes; ``ValueError`` if that is not what they make."""
    if len(data) == size:
        return data
    if not len(data) < size < 1 << 40:
        raise ValueError(f"{len(data)} bytes cannot be {size}")
    stream = zlib.decompressobj()
    try:
        out = stream.decompress(data, size + 1)
    except zlib.error as exc:
        raise ValueError(str(exc)) from None
    if len(out) != size or not stream.eof or stream.unused_data:
        raise ValueError(f"{len(out)} bytes instead of {size}")
    return out


def whole(data: bytes, size: int, digest: bytes) -> bytes:
    """The bytes of a blob, held against its SHA-256; ``ValueError`` if they are others."""
    out = inflated(data, size)
    if hashlib.sha256(out).digest() != digest:
        raise ValueError("other bytes")
    return out
