"""What an entry is: its kinds, its columns, the text of its payload, and the leaf that covers all of it.

The payload is one JSON object in ASCII. Any Python value that is plain data comes back as it was;
what JSON has no word for stands as an object with one key that begins with ``$``:

=============  ==========================================================================
``$text``      a text kept as a blob (UTF-8, lone surrogates passed through), by its SHA-256
``$bytes``     bytes kept as a blob, by their SHA-256
``$base64``    ``[before, SHA-256]``: a text that is ``before`` and the base64 of a blob
``$entry``     the number of an entry: a reference that a fork rewrites
``$float``     ``nan``, ``inf`` or ``-inf``
``$int``       an integer of more than 1,024 bits, in hexadecimal
``$tuple``     a tuple
``$dict``      pairs of an object whose keys begin with ``$`` or cannot stand in JSON
=============  ==========================================================================
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

from microfiche.errors import BadInput
from microfiche.messages import Image, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult

PATH_KINDS = frozenset({"message", "compaction", "undo", "trim", "pin", "unpin", "report"})
"""Entries that have a parent and stand on a path."""

SIDE_KINDS = frozenset({"move", "label", "label_loss", "fork", "started", "interruption", "failure", "claim", "import"})
"""Entries that name what they are about and stand on no path."""

SPEAKING = frozenset({"message", "report"})
"""Kinds that hold a message, and so belong to turns."""

LONG = 1024
"""Characters from which a text is kept as a blob."""

_DEEPEST = 200
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


@dataclass(frozen=True, slots=True)
class Ref:
    """A reference to an entry, or to one that is about to be written, anywhere in a payload."""

    entry: int | Draft


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """An entry to be written. ``about`` and references in the payload may name another draft of the same commit.

    ``message`` is for the kinds ``message`` and ``report`` and for them alone.
    """

    kind: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    about: int | Draft | None = None
    message: Message | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One item of a record.

    ``id`` counts from 1 over the whole record. ``parent`` is the path entry before it, ``about``
    what it is about; ``turn`` is the turn it belongs to (of a path event: the turn it stands
    behind; 0 is the head) and ``open`` the number of calls that have no result yet at it: it is a
    turn boundary where that is 0. Both are ``None`` for side entries. ``time`` is in microseconds since 1970.
    ``message`` is what was said, ``payload`` all the rest.
    """

    id: int
    conversation: str
    kind: str
    parent: int | None
    about: int | None
    turn: int | None
    open: int | None
    time: int
    payload: dict[str, Any]
    message: Message | None
    blobs: tuple[bytes, ...]
    leaf: bytes

    @property
    def on_path(self) -> bool:
        return self.turn is not None


def leaf_data(
    id: int,
    conversation: str,
    kind: str,
    parent: int | None,
    about: int | None,
    turn: int | None,
    open: int | None,
    time: int,
    blobs: bytes,
    payload: str,
) -> bytes:
    """What the leaf hash is taken of: every column as a line, the digest of the payload, the digests of the blobs."""
    head = (
        f"{id}\n{conversation}\n{kind}\n{'-' if parent is None else parent}\n{'-' if about is None else about}\n"
        f"{'-' if turn is None else turn}\n{'-' if open is None else open}\n{time}\n"
    )
    return head.encode() + hashlib.sha256(payload.encode()).digest() + blobs


_PARTS: dict[str, type[Any]] = {
    "text": Text,
    "image": Image,
    "call": ToolCall,
    "result": ToolResult,
    "reasoning": Reasoning,
    "opaque": Opaque,
}
_PART_NAMES = {part: name for name, part in _PARTS.items()}
_DEFAULTS = {part: [(each.name, each.default) for each in fields(part)] for part in (*_PARTS.values(), Message)}


