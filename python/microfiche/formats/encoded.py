"""Base64 of images: a request holds megabytes of it, which a pass writes, mends, checks and reads back."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import microfiche._core as _core

_KNOWN: ContextVar[dict[str, bytes] | None] = ContextVar("known", default=None)


@contextmanager
def remembered() -> Iterator[None]:
    """Within the block, base64 that :func:`encode64` wrote or :func:`standard64` read is not read again."""
    token = _KNOWN.set({})
    try:
        yield
    finally:
        _KNOWN.reset(token)


def encode64(data: bytes) -> str:
    text = _core.base64(data)
    known = _KNOWN.get()
    if known is not None:
        known[text] = data
    return text


def decode64(text: Any) -> bytes | None:
    """The bytes of base64 in either alphabet, padded or not; ``None`` if it is no base64."""
    if isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        return None
    known = _KNOWN.get()
    if known and text in known:
        return known[text]
    try:
        raw = text.encode("ascii")
        if b"-" in raw or b"_" in raw:
            raw = raw.translate(bytes.maketrans(b"-_", b"+/"))
        try:
            return base64.b64decode(raw)
        except binascii.Error:
            return base64.b64decode(raw.rstrip(b"=\r\n ") + b"==")
    except (UnicodeEncodeError, binascii.Error):
        return None


def standard64(text: str) -> bytes | None:
    """The bytes of base64 in its standard form (RFC 4648 section 4, padded), ``None`` if it is in no or another."""
    known = _KNOWN.get()
    if known and text in known:
        return known[text]
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    if known is not None:
        known[text] = data
    return data
