"""A working copy of a request, on which each rule looks for its fault and mends it at once.

A rule is one function: it finds the fault, reports it and carries out the least cure. Validation is
the list of what the rules found, repair is the copy they leave behind, so the two cannot disagree.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]

# Deeper nesting than this breaks the JSON encoders on the way (Python's own gives up near 1000).
MAX_DEPTH = 500

# 4,300 decimal digits: what Python's encoder writes at most (sys.int_info.default_max_str_digits).
MAX_BITS = 14_280

NO_RESULT = "(no result was recorded for this call)"
EMPTY = "(empty message)"
CONTINUE = "(continue)"
BEGINS = "(the conversation begins with the message below)"


@dataclass(frozen=True, slots=True)
class Violation:
    """A reason for which a provider would refuse the request.

    ``rule`` is a stable identifier, ``where`` the place in the request as it came
    (``messages[3].content[1]``), ``what`` the fault, ``cure`` what would mend it.
    """

    rule: str
    where: str
    what: str
    cure: str


@dataclass(frozen=True, slots=True)
class Repair:
    """A change made to a request so that it can be sent: by which rule, where, and what was done."""

    rule: str
    where: str
    what: str


@dataclass(frozen=True, slots=True)
class Limits:
    """What a request may hold; ``None`` where there is no limit or none is known.

    ``images`` is the count in a request. ``image_side`` is the longest side in pixels, and
    ``many_images_side`` the longest once there are more than ``many_images``. ``image_bytes`` counts
    the base64 characters of one image, ``request_bytes`` the UTF-8 bytes of the whole JSON.
    ``image_types`` are the media types accepted for inline images.
    """

    images: int | None = None
    image_side: int | None = None
    many_images: int | None = None
    many_images_side: int | None = None
    image_bytes: int | None = None
    request_bytes: int | None = None
    image_types: frozenset[str] | None = None


_PLAIN = (str, int, float, dict, list, tuple, type(None))
_Path = tuple[Any, Any] | None  # (path of the parent, key), linked so that a step costs nothing


class Draft:
    """The copy. ``messages`` is the list that holds the conversation, ``body`` the request around it.

    A bare list is judged as the ``key`` of a body that is not known. ``binary`` allows bytes as
    values (the Google client encodes them itself).
    """

    def __init__(self, source: Any, key: str, limits: Limits, model: str | None, *, binary: bool = False) -> None:
        self.key = key
        self.limits = limits
        self.violations: list[Violation] = []
        self.repairs: list[Repair] = []
        self._binary = binary
        self._characters = 0
        self._values = 0
        self._places: dict[int, tuple[Any, _Path]] = {}
        self.bare = not isinstance(source, dict)
        if self.bare:
            self.body: Object = {key: self._clone(source, (None, key))}
        else:
            self.body = self._clone(source, None)
        named = self.body.get("model")
        self.model = model if model is not None else named if isinstance(named, str) else None
        given = self.body.get(key)
        self.listed = isinstance(given, list)
        self.messages: list[Any] = given if isinstance(given, list) else []

    @property
    def result(self) -> Any:
        """The copy in the shape the source had."""
        if self.bare:
            return self.messages if self.listed else self.body[self.key]
        return self.body

    @property
    def bottomless(self) -> bool:
        """True if a value is nested too deeply to be looked at any further."""
        return any(found.rule == "too-deep" for found in self.violations)

    def fault(self, rule: str, where: Any, what: str, cure: str, did: str | None = None) -> None:
        """Report a fault at a place or at an object of the copy; ``did`` says how it has been mended."""
        place = where if isinstance(where, str) else self.at(where)
        self.violations.append(Violation(rule, place, what, cure))
        if did is not None:
            self.repairs.append(Repair(rule, place, did))

    def at(self, node: Any, suffix: str = "") -> str:
        """Where an object of the copy stood in the source; ``(new)`` for one that a repair made."""
        entry = self._places.get(id(node))
        return (_format(entry[1]) if entry else "(new)") + suffix

    def adopt(self, node: Any, like: Any) -> Any:
        """Give a new object the place of the one it stands for."""
        entry = self._places.get(id(like))
        if entry:
            self._places[id(node)] = (node, entry[1])
        return node

    def size(self, enough: int) -> int:
        """Bytes of the request as JSON; of the conversation alone where the rest is not known.

        Bytes values count as base64 text. An upper bound where that bound is within ``enough``.
        """
        # A character takes six bytes at most (an escaped control); a value with its key and signs is
        # given a hundred beside its text.
        bound = 6 * self._characters + 100 * self._values
        if bound <= enough:
            return min(bound, enough)
        text = json.dumps(self.result, ensure_ascii=False, separators=(",", ":"), default=_encoded, skipkeys=True)
        return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))

    def check_listed(self, from_text: Callable[[str], Object]) -> bool:
        """Report a conversation that is no list, or an empty one; true if there is something to judge.

        Strings in the list become messages by ``from_text``, what is no object is left out.
        """
        if not self.listed:
            given = self.body.get(self.key)
            what = f"is {_kind(given)}, not a list" if self.key in self.body else "is missing"
            self.fault("messages-shape", self.key, what, f"pass the conversation as a list, `{self.key}`")
        elif not self.messages:
            self.fault("no-messages", self.key, "is empty", "send at least one message")
        self._keep_objects(from_text)
        return bool(self.messages)

    def _keep_objects(self, from_text: Callable[[str], Object]) -> None:
        kept: list[Any] = []
        for index, message in enumerate(self.messages):
            if isinstance(message, dict):
                kept.append(message)
                continue
            is_text = isinstance(message, str)
            self.fault(
                "message-shape",
                f"{self.key}[{index}]",
                f"is {_kind(message)}, not an object",
                "make it a message",
                "made a user message" if is_text else "left out",
            )
            if is_text:
                kept.append(from_text(message))
        self.messages[:] = kept

    def set_role(self, message: Object, known: tuple[str, ...], assistant: str) -> None:
        """A role that is not known becomes ``assistant`` (in the word of the wire) or user."""
        role = message.get("role")
        if role not in known:
            new = assistant if role in ("assistant", "model") else "user"
            self.fault(
                "role",
                message,
                f"the role {as_text(role)[:60]!r} is not known",
                f"use {', '.join(known)}",
                f"role set to {new}",
            )
            message["role"] = new

    def _clone(self, source: Any, path: _Path) -> Any:
        """Copy dicts and lists (without recursion), share strings, and mend what JSON cannot hold."""
        holder: list[Any] = [None]
        todo: list[tuple[Any, Any, Any, _Path, int]] = [(source, holder, 0, path, 0)]
        while todo:
            value, into, slot, path, depth = todo.pop()
            value = _native(value)
            if depth > MAX_DEPTH:
                self.fault(
                    "too-deep",
                    _format(path),
                    f"nested more than {MAX_DEPTH} levels deep",
                    "flatten the value",
                )
                into[slot] = value
                continue
            inner: list[tuple[Any, Any, Any, _Path, int]] = []
            if isinstance(value, dict):
                copy: Any = {}
                self._values += len(value)
                self._places[id(copy)] = (copy, path)
                for key, item in value.items():
                    name = self._key(key, path)
                    item = _native(item)
                    if isinstance(item, (dict, list, tuple)):
                        copy[name] = None
                        inner.append((item, copy, name, (path, name), depth + 1))
                    else:
                        copy[name] = self._leaf(item, path, name)
            elif isinstance(value, (list, tuple)):
                copy = [None] * len(value)
                self._values += len(value)
                for index, item in enumerate(map(_native, value)):
                    if isinstance(item, (dict, list, tuple)):
                        inner.append((item, copy, index, (path, index), depth + 1))
                    else:
                        copy[index] = self._leaf(item, path, index)
            else:
                copy = self._leaf(value, path, None)
            into[slot] = copy
            todo.extend(reversed(inner))
        return holder[0]

    def _key(self, key: Any, path: _Path) -> Any:
        if isinstance(key, str):
            self._characters += len(key)
            return key if key.isascii() else self._text(key, path)
        if key is None or isinstance(key, (bool, int, float)):
            return key  # JSON encoders write these as strings
        self.fault("not-json", _format(path), f"a key is {_kind(key)}", "use string keys")
        return key

    def _leaf(self, value: Any, path: _Path, name: Any) -> Any:
        if isinstance(value, str):
            self._characters += len(value)
            return value if value.isascii() else self._text(value, path if name is None else (path, name))
        if value is None:
            return value
        if isinstance(value, int) and value.bit_length() <= MAX_BITS:
            return value
        where = path if name is None else (path, name)
        if isinstance(value, int):
            self.fault(
                "not-a-json-number",
                _format(where),
                "an integer of more than 4,300 digits, which encoders refuse",
                "write it as a string",
                "written as hexadecimal text",
            )
            return hex(value)
        if isinstance(value, float):
            if math.isfinite(value):
                return value
            text = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
            self.fault(
                "not-a-json-number",
                _format(where),
                f"{text} is not a JSON number",
                "write it as a string",
                f"{text} written as a string",
            )
            return text
        if self._binary and isinstance(value, (bytes, bytearray)):
            self._characters += 2 * len(value)
            return value
        self.fault("not-json", _format(where), f"{_kind(value)} is not a JSON value", "pass plain JSON values")
        return value

    def _text(self, text: str, path: _Path) -> str:
        mended = visible(text)
        if mended is not text:
            self.fault(
                "lone-surrogate",
                _format(path),
                "a surrogate stands alone; UTF-8 cannot hold it",
                "replace it by its code in brackets",
                "lone surrogates written as their codes in brackets",
            )
        return mended


def _native(value: Any) -> Any:
    """An object of a vendor's client as the dict that the client would send; any other value as it is."""
    if isinstance(value, _PLAIN):
        return value
    dump = getattr(value, "model_dump", None)
    return dump(mode="json", by_alias=True, exclude_unset=True) if callable(dump) else value


