"""A conversation as a thread: what was said, with a visible marker for every event, as data and as Markdown."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from microfiche.conversation import Conversation
from microfiche.ladder.budget import RUNGS
from microfiche.messages import Image, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from microfiche.pages.guide import spans
from microfiche.path import IMPORT
from microfiche.record import Entry, Ref

from .links import Link

_BESIDE = ("fork", "label", "label_loss", "failure", "interruption", "claim", "import")
_BACKTICKS = re.compile("`+")


def when(entry: Entry) -> str:
    """The time of an entry in UTC, ISO 8601."""
    return datetime.fromtimestamp(entry.time / 1_000_000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def marker(entry: Entry) -> str:
    """What an event is, in words; for a report and a message, what they are."""
    told = entry.payload
    match entry.kind:
        case "compaction":
            return _compaction(told)
        case "undo":
            return f"pass of entry {entry.about} taken back"
        case "trim":
            return f"{_turns(told['first'], told['last'])} left out for good on resuming"
        case "pin":
            return f"pinned ({told['kind']}): {told['text']}"
        case "unpin":
            return f"pin of entry {entry.about} let go"
        case "report":
            return f"report after a rewind to {told.get('label', '')}"
        case "move":
            label = f" ({told['label']})" if "label" in told else ""
            return f"tip moved from {_entry(told.get('from'))} to {_entry(entry.about)}{label}"
        case "label":
            moved = ", the last closed boundary" if told.get("moved") else ""
            return f"checkpoint {told['name']} at {_entry(entry.about)}{moved}"
        case "label_loss":
            return f"checkpoint {told.get('name', '')} lost: it lay in a stretch that was trimmed"
        case "fork":
            return f"forked from {told['from']} at {_entry(entry.about)}"
        case "started":
            return f"{told.get('name', '')} started (call {told['call']})"
        case "interruption":
            return f"{told.get('name', '')} interrupted (call {told['call']}): the process ended before a result came"
        case "failure":
            return f"failed: {told.get('kind') or told.get('error', '')}: {told.get('what', '')}"
        case "claim":
            links = ", ".join(f"{each['kind']} {_entry(each['entry'])}" for each in told.get("rests_on", ()))
            return f"claimed: {told.get('text', '')}" + (f" (rests on {links})" if links else "")
        case "import":
            return _import(told)
    return entry.kind


def _compaction(told: dict[str, Any]) -> str:
    if told["why"] == IMPORT:
        return _compacted_before(told)
    ran = [rung for rung, reason, _ in told["rungs"] if rung in RUNGS and not reason]
    first, last = told["span"]
    before, after = told["before"]["tokens"], told["after"]["tokens"]
    by = f" by {', '.join(ran)}" if ran else ""
    where = f", {_turns(first, last)}" if last else ""
    return f"compacted ({told['why']}) for {told['model']}{by}{where}: {before:,} to {after:,} tokens"


def _compacted_before(told: dict[str, Any]) -> str:
    first, last = told["span"]
    where = f" of {_turns(first, last)}" if last else ""
    by = f" ({told['trigger']})" if told["trigger"] else ""
    tokens = [told[key]["tokens"] for key in ("before", "after")]
    sizes = [
        f"{each:,} tokens {key}" for each, key in zip(tokens, ("before", "after"), strict=True) if each is not None
    ]
    return ", ".join([f"the session's own compaction{by}{where}", *sizes])


def _import(told: dict[str, Any]) -> str:
    if "note" in told:
        where = f"{told['where']}: " if told.get("where") else ""
        return f"import: {where}{told['note']}"
    source = f" from {told['source']}" if told.get("source") else ""
    return f"imported{source}: {told.get('messages', 0):,} messages ({told.get('format', '')})"


def _turns(first: int, last: int) -> str:
    return f"turn{'' if first == last else 's'} {spans(range(first, last + 1))}"


def _entry(at: Any) -> str:
    number = at.entry if isinstance(at, Ref) else at
    return "the beginning" if number is None else f"entry {number}"


def gist(message: Message) -> str:
    """A message in one line: its text, its calls, what its results weigh."""
    told = [part.text.strip() for part in message.parts if isinstance(part, Text) and part.text.strip()]
    told += [f"{call.name}({call.arguments})" for call in message.calls]
    for result in message.results:
        failed = "error: " if result.error else ""
        images = sum(isinstance(part, Image) for part in result.parts)
        told.append(
            f"{failed}{result.text.strip()}" + (f" [{images} image{'' if images == 1 else 's'}]" * bool(images))
        )
    told += [_other(part) for part in message.parts if isinstance(part, Image | Opaque)]
    if not told and any(isinstance(part, Reasoning) for part in message.parts):
        told = ["[reasoning]"]
    return " · ".join(told)


def _other(part: Image | Opaque) -> str:
    if isinstance(part, Opaque):
        return f"[{part.kind}]"
    size = f" {part.width}x{part.height}" if part.width else ""
    return f"[image{size}]"


def data(entry: Entry) -> dict[str, Any]:
    """An entry as plain data: pictures by the digest under which the record keeps them."""
    told: dict[str, Any] = {"entry": entry.id, "conversation": entry.conversation, "kind": entry.kind}
    told |= {"parent": entry.parent, "about": entry.about, "turn": entry.turn, "open": entry.open}
    told |= {"time": when(entry), "leaf": entry.leaf.hex(), "payload": _plain(entry.payload)}
    if entry.message is not None:
        told["message"] = {"role": entry.message.role, "parts": [part_data(part) for part in entry.message.parts]}
    return told


def part_data(part: Part) -> dict[str, Any]:
    """A part as plain data."""
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Image():
            named = {"url": part.url, "file_id": part.file_id, "owner": part.owner}
            size = {"width": part.width, "height": part.height}
            kept = {"digest": part.digest} if part.data is not None else {}
            return {"type": "image", "media_type": part.media_type, **kept, **size} | {
                name: value for name, value in named.items() if value is not None
            }
        case ToolCall():
            return {"type": "call", "id": part.id, "name": part.name, "arguments": part.arguments}
        case ToolResult():
            inner = [part_data(each) for each in part.parts]
            return {"type": "result", "call": part.call_id, "name": part.name, "error": part.error, "parts": inner}
        case Reasoning():
            return {"type": "reasoning", "text": part.text, "signed": part.signed}
        case Opaque():
            return {"type": "opaque", "kind": part.kind}


def _plain(value: Any) -> Any:
    match value:
        case Ref():
            return value.entry
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case dict():
            return {key: _plain(each) for key, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
    return value


def events(chat: Conversation, last: int | None = None) -> Iterator[Entry]:
    """What a reader of the thread sees, in order: the path, and behind what they are about its labels and notes.

    Of side entries those that tell of the path: checkpoints, lost ones, failures, interruptions,
    claims, the import and the fork that it began with. With ``last``, no more of the path than the newest so many.
    """
    beside: dict[int | None, list[Entry]] = {}
    told = [entry for kind in _BESIDE for entry in chat.thread.sides(kind)]
    for entry in sorted(told, key=lambda entry: entry.id):
        about = None if entry.kind == "fork" else entry.about
        if entry.kind in ("label_loss", "interruption") and about is not None:
            about = chat.record.entry(about).about  # the label's place, the tip when the call was started
        beside.setdefault(about, []).append(entry)
    yield from beside.get(None, ())
    for entry in chat.thread.path(last=last):
        yield entry
        yield from beside.get(entry.id, ())


def markdown(chat: Conversation, link: Link | None = None) -> Iterator[str]:
    """The path as Markdown, a piece at a time: a heading for each turn, a marker for each event between them.

    With ``link`` headings and markers lead to their entries. Words that would pass for a heading or a marker, or
    that would load or lead elsewhere, stand in fences.
    """
    yield f"# {escaped(chat.name)}\n"

    def named(entry: Entry) -> str:
        return f"entry {entry.id}" if link is None else f"[entry {entry.id}]({link(entry.id)})"

    turn = -1
    for entry in events(chat):
        if entry.kind not in ("message", "report"):
            kind = entry.kind.replace("_", " ")
            yield f"\n> **{kind}** ({named(entry)}, {when(entry)}): {_quoted(marker(entry))}\n"
            continue
        message = entry.message
        assert message is not None
        if entry.turn != turn:
            turn = entry.turn or 0
            lead = f" · {named(entry)}" if link is not None else ""
            yield f"\n## {f'Turn {turn}' if turn else 'Head'} · {message.role}{lead}\n"
        elif link is not None:
            yield f"\n{named(entry)}\n"
        if entry.kind == "report":
            yield f"\n> **report** ({named(entry)}, {when(entry)})\n"
        yield from _said(message.parts, spoken=message.role in ("user", "assistant"))


# What Markdown makes an element, a picture, a link or a formula of; and what it makes a block of.
_LIVELY = re.compile(r"<[A-Za-z/!?]|\]\(|\]\[|\]:|!\[|\$|\\[(\[]|&[#A-Za-z]")
_BLOCKS = re.compile(r"^ {0,3}(?:#|>|```|~~~|=+\s*$|-+\s*$|\[?entry \d|\*\*(?:call|result))", re.MULTILINE)


def prose(text: str, alone: bool = False) -> str:
    """Words of a message as Markdown: as they are, or in a fence if they would pass for what is around them.

    ``alone`` tells that nothing is around them, so that headings and fences of their own may stand.
    """
    return fenced(text) if _LIVELY.search(text) or (not alone and _BLOCKS.search(text)) else f"\n{text}\n"


def _said(parts: Iterable[Part], spoken: bool) -> Iterator[str]:
    for part in parts:
        match part:
            case Text():
                yield prose(part.text) if spoken else fenced(part.text)
            case ToolCall():
                yield f"\n**call** {_code(part.name)} {_code(part.id)}\n{fenced(_pretty(part.arguments), 'json')}"
            case ToolResult():
                failed = " (error)" if part.error else ""
                yield f"\n**result{failed}** {_code(part.name)} {_code(part.call_id)}\n"
                yield from _said(part.parts, spoken=False)
            case Reasoning():
                yield f"\n*reasoning*\n{fenced(part.text)}" if part.text else "\n*reasoning, kept by its provider*\n"
            case Image():
                named = f"blob {part.digest}" if part.data is not None else part.url or part.file_id or ""
                size = f", {part.width}x{part.height}" if part.width else ""
                yield f"\n*image ({part.media_type}{size}): {escaped(named)}*\n"
            case Opaque():
                yield f"\n*{escaped(part.kind)}, carried through*\n"


def _pretty(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments), indent=1, ensure_ascii=False)
    except (ValueError, RecursionError):
        return arguments


def _fence(text: str) -> str:
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    return "`" * max(3, longest + 1)


def fenced(text: str, language: str = "") -> str:
    """A text as it is, in a fence that it cannot end."""
    fence = _fence(text)
    return f"\n{fence}{language}\n{text}\n{fence}\n"


def _code(text: str) -> str:
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * (longest + 1)
    room = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{room}{' '.join(text.split())}{room}{fence}" if text.strip() else ""


def escaped(text: str) -> str:
    """A text on one line, with what Markdown would obey escaped."""
    return re.sub(r"([\\`*_#<>\[\]$&])", r"\\\1", " ".join(text.split()))


def _quoted(text: str) -> str:
    return "\n> ".join(escaped(line) for line in text.splitlines() if line.strip())
