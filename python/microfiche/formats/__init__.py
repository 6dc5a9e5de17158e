"""Readers and writers of the wire and transcript formats of language models.

A *wire* is a provider's request form: it can be read and written, and what is read and not changed
is written back equal. A transcript is a file that a runtime keeps: it can be read only.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Literal

from ..errors import BadInput
from ..messages import History, Message, Note
from . import (
    anthropic,
    atif,
    beside,
    claude_code,
    claude_stream,
    common,
    convert,
    gemini,
    jsonl,
    openai_chat,
    openai_responses,
    tools,
)
from . import detect as _detect
from .beside import Beside

_READERS: dict[str, Callable[[Any], History]] = {}
_WRITERS: dict[str, Callable[[History], tuple[dict[str, Any], list[Note]]]] = {}
_LIST_KEYS: dict[str, str] = {}
for _wire in (anthropic, openai_chat, openai_responses, gemini):
    _READERS[_wire.WIRE] = _wire.read
    _WRITERS[_wire.WIRE] = _wire.write
    _LIST_KEYS[_wire.WIRE] = _wire.LIST_KEY
_SESSIONS: dict[str, Callable[[jsonl.Loaded], History]] = {
    module.FORMAT: module.read for module in (claude_code, claude_stream)
}
_WHOLE: dict[str, Callable[[jsonl.Loaded], tuple[History, Beside]]] = {
    module.FORMAT: module.whole for module in (claude_code, claude_stream, atif)
}
WIRES: tuple[str, ...] = tuple(_READERS)
FORMATS: tuple[str, ...] = (*WIRES, *_SESSIONS, atif.FORMAT)
_PROVIDERS: dict[str, Literal["anthropic", "openai", "gemini"]] = {
    "anthropic": "anthropic",
    "openai_chat": "openai",
    "openai_responses": "openai",
    "gemini": "gemini",
}


def provider(wire: str) -> Literal["anthropic", "openai", "gemini"]:
    """The provider whose wire this is."""
    return _PROVIDERS[_known(wire)]


def list_key(wire: str) -> str:
    """The field of a request body that holds the list: ``messages``, ``input`` or ``contents``."""
    return _LIST_KEYS[_known(wire)]


def detect(source: Any, prefer: str | None = None) -> str:
    """The format of a source (see :func:`read`). Raises UnknownFormat that says what was seen.

    Messages of text alone fit several wires: there ``prefer`` names the provider's own, and the nearest
    to it that fits is taken (for Gemini that is Chat Completions); without it the model's name in the
    body decides, else it is Anthropic's.
    """
    return _detect.detect(_load(source, "input"), prefer)


def read(source: Any, format: str | None = None, where: str = "input", prefer: str | None = None) -> History:
    """Read a history.

    ``source`` is a request body or a list of messages as objects (those of the official clients
    too), or JSON or JSON lines as str or bytes. ``where`` names it in notes and errors; ``prefer`` is
    for :func:`detect`, which decides where no ``format`` is given. The source is never changed.

    Raises UnknownFormat if nothing fits, BadInput if there is no message to be had.
    """
    if format is not None and format not in FORMATS:
        raise BadInput(f'no format "{format}"', where, f"it is one of {', '.join(FORMATS)}")
    loaded = _load(source, where)
    chosen = format or _detect.detect(loaded, prefer)
    try:
        if chosen == atif.FORMAT:
            return atif.read(loaded)
        if chosen in _SESSIONS:
            return _SESSIONS[chosen](_as_lines(loaded))
        document = loaded.document if not loaded.lines else [line.value for line in loaded.lines]
        history = _READERS[chosen](document)
    except (RecursionError, ValueError) as error:  # of json: arguments that it cannot put down
        raise BadInput(f"a value that JSON cannot hold: {error}", where) from error
    history.notes[:0] = loaded.notes
    return history


def whole(
    source: Any, format: str | None = None, where: str = "input", prefer: str | None = None
) -> tuple[History, Beside]:
    """The history that :func:`read` gives, and what the source holds beside it: branches, compactions, names, notes.

    Lines that are branches here are not counted in the history's notes as left out.
    """
    loaded = _load(source, where)
    chosen = format if format is not None else _detect.detect(loaded, prefer)
    if chosen in _WHOLE:
        return _WHOLE[chosen](_as_lines(loaded) if chosen in _SESSIONS else loaded)
    history = read(source, chosen, where)
    return history, beside.of_wire(history, where)


def write(history: History, format: str | None = None) -> tuple[dict[str, Any], list[Note]]:
    """Write a whole request body in a wire (default: the one the history was read from).

    The notes name what could not be carried over, one note a kind, with its count.
    """
    wire = _known(format or history.wire)
    notes: list[Note] = []
    if wire != history.wire:
        history, notes = convert.convert(history, wire)
    if history.tools is None and history.tool_names:
        definitions, note = tools.stubs(history.tool_names, wire)
        history = dataclasses.replace(history, tools=definitions)
        notes.append(note)
    body, more = _WRITERS[wire](history)
    return body, notes + more


def system_message(prompt: Any, wire: str) -> Message:
    """A native system prompt of a wire (a string, or blocks, content or parts as the wire has them).

    Raises BadInput if the wire has no such form.
    """
    prompt = common.plain(prompt)
    match _known(wire):
        case openai_chat.WIRE:
            return openai_chat.read([{"role": "system", "content": prompt}]).messages[0]
        case gemini.WIRE:
            value = {"parts": prompt} if isinstance(prompt, list) else prompt
            system = gemini.read({"contents": [], "systemInstruction": value}).system
        case openai_responses.WIRE:
            system = openai_responses.read({"input": [], "instructions": prompt}).system
        case _:
            system = anthropic.read({"messages": [], "system": prompt}).system
    if system is None:
        what = f"a {type(prompt).__name__} is no system prompt of {wire}"
        raise BadInput(what, "system", "pass a string, or the form of the wire")
    return system


def _known(wire: str) -> str:
    if wire not in WIRES:
        what = f'"{wire}" cannot be written' if wire else "the history is of no wire"
        raise BadInput(what, "write", f"name one of {', '.join(WIRES)}")
    return wire


def _load(source: Any, where: str) -> jsonl.Loaded:
    if isinstance(source, str | bytes | bytearray):
        return jsonl.load(source, where)
    return jsonl.Loaded(where, document=common.plain(source))


def _as_lines(loaded: jsonl.Loaded) -> jsonl.Loaded:
    """The same source as lines: one object, or a list of them, is as many lines."""
    if loaded.lines:
        return loaded
    items = loaded.document if isinstance(loaded.document, list) else [loaded.document]
    lines = [jsonl.Line(at, item) for at, item in enumerate(items, 1) if isinstance(item, dict)]
    return dataclasses.replace(loaded, document=None, lines=lines)
