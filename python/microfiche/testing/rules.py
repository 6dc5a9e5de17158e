"""What the judges of all providers share: refusals, pictures, and the walk over a body."""

from __future__ import annotations

import base64
import binascii
import json
import re
import struct
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Any, TypeGuard

Object = dict[str, Any]


class Refused(Exception):
    """A request is refused: the message, the HTTP status, and fields of the provider's error object."""

    def __init__(self, message: str, status: int = 400, **fields: Any) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.fields = fields


@dataclass(frozen=True, slots=True)
class Limits:
    """What a request may hold. Sizes in bytes (of base64 for images), sides in pixels."""

    request_bytes: int
    images: int
    image_bytes: int
    image_types: frozenset[str]
    image_side: int = 1 << 30


def need(condition: Any, message: str, status: int = 400, **fields: Any) -> None:
    """Refuse unless the condition holds."""
    if not condition:
        raise Refused(message, status, **fields)


def is_text(value: Any) -> bool:
    """A string that is not empty."""
    return isinstance(value, str) and value != ""


def one_of(value: Any, words: Container[str]) -> bool:
    """A string that is one of these."""
    return isinstance(value, str) and value in words


def is_object(value: Any) -> TypeGuard[Object]:
    return isinstance(value, dict)


def check_json(body: Any) -> int:
    """Bytes of the body on the wire; refused where it has no JSON form that a strict parser reads."""
    try:
        text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return len(text.encode("utf-8"))
    except UnicodeEncodeError:
        raise Refused("The request body is not valid JSON: no low surrogate in string") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise Refused(f"The request body is not valid JSON: {error}") from None


def parse(raw: bytes) -> Any:
    """The object that stands in the bytes of a request."""

    def refuse(name: str) -> Any:
        raise ValueError(f"{name} is no JSON")

    try:
        return json.loads(raw.decode("utf-8"), parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise Refused(f"The request body is not valid JSON: {error}") from None


def objects(value: Any) -> Iterator[Object]:
    """Every object inside a value, outermost first."""
    stack = [value]
    while stack:
        each = stack.pop()
        if isinstance(each, dict):
            yield each
            stack.extend(each.values())
        elif isinstance(each, (list, tuple)):
            stack.extend(each)


# ---------------------------------------------------------------- pictures


@dataclass(frozen=True, slots=True)
class Picture:
    """An image of a request: where it stands, what its bytes are, its size in pixels and in base64."""

    where: str
    media_type: str
    width: int
    height: int
    weight: int


_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")


def decode(data: Any, any_form: bool = False) -> bytes | None:
    """The bytes of base64 in its standard form, else ``None``; ``any_form`` takes the URL form without padding too."""
    if any_form and isinstance(data, str):
        data = data.translate({45: 43, 95: 47}).rstrip("=")
        data += "=" * (-len(data) % 4)
    if not is_text(data) or len(data) % 4 or not _BASE64.fullmatch(data):
        return None
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error:
        return None


def measure(raw: bytes) -> tuple[str, int, int] | None:
    """Media type, width and height as the header of an image tells them; ``None`` for anything else."""
    if raw[:8] == b"\x89PNG\r\n\x1a\n" and raw[12:16] == b"IHDR" and len(raw) >= 24:
        return "image/png", *struct.unpack(">II", raw[16:24])
    if raw[:6] in (b"GIF87a", b"GIF89a") and len(raw) >= 10:
        return "image/gif", *struct.unpack("<HH", raw[6:10])
    if raw[:4] == b"RIFF" and raw[8:12] == b"WEBP" and len(raw) >= 30:
        return _webp(raw)
    if raw[:3] == b"\xff\xd8\xff":
        return _jpeg(raw)
    return None


def _webp(raw: bytes) -> tuple[str, int, int] | None:
    kind = raw[12:16]
    if kind == b"VP8X":
        return "image/webp", 1 + int.from_bytes(raw[24:27], "little"), 1 + int.from_bytes(raw[27:30], "little")
    if kind == b"VP8L":
        bits = int.from_bytes(raw[21:25], "little")
        return "image/webp", 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 ":
        width, height = struct.unpack("<HH", raw[26:30])
        return "image/webp", width & 0x3FFF, height & 0x3FFF
    return None


def _jpeg(raw: bytes) -> tuple[str, int, int] | None:
    at = 2
    while at + 9 <= len(raw) and raw[at] == 0xFF:
        marker = raw[at + 1]
        if marker == 0xFF or marker == 0x01 or 0xD0 <= marker <= 0xD8:
            at += 1 if marker == 0xFF else 2
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", raw[at + 5 : at + 9])
            return "image/jpeg", width, height
        else:
            at += 2 + int.from_bytes(raw[at + 2 : at + 4], "big")
    return None


def data_url(url: str) -> tuple[str, str] | None:
    """Declared media type and base64 of a ``data:`` URL; ``None`` for any other URL."""
    found = re.match(r"data:([\w.+/-]+);base64,", url)
    return (found[1], url[found.end() :]) if found else None
