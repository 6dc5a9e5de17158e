"""``import``, ``log``, ``show``, ``search`` and ``tree``: what goes into a record is there to be seen."""

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
from rich.cells import cell_len

Run = Callable[..., Ran]


def told(ran: Ran) -> Any:
    assert ran.code == 0, ran.err
    return json.loads(ran.text)


def messages_of(path: Path) -> list[Any]:
    body, _ = formats.write(formats.read(path.read_bytes()), "anthropic")
    messages: list[Any] = body["messages"]
    return messages


@pytest.mark.parametrize("path", sorted(SESSIONS.iterdir()), ids=lambda path: path.name)
def test_every_session_goes_in_with_its_turns(run: Run, path: Path, tmp_path: Path) -> None:
    record = tmp_path / "work.mf"
    done = told(run("import", path, record, "--json"))
    history = formats.read(path.read_bytes())
    assert done["conversation"] == path.stem and done["format"] == history.format
    assert (done["messages"], done["turns"]) == (len(history.messages), len(history.turns()[1]))
    assert run("verify", record, "--derived").code == 0
    with Record.open(record, read_only=True) as held:
        assert [message for _, message in held.conversation(path.stem).state().messages] == history.messages


def test_a_session_comes_from_standard_input_with_a_name(run: Run, harbour: Path, tmp_path: Path) -> None:
    record = tmp_path / "work.mf"
    ran = run("import", "-", record, stdin=harbour.read_bytes())
    assert ran.code == 2 and "--name" in ran.err and not record.exists()
    ran = run("import", "-", record, "--name", "港 harbour", stdin=harbour.read_bytes())
    assert ran.code == 0 and "港 harbour" in ran.text


@pytest.mark.parametrize(
    "data, name, why",
    [
        (b"not a session", "a", "no JSON"),
        (b"[]", "a", "no message"),
        (b'[{"role": "user", "content": "x"}]', "a\nb", "cannot name a conversation"),
    ],
)
def test_what_cannot_be_imported_leaves_no_file(run: Run, data: bytes, name: str, why: str, tmp_path: Path) -> None:
    ran = run("import", "-", tmp_path / "work.mf", "--name", name, stdin=data)
    assert ran.code == 1 and why in ran.err and ran.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_the_two_files_of_an_import_are_not_mixed_up(run: Run, work: Path, harbour: Path, bulletin: Path) -> None:
    ran = run("import", work, harbour)
    assert ran.code == 1 and "session first" in ran.err
    before = bulletin.read_bytes()
    ran = run("import", harbour, bulletin)
    assert ran.code == 1 and "not a record" in ran.err and bulletin.read_bytes() == before


def test_a_record_of_a_newer_format_is_left_alone(run: Run, work: Path, moorings: Path) -> None:
    with sqlite3.connect(work) as db:
        db.execute("PRAGMA user_version = 99")
    for command in (["log", work], ["import", moorings, work], ["verify", work], ["pin", work, "x"]):
        ran = run(*command)
        assert ran.code == 1 and "99" in ran.err and ran.err.count("\n") == 1


def test_damage_is_told_and_kept(run: Run, harbour: Path, tmp_path: Path) -> None:
    lines = harbour.read_bytes().split(b"\n")
    lines.insert(4, b'{"type": "user", "torn')
    session, record = tmp_path / "s.jsonl", tmp_path / "work.mf"
    session.write_bytes(b"\n".join(lines))
    ran = run("import", session, record)
    assert f"{session}:5: damaged line passed over" in ran.text
    assert "s.jsonl:5" in run("log", record, "--json").text
    assert "damaged line passed over" in run("log", record).text


def test_a_name_that_is_taken_is_refused_and_nothing_changes(run: Run, work: Path, harbour: Path) -> None:
    before = run("verify", work).text
    ran = run("import", harbour, work, "--name", "harbour")
    assert ran.code == 1 and "exists" in ran.err
    assert run("verify", work).text == before


def test_with_several_conversations_a_name_is_needed(run: Run, work: Path, moorings: Path) -> None:
    assert run("import", moorings, work, "--name", "moorings").code == 0
    for command in (["log"], ["show", "3"], ["pins"], ["undo"], ["export", "--messages"]):
        ran = run(command[0], work, *command[1:])
        assert ran.code == 2 and "harbour, moorings" in ran.err and "--name" in ran.err
    ran = run("log", work, "--name", "mooring")
    assert ran.code == 1 and "there are harbour, moorings" in ran.err
    assert run("log", work, "--name", "moorings").code == 0


def test_a_record_that_is_not_there_is_not_made(run: Run, tmp_path: Path, harbour: Path) -> None:
    ran = run("log", tmp_path / "none.mf")
    assert ran.code == 1 and "no such file" in ran.err and not list(tmp_path.iterdir())
    ran = run("log", harbour)
    assert ran.code == 1 and ran.err.count("\n") == 1 and "Traceback" not in ran.err


