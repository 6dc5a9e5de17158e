"""``microfiche bench``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Ran
from microfiche.reading import ocr

Run = Callable[..., Ran]

SESSION = Path(__file__).parents[1] / "data" / "sessions" / "harbour.claude-code.jsonl"


def test_density_of_a_session(run: Run) -> None:
    asked = ("bench", "density", SESSION, "--model", "claude-opus-5", "--cell", "9x16", "--cell", "5x10")
    told = json.loads(run(*asked, "--json").out)
    rows = told["rows"]
    assert {(row["text"], tuple(row["cell"]), row["lines"]) for row in rows} == {
        (text, cell, lines)
        for text in ("all", "words", "calls", "results")
        for cell in ((9, 16), (5, 10))
        for lines in ("flow", "hard")
    }
    assert all(row["grade"] in ("gist", "default") and row["gain"] > 0 for row in rows)
    ran = run(*asked, "--lines", "flow")
    assert len([line for line in ran.text.splitlines() if line.startswith("claude-opus-5")]) == 8
    assert "the fidelity at which the model is known to read this cell" in ran.text


def test_made_text_is_measured_without_a_session(run: Run) -> None:
    asked = ("bench", "density", "--model", "claude-opus-5", "--cell", "9x16", "--characters", "20000", "--json")
    first, again, other = (run(*asked, "--seed", seed).out for seed in ("1", "1", "2"))
    assert first == again != other
    assert {row["text"] for row in json.loads(first)["rows"]} == {"code", "json", "log"}


@pytest.fixture
def reader(tmp_path: Path) -> str:
    """A reader of PNG files that reads every line as nothing but its width."""
    script = tmp_path / "reader.py"
    script.write_text("import struct, sys\nprint(struct.unpack('>I', open(sys.argv[1], 'rb').read()[16:20])[0])\n")
    return f"{sys.executable} {script}"


def test_reading_by_a_program(run: Run, reader: str) -> None:
    asked = ("bench", "reading", "--reader", reader, "--count", "2", "--cell", "9x16", "--scale", "1", "--scale", "0.5")
    rows = json.loads(run(*asked, "--json").out)["rows"]
    assert [(row["text"], row["scale"]) for row in rows] == [("code", 1), ("mixed", 1), ("code", 0.5), ("mixed", 0.5)]
    assert all(row["cer"] > 0.9 and row["found"] == 0 and row["identifiers"] == row["lines"] == 2 for row in rows)
    assert all(sum(row["confusions"].values()) == row["edits"] for row in rows)
    assert run(*asked).text.splitlines()[2].startswith("9x16   grey")


def test_a_reader_that_fails_is_named(run: Run, tmp_path: Path) -> None:
    ran = run("bench", "reading", "--reader", f"{sys.executable} -c 'raise SystemExit(3)'", "--count", "1")
    assert ran.code == 1 and "ended with code 3" in ran.err
    assert run("bench", "reading", "--reader", str(tmp_path / "none"), "--count", "1").code == 1


@pytest.mark.parametrize(
    "words", [("speed",), ("reading", "--model", "a"), ("density", "--scale", "1"), ("reading", str(SESSION))]
)
def test_wrong_usage(run: Run, words: tuple[str, ...]) -> None:
    assert run("bench", *words).code == 2


def test_an_exact_reader_makes_no_error() -> None:
    texts = {kind: lines[:3] for kind, lines in ocr.texts(1, 3).items()}
    known = iter([line for lines in texts.values() for line in lines])
    for reading in ocr.measure(lambda image: next(known), "it", texts, [(9, 16)], scales=[1.0]):
        assert (reading.cer, reading.found, reading.confusions) == (0, 3, {})


@pytest.mark.full
def test_the_independent_reader_reads_our_font() -> None:
    pytest.importorskip("rapidocr")
    for reading in ocr.measure(ocr.rapidocr(), "rapidocr", ocr.texts(1, 10), [(9, 16)], scales=[1.0]):
        assert reading.cer < 0.02 and reading.found >= 9
