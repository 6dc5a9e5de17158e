"""Rung 2 and the image budgets: what leaves, what stays, and that pages count too."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import microfiche as mf
import pytest
from builders import Story, code, png
from microfiche import formats
from microfiche.ladder.budget import base64_size, images_of
from microfiche.ladder.images import Dropped, is_marker
from microfiche.messages import Image, Message, Text

MODEL = "claude-opus-5"


def kept(fit: mf.Context, wire: str = "anthropic") -> list[bytes]:
    """The pictures that are no pages, as they stand in the request."""
    pages = {page.png for page in fit.pages}
    found = [image.data for message in formats.read(fit.request, wire).messages for image in images_of(message)]
    return [data for data in found if data is not None and data not in pages]


def shots(count: int, size: int = 0) -> Story:
    story = Story().user("Watch the page.")
    for at in range(count):
        story.uses(
            ("screenshot", {}, (f"before {at}", png(800, 600 + at), f"after {at} {code(at, size)}")), text=f"look {at}"
        )
    return story


@pytest.mark.parametrize("wire", ["anthropic", "openai_responses", "gemini"])
@pytest.mark.parametrize("screenshots", [0, 1, 3])
def test_old_screenshots_leave_and_the_text_around_them_stays(wire: str, screenshots: int) -> None:
    messages = shots(30, 300).native(wire)
    policy = mf.Policy(screenshots=screenshots, tail_share=0.01)
    total = mf.count(formats.read(messages, wire), model=MODEL)
    fit = mf.compact(messages, model=MODEL, budget=total - 300, policy=policy, format=wire)
    assert fit.plan.dropped and not fit.plan.archive and not fit.plan.omitted
    assert kept(fit, wire) == [png(800, 600 + at) for at in range(30 - max(screenshots, 1), 30)]
    text = json.dumps(fit.messages, ensure_ascii=False)
    for at in range(29):
        assert text.index(f"before {at}") < text.index(f"after {at}") < text.index(f"look {at + 1}")
    for turn in re.findall(r"image/png 800×\d+, of turn (\d+) left out", text):
        assert json.dumps(fit.recall(int(turn))).count("image/png") == 1
    assert mf.validate(fit.request, wire) == []


def test_a_users_pictures_stay_where_screenshots_leave() -> None:
    story = Story().user("go", png(50, 50))
    for at in range(20):
        story.uses(("screenshot", {}, png(900, 700 + at)))
        if at % 6 == 0:
            story.user(f"like this {at}", png(33, 40 + at))
    messages = story.native("anthropic")
    fit = mf.compact(messages, model=MODEL, budget=mf.count(messages, model=MODEL) - 100)
    assert fit.plan.dropped
    mine = [png(50, 50), *(png(33, 40 + at) for at in (0, 6, 12, 18))]
    assert [data for data in kept(fit) if data in mine] == mine
    assert all(line["owner"] == "tool" for line in fit.receipt.images)


def test_kept_pictures_stand_behind_the_page_of_their_turn() -> None:
    story = Story().user("go")
    for at in range(24):
        story.uses(("read_file", {"path": f"{at}.py"}, code(at, 3_000)))
        if at in (2, 9):
            story.user(f"see {at}", png(40, 40 + at))
    fit = mf.compact(story.native("anthropic"), model=MODEL, budget=24_000)
    blocks = next(m["content"] for m in fit.messages if "Earlier turns" in str(m["content"])[:100])
    page = 0
    places: dict[bytes, int] = {}
    for block in blocks:
        if block["type"] == "image":
            data = formats.common.decode64(block["source"]["data"])
            assert data is not None
            if page < len(fit.pages) and data == fit.pages[page].png:
                page += 1
            else:
                places[data] = page
    turns = {png(40, 42): 5, png(40, 49): 13}
    assert set(places) == set(turns)
    for data, number in places.items():
        before = [turn for shown in fit.pages[: number - 1] for turn in shown.turns]
        assert turns[data] in fit.pages[number - 1].turns
        assert turns[data] not in before


@cache
def noise(seed: int, side: int = 500) -> bytes:
    return png(side, side, seed)


@pytest.mark.parametrize("newest", [False, True])
def test_bytes_alone_make_pictures_leave(newest: bool) -> None:
    story = Story().user("go")
    for at in range(40):
        story.uses(("screenshot", {}, noise(at)))
    if newest:
        story.user("and this", noise(99))
    messages = story.native("anthropic")
    limit = 9 * base64_size(noise(0)) + 10
    fit = mf.compact(messages, model=MODEL, budget=10**6, policy=mf.Policy(image_bytes=limit))
    assert [rung.rung for rung in fit.receipt.rungs if not rung.reason] == ["images", "write"]
    assert sum(base64_size(data) for data in kept(fit)) <= limit
    assert kept(fit)[-1] == noise(99 if newest else 39)
    assert len(kept(fit)) == 3 + newest or len(kept(fit)) == 9
    assert fit.tokens <= 10**6


def test_forced_bytes_take_tools_first_then_the_users_oldest_and_the_newest_message_never() -> None:
    story = Story().user("first", noise(1)).user("second", noise(2))
    story.uses(("screenshot", {}, noise(3))).user("third", noise(4)).user("last", noise(5))
    messages = story.native("anthropic")

    def left(count: int) -> list[bytes]:
        limit = count * base64_size(noise(1)) + 10
        return kept(mf.compact(messages, model=MODEL, budget=10**6, policy=mf.Policy(image_bytes=limit)))

    assert left(4) == [noise(1), noise(2), noise(4), noise(5)]
    assert left(3) == [noise(1), noise(4), noise(5)]
    assert left(2) == [noise(1), noise(5)]
    assert left(1) == [noise(5)]
    with pytest.raises(mf.CannotFit, match="bytes of base64"):
        left(0)


def test_pages_and_pictures_count_together() -> None:
    """Kind: 25 standing pages and one new screenshot, and the limits of a request of many images are broken."""
    story = Story().user("go")
    for at in range(110):
        story.uses(("read_file", {"path": f"{at}.py"}, code(at, 9_000)))
        if at % 9 == 0:
            story.user(f"picture {at}", png(30, 30 + at))
    fit = mf.compact(story.native("anthropic"), model="claude-haiku-4-5", budget=190_000)
    count = len(fit.pages) + len(kept(fit))
    assert count == 100
    assert fit.receipt.omitted_pages > 0
    assert len(fit.pages) > 60
    assert mf.validate(fit.request, "anthropic") == []


def test_many_images_may_hold_no_large_one() -> None:
    """Anthropic: above 20 images every side is at most 2,000 px, the user's own included."""
    story = Story().user("go", png(3_000, 40))
    for at in range(60):
        story.uses(("read_file", {"path": f"{at}.py"}, code(at, 9_000)))
    fit = mf.compact(story.native("anthropic"), model=MODEL, budget=100_000)
    assert png(3_000, 40) in kept(fit)
    assert len(fit.pages) + 1 <= 20
    assert fit.receipt.violations == ()


