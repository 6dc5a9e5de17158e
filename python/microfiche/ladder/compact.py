"""The pass: the rungs in order, cheapest first, until the context fits.

Pure: messages, model, budget, policy and the plan before give a plan and the context it makes,
with what each rung did. No clock, no network, no model.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise

from microfiche.errors import CannotFit
from microfiche.messages import Message
from microfiche.models import Fidelity, Model, cell_for, cost_ratio
from microfiche.pages.render import Page
from microfiche.pages.script import Script, Spot

from .budget import Budget, Load, Policy, Scale
from .elide import elide
from .images import drop_forced, drop_old, drop_unfit
from .plan import (
    Plan,
    Projection,
    Source,
    assemble,
    checked_archive,
    draw_archive,
    first_paged,
    settle,
    source_digest,
    treated,
)
from .snapshot import extend, form_for, tail_start

_NEVER = 1 << 62
"""Behind every turn."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one rung did. ``reason`` says why it did nothing (``nothing_old``, ``no_vision``,
    ``does_not_pay``, ``would_grow``, ``off``), empty if it did something."""

    rung: str
    before: Load
    after: Load
    reason: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A plan, the context it makes, and the steps that led there.

    Loads are of the whole request: ``before`` verbatim, ``start`` with the plan before, ``load`` now.
    """

    plan: Plan
    projection: Projection
    before: Load
    start: Load
    load: Load
    steps: tuple[Step, ...] = ()

    @property
    def changed(self) -> bool:
        return any(not step.reason for step in self.steps)


@dataclass(slots=True)
class _Draft:
    """A plan in the making, with its projection and load, drawn once for each archive it has."""

    source: Source
    scale: Scale
    fixed: Load
    plan: Plan
    spared: frozenset[int] = frozenset()
    script: Script = field(default_factory=Script)
    pages: list[Page] = field(default_factory=list)

    def with_plan(self, plan: Plan, redraw: bool) -> _Draft:
        draft = replace(self, plan=plan)
        if redraw:
            draft.script, draft.pages = draw_archive(self.source, plan)
            draft.plan = settle(self.source, plan, draft.script, draft.pages)
        return draft

    def projection(self) -> Projection:
        return assemble(self.source, self.plan, self.script, self.pages)

    def load(self) -> Load:
        return self.fixed + self.scale.messages(self.projection().messages)


def compact(
    source: Source,
    model: Model,
    budget: Budget,
    policy: Policy,
    fixed: Mapping[str, Load],
    plan: Plan | None = None,
    fidelity: Fidelity = "exact",
    recall: bool = False,
    spared: frozenset[int] = frozenset(),
    force: bool = False,
) -> Outcome:
    """Make the source fit the budget.

    ``fixed`` are the loads of what stands beside the messages, by their names in words. Under budget
    nothing happens, unless ``force`` asks for every rung but omission all the same. ``spared`` turns are
    left alone unless nothing else fits. A plan made for another model, fidelity, page form or a smaller
    budget is not continued.
    :class:`CannotFit` if the parts that never change are too large, or the policy's rungs too few.
    """
    scale = Scale(model)
    beside = sum(fixed.values(), Load())
    everything = beside + scale.messages(_all_messages(source))
    start = fresh = Plan(model=model.id, budget=budget.tokens, fidelity=fidelity, recall=recall)
    if plan and _continues(plan, start, model):
        start = plan
    unfit = drop_unfit(source.turns, model, policy)
    unfit = {spot: dropped for spot, dropped in unfit.items() if spot not in start.dropped}
    if any(start.frozen(spot) for spot in unfit):
        start = fresh
    draft = _Draft(source, scale, beside, start, spared, *checked_archive(source, start))
    before = load = draft.load()
    steps: list[Step] = []
    if unfit:
        taken = replace(start, dropped=start.dropped | unfit)
        draft = draft.with_plan(taken, redraw=start.archive is not None)
        load = draft.load()
        steps.append(Step("images", before, load))
    if budget.holds(load) and not force:
        plan = _sealed(source, draft.plan, budget) if unfit else start
        return Outcome(plan, draft.projection(), everything, before, load, tuple(steps))

    for rung in (_elide, _images, _snapshot, _omit):
        name = rung.__name__[1:]
        if rung is _omit and budget.holds(load):
            break
        if name not in policy.rungs or not source.turns:
            steps.append(Step(name, load, load, "off"))
            continue
        draft, reason = rung(draft, model, budget, policy, load)
        after = draft.load() if not reason else load
        steps.append(Step(name, load, after, reason))
        load = after
        if budget.holds(load) and not force:
            break
    if not budget.holds(load):
        if spared:
            return compact(source, model, budget, policy, fixed, plan, fidelity, recall, force=force)
        raise _cannot_fit(draft, load, budget, policy, fixed)
    return Outcome(_sealed(source, draft.plan, budget), draft.projection(), everything, before, load, tuple(steps))


