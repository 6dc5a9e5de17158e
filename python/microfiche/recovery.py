"""After a refusal: what it says becomes a smaller budget, and a pass without a model meets it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from math import ceil
from typing import Any

from microfiche import fit, formats, models
from microfiche.errors import BadInput, CannotFit
from microfiche.fit import Context
from microfiche.ladder.budget import Load, Policy, Scale, base64_size, budget_for, images_of, output_reserve
from microfiche.ladder.plan import Plan
from microfiche.messages import Turn
from microfiche.refusal import Refusal, refusal

PASSES = 2
"""How often a request is made smaller before its refusal is final."""

# What to aim at where the provider gave no number: half of what was refused, and then what any of them takes: the
# smallest window in use is 4,096 tokens (Ollama's default), the smallest limit of a body 100 kB (that of Express).
_BLIND = 0.5
_SURE_TOKENS = 3_000
_SURE_BYTES = 90_000
# A true limit is met with a little room: the ratio was learnt on other text than what is kept.
_ROOM = 0.95
# Of a window, what the answer may take at most.
_OUTPUT_SHARE = 4
# An answer shorter than this is no use, so lowering max_tokens below it cures nothing.
_LEAST_OUTPUT = 1_024
# What the least context needs beyond what never changes: pointers, markers, what writing adds.
_SLACK = (1.0, 1.05, 1.2, 1.5, 2.0)
# No text has so many times the tokens of its estimate: that is three bytes a token at most (models/tokens.py), and no
# tokenizer makes more than one of a byte. Where a request with images has, their base64 is billed as text, at one to
# four characters a token. What fits neither was not passed here, such as tools.
_NO_TEXT = 4
_BASE64_CHARS = 4
# Refusals whose count is of input tokens. A rate counts the answer too, the others count bytes or images.
_COUNTS = frozenset({"tokens", "tokens_plus_max_tokens", "silent"})
# Text differs in bytes a token, so bytes are aimed at by measuring again.
_AIMS = 6
_UNBOUNDED = 1 << 40


@dataclass(frozen=True, slots=True)
class Learnt:
    """What the refusals of one model taught about one conversation; ``None`` where they taught nothing.

    ``ratio`` is true tokens over estimated ones, never below 1; ``budget`` the most true input tokens to send,
    ``output`` the longest answer to ask for, ``size`` the most bytes of a request. ``as_text``: the provider bills the
    base64 of images as text, so that neither a picture nor a page is worth its tokens.
    """

    ratio: float = 1.0
    budget: int | None = None
    output: int | None = None
    size: int | None = None
    as_text: bool = False

    def __or__(self, other: Learnt) -> Learnt:
        """Both together: the tighter of each."""
        return Learnt(
            max(self.ratio, other.ratio),
            _least(self.budget, other.budget),
            _least(self.output, other.output),
            _least(self.size, other.size),
            self.as_text or other.as_text,
        )

    def narrowed(self, options: Mapping[str, Any], model: str, body: Any = None) -> dict[str, Any]:
        """The options of a context, its budget and the length of its answer within what was learnt.

        ``body`` is the request that they are for, if it is one: it may name a length of its own.
        """
        told = dict(options)
        found = models.find(model, told.get("vision"))
        policy = told.get("policy") or Policy()
        if self.budget is not None:
            asked = told.get("max_tokens") or fit.asked_output(body) or None
            known = told.get("budget") is not None or found.context_window is not None
            given = budget_for(found, policy, told.get("budget"), asked).tokens if known else _UNBOUNDED
            told["budget"] = min(given, self.budget)
        if self.output is not None:
            asked = told.get("max_tokens") or fit.asked_output(body) or output_reserve(found, policy)
            if asked > self.output:
                told["max_tokens"] = self.output
        if self.as_text:
            told["policy"] = _bare(policy)
        return told

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def _least(*numbers: int | None) -> int | None:
    return min((number for number in numbers if number is not None), default=None)


@dataclass(frozen=True, slots=True)
class Cure:
    """How to send less, this time and from now on.

    The ``budget`` is in true input tokens, which are estimated ones times the ``ratio``; ``size`` in bytes of the
    request. Where they are ``guessed`` and cannot be met, the smallest context that can be sent will do.
    """

    learnt: Learnt
    ratio: float
    policy: Policy
    budget: int | None = None
    max_tokens: int | None = None
    size: int | None = None
    guessed: bool = False


def cure(told: Refusal, sent: Context, policy: Policy, learnt: Learnt | None = None, attempt: int = 1) -> Cure:
    """What a refusal of ``sent`` asks for, the ``attempt``-th in a row.

    ``learnt`` is what earlier refusals taught. Price never vetoes in a recovery, and no rung that needs a model runs.
    Where a provider gives no number half of the request is tried, and what passes everywhere after that.
    """
    as_text = _billed_as_text(told, sent)
    learnt = (learnt or Learnt()) | Learnt(as_text=as_text)
    free = replace(policy, pays=float("inf"))
    if learnt.as_text:
        free = _bare(free)
    found = models.find(str(sent.asked["model"]), sent.asked.get("vision"))
    given = sent.asked.get("budget")
    asked = sent.asked.get("max_tokens")
    output = fit.asked_output(sent.request) or output_reserve(found, policy)
    match told.kind:
        case "bytes":
            wrote = body_size(sent.request)
            if (size := _size_told(told, wrote)) is not None:
                return Cure(learnt | Learnt(size=size), learnt.ratio, free, given, asked, size)
            half = int(_BLIND * wrote)
            size = half if attempt == 1 else min(half // 2, _SURE_BYTES)
            # What any of them takes need not be learnt of a request that was small anyhow.
            least = Learnt(size=max(half, _SURE_BYTES))
            return Cure(learnt | least, learnt.ratio, free, given, asked, size, guessed=True)
        case "image_count":
            count = told.limit if told.limit is not None else max(sent.receipt.after.images // 2, 1)
            return Cure(learnt, learnt.ratio, replace(free, images=count), given, asked)
        case "image_dimensions":
            return Cure(learnt, learnt.ratio, replace(free, image_side=told.limit or 2_000), given, asked)
        case "image_bytes":
            return Cure(learnt, learnt.ratio, replace(free, image_size=told.limit or 5 * 1024 * 1024), given, asked)
        case _:
            pass
    estimate = max(sent.receipt.after.tokens, 1)
    counted = told.used if told.kind in _COUNTS else None
    ratio = learnt.ratio
    if told.kind in _COUNTS and not as_text:  # of images, the count does not tell what the text has
        # Without a count of what was sent, it was at least the limit.
        ratio = max(ratio, (counted or told.limit or 0) / estimate)
    half = int(_BLIND * (counted or estimate * ratio))
    if told.limit is None:
        # Who gives no number may mean the answer too: where it is the larger part, and where half was too much.
        longer = told.kind != "silent" and (attempt > 1 or output > estimate * ratio)
        shorter: int | None = None
        if told.kind == "tokens_plus_max_tokens" or longer:
            shorter = max(int(_BLIND * output), _LEAST_OUTPUT)
            asked = shorter if attempt == 1 else min(output, _LEAST_OUTPUT)
        budget = half if attempt == 1 else min(half // 2, _SURE_TOKENS)
        more = learnt | Learnt(ratio, max(half, _SURE_TOKENS), shorter)
        return Cure(more, ratio, free, max(budget, 1), asked, guessed=True)
    reserve = min(output, told.limit // _OUTPUT_SHARE)
    budget = int(_ROOM * (told.limit - reserve))
    if counted:
        budget = min(budget, counted - 1)
    elif attempt > 1:
        budget = min(budget, half)
    shorter = reserve if reserve < output else None
    more = learnt | Learnt(ratio, budget, shorter)
    if told.kind == "tokens_plus_max_tokens" and counted and told.limit - counted >= _LEAST_OUTPUT:
        # The request fits as it was estimated: nothing else has to change.
        return Cure(more, learnt.ratio, free, given, min(output, told.limit - counted))
    return Cure(more, ratio, free, budget, shorter or asked)


def _billed_as_text(told: Refusal, sent: Context) -> bool:
    """Whether a provider's count tells that it billed the base64 of images as text."""
    if told.kind not in _COUNTS or not told.used:
        return False
    estimate = max(sent.receipt.after.tokens, 1)
    if told.used <= _NO_TEXT * estimate:
        return False
    size = _image_bytes(sent)
    return size <= _BASE64_CHARS * (told.used - estimate) <= _BASE64_CHARS * size


