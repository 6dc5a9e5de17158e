"""That a record is what was written, and copies of it: ``verify``, ``export``, ``backup``."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import click

from microfiche import formats
from microfiche.errors import Damaged
from microfiche.record import Head, Verdict
from microfiche.transfer import export_messages
from microfiche.views.projections import PROJECTIONS, project
from microfiche.views.thread import data, events

from .files import Target, examples, plain, read_bytes, write_one, wrote
from .progress import working
from .record import emit, head_option, heads_option, json_option, name_option, opened, picked, record_argument


@click.command(epilog=examples("microfiche verify work.mf --heads kept.heads", "microfiche verify work.mf --derived"))
@record_argument
@head_option
@heads_option
@click.option("--derived", is_flag=True, help="Hold the search and the indexes against the entries too.")
@json_option
@click.pass_context
def verify(
    ctx: click.Context, record: Path, head: Head | None, heads: Path | None, derived: bool, as_json: bool
) -> None:
    """Check that everything a record holds is what was written, and print its head.

    Every entry and blob is read and every hash made anew. Keep the head that is printed, or a copy of
    RECORD.heads, where nobody who can write the record can: only against these do a cut tail and a
    rewritten record show. Not sound: exit code 3.
    """
    if heads is not None:
        read_bytes(heads)  # a list that cannot be read is no fault of the record
    try:
        with opened(record) as held, working(f"Verifying {record}"):
            verdict = held.verify(head, heads, derived)
    except Damaged as error:
        verdict = Verdict(False, 0, "", 0, error.entry, error.where, error.what)
    if as_json:
        names = ("sound", "size", "root", "heads", "kept", "entry", "where", "reason")
        emit({name: getattr(verdict, name) for name in names})
    elif verdict:
        click.echo(f"Sound: {verdict.size:,} entries; {verdict.against}.")
        click.echo(f"head       {verdict.size}:{verdict.root}")
    else:
        click.echo(plain(f"Not sound: {verdict.where}: {verdict.reason}" if verdict.where
                         else f"Not sound: {verdict.reason}"))  # fmt: skip
    if not verdict:
        ctx.exit(3)


@click.command(
    epilog=examples(
        "microfiche export work.mf --markdown --out work.md",
        "microfiche export work.mf --out work.jsonl",
        "microfiche export work.mf --as slides --out work.slides.html",
    )
)
@record_argument
@click.option("--messages", is_flag=True, help="The native messages of the path, as they came.")
@click.option(
    "--as", "projection", type=click.Choice(PROJECTIONS), help="The path for people: one HTML file, or a notebook."
)
@click.option("--markdown", "as_markdown", is_flag=True, help="The same as Markdown.  [default: of the thread]")
@json_option
@name_option
@click.option("--format", "wire", type=click.Choice(formats.WIRES), help="With --messages: another form for them.")
@click.option(
    "--view", "page", metavar="FILE", help="The page that lines lead to.  [default: RECORD's name with .html]"
)
@click.option("--out", type=Target(), metavar="FILE", help="Write there, not to standard output.")
def export(
    record: Path,
    messages: bool,
    projection: str | None,
    as_markdown: bool,
    as_json: bool,
    name: str | None,
    wire: str | None,
    page: str | None,
    out: Path | None,
) -> None:
    """Write all of a record as lines of JSON, from which import makes an equal one.

    With --messages, --as, --markdown or --json it is the path of one conversation: the native messages
    (the whole request body if one was imported), a projection for people, or its entries as one list.
    Each line of a projection leads to its entry in the page that `microfiche view` writes.
    """
    people = projection is not None or as_markdown
    if messages + people + as_json > 1:
        raise click.UsageError("give one of --messages, --json, and --as or --markdown")
    if wire is not None and not messages:
        raise click.UsageError("--format goes with --messages")
    if page is not None and not people:
        raise click.UsageError("--view goes with --as or --markdown")
    if name is not None and not (messages or people or as_json):
        raise click.UsageError("--name goes with one conversation: all of a record is exported else")
    with opened(record) as held:
        if not (messages or people or as_json):
            if out is None:
                held.export(sys.stdout)
                return
            whole = io.StringIO()
            held.export(whole)
            write_one(out, whole.getvalue().encode("ascii"))
            wrote(out)
            return
        chat = picked(held, name)
        if people:
            text = project(chat, projection or "thread", as_markdown, page or "")
        elif as_json:
            text = json.dumps([data(entry) for entry in events(chat)], indent=1) + "\n"
        else:
            value, notes = export_messages(chat, wire)
            text = json.dumps(value, indent=1) + "\n"
            for note in notes:
                click.echo(plain(f"{note.where}: {note.what}"), err=True)
    _put(text, out)


def _put(text: str, out: Path | None) -> None:
    """Write a text as UTF-8; a lone surrogate becomes an escape, since UTF-8 has no word for it."""
    encoded = text.encode("utf-8", "backslashreplace")
    if out is not None:
        write_one(out, encoded)
        wrote(out)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(encoded)
        sys.stdout.buffer.flush()


@click.command(epilog=examples("microfiche backup work.mf copy.mf"))
@record_argument
@click.argument("copy", type=click.Path(path_type=Path))
@json_option
def backup(record: Path, copy: Path, as_json: bool) -> None:
    """Copy a record, while others write to it, to a new file COPY, and print the head of the copy."""
    with opened(record) as held, working(f"Copying {record}"):
        size, root = held.backup(copy)
    if as_json:
        emit({"copy": str(copy), "size": size, "root": root})
    else:
        click.echo(plain(f"Copied {size:,} entries to {copy}."))
        click.echo(f"head       {size}:{root}")
