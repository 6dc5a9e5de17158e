"""Values behind pages that are remembered are those that are chosen anew."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from microfiche.ladder import shelves
from microfiche.ladder.shelves import Step
from microfiche.pages.exact import Shelf
from microfiche.pages.render import Bar, draw

HEAD = ("Mend src/known.py", "")


def steps(pages: int, seed: int = 1) -> list[Step]:
    rng = random.Random(seed)
    text = " ".join(f"src/area{rng.randrange(90)}/file_{at}.py:{at} id{rng.getrandbits(32):08x}" for at in range(900))
    drawn = draw([Bar(1, "user"), text], cell=(5, 8), ink="mono", width=400, height=200)
    found = [Step(page, (f"see src/said{page.number}.py",), (f"{page.number:064x}",)) for page in drawn]
    assert len(found) > pages
    return found[:pages]


def anew(standing: tuple[str, ...], taken: Sequence[Step]) -> list[tuple[str, ...]]:
    shelf = Shelf(standing)
    out = []
    for step in taken:
        for text in step.beside:
            shelf.stand(text)
        out.append(shelf.page(step.page.segments, step.runs))
    return out


def test_more_pages_fewer_and_others() -> None:
    all_, other = steps(12), steps(12, seed=2)
    assert all(anew(HEAD, all_))
    for standing, taken in (
        (HEAD, all_[:3]), (HEAD, all_[:9]), (HEAD, all_[:5]), (HEAD, []), (HEAD, all_), ((), all_), (HEAD, other),
        (HEAD, [*all_[:4], *other[4:]]), (HEAD, [*all_[:4], all_[4]._replace(beside=()), *all_[5:]]), (HEAD, all_),
        (HEAD, [*all_[:4], all_[4]._replace(runs=("f" * 64,)), *all_[5:]]), (HEAD, all_[1:]),
    ):  # fmt: skip
        assert shelves.values(standing, taken) == anew(standing, taken)


def test_only_new_pages_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    all_ = steps(10)
    want = anew(HEAD, all_)
    read: list[object] = []
    page = Shelf.page
    monkeypatch.setattr(Shelf, "page", lambda self, segments, runs=(): read.append(0) or page(self, segments, runs))
    for count, cost in ((6, 6), (6, 0), (10, 4), (3, 0), (10, 0)):
        read.clear()
        assert shelves.values(HEAD, all_[:count]) == want[:count]
        assert len(read) == cost


def test_the_number_of_histories_is_bounded() -> None:
    for seed in range(2 * shelves._MOST):
        shelves.values((str(seed),), steps(2))
    assert len(shelves._known) == shelves._MOST
