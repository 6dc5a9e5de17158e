"""Attempts to change what a record says. Each must be caught, and named as far as it can be.

The attacker has the file open with SQLite or a hex editor; what cannot be caught without a head
kept elsewhere is tried with one.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from microfiche.errors import RecordError
from microfiche.messages import Image, Message, Text, ToolCall, ToolResult
from microfiche.record import Head, Record, Ref, Verdict
from microfiche.record import sqlite as store
from microfiche.record.entries import leaf_data
from microfiche.record.merkle import Frontier, leaf_hash
from microfiche.record.verify import standings, verify

VERIFIER = Path(__file__).parents[2] / "docs" / "verify_record.py"
TABLES = ("entries", "blobs", "conversations", "heads")


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def build(path: Path, words: str = "the original words") -> None:
    now = iter(range(1_000_000_000, 2_000_000_000, 1_000))
    with Record.open(path, clock=lambda: next(now)) as record:
        t = record.thread("triage")
        (first,) = t.append([user("go " * 500)])
        call = ToolCall("c1", "look", "{}")
        t.started(call)
        picture = Image(bytes(range(256)) * 3, owner="tool")
        t.append([Message("assistant", (call,)), Message("tool", (ToolResult("c1", (picture, Text("seen"))),))])
        t.label("here")
        t.append([user(words), Message("assistant", (Text("done"),))], meta={"context": "ab" * 32})
        t.move(first.id)
        t.append_event("pin", {"text": "keep", "said": Ref(first.id)})
        t.fork("triage-b").append([user("apart")])


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("original") / "work.mf"
    build(path)
    with Record.open(path) as record:
        assert record.verify(derived=True)
    return path


@pytest.fixture
def victim(original: Path, tmp_path: Path) -> Path:
    for each in (original, Path(f"{original}.heads")):
        shutil.copy(each, tmp_path / each.name)
    return tmp_path / original.name


def attack(path: Path, *statements: str, values: tuple[Any, ...] = ()) -> None:
    """Change the file as someone who first took its triggers away, and put them back behind him."""
    raw = sqlite3.connect(path, isolation_level=None)
    guards = raw.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in guards:
        raw.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        raw.execute(statement, values)
    for _, sql in guards:
        raw.execute(sql)
    raw.close()


def judged(path: Path, **outside: Any) -> Verdict:
    with Record.open(path, read_only=True) as record:
        return record.verify(**outside)


def cells(path: Path) -> Iterator[tuple[str, str, Any, str, Any]]:
    """Every value of the tables: table, key column, key, column, value."""
    raw = sqlite3.connect(path)
    for table in TABLES:
        columns = [row[1] for row in raw.execute(f"PRAGMA table_info({table})")]
        for row in raw.execute(f"SELECT * FROM {table}"):
            for column, value in zip(columns, row, strict=True):
                yield table, columns[0], row[0], column, value
    raw.close()


def bent(value: Any, at: int, bits: int) -> Any:
    """The value with one byte changed; numbers by their eight bytes."""
    if isinstance(value, int):
        data = bytearray(value.to_bytes(8, "big", signed=True))
    else:
        data = bytearray(value.encode() if isinstance(value, str) else value)
    data[at] ^= bits
    if isinstance(value, int):
        return int.from_bytes(data, "big", signed=True)
    return bytes(data)


def flips(path: Path) -> list[tuple[str, str, Any, str, Any, str]]:
    source = random.Random(11)
    out = []
    for table, key, id, column, value in cells(path):
        if value is None:
            out.append((table, key, id, column, 0, "?"))
            continue
        size = 8 if isinstance(value, int) else len(value)
        slot = "CAST(? AS TEXT)" if isinstance(value, str) else "?"
        out += [(table, key, id, column, bent(value, at, source.randrange(1, 256)), slot) for at in range(size)]
        if isinstance(value, int):
            out.append((table, key, id, column, None, "?"))
    return out


def test_every_byte_of_every_table_flipped_in_turn(victim: Path) -> None:
    raw = sqlite3.connect(victim, isolation_level=None)
    for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        raw.execute(f"DROP TRIGGER {name}")
    missed, tried, refused = [], 0, 0
    beside = Path(f"{victim}.heads").read_bytes()
    for table, key, id, column, value, slot in flips(victim):
        raw.execute("BEGIN")
        try:
            raw.execute(f"UPDATE {table} SET {column} = {slot} WHERE {key} = ?", (value, id))
        except sqlite3.IntegrityError:
            refused += 1  # NULL in a column that has none, a key twice
            raw.execute("ROLLBACK")
            continue
        tried += 1
        # The same judgement as Record.verify, inside the attacker's own transaction.
        verdict = verify(_NoTransactions(raw), str(victim), beside, None, None, False)  # type: ignore[arg-type]
        if verdict or verdict.where.startswith("schema"):
            missed.append((table, id, column, value))
        elif table == "entries" and column not in ("id", "nodes") and verdict.entry != id:
            missed.append((table, id, column, f"named {verdict.entry}"))
        raw.execute("ROLLBACK")
    raw.close()
    assert missed == []
    assert tried > 3000 and refused < 200


class _NoTransactions:
    """A connection that stays in the transaction it is in."""

    def __init__(self, raw: sqlite3.Connection) -> None:
        self.raw = raw

    def execute(self, sql: str, *values: Any) -> Any:
        return None if sql in ("BEGIN", "ROLLBACK") else self.raw.execute(sql, *values)


@pytest.mark.parametrize("every", [127, pytest.param(5, marks=pytest.mark.full)])
def test_any_byte_of_the_file_flipped(original: Path, tmp_path: Path, every: int) -> None:
    """Either somebody says so, or nothing that a reader sees has changed."""

    def view(path: Path) -> Any:
        with Record.open(path, read_only=True) as record:
            assert record.verify()
            return [*record.entries()], record.conversations(), record.heads()

    whole = original.read_bytes()
    truth = view(original)
    path = tmp_path / "work.mf"
    shutil.copy(f"{original}.heads", f"{path}.heads")
    source = random.Random(3)
    caught = 0
    for at in range(source.randrange(every), len(whole), every):
        broken = bytearray(whole)
        broken[at] ^= source.randrange(1, 256)
        path.write_bytes(broken)
        try:
            seen = view(path)
        except (RecordError, AssertionError):
            caught += 1
        else:
            assert seen == truth, f"byte {at}"
    assert caught > 0


def test_every_byte_of_the_list_of_heads(victim: Path) -> None:
    beside = Path(f"{victim}.heads")
    whole = beside.read_bytes()
    source = random.Random(1)
    with Record.open(victim, read_only=True) as record:
        for at in range(len(whole)):
            broken = bytearray(whole)
            broken[at] ^= source.randrange(1, 256)
            beside.write_bytes(broken)
            assert not record.verify(), f"byte {at}"


ROWS: dict[str, tuple[str, int | None]] = {
    # what is done, and the entry that must be named
    "an entry removed": ("DELETE FROM entries WHERE id = 5", 5),
    "the first removed": ("DELETE FROM entries WHERE id = 1", 1),
    "two swapped": ("UPDATE entries SET id = CASE id WHEN 3 THEN -4 ELSE -3 END WHERE id IN (3, 4)", 1),
    "re-pointed": ("UPDATE entries SET parent = 1 WHERE id = 6", 6),
    "moved to another conversation": ("UPDATE entries SET conversation = 'triage-b' WHERE id = 6", 6),
    "a label moved": ("UPDATE entries SET about = 1 WHERE kind = 'label'", 5),
    "a label renamed": ("UPDATE entries SET payload = replace(payload, 'here', 'there') WHERE kind = 'label'", 5),
    "a tip move re-pointed": ("UPDATE entries SET about = 7 WHERE kind = 'move'", 8),
    "a turn renumbered": ("UPDATE entries SET turn = 9 WHERE id = 6", 6),
    "a pin's words": ("UPDATE entries SET payload = replace(payload, 'keep', 'drop') WHERE kind = 'pin'", 9),
    "the tip moved": ("UPDATE conversations SET tip = 7 WHERE name = 'triage'", 9),
    "the tip before everything": ("UPDATE conversations SET tip = NULL WHERE name = 'triage'", 9),
    "the counter wound on": ("UPDATE conversations SET turns = 99 WHERE name = 'triage'", 9),
    "a conversation removed": ("DELETE FROM conversations WHERE name = 'triage'", 9),
    "a conversation invented": ("INSERT INTO conversations VALUES ('ghost', NULL, 0)", None),
    "a blob removed": ("DELETE FROM blobs WHERE id = 2", 4),
    "a blob added": ("INSERT INTO blobs VALUES (3, zeroblob(32), 0, 0, x'')", None),
    "blobs swapped": ("UPDATE blobs SET id = CASE id WHEN 1 THEN -1 ELSE -2 END", 1),
    "a head removed": ("DELETE FROM heads WHERE size = 4", 4),
    "the last head removed": ("DELETE FROM heads WHERE size = (SELECT max(size) FROM heads)", 13),
    "a head invented": ("INSERT INTO heads VALUES (3, zeroblob(32), 0)", None),
    "a time changed": ("UPDATE heads SET time = time + 1 WHERE size = 4", 4),
    "a node of the tree": ("UPDATE entries SET nodes = zeroblob(64) WHERE id = 2", 2),
}


@pytest.mark.parametrize("what", ROWS)
def test_rows_removed_swapped_inserted_moved(victim: Path, what: str) -> None:
    statement, entry = ROWS[what]
    attack(victim, statement)
    verdict = judged(victim)
    assert not verdict and not verdict.where.startswith("schema")
    if entry is not None:
        assert verdict.entry == entry, verdict
    elif "head" not in what:
        assert verdict.where.startswith(("conversation", "blob"))
    assert _standalone(victim) == 3


def test_a_head_removed_shows_without_the_list_too(victim: Path) -> None:
    Path(f"{victim}.heads").unlink()
    attack(victim, "DELETE FROM heads WHERE size = 4")
    assert judged(victim).entry == 5  # its time is not that of the commit it now seems to be in
    assert _standalone(victim) == 3


def _standalone(path: Path) -> int:
    return subprocess.run([sys.executable, VERIFIER, path], capture_output=True, check=False).returncode


def test_an_entry_that_is_put_in_with_its_own_leaf(victim: Path) -> None:
    """At the end, hashes right, but no head over it."""
    raw = sqlite3.connect(victim)
    size, time = raw.execute("SELECT max(id), max(time) FROM entries").fetchone()
    raw.close()
    with Record.open(victim, read_only=True) as record:
        tip = record.thread("triage").tip
        frontier = Frontier.restore(0, lambda *_: b"")
        for entry in record.entries():
            frontier.push(entry.leaf)
    row = [size + 1, "triage", "message", tip, None, 5, 0, time, b"", '{"message":{"role":"user","parts":[]}}']
    nodes = frontier.push(leaf_hash(leaf_data(*row)))
    row.insert(8, nodes)
    slots = ",".join("?" * len(row))
    attack(victim, f"INSERT INTO entries ({store.COLUMNS}) VALUES ({slots})", values=tuple(row))
    verdict = judged(victim)
    assert not verdict and verdict.entry == size + 1
    assert _standalone(victim) == 3


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET payload = '{}' WHERE id = 1",
        "DELETE FROM entries WHERE id = (SELECT max(id) FROM entries)",
        "INSERT OR REPLACE INTO entries SELECT * FROM entries WHERE id = 1",
        "REPLACE INTO entries SELECT * FROM entries WHERE id = (SELECT max(id) FROM entries)",
        "INSERT INTO entries SELECT 101, conversation, kind, parent, about, turn, open, time, nodes, blobs, payload"
        " FROM entries WHERE id = 1",
        "UPDATE OR REPLACE entries SET id = 2 WHERE id = 1",
        "UPDATE blobs SET data = x''",
        "DELETE FROM blobs",
        "INSERT OR REPLACE INTO blobs SELECT max(id) + 1, digest, 0, 0, x'' FROM blobs",
        "INSERT OR REPLACE INTO blobs SELECT id, zeroblob(32), 0, 0, x'' FROM blobs WHERE id = 1",
        "UPDATE heads SET root = zeroblob(32)",
        "DELETE FROM heads",
        "INSERT OR REPLACE INTO heads SELECT size, zeroblob(32), 0 FROM heads WHERE size = 1",
        "DELETE FROM conversations",
        "UPDATE conversations SET name = 'x'",
        "UPDATE conversations SET turns = 0",
        "INSERT OR REPLACE INTO conversations VALUES ('triage', NULL, 0)",
    ],
)
def test_the_file_itself_refuses(victim: Path, statement: str) -> None:
    raw = sqlite3.connect(victim, isolation_level=None)
    with pytest.raises(sqlite3.IntegrityError, match="only ever added to"):
        raw.execute(statement)
    raw.close()
    assert judged(victim, derived=True)


@pytest.mark.parametrize(
    ("statement", "where"),
    [
        ("DROP TRIGGER entries_update", "schema, entries_update"),
        ("CREATE TRIGGER sly AFTER INSERT ON entries BEGIN UPDATE conversations SET tip = 1; END", "schema, sly"),
        ("CREATE TABLE extra (x)", "schema, extra"),
        ("DROP INDEX entries_turn", "schema, entries_turn"),
    ],
)
def test_guards_taken_away(victim: Path, statement: str, where: str) -> None:
    raw = sqlite3.connect(victim)
    raw.execute(statement)
    raw.close()
    assert judged(victim).where == where


def test_derived_tables_are_held_against_the_entries(victim: Path) -> None:
    for statement in (
        "INSERT INTO search (rowid, text) VALUES (2, 'planted')",
        "INSERT INTO running (entry, conversation, call) VALUES (2, 'triage', x'6331')",
    ):
        raw = sqlite3.connect(victim, isolation_level=None)
        raw.execute(statement)
        raw.close()
        assert judged(victim) and not judged(victim, derived=True)
        with Record.open(victim) as record:
            record.rebuild()
            assert record.verify(derived=True)


# Against heads kept elsewhere


def rewritten(victim: Path) -> None:
    """The whole file made anew with other words: nothing inside it is wrong."""
    kept = Path(f"{victim}.heads").read_bytes()
    for each in victim.parent.glob("work.mf*"):
        each.unlink()
    build(victim, "other words altogether")
    Path(f"{victim}.heads").write_bytes(kept)


@pytest.mark.parametrize("times", [3, 200])
@pytest.mark.parametrize("how", ["swapped", "moved", "renamed"])
def test_a_search_in_which_words_stand_elsewhere(tmp_path: Path, times: int, how: str) -> None:
    """The search has as many words in as many places, but not the same: rare words and frequent ones."""
    said = ["herring " * times + "cod", "cod " * times + "herring", "herring cod " * times]
    path = tmp_path / "work.mf"
    with Record.open(path) as record:
        record.thread("t").append([user(text) for text in said])
        assert record.verify(derived=True)
    told = list(said)
    match how:
        case "swapped":
            told[0], told[1] = said[1], said[0]
        case "moved":
            told[2] = "cod herring " * times
        case _:
            told = [text.replace("cod", "c0d") for text in said]
    raw = sqlite3.connect(path, isolation_level=None)
    for at, (old, new) in enumerate(zip(said, told, strict=True), 1):
        raw.execute("INSERT INTO search (search, rowid, text) VALUES ('delete', ?, ?)", (at, old))
        raw.execute("INSERT INTO search (rowid, text) VALUES (?, ?)", (at, new))
    raw.close()
    with Record.open(path) as record:
        assert record.verify()
        verdict = record.verify(derived=True)
        assert not verdict and verdict.where == "table search"
        record.rebuild()
        assert record.verify(derived=True)


def test_a_rewritten_suffix_is_located_to_its_commit(victim: Path) -> None:
    with Record.open(victim, read_only=True) as record:
        heads, head = record.heads(), record.head
    rewritten(victim)
    for verdict in (judged(victim), judged(victim, heads=heads)):
        assert not verdict and verdict.where == "entries 6..7" and verdict.entry == 6
    Path(f"{victim}.heads").unlink()
    assert judged(victim)  # nothing inside tells
    one = judged(victim, head=head)
    assert not one and one.where == f"entries 1..{head.size}" and one.entry is None
    verdict = judged(victim, heads=heads)
    assert not verdict and verdict.entry == 6
    assert judged(victim, heads=heads[:3])
    with Record.open(victim, read_only=True) as record:
        assert not record.growth(head).holds and record.growth(heads[2][:2]).holds


@pytest.mark.parametrize("left", [0, 1, 2, 4, 5, 7, 8, 9, 12])
def test_a_cut_tail_shows_against_any_head(victim: Path, left: int) -> None:
    """The tail cut off with everything that speaks of it, as if it had never been."""
    with Record.open(victim, read_only=True) as record:
        heads, head = record.heads(), record.head
        sizes = [0, *(commit.size for commit in heads)]
        assert left in sizes
    attack(
        victim,
        f"DELETE FROM entries WHERE id > {left}",
        f"DELETE FROM heads WHERE size > {left}",
        f"DELETE FROM blobs WHERE id > {0 if not left else 1 if left < 4 else 2}",
        "DELETE FROM conversations",
    )
    raw = sqlite3.connect(victim)
    rows = standings(raw, "")
    raw.close()
    attack(victim, *(f"INSERT INTO conversations VALUES ('{n}', {tip or 'NULL'}, {t})" for n, tip, t in rows))
    for verdict in (judged(victim), judged(victim, head=head), judged(victim, heads=heads)):
        assert not verdict and verdict.entry == left + 1 and "cut off" in verdict.reason
    assert _standalone(victim) == 3
    Path(f"{victim}.heads").unlink()
    assert judged(victim) and _standalone(victim) == 0  # without any head nobody can tell: the docs say so


def test_a_writer_goes_no_further_on_a_broken_tree(victim: Path) -> None:
    attack(victim, "UPDATE entries SET nodes = zeroblob(length(nodes)) WHERE id = (SELECT max(id) FROM entries)")
    with Record.open(victim) as record:
        t = record.thread("triage")
        with pytest.raises(RecordError, match="head"):
            t.append([user("on")])


def test_a_loop_in_the_path_does_not_hang(victim: Path) -> None:
    attack(victim, "UPDATE entries SET parent = 7 WHERE id = 6")
    with Record.open(victim) as record, pytest.raises(RecordError):
        list(record.thread("triage").path(7))


def test_heads_of_another_record(victim: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    build(tmp_path / "other" / "work.mf", "something else")
    assert judged(victim, heads=tmp_path / "other" / "work.mf.heads").entry == 6
    assert not judged(victim, head=Head(0, "00" * 32))
    assert not judged(victim, head=Head(10**9, "00" * 32))


def test_a_blob_that_would_swell(victim: Path) -> None:
    bomb = zlib.compress(bytes(50_000_000))
    attack(victim, "UPDATE blobs SET data = ?, crc = ? WHERE id = 1", values=(bomb, zlib.crc32(bomb)))
    verdict = judged(victim)
    assert not verdict and verdict.entry == 1
