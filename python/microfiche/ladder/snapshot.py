"""Rung 3: the middle of the history as pages. Where it begins and ends, in which form, and whether it pays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from microfiche.messages import Turn
from microfiche.models import Fidelity, Model, cell_for, page
from microfiche.pages.render import Page
from microfiche.pages.script import Script

from .budget import Budget, Policy, Scale
from .plan import Archive, Form, FullPage, Plan, Source


def tail_start(turns: Sequence[Turn], limit: int, scale: Scale) -> int:
    """Number of the first turn of the tail: the newest whole turns within ``limit`` tokens, at least one."""
    total = 0
    start = turns[-1].number
    for turn in reversed(turns):
        total += scale.messages(turn.messages).tokens
        if total > limit and turn.number != turns[-1].number:
            break
        start = turn.number
    return start


def form_for(model: Model, fidelity: Fidelity, images: int = 0) -> Form:
    """The form of the pages for a model and a fidelity: the cell with evidence, the page never resized."""
    cell = cell_for(model, fidelity)
    form = page(model, cell, images)
    return Form(
        cell=form.cell,
        ink=cell.ink,
        width=form.width,
        height=form.height,
        grid=form.grid[1],
        least=form.min_height,
    )


def beside(plan: Plan, turns: Sequence[Turn], budget: Budget, policy: Policy, scale: Scale) -> tuple[int, ...]:
    """User turns of the middle whose words stand as text: the oldest, while all are under the share.

    What stands on a full page was decided when it filled, and stays.
    """
    archive = plan.archive
    frozen = archive.full[-1].upto[0] if archive is not None and archive.full else 0
    chosen = [turn for turn in (archive.beside if archive is not None else ()) if turn <= frozen]
    limit = int(policy.beside_share * budget.tokens)
    spent = 0
    for turn in turns:
        if turn.role != "user":
            continue
        cost = sum(scale.ruler.text(message.text) for message in turn.messages if message.role == "user")
        if turn.number <= frozen:
            spent += cost if turn.number in chosen else 0
        elif spent + cost < limit:
            chosen.append(turn.number)
            spent += cost
    return tuple(chosen)


def first_paged(source: Source, plan: Plan) -> int:
    """Number of the first turn that may stand on a page: behind the head and behind what is omitted."""
    first = source.turns[source.first_middle].number if source.first_middle < len(source.turns) else 0
    return max([first, *(last + 1 for _, last in plan.omitted)])


def extend(plan: Plan, source: Source, model: Model, budget: Budget, policy: Policy, scale: Scale, last: int) -> Plan:
    """The plan with an archive that ends with turn ``last``; full pages are filled in after drawing."""
    first = first_paged(source, plan)
    archive = plan.archive or Archive(form_for(model, plan.fidelity), first, first - 1)
    middle = [turn for turn in source.turns if archive.first <= turn.number <= last]
    return replace(plan, archive=replace(archive, last=last, beside=beside(plan, middle, budget, policy, scale)))


def settle(plan: Plan, script: Script, pages: Sequence[Page]) -> Plan:
    """The plan with its full pages named: every page but the last, which may still grow."""
    if plan.archive is None:
        return plan
    full = tuple(
        FullPage(
            page.number,
            (min(page.turns, default=0), max(page.turns, default=0)),
            page.digest,
            script.spots[_last_segment(page)],
        )
        for page in pages[:-1]
    )
    return replace(plan, archive=replace(plan.archive, full=full))


def _last_segment(page: Page) -> int:
    segment, offset = page.end
    return segment if offset else max(segment - 1, 0)
