"""The verifier in docs, written from the description of the format alone, agrees with ours."""

from __future__ import annotations

import ast
import importlib.util
import random
import shutil
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from microfiche.messages import ToolCall
from microfiche.record import Record, Ref
from microfiche.record import sqlite as store
from microfiche.record.entries import leaf_data
from microfiche.record.merkle import Frontier, leaf_hash
from record_lives import calls, fresh, live, says, shot, user

VERIFIER = Path(__file__).parents[2] / "docs" / "verify_record.py"

GOLDEN = "29bbcdebd185b38155cf39f9b44e374641b89524c6e8856da3daf1870900ca80"


def run(*args: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, VERIFIER, *map(str, args)], capture_output=True, text=True, check=False)


def test_it_imports_nothing_of_ours() -> None:
    tree = ast.parse(VERIFIER.read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} <= set(sys.stdlib_module_names)
    assert len(VERIFIER.read_text().splitlines()) < 150


@pytest.mark.parametrize("seed", range(4))
def test_both_find_the_same_head(tmp_path: Path, seed: int) -> None:
    with fresh(tmp_path) as record:
        live(record, random.Random(seed), 25)
        verdict = record.verify()
        told = run(record.path)
        assert told.returncode == 0, told.stdout
        assert told.stdout.split() == [str(verdict.size), verdict.root] == [str(v) for v in record.head]
        assert run(record.path, record.heads_path).stdout == told.stdout


def test_what_is_no_record(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"no" * 500)
    told = run(tmp_path / "x")
    assert told.returncode == 3 and told.stdout.startswith("unsound")


# A forger who makes all hashes anew


def hashed_anew(db: sqlite3.Connection) -> None:
    """Leaves, nodes and heads as the entries now have them."""
    frontier, sizes = Frontier(), {size for (size,) in db.execute("SELECT size FROM heads")}
    db.execute("DELETE FROM heads")
    for row in db.execute(f"SELECT {store.COLUMNS} FROM entries ORDER BY id").fetchall():
        nodes = frontier.push(leaf_hash(leaf_data(*row[:8], row[9], row[10])))
        db.execute("UPDATE entries SET nodes = ? WHERE id = ?", (nodes, row[0]))
        if row[0] in sizes:
            db.execute("INSERT INTO heads VALUES (?, ?, ?)", (row[0], frontier.root, row[7]))


def columns(source: random.Random, db: sqlite3.Connection, ids: list[int]) -> None:
    id = source.choice(ids)
    column = source.choice(("kind", "parent", "about", "turn", "open", "time"))
    number = source.choice((None, 0, 1, -1, id - 1, id, id + 1, source.choice(ids), 1 << 62))
    value = source.choice(("message", "move", "label", "pin", "undo", "claim", "ghost")) if column == "kind" else number
    db.execute(f"UPDATE OR IGNORE entries SET {column} = ? WHERE id = ?", (value, id))


def names(source: random.Random, db: sqlite3.Connection, ids: list[int]) -> None:
    name = source.choice(("", "x\ny", "x" * 201, "\a", "\x85"))
    (old,) = db.execute("SELECT conversation FROM entries WHERE id = ?", (source.choice(ids),)).fetchone()
    db.execute("UPDATE entries SET conversation = ? WHERE conversation = ?", (name, old))
    db.execute("UPDATE conversations SET name = ? WHERE name = ?", (name, old))


def blobs(source: random.Random, db: sqlite3.Connection, ids: list[int]) -> None:
    id, size, data = source.choice(db.execute("SELECT id, size, data FROM blobs").fetchall())
    plain = data if len(data) == size else zlib.decompress(data)
    how = source.randrange(4)
    if how == 0:
        db.execute("UPDATE blobs SET size = ? WHERE id = ?", (source.choice((0, -1, size - 1, size + 1, 1 << 60)), id))
    else:
        packed = zlib.compress(plain)
        kept = (packed + b"more", zlib.compress(plain + bytes(1 << 20)), packed[:-1])[how - 1]
        db.execute("UPDATE blobs SET data = ?, crc = ? WHERE id = ?", (kept, zlib.crc32(kept), id))


