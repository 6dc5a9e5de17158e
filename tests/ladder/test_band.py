"""When a pass runs, and that it does not run again at once."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import builders
import microfiche as mf
import pytest
from builders import Story, code, rounds
from hypothesis import given, settings
from hypothesis import strategies as st
from microfiche import models
from microfiche.ladder.budget import Policy, budget_for

OPUS = "claude-opus-5"


def test_at_the_threshold_nothing_happens_one_token_above_it_does() -> None:
    messages = rounds(30, 3_000).native("anthropic")
    size = mf.compact(messages, model=OPUS, budget=10**6).tokens
    assert mf.compact(messages, model=OPUS, budget=size).messages is messages
    assert mf.compact(messages, model=OPUS, budget=size - 1).plan


def test_the_threshold_is_the_smaller_of_share_and_tokens() -> None:
    model = models.find(OPUS)
    share = budget_for(model, Policy()).tokens
    assert budget_for(model, Policy(threshold_tokens=50_000)).tokens == 50_000
    assert budget_for(model, Policy(threshold_tokens=share + 1)).tokens == share
    assert budget_for(model, Policy(threshold_tokens=50_000), tokens=60_000).tokens == 60_000
    messages = rounds(30, 3_000).native("anthropic")
    fit = mf.compact(messages, model=OPUS, policy=Policy(threshold_tokens=30_000))
    assert fit.plan and fit.tokens <= 30_000


def test_what_is_about_to_be_sent_counts() -> None:
    """Kind: a check of the last usage alone let a large new result through, straight into a refusal."""
    story = rounds(10, 2_000)
    size = mf.count(story.native("anthropic"), model=OPUS)
    assert not mf.compact(story.native("anthropic"), model=OPUS, budget=size + 2_000).plan
    story.read("large.py", code(3, 6_000))
    fit = mf.compact(story.native("anthropic"), model=OPUS, budget=size + 2_000)
    assert fit.plan and fit.tokens <= size + 2_000


def passes(story: Story, turns: int, **options: Any) -> list[int]:
    """The rounds at which the plan changed, while a history grows."""
    plan: mf.Plan | None = None
    changed = []
    for at in range(turns):
        story.read(f"src/next_{at}.py", code(at, 1_000))
        fit = mf.compact(story.native("anthropic"), model=OPUS, plan=plan, **options)
        assert fit.tokens <= options["budget"]
        if fit.plan and fit.plan != plan:
            changed.append(at)
        plan = fit.plan
    return changed


def test_a_pass_makes_room_for_many_turns() -> None:
    """Kind: compaction fired on every turn, each time for a little, and the prompt cache never held."""
    budget = 40_000
    with_band = passes(rounds(60, 1_000), 70, budget=budget)
    without = passes(rounds(60, 1_000), 70, budget=budget, policy=Policy(target=1))
    assert len(with_band) > 1
    gaps = [later - earlier for earlier, later in pairwise(with_band)]
    # A fifth of the budget is eight thousand tokens, a round is six hundred.
    assert all(gap >= 8 for gap in gaps)
    assert len(with_band) <= len(without)


@pytest.mark.parametrize(("model", "rungs"), [("o3-mini", None), (OPUS, ("omit",)), (OPUS, ("snapshot", "omit"))])
def test_leaving_out_makes_room_for_many_turns_too(model: str, rungs: tuple[str, ...] | None) -> None:
    """Kind: a session that had to leave something out left something out on every turn from then on."""
    budget = 20_000
    chosen = {} if rungs is None else {"rungs": rungs}
    story, plan, gaps, last = rounds(60, 1_500), None, [], 0
    for at in range(60):
        story.read(f"src/next_{at}.py", code(at, 1_000))
        policy = Policy(**chosen)
        fit = mf.compact(story.native("anthropic"), model=model, budget=budget, plan=plan, policy=policy)
        assert fit.tokens <= budget
        if fit.plan != plan:
            gaps.append(at - last)
            last = at
        plan = fit.plan
    assert fit.receipt.omitted_turns and len(gaps) >= 3
    # A tenth of the budget is two thousand tokens, a round is four hundred or less of this model.
    assert all(gap >= 3 for gap in gaps[1:])


def test_room_is_made_of_what_stands_before_the_tail_only() -> None:
    messages = rounds(30, 1_500).native("anthropic")
    small = Policy(rungs=("omit",), omit_room=0)
    large = Policy(rungs=("omit",), omit_room=1)
    one, other = (mf.compact(messages, model=OPUS, budget=16_000, policy=each) for each in (small, large))
    assert one.tokens > 14_500 > other.tokens > 2_500
    assert other.messages[-4:] == messages[-4:]
    for wrong in (-0.1, float("nan")):
        with pytest.raises(mf.BadInput):
            Policy(omit_room=wrong)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1 << 32), st.floats(0.3, 0.9))
def test_a_pass_reaches_its_target_or_has_tried_everything(seed: int, share: float) -> None:
    messages = builders.random_story(seed).native("anthropic")
    budget = int(mf.count(messages, model=OPUS) * share) + 1
    try:
        fit = mf.compact(messages, model=OPUS, budget=budget)
    except mf.CannotFit:
        return
    tried = [rung.rung for rung in fit.receipt.rungs if rung.rung in ("elide", "images", "snapshot")]
    assert tried == ["elide", "images", "snapshot"][: len(tried)]
    if len(tried) < 3:
        made = next(rung for rung in reversed(fit.receipt.rungs) if rung.rung in tried)
        assert made.after.tokens <= int(0.8 * budget)


@pytest.mark.parametrize("target", [0, 0.0, 0.5, 1.0])
def test_any_target_ends_within_the_budget(target: float) -> None:
    messages = rounds(40, 2_000).native("anthropic")
    fit = mf.compact(messages, model=OPUS, budget=20_000, policy=Policy(target=target))
    assert fit.tokens <= 20_000
