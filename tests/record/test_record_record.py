"""The file: opening, what can go wrong, heads, search, proofs, copies."""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from microfiche.errors import (
    BadInput,
    Conflict,
    Damaged,
    Locked,
    NewerFormat,
    NoSuchEntry,
    NotARecord,
    ReadOnly,
    RecordError,
    StorageFailed,
)
from microfiche.messages import ToolCall
from microfiche.record import Draft, Head, Record, signed
from microfiche.record import sqlite as store
from record_lives import Clock, calls, fresh, live, results, said, says, shot, tool_turn, user

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]


@pytest.fixture
def record(tmp_path: Path) -> Record:
    with fresh(tmp_path) as record:
        yield record


def test_an_empty_record(record: Record) -> None:
    assert record.head == Head(0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    assert record.verify(derived=True) and record.conversations() == [] and list(record.entries()) == []
    assert record.verify(head=record.head)
    with pytest.raises(NoSuchEntry):
        record.entry(1)
    with pytest.raises(NoSuchEntry):
        record.proof(1)
    with pytest.raises(NoSuchEntry):
        record.blob(b"\0" * 32)


# Opening


def test_what_is_no_record(tmp_path: Path) -> None:
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"PK\3\4" + b"x" * 5000)
    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE t (x)")
    connection.commit()
    connection.close()
    (tmp_path / "empty").touch()
    for read_only in (False, True):
        for name in ("garbage", "other.db", "absent"):
            with pytest.raises(NotARecord):
                Record.open(tmp_path / name, create=False, read_only=read_only)
        with pytest.raises(NotARecord):
            Record.open(tmp_path / "empty", create=False, read_only=read_only)
    assert garbage.read_bytes() == b"PK\3\4" + b"x" * 5000
    assert not (tmp_path / "absent").exists()
    with pytest.raises(StorageFailed):
        Record.open(tmp_path / "no" / "folder")
    with pytest.raises(RecordError):
        Record.open(tmp_path)


def test_a_file_that_a_crash_left_empty_is_begun_again(tmp_path: Path) -> None:
    (tmp_path / "work.mf").touch()
    with fresh(tmp_path) as record:
        record.thread("t").append([user("one")])
        assert record.verify(derived=True)


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    fresh(tmp_path).close()
    connection = sqlite3.connect(tmp_path / "work.mf")
    connection.execute(f"PRAGMA user_version = {store.FORMAT + 1}")
    connection.close()
    for read_only in (False, True):
        with pytest.raises(NewerFormat, match=f"format {store.FORMAT + 1}"):
            Record.open(tmp_path / "work.mf", read_only=read_only)


def test_reading_only(tmp_path: Path) -> None:
    with fresh(tmp_path) as writer:
        t = writer.thread("t")
        t.append([user("one")])
        with Record.open(tmp_path / "work.mf", read_only=True) as reader:
            seen = reader.thread("t")
            t.append([says("two")])  # a reader sees what is written meanwhile
            assert [m.text for m in said(seen)] == ["one", "two"] and reader.head == writer.head
            assert reader.verify(derived=True)
            for attempt in (lambda: seen.append([user("x")]), lambda: seen.move(None), reader.rebuild):
                with pytest.raises(ReadOnly):
                    attempt()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_files_that_forbid_writing(tmp_path: Path) -> None:
    with fresh(tmp_path) as record:
        record.thread("t").append([user("one")])
    (tmp_path / "work.mf").chmod(0o444)
    with pytest.raises(ReadOnly):
        Record.open(tmp_path / "work.mf")
    tmp_path.chmod(0o555)
    with Record.open(tmp_path / "work.mf", read_only=True) as record:
        assert record.verify()
    tmp_path.chmod(0o755)


def test_a_locked_file(tmp_path: Path) -> None:
    with Record.open(tmp_path / "work.mf", wait=0.05) as record:
        t = record.thread("t")
        t.append([user("one")])
        other = sqlite3.connect(tmp_path / "work.mf", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Locked):
            t.append([user("two")])
        assert said(t) == [user("one")] and record.verify()  # readers do not wait
        other.execute("ROLLBACK")
        other.close()
        t.append([user("two")])
        assert record.verify(derived=True)


