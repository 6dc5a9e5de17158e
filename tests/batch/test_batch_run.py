"""A run over archives: what it writes, what a kill leaves, what it passes over."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import microfiche as mf
import pytest
from archive_samples import archive, said, tree
from microfiche.batch import worker
from microfiche.batch.journal import Journal
from microfiche.batch.rows import Look
from microfiche.batch.run import Outcome, Total, rerender_archives
from microfiche.batch.sources import Key
from pyarrow import parquet

MODEL = "claude-opus-5"
LOOK = Look(MODEL)


def run(source: Path, out: Path, look: Look = LOOK, **options: Any) -> Total:
    return rerender_archives([source], out, look, **options)


def rows(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "manifest.jsonl").read_text().splitlines()]


@pytest.fixture
def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return archive(tmp_path / "archive").relative_to(tmp_path)


def test_the_same_bytes_as_single_rendering(sessions: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    total = run(sessions, out)
    assert (total.sources, total.drawn, total.skipped, total.failed) == (8, 8, 0, [])
    files = tree(out)
    for path in sorted(sessions.rglob("*.json")):
        single = [row["png"] for row in mf.rerender([{"session": "", "text": path.read_text()}], model=MODEL)]
        assert [files.pop(f"{path}/page-{n:03}.png") for n in range(1, len(single) + 1)] == single
    assert sorted(files) == ["journal.jsonl", "manifest.jsonl"]
    assert total.pages == len(rows(out)) and total.bytes == sum(row["bytes"] for row in rows(out))


def test_names_that_are_no_utf8_stand_in_parquet_as_escapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        Path("s\udcff.json").write_text(json.dumps(said(1)))
    except OSError:
        pytest.skip("names of files are text here")
    run(Path("s\udcff.json"), tmp_path / "out", manifest="parquet")
    told = parquet.read_table(tmp_path / "out" / "manifest.parquet").to_pylist()
    assert {row["session"] for row in told} == {"s\\udcff.json"}
    assert all((tmp_path / "out" / os.fsdecode(b"s\xff.json") / f"page-{row['page']:03}.png").exists() for row in told)


def test_the_manifest_tells_each_page(sessions: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(sessions, out)
    told = rows(out)
    for row in told:
        (again,) = [
            each
            for each in mf.rerender([{"path": row["source"]}], model=MODEL)
            if each["page"] == row["page"]
        ]  # fmt: skip
        assert (out / row["file"]).read_bytes() == again["png"]
        assert row["session"] == os.path.relpath(row["source"])
        for name in ("model", "page", "turns", "width", "height", "tokens", "bytes", "digest"):
            assert row[name] == again[name], name
    assert [(row["session"], row["page"]) for row in told] == sorted((row["session"], row["page"]) for row in told)
    run(sessions, out, manifest="parquet")
    assert parquet.read_table(out / "manifest.parquet").to_pylist() == told
    assert not (out / "manifest.jsonl").exists()


@pytest.mark.parametrize("jobs", [2, 3])
def test_processes_change_no_byte(sessions: Path, tmp_path: Path, jobs: int) -> None:
    (sessions / "broken.json").write_text("{")
    one, several = run(sessions, tmp_path / "one"), run(sessions, tmp_path / "several", jobs=jobs)
    assert tree(tmp_path / "one") == tree(tmp_path / "several")
    assert one.failed == several.failed and len(one.failed) == 1


KILLED = """
import os, signal, sys
from microfiche.batch import journal, run
from microfiche.batch.rows import Look
moment, out, jobs = sys.argv[1:]
done = []

def die(*_):
    done.append(0)
    if len(done) == 3:
        os.kill(os.getpid(), signal.SIGKILL)

heard = die if moment == "between sessions" else lambda _: None
line, add = journal._line, journal.Journal.add
if moment == "before the list":
    def listed(value):
        if "pages" in value:
            die()
        return line(value)
    journal._line = listed
if moment == "in the midst of a line":
    def adding(self, *told):
        add(self, *told)
        self._file.truncate(self._file.tell() - 20 * (len(done) == 2))
        die()
    journal.Journal.add = adding
if moment == "at the end":
    close = journal.Journal.close
    def closing(self, manifest):
        os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        close(self, manifest)
    journal.Journal.close = closing
