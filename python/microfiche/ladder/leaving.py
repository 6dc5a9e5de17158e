"""The ways in which turns leave a context: with whole pages or as whole turns, from the least to the most."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from .budget import Budget
from .draft import Draft
from .plan import Source

NEVER = 1 << 62
"""Behind every turn."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to let turns up to ``last`` go: with the first ``pages`` full pages, or (0) as turns, and no pages left."""

    last: int
    pages: int = 0


def ways_of(draft: Draft) -> tuple[list[Way], list[Way]]:
    """The ways in which turns can leave, from the least to the most.

    First those that leave no call open, then all: better a result as text than nothing to send.
    """
    archive = draft.plan.archive
    pages = draft.drawn.pages[archive.left_out : len(archive.full)] if archive is not None else []
    gone = archive.last if archive is not None else max(draft.plan.gone, default=0)
    ways = [Way(max(page.turns, default=0), page.number) for page in pages]
    closed, every = ([*ways, *map(Way, ends)] for ends in ends_of(draft.source, gone))
    free = min(draft.spared, default=NEVER)
    return [way for way in closed if way.last < free], [way for way in every if way.last < free]


def ends_of(source: Source, paged: int = 0) -> tuple[list[int], list[int]]:
    """Numbers of the turns, from ``paged`` on, with which a stretch of the middle may end.

    First those behind which no call is open, then all.
    """
    cuts = source.cuts()
    pairs = [(turn.number, behind.number in cuts) for turn, behind in pairwise(source.turns[source.first_middle :])]
    ends = [(number, closed) for number, closed in pairs if number >= paged]
    return [number for number, closed in ends if closed], [number for number, _ in ends]


def let_go(draft: Draft, way: Way) -> Draft:
    """The draft with the turns gone; what of them is in no summary is omitted."""
    plan = draft.plan
    if way.pages and plan.archive is not None:
        return draft.with_plan(replace(plan, archive=replace(plan.archive, left_out=way.pages)), redraw=False)
    summarised = plan.summarised
    omitted: list[tuple[int, int]] = []
    joined = False
    for turn in draft.source.turns[draft.source.first_middle :]:
        if turn.number > way.last:
            break
        if turn.number not in summarised:
            first = omitted.pop()[0] if joined else turn.number
            omitted.append((first, turn.number))
        joined = turn.number not in summarised
    return draft.with_plan(replace(plan, archive=None, omitted=tuple(omitted)), redraw=False)


def least_way(draft: Draft, ways: Sequence[Way], budget: Budget) -> Way | None:
    """The first of the ways, least first, after which the context fits, by bisection; ``None`` if there is none."""
    if not ways or not budget.holds(let_go(draft, ways[-1]).load()):
        return None
    return ways[bisect_left(ways, True, key=lambda way: budget.holds(let_go(draft, way).load()))]
