"""Random histories through every rung: whatever comes in, what leaves can be sent, fits and loses nothing unnamed."""

from __future__ import annotations

import copy
import random
from collections import Counter
from typing import Any

import builders
import microfiche as mf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from microfiche import formats
from microfiche.fit import source_of
from microfiche.ladder.projection import project
from microfiche.messages import Image, Message, Text, ToolResult, split_turns
from microfiche.pages.render import normal, read_back

MODELS = (
    ("claude-opus-5", None),
    ("claude-haiku-4-5", None),
    ("gpt-5.6-sol", None),
    ("gemini-3.6-flash", None),
    ("nobody-knows-1", True),
    ("o3-mini", None),
    ("pixtral-12b", None),
)
RUNGS = (
    ("elide", "images", "snapshot", "omit"),
    ("elide", "images", "omit"),
    ("snapshot", "omit"),
    ("images", "snapshot"),
    ("elide",),
    ("omit",),
)


def check(seed: int) -> str:
    """One history, one model, one budget, one set of rungs; says how it ended."""
    source = random.Random(seed)
    story = builders.random_story(seed)
    wire = source.choice(builders.WIRES)
    model, vision = source.choice(MODELS)
    native: Any = story.native(wire)
    if source.random() < 0.5:
        native = {formats.list_key(wire): native}
        if source.random() < 0.5:
            native["tools"] = TOOLS[wire]
    policy = mf.Policy(
        rungs=source.choice(RUNGS) if source.random() < 0.4 else RUNGS[0],
        recall=source.choice((None, True, False)),
        image_bytes=source.choice((18 << 20, 300_000)),
    )
    fidelity = source.choice(("exact", "working", "gist"))
    history = formats.read(native, wire)
    total = mf.count(history, model=model, vision=vision)
    budget = max(int(total * source.choice((0.03, 0.1, 0.2, 0.35, 0.6, 0.9, 1.1)) * source.uniform(0.8, 1.2)), 1)
    before = copy.deepcopy(native)
    options = {"model": model, "vision": vision, "policy": policy, "fidelity": fidelity, "format": wire}
    try:
        fit = mf.compact(history, budget=budget, **options)  # type: ignore[arg-type]
    except mf.CannotFit as error:
        assert native == before
        assert f"{budget:,}" in str(error) or policy.rungs != RUNGS[0] or "image" in str(error)
        return "cannot fit"
    assert native == before, "the input was changed"
    assert fit.tokens <= budget
    assert fit.receipt.violations == ()
    assert mf.validate(fit.request, wire) == []
    assert mf.validate(fit.request, wire, model=model) == []
    written = formats.read(fit.request, wire)
    assert fit.tokens == mf.count(written, model=model, vision=vision)
    assert sizes(written.messages)[1] <= policy.image_bytes
    pairs(written.messages)
    receipt_adds_up(fit, total)
    if not fit.plan:
        return "under budget"

    turns, _ = source_of(history, wire)
    projection = project(turns, mf.Plan.from_json(fit.plan.to_json()))
    assert mf.Plan.from_json(fit.plan.to_json()) == fit.plan
    assert [page.png for page in projection.shown] == [page.png for page in fit.pages]
    assert projection.drawn == fit.drawn
    if fit.pages:
        reads_back(projection)
    accounted(history, fit, turns, projection)
    return "pages" if fit.pages else "smaller"


TOOLS = {
    wire: formats.tools.stubs(["read_file", "write_file", "run", "screenshot", "recall"], wire)[0]
    for wire in builders.WIRES
}