run.rerender_archives(["archive"], out, Look("claude-opus-5"), jobs=int(jobs), done=heard)
"""


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("moment", ["between sessions", "before the list", "in the midst of a line", "at the end"])
def test_a_run_that_was_killed_is_gone_on_with(sessions: Path, tmp_path: Path, moment: str, jobs: int) -> None:
    out = tmp_path / "out"
    killed = subprocess.run([sys.executable, "-c", KILLED, moment, str(out), str(jobs)], cwd=tmp_path, timeout=120)
    assert killed.returncode == -9
    assert not list(out.glob("manifest.*"))
    told = run(sessions, out, jobs=jobs)
    assert told.skipped == {"between sessions": 3, "at the end": 8}.get(moment, 2)
    assert told.drawn == 8 - told.skipped
    run(sessions, tmp_path / "whole")
    assert tree(out) == tree(tmp_path / "whole")


def test_what_has_not_changed_is_left_alone_and_what_has_is_drawn_anew(sessions: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(sessions, out)
    before = tree(out)
    assert (run(sessions, out).drawn, tree(out)) == (0, before)
    (sessions / "session-1.json").write_text(json.dumps(said(99, turns=1)))
    (out / "archive/session-2.json/page-001.png").unlink()
    (out / "archive/session-4.json/page-001.png").write_bytes(b"cut")
    (sessions / "session-9.json").write_text(json.dumps(said(9)))
    total = run(sessions, out)
    assert (total.drawn, total.skipped) == (4, 5)
    assert "Session 99" in mf.read_back(sorted((out / "archive/session-1.json").iterdir()))
    run(sessions, tmp_path / "new")
    assert tree(out) == tree(tmp_path / "new")


def test_a_second_archive_joins_the_first(sessions: Path, tmp_path: Path) -> None:
    (tmp_path / "more.json").write_text(json.dumps(said(50)))
    run(sessions, tmp_path / "out")
    run(Path("more.json"), tmp_path / "out")
    rerender_archives([sessions, "more.json"], tmp_path / "both", LOOK)
    assert tree(tmp_path / "out") == tree(tmp_path / "both")


def test_corrupt_sessions_are_named_and_the_rest_goes_on(sessions: Path, tmp_path: Path) -> None:
    (sessions / "a-junk.jsonl").write_bytes(bytes(range(256)))
    (sessions / "b-empty.json").write_bytes(b"")
    (sessions / "c-record.mf").write_bytes(b"SQLite format 3\0" + bytes(2000))
    (sessions / "d-gone.json").symlink_to("nowhere")
    (sessions / "e-torn.json").write_text(json.dumps(said(1))[:500])
    heard: list[Outcome] = []
    total = run(sessions, tmp_path / "out", done=heard.append)
    assert [Path(name).name for name, _ in sorted(total.failed)] == [
        "a-junk.jsonl", "b-empty.json", "c-record.mf", "d-gone.json", "e-torn.json"
    ]  # fmt: skip
    assert all(error for _, error in total.failed)
    assert (total.drawn, total.sources, len(heard)) == (8, 13, 13)
    # They are tried again, the others are not drawn again.
    (sessions / "e-torn.json").write_text(json.dumps(said(1)))
    again = run(sessions, tmp_path / "out")
    assert (again.drawn, again.skipped, len(again.failed)) == (1, 8, 4)


def test_duplicate_names_have_their_own_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    for place, number in ((here, 1), (tmp_path, 2)):
        (place / "a").mkdir(parents=True)
        (place / "a/s.json").write_text(json.dumps(said(number)))
    monkeypatch.chdir(here)
    rerender_archives(["a", "../a"], tmp_path / "out", LOOK)
    for name, number in (("s.json", 1), ("s.json~2", 2)):
        assert f"Session {number}" in mf.read_back(sorted((tmp_path / "out/a" / name).iterdir()))
    assert {(row["session"], row["source"]) for row in rows(tmp_path / "out")} == {
        ("a/s.json", str(here / "a/s.json")),
        ("a/s.json~2", str(tmp_path / "a/s.json")),
    }


def test_a_process_that_dies_costs_one_session(sessions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = worker.Worker.draw

    def dying(self: worker.Worker, key: Key, folder: Path) -> Any:
        if key.path.endswith("session-5.json"):
            (self._process or self._begin()).kill()
        return sent(self, key, folder)

    monkeypatch.setattr(worker.Worker, "draw", dying)
    total = run(sessions, tmp_path / "out", jobs=2)
    ((name, error),) = total.failed
    assert name == "archive/session-5.json" and "ended (-9)" in error
    assert total.drawn == 7


def test_an_interruption_leaves_what_is_done(sessions: Path, tmp_path: Path) -> None:
    def interrupt(_: Outcome) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(sessions, tmp_path / "out", jobs=2, done=interrupt)
    assert not (tmp_path / "out/.unfinished").exists()
    assert run(sessions, tmp_path / "out").skipped == 1


def test_a_folder_holds_pages_of_one_kind(sessions: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(sessions, out)
    before = tree(out)
    for look in (Look("gemini-3-pro"), Look(MODEL, level="fastest"), Look(MODEL, fidelity="gist")):
        with pytest.raises(mf.BadInput, match="another kind"):
            run(sessions, out, look)
    assert tree(out) == before


def test_one_run_at_a_time(tmp_path: Path) -> None:
    with Journal(tmp_path / "out", {"model": ""}):
        before = tree(tmp_path)
        with pytest.raises(mf.Busy), Journal(tmp_path / "out", {"model": ""}):
            pass
        assert tree(tmp_path) == before


@pytest.mark.parametrize("name", ["notes.txt", "journal.jsonl"])
def test_other_files_are_left_alone(sessions: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_text('{"mine": 1}\n')
    with pytest.raises(mf.BadInput, match="choose"):
        run(sessions, out)
    assert tree(out) == {name: b'{"mine": 1}\n'}
    with pytest.raises(mf.MicroficheError, match="not a directory"):
        run(sessions, out / name)


def test_a_damaged_journal_is_not_guessed_at(sessions: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(sessions, out)
    text = (out / "journal.jsonl").read_bytes().replace(b'"stamp"', b'"stomp"', 1)
    (out / "journal.jsonl").write_bytes(text)
    with pytest.raises(mf.BadInput, match="damaged"):
        run(sessions, out)
