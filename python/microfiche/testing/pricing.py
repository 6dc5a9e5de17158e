"""What the judge bills: tokens of texts and of images, by code of its own.

It shares nothing with :mod:`microfiche.models`, so that each can catch the other's errors. Images follow the
vendors' published formulas (named at each). Texts are counted by a lexical rule: pieces as byte-pair tokenizers
cut them, times a factor of the model's family.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from math import ceil, floor, sqrt
from typing import Any

__all__ = ["claude_version", "fitting", "image_tokens", "is_mistral", "json_tokens", "text_tokens"]

# Pieces as the o200k vocabulary cuts them: a word takes the one mark or blank before it and splits at capitals;
# digits go by three; marks take the line ends behind them; runs of blanks are one piece each. Within 10 % of that
# vocabulary on agent sessions, code and prose (measured with quicktok 0.4).
_PIECES = re.compile(
    r"(?P<wide>[\u1100-\u11ff\u2e80-\ud7ff\uf900-\ufaff\uff00-\uffef]+)"
    r"|(?P<word>[^\w\r\n]?_?(?:[A-Z]?[a-z]+|[A-Z]+(?![a-z])))|(?P<letters> ?[^\W\d_a-zA-Z]+)|(?P<digits>[0-9]+)"
    r"|(?P<marks> ?[^\w\s]+[\r\n]*|_+)|(?P<lines>[ \t]*[\r\n]+)|(?P<blanks>[ \t]+(?= )|[ \t]+)|(?P<other>.)",
    re.DOTALL,
)
_LENGTHS = {"word": 9.0, "letters": 3.4, "digits": 3.0, "marks": 3.0, "lines": 40.0, "blanks": 40.0, "other": 1.0}
_WIDE = 1.2  # Chinese, Japanese and Korean characters a token

# How many tokens of the family one of o200k makes, agent text (medians of twenty corpora; bpe-openai, ctok and a
# Gemma vocabulary, 2026-11): Claude from 4.7 on 1.79, before 1.34, Gemini 1.25, others 1.10.
_FACTORS = (("gpt", 1.0), ("chatgpt", 1.0), ("o1", 1.0), ("o3", 1.0), ("o4", 1.0), ("gemini", 1.25))


def claude_version(model: str) -> tuple[int, int] | None:
    """``claude-opus-4-6`` is (4, 6); a date is no version; ``None`` if the name is none of Claude's."""
    if "claude" not in model:
        return None
    numbers = [int(part) for part in re.split(r"[-.@:/_]", model.partition("claude")[2]) if part.isdecimal()]
    numbers = [number for number in numbers if number < 100]
    return (numbers[0], numbers[1] if len(numbers) > 1 else 0) if numbers else None


def is_mistral(model: str) -> bool:
    """Mistral, Ministral, Codestral; Pixtral, Mixtral."""
    return "stral" in model or "xtral" in model


def _factor(model: str) -> float:
    version = claude_version(model)
    if version is not None:
        return 1.79 if version >= (4, 7) else 1.34
    bare = model.rpartition("/")[2]
    return next((factor for name, factor in _FACTORS if bare.startswith(name)), 1.10)


def text_tokens(text: str, model: str) -> int:
    """Tokens that the judge bills for a text."""
    return ceil(_pieces(text) * _factor(model))


@lru_cache(maxsize=4096)
def _pieces(text: str) -> int:
    count = 0
    for match in _PIECES.finditer(text):
        count += ceil((match.end() - match.start()) / _LENGTHS.get(match.lastgroup or "", _WIDE))
    return count


def json_tokens(value: Any, model: str) -> int:
    """Tokens of a native object, as the JSON a provider renders it to."""
    return text_tokens(json.dumps(value, ensure_ascii=False, separators=(",", ":")), model)


# ---------------------------------------------------------------- images


def image_tokens(width: int, height: int, model: str, detail: str = "auto") -> int:
    """Tokens that the judge bills for an image of this size in pixels.

    ``detail`` is OpenAI's field of that name, or Gemini's media resolution (``low``, ``medium``, ``high``,
    ``ultra_high``). Models that no vendor formula is known for pay cells of 28 px, without a cap.
    """
    bare = model.rpartition("/")[2]
    version = claude_version(model)
    if version is not None:
        fit = fitting(width, height, version)
        return ceil(fit[0] / 28) * ceil(fit[1] / 28) + 4  # the patches, and what count_tokens adds to them
    if bare.startswith("gemini"):
        return _gemini(width, height, bare, detail)
    if bare.startswith(("gpt", "chatgpt", "o1", "o3", "o4")):
        return _openai(width, height, bare, detail)
    if bare.startswith("grok"):  # docs.x.ai tells no formula; two measured sizes give this one
        return ceil(width / 32) * ceil(height / 32) + 4
    if "deepseek" in bare:
        return _deepseek(width, height)
    if is_mistral(bare):
        return _mistral(width, height, *((16, 1024) if "pixtral-12b" in bare else (28, 1540)))
    return ceil(width / 28) * ceil(height / 28)