def sizes(messages: list[Message]) -> tuple[int, int]:
    """Images and the bytes of their base64."""
    images = [part for message in messages for part in message.parts if isinstance(part, Image)]
    results = [part for message in messages for part in message.parts if isinstance(part, ToolResult)]
    images += [part for result in results for part in result.parts if isinstance(part, Image)]
    return len(images), sum((len(image.data or b"") + 2) // 3 * 4 for image in images)


def pairs(messages: list[Message]) -> None:
    """Every call has exactly one result, right behind it; no result is without a call."""
    head, turns = split_turns(messages)
    assert not any(message.results for message in head)
    for turn in turns:
        calls = Counter(call.id for message in turn.messages for call in message.calls)
        results = Counter(result.call_id for message in turn.messages for result in message.results)
        assert calls == results


def receipt_adds_up(fit: mf.Context, total: int) -> None:
    receipt = fit.receipt
    assert receipt.before.tokens == total
    assert receipt.after.tokens == fit.tokens
    at = receipt.before
    for rung in receipt.rungs:
        assert rung.before == at
        assert (rung.before == rung.after) or not rung.reason
        at = rung.after
    assert at == receipt.after


def reads_back(projection: Any) -> None:
    source = normal(projection.script.segments)
    assert "".join(page.text for page in projection.pages) == "".join(s for s in source if isinstance(s, str))
    assert tuple(read_back([page.png for page in projection.pages], marks=True)) == source


def accounted(history: Any, fit: mf.Context, source: Any, projection: Any) -> None:
    """Every turn stands verbatim (but for named placeholders), on a page shown, or is named as omitted."""
    verbatim = builders.verbatim(source.turns, projection.messages)
    treated = builders.treated(fit.plan)
    paged = {turn for page in fit.pages for turn in page.turns}
    omitted = set(fit.receipt.omitted_turns)
    numbers = {turn.number for turn in source.turns}
    assert numbers <= verbatim | treated | paged | omitted
    assert not omitted & (verbatim | paged)
    last = source.turns[-1]
    assert last.number in verbatim or last.number in {spot[0] for spot in (*fit.plan.dropped, *fit.plan.shortened)}
    if source.turns[0].role == "user":
        assert 1 in verbatim or 1 in {spot[0] for spot in fit.plan.dropped}
    told = "".join(part.text for message in projection.messages for part in message.parts if isinstance(part, Text))
    if omitted:
        assert "Left out here: " in told


def check_growth(seed: int) -> int:
    """One history that grows under one budget, the plan handed on; says how many passes had full pages to keep."""
    source = random.Random(seed)
    story = builders.random_story(seed)
    for at in range(source.randrange(10, 40)):
        builders.step(story, source, seed * 1_000 + 500 + at, ["a.py", "b.py", "c.py", "d.py"])
    wire = source.choice(builders.WIRES)
    model, vision = source.choice(MODELS)
    ends = [at for at, event in enumerate(story.events) if not isinstance(event, builders.Result)]
    stops = sorted(source.sample(ends[1:], min(4, len(ends) - 1)))
    policy = mf.Policy(image_bytes=source.choice((18 << 20, 200_000)), screenshots=source.choice((0, 3)))
    whole = formats.read(story.native(wire), wire)
    budget = int(mf.count(whole, model=model, vision=vision) * source.uniform(0.1, 0.6)) + 1
    plan: mf.Plan | None = None
    kept = 0
    for stop in [*stops, len(story.events)]:
        native = builders.Story(story.events[:stop]).native(wire)
        options = {"model": model, "vision": vision, "budget": budget, "format": wire, "policy": policy}
        try:
            fit = mf.compact(native, plan=plan, **options)  # type: ignore[arg-type]
        except mf.CannotFit:
            continue
        assert fit.tokens <= budget
        assert mf.validate(fit.request, wire, model=model) == []
        if plan is not None and plan:
            moved_down_only(plan, fit.plan)
            kept += bool(plan.archive and plan.archive.full)
        again = mf.compact(native, plan=fit.plan, **options)  # type: ignore[arg-type]
        assert (again.plan, again.messages, again.digest) == (fit.plan, fit.messages, fit.digest)
        history = formats.read(native, wire)
        turns, _ = source_of(history, wire)
        if fit.plan:
            accounted(history, fit, turns, project(turns, fit.plan))
        plan = fit.plan
    return kept


def moved_down_only(old: mf.Plan, new: mf.Plan) -> None:
    """What was elided, dropped, paged or omitted is so still, or stands a rung below."""
    last = max((end for _, end in new.omitted), default=0)
    assert all(spot in new.elided or spot[0] <= last for spot in old.elided)
    assert all(spot in new.dropped or spot[0] <= last for spot in old.dropped)
    assert max((end for _, end in old.omitted), default=0) <= last
    if old.archive is None:
        return
    if new.archive is None or new.archive.first != old.archive.first:
        assert last >= old.archive.last
        return
    assert new.archive.last >= old.archive.last
    assert new.archive.left_out >= old.archive.left_out
    assert new.archive.full[: len(old.archive.full)] == old.archive.full
    frozen = old.archive.full[-1].upto[0] if old.archive.full else 0
    assert [turn for turn in new.archive.beside if turn <= frozen] == [t for t in old.archive.beside if t <= frozen]


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 1 << 32))
def test_random_histories(seed: int) -> None:
    check(seed)


@pytest.mark.full
def test_ten_thousand_histories() -> None:
    ends = Counter(check(seed) for seed in range(10_000))
    assert min(ends[end] for end in ("pages", "smaller", "under budget", "cannot fit")) > 300, ends


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1 << 32))
def test_random_histories_that_grow(seed: int) -> None:
    check_growth(seed)


@pytest.mark.full
def test_many_histories_that_grow() -> None:
    assert sum(check_growth(seed) for seed in range(500)) > 300
