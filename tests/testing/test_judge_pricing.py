"""The judge's own prices, against sizes that the vendors published or others measured, and against tokenizers."""

from __future__ import annotations

import hashlib
import random

import pytest
from microfiche.testing import pricing

# Width, height, and tokens by model and detail: vision_vectors of providers' documentation and public measurements.
VECTORS = {
    (200, 200): (64, 64, 59, 59, 59, 255, 1089),
    (1092, 1092): (1521, 1521, 1470, 1470, 1470, 765, 1089),
    (1920, 1080): (2691, 1560, 2448, 2448, 2448, 1105, 1100),
    (2000, 1500): (3888, 1564, 3554, 2942, 2942, 765, 1064),
    (3840, 2160): (4784, 1560, 9792, 2931, 2765, 1105, 1100),
    (1568, 728): (1456, 1456, 1353, 1353, 1353, 1445, 1078),
    (1932, 1932): (4761, 1521, 4466, 2882, 2882, 765, 1089),
}
COLUMNS = (
    ("claude-opus-5", "auto", 4),
    ("claude-haiku-4-5", "auto", 4),
    ("gpt-6-sol", "auto", 0),
    ("gpt-6-sol", "high", 0),
    ("gpt-5.4", "auto", 0),
    ("gpt-4.1", "auto", 0),
    ("gemini-3.6-flash", "auto", 0),
)


@pytest.mark.parametrize("size", VECTORS, ids=str)
def test_images_cost_what_was_measured(size: tuple[int, int]) -> None:
    for (model, detail, frame), tokens in zip(COLUMNS, VECTORS[size], strict=True):
        assert pricing.image_tokens(*size, model, detail) - frame == tokens, model


def test_gateway_names_and_unknown_models_have_a_price() -> None:
    assert pricing.image_tokens(1092, 1092, "anthropic/claude-opus-5") == 1525
    assert pricing.image_tokens(768, 336, "grok-4.5") == 268
    assert pricing.image_tokens(280, 280, "nobody-knows-1") == 100
    assert pricing.image_tokens(300, 300, "gemini-2.5-flash") == 258
    assert pricing.image_tokens(512, 512, "gpt-4o", "low") == 85


def test_the_size_that_fits_is_the_largest() -> None:
    source = random.Random(4)
    for _ in range(300):
        width, height = source.randrange(1, 8000), source.randrange(1, 8000)
        for version, edge, cap in (((4, 6), 1568, 1568), ((5, 0), 2576, 4784)):
            w, h = pricing.fitting(width, height, version)
            across, down = -(-w // 28), -(-h // 28)
            assert across * 28 <= edge and down * 28 <= edge and across * down <= cap
            assert (w, h) == (width, height) or max(w, h) < max(width, height)
            assert pricing.fitting(w, h, version) == (w, h)


# Characters a token of the o200k vocabulary (measured): the judge's rule stays near it.
@pytest.mark.parametrize(
    ("text", "ratio"),
    [
        ("The judge reads the request and says in plain words why it would be refused. " * 40, 4.80),
        ('{"path": "src/queue.py", "lines": [120, 4501], "ok": true}\n' * 40, 2.46),
        ("漢字かな交じり文" * 100, 1.14),
        ("".join(hashlib.sha256(str(at).encode()).hexdigest() for at in range(50)), 1.77),
    ],
)
def test_texts_cost_about_what_a_tokenizer_counts(text: str, ratio: float) -> None:
    assert pricing.text_tokens(text, "gpt-5.6-sol") == pytest.approx(len(text) / ratio, rel=0.2)


def test_prices_grow_with_the_text_and_the_family() -> None:
    text = "def read(path: str) -> bytes:\n    return open(path, 'rb').read()\n"
    prices = [
        pricing.text_tokens(text, model)
        for model in ("gpt-5.5", "gemini-3.6-flash", "claude-haiku-4-5", "claude-opus-5")
    ]
    assert prices == sorted(prices) and len(set(prices)) == 4
    assert pricing.text_tokens("", "gpt-5.5") == 0
    assert pricing.text_tokens(text * 3, "gpt-5.5") >= 2.9 * prices[0]


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("claude-opus-4-6", (4, 6)),
        ("claude-opus-4-20250514", (4, 0)),
        ("anthropic.claude-sonnet-4-5-20250929-v1:0", (4, 5)),
        ("claude-3-5-sonnet-20241022", (3, 5)),
        ("claude-opus-5", (5, 0)),
        ("gpt-5.5", None),
    ],
)
def test_versions(name: str, version: tuple[int, int] | None) -> None:
    assert pricing.claude_version(name) == version
