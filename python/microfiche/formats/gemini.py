"""Gemini contents: https://ai.google.dev/api/caching#Content

Fields are read in both spellings (``inlineData``, ``inline_data``); what came in one goes out in it.
"""

from __future__ import annotations

from collections import Counter, deque
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

WIRE = "gemini"
LIST_KEY = "contents"
_ROLES: dict[str, Role] = {"user": "user", "model": "assistant", "function": "user", "system": "system"}
_WORDS: dict[str, str] = {"assistant": "model"}
_SYSTEM = ("systemInstruction", "system_instruction")
_CONFIG = ("generationConfig", "generation_config")
_RESOLUTION = ("mediaResolution", "media_resolution")
_INLINE = ("inlineData", "inline_data")
_FILE = ("fileData", "file_data")
_CALL = ("functionCall", "function_call")
_RESPONSE = ("functionResponse", "function_response")
_MIME = ("mimeType", "mime_type")
_URI = ("fileUri", "file_uri")
_SIGNATURE = ("thoughtSignature", "thought_signature")


def _key(item: Any, names: tuple[str, ...]) -> str | None:
    """The spelling of a field that the object has."""
    return next((name for name in names if name in item), None) if isinstance(item, dict) else None


def _get(item: Any, names: tuple[str, ...]) -> Any:
    key = _key(item, names)
    return item[key] if key is not None else None


def read(source: Any) -> History:
    """Read a request body or a bare list of contents; responses and a user's words become two messages.

    A call without an id gets one of this library's own, which is not written.
    """
    items, body, bare = common.open_body(source, LIST_KEY, WIRE)
    reader = _Reader()
    return History(
        messages=[message for at, item in enumerate(items) for message in reader.message(item, f"contents[{at}]")],
        format=WIRE,
        wire=WIRE,
        system=_system(body),
        tools=common.take_tools(body),
        body=body,
        bare=bare,
        model=common.model_of(body),
    )


def _system(body: dict[str, Any]) -> Message | None:
    """The system instruction; its message has as native the field's spelling and the content's envelope."""
    key = _key(body, _SYSTEM)
    if key is None:
        return None
    match body[key]:
        case str(text):
            del body[key]
            return Message("system", (Text(text),), native=(key, {}))
        case {"parts": list(listed)}:
            envelope = common.without(body.pop(key), "parts")
            parts = tuple(_Reader().part(part, "system", "") for part in listed)
            return Message("system", parts, native=(key, envelope))
    return None


class _Reader:
    def __init__(self) -> None:
        self.answered: set[str] = set()
        self.waiting: dict[str, deque[str]] = {}  # ids of the last answer's calls by name, in order
        self.answering = False

    def message(self, item: Any, where: str) -> list[Message]:
        if isinstance(item, str):  # the official client takes strings
            return [Message("user", (Text(item),), native=item)]
        item = common.as_object(item, where)
        role = common.role_of(item, _ROLES)
        listed = item.get("parts")
        given = listed if isinstance(listed, list) else []
        if (role == "assistant") is not self.answering:
            self.answering = role == "assistant"
            if self.answering:
                self.waiting.clear()
        place = where.removeprefix("contents[").removesuffix("]")
        parts = tuple(self.part(part, role, f"call_{place}_{at}") for at, part in enumerate(given))
        envelope = common.without(item, "parts") if parts else item
        return common.split(role, parts, envelope)

    def part(self, part: Any, role: Role, key: str) -> Part:
        signed = bool(_get(part, _SIGNATURE))
        match part:
            case {"text": str(text), "thought": True}:
                return Reasoning(text, signed, len(text), native=part)
            case {"text": str(text)}:
                return Text(text, native=part)
        if role == "assistant" and _is_named(call := _get(part, _CALL)):
            return self.call(call, part, key)
        if role == "user" and _is_named(response := _get(part, _RESPONSE)):
            return self.result(response, part)
        return _media(part, "user")

    def call(self, call: dict[str, Any], part: dict[str, Any], key: str) -> ToolCall:
        arguments = common.arguments_text(call.get("args") or {})
        made = ToolCall(call.get("id") or key, call["name"], arguments, native=part)
        self.waiting.setdefault(made.name, deque()).append(made.id)
        return made

    def result(self, response: dict[str, Any], part: dict[str, Any]) -> ToolResult:
        """A response without an id answers the first call of its name that no other has answered."""
        key, name = response.get("id") or "", response["name"]
        waiting = self.waiting.get(name, deque())
        while not key and waiting:
            first = waiting.popleft()
            key = "" if first in self.answered else first
        self.answered.add(key)
        parts, error = _response(response)
        part, flag = common.take_flag(part)
        return ToolResult(key, parts, error, name, native=part, uneventful=flag)


def _is_named(given: Any) -> bool:
    """Whether a call or response has what it is known by: a name, and an id that is a string if there is one."""
    return isinstance(given, dict) and isinstance(given.get("name"), str) and isinstance(given.get("id") or "", str)


def _response(response: dict[str, Any]) -> tuple[tuple[Text | Image | Opaque, ...], bool]:
    """What a response holds and whether it is an error.

    Its object is free; ``output`` and ``error`` are the documented names. An object with one of
    these (or ``result``) as its only text is that text; any other is its JSON.
    """
    given = response.get("response")
    error = isinstance(given, dict) and bool(given.get("error"))
    text: tuple[Text, ...]
    match list(given.items()) if isinstance(given, dict) else given:
        case [("output" | "result" | "error", str(said))]:
            text = (Text(said),)
        case _:
            text = (Text(common.arguments_text(given)),) if given else ()
    media = response.get("parts")
    return (*text, *(_media(each, "tool") for each in (media if isinstance(media, list) else []))), error


