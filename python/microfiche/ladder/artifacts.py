"""What a stretch of turns touched: files, commands and ids, from the record by the shape of calls, not from a model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from microfiche.messages import ToolCall, ToolResult, Turn

from . import elide
from .summary import POINTERS, Line, Span, json_of, one_line


def artifacts(turns: Iterable[Turn]) -> list[Line]:
    """Files changed, ids created, commands run and files read, from the calls of the turns by their shape.

    A call that failed, or that has no result, changed and created nothing.
    """
    found: dict[str, dict[str, set[int]]] = {"changed": {}, "created": {}, "ran": {}, "read": {}, "looked": {}}
    for turn in turns:
        results = {result.call_id: result for message in turn.messages for result in message.results}
        for call in (call for message in turn.messages for call in message.calls):
            result = results.get(call.id)
            for deed, what in _deeds(call, result):
                name = one_line(what, _NAME)
                if name:
                    found[deed].setdefault(name, set()).add(turn.number)
    for name in found["changed"]:
        found["read"].pop(name, None)
    return [
        Line("artifact", f"{'ran' if deed == 'looked' else deed} {name}", _spans(numbers))
        for deed, names in found.items()
        for name, numbers in names.items()
    ]


_NAME = 200
"""Characters of a file's or command's name."""


def _spans(numbers: Iterable[int]) -> tuple[Span, ...]:
    """The first turn and the newest ones."""
    each = [(number, number) for number in sorted(numbers)]
    return tuple(each if len(each) <= POINTERS // 2 else [each[0], *each[1 - POINTERS // 2 :]])


def _deeds(call: ToolCall, result: ToolResult | None) -> Iterator[tuple[str, str]]:
    """What a call did: (``changed`` | ``created`` | ``ran`` | ``read``, the name of what).

    ``looked`` is a command that only shows something: the least of all to know.
    """
    done = result is not None and not result.error
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        arguments = call.arguments
    values = {str(key).lower(): value for key, value in arguments.items()} if isinstance(arguments, dict) else {}
    commands = [line for key in values if key in elide.COMMANDS for line in _texts(values[key])]
    files = [name for key in values if key in elide.FILES for name in _texts(values[key])]
    patched = [name for text in _texts(list(values.values()) or arguments) for name in _patched(text)]
    writes = bool(values.keys() & elide.CONTENTS)
    if commands:
        failed = result is not None and result.error
        deed = "looked" if not failed and all(map(_looks, commands)) else "ran"
        yield deed, " ".join(commands) + (" [failed]" if failed else "")
    if done:
        yield from (("changed", name) for name in patched)
        yield from (("changed" if writes else "read", name) for name in files)
        yield from (("created", name) for name in _created(result, call.arguments, reads=bool(files) and not writes))


_LOOKING = frozenset(
    "ls cat head tail grep egrep rg find fd wc tree stat file pwd cd echo which type sort uniq cut awk sed nl less more"
    " du df env date ps true".split()
)
_LOOKING_GIT = frozenset("status log diff show branch grep ls-files blame remote rev-parse".split())
_STEP = re.compile(r"&&|\|\||[;|\n]")
_QUIET = re.compile(r"\d?>\s*(?:/dev/null|&\d)")


def _looks(command: str) -> bool:
    """Whether a shell command only shows something, as far as its words tell."""
    for step in _STEP.split(_QUIET.sub("", command)):
        words = step.split()
        if not words:
            continue
        shows = words[1:2] and words[1] in _LOOKING_GIT if words[0] == "git" else words[0] in _LOOKING
        if not shows or ">" in step or "-i" in words or "-delete" in words or "-exec" in words:
            return False
    return True


def _texts(value: Any) -> Iterator[str]:
    """Every text in a value or in a list of them."""
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, str):
            yield each
        elif isinstance(each, list):
            yield from (inner for inner in each if isinstance(inner, str))


_PATCH = re.compile(r"^(?:\*\*\* (?:Add|Update|Delete) File: |\+\+\+ (?:b/)?)(\S[^\t\n]*)", re.MULTILINE)
_COMMIT = re.compile(r"^\[[^\s\]]{1,100}(?: \(root-commit\))? ([0-9a-f]{7,40})\] ", re.MULTILINE)
_MADE = re.compile(
    r"^(?:successfully )?(?:created|opened|submitted|published|started|launched|registered)\b[^\n]{0,80}?"
    r"((?:https?://|#)[^\s,;\"'<>]{1,150}|\b[A-Za-z][A-Za-z0-9_.:/-]{0,60}\d[A-Za-z0-9_.:/-]{0,60})",
    re.IGNORECASE | re.MULTILINE,
)
_ID_KEY = re.compile(r"(?:.{1,40}_)?(?:id|uuid|sha|arn)|html_url", re.IGNORECASE)


def _patched(text: str) -> list[str]:
    """Files that a patch changes: git's unified form and the ``*** Begin Patch`` one."""
    if not text.startswith(("*** ", "--- ", "diff ")) and "*** Begin Patch" not in text and "\n+++ " not in text:
        return []
    return [name for name in _PATCH.findall(text) if name != "/dev/null"]


def _created(result: ToolResult | None, arguments: str, reads: bool) -> Iterator[str]:
    """Ids in a short result that the call did not name itself: of one JSON object, a commit, a line that says so."""
    text = "" if result is None or reads else result.text[:_RESULT]
    names = _COMMIT.findall(text) + [each.rstrip(".:") for each in _MADE.findall(text)]
    data = json_of(text.strip())
    if isinstance(data, dict):
        names += [
            str(value)
            for key, value in data.items()
            if _ID_KEY.fullmatch(str(key)) and isinstance(value, (str, int)) and not isinstance(value, bool)
        ]
    yield from (name for name in names if name and name not in arguments)


_RESULT = 4_000
"""Characters of a result that are looked at for ids: what creates something says so briefly."""