def _continues(plan: Plan, fresh: Plan, model: Model) -> bool:
    """Whether the plan before holds for this call, or only a new one does."""
    if (plan.model, plan.fidelity, plan.recall) != (fresh.model, fresh.fidelity, fresh.recall):
        return False
    archive = plan.archive
    drawable = archive is None or (bool(model.vision) and archive.form == form_for(model, fresh.fidelity))
    return drawable and fresh.budget <= plan.budget


def _all_messages(source: Source) -> Iterable[Message]:
    yield from source.head
    for turn in source.turns:
        yield from turn.messages


def _sealed(source: Source, plan: Plan, budget: Budget) -> Plan:
    """The plan with the budget it meets and the digest of the turns that it treats."""
    if not plan:
        return plan
    through = _through(plan)
    return replace(plan, budget=budget.tokens, through=through, source=source_digest(source, through))


def _through(plan: Plan) -> int:
    archive = plan.archive
    ends = [spot[0] for spot in (*plan.elided, *plan.dropped)]
    ends += [last for _, last in plan.omitted]
    return max([*ends, archive.last if archive is not None else 0], default=0)


def _protected(draft: _Draft, budget: Budget, policy: Policy) -> int:
    limit = min(policy.tail_tokens, int(policy.tail_share * budget.tokens))
    return tail_start(draft.source, limit, draft.scale)


def _elide(draft: _Draft, model: Model, budget: Budget, policy: Policy, load: Load) -> tuple[_Draft, str]:
    plan = draft.plan
    gone = _gone(plan) | draft.spared
    found = elide(
        draft.source.turns,
        _protected(draft, budget, policy),
        lambda spot: spot in plan.elided or spot[0] in gone or plan.frozen(spot),
        policy.elide_floor,
    )
    return _take(draft, replace(plan, elided=plan.elided | found), found, load, budget)


def _images(draft: _Draft, model: Model, budget: Budget, policy: Policy, load: Load) -> tuple[_Draft, str]:
    plan = draft.plan
    gone = _gone(plan) | draft.spared

    def out_of_reach(spot: Spot) -> bool:
        return spot in plan.dropped or spot[0] in gone or plan.frozen(spot)

    turns = draft.source.turns
    ruler = draft.scale.ruler
    found = {
        spot: dropped
        for spot, dropped, image in drop_old(turns, _protected(draft, budget, policy), out_of_reach, policy.screenshots)
        if ruler.text(dropped.marker(image, spot[0], plan.recall)) < ruler.image(image.width, image.height)
    }
    rest = _Draft(draft.source, draft.scale, draft.fixed, replace(plan, dropped=plan.dropped | found, archive=None))
    newest_user = max((turn.number for turn in turns if turn.role == "user"), default=0)
    found |= drop_forced(
        turns,
        rest.load(),
        budget,
        plan.dropped | found,
        lambda spot: out_of_reach(spot) or spot[0] == newest_user,
        turns[draft.source.first_middle].number - 1 if draft.source.first_middle < len(turns) else newest_user,
    )
    return _take(draft, replace(plan, dropped=plan.dropped | found), found, load, budget)


def _take(draft: _Draft, plan: Plan, found: Iterable[Spot], load: Load, budget: Budget) -> tuple[_Draft, str]:
    """The draft with the treatments found, if there are any and the context shrinks in what it has too much of."""
    spots = list(found)
    if not spots:
        return draft, "nothing_old"
    archive = plan.archive
    redraw = archive is not None and any(spot[0] <= archive.last for spot in spots)
    taken = draft.with_plan(plan, redraw)
    after = taken.load()
    shrinks = after.tokens < load.tokens or (not budget.holds_images(load) and after.images < load.images)
    return (taken, "") if shrinks else (draft, "would_grow")


def _gone(plan: Plan) -> frozenset[int]:
    return frozenset(turn for first, last in plan.omitted for turn in range(first, last + 1))


