"""``verify``, ``export`` and ``backup``: a record is proven, and taken elsewhere whole."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import SESSIONS, Ran
from microfiche import formats
from microfiche.conversation import Record

Run = Callable[..., Ran]
MODEL = "claude-opus-5"


def told(ran: Ran) -> Any:
    assert ran.code == 0, ran.err
    return json.loads(ran.text)


@pytest.fixture
def lived(run: Run, work: Path, moorings: Path) -> Path:
    """A record with two conversations, a fork, a branch, passes, pins, a checkpoint and a report."""
    assert run("checkpoint", work, "start").code == 0
    for command in (
        ("pin", "keep *me*", "--kind", "definition"),
        ("compact", "--model", MODEL, "--budget", "20k"),
        ("rewind", "start", "--report", "tried `X`"),
        ("fork", "other"),
        ("shake", "--model", MODEL, "--name", "other"),
        ("undo", "--name", "other"),
    ):
        ran = run(command[0], work, *command[1:])
        assert ran.code == 0, ran.err
    assert run("import", moorings, work).code == 0
    return work


def test_a_sound_record_says_its_head(run: Run, lived: Path, tmp_path: Path) -> None:
    text = run("verify", lived, "--derived").text
    kept = text.splitlines()[1].split()[1]
    assert text.startswith("Sound: ")
    run("pin", lived, "more", "--name", "harbour")
    assert run("verify", lived, "--head", kept).code == 0
    heads = tmp_path / "kept.heads"
    heads.write_bytes(Path(f"{lived}.heads").read_bytes())
    verdict = told(run("verify", lived, "--heads", heads, "--json"))
    assert verdict["sound"] and verdict["entry"] is None and verdict["heads"] == 2 * verdict["kept"] == 20


def test_a_list_beside_the_record_is_not_told_as_kept_elsewhere(run: Run, lived: Path) -> None:
    heads, (said, head) = Path(f"{lived}.heads"), run("verify", lived).text.splitlines()
    assert said.endswith("heads of the list beside it fit, none kept elsewhere was given.")
    assert run("verify", lived, "--head", head.split()[1]).text.split(" fit, ")[1].startswith("and 1 kept elsewhere.\n")
    kept = heads.read_text()
    heads.unlink()
    assert run("verify", lived).text.splitlines()[0].endswith("; no head was there to hold it against.")
    assert "; 1 kept elsewhere fits." in run("verify", lived, "--head", head.split()[1]).text
    heads.write_text(kept)
    assert "fit, none kept elsewhere was given" in run("audit", lived, "--name", "harbour").text


def test_a_changed_byte_is_named_and_exits_3(run: Run, lived: Path) -> None:
    with sqlite3.connect(lived) as db:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f"DROP TRIGGER {name}")
        db.execute("UPDATE entries SET payload = replace(payload, 'keep', 'kept') WHERE kind = 'pin' AND id < 100")
    ran = run("verify", lived)
    assert ran.code == 3 and "Not sound: " in ran.text
    ran = run("verify", lived, "--json")
    verdict = json.loads(ran.text)
    assert ran.code == 3 and not verdict["sound"] and verdict["entry"] == 80
    # What shows the damaged entry says so in one line; the rest can be read.
    shown = run("log", lived, "--name", "harbour", "--all")
    assert shown.code == 1 and "entry 80" in shown.err and "Traceback" not in shown.err


def test_a_cut_tail_shows_against_a_head_kept_elsewhere(run: Run, lived: Path, tmp_path: Path) -> None:
    copy = tmp_path / "old.mf"
    assert told(run("backup", lived, copy, "--json"))["size"] > 80
    run("pin", lived, "later", "--name", "harbour")
    verdict = told(run("verify", lived, "--json"))
    size, root = verdict["size"], verdict["root"]
    ran = run("verify", copy, "--head", f"{size}:{root}")
    assert ran.code == 3 and "Not sound" in ran.text
    ran = run("verify", lived, "--head", f"{size}:{'0' * 64}")
    assert ran.code == 3


@pytest.mark.parametrize("head", ["12", "x:y", "12:abc", f"-1:{'0' * 64}", f"1:{'g' * 64}"])
def test_a_head_that_is_none_is_wrong_usage(run: Run, work: Path, head: str) -> None:
    ran = run("verify", work, "--head", head)
    assert ran.code == 2 and "SIZE:ROOT" in ran.err


def test_a_list_of_heads_that_is_none_is_no_verdict(run: Run, work: Path, tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("hello\n")
    ran = run("verify", work, "--heads", tmp_path / "bad")
    assert ran.code == 1 and "line 1" in ran.err
    assert run("verify", work, "--heads", tmp_path / "none").code == 1


@pytest.mark.parametrize("content", [b"", b"no record", b"SQLite format 3\0" + b"\0" * 200])
def test_what_is_no_record_cannot_be_verified(run: Run, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.mf"
    path.write_bytes(content)
    for command in (["verify"], ["log"], ["export"], ["branch", "1"]):
        ran = run(command[0], path, *command[1:])
        assert ran.code == 1 and str(path) in ran.err and ran.err.count("\n") == 1, command
    assert path.read_bytes() == content


def test_export_and_import_give_the_same_record(run: Run, lived: Path, tmp_path: Path) -> None:
    lines = tmp_path / "work.jsonl"
    written = run("export", lived, "--out", lines)
    assert written.out == b"" and written.err == f"Wrote {lines}.\n"
    assert run("export", lived).out == lines.read_bytes()
    copy = tmp_path / "copy.mf"
    done = told(run("import", lines, copy, "--json"))
    assert done["conversations"] == ["harbour", "moorings.stream", "other"]
    assert told(run("verify", copy, "--derived", "--json")) == told(run("verify", lived, "--derived", "--json"))
    assert run("tree", copy).out == run("tree", lived).out
    assert run("export", copy).out == lines.read_bytes()
    assert run("import", lines, copy).code == 1
    assert run("import", lines, tmp_path / "third.mf", "--name", "x").code == 2


def test_a_torn_export_leaves_nothing(run: Run, lived: Path, tmp_path: Path) -> None:
    data = run("export", lived).out
    for torn in (data[: len(data) // 2], data.replace(b"keep", b"kept"), data[:200] + b"\xff" + data[200:]):
        ran = run("import", "-", tmp_path / "copy.mf", stdin=torn)
        assert ran.code == 1 and "export again" in ran.err
        assert not list(tmp_path.glob("copy.mf*"))


@pytest.mark.parametrize("wire", ["anthropic", "openai_chat", "openai_responses", "gemini"])
def test_native_messages_go_out_as_they_came_in(run: Run, harbour: Path, wire: str, tmp_path: Path) -> None:
    body, _ = formats.write(formats.read(harbour.read_bytes()), wire)
    record = tmp_path / "work.mf"
    run("import", "-", record, "--name", "a", "--from", wire, stdin=json.dumps(body).encode())
    ran = run("export", record, "--messages")
    assert told(ran) == body and not ran.err
    bare = body[formats.list_key(wire)]
    run("import", "-", record, "--name", "b", "--from", wire, stdin=json.dumps(bare).encode())
    assert told(run("export", record, "--messages", "--name", "b")) == bare


def test_native_messages_in_another_form(run: Run, work: Path, harbour: Path) -> None:
    ran = run("export", work, "--messages", "--format", "openai_chat")
    chat, own = formats.read(told(ran), "openai_chat"), formats.read(harbour.read_bytes())
    calls = [[(call.id, call.name) for message in each.messages for call in message.calls] for each in (chat, own)]
    results = [{result.call_id for message in each.messages for result in message.results} for each in (chat, own)]
    assert calls[0] == calls[1] and results[0] == results[1]
    assert "reasoning left out" in ran.err


@pytest.mark.parametrize("path", sorted(SESSIONS.iterdir()), ids=lambda path: path.name)
def test_markdown_holds_every_word_and_marker(run: Run, path: Path, tmp_path: Path) -> None:
    record, out = tmp_path / "work.mf", tmp_path / "work.md"
    run("import", path, record, "--name", "a")
    run("pin", record, "keep *me*")
    run("compact", record, "--model", MODEL, "--budget", "20k")
    assert run("export", record, "--markdown", "--out", out).code == 0
    text = out.read_text()
    assert run("export", record, "--markdown").text == text
    with Record.open(record, read_only=True) as held:
        state = held.conversation("a").state()
        for entry, message in state.messages:
            assert f"## Turn {entry.turn} · " in text
            assert message.text in text
            for result in message.results:
                assert result.text in text
        for event in state.events:
            assert f"> **compaction** ([entry {event.id}](work.html#e{event.id}), " in text
    assert "pinned (decision): keep \\*me\\*" in text


def test_a_fence_is_longer_than_any_inside(run: Run, tmp_path: Path) -> None:
    result = "before\n`````\n# not a heading\n"
    body = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "Read", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": result}]},
    ]
    record = tmp_path / "work.mf"
    run("import", "-", record, "--name", "a", stdin=json.dumps(body).encode())
    assert f"``````\n{result}\n``````\n" in run("export", record, "--markdown").text


def test_export_takes_one_form(run: Run, work: Path) -> None:
    assert run("export", work, "--messages", "--markdown").code == 2
    assert run("export", work, "--format", "gemini").code == 2
    assert run("export", work, "--name", "harbour").code == 2
    assert told(run("export", work, "--json")) == told(run("log", work, "--json"))


def test_a_backup_is_the_same_record_and_never_replaces_a_file(run: Run, lived: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.mf"
    ran = run("backup", lived, copy)
    assert ran.code == 0 and ran.text.splitlines()[1] == run("verify", lived).text.splitlines()[1]
    assert run("export", copy).out == run("export", lived).out
    assert run("verify", copy, "--derived").code == 0
    before = copy.read_bytes()
    ran = run("backup", lived, copy)
    assert ran.code == 1 and "exists" in ran.err and copy.read_bytes() == before
