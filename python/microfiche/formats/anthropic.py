"""Anthropic Messages: https://docs.claude.com/en/api/messages"""

from __future__ import annotations

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
from . import common, encoded

WIRE = "anthropic"
LIST_KEY = "messages"
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
_EPHEMERAL = {"type": "ephemeral"}
"""The mark that we ask for ourselves, told from the caller's own by being this very object."""


def read(source: Any) -> History:
    """Read a request body or a bare list of messages."""
    items, body, bare = common.open_body(source, LIST_KEY, WIRE)
    system = None
    if isinstance(body.get("system"), str | list):
        system = Message("system", _Reader().content(body.pop("system"), "system"))
    return History(
        messages=read_messages(items),
        format=WIRE,
        wire=WIRE,
        system=system,
        tools=common.take_tools(body),
        body=body,
        bare=bare,
        model=common.model_of(body),
    )


def read_messages(items: list[Any]) -> list[Message]:
    """Read a list of native messages; results and a user's words in one message become two."""
    reader = _Reader()
    return [message for at, item in enumerate(items) for message in reader.message(item, f"messages[{at}]")]


class _Reader:
    def __init__(self) -> None:
        self.names: dict[str, str] = {}

    def message(self, item: Any, where: str) -> list[Message]:
        item = common.as_object(item, where)
        role = common.role_of(item, _ROLES)
        content = item.get("content")
        parts = self.content(content, role) if isinstance(content, str | list) else ()
        envelope = common.without(item, "content") if parts else item
        return common.split(role, parts, envelope)

    def content(self, content: Any, role: Role) -> tuple[Part, ...]:
        if isinstance(content, str):
            return (Text(content),)
        return tuple(self.block(block, role) for block in content)

    def block(self, block: Any, role: Role) -> Part:
        kind = common.kind_of(block)
        match kind, block:
            case "text", {"text": str(text)}:
                return Text(text, native=block)
            case "image", {"source": dict()}:
                return _image(block, "user")
            case "thinking", {"thinking": str(text)}:
                signature = block.get("signature")
                size = len(text) or (len(signature) if isinstance(signature, str) else 0)
                return Reasoning(text, bool(signature), size, native=block)
            case "redacted_thinking", {"data": str(data)}:
                return Reasoning("", True, len(data), native=block)
            case "tool_use", {"id": str(call), "name": str(name)} if role == "assistant":
                self.names[call] = name
                return ToolCall(call, name, common.arguments_text(block.get("input", {})), native=block)
            case "tool_result", {"tool_use_id": str(call)} if role == "user":
                block, flag = common.take_flag(block)
                error, name = bool(block.get("is_error")), self.names.get(call, "")
                return ToolResult(call, _result(block), error, name, native=block, uneventful=flag)
        return _opaque(kind, block)


def _result(block: dict[str, Any]) -> tuple[Text | Image | Opaque, ...]:
    """What stands in a tool result."""
    content = block.get("content")
    if isinstance(content, str):
        return (Text(content),)
    return tuple(_result_part(each) for each in content) if isinstance(content, list) else ()


def _result_part(block: Any) -> Text | Image | Opaque:
    kind = common.kind_of(block)
    match kind, block:
        case "text", {"text": str(text)}:
            return Text(text, native=block)
        case "image", {"source": dict()}:
            return _image(block, "tool")
    return _opaque(kind, block)


def _opaque(kind: str, block: Any) -> Opaque:
    """A block carried through. Server tools pair by ``tool_use_id``, whatever their names."""
    pair = None
    if isinstance(block, dict):
        pair = block.get("tool_use_id") or (block.get("id") if kind.endswith("tool_use") else None)
    return Opaque(kind, block, pair=pair if isinstance(pair, str) else None)


def _image(block: dict[str, Any], owner: Literal["user", "tool"]) -> Image | Opaque:
    match block["source"]:
        case {"type": "base64", "data": data, **rest}:
            raw = encoded.decode64(data)
            if raw is not None:
                return common.picture(raw, rest.get("media_type"), owner, block)
        case {"type": "url", "url": str(url)}:
            return Image(None, owner=owner, url=url, native=block)
        case {"type": "file", "file_id": str(file_id)}:
            return Image(None, owner=owner, file_id=file_id, native=block)
    return _opaque("image", block)


def write(history: History) -> tuple[dict[str, Any], list[Note]]:
    """Write a request body. Native objects in the history are taken to be of this wire.

    Where a page bears a cache mark and there are more than four, the earliest of the caller's own go.
    """
    body = common.open_request(history)
    if history.system is not None:
        body["system"] = _write_content(history.system.parts)
    if history.tools is not None:
        body["tools"] = history.tools
    body[LIST_KEY] = write_messages(history.messages)
    taken = _settle_marks(body)
    return body, [Note("write", f"cache marks taken off to leave one for the pages ({taken})")] if taken else []


