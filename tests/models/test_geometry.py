"""Pages are never scaled, never refused, and hug what they hold."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from microfiche.errors import PageTooSmall
from microfiche.models import (
    Geometry,
    ManyImages,
    Model,
    catalogue,
    cell_for,
    cost_ratio,
    find,
    hug,
    image_tokens,
    never_pays,
    page,
    regimes,
    rejects,
    resized,
    seen,
)
from microfiche.models.billing import view

MODELS = (*catalogue(), find("some-unknown-model", vision=True), find("claude-opus-3"), find("gpt-4"))
REGIMES = {regime.name: regime for regime in regimes()}
cells = st.tuples(st.integers(4, 16), st.integers(6, 32))


def check(model: Model, geometry: Geometry, cell: tuple[int, int], images: int) -> None:
    width, height = geometry.width, geometry.height
    assert not resized(model, width, height)
    assert rejects(model, width, height, min(images, model.images_per_request or images)) is None
    assert geometry.tokens == image_tokens(model, width, height)
    assert geometry.cell == cell
    assert (geometry.cols, geometry.rows) == (width // cell[0], height // cell[1])
    assert geometry.cols >= 12 and geometry.capacity >= 96
    assert width % geometry.grid[0] == 0 and height % geometry.grid[1] == 0


@settings(max_examples=250, deadline=None)
@given(st.sampled_from(MODELS), cells, st.sampled_from([0, 1, 20, 21, 100]), st.data())
def test_no_page_is_scaled_or_refused(model: Model, cell: tuple[int, int], images: int, data: st.DataObject) -> None:
    geometry = page(model, cell, images)
    check(model, geometry, cell, images)
    used = data.draw(st.integers(1, geometry.rows))
    height = hug(model, geometry, used)
    assert used * cell[1] <= height <= geometry.height
    assert height % geometry.grid[1] == 0
    assert not resized(model, geometry.width, height)
    assert image_tokens(model, geometry.width, height) <= geometry.tokens


@pytest.mark.full
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_every_cell_of_every_model(model: Model) -> None:
    for width in range(4, 17):
        for height in range(6, 33):
            geometry = page(model, (width, height))
            check(model, geometry, (width, height), 1)
            lowest = 0
            for used in range(1, geometry.rows + 1):
                tall = hug(model, geometry, used)
                assert tall >= max(used * height, lowest)
                assert not resized(model, geometry.width, tall)
                lowest = tall


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(MODELS), cells, st.sampled_from([0, 21]))
def test_the_densest_page_is_untouched_and_no_worse(model: Model, cell: tuple[int, int], images: int) -> None:
    usual = page(model, cell, images)
    densest = page(model, cell, images, evidence_only=False)
    check(model, densest, cell, images)
    whole = usual.cols * usual.rows / usual.tokens
    assert densest.cols * densest.rows / densest.tokens >= whole


# Published pages of the most cells a token (a survey of 2026-11-30): width, height, tokens.
BEST = {
    ("anthropic-high", 2000): {
        (5, 8): (1960, 1904, 4760),
        (6, 10): (1848, 1960, 4620),
        (6, 12): (1932, 1932, 4761),
        (7, 13): (1988, 1820, 4615),
        (8, 13): (1960, 1820, 4550),
        (9, 16): (1764, 1904, 4284),
        (11, 16): (1848, 1904, 4488),
    },
    ("anthropic-high", 2576): {(6, 10): (1764, 2100, 4725), (8, 13): (2576, 1456, 4784), (9, 16): (1512, 2464, 4752)},
    ("anthropic-standard", 1568): {(6, 10): (1092, 1120, 1560), (9, 16): (756, 1568, 1512)},
    ("openai-5.4", 2048): {(5, 8): (1600, 1600, 3000), (9, 16): (1728, 1472, 2981)},
    ("openai-5.2", 2048): {(8, 13): (1984, 1664, 3869), (9, 16): (2016, 2016, 4763)},
    ("openai-4.1-mini", 2048): {(9, 16): (2016, 1600, 5103)},
    ("openai-tile-5", 2048): {(8, 13): (512, 2048, 630), (9, 16): (2048, 512, 630)},
    ("gemini-3", 3360): {(8, 13): (2064, 1248, 1118), (9, 16): (1728, 1488, 1116)},
    ("grok", 2048): {(8, 13): (2048, 1664, 3332), (9, 16): (2016, 2048, 4036)},
    ("qwen-3", 2048): {(8, 13): (1568, 1664, 2550), (9, 16): (1728, 1504, 2540)},
    ("qwen-2.5", 1568): {(9, 16): (1260, 784, 1262)},
    ("kimi", 1792): {(8, 13): (1792, 1456, 3328), (9, 16): (1764, 1792, 4032)},
    ("mistral", 1540): {(8, 13): (1512, 1456, 2860), (9, 16): (1512, 1456, 2860)},
    ("pixtral-12b", 1024): {(8, 13): (1024, 832, 3380), (9, 16): (1008, 1024, 4096)},
    ("glm-5", 2000): {(8, 13): (1960, 1820, 4550), (9, 16): (1764, 1904, 4284)},
    ("deepseek", 2100): {(8, 13): (1848, 924, 992), (9, 16): (1890, 882, 968)},
    ("llama-4", 336): {(9, 16): (336, 336, 147)},
}


@pytest.mark.parametrize(
    ("regime", "side", "cell", "best"),
    [(*key, cell, best) for key, table in BEST.items() for cell, best in table.items()],
)
def test_densest_pages_match_the_published_ones(
    regime: str, side: int, cell: tuple[int, int], best: tuple[int, int, int]
) -> None:
    assert view(REGIMES[regime], *best[:2]) == best
    base = next(model for model in MODELS if model.regime.name == regime)
    model = replace(base, max_side=side, many_images=None)
    found = page(model, cell, evidence_only=False)
    held = (best[0] // cell[0]) * (best[1] // cell[1])
    mine = found.cols * found.rows
    # At least as dense, and at equal density at least as large.
    assert mine * best[2] >= held * found.tokens
    if mine * best[2] == held * found.tokens:
        assert mine >= held
    assert mine / found.tokens <= 1.01 * held / best[2]


@pytest.mark.parametrize(
    ("name", "width", "height", "cols", "rows", "tokens"),
    [
        ("claude-opus-5", 1568, 784, 174, 49, 1568),
        ("claude-haiku-4-5", 1568, 784, 174, 49, 1568),
        ("gpt-5.6-sol", 1568, 1568, 174, 98, 2882),
        ("gemini-3.6-flash", 1584, 1584, 176, 99, 1089),
        ("gpt-5", 512, 2048, 56, 128, 630),
        ("grok-4.5", 1568, 1568, 174, 98, 2405),
        ("qwen3.8-max", 1568, 1568, 174, 98, 2403),
        ("some-unknown-model", 672, 672, 74, 42, 600),
    ],
)
def test_pages_at_9x16(name: str, width: int, height: int, cols: int, rows: int, tokens: int) -> None:
    got = page(find(name, vision=True), (9, 16), images=100)
    assert (got.width, got.height, got.cols, got.rows, got.tokens) == (width, height, cols, rows, tokens)


@pytest.mark.parametrize("cell", [(6, 12), (5, 14), (7, 14), (5, 16), (5, 18), (8, 32)])
@pytest.mark.parametrize("name", ["claude-opus-5", "claude-haiku-4-5"])
def test_small_cells_stand_in_short_rows_at_the_same_price(name: str, cell: tuple[int, int]) -> None:
    model = find(name)
    got, wide = page(model, cell), page(model, (9, 16))
    assert (got.width, got.height, got.tokens * 2) == (392, 1568 - 1568 % cell[1] // 28 * 28, wide.tokens)
    assert (got.width, got.height) == seen(model, got.width, got.height)


@pytest.mark.parametrize(
    ("name", "cell"),
    [("claude-opus-5", (9, 12)), ("claude-opus-5", (5, 10)), ("gpt-5.6-sol", (6, 12)), ("gemini-3.6-flash", (6, 12))],
)
def test_other_cells_and_other_regimes_keep_their_page(name: str, cell: tuple[int, int]) -> None:
    got, usual = page(find(name), cell), page(find(name), (9, 16))
    assert (got.width, got.height) == (usual.width, usual.height)


def test_a_three_row_page_is_its_legend_and_three_rows_rounded_up() -> None:
    for name, grid in (("claude-opus-5", 28), ("gpt-5.6-sol", 32), ("grok-4.5", 32)):
        model = find(name)
        geometry = page(model, (9, 16))
        assert hug(model, geometry, 1 + 3) == ceil(4 * 16 / grid) * grid
        assert hug(model, geometry, geometry.rows) == geometry.height
    flash = find("gemini-3.6-flash")
    assert hug(flash, page(flash, (9, 16)), 4) == 1584


def test_low_pages_are_not_scaled_up() -> None:
    qwen, deepseek = find("qwen3.8-max"), find("deepseek-flash")
    geometry = page(qwen, (9, 16))
    assert hug(qwen, geometry, 1) == 64 and resized(qwen, geometry.width, 32)
    geometry = page(deepseek, (9, 16))
    low = hug(deepseek, geometry, 1)
    assert geometry.width * low >= 544 * 544 > geometry.width * (low - 42)


@pytest.mark.parametrize("rows", [0, -1, 50])
def test_hugging_more_rows_than_there_are_is_an_error(rows: int) -> None:
    opus = find("claude-opus-5")
    with pytest.raises(ValueError, match="49 rows"):
        hug(opus, page(opus, (9, 16)), rows)


def test_many_images_bind_the_sides() -> None:
    opus = find("claude-opus-5")
    few, many = (page(opus, (8, 13), images, evidence_only=False) for images in (20, 21))
    assert max(few.width, few.height) == 2576
    assert max(many.width, many.height) <= 2000
    tight = replace(opus, many_images=ManyImages(5, 700))
    assert page(tight, (9, 16), 5).width == 1568
    small = page(tight, (9, 16), 6)
    assert max(small.width, small.height) == 700 and not resized(tight, 700, 700)


def test_a_page_without_room_is_refused_by_name() -> None:
    tiny = replace(find("claude-opus-5"), max_side=100)
    with pytest.raises(PageTooSmall, match=r"100×100 px for claude-opus-5 .* 9×16"):
        page(tiny, (9, 16))
    with pytest.raises(PageTooSmall):
        page(replace(tiny, max_side=20), (4, 6))


def test_no_regime_scales_the_unknown_page_down() -> None:
    model = find("some-unknown-model", vision=True)
    geometry = page(model, cell_for(model))
    heights = {hug(model, geometry, rows) for rows in range(1, geometry.rows + 1)}
    scaled_up = set()
    for regime in regimes():
        for height in heights:
            sees = view(regime, geometry.width, height)
            assert sees.width >= geometry.width and sees.height >= height, regime
            if (sees.width, sees.height) != (geometry.width, height):
                scaled_up.add(regime.name)
    assert scaled_up == {"gemini-3", "gemini-2", "deepseek", "deepseek-384"}


def test_no_single_claude_page_suits_everybody() -> None:
    assert seen(find("qwen3.8-max"), 1568, 784) == (1568, 768)
    assert seen(find("mistral-large-4"), 1568, 784)[0] < 1568
    assert resized(find("gpt-5"), 1568, 784)


def test_twelve_thousand_characters_fit_one_gist_page_wherever_the_regime_holds_them() -> None:
    several = {model.regime.name for model in MODELS if page(model, (5, 10)).capacity < 12_000}
    assert several == {"minimax-m3", "unknown"}
    # Their largest untouched page has no room for it.
    assert 451_584 // 50 < 12_000 and 672 * 672 // 50 < 12_000


def test_where_imaging_never_pays() -> None:
    def losers(cell: tuple[int, int]) -> set[str]:
        return {model.id for model in catalogue() if model.vision and never_pays(model, cell)}

    assert losers((9, 16)) == {"pixtral-12b", "gpt-4o-mini", "gpt-4.1-nano"}
    assert losers((5, 10)) == {"gpt-4o-mini"}
    reason = never_pays(find("pixtral-12b"), (9, 16)) or ""
    assert "pixtral-12b" in reason and "9x16" in reason and "146%" in reason


def test_the_ratio_is_that_of_a_full_page() -> None:
    opus = find("claude-opus-5")
    # 1568 tokens for 174 × 48 cells of two bytes a token.
    assert cost_ratio(opus, (9, 16)) == Fraction(1568 * 2, 174 * 48)