def _size_told(told: Refusal, size: int) -> int | None:
    """The bytes to aim at by a refusal's numbers; ``None`` if it has none that were not met."""
    if told.limit and told.used and told.used > told.limit:
        # What was counted may be written otherwise than here, with other escapes.
        return int(_ROOM * size * told.limit / told.used)
    return int(_ROOM * told.limit) if told.limit and told.limit < size else None


def body_size(request: Mapping[str, Any]) -> int:
    """Bytes of a request as the official clients write it: JSON in UTF-8 without blanks."""
    text = json.dumps(request, ensure_ascii=False, separators=(",", ":"), default=str)
    return len(text.encode("utf-8", "surrogatepass"))


Make = Callable[[int | None, Policy], Context]
"""Makes a context of a budget (true input tokens; ``None`` for the usual one) and a policy."""


def meet(found: Cure, make: Make, sent: Context) -> Context:
    """The context that meets a cure; :class:`CannotFit` if none does."""
    try:
        if found.size is not None:
            return within(found.size, sent, found.budget, found.policy, make)
        return make(found.budget, found.policy)
    except CannotFit:
        if not found.guessed:
            raise
    return _smallest(make, found.policy if found.size is None else _bare(found.policy), found.ratio)


def within(size: int, sent: Context, budget: int | None, policy: Policy, make: Make) -> Context:
    """The context of at most ``size`` bytes: images leave first, and text where they are not enough.

    ``sent`` is the one that is too large, ``budget`` and ``policy`` are those it was made with.
    """
    last: CannotFit | None = None
    wrote, images = body_size(sent.request), _image_bytes(sent)
    if wrote <= size:
        return sent
    if wrote - images < size:
        # Pages are images too, and count in the same way.
        most = size - (wrote - images)
        try:
            for _ in range(_AIMS):
                made = make(budget, replace(policy, image_bytes=min(most, policy.image_bytes)))
                if (over := body_size(made.request) - size) <= 0:
                    return made
                most = max(most - over, 0)
        except CannotFit as error:
            last = error
    # A page has many times the bytes of its text, so none is drawn. The user's newest pictures stay if they can.
    for most in (0, size // 2):
        tokens = sent.tokens if budget is None else min(budget, sent.tokens)
        bare = replace(_bare(policy), image_bytes=most)
        wrote = body_size(sent.request) - max(images - most, 0)
        try:
            for _ in range(_AIMS):
                tokens = int(_ROOM * tokens * min(size / wrote, 1))
                made = make(max(tokens, 1), bare)
                wrote = body_size(made.request)
                if wrote <= size:
                    return made
                tokens = min(tokens, made.tokens)
        except CannotFit as error:
            last = error
    raise CannotFit(f"no context of at most {size:,} bytes can be sent", "recover", str(last or "")) from last


def _bare(policy: Policy) -> Policy:
    return replace(policy, image_bytes=0, rungs=tuple(name for name in policy.rungs if name != "snapshot"))


def _image_bytes(context: Context) -> int:
    """Bytes of base64 in a request."""
    sent = formats.read(context.request, context.receipt.format)
    return sum(base64_size(image.data) for message in sent.messages for image in images_of(message))


def _smallest(make: Make, policy: Policy, ratio: float) -> Context:
    """The smallest context that can be sent."""
    try:
        return make(ceil(ratio), policy)
    except CannotFit as error:
        if error.least is None:
            raise
        least, last = error.least, error
    for slack in _SLACK:
        try:
            return make(ceil(slack * least * ratio), policy)
        except CannotFit as error:
            last = error
    raise last


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
    format: str | None = None,
    attempt: int = 1,
) -> Context:
    """The context to send after a refusal, made without a model, key or network.

    ``messages``, ``plan``, ``system`` and ``tools`` are those of the request that was refused;
    ``error`` is what the client raised, a (status, body) pair, an answer that came back truncated
    or empty, or a :class:`~microfiche.refusal.Refusal`. ``attempt`` is 2 for the second refusal in a row: where the
    provider gives no numbers, the first makes the request half as large and the second so small that any takes it.

    Raises :class:`~microfiche.errors.BadInput` if the error is no refusal for size,
    :class:`~microfiche.errors.CannotFit` if what never changes is too large.
    """
    options = {
        "system": system,
        "tools": tools,
        "budget": budget,
        "max_tokens": max_tokens,
        "policy": policy,
        "vision": vision,
        "format": format,
    }
    return recovered(messages, error, model, plan, options, Learnt(), attempt)[0]


