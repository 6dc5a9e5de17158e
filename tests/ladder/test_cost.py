"""The goal of cost: a pass while everything fits, if and only if it is cheaper over the calls left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import builders
import microfiche as mf
import pytest
from builders import code, rounds
from hypothesis import given
from hypothesis import strategies as st
from microfiche import models
from microfiche.ladder.budget import Scale
from microfiche.ladder.cost import common_tokens, pays, spent
from microfiche.messages import Message, Text

OPUS = models.find("claude-opus-5")
CHAT = rounds(60, 3_000).native("anthropic")


def made(cached: int, calls: int, model: str = "claude-opus-5", **more: Any) -> mf.Context:
    policy = mf.Policy(goal="cost", cached=cached, calls_left=calls)
    return mf.compact(CHAT, model=model, budget=500_000, policy=policy, **more)


def test_prices_are_those_of_the_catalogue() -> None:
    """USD 5 a million of input, 0.50 read from the cache, 6.25 written to it."""
    assert spent(OPUS, 100_000, 0, 1) == pytest.approx(0.625)
    assert spent(OPUS, 100_000, 100_000, 1) == pytest.approx(0.05)
    assert spent(OPUS, 100_000, 60_000, 3) == pytest.approx(0.03 + 0.25 + 0.1)
    assert spent(models.find("nobody-knows-1"), 100, 0, 1) is None


def test_a_cold_cache_makes_a_pass_pay_at_once() -> None:
    fit = made(cached=0, calls=1)
    assert fit.plan and fit.pages and fit.tokens < mf.count(CHAT, model="claude-opus-5")
    assert fit.receipt.after.money is not None and fit.receipt.before.money is not None
    assert not mf.compact(CHAT, model="claude-opus-5", budget=500_000).plan


def test_a_warm_cache_is_not_rewritten_for_few_calls() -> None:
    """Kind: a cut on a warm cache cost more to write than it ever saved."""
    size = mf.compact(CHAT, model="claude-opus-5", budget=500_000).tokens
    assert made(cached=size, calls=2).messages is CHAT
    assert made(cached=size, calls=500).plan


def test_the_turning_point_is_where_the_sums_are_equal() -> None:
    size = mf.compact(CHAT, model="claude-opus-5", budget=500_000).tokens
    low, high = 1, 500
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if made(cached=size, calls=middle).plan else (middle, high)
    smaller = made(cached=size, calls=high).tokens
    first = mf.count(CHAT[:1], model="claude-opus-5")
    saved = (size - smaller) * 0.5
    rewritten = (smaller - first) * (6.25 - 0.5)
    assert (high - 1) * saved >= 0.98 * rewritten - saved
    assert (low - 1) * saved <= 1.02 * rewritten


def test_over_budget_a_pass_runs_whatever_it_costs() -> None:
    policy = mf.Policy(goal="cost", cached=10**6, calls_left=1)
    fit = mf.compact(CHAT, model="claude-opus-5", budget=30_000, policy=policy)
    assert fit.plan and fit.tokens <= 30_000


def test_without_prices_or_with_nothing_to_gain_all_stays() -> None:
    policy = mf.Policy(goal="cost")
    assert mf.compact(CHAT, model="nobody-knows-1", vision=True, budget=500_000, policy=policy).messages is CHAT
    short = rounds(1, 100).native("anthropic")
    assert mf.compact(short, model="claude-opus-5", budget=500_000, policy=policy).messages is short


def test_a_plan_that_pays_is_kept_while_the_cache_is_warm() -> None:
    story = rounds(60, 3_000)
    plan, changes, sent = None, 0, 0
    for at in range(12):
        policy = mf.Policy(goal="cost", cached=sent, calls_left=20)
        fit = mf.compact(story.native("anthropic"), model="claude-opus-5", budget=500_000, plan=plan, policy=policy)
        changes += fit.plan != plan
        plan, sent = fit.plan, fit.tokens
        story.read(f"more_{at}.py", code(at, 1_500))
    assert plan is not None and plan.archive is not None
    assert changes <= 3


@pytest.mark.parametrize("wrong", [{"goal": "speed"}, {"calls_left": -1}, {"cached": -5}, {"cached": "all"}])
def test_a_goal_out_of_range_is_bad_input(wrong: dict[str, Any]) -> None:
    with pytest.raises(mf.BadInput, match="policy"):
        mf.Policy(**wrong)


@pytest.mark.parametrize("wire", ["anthropic", "gemini"])
def test_the_state_of_the_cache_comes_from_the_usage(wire: str, tmp_path: Path) -> None:
    """Kind: a cut on a warm cache cost more to write than it ever saved; on a cold one the same cut pays at once."""
    model = {"anthropic": "claude-opus-5", "gemini": "gemini-3-flash"}[wire]
    warm = {
        "anthropic": lambda size: {
            "input_tokens": 4,
            "cache_read_input_tokens": size,
            "cache_creation_input_tokens": 90,
        },
        "gemini": lambda size: {"promptTokenCount": size, "cachedContentTokenCount": size - 40},
    }[wire]
    story = rounds(60, 3_000)
    with mf.Record.open(tmp_path / "a.mf") as record:
        passes = {}
        for name in ("warm", "cold", "nothing told"):
            chat = record.conversation(name)
            chat.append(story.native(wire), format=wire)
            policy = mf.Policy(goal="cost", calls_left=2)
            sent = chat.context(model=model, budget=500_000, format=wire)
            usage = (
                warm(sent.tokens) if name == "warm" else {"promptTokenCount": sent.tokens, "input_tokens": sent.tokens}
            )
            said = builders.Story().says("I see.").native(wire)
            chat.append(said, context=sent, usage=usage if name != "nothing told" else None, format=wire)
            made = chat.context(model=model, budget=500_000, format=wire, policy=policy)
            passes[name] = bool(made.plan)
            assert made.asked["policy"] == policy
        assert passes == {"warm": False, "cold": True, "nothing told": True}
    native = story.native(wire)
    size = mf.count(native, model=model)
    for usage, runs in ((warm(size), False), ({"input_tokens": size}, True), (None, True)):
        policy = mf.Policy(goal="cost", calls_left=2, cached=usage)
        assert bool(mf.compact(native, model=model, budget=500_000, policy=policy, format=wire).plan) is runs


def test_a_usage_of_an_official_client_will_do() -> None:
    class Usage:
        def model_dump(self, **options: Any) -> dict[str, Any]:
            return {"prompt_tokens": 9_000, "prompt_tokens_details": {"cached_tokens": 8_960}}

    assert mf.Policy(cached=Usage()).cached == 8_960
    assert mf.Policy(cached={"input_tokens": 9}).cached is None
    assert mf.Policy.from_dict(mf.Policy(cached=Usage()).to_dict()).cached == 8_960


SIZES = st.integers(0, 1_000_000)


@given(SIZES, SIZES, SIZES, SIZES, st.integers(1, 1_000))
def test_what_pays_saves_money(stays: int, smaller: int, common: int, cached: int, calls: int) -> None:
    """By the sums of each call, counted one after the other."""
    common, cached = min(common, stays, smaller), min(cached, stays)

    def sum_of(tokens: int, held: int) -> float:
        total = 0.0
        for _ in range(min(calls, 3)):
            total += held * 0.5 + (tokens - held) * 6.25
            held = tokens
        return total + max(calls - 3, 0) * tokens * 0.5

    difference = sum_of(stays, cached) - sum_of(smaller, min(cached, common))
    if abs(difference) > 1e-3:
        assert pays(OPUS, stays, smaller, common, cached, calls) == (difference > 0)


def test_what_both_begin_with_is_counted() -> None:
    scale = Scale(OPUS)
    one = [Message("user", (Text("x" * 100),)), Message("assistant", (Text("y"),))]
    other = [Message("user", (Text("x" * 100),)), Message("assistant", (Text("z"),))]
    assert common_tokens(one, other, scale) == scale.message(one[0]).tokens
    assert common_tokens(one, one, scale) == scale.messages(one).tokens
    assert common_tokens([], one, scale) == 0
