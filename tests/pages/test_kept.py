"""Pages taken from those drawn before are the pages that drawing gives."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from microfiche.pages.kept import Kept, _agreement
from microfiche.pages.render import Bar, Page, Segment, draw, normal

FORM: dict[str, Any] = {"cell": (5, 8), "ink": "mono", "width": 60, "height": 80, "digests": True}


class Drawer:
    """Draws small pages, and counts them."""

    def __init__(self) -> None:
        self.pages = 0

    def __call__(self, segments: Sequence[Segment], first: int, inside: int | None) -> list[Page]:
        drawn = draw(segments, first=first, inside=inside, **FORM)
        self.pages += len(drawn)
        return drawn


def whole(page: Page) -> tuple[Any, ...]:
    return page.png, page.number, page.segments, page.start, page.end, page.turns, page.escapes, page.cells, page.digest


def same(pages: Sequence[Page], document: Sequence[Segment]) -> bool:
    return [whole(page) for page in pages] == [whole(page) for page in draw(document, **FORM)]


def story(turns: int, words: str = "the quay is free ") -> list[Segment]:
    return [part for turn in range(1, turns + 1) for part in (Bar(turn, "user"), f"{turn} {words * 9}")]


def test_a_story_that_grows_is_drawn_from_its_last_page_on() -> None:
    kept, drawer = Kept(), Drawer()
    for turns in range(1, 12):
        document = story(turns)
        before = drawer.pages
        pages = kept.draw(document, "form", drawer)
        assert same(pages, document)
        assert drawer.pages - before <= 4 < len(pages) or turns < 4
    before = drawer.pages
    assert kept.draw(story(11), "form", drawer) == pages and drawer.pages == before


def test_a_shorter_one_and_a_longer_one_in_turns_cost_a_page_or_two() -> None:
    kept, drawer = Kept(), Drawer()
    kept.draw(story(12), "form", drawer)
    for turns in (9, 12, 8, 12, 10):
        before = drawer.pages
        assert same(kept.draw(story(turns), "form", drawer), story(turns))
        assert drawer.pages - before <= 2


def test_a_change_is_seen_wherever_it_is() -> None:
    kept, drawer = Kept(), Drawer()
    document = story(8)
    kept.draw(document, "form", drawer)
    for at, segment in enumerate(document):
        changed: list[Segment] = list(document)
        if isinstance(segment, Bar):
            changed[at] = Bar(segment.turn, "assistant")
            assert same(kept.draw(changed, "form", drawer), changed)
            continue
        for place in range(0, len(segment), 7):
            changed[at] = f"{segment[:place]}X{segment[place + 1 :]}"
            assert same(kept.draw(changed, "form", drawer), changed)


def test_another_form_shares_nothing() -> None:
    kept, drawer = Kept(), Drawer()
    kept.draw(story(6), "form", drawer)
    before = drawer.pages
    kept.draw(story(6), "another", drawer)
    assert drawer.pages == 2 * before


def test_what_is_kept_is_bounded() -> None:
    drawer = Drawer()
    size = sum(len(page.png) for page in drawer(story(6), 1, None)) + 2_000
    kept = Kept(room=2 * size)
    for words in ("one ", "two ", "three ", "four "):
        kept.draw(story(6, words * 4), "form", drawer)
        assert sum(each.size for each in kept._documents) <= 2 * size
    assert kept._documents
    nothing = Kept(room=10)
    assert same(nothing.draw(story(3), "form", drawer), story(3)) and not nothing._documents
    kept.clear()
    assert not kept._documents


def test_a_caller_cannot_change_what_is_kept() -> None:
    kept, drawer = Kept(), Drawer()
    kept.draw(story(5), "form", drawer).clear()
    assert same(kept.draw(story(5), "form", drawer), story(5))


def test_threads_may_share_it() -> None:
    kept, drawer = Kept(), Drawer()
    documents = [story(turns) for turns in range(3, 9)] * 4
    with ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(lambda document: kept.draw(document, "form", drawer), documents))
    assert all(same(pages, document) for pages, document in zip(drawn, documents, strict=True))


@pytest.mark.parametrize("document", [[], ["text alone " * 50], ["text first ", Bar(1, "user"), "x" * 300]])
def test_what_begins_with_no_bar_is_drawn_each_time(document: list[Segment]) -> None:
    kept, drawer = Kept(), Drawer()
    for _ in range(2):
        assert same(kept.draw(document, "form", drawer), document)
    assert not kept._documents


# What layout treats by its run, its length or its neighbours, at every place of a page and across its end.
PIECES = st.sampled_from(
    [" ", "  ", "   ", "    ", "\n", "\n\n", "\n\n\n", "\t", "\t\t\t\t", " \n", "12", "s", "\x1b", "語", "é", "\ud800",
     "word ", "x" * 11, "y" * 95, " " * 40, "\n" * 97, "longer words and more of them "]
)  # fmt: skip
TEXT = st.lists(PIECES, max_size=40).map("".join)
BARS = st.builds(Bar, st.integers(0, 12), st.sampled_from(["user", "result ok", "call Bash", "call " + "n" * 64]))
SEGMENTS = st.lists(st.one_of(BARS, TEXT, TEXT), max_size=8).map(lambda rest: [Bar(1, "user"), *rest])


@settings(max_examples=150)
@given(st.data())
def test_any_text_that_changes_anyhow_is_drawn_as_if_new(data: st.DataObject) -> None:
    kept, drawer = Kept(), Drawer()
    document: list[Segment] = data.draw(SEGMENTS)
    for _ in range(data.draw(st.integers(2, 5))):
        assert same(kept.draw(document, "form", drawer), document)
        parts = list(normal(document))
        at = data.draw(st.integers(0, len(parts) - 1))
        part = parts[at]
        if isinstance(part, str):
            place = data.draw(st.integers(0, len(part)))
            parts[at] = part[:place]
            rest = data.draw(st.sampled_from(["cut", "changed", "grown"]))
            if rest != "cut":
                parts[at] = part[:place] + data.draw(TEXT) + (part[place:] if rest == "grown" else "")
        document = [*parts[: at + 1], *data.draw(SEGMENTS)] if data.draw(st.booleans()) else parts
        document = document if isinstance(document[0], Bar) else [Bar(1, "user"), *document]


@given(SEGMENTS, SEGMENTS)
def test_where_two_documents_part(one: list[Segment], other: list[Segment]) -> None:
    a, b = normal(one), normal(other)
    segment, offset = _agreement(a, b)
    assert a[:segment] == b[:segment]
    if segment < min(len(a), len(b)):
        first, second = a[segment], b[segment]
        assert first != second
        if isinstance(first, str) and isinstance(second, str):
            assert first[:offset] == second[:offset]
            assert first[offset : offset + 1] != second[offset : offset + 1]
        else:
            assert offset == 0
