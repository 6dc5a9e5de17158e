"""Which cell follows from which readings, and readings of the user's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from microfiche.errors import BadInput
from microfiche.models import catalogue, cell_for, evidence, find
from microfiche.models.evidence import Cell, Reading, add_readings, cells_of, reading_of, reasoning, user_readings

DEFAULT = Cell(9, 16)


def reading(kind: str, cell: tuple[int, int] | None, right: int, n: int, **more: Any) -> Reading:
    return Reading(kind, cell, right, n, "somebody", "2026-11", "code, our font", **more)


def chosen(*readings: Reading) -> list[str]:
    return [str(cell) for cell in cells_of(readings, DEFAULT).values()]


@pytest.mark.parametrize(
    ("readings", "cells"),
    [
        ([], ["9x16", "9x16", "9x16"]),
        # Ordinary lines: enough of them, and enough right.
        ([reading("lines", (7, 14), 38, 40)], ["7x14", "7x14", "7x14"]),
        ([reading("battery", (7, 14), 100, 100)], ["7x14", "7x14", "7x14"]),
        ([reading("lines", (7, 14), 37, 40)], ["9x16", "7x14", "7x14"]),
        ([reading("lines", (7, 14), 39, 39)], ["9x16", "7x14", "7x14"]),
        ([reading("lines", (6, 12), 16, 20)], ["9x16", "6x12", "6x12"]),
        ([reading("lines", (6, 12), 15, 20)], ["9x16", "9x16", "9x16"]),
        ([reading("lines", (6, 12), 19, 19)], ["9x16", "9x16", "9x16"]),
        # Identifiers alone give gist, whatever their number; so do questions.
        ([reading("identifiers", (6, 12), 100, 100)], ["9x16", "9x16", "6x12"]),
        ([reading("identifiers", (6, 12), 11, 11)], ["9x16", "9x16", "9x16"]),
        ([reading("identifiers", (6, 12), 9, 12)], ["9x16", "9x16", "9x16"]),
        ([reading("gist", None, 90, 100)], ["9x16", "9x16", "5x10"]),
        ([reading("gist", None, 89, 100)], ["9x16", "9x16", "9x16"]),
        ([reading("gist", (8, 16), 39, 39)], ["9x16", "9x16", "9x16"]),
        ([reading("never", (5, 10), 100, 100)], ["9x16", "9x16", "9x16"]),
        # Nothing under 5x10, nothing over the default.
        ([reading("identifiers", (4, 8), 40, 40)], ["9x16", "9x16", "5x10"]),
        ([reading("lines", (12, 24), 80, 80)], ["9x16", "9x16", "9x16"]),
        # The smallest of several; a larger cell that was read worse speaks against it.
        ([reading("lines", (7, 14), 40, 40), reading("lines", (6, 12), 40, 40)], ["6x12", "6x12", "6x12"]),
        ([reading("lines", (7, 14), 30, 40), reading("lines", (6, 12), 40, 40)], ["9x16", "9x16", "9x16"]),
        # What mono ink was misread in is nothing against grey; the other way it is.
        ([reading("lines", (7, 14), 30, 40, ink="mono"), reading("lines", (6, 12), 40, 40)], ["6x12", "6x12", "6x12"]),
        ([reading("lines", (7, 14), 10, 40), reading("lines", (6, 12), 40, 40, ink="mono")], ["9x16", "9x16", "9x16"]),
        ([reading("lines", (7, 14), 34, 40), reading("lines", (6, 12), 40, 40)], ["9x16", "6x12", "6x12"]),
        ([reading("lines", (7, 14), 4, 20), reading("lines", (6, 12), 40, 40)], ["6x12", "6x12", "6x12"]),
        ([Reading("F1", (8, 16), None, None, "a", "2026-11", "b", score=0.99)], ["9x16", "9x16", "9x16"]),
    ],
)  # fmt: skip
def test_a_cell_follows_from_readings(readings: list[Reading], cells: list[str]) -> None:
    assert chosen(*readings) == cells
    assert chosen(*reversed(readings)) == cells


def test_ink_and_evidence_are_those_of_the_reading() -> None:
    cell = cells_of([reading("lines", (6, 12), 40, 40, ink="mono")], DEFAULT)["exact"]
    assert (cell.ink, cell.grade, cell.date) == ("mono", "measured", "2026-11")
    assert cell.evidence == "40/40 ordinary lines without a fault at 6x12 mono, code, our font; somebody, 2026-11"


def test_the_reasoning_says_what_was_asked_and_what_there_is() -> None:
    readings = [reading("lines", (7, 14), 30, 40), reading("lines", (6, 12), 40, 40), reading("gist", None, 40, 40)]
    told = dict(reasoning(readings, cells_of(readings, DEFAULT)))
    assert told["exact"].startswith("9x16, the default: 40/40 ordinary lines") and "but 30/40" in told["exact"]
    assert told["gist"].startswith("5x10, since it asks for 90% of 40 questions") and "40/40" in told["gist"]
    assert "there is no reading" in dict(reasoning([], cells_of([], DEFAULT)))["exact"]
    assert "of 1 readings none is that" in dict(reasoning(readings[:1], cells_of(readings[:1], DEFAULT)))["exact"]


def test_no_row_of_the_catalogue_is_graded_on_identifiers_alone() -> None:
    for model in catalogue():
        for fidelity in ("exact", "working"):
            if cell_for(model, fidelity).grade == "measured":
                assert any(each.kind in ("lines", "battery") and fidelity in each.grades for each in model.readings)
        assert all(each.by and each.date and each.on for each in model.readings)
    assert sum(bool(model.readings) for model in catalogue()) >= 9


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "data" / "readings.json"
    monkeypatch.setenv("MICROFICHE_READINGS", str(path))
    return path


def test_readings_of_the_user_count_like_the_catalogues(own: Path) -> None:
    assert user_readings() == {} and str(cell_for(find("claude-opus-5"))) == "9x16"
    assert add_readings("claude-opus-5", [reading("lines", (7, 14), 40, 40)]) == own
    opus = find("anthropic/claude-opus-5")
    assert [str(cell_for(opus, fidelity)) for fidelity in evidence.FIDELITIES] == ["7x14", "7x14", "5x10"]
    # Of this very model only: not of its line, and not of a newer one that the row answers for.
    assert str(cell_for(find("claude-opus-5-4"))) == str(cell_for(find("claude-opus-4-8"))) == "9x16"
    # Taken again it stands in the place of the first.
    add_readings("claude-opus-5", [reading("lines", (7, 14), 20, 40), reading("gist", (6, 12), 1, 40)])
    assert [each.right for each in find("claude-opus-5").readings[-2:]] == [20, 1]
    assert str(cell_for(find("claude-opus-5"))) == "9x16"


def test_a_model_that_nobody_knows_has_the_eyes_it_was_measured_with(own: Path) -> None:
    assert find("house-model").vision is False
    add_readings("house-model", [reading("lines", (8, 16), 48, 48)])
    found = find("house-model")
    assert found.vision is True and str(cell_for(found)) == "8x16"
    assert find("house-model", vision=False).vision is False
    add_readings("o3-mini", [reading("lines", (8, 16), 48, 48)])
    assert find("o3-mini").vision is False


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"version": 2, "models": {}}',
        '{"version": 1}',
        '{"version": 1, "models": {"a": [{"kind": "lines"}]}}',
    ],
)
def test_a_faulty_file_is_named(own: Path, text: str) -> None:
    own.parent.mkdir()
    own.write_text(text)
    with pytest.raises(BadInput, match=r"readings\.json"):
        find("claude-opus-5")


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "smell"}, {"cell": [9]}, {"cell": [0, 16]}, {"right": 5, "n": 4}, {"right": None}, {"by": ""},
        {"n": 0}, {"ink": "red"}, {"right": True}, {"more": 1}, {"right": None, "n": None, "score": 2},
    ],
)  # fmt: skip
def test_a_faulty_reading_is_refused(change: dict[str, Any]) -> None:
    sound = {"kind": "lines", "cell": [9, 16], "right": 3, "n": 4, "by": "a", "date": "2026-11", "on": "b"}
    assert json.loads(json.dumps(sound)) and reading_of(sound, "here").rate == 0.75
    with pytest.raises(BadInput, match="no reading"):
        reading_of(sound | change, "here")
