"""The reviewer's report: the whole history, the events, and what one call saw of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from microfiche.messages import digest
from microfiche.pages.guide import spans
from microfiche.path import Sheet
from microfiche.record import Entry, Head
from microfiche.record.verify import held_against

from .answers import Evidence, Key, Reduced, Seen
from .walk import imported, spoken, why


@dataclass(frozen=True, slots=True)
class TurnLine:
    """A turn as it was said: its number, first entry, who spoke, how much, the digest of its canonical form, its first
    words. Of a turn of which a part stands on the path and another on a branch there are two."""

    number: int
    entry: int
    on_path: bool
    role: str
    characters: int
    digest: str
    begins: str


@dataclass(frozen=True, slots=True)
class Event:
    """An entry that is no message: what it was, and what it changed, as data."""

    entry: int
    kind: str
    time: int
    what: str
    told: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Stood:
    """How a turn stood for a call: its parts word for word, how many had each other form, the pages that hold some."""

    turn: int
    verbatim: int
    forms: Mapping[str, int]
    pages: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """The whole of a conversation for a reviewer. ``str()`` is the text, :meth:`to_dict` plain data.

    ``heads`` counts the heads that were held against the record, ``kept`` those of them that were kept elsewhere.
    ``stood``, ``seen`` and ``not_considered`` are of the call that was asked for, ``evidence`` of its claims; without
    a call, of all claims.
    """

    conversation: str
    head: Head
    heads: int
    kept: int
    sound: bool
    fault: str
    turns: tuple[TurnLine, ...]
    events: tuple[Event, ...]
    seen: Seen | None
    stood: tuple[Stood, ...]
    not_considered: tuple[Reduced, ...]
    evidence: tuple[Evidence, ...]
    at: int | None = None

    @property
    def holds(self) -> bool:
        """Whether the record is sound and the context that was asked for is proven."""
        return self.sound and (self.seen is None or self.seen.proven)

    def since(self) -> list[tuple[int, str, list[Reduced]]]:
        """What was not considered by the event since which it was not: its entry, what it was, the parts."""
        told = {event.entry: f"{event.kind}, {day(event.time)}" for event in self.events}
        groups: dict[int, list[Reduced]] = {}
        for each in self.not_considered:
            groups.setdefault(each.event, []).append(each)
        return [(event, told.get(event, "the call itself"), parts) for event, parts in sorted(groups.items())]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; pages stand by their digests."""
        data: dict[str, Any] = {
            "conversation": self.conversation,
            "head": {"size": self.head.size, "root": self.head.root},
            "heads": self.heads,
            "kept": self.kept,
            "sound": self.sound,
            "fault": self.fault,
            "turns": [_without(asdict(each), "entry") for each in self.turns],
            # Apart, for it is where the record has a turn, and no fact of what was said.
            "entries": [each.entry for each in self.turns],
            "events": [{**asdict(replace(each, told={})), "told": dict(each.told)} for each in self.events],
            "not_considered": [asdict(each) | {"key": list(each.key)} for each in self.not_considered],
            "evidence": [asdict(each) for each in self.evidence],
        }
        if self.at is not None:
            data |= {"at": self.at, "stood": [asdict(each) for each in self.stood]}
        if self.seen is not None:
            seen = self.seen
            data["seen"] = {
                "entry": seen.entry,
                "at": seen.at,
                "model": seen.model,
                "wire": seen.wire,
                "digest": seen.digest,
                "proven": seen.proven,
                "redrawn": seen.redrawn,
                "messages": len(seen.messages),
                "pages": [sheet._asdict() for sheet in seen.sheets if sheet.number in seen.shown],
            }
        return data

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"Conversation {self.conversation}"
        yield f"Record of {self.head.size:,} entries, root {self.head.root}: {self.verdict}"
        yield ""
        yield f"What was said: {len(self.turns):,} turns"
        for turn in self.turns:
            branch = "" if turn.on_path else " (branch)"
            yield f"  {turn.number:>5} {turn.role:<9} {turn.characters:>9,} {turn.digest[:12]}{branch}  {turn.begins}"
        yield ""
        yield f"What changed what the model saw, and what stands beside: {len(self.events):,} events"
        for event in self.events:
            yield f"  {event.entry:>5} {day(event.time)} {event.kind}: {event.what}"
            for line in event.told.get("summary", ()):
                yield f"          {line}"
            for page in event.told.get("pages", ()):
                yield f"          page {page['number']}, turns {page['turns'][0]}-{page['turns'][1]}, {page['digest']}"
        if self.at is not None:
            yield ""
            yield from self._call_lines()
        yield ""
        yield f"Claims{' of this turn' * (self.at is not None)}, and what they rest on: {len(self.evidence):,}"
        for claim in self.evidence:
            yield f"  {claim.claim:>5} {' '.join(claim.text.split())}"
            for link in claim.links:
                branch = ", on a branch that was left" if link.branch else ""
                of = f", for claim {link.of}" if link.of != claim.claim else ""
                words = " ".join(link.text[:400].split())[:80]
                yield f"          {link.kind} {link.what} {link.entry}{branch}{of}{': ' * bool(words)}{words}"
            if not claim.links:
                yield "          NOTHING"

    def _call_lines(self) -> Iterator[str]:
        yield f"What the call of entry {self.at} saw: {self.proof}"
        if self.seen is not None:
            yield f"  {len(self.seen.messages):,} messages, {len(self.seen.shown):,} pages, for {self.seen.model}"
        for sheet in self.shown:
            yield f"  page {sheet.number}, turns {sheet.turns[0]}-{sheet.turns[1]}, {sheet.digest}"
        for each in self.stood:
            forms = [f"{number:,} {form}" for form, number in each.forms.items()]
            forms = [f"{each.verbatim:,} word for word", *forms] if each.verbatim else forms
            pages = f" ({'page' if len(each.pages) == 1 else 'pages'} {spans(each.pages)})" if each.pages else ""
            yield f"  turn {each.turn:>5}: {', '.join(forms)}{pages}"
        yield f"What it did not see word for word: {len(self.not_considered):,} parts"
        for event, what, parts in self.since():
            yield f"  since entry {event} ({what}): {len(parts):,} part{'s' * (len(parts) != 1)}"
            for part in parts:
                pages = f" {spans(part.pages)}" if part.pages else ""
                why = f" ({part.why})" if part.why else ""
                size = f" {part.characters:,} characters" if part.characters else ""
                yield f"    turn {part.turn:>5} {part.kind}{size}: {part.form}{pages}{why}"

    @property
    def verdict(self) -> str:
        """Whether the record is sound, in words, and against what it was held."""
        if not self.sound:
            return f"NOT SOUND: {self.fault}"
        return f"sound; {held_against(self.heads, self.kept)}"

    @property
    def proof(self) -> str:
        """Whether the context is proven, in words."""
        seen = self.seen
        if seen is None:
            return "no context is recorded with it; this is how all before it stood by the passes on its path"
        proof = "proven by its digest" if seen.proven else f"NOT PROVEN: made again it is {seen.digest}"
        pages = "" if seen.redrawn else "; its pages are drawn otherwise now, their identities are those on record"
        return f"context {seen.recorded}, {proof}{pages}"

    @property
    def shown(self) -> list[Sheet]:
        """The pages that the call was shown."""
        return [sheet for sheet in self.seen.sheets if sheet.number in self.seen.shown] if self.seen is not None else []


