"""JSON documents and JSON lines, read as far as they are sound."""

from __future__ import annotations

import codecs
import json
from dataclasses import dataclass, field
from typing import Any

from ..errors import BadInput
from ..messages import Note


@dataclass(frozen=True, slots=True)
class Line:
    """One object of a file of lines: its number from 1 and what stands there."""

    number: int
    value: dict[str, Any]


@dataclass(slots=True)
class Loaded:
    """A source as data: one ``document``, or ``lines`` where there is one object a line."""

    where: str
    document: Any = None
    lines: list[Line] = field(default_factory=list)
    damaged: list[int] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)


class _Parser:
    """Parses JSON and remembers the constants it met that are no JSON (NaN and the infinities)."""

    def __init__(self) -> None:
        self.constants: list[str] = []
        self._decoder = json.JSONDecoder(parse_constant=self._constant)

    def _constant(self, name: str) -> float:
        self.constants.append(name)
        return float(name)

    def parse(self, text: str) -> Any:
        """Raises ValueError for torn JSON and for integers over the interpreter's limit, RecursionError."""
        self.constants.clear()
        return self._decoder.decode(text)


def load(source: str | bytes | bytearray, where: str) -> Loaded:
    """Read JSON text: one document if the whole is one, else one object a line.

    Damaged lines are passed over, each with a note that names it by number. Raises BadInput if
    there is nothing to read, or if the text is one broken document.
    """
    loaded = Loaded(where)
    text = source if isinstance(source, str) else _decode(bytes(source), loaded)
    text = text.removeprefix("\ufeff")
    if not text.strip("\0 \t\r\n"):
        what = "the input is empty" if not text.strip() else "the input holds nothing but NUL"
        raise BadInput(what, where, "pass a session file, a request body or a list of messages")
    parser = _Parser()
    try:
        document = parser.parse(text)
    except json.JSONDecodeError as error:
        fault = f"no JSON: {error.msg} at line {error.lineno}, column {error.colno}"
    except ValueError:
        fault = "a number too long to read exactly"
    except RecursionError:
        fault = "JSON nested too deeply"
    else:
        if parser.constants:
            loaded.notes.append(Note(where, _constants(parser)))
        loaded.document = document
        return loaded
    _load_lines(text, loaded, parser)
    if not loaded.lines:
        raise BadInput(fault, where, "pass a JSON document, or JSON lines with one object a line")
    return loaded


def _load_lines(text: str, loaded: Loaded, parser: _Parser) -> None:
    rows = text.split("\n")  # only this: other separators of str.splitlines stand inside JSON strings
    last = max((at for at, row in enumerate(rows, 1) if row.strip("\0 \t\r")), default=0)
    for number, row in enumerate(rows, 1):
        bare = row.strip(" \t\r")
        if not bare:
            continue
        body = bare.strip("\0")
        if len(body) < len(bare):
            _note(loaded, number, f"NUL characters ({len(bare) - len(body)}) passed over")
            if not body:
                continue
        try:
            value = parser.parse(body)
        except json.JSONDecodeError as error:
            what = "torn last line" if number == last else "damaged line"
            _damage(loaded, number, f"{what} passed over: {error.msg} at column {error.colno}")
        except ValueError:
            _damage(loaded, number, "damaged line passed over: a number too long to read exactly")
        except RecursionError:
            _damage(loaded, number, "damaged line passed over: nested too deeply")
        else:
            if not isinstance(value, dict):
                _damage(loaded, number, f"damaged line passed over: a {type(value).__name__} is no object")
                continue
            if parser.constants:
                _note(loaded, number, _constants(parser))
            loaded.lines.append(Line(number, value))


def _constants(parser: _Parser) -> str:
    return f"kept, though no JSON: {', '.join(dict.fromkeys(parser.constants))}"


def _note(loaded: Loaded, number: int, what: str) -> None:
    loaded.notes.append(Note(f"{loaded.where}:{number}", what))


def _damage(loaded: Loaded, number: int, what: str) -> None:
    loaded.damaged.append(number)
    _note(loaded, number, what)


def _decode(data: bytes, loaded: Loaded) -> str:
    """UTF-8 with lone surrogates as some writers leave them; UTF-16 if its mark says so."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        loaded.notes.append(
            Note(f"{loaded.where}:{line}", f"no UTF-8 at byte {error.start}: such bytes are read as U+FFFD")
        )
    return b"".join(_sound(row) for row in data.splitlines(keepends=True)).decode("utf-8", "surrogatepass")


def _sound(row: bytes) -> bytes:
    """The row as UTF-8: untouched if it is, else with its undecodable bytes replaced."""
    try:
        row.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return row.decode("utf-8", "replace").encode("utf-8")
    return row
