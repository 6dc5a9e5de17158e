"""Rung 3: the middle of the history as pages. Where it begins and ends, in which form, and whether it pays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from microfiche.messages import Turn
from microfiche.models import Model

from .budget import Budget, Policy, Scale
from .form import form_for
from .plan import Archive, Plan, Source, first_paged


def awaiting(source: Source, limit: int, scale: Scale) -> int:
    """Number of the first turn that no answer has seen yet: the newest, or results with a user's words behind them.

    Of those words all but the newest turn may have ``limit`` tokens; else they are history.
    """
    newest = source.turns[-1].number if source.turns else 0
    total = 0
    for turn in reversed(source.turns[source.first_middle :]):
        if turn.role != "user":
            return turn.number if any(message.results for message in turn.messages) else newest
        total += scale.messages(turn.messages).tokens if turn.number < newest else 0
        if total > limit:
            break
    return newest


def tail_start(source: Source, limit: int, scale: Scale) -> int:
    """Number of the first turn of the tail: the newest whole turns within ``limit`` tokens, at least those awaited.

    It begins where no call is open, be it somewhat longer for that; where no such place is near, a result in
    it will stand as text.
    """
    cuts = source.cuts()
    least = awaiting(source, limit, scale)
    total = start = closed = 0
    for turn in reversed(source.turns):
        total += scale.messages(turn.messages).tokens
        if start and total > limit and turn.number < least and (closed or total > 4 * limit):
            break
        if turn.number >= least or total <= limit:
            start = turn.number
            closed = closed if turn.number < least else 0
        if turn.number in cuts:
            closed = turn.number
    return closed or start


def beside(plan: Plan, turns: Sequence[Turn], budget: Budget, policy: Policy, scale: Scale) -> tuple[int, ...]:
    """User turns of the middle whose words stand as text: the oldest, while all are under the share.

    What stands on a full page was decided when it filled, and stays; on a page that is left out it
    weighs nothing.
    """
    archive = plan.archive
    frozen = archive.full[-1].upto[0] if archive is not None and archive.full else 0
    unseen = archive.full[archive.left_out - 1].upto[0] if archive is not None and archive.left_out else 0
    chosen = [turn for turn in (archive.beside if archive is not None else ()) if turn <= frozen]
    limit = int(policy.beside_share * budget.tokens)
    spent = 0
    for turn in turns:
        if turn.role != "user":
            continue
        cost = sum(scale.ruler.text(message.text) for message in turn.messages if message.role == "user")
        if turn.number <= frozen:
            spent += cost if turn.number in chosen and turn.number > unseen else 0
        elif spent + cost < limit:
            chosen.append(turn.number)
            spent += cost
    return tuple(chosen)


def _text(turn: Turn) -> str:
    said = [message.text for message in turn.messages]
    return "".join((*said, *(result.text for message in turn.messages for result in message.results)))


def extend(plan: Plan, source: Source, model: Model, budget: Budget, policy: Policy, scale: Scale, last: int) -> Plan:
    """The plan with an archive that ends with turn ``last``; full pages are filled in after drawing."""
    first = first_paged(source, plan)
    start = plan.archive.first if plan.archive is not None else first
    middle = [turn for turn in source.turns if start <= turn.number <= last]
    archive = plan.archive
    if archive is None:
        text = "".join(_text(turn) for turn in middle) if policy.font else ""
        archive = Archive(form_for(model, plan.fidelity, policy.font, text), first, first - 1)
    return replace(plan, archive=replace(archive, last=last, beside=beside(plan, middle, budget, policy, scale)))