def _media(part: Any, owner: Literal["user", "tool"]) -> Image | Opaque:
    inline, file = _get(part, _INLINE), _get(part, _FILE)
    mime = _get(inline if inline is not None else file, _MIME)
    if isinstance(mime, str) and mime.startswith("image/"):
        data = encoded.decode64(inline.get("data")) if isinstance(inline, dict) else None
        if data is not None:
            return common.picture(data, mime, owner, part)
        if isinstance(uri := _get(file, _URI), str):
            return Image(None, mime, owner=owner, url=uri, native=part)
    fields = part if isinstance(part, dict) else {}
    kind = next((key for key in fields if key not in _SIGNATURE), "signature" if fields else "part")
    held = fields.get(kind)
    pair = held.get("id") if isinstance(held, dict) else None
    return Opaque(kind, part, pair=pair if isinstance(pair, str) else None)


def write(history: History) -> tuple[dict[str, Any], list[Note]]:
    """Write a request body. Native objects in the history are taken to be of this wire.

    With a page in it the media resolution is high, unless the request says another.
    """
    body = common.open_request(history)
    counts: Counter[str] = Counter()
    if history.system is not None:
        key, content = _write_system(history.system, counts)
        body[key] = content
    if history.tools is not None:
        body["tools"] = history.tools
    if common.has_pages(history.messages):
        key = _key(body, _CONFIG) or _CONFIG[0]
        config = body.get(key) or {}
        if not _get(config, _RESOLUTION):
            name = _RESOLUTION[_CONFIG.index(key)]
            body[key] = {**config, name: "MEDIA_RESOLUTION_HIGH"}
    body[LIST_KEY] = _write_messages(history.messages, counts)
    return body, common.counted("write", counts)


def _write_system(system: Message, counts: Counter[str]) -> tuple[str, Any]:
    key, envelope = system.native if isinstance(system.native, tuple) else (_SYSTEM[0], {})
    text = common.lone_text(system.parts)
    if text is not None and isinstance(system.native, tuple):
        return key, text
    return key, {**envelope, "parts": _write_parts(system.parts, counts)}


def _write_messages(messages: list[Message], counts: Counter[str]) -> list[Any]:
    out: list[Any] = []
    before: Message | None = None
    for message in messages:
        if message.joined and before is not None and before.role == "tool":
            rest = _write_parts(message.parts, counts)
            out[-1]["parts"] = common.weave(out[-1]["parts"], rest, message.native)
        else:
            out.append(_write_message(message, counts))
        before = message
    return out


def _write_message(message: Message, counts: Counter[str]) -> Any:
    text = common.lone_text(message.parts)
    if isinstance(message.native, str) and text is not None:
        return text
    envelope = message.native
    if not isinstance(envelope, dict):
        envelope = {"role": _WORDS.get(message.role, "user")}
        if message.role == "system":
            counts["system messages inside the list written as the user's: the wire has none there"] += 1
    if not message.parts and isinstance(message.native, dict):  # what came without parts stays as it came
        return dict(envelope)
    return {**envelope, "parts": _write_parts(message.parts, counts)}


def _write_parts(parts: tuple[Part, ...], counts: Counter[str]) -> list[Any]:
    out = []
    for part in common.shown(parts):
        match part:
            case Text():
                out.append({**common.fields(part.native), "text": part.text})
            case Image():
                if (written := _write_image(part, counts)) is not None:
                    out.append(written)
            case ToolCall():
                out.append(_write_call(part))
            case ToolResult():
                out.append(_write_result(part, counts))
            case _:
                out.append(part.native)
    return out


def _write_image(image: Image, counts: Counter[str]) -> Any:
    if image.native is not None:
        return image.native
    if image.data is not None:
        return {"inlineData": {"mimeType": image.media_type, "data": encoded.encode64(image.data)}}
    if image.url is not None:
        return {"fileData": {"mimeType": image.media_type, "fileUri": image.url}}
    counts["images left out: named by a file id, which this wire does not take"] += 1
    return None


def _write_call(call: ToolCall) -> dict[str, Any]:
    native = call.native or {}
    key = _key(native, _CALL) or _CALL[0]
    before = native.get(key, {"id": call.id})
    inner = {**before, "name": call.name}
    if before.get("id"):
        inner["id"] = call.id
    if call.native is None or common.arguments_text(before.get("args") or {}) != call.arguments:
        inner["args"] = common.arguments_object(call.arguments)
    return {**native, key: inner}


def _write_result(result: ToolResult, counts: Counter[str]) -> dict[str, Any]:
    native = result.native or {}
    key = _key(native, _RESPONSE) or _RESPONSE[0]
    before = native.get(key, {"id": result.call_id})
    inner = {**before, "name": result.name} if result.name else dict(before)
    if before.get("id"):
        inner["id"] = result.call_id
    parts, error = _response(before)
    if result.native is None or parts != result.parts or error != result.error:
        inner["response"] = {"error" if result.error else "output": result.text}
        media = _write_parts(tuple(part for part in result.parts if not isinstance(part, Text)), counts)
        inner.pop("parts", None)
        if media:
            inner["parts"] = media
    return {**native, key: inner}
