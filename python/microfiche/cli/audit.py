"""What an agent knew: the reviewer's report of a record."""

from __future__ import annotations

from pathlib import Path

import click

from microfiche.auditing import audit as audit_of
from microfiche.record import Head
from microfiche.views.links import links_of
from microfiche.views.report_page import report_html

from .files import Target, examples, plain, read_bytes, write_one, wrote
from .options import Count
from .progress import working
from .record import emit, head_option, heads_option, json_option, name_option, opened, picked, record_argument


@click.command(
    epilog=examples(
        "microfiche audit work.mf --at 412 --html report.html", "microfiche audit work.mf --at 412 --heads kept.heads"
    )
)
@record_argument
@click.option("--at", type=Count(1), metavar="ENTRY", help="Also what the call behind this entry saw.")
@click.option("--html", type=Target(), metavar="FILE", help="Write the report as one HTML file, and print nothing.")
@click.option("--view", "page", metavar="FILE", help="The page to lead to.  [default: RECORD's name with .html]")
@head_option
@heads_option
@json_option
@name_option
@click.pass_context
def audit(
    ctx: click.Context,
    record: Path,
    at: int | None,
    html: Path | None,
    page: str | None,
    head: Head | None,
    heads: Path | None,
    as_json: bool,
    name: str | None,
) -> None:
    """Print the whole history, every event that decided what the model saw, and whether the record is sound.

    With --at, an entry as `log` numbers them: what the call at that entry saw and in what form, what it
    did not see, and since which event, and what the claims of its turn rest on. Not sound, or the context
    of that call not proven: exit code 3.
    """
    if html is not None and as_json:
        raise click.UsageError("give one of --html and --json")
    if page is not None and html is None:
        raise click.UsageError("--view goes with --html")
    if heads is not None:
        read_bytes(heads)  # a list that cannot be read is no fault of the record
    with opened(record) as held:
        chat = picked(held, name)
        with working(f"Auditing {chat.name}"):
            report = audit_of(chat).report(at, head, heads)
        link = links_of(held, page or "")
    if html is not None:
        write_one(html, report_html(report, link, record.name).encode("utf-8"))
        wrote(html)
    elif as_json:
        emit(report.to_dict())
    else:
        click.echo("\n".join(plain(line) for line in str(report).split("\n")))
    if not report.holds:
        ctx.exit(3)