def recovered(
    messages: Any,
    error: Any,
    model: str,
    plan: Plan | None,
    options: Mapping[str, Any],
    learnt: Learnt,
    attempt: int,
) -> tuple[Context, Learnt]:
    """:func:`recover`, by what earlier refusals taught, and what is known after this one."""
    if not isinstance(attempt, int) or isinstance(attempt, bool) or not 1 <= attempt <= PASSES:
        raise BadInput(f"{attempt!r} is no attempt", "attempt", f"it is a number from 1 to {PASSES}")
    policy = options.get("policy") or Policy()
    budget = options.get("budget")
    first: dict[str, Any] = {**options, "budget": plan.budget if plan else _UNBOUNDED}
    sent = fit.fit(messages, model=model, plan=plan, **first)
    window = models.find(model, options.get("vision")).context_window
    told = refusal(error, window=window, expected=sent.tokens)
    if told is None:
        raise BadInput("the error is no refusal for size", "recover", "handle it otherwise")
    sent = replace(sent, asked=sent.asked | {"budget": budget})
    found = cure(told, sent, policy, learnt, attempt)

    def make(wanted: int | None, allowed: Policy) -> Context:
        # A plan's budget is in estimated tokens.
        tokens = _least(wanted, budget, ceil(plan.budget * found.ratio) if plan else None)
        if tokens is None and window is None:
            tokens = _UNBOUNDED
        told = {**options, "budget": tokens, "max_tokens": found.max_tokens, "policy": allowed}
        return fit.fit(messages, model=model, plan=plan, ratio=found.ratio, **told)

    made = meet(found, make, sent)
    if not smaller(made, sent):
        raise unmet("a pass leaves the request as large as it was", sent, told, "recover")
    return made, found.learnt


