"""What an archive holds: the sessions of files, folders, globs and records, each with a name of its own."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from microfiche.conversation import Record
from microfiche.record.sqlite import is_database

from .rows import fault

SUFFIXES = frozenset((".json", ".jsonl", ".ndjson", ".traj"))
"""How files of sessions are called; in a folder others are passed over, records excepted."""

_LONGEST = 100


class Key(NamedTuple):
    """Which session: its file, and the conversation if that is a record."""

    path: str
    conversation: str | None


@dataclass(frozen=True, slots=True)
class Source:
    """A session of an archive. ``name`` is its place under the pages, ``stamp`` changes when its content does.

    ``weight`` is its share of the work, in bytes. ``error`` tells why there is nothing to be had.
    """

    key: Key
    name: str
    stamp: str
    weight: int
    error: str = ""


def find(arguments: Iterable[str | Path], known: Mapping[Key, str], reserved: Iterable[str] = ()) -> list[Source]:
    """The sessions of files, folders and glob patterns, in the order given, a folder's by name; each once.

    A session is called like its file as it was given, without what leads up and out (``..``, a root, the working
    directory); in a record, with the conversation's name behind it. Where that is taken, ``~2`` and so on follow.
    ``known`` are names given before, which stay. A name is never the beginning of the path of another.
    """
    names = _Names(known, reserved)
    found: list[Source] = []
    seen: set[Path] = set()
    for argument in arguments:
        for path in _files(Path(argument)):
            real = path.resolve()
            if real not in seen:
                seen.add(real)
                found += _sessions(path, str(real), names)
    return found


def _files(argument: Path) -> Iterator[Path]:
    if argument.is_dir():
        yield from _folder(argument)
    elif not os.path.lexists(argument) and glob.has_magic(str(argument)):
        start = Path(argument.anchor)
        found = sorted(start.glob(str(argument.relative_to(start))))
        for each in found:
            yield from _files(each)
        if not found:
            yield argument
    else:
        yield argument


def _folder(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            path = Path(place, name)
            if path.suffix.lower() in SUFFIXES or _is_record(path):
                yield path


def _is_record(path: Path) -> bool:
    try:
        return path.is_file() and is_database(path)
    except OSError:
        return False


def _sessions(path: Path, real: str, names: _Names) -> Iterator[Source]:
    key = Key(real, None)
    try:
        status = path.stat()
        if not is_database(path):
            yield Source(key, names.of(key, _name(path)), f"{status.st_size}:{status.st_mtime_ns}", status.st_size)
            return
        with Record.open(path, create=False, read_only=True) as record:
            standing = record.conversations()
            # A path never changes: the entry at its end stands for all of it.
            tips = {each.name: record.entry(each.tip).leaf.hex() if each.tip is not None else "" for each in standing}
    except Exception as error:
        yield Source(key, _name(path), "", 0, fault(error))
        return
    for conversation, tip in tips.items():
        key = Key(real, conversation)
        yield Source(key, names.of(key, f"{_name(path)}/{_quoted(conversation)}"), tip, status.st_size // len(tips))


def _name(path: Path) -> str:
    path = Path(os.path.normpath(path))
    if path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    return "/".join(part for part in path.parts if part not in (path.anchor, ".."))


def _quoted(conversation: str) -> str:
    """A conversation's name as one of a file: what may be no part of one is percent-encoded, a long one cut."""
    name = quote(conversation, safe=" ()+,;=@[]{}~")
    if name.strip(".") == "":
        name = name.replace(".", "%2E")
    if len(name) > _LONGEST:
        name = f"{name[:_LONGEST]}-{sha256(conversation.encode()).hexdigest()[:12]}"
    return name


class _Names:
    """Names that were given out. No two are the same where letters' case does not count, none is within another."""

    def __init__(self, known: Mapping[Key, str], reserved: Iterable[str]) -> None:
        self._known = known
        self._taken = {name.casefold() for name in reserved}
        self._above: set[str] = set()
        self._last: dict[str, int] = {}
        for name in known.values():
            self._take(name)

    def of(self, key: Key, wanted: str) -> str:
        if key in self._known:
            return self._known[key]
        name, count = wanted, self._last.get(wanted, 1)
        while (clash := self._clash(name)) is not None:
            count += 1
            # Beneath another name no end helps, so the beginning is changed.
            first, *rest = wanted.split("/")
            name = "/".join((f"{first}~{count}", *rest)) if clash else f"{wanted}~{count}"
        self._last[wanted] = count
        self._take(name)
        return name

    def _clash(self, name: str) -> bool | None:
        """Whether a name that is taken stands above this one; ``None`` if it is free."""
        folded = name.casefold()
        if any(above in self._taken for above in _above(folded)):
            return True
        return False if folded in self._taken or folded in self._above else None

    def _take(self, name: str) -> None:
        folded = name.casefold()
        self._taken.add(folded)
        self._above.update(_above(folded))


def _above(name: str) -> Iterator[str]:
    at = name.find("/")
    while at != -1:
        yield name[:at]
        at = name.find("/", at + 1)
