"""A plan is data: it reads back equal, and a forged or foreign one is an error, never a crash."""

from __future__ import annotations

import copy
import json
import random
from functools import cache
from typing import Any

import builders
import microfiche as mf
import pytest
from builders import code, rounds
from hypothesis import given, settings
from hypothesis import strategies as st
from microfiche.errors import BadInput, CannotFit, PlanMismatch

MODEL = "claude-opus-5"


@cache
def sample() -> tuple[list[Any], int, str]:
    """Messages, a budget, and the JSON of a plan that has something of everything."""
    story = rounds(24, 2_500)
    for at in range(6):
        story.uses(("read_file", {"path": "same.py"}, code(90, 2_000)))
        story.uses(("screenshot", {}, ("shot", builders.png(600, 400 + at))))
        story.user(f"Rule {at}: keep it.")
    messages = story.native("anthropic")
    first = mf.compact(messages, model=MODEL, budget=16_000)
    plan = mf.compact(messages, model=MODEL, budget=9_000, plan=first.plan).plan
    assert plan.elided and plan.dropped and plan.archive is not None and plan.archive.left_out and plan.archive.beside
    return messages, 9_000, plan.to_json()


@cache
def omitting() -> tuple[list[Any], int, str]:
    messages = rounds(24, 2_500).native("anthropic")
    plan = mf.compact(messages, model=MODEL, budget=9_000, policy=mf.Policy(rungs=("omit",))).plan
    assert plan.omitted
    return messages, 9_000, plan.to_json()


def outcome(messages: list[Any], budget: int, text: str) -> str:
    """What becomes of a plan: an error of ours, or a context that can be sent."""
    try:
        plan = mf.Plan.from_json(text)
        fit = mf.compact(messages, model=MODEL, budget=budget, plan=plan)
    except (BadInput, CannotFit) as error:
        return type(error).__name__
    assert fit.tokens <= budget
    assert fit.receipt.violations == ()
    assert mf.validate(fit.request, "anthropic") == []
    return "sent"


@pytest.mark.parametrize("make", [sample, omitting])
def test_json_round_trip(make: Any) -> None:
    messages, budget, text = make()
    plan = mf.Plan.from_json(text)
    assert plan.to_json() == text
    fit = mf.compact(messages, model=MODEL, budget=budget, plan=plan)
    assert fit.plan == plan


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        found += leaves(each, (*path, key))
    return found


WILD = (
    None,
    True,
    False,
    0,
    1,
    2,
    3,
    7,
    -1,
    10**6,
    10**12,
    1 << 80,
    1.5,
    float("nan"),
    "",
    "x",
    "2.1.0",
    [],
    {},
    [[1, 9]],
)


def mutate(text: str, seed: int) -> str:
    source = random.Random(seed)
    data = json.loads(text)
    for _ in range(source.choice((1, 1, 1, 2, 3))):
        *path, last = source.choice(leaves(data))
        holder = data
        for key in path:
            holder = holder[key]
        kind = source.randrange(5)
        value = holder[last]
        if kind == 0:
            holder.pop(last)
        elif kind == 1:
            holder[last] = copy.deepcopy(source.choice(WILD))
        elif kind == 2 and isinstance(value, int) and not isinstance(value, bool):
            holder[last] = value + source.choice((-1, 1, 2, 5, -5, 40))
        elif kind == 3 and isinstance(holder, list):
            holder.append(copy.deepcopy(value))
        elif isinstance(holder, dict):
            holder[source.choice(("why", "2.1.0", "1.0.0", "9.1.0", "9.1.0.1", "40.1.0", "allowed"))] = holder.pop(last)
    return json.dumps(data)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 1 << 32), st.sampled_from(["sample", "omitting"]))
def test_a_tampered_plan_never_crashes(seed: int, which: str) -> None:
    messages, budget, text = {"sample": sample, "omitting": omitting}[which]()
    outcome(messages, budget, mutate(text, seed))


@pytest.mark.full
def test_many_tampered_plans() -> None:
    for make in (sample, omitting):
        messages, budget, text = make()
        ends = {outcome(messages, budget, mutate(text, seed)) for seed in range(4_000)}
        assert ends >= {"BadInput", "PlanMismatch", "sent"}


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=60) | st.binary(max_size=60))
def test_what_is_no_plan_is_bad_input(text: str | bytes) -> None:
    with pytest.raises(BadInput):
        mf.Plan.from_json(text)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"version": 1}', '{"version": 2}', "null", '{"version": 1, "model": 3}']
)
def test_hostile_json(text: str) -> None:
    with pytest.raises(BadInput) as caught:
        mf.Plan.from_json(text, "plan.json")
    assert caught.value.where == "plan.json"
    assert caught.value.cure


@pytest.mark.parametrize("make", [sample, omitting])
def test_the_plan_of_another_history(make: Any) -> None:
    messages, budget, text = make()
    plan = mf.Plan.from_json(text)
    other = rounds(40, 2_000, seed=9).native("anthropic")
    changed = copy.deepcopy(messages)
    changed[2]["content"][0]["content"] += "!"
    for history in (other, changed, messages[:10], messages[2:]):
        with pytest.raises(PlanMismatch) as caught:
            mf.compact(history, model=MODEL, budget=budget, plan=plan)
        assert "no plan" in caught.value.cure


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("archive", "left_out"), 99),
        (("archive", "first"), 3),
        (("archive", "last"), 10**9),
        (("archive", "full", 0, "digest"), "0" * 64),
        (("archive", "full", 0, "upto"), "2.0.0"),
        (("archive", "beside"), [3]),
        (("through",), 2),
        (("omitted",), [[2, 3]]),
        (("omitted",), [[1, 10**12]]),
    ],
)
def test_a_forged_field_is_a_mismatch(where: tuple[Any, ...], value: Any) -> None:
    messages, budget, text = sample()
    data = json.loads(text)
    holder = data
    for key in where[:-1]:
        holder = holder[key]
    holder[where[-1]] = value
    with pytest.raises(PlanMismatch):
        mf.compact(messages, model=MODEL, budget=budget, plan=mf.Plan.from_json(json.dumps(data)))


def test_a_plan_for_a_model_that_does_not_see_is_made_anew() -> None:
    messages = rounds(24, 2_500).native("anthropic")
    seen = mf.compact(messages, model="nobody-knows-1", vision=True, budget=20_000)
    assert seen.pages
    blind = mf.compact(messages, model="nobody-knows-1", vision=False, budget=20_000, plan=seen.plan)
    assert not blind.pages
    assert '"image"' not in json.dumps(blind.request)
    assert blind.receipt.omitted_turns
