"""A record as lines of JSON, and back.

The first line says what it is and names the head; then, in the order of the record, come a line for
each blob before the entry that first mentions it, a line for each entry with every column, and a
line for each head behind the last entry of its commit::

    {"microfiche":"record","format":1,"size":3,"root":"…"}
    {"blob":"<SHA-256>","text":"…"}          or "data", base64, where the bytes are no UTF-8
    {"entry":1,"conversation":"…","kind":"message","parent":null,…,"payload":{…},"blobs":[…],"leaf":"…"}
    {"head":3,"root":"…","time":1796066066313142}

Numbers, payloads, leaves, blobs and heads come back equal; only how SQLite lays them out may differ.
"""

from __future__ import annotations

import base64
import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from microfiche.errors import BadInput, Damaged, NewerFormat, RecordError

from . import sqlite
from .merkle import HASH, Frontier
from .reading import blobs_of, entries_of
from .tree import settle
from .verify import standings
from .writing import Commit, Writer

if TYPE_CHECKING:
    from .record import Record

_R = TypeVar("_R", bound="Record")

_COLUMNS = ("conversation", "kind", "parent", "about", "turn", "open", "time")


def export(record: Record, stream: IO[str]) -> None:
    """Write a record, as it is at the beginning of the call, to a text stream: ASCII, one object a line."""
    heads = record.heads()
    head = heads[-1] if heads else record.head
    commits = iter(heads)
    first = {"microfiche": "record", "format": sqlite.FORMAT, "size": head.size, "root": head.root}
    stream.write(json.dumps(first, separators=(",", ":")) + "\n")
    commit = next(commits, None)
    told: set[bytes] = set()
    last = 0
    while last < head.size:
        with record._reading() as db:
            rows = db.execute(
                f"SELECT {sqlite.COLUMNS} FROM entries WHERE id > ? AND id <= ? ORDER BY id LIMIT 64", (last, head.size)
            ).fetchall()
            entries_of(db, rows)  # a damaged entry is not passed on
            named = [digest for row in rows for digest in _split(row[9])]
            blobs = blobs_of(db, [digest for digest in dict.fromkeys(named) if digest not in told])
        for row in rows:
            for digest in _split(row[9]):
                if digest not in told:
                    told.add(digest)
                    stream.write(_blob_line(digest, blobs.pop(digest)))
            stream.write(_entry_line(row))
            last = row[0]
            if commit is not None and commit.size == last:
                line = {"head": commit.size, "root": commit.root, "time": commit.time}
                stream.write(json.dumps(line, separators=(",", ":")) + "\n")
                commit = next(commits, None)


def _split(joined: bytes) -> Iterator[bytes]:
    for at in range(0, len(joined), HASH):
        yield joined[at : at + HASH]


def _blob_line(digest: bytes, data: bytes) -> str:
    line: dict[str, str] = {"blob": digest.hex()}
    try:
        line["text"] = data.decode("utf-8")
    except UnicodeDecodeError:
        line["data"] = base64.b64encode(data).decode("ascii")
    return json.dumps(line, separators=(",", ":")) + "\n"


def _entry_line(row: tuple[Any, ...]) -> str:
    id, *columns, nodes, blobs, payload = row
    line = {"entry": id, **dict(zip(_COLUMNS, columns, strict=True))}
    line |= {"blobs": [digest.hex() for digest in _split(blobs)], "leaf": nodes[:HASH].hex()}
    # The payload is spliced in as it stands: it is compact JSON in ASCII already.
    return json.dumps(line, separators=(",", ":"))[:-1] + f',"payload":{payload}}}\n'


_NOT_OURS = (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError)


def import_(kind: type[_R], stream: Iterable[str], path: Path) -> _R:
    """Make a record in a new file; :class:`BadInput` names the line that is not what its hashes say.

    Nothing is left behind if it fails.
    """
    for each in (path, Path(f"{path}.heads")):
        if each.exists():
            raise RecordError("the file exists already", str(each), "choose another name")
    record = kind.open(path)
    try:
        with record._lock, sqlite.faults(path):
            _fill(record, stream)
        record._mend_heads_file()
        record.note_interruptions()
    except BaseException:
        record.close()
        for each in (path, Path(f"{path}.heads"), Path(f"{path}-wal"), Path(f"{path}-shm")):
            each.unlink(missing_ok=True)
        raise
    return record


def _fill(record: Record, stream: Iterable[str]) -> None:
    db = record._writing()
    db.execute("BEGIN IMMEDIATE")
    try:
        frontier = Frontier()
        writer = Writer(db, frontier, 0)
        first: tuple[int, str] | None = None
        number = 0
        for number, line in enumerate(stream, 1):
            where = f"line {number}"
            try:
                value = json.loads(line)
                if first is None:
                    first = _first(value, where)
                else:
                    _take(writer, value)
            except sqlite3.OperationalError:  # of the disk, not of the line
                raise
            except (*_NOT_OURS, sqlite3.Error) as exc:
                raise BadInput(f"not what an export wrote ({exc})", where, "export again") from None
        writer.flush()
        if first != (frontier.size, frontier.root.hex()):
            raise BadInput("ends before the head that the first line names", f"line {number}", "export again")
        try:
            for standing in standings(db, str(record.path)):
                settle(db, standing)
        except Damaged as exc:
            raise BadInput(exc.what, exc.where, "export again") from None
        record._derive(db)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # not where SQLite rolled back by itself, as on a full disk
            db.execute("ROLLBACK")
        raise


def _first(value: dict[str, Any], where: str) -> tuple[int, str]:
    if value.get("microfiche") != "record":
        raise ValueError("the first line does not say that it is a record")
    if value["format"] > sqlite.FORMAT:
        raise NewerFormat(f"an export of format {value['format']}", where, "update microfiche")
    return value["size"], value["root"]


def _take(writer: Writer, value: dict[str, Any]) -> None:
    if "blob" in value:
        data = value["text"].encode() if "text" in value else base64.b64decode(value["data"], validate=True)
        if hashlib.sha256(data).hexdigest() != value["blob"]:
            raise ValueError("the blob has another SHA-256")
        writer.packer.blobs[bytes.fromhex(value["blob"])] = data
    elif "entry" in value:
        if value["entry"] != writer.next:
            raise ValueError(f"entry {writer.next} should follow")
        *columns, writer.time = (value[column] for column in _COLUMNS)
        payload = json.dumps(value["payload"], separators=(",", ":"), allow_nan=False)
        blobs = b"".join(bytes.fromhex(digest) for digest in value["blobs"])
        name, kind, parent, about, turn, open = columns
        if writer.add_packed(name, kind, parent, about, turn, open, blobs, payload, "").hex() != value["leaf"]:
            raise ValueError("the entry is not what its leaf says")
        if writer.frontier.size % 256 == 0:
            writer.flush()
    else:
        commit = Commit(value["head"], value["root"], value["time"])
        writer.time = commit.time
        if writer.seal() != commit:
            raise ValueError("the head is not that of the entries before it")
