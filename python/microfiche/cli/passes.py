"""Contexts of a record's conversation: ``context``, ``shake``, ``retry``, and ``compact`` on a record."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from microfiche import formats
from microfiche import models as catalogue
from microfiche.conversation import SHAKES, Conversation, Options
from microfiche.errors import BadInput
from microfiche.fit import Context
from microfiche.ladder.budget import Policy, budget_for
from microfiche.models import Fidelity
from microfiche.transfer import imported_with, standing_options
from microfiche.views.window import composition

from .contexts import deliver, tokens
from .files import Target, examples, read_bytes
from .options import fidelity_option, font_option, model_words, vision_option, windowless
from .progress import working
from .record import emit, fitted, json_option, name_option, opened, picked, record_argument, room, styled, wait_option


@dataclass(frozen=True, slots=True)
class Asked:
    """What a context is asked for with on the command line."""

    model: str
    budget: int | None
    wire: str | None
    fidelity: Fidelity
    vision: bool | None
    fonts: tuple[str, ...]
    system: Path | None
    tools: Path | None

    def options(self, chat: Conversation) -> Options:
        """Options for the conversation; system prompt and tools are those of its import if none are given."""
        found = catalogue.find(self.model, self.vision)
        if self.budget is None and found.context_window is None:
            raise windowless(self.model)
        session = imported_with(chat).get("format", formats.WIRES[0]) not in formats.WIRES
        # As for a session file: its form is nobody's request, so the model's provider decides.
        own = found.wire if session and found.match != "unknown" else chat.state().wire()
        wire = self.wire or own or found.wire
        options = standing_options(chat, wire)
        options |= {"budget": self.budget, "fidelity": self.fidelity, "vision": self.vision, "format": wire}
        if self.fonts:
            options["policy"] = Policy(font=self.fonts)
        if self.system is not None:
            options["system"] = system_of(self.system)
        if self.tools is not None:
            options["tools"] = tools_of(self.tools)
        return options


def system_of(path: Path) -> str:
    """The system prompt that stands in a file."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"not UTF-8 at byte {error.start}", str(path), "save it as UTF-8") from error


def tools_of(path: Path) -> list[Any]:
    """The native tool definitions that stand in a file, as a JSON list."""
    try:
        value = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"not JSON ({error})", str(path), "give a list of tool definitions") from error
    if not isinstance(value, list):
        raise BadInput("not a list", str(path), "give a list of tool definitions")
    return value


def asking(command: Callable[..., None]) -> Callable[..., None]:
    """The options of every command that makes a context."""
    for option in reversed(
        (
            click.option(
                "--model",
                required=True,
                **model_words,
                help="The model that the context is for.",
            ),
            click.option(
                "--budget",
                metavar="N",
                callback=tokens,
                help="Input tokens of the whole request, system prompt and tools included.  "
                "[default: 0.8 x (window - output reserve)]",
            ),
            click.option(
                "--format",
                "wire",
                type=click.Choice(formats.WIRES),
                help="The form of the request to write.  "
                "[default: a request's own; for a session, that of the model's provider]",
            ),
            fidelity_option,
            vision_option,
            font_option,
            click.option(
                "--system",
                type=click.Path(path_type=Path),
                metavar="FILE",
                help="The system prompt.  [default: the session's]",
            ),
            click.option(
                "--tools",
                type=click.Path(path_type=Path),
                metavar="FILE",
                help="Native tool definitions, a JSON list.  [default: the session's]",
            ),
        )
    ):
        command = option(command)
    return command


_ROWS = {
    "system": "system prompt",
    "tools": "tools",
    "text": "messages",
    "images": "images",
    "pages": "pages and what stands beside them",
    "pins": "pins",
    "summaries": "summaries",
    "learnt": "learnt from refusals",
}


_BAR = 30
_FILLS = "▏▎▍▌▋▊▉█"


