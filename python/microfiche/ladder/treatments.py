"""How each part stands in the context that a plan makes: word for word, or in which other form.

Told of the plan and of where its pages begin and end, so nothing has to be drawn.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from microfiche.messages import Image, Opaque, Part, Reasoning, Text, ToolResult, Turn
from microfiche.pages.render import Page, Segment
from microfiche.pages.script import BLOB, Spot

from .newest import result_script, text_at
from .plan import Plan, Source
from .projection import Drawn, archive_script, begun_on, carried, drawn_already, is_compaction, standing_results
from .reasoning import thoughts


@dataclass(frozen=True, slots=True)
class Form:
    """A form other than word for word: its name (see :data:`microfiche.auditing.FORMS`), the pages where the
    part can be read, and more words on it."""

    name: str
    pages: tuple[int, ...] = ()
    why: str = ""


def documents(source: Source, plan: Plan, count: int) -> list[Sequence[Segment]]:
    """What each of the plan's ``count`` pages was drawn of, in the order of :attr:`Projection.drawn`."""
    results: list[Sequence[Segment]] = []
    turns = {turn.number: turn for turn in source.turns}
    for spot, each in sorted(standing_results(plan).items()):
        if each.pages:
            text, error = text_at(turns[spot[0]], spot)
            results += [result_script(each, text, spot, error).segments] * len(each.pages)
    return [archive_script(source, plan).segments] * (count - len(results)) + results


def treatments(source: Source, plan: Plan, pages: Sequence[Page]) -> dict[Spot, Form]:
    """The parts that do not stand word for word, by spot; a part in a result has one of its own if it is an image.

    ``pages`` are all of the plan, drawn or standing for drawn ones.
    """
    teller = _Teller(plan, drawn_already(source, plan, pages))
    found: dict[Spot, Form] = {}
    unreasoned = frozenset(plan.reasoning)
    kept = [part for message in carried(source, plan) for part in message.parts]
    for turn in source.turns:
        for m, message in enumerate(turn.messages):
            for p, part in enumerate(message.parts):
                if isinstance(part, Opaque) and (part.private or any(part is each for each in kept)):
                    continue
                if isinstance(part, Reasoning) and turn.number in unreasoned and thoughts(message):
                    found.setdefault((turn.number, m, p), Form("not_drawn", why="old reasoning"))
                for spot, each in _with_images((turn.number, m, p), part):
                    form = teller.form(turn, spot, part, each)
                    if form is not None:
                        found[spot] = form
    return found


def _with_images(spot: Spot, part: Part) -> Iterator[tuple[Spot, Part]]:
    yield spot, part
    if isinstance(part, ToolResult):
        for i, inner in enumerate(part.parts):
            if isinstance(inner, Image):
                yield (*spot, i), inner


_CUT = "its beginning is on a page that is not shown"


class _Teller:
    def __init__(self, plan: Plan, drawn: Drawn) -> None:
        archive = plan.archive
        self.plan = plan
        self.script = drawn.script
        left_out = archive.left_out if archive is not None else 0
        self.hidden, self.shown = drawn.pages[:left_out], drawn.pages[left_out:]
        self.starts, self.ends = [page.start for page in self.shown], [page.end for page in self.shown]
        self.results = drawn.results
        self.summarised = plan.summarised
        self.gone = plan.gone
        self.paged = range(archive.first, archive.last + 1) if archive is not None else range(0)
        self.beside = frozenset(archive.beside) if archive is not None else frozenset()
        self.begun = {turn for page in self.shown for turn in begun_on(drawn.script, page)}
        self.pointers: dict[int, list[str]] = {}
        for pointer in drawn.script.pointers:
            self.pointers.setdefault(drawn.script.spots[pointer.at[0]][0], []).append(pointer.run)
        self.shortened: dict[Spot, list[Spot]] = {}
        for spot in plan.shortened:
            self.shortened.setdefault(spot[:3], []).append(spot)

    def form(self, turn: Turn, spot: Spot, holder: Part, part: Part) -> Form | None:
        """The form of a part; ``holder`` is the result that it stands in, else the part itself."""
        number = turn.number
        if number not in self.paged:
            if number in self.gone:
                return self._absent(number)
            return self._short(spot, part, ())
        if self._stands_beside(turn, spot, part):
            return None if number in self.begun else self._absent(number)
        pages, cut = self._pages(spot[:3])
        if not pages:
            return self._absent(number)
        if isinstance(part, Reasoning) or (isinstance(part, Opaque) and _blob(part)):
            return Form("not_drawn", pages)
        form = self._short(spot, part, pages)
        return form if form is not None else Form("page", pages, _CUT if cut else self._pointers(number, holder))

    def _absent(self, turn: int) -> Form:
        return Form("summary" if turn in self.summarised else "omitted")

    def _short(self, spot: Spot, part: Part, pages: tuple[int, ...]) -> Form | None:
        plan = self.plan
        if spot[:3] in plan.elided:
            elision = plan.elided[spot[:3]]
            return Form("placeholder", pages, elision.why)
        if spot in plan.dropped:
            return Form("marker", pages, plan.dropped[spot].why)
        if isinstance(part, ToolResult) and (inner := self.shortened.get(spot)):
            texts = [(plan.shortened[each], part.parts[each[3]]) for each in inner]
            left_out = sum(short.left_out(text.text) for short, text in texts if isinstance(text, Text))
            own = tuple(page.number for each in inner for page in self.results.get(each, ()))
            if left_out or not pages:
                return Form("shortened", pages or own, f"{left_out:,} characters left out" if left_out else "")
        return None

    def _stands_beside(self, turn: Turn, spot: Spot, part: Part) -> bool:
        """Whether a part of a paged turn stands as it is behind the page on which its turn begins."""
        if isinstance(part, Image):
            return spot not in self.plan.dropped and spot[:3] not in self.plan.elided
        said = isinstance(part, Text) and turn.messages[spot[1]].role == "user"
        return said and turn.number in self.beside

    def _pages(self, spot: Spot) -> tuple[tuple[int, ...], bool]:
        """The pages shown that hold something of the segments in which a part stands, and whether others do."""
        script = self.script
        first = bisect_left(script.lasts, spot)
        last = first
        while last < len(script.spots) and script.spots[last] <= spot:
            last += 1
        if first == last:
            # Nothing of it is drawn: its turn's place is where it would stand.
            first = max(min(first, len(script.spots) - 1), 0)
            last = first + 1

        begin = bisect_right(self.ends, (first, 0))
        stop = bisect_left(self.starts, (last, 0))
        return tuple(page.number for page in self.shown[begin:stop]), any(
            page.end > (first, 0) and page.start < (last, 0) for page in self.hidden
        )

    def _pointers(self, turn: int, part: Part) -> str:
        texts = _texts(part)
        size = sum(len(run) for run in self.pointers.get(turn, ()) if any(run in text for text in texts))
        return f"{size:,} characters stand as a pointer" if size else ""


def _texts(part: Part) -> list[str]:
    match part:
        case Text():
            return [part.text]
        case ToolResult():
            return [inner.text for inner in part.parts if isinstance(inner, Text)]
    return [part.arguments] if hasattr(part, "arguments") else []


def _blob(part: Opaque) -> bool:
    if is_compaction(part):
        return True
    body = json.dumps(part.native, ensure_ascii=False, default=str)
    return any(len(word) > BLOB for word in body.split())
