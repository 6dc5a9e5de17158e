"""What the commands share: reading what they are given, writing what they make, whole or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from microfiche.errors import BadInput, MicroficheError

STDIN = Path("-")


class Target(click.Path):
    """A file or folder to write; an empty name, which a shell makes of an unset variable, is none."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the name is empty", param, ctx)
        return super().convert(value, param, ctx)


def examples(*lines: str) -> str:
    """What the help of a command ends with."""
    return "\n".join([f"Example{'s' if len(lines) > 1 else ''}:", "", "\b", *(f"  {line}" for line in lines)])


def plain(text: str) -> str:
    """The text with what a terminal would obey or break on written as escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def table(**columns: str) -> Table:
    """An empty table; its columns by name, each ``left`` or ``right``."""
    made = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name, side in columns.items():
        made.add_column(name.replace("_", " ").strip(), justify="right" if side == "right" else "left", no_wrap=True)
    return made


def print_table(made: Table) -> None:
    """Print a table at its natural width: cutting numbers to the terminal's helps nobody."""
    Console(markup=False, highlight=False, emoji=False, width=250).print(made)


def name_of(path: Path) -> str:
    """What a file is called in messages."""
    return "standard input" if path == STDIN else str(path)


def read_bytes(path: Path) -> bytes:
    """The bytes of a file, or of standard input for ``-``."""
    if path == STDIN:
        return sys.stdin.buffer.read()
    try:
        return path.read_bytes()
    except OSError as error:
        cure = {
            FileNotFoundError: "check the name, or give - for standard input",
            IsADirectoryError: "name a file in it",
            PermissionError: "make it readable",
        }.get(type(error), "")
        raise BadInput(f"cannot be read: {error.strerror or error}", str(path), cure) from error


def write_all(directory: Path, files: Mapping[str, bytes], ours: Collection[str]) -> None:
    """Write files into a directory in one step, in the order given; ``ours`` are replaced or removed.

    Everything is written and synced under other names in the same directory first, then renamed. If
    anything fails the directory is as it was. A file that is there and is not ours is an error before
    anything is written. If the machine stops in the midst of the renames, no file stands there that
    the first of ``files`` does not name or the last of ``ours`` did not: the caller gives its list
    of files at these places.
    """
    if directory.exists() and not directory.is_dir():
        raise MicroficheError("is not a directory", str(directory), "choose another --out")
    foreign = [name for name in files if name not in ours and os.path.lexists(directory / name)]
    if foreign:
        raise MicroficheError(
            f"{foreign[0]} is there and was not written by this command",
            str(directory),
            "move it away, or choose another --out",
        )
    created = not directory.exists()
    drafts = {directory / f".{name}.{os.getpid()}.new": directory / name for name in files}
    moved: list[tuple[Path, Path]] = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for draft, data in zip(drafts, files.values(), strict=True):
            _write_synced(draft, data)
        for name in ours:
            if os.path.lexists(directory / name):
                _rename(directory / name, directory / f".{name}.{os.getpid()}.old", moved)
        for draft, target in drafts.items():
            _rename(draft, target, moved)
    except BaseException as error:
        for source, target in reversed(moved):
            target.replace(source)
        for draft in drafts:
            with suppress(OSError):
                draft.unlink()
        if created:
            with suppress(OSError):
                directory.rmdir()
        if isinstance(error, OSError):
            raise _unwritable(error, directory) from error
        raise
    _sync(directory)
    for _, target in moved:
        if target.suffix == ".old":
            target.unlink()


def write_one(path: Path, data: bytes) -> None:
    """Write a file that was named in full, in place of what it held."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        _write_synced(draft, data)
        draft.replace(path)
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        raise _unwritable(error, path) from error


def wrote(path: Path) -> None:
    """Say on standard error that a file was written, where standard output may be a program's."""
    click.echo(plain(f"Wrote {path}."), err=True)


def _unwritable(error: OSError, where: Path) -> MicroficheError:
    return MicroficheError(
        f"cannot be written: {error.strerror or error}", str(where), "choose another --out, or make room"
    )


def _write_synced(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _rename(source: Path, target: Path, moved: list[tuple[Path, Path]]) -> None:
    source.replace(target)
    moved.append((source, target))


def _sync(directory: Path) -> None:
    """Make the renames last, where the system lets a directory be synced."""
    with suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
