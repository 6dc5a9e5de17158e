"""The context that a plan makes of a source.

:func:`project` needs the source and the plan, nothing else: pages are drawn from the source each
time, and a plan is known to hold by their coming out as they were.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from microfiche.messages import Image, Message, Opaque, Part, Text, ToolResult, Turn
from microfiche.pages import guide
from microfiche.pages.render import Page, Segment
from microfiche.pages.script import COMPACTION, Script, Spot, write_script

from . import reasoning, shelves
from .form import Form
from .newest import Shortened, draw_shortened
from .plan import Archive, FullPage, Plan, Source, check_source, mismatch
from .summary import block

Draw = Callable[[Form, Sequence[Segment]], list[Page]]
"""Draws segments in a form."""


@dataclass(slots=True)
class Drawn:
    """What a plan has drawn: the archive's script and pages, and those of shortened results by spot."""

    script: Script = field(default_factory=Script)
    pages: Sequence[Page] = ()
    results: dict[Spot, tuple[Page, ...]] = field(default_factory=dict)

    def still(self, plan: Plan) -> Drawn:
        """What stands of it under a later plan that draws nothing new."""
        standing = standing_results(plan)
        results = {spot: pages for spot, pages in self.results.items() if spot in standing}
        return Drawn(results=results) if plan.archive is None else Drawn(self.script, self.pages, results)


def treated(turns: Sequence[Turn], plan: Plan, results: Mapping[Spot, Sequence[Page]] | None = None) -> list[Turn]:
    """The turns with their elided results, shortened texts and dropped images in their short forms, and
    without reasoning that left.

    ``results`` are the pages of shortened texts; without them these stand as one text, as on a page of the archive.
    """
    by_turn: dict[int, set[Spot]] = {}
    for spot in (*plan.elided, *plan.dropped, *plan.shortened):
        by_turn.setdefault(spot[0], set()).add(spot)
    unreasoned = frozenset(plan.reasoning)
    made = [_treat(turn, plan, by_turn[turn.number], results) if turn.number in by_turn else turn for turn in turns]
    return [reasoning.without(turn) if turn.number in unreasoned else turn for turn in made]


def _treat(turn: Turn, plan: Plan, spots: set[Spot], results: Mapping[Spot, Sequence[Page]] | None) -> Turn:
    messages: list[list[Any]] = [list(message.parts) for message in turn.messages]
    # The last first, for a shortened text makes several parts of one; an elided result is all elided.
    for spot in sorted(spots, reverse=True):
        _, m, p, *inner = spot
        part = messages[m][p]
        if inner and spot[:3] in plan.elided:
            continue
        if inner:
            i = inner[0]
            short = _short(part.parts[i], spot, plan, results)
            messages[m][p] = replace(part, parts=(*part.parts[:i], *short, *part.parts[i + 1 :]))
        elif isinstance(part, ToolResult):
            placeholder = plan.elided[spot].placeholder(part, turn.number, plan.recall)
            messages[m][p] = replace(part, parts=(Text(placeholder),))
        else:
            messages[m][p] = Text(plan.dropped[spot].marker(part, turn.number, plan.recall))
    return Turn(
        turn.number,
        tuple(replace(message, parts=tuple(parts)) for message, parts in zip(turn.messages, messages, strict=True)),
    )


def _short(
    part: Image | Text, spot: Spot, plan: Plan, results: Mapping[Spot, Sequence[Page]] | None
) -> tuple[Text | Image, ...]:
    """What stands for a part of a result."""
    if isinstance(part, Image):
        return (Text(plan.dropped[spot].marker(part, spot[0], plan.recall)),)
    short = plan.shortened[spot]
    if results is None:
        return (Text(short.flat(part.text, spot[0], plan.recall)),)
    return tuple(short.parts(part.text, spot[0], plan.recall, results.get(spot, ())))


