"""A history for another wire: neutral fields alone, and what that wire cannot carry named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ..messages import History, Image, Message, Note, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from . import common, tools

# Where a request says how many tokens the answer may have; Gemini's stands in its generationConfig.
_MAX_TOKENS = {
    "anthropic": ("max_tokens",),
    "openai_chat": ("max_completion_tokens", "max_tokens"),
    "openai_responses": ("max_output_tokens",),
    "gemini": ("maxOutputTokens", "max_output_tokens"),
}


def convert(history: History, wire: str) -> tuple[History, list[Note]]:
    """The history with every native object of its own wire gone.

    Reasoning stays behind: no wire takes another's (signed where it counts, without a field where
    not). Opaque parts stay behind too. Of the request's other fields only the model and the
    length of the answer have counterparts. Messages that hold nothing else are left out.
    """
    lost: Counter[str] = Counter()
    messages = _batches(kept for each in history.messages if (kept := carried(each, lost)) is not None)
    system = carried(history.system, lost) if history.system is not None else None
    if wire != "openai_chat":
        system, messages = _lead(system, messages)
    definitions: list[Any] | None = None
    notes: list[Note] = []
    if history.tools is not None:
        definitions, notes = tools.convert(history.tools, wire)
    body, dropped = _body(history, wire)
    for name in dropped:
        lost[f'request field left out: "{name}"'] += 1
    converted = replace(history, messages=messages, system=system, tools=definitions, wire=wire, body=body, bare=False)
    return converted, [*common.counted("write", lost), *notes]


def carried(message: Message, lost: Counter[str]) -> Message | None:
    parts = tuple(kept for part in message.parts if (kept := _part(part, lost)) is not None)
    if message.parts and not parts:
        return None
    return Message(message.role, parts, joined=message.joined)


def _batches(messages: Iterable[Message]) -> list[Message]:
    """Tool messages in a row as one: other wires than Chat Completions want a batch's results together."""
    out: list[Message] = []
    for message in messages:
        if message.role == "tool" and out and out[-1].role == "tool":
            out[-1] = replace(out[-1], parts=out[-1].parts + message.parts)
        else:
            out.append(message)
    return out


def _part(part: Part, lost: Counter[str]) -> Part | None:
    match part:
        case Text() | Image():
            return replace(part, native=None)
        case ToolCall():
            return replace(part, native=None)
        case ToolResult():
            inner = tuple(kept for each in part.parts if (kept := _part(each, lost)) is not None)
            return replace(part, native=None, parts=inner)  # type: ignore[arg-type]
        case Reasoning():
            kind = "signed reasoning" if part.signed else "reasoning"
            lost[f"{kind} left out: another provider does not take it"] += 1
        case Opaque(private=False):
            lost[f'"{part.kind}" left out: it has no counterpart'] += 1
    return None


def _lead(system: Message | None, messages: list[Message]) -> tuple[Message | None, list[Message]]:
    """System messages at the head of a list go where the wire has them: beside it."""
    count = next((at for at, message in enumerate(messages) if message.role != "system"), len(messages))
    heads = ([system] if system is not None else []) + messages[:count]
    if not heads:
        return None, messages
    return Message("system", tuple(part for head in heads for part in head.parts)), messages[count:]


def _body(history: History, wire: str) -> tuple[dict[str, Any], list[str]]:
    """The fields that have a counterpart, and the names of those that have not."""
    fields = dict(history.body)
    body: dict[str, Any] = {}
    if "model" in fields:
        body["model"] = fields.pop("model")
    source = fields
    if history.wire == "gemini":
        config = next((key for key in ("generationConfig", "generation_config") if key in fields), "")
        source = dict(fields.pop(config)) if isinstance(fields.get(config), dict) else {}
    limits = [source.pop(key) for key in _MAX_TOKENS.get(history.wire, ()) if key in source]
    if limits:
        key = _MAX_TOKENS[wire][0]
        body |= {"generationConfig": {key: limits[0]}} if wire == "gemini" else {key: limits[0]}
    return body, list(dict.fromkeys([*fields, *source]))
