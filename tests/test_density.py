"""Densities, held against what pages are."""

from __future__ import annotations

import builders
import pytest
from microfiche import density, formats, models
from microfiche.density import Density
from microfiche.models.evidence import Reading, add_readings
from microfiche.pages.render import draw, read_back


def rows(**options: object) -> list[Density]:
    texts = {"code": ["x=y#zz\t\tw\n" * 6_000]}
    return list(density.measure(texts, **options))  # type: ignore[arg-type]


def test_a_row_is_what_its_pages_are() -> None:
    [row] = rows(names=["claude-opus-5"], cells=[(9, 16)], layouts=["flow"])
    assert (row.page, row.page_tokens) == ((1568, 784), 1568)
    pages = draw(["x=y#zz\t\tw\n" * 6_000], cell=(9, 16), width=1568, height=784)
    full = pages[:-1]
    assert row.characters == 60_000 == len(read_back(pages)) and row.pages == len(pages)
    # 174 × 48 cells under the legend; two tabs are two, a line break one: a cell a character.
    assert row.cells_per_character == 1.0 and row.characters_per_page == 174 * 48
    assert row.characters_per_token == round(174 * 48 / 1568, 3)
    assert row.bytes_per_character == round(sum(len(p.png) for p in full) / sum(len(p.text) for p in full), 3)
    assert row.gain == round(sum(len(page.text) for page in full) / 2 / (1568 * len(full)), 3)


def test_hard_lines_and_larger_cells_hold_less() -> None:
    found = {(row.cell, row.lines): row for row in rows(names=["claude-opus-5"], cells=[(5, 10), (9, 16)])}
    assert found[(5, 10), "flow"].characters_per_token > found[(9, 16), "flow"].characters_per_token > 5
    assert found[(9, 16), "hard"].cells_per_character > 10 > 2 * found[(9, 16), "flow"].cells_per_character


def test_every_row_has_its_grade(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MICROFICHE_READINGS", f"{tmp_path}/readings.json")
    cells = [(4, 8), (5, 10), (7, 14), (9, 16), (12, 20)]
    opus, sol = models.find("claude-opus-5"), models.find("gpt-5.6-sol")
    assert [density.grade(opus, cell) for cell in cells] == ["none", "gist", "gist", "default", "default"]
    assert [density.grade(sol, cell) for cell in cells] == ["none", "none", "none", "default", "default"]
    # Readings of grey pages say nothing of mono ones, which are read worse; those of mono speak for both.
    assert {row.ink: row.grade for row in rows(names=["claude-opus-5"], cells=[(5, 10)], inks=["grey", "mono"])} == {
        "grey": "gist",
        "mono": "none",
    }
    assert density.grade(opus, (9, 16), "mono") == "none"
    add_readings("gpt-5.6-sol", [Reading("gist", (7, 14), 40, 40, "me", "2026-11", "code", "mono")])
    assert {density.grade(models.find("gpt-5.6-sol"), (7, 14), ink) for ink in ("grey", "mono")} == {"gist"}
    add_readings("claude-opus-5", [Reading("lines", (7, 14), 40, 40, "me", "2026-11", "code")])
    assert [density.grade(models.find("claude-opus-5"), cell) for cell in cells[1:4]] == ["gist", "exact", "exact"]


def test_kinds_of_text_are_those_of_the_transcripts() -> None:
    story = builders.Story().user("Mend it, please.").read("src/a.py", "one\ntwo\n")
    texts = density.texts_of([formats.read(story.native("anthropic"))])
    assert set(texts) == {"all", "words", "calls", "results"}
    assert texts["words"] == ["Mend it, please."] and texts["results"] == ["one\ntwo\n"]
    assert "src/a.py" in str(texts["calls"]) and "one\ntwo\n" in texts["all"]
    assert density.texts_of([formats.read([{"role": "user", "content": "Hello"}])]).keys() == {"all", "words"}


def test_made_text_follows_from_its_seed() -> None:
    assert density.sample(1, 5_000) == density.sample(1, 5_000) != density.sample(2, 5_000)
    assert all(
        sum(len(each) for each in kind if isinstance(each, str)) > 4_000 for kind in density.sample(1, 5_000).values()
    )


def test_no_more_is_measured_than_was_asked() -> None:
    [row] = rows(names=["gemini-3.6-flash"], cells=[(9, 16)], layouts=["flow"], characters=1_000)
    assert row.characters == 1_000 and row.pages == 1