def marked(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The blocks that bear a cache mark, in the order in which they are processed: tools, system, messages."""
    listed = [body.get("tools"), body.get("system")]
    listed += [message.get("content") for message in body.get(LIST_KEY) or () if isinstance(message, dict)]
    found: list[dict[str, Any]] = []
    for block in (block for each in listed if isinstance(each, list) for block in each if isinstance(block, dict)):
        inner = block.get("content")
        parts = inner if isinstance(inner, list) else []
        found += [part for part in (*parts, block) if isinstance(part, dict) and part.get("cache_control") is not None]
    return found


def marks_left(body: dict[str, Any]) -> int:
    """How many blocks may bear a mark: four, one less where the body itself asks for one on the last of them."""
    return _MARKS - (body.get("cache_control") is not None)


def _settle_marks(body: dict[str, Any]) -> int:
    """Leave room for our cache marks, and let none of an hour follow them; how many of the caller's were taken off.

    The earliest go, those of messages before those of system and tools. "a ttl='1h' cache_control block must not come
    after a ttl='5m' cache_control block" (github.com/cnighswonger/claude-code-cache-fix/issues/44).
    """
    ours = [block for block in marked(body) if block["cache_control"] is _EPHEMERAL]
    if not ours:
        return 0
    for key in ("tools", "system"):
        if isinstance(body.get(key), list):
            body[key] = [dict(each) if isinstance(each, dict) else each for each in body[key]]
    marks = marked(body)
    before = {id(each) for key in ("tools", "system") if isinstance(body.get(key), list) for each in body[key]}
    free = [each for each in marks if each["cache_control"] is not _EPHEMERAL and each.get("type") in _FRESH]
    free = [each for each in free if id(each) not in before] + [each for each in marks if id(each) in before]
    spare = free[: max(len(marks) - marks_left(body), 0)]
    for block in spare:
        del block["cache_control"]
    longer = common.fields(body.get("cache_control")).get("ttl") == "1h"
    for block in reversed(marked(body)):
        if block["cache_control"] is _EPHEMERAL:
            block["cache_control"] = {**_EPHEMERAL, "ttl": "1h"} if longer else dict(_EPHEMERAL)
        longer = longer or common.fields(block["cache_control"]).get("ttl") == "1h"
    return len(spare)


_MARKS = 4
# Blocks that are written anew, so that nothing of the caller's is changed.
_FRESH = frozenset({"text", "image", "tool_use", "tool_result"})


def write_messages(messages: list[Message]) -> list[dict[str, Any]]:
    """Write a list of native messages; a joined message goes back into the one before it."""
    out: list[dict[str, Any]] = []
    before: Message | None = None
    for message in messages:
        if message.joined and before is not None and before.role == "tool":
            blocks = _write_blocks(message.parts)
            out[-1]["content"] = common.weave(out[-1]["content"], blocks, message.native)
        else:
            out.append(_write_message(message))
        before = message
    return out


def _write_message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        head = common.fields(message.native) or {"role": "user"}
        return {**head, "content": _write_blocks(message.parts)}
    head = common.envelope(message, _ROLES, message.role)
    if not message.parts and isinstance(message.native, dict):  # what came without parts stays as it came
        return head
    return {**head, "content": _write_content(message.parts)}


def _write_content(parts: tuple[Part, ...]) -> str | list[Any]:
    text = common.lone_text(parts)
    return text if text is not None else _write_blocks(parts)


def _write_blocks(parts: tuple[Part, ...]) -> list[Any]:
    return [_write_block(part) for part in common.shown(parts)]


def _write_block(part: Part) -> Any:
    match part:
        case Text():
            return _marked({"type": "text", **common.fields(part.native), "text": part.text}, part.mark)
        case Image():
            return _marked(dict(part.native) if part.native else _write_image(part), part.mark)
        case ToolCall():
            native = part.native or {"type": "tool_use"}
            block = {**native, "id": part.id, "name": part.name}
            if part.native is None or common.arguments_text(native.get("input", {})) != part.arguments:
                block["input"] = common.arguments_object(part.arguments)
            return block
        case ToolResult():
            return _write_result(part)
        case Reasoning() | Opaque():
            return part.native


def _write_result(part: ToolResult) -> dict[str, Any]:
    native = part.native or {"type": "tool_result"}
    block = {**native, "tool_use_id": part.call_id}
    if part.error != bool(native.get("is_error")):
        block["is_error"] = part.error
    if part.parts or isinstance(native.get("content"), str | list):
        block["content"] = _write_content(part.parts)
    return block


def _write_image(image: Image) -> dict[str, Any]:
    source: dict[str, Any]
    if image.data is not None:
        source = {"type": "base64", "media_type": image.media_type, "data": encoded.encode64(image.data)}
    elif image.url is not None:
        source = {"type": "url", "url": image.url}
    else:
        source = {"type": "file", "file_id": image.file_id}
    block: dict[str, Any] = {"type": "image", "source": source}
    if image.owner == "page":
        # A page that is scaled down cannot be read: better a refusal than a silent loss.
        block["transformations"] = {"oversized_image": "error"}
    return block


def _marked(block: dict[str, Any], mark: bool) -> dict[str, Any]:
    if mark and not block.get("cache_control"):
        block["cache_control"] = _EPHEMERAL
    return block
