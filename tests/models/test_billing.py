"""What images cost: published vectors, published pages, and each rule computed again another way."""

from __future__ import annotations

from decimal import Decimal, getcontext
from fractions import Fraction
from math import ceil, floor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from microfiche.models import (
    catalogue,
    find,
    image_tokens,
    regimes,
    rejects,
    resized,
    seen,
    side_limit,
)
from microfiche.models.billing import view

REGIMES = {regime.name: regime for regime in regimes()}
MANY = settings(max_examples=150, deadline=None)
sides = st.one_of(
    st.integers(1, 9000),
    st.integers(1, 140).map(lambda n: 14 * n + 1),
    st.integers(1, 90).map(lambda n: 28 * n),
)

# Ten sizes under fourteen regimes, collected 2026-11-30 from vendor documentation, shipped code and
# published measurements.
COLUMNS: tuple[tuple[str, str | None], ...] = (
    ("anthropic-high", None),
    ("anthropic-standard", None),
    ("openai-6", None),
    ("openai-6", "high"),
    ("openai-5.5", None),
    ("openai-5.4", None),
    ("openai-tile-4", None),
    ("gemini-3", None),
    ("grok", None),
    ("kimi", None),
    ("mistral", None),
    ("deepseek", None),
    ("qwen-3", None),
    ("glm-5", None),
)
VECTORS = {
    (200, 200): (64, 64, 59, 59, 59, 59, 255, 1089, 53, 64, 72, 184, 66, 64),
    (1000, 1000): (1296, 1296, 1229, 1229, 1229, 1229, 765, 1089, 1028, 1296, 1332, 602, 963, 1296),
    (1092, 1092): (1521, 1521, 1470, 1470, 1470, 1470, 765, 1089, 1229, 1521, 1560, 704, 1158, 1521),
    (1920, 1080): (2691, 1560, 2448, 2448, 2448, 2448, 1105, 1100, 2044, 2691, 1736, 968, 2042, 2691),
    (2000, 1500): (3888, 1564, 3554, 2942, 3554, 2942, 765, 1064, 2965, 3888, 2352, 1001, 2496, 3888),
    (3840, 2160): (4784, 1560, 9792, 2931, 9792, 2765, 1105, 1100, 8164, 4214, 1736, 968, 2481, 7973),
    (1075, 1520): (2145, 1551, 1959, 1959, 1959, 1959, 1105, 1092, 1636, 2145, 2200, 1001, 1634, 2145),
    (1568, 1568): (3136, 1521, 2882, 2882, 2882, 2882, 765, 1089, 2405, 3136, 3080, 994, 2403, 3136),
    (1568, 728): (1456, 1456, 1353, 1353, 1353, 1353, 1445, 1078, 1131, 1456, 1456, 704, 1129, 1456),
    (1932, 1932): (4761, 1521, 4466, 2882, 4466, 2882, 765, 1089, 3725, 4096, 3080, 994, 2502, 4761),
}


@pytest.mark.parametrize("column", range(len(COLUMNS)), ids=lambda at: ":".join(filter(None, COLUMNS[at])))
def test_published_vectors(column: int) -> None:
    name, detail = COLUMNS[column]
    got = {size: view(REGIMES[name], *size, detail).tokens for size in VECTORS}
    assert got == {size: row[column] for size, row in VECTORS.items()}


@pytest.mark.parametrize(
    ("name", "width", "height", "tokens"),
    [
        # The largest squares and pages that Claude takes as they are (vendor documentation).
        ("anthropic-high", 1960, 1904, 4760),
        ("anthropic-high", 2576, 1456, 4784),
        ("anthropic-standard", 840, 1456, 1560),
        ("anthropic-standard", 784, 1568, 1568),
        ("anthropic-standard", 1568, 784, 1568),
        # Pages of the best density in a published survey of regimes: all untouched.
        ("openai-5.4", 1600, 1600, 3000),
        ("openai-5.2", 1984, 1664, 3869),
        ("openai-4.1-mini", 2048, 2048, 6636),
        ("openai-4.1-mini", 1568, 1664, 4128),
        ("openai-tile-5", 512, 2048, 630),
        ("openai-tile-4", 2048, 512, 765),
        ("gemini-3", 2064, 1248, 1118),
        ("gemini-3", 1728, 1488, 1116),
        ("gemini-2", 1536, 1536, 1032),
        ("grok", 2048, 1664, 3332),
        ("qwen-3", 1568, 1664, 2550),
        ("qwen-3", 1280, 2048, 2562),
        ("qwen-2.5", 672, 1456, 1250),
        ("qwen-2.5", 1120, 896, 1282),
        ("kimi", 1792, 1792, 4096),
        ("mistral", 1540, 1512, 3024),
        ("pixtral-12b", 1024, 832, 3380),
        ("glm-5", 1960, 1820, 4550),
        ("deepseek", 1848, 924, 992),
        ("deepseek-384", 1176, 546, 379),
        ("llama-4", 336, 336, 147),
        ("minimax-m3", 672, 672, 576),
    ],
)
def test_published_pages_are_untouched(name: str, width: int, height: int, tokens: int) -> None:
    assert view(REGIMES[name], width, height) == (width, height, tokens)


