"""``microfiche models``."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from conftest import Ran
from microfiche import models

Run = Callable[..., Ran]


def test_the_list_holds_every_row_in_full(run: Run) -> None:
    ran = run("models")
    assert ran.code == 0
    for model in models.catalogue():
        (row,) = [line for line in ran.text.splitlines() if line.split()[:1] == [model.id]]
        if model.context_window is not None:
            assert f"{model.context_window:,}" in row
        if model.vision:
            page = models.page(model, models.cell_for(model))
            assert row.split()[-2:] == [f"{page.width}x{page.height}", f"{page.tokens:,}"]


def test_json_holds_every_row(run: Run) -> None:
    rows = json.loads(run("models", "--json").out)
    assert [row["id"] for row in rows] == [model.id for model in models.catalogue()]
    for row, model in zip(rows, models.catalogue(), strict=True):
        assert row["prices"]["input"] == model.prices.input
        assert row["cells"]["exact"]["width"] == models.cell_for(model).width
        assert row["source"] and row["date"]


@pytest.mark.parametrize("model", [model.id for model in models.catalogue()])
def test_every_model_is_explained(run: Run, model: str) -> None:
    ran = run("models", "--explain", model)
    assert ran.code == 0
    found = models.find(model)
    assert f"{model}: a row of the catalogue" in ran.text
    assert found.source in ran.text
    assert found.regime.name in ran.text


def test_a_newer_version_is_answered_by_an_older_row_and_says_so(run: Run) -> None:
    ran = run("models", "--explain", "anthropic/claude-opus-5-20261101")
    assert ran.code == 0 and "answered by" not in ran.text
    newer = run("models", "--explain", "claude-opus-99")
    assert "newest older version" in newer.text
    assert json.loads(run("models", "--explain", "claude-opus-99", "--json").out)["match"] == "older"


def test_an_unknown_model_is_explained_too(run: Run) -> None:
    ran = run("models", "--explain", "nobody-1\x1b[31m")
    assert ran.code == 0
    assert "no provider is known" in ran.text and "reads none" in ran.text
    assert b"\x1b" not in ran.out
