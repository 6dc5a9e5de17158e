"""A whole conversation told in one reading: what each event left, its pages, and whether contexts prove."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from microfiche import fit, formats
from microfiche.errors import PlanMismatch
from microfiche.ladder.newest import draw_shortened
from microfiche.ladder.projection import archive_script, standing_results
from microfiche.ladder.treatments import Form
from microfiche.messages import History, Message
from microfiche.pages.render import Page, cut
from microfiche.path import PathState, Sheet
from microfiche.record import Entry

from .answers import Key, Standing, Whole
from .walk import Stands, Walk, imported, stand_ins


@dataclass(frozen=True, slots=True)
class Call:
    """A call as it is on record."""

    entry: int
    at: int | None
    model: str
    wire: str
    recorded: str
    system: Any
    tools: list[Any] | None
    pending: tuple[Message, ...]

    def history(self, state: PathState) -> History:
        history = state.history(self.wire, self.pending)
        if self.system is not None:
            history.system = formats.system_message(self.system, self.wire)
        if self.tools is not None:
            history.tools = self.tools
        return history

    def proves(self, state: PathState) -> bool:
        """Whether the context that the state makes is the one that was recorded, pages by their identities."""
        history = self.history(state)
        return fit.identity(history, state.plan, stand_ins(history, state)) == self.recorded


def climb(entries: Mapping[int, Entry], at: int | None) -> Iterator[Entry]:
    """The path entries from one to the root."""
    while at is not None:
        yield entries[at]
        at = entries[at].parent


def tell_whole(entries: Mapping[int, Entry], calls: Mapping[int, Call]) -> Whole:
    """What the entries of a conversation tell; ``calls`` are those whose contexts are made again."""
    parents = {entry.parent for entry in entries.values() if entry.on_path}
    leaves = [entry.id for entry in entries.values() if entry.on_path and entry.id not in parents]
    waiting: dict[int | None, list[Call]] = {}
    for call in calls.values():
        waiting.setdefault(call.at, []).append(call)
    known: dict[int, Stands] = {}
    sheets: dict[Sheet, Page | None] = {}
    standings: dict[int, Standing] = {}
    proven = {call.entry: call.proves(PathState()) for call in waiting.pop(None, ())}
    for leaf in leaves:
        walk = Walk(known)
        for entry in reversed(list(climb(entries, leaf))):
            before = walk.stands
            walk.add(entry)
            if entry.kind in ("compaction", "undo") and not imported(entry) and entry.id not in standings:
                _draw(walk.state, sheets)
                standings[entry.id] = _standing(entry.id, before, walk, sheets)
            for call in waiting.pop(entry.id, ()):
                proven[call.entry] = call.proves(walk.state)
    return Whole(standings, proven)


def _standing(event: int, before: Stands, walk: Walk, sheets: Mapping[Sheet, Page | None]) -> Standing:
    state, now = walk.state, walk.stands
    changed: dict[Key, tuple[Form, int] | None] = {key: each for key, each in now.items() if before.get(key) != each}
    changed |= dict.fromkeys(before.keys() - now.keys())
    archive = state.plan.archive
    left_out = archive.left_out if archive is not None else 0
    pages = tuple(sheets[sheet] for sheet in state.sheets)
    return Standing(event, state.planned, changed, state.sheets, left_out, pages)


def _draw(state: PathState, known: dict[Sheet, Page | None]) -> None:
    """Draw the pages of the plan in force that are not known yet; one that comes out otherwise becomes ``None``."""
    missing = [sheet for sheet in state.sheets if sheet not in known]
    if not missing:
        return
    known.update(dict.fromkeys(missing))
    results = standing_results(state.plan)
    archived = len(state.sheets) - sum(len(each.pages) for each in results.values())
    first = next((at for at, sheet in enumerate(state.sheets[:archived]) if sheet in missing), archived)
    source, _ = fit.source_of(state.history(state.planned), state.planned)
    turns = {turn.number: turn for turn in source.turns}
    try:
        pages = [
            *(_from(state, first, source) if first < archived else ()),
            *(page for _, each in sorted(draw_shortened(turns, results).items()) for page in each),
        ]
    except PlanMismatch:
        return
    for sheet, page in zip((*state.sheets[first:archived], *state.sheets[archived:]), pages, strict=False):
        if known[sheet] is None and _same(sheet, page):
            known[sheet] = page


def _from(state: PathState, first: int, source: Any) -> list[Page]:
    """The pages of the archive from one on: a page needs only what stands on it and behind."""
    archive = state.plan.archive
    assert archive is not None
    script, sheet = archive_script(source, state.plan), state.sheets[first]
    begun = sheet.start[0] < len(script.segments) and isinstance(script.segments[sheet.start[0]], str)
    inside = script.spots[sheet.start[0]][0] if begun and sheet.start != (0, 0) else None
    rest = cut(script.segments, sheet.start, (len(script.segments), 0))
    return archive.form.draw(rest, first=sheet.number, inside=inside)


def _same(sheet: Sheet, page: Page) -> bool:
    depth = 2 if page.ink == "grey" else 1
    return (sheet.width, sheet.height, sheet.depth, sheet.digest) == (page.width, page.height, depth, page.digest)
