"""The plan: how each part of a path stands in a context, as data; and the context it makes.

A plan names parts by spot and turns by number, so that it holds for any history that begins
with the same turns. :func:`project` needs the source and the plan, nothing else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar

from microfiche.errors import BadInput, PlanMismatch
from microfiche.messages import Image, Message, Text, ToolResult, Turn, canonical
from microfiche.models import FIDELITIES, Fidelity
from microfiche.pages import guide
from microfiche.pages.render import Ink, Page, draw
from microfiche.pages.script import Script, Spot, write_script

from .elide import Elision
from .images import Dropped

VERSION = 1

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Source:
    """What the ladder works on: turns, and the messages that stand before the first of them."""

    turns: tuple[Turn, ...]
    head: tuple[Message, ...] = ()

    @property
    def first_middle(self) -> int:
        """Index of the first turn that may be paged: behind the first user message, if the path opens with one."""
        return 1 if self.turns and self.turns[0].role == "user" else 0


@dataclass(frozen=True, slots=True)
class Form:
    """The form of the pages: cell and page in pixels; the last page's height is a multiple of ``grid``.

    ``grid`` 0 means full height always; ``least`` is the smallest height that is not resized.
    """

    cell: tuple[int, int]
    ink: Ink
    width: int
    height: int
    grid: int
    least: int = 0


@dataclass(frozen=True, slots=True)
class FullPage:
    """A page that will not change any more: its turns, its pixels' digest, the last spot that stands on it."""

    number: int
    turns: tuple[int, int]
    digest: str
    upto: Spot


