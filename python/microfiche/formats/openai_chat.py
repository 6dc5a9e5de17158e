"""OpenAI Chat Completions: https://platform.openai.com/docs/api-reference/chat"""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

from ..messages import (
    History,
    Image,
    Message,
    Note,
    Opaque,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from . import common

WIRE = "openai_chat"
LIST_KEY = "messages"
_ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
# Where servers of this wire put reasoning: as plain text, or as signed blocks.
_PLAIN_REASONING = ("reasoning_content", "reasoning")
_SIGNED_REASONING = ("thinking_blocks", "reasoning_details")
_REASONING = _PLAIN_REASONING + _SIGNED_REASONING


def read(source: Any) -> History:
    """Read a request body or a bare list of messages. System and developer messages stay in the list."""
    items, body, bare = common.open_body(source, LIST_KEY, WIRE)
    reader = _Reader()
    return History(
        messages=[reader.message(item, f"messages[{at}]") for at, item in enumerate(items)],
        format=WIRE,
        wire=WIRE,
        tools=common.take_tools(body),
        body=body,
        bare=bare,
        model=common.model_of(body),
    )


class _Reader:
    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.legacy = 0

    def message(self, item: Any, where: str) -> Message:
        item = common.as_object(item, where)
        role = common.role_of(item, _ROLES)
        parts = _content(item.get("content"), "tool" if role == "tool" else "user")
        envelope = common.without(item, "content") if parts else item
        if role == "tool":
            return Message("tool", (self.result(envelope, parts),))
        if role != "assistant":
            return Message(role, parts, native=envelope)
        reasoning, calls = _reasoning(item), self.calls(item)
        taken = [key for part in reasoning for key in part.native]
        taken += [key for key in ("tool_calls", "function_call") if item.get(key)] if calls else []
        return Message("assistant", (*reasoning, *parts, *calls), native=common.without(envelope, *taken))

    def calls(self, item: dict[str, Any]) -> list[ToolCall | Opaque]:
        calls: list[ToolCall | Opaque] = []
        listed = item.get("tool_calls")
        for call in listed if isinstance(listed, list) else []:
            match call:
                case {"id": str(key), "function": {"name": str(name), "arguments": str(arguments)}}:
                    calls.append(ToolCall(key, name, arguments, native=call))
                case {"id": str(key), "custom": {"name": str(name), "input": str(given)}}:
                    calls.append(ToolCall(key, name, given, native=call))
                case _:
                    pair = call.get("id") if isinstance(call, dict) else None
                    calls.append(Opaque("tool_call", call, pair=pair if isinstance(pair, str) else None))
        match item.get("function_call"):
            case {"name": str(name), "arguments": str(arguments)} as legacy:
                self.legacy += 1
                calls.append(ToolCall(_legacy_id(self.legacy), name, arguments, native={"function_call": legacy}))
            case dict() as legacy:
                calls.append(Opaque("function_call", {"function_call": legacy}))
        self.names |= {call.id: call.name for call in calls if isinstance(call, ToolCall)}
        return calls

    def result(self, envelope: dict[str, Any], parts: tuple[Text | Image | Opaque, ...]) -> ToolResult:
        """The native object of a result is its message without the content."""
        envelope, flag = common.take_flag(envelope)
        call = envelope.get("tool_call_id")
        if envelope.get("role") == "function":
            call = _legacy_id(self.legacy)
        call = call if isinstance(call, str) else ""
        return ToolResult(call, parts, name=self.names.get(call, ""), native=envelope, uneventful=flag)


def _legacy_id(number: int) -> str:
    """Calls of the old ``function_call`` form have no id: the result belongs to the call before it."""
    return f"function_call_{number}"


def _reasoning(item: dict[str, Any]) -> tuple[Reasoning, ...]:
    native = {key: item[key] for key in _REASONING if item.get(key)}
    if not native:
        return ()
    text = next((native[key] for key in _PLAIN_REASONING if isinstance(native.get(key), str)), "")
    return (Reasoning(text, any(key in native for key in _SIGNED_REASONING), len(text), native=native),)


def _content(content: Any, owner: Literal["user", "tool"]) -> tuple[Text | Image | Opaque, ...]:
    if isinstance(content, str):
        return (Text(content),)
    return tuple(_part(part, owner) for part in content) if isinstance(content, list) else ()


def _part(part: Any, owner: Literal["user", "tool"]) -> Text | Image | Opaque:
    match part:
        case {"type": "text", "text": str(text)}:
            return Text(text, native=part)
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            if (found := common.open_data_url(url)) is not None:
                return common.picture(found[1], found[0], owner, part)
            if not url.startswith("data:"):
                return Image(None, owner=owner, url=url, native=part)
    return Opaque(common.kind_of(part), part)


def write(history: History) -> tuple[dict[str, Any], list[Note]]:
    """Write a request body. Native objects in the history are taken to be of this wire.

    A tool's message holds text alone here: its images follow in a user message behind the batch.
    """
    body = common.open_request(history)
    if history.tools is not None:
        body["tools"] = history.tools
    counts: Counter[str] = Counter()
    system = [history.system] if history.system is not None else []
    body[LIST_KEY] = _write_messages(system + history.messages, counts)
    return body, common.counted("write", counts)


def _write_messages(messages: list[Message], counts: Counter[str]) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    moved: list[Any] = []
    for message in messages:
        if message.role != "tool" and moved:
            out.append({"role": "user", "content": moved})
            moved = []
        if message.role == "tool":
            for result in message.results:
                out.append(_write_result(result, moved, counts))
        elif message.role == "assistant":
            out.append(_write_answer(message, counts))
        else:
            head = common.envelope(message, _ROLES, message.role)
            if not isinstance(message.native, dict):
                head["content"] = ""
            _set_content(head, message.parts, counts)
            out.append(head)
    if moved:
        out.append({"role": "user", "content": moved})
    return out


def _set_content(head: dict[str, Any], parts: tuple[Part, ...], counts: Counter[str]) -> None:
    """Content as a string where it was one or is new, else as a list; without parts what came stays."""
    text = common.lone_text(parts)
    if text is not None:
        head["content"] = text
    elif parts:
        head["content"] = _write_parts(parts, counts)


def _write_answer(message: Message, counts: Counter[str]) -> dict[str, Any]:
    head = {"role": "assistant", **(message.native or {"content": None})}
    calls: list[Any] = []
    content: list[Part] = []
    for part in common.shown(message.parts):
        match part:
            case ToolCall():
                _write_call(part, head, calls)
            case Opaque(kind="tool_call"):
                calls.append(part.native)
            case Opaque(kind="function_call") | Reasoning():
                head |= part.native
            case _:
                content.append(part)
    _set_content(head, tuple(content), counts)
    if calls:
        head["tool_calls"] = calls
    return head


def _write_call(call: ToolCall, head: dict[str, Any], calls: list[Any]) -> None:
    native = call.native or {"type": "function"}
    if "function_call" in native:
        head["function_call"] = {**native["function_call"], "name": call.name, "arguments": call.arguments}
    elif "custom" in native:
        custom = {**native["custom"], "name": call.name, "input": call.arguments}
        calls.append({**native, "id": call.id, "custom": custom})
    else:
        function = {**native.get("function", {}), "name": call.name, "arguments": call.arguments}
        calls.append({**native, "id": call.id, "function": function})


def _write_result(result: ToolResult, moved: list[Any], counts: Counter[str]) -> dict[str, Any]:
    head = dict(result.native or {"role": "tool"})
    if not result.native or (result.call_id and head.get("role") != "function"):
        head["tool_call_id"] = result.call_id
    images = tuple(part for part in result.parts if isinstance(part, Image) and not part.native)
    if images:
        name = f"{result.name} {result.call_id}".strip()
        moved.append({"type": "text", "text": f"[from the result of {name}]"})
        moved += _write_parts(images, counts)
        counts["images of tool results moved behind the batch, into a user message"] += len(images)
    if result.error and not result.native:
        counts["error flags of tool results left out: the wire has none"] += 1
    kept = (part for part in result.parts if not isinstance(part, Image) or part.native)
    _set_content(head, tuple(kept), counts)
    if "content" not in head and (result.parts or not result.native):
        head["content"] = ""
    return head


def _write_parts(parts: tuple[Part, ...], counts: Counter[str]) -> list[Any]:
    out: list[Any] = []
    for part in common.shown(parts):
        match part:
            case Text():
                out.append({"type": "text", **common.fields(part.native), "text": part.text})
            case Image():
                url = None if part.native else common.data_url(part)
                if part.native:
                    out.append(part.native)
                elif url is None:
                    counts["images left out: named by a file id, which this wire does not take"] += 1
                else:
                    detail = {"detail": "original"} if part.owner == "page" else {}
                    out.append({"type": "image_url", "image_url": {"url": url, **detail}})
            case Opaque():
                out.append(part.native)
    return out
