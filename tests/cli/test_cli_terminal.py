"""How `tree`, `log` and `context` are drawn: on wide terminals and narrow ones, in colours and without."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import microfiche as mf
import pytest
from microfiche.demo import Clock, play
from rich.cells import cell_len

if TYPE_CHECKING:
    from conftest import Ran

    Run = Callable[..., Ran]

COMMANDS = (
    ("tree",),
    ("log", "--name", "greenhouse"),
    ("log", "--name", "greenhouse", "--all"),
    ("context", "--name", "greenhouse", "--model", "claude-opus-5"),
)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The record of the demonstration: branches, a fork, all kinds of events, wide characters."""
    path = tmp_path_factory.mktemp("story") / "greenhouse.mf"
    with mf.Record.open(path, clock=Clock()) as record:
        play(record)
    return path


@pytest.mark.parametrize("columns", [40, 41, 64, 80, 120, 200])
def test_no_line_is_wider_than_the_terminal(
    run: Run, story: Path, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for name, *words in COMMANDS:
        ran = run(name, story, *words)
        assert ran.code == 0, ran.err
        assert max(map(cell_len, ran.text.splitlines())) <= columns, ran.text


def test_the_tree_says_what_was_asked_and_answered_where_there_is_room(
    run: Run, story: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {}
    for columns in (44, 160):
        monkeypatch.setenv("COLUMNS", str(columns))
        told[columns] = run("tree", story, "--name", "greenhouse").text
        heads = re.findall(r"^(?:├─)?● turns (\d+)-(\d+), entries \d+-\d+", told[columns], re.MULTILINE)
        assert heads == [("1", "12"), ("13", "17"), ("18", "24")]
        assert told[columns].count("<- tip") == 1
    assert '"Then mend it." -> "They do: mist, lamps and alarm count' in told[160]
    assert "温室3" in told[160] and " -> " not in told[44]


def test_bars_show_the_shares_of_the_window(run: Run, story: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    lines = run("context", story, "--name", "greenhouse", "--model", "claude-opus-5").text.splitlines()
    rows = [re.fullmatch(r"(.+?) +([-\d,]+) +([-\d.]+)%(?:  ([▏▎▍▌▋▊▉█]+))?", line) for line in lines[2:]]
    found = {row[1]: (float(row[3]), len((row[4] or "").rstrip("▏▎▍▌▋▊▉"))) for row in rows if row is not None}
    assert len(found) == len(lines) - 2 and set(found) >= {"tools", "messages", "free", "budget"}
    for label, (share, blocks) in found.items():
        assert label == "budget" or abs(blocks - share * 30 / 100) <= 1, label


def shown(record: Path, words: tuple[str, ...], **environment: str) -> str:
    """What a command prints on a terminal."""
    command = [sys.executable, "-m", "microfiche", words[0], str(record), *words[1:]]
    env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    ours, theirs = pty.openpty()
    told = b""
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        with os.fdopen(theirs, "wb", buffering=0) as stdout:
            running = subprocess.Popen(
                command, stdout=stdout, env={**env, "TERM": "xterm", "COLUMNS": "100", **environment}
            )
        with running, suppress(OSError):  # the end of a terminal
            while piece := terminal.read(4096):
                told += piece
    assert running.returncode == 0
    return told.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("words", [COMMANDS[0], COMMANDS[1], COMMANDS[3]], ids=lambda words: words[0])
def test_colours_are_for_terminals_that_want_them(
    run: Run, story: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)
    piped = run(words[0], story, *words[1:]).text
    assert "\x1b" not in piped
    coloured = shown(story, words)
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == piped
    assert shown(story, words, NO_COLOR="1") == piped
    assert shown(story, words, TERM="dumb") == piped
