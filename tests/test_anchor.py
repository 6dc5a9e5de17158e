"""Estimates that start from what the provider reported of the context before."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import builders
import microfiche as mf
import pytest
from microfiche.ladder.usage import cached, reported

MODEL = "claude-opus-5"


def true_size(request: dict[str, Any], per: float) -> int:
    """What a provider would count whose tokens are so many of ours, with a preamble of its own."""
    return int(per * mf.count(request, model=MODEL)) + 350


@pytest.fixture
def chat(tmp_path: Path) -> Any:
    with mf.Record.open(tmp_path / "work.mf") as record:
        yield record.conversation("triage")


def rounds(first: int, count: int, size: int = 2_000) -> list[list[dict[str, Any]]]:
    """Each an assistant message and its result."""
    story = builders.Story(calls=first)
    for at in range(first, first + count):
        story.read(f"src/{at}.py", builders.code(at, size))
    native = story.native("anthropic")
    return [native[at : at + 2] for at in range(0, len(native), 2)]


@pytest.mark.parametrize("per", [0.7, 1.0, 1.25])
def test_after_the_first_report_the_error_is_under_five_percent(chat: Any, per: float) -> None:
    chat.append([{"role": "user", "content": "go"}])
    for at, step in enumerate(rounds(0, 25)):
        made = chat.context(model=MODEL, budget=10**6)
        true = true_size(made.request, per)
        if at > 12:
            assert abs(made.tokens - true) < 0.05 * true
        chat.append(step, context=made, usage={"input_tokens": 5, "cache_read_input_tokens": true - 5})


def test_the_threshold_is_met_by_what_was_reported(chat: Any) -> None:
    """The estimate is high by a third: the pass waits for the true size; and where it is low, it does not wait."""
    for per, fires in ((0.6, False), (1.3, True)):
        other = chat.record.conversation(f"by {per}")
        other.append([{"role": "user", "content": "go"}])
        for step in rounds(0, 20):
            made = other.context(model=MODEL, budget=10**6)
            other.append(step, context=made, usage={"input_tokens": true_size(made.request, per)})
        estimate = mf.count(made.request, model=MODEL)
        budget = int(estimate * (0.85 if not fires else 1.25))
        made = other.context(model=MODEL, budget=budget)
        assert bool(made.plan) == fires
        assert made.tokens <= budget
        if fires:
            assert true_size(made.request, per) <= budget


def test_a_pass_ends_an_anchor_and_the_next_report_begins_one(chat: Any) -> None:
    chat.append([{"role": "user", "content": "go"}])
    plans = []
    for step in rounds(0, 60):
        made = chat.context(model=MODEL, budget=25_000)
        true = true_size(made.request, 0.8)
        assert made.tokens <= 25_000 and true <= 25_000
        chat.append(step, context=made, usage={"input_tokens": true})
        plans.append(made.plan)
    changes = sum(later != earlier for earlier, later in pairwise(plans))
    assert 1 <= changes < 12
    archives = [plan.archive for plan in plans if plan.archive]
    for earlier, later in pairwise(archives):
        assert later.full[: len(earlier.full)] == earlier.full


@pytest.mark.parametrize("usage", [{"input_tokens": 0}, {"input_tokens": 10**9}, {"tokens": 5}, {"input_tokens": "7"}])
def test_a_report_of_nothing_is_not_believed(chat: Any, usage: dict[str, Any]) -> None:
    chat.append([{"role": "user", "content": "go"}])
    [step] = rounds(0, 1, 9_000)
    made = chat.context(model=MODEL, budget=10**6)
    chat.append(step, context=made, usage=usage)
    made = chat.context(model=MODEL, budget=10**6)
    assert made.tokens == made.receipt.after.tokens


def test_another_model_has_its_own(chat: Any) -> None:
    chat.append([{"role": "user", "content": "go"}])
    [step] = rounds(0, 1, 9_000)
    made = chat.context(model=MODEL, budget=10**6)
    chat.append(step, context=made, usage={"input_tokens": made.tokens + 3_000})
    assert chat.context(model=MODEL, budget=10**6).tokens > made.tokens + 3_000
    other = chat.context(model="claude-haiku-4-5", budget=10**6)
    assert other.tokens == other.receipt.after.tokens


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"input_tokens": 3, "cache_creation_input_tokens": 40, "cache_read_input_tokens": 500}, 543),
        ({"input_tokens": 3, "cache_creation_input_tokens": None}, 3),
        ({"input_tokens": 90, "input_tokens_details": {"cached_tokens": 80}}, 90),
        ({"input_tokens": 9, "iterations": [{"input_tokens": 99_000}, {"input_tokens": 7_000}]}, 7_000),
        ({"input_tokens": 9, "iterations": []}, 9),
        ({"prompt_tokens": 90, "prompt_tokens_details": {"cached_tokens": 80}}, 90),
        ({"promptTokenCount": 90, "cachedContentTokenCount": 80}, 90),
        ({"prompt_token_count": 90}, 90),
        ({"inputTokens": 3, "cacheReadInputTokens": 500, "cacheWriteInputTokens": 40, "outputTokens": 9}, 543),
        ({"prompt_tokens": 543, "cache_read_input_tokens": 500, "prompt_tokens_details": {"cached_tokens": 500}}, 543),
        ({"input_tokens": True}, None),
        ({"input_tokens": -1}, None),
        ({}, None),
        ("no", None),
    ],
)
def test_what_the_usages_of_each_wire_tell(usage: Any, tokens: int | None) -> None:
    assert reported(usage) == tokens


def anthropic_usage(true: int, held: int) -> dict[str, Any]:
    """As claude-opus-5 tells it: what the cache gave and took stands beside the rest."""
    return {
        "input_tokens": 2,
        "cache_creation_input_tokens": max(true - held - 2, 0),
        "cache_read_input_tokens": held,
        "cache_creation": {"ephemeral_5m_input_tokens": max(true - held - 2, 0), "ephemeral_1h_input_tokens": 0},
        "output_tokens": 311,
        "service_tier": "standard",
    }


USAGES: dict[str, Any] = {
    "anthropic": anthropic_usage,
    "openai_chat": lambda true, held: {
        "prompt_tokens": true,
        "completion_tokens": 311,
        "total_tokens": true + 311,
        "prompt_tokens_details": {"cached_tokens": held, "audio_tokens": 0},
    },
    "openai_responses": lambda true, held: {
        "input_tokens": true,
        "input_tokens_details": {"cached_tokens": held},
        "output_tokens": 311,
        "output_tokens_details": {"reasoning_tokens": 64},
        "total_tokens": true + 311,
    },
    "gemini": lambda true, held: {
        "promptTokenCount": true,
        "cachedContentTokenCount": held,
        "candidatesTokenCount": 250,
        "thoughtsTokenCount": 61,
        "totalTokenCount": true + 311,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": true}],
    },
}
MODELS = {
    "anthropic": MODEL,
    "openai_chat": "gpt-5.5",
    "openai_responses": "gpt-5.5",
    "gemini": "gemini-3-flash",
}


@pytest.mark.parametrize("wire", builders.WIRES)
def test_each_providers_usage_anchors_whatever_its_cache_held(chat: Any, wire: str) -> None:
    """Kind: cached tokens counted twice, or not at all, so that the threshold fired far too early or too late."""
    model, per = MODELS[wire], 1.3
    chat.append(builders.Story().user("go").native(wire), format=wire)
    story, held = builders.Story(), 0
    for at in range(16):
        before = len(story.native(wire))
        story.read(f"src/{at}.py", builders.code(at, 2_000))
        made = chat.context(model=model, budget=10**6, format=wire)
        true = int(per * mf.count(made.request, model=model)) + 900
        if at > 8:
            assert abs(made.tokens - true) < 0.05 * true
        chat.append(story.native(wire)[before:], context=made, usage=USAGES[wire](true, held))
        assert reported(USAGES[wire](true, held)) == true
        held = true if wire == "anthropic" else true // 128 * 128
    assert cached(USAGES[wire](50_000, 30_000)) == (49_998 if wire == "anthropic" else 30_000)


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"input_tokens": 3}, None),
        ({"input_tokens": 3, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}, 0),
        ({"inputTokens": 3, "cacheReadInputTokens": 5, "cacheWriteInputTokens": 7}, 12),
        ({"prompt_tokens": 90, "prompt_tokens_details": None}, None),
        ({"prompt_tokens": 90, "prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 26}, 64),
        ({"cached_content_token_count": 80}, 80),
        ({"iterations": [{"cache_read_input_tokens": 9}, {"cache_read_input_tokens": 4}]}, 4),
        ({"cache_read_input_tokens": "many"}, None),
        (None, None),
    ],
)
def test_what_usages_tell_of_the_cache(usage: Any, tokens: int | None) -> None:
    assert cached(usage) == tokens


def reported_low(chat: Any, model: str) -> int:
    """A conversation whose newest report is a quarter below its estimate; the estimate of the next context."""
    chat.append(builders.rounds(20).native("openai_chat"))
    made = chat.context(model=model)
    usage = {"prompt_tokens": made.tokens * 3 // 4}
    chat.append({"role": "assistant", "content": "Found."}, context=made, usage=usage)
    chat.append({"role": "user", "content": "Go on."})
    return made.tokens


@pytest.mark.parametrize(("model", "policy"), [("o3-mini", None), ("gpt-5.6-sol", mf.Policy(image_side=2_000))])
def test_a_picture_that_cannot_be_sent_leaves_the_anchor_what_it_is(
    chat: Any, model: str, policy: mf.Policy | None
) -> None:
    """Estimated over a budget that it is known to keep, with a picture to leave out: no pass, and an end."""
    estimate = reported_low(chat, model)
    picture = builders.Story().user("See here.", builders.png(3_000, 40)).native("openai_chat")
    made = chat.preview(model=model, pending=picture, budget=estimate * 9 // 10, policy=policy)
    assert made.tokens < estimate * 9 // 10
    assert [rung.rung for rung in made.receipt.rungs] == ["unsendable"]
    assert made.receipt.after.images == 0


def test_a_pass_for_its_cost_never_refuses_what_fits(chat: Any) -> None:
    """Estimated over a budget that it is known to keep, and nothing for the rungs that a goal of cost allows."""
    estimate = reported_low(chat, "o3-mini")
    for policy in (mf.Policy(), mf.Policy(goal="cost", calls_left=50)):
        made = chat.preview(model="o3-mini", budget=estimate * 9 // 10, policy=policy)
        assert made.receipt.reason == "under_budget"