def _snapshot(draft: _Draft, model: Model, budget: Budget, policy: Policy, load: Load) -> tuple[_Draft, str]:
    """Page the turns between head and tail.

    Where not every page fits, a shorter tail leaves room for more of them: a turn on a page can be
    read, an omitted one cannot.
    """
    if not model.vision:
        return draft, "no_vision"
    source, plan = draft.source, draft.plan
    archive = plan.archive
    if archive is None and cost_ratio(model, cell_for(model, plan.fidelity)) > policy.pays:
        return draft, "does_not_pay"
    paged = archive.last if archive is not None else first_paged(source, plan) - 1
    limit = min(policy.tail_tokens, int(policy.tail_share * budget.tokens))
    best, reason = draft, "nothing_old"
    for tail in (limit,) if budget.holds(load) else (limit, limit // 2):
        last = min(tail_start(source, tail, draft.scale), min(draft.spared, default=_NEVER)) - 1
        if last <= paged:
            continue
        taken = draft.with_plan(extend(plan, source, model, budget, policy, draft.scale, last), redraw=True)
        after = taken.load()
        if after.tokens >= load.tokens:
            reason = "would_grow"
        elif not _pays(draft, taken, policy):
            reason = "does_not_pay"
        else:
            best, reason = taken, ""
            if budget.holds(after):
                break
    return (best, "") if best is not draft else (draft, reason)


def _pays(draft: _Draft, taken: _Draft, policy: Policy) -> bool:
    """Whether pages and the text beside them cost at most the policy's share of the turns as text."""
    archive = taken.plan.archive
    assert archive is not None
    source, scale = draft.source, draft.scale
    middle = [turn for turn in source.turns if archive.first <= turn.number <= archive.last]
    text = sum(scale.messages(turn.messages).tokens for turn in treated(middle, taken.plan))
    before = len(source.head) + sum(len(turn.messages) for turn in source.turns[: source.first_middle])
    return scale.message(taken.projection().messages[before]).tokens <= policy.pays * text


def _omit(draft: _Draft, model: Model, budget: Budget, policy: Policy, load: Load) -> tuple[_Draft, str]:
    """Leave out whole full pages, oldest first; then turns that stand on no full page; never the newest turn."""
    plan = draft.plan
    archive = plan.archive
    if archive is not None and archive.full:
        fewer = _fewest(
            range(archive.left_out + 1, len(archive.full) + 1),
            lambda k: draft.with_plan(replace(plan, archive=replace(archive, left_out=k)), redraw=False),
            budget,
        )
        if fewer is not None:
            return fewer, ""
    paged = archive.last if archive is not None else max((last for _, last in plan.omitted), default=0)
    for ends in _ends(draft.source, paged):
        free = [end for end in ends if end < min(draft.spared, default=_NEVER)]
        fewer = _fewest(free, partial(_without, draft), budget)
        if fewer is not None:
            return fewer, ""
    return draft, "nothing_old"


def _ends(source: Source, paged: int = 0) -> tuple[list[int], list[int]]:
    """Numbers of the turns, from ``paged`` on, with which a stretch of the middle may end.

    First those behind which no call is open, then all: better a result as text than nothing to send.
    """
    cuts = source.cuts()
    pairs = [(turn.number, behind.number in cuts) for turn, behind in pairwise(source.turns[source.first_middle :])]
    ends = [(number, closed) for number, closed in pairs if number >= paged]
    return [number for number, closed in ends if closed], [number for number, _ in ends]


def _without(draft: _Draft, last: int) -> _Draft:
    """The draft with every turn of the middle up to ``last`` omitted."""
    first = draft.source.turns[draft.source.first_middle].number
    return _Draft(draft.source, draft.scale, draft.fixed, replace(draft.plan, archive=None, omitted=((first, last),)))


def _fewest(choices: Sequence[int], make: Callable[[int], _Draft], budget: Budget) -> _Draft | None:
    """The draft for the first of the rising choices that fits, by bisection; ``None`` if none does."""
    if not choices or not budget.holds(make(choices[-1]).load()):
        return None
    first = bisect_left(choices, True, key=lambda choice: budget.holds(make(choice).load()))
    return make(choices[first])


def _cannot_fit(draft: _Draft, load: Load, budget: Budget, policy: Policy, fixed: Mapping[str, Load]) -> CannotFit:
    """The error that says what is too large, and by how much."""
    source, scale = draft.source, draft.scale
    if "omit" not in policy.rungs:
        return CannotFit(
            f"the rungs allowed ({', '.join(policy.rungs) or 'none'}) leave {budget.over(load)}",
            "compact",
            "allow the other rungs, or raise the budget",
        )
    parts = {**fixed, "the messages before the first turn": scale.messages(source.head)}
    if source.first_middle:
        parts["the first user message"] = scale.messages(source.turns[0].messages)
    if len(source.turns) > source.first_middle:
        parts["the newest turn"] = scale.messages(source.turns[-1].messages)
    name, largest = max(parts.items(), key=lambda item: item[1].tokens)
    if largest.tokens > budget.tokens:
        what = f"too large, {name} alone: {budget.over(largest)}, {largest.tokens - budget.tokens:,} too many"
    else:
        _, ends = _ends(source)
        least = _without(draft, ends[-1]).load() if ends else load
        named = ", ".join(f"{each} {part.tokens:,}" for each, part in parts.items() if part.tokens)
        what = f"too large, what never changes: {budget.over(least)} ({named} tokens)"
    return CannotFit(what, "compact", "raise the budget, or shorten what is too large")