def test_a_full_disk(tmp_path: Path) -> None:
    with fresh(tmp_path) as record:
        t = record.thread("t")
        t.append([user("one")])
        assert record._writer is not None
        pages = record._writer.execute("PRAGMA page_count").fetchone()[0]
        record._writer.execute(f"PRAGMA max_page_count = {pages + 2}")
        head = record.head
        with pytest.raises(StorageFailed, match="full"):
            t.append([user(random.Random(1).randbytes(40_000).hex())])
        assert record.head == head and record.verify(derived=True)
        with pytest.raises(StorageFailed, match="full"):
            t.commit([Draft("message", message=user(f"{at} " * 300)) for at in range(300)])
        assert record.head == head and record.verify(derived=True)
        record._writer.execute("PRAGMA max_page_count = 1000000")
        t.append([user("two")])
        assert record.verify(derived=True) and said(t) == [user("one"), user("two")]


BEGINNER = """
import resource, signal, sys
from microfiche.errors import StorageFailed
from microfiche.messages import Message, Text
from microfiche.record import Draft, Record
path, room = sys.argv[1], int(sys.argv[2])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
try:
    with Record.open(path) as record:
        drafts = [Draft("message", message=Message("user", (Text(f"{at} {at ** 400}"),))) for at in range(400)]
        record.thread("t").commit(drafts)
except StorageFailed:
    sys.exit(7)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs a limit on the size of files")
@pytest.mark.parametrize("room", [0, 1_000, 4_096, 20_000, 60_000, 140_000, 200_000])
def test_what_cannot_be_begun_leaves_nothing(tmp_path: Path, room: int) -> None:
    """No room at any point before the first commit is whole: not for the tables, not for what follows."""
    done = subprocess.run([sys.executable, "-c", BEGINNER, str(tmp_path / "work.mf"), str(room)], timeout=60)
    assert done.returncode == 7 and not list(tmp_path.iterdir())


def test_a_record_that_an_error_leaves_empty_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "work.mf"
    with pytest.raises(ZeroDivisionError), Record.open(path):
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())
    # Not what another has open, nor what holds an entry, nor what was there before.
    with pytest.raises(ZeroDivisionError), Record.open(path), Record.open(path):
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())
    with Record.open(path) as other:
        with pytest.raises(ZeroDivisionError), Record.open(path):
            raise ZeroDivisionError
        assert other.verify()
    with pytest.raises(ZeroDivisionError), Record.open(path):
        raise ZeroDivisionError
    assert path.exists()
    path.unlink()
    with pytest.raises(ZeroDivisionError), Record.open(path) as first:
        with Record.open(path) as second:
            second.thread("t").append([user("one")])
        assert first.head.size == 1
        raise ZeroDivisionError
    with Record.open(path) as record:
        assert said(record.thread("t")) == [user("one")] and record.verify(derived=True)


@pytest.mark.skipif(os.name != "posix", reason="needs a VFS of Unix")
def test_a_file_system_without_a_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # SQLite's dotfile locking has no shared memory, as a network file system has none.
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda at, **more: connect(f"{at}&vfs=unix-dotfile", **more))
    with pytest.raises(StorageFailed, match="write-ahead log"):
        Record.open(tmp_path / "work.mf")


def test_a_head_file_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "work.mf.heads").mkdir()
    with pytest.raises(ReadOnly, match="list of heads"):
        fresh(tmp_path)


def test_closing(tmp_path: Path) -> None:
    record = fresh(tmp_path)
    t = record.thread("t")
    record.close()
    record.close()
    for attempt in (lambda: t.append([user("x")]), lambda: record.head, lambda: record.verify()):
        with pytest.raises(RecordError, match="closed"):
            attempt()


def test_a_commit_is_on_disk_when_it_returns(record: Record) -> None:
    db = record._writing()
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert db.execute("PRAGMA synchronous").fetchone() == (2,)


def test_readers_do_not_wait_for_a_writer_of_their_own_process(record: Record) -> None:
    t = record.thread("t")
    t.append([user("one")])
    inside, done = threading.Event(), threading.Event()

    def write() -> None:
        with record._transaction():
            inside.set()
            done.wait(10)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert inside.wait(10) and said(t) == [user("one")] and record.verify()
    finally:
        done.set()
        writer.join()


# Calls that ran when the process ended


def test_a_started_call_without_its_result_is_interrupted(tmp_path: Path) -> None:
    record = fresh(tmp_path)
    t = record.thread("t")
    t.append([user("go")])
    t.started(ToolCall("a", "bash", '{"cmd": "ls"}'))
    t.append(tool_turn("a"))
    lost = [t.started(ToolCall("b", "bash", "{}")), t.started(ToolCall("c\ud800", "bash", "{}"))]
    assert t.running() == lost
    record.close()
    with Record.open(tmp_path / "work.mf", read_only=True) as reader:
        assert reader.thread("t").running() == lost
    with fresh(tmp_path) as record:
        t = record.thread("t")
        found = t.sides("interruption")
        assert [(e.about, e.payload["call"]) for e in found] == [(lost[0].id, "b"), (lost[1].id, "c\ud800")]
        assert t.running() == [] and [e.open for e in t.path()][-1] == 0
        assert record.note_interruptions() == []
        assert record.verify(derived=True)
    with fresh(tmp_path) as record:
        assert record.thread("t").sides("interruption") == found


@pytest.mark.skipif(fcntl is None, reason="cannot tell who else is there")
def test_a_call_that_another_process_runs_is_left_alone(tmp_path: Path) -> None:
    with fresh(tmp_path) as one:
        t = one.thread("t")
        t.append([user("go")])
        t.started(ToolCall("a", "bash", "{}"))
        with fresh(tmp_path) as two:
            assert two.thread("t").sides("interruption") == []
        t.append(tool_turn("a"))
        assert t.running() == []


# Sharing


def test_threads_share_a_record(tmp_path: Path) -> None:
    with Record.open(tmp_path / "work.mf") as record:
        faults: list[BaseException] = []

        def run(task: Callable[[], None]) -> None:
            try:
                task()
            except BaseException as exc:
                faults.append(exc)

        def write(name: str) -> None:
            t = record.thread(name)
            for at in range(15):
                t.append([user(f"{name} {at}"), *tool_turn(f"c{at}")])

        def read() -> None:
            for _ in range(15):
                assert record.verify()
                for name in ("a", "b"):
                    assert len(said(record.thread(name), None)) % 3 == 0

        tasks = [lambda: write("a"), lambda: write("b"), read, read]
        workers = [threading.Thread(target=run, args=(task,)) for task in tasks]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert faults == []
        assert [c.turns for c in record.conversations()] == [30, 30] and record.verify(derived=True)


def test_many_open_a_new_record_at_once(tmp_path: Path) -> None:
    """SQLite itself refuses some of these without waiting: each still gets its record."""
    together = threading.Barrier(8, timeout=30)

    def one(path: Path, name: str) -> None:
        together.wait()
        with Record.open(path) as record:
            record.thread(name).append([user(name)])
        together.wait()
        with Record.open(path, read_only=True) as record:
            assert record.thread(name).tip

    for at in range(10):
        with ThreadPoolExecutor(8) as pool:
            for done in [pool.submit(one, tmp_path / f"{at}.mf", f"t{n}") for n in range(8)]:
                done.result()
        with Record.open(tmp_path / f"{at}.mf") as record:
            assert record.verify(derived=True) and len(record.conversations()) == 8


WRITER = """
import sys
from microfiche.errors import Conflict
from microfiche.messages import Message, Text
from microfiche.record import Record
path, who, count = sys.argv[1:]
with Record.open(path) as record:
    thread, conflicts, at = record.thread("t"), 0, 0
    while at < int(count):
        try:
            thread.append([Message("user", (Text(f"{who} {at}"),)), Message("assistant", (Text(f"{who} {at} ok"),))])
            at += 1
        except Conflict as exc:
            conflicts += 1
            assert exc.tip is not None
            thread.refresh()
