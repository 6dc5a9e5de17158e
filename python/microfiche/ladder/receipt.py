"""What a pass did, as data: tokens, bytes, images and money by rung, and where every part went."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from microfiche.messages import Image, Message, Part, Reasoning, Text, ToolCall, ToolResult, Turn
from microfiche.models import Model, Ruler, cost
from microfiche.pages.render import Page

from .budget import RUNGS, Budget, Load
from .compact import Outcome
from .plan import Plan, Source
from .reasoning import thoughts

VERSION = 1


@dataclass(frozen=True, slots=True)
class Amount:
    """What a request weighs: tokens, bytes of content (base64 images included), images, USD of input."""

    tokens: int
    bytes: int
    images: int
    money: float | None

    @classmethod
    def of(cls, load: Load, model: Model) -> Amount:
        return cls(load.tokens, load.bytes, load.images, cost(model, load.tokens))


@dataclass(frozen=True, slots=True)
class Rung:
    """One rung of a pass. ``reason`` is empty if it did something, else why it did not."""

    rung: str
    reason: str
    before: Amount
    after: Amount


@dataclass(frozen=True, slots=True)
class PageLine:
    """A page of the archive: where its turns begin and end, its size in pixels and bytes, its price.

    ``exact`` counts the values that stand as text behind it.
    """

    number: int
    turns: tuple[int, int] | None
    width: int
    height: int
    tokens: int
    bytes: int
    characters: int
    exact: int
    digest: str
    shown: bool


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a pass did.

    ``reason`` is ``under_budget`` if there was nothing to do, else empty. ``rungs`` follow one another:
    the first begins at ``before``, each where the one above it ends, the last ends at ``after``.
    ``kinds`` are the tokens of tool results, calls, words of the user and of the assistant, reasoning, images
    and the rest, before and as they stand word for word or in a short form after it (what is on pages is not there).
    ``omitted_turns`` stand neither as text nor on a page shown nor in a summary; of turn
    ``omitted_beginning`` the pages shown hold the rest. ``summary_calls`` is how often the summariser was
    asked, ``summary_flags`` what of its answers was dropped, by reason. ``ruler`` names how tokens were
    estimated. ``seconds`` is the time of the whole call.
    """

    model: str
    format: str
    fidelity: str
    ruler: str
    budget: Budget
    reason: str
    before: Amount
    after: Amount
    rungs: tuple[Rung, ...] = ()
    pages: tuple[PageLine, ...] = ()
    elided: tuple[dict[str, Any], ...] = ()
    images: tuple[dict[str, Any], ...] = ()
    shortened: tuple[dict[str, Any], ...] = ()
    reasoning: tuple[dict[str, Any], ...] = ()
    summaries: tuple[dict[str, Any], ...] = ()
    summary_calls: int = 0
    summary_flags: dict[str, int] = field(default_factory=dict)
    kinds: dict[str, tuple[int, int]] = field(default_factory=dict)
    omitted_pages: int = 0
    omitted_turns: tuple[int, ...] = ()
    omitted_beginning: int | None = None
    not_drawn: dict[str, int] = field(default_factory=dict)
    escapes: dict[str, int] = field(default_factory=dict)
    repairs: tuple[dict[str, str], ...] = ()
    violations: tuple[dict[str, str], ...] = ()
    notes: tuple[dict[str, str], ...] = ()
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """The receipt as plain data, with its version."""
        return {"version": VERSION, **asdict(self)}

    def to_json(self) -> str:
        """The receipt as one JSON object."""
        return json.dumps(self.to_dict(), indent=1)


def by_kind(before: Iterable[Message], after: Iterable[Message], ruler: Ruler) -> dict[str, tuple[int, int]]:
    """Tokens of the messages before a pass and after it by the kind of their parts; our own pages are left aside."""
    sums: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for messages, total in zip((before, after), sums, strict=True):
        for message in messages:
            for part in message.parts:
                total[_kind(message, part)] += ruler.part(part)
    return {kind: (sums[0][kind], sums[1][kind]) for kind in KINDS if sums[0][kind] or sums[1][kind]}


KINDS = ("results", "calls", "user", "assistant", "reasoning", "images", "other")


def _kind(message: Message, part: Part) -> str:
    match part:
        case ToolResult():
            return "results"
        case ToolCall():
            return "calls"
        case Reasoning():
            return "reasoning"
        case Image():
            return "images"
        case Text() if message.role in ("user", "assistant"):
            return message.role
    return "other"