@pytest.mark.parametrize(
    ("name", "detail", "width", "height", "tokens"),
    [
        ("gemini-3", "ultra_high", 2064, 2496, 2236),
        ("gemini-3", "medium", 1008, 1248, 546),
        ("gemini-3", "low", 1000, 1000, 256),
        ("openai-tile-5", "low", 4000, 3000, 70),
        ("openai-5.6", "low", 1000, 1000, 308),  # 512² is 256 patches, times 1.2
        ("openai-5.4", "original", 3840, 2160, 9792),
        ("openai-5.4", "low", 1568, 1568, 2882),  # its "low" has 6,144 patches
        ("openai-6", "no such detail", 1000, 1000, 1229),
        ("deepseek", "low", 1000, 1000, 184),
    ],
)
def test_details(name: str, detail: str, width: int, height: int, tokens: int) -> None:
    assert view(REGIMES[name], width, height, detail).tokens == tokens


@MANY
@given(sides, sides, st.sampled_from([("anthropic-high", 2576, 4784), ("anthropic-standard", 1568, 1568)]))
def test_anthropic_is_the_largest_size_that_fits(width: int, height: int, tier: tuple[str, int, int]) -> None:
    name, edge, cap = tier

    def patches(w: int, h: int) -> tuple[int, int]:
        return ceil(Fraction(w, 28)), ceil(Fraction(h, 28))

    def fits(w: int, h: int) -> bool:
        cols, rows = patches(w, h)
        return cols * 28 <= edge and rows * 28 <= edge and cols * rows <= cap

    size = width, height
    if not fits(*size):
        long, short = max(size), min(size)
        for reach in range(min(long, edge), 0, -1):  # from the top down instead of a search
            other = max(round(Fraction(reach * short, long)), 1)
            size = (reach, other) if width >= height else (other, reach)
            if fits(*size):
                break
    cols, rows = patches(*size)
    assert view(REGIMES[name], width, height) == (*size, cols * rows)


@MANY
@given(sides, sides, st.sampled_from(["openai-4.1-mini", "openai-5.4", "openai-o4-mini", "openai-5-nano"]))
def test_openai_patches_keep_their_budget(width: int, height: int, name: str) -> None:
    percent = {"openai-4.1-mini": 162, "openai-5.4": 120, "openai-o4-mini": 172, "openai-5-nano": 150}[name]
    budget = 2500 if name == "openai-5.4" else 6144
    fitted = [max(int(side * min(Fraction(1), Fraction(2048, max(width, height)))), 1) for side in (width, height)]
    patches = ceil(Fraction(fitted[0], 32)) * ceil(Fraction(fitted[1], 32))
    sees = view(REGIMES[name], width, height)
    if patches <= budget:
        assert sees == (*fitted, ceil(Fraction(patches * percent, 100)))
    else:
        getcontext().prec = 40
        scale = (Decimal(1024 * budget) / (fitted[0] * fitted[1])).sqrt()
        across, down = fitted[0] * scale / 32, fitted[1] * scale / 32
        if across >= 1 and down >= 1:
            scale *= min(floor(across) / across, floor(down) / down)
        # The provider computes in floating point: a pixel off, or a whole patch where a side comes out
        # at an exact number of patches (the published 1932×1932 is such a case: 49 patches, not 50).
        edge = any(abs(side - round(side)) < Decimal("1e-9") for side in (across, down))
        assert abs(sees.width - fitted[0] * scale) <= (33 if edge else 1)
        assert abs(sees.height - fitted[1] * scale) <= (33 if edge else 1)
        assert sees.tokens <= ceil(Fraction(budget * percent, 100))