print(conflicts)
"""


@pytest.mark.parametrize("count", [40, pytest.param(1000, marks=pytest.mark.full)])
def test_two_processes_on_one_conversation(tmp_path: Path, count: int) -> None:
    path = str(tmp_path / "work.mf")
    runs = [
        subprocess.Popen([sys.executable, "-c", WRITER, path, who, str(count)], stdout=subprocess.PIPE) for who in "ab"
    ]
    assert [run.wait() for run in runs] == [0, 0]
    assert all(run.stdout is not None and run.stdout.read() and not run.stdout.close() for run in runs)
    with Record.open(path) as record:
        texts = [m.text for m in said(record.thread("t"))]
        assert sorted(texts[::2]) == sorted(f"{who} {at}" for who in "ab" for at in range(count))
        assert texts[1::2] == [f"{text} ok" for text in texts[::2]]  # nothing interleaves
        for who in "ab":
            assert [t for t in texts[::2] if t[0] == who] == [f"{who} {at}" for at in range(count)]
        assert record.verify(derived=True)
        assert len(record.heads_path.read_text().splitlines()) == 2 * count


def test_a_conflict_between_processes_names_the_tip(tmp_path: Path) -> None:
    with fresh(tmp_path) as one, fresh(tmp_path) as two:
        ours, theirs = one.thread("t"), two.thread("t")
        theirs.append([user("x")])
        with pytest.raises(Conflict) as caught:
            ours.append([user("y")])
        assert caught.value.tip == theirs.tip == 1


# The heads


def test_a_head_a_commit(record: Record) -> None:
    t = record.thread("t")
    t.append([user("one"), says("two")])
    t.started(ToolCall("a", "f", "{}"))
    t.append(tool_turn("a"))
    heads = record.heads()
    assert [h.size for h in heads] == [2, 3, 5]
    assert record.heads_path.read_text() == "".join(f"{h.size} {h.root} {h.time}\n" for h in heads)
    assert [h.time for h in heads] == [record.entry(h.size).time for h in heads]
    assert record.head == heads[-1][:2]
    for head in heads:
        assert record.verify(head=head[:2]) and record.verify(head=f"{head.size} {head.root}")
    assert record.verify(heads=heads) and record.verify(heads=record.heads_path)
    with pytest.raises(BadInput, match="line 2"):
        (record.path.parent / "bad").write_text(f"3 {heads[1].root}\nnonsense\n")
        record.verify(heads=record.path.parent / "bad")


def test_time_always_goes_on(tmp_path: Path) -> None:
    times = iter([5000, 3000, 9000])
    with Record.open(tmp_path / "work.mf", clock=lambda: next(times)) as record:
        t = record.thread("t")
        for text in "abc":
            t.append([user(text)])
        assert [e.time for e in record.entries()] == [5000, 5001, 9000] and record.verify()


def test_a_line_that_a_crash_tore_is_no_fault_of_the_record(tmp_path: Path) -> None:
    with fresh(tmp_path) as record:
        t = record.thread("t")
        t.append([user("one")])
        t.append([user("two")])
        whole = record.heads_path.read_bytes()
    with Record.open(tmp_path / "work.mf", read_only=True) as record:
        for cut in range(len(whole)):
            record.heads_path.write_bytes(whole[:cut])
            assert record.verify(), cut
            record.heads_path.write_bytes(whole[:cut] + b"x")
            assert not record.verify(), cut


@pytest.mark.parametrize("cut", [0, 1, 40, 80, 81, 100])
def test_lines_that_a_crash_kept_from_the_list_are_written_later(tmp_path: Path, cut: int) -> None:
    with fresh(tmp_path) as record:
        t = record.thread("t")
        for at in range(3):
            t.append([user(str(at))])
        whole = record.heads_path.read_bytes()
    (tmp_path / "work.mf.heads").write_bytes(whole[:cut] + b"\0" * (7 if cut % 2 else 0))
    with fresh(tmp_path) as record:
        assert record.heads_path.read_bytes() == whole
        record.thread("t").append([user("on")])
        assert record.verify() and record.verify().heads == 4


def test_the_list_may_be_gone(tmp_path: Path) -> None:
    with fresh(tmp_path) as record:
        record.thread("t").append([user("one")])
    (tmp_path / "work.mf.heads").unlink()
    with Record.open(tmp_path / "work.mf", read_only=True) as record:
        assert record.verify().heads == 0 and record.verify()
    with fresh(tmp_path) as record:
        assert record.verify().heads == 1


def test_proofs(record: Record) -> None:
    live(record, random.Random(3), 20)
    size = record.head.size
    heads = record.heads()
    for number in (1, 2, size // 2, size - 1, size):
        proof = record.proof(number)
        assert proof.holds() and proof.holds(record.head) and len(proof.path) <= size.bit_length()
        assert not proof.holds(heads[0][:2]) and proof.leaf == record.entry(number).leaf
    for head in heads:
        growth = record.growth(head[:2])
        assert growth.holds and growth.new == record.head
    assert not record.growth((heads[3].size, heads[4].root)).holds
    assert record.proof(1, heads[2].size).holds(heads[2][:2])


def test_signed_heads(record: Record) -> None:
    pytest.importorskip("cryptography")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    record.thread("t").append([user("one")])
    seed = b"\7" * 32
    public = Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()
    note = signed.sign(record.head, seed, "example.org/work")
    assert note.splitlines()[:2] == ["example.org/work", "1"] and note.splitlines()[4].startswith("— example.org/work ")
    assert signed.check(note, public, "example.org/work") == record.head
    other = Ed25519PrivateKey.from_private_bytes(b"\6" * 32).public_key().public_bytes_raw()
    for broken, key, name in (
        (note, other, "example.org/work"),
        (note, public, "example.org/other"),
        (note.replace("\n1\n", "\n2\n"), public, "example.org/work"),
        (note[:-9] + "AAAAAAA=\n", public, "example.org/work"),
        ("", public, "example.org/work"),
    ):
        with pytest.raises(BadInput):
            signed.check(broken, key, name)
    with pytest.raises(BadInput):
        signed.sign(record.head, seed, "two words")


# Reading


def test_entries_stream_by_kind_and_conversation(record: Record) -> None:
    live(record, random.Random(5), 30)
    every = list(record.entries())
    assert [e.id for e in every] == list(range(1, record.head.size + 1))
    for name in (c.name for c in record.conversations()):
        assert list(record.entries(conversation=name)) == [e for e in every if e.conversation == name]
        assert list(record.entries(5, 30, conversation=name, kind="message")) == [
            e for e in every[4:30] if e.conversation == name and e.kind == "message"
        ]
    assert [record.entry(e.id) for e in every] == every


def test_search(record: Record) -> None:
    t = record.thread("t")
    t.append(
        [
            user("Las OFICINAS de Málaga"),
            calls("a", name="grep_files"),
            results("a", text="error: no such table"),
            says("x"),
        ]
    )
    t.append([user("東京都の天気は"), says("null\0 and \ud800 lone"), user("plain")])
    turns = lambda text, **more: [hit.turn for hit in t.search(text, **more)]  # noqa: E731
    assert turns("oficinas") == turns("ofici") == turns("malaga") == turns("oficinas de málaga") == [1]
    assert turns("de oficinas") == [] and turns("ficinas") == []
    assert turns("grep_files") == turns("such table") == turns("a.py") == [2]
    assert turns("京都") == turns("天気は") == [4] and turns("京天") == []
    assert turns("lone") == turns("null") == [5]
    assert turns("") == turns('"') == turns("* OR NEAR(") == []
    for at in range(30):
        t.append([user(f"needle {at}")])
    assert turns("needle", limit=3) == [36, 35, 34] and turns("needle", limit=3, offset=28) == [8, 7]
    f = t.fork("f")
    assert {hit.conversation for hit in record.search("oficinas")} == {"t", "f"}
    assert [hit.turn for hit in f.search("oficinas")] == [1]
    record.rebuild()
    assert turns("oficinas") == [1] and record.verify(derived=True)


def test_damage_is_told_with_its_place(tmp_path: Path) -> None:
    with fresh(tmp_path) as record:
        t = record.thread("t")
        t.append([user("one"), user("two"), user("x" * 4000)])
    raw = sqlite3.connect(tmp_path / "work.mf", isolation_level=None)
    for name in ("entries_update", "blobs_update"):
        raw.execute(f"DROP TRIGGER {name}")
    raw.execute("UPDATE entries SET payload = replace(payload, 'two', 'tow') WHERE id = 2")
    with fresh(tmp_path) as record:
        assert record.entry(1)
        with pytest.raises(Damaged, match="entry 2") as caught:
            list(record.thread("t").path())
        assert caught.value.entry == 2
        with pytest.raises(Damaged):
            record.export(io.StringIO())
    raw.execute("UPDATE entries SET payload = replace(payload, 'tow', 'two') WHERE id = 2")
    raw.execute("UPDATE blobs SET data = zeroblob(4000)")
    raw.close()
    with fresh(tmp_path) as record, pytest.raises(Damaged, match="blob"):
        record.entry(3)


# Copies


@pytest.mark.parametrize("seed", range(3))
def test_export_and_import_are_equal(tmp_path: Path, seed: int) -> None:
    with fresh(tmp_path) as record:
        for thread in live(record, random.Random(seed), 30):
            thread.refresh()
            thread.append(
                [user("\ud83d\ude00 " * 900), says("\udfff\ud800")], meta={"n": float("nan"), "big": 10**4200}
            )
        stream = io.StringIO()
        record.export(stream)
        assert stream.getvalue().isascii()
        stream.seek(0)
        with Record.import_(stream, tmp_path / "copy.mf") as copy:
            assert repr(list(copy.entries())) == repr(list(record.entries()))
            assert copy.heads() == record.heads() and copy.conversations() == record.conversations()
            assert copy.heads_path.read_bytes() == record.heads_path.read_bytes()
            assert copy.verify(derived=True) and copy.verify(heads=record.heads_path)
            again = io.StringIO()
            copy.export(again)
            assert again.getvalue() == stream.getvalue()
            tip = copy.conversations()[0].tip
            copy.thread(copy.conversations()[0].name).append([user("on")], expect_tip=tip)
            assert copy.verify(derived=True)


def test_an_import_that_was_changed_leaves_nothing(tmp_path: Path) -> None:
    with fresh(tmp_path) as record:
        t = record.thread("t")
        t.append([user("one"), *tool_turn("a", "y" * 2000)])
        t.label("l")
        stream = io.StringIO()
        record.export(stream)
    lines = stream.getvalue().splitlines(keepends=True)
    source = random.Random(4)
    broken = [lines[:at] + lines[at + 1 :] for at in range(len(lines))]
    broken += [[*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]] for at in range(1, len(lines) - 1)]
    for at, line in enumerate(lines):
        for _ in range(12):
            where = source.randrange(len(line))
            changed = line[:where] + source.choice('0129abz{}"') + line[where + 1 :]
            if changed != line:
                broken.append([*lines[:at], changed, *lines[at + 1 :]])
    equal = 0
    for text in broken:
        try:
            with Record.import_(text, tmp_path / "copy.mf") as copy:
                # A change that means nothing, such as another zero behind a number's point, may pass.
                assert copy.head == Head(json.loads(lines[0])["size"], json.loads(lines[0])["root"])
                equal += 1
            (tmp_path / "copy.mf").unlink()
            (tmp_path / "copy.mf.heads").unlink()
        except (BadInput, NewerFormat):
            assert sorted(each.name for each in tmp_path.iterdir()) == ["work.mf", "work.mf.heads"]
    assert equal <= len(broken) // 10
    (tmp_path / "copy.mf").touch()
    with pytest.raises(RecordError, match="exists"):
        Record.import_(lines, tmp_path / "copy.mf")


def test_a_backup_is_the_record(tmp_path: Path) -> None:
    with fresh(tmp_path) as record:
        t = record.thread("t")
        t.append([user("one"), calls("s"), shot("s", random.Random(2).randbytes(5000))])
        head = record.backup(tmp_path / "copy.mf")
        t.append([user("later")])
        with pytest.raises(RecordError, match="exists"):
            record.backup(tmp_path / "copy.mf")
        with Record.open(tmp_path / "copy.mf", clock=Clock()) as copy:
            assert copy.head == head and copy.verify(derived=True).heads == 1
            assert record.growth(copy.head).holds
            copy.thread("t").append([user("apart")])
            assert copy.verify() and not record.verify(head=copy.head)


def test_a_copy_of_the_files_while_it_is_open(tmp_path: Path) -> None:
    with fresh(tmp_path) as record:
        record.thread("t").append([user("one")])
        (tmp_path / "copy").mkdir()
        for each in tmp_path.glob("work.mf*"):
            if not each.name.endswith("-shm"):
                shutil.copy(each, tmp_path / "copy")
        with fresh(tmp_path / "copy") as copy:
            assert copy.head == record.head and copy.verify(derived=True)


def test_growth_follows_what_is_new(tmp_path: Path) -> None:
    """Fifty passes over a long path cost what they say, and a blob is stored once."""
    with fresh(tmp_path) as record:
        t = record.thread("t")
        screen = random.Random(1).randbytes(20_000)
        t.append([m for at in range(500) for m in (user(f"turn {at} " + "word " * 40), says("answer " * 30))])
        t.append([m for at in range(20) for m in (calls(f"s{at}"), shot(f"s{at}", screen))])
        assert record._writer is not None

        def size() -> int:
            assert record._writer is not None
            record._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return (tmp_path / "work.mf").stat().st_size

        before = size()
        assert before < 3 * sum(len(m.text) for m in said(t)) + 200_000
        for _ in range(50):
            t.append_event("compaction", {"why": "threshold", "atlas": screen, "ranges": [[1, 2]] * 5})
        assert size() - before < 50 * 1000 + 50_000
