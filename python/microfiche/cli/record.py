"""What the commands on a record share: opening it, finding the conversation, printing lines that fit."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import click
from rich.cells import cell_len, set_cell_size

from microfiche import formats
from microfiche.conversation import Conversation, Record
from microfiche.errors import BadInput, MicroficheError, NotARecord
from microfiche.record import Head
from microfiche.record.sqlite import is_database
from microfiche.transfer import import_history

from .files import STDIN, name_of, plain, read_bytes
from .options import Share

_F = TypeVar("_F", bound=Callable[..., Any])

EXPORT = b'{"microfiche":"record"'
"""How an export of a whole record begins."""

_NARROWEST = 40
_ANYWHERE = 250
"""Cells of a line that goes to no terminal: enough for a search through the output, no flood."""


def _head(ctx: click.Context, param: click.Parameter, value: str | None) -> Head | None:
    """A head as verify prints it: ``123:9f86d0…``."""
    if value is None:
        return None
    found = re.fullmatch(r"([0-9]{1,18})[: ]([0-9a-fA-F]{64})", value.strip())
    if found is None:
        raise click.BadParameter(f"{value!r} is not SIZE:ROOT, a number and 64 hexadecimal digits")
    return Head(int(found[1]), found[2].lower())


def _names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Completes the name of a conversation of the record on the line."""
    # An option that waits for its value leaves the arguments unread.
    given = ctx.params.get("record") or next(iter(ctx.args), None)
    if given is None or not is_record(Path(given)):
        return []
    try:
        with Record.open(given, read_only=True) as held:
            return [each.name for each in held.conversations() if each.name.startswith(incomplete)]
    except MicroficheError:
        return []


record_argument = click.argument("record", type=click.Path(path_type=Path))
name_option = click.option(
    "--name", metavar="NAME", shell_complete=_names, help="The conversation.  [default: the only one of the record]"
)
_WAIT = "microfiche.wait"
wait_option = click.option(
    "--wait",
    type=Share(0, 86_400),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    expose_value=False,
    callback=lambda ctx, _, seconds: ctx.meta.update({_WAIT: seconds}),
    help="How long to wait for another process that writes the record.",
)
head_option = click.option("--head", callback=_head, metavar="SIZE:ROOT", help="A head that was kept elsewhere.")
heads_option = click.option(
    "--heads", type=click.Path(path_type=Path), metavar="FILE", help="A list of heads that was kept elsewhere."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def is_record(path: Path) -> bool:
    """Whether a file is a database, and so no session; not if it cannot be read."""
    try:
        return is_database(path)
    except OSError:
        return False


def opened(path: Path, write: bool = False) -> Record:
    """The record of a file, which has to be there."""
    if not path.exists():
        raise BadInput("there is no such file", str(path), "check the name, or import a session into it first")
    if path.is_dir():
        raise BadInput("a folder", str(path), "name the record in it")
    if path.is_file() and not is_record(path):
        raise NotARecord("not a record", str(path), "name one, or import this into one if it is a session")
    return Record.open(path, create=False, read_only=not write, wait=waiting())


def waiting() -> float:
    """The seconds that ``--wait`` allows."""
    return float(click.get_current_context().meta.get(_WAIT, 10.0))


@contextmanager
def looked_at(path: Path, source_format: str | None = None) -> Iterator[Record]:
    """The record of a file for reading, or of a session: one in a folder of its own, gone when the block ends.

    What a session says has no time of its own here; its entries get that of the file.
    """
    if is_record(path):
        if source_format is not None:
            raise click.UsageError("--from goes with a session; this is a record")
        with opened(path) as held:
            yield held
        return
    source = read_bytes(path)
    where = name_of(path)
    name = "session" if path == STDIN else path.stem
    with TemporaryDirectory() as folder:
        place = Path(folder) / "session.mf"
        if source.startswith(EXPORT):
            with Record.import_(source.decode("ascii", "replace").splitlines(), place) as held:
                yield held
            return
        history, beside = formats.whole(source, source_format, where)
        written = 0 if path == STDIN else path.stat().st_mtime_ns // 1000
        with Record.open(place, clock=lambda: written) as held:
            import_history(held, history, name, source=where, beside=beside)
            yield held


def picked(record: Record, name: str | None) -> Conversation:
    """The conversation of that name; without a name, the only one."""
    names = [each.name for each in record.conversations()]
    listed = ", ".join(names[:20]) + (f" and {len(names) - 20:,} more" if len(names) > 20 else "")
    if name is None:
        if not names:
            raise BadInput("the record holds no conversation", str(record.path), "import a session into it first")
        if len(names) > 1:
            raise click.UsageError(f"the record holds several conversations: give --name, one of {plain(listed)}")
        name = names[0]
    elif name not in names:
        raise BadInput(f"no conversation {name!r}", str(record.path), f"there are {listed or 'none'}")
    return record.conversation(name)


def emit(value: Any) -> None:
    """Print a value as JSON in ASCII, so that any string survives."""
    click.echo(json.dumps(value, indent=1))


def room() -> int:
    """Cells of a line of the terminal, or of what stands for one."""
    columns = os.environ.get("COLUMNS", "")
    if not sys.stdout.isatty() and not columns.isdigit():
        return _ANYWHERE
    return max(shutil.get_terminal_size().columns, _NARROWEST)


def fitted(text: str, left: int | None = None) -> str:
    """A text as one line of so many cells at most, by default of a whole line; wide characters take two."""
    left = room() if left is None else max(left, 8)
    line = plain(" ".join(text[: 4 * left + 200].split()))
    if cell_len(line) <= left and len(text) <= 4 * left + 200:
        return line
    return set_cell_size(line, left - 1).rstrip() + "…"


def styled(text: str, **style: Any) -> str:
    """A text in the colours of a terminal, where there is one that wants them (https://no-color.org)."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return click.style(text, **style)