def _without(told: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in told.items() if key != name}


def stood(said: Iterable[Entry], missing: Iterable[Reduced]) -> tuple[Stood, ...]:
    """How each turn stood: of what had been said, and what of it was reduced."""
    whole: Counter[int] = Counter()
    for entry in said:
        whole[entry.turn or 0] += len(entry.message.parts) if entry.message is not None else 0
    forms: dict[int, Counter[str]] = {}
    pages: dict[int, set[int]] = {}
    gone: dict[int, set[Key]] = {}
    for each in missing:
        forms.setdefault(each.turn, Counter())[each.form] += 1
        pages.setdefault(each.turn, set()).update(each.pages)
        if each.key.inner < 0:
            gone.setdefault(each.turn, set()).add(each.key)
    turns = sorted(whole.keys() | forms.keys())
    return tuple(
        Stood(
            turn,
            max(whole[turn] - len(gone.get(turn, ())), 0) if turn in whole else 0,
            dict(sorted(forms.get(turn, Counter()).items())),
            tuple(sorted(pages.get(turn, ()))),
        )
        for turn in turns
    )


def day(time: int) -> str:
    """A time of the record, microseconds since 1970, in UTC."""
    return datetime.fromtimestamp(time // 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def turn_line(number: int, on_path: bool, entries: Sequence[Entry]) -> TurnLine:
    messages = [entry.message for entry in entries if entry.message is not None]
    words = "\n".join(filter(None, map(spoken, messages)))
    begins = " ".join(words[:200].split())[:80]
    return TurnLine(number, entries[0].id, on_path, messages[0].role, len(words), digest(messages), begins)


def event_of(entry: Entry) -> Event:
    told, payload = {}, entry.payload
    what = why(entry)
    if imported(entry):
        first, last = payload["span"]
        told = {"why": payload["why"], "span": [first, last], "summary": payload["summary"].splitlines()}
        what = f"by the session itself{', ' * bool(payload['trigger'])}{payload['trigger']}, turns {first}-{last}"
    elif entry.kind == "compaction":
        before, after = payload["before"]["tokens"], payload["after"]["tokens"]
        first, last = payload["span"]
        pages = [Sheet.patched((), {"keep": 0, "then": payload["pages"]["then"]})]
        told = {
            "why": payload["why"],
            "model": payload["model"],
            "span": [first, last],
            "before": before,
            "after": after,
            "context": payload["context"],
            "pages": [sheet._asdict() for sheet in pages[0]],
            "summary": [f"[{line['kind']}] {line['text']}" for line in summary_of(entry)],
        }
        what = f"{payload['why']}, turns {first}-{last}, {before:,} to {after:,} tokens, {len(pages[0])} new pages"
    elif entry.kind in ("pin", "claim"):
        what = f"{payload.get('kind', 'claim')}: {payload['text']}"
    elif entry.kind == "trim":
        what = f"turns {payload['first']}-{payload['last']}"
    elif entry.kind in ("label", "label_loss"):
        what = str(payload["name"])
    elif entry.kind == "failure":
        what = f"{payload['error']}: {payload['what']}"
    elif entry.kind == "unpin":
        what = f"pin {entry.about}"
    elif entry.kind == "fork":
        what = f"of {payload['from']}"
    return Event(entry.id, entry.kind, entry.time, what, told)


def summary_of(entry: Entry) -> Iterator[dict[str, Any]]:
    """The lines of summaries that a compaction brought: ``kind``, ``text`` and the ``turns`` that they name."""
    change = entry.payload["plan"]
    told = change.get("in", {}).get("summaries") if isinstance(change, dict) else None
    for summary in (told or {}).get("more", (told or {}).get("to", ())):
        yield from summary["lines"]
