"""Which wire or transcript format is this?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..errors import UnknownFormat
from .jsonl import Loaded

_SESSION_KEYS = frozenset({"uuid", "parentUuid", "sessionId", "leafUuid", "isSidechain"})
_STREAM_KEYS = frozenset({"session_id", "parent_tool_use_id"})
_STREAM_TYPES = frozenset(
    {"system", "assistant", "user", "result", "stream_event", "rate_limit_event", "tool_progress"}
)
_CHAT_ROLES = frozenset({"tool", "developer", "function"})
_CHAT_BLOCKS = frozenset({"image_url", "input_audio", "refusal", "file"})
_CHAT_KEYS = frozenset({"tool_calls", "function_call", "tool_call_id", "refusal"})
_CHAT_BODY = frozenset({"max_completion_tokens", "frequency_penalty", "presence_penalty", "response_format", "n"})
_ANTHROPIC_BLOCKS = frozenset(
    {"thinking", "redacted_thinking", "image", "document", "search_result", "container_upload", "compaction"}
)
_RESPONSES_BLOCKS = frozenset({"input_text", "output_text", "input_image", "input_file"})
_OPENAI_MODELS = ("gpt", "chatgpt", "o1", "o3", "o4")
_KNOWN_ELSE = {
    "session_meta": "a Codex rollout",
    "response_item": "a Codex rollout",
    "session": "a pi session",
}


def detect(loaded: Loaded, prefer: str | None = None) -> str:
    """The name of the format. Where several fit (messages of text alone), ``prefer`` decides, else the model.

    Raises UnknownFormat that says what was seen.
    """
    document = [line.value for line in loaded.lines] if loaded.lines else loaded.document
    found = seen = None
    if isinstance(document, list):
        objects = [item for item in document if isinstance(item, dict)]
        found = _lines(objects)
        if found is None and (not document or any(_is_message(item, bool(loaded.lines)) for item in objects)):
            found = _messages(document, {}, prefer)
        seen = _seen(objects) if objects else f"a list of {_kinds(document)}"
    elif isinstance(document, dict):
        found = _body(document, prefer) or _lines([document])
        seen = f"an object with {_names(document)}"
    if found is None:
        raise UnknownFormat(
            f"no known format: {seen or f'one {type(document).__name__}'}",
            loaded.where,
            "name the format, or pass a request body, a list of messages, or a session file",
        )
    return found


def _is_message(item: dict[str, Any], line: bool) -> bool:
    """Whether it may be a message or, where it is not a line of a file, an item of OpenAI Responses."""
    return "role" in item or "parts" in item or ("type" in item and not line)


def _body(body: dict[str, Any], prefer: str | None) -> str | None:
    version = body.get("schema_version")
    if isinstance(body.get("steps"), list) and ("agent" in body or str(version).startswith("ATIF")):
        return "atif"
    if "contents" in body:
        return "gemini"
    if isinstance(body.get("messages"), list):
        return _messages(body["messages"], body, prefer)
    if isinstance(body.get("input"), list | str):
        return "openai_responses"
    return None


def _lines(lines: Iterable[dict[str, Any]]) -> str | None:
    """The kind of session file by the first line that tells."""
    for line in lines:
        kind = line.get("type")
        if not isinstance(kind, str):
            continue
        if _SESSION_KEYS & line.keys() and "session_id" not in line:
            return "claude_code"
        if kind in _STREAM_TYPES and _STREAM_KEYS & line.keys():
            return "claude_stream"
        if kind in ("assistant", "user") and isinstance(line.get("message"), dict):
            return "claude_stream"
    return None


def _messages(items: list[Any], body: dict[str, Any], prefer: str | None) -> str:
    """The wire of a list of messages, by the first thing in it that only one wire has."""
    for item in items:
        if isinstance(item, dict) and (found := _message(item)) is not None:
            return found
    tools = [tool for tool in _list(body, "tools") if isinstance(tool, dict)]
    if "system" in body or any("input_schema" in tool for tool in tools):
        return "anthropic"
    if _CHAT_BODY & body.keys() or any("function" in tool for tool in tools):
        return "openai_chat"
    if items and isinstance(items[0], dict) and items[0].get("role") == "system":
        return "openai_chat"  # Anthropic's lists begin with the user, Responses has instructions
    if prefer == "openai_responses" and not body:
        return prefer
    if prefer is not None:  # gateways to other providers take lists in the form of Chat Completions
        return "anthropic" if prefer == "anthropic" else "openai_chat"
    model = str(body.get("model", "")).rpartition("/")[2]
    return "openai_chat" if model.startswith(_OPENAI_MODELS) else "anthropic"


def _message(item: dict[str, Any]) -> str | None:
    if "parts" in item or item.get("role") == "model":
        return "gemini"
    if "role" not in item:
        return "openai_responses" if isinstance(item.get("type"), str) else None
    if (item["role"] in _CHAT_ROLES and item.get("type") != "message") or _CHAT_KEYS & item.keys():
        return "openai_chat"
    blocks = [block for block in _list(item, "content") if isinstance(block, dict)]
    kinds = {str(block.get("type")) for block in blocks}
    if kinds & _RESPONSES_BLOCKS:
        return "openai_responses"
    if kinds & _CHAT_BLOCKS:
        return "openai_chat"
    if kinds & _ANTHROPIC_BLOCKS or any(kind.endswith(("tool_use", "tool_result")) for kind in kinds):
        return "anthropic"
    if item.get("type") == "message":
        return "openai_responses"
    if item.get("content") is None:
        return "openai_chat"
    return "anthropic" if any("cache_control" in block for block in blocks) else None


def _list(item: dict[str, Any], key: str) -> list[Any]:
    value = item.get(key)
    return value if isinstance(value, list) else []


def _seen(objects: list[dict[str, Any]]) -> str:
    """A list or lines of objects, by their types."""
    kinds = [str(item["type"]) for item in objects if "type" in item]
    for kind in kinds:
        if kind in _KNOWN_ELSE:
            return f"{_KNOWN_ELSE[kind]}, which no reader here takes"
    if kinds:
        return f"objects of type {', '.join(list(dict.fromkeys(kinds))[:5])}"
    return f"a list of objects with {_names(objects[0])}"


def _names(item: dict[str, Any]) -> str:
    return ", ".join(f'"{key}"' for key in list(item)[:6]) or "no fields"


def _kinds(items: list[Any]) -> str:
    return ", ".join(sorted({type(item).__name__ for item in items}))