def test_log_lists_the_path_with_its_events(run: Run, work: Path) -> None:
    run("pin", work, "Heights are in centimetres.", "--kind", "definition")
    run("checkpoint", work, "here")
    lines = run("log", work).text.splitlines()
    entries = told(run("log", work, "--json"))
    assert len(lines) == len(entries) == 77 + 3
    assert [entry["kind"] for entry in entries[-3:]] == ["import", "pin", "label"]
    assert "pinned (definition): Heights are in centimetres." in lines[-2] and "checkpoint here" in lines[-1]
    assert [int(line.split()[0]) for line in lines] == [entry["entry"] for entry in entries]
    assert run("log", work, "--last", 2).text.splitlines() == lines[-2:]
    said = [entry["message"] for entry in entries if "message" in entry]
    assert said[0]["role"] == "user" and said[0]["parts"][0]["type"] == "text"


def test_log_all_shows_the_other_branch_and_the_move(run: Run, work: Path) -> None:
    assert run("branch", work, 40).code == 0
    path, every = told(run("log", work, "--json")), told(run("log", work, "--all", "--json"))
    assert max(entry["turn"] or 0 for entry in path) < max(entry["turn"] or 0 for entry in every) == 41
    assert [entry["entry"] for entry in every] == list(range(1, 80))
    assert every[-1]["kind"] == "move" and "tip moved from entry 77 to entry 40" in run("log", work, "--all").text


