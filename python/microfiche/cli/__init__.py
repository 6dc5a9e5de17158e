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
from .completion import completion
from .demo import demo
from .files import examples, plain
from .fonts import fonts
from .history import import_, log, search, show, tree
from .models import models
from .pages import read, render
from .passes import context, retry, shake
from .probe import probe
from .proofs import backup, export, verify
from .recover import recover
from .rerender import rerender
from .settings import defaults
from .view import view_

__all__ = ["main"]


class _Failure(click.ClickException):
    """Could not: one line, exit code 1."""

    def show(self, file: Any = None) -> None:
        click.echo(f"microfiche: {plain(self.message)}", file=file, err=file is None)


class _Commands(click.Group):
    """Groups of commands; the errors of the package, and the system's, become one line."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.sections: dict[str, tuple[str, ...]] = {}

    def add_section(self, title: str, *commands: click.Command) -> None:
        """Add commands that the help lists under a title."""
        for command in commands:
            self.add_command(command)
        self.sections[title] = tuple(str(command.name) for command in commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, self.commands))
        for title, names in self.sections.items():
            with formatter.section(title):
                # First sentences whole: what is cut off explains nothing.
                shown = [(f"{name:<{widest}}", self.commands[name].get_short_help_str(400)) for name in names]
                formatter.write_dl(shown)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        # Help is there whatever is wrong with the settings, and completion asks for no values.
        if command is not None and not ctx.resilient_parsing and not {"-h", "--help"} & set(rest):
            ctx.default_map = {str(name): defaults(command)}
        return name, command, rest

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


_EXAMPLES = examples(
    "microfiche compact session.jsonl --model claude-opus-5 --out out/",
    "microfiche view session.jsonl",
    "microfiche import session.jsonl work.mf --name triage",
)


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=f"{_EXAMPLES}\n\nEvery command has examples of its own: microfiche COMMAND --help.",
)
@click.version_option(package_name="microfiche")
def main() -> None:
    """Keep an agent's conversation usable when it outgrows the model's context window."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Names of files and tools hold any character, terminals do not.
            stream.reconfigure(errors="backslashreplace")


assert isinstance(main, _Commands)
main.add_section("Make it fit", compact, recover)
main.add_section("Pages", render, rerender, read, fonts, models, probe, bench)
main.add_section("Keep a record", import_, log, show, search, tree)
main.add_section("Steer a record", branch, fork, checkpoint, rewind, undo, pin, unpin, pins)
main.add_section("Contexts of a record", context, shake, retry)
main.add_section("Look and prove", view_, verify, audit, export, backup)
main.add_section("This program", demo, completion)