def unmet(why: str, sent: Context, told: Refusal, where: str) -> CannotFit:
    """The end of a recovery: ``why``, what the provider said, and the largest part of what was ``sent``, to be cut.

    Tokens are estimated; where the provider counted them, the parts add up to its count.
    """
    parts = _parts(sent)
    if told.kind == "bytes":
        unit, sizes = "bytes", {name: load.bytes for name, load in parts.items()}
    elif told.kind.startswith("image"):
        unit, sizes = "images", {name: load.images for name, load in parts.items()}
    else:
        counted = told.used if told.used and told.kind != "rate_tokens" else sent.tokens
        true = counted / max(sum(load.tokens for load in parts.values()), 1)
        unit, sizes = "tokens", {name: ceil(load.tokens * true) for name, load in parts.items()}
    used = f"{told.used:,} of " if told.used else "more than "
    what = f"{why} ({told.kind}{f', {used}{told.limit:,}' if told.limit else ''})"
    name, size = max(sizes.items(), key=lambda item: item[1])
    if not size:
        return CannotFit(what, where, told.cure)
    alone = f"{size:,} of {sum(sizes.values()):,} {unit} sent"
    return CannotFit(f"{what}; the largest part is {name}: {alone}", where, f"{told.cure}; shorten {name}")


def _parts(sent: Context) -> dict[str, Load]:
    """What the parts of a request weigh, by their names in words."""
    history = formats.read(sent.request, sent.receipt.format)
    scale = Scale(models.find(str(sent.asked["model"]), sent.asked.get("vision")))
    head, turns = history.turns()
    opens = 1 if len(turns) > 1 and turns[0].role == "user" else 0

    def weigh(*turns: Turn) -> Load:
        return scale.messages(message for turn in turns for message in turn.messages)

    def beside(tokens: int, native: Any) -> Load:
        return Load(tokens, body_size({"": native}) if tokens else 0)

    system = history.system
    return {
        "the system prompt": beside(scale.ruler.system(system), system and system.text),
        "the tools": beside(scale.ruler.tools(history.tools, history.tool_names), history.tools),
        "the first user message": weigh(*turns[:opens]),
        "the history between": scale.messages(head) + weigh(*turns[opens:-1]),
        "the newest message": weigh(*turns[-1:]),
    }


def smaller(made: Context, sent: Context) -> bool:
    """Whether the one asks less of the provider than the other: tokens, bytes, images or the answer's length."""
    now, then = made.receipt.after, sent.receipt.after
    shorter = (fit.asked_output(made.request) or _UNBOUNDED) < (fit.asked_output(sent.request) or _UNBOUNDED)
    return now.tokens < then.tokens or now.bytes < then.bytes or now.images < then.images or shorter