@MANY
@given(sides, sides)
def test_openai_tiles(width: int, height: int) -> None:
    w, h = width, height
    if max(w, h) > 2048:
        ratio = Fraction(2048, max(w, h))
        w, h = max(floor(w * ratio), 1), max(floor(h * ratio), 1)
    if min(w, h) > 768:
        ratio = Fraction(768, min(w, h))
        w, h = floor(w * ratio), floor(h * ratio)
    tiles = len(range(0, w, 512)) * len(range(0, h, 512))
    assert view(REGIMES["openai-tile-4"], width, height) == (w, h, 85 + 170 * tiles)
    assert view(REGIMES["openai-tile-5"], width, height).tokens == 70 + 140 * tiles


@MANY
@given(sides, sides)
def test_gemini_fills_its_budget(width: int, height: int) -> None:
    getcontext().prec = 60
    shape = Decimal(width) / Decimal(height)
    cols, rows = floor((1120 * shape).sqrt()), floor((1120 / shape).sqrt())
    cols, rows = min(max(cols, 1), 1120), min(max(rows, 1), 1120)
    assert view(REGIMES["gemini-3"], width, height) == (48 * cols, 48 * rows, cols * rows)


@MANY
@given(sides, sides)
def test_gemini_2_tiles(width: int, height: int) -> None:
    tokens = view(REGIMES["gemini-2"], width, height).tokens
    if width <= 384 and height <= 384:
        assert tokens == 258
    else:
        unit = max(256, min(768, floor(Fraction(min(width, height)) / Fraction(3, 2))))
        assert tokens == 258 * len(range(0, width, unit)) * len(range(0, height, unit))


@MANY
@given(sides, sides)
def test_grids(width: int, height: int) -> None:
    assert view(REGIMES["grok"], width, height) == (
        width,
        height,
        len(range(0, width, 32)) * len(range(0, height, 32)) + 4,
    )
    for name, patch, limit in (("mistral", 28, 1540), ("pixtral-12b", 16, 1024)):
        w, h = width, height
        ratio = max(w / limit, h / limit)
        if ratio > 1:
            w, h = max(round(w / ratio), 1), max(round(h / ratio), 1)
        cols, rows = (w - 1) // patch + 1, (h - 1) // patch + 1
        assert view(REGIMES[name], width, height) == (cols * patch, rows * patch, rows * (cols + 1))