def amounts(given: Load, outcome: Outcome, final: Load, model: Model) -> tuple[Rung, ...]:
    """The rungs of a pass, contiguous from what was given to what is sent.

    Beside the rungs themselves: ``carry`` is what the wire to write cannot hold and a message put
    in front, ``unsendable`` images that the model does not take, ``plan`` what the plan before had done,
    ``write`` what writing and repair changed.
    """
    states = [("carry", "", outcome.before), ("plan", "", outcome.start)]
    states += [(step.rung, step.reason, step.after) for step in outcome.steps]
    states.append(("write", "", final))
    rungs = []
    at = given
    for name, reason, after in states:
        if after != at or name in RUNGS:
            rungs.append(Rung(name, reason, Amount.of(at, model), Amount.of(after, model)))
        at = after
    return tuple(rungs)


def page_lines(
    pages: Iterable[Page], shown: Sequence[Page], tokens: dict[int, int], plan: Plan
) -> tuple[PageLine, ...]:
    """A line a page; ``tokens`` gives what each costs by its number."""
    exact = {page.number: len(page.exact) for page in plan.archive.full} if plan.archive is not None else {}
    numbers = {page.number for page in shown}
    return tuple(
        PageLine(
            page.number,
            (min(page.turns), max(page.turns)) if page.turns else None,
            page.width,
            page.height,
            tokens[page.number],
            len(page.png),
            len(page.text),
            exact.get(page.number, 0),
            page.digest,
            page.number in numbers,
        )
        for page in pages
    )


def elided_lines(source: Source, plan: Plan) -> tuple[dict[str, Any], ...]:
    """Every elided result: turn, tool, why, characters left out, the turn that stands for it."""
    turns = {turn.number: turn for turn in source.turns}
    lines = []
    for spot, elision in sorted(plan.elided.items()):
        result = _part(turns[spot[0]], spot)
        if isinstance(result, ToolResult):
            line = {"turn": spot[0], "tool": result.name, "why": elision.why, "by": elision.by}
            lines.append(line | {"characters": len(result.text) - elision.keep})
    return tuple(lines)


def image_lines(source: Source, plan: Plan) -> tuple[dict[str, Any], ...]:
    """Every dropped image: turn, whose, why, media type, pixels."""
    turns = {turn.number: turn for turn in source.turns}
    lines = []
    for spot, dropped in sorted(plan.dropped.items()):
        part = _part(turns[spot[0]], spot)
        image = part.parts[spot[3]] if isinstance(part, ToolResult) else part
        if isinstance(image, Image):
            line = {"turn": spot[0], "owner": image.owner, "why": dropped.why, "media_type": image.media_type}
            lines.append(line | {"width": image.width, "height": image.height})
    return tuple(lines)


def shortened_lines(source: Source, plan: Plan) -> tuple[dict[str, Any], ...]:
    """Every text of a result that was too large: turn, tool, characters in all, as text, drawn and left out, pages."""
    turns = {turn.number: turn for turn in source.turns}
    lines = []
    for spot, each in sorted(plan.shortened.items()):
        result = _part(turns[spot[0]], spot)
        if isinstance(result, ToolResult) and isinstance(text := result.parts[spot[3]], Text):
            line = {"turn": spot[0], "tool": result.name, "characters": len(text.text)}
            line |= {"head": each.head, "tail": each.tail, "drawn": each.drawn}
            lines.append(line | {"left_out": each.left_out(text.text), "pages": len(each.pages)})
    return tuple(lines)


def reasoning_lines(source: Source, plan: Plan) -> tuple[dict[str, Any], ...]:
    """Every turn that stands without its reasoning: turn, parts, characters as the wire bills them."""
    turns = {turn.number: turn for turn in source.turns}
    lines = []
    gone = plan.gone
    paged = plan.archive.last if plan.archive is not None else 0
    for number in plan.reasoning:
        if number <= paged or number in gone:
            continue
        parts = [part for message in turns[number].messages for part in thoughts(message)]
        lines.append({"turn": number, "parts": len(parts), "characters": sum(part.size for part in parts)})
    return tuple(lines)


def summary_lines(plan: Plan) -> tuple[dict[str, Any], ...]:
    """Every summary: its turns, how many lines it has of each kind, how many were cut, its digest."""
    return tuple(
        {
            "turns": (each.first, each.last),
            "lines": dict(Counter(line.kind for line in each.lines)),
            "cut": each.cut,
            "digest": each.digest,
        }
        for each in plan.summaries
    )


def _part(turn: Turn, spot: tuple[int, ...]) -> Any:
    return turn.messages[spot[1]].parts[spot[2]]


def escapes_of(pages: Iterable[Page]) -> dict[str, int]:
    """Characters that stand on the pages as code points, ``U+…`` to how often, most frequent first."""
    counts: Counter[str] = Counter()
    for page in pages:
        counts.update(page.escapes)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return {f"U+{ord(character):04X}": count for character, count in ranked}


def named(items: Iterable[Any]) -> tuple[dict[str, str], ...]:
    """Repairs, violations or notes as plain data."""
    return tuple({key: str(value) for key, value in asdict(item).items()} for item in items)