def notes(source: random.Random, db: sqlite3.Connection, ids: list[int]) -> None:
    said = source.choice(
        (
            "{}",
            "[]",
            "no",
            '{"entries":-1,"turns":1}',
            '{"entries":0,"turns":"1"}',
            '{"entries":1.5,"turns":0}',
            "[" * 9000,
        )
    )
    db.execute("UPDATE entries SET payload = ? WHERE kind = 'fork'", (said,))


def ends(source: random.Random, db: sqlite3.Connection, ids: list[int]) -> None:
    how = source.choice(
        (
            "DELETE FROM heads WHERE size = (SELECT max(size) FROM heads)",
            "DELETE FROM entries WHERE id = (SELECT max(id) FROM entries)",
            "UPDATE conversations SET tip = 1",
            "UPDATE conversations SET turns = turns + 1",
            "DELETE FROM blobs WHERE id = 1",
            "INSERT INTO blobs SELECT max(id) + 1, zeroblob(32), 0, 0, x'' FROM blobs",
            "CREATE TABLE more (x)",
            "DROP INDEX entries_about",
        )
    )
    db.execute(how)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("original")
    with fresh(folder) as record:
        (thread, *_) = live(record, random.Random(5), 40)
        thread.refresh()
        thread.fork("last")
    (folder / "work.mf.heads").unlink()
    return folder / "work.mf"


@pytest.fixture(scope="module")
def standalone() -> Callable[[Path], bool]:
    spec = importlib.util.spec_from_file_location("verify_record", VERIFIER)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def judge(path: Path) -> bool:
        try:
            return bool(module.check(path, None))
        except module.FAULTS:
            return False

    return judge


@pytest.mark.parametrize("forge", [columns, names, blobs, notes, ends])
def test_both_judge_alike_what_was_forged(
    original: Path, standalone: Callable[[Path], bool], tmp_path: Path, forge: Callable[..., None]
) -> None:
    """With every hash made anew, what is left is what the description says of entries, blobs and tables."""
    assert standalone(original)
    source, caught = random.Random(forge.__name__), 0
    for at in range(40):
        path = Path(shutil.copy(original, tmp_path / f"{at}.mf"))
        with raw(path) as db:
            forge(source, db, [id for (id,) in db.execute("SELECT id FROM entries")])
            if forge is not ends:
                hashed_anew(db)
        with Record.open(path, read_only=True) as record:
            verdict = record.verify()
        assert standalone(path) == bool(verdict), (at, verdict)
        caught += not verdict
    assert caught >= 30


def test_times_before_1970_are_times(original: Path, standalone: Callable[[Path], bool], tmp_path: Path) -> None:
    path = Path(shutil.copy(original, tmp_path / "early.mf"))
    with raw(path) as db:
        db.execute("UPDATE entries SET time = time - 4000000000000000")
        hashed_anew(db)
    with Record.open(path, read_only=True) as record:
        assert record.verify() and standalone(path)


@contextmanager
def raw(path: Path) -> Iterator[sqlite3.Connection]:
    """The file without its guards, which stand again afterwards."""
    db: Any = sqlite3.connect(path, isolation_level=None)
    try:
        guards = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            db.execute(f"DROP TRIGGER {name}")
        yield db
        for _, sql in guards:
            db.execute(sql)
    finally:
        db.close()


def test_the_format_does_not_drift(tmp_path: Path) -> None:
    """The same life with the same clock has the root it had when the format was fixed."""
    with fresh(tmp_path) as record:
        t = record.thread("pinned")
        (first,) = t.append([user("what is \ud800 this? " * 90)])
        t.started(ToolCall("c", "look", "{}"))
        t.append([calls("c"), shot("c", bytes(range(256)) * 8), says("a picture")], meta={"context": "0f" * 32})
        t.label("seen")
        t.move(first.id)
        t.append_event("pin", {"said": Ref(first.id), "n": [1.5, float("inf"), 2**2000, (None, True), {"$": {}}]})
        t.fork("copy")
        assert (record.head.size, record.head.root) == (11, GOLDEN)
