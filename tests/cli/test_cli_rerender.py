"""``microfiche rerender``."""

from __future__ import annotations

import importlib.util
import io
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import microfiche as mf
import pytest
from conftest import Ran
from microfiche.batch.run import Outcome
from microfiche.batch.sources import Key, Source
from microfiche.batch.worker import Drawn
from microfiche.cli.rerender import Ahead
from pyarrow import parquet
from rich.console import Console

Run = Callable[..., Ran]
MODEL = "claude-opus-5"


@pytest.fixture
def archive(harbour: Path, moorings: Path, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder of two sessions and a record of one of them, beneath the working directory."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "archive"
    folder.mkdir()
    for path in (harbour, moorings, work):
        shutil.copy(path, folder)
    return "archive"


def test_sessions_and_records_become_pages(run: Run, archive: str, tmp_path: Path) -> None:
    ran = run("rerender", archive, "--model", MODEL, "--out", "out", "--jobs", 1)
    assert (ran.code, ran.err) == (0, "")
    assert re.fullmatch(r"3 sessions on \d+ pages in out; [\d,]+ tokens, [\d,]+ bytes, [\d,]+ characters/s\n", ran.text)
    told = parquet.read_table("out/manifest.parquet").to_pylist()
    assert {row["session"] for row in told} == {
        "archive/harbour.claude-code.jsonl", "archive/moorings.stream.jsonl", "archive/work.mf/harbour"
    }  # fmt: skip
    assert all(Path("out", row["file"]).exists() for row in told)
    # The record holds the very session.
    ours = [[row["digest"] for row in told if row["session"].startswith(name)] for name in ("archive/h", "archive/w")]
    assert ours[0] == ours[1]
    assert "Ålesund" in mf.read_back(sorted(Path("out/archive/work.mf/harbour").iterdir()))
    again = run("rerender", archive, "--model", MODEL, "--out", "out")
    assert again.text == "0 sessions on 0 pages in out; 3 unchanged\n"


def test_what_cannot_be_read_is_named_and_the_exit_code_says_so(run: Run, archive: str) -> None:
    Path(archive, "torn.json").write_text("[{")
    ran = run("rerender", archive, "no*such", "--model", MODEL, "--out", "out", "--jobs", 1, "--json")
    assert ran.code == 1
    told = json.loads(ran.text)
    assert (told["sessions"], told["drawn"], told["unchanged"]) == (5, 3, 0)
    assert {each["session"] for each in told["failed"]} == {"archive/torn.json", "no*such"}
    first, second, summary = ran.err.splitlines()
    assert {first.split(": ")[0], second.split(": ")[0]} == {"archive/torn.json", "no*such"}
    assert summary.endswith("; 2 not drawn")


def test_without_pyarrow_the_manifest_is_json_lines(run: Run, archive: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "pyarrow" else found(name))
    assert run("rerender", archive, "--model", MODEL, "--out", "out", "--jobs", 1).code == 0
    assert Path("out/manifest.jsonl").exists() and not Path("out/manifest.parquet").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--model", "gpt-3.5-turbo"), 1, "reads images"),
        (("--model", MODEL, "--fidelity", "gist", "--jobs", 0), 2, "--jobs"),
        ((), 2, "--model"),
    ],
)
def test_what_is_refused(run: Run, archive: str, arguments: tuple[object, ...], code: int, words: str) -> None:
    ran = run("rerender", archive, "--out", "out", *arguments)
    assert ran.code == code and words in ran.err
    assert not Path("out").exists()


def test_a_terminal_shows_how_far_it_is() -> None:
    screen = io.StringIO()
    sources = [Source(Key(str(n), None), str(n), "", 50) for n in range(4)]
    with Ahead(Console(file=screen, force_terminal=True, width=100)) as ahead:
        ahead.begin(sources)
        ahead.advance(Outcome(sources[0]))
        ahead.advance(Outcome(sources[1], Drawn(1_000_000, [])))
        ahead._progress.refresh()
        assert (ahead._progress.tasks[0].completed, ahead._progress.tasks[0].total) == (50, 150)
    assert "2/4 sessions" in screen.getvalue() and "M characters/s" in screen.getvalue()
    nowhere = io.StringIO()
    with Ahead(Console(file=nowhere)) as ahead:
        ahead.begin(sources)
        ahead.advance(Outcome(sources[0]))
    assert nowhere.getvalue() == ""
