"""``microfiche compact``: a session file in, a context that fits out."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from microfiche import fit, formats
from microfiche import models as catalogue
from microfiche.errors import BadInput, MicroficheError
from microfiche.ladder.plan import Plan
from microfiche.messages import History, Message, Text, split_turns
from microfiche.models import FIDELITIES, Fidelity

from .files import name_of, read_bytes, series, write_all
from .receipt import plural, show, violations

RECEIPT = "receipt.json"
# What this command writes, and so all that it may ever replace or remove.
_OWN = re.compile(r"context\.json|plan\.json|receipt\.json|page-\d{3,9}\.png")


def _tokens(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """A number of tokens: ``120000``, ``120_000``, ``120k``."""
    if value is None:
        return None
    found = re.fullmatch(r"([0-9]{1,12}(?:_[0-9]{1,12}){0,3})([kKmM]?)", value)
    tokens = int(found[1]) * {"": 1, "k": 1_000, "m": 1_000_000}[found[2].lower()] if found else 0
    if tokens < 1:
        raise click.BadParameter(f"{value!r} is not a number of tokens, such as 120000, 120_000 or 120k")
    return tokens


_EXAMPLE = "microfiche compact session.jsonl --model claude-opus-5 --budget 120k --out out/"


@click.command(epilog=f"Example:\n\n\b\n  {_EXAMPLE}")
@click.argument("session", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--model", required=True, metavar="MODEL", help="The model that the context is for.")
@click.option(
    "--budget",
    metavar="N",
    callback=_tokens,
    help="Input tokens of the whole request, system prompt and tools included.  "
    "[default: 0.8 x (window - output reserve)]",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
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
@click.option(
    "--format",
    "wire",
    type=click.Choice(formats.WIRES),
    help="The form of the request to write.  [default: a request's own; for a session, that of the model's provider]",
)
@click.option(
    "--fidelity",
    type=click.Choice(FIDELITIES),
    default="exact",
    show_default=True,
    help="How well the model has to read the pages: smaller letters hold more.",
)
@click.option("--vision/--no-vision", default=None, help="Whether the model reads images.  [default: the catalogue's]")
@click.option("--prompt", metavar="TEXT", help="The opening user message of a session that begins with the assistant.")
@click.option("--dry-run", is_flag=True, help="Print the receipt, write nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the receipt as JSON.")
@click.pass_context
def compact(
    ctx: click.Context,
    session: Path,
    model: str,
    budget: int | None,
    out: Path | None,
    plan_file: Path | None,
    source_format: str | None,
    wire: str | None,
    fidelity: Fidelity,
    vision: bool | None,
    prompt: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Make the context that fits a model out of a session that does not.

    SESSION is a session file (Claude Code, stream-json, ATIF), a request body or a list of messages,
    or - for standard input. Old uneventful tool results become one line, old screenshots a marker, the
    middle of the history pages; what still does not fit is left out and named. The session is only read.
    """
    if out is None and not dry_run:
        raise click.UsageError("give --out DIR, or --dry-run to write nothing")
    found = catalogue.find(model, vision)
    if budget is None and found.context_window is None:
        raise click.UsageError(f"the context window of {model} is not known: give --budget")
    history = formats.read(read_bytes(session), source_format, name_of(session), found.wire)
    if prompt is not None:
        history = _opened(history, prompt)
    plan = Plan.from_json(read_bytes(plan_file), str(plan_file)) if plan_file is not None else None

    context = fit.compact(history, model=model, budget=budget, plan=plan, fidelity=fidelity, vision=vision, format=wire)

    files: dict[str, bytes] = {}
    if out is not None and not dry_run:
        pages = zip(series("page", (page.number for page in context.pages)), context.pages, strict=True)
        contents = {"context.json": _encode(context.request), **{name: page.png for name, page in pages}}
        contents["plan.json"] = context.plan.to_json().encode("ascii")
        names = [*contents, RECEIPT]
        files = {RECEIPT: _encode({**context.receipt.to_dict(), "files": names}, indent=1), **contents}
        write_all(out, files, _written_before(out))

    if as_json:
        listed = [*(name for name in files if name != RECEIPT), *([RECEIPT] if files else [])]
        click.echo(json.dumps({**context.receipt.to_dict(), "files": listed}, indent=1))
    else:
        turns = plural(len(split_turns(history.messages)[1]), "turn")
        show(context.receipt, f"{name_of(session)} ({history.format}, {turns})")
    for line in violations(context.receipt):
        click.echo(line, err=True)
    if files:
        click.echo(_wrote(len(context.pages), out), err=as_json)
    elif not as_json:
        click.echo("Nothing was written (--dry-run).")
    if context.receipt.violations:
        ctx.exit(3)


def _opened(history: History, prompt: str) -> History:
    """The history with a user message in front of its first turn."""
    head, turns = split_turns(history.messages)
    if turns and turns[0].role == "user":
        raise click.UsageError("--prompt: the session has an opening user message of its own")
    if not prompt.strip():
        raise click.UsageError("--prompt: an empty message opens nothing")
    opening = Message("user", (Text(prompt),))
    return replace(history, messages=[*head, opening, *history.messages[len(head) :]])


def _written_before(out: Path) -> list[str]:
    """The files that the receipt in ``out`` says were written there, the receipt last; none without one."""
    path = out / RECEIPT
    if not path.exists():
        return []
    try:
        names = json.loads(path.read_bytes())["files"]
        sound = isinstance(names, list) and all(isinstance(name, str) and _OWN.fullmatch(name) for name in names)
    except (ValueError, KeyError, TypeError, RecursionError):
        sound = False
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror or error}", str(path), "choose another --out") from error
    if not sound:
        raise MicroficheError(
            f"{RECEIPT} is there and was not written by this command",
            str(out),
            "move it away, or choose another --out",
        )
    others = (name for name in dict.fromkeys(names) if name != RECEIPT and not (out / name).is_dir())
    return [*others, RECEIPT]


def _encode(value: Any, indent: int | None = None) -> bytes:
    """JSON in ASCII, so that any string survives; a line break at the end."""
    return json.dumps(value, indent=indent).encode("ascii") + b"\n"


def _wrote(pages: int, out: Path | None) -> str:
    drawn = f"{plural(pages, 'page')}, " if pages else ""
    return f"Wrote context.json, {drawn}plan.json and {RECEIPT} to {out}."
