"""Tools for the agent itself: read back what left its context, search, pin, mark a place and go back to it.

:func:`tools` gives their definitions for a provider; :meth:`Conversation.answer` answers a call of one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from microfiche import formats
from microfiche.errors import BadInput, MicroficheError
from microfiche.formats.tools import Function, emit
from microfiche.messages import History, Image, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from microfiche.pages.script import clean_type
from microfiche.record import Entry, Hit, Label

PAGE = 8_000
"""Characters of an original on one page of a recall."""

HITS = 10
"""Turns on one page of a search."""

LONGEST_PIN = 2_000
"""Characters of a text that the agent may pin."""

_SNIPPET = 160
PIN_KINDS = ("definition", "decision", "parameter", "question")
"""Kinds of pins that have a meaning of their own; code may use any other word."""
_PAGE_FIELD = {"type": "integer", "minimum": 1, "description": "Which page of a long answer; 1 if left out."}


def _schema(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


FUNCTIONS = (
    Function(
        "recall",
        "Returns the original messages of an earlier turn of this conversation, word for word, by the turn's number.",
        _schema(["turn"], turn={"type": "integer", "minimum": 1}, page=_PAGE_FIELD),
    ),
    Function(
        "search",
        "Finds the turns of this conversation that hold some words one behind the other, newest first.",
        _schema(["text"], text={"type": "string"}, page=_PAGE_FIELD),
    ),
    Function(
        "pin",
        "Keeps a short text word for word in view for the rest of the conversation: a validated definition, a "
        "decision of the user, a parameter of the task, an open question.",
        _schema(["text"], text={"type": "string"}, kind={"type": "string", "enum": list(PIN_KINDS)}),
    ),
    Function(
        "checkpoint",
        "Names this place in the conversation, so that it is possible to go back to it.",
        _schema(["label"], label={"type": "string"}),
    ),
    Function(
        "rewind",
        "Goes back to a checkpoint once this turn is complete: what came after it leaves the conversation, except a "
        "report of what was tried and learnt. Files and other effects stay as they are.",
        _schema(["label", "report"], label={"type": "string"}, report={"type": "string"}),
    ),
)
NAMES = tuple(function.name for function in FUNCTIONS)
_WIRES = {"openai": "openai_chat", **{wire: wire for wire in formats.WIRES}}


def tools(provider: str) -> list[Any]:
    """The definitions of the agent's tools in a provider's own form.

    ``provider`` is ``anthropic``, ``openai`` (Chat Completions; also ``openai_chat``), ``openai_responses`` or
    ``gemini``. :class:`~microfiche.errors.BadInput` for any other.
    """
    if provider not in _WIRES:
        raise BadInput(f'no provider "{provider}"', "tools", f"it is one of {', '.join(_WIRES)}")
    return emit(FUNCTIONS, _WIRES[provider])


class Desk(Protocol):
    """What answering a call needs of a conversation."""

    def said(self, turn: int) -> tuple[Message, ...]: ...
    def search(self, text: str, limit: int = ..., offset: int = ...) -> list[Hit]: ...
    def entry(self, id: int) -> Entry: ...
    def pin(self, text: str, kind: str = ...) -> Any: ...
    def checkpoint(self, label: str) -> Label: ...
    def rewind_after(self, call: str, label: str, report: str) -> None: ...


def as_call(call: Any) -> ToolCall:
    """A native tool call of any wire as one of ours; :class:`BadInput` if it is none."""
    if isinstance(call, ToolCall):
        return call
    plain = formats.common.plain(call)
    if not isinstance(plain, dict):
        raise BadInput(f"a {type(call).__name__} is no tool call", "call", "pass the native call, with its id and name")
    function = plain.get("function") or plain.get("functionCall") or plain
    id = plain.get("call_id") or plain.get("id") or function.get("id") or ""
    name = function.get("name")
    arguments = function.get("arguments", function.get("input", function.get("args", {})))
    if not isinstance(name, str):
        raise BadInput("not a tool call", "call", "pass the native call, with its id and name")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return ToolCall(str(id), name, text)


def wire_of(call: Any, default: str) -> str:
    """The wire that a native call is of; ``default`` for one of ours."""
    plain = formats.common.plain(call)
    match plain:
        case {"type": "tool_use"}:
            return "anthropic"
        case {"type": "function_call"} | {"call_id": _}:
            return "openai_responses"
        case {"function": _}:
            return "openai_chat"
        case {"functionCall": _} | {"args": _}:
            return "gemini"
    return default


def answer(desk: Desk, native: Any, default: str) -> Any:
    """The result of a call of one of our tools, native: see :meth:`Conversation.answer`."""
    call, wire = as_call(native), wire_of(native, default)
    try:
        parts, error = _answer(desk, call), False
    except MicroficheError as exc:
        parts, error = [Text(str(exc))], True
    if wire == "openai_chat":
        # A tool's message there holds text alone.
        parts = [each for each in parts if isinstance(each, Text)]
    result = ToolResult(call.id, tuple(parts), error, call.name)
    body, _ = formats.write(History([Message("assistant", (call,)), Message("tool", (result,))], wire, wire=wire), wire)
    written = body[formats.list_key(wire)][1]
    match wire:
        case "anthropic":
            return written["content"][0]
        case "gemini":
            part = written["parts"][0]
            if not call.id:
                part["functionResponse"].pop("id", None)
            return part
    return written


def _answer(desk: Desk, call: ToolCall) -> list[Text | Image]:
    if call.name not in _ANSWERS:
        raise BadInput(f"no tool {call.name[:64]!r} here", "", f"there are {', '.join(NAMES)}")
    try:
        told = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        raise BadInput("the arguments are no JSON object", call.name, "pass an object")
    return _ANSWERS[call.name](desk, call, told)


def _recall(desk: Desk, call: ToolCall, told: Mapping[str, Any]) -> list[Text | Image]:
    turn, page = _number(told, "turn"), _number(told, "page", 1)
    text, images = original(desk.said(turn))
    count = max(-(-len(text) // PAGE), 1)
    if page > count:
        raise BadInput(f"turn {turn} has {count} pages, not {page}", "recall", f"ask for page 1 to {count}")
    start = (page - 1) * PAGE
    # An image at the very end belongs to the last page.
    end = len(text) + 1 if page == count else start + PAGE
    shown = [image for at, image in images if start <= at < end]
    return [Text(f"[turn {turn}, page {page} of {count}]\n{text[start : start + PAGE]}"), *shown]


def original(messages: tuple[Message, ...]) -> tuple[str, list[tuple[int, Image]]]:
    """The messages of a turn as one text, and its images with where they stand in it."""
    pieces: list[str] = []
    images: list[tuple[int, Image]] = []
    size = 0
    for message in messages:
        for part in message.parts:
            for piece in _told(message, part):
                if isinstance(piece, Image):
                    images.append((size, piece))
                else:
                    pieces.append(piece)
                    size += len(piece)
    return "".join(pieces), images


def _told(message: Message, part: Part) -> Iterator[str | Image]:
    match part:
        case Text():
            yield f"{message.role}:\n{part.text}\n"
        case Image():
            yield f"{message.role}:\n"
            yield from _picture(part)
        case ToolCall():
            yield f"call {part.name}:\n{part.arguments}\n"
        case ToolResult():
            yield "result, an error:\n" if part.error else "result:\n"
            for inner in part.parts:
                if isinstance(inner, Text):
                    yield f"{inner.text}\n"
                else:
                    yield from _told_other(inner)
        case _:
            yield from _told_other(part)


def _told_other(part: Part) -> Iterator[str | Image]:
    match part:
        case Image():
            yield from _picture(part)
        case Reasoning():
            yield "[reasoning, not shown]\n"
        case Opaque(private=False):
            yield f"{part.kind}:\n{json.dumps(part.native, ensure_ascii=False, default=str)}\n"


def _picture(image: Image) -> Iterator[str | Image]:
    size = f" {image.width}×{image.height}" if image.width else ""
    if image.data is None:
        yield f"[image kept elsewhere: {image.url or image.file_id}]\n"
    else:
        yield Image(image.data, image.media_type, image.width, image.height, "tool")
        yield f"[image {clean_type(image.media_type)}{size}]\n"


def _search(desk: Desk, call: ToolCall, told: Mapping[str, Any]) -> list[Text | Image]:
    text, page = _text(told, "text"), _number(told, "page", 1)
    found = desk.search(text, HITS + 1, (page - 1) * HITS)
    asked = json.dumps(text[:80], ensure_ascii=False)
    if not found:
        return [Text(f"[search, page {page}: no {'more ' if page > 1 else ''}turn holds {asked}]")]
    lines = [f"[search, page {page}: turns that hold {asked}, newest first]"]
    lines += [f"turn {hit.turn}: {_snippet(desk.entry(hit.entry), text)}" for hit in found[:HITS]]
    if len(found) > HITS:
        lines.append(f"There are more on page {page + 1}.")
    return [Text("\n".join(lines))]


def _snippet(entry: Entry, text: str) -> str:
    """The words around the first one that was looked for, on one line."""
    found = " ".join(original((entry.message,))[0].split()) if entry.message is not None else ""
    first = re.search(r"\w+", text)
    start = max(found.casefold().find(first[0].casefold()) - _SNIPPET // 4, 0) if first else 0
    cut = found[start : start + _SNIPPET]
    return f"{'…' if start else ''}{cut}{'…' if start + _SNIPPET < len(found) else ''}"


def _pin(desk: Desk, call: ToolCall, told: Mapping[str, Any]) -> list[Text | Image]:
    text, kind = _text(told, "text"), told.get("kind", "decision")
    if kind not in PIN_KINDS:
        raise BadInput("no such kind of pin", "pin", f"it is one of {', '.join(PIN_KINDS)}")
    if len(text) > LONGEST_PIN:
        raise BadInput(f"{len(text):,} characters are too many to pin", "pin", f"pin at most {LONGEST_PIN:,}")
    desk.pin(text, kind)
    return [Text(f"Pinned as {kind}: it stands word for word in view from the next message on.")]


def _checkpoint(desk: Desk, call: ToolCall, told: Mapping[str, Any]) -> list[Text | Image]:
    label = _text(told, "label")
    desk.checkpoint(label)
    name = json.dumps(label[:80], ensure_ascii=False)
    return [
        Text(
            f"Checkpoint {name} marks the last complete turn: the turn of this call is not complete yet, "
            "and so stands behind it."
        )
    ]


def _rewind(desk: Desk, call: ToolCall, told: Mapping[str, Any]) -> list[Text | Image]:
    label, report = _text(told, "label"), _text(told, "report")
    desk.rewind_after(call.id, label, report)
    name = json.dumps(label[:80], ensure_ascii=False)
    return [Text(f"Once this turn is complete, the conversation goes on from checkpoint {name}, with the report.")]


_ANSWERS: dict[str, Callable[[Desk, ToolCall, Mapping[str, Any]], list[Text | Image]]] = {
    "recall": _recall,
    "search": _search,
    "pin": _pin,
    "checkpoint": _checkpoint,
    "rewind": _rewind,
}


def _number(told: Mapping[str, Any], name: str, default: int | None = None) -> int:
    """A whole number from 1; some providers write it as a fraction or a text."""
    value = told.get(name, default)
    if isinstance(value, str) and re.fullmatch(r"\d{1,15}", value, re.ASCII):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value < 1 << 53:
        raise BadInput(f"{name} is no whole number from 1", "", f"pass {name} as one")
    return value


def _text(told: Mapping[str, Any], name: str) -> str:
    value = told.get(name)
    if not isinstance(value, str) or not value.strip():
        raise BadInput(f"{name} is no text", "", f"pass {name} as one that is not empty")
    return value
