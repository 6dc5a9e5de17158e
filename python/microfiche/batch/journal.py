"""What a run has finished, a line a session, so that another goes on where it was killed; and the manifest of it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from microfiche.errors import BadInput, Busy, MicroficheError

from . import tables
from .sources import Key, Source

NAME = "journal.jsonl"
UNFINISHED = ".unfinished"
Manifest = Literal["parquet", "jsonl"]
MANIFESTS: tuple[Manifest, ...] = ("parquet", "jsonl")
RESERVED = (NAME, UNFINISHED, *(f"manifest.{kind}" for kind in MANIFESTS))
"""What no session can be called in the folder."""

VERSION = 1


class _Done(NamedTuple):
    name: str
    stamp: str
    at: int


@dataclass(frozen=True, slots=True)
class Drawn:
    """A session on pages: its characters, and of each page what its row in the manifest says of it alone."""

    characters: int
    pages: list[dict[str, Any]]


class Journal:
    """The folder of a run: the pages of finished sessions, the journal that lists them, and one run at a time.

    A session's pages are moved to their place at once and then listed; what a killed run left half done stands in
    a folder of its own, which the next removes. ``settings`` are all that decides what pages look like: a folder
    holds pages of one kind. Raises :class:`BadInput` for a folder of other pages or other files,
    :class:`Busy` while another run writes there.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self.folder = folder
        self.scratch = folder / UNFINISHED / str(os.getpid())
        self._settings = dict(settings)
        self._done: dict[Key, _Done] = {}
        self._file: IO[bytes]
        self._place = folder / NAME

    def __enter__(self) -> Journal:
        if self.folder.exists() and not self.folder.is_dir():
            raise MicroficheError("is not a directory", str(self.folder), "choose another --out")
        if self.folder.is_dir() and not self._place.exists() and any(self.folder.iterdir()):
            what = "holds files, and no journal of a run"
            raise BadInput(what, str(self.folder), "choose an empty folder, or that of an earlier run")
        self.folder.mkdir(parents=True, exist_ok=True)
        # To append, so that a second run that is refused changes nothing.
        self._file = self._place.open("a+b")
        try:
            _lock(self._file, self.folder)
            self._read()
            shutil.rmtree(self.folder / UNFINISHED, ignore_errors=True)
            self.scratch.mkdir(parents=True)
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        shutil.rmtree(self.folder / UNFINISHED, ignore_errors=True)

    @property
    def names(self) -> dict[Key, str]:
        """The names of the sessions that are here."""
        return {key: done.name for key, done in self._done.items()}

    def has(self, source: Source) -> bool:
        """Whether the pages of a session are here, drawn of what it holds now."""
        done = self._done.get(source.key)
        if done is None or done.stamp != source.stamp:
            return False
        place = self.folder / done.name
        try:
            return place.is_dir() and all(
                (self.folder / page["file"]).stat().st_size == page["bytes"] for page in self._told(done)["pages"]
            )
        except OSError:
            return False

    def add(self, source: Source, drawn: Drawn, pages: Path) -> None:
        """Move the pages of a session, files of the folder ``pages``, to their place, and list them."""
        place = self.folder / source.name
        place.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(place):
            # Of an earlier state, or of a run that was killed between the move and the list.
            place.replace(self.scratch / f"{pages.name}.old")
        pages.replace(place)
        shutil.rmtree(self.scratch / f"{pages.name}.old", ignore_errors=True)
        listed = [{**page, "file": f"{source.name}/{page['file']}"} for page in drawn.pages]
        told = {
            "session": source.name,
            "source": source.key.path,
            "conversation": source.key.conversation,
            "stamp": source.stamp,
            "characters": drawn.characters,
            "pages": listed,
        }
        at = self._file.seek(0, os.SEEK_END)
        self._file.write(_line(told))
        self._file.flush()
        self._done[source.key] = _Done(source.name, source.stamp, at)

    def close(self, manifest: Manifest) -> Path:
        """Put the journal in order, so that it does not tell which session was finished first, and write the manifest.

        Both are written beside and renamed. Returns the manifest's place.
        """
        target = self.folder / f"manifest.{manifest}"
        draft = self.scratch / target.name
        if manifest == "parquet":
            tables.write(draft, self._rows())
        else:
            with draft.open("wb") as file:
                file.writelines(map(_line, self._rows()))
        ordered = self.scratch / NAME
        with ordered.open("wb") as file:
            file.write(self._header())
            file.writelines(_line(self._told(done)) for done in self._in_order())
        draft.replace(target)
        for kind in MANIFESTS:
            if kind != manifest:
                (self.folder / f"manifest.{kind}").unlink(missing_ok=True)
        ordered.replace(self._place)
        return target

    def _in_order(self) -> list[_Done]:
        return sorted(self._done.values())

    def _rows(self) -> Iterator[dict[str, Any]]:
        for done in self._in_order():
            told = self._told(done)
            for page in told["pages"]:
                yield {"session": told["session"], "model": self._settings["model"], **page, "source": told["source"]}

    def _told(self, done: _Done) -> dict[str, Any]:
        self._file.seek(done.at)
        told: dict[str, Any] = json.loads(self._file.readline())
        return told

    def _header(self) -> bytes:
        return _line({"microfiche": "rerender", "version": VERSION, **self._settings})

    def _read(self) -> None:
        self._file.seek(0)
        header = self._file.readline()
        if not header.endswith(b"\n"):
            # New, or killed before its first line was whole.
            self._file.truncate(0)
            self._file.write(self._header())
            self._file.flush()
            return
        self._check(header)
        at = len(header)
        for line in self._file:
            if not line.endswith(b"\n"):
                break
            try:
                told = json.loads(line)
                done = _Done(told["session"], told["stamp"], at)
                self._done[Key(told["source"], told["conversation"])] = done
            except (ValueError, KeyError, TypeError) as error:
                what = f"the line at byte {at:,} of {NAME} is damaged"
                raise BadInput(what, str(self.folder), "choose another folder") from error
            at += len(line)
        # A line that a kill cut off is written again.
        self._file.truncate(at)

    def _check(self, header: bytes) -> None:
        ours = self._header()
        if header == ours:
            return
        try:
            told = json.loads(header)
            known = told["microfiche"] == "rerender"
        except (ValueError, KeyError, TypeError):
            known = False
        if not known:
            raise BadInput(f"{NAME} there is none of ours", str(self.folder), "choose another folder")
        wanted = json.loads(ours)
        other = ", ".join(
            f"{name} {told.get(name)!r}, not {value!r}" for name, value in wanted.items() if told.get(name) != value
        )
        raise BadInput(f"pages of another kind are there: {other}", str(self.folder), "choose another folder for these")


def _line(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii") + b"\n"


def _lock(file: IO[bytes], folder: Path) -> None:
    """Held as long as the file is open; where the system has no such lock, two runs must not be started."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise Busy("another run writes here", str(folder), "wait for it, or choose another folder") from error