@dataclass(frozen=True, slots=True)
class Projection:
    """A context: its messages, all pages of its archive (those left out included), what no page shows.

    ``results`` are the pages of shortened results that stand behind the archive, by the spot of the text.
    """

    messages: tuple[Message, ...]
    pages: tuple[Page, ...] = ()
    shown: tuple[Page, ...] = ()
    script: Script = field(default_factory=Script)
    results: dict[Spot, tuple[Page, ...]] = field(default_factory=dict)

    @property
    def visible(self) -> tuple[Page, ...]:
        """The pages that are sent, oldest first."""
        return (*self.shown, *chain.from_iterable(each for _, each in sorted(self.results.items())))

    @property
    def drawn(self) -> tuple[Page, ...]:
        """All pages: the archive's, then those of results."""
        return (*self.pages, *chain.from_iterable(each for _, each in sorted(self.results.items())))


def project(source: Source, plan: Plan) -> Projection:
    """The context that the plan makes of the source.

    Pure: the same source and plan give the same messages and the same page bytes. Pages are drawn
    from the source, each of them, whatever was drawn before; :class:`PlanMismatch` if a full page does not come
    out as it was.
    """
    return assemble(source, plan, draw_checked(source, plan, Form.draw))


def draw_checked(source: Source, plan: Plan, draw: Draw = Form.pages) -> Drawn:
    """What the plan draws; :class:`PlanMismatch` if the plan or a page is not what a pass made."""
    check_source(source, plan)
    drawn = draw_plan(source, plan, draw)
    for spot, pages in drawn.results.items():
        if tuple(page.digest for page in pages) != plan.shortened[spot].pages:
            raise mismatch("a page of a result does not come out as it was")
    if plan.archive != settle(source, plan, drawn.script, drawn.pages).archive:
        raise mismatch("a full page or what stands behind it does not come out as it was")
    return drawn


def draw_plan(source: Source, plan: Plan, draw: Draw = Form.pages) -> Drawn:
    """Draw every page of the plan; what was drawn in this process before is at hand, unless ``draw`` says otherwise."""
    standing = standing_results(plan)
    turns = {turn.number: turn for turn in source.turns} if standing else {}
    script = archive_script(source, plan)
    pages = draw(plan.archive.form, script.segments) if plan.archive is not None else []
    return Drawn(script, pages, draw_shortened(turns, standing))


def drawn_already(source: Source, plan: Plan, pages: Sequence[Page]) -> Drawn:
    """The same of pages that are there already: all of the plan, in the order of :attr:`Projection.drawn`."""
    results: dict[Spot, tuple[Page, ...]] = {}
    end = len(pages)
    for spot, each in sorted(standing_results(plan).items(), reverse=True):
        if each.pages:
            results[spot] = tuple(pages[end - len(each.pages) : end])
            end -= len(each.pages)
    return Drawn(archive_script(source, plan), pages[:end], results)


def standing_results(plan: Plan) -> dict[Spot, Shortened]:
    """The shortened texts that stand behind the archive, neither left out nor elided since."""
    last = plan.archive.last if plan.archive is not None else 0
    gone = plan.gone
    return {
        spot: each
        for spot, each in plan.shortened.items()
        if spot[0] > last and spot[0] not in gone and spot[:3] not in plan.elided
    }


def archive_script(source: Source, plan: Plan) -> Script:
    """What stands on the pages of the plan's archive; without one, nothing."""
    archive = plan.archive
    if archive is None:
        return Script()
    middle = [turn for turn in source.turns if archive.first <= turn.number <= archive.last]
    return write_script(treated(middle, plan), frozenset(archive.beside))


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


def _exact(source: Source, archive: Archive, script: Script, full: Sequence[Page]) -> list[tuple[str, ...]]:
    """The values behind each full page: of it and the pages before it, none that stands before it as text."""
    head = (*source.head, *(message for turn in source.turns[: source.first_middle] for message in turn.messages))
    by_number = {turn.number: turn for turn in source.turns}
    beside = set(archive.beside)
    steps: list[shelves.Step] = []
    for page in full:
        said = [by_number[turn] for turn in begun_on(script, page) if turn in beside]
        texts = tuple(message.text for turn in said for message in turn.messages if message.role == "user")
        first, last = (bisect_left(script.pointers, (position,)) for position in (page.start, page.end))
        steps.append(shelves.Step(page, texts, tuple(pointer.run for pointer in script.pointers[first:last])))
    return shelves.values(tuple(message.text for message in head), steps)


