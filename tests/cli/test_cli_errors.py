"""What a wrong word on the command line is answered with: what, where, and what to do, in words of the commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Ran

Run = Callable[..., Ran]

MODEL = ("--model", "claude-opus-5")


@pytest.fixture
def steered(run: Run, work: Path) -> Path:
    """A record with a pin and two passes in force."""
    assert run("pin", work, "keep this").code == 0
    for step in ("elide", "images"):
        ran = run("shake", work, *MODEL, "--only", step)
        assert ran.code == 0, ran.err
    return work


def passes(run: Run, record: Path) -> list[int]:
    """The entries of its passes."""
    return [int(line.split()[0]) for line in run("log", record, "--all").text.splitlines() if "shake" in line]


def test_an_entry_that_is_not_there(run: Run, steered: Path) -> None:
    last = run("verify", steered).text.splitlines()[1].split()[1].split(":")[0]
    for words in (("show", steered, "--removed", 9999), ("branch", steered, 9999), ("audit", steered, "--at", 9999)):
        ran = run(*words)
        assert ran.code == 1 and ran.err.endswith(f": no entry 9999; entries go from 1 to {last}\n"), ran.err
    ran = run("show", steered, "--removed", 1)
    assert ran.code == 1
    assert ran.err == "microfiche: harbour: entry 1 is a message, no pass; name a compaction, an undo or a trim\n"


def test_an_entry_that_is_something_else(run: Run, steered: Path) -> None:
    first, second = passes(run, steered)
    pinned = run("pins", steered).text.split()[0]
    assert f"no pin {first} in force; there are {pinned}" in run("unpin", steered, first).err
    assert f"entry 1 is no pass in force; the newest is {second}" in run("undo", steered, 1).err
    assert f"entry {first} is not the newest pass in force; undo {second} first" in run("undo", steered, first).err
    assert run("unpin", steered, pinned).code == 0
    assert "in force; there are none" in run("unpin", steered, pinned).err
    assert run("fork", steered, "other").code == 0
    ran = run("audit", steered, "--name", "other", "--at", 1)
    assert ran.err.endswith("entry 1 is of conversation 'harbour'; name that conversation\n")


def test_a_value_that_stands_where_no_argument_is_due(run: Run, work: Path) -> None:
    ran = run("shake", work, "elide", "images", *MODEL)
    assert ran.code == 2 and "(elide images); --only takes one of them" in ran.err
    ran = run("export", work, "slides")
    assert ran.code == 2 and "(slides); say --as slides" in ran.err
    assert ";" not in run("export", work, "films").err


@pytest.mark.parametrize("words", [("show", "abc"), ("log", "--last", "x"), ("log", "--last", "0")])
def test_a_number_that_is_none(run: Run, work: Path, words: tuple[str, ...]) -> None:
    command, *rest = words
    ran = run(command, work, *rest)
    assert ran.code == 2 and "range." not in ran.err and words[-1] in ran.err


def test_what_is_no_record(run: Run, harbour: Path, tmp_path: Path) -> None:
    for words in (("log",), ("tree",), ("verify",), ("pin", "text")):
        command, *rest = words
        ran = run(command, tmp_path, *rest)
        assert (ran.code, ran.err) == (1, f"microfiche: {tmp_path}: a folder; name the record in it\n")
        ran = run(command, harbour, *rest)
        assert ran.code == 1 and "import this into one if it is a session" in ran.err


def test_words_that_say_nothing(run: Run, work: Path) -> None:
    assert run("checkpoint", work, " ").code == 1
    assert "without a name" in run("checkpoint", work, "").err
    ran = run("search", work, "?!")
    assert ran.code == 2 and "neither a letter nor a figure" in ran.err
