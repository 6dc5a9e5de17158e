"""The pass: the rungs in order, cheapest first, until the context fits.

Pure: messages, model, budget, policy and the plan before give a plan and the context it makes,
with what each rung did. No clock, no network; no model but a summariser that was given.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from microfiche.errors import CannotFit
from microfiche.messages import Message, ToolResult
from microfiche.models import Fidelity, Model, cell_for, cost_ratio
from microfiche.pages.render import Page
from microfiche.pages.script import Spot

from . import reasoning
from .budget import FREE, Budget, Load, Policy, Scale, base64_size
from .cost import common_tokens, pays
from .draft import Draft
from .elide import elide
from .form import continues, form_for
from .images import drop_forced, drop_old, drop_unfit, spots_of
from .leaving import NEVER, Way, ends_of, least_way, let_go, ways_of
from .newest import LARGE, SMALL, Shortened, large_texts, shares, shorten, with_digests
from .plan import Plan, Source, first_paged, source_digest
from .projection import Projection, carried, draw_checked, treated
from .snapshot import awaiting, extend, tail_start
from .summarize import Failed, Writer
from .summary import Summary, block, tokens


@dataclass(frozen=True, slots=True)
class Step:
    """What one rung did. ``reason`` says why it did nothing (``nothing_old``, ``no_vision``,
    ``does_not_pay``, ``would_grow``, ``no_room``, ``off``, ``summary_failed: ...``), empty if it did something."""

    rung: str
    before: Load
    after: Load
    reason: str = ""


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

    @property
    def stands(self) -> bool:
        """Whether the context is that of the plan before, less what no request can hold: what is known of it holds."""
        return all(step.rung == _UNSENDABLE for step in self.steps)


_UNSENDABLE = "unsendable"
"""The step that takes out images which no request can hold; it is no rung."""

_QUIET = ("reasoning", "newest")
"""Rungs that have nothing to tell where there is nothing for them: no reasoning, no result too large."""

_Rung = Callable[[Draft, Model, Budget, Policy, Load], tuple[Draft, str]]
"""What tries to shrink a draft: a smaller one, or the same and the reason."""


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
    writer: Writer | None = None,
    correction: int = 0,
    trimmed: tuple[tuple[int, int], ...] = (),
) -> Outcome:
    """Make the source fit the budget.

    ``fixed`` are the loads of what stands beside the messages, by their names in words. Under budget
    nothing happens, unless ``force`` asks for all rungs but summary and omission all the same. ``spared`` turns are
    left alone unless nothing else fits. A plan made for another model, fidelity, page form or a smaller
    budget is not continued; ``trimmed`` ranges of turns are left out of a new one too. Without a ``writer``
    there is no rung that summarises.
    ``correction`` is by how many tokens the context of the plan before is known to weigh more than estimated.
    :class:`CannotFit` if the parts that never change are too large, or the policy's rungs too few.
    """
    scale = Scale(model)
    beside = sum(fixed.values(), Load())
    everything = beside + scale.messages(_all_messages(source))
    fresh = Plan(model=model.id, budget=budget.tokens, fidelity=fidelity, recall=recall, omitted=trimmed)
    start = fresh = _sealed(source, fresh, budget)
    if plan and _continues(plan, start, model, policy):
        start = plan
    unfit = drop_unfit(source.turns, model, policy)
    unfit = {spot: dropped for spot, dropped in unfit.items() if spot not in start.dropped}
    if any(start.frozen(spot) for spot in unfit):
        start = fresh
    draft = Draft(source, scale, beside, start, spared, draw_checked(source, start))
    before = load = draft.load()
    steps: list[Step] = []
    if unfit:
        taken = replace(start, dropped=start.dropped | unfit)
        draft = draft.with_plan(taken, redraw=start.archive is not None)
        load = draft.load()
        steps.append(Step(_UNSENDABLE, before, load))
    if budget.holds(load + Load(correction)) and not force:
        settled = _sealed(source, draft.plan, budget) if unfit else start
        stays = Outcome(settled, draft.projection(), everything, before, load, tuple(steps))
        if policy.goal == "fit":
            return stays
        free = replace(policy, goal="fit", rungs=tuple(name for name in policy.rungs if name in FREE))
        try:
            made = compact(
                source, model, budget, free, fixed, plan, fidelity, recall, spared, True, None, correction, trimmed
            )
        except CannotFit:
            # By its estimate the context may be over a budget that it is known to keep.
            return stays
        common = beside.tokens + common_tokens(stays.projection.messages, made.projection.messages, scale)
        pay = pays(model, load.tokens, made.load.tokens, common, policy.cached or 0, policy.calls_left)
        return made if made.changed and pay else stays

    # What a pass makes is estimated anew, but not more hopefully than what is known allows.
    sealed, budget = budget, replace(budget, tokens=max(budget.tokens - max(correction, 0), 1))
    goal = replace(budget, tokens=int(policy.target * budget.tokens))
    rungs: dict[str, _Rung] = {"elide": _elide, "images": _images, "reasoning": _reasoning, "snapshot": _snapshot}
    if writer is not None:
        rungs["summary"] = partial(_summary, writer=writer)
    rungs["newest"] = _newest
    rungs["omit"] = _omit
    # Who had to lose something loses a little more at once: else the turns to come would each make a pass of their own.
    enough = _with_room(budget, policy) if start.lossy and not force else budget
    for name, rung in rungs.items():
        if name in ("summary", "newest", "omit") and enough.holds(load):
            break
        if name not in policy.rungs or not source.turns:
            if name not in _QUIET:
                steps.append(Step(name, load, load, "off"))
            continue
        draft, reason = rung(draft, model, budget, policy, load)
        if name in _QUIET and reason:
            continue
        after = draft.load() if not reason else load
        steps.append(Step(name, load, after, reason))
        load = after
        if goal.holds(load) and not force:
            break
    if not budget.holds(load):
        if spared:
            none = frozenset[int]()
            return compact(
                source, model, sealed, policy, fixed, plan, fidelity, recall, none, force, writer, correction, trimmed
            )
        raise _cannot_fit(draft, load, budget, policy, fixed)
    return Outcome(_sealed(source, draft.plan, sealed), draft.projection(), everything, before, load, tuple(steps))


def _continues(plan: Plan, fresh: Plan, model: Model, policy: Policy) -> bool:
    """Whether the plan before holds for this call, or only a new one does."""
    if (plan.model, plan.fidelity, plan.recall) != (fresh.model, fresh.fidelity, fresh.recall):
        return False
    if plan.forms and not model.vision:
        return False
    drawable = all(continues(form, model, fresh.fidelity, policy.font) for form in plan.forms)
    return drawable and fresh.budget <= plan.budget


def _all_messages(source: Source) -> Iterable[Message]:
    yield from source.head
    for turn in source.turns:
        yield from turn.messages


def _sealed(source: Source, plan: Plan, budget: Budget) -> Plan:
    """The plan with the budget it meets and the digest of the turns that it treats."""
    plan = replace(plan, shortened=_in_use(plan))
    if not plan:
        return plan
    through = _through(plan)
    return replace(plan, budget=budget.tokens, through=through, source=source_digest(source, through))


def _in_use(plan: Plan) -> dict[Spot, Shortened]:
    """The shortened texts that still stand as such: on a page of the archive, or as text."""
    archive = plan.archive
    gone = plan.gone
    return {
        spot: each
        for spot, each in plan.shortened.items()
        if spot[:3] not in plan.elided
        and (spot[0] not in gone or (archive is not None and archive.first <= spot[0] <= archive.last))
    }


def _through(plan: Plan) -> int:
    archive = plan.archive
    ends = [*(spot[0] for spot in (*plan.elided, *plan.dropped, *plan.shortened)), *plan.reasoning]
    ends += [last for _, last in plan.omitted] + [each.last for each in plan.summaries]
    return max([*ends, archive.last if archive is not None else 0], default=0)


def _tail_limit(budget: Budget, policy: Policy) -> int:
    return min(policy.tail_tokens, int(policy.tail_share * budget.tokens))


def _protected(draft: Draft, budget: Budget, policy: Policy) -> int:
    return tail_start(draft.source, _tail_limit(budget, policy), draft.scale)


def _elide(draft: Draft, model: Model, budget: Budget, policy: Policy, load: Load) -> tuple[Draft, str]:
    plan = draft.plan
    gone = plan.gone | draft.spared
    found = elide(
        draft.source.turns,
        _protected(draft, budget, policy),
        lambda spot: spot in plan.elided or spot[0] in gone or plan.frozen(spot),
        policy.elide_floor,
        policy.rules,
        policy.protect,
    )
    return _take(draft, replace(plan, elided=plan.elided | found), found, load, budget)


def _images(draft: Draft, model: Model, budget: Budget, policy: Policy, load: Load) -> tuple[Draft, str]:
    plan = draft.plan
    gone = plan.gone | draft.spared

    def out_of_reach(spot: Spot) -> bool:
        return spot in plan.dropped or spot[0] in gone or plan.frozen(spot)

    turns = draft.source.turns
    ruler = draft.scale.ruler
    found = {
        spot: dropped
        for spot, dropped, image in drop_old(turns, _protected(draft, budget, policy), out_of_reach, policy.screenshots)
        if ruler.text(dropped.marker(image, spot[0], plan.recall)) < ruler.image(image.width, image.height)
    }
    rest = Draft(draft.source, draft.scale, draft.fixed, replace(plan, dropped=plan.dropped | found, archive=None))
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


def _reasoning(draft: Draft, model: Model, budget: Budget, policy: Policy, load: Load) -> tuple[Draft, str]:
    """Leave out the reasoning of old turns; on pages there is none in any case."""
    plan = draft.plan
    paged = plan.archive.last if plan.archive is not None else 0
    before = min(_protected(draft, budget, policy), draft.source.answering)
    turns = [turn for turn in draft.source.turns if turn.number > paged]
    found = list(reasoning.old(turns, before, (*plan.reasoning, *plan.gone, *draft.spared)))
    if not found:
        return draft, "nothing_old"
    taken = draft.with_plan(replace(plan, reasoning=tuple(sorted({*plan.reasoning, *found}))), redraw=False)
    return (taken, "") if taken.load().tokens < load.tokens else (draft, "would_grow")


def _take(draft: Draft, plan: Plan, found: Iterable[Spot], load: Load, budget: Budget) -> tuple[Draft, str]:
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


def _snapshot(draft: Draft, model: Model, budget: Budget, policy: Policy, load: Load) -> tuple[Draft, str]:
    """Page the turns between head and tail.

    Where not every page fits, a shorter tail leaves room for more of them: a turn on a page can be
    read, an omitted one cannot.
    """
    source, plan = draft.source, draft.plan
    archive = plan.archive
    paged = archive.last if archive is not None else first_paged(source, plan) - 1
    limit = _tail_limit(budget, policy)
    best, reason = draft, "nothing_old"
    for tail in (limit,) if budget.holds(load) else (limit, limit // 2):
        behind = min(tail_start(source, tail, draft.scale), min(draft.spared, default=NEVER))
        # Not behind - 1: the turns of a path may skip numbers.
        last = max((turn.number for turn in source.turns if turn.number < behind), default=0)
        if last <= paged:
            continue
        if not model.vision:
            return draft, "no_vision"
        if archive is None and cost_ratio(model, cell_for(model, plan.fidelity)) > policy.pays:
            return draft, "does_not_pay"
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
            if after.tokens <= budget.tokens:
                fitting = _room_for_pages(draft, taken, budget, policy)
                fitting = fitting or _fewer_pages(draft, taken, model, budget, policy)
                if fitting is not None:
                    return fitting, ""
    return (best, "") if best is not draft else (draft, reason)


def _room_for_pages(draft: Draft, taken: Draft, budget: Budget, policy: Policy) -> Draft | None:
    """Where tokens hold and images do not: more images let go, tools' before the user's, if that is enough.

    The newest few of the tools and the newest user message keep theirs, and so does what stood on full pages before.
    """
    turns, plan = taken.source.turns, taken.plan
    assert plan.archive is not None
    shots = [spot for spot, image in spots_of(turns) if image.owner == "tool"]
    newest_user = max((turn.number for turn in turns if turn.role == "user"), default=0)
    kept = set(shots[max(len(shots) - policy.screenshots, 0) :])
    found = drop_forced(
        turns,
        taken.load(),
        budget,
        plan.dropped,
        lambda spot: draft.plan.frozen(spot) or spot[0] == newest_user or spot in kept,
        turns[draft.source.first_middle - 1].number if draft.source.first_middle else 0,
    )
    redraw = any(plan.archive.first <= spot[0] <= plan.archive.last for spot in found)
    made = taken.with_plan(replace(plan, dropped=plan.dropped | found), redraw)
    return made if found and budget.holds(made.load()) else None


def _fewer_pages(draft: Draft, taken: Draft, model: Model, budget: Budget, policy: Policy) -> Draft | None:
    """Where tokens hold and images do not: so few turns paged that both do, if there is such a number.

    Pages bring tokens down and the number of images up, so the fewest that bring the tokens down decide.
    """
    first, archive = draft.plan.archive, taken.plan.archive
    assert archive is not None
    cuts, low = draft.source.cuts(), archive.first if first is None else first.last + 1
    pairs = [(turn.number, behind.number) for turn, behind in pairwise(draft.source.turns)]
    ends = [number for number, behind in pairs if low <= number <= archive.last and behind in cuts]

    def paged(last: int) -> Draft:
        return draft.with_plan(extend(draft.plan, draft.source, model, budget, policy, draft.scale, last), redraw=True)

    at = bisect_left(ends, True, key=lambda last: paged(last).load().tokens <= budget.tokens)
    found = paged(ends[at]) if at < len(ends) else None
    return found if found is not None and budget.holds(found.load()) else None


def _pays(draft: Draft, taken: Draft, policy: Policy) -> bool:
    """Whether pages and the text beside them cost at most the policy's share of the turns as text.

    What an image costs is known, what text costs is not: the low estimate, so that a page saves what it promises.
    """
    archive = taken.plan.archive
    assert archive is not None
    source, scale = draft.source, Scale(draft.scale.model, low=True)
    middle = [turn for turn in source.turns if archive.first <= turn.number <= archive.last]
    text = sum(scale.messages(turn.messages).tokens for turn in treated(middle, taken.plan))
    before = len(source.head) + len(carried(source, taken.plan))
    before += sum(len(turn.messages) for turn in source.turns[: source.first_middle])
    cost = scale.message(taken.projection().messages[before]).tokens
    if taken.plan.summaries:
        cost -= scale.ruler.text(block(taken.plan.summaries, taken.plan.recall))
    return cost <= policy.pays * text


def _summary(
    draft: Draft, model: Model, budget: Budget, policy: Policy, load: Load, writer: Writer
) -> tuple[Draft, str]:
    """Have the oldest turns summarised that stand as text or on pages, and so many that there is room again.

    A summary stays as it is. Where all of them would have more than their share, the newest is written
    anew together with what follows it, from the source.
    """
    plan, source = draft.plan, draft.source
    if writer.failure:
        return draft, f"summary_failed: {writer.failure}"
    share = int(policy.summary_share * budget.tokens)
    limit = min(policy.summary_tokens, share // 2)
    way = _enough(draft, budget, policy, limit, writer)
    if way is None:
        return draft, "no_room"
    standing = _standing(draft)
    stretch = [turn for turn in standing if turn <= way.last]
    kept = list(plan.summaries)
    if stretch:
        seen = plan.summarised.union(standing)
        first = stretch[0]
        while kept and _size(kept) + limit > share and _between(source, kept[-1].first, first) <= seen:
            first = kept.pop().first
        limit = min(limit, share - _size(kept))
        if limit < _LEAST_SUMMARY:
            return draft, "no_room"
        turns = [turn for turn in source.turns if first <= turn.number <= stretch[-1]]
        try:
            kept.append(writer.write(turns, limit))
        except Failed as exc:
            return draft, f"summary_failed: {exc}"
    taken = let_go(replace(draft, plan=replace(plan, summaries=tuple(kept))), way)
    return (taken, "") if taken.load().tokens < load.tokens else (draft, "would_grow")


_LEAST_SUMMARY = 100
"""Tokens of a summary, at least: a few lines."""


def _enough(draft: Draft, budget: Budget, policy: Policy, limit: int, writer: Writer) -> Way | None:
    """The way that leaves room for a summary of ``limit`` tokens, and before the tail some of the budget free.

    Of a pass that is done again, the way for which there is a summary already.
    """
    ways, _ = ways_of(draft)
    within = replace(budget, tokens=budget.tokens - limit)
    free = replace(within, tokens=within.tokens - int(policy.summary_room * budget.tokens))
    for way in ways:
        if writer.wrote_up_to(way.last) and within.holds(let_go(draft, way).load()):
            return way
    tail = _protected(draft, budget, policy)
    old = [way for way in ways if way.last < tail]
    freeing = least_way(draft, old, free)
    if freeing is not None:
        return freeing
    if old and within.holds(let_go(draft, old[-1]).load()):
        return old[-1]
    return None if budget.holds(draft.load()) else least_way(draft, ways, within)


def _size(summaries: Sequence[Summary]) -> int:
    return tokens(block(summaries, recall=False))


def _between(source: Source, first: int, behind: int) -> frozenset[int]:
    return frozenset(turn.number for turn in source.turns if first <= turn.number < behind)


def _standing(draft: Draft) -> list[int]:
    """Turns of the middle, the tail included, that stand as text or on a page shown, and in no summary; by number."""
    plan, archive = draft.plan, draft.plan.archive
    pages = draft.drawn.pages[archive.left_out :] if archive is not None else ()
    shown = {turn for page in pages for turn in page.turns}
    gone = plan.gone
    return [
        turn.number
        for turn in draft.source.turns[draft.source.first_middle :]
        if turn.number not in gone and (archive is None or turn.number > archive.last or turn.number in shown)
    ]


def _newest(draft: Draft, model: Model, budget: Budget, policy: Policy, load: Load) -> tuple[Draft, str]:
    """Shorten results that no answer has seen and that take more than their share, or than is left without all else."""
    source, plan, ruler = draft.source, draft.plan, draft.scale.ruler
    if budget.holds(load):
        return draft, "nothing_old"
    first = awaiting(source, _tail_limit(budget, policy), draft.scale)
    paged = plan.archive.last if plan.archive is not None else 0
    gone = plan.gone
    turns = {
        turn.number: turn
        for turn in source.turns[source.first_middle :]
        if turn.number >= first and turn.number > paged and turn.number not in gone
    }
    ends = [end for end in ends_of(source)[1] if end < first]
    bare = let_go(replace(draft, plan=replace(plan, summaries=())), Way(ends[-1])) if ends else draft
    # Many small results of one batch can be as large as one giant.
    for least in (LARGE, SMALL):
        texts = {spot: text for turn in turns.values() for spot, text in large_texts(turn, least).items()}
        texts = {spot: text for spot, text in texts.items() if spot not in plan.shortened}
        if sum(map(len, texts.values())) < LARGE:
            texts = {}
        holders = treated([turns[number] for number in sorted({spot[0] for spot in texts})], plan, draft.drawn.results)
        weight = draft.scale.messages(message for turn in holders for message in turn.messages)
        rest = bare.load() - weight
        room = min(int(policy.newest_share * budget.tokens), budget.tokens - rest.tokens - _GUIDE_TOKENS)
        sizes = {spot: ruler.text(text) for spot, text in texts.items()}
        stays = weight.tokens - sum(sizes.values())
        if stays + _POINTER_TOKENS * len(texts) <= room:
            break
    found = shares(sizes, room - stays)
    if weight.tokens <= room or not found:
        return draft, "nothing_old"
    most = budget.most_images(rest)
    images = NEVER if most is None else min(int(policy.newest_share * most), most - rest.images) // len(found)
    size = min(int(policy.newest_share * budget.image_bytes), budget.image_bytes - rest.image_bytes) // len(found)

    def fits(pages: Sequence[Page]) -> bool:
        return len(pages) <= images and sum(base64_size(page.png) for page in pages) <= size

    draws = model.vision and cost_ratio(model, cell_for(model, plan.fidelity)) < min(policy.pays, 1)
    form = form_for(model, plan.fidelity, policy.font, "".join(texts.values())) if draws else None
    shortened = dict(plan.shortened)
    for spot, limit in found.items():
        result = turns[spot[0]].messages[spot[1]].parts[spot[2]]
        error = isinstance(result, ToolResult) and result.error
        shortened[spot] = shorten(texts[spot], spot, error, limit, ruler, plan.recall, form, fits)
    taken = draft.with_plan(replace(plan, shortened=shortened), redraw=True)
    taken.plan = replace(taken.plan, shortened=with_digests(shortened, taken.drawn.results))
    return (taken, "") if taken.load().tokens < load.tokens else (draft, "would_grow")


_POINTER_TOKENS = 100
"""What stands for a shortened text is hardly less."""

_GUIDE_TOKENS = 500
"""The guide before pages, where there were none, is less in any model."""


def _omit(draft: Draft, model: Model, budget: Budget, policy: Policy, load: Load) -> tuple[Draft, str]:
    """Leave out whole full pages, oldest first; then turns that stand on no full page; never the newest turn.

    Summaries stay as long as anything else can leave. So much goes at once that the next turns have room, as far as
    that can be had of what stands before the tail.
    """
    tail = _protected(draft, budget, policy)
    old = [way for way in ways_of(draft)[0] if way.last < tail]
    freeing = least_way(draft, old, _with_room(budget, policy))
    if freeing is None and old and budget.holds(let_go(draft, old[-1]).load()):
        freeing = old[-1]
    if freeing is not None or budget.holds(load):
        return (let_go(draft, freeing), "") if freeing is not None else (draft, "nothing_old")
    bare = replace(draft, plan=replace(draft.plan, summaries=()))
    closed, every = ways_of(draft)
    for each, ways in ((draft, closed), (draft, every), (bare, [way for way in every if not way.pages])):
        way = least_way(each, ways, budget)
        if way is not None:
            return let_go(each, way), ""
    return draft, "nothing_old"


def _with_room(budget: Budget, policy: Policy) -> Budget:
    return replace(budget, tokens=budget.tokens - int(policy.omit_room * budget.tokens))


def _cannot_fit(draft: Draft, load: Load, budget: Budget, policy: Policy, fixed: Mapping[str, Load]) -> CannotFit:
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
        name = "the first user message" if len(source.turns) > 1 else "the newest message"
        parts[name] = scale.messages(source.turns[0].messages)
    if len(source.turns) > source.first_middle:
        newest = treated(source.turns[-1:], draft.plan, draft.drawn.results)
        parts["the newest turn"] = scale.messages(newest[0].messages)
    parts["the provider's own compaction"] = scale.messages(carried(source, draft.plan))
    _, ends = ends_of(source)
    bare = replace(draft, plan=replace(draft.plan, summaries=()))
    least = let_go(bare, Way(ends[-1])).load() if ends else load
    name, largest = max(parts.items(), key=lambda item: item[1].tokens)
    if largest.tokens > budget.tokens:
        what = f"too large, {name} alone: {budget.over(largest)}, {largest.tokens - budget.tokens:,} too many"
    else:
        named = ", ".join(f"{each} {part.tokens:,}" for each, part in parts.items() if part.tokens)
        what = f"too large, what never changes: {budget.over(least)} ({named} tokens)"
    return CannotFit(what, "compact", "raise the budget, or shorten what is too large", least.tokens)
