"""``microfiche compact``: a session file in, a context that fits out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from microfiche import fit, formats
from microfiche import models as catalogue
from microfiche.ladder.budget import Policy
from microfiche.ladder.plan import Plan
from microfiche.messages import History, Message, Text, split_turns

from .contexts import deliver
from .files import STDIN, Target, examples, name_of, read_bytes
from .options import windowless
from .passes import Asked, asking, compact_record, system_of, tools_of
from .progress import working
from .receipt import plural
from .record import is_record, wait_option

_EXAMPLE = "microfiche compact session.jsonl --model claude-opus-5 --budget 120k --out out/"


@click.command(
    epilog=examples(
        _EXAMPLE,
        "microfiche compact session.jsonl --model claude-opus-5 --dry-run",
        "microfiche compact work.mf --model gpt-5.6-sol --name triage",
    )
)
@click.argument("session", type=click.Path(path_type=Path, allow_dash=True))
@asking
@click.option(
    "--out",
    type=Target(),
    metavar="DIR",
    help="Where context.json, the pages, plan.json and receipt.json go.",
)
@click.option(
    "--plan",
    "plan_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The plan.json of the run before: its full pages stay as they were.",
)
@click.option(
    "--from",
    "source_format",
    type=click.Choice(formats.FORMATS),
    help="What SESSION is.  [default: detected]",
)
@click.option("--name", metavar="NAME", help="The conversation, if SESSION is a record of several.")
@click.option("--prompt", metavar="TEXT", help="The opening user message of a session that begins with the assistant.")
@click.option("--dry-run", is_flag=True, help="Print the receipt, write nothing.")
@wait_option
@click.option("--json", "as_json", is_flag=True, help="Print the receipt as JSON.")
@click.pass_context
def compact(
    ctx: click.Context,
    /,
    session: Path,
    out: Path | None,
    plan_file: Path | None,
    source_format: str | None,
    name: str | None,
    prompt: str | None,
    dry_run: bool,
    as_json: bool,
    **asked: Any,
) -> None:
    """Make the context that fits a model out of a session that does not.

    SESSION is a session file (Claude Code, stream-json, ATIF), a request body or a list of messages,
    or - for standard input. Old uneventful tool results become one line, old screenshots a marker, the
    middle of the history pages; what still does not fit is left out and named. The session is only read.

    If SESSION is a record, its conversation is compacted now: the pass is recorded as an event, which
    undo takes back, and --out may be left away.
    """
    wishes = Asked(**asked)
    if session != STDIN and is_record(session):
        for option, given in (("--plan", plan_file), ("--from", source_format), ("--prompt", prompt)):
            if given is not None:
                raise click.UsageError(f"{option} is not for a record, which knows that by itself")
        compact_record(ctx, session, name, wishes, out, dry_run, as_json)
        return
    if name is not None:
        raise click.UsageError("--name is for a record, and SESSION is none")
    if out is None and not dry_run:
        raise click.UsageError("give --out DIR, or --dry-run to write nothing")
    found = catalogue.find(wishes.model, wishes.vision)
    if wishes.budget is None and found.context_window is None:
        raise windowless(wishes.model)
    history = formats.read(read_bytes(session), source_format, name_of(session), found.wire)
    if prompt is not None:
        history = _opened(history, prompt)
    plan = Plan.from_json(read_bytes(plan_file), str(plan_file)) if plan_file is not None else None

    with working(f"Making {name_of(session)} fit"):
        context = fit.compact(
            history,
            model=wishes.model,
            budget=wishes.budget,
            plan=plan,
            system=system_of(wishes.system) if wishes.system is not None else None,
            tools=tools_of(wishes.tools) if wishes.tools is not None else None,
            fidelity=wishes.fidelity,
            vision=wishes.vision,
            format=wishes.wire,
            policy=Policy(font=wishes.fonts),
        )

    turns = plural(len(split_turns(history.messages)[1]), "turn")
    title = f"{name_of(session)} ({history.format}, {turns})"
    if dry_run:
        deliver(ctx, context, title, None, as_json, closing="Nothing was written (--dry-run).")
    else:
        deliver(ctx, context, title, out, as_json)


def _opened(history: History, prompt: str) -> History:
    """The history with a user message in front of its first turn."""
    head, turns = split_turns(history.messages)
    if turns and turns[0].role == "user":
        raise click.UsageError("--prompt: the session has an opening user message of its own")
    if not prompt.strip():
        raise click.UsageError("--prompt: an empty message opens nothing")
    opening = Message("user", (Text(prompt),))
    return replace(history, messages=[*head, opening, *history.messages[len(head) :]])
