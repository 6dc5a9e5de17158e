"""What an image costs and what the model sees of it, for every billing regime of the catalogue.

Sizes are pixels, costs are input tokens of the model itself, before any price. Each rule is one
function named in the catalogue; its numbers and their sources stand there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil, floor, isqrt, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .catalogue import Model, Regime


class View(NamedTuple):
    """An image as the model gets it: ``width`` × ``height`` px after the provider's resize, and its tokens.

    White padding to a grid is not a resize and does not count in the size.
    """

    width: int
    height: int
    tokens: int


def view(regime: Regime, width: int, height: int, detail: str | None = None) -> View:
    """What becomes of a ``width`` × ``height`` px image under ``regime``.

    ``detail`` is the provider's own word for the resolution asked for (OpenAI ``low``, ``high``,
    ``original``, ``auto``; Gemini ``low``, ``medium``, ``high``, ``ultra_high``; DeepSeek ``low``);
    ``None`` and words that the regime does not know stand for its default. Raises ``ValueError``
    for a side below 1 px.
    """
    if width < 1 or height < 1:
        raise ValueError(f"an image has sides of at least 1 px, not {width}×{height}")
    return _RULES[regime.rule](regime.params, width, height, detail)


def image_tokens(model: Model, width: int, height: int, detail: str | None = None) -> int:
    """Input tokens that ``model`` bills for an image of ``width`` × ``height`` px, after its own resize."""
    return view(model.regime, width, height, detail).tokens


def seen(model: Model, width: int, height: int, detail: str | None = None) -> tuple[int, int]:
    """Width and height in px of what ``model`` sees; the same as given where the provider does not resize."""
    return view(model.regime, width, height, detail)[:2]


def resized(model: Model, width: int, height: int, detail: str | None = None) -> bool:
    """Whether the provider scales the image, up or down, before the model sees it."""
    return seen(model, width, height, detail) != (width, height)


def rejects(model: Model, width: int, height: int, images: int = 1) -> str | None:
    """Why the provider refuses an image of ``width`` × ``height`` px in a request of ``images`` images.

    ``None`` if no known limit speaks against it. Byte limits are not looked at.
    """
    limit = side_limit(model, images)
    if limit is not None and max(width, height) > limit:
        many = f" in a request of {images} images" if limit != model.max_side else ""
        return f"{model.id} takes images up to {limit} px a side{many}, this one is {width}×{height}"
    most = model.regime.params.get("most_patches")
    if most is not None:
        sees = view(model.regime, width, height)
        patches = _up(sees.width, 32) * _up(sees.height, 32)
        if patches > most:
            return f"{model.id} takes images up to {most} patches, {width}×{height} px are {patches}"
    if model.images_per_request is not None and images > model.images_per_request:
        return f"{model.id} takes {model.images_per_request} images a request, not {images}"
    return None


def side_limit(model: Model, images: int = 1) -> int | None:
    """The longest image side in px in a request of ``images`` images; ``None`` where no limit is known."""
    limits = [] if model.max_side is None else [model.max_side]
    if model.many_images is not None and images > model.many_images.count:
        limits.append(model.many_images.side)
    return min(limits, default=None)


Params = Mapping[str, Any]


def _up(length: int, unit: int) -> int:
    """``length / unit`` rounded up."""
    return -(-length // unit)


def _anthropic(params: Params, width: int, height: int, detail: str | None) -> View:
    """28-px patches. The largest size of the same shape whose padded edges and patches fit the tier.

    Source: platform.claude.com/docs/en/build-with-claude/vision and vision-coordinates (2026-09-20).
    """

    edge: int = params["edge"]
    cap: int = params["cap"]

    def fits(w: int, h: int) -> bool:
        cols, rows = _up(w, 28), _up(h, 28)
        return max(cols, rows) * 28 <= edge and cols * rows <= cap

    if not fits(width, height):
        long, short = max(width, height), min(width, height)

        def scaled(reach: int) -> tuple[int, int]:
            side, rest = divmod(reach * short, long)
            if 2 * rest > long or (2 * rest == long and side % 2):  # halves go to the even side
                side += 1
            side = max(side, 1)
            return (reach, side) if width >= height else (side, reach)

        low, high = 1, long
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(*scaled(middle)) else (low, middle)
        width, height = scaled(low)
    return View(width, height, _up(width, 28) * _up(height, 28))


def _fit(width: int, height: int, limit: int) -> tuple[int, int]:
    """Scale down into ``limit`` × ``limit`` px, keeping the shape; never up."""
    long = max(width, height)
    if long <= limit:
        return width, height
    return max(width * limit // long, 1), max(height * limit // long, 1)


def _openai_patch(params: Params, width: int, height: int, detail: str | None) -> View:
    """32-px patches under a side limit and a patch budget, times the model's multiplier (in percent).

    Source: developers.openai.com/api/docs/guides/images-vision (2026-09).
    """
    details = params["details"]
    limit, budget = details.get(detail) or details[params["auto"]]
    width, height = _fit(width, height, limit)
    if budget is not None and _up(width, 32) * _up(height, 32) > budget:
        scale = sqrt(1024 * budget / (width * height))
        across, down = width * scale / 32, height * scale / 32
        if across >= 1 and down >= 1:
            scale *= min(floor(across) / across, floor(down) / down)
        width, height = max(floor(width * scale), 1), max(floor(height * scale), 1)
    return View(width, height, _up(_up(width, 32) * _up(height, 32) * params["percent"], 100))


def _openai_tile(params: Params, width: int, height: int, detail: str | None) -> View:
    """512-px tiles after fitting 2048² and then a short side of 768; ``low`` is one flat price.

    Source: developers.openai.com/api/docs/guides/images-vision (2026-09).
    """
    if detail == "low":
        width, height = _fit(width, height, 512)
        return View(width, height, params["base"])
    width, height = _fit(width, height, 2048)
    short = min(width, height)
    if short > 768:
        width, height = width * 768 // short, height * 768 // short
    return View(width, height, params["base"] + params["tile"] * _up(width, 512) * _up(height, 512))


def _gemini_budget(params: Params, width: int, height: int, detail: str | None) -> View:
    """A grid of 48-px cells of the image's shape that fills a token budget; small images are scaled up.

    Source: derived, fits 12 of 12 sizes published for gemini-3.6-flash.
    """
    budgets = params["budgets"]
    budget = budgets.get(detail) or budgets[params["auto"]]
    cols = min(max(isqrt(budget * width // height), 1), budget)
    rows = min(max(isqrt(budget * height // width), 1), budget)
    return View(48 * cols, 48 * rows, cols * rows)


def _gemini_tile(params: Params, width: int, height: int, detail: str | None) -> View:
    """258 tokens a tile; tiles below 768 px are scaled up to it, images within 384² are one tile.

    Source: documentation of Gemini 2, not verified.
    """
    if max(width, height) <= 384:
        return View(width, height, 258)
    unit = min(max(min(width, height) * 2 // 3, 256), 768)
    tokens = 258 * _up(width, unit) * _up(height, unit)
    return View(width * 768 // unit, height * 768 // unit, tokens)


def _grid(params: Params, width: int, height: int, detail: str | None) -> View:
    """One token a patch, plus ``row`` tokens a row of patches and ``extra`` an image.

    ``limit`` is the longest side before scaling down (half-even rounding); with ``snap`` the
    provider then stretches the image to whole patches. Sources: mistral_common 1.13.1 (Mistral,
    Pixtral); derived from two published points (Grok).
    """
    patch, limit = params["patch"], params["limit"]
    long = max(width, height)
    if limit is not None and long > limit:
        ratio = long / limit
        width, height = max(round(width / ratio), 1), max(round(height / ratio), 1)
    cols, rows = _up(width, patch), _up(height, patch)
    if params["snap"]:
        width, height = cols * patch, rows * patch
    return View(width, height, rows * (cols + params["row"]) + params["extra"])


def _smart_resize(params: Params, width: int, height: int, detail: str | None) -> View:
    """Sides to the nearest multiple of a factor, the area within a range; one token a factor².

    Source: ``smart_resize`` of transformers 5.24.0 (Qwen, GLM 4.x V, MiniMax M3).
    """
    factor, least, most = params["factor"], params["least"], params["most"]
    w, h = (max(round(side / factor), 1) * factor for side in (width, height))
    if w * h > most:
        shrink = sqrt(width * height / most)
        w, h = (max(floor(side / shrink / factor), 1) * factor for side in (width, height))
    elif w * h < least:
        grow = sqrt(least / (width * height))
        w, h = (ceil(side * grow / factor) * factor for side in (width, height))
    return View(w, h, w * h // factor**2 + params["extra"])


def _navit(params: Params, width: int, height: int, detail: str | None) -> View:
    """At most 16,384 patches of 14 px and 512 a side, padded to 28 px; never scaled up.

    Source: kimi_k25 image processor of transformers 5.24.0.
    """
    patches = max(width // 14, 1) * max(height // 14, 1)
    scale = min(1.0, sqrt(16384 / patches), 512 * 14 / width, 512 * 14 / height)
    if scale < 1:
        width, height = max(int(width * scale), 1), max(int(height * scale), 1)
    return View(width, height, _up(width, 28) * _up(height, 28))


def _deepseek(params: Params, width: int, height: int, detail: str | None) -> View:
    """Cells of 42 px, one token a cell, one a row, two an image, under a cap; images below 544² scaled up.

    Source: vllm deepseek_v41/common/mm_preprocess.py at 707bb964 and the vendor's notes of 2026-10-10.
    """
    cap = params["cap"]
    if detail == "low":
        width, height = _fit(width, height, 512)
    if width * height < 295_936:
        scale = sqrt(295_936 / (width * height))
        width, height = max(floor(width * scale), 1), max(floor(height * scale), 1)
    cols, rows = _up(_up(width, 14), 3), _up(_up(height, 14), 3)
    if rows * (cols + 1) + 2 > cap:
        padded = _up(width, 14) * 14, _up(height, 14) * 14
        shape = padded[1] / padded[0]
        most = sqrt((cap - 2) / shape + 0.25) - 0.5
        scale = min(floor(most) * 42 / padded[0], floor(most * shape) * 42 / padded[1])
        width, height = (max(floor(side * scale / 14), 1) * 14 for side in padded)
        cols, rows = _up(_up(width, 14), 3), _up(_up(height, 14), 3)
    return View(width, height, rows * (cols + 1) + 2)


def _glm(params: Params, width: int, height: int, detail: str | None) -> View:
    """Sides up to multiples of 28, one token a cell, between a least and a most number of cells.

    Outside of them the height is searched that comes closest, the width follows. Source:
    nemo_automodel 0.7.0, glm5_next image processing.
    """

    def cells(h: int) -> tuple[int, int]:
        return _up(max(width * h // height, 1), 28), _up(h, 28)

    def count(h: int) -> int:
        cols, rows = cells(h)
        return cols * rows

    least, most = params["least"], params["most"]
    whole = _up(width, 28) * _up(height, 28)
    if least <= whole <= most:
        return View(_up(width, 28) * 28, _up(height, 28) * 28, whole)
    if whole > most:
        low, high = 1, height
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if count(middle) <= most else (low, middle)
        cols, rows = cells(low)
    else:
        low, high = height, height
        while count(high) < least:
            high *= 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if count(middle) < least else (low, middle)
        cols, rows = cells(high)
    return View(cols * 28, rows * 28, cols * rows)


def _llama_tiles(params: Params, width: int, height: int, detail: str | None) -> View:
    """Tiles of 336 px on the canvas that fits best, 144 tokens each, plus one for the whole image.

    The canvas that scales the image up least, else the one that scales it down least, then the
    smallest; an image is padded, never scaled up. Each tile has a separator, each image three
    marks. Source: llama4 processor of transformers 5.24.0.
    """
    tile = params["tile"]
    best: tuple[tuple[bool, float, int], int, int] | None = None
    for cols in range(1, params["tiles"] + 1):
        for rows in range(1, params["tiles"] // cols + 1):
            scale = min(cols * tile / width, rows * tile / height)
            key = (scale < 1, scale if scale >= 1 else -scale, cols * rows)
            if best is None or key < best[0]:
                best = key, cols, rows
    assert best is not None
    (shrinks, key_scale, tiles), _, _ = best
    if shrinks:
        width, height = max(floor(width * -key_scale), 1), max(floor(height * -key_scale), 1)
    return View(width, height, 147 if tiles == 1 else 144 * (tiles + 1) + tiles + 3)


_RULES: dict[str, Callable[[Params, int, int, str | None], View]] = {
    "anthropic": _anthropic,
    "openai_patch": _openai_patch,
    "openai_tile": _openai_tile,
    "gemini_budget": _gemini_budget,
    "gemini_tile": _gemini_tile,
    "grid": _grid,
    "smart_resize": _smart_resize,
    "navit": _navit,
    "deepseek": _deepseek,
    "glm": _glm,
    "llama_tiles": _llama_tiles,
}
