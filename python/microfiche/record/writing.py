"""One transaction of a record: entries added in order, the tables that follow from them, the head over all."""

from __future__ import annotations

import re
import sqlite3
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from microfiche.errors import NoSuchEntry
from microfiche.messages import Message

from . import sqlite
from .entries import Draft, Packer, leaf_data, words
from .merkle import Frontier, leaf_hash

# Scripts written without spaces: each character is made a word of its own, so that any part of a text is found.
_SPACELESS = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff])"
)
_UNWRITABLE = re.compile("[\ud800-\udfff\0]")


class Commit(NamedTuple):
    """A head and the time of its commit, in microseconds since 1970."""

    size: int
    root: str
    time: int


class Writer:
    """One transaction. Entries are added to it in order; they are written when it ends without an error."""

    def __init__(self, connection: sqlite3.Connection, frontier: Frontier, time: int) -> None:
        self.connection = connection
        self.frontier = frontier
        self.time = time
        self.packer = Packer(self.number_of)
        self._numbers: dict[Draft, int] = {}
        self._rows: list[tuple[Any, ...]] = []
        self._words: list[tuple[int, str]] = []

    @property
    def next(self) -> int:
        """The number of the entry that is added next."""
        return self.frontier.size + 1

    def number_of(self, draft: Draft) -> int:
        if draft not in self._numbers:
            raise NoSuchEntry(f"a reference to a {draft.kind} that is not written yet", cure="write it before")
        return self._numbers[draft]

    def add(
        self,
        draft: Draft,
        conversation: str,
        parent: int | None,
        turn: int | None,
        open: int | None,
        more: Mapping[str, Any] | None = None,
    ) -> int:
        """Add an entry, its payload joined by ``more``; gives its number."""
        payload = {**draft.payload, **more} if more else draft.payload
        text, blobs = self.packer.pack(payload, draft.message)
        about = self.number_of(draft.about) if isinstance(draft.about, Draft) else draft.about
        found = words(draft.message) if draft.message is not None else ""
        id = self._numbers[draft] = self.next
        follow_calls(self.connection, id, conversation, draft.kind, about, payload, draft.message)
        self.add_packed(conversation, draft.kind, parent, about, turn, open, blobs, text, found)
        return id

    def add_packed(
        self,
        conversation: str,
        kind: str,
        parent: int | None,
        about: int | None,
        turn: int | None,
        open: int | None,
        blobs: bytes,
        payload: str,
        found: str,
    ) -> bytes:
        """Add an entry whose payload is text and whose blobs are stored or in ``packer.blobs``; gives its leaf."""
        id = self.next
        leaf = leaf_hash(leaf_data(id, conversation, kind, parent, about, turn, open, self.time, blobs, payload))
        nodes = self.frontier.push(leaf)
        self._rows.append((id, conversation, kind, parent, about, turn, open, self.time, nodes, blobs, payload))
        if found:
            self._words.append((id, searchable(found)))
        return leaf

    def flush(self) -> None:
        """Write what was added, without a head."""
        store_blobs(self.connection, self.packer.blobs)
        self.packer.blobs.clear()
        slots = ",".join("?" * 11)
        self.connection.executemany(f"INSERT INTO entries ({sqlite.COLUMNS}) VALUES ({slots})", self._rows)
        if self._words:
            self.connection.executemany("INSERT INTO search (rowid, text) VALUES (?, ?)", self._words)
        self._rows, self._words = [], []

    def seal(self) -> Commit:
        """Write everything and the head over it."""
        self.flush()
        commit = Commit(self.frontier.size, self.frontier.root.hex(), self.time)
        add_head(self.connection, commit)
        return commit


def store_blobs(connection: sqlite3.Connection, blobs: Mapping[bytes, bytes]) -> None:
    """Store the blobs that are not stored yet, numbered in the order of first mention."""
    if not blobs:
        return
    (last,) = connection.execute("SELECT coalesce(max(id), 0) FROM blobs").fetchone()
    for digest, data in blobs.items():
        if connection.execute("SELECT 1 FROM blobs WHERE digest = ?", (digest,)).fetchone() is None:
            last += 1
            kept = sqlite.deflated(data)
            row = (last, digest, len(data), zlib.crc32(kept), kept)
            connection.execute("INSERT INTO blobs (id, digest, size, crc, data) VALUES (?, ?, ?, ?, ?)", row)


def add_head(connection: sqlite3.Connection, commit: Commit) -> None:
    row = (commit.size, bytes.fromhex(commit.root), commit.time)
    connection.execute("INSERT INTO heads (size, root, time) VALUES (?, ?, ?)", row)


def follow_calls(
    db: sqlite3.Connection,
    id: int,
    conversation: str,
    kind: str,
    about: int | None,
    payload: Mapping[str, Any],
    message: Message | None,
) -> None:
    """Keep the list of calls that run in step with an entry: started ones come, answered and interrupted ones go."""
    if kind == "started":
        row = (id, conversation, _bytes(payload["call"]))
        db.execute("INSERT INTO running (entry, conversation, call) VALUES (?, ?, ?)", row)
    elif kind == "interruption":
        db.execute("DELETE FROM running WHERE entry = ?", (about,))
    elif message is not None:
        for result in message.results:
            key = (conversation, _bytes(result.call_id))
            db.execute("DELETE FROM running WHERE conversation = ? AND call = ?", key)


def _bytes(call: str) -> bytes:
    return call.encode("utf-8", "surrogatepass")


def searchable(text: str) -> str:
    """A text as the search takes it: what SQLite cannot hold left out, characters of spaceless scripts apart."""
    if text.isascii():
        return text.replace("\0", " ")
    return _SPACELESS.sub(r" \1 ", _UNWRITABLE.sub(" ", text))
