"""The plan: how each part of a path stands in a context, as data; and the context it makes.

A plan names parts by spot and turns by number, so that it holds for any history that begins
with the same turns. :func:`project` needs the source and the plan, nothing else.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import accumulate, pairwise
from typing import Any, TypeVar

from microfiche.errors import BadInput, PlanMismatch
from microfiche.messages import Image, Message, Text, ToolResult, Turn, canonical
from microfiche.models import FIDELITIES, Fidelity
from microfiche.pages import guide
from microfiche.pages.exact import Shelf
from microfiche.pages.render import Ink, Page, draw
from microfiche.pages.script import Script, Spot, write_script

from .elide import WHYS, Elision
from .images import WHYS as IMAGE_WHYS
from .images import Dropped
from .summarize import KINDS, Line, Summary, block, one_line

VERSION = 1

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Source:
    """What the ladder works on: turns, the messages before the first of them, texts that stand in every context."""

    turns: tuple[Turn, ...]
    head: tuple[Message, ...] = ()
    pins: tuple[str, ...] = ()

    @property
    def first_middle(self) -> int:
        """Index of the first turn that may be paged: behind the first user message, if the path opens with one."""
        return 1 if self.turns and self.turns[0].role == "user" else 0

    def cuts(self) -> frozenset[int]:
        """Numbers of the turns before which no call is open that is answered later: there a stretch may begin or end.

        A result mostly stands in the turn of its call; where it came later, the turns between belong together.
        """
        opened: dict[str, int] = {}
        across = [0] * (len(self.turns) + 1)
        for at, turn in enumerate(self.turns):
            for message in turn.messages:
                for result in message.results:
                    since = opened.pop(result.call_id, at)
                    across[since] += 1
                    across[at] -= 1
                opened |= {call.id: at for call in message.calls}
        held = list(accumulate(across))
        return frozenset(turn.number for at, turn in enumerate(self.turns) if at == 0 or not held[at - 1])


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
    """A page that will not change any more: its turns, its pixels' digest, the last spot that stands on it.

    ``exact`` are the values that stand as text behind it.
    """

    number: int
    turns: tuple[int, int]
    digest: str
    upto: Spot
    exact: tuple[str, ...] = ()


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
    it; ``omitted`` are ranges of whole turns that stand neither as text nor on a page. ``summaries``
    stand for theirs, oldest first: turns before the archive, or on those of its pages that are not shown.
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
    summaries: tuple[Summary, ...] = ()
    omitted: tuple[tuple[int, int], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.elided or self.dropped or self.archive or self.summaries or self.omitted)

    @property
    def summarised(self) -> frozenset[int]:
        """Numbers of the turns that a summary stands for."""
        return frozenset(turn for each in self.summaries for turn in range(each.first, each.last + 1))

    @property
    def gone(self) -> frozenset[int]:
        """Numbers of the turns that were omitted or summarised as such, not as what stands on a page."""
        return self.summarised | {turn for first, last in self.omitted for turn in range(first, last + 1)}

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
        data["summaries"] = [asdict(each) for each in self.summaries]
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
                model=_str(data["model"]),
                budget=_int(data["budget"]),
                fidelity=_one_of(data["fidelity"], FIDELITIES),
                recall=_one_of(data["recall"], (False, True)),
                through=_int(data["through"]),
                source=_str(data["source"]),
                elided={_spot(key, 3): _elision(**value) for key, value in data["elided"].items()},
                dropped={_spot(key, 3, 4): _dropped(**value) for key, value in data["dropped"].items()},
                archive=None if archive is None else _archive(archive),
                summaries=tuple(_summary(**each) for each in data["summaries"]),
                omitted=tuple((_int(a), _int(b)) for a, b in data["omitted"]),
            )
        except (LookupError, TypeError, ValueError, AttributeError) as exc:
            raise BadInput(
                f"a field of the plan is missing or wrong ({exc})", where, "pass a plan that a pass wrote"
            ) from None


def _one_of(value: Any, allowed: tuple[_T, ...]) -> _T:
    for each in allowed:
        if value == each and type(value) is type(each):
            return each
    raise ValueError(f"{value!r} is none of {allowed}")


def _str(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _int(value: Any, most: int = 1 << 53) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ValueError(f"{value!r} is not a whole number from 0 to {most}")
    return value


def _elision(why: Any, by: Any, keep: Any) -> Elision:
    return Elision(_one_of(why, WHYS), _int(by), _int(keep))


def _dropped(why: Any) -> Dropped:
    return Dropped(_one_of(why, IMAGE_WHYS))


def _summary(first: Any, last: Any, lines: Any, cut: Any) -> Summary:
    return Summary(_int(first), _int(last), tuple(_summary_line(**each) for each in lines), _int(cut))


def _summary_line(kind: Any, text: Any, turns: Any) -> Line:
    if not _str(text) or one_line(text, len(text)) != text:
        raise ValueError(f"{text!r} is not one line of text")
    spans = tuple((_int(a), _int(b)) for a, b in turns)
    if not spans:
        raise ValueError("a line of a summary names no turn")
    return Line(_one_of(kind, KINDS), text, spans)


_LONGEST_SIDE = 8192
"""More pixels a side than any provider takes."""


def _archive(data: dict[str, Any]) -> Archive:
    form = data["form"]
    width, height = form["cell"]
    return Archive(
        form=Form(
            cell=(_int(width, 32), _int(height, 32)),
            ink=_one_of(form["ink"], ("grey", "mono")),
            **{name: _int(form[name], _LONGEST_SIDE) for name in ("width", "height", "grid", "least")},
        ),
        first=_int(data["first"]),
        last=_int(data["last"]),
        beside=tuple(_int(turn) for turn in data["beside"]),
        full=tuple(
            FullPage(
                _int(page["number"]),
                (_int(page["turns"][0]), _int(page["turns"][1])),
                _str(page["digest"]),
                _spot(page["upto"], 3),
                tuple(_str(value) for value in page["exact"]),
            )
            for page in data["full"]
        ),
        left_out=_int(data["left_out"]),
    )


def _spell(spot: Spot) -> str:
    return ".".join(map(str, spot))


def _spot(text: str, *lengths: int) -> Spot:
    spot = tuple(_int(int(each)) for each in text.split("."))
    if len(spot) not in lengths or _spell(spot) != text:
        raise ValueError(f"{text!r} is not the place of a part")
    return spot


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
    if not plan:
        return
    last = source.turns[-1].number if source.turns else 0
    if plan.through > last:
        raise _mismatch(f"the plan treats turns up to {plan.through}, the history ends at turn {last}")
    if source_digest(source, plan.through) != plan.source:
        raise _mismatch(f"turns 1 to {plan.through} are not those that the plan was made for")
    if fault := _fault(source, plan):
        raise _mismatch(fault)


def _fault(source: Source, plan: Plan) -> str:
    """What the plan says of the turns that a pass over them cannot have said; empty if nothing."""
    turns = {turn.number: turn for turn in source.turns}
    middle = source.turns[source.first_middle : -1]
    end = min(plan.through, middle[-1].number if middle else 0)
    for spots, kind in ((plan.elided, ToolResult), (plan.dropped, Image)):
        for spot in spots:
            part = _part(turns.get(spot[0]), spot)
            if spot[0] > plan.through or not isinstance(part, kind):
                return f"part {_spell(spot)} is none that the plan can treat"
            if isinstance(part, ToolResult) and plan.elided[spot].keep > len(part.text):
                return f"part {_spell(spot)} is shorter than what the plan keeps of it"
    archive = plan.archive
    if archive is not None and archive.left_out > len(archive.full):
        return "the pages are not those of the history"
    if not _tile(plan, [turn.number for turn in middle], end):
        return "the turns left out or summarised are not the oldest of the middle"
    if archive is not None:
        users = {turn.number for turn in middle if turn.role == "user"}
        if not first_paged(source, plan) == archive.first <= archive.last <= end:
            return f"turns {archive.first} to {archive.last} cannot stand on pages"
        if not users.issuperset(archive.beside):
            return "the pages are not those of the history"
    return ""


def _tile(plan: Plan, middle: Sequence[int], end: int) -> bool:
    """Whether the turns gone, each once, are all before the archive and summarised ones of its pages not shown."""
    archive = plan.archive
    before = archive.first - 1 if archive is not None else end
    unseen = archive.full[archive.left_out - 1].turns[1] if archive is not None and archive.left_out else 0
    ranges = _ranges(plan)
    first = middle[0] if middle else 0
    if any(not first <= a <= b <= end for a, b in ranges) or any(b >= c for (_, b), (c, _) in pairwise(ranges)):
        return False
    if archive is None:
        before = ranges[-1][1] if ranges else 0
    inside = [each for each in ranges if each[1] > before]
    if any(a <= before or b > unseen or (a, b) in plan.omitted for a, b in inside):
        return False
    return plan.gone.issuperset(turn for turn in middle if turn <= before)


def _ranges(plan: Plan) -> list[tuple[int, int]]:
    """The turns gone as ranges, oldest first."""
    return sorted([*plan.omitted, *((each.first, each.last) for each in plan.summaries)])


def _part(turn: Turn | None, spot: Spot) -> Any:
    try:
        part: Any = turn.messages[spot[1]].parts[spot[2]] if turn is not None else None
        return part if len(spot) == 3 else part.parts[spot[3]]
    except (IndexError, AttributeError):
        return None


def _mismatch(what: str) -> PlanMismatch:
    return PlanMismatch(what, "plan", "pass the original history, unchanged, with its plan, or no plan")


def first_paged(source: Source, plan: Plan) -> int:
    """Number of the first turn that may stand on a page: behind the head and what went before pages were drawn."""
    first = source.turns[source.first_middle].number if source.first_middle < len(source.turns) else 0
    archive = plan.archive
    return max([first, *(last + 1 for _, last in _ranges(plan) if archive is None or last < archive.first)])


def treated(turns: Sequence[Turn], plan: Plan) -> list[Turn]:
    """The turns with their elided results and dropped images in their short forms."""
    by_turn: dict[int, list[Spot]] = {}
    for spot in (*plan.elided, *plan.dropped):
        by_turn.setdefault(spot[0], []).append(spot)
    return [_treat(turn, plan, by_turn[turn.number]) if turn.number in by_turn else turn for turn in turns]


def _treat(turn: Turn, plan: Plan, spots: Sequence[Spot]) -> Turn:
    messages: list[list[Any]] = [list(message.parts) for message in turn.messages]
    for spot in spots:
        _, m, p, *inner = spot
        part = messages[m][p]
        if inner:
            image = part.parts[inner[0]]
            marker = Text(plan.dropped[spot].marker(image, turn.number, plan.recall))
            messages[m][p] = replace(part, parts=(*part.parts[: inner[0]], marker, *part.parts[inner[0] + 1 :]))
        elif isinstance(part, ToolResult):
            placeholder = plan.elided[spot].placeholder(part, turn.number, plan.recall)
            messages[m][p] = replace(part, parts=(Text(placeholder),))
        else:
            messages[m][p] = Text(plan.dropped[spot].marker(part, turn.number, plan.recall))
    return Turn(
        turn.number,
        tuple(replace(message, parts=tuple(parts)) for message, parts in zip(turn.messages, messages, strict=True)),
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
    script, pages = checked_archive(source, plan)
    return assemble(source, plan, script, pages)


def checked_archive(source: Source, plan: Plan) -> tuple[Script, list[Page]]:
    """The pages of a plan, drawn; :class:`PlanMismatch` if the plan or a full page is not what a pass made."""
    check_source(source, plan)
    script, pages = draw_archive(source, plan)
    drawn = settle(source, plan, script, pages).archive
    if plan.archive is not None and plan.archive != drawn:
        raise _mismatch("a full page or what stands behind it does not come out as it was")
    return script, pages


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


def settle(source: Source, plan: Plan, script: Script, pages: Sequence[Page]) -> Plan:
    """The plan with its full pages named: every page but the last, which may still grow."""
    if plan.archive is None:
        return plan
    full = tuple(
        FullPage(
            page.number,
            (min(page.turns, default=0), max(page.turns, default=0)),
            page.digest,
            script.lasts[_last_segment(page)],
            exact,
        )
        for page, exact in zip(pages[:-1], _exact(source, plan.archive, script, pages[:-1]), strict=True)
    )
    return replace(plan, archive=replace(plan.archive, full=full))


def _exact(source: Source, archive: Archive, script: Script, full: Sequence[Page]) -> Iterator[tuple[str, ...]]:
    """The values behind each full page: of it and the pages before it, none that stands before it as text."""
    head = (*source.head, *(message for turn in source.turns[: source.first_middle] for message in turn.messages))
    shelf = Shelf(message.text for message in head)
    by_number = {turn.number: turn for turn in source.turns}
    beside = set(archive.beside)
    for page in full:
        for turn in _begun_on(script, page):
            if turn in beside:
                for message in by_number[turn].messages:
                    shelf.stand(message.text if message.role == "user" else "")
        first, last = (bisect_left(script.pointers, (position,)) for position in (page.start, page.end))
        yield shelf.page(page.segments, [pointer.run for pointer in script.pointers[first:last]])


def _last_segment(page: Page) -> int:
    segment, offset = page.end
    return segment if offset else max(segment - 1, 0)


def assemble(source: Source, plan: Plan, script: Script, pages: Sequence[Page]) -> Projection:
    """Put the drawn pages between head and tail, in the order that keeps prompt caches warm."""
    head = source.turns[: source.first_middle]
    gone = plan.gone
    archive = plan.archive
    rest = [
        turn
        for turn in source.turns[source.first_middle :]
        if turn.number not in gone and (archive is None or turn.number > archive.last)
    ]
    middle: list[Message] = []
    shown: Sequence[Page] = ()
    if archive is not None or gone or source.pins:
        shown = pages[archive.left_out :] if archive is not None else ()
        middle = [Message("user", tuple(_middle(source, plan, script, pages, shown, rest)))]
    messages = (
        *source.head,
        *(message for turn in treated(head, plan) for message in turn.messages),
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
    summarised = plan.summarised
    left_out = plan.gone - summarised
    through = max([*plan.gone, 0])
    partly = None
    if archive is not None:
        form = archive.form
        yield Text(guide.guide(form.cell, form.width // form.cell[0], form.height // form.cell[1], plan.recall))
    if plan.summaries:
        last_mark = archive is None or archive.left_out == len(archive.full)
        yield Text(block(plan.summaries, plan.recall), mark=last_mark)
    if archive is not None:
        beside = set(archive.beside)
        by_number = {turn.number: turn for turn in source.turns if archive.first <= turn.number <= archive.last}
        exact = {page.number: page.exact for page in archive.full if page.exact}
        for page in shown:
            group: list[Text | Image] = [Image(page.png, "image/png", page.width, page.height, owner="page")]
            for turn in _begun_on(script, page):
                group.extend(_stand_beside(by_number[turn], plan, turn in beside))
            if page.number in exact:
                group.append(Text(guide.exact(page.number, exact[page.number])))
            if archive.full and page.number == archive.full[-1].number:
                group[-1] = replace(group[-1], mark=True)
            yield from group
        here = {turn for page in shown for turn in page.turns}
        left_out = left_out | {turn for page in pages for turn in page.turns} - here - summarised
        through = archive.last
        partly = partly_shown(plan, script, shown)
    if source.pins:
        yield Text(guide.pins(source.pins))
    if archive is None and not plan.gone:
        return
    yield Text(
        guide.note(
            [(page.number, page.turns) for page in shown],
            unseen(plan, pages),
            sorted(left_out),
            partly,
            sum(spot[0] <= through for spot in plan.elided),
            sum(spot[0] <= through for spot in plan.dropped),
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


def unseen(plan: Plan, pages: Sequence[Page]) -> list[int]:
    """Numbers of the pages that are not shown and hold a turn that no summary stands for."""
    left_out = plan.archive.left_out if plan.archive is not None else 0
    summarised = plan.summarised
    return [page.number for page in pages[:left_out] if not summarised.issuperset(page.turns)]


def partly_shown(plan: Plan, script: Script, shown: Sequence[Page]) -> int | None:
    """The turn on the first page shown that begins on a page before it, if there is one that no summary stands for."""
    if not shown:
        return None
    segment, offset = shown[0].start
    turn = script.spots[segment][0]
    inside = offset > 0 or (segment > 0 and script.spots[segment - 1][0] == turn)
    return turn if inside and turn not in plan.summarised else None


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
