"""The three budgets, what breaks each, and the scale that weighs for them."""

from __future__ import annotations

import base64

import builders
import microfiche as mf
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microfiche import formats, models
from microfiche.errors import BadInput
from microfiche.ladder.budget import Budget, Load, Policy, Scale, base64_size, budget_for, images_of, output_reserve
from microfiche.messages import Image, Message, Text
from microfiche.models import ManyImages

BUDGET = Budget(tokens=100, image_bytes=1_000, images=10, many=ManyImages(4, 2_000))


@pytest.mark.parametrize(
    ("load", "over"),
    [
        (Load(tokens=100, images=10, image_bytes=1_000), ""),
        (Load(tokens=101), "101 of 100 tokens"),
        (Load(image_bytes=1_001), "1,001 of 1,000 bytes of base64 images"),
        (Load(images=11), "11 of 10 images"),
        (Load(images=4, large=1), ""),
        (Load(images=5, large=1), "5 of 4 images"),
        (Load(tokens=102, images=12), "102 of 100 tokens, 12 of 10 images"),
    ],
)
def test_the_tightest_budget_decides(load: Load, over: str) -> None:
    assert BUDGET.over(load) == over
    assert BUDGET.holds(load) == (not over)


def test_without_a_limit_any_count_holds() -> None:
    assert Budget(10, 10).holds(Load(images=10_000, large=9))


@given(st.binary(max_size=300))
def test_base64_is_as_long_as_it_is(data: bytes) -> None:
    assert base64_size(data) == len(base64.b64encode(data))


@given(st.integers(0, 1 << 32), st.sampled_from(["claude-opus-5", "gpt-5.6-sol", "gemini-3.6-flash"]))
def test_loads_add_up_and_agree_with_the_ruler(seed: int, model: str) -> None:
    messages = formats.read(builders.random_story(seed % 500).native("anthropic"), "anthropic").messages
    scale = Scale(models.find(model))
    whole = scale.messages(messages)
    half = len(messages) // 2
    assert scale.messages(messages[:half]) + scale.messages(messages[half:]) == whole
    assert whole - scale.messages(messages[:half]) == scale.messages(messages[half:])
    assert whole.tokens == models.Ruler(models.find(model)).messages(messages)
    assert whole.images == sum(1 for message in messages for _ in images_of(message))


def test_a_scale_never_takes_one_message_for_another() -> None:
    """Messages come and go, and with them their places in memory."""
    scale = Scale(models.find("claude-opus-5"))
    for size in range(0, 3_000, 7):
        assert scale.message(Message("user", (Text("x" * size),))).tokens == -(-size // 2) + 4


def test_large_images_are_those_that_many_may_not_be() -> None:
    scale = Scale(models.find("claude-opus-5"))
    for width, height, large in ((2_000, 2_000, 0), (2_001, 10, 1), (10, 2_001, 1), (0, 0, 0)):
        assert scale.message(Message("user", (Image(b"x", width=width, height=height),))).large == large


def test_the_budget_of_a_model() -> None:
    model = models.find("claude-opus-5")
    window = model.context_window
    assert window is not None
    policy = Policy(threshold=0.5, max_output=1_000)
    assert output_reserve(model, policy) == 1_000
    assert budget_for(model, policy).tokens == (window - 1_000) // 2
    assert budget_for(model, policy, max_tokens=3_000).tokens == (window - 3_000) // 2
    assert budget_for(model, policy, tokens=77).tokens == 77
    assert budget_for(model, policy).images == model.images_per_request
    with pytest.raises(BadInput, match="window of somebody is not known"):
        budget_for(models.find("somebody"), policy)


def test_a_limit_of_no_image_at_all_holds() -> None:
    """Kind: a limit of 0 taken for none, and pages sent to a host that takes no image."""
    story = builders.rounds(20, 3_000).uses(("screenshot", {}, ("seen", builders.png(300, 200)))).user("Go on.")
    fit = mf.compact(story.native("anthropic"), model="claude-opus-5", budget=8_000, policy=mf.Policy(images=0))
    assert fit.receipt.after.images == 0 and not fit.pages and fit.tokens <= 8_000
