"""The command line: one module a group of commands, imported when one of them is asked for.

Exit codes: 0 done, 1 could not, 2 wrong usage, 3 a check failed. Errors are one line on standard
error: what, where, and what to do about it.
"""

from __future__ import annotations

import io
import os
import re
import sys
from importlib import import_module
from typing import Any

import click

from microfiche.errors import MicroficheError

from .files import examples, plain
from .settings import defaults

__all__ = ["main"]


_SECTIONS = {
    "Make it fit": {"compact": "compact.compact", "recover": "recover.recover"},
    "Pages": {
        "render": "pages.render",
        "rerender": "rerender.rerender",
        "read": "pages.read",
        "fonts": "fonts.fonts",
        "models": "models.models",
        "probe": "probe.probe",
        "bench": "bench.bench",
    },
    "Keep a record": {
        "import": "history.import_",
        "log": "history.log",
        "show": "history.show",
        "search": "history.search",
        "tree": "history.tree",
    },
    "Steer a record": {
        "branch": "branches.branch",
        "fork": "branches.fork",
        "checkpoint": "branches.checkpoint",
        "rewind": "branches.rewind",
        "undo": "branches.undo",
        "pin": "branches.pin",
        "unpin": "branches.unpin",
        "pins": "branches.pins",
    },
    "Contexts of a record": {"context": "passes.context", "shake": "passes.shake", "retry": "passes.retry"},
    "Look and prove": {
        "view": "view.view_",
        "verify": "proofs.verify",
        "audit": "audit.audit",
        "export": "proofs.export",
        "backup": "proofs.backup",
    },
    "This program": {"demo": "demo.demo", "completion": "completion.completion"},
}
"""The commands as the help lists them, by title and name; of each its module and the name there."""

COMPLETE = "_MICROFICHE_COMPLETE"
"""The variable by which a shell asks for completions."""


class _Failure(click.ClickException):
    """Could not: one line, exit code 1."""

    def show(self, file: Any = None) -> None:
        click.echo(f"microfiche: {plain(self.message)}", file=file, err=file is None)


class _Commands(click.Group):
    """Groups of commands; the errors of the package, and the system's, become one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for names in _SECTIONS.values() for name in names]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        for names in _SECTIONS.values():
            if cmd_name in names:
                module, _, name = names[cmd_name].partition(".")
                found: click.Command = getattr(import_module(f"{__name__}.{module}"), name)
                return found
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        widest = max(map(len, commands))
        for title, names in _SECTIONS.items():
            with formatter.section(title):
                # First sentences whole: what is cut off explains nothing.
                found = [(name, command) for name in names if (command := commands[name]) is not None]
                formatter.write_dl([(f"{name:<{widest}}", each.get_short_help_str(400)) for name, each in found])

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
        except click.UsageError as error:
            if meant := _meant(error):
                raise click.UsageError(f"{error.message}; {meant}", error.ctx) from error
            raise
        except MicroficheError as error:
            raise _Failure(str(error)) from error
        except OSError as error:
            where = f"{error.filename}: " if error.filename is not None else ""
            raise _Failure(f"{where}{error.strerror or error}") from error


def _meant(error: click.UsageError) -> str:
    """What a word that stands where no argument is due was meant as, if it is a value of an option."""
    found = re.fullmatch(r"Got unexpected extra arguments? \((.*)\)", error.message)
    if found is None or error.ctx is None:
        return ""
    for option in error.ctx.command.params:
        if isinstance(option, click.Option) and isinstance(option.type, click.Choice):
            known = [word for word in found[1].split() if word in option.type.choices]
            if known:
                return f"{option.opts[0]} takes one of them" if len(known) > 1 else f"say {option.opts[0]} {known[0]}"
    return ""


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


if COMPLETE in os.environ:  # a shell asks, in ways that click does not know of
    from . import completion as _completion  # noqa: F401
