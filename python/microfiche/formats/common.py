"""What the wires share: plain objects, arguments, base64, images, bodies and their lists."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from ..errors import BadInput
from ..messages import History, Image, Message, Note, Opaque, Part, Reasoning, Role, Text, ToolResult
from . import images
from .encoded import decode64, encode64

# How deep a client's object can stand in a body: list, message, content, block, its content, block.
_DEPTH = 8
_LEAVES = (str, int, float, bytes, type(None))


def plain(value: Any, depth: int = _DEPTH) -> Any:
    """The same value with objects of the official clients (those with ``model_dump``) as dicts and lists.

    What holds none of them comes back as the very same object.
    """
    if isinstance(value, _LEAVES) or depth == 0:
        return value
    if isinstance(value, dict):
        changed = {key: new for key, old in value.items() if (new := plain(old, depth - 1)) is not old}
        return {**value, **changed} if changed else value
    if isinstance(value, list | tuple):
        items = [plain(item, depth - 1) for item in value]
        if isinstance(value, list) and all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return items
    dump = getattr(value, "model_dump", None)
    if dump is None or isinstance(value, type):
        return value
    return dump(mode="json", exclude_unset=True, by_alias=True)


# Some item of a list has one of these fields, whatever else may be missing.
_TELLTALES = {"messages": ("role",), "contents": ("role", "parts"), "input": ("role", "type")}


def open_body(source: Any, key: str, wire: str) -> tuple[list[Any], dict[str, Any], bool]:
    """The list of messages, the other fields of the request, and whether the list came bare.

    Raises BadInput for what is neither, and for a list of objects of which none can be a message: read
    on, it would be a conversation of empty messages.
    """
    if isinstance(source, list):
        _expect_messages(source, key, wire)
        return source, {}, True
    if not isinstance(source, dict):
        raise BadInput(f"a {type(source).__name__} is neither a request body nor a list of messages", wire)
    items = source.get(key)
    if not isinstance(items, list):
        seen = "missing" if key not in source else f"a {type(items).__name__}"
        raise BadInput(f'"{key}" is {seen}', wire, f'pass a body with a list "{key}", or the list itself')
    _expect_messages(items, key, wire)
    return items, {name: value for name, value in source.items() if name != key}, False


def _expect_messages(items: list[Any], key: str, wire: str) -> None:
    telltales = _TELLTALES[key]
    if items and all(isinstance(item, dict) and not any(tell in item for tell in telltales) for item in items):
        seen = ", ".join(f'"{name}"' for name in list(items[0])[:6]) or "no fields"
        raise BadInput(f"no message in it: objects with {seen}", wire, "name the format it has, or let it be detected")


def take_tools(body: dict[str, Any]) -> list[Any] | None:
    """The tool definitions, taken out of the body if they are a list (anything else stays where it is)."""
    return body.pop("tools") if isinstance(body.get("tools"), list) else None


def open_request(history: History) -> dict[str, Any]:
    """The fields of a new request body beside messages, system and tools."""
    named = history.model and "model" not in history.body
    return {"model": history.model, **history.body} if named else dict(history.body)


def model_of(body: dict[str, Any]) -> str | None:
    model = body.get("model")
    return model if isinstance(model, str) else None


def as_object(item: Any, where: str) -> dict[str, Any]:
    if not isinstance(item, dict):
        raise BadInput(f"a {type(item).__name__} where a message is due", where)
    return item


UNEVENTFUL = "microfiche_uneventful"
"""The field of a native result by which a tool says whether anybody will miss it: no provider's, so never sent."""


def take_flag(result: dict[str, Any]) -> tuple[dict[str, Any], bool | None]:
    """A native result without the tool's own word on it, and that word; anything but true and false is none."""
    if UNEVENTFUL not in result:
        return result, None
    flag = result[UNEVENTFUL]
    return without(result, UNEVENTFUL), flag if isinstance(flag, bool) else None


def fields(native: Any) -> dict[str, Any]:
    """The fields of a native object; none if it is of another shape."""
    return native if isinstance(native, dict) else {}


def without(item: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key not in keys}