class Packer:
    """Turns payloads into text; gathers the blobs they need in ``blobs``, SHA-256 -> bytes, in order of mention."""

    def __init__(self, number_of: Callable[[Draft], int]) -> None:
        self.blobs: dict[bytes, bytes] = {}
        self._number_of = number_of
        self._mentioned: dict[bytes, None] = {}
        self._pictures: dict[str, bytes] = {}
        self._long: dict[str, bytes] = {}

    def pack(self, payload: Mapping[str, Any], message: Message | None) -> tuple[str, bytes]:
        """The payload's text, and the digests of the blobs it needs end to end: pictures, then others as mentioned."""
        for key in payload:
            if not isinstance(key, str) or key == "message" or key.startswith("$"):
                raise BadInput(f"a payload cannot have the key {key!r}", cure="choose another key")
        self._mentioned = {}
        if message is not None:
            self._pictures = {base64.b64encode(data).decode("ascii"): self._blob(data) for data in _pictures(message)}
        try:
            value = self._value(dict(payload), 0)
            if message is not None:
                value["message"] = self._message(message)
        finally:
            self._pictures = {}
        return json.dumps(value, separators=(",", ":"), allow_nan=False), b"".join(self._mentioned)

    def _blob(self, data: bytes) -> bytes:
        digest = hashlib.sha256(data).digest()
        self.blobs.setdefault(digest, data)
        self._mentioned[digest] = None
        return digest

    def _mention(self, digest: bytes) -> str:
        self._mentioned[digest] = None
        return digest.hex()

    def _value(self, value: Any, depth: int) -> Any:
        if value is None or value is True or value is False:
            return value
        if depth > _DEEPEST:
            raise BadInput(f"a value is nested more than {_DEEPEST} deep", cure="pass it as JSON text")
        match value:
            case str():
                return self._text(str(value))
            case int():
                return int(value) if value.bit_length() <= 1024 else {"$int": f"{value:x}"}
            case float():
                return float(value) if math.isfinite(value) else {"$float": repr(float(value))}
            case dict():
                if not all(isinstance(key, str) for key in value):
                    raise BadInput("an object has a key that is not a text", cure="make every key a text")
                if any(key.startswith("$") or _PAIR.search(key) for key in value):
                    return {"$dict": [[self._text(key), self._value(each, depth + 1)] for key, each in value.items()]}
                return {str(key): self._value(each, depth + 1) for key, each in value.items()}
            case list():
                return [self._value(each, depth + 1) for each in value]
            case bytes() | bytearray() | memoryview():
                return {"$bytes": self._blob(bytes(value)).hex()}
            case Ref():
                return {"$entry": value.entry if isinstance(value.entry, int) else self._number_of(value.entry)}
            case tuple() if type(value) is tuple:
                return {"$tuple": [self._value(each, depth + 1) for each in value]}
        raise BadInput(
            f"a value of type {type(value).__name__} cannot be kept",
            cure="pass plain data: texts, numbers, bytes, lists, tuples and dicts",
        )

    def _text(self, text: str) -> Any:
        if len(text) < LONG:
            if text.isascii() or not _PAIR.search(text):
                return text
        elif self._pictures:
            before, _, behind = text.rpartition(",") if text.startswith("data:") else ("", "", text)
            digest = self._pictures.get(behind)
            if digest is not None and len(before) < LONG and before.isascii():
                return {"$base64": [text[: len(text) - len(behind)], self._mention(digest)]}
        if (known := self._long.get(text)) is None:
            known = self._long[text] = self._blob(text.encode("utf-8", "surrogatepass"))
        return {"$text": self._mention(known)}

    def _message(self, message: Message) -> dict[str, Any]:
        return self._object(message, Message)

    def _object(self, item: Message | Part, kind: type[Any]) -> dict[str, Any]:
        out: dict[str, Any] = {} if kind is Message else {"type": _PART_NAMES[kind]}
        for name, default in _DEFAULTS[kind]:
            value = getattr(item, name)
            if name == "parts":
                out[name] = [self._object(part, type(part)) for part in value]
            elif default is MISSING or value != default or type(value) is not type(default):
                out[name] = self._value(value, 0)
        return out


