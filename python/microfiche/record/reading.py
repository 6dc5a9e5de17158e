"""Rows of a record as entries, each held against its leaf, with the blobs they name."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

from microfiche.errors import Damaged, NoSuchEntry

from . import sqlite
from .entries import Entry, leaf_data, unpack
from .merkle import HASH, leaf_hash

Row = tuple[Any, ...]
"""The columns of :data:`sqlite.COLUMNS`."""


def no_entry(id: int, last: int, where: str) -> NoSuchEntry:
    """The error for an entry that is not there; ``last`` is the newest that is."""
    return NoSuchEntry(f"no entry {id}", where, f"entries go from 1 to {last}" if last else "nothing is written yet")


def nodes_of(db: sqlite3.Connection) -> Callable[[int, int], bytes]:
    """The nodes kept with the entries: see :data:`merkle.NodeAt`."""

    def node(end: int, level: int) -> bytes:
        row = db.execute("SELECT nodes FROM entries WHERE id = ?", (end,)).fetchone()
        found: bytes = row[0][level * HASH : (level + 1) * HASH] if row else b""
        if len(found) != HASH:
            raise Damaged("lacks a node of the tree", f"entry {end}", entry=end)
        return found

    return node


def rows_of(db: sqlite3.Connection, ids: Sequence[int]) -> list[Row]:
    """The rows of these entries, in the order of their numbers; :class:`Damaged` if one is missing."""
    if not ids:
        return []
    least, most = min(ids), max(ids)
    if most - least + 1 == len(ids):
        where, values = "id BETWEEN ? AND ?", [least, most]
    else:
        where, values = f"id IN ({','.join('?' * len(ids))})", list(ids)
    rows = db.execute(f"SELECT {sqlite.COLUMNS} FROM entries WHERE {where} ORDER BY id", values).fetchall()
    if len(rows) != len(ids):
        gone = min(set(ids) - {row[0] for row in rows})
        raise Damaged("is missing", f"entry {gone}", entry=gone)
    return rows


def entries_of(db: sqlite3.Connection, rows: Sequence[Row]) -> list[Entry]:
    """Rows as entries; :class:`Damaged` names the first whose leaf or blobs do not fit."""
    digests = [tuple(row[9][at : at + HASH] for at in range(0, len(row[9]), HASH)) for row in rows]
    blobs = blobs_of(db, list(dict.fromkeys(digest for some in digests for digest in some)))
    out = []
    for row, named in zip(rows, digests, strict=True):
        id, conversation, kind, parent, about, turn, open, when, nodes, joined, text = row
        leaf = nodes[:HASH]
        try:
            data = leaf_data(id, conversation, kind, parent, about, turn, open, when, joined, text)
            if leaf_hash(data) != leaf:
                raise Damaged("does not hold what its leaf says", f"entry {id}", entry=id)
            payload, message = unpack(text, blobs.__getitem__)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as exc:
            raise Damaged(f"cannot be read ({exc!r})", f"entry {id}", entry=id) from None
        out.append(Entry(id, conversation, kind, parent, about, turn, open, when, payload, message, named, leaf))
    return out


def blobs_of(db: sqlite3.Connection, digests: Sequence[bytes]) -> dict[bytes, bytes]:
    """Blobs by their SHA-256, those that are there; :class:`Damaged` if one is not what it was."""
    out: dict[bytes, bytes] = {}
    for at in range(0, len(digests), 500):
        some = digests[at : at + 500]
        sql = f"SELECT digest, size, data FROM blobs WHERE digest IN ({','.join('?' * len(some))})"
        for digest, size, data in db.execute(sql, some):
            try:
                out[digest] = sqlite.whole(data, size, digest)
            except ValueError as exc:
                raise Damaged(f"is not what it was ({exc})", f"blob {digest.hex()}") from None
    return out
