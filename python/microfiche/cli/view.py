"""A record to look at: ``view``."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import click

from microfiche import formats
from microfiche.errors import MicroficheError
from microfiche.record import Head
from microfiche.views.browse import browse
from microfiche.views.html import MARK, view

from .files import STDIN, Target, examples, name_of, plain, read_bytes, write_one
from .options import Count
from .progress import working
from .receipt import plural
from .record import emit, head_option, heads_option, json_option, looked_at, picked


@click.command(
    "view", epilog=examples("microfiche view work.mf --out work.html", "microfiche view session.jsonl --serve")
)
@click.argument("record", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--out", type=Target(), metavar="FILE", help="The file to write.  [default: RECORD's name with .html]")
@click.option("--serve", is_flag=True, help="Write no file: serve the page to this machine's browser until Ctrl-C.")
@click.option("--port", type=Count(0, 65535), metavar="N", help="With --serve.  [default: a free one]")
@click.option("--name", metavar="NAME", help="One conversation only.  [default: all of the record]")
@click.option(
    "--prove",
    type=Count(0),
    default=100,
    show_default=True,
    metavar="N",
    help="Prove the contexts of the newest N calls of each conversation; those of passes are proven always.",
)
@click.option(
    "--from", "source_format", type=click.Choice(formats.FORMATS), help="What a session is.  [default: detected]"
)
@head_option
@heads_option
@json_option
@click.pass_context
def view_(
    ctx: click.Context,
    record: Path,
    out: Path | None,
    serve: bool,
    port: int | None,
    name: str | None,
    prove: int,
    source_format: str | None,
    head: Head | None,
    heads: Path | None,
    as_json: bool,
) -> None:
    """Write a record as one HTML file to walk through: branches, passes, pages, what each call saw.

    The file needs no network and no other file, and nothing in a transcript can run in it. RECORD may be
    a session too, or - for one from standard input: it is imported for the page and left as it is.
    Not sound: exit code 3, and the page says so.
    """
    if serve and out is not None:
        raise click.UsageError("give --out or --serve")
    if port is not None and not serve:
        raise click.UsageError("--port goes with --serve")
    if out is None and not serve:
        if record == STDIN:
            raise click.UsageError("give --out or --serve for a session from standard input")
        out = _free(Path(f"{record.stem}.html"))
    if heads is not None:
        read_bytes(heads)  # a list that cannot be read is no fault of the record
    with looked_at(record, source_format) as held:
        names = [picked(held, name).name] if name is not None else [each.name for each in held.conversations()]
        if not names:
            picked(held, None)  # says that there is none
        shown = name_of(record) if record == STDIN else record.name
        with working("Proving contexts"):
            data = browse(held, names, prove, record_name=shown, head=head, heads=heads)
    document = view(data)
    if out is None:
        _serve(document, port or 0)
        return
    written = document.encode("utf-8")
    write_one(out, written)
    told: dict[str, Any] = {"file": str(out), "bytes": len(written), "conversations": names}
    told |= {"entries": data["record"]["size"], "pages": len(data["pages"]), "sound": data["record"]["sound"]}
    if as_json:
        emit(told)
    else:
        click.echo(plain(f"Wrote {out}: {_what(told)}."))
    if not told["sound"]:
        click.echo(plain(f"The record is NOT SOUND: {data['record']['reason']}"), err=True)
        ctx.exit(3)


def _what(told: dict[str, Any]) -> str:
    pages = plural(told["pages"], "page")
    return f"{plural(len(told['conversations']), 'conversation')}, {pages}, {told['bytes']:,} bytes"


def _free(out: Path) -> Path:
    """The file, unless something stands there that this command did not write."""
    if out.exists():
        with out.open("rb") as file:
            if MARK.encode("ascii") not in file.read(4096):
                raise MicroficheError("is there and was not written by this command", str(out), "name the file: --out")
    return out


def _serve(document: str, port: int) -> None:
    from microfiche.views.serve import serving  # the standard library's server is slow to import

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        with serving(document, port) as address:
            click.echo(f"Serving {address} to this machine; Ctrl-C ends it.")
            while True:
                time.sleep(3600)
    except KeyboardInterrupt:
        click.echo()
    finally:
        signal.signal(signal.SIGTERM, before)