@dataclass(frozen=True, slots=True)
class Archive:
    """The paged middle: turns ``first`` to ``last`` (numbers), of which pages 1..``left_out`` are not shown.

    ``beside`` names the user turns whose words stand as text beside their page.
    """

    form: Form
    first: int
    last: int
    beside: tuple[int, ...] = ()
    full: tuple[FullPage, ...] = ()
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """Treatments of the parts of a path. A part that is not named stands verbatim.

    ``through`` is the last turn that the plan treats and ``source`` the digest of all turns up to
    it; ``omitted`` are ranges of whole turns that stand neither as text nor on a page.
    """

    model: str = ""
    budget: int = 0
    fidelity: Fidelity = "exact"
    recall: bool = False
    through: int = 0
    source: str = ""
    elided: dict[Spot, Elision] = field(default_factory=dict)
    dropped: dict[Spot, Dropped] = field(default_factory=dict)
    archive: Archive | None = None
    omitted: tuple[tuple[int, int], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.elided or self.dropped or self.archive or self.omitted)

    def frozen(self, spot: Spot) -> bool:
        """Whether the part stands on a full page, and so is out of reach of rungs 1 and 2."""
        if self.archive is None or not self.archive.full:
            return False
        return spot[:3] <= self.archive.full[-1].upto

    def to_json(self) -> str:
        """The plan as one JSON object; :meth:`from_json` reads it back equal."""
        data: dict[str, Any] = {"version": VERSION}
        data |= {name: getattr(self, name) for name in ("model", "budget", "fidelity", "recall", "through", "source")}
        data["elided"] = {_spell(spot): asdict(each) for spot, each in sorted(self.elided.items())}
        data["dropped"] = {_spell(spot): asdict(each) for spot, each in sorted(self.dropped.items())}
        if self.archive is not None:
            archive = asdict(self.archive)
            for page in archive["full"]:
                page["upto"] = _spell(page["upto"])
            data["archive"] = archive
        data["omitted"] = self.omitted
        return json.dumps(data, indent=1)

    @classmethod
    def from_json(cls, text: str | bytes, where: str = "plan") -> Plan:
        """Read a plan; :class:`BadInput` says what is wrong with it."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as exc:
            raise BadInput(f"not JSON ({exc})", where, "pass the plan.json that a pass wrote") from None
        if not isinstance(data, dict) or data.get("version") != VERSION:
            version = data.get("version") if isinstance(data, dict) else None
            raise BadInput(
                f"not a plan of version {VERSION} (version {version!r})",
                where,
                "pass a plan that a pass wrote",
            )
        try:
            archive = data.get("archive")
            return cls(
                model=str(data["model"]),
                budget=int(data["budget"]),
                fidelity=_one_of(data["fidelity"], FIDELITIES),
                recall=bool(data["recall"]),
                through=int(data["through"]),
                source=str(data["source"]),
                elided={_spot(key): Elision(**value) for key, value in data["elided"].items()},
                dropped={_spot(key): Dropped(**value) for key, value in data["dropped"].items()},
                archive=None if archive is None else _archive(archive),
                omitted=tuple((int(a), int(b)) for a, b in data["omitted"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as exc:
            raise BadInput(
                f"a field of the plan is missing or wrong ({exc})", where, "pass a plan that a pass wrote"
            ) from None


def _one_of(value: Any, allowed: tuple[_T, ...]) -> _T:
    for each in allowed:
        if value == each:
            return each
    raise ValueError(f"{value!r} is none of {allowed}")


def _archive(data: dict[str, Any]) -> Archive:
    form = data["form"]
    width, height = form.pop("cell")
    return Archive(
        form=Form(cell=(int(width), int(height)), **form),
        first=int(data["first"]),
        last=int(data["last"]),
        beside=tuple(int(turn) for turn in data["beside"]),
        full=tuple(
            FullPage(int(p["number"]), (int(p["turns"][0]), int(p["turns"][1])), str(p["digest"]), _spot(p["upto"]))
            for p in data["full"]
        ),
        left_out=int(data["left_out"]),
    )


def _spell(spot: Spot) -> str:
    return ".".join(map(str, spot))


def _spot(text: str) -> Spot:
    return tuple(int(each) for each in text.split("."))


def source_digest(source: Source, through: int) -> str:
    """SHA-256 (hex) of the canonical form of the head and of every turn up to number ``through``."""
    sha = hashlib.sha256()
    for message in (
        *source.head,
        *(m for turn in source.turns if turn.number <= through for m in turn.messages),
    ):
        line = json.dumps(canonical(message), sort_keys=True, separators=(",", ":"), default=str)
        sha.update(line.encode("ascii") + b"\n")
    return sha.hexdigest()


def check_source(source: Source, plan: Plan) -> None:
    """:class:`PlanMismatch` unless the history begins with the turns that the plan was made for."""
    last = source.turns[-1].number if source.turns else 0
    if plan.through > last:
        raise PlanMismatch(
            f"the plan treats turns up to {plan.through}, the history ends at turn {last}",
            "plan",
            "pass the whole history with its plan, or no plan",
        )
    if plan.through and source_digest(source, plan.through) != plan.source:
        raise PlanMismatch(
            f"turns 1 to {plan.through} are not those that the plan was made for",
            "plan",
            "pass the original history, unchanged, with its plan, or no plan",
        )


def treat(turn: Turn, plan: Plan) -> Turn:
    """The turn with its elided results and dropped images in their short forms."""
    spots = [spot for spot in (*plan.elided, *plan.dropped) if spot[0] == turn.number]
    return _treat(turn, plan, spots) if spots else turn


def treated(turns: Sequence[Turn], plan: Plan) -> list[Turn]:
    """:func:`treat` for many turns."""
    by_turn: dict[int, list[Spot]] = {}
    for spot in (*plan.elided, *plan.dropped):
        by_turn.setdefault(spot[0], []).append(spot)
    return [_treat(turn, plan, by_turn[turn.number]) if turn.number in by_turn else turn for turn in turns]


def _treat(turn: Turn, plan: Plan, spots: Sequence[Spot]) -> Turn:
    messages = [list(message.parts) for message in turn.messages]
    for spot in spots:
        _, m, p, *inner = spot
        part = messages[m][p]
        if inner:
            if not isinstance(part, ToolResult):
                raise _no_such(spot)
            image = part.parts[inner[0]]
            if not isinstance(image, Image):
                raise _no_such(spot)
            marker = Text(plan.dropped[spot].marker(image, turn.number, plan.recall))
            parts = (*part.parts[: inner[0]], marker, *part.parts[inner[0] + 1 :])
            messages[m][p] = replace(part, parts=parts)
        elif isinstance(part, ToolResult):
            placeholder = plan.elided[spot].placeholder(part, turn.number, plan.recall)
            messages[m][p] = replace(part, parts=(Text(placeholder),))
        elif isinstance(part, Image):
            messages[m][p] = Text(plan.dropped[spot].marker(part, turn.number, plan.recall))
        else:
            raise _no_such(spot)
    return Turn(
        turn.number,
        tuple(replace(message, parts=tuple(parts)) for message, parts in zip(turn.messages, messages, strict=True)),
    )


def _no_such(spot: Spot) -> PlanMismatch:
    return PlanMismatch(
        f"the plan treats part {_spell(spot)}, which is of another kind",
        "plan",
        "pass the history it was made for",
    )


@dataclass(frozen=True, slots=True)
class Projection:
    """A context: its messages, all pages of its archive (those left out included), what no page shows."""

    messages: tuple[Message, ...]
    pages: tuple[Page, ...] = ()
    shown: tuple[Page, ...] = ()
    script: Script = field(default_factory=Script)


def project(source: Source, plan: Plan) -> Projection:
    """The context that the plan makes of the source.

    Pure: the same source and plan give the same messages and the same page bytes. Pages are drawn
    from the source; :class:`PlanMismatch` if a full page does not come out as it was.
    """
    check_source(source, plan)
    script, pages = draw_archive(source, plan)
    if plan.archive is not None:
        for page, known in zip(pages, plan.archive.full, strict=False):
            if page.digest != known.digest:
                raise PlanMismatch(
                    f"page {known.number} does not come out as it was drawn",
                    "plan",
                    "pass the history it was made for",
                )
    return assemble(source, plan, script, pages)


def draw_archive(source: Source, plan: Plan) -> tuple[Script, list[Page]]:
    """Draw every page of the plan's archive; without one, nothing."""
    archive = plan.archive
    if archive is None:
        return Script(), []
    middle = [turn for turn in source.turns if archive.first <= turn.number <= archive.last]
    script = write_script(treated(middle, plan), frozenset(archive.beside))
    form = archive.form
    pages = draw(
        script.segments,
        cell=form.cell,
        ink=form.ink,
        width=form.width,
        height=form.height,
        grid=form.grid,
        min_height=form.least,
    )
    return script, pages