@pytest.mark.parametrize("columns", [40, 60, 100])
def test_lines_fit_the_terminal_in_cells(
    run: Run, tmp_path: Path, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "潮位の記録が夜間の取り込みで失われている。" * 20 + "\u001b[31m\u202e e\u0301" * 10
    body = json.dumps([{"role": "user", "content": text}, {"role": "assistant", "content": "🚢" * 100}]).encode()
    record = tmp_path / "work.mf"
    run("import", "-", record, "--name", "港湾の会話" * 4, stdin=body)
    run("pin", record, text)
    run("checkpoint", record, "錨" * 50)
    monkeypatch.setenv("COLUMNS", str(columns))
    for command in (["log"], ["tree"], ["pins"]):
        out = run(command[0], record, *command[1:])
        assert out.code == 0 and "\u001b" not in out.text and "\u202e" not in out.text
        assert max(cell_len(line) for line in out.text.splitlines()) <= columns, out.text


def test_show_prints_what_was_said(run: Run, work: Path, harbour: Path) -> None:
    native = told(run("show", work, 3, "--json"))
    messages = messages_of(harbour)
    at = messages.index(native[0])
    assert native == messages[at : at + 2] and native[0]["role"] == "assistant"
    text = run("show", work, 1).text
    assert messages[0]["content"] in text or messages[0]["content"][0]["text"] in text
    assert "entry 1, turn 1, user" in text


def test_show_wants_one_of_two_things(run: Run, work: Path) -> None:
    assert run("show", work).code == 2
    assert run("show", work, 3, "--removed", 4).code == 2
    ran = run("show", work, 99)
    assert ran.code == 1 and "turns go to 41" in ran.err


def test_search_finds_turns_newest_first(run: Run, work: Path) -> None:
    found = told(run("search", work, "make test", "--json"))
    turns = [hit["turn"] for hit in found]
    assert turns == sorted(turns, reverse=True) and len(turns) > 3
    assert all("make test" in hit["text"] for hit in found)
    assert told(run("search", work, "make test", "--limit", 2, "--skip", 1, "--json")) == found[1:3]
    assert len(run("search", work, "make test").text.splitlines()) == len(found)
    none = run("search", work, "zeppelin")
    assert (none.code, none.out) == (0, b"") and "Nothing found" in none.err


def test_search_looks_through_all_conversations_or_one(run: Run, work: Path, moorings: Path) -> None:
    run("import", moorings, work, "--name", "moorings")
    everywhere = {hit["conversation"] for hit in told(run("search", work, "harbour", "--limit", 100, "--json"))}
    assert everywhere == {"harbour", "moorings"}
    one = told(run("search", work, "harbour", "--name", "moorings", "--json"))
    assert {hit["conversation"] for hit in one} == {"moorings"}


def test_tree_shows_branches_with_their_answers_labels_and_forks(run: Run, tmp_path: Path) -> None:
    record = tmp_path / "work.mf"
    with Record.open(record) as held:
        chat = held.conversation("triage")
        chat.append([{"role": "user", "content": "Find the leak."}, {"role": "assistant", "content": "Where?"}])
        start = chat.tip
        chat.append([{"role": "user", "content": "The allocator."}, {"role": "assistant", "content": "Not there."}])
        chat.branch(start)
        chat.append([{"role": "user", "content": "The cache."}, {"role": "assistant", "content": "Found it."}])
    run("checkpoint", record, "found")
    run("fork", record, "triage-b")
    trees = told(run("tree", record, "--json"))
    triage, fork = trees
    ways = {each["asked"]: each for each in triage["stretches"]}
    assert [each["answered"] for each in triage["stretches"]] == ["Where?", "Not there.", "Found it."]
    assert ways["The allocator."]["parent"] == ways["The cache."]["parent"] == start
    assert [each["tip"] for each in triage["stretches"]] == [False, False, True]
    assert triage["checkpoints"] == {"found": triage["tip"]}
    assert fork["forked_from"] == {"conversation": "triage", "entry": triage["tip"]}
    assert [each["asked"] for each in fork["stretches"]] == ["Find the leak."]
    text = run("tree", record).text
    (line,) = [line for line in text.splitlines() if "The cache." in line]
    assert "Found it." in line and line.endswith("<- tip")
    assert "checkpoint found" in text and "forked as triage-b" in text and "forked from triage" in text
    # A tip inside the tree cuts the stretch that it stands in.
    run("branch", record, 1, "--name", "triage")
    stretches = told(run("tree", record, "--name", "triage", "--json"))[0]["stretches"]
    assert [each["entries"] for each in stretches if each["tip"]] == [[1, 1]]
    assert sum(each["entries"][1] - each["entries"][0] + 1 for each in stretches) == 6


def test_a_tree_of_many_branches_one_below_the_other(run: Run, tmp_path: Path) -> None:
    record = tmp_path / "work.mf"
    with Record.open(record) as held:
        chat = held.conversation("deep")
        chat.append({"role": "user", "content": "0"})
        for at in range(60):
            here = chat.tip
            chat.append({"role": "assistant", "content": f"left {at}"})
            chat.branch(here)
            chat.append({"role": "assistant", "content": f"right {at}"})
    text = run("tree", record).text
    assert all(f"left {at}" in text and f"right {at}" in text for at in range(60))


def test_a_session_that_has_grown_is_imported_again(run: Run, harbour: Path, tmp_path: Path) -> None:
    session, record = tmp_path / "s.jsonl", tmp_path / "work.mf"
    lines = harbour.read_bytes().splitlines(keepends=True)
    session.write_bytes(b"".join(lines[:70]))
    ran = run("import", session, record, "--update")
    assert ran.code == 1 and not record.exists()
    assert run("import", session, record).code == 0
    session.write_bytes(b"".join(lines))
    taken = run("import", session, record)
    assert taken.code == 1 and "exists" in taken.err
    done = told(run("import", session, record, "--update", "--json"))
    assert 0 < done["turns"] < 41
    assert told(run("export", record, "--messages")) == messages_of(harbour)
    again = run("import", session, record, "--update")
    assert again.code == 0 and "Nothing new" in again.text
    assert run("verify", record, "--derived").code == 0


def test_the_newest_lines_are_the_end_of_all_lines(run: Run, work: Path) -> None:
    run("checkpoint", work, "here")
    run("branch", work, 40)
    for how in ((), ("--all",)):
        whole = told(run("log", work, "--json", *how))
        for last in (1, 3, len(whole) - 1, len(whole), len(whole) + 5):
            assert told(run("log", work, "--json", *how, "--last", last)) == whole[-last:]


def test_the_branches_of_a_session_are_told_and_there(run: Run, tmp_path: Path) -> None:
    def line(uuid: str, parent: str | None, kind: str, words: str) -> dict[str, Any]:
        return {"uuid": uuid, "parentUuid": parent, "sessionId": "s", "type": kind,
                "message": {"role": kind, "id": uuid, "content": [{"type": "text", "text": words}]}}  # fmt: skip

    boundary = {
        "uuid": "e", "parentUuid": None, "logicalParentUuid": "d", "sessionId": "s", "type": "system",
        "subtype": "compact_boundary", "compactMetadata": {"trigger": "auto", "preTokens": 155_000},
    }  # fmt: skip
    lines = [
        line("a", None, "user", "Count."),
        line("b", "a", "assistant", "Seven."),
        line("c", "a", "user", "Stop."),
        line("d", "b", "user", "Sure?"),
        boundary,
        line("f", "e", "assistant", "Yes."),
        {"type": "custom-title", "customTitle": "Boats", "sessionId": "s"},
    ]
    session, record = tmp_path / "s.jsonl", tmp_path / "work.mf"
    session.write_text("\n".join(map(json.dumps, lines)))
    ran = run("import", session, record)
    assert "branch     ends at checkpoint branch 1" in ran.text
    assert "events     1 compaction and 1 name of the session" in ran.text
    log = run("log", record).text
    assert "the session's own compaction (auto) of turns 1-3, 155,000 tokens before" in log and "Boats" in log
    assert '"Stop."\n│     entry 7: checkpoint branch 1' in run("tree", record).text
    assert "Nothing new" in run("import", session, record, "--update").text
    again = tmp_path / "again.mf"
    assert told(run("import", session, again, "--json"))["branches"] == ["branch 1"]
    assert run("verify", again, "--derived").code == 0


def test_a_writer_waits_as_long_as_it_is_told(run: Run, work: Path) -> None:
    other = sqlite3.connect(work, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        for command in (
            ("checkpoint", work, "x"),
            ("pin", work, "x"),
            ("import", SESSIONS / "moorings.stream.jsonl", work),
        ):
            ran = run(*command, "--wait", 0)
            assert ran.code == 1 and "another process is writing" in ran.err
        assert run("log", work).code == 0 and run("verify", work).code == 0
    finally:
        other.close()
    assert run("checkpoint", work, "x", "--wait", "0.5").code == 0
    assert run("checkpoint", work, "x", "--wait", "-1").code == 2