def _filled(spent: dict[str, int], free: int, budget: int) -> Iterator[str]:
    """A line for each thing that fills the window, with a bar where the terminal has room for one."""
    rows = [(_ROWS[kind], number) for kind, number in spent.items() if number or kind not in ("summaries", "learnt")]
    widest = max(len(label) for label, _ in rows)
    numbers = max(len(f"{budget:,}"), len(f"{free:,}"))
    left = room() - numbers - 9
    bar = min(_BAR, left - widest - 2)
    for label, number in [*rows, ("free", free), ("budget", budget)]:
        eighths = min(max(round(8 * bar * number / budget), 0), 8 * bar)
        drawn = "█" * (eighths // 8) + (_FILLS[eighths % 8 - 1] if eighths % 8 else "")
        shown = f"  {styled(drawn, fg='green' if label == 'free' else 'cyan')}" if drawn and label != "budget" else ""
        yield f"{fitted(label, left):<{min(widest, left)}} {number:>{numbers},} {number / budget:>7.1%}{shown}"


@click.command(
    epilog=examples(
        "microfiche context work.mf --model claude-opus-5", "microfiche context work.mf --model claude-opus-5 --json"
    )
)
@record_argument
@asking
@name_option
@json_option
def context(record: Path, name: str | None, as_json: bool, **asked: Any) -> None:
    """Show what fills the window of the next call, and how much is free. Nothing is recorded.

    Over the threshold the next call makes a pass first: then the context after it is shown.
    """
    with opened(record) as held:
        chat = picked(held, name)
        options = Asked(**asked).options(chat)
        with working(f"Making the context of {chat.name}"):
            made = chat.preview(model=asked["model"], **options)
        state = chat.state()
        spent = composition(made, state.history(made.receipt.format).pins)
        pass_due = made.plan != state.plan and bool(made.plan or state.plan)
    found = catalogue.find(asked["model"], asked["vision"])
    budget = made.asked["budget"] or budget_for(found, Policy()).tokens
    told = {"conversation": chat.name, "model": made.receipt.model, "format": made.receipt.format}
    if as_json:
        emit({**told, "budget": budget, "tokens": made.tokens, "spent": spent, "free": budget - made.tokens,
              "pages": len(made.pages), "pass_due": pass_due})  # fmt: skip
        return
    click.echo(fitted(f"{chat.name} for {made.receipt.model} ({made.receipt.format}), budget {budget:,} tokens"))
    click.echo()
    for line in _filled(spent, budget - made.tokens, budget):
        click.echo(line)
    if pass_due:
        click.echo("\nOver the threshold: the next call makes a pass first. This is the context after it.")


@click.command(
    epilog=examples(
        "microfiche shake work.mf --model claude-opus-5 --out out/",
        "microfiche shake work.mf --model claude-opus-5 --only images",
    )
)
@record_argument
@click.option("--only", type=click.Choice(SHAKES), help="One of the reducers.  [default: elide and images]")
@asking
@click.option("--out", type=Target(), metavar="DIR", help="Where the context goes, as for compact.")
@click.option("--dry-run", is_flag=True, help="Print the receipt, write and record nothing.")
@name_option
@wait_option
@json_option
@click.pass_context
def shake(
    ctx: click.Context,
    /,
    record: Path,
    only: str | None,
    out: Path | None,
    dry_run: bool,
    name: str | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Run the free reducers: old tool results (elide) become a line each, old screenshots (images) a marker.

    With --only reasoning the reasoning of old answers leaves, never that of the one being answered. No pages are
    drawn. The pass is recorded as an event, and undo takes it back.
    """
    with opened(record, write=not dry_run) as held:
        chat = picked(held, name)
        with working(f"Shaking {chat.name}"):
            made = chat.shake(only, model=asked["model"], dry_run=dry_run, **Asked(**asked).options(chat))
        title, event = title_of(record, chat), None if dry_run else chat.tip
    _deliver_pass(ctx, made, title, event, out, as_json)


@click.command(epilog=examples("microfiche retry work.mf --out out/"))
@record_argument
@click.option("--out", type=Target(), metavar="DIR", help="Where the context goes, as for compact.")
@name_option
@wait_option
@json_option
@click.pass_context
def retry(ctx: click.Context, record: Path, out: Path | None, name: str | None, as_json: bool) -> None:
    """Make the context of the failed attempt again, to send it again.

    Nothing failed since the last message, and a conversation without messages, are different errors.
    """
    with opened(record, write=True) as held:
        chat = picked(held, name)
        made = chat.retry()
        title = title_of(record, chat)
    deliver(ctx, made, title, out, as_json)


def compact_record(
    ctx: click.Context, record: Path, name: str | None, asked: Asked, out: Path | None, dry_run: bool, as_json: bool
) -> None:
    """``compact`` on a record: the pass is an event of it; with ``dry_run`` nothing is recorded."""
    with opened(record, write=not dry_run) as held:
        chat = picked(held, name)
        options = asked.options(chat)
        with working(f"Making {chat.name} fit"):
            made = chat.compact(model=asked.model, dry_run=dry_run, **options)
        title, event = title_of(record, chat), None if dry_run else chat.tip
    _deliver_pass(ctx, made, title, event, out, as_json)


def _deliver_pass(
    ctx: click.Context, made: Context, title: str, event: int | None, out: Path | None, as_json: bool
) -> None:
    """Tell a pass by hand, and write its context unless it was a dry run, which has no ``event``."""
    closing = "Nothing was recorded (--dry-run)." if event is None else f"Recorded as entry {event}."
    deliver(ctx, made, title, None if event is None else out, as_json, closing, {"entry": event})


def title_of(record: Path, chat: Conversation) -> str:
    """What a receipt is headed with."""
    turns = len(chat.state().history(chat.state().wire()).turns()[1])
    return f"{record}, {chat.name} ({turns:,} turn{'' if turns == 1 else 's'})"