def assemble(source: Source, plan: Plan, script: Script, pages: Sequence[Page]) -> Projection:
    """Put the drawn pages between head and tail, in the order that keeps prompt caches warm."""
    head = source.turns[: source.first_middle]
    gone = {turn for first, last in plan.omitted for turn in range(first, last + 1)}
    archive = plan.archive
    rest = [
        turn
        for turn in source.turns[source.first_middle :]
        if turn.number not in gone and (archive is None or turn.number > archive.last)
    ]
    middle: list[Message] = []
    shown: Sequence[Page] = ()
    if archive is not None or gone:
        shown = pages[archive.left_out :] if archive is not None else ()
        middle = [Message("user", tuple(_middle(source, plan, script, pages, shown, rest)))]
    messages = (
        *source.head,
        *(message for turn in head for message in turn.messages),
        *middle,
        *(message for turn in treated(rest, plan) for message in turn.messages),
    )
    return Projection(messages, tuple(pages), tuple(shown), script)


def _middle(
    source: Source,
    plan: Plan,
    script: Script,
    pages: Sequence[Page],
    shown: Sequence[Page],
    rest: Sequence[Turn],
) -> Iterator[Text | Image]:
    archive = plan.archive
    left_out = sorted({turn for first, last in plan.omitted for turn in range(first, last + 1)})
    through = max([*left_out, 0])
    if archive is not None:
        form = archive.form
        yield Text(guide.guide(form.cell, form.width // form.cell[0], form.height // form.cell[1], plan.recall))
        beside = set(archive.beside)
        by_number = {turn.number: turn for turn in source.turns if archive.first <= turn.number <= archive.last}
        for page in shown:
            group: list[Text | Image] = [Image(page.png, "image/png", page.width, page.height, owner="page")]
            for turn in _begun_on(script, page):
                group.extend(_stand_beside(by_number[turn], plan, turn in beside))
            if archive.full and page.number == archive.full[-1].number:
                group[-1] = replace(group[-1], mark=True)
            yield from group
        here = {turn for page in shown for turn in page.turns}
        left_out = sorted({turn for page in pages for turn in page.turns} - here | set(left_out))
        through = archive.last
    yield Text(
        guide.note(
            [(page.number, page.turns) for page in shown],
            archive.left_out if archive is not None else 0,
            left_out,
            sum(spot[0] <= through for spot in plan.elided),
            sum(spot[0] <= through for spot in plan.dropped),
            script.reasoning,
            rest[0].number if rest else through + 1,
            plan.recall,
        )
    )


def _begun_on(script: Script, page: Page) -> Iterator[int]:
    """The turns whose first bar stands on the page, in order."""
    seen = 0
    first, last = page.start[0], page.end[0]
    for at in range(first, min(last + 1, len(script.segments))):
        turn = script.spots[at][0]
        begins = at == 0 or script.spots[at - 1][0] != turn
        on_page = (at, 0) >= tuple(page.start) and (at, 0) < tuple(page.end)
        if begins and on_page and turn != seen:
            seen = turn
            yield turn


def _stand_beside(turn: Turn, plan: Plan, words: bool) -> Iterator[Text | Image]:
    """What of a paged turn stands behind its page: a user's words and the pictures that were kept."""
    if words:
        text = "\n".join(message.text for message in turn.messages if message.role == "user")
        if text:
            yield Text(guide.beside(turn.number, text))
    for m, message in enumerate(turn.messages):
        for p, part in enumerate(message.parts):
            if isinstance(part, Image) and (turn.number, m, p) not in plan.dropped:
                yield replace(part, native=None)
            elif isinstance(part, ToolResult):
                for i, inner in enumerate(part.parts):
                    if isinstance(inner, Image) and (turn.number, m, p, i) not in plan.dropped:
                        yield replace(inner, native=None)