def kind_of(block: Any) -> str:
    """The wire type of a block, for naming what is carried through."""
    kind = block.get("type") if isinstance(block, dict) else None
    return kind if isinstance(kind, str) else type(block).__name__


def role_of(item: Any, words: dict[str, Role]) -> Role:
    """The role by the wire's word for it; an unknown or missing word is the user's."""
    word = fields(item).get("role")
    return words.get(word, "user") if isinstance(word, str) else "user"


def envelope(message: Message, words: dict[str, Role], word: str) -> dict[str, Any]:
    """A native message to put content in: what was read, or with the word if the role is new or another."""
    if isinstance(message.native, dict) and role_of(message.native, words) == message.role:
        return dict(message.native)
    return {"role": word} | fields(message.native) | {"role": word}


def lone_text(parts: Sequence[Part]) -> str | None:
    """The text of content that is one plain string: a single text that no block was read for."""
    if len(parts) == 1 and isinstance(part := parts[0], Text) and part.native is None and not part.mark:
        return part.text
    return None


def split(role: Role, parts: tuple[Part, ...], envelope: Any) -> list[Message]:
    """A message as one, or as two where results and a user's words came in one.

    The second has as native how many parts the two have together and the places of its own there.
    """
    results = tuple(part for part in parts if isinstance(part, ToolResult))
    if not results:
        return [Message(role, parts, native=envelope)]
    tool = Message("tool", results, native=envelope)
    if len(results) == len(parts):
        return [tool]
    places = tuple(at for at, part in enumerate(parts) if not isinstance(part, ToolResult))
    rest = tuple(parts[at] for at in places)
    return [tool, Message("user", rest, native=(len(parts), places), joined=True)]


def weave(results: list[Any], rest: list[Any], native: Any) -> list[Any]:
    """The content of two messages that :func:`split` parted: as it was while nothing came or went.

    Else results come first, as every wire asks for.
    """
    if not isinstance(native, tuple) or native[0] != len(results) + len(rest) or len(native[1]) != len(rest):
        return results + rest
    places = dict(zip(native[1], rest, strict=True))
    others = iter(results)
    return [places[at] if at in places else next(others) for at in range(native[0])]


def shown(parts: Iterable[Part]) -> list[Part]:
    """The parts a model may see and the wire can hold: no private copies, no reasoning of elsewhere."""
    return [
        part
        for part in parts
        if not (isinstance(part, Opaque) and part.private) and not (isinstance(part, Reasoning) and part.native is None)
    ]


def has_pages(messages: Iterable[Message]) -> bool:
    parts = (part for message in messages for part in message.parts)
    inner = (each for part in parts for each in (part, *getattr(part, "parts", ())))
    return any(isinstance(each, Image) and each.owner == "page" for each in inner)


def arguments_text(value: Any) -> str:
    """JSON text of a call's arguments: compact, in the order they came, text kept as it is."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def arguments_object(text: str) -> dict[str, Any]:
    """The arguments as an object; what is not one (free text, torn JSON) stands under ``arguments``."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None if not text.strip() else text
    if value is None:
        return {}
    return value if isinstance(value, dict) else {"arguments": value}


def picture(data: bytes, media_type: Any, owner: Literal["user", "tool"], native: Any) -> Image:
    """An image of the given bytes; the media type is what the wire says, else what the header tells."""
    width, height = images.size(data)
    told = media_type if isinstance(media_type, str) and media_type else images.media_type(data)
    return Image(data, told or "image/png", width, height, owner, native=native)


def open_data_url(url: str) -> tuple[str, bytes] | None:
    """Media type and bytes of a base64 ``data:`` URL (RFC 2397)."""
    head, comma, tail = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None
    data = decode64(tail)
    return None if data is None else (head[5:-7].partition(";")[0], data)


def data_url(image: Image) -> str | None:
    """The URL by which the OpenAI wires take an image; ``None`` if it has neither bytes nor a URL."""
    if image.data is None:
        return image.url
    return f"data:{image.media_type};base64,{encode64(image.data)}"


def counted(where: str, counts: Counter[str]) -> list[Note]:
    """One note a kind: how many of each."""
    return [Note(where, f"{what} ({count})") for what, count in counts.items()]
