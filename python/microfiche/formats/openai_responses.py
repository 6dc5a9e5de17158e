"""OpenAI Responses: https://platform.openai.com/docs/api-reference/responses"""

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

WIRE = "openai_responses"
LIST_KEY = "input"
_ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
}
# What a call is called with, where it has no "arguments" (shell, patch, computer and program calls).
_BESIDE_ARGUMENTS = frozenset({"type", "id", "call_id", "status", "caller", "created_by", "name"})
_TEXTS = ("input_text", "output_text", "text")


# The native object of a part of an assistant's message item is plain data, so that a record can keep it: a tuple of
# this mark, the item without its content, the part (None where the content is a string), and whether it opens the item.
_SAID = "said"


def read(source: Any) -> History:
    """Read a request body or a bare list of items.

    What the assistant's side gave in a row (reasoning, calls, messages, and items of unknown kind)
    is one assistant message; each part has its item as native. Outputs make a tool message.
    """
    whole = source.get(LIST_KEY) if isinstance(source, dict) else None
    if isinstance(whole, str):
        # A prompt alone: its message has the string's place as native, so that it is written as a string.
        body, bare = common.without(source, LIST_KEY), False
        messages = [Message("user", (Text(whole),), native=LIST_KEY)]
    else:
        items, body, bare = common.open_body(source, LIST_KEY, WIRE)
        messages = _Reader().messages(items)
    system = None
    if isinstance(body.get("instructions"), str):
        system = Message("system", (Text(body.pop("instructions")),))
    return History(
        messages=messages,
        format=WIRE,
        wire=WIRE,
        system=system,
        tools=common.take_tools(body),
        body=body,
        bare=bare,
        model=common.model_of(body),
    )


class _Reader:
    def __init__(self) -> None:
        self.names: dict[str, str] = {}

    def messages(self, items: list[Any]) -> list[Message]:
        groups: list[tuple[Role, list[Part], Any]] = []
        for at, item in enumerate(items):
            role, parts, native = self.item(common.as_object(item, f"input[{at}]"))
            if groups and groups[-1][0] == role and role in ("assistant", "tool"):
                groups[-1][1].extend(parts)
            else:
                groups.append((role, parts, native))
        return [Message(role, tuple(parts), native=native) for role, parts, native in groups]

    def item(self, item: dict[str, Any]) -> tuple[Role, list[Part], Any]:
        kind = item.get("type")
        if kind in (None, "message") and "role" in item:
            return self.message(item)
        call = item.get("call_id")
        key = call if isinstance(call, str) else None
        match item:
            case {"type": "reasoning"}:
                return "assistant", [_reasoning(item)], None
            case {"type": "function_call", "name": str(name), "arguments": str(arguments)} if key:
                return "assistant", [self.call(key, name, arguments, item)], None
            case {"type": "custom_tool_call", "name": str(name), "input": str(given)} if key:
                return "assistant", [self.call(key, name, given, item)], None
            case {"type": str(kind)} if key and kind.endswith("_output"):
                item, flag = common.take_flag(item)
                name, parts = self.names.get(key, ""), _output(item.get("output"))
                return "tool", [ToolResult(key, parts, name=name, native=item, uneventful=flag)], None
            case {"type": str(kind)} if key and kind not in ("function_call", "custom_tool_call"):
                given = common.arguments_text({k: v for k, v in item.items() if k not in _BESIDE_ARGUMENTS})
                return "assistant", [self.call(key, kind.removesuffix("_call"), given, item)], None
        pair = key or item.get("approval_request_id") or item.get("id")
        opaque = Opaque(common.kind_of(item), item, pair=pair if isinstance(pair, str) else None)
        return "assistant", [opaque], None

    def message(self, item: dict[str, Any]) -> tuple[Role, list[Part], Any]:
        role = common.role_of(item, _ROLES)
        parts: list[Part] = list(_content(item.get("content"), "user"))
        if role != "assistant":
            return role, parts, common.without(item, "content") if parts else item
        if not parts:
            return role, [Opaque("message", item)], None
        envelope = common.without(item, "content")
        said: list[Part] = []
        for part in parts:
            native = (_SAID, envelope, part.native, not said)
            match part:
                case Text():
                    said.append(Text(part.text, native=native))
                case Opaque():
                    said.append(Opaque(part.kind, native, pair=part.pair))
                case Image():
                    said.append(Opaque("image", native))
        return role, said, None

    def call(self, key: str, name: str, arguments: str, item: dict[str, Any]) -> ToolCall:
        self.names[key] = name
        return ToolCall(key, name, arguments, native=item)


def _reasoning(item: dict[str, Any]) -> Reasoning:
    texts = [
        part["text"]
        for key in ("summary", "content")
        for part in (item[key] if isinstance(item.get(key), list) else [])
        if isinstance(part, dict) and isinstance(part.get("text"), str)
    ]
    sealed = item.get("encrypted_content")
    text = "\n".join(texts)
    size = len(text) or (len(sealed) if isinstance(sealed, str) else 0)
    return Reasoning(text, bool(sealed), size, native=item)


