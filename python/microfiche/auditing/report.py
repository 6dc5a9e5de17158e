"""The reviewer's report: the whole history, the events, and what one call saw of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from microfiche.messages import digest
from microfiche.pages.guide import spans
from microfiche.path import Sheet
from microfiche.record import Entry, Head

from .answers import Reduced, Seen
from .walk import imported, spoken, why


@dataclass(frozen=True, slots=True)
class TurnLine:
    """A turn as it was said: its number, who spoke, how much, the digest of its canonical form, its first words."""

    number: int
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
class Report:
    """The whole of a conversation for a reviewer. ``str()`` is the text, :meth:`to_dict` plain data."""

    conversation: str
    head: Head
    sound: bool
    fault: str
    turns: tuple[TurnLine, ...]
    events: tuple[Event, ...]
    seen: Seen | None
    not_considered: tuple[Reduced, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; pages stand by their digests."""
        data: dict[str, Any] = {
            "conversation": self.conversation,
            "head": {"size": self.head.size, "root": self.head.root},
            "sound": self.sound,
            "fault": self.fault,
            "turns": [asdict(each) for each in self.turns],
            "events": [{**asdict(replace(each, told={})), "told": dict(each.told)} for each in self.events],
            "not_considered": [asdict(each) | {"key": list(each.key)} for each in self.not_considered],
        }
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
        state = "sound" if self.sound else f"NOT SOUND: {self.fault}"
        yield f"Record of {self.head.size:,} entries, root {self.head.root}: {state}"
        yield ""
        yield f"What was said: {len(self.turns):,} turns"
        for turn in self.turns:
            branch = "" if turn.on_path else " (branch)"
            yield f"  {turn.number:>5} {turn.role:<9} {turn.characters:>9,} {turn.digest[:12]}{branch}  {turn.begins}"
        yield ""
        yield f"What changed what the model saw, and what stands beside: {len(self.events):,} events"
        for event in self.events:
            yield f"  {event.entry:>5} {_day(event.time)} {event.kind}: {event.what}"
            for line in event.told.get("summary", ()):
                yield f"          {line}"
        if self.seen is None and not self.not_considered:
            return
        yield ""
        if self.seen is not None:
            seen = self.seen
            proof = "proven by its digest" if seen.proven else f"NOT PROVEN: {seen.digest} was recorded otherwise"
            pages = "" if seen.redrawn else "; its pages are drawn otherwise now, their identities are those on record"
            yield f"What the call of entry {seen.entry} saw: context {seen.recorded}, {proof}{pages}"
            yield f"  {len(seen.messages):,} messages, {len(seen.shown):,} pages, for {seen.model}"
        yield f"What it did not, or reduced: {len(self.not_considered):,} parts"
        for each in self.not_considered:
            pages_of = f" {spans(each.pages)}" if each.pages else ""
            why = f" ({each.why})" if each.why else ""
            yield (
                f"  turn {each.turn:>5} {each.kind:<9} {each.characters:>9,} characters: "
                f"{each.form}{pages_of}{why}, by entry {each.event}"
            )


def _day(time: int) -> str:
    return datetime.fromtimestamp(time // 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def turn_line(number: int, on_path: bool, entries: Sequence[Entry]) -> TurnLine:
    messages = [entry.message for entry in entries if entry.message is not None]
    words = "\n".join(filter(None, map(spoken, messages)))
    begins = " ".join(words[:200].split())[:80]
    return TurnLine(number, on_path, messages[0].role, len(words), digest(messages), begins)


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
