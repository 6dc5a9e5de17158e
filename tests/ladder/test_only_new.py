"""A pass with the plan of the pass before draws what is new, and gives what a pass in another process would."""

from __future__ import annotations

from typing import Any

import builders
import microfiche as mf
import pytest
from microfiche import formats
from microfiche.fit import source_of
from microfiche.ladder import form, shelves
from microfiche.ladder.projection import project
from microfiche.pages import kept
from microfiche.pages.render import Page

OPUS = "claude-opus-5"
PAGES = mf.Policy(rungs=("snapshot", "omit"))


def growing(rounds: int) -> list[dict[str, Any]]:
    return builders.growing(1, rounds).native("anthropic")


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the pages that are drawn."""
    numbers: list[int] = []
    draw = form.draw

    def noting(*given: Any, **options: Any) -> list[Page]:
        pages = draw(*given, **options)
        numbers.extend(page.number for page in pages)
        return pages

    monkeypatch.setattr(form, "draw", noting)
    return numbers


def test_nothing_new_draws_nothing(drawn: list[int]) -> None:
    first = mf.compact(growing(60), model=OPUS, budget=24_000, policy=PAGES)
    # The tail is halved here to make room: the shorter archive was not drawn for nothing.
    assert max(drawn) == len(first.drawn) > 20 and len(drawn) <= len(first.drawn) + 2
    drawn.clear()
    again = mf.compact(growing(60), model=OPUS, budget=24_000, policy=PAGES, plan=first.plan)
    assert drawn == [] and again.request == first.request and again.digest == first.digest


def test_a_turn_more_draws_the_partial_page_and_what_comes_behind_it(drawn: list[int]) -> None:
    fit = mf.compact(growing(60), model=OPUS, budget=24_000, policy=PAGES)
    grew = 0
    for rounds in range(61, 90):
        full = len(fit.plan.archive.full) if fit.plan.archive is not None else 0
        drawn.clear()
        new = mf.compact(growing(rounds), model=OPUS, budget=24_000, policy=PAGES, plan=fit.plan)
        assert all(number > full for number in drawn)
        grew += bool(drawn)
        kept.pages.clear()
        shelves.forget()
        alone = mf.compact(growing(rounds), model=OPUS, budget=24_000, policy=PAGES, plan=fit.plan)
        assert (new.request, new.plan, new.digest) == (alone.request, alone.plan, alone.digest)
        fit = new
    assert grew > 1


def test_a_projection_draws_every_page(drawn: list[int]) -> None:
    fit = mf.compact(growing(60), model=OPUS, budget=24_000, policy=PAGES)
    drawn.clear()
    source, _ = source_of(formats.read(growing(60)), "anthropic")
    assert [page.digest for page in project(source, fit.plan).pages] == [page.digest for page in fit.drawn]
    assert drawn == [page.number for page in fit.drawn]