def visible(text: str) -> str:
    """The text with each lone surrogate written as its code point in brackets, ``<d83d>``."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return re.sub("[\ud800-\udfff]", lambda match: f"<{ord(match[0]):x}>", text)
    return text


def blank(text: Any) -> bool:
    """True for text with nothing but white space, looked at without copying it."""
    return isinstance(text, str) and (not text or text.isspace())


def texts(value: Any) -> str:
    """The text inside a content value: a string, or the ``text`` fields of a list of parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        parts = (part.get("text") if isinstance(part, dict) else part for part in value)
        return "\n".join(part for part in parts if isinstance(part, str))
    return ""


def as_text(value: Any) -> str:
    """A value as text: itself, nothing for null, else its JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    try:
        return json.dumps(value, ensure_ascii=False, default=str, skipkeys=True)
    except (ValueError, RecursionError):
        return f"({_kind(value)})"


class Names:
    """Gives out names that nobody has yet, in constant time each."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)
        self._next: dict[str, int] = {}

    def fresh(self, base: str, longest: int) -> str:
        number = self._next.get(base, 1)
        name = base[:longest] if number == 1 else _tail(base, number, longest)
        while name in self._taken:
            number += 1
            name = _tail(base, number, longest)
        self._next[base] = number
        self._taken.add(name)
        return name


def _tail(base: str, number: int, longest: int) -> str:
    end = f"_{number}"
    return base[: longest - len(end)] + end


def _kind(value: Any) -> str:
    return "null" if value is None else f"a {type(value).__name__}"


def _encoded(value: Any) -> str:
    size = len(value) if isinstance(value, (bytes, bytearray)) else 0
    return "A" * ((size + 2) // 3 * 4)


def _format(path: _Path) -> str:
    keys: list[Any] = []
    while path is not None:
        path, key = path
        keys.append(key)
    text = ""
    for key in reversed(keys):
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else str(key)
    return text