def _output(output: Any) -> tuple[Text | Image | Opaque, ...]:
    """A string or a list of parts; anything else (a computer's screenshot, a shell's records) stays whole."""
    if isinstance(output, str | list):
        return _content(output, "tool")
    return () if output is None else (Opaque("output", output),)


def _content(content: Any, owner: Literal["user", "tool"]) -> tuple[Text | Image | Opaque, ...]:
    if isinstance(content, str):
        return (Text(content),)
    return tuple(_part(part, owner) for part in content) if isinstance(content, list) else ()


def _part(part: Any, owner: Literal["user", "tool"]) -> Text | Image | Opaque:
    match part:
        case {"type": str(kind), "text": str(text)} if kind in _TEXTS:
            return Text(text, native=part)
        case {"type": "input_image", "image_url": str(url)}:
            if (found := common.open_data_url(url)) is not None:
                return common.picture(found[1], found[0], owner, part)
            if not url.startswith("data:"):
                return Image(None, owner=owner, url=url, native=part)
        case {"type": "input_image", "file_id": str(file_id)}:
            return Image(None, owner=owner, file_id=file_id, native=part)
    return Opaque(common.kind_of(part), part)


def write(history: History) -> tuple[dict[str, Any], list[Note]]:
    """Write a request body. Native objects in the history are taken to be of this wire.

    With a page in it the server must not cut the context by itself: ``truncation`` is disabled.
    """
    body = common.open_request(history)
    counts: Counter[str] = Counter()
    if history.system is not None:
        body["instructions"] = history.system.text
    if history.tools is not None:
        body["tools"] = history.tools
    if common.has_pages(history.messages):
        body["truncation"] = "disabled"
    match history.messages:
        case [Message(native="input", parts=parts)] if (text := common.lone_text(parts)) is not None:
            body[LIST_KEY] = text
        case _:
            body[LIST_KEY] = [item for each in history.messages for item in _write_message(each, counts)]
    return body, common.counted("write", counts)


def _write_message(message: Message, counts: Counter[str]) -> list[Any]:
    if message.role == "tool":
        return [_write_result(result, counts) for result in message.results]
    if message.role == "assistant":
        return _write_answer(message, counts)
    head = common.envelope(message, _ROLES, message.role)
    if message.parts or not isinstance(message.native, dict):
        head["content"] = _write_content(message.parts)
    return [head]


def _write_answer(message: Message, counts: Counter[str]) -> list[Any]:
    out: list[Any] = []
    open_item = None  # the message item that the last part belongs to
    loose = False  # an item whose reasoning was left out is not known to the server by its id
    for part in message.parts:
        loose = loose or part == Reasoning()
        if not common.shown((part,)):
            continue
        native = _without_id(part.native) if loose else part.native
        match part:
            case Text() | Opaque() if isinstance(native, tuple) and native[0] == _SAID:
                _, item, inner, opens = native
                content: Any = part.text if isinstance(part, Text) else None
                if inner is not None:
                    content = [{**inner, "text": content} if content is not None else inner]
                if open_item == item and not opens:
                    out[-1]["content"] += content
                else:
                    out.append({**item, "content": content})
                open_item = item
                continue
            case Text():
                out.append({"role": "assistant", "content": part.text})
            case ToolCall():
                out.append(_write_call(part, native))
            case Image() | ToolResult():
                counts["parts left out that an answer cannot hold here"] += 1
                continue
            case _:
                out.append(native)
        open_item = None
    return out


def _without_id(native: Any) -> Any:
    """The native object of a part of an answer, not known by an id any more."""
    match native:
        case (said, dict(item), inner, opens):
            return said, common.without(item, "id"), inner, opens
        case {"type": "function_call" | "custom_tool_call"}:
            return common.without(native, "id")
    return native


def _write_call(call: ToolCall, native: Any) -> dict[str, Any]:
    native = native or {"type": "function_call"}
    match native.get("type"):
        case "function_call":
            return {**native, "call_id": call.id, "name": call.name, "arguments": call.arguments}
        case "custom_tool_call":
            return {**native, "call_id": call.id, "name": call.name, "input": call.arguments}
    return {**native, "call_id": call.id}


def _write_result(result: ToolResult, counts: Counter[str]) -> dict[str, Any]:
    native = result.native or {"type": "function_call_output"}
    item = {**native, "call_id": result.call_id}
    match result.parts:
        case (Opaque(kind="output", native=output),):
            item["output"] = output
        case ():
            if native.get("output") not in ([], None) or result.native is None:
                item["output"] = ""
        case parts:
            item["output"] = _write_content(parts)
    if result.error and result.native is None:
        counts["error flags of tool results left out: the wire has none"] += 1
    return item


def _write_content(parts: tuple[Part, ...]) -> str | list[Any]:
    text = common.lone_text(parts)
    return text if text is not None else [_write_part(part) for part in common.shown(parts)]


def _write_part(part: Part) -> Any:
    match part:
        case Text():
            return {"type": "input_text", **common.fields(part.native), "text": part.text}
        case Image() if part.native is None:
            source = {"file_id": part.file_id} if part.file_id else {"image_url": common.data_url(part)}
            return {"type": "input_image", "detail": "original" if part.owner == "page" else "auto", **source}
    return part.native