def _mistral(width: int, height: int, cell: int, side: int) -> int:
    """mistral_common 1.13: cells, and a mark behind every row."""
    scale = min(1.0, side / max(width, height))
    across, down = ceil(round(width * scale) / cell), ceil(round(height * scale) / cell)
    return max(down, 1) * (max(across, 1) + 1)


def _deepseek(width: int, height: int) -> int:
    """The image processor of DeepSeek v4.1 in vLLM: cells of 42 px, small images enlarged, 1,024 tokens at most."""
    if width * height < 544 * 544:
        scale = sqrt(544 * 544 / (width * height))
        width, height = floor(width * scale), floor(height * scale)
    down, across = ceil(ceil(height / 14) / 3), ceil(ceil(width / 14) / 3)
    return min(down * (across + 1) + 2, 1024)


def fitting(width: int, height: int, version: tuple[int, int]) -> tuple[int, int]:
    """The size that Claude sees of an image: platform.claude.com/docs, vision and vision-coordinates, 2026-09."""
    edge, cap = (2576, 4784) if version >= (4, 7) else (1568, 1568)

    def fits(w: int, h: int) -> bool:
        across, down = ceil(w / 28), ceil(h / 28)
        return across * 28 <= edge and down * 28 <= edge and across * down <= cap

    if fits(width, height):
        return width, height
    long, short = max(width, height), min(width, height)

    def size(side: int) -> tuple[int, int]:
        other = max(round(side * short / long), 1)
        return (side, other) if width >= height else (other, side)

    low, high = 1, long
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(*size(middle)) else (low, middle)
    return size(low)


def _gemini(width: int, height: int, model: str, detail: str) -> int:
    generation = re.match(r"gemini-(\d+)", model)
    if generation and int(generation[1]) < 3:
        # ai.google.dev, image understanding of 2.x: small images flat, others by tiles.
        if width <= 384 and height <= 384:
            return 258
        unit = min(max(floor(min(width, height) / 1.5), 256), 768)
        return 258 * ceil(width / unit) * ceil(height / unit)
    # 3.x: so many cells as the budget of the resolution allows at the image's aspect (measured, 12 of 12 sizes).
    budget = {"low": 280, "medium": 560, "ultra_high": 2240}.get(detail, 1120)
    return floor(sqrt(budget * width / height)) * floor(sqrt(budget * height / width))


# developers.openai.com, images and vision: longest side and patches by detail, and the factor on patches.
_UNBOUNDED = 1 << 30
_PATCHED: tuple[tuple[str, float, dict[str, tuple[int, int]], str], ...] = (
    ("gpt-6", 1.2, {"low": (512, _UNBOUNDED), "high": (65535, 2500), "original": (65535, _UNBOUNDED)}, "original"),
    ("gpt-5.6", 1.2, {"low": (512, _UNBOUNDED), "high": (2048, 2500), "original": (65535, _UNBOUNDED)}, "original"),
    ("gpt-5.5", 1.2, {"low": (512, _UNBOUNDED), "high": (2048, 2500), "original": (6000, 10000)}, "original"),
    ("gpt-5.4", 1.2, {"low": (2048, 6144), "high": (2048, 2500), "original": (6000, 10000)}, "high"),
    ("gpt-5.2", 1.2, {"high": (2048, 6144)}, "high"),
    ("gpt-5-mini", 1.2, {"high": (2048, 6144)}, "high"),
    ("gpt-5-nano", 1.5, {"high": (2048, 6144)}, "high"),
    ("gpt-4.1-mini", 1.62, {"high": (2048, 6144)}, "high"),
    ("gpt-4.1-nano", 2.46, {"high": (2048, 6144)}, "high"),
    ("o4-mini", 1.72, {"high": (2048, 6144)}, "high"),
)
# Base and tile for the models that pay by tiles of 512 px.
_TILED = (("gpt-4o-mini", 2833, 5667), ("gpt-4o", 85, 170), ("gpt-4.1", 85, 170), ("gpt-5", 70, 140), ("o", 75, 150))


def _openai(width: int, height: int, model: str, detail: str) -> int:
    for name, factor, boxes, auto in _PATCHED:
        if model.startswith(name):
            side, budget = boxes.get(auto if detail == "auto" else detail, boxes["high"])
            return ceil(round(_patches(width, height, side, budget) * factor, 6))
    base, tile = next(((base, tile) for name, base, tile in _TILED if model.startswith(name)), (85, 170))
    if detail == "low":
        return base
    scale = min(1.0, 2048 / max(width, height))
    w, h = floor(width * scale), floor(height * scale)
    if min(w, h) > 768:
        scale = 768 / min(w, h)
        w, h = floor(w * scale + 1e-9), floor(h * scale + 1e-9)
    return base + tile * ceil(w / 512) * ceil(h / 512)


def _patches(width: int, height: int, side: int, budget: int) -> int:
    scale = min(1.0, side / max(width, height))
    w, h = max(floor(width * scale), 1), max(floor(height * scale), 1)
    count = ceil(w / 32) * ceil(h / 32)
    if count > budget:
        scale = sqrt(1024 * budget / (w * h))
        across, down = w * scale / 32, h * scale / 32
        scale *= min(floor(across) / across, floor(down) / down)
        count = ceil(floor(w * scale) / 32) * ceil(floor(h * scale) / 32)
    return count
