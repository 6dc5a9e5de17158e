"""After a refusal: what it says becomes a smaller budget, and a pass without a model meets it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from microfiche import fit, models
from microfiche.errors import BadInput, CannotFit
from microfiche.fit import Context
from microfiche.ladder.budget import Policy, output_reserve
from microfiche.ladder.plan import Plan
from microfiche.refusal import Refusal, refusal

# What to aim at where the provider gave no number: clearly less than what was refused.
_BLIND = 0.7
# A true limit is met with a little room: the ratio was learnt on other text than what is kept.
_ROOM = 0.95
# An answer shorter than this is no use, so lowering max_tokens below it cures nothing.
_LEAST_OUTPUT = 1_024


@dataclass(frozen=True, slots=True)
class Cure:
    """How to send less: the budget in true input tokens, the ratio learnt, the answer's length, the policy."""

    budget: int | None
    ratio: float
    max_tokens: int | None
    policy: Policy


def cure(told: Refusal, sent: Context, policy: Policy, ratio: float = 1.0) -> Cure:
    """What a refusal of ``sent`` asks for.

    ``sent.tokens`` is its estimate; ``ratio`` what earlier refusals taught. Price never vetoes in a
    recovery, and no rung that needs a model runs.
    """
    free = replace(policy, pays=float("inf"))
    asked = sent.asked.get("max_tokens")
    found = models.find(str(sent.asked["model"]), sent.asked.get("vision"))
    output = asked if asked is not None else output_reserve(found, policy)
    estimate = sent.receipt.after.tokens
    match told.kind:
        case "tokens_plus_max_tokens" if told.used and told.limit and told.limit - told.used >= _LEAST_OUTPUT:
            return Cure(sent.asked.get("budget"), ratio, min(output, told.limit - told.used), free)
        case "bytes":
            return Cure(sent.asked.get("budget"), ratio, asked, replace(free, image_bytes=_less(sent, policy)))
        case "image_count":
            count = told.limit if told.limit is not None else max(sent.receipt.after.images // 2, 1)
            return Cure(sent.asked.get("budget"), ratio, asked, replace(free, images=count))
        case "image_dimensions":
            return Cure(sent.asked.get("budget"), ratio, asked, replace(free, image_side=told.limit or 2_000))
        case "image_bytes":
            return Cure(sent.asked.get("budget"), ratio, asked, replace(free, image_size=told.limit or 5 * 1024 * 1024))
        case _:
            pass
    if told.used:
        ratio = max(ratio, told.used / max(estimate, 1))
    if told.limit and told.used:
        room = told.limit if told.kind == "rate_tokens" else told.limit - min(output, told.limit // 4)
        return Cure(min(int(_ROOM * room), told.used - 1), ratio, asked, free)
    return Cure(int(_BLIND * estimate * ratio), ratio, asked, free)


def _less(sent: Context, policy: Policy) -> int:
    """Fewer bytes of base64 than were sent."""
    return int(_BLIND * min(policy.image_bytes, sent.receipt.after.bytes))


def recover(
    messages: Any,
    *,
    error: Any,
    model: str,
    plan: Plan | None = None,
    system: Any = None,
    tools: list[Any] | None = None,
    budget: int | None = None,
    max_tokens: int | None = None,
    policy: Policy | None = None,
    vision: bool | None = None,
) -> Context:
    """The context to send after a refusal, made without a model, key or network.

    ``messages``, ``plan``, ``system`` and ``tools`` are those of the request that was refused;
    ``error`` is what the client raised, a (status, body) pair, or an answer that came back truncated
    or empty.

    Raises :class:`~microfiche.errors.BadInput` if the error is no refusal for size,
    :class:`~microfiche.errors.CannotFit` if what never changes is too large.
    """
    told = refusal(error)
    if told is None:
        raise BadInput("the error is no refusal for size", "recover", "handle it otherwise")
    policy = policy or Policy()
    sent = fit.fit(
        messages,
        model=model,
        plan=plan,
        system=system,
        tools=tools,
        budget=plan.budget if plan else _UNBOUNDED,
        max_tokens=max_tokens,
        policy=policy,
        vision=vision,
    )
    sent = replace(sent, asked=sent.asked | {"budget": budget})
    found = cure(told, sent, policy)
    wanted = found.budget if budget is None else min(budget, found.budget or budget)
    made = fit.fit(
        messages,
        model=model,
        plan=plan,
        system=system,
        tools=tools,
        budget=min(wanted, plan.budget) if plan and wanted else wanted,
        max_tokens=found.max_tokens,
        policy=found.policy,
        vision=vision,
        ratio=found.ratio,
    )
    if not smaller(made, sent):
        raise CannotFit(f"a pass leaves the request as large as it was ({told.kind})", "recover", told.cure)
    return made


_UNBOUNDED = 1 << 40


def smaller(made: Context, sent: Context) -> bool:
    """Whether the one asks less of the provider than the other: tokens, bytes, images or the answer's length."""
    now, then = made.receipt.after, sent.receipt.after
    shorter = (made.asked.get("max_tokens") or _UNBOUNDED) < (sent.asked.get("max_tokens") or _UNBOUNDED)
    return now.tokens < then.tokens or now.bytes < then.bytes or now.images < then.images or shorter