def _pictures(message: Message) -> Iterable[bytes]:
    for part in message.parts:
        for each in part.parts if isinstance(part, ToolResult) else (part,):
            if isinstance(each, Image) and each.data is not None:
                yield each.data


def unpack(text: str, blob: Callable[[bytes], bytes], native: bool = True) -> tuple[dict[str, Any], Message | None]:
    """The payload and message of a text that :class:`Packer` made; ``blob`` gives a blob by its SHA-256.

    Without ``native``, the message's native objects are left out, and not looked for.
    """
    value = json.loads(text)
    if not native and "message" in value:
        _without_native(value["message"])
    if '{"$' in text:
        value = _restore(value, blob)
    said = value.pop("message", None)
    return value, None if said is None else _message(said)


def _without_native(value: dict[str, Any]) -> None:
    value.pop("native", None)
    for part in value.get("parts", ()):
        _without_native(part)


def _restore(value: Any, blob: Callable[[bytes], bytes]) -> Any:
    if isinstance(value, list):
        return [_restore(each, blob) for each in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        match value:
            case {"$text": str(digest)}:
                return blob(bytes.fromhex(digest)).decode("utf-8", "surrogatepass")
            case {"$bytes": str(digest)}:
                return blob(bytes.fromhex(digest))
            case {"$base64": [before, digest]}:
                return before + base64.b64encode(blob(bytes.fromhex(digest))).decode("ascii")
            case {"$entry": int(number)}:
                return Ref(number)
            case {"$float": name}:
                return _FLOATS[name]
            case {"$int": str(digits)}:
                return int(digits, 16)
            case {"$tuple": items}:
                return tuple(_restore(each, blob) for each in items)
            case {"$dict": pairs}:
                return {_restore(key, blob): _restore(each, blob) for key, each in pairs}
    return {key: _restore(each, blob) for key, each in value.items()}


def _message(value: dict[str, Any]) -> Message:
    return Message(**{**value, "parts": tuple(_part(part) for part in value["parts"])})


def _part(value: dict[str, Any]) -> Part:
    kind = _PARTS[value.pop("type")]
    if "parts" in value:
        value["parts"] = tuple(_part(each) for each in value["parts"])
    part: Part = kind(**value)
    return part


def references(payload: str) -> bool:
    """Whether the text of a payload may hold references to entries."""
    return '{"$entry":' in payload


def renumber(payload: str, number: Mapping[int, int]) -> str:
    """The payload's text with its references rewritten; those that ``number`` does not know stay."""
    if not references(payload):
        return payload

    def walk(value: Any) -> Any:
        if isinstance(value, list):
            return [walk(each) for each in value]
        if isinstance(value, dict):
            if len(value) == 1 and isinstance(at := value.get("$entry"), int):
                return {"$entry": number.get(at, at)}
            return {key: walk(each) for key, each in value.items()}
        return value

    return json.dumps(walk(json.loads(payload)), separators=(",", ":"))


class OpenCalls:
    """Calls of the messages followed so far that no later result answers; an id used again is another call."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[tuple[int, ToolCall]]] = {}
        self._made = 0
        self._open = 0

    def follow(self, message: Message) -> None:
        for result in message.results:
            if calls := self._waiting.get(result.call_id):
                calls.popleft()
                self._open -= 1
        for call in message.calls:
            self._waiting.setdefault(call.id, deque()).append((self._made, call))
            self._made += 1
            self._open += 1

    def __len__(self) -> int:
        return self._open

    @property
    def calls(self) -> list[ToolCall]:
        """In the order they were made."""
        found = (each for calls in self._waiting.values() for each in calls)
        return [call for _, call in sorted(found, key=lambda each: each[0])]


def words(message: Message) -> str:
    """The text of a message that a search looks through: texts, reasoning, calls and their results."""
    out: list[str] = []
    for part in message.parts:
        match part:
            case Text() | Reasoning():
                out.append(part.text)
            case ToolCall():
                out += (part.name, part.arguments)
            case ToolResult():
                out.append(part.text)
    return "\n".join(out)
