"""A context as files, and what was done to make it: what every command that makes one ends with."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from microfiche.errors import BadInput, MicroficheError
from microfiche.fit import Context
from microfiche.pages.render import series

from .files import write_all
from .receipt import plural, show, violations

RECEIPT = "receipt.json"
# What this command writes, and so all that it may ever replace or remove.
_OWN = re.compile(r"context\.json|plan\.json|receipt\.json|page-\d{3,9}\.png")


def tokens(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """A number of tokens: ``120000``, ``120_000``, ``120k``."""
    if value is None:
        return None
    found = re.fullmatch(r"([0-9]{1,12}(?:_[0-9]{1,12}){0,3})([kKmM]?)", value)
    tokens = int(found[1]) * {"": 1, "k": 1_000, "m": 1_000_000}[found[2].lower()] if found else 0
    if tokens < 1:
        raise click.BadParameter(f"{value!r} is not a number of tokens, such as 120000, 120_000 or 120k")
    return tokens


def deliver(
    ctx: click.Context,
    context: Context,
    title: str,
    out: Path | None,
    as_json: bool,
    closing: str = "",
    more: Mapping[str, Any] | None = None,
) -> None:
    """Write the context into ``out``, if it is given, and print its receipt under ``title``; code 3 if it is refused.

    ``closing`` is a line for people at the end, ``more`` fields of the JSON.
    """
    files = files_of(context) if out is not None else {}
    if out is not None:
        write_all(out, files, _written_before(out))

    if as_json:
        listed = [*(name for name in files if name != RECEIPT), *([RECEIPT] if files else [])]
        click.echo(json.dumps({**context.receipt.to_dict(), **(more or {}), "files": listed}, indent=1))
    else:
        show(context.receipt, title)
    for line in violations(context.receipt):
        click.echo(line, err=True)
    if files:
        click.echo(_wrote(len(context.pages), out), err=as_json)
    if closing and not as_json:
        click.echo(closing)
    if context.receipt.violations:
        ctx.exit(3)


def files_of(context: Context) -> dict[str, bytes]:
    """The files of a context, the receipt first: it names the others."""
    pages = zip(series("page", (page.number for page in context.pages)), context.pages, strict=True)
    contents = {"context.json": _encode(context.request), **{name: page.png for name, page in pages}}
    contents["plan.json"] = context.plan.to_json().encode("ascii")
    names = [*contents, RECEIPT]
    return {RECEIPT: _encode({**context.receipt.to_dict(), "files": names}, indent=1), **contents}


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
