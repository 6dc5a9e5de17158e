"""What an agent knew: the reviewer's report of a record."""

from __future__ import annotations

from pathlib import Path

import click

from microfiche.auditing import audit as audit_of

from .files import plain
from .record import emit, json_option, name_option, opened, picked, record_argument


@click.command(epilog="Example:\n\n\b\n  microfiche audit work.mf --at 412")
@record_argument
@click.option("--at", type=click.IntRange(1), metavar="ENTRY", help="Also what the call behind this entry saw.")
@json_option
@name_option
def audit(record: Path, at: int | None, as_json: bool, name: str | None) -> None:
    """Print the whole history, every event that decided what the model saw, and whether the record is sound.

    With --at, an entry as `log` numbers them: what the call at that entry saw and in what form, what it
    did not see, and since which event.
    """
    with opened(record) as held:
        report = audit_of(picked(held, name)).report(at)
    if as_json:
        emit(report.to_dict())
    else:
        click.echo("\n".join(plain(line) for line in str(report).split("\n")))
