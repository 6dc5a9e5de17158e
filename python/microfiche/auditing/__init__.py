"""What the model saw, what it no longer saw, when and why: told from the record alone.

Nothing here is remembered: every answer is folded from entries, so it is the same on the day of the call
and a year later, after no compaction and after fifty.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping
from itertools import takewhile

from microfiche import fit, formats
from microfiche.conversation import Conversation
from microfiche.errors import BadInput, NoSuchEntry, PlanMismatch
from microfiche.ladder.treatments import Form
from microfiche.messages import Message
from microfiche.record import Entry

from .answers import FORMS, Evidence, Key, Link, Reduced, Removed, Seen, Standing, Step, Trace, Whole
from .report import Event, Report, Stood, TurnLine, event_of, stood, turn_line
from .walk import PASSES, Tree, Walk, covers, imported, left_behind, number_of, reduced_part, spoken, stand_ins, why
from .whole import Call, climb, tell_whole


def audit(chat: Conversation) -> Audit:
    """The audit of a conversation: see :class:`Audit`."""
    return Audit(chat)


class Audit:
    """What an agent knew: the context of each call, what was missing from it, and which event did that."""

    def __init__(self, chat: Conversation) -> None:
        self.chat = chat

    # One call

    def context_at(self, entry: int | Entry) -> Seen:
        """The context that a call was made under, made again and held against the digest recorded with it.

        ``entry`` is an assistant message that was appended with its context, a failure, or a compaction
        (whose context is what the model saw from then on).

        :class:`~microfiche.errors.BadInput` if no context was recorded with it.
        """
        call = self._call(entry)
        state = self._state(call.at).state
        history = call.history(state)
        made = redrawn = None
        try:
            made = fit.again(history, state.plan, call.model)
            redrawn = made.digest == call.recorded
        except PlanMismatch:
            redrawn = False
        if not redrawn:
            # The glyphs are others now: what identifies the pages stands on record.
            made = fit.again(history, state.plan, call.model, stand_ins(history, state))
        assert made is not None
        return Seen(
            entry=call.entry,
            at=call.at,
            model=call.model,
            wire=call.wire,
            recorded=call.recorded,
            digest=made.digest,
            redrawn=redrawn,
            system=call.system,
            tools=call.tools,
            messages=made.messages,
            sheets=state.sheets,
            shown=tuple(page.number for page in made.projection.visible),
            pages=tuple(page.png for page in made.projection.drawn) if redrawn else (),
        )

    def not_considered(self, entry: int | Entry) -> tuple[Reduced, ...]:
        """Every part of what was said before a call that was absent from its context or reduced, oldest turn first.

        With what stood on branches that had been left. ``entry`` is any message or event of a path: where
        no context was recorded with it, the plan in force before it counts.
        """
        found = self._entry(entry)
        if "asked" in found.payload:
            call = self._call(found)
            walk, wire = self._state(call.at), call.wire
        else:
            walk = self._state(found.parent if found.on_path else found.about)
            wire = walk.state.planned or walk.state.wire()
        out = [*walk.reduced(), *left_behind(walk.state, wire, found.id)]
        if any(each.time == found.time for each in self._imports()):
            out += walk.compacted()
        out += self._elsewhere(found.id, {each.id for each, _ in walk.state.messages})
        return tuple(sorted(out, key=lambda each: (each.turn, each.key)))

    # One event

    def removed(self, event: int | Entry) -> tuple[Removed, ...]:
        """What a pass took out of the context or reduced, with the originals."""
        found = self._entry(event)
        if found.kind not in PASSES:
            cure = "name a compaction, an undo or a trim"
            raise BadInput(f"entry {found.id} is a {found.kind}, no pass", self.chat.name, cure)
        walk = self._state(found.id)
        if imported(found):
            gone = {each.key: each for each in walk.compacted() if each.event == found.id}
            return tuple(Removed(gone[key], part) for key, _, part in walk.parts() if key in gone)
        parts = {key: part for key, _, part in walk.parts()}
        return tuple(Removed(each, parts[each.key]) for each in walk.reduced() if each.event == found.id)

    def whole(self, prove: Collection[int] = ()) -> Whole:
        """What every compaction and undo left, on whatever branch, and whether the contexts of calls prove.

        ``prove`` are entries as :meth:`context_at` takes them. All of it is told in one reading of the conversation.
        """
        entries = {entry.id: entry for entry in self.chat.record.entries(conversation=self.chat.name)}
        return tell_whole(entries, {id: self._call(entries[id], entries) for id in prove})

    # One turn

    def trace(self, turn: int | None = None, text: str | None = None) -> tuple[Trace, ...]:
        """When a turn came, and each event that changed the form in which it stood; of a text, every turn that has it.

        :class:`~microfiche.errors.NoSuchEntry` for a turn that is not there; nothing for a text that is nowhere.
        """
        if (turn is None) == (text is None):
            raise BadInput("neither or both of a turn and a text", "trace", "name one of them")
        if turn is not None:
            return (self._trace(turn, None),)
        assert text is not None
        turns = sorted({hit.turn for hit in self.chat.search(text, limit=10_000)})
        return tuple(self._trace(each, text) for each in turns)

    def _trace(self, turn: int, text: str | None) -> Trace:
        entries = self.chat.thread.turn_entries(turn)
        tip, gone = self._way(entries[-1].id)
        walk = Walk()
        steps: list[Step] = []
        last: tuple[dict[str, int], tuple[int, ...]] | None = None
        imports, away = {each.about: each for each in self._imports()}, False
        for entry in self.chat.thread.path(tip):
            walk.add(entry)
            if entry.id == entries[-1].id:
                whole = {"verbatim": sum(len(each.message.parts) for each in entries if each.message is not None)}
                steps.append(
                    Step(
                        entries[0].id,
                        entries[0].kind,
                        "",
                        entries[0].time,
                        whole,
                        readable=None if text is None else True,
                    )
                )
                last = (whole, ())
            if last is None:
                continue
            if imported(entry) and covers(entry, turn):
                parts = {"elsewhere": sum(last[0].values())}
                told = (None, None) if text is None else walk.told_by(entry, text)
                steps.append(Step(entry.id, entry.kind, why(entry), entry.time, parts, (), *told))
                away = True
            if away and entry.id in imports:
                # Since then the record's own contexts are made, of the originals.
                back = imports[entry.id]
                steps.append(Step(back.id, back.kind, "", back.time, last[0], last[1], None if text is None else True))
                away = False
            if entry.kind not in PASSES or imported(entry):
                continue
            now = walk.forms_of(turn)
            readable, summarised = walk.holds(text) if text is not None else (None, None)
            if now != last or readable != steps[-1].readable:
                steps.append(Step(entry.id, entry.kind, why(entry), entry.time, *now, readable, summarised))
                last = now
        if gone is not None:
            left = self.chat.record.entry(gone)
            readable = None if text is None else False
            steps.append(Step(left.id, left.kind, why(left), left.time, {"branch": 1}, (), readable))
        return Trace(turn, tuple(steps))

    def _way(self, entry: int) -> tuple[int | None, int | None]:
        """A tip whose path holds the entry, and the move that left it if that is not the current one."""
        tree = Tree(self.chat)
        tip = self.chat.tip
        if entry in tree.path(tip):
            return tip, None
        left = tree.left(tree.size + 1)
        if entry in left:
            return number_of(self.chat.record.entry(left[entry]).payload.get("from")), left[entry]
        return entry, None

    # Claims

    def evidence(self, claim: int | Entry) -> Evidence:
        """What a claim rests on: the queries, documents, executions and checks, each from the record itself.

        :class:`~microfiche.errors.BadInput` if the entry is no claim.
        """
        first = self._entry(claim)
        if first.kind != "claim":
            raise BadInput(f"entry {first.id} is a {first.kind}, no claim", "evidence", "name a claim")
        path = Tree(self.chat).path(self.chat.tip)
        links: list[Link] = []
        waiting, seen = [first], {first.id}
        while waiting:
            each = waiting.pop(0)
            for told in each.payload["rests_on"]:
                on = self.chat.record.entry(told["entry"].entry)
                words = on.payload.get("text", "") if on.message is None else spoken(on.message)
                place = on.id if on.on_path else on.about
                branch = place is not None and place not in path
                links.append(Link(each.id, told["kind"], on.id, on.turn, on.kind, words, branch))
                if on.kind == "claim" and on.id not in seen:
                    seen.add(on.id)
                    waiting.append(on)
        return Evidence(first.id, first.payload["text"], tuple(links))

    # All of it

    def report(
        self,
        at: int | Entry | None = None,
        head: tuple[int, str] | str | None = None,
        heads: str | os.PathLike[str] | None = None,
    ) -> Report:
        """Both truths: the whole history as it was said, and the sequence of events that decided what the model saw.

        With ``at``, also what that call saw and did not, and what the claims of its turn rest on. ``head`` and
        ``heads`` were kept elsewhere and are held against the record, see :meth:`~microfiche.record.Record.verify`.
        """
        record, tree = self.chat.record, Tree(self.chat)
        path = tree.path(self.chat.tip)
        verdict = record.verify(head, heads)
        turns: dict[tuple[int, bool], list[Entry]] = {}
        events, claims = [], []
        for entry in record.entries(conversation=self.chat.name):
            if entry.message is not None:
                turns.setdefault((entry.turn or 0, entry.id in path), []).append(entry)
            if entry.kind not in ("message", "started"):
                events.append(event_of(entry))
            if entry.kind == "claim":
                claims.append(entry)
        seen = None
        missing: tuple[Reduced, ...] = ()
        before: list[Entry] = []
        found = self._entry(at) if at is not None else None
        if found is not None:
            seen = self.context_at(found) if "asked" in found.payload else None
            missing = self.not_considered(found)
            # A context may have been made on another branch than its answer stands on.
            way = {entry.id: entry for entry in self.chat.thread.path(found.parent if found.on_path else found.about)}
            way |= {entry.id: entry for entry in self.chat.thread.path(seen.at)} if seen is not None else {}
            before = [entry for entry in way.values() if entry.message is not None]
            claims = [each for each in claims if each.id == found.id or self._turn_of(each) == self._turn_of(found)]
        return Report(
            conversation=self.chat.name,
            head=record.head,
            heads=verdict.heads,
            kept=verdict.kept,
            sound=bool(verdict),
            fault="" if verdict else str(verdict.reason),
            turns=tuple(turn_line(number, here, entries) for (number, here), entries in sorted(turns.items())),
            events=tuple(events),
            seen=seen,
            stood=stood(before, missing),
            not_considered=missing,
            evidence=tuple(self.evidence(each) for each in claims),
            at=None if found is None else found.id,
        )

    def _turn_of(self, entry: Entry) -> int | None:
        """The turn of an entry, or of what it is about."""
        if entry.turn is not None or entry.about is None:
            return entry.turn
        return self.chat.record.entry(entry.about).turn

    # Underneath

    def _entry(self, entry: int | Entry) -> Entry:
        found = self.chat.record.entry(entry.id if isinstance(entry, Entry) else entry)
        if found.conversation != self.chat.name:
            what = f"entry {found.id} is of conversation {found.conversation!r}"
            raise NoSuchEntry(what, self.chat.name, "name that conversation")
        return found

    def _call(self, entry: int | Entry, known: Mapping[int, Entry] | None = None) -> Call:
        found = self._entry(entry) if known is None else known[entry.id if isinstance(entry, Entry) else entry]
        told = found.payload
        if "asked" not in told:
            cure = "name a message that was appended with its context, a failure or a compaction"
            raise BadInput(f"no context was recorded with entry {found.id}", self.chat.name, cure)
        asked = json.loads(told["asked"])
        at = found.id if found.kind == "compaction" else number_of(told.get("at"))
        native = told.get("pending") or told.get("request", {}).get("pending")
        if found.kind == "message":
            pending = tuple(self._said_between(at, found, known))
        else:
            pending = tuple(formats.read(native, prefer=asked["format"]).messages) if native else ()
        return Call(
            found.id, at, told["model"], asked["format"], told["context"], asked["system"], asked["tools"], pending
        )

    def _said_between(self, at: int | None, call: Entry, known: Mapping[int, Entry] | None) -> Iterator[Message]:
        """Messages that a context had as pending: those that were written between it and the answer."""
        known = {entry.id: entry for entry in self.chat.thread.path(call.parent)} if known is None else known
        before = list(climb(known, call.parent))
        between = list(takewhile(lambda entry: entry.id > (at or 0), before))
        if at is not None and (len(between) == len(before) or before[len(between)].id != at):
            between = [entry for entry in before if entry.time == call.time]  # the context was made on another branch
        return (entry.message for entry in reversed(between) if entry.message is not None)

    def _imports(self) -> list[Entry]:
        return [each for each in self.chat.thread.sides("import") if "format" in each.payload]

    def _state(self, tip: int | None) -> Walk:
        walk = Walk()
        for entry in self.chat.thread.path(tip):
            walk.add(entry)
        return walk

    def _elsewhere(self, before: int, path: set[int]) -> Iterator[Reduced]:
        """What stood on branches that had been left when an entry was written."""
        left = Tree(self.chat).left(before)
        for id, event in left.items():
            if id in path:
                continue
            entry = self.chat.record.entry(id)
            if entry.message is None:
                continue
            for part, each in enumerate(entry.message.parts):
                yield reduced_part(entry.turn or 0, Key(id, part), each, Form("branch"), event)


__all__ = [
    "FORMS",
    "Audit",
    "Event",
    "Evidence",
    "Key",
    "Link",
    "Reduced",
    "Removed",
    "Report",
    "Seen",
    "Standing",
    "Step",
    "Stood",
    "Trace",
    "TurnLine",
    "Whole",
    "audit",
]