def _last_segment(page: Page) -> int:
    segment, offset = page.end
    return segment if offset else max(segment - 1, 0)


def assemble(source: Source, plan: Plan, drawn: Drawn) -> Projection:
    """Put what is drawn between head and tail, in the order that keeps prompt caches warm."""
    head = source.turns[: source.first_middle]
    gone = plan.gone
    archive = plan.archive
    rest = [
        turn
        for turn in source.turns[source.first_middle :]
        if turn.number not in gone and (archive is None or turn.number > archive.last)
    ]
    shown: Sequence[Page] = drawn.pages[archive.left_out :] if archive is not None else ()
    parts = tuple(_middle(source, plan, drawn, shown, rest))
    middle = [Message("user", parts)] if parts else []
    before = carried(source, plan)
    tail = [message for turn in treated(rest, plan, drawn.results) for message in turn.messages]
    messages = (
        *before,
        *source.head,
        *(message for turn in treated(head, plan, drawn.results) for message in turn.messages),
        *middle,
        *(_without_compaction(tail) if before else tail),
    )
    return Projection(messages, tuple(drawn.pages), tuple(shown), drawn.script, drawn.results)


def carried(source: Source, plan: Plan) -> tuple[Message, ...]:
    """The provider's own compaction, where something of ours stands before the tail.

    The newest that says anything: it covers those before it. It may be all that is left of what was before the source,
    and only the provider can read it. It stands before everything: Anthropic passes over what stands before it
    (platform.claude.com, compaction), pages and pins too, or refuses it there (anthropic 2.14,
    CompactionBlockMisplacedError), and more than one (CompactionBlockAmbiguousError).
    """
    results = standing_results(plan).values()
    if not (plan.archive or plan.gone or source.pins or any(each.form is not None for each in results)):
        return ()
    for turn in reversed(source.turns[source.first_middle :]):
        parts = [part for message in turn.messages for part in message.parts if is_compaction(part) and _says(part)]
        if parts:
            return (Message("assistant", (parts[-1],)),)
    return ()


def _says(part: Part) -> bool:
    """Whether a compaction did not fail: one of null content stands for nothing (anthropic 2.14)."""
    native = part.native if isinstance(part.native, dict) else {}
    return any(native.get(name) is not None for name in ("content", "encrypted_content"))


def _without_compaction(messages: Iterable[Message]) -> Iterator[Message]:
    for message in messages:
        kept = tuple(part for part in message.parts if not is_compaction(part))
        if len(kept) == len(message.parts):
            yield message
        elif kept:
            yield replace(message, parts=kept)


def is_compaction(part: Part) -> bool:
    """Whether a part is a provider's own compaction."""
    return isinstance(part, Opaque) and part.kind == COMPACTION and not part.private


def _middle(
    source: Source,
    plan: Plan,
    drawn: Drawn,
    shown: Sequence[Page],
    rest: Sequence[Turn],
) -> Iterator[Text | Image]:
    archive = plan.archive
    script, pages = drawn.script, drawn.pages
    summarised = plan.summarised
    left_out = plan.gone - summarised
    through = max([*plan.gone, 0])
    partly = None
    forms = [plan.shortened[spot].form for spot in sorted(drawn.results)]
    form = archive.form if archive is not None else next(iter(forms), None)
    if form is not None:
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
            for turn in begun_on(script, page):
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


def begun_on(script: Script, page: Page) -> Iterator[int]:
    """The turns whose first bar stands on the page, in order."""
    seen = 0
    (first, inside), (last, beyond) = page.start, page.end
    # The segments whose beginning is on the page.
    for at in range(first + (inside > 0), min(last + (beyond > 0), len(script.segments))):
        turn = script.spots[at][0]
        begins = at == 0 or script.spots[at - 1][0] != turn
        if begins and turn != seen:
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