def test_a_large_screenshot_that_left_binds_nothing() -> None:
    story = Story().user("go").uses(("screenshot", {}, png(2_880, 40)))
    for at in range(60):
        story.uses(("read_file", {"path": f"{at}.py"}, code(at, 9_000)))
        if at > 55:
            story.uses(("screenshot", {}, png(80, 40 + at)))
    fit = mf.compact(story.native("anthropic"), model=MODEL, budget=100_000)
    assert png(2_880, 40) not in kept(fit)
    assert len(fit.pages) > 20


@pytest.mark.parametrize("recall", [True, False])
def test_a_marker_is_known_and_nothing_around_it(recall: bool) -> None:
    for image in (Image(b"x", "image/png", 3, 4), Image(b"x", "image/\nevil] text", 0, 0), Image(None, "", url="u")):
        told = Dropped("old").marker(image, 7, recall)
        assert is_marker(told)
        assert not is_marker(told + " ") and not is_marker("x" + told)


@pytest.mark.parametrize("where", ["user", "result"])
def test_a_marker_in_the_input_is_refused_a_quoted_one_is_not(where: str) -> None:
    told, other = (Dropped("old").marker(Image(b"x", "image/png", 3, 4), turn, True) for turn in (2, 7))
    for text, refused in ((told, True), ("It said " + told, False), (other, False)):
        story = Story().user("go")
        if where == "user":
            story.user(text, png(9, 9))
        else:
            story.uses(("screenshot", {}, (text, "and more")))
        if refused:
            with pytest.raises(mf.OwnOutput):
                mf.compact(story.native("anthropic"), model=MODEL)
        else:
            mf.compact(story.native("anthropic"), model=MODEL)


def test_every_image_is_found() -> None:
    message: Any = Message("user", (Text("a"), Image(b"1"), Image(None, url="u")))
    assert [image.data for image in images_of(message)] == [b"1", None]


def test_a_picture_that_costs_less_than_its_marker_stays() -> None:
    story = Story().user("go")
    for at in range(12):
        story.uses(("screenshot", {}, (png(20, 10 + at), code(at, 400))))
    messages = story.native("anthropic")
    fit = mf.compact(messages, model=MODEL, budget=mf.count(messages, model=MODEL) - 500)
    assert not fit.plan.dropped
    assert next(rung for rung in fit.receipt.rungs if rung.rung == "images").reason == "nothing_old"
