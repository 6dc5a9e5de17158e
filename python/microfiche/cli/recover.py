"""``microfiche recover``: a request that was refused in, one that fits out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from microfiche import formats, recovery
from microfiche import models as catalogue
from microfiche.errors import BadInput
from microfiche.fit import Context
from microfiche.ladder.budget import Policy
from microfiche.ladder.plan import Plan
from microfiche.messages import split_turns
from microfiche.refusal import Refusal, refusal

from .contexts import deliver
from .files import STDIN, Target, examples, name_of, read_bytes
from .options import Count
from .passes import Asked, asking, system_of, title_of, tools_of
from .progress import working
from .receipt import plural
from .record import is_record, json_option, name_option, opened, picked, wait_option

_EXAMPLE = "microfiche recover request.json --error @refusal.json --model claude-opus-5 --out out/"


@click.command(
    epilog=examples(_EXAMPLE, "microfiche recover work.mf --error @refusal.json --status 400 --model claude-opus-5")
)
@click.argument("source", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--error",
    metavar="TEXT",
    help="What the provider answered: the text or JSON of its error, or @FILE to read it.  "
    "[default: too large, no more known]",
)
@click.option("--status", type=Count(100, 599), metavar="N", help="The HTTP status of the refusal.")
@click.option("--again", is_flag=True, help="This is the second refusal in a row.")
@asking
@click.option("--out", type=Target(), metavar="DIR", help="Where the context goes, as for compact.")
@click.option(
    "--plan",
    "plan_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The plan.json of the request that was refused.",
)
@click.option(
    "--from", "source_format", type=click.Choice(formats.FORMATS), help="What SOURCE is.  [default: detected]"
)
@name_option
@click.option("--dry-run", is_flag=True, help="Print the receipt, write and record nothing.")
@wait_option
@json_option
@click.pass_context
def recover(
    ctx: click.Context,
    /,
    source: Path,
    error: str | None,
    status: int | None,
    again: bool,
    out: Path | None,
    plan_file: Path | None,
    source_format: str | None,
    name: str | None,
    dry_run: bool,
    as_json: bool,
    **asked: Any,
) -> None:
    """Make a request that fits out of one that a provider refused for its size, without a model.

    SOURCE is a request body, a list of messages or a session file, or - for standard input: what was sent, or
    with --plan the whole history that it was made of. What the refusal says of tokens, the answer's length, bytes or
    images decides what becomes smaller.

    If SOURCE is a record, the refusal and the pass are recorded, what it teaches holds from then on, and --out may be
    left away.
    """
    told = told_by(error, status)
    wishes = Asked(**asked)
    if source != STDIN and is_record(source):
        for option, given in (("--plan", plan_file), ("--from", source_format), ("--again", again or None)):
            if given is not None:
                raise click.UsageError(f"{option} is not for a record, which knows that by itself")
        _of_record(ctx, source, name, wishes, told, out, dry_run, as_json)
        return
    if name is not None:
        raise click.UsageError("--name is for a record, and SOURCE is none")
    if out is None and not dry_run:
        raise click.UsageError("give --out DIR, or --dry-run to write nothing")
    found = catalogue.find(wishes.model, wishes.vision)
    history = formats.read(read_bytes(source), source_format, name_of(source), found.wire)
    plan = Plan.from_json(read_bytes(plan_file), str(plan_file)) if plan_file is not None else None
    options = {
        "system": system_of(wishes.system) if wishes.system is not None else None,
        "tools": tools_of(wishes.tools) if wishes.tools is not None else None,
        "budget": wishes.budget,
        "fidelity": wishes.fidelity,
        "vision": wishes.vision,
        "format": wishes.wire,
        "policy": Policy(font=wishes.fonts),
    }
    attempt = 2 if again else 1
    with working(f"Making {name_of(source)} fit"):
        context, learnt = recovery.recovered(history, told, wishes.model, plan, options, recovery.Learnt(), attempt)
    turns = plural(len(split_turns(history.messages)[1]), "turn")
    closing = [_scale(learnt)] if learnt.ratio > 1 else []
    closing += ["Nothing was written (--dry-run)."] if dry_run else []
    title = f"{name_of(source)} ({history.format}, {turns}) after a refusal: {told.cure}"
    deliver(ctx, context, title, None if dry_run else out, as_json, "\n".join(closing), {"refusal": _plain(told)})


def _of_record(
    ctx: click.Context,
    record: Path,
    name: str | None,
    wishes: Asked,
    told: Refusal,
    out: Path | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    with opened(record, write=not dry_run) as held:
        chat = picked(held, name)
        sent = chat.standing(model=wishes.model, **wishes.options(chat))
        with working(f"Making {chat.name} fit"):
            made: Context = chat.preview_recovery(told, sent) if dry_run else chat.recover(told, sent)
        title = f"{title_of(record, chat)} after a refusal: {told.cure}"
        event = None if dry_run else chat.tip
    closing = "Nothing was recorded (--dry-run)." if dry_run else f"Recorded as entry {event}."
    deliver(ctx, made, title, None if dry_run else out, as_json, closing, {"refusal": _plain(told), "entry": event})


def _scale(learnt: recovery.Learnt) -> str:
    counted = f"The provider counted {learnt.ratio:.2f} tokens for each one estimated"
    return f"{counted}: the budget is what its limit leaves for the input, in estimated tokens."


def told_by(error: str | None, status: int | None) -> Refusal:
    """The refusal that the words of the command line mean; :class:`BadInput` for another error."""
    if error is None and status is None:
        return Refusal("tokens")
    # A body that nobody saw is not one without words.
    body: Any = error if error is not None else "" if status == 400 else None
    where = "--error"
    if error is not None and error.startswith("@"):
        where = error[1:]
        body = read_bytes(Path(where))
    # Without a status, what stands there may be an error or an answer.
    for each in (status,) if status is not None else (400, 200):
        if (told := refusal(each, body)) is not None:
            return told
    raise BadInput(
        "this says nothing of a request that is too large", where, "give its --status, or handle it otherwise"
    )


def _plain(told: Refusal) -> dict[str, Any]:
    return {"kind": told.kind, "used": told.used, "limit": told.limit, "max_tokens": told.max_tokens, "cure": told.cure}
