"""Lists in, contexts out: the ladder for anybody's native messages."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from time import perf_counter
from typing import Any, Literal

from microfiche import formats, models
from microfiche.errors import BadInput, MicroficheError
from microfiche.formats import common, convert
from microfiche.formats.encoded import remembered
from microfiche.ladder import compact as ladder
from microfiche.ladder.budget import Load, Policy, Scale, budget_for, output_reserve
from microfiche.ladder.own import refuse_own
from microfiche.ladder.plan import Plan, Source
from microfiche.ladder.projection import (
    Projection,
    assemble,
    drawn_already,
    is_compaction,
    partly_shown,
    project,
    unseen,
)
from microfiche.ladder.receipt import (
    Amount,
    Receipt,
    amounts,
    by_kind,
    elided_lines,
    escapes_of,
    image_lines,
    named,
    page_lines,
    reasoning_lines,
    shortened_lines,
    summary_lines,
)
from microfiche.ladder.summarize import Summarizer, Writer
from microfiche.messages import History, Image, Message, Note, Text, ToolResult, Turn, canonical, canonical_text
from microfiche.models import Count, Fidelity, Model
from microfiche.pages.render import Page
from microfiche.validate import limits_for, mend, repair
from microfiche.validate.draft import BEGINS


@dataclass(frozen=True, slots=True)
class Context:
    """What to send now.

    ``messages`` is the list in its own format, ``request`` the whole body around it. ``plan`` is to be
    handed back with the whole history next time. ``pages`` are those shown, oldest first, ``drawn`` those
    left out besides. ``tokens``
    estimates the whole request. ``digest`` (SHA-256, hex) is the context's identity: its canonical
    form, in which a page stands as width, height, depth and the digest of its pixels. ``asked`` is what
    it was asked for with; ``entry`` the path entry of a record that it was made at, ``None`` without one.
    """

    messages: list[Any]
    request: dict[str, Any]
    plan: Plan
    pages: tuple[Page, ...]
    receipt: Receipt
    tokens: int
    digest: str
    asked: dict[str, Any] = field(repr=False, default_factory=dict)
    entry: int | None = None
    drawn: tuple[Page, ...] = field(repr=False, default=())
    _turns: dict[int, Turn] = field(repr=False, default_factory=dict)
    _wires: tuple[str, str] = field(repr=False, default=("", ""))

    def recall(self, turn: int) -> list[Any]:
        """The original messages of a turn, in the format they came in.

        ``KeyError`` for a number that no turn has.
        """
        if turn not in self._turns:
            raise KeyError(f"no turn {turn}; the turns are 1 to {max(self._turns, default=0)}")
        wire, target = self._wires
        part = History(list(self._turns[turn].messages), wire or target, wire=wire)
        body, _ = formats.write(part, wire or target)
        found: list[Any] = body[formats.list_key(wire or target)]
        return found


def compact(
    messages: Any,
    *,
    model: str,
    budget: int | None = None,
    plan: Plan | None = None,
    system: Any = None,
    tools: list[Any] | None = None,
    max_tokens: int | None = None,
    policy: Policy | None = None,
    fidelity: Fidelity = "exact",
    vision: bool | None = None,
    format: str | None = None,
    summarize: Summarizer | None = None,
) -> Context:
    """Make a conversation fit, by the cheapest rungs that do.

    ``messages`` is the whole native history: a list of messages, a request body, or a
    :class:`~microfiche.messages.History` that :func:`microfiche.formats.read` made of a session file.
    ``budget`` counts input tokens of the whole request, ``system`` and ``tools`` (native) included;
    without it it is 0.8 × (window - output reserve). ``plan`` is the one that the call before gave:
    pages stay as they were. ``vision`` says whether a model reads images where that is not known.
    ``format`` is the wire to write; a list comes back in its own, a session in the model's provider's.
    ``summarize`` answers a :class:`~microfiche.ladder.summarize.SummaryRequest` with text, now or awaited;
    it is asked last, before anything is left out, and whatever goes wrong with it stands in the receipt.

    Under budget the very same messages come back, unless they could not be sent: then with the
    least repair, named in the receipt.

    Raises :class:`~microfiche.errors.CannotFit` if what never changes is over budget,
    :class:`~microfiche.errors.OwnOutput` if the input holds our own pages or placeholders,
    :class:`~microfiche.errors.PlanMismatch` if the plan is another history's,
    :class:`~microfiche.errors.BadInput` for what cannot be read, a model of unknown window without a
    budget, and words and numbers out of range.
    """
    return fit(
        messages,
        model=model,
        budget=budget,
        plan=plan,
        system=system,
        tools=tools,
        max_tokens=max_tokens,
        policy=policy,
        fidelity=fidelity,
        vision=vision,
        format=format,
        summarize=summarize,
    )


@remembered()
def fit(
    messages: Any,
    *,
    model: str,
    budget: int | None = None,
    plan: Plan | None = None,
    system: Any = None,
    tools: list[Any] | None = None,
    max_tokens: int | None = None,
    policy: Policy | None = None,
    fidelity: Fidelity = "exact",
    vision: bool | None = None,
    format: str | None = None,
    ratio: float = 1.0,
    spared: Iterable[tuple[int, int]] = (),
    force: bool = False,
    summarize: Summarizer | None = None,
    anchor: tuple[int, int] | None = None,
    trimmed: Iterable[tuple[int, int]] = (),
) -> Context:
    """:func:`compact`, with what a conversation knows beside its messages.

    ``trimmed`` are ranges of turns that no plan brings back.

    ``ratio`` is true tokens over estimated ones, as learnt from a refusal: the budget is met by the
    estimate times it. ``spared`` are ranges of turns to leave alone unless nothing else fits; ``force``
    runs the rungs that lose nothing (all but summary and omission) under budget too. ``anchor`` are the
    tokens estimated and reported of a context that the same plan made of a beginning of this history: as
    long as that plan stands, the estimate starts from what was reported and adds what is new.
    """
    began = perf_counter()
    policy = Policy() if policy is None else policy
    if fidelity not in models.FIDELITIES:
        raise BadInput(f'no fidelity "{fidelity}"', "fidelity", f"it is one of {', '.join(models.FIDELITIES)}")
    for name, value in (("budget", budget), ("max_tokens", max_tokens)):
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise BadInput(f"{value!r} is no number of tokens", name, "pass a whole number of at least 1")
    if plan is not None and not isinstance(plan, Plan):
        raise BadInput(f"a {type(plan).__name__} is no plan", "plan", "read a plan.json with Plan.from_json")
    if not isinstance(policy, Policy):
        raise BadInput(f"a {type(policy).__name__} is no policy", "policy", "pass a Policy")
    found = _model(model, vision)
    history = _history(messages, found, system, tools)
    wire = _wire(history, found, format)
    if not history.numbers:
        # What is on a record was looked at when it came there, and is what was said.
        refuse_own(history)
    source, lost = source_of(history, wire)
    scale = Scale(found)
    fixed = {
        "the system prompt": Load(scale.ruler.system(history.system)),
        "the tools": Load(scale.ruler.tools(history.tools, history.tool_names)),
    }
    given = sum(fixed.values(), Load()) + scale.messages(history.messages)
    limits = budget_for(found, policy, budget, max_tokens if max_tokens is not None else asked_output(history.body))
    limits = replace(limits, tokens=int(limits.tokens / ratio))
    correction = ceil(anchor[1] / ratio) - anchor[0] if anchor is not None else 0
    recall = policy.recall if policy.recall is not None else _answers_recall(history)
    writer = None
    if summarize is not None:
        opening = source.turns[: source.first_middle]
        standing = [history.system.text if history.system is not None else "", *(m.text for m in source.head)]
        standing += [*(message.text for turn in opening for message in turn.messages), *source.pins]
        writer = Writer(summarize, policy.summary_calls, policy.summary_window, standing)
    out = tuple(sorted(trimmed))
    left_alone = frozenset(turn for first, last in spared for turn in range(first, last + 1))
    # What writing and repair add is known only once it is done: then another pass leaves room for it.
    while True:
        outcome = ladder.compact(
            source, found, limits, policy, fixed, plan, fidelity, recall, left_alone, force, writer, correction, out
        )
        written = _write(history, outcome, wire, found, model, policy, max_tokens, messages)
        load = _weigh(written.body, wire, scale)
        known = correction if outcome.stands else max(correction, 0)
        if load.tokens + known <= limits.tokens:
            break
        added = Load(load.tokens - outcome.load.tokens)
        fixed["what writing adds"] = fixed.get("what writing adds", Load()) + added

    projection = outcome.projection
    pages = {page.png for page in projection.shown}
    made_here = {id(m) for m in projection.messages if any(isinstance(p, Image) and p.data in pages for p in m.parts)}
    receipt = Receipt(
        model=found.id,
        format=wire,
        fidelity=fidelity,
        ruler=scale.ruler.name,
        budget=limits,
        reason="" if outcome.plan else "under_budget",
        before=Amount.of(given, found),
        after=Amount.of(load, found),
        rungs=amounts(given, outcome, load, found),
        pages=page_lines(
            projection.pages,
            projection.shown,
            {page.number: scale.ruler.image(page.width, page.height) for page in projection.pages},
            outcome.plan,
        ),
        elided=elided_lines(source, outcome.plan),
        images=image_lines(source, outcome.plan),
        shortened=shortened_lines(source, outcome.plan),
        reasoning=reasoning_lines(source, outcome.plan),
        summaries=summary_lines(outcome.plan),
        summary_calls=writer.calls if writer is not None else 0,
        summary_flags=dict(sorted(writer.flags.items())) if writer is not None else {},
        kinds=by_kind(history.messages, (m for m in projection.messages if id(m) not in made_here), scale.ruler),
        omitted_pages=len(unseen(outcome.plan, projection.pages)),
        omitted_turns=_omitted(outcome.plan, projection),
        omitted_beginning=partly_shown(outcome.plan, projection.script, projection.shown),
        not_drawn=_not_drawn(projection),
        escapes=escapes_of(projection.visible),
        repairs=named(written.repairs),
        violations=named(written.violations),
        notes=named([*history.notes, *common.counted("write", lost), *written.notes]),
        seconds=round(perf_counter() - began, 6),
    )
    return Context(
        messages=written.messages,
        request=written.body,
        plan=outcome.plan,
        pages=tuple(replace(p, tokens=scale.ruler.image(p.width, p.height)) for p in projection.visible),
        receipt=receipt,
        tokens=ceil((load.tokens + (correction if outcome.stands else 0)) * ratio),
        digest=_digest(history, projection),
        asked={
            "model": model,
            "budget": budget,
            "system": system,
            "tools": tools,
            "max_tokens": max_tokens,
            "fidelity": fidelity,
            "vision": vision,
            "format": format,
            "policy": policy,
        },
        drawn=projection.drawn,
        _turns={turn.number: turn for turn in history.turns()[1]},
        _wires=(history.wire, wire),
    )


@dataclass(frozen=True, slots=True)
class Again:
    """A context made again from its plan, without a pass: the native messages, its projection and its digest."""

    messages: list[Any]
    projection: Projection
    digest: str


def again(history: History, plan: Plan, model: str, pages: Sequence[Page] | None = None) -> Again:
    """The context that ``plan`` makes of a history of one wire.

    The pages are drawn, and :class:`~microfiche.errors.PlanMismatch` tells if one does not come out as it
    was; or ``pages`` stand for them (see :func:`stood_for`), and a line for each in the messages.
    """
    if pages is None:
        projection = project(source_of(history, history.wire)[0], plan)
        messages = projection.messages
    else:
        projection = stood_for(history, plan, pages)
        lines = {page.png: _line(page) for page in pages}
        messages = tuple(_with_lines(message, lines) for message in projection.messages)
    found = models.find(model)
    body, _ = formats.write(replace(history, messages=list(messages)), history.wire)
    body, _ = repair(body, history.wire, limits_for(found, history.wire), found.id)
    lead = 1 if history.wire == "openai_chat" and history.system is not None else 0
    return Again(body[formats.list_key(history.wire)][lead:], projection, _digest(history, projection))


def stood_for(history: History, plan: Plan, pages: Sequence[Page]) -> Projection:
    """The context that a plan makes of a history of one wire, with ``pages`` in the place of drawn ones.

    They are all of the plan, in the order of :attr:`~microfiche.ladder.projection.Projection.drawn`.
    """
    source, _ = source_of(history, history.wire)
    return assemble(source, plan, drawn_already(source, plan, pages))


def identity(history: History, plan: Plan, pages: Sequence[Page]) -> str:
    """The digest of the context that a plan makes of a history of one wire, with ``pages`` as in :func:`stood_for`."""
    return _digest(history, stood_for(history, plan, pages))


def _line(page: Page) -> Text:
    return Text(f"[page {page.number}, {page.width}×{page.height} pixels, {page.digest}]")


def _with_lines(message: Message, lines: dict[bytes, Text]) -> Message:
    """The message with a line for each page."""

    def line(part: Any) -> Any:
        if isinstance(part, ToolResult):
            return replace(part, parts=tuple(map(line, part.parts)))
        if isinstance(part, Image) and part.owner == "page" and part.data is not None:
            return lines.get(part.data, part)
        return part

    return replace(message, parts=tuple(map(line, message.parts)))


def count(
    messages: Any,
    *,
    model: str,
    system: Any = None,
    tools: list[Any] | None = None,
    vision: bool | None = None,
    ruler: Literal["estimate", "tiktoken"] = "estimate",
) -> Count:
    """Estimated input tokens of a list of messages or a whole request body for a model.

    The answer is an ``int`` whose ``ruler`` says how text was counted: from its UTF-8 bytes, or, where
    ``ruler="tiktoken"`` asks for it, with the vocabulary of an OpenAI model (the extra ``tokens``; an error
    says so where the library or the vocabulary is missing). Images count by the model's own rule.
    """
    if ruler not in ("estimate", "tiktoken"):
        raise BadInput(f"{ruler!r} is no ruler", "ruler", "use estimate or tiktoken")
    found = _model(model, vision)
    history = _history(messages, found, system, tools)
    measure = models.Ruler(found)
    if ruler == "tiktoken":
        from microfiche.models.encoder import Encoder

        measure = Encoder(found)
    tokens = measure.system(history.system) + measure.tools(history.tools, history.tool_names)
    return Count(tokens + measure.messages(history.messages), measure.name)


def _model(name: str, vision: bool | None) -> Model:
    if not isinstance(name, str) or not name.strip():
        raise BadInput(f"{name!r} is no name of a model", "model", "pass the name that the provider knows it by")
    return models.find(name, vision)


def _history(messages: Any, model: Model, system: Any, tools: list[Any] | None) -> History:
    """The history of whatever was passed, with the system prompt and tools that were passed beside it."""
    if isinstance(messages, History):
        history = replace(messages, notes=list(messages.notes))
    else:
        history = formats.read(messages, prefer=model.wire)
    if history.format not in formats.WIRES:
        # The model that a session ran on is not the one that is asked now.
        history.model = None
        history.body = {key: value for key, value in history.body.items() if key != "model"}
    if system is not None:
        wire = history.format if history.format in formats.WIRES else history.wire or model.wire
        history.system = formats.system_message(system, wire)
    if tools is not None:
        if not isinstance(tools, list | tuple):
            raise BadInput(f"a {type(tools).__name__} is no list", "tools", "pass a list of tool definitions")
        history.tools = tools
    return history


def _wire(history: History, model: Model, format: str | None) -> str:
    if format is not None:
        if format not in formats.WIRES:
            raise BadInput(f'"{format}" cannot be written', "format", f"name one of {', '.join(formats.WIRES)}")
        return format
    if history.format in formats.WIRES:
        return history.format
    return model.wire if model.match != "unknown" or not history.wire else history.wire


def source_of(history: History, wire: str) -> tuple[Source, Counter[str]]:
    """The turns, with what the wire to write cannot carry left out and counted.

    Turns are cut before anything is left out, so that a number means the same turn in every wire.
    """
    lost: Counter[str] = Counter()
    head, turns = history.turns()
    if history.wire != wire:
        head = tuple(_carried(head, lost))
        turns = [Turn(turn.number, tuple(_carried(turn.messages, lost))) for turn in turns]
        turns = [turn for turn in turns if turn.messages]
    sums_up = turns and turns[0].messages[0].parts and is_compaction(turns[0].messages[0].parts[0])
    if turns and turns[0].role != "user" and not sums_up and formats.provider(wire) != "openai":
        head = (*head, _OPENING)
    return Source(tuple(turns), head, history.pins, _answering(turns, wire)), lost


_OPENING = Message("user", (Text(BEGINS),))


def _answering(turns: Sequence[Turn], wire: str) -> int:
    """The turn from which on the provider may ask for reasoning as it was: that of the newest answer.

    Anthropic: "you must pass thinking blocks back to the API for the last assistant message" while tools are used
    (docs.claude.com, extended thinking). Services behind Chat Completions that take reasoning at all ask for
    that of all answers since the user's newest message (api-docs.deepseek.com, thinking mode).
    """
    role = "user" if wire == "openai_chat" else "assistant"
    return max((turn.number for turn in turns if turn.role == role), default=0)


def _carried(messages: Iterable[Message], lost: Counter[str]) -> Iterable[Message]:
    return (kept for message in messages if (kept := convert.carried(message, lost)) is not None)


def _answers_recall(history: History) -> bool:
    names = [*history.tool_names, *_names(history.tools)]
    return "recall" in names


def _names(tools: Any) -> Iterable[str]:
    """Every ``name`` in tool definitions of any wire."""
    if isinstance(tools, list):
        for tool in tools:
            yield from _names(tool)
    elif isinstance(tools, dict):
        if isinstance(tools.get("name"), str):
            yield tools["name"]
        for key in ("function", "functionDeclarations", "function_declarations"):
            yield from _names(tools.get(key))


@dataclass(frozen=True, slots=True)
class _Written:
    messages: list[Any]
    body: dict[str, Any]
    repairs: tuple[Any, ...] = ()
    violations: tuple[Any, ...] = ()
    notes: tuple[Note, ...] = ()


def _write(
    history: History,
    outcome: ladder.Outcome,
    wire: str,
    model: Model,
    name: str,
    policy: Policy,
    max_tokens: int | None,
    given: Any,
) -> _Written:
    """The context as a request body that can be sent, or with the violations that stay."""
    key = formats.list_key(wire)
    projected = replace(history, messages=list(outcome.projection.messages))
    untouched = not outcome.plan and history.wire == wire and not isinstance(given, History)
    if untouched:
        projected.messages = history.messages
    body, notes = formats.write(projected, wire)
    if _OPENING in projected.messages:
        notes.append(Note(f"{key}[0]", "a user message put in front: the conversation begins with the assistant"))
    body = _with_defaults(body, wire, model, name, policy, max_tokens)
    limits = limits_for(model, wire)
    mended, repairs, violations = mend(body, wire, limits, model.id)
    # Chat has its system prompt in the list: one that was passed beside the list stays out of `messages`.
    lead = 1 if wire == "openai_chat" and history.system is not None else 0
    messages = mended[key][lead:]
    if untouched and mended[key] == body[key] and not _flagged(history):
        original = given[key] if isinstance(given, dict) else given
        if isinstance(original, list):
            messages = original
            mended[key] = [*mended[key][:lead], *original] if lead else original
    return _Written(messages, mended, tuple(repairs), tuple(violations), tuple(notes))


def _flagged(history: History) -> bool:
    """Whether a tool said something of a result of its own: a field that no provider takes."""
    results = (result for message in history.messages for result in message.results)
    return any(result.uneventful is not None for result in results)


_OUTPUT = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens")


def asked_output(body: Any) -> int | None:
    """The length of the answer (tokens) that a request body asks for; ``None`` if it asks for none or is no body."""
    if not isinstance(body, dict):
        return None
    configs = (body.get(key) for key in ("generationConfig", "generation_config", "config"))
    for each in (body, *configs):
        values = [each[key] for key in _OUTPUT if isinstance(each.get(key), int)] if isinstance(each, dict) else []
        if values:
            return int(values[0])
    return None


def _with_defaults(
    body: dict[str, Any], wire: str, model: Model, name: str, policy: Policy, max_tokens: int | None
) -> dict[str, Any]:
    """The body with a model and a length of the answer, where it has none of its own."""
    limit = max_tokens if max_tokens is not None else output_reserve(model, policy)
    if wire == "gemini":
        config = next(
            (key for key in ("generationConfig", "generation_config", "config") if key in body),
            "generationConfig",
        )
        inner = dict(common.fields(body.get(config)))
        if max_tokens is not None or not {"maxOutputTokens", "max_output_tokens"} & inner.keys():
            inner["maxOutputTokens"] = limit
        return {**body, config: inner}
    fields = {
        "anthropic": ("max_tokens",),
        "openai_chat": ("max_completion_tokens", "max_tokens"),
        "openai_responses": ("max_output_tokens",),
    }[wire]
    present = next((each for each in fields if each in body), None)
    front: dict[str, Any] = {"model": body.get("model", name)}
    if present is None or max_tokens is not None:
        front[present or fields[0]] = limit
    return {**front, **{key: value for key, value in body.items() if key not in front}}


def _weigh(body: dict[str, Any], wire: str, scale: Scale) -> Load:
    """What the written request weighs, read back from it."""
    history = formats.read(body, wire)
    fixed = Load(scale.ruler.system(history.system) + scale.ruler.tools(history.tools, history.tool_names))
    return fixed + scale.messages(history.messages)


def _omitted(plan: Plan, projection: Projection) -> tuple[int, ...]:
    """Turns that stand neither as text nor on a page shown nor in a summary."""
    shown = {turn for page in projection.shown for turn in page.turns}
    unseen = {turn for page in projection.pages for turn in page.turns} - shown
    return tuple(sorted((plan.gone | unseen) - plan.summarised))


def _not_drawn(projection: Projection) -> dict[str, int]:
    script = projection.script
    reasoning = {"reasoning": script.reasoning} if script.reasoning else {}
    runs = Counter(pointer.kind for pointer in script.pointers)
    return reasoning | dict(sorted(script.opaque.items())) | dict(sorted(runs.items()))


def _digest(history: History, projection: Projection) -> str:
    pages = {page.png: page for page in projection.visible}
    system = [history.system] if history.system is not None else []

    def part(each: Any) -> Any:
        if isinstance(each, Image) and each.owner == "page" and each.data in pages:
            page = pages[each.data]
            return ["page", page.width, page.height, 2 if page.ink == "grey" else 1, page.digest]
        if isinstance(each, ToolResult):
            return ["result", each.call_id, each.error, [part(inner) for inner in each.parts]]
        return canonical(each)

    forms = [[message.role, [part(each) for each in message.parts]] for message in (*system, *projection.messages)]
    text = canonical_text([forms, history.tools or list(history.tool_names)])
    return hashlib.sha256(text.encode("ascii")).hexdigest()


__all__ = ["Context", "MicroficheError", "compact", "count"]
