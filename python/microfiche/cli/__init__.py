"""The command line: one module a group of commands.

Exit codes: 0 done, 1 could not, 2 wrong usage, 3 a check failed. Errors are one line on standard
error: what, where, and what to do about it.
"""

from __future__ import annotations

import io
import sys
from typing import Any

import click

from microfiche.errors import MicroficheError

from .audit import audit
from .bench import bench
from .branches import branch, checkpoint, fork, pin, pins, rewind, undo, unpin
from .compact import compact
from .files import plain
from .fonts import fonts
from .history import import_, log, search, show, tree
from .models import models
from .pages import read, render
from .passes import context, retry, shake
from .probe import probe
from .proofs import backup, export, verify
from .recover import recover
from .rerender import rerender
from .view import view_

__all__ = ["main"]


class _Failure(click.ClickException):
    """Could not: one line, exit code 1."""

    def show(self, file: Any = None) -> None:
        click.echo(f"microfiche: {plain(self.message)}", file=file, err=file is None)


class _Commands(click.Group):
    """A group that turns the errors of the package, and the system's, into one line."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise  # the reader of our output has gone: click ends quietly
        except MicroficheError as error:
            raise _Failure(str(error)) from error
        except OSError as error:
            where = f"{error.filename}: " if error.filename is not None else ""
            raise _Failure(f"{where}{error.strerror or error}") from error


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="microfiche")
def main() -> None:
    """Keep an agent's conversation usable when it outgrows the model's context window."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Names of files and tools hold any character, terminals do not.
            stream.reconfigure(errors="backslashreplace")


for _command in (
    *(compact, render, rerender, read, fonts, models, probe, bench),
    *(import_, log, show, search, tree),
    *(branch, fork, checkpoint, rewind, undo, pin, unpin, pins),
    *(context, shake, recover, retry),
    *(view_, verify, audit, export, backup),
):
    main.add_command(_command)