@MANY
@given(sides, sides, st.sampled_from(["qwen-3", "qwen-2.5", "minimax-m3", "glm-4v"]))
def test_smart_resize_stays_in_its_range(width: int, height: int, name: str) -> None:
    factor, least, most, extra = {
        "qwen-3": (32, 64 * 1024, 2560 * 1024, 2),
        "qwen-2.5": (28, 4 * 784, 1280 * 784, 2),
        "minimax-m3": (28, 784, 576 * 784, 0),
        "glm-4v": (28, 784, 7500 * 784, 0),
    }[name]
    sees = view(REGIMES[name], width, height)
    assert sees.width % factor == 0 and sees.height % factor == 0
    assert sees.tokens == (sees.width // factor) * (sees.height // factor) + extra
    near = [max(factor, round(Fraction(side, factor)) * factor) for side in (width, height)]
    if least <= near[0] * near[1] <= most:
        assert [sees.width, sees.height] == near
    elif near[0] * near[1] > most:
        # A side never falls below one factor, which only slivers run into.
        assert sees.width * sees.height <= most or factor in (sees.width, sees.height)
        grown = (sees.width + factor) * (sees.height + factor)
        assert grown > most * 0.99
    else:
        assert sees.width * sees.height >= least * 0.999


@MANY
@given(sides, sides)
def test_kimi_scales_down_only(width: int, height: int) -> None:
    getcontext().prec = 40
    patches = max(width // 14, 1) * max(height // 14, 1)
    scale = min(Decimal(1), (Decimal(16384) / patches).sqrt(), Decimal(7168) / max(width, height))
    sees = view(REGIMES["kimi"], width, height)
    for side, got in ((width, sees.width), (height, sees.height)):
        assert abs(got - max(floor(side * scale), 1)) <= (0 if scale == 1 else 1)
    assert sees.tokens == len(range(0, sees.width, 28)) * len(range(0, sees.height, 28))


@MANY
@given(sides, sides, st.sampled_from([("deepseek", 1024), ("deepseek-384", 384)]))
def test_deepseek_keeps_its_cap(width: int, height: int, tier: tuple[str, int]) -> None:
    name, cap = tier
    sees = view(REGIMES[name], width, height)
    cols, rows = ceil(ceil(sees.width / 14) / 3), ceil(ceil(sees.height / 14) / 3)
    assert sees.tokens == rows * (cols + 1) + 2
    if max(width, height) < 20 * min(width, height):
        assert sees.tokens <= cap
    if width * height >= 544 * 544 and len(range(0, height, 42)) * (len(range(0, width, 42)) + 1) + 2 <= cap:
        assert sees[:2] == (width, height)


@MANY
@given(sides, sides)
def test_glm_counts_whole_cells(width: int, height: int) -> None:
    cols, rows = len(range(0, width, 28)), len(range(0, height, 28))
    sees = view(REGIMES["glm-5"], width, height)
    if 16 <= cols * rows <= 8000:
        assert sees == (28 * cols, 28 * rows, cols * rows)
    elif cols * rows > 8000:
        best = next(
            (c, r)
            for m in range(height, 0, -1)
            if (c := ceil(Fraction(max(width * m // height, 1), 28))) * (r := ceil(Fraction(m, 28))) <= 8000
        )
        assert sees == (28 * best[0], 28 * best[1], best[0] * best[1])
    else:
        assert sees.tokens >= 16


@MANY
@given(sides, sides)
def test_llama_tiles(width: int, height: int) -> None:
    sees = view(REGIMES["llama-4"], width, height)
    allowed = {147} | {144 * (n + 1) + n + 3 for n in range(2, 17)}
    assert sees.tokens in allowed
    assert sees.width <= width and sees.height <= height
    if width <= 336 and height <= 336:
        assert sees == (width, height, 147)
    if width <= 1344 and height <= 1344:
        assert sees[:2] == (width, height)


@given(st.sampled_from(regimes()), st.integers(1, 30_000), st.integers(1, 30_000))
@settings(max_examples=300, deadline=None)
def test_every_regime_answers_every_size(regime: object, width: int, height: int) -> None:
    sees = view(regime, width, height)  # type: ignore[arg-type]
    assert sees.width >= 1 and sees.height >= 1 and sees.tokens >= 1


@pytest.mark.parametrize("size", [(0, 5), (5, 0), (-1, 3)])
def test_empty_images_are_an_error(size: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="at least 1 px"):
        image_tokens(find("claude-opus-5"), *size)


def test_what_the_model_sees() -> None:
    opus, haiku, flash = map(find, ("claude-opus-5", "claude-haiku-4-5", "gemini-3.6-flash"))
    assert seen(opus, 1932, 1932) == (1932, 1932) and not resized(opus, 1932, 1932)
    assert seen(haiku, 1092, 1092) == (1092, 1092)
    assert resized(haiku, 1120, 1120)
    assert seen(opus, 4000, 3000) == (2212, 1659) and image_tokens(opus, 4000, 3000) == 4740
    assert seen(flash, 100, 100) == (1584, 1584)


def test_what_is_refused() -> None:
    opus = find("claude-opus-5")
    assert rejects(opus, 8000, 8000) is None
    assert "8000 px" in (rejects(opus, 8001, 10) or "")
    assert rejects(opus, 2001, 10, images=20) is None
    assert "2000 px a side in a request of 21 images" in (rejects(opus, 2001, 10, images=21) or "")
    assert rejects(opus, 2000, 2000, images=21) is None
    assert "600 images" in (rejects(opus, 100, 100, images=601) or "")
    assert "100 images" in (rejects(find("claude-haiku-4-5"), 100, 100, images=101) or "")
    sol = find("gpt-5.6-sol")
    assert "30000 patches" in (rejects(sol, 6000, 6000) or "")  # 188² patches at "original"
    assert rejects(sol, 5500, 5500) is None
    flash = find("deepseek-flash")
    assert side_limit(flash, 14) == 8192 and side_limit(flash, 15) == 4096
    assert side_limit(find("grok-4.5"), 5000) is None


def test_every_regime_is_reached_or_named() -> None:
    """Only an old cap and the documented stand-in belong to no model that sees."""
    used = {model.regime.name for model in catalogue() if model.vision is not False}
    assert set(REGIMES) - used == {"deepseek-384", "unknown"}
