"""Moving about in the tree of a conversation, its passes and its pins.

``branch``, ``fork``, ``checkpoint``, ``rewind``, ``undo``, ``pin``, ``unpin``, ``pins``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from microfiche.conversation import PIN_KINDS
from microfiche.views.thread import marker

from .files import examples, plain
from .options import Count
from .receipt import plural
from .record import emit, fitted, json_option, name_option, opened, picked, record_argument, room, wait_option


def _say(as_json: bool, told: dict[str, Any], line: str) -> None:
    if as_json:
        emit(told)
    else:
        click.echo(plain(line))


def _place(entry: int | None) -> str:
    return "the beginning" if entry is None else f"entry {entry}"


@click.command(epilog=examples("microfiche branch work.mf 120"))
@record_argument
@click.argument("entry", type=Count(0))
@name_option
@wait_option
@json_option
def branch(record: Path, entry: int, name: str | None, as_json: bool) -> None:
    """Move the tip to another entry; what is said next becomes a branch there.

    ENTRY is the number of an entry at a turn boundary, on any branch, as log and tree print it; 0 is
    before everything. Nothing is lost: moving back is another move.
    """
    with opened(record, write=True) as held:
        chat = picked(held, name)
        before = chat.tip
        move = chat.branch(entry or None)
        told = {"conversation": chat.name, "entry": move.id, "from": before, "tip": chat.tip}
        _say(as_json, told, f"The tip of {chat.name} is {_place(chat.tip)}; it was {_place(before)}.")


@click.command(epilog=examples("microfiche fork work.mf triage-b", "microfiche fork work.mf triage-c --at 120"))
@record_argument
@click.argument("new")
@name_option
@click.option("--at", type=Count(1), metavar="ENTRY", help="Fork there.  [default: the tip]")
@wait_option
@json_option
def fork(record: Path, new: str, name: str | None, at: int | None, as_json: bool) -> None:
    """Copy the path into a new conversation NEW, with entries of its own.

    Turn numbers stay; checkpoints, pins and passes come along.
    """
    with opened(record, write=True) as held:
        chat = picked(held, name)
        source = chat.tip if at is None else at
        made = chat.thread.fork(new, "tip" if at is None else at)
        told = {"conversation": new, "tip": made.tip, "from": {"conversation": chat.name, "entry": source}}
        _say(as_json, told, f"Forked {chat.name} at {_place(source)} as {new}; its tip is {_place(made.tip)}.")


@click.command(epilog=examples('microfiche checkpoint work.mf "before refactor"'))
@record_argument
@click.argument("label")
@name_option
@wait_option
@json_option
def checkpoint(record: Path, label: str, name: str | None, as_json: bool) -> None:
    """Name the turn boundary that the conversation stands on, to rewind to it later.

    Asked for while a call is running it marks the last closed boundary and says so. A name that is set
    again moves.
    """
    with opened(record, write=True) as held:
        chat = picked(held, name)
        made = chat.checkpoint(label)
        told = {"conversation": chat.name, "label": label, "at": made.entry, "entry": made.id, "moved": made.moved}
        moved = ", the last closed boundary: a call is open" if made.moved else ""
        _say(as_json, told, f"Checkpoint {label} marks {_place(made.entry)}{moved}.")


@click.command(epilog=examples('microfiche rewind work.mf "before refactor" --report "tried X; failed because Y"'))
@record_argument
@click.argument("label")
@name_option
@click.option("--report", metavar="TEXT", help="What was learnt on the stretch that is left: the next message there.")
@click.option("--planned-on", type=Count(1), metavar="ENTRY", help="Refuse if the tip is another entry by now.")
@wait_option
@json_option
def rewind(
    record: Path, label: str, name: str | None, report: str | None, planned_on: int | None, as_json: bool
) -> None:
    """Go back to a checkpoint, and say there what was learnt.

    What is left stays in the tree. tree lists the checkpoints.
    """
    with opened(record, write=True) as held:
        chat = picked(held, name)
        done = chat.rewind(label, report, planned_on=planned_on)
        told = {"conversation": chat.name, "label": label, "entry": done.entry, "turns_left": done.turns_left}
        said = f"; the report is entry {done.report}" if done.report is not None else ""
        line = f"Back at {label} ({_place(done.entry)}), {plural(done.turns_left, 'turn')} left behind{said}."
        _say(as_json, {**told, "report": done.report, "tip": chat.tip}, line)


@click.command(epilog=examples("microfiche undo work.mf", "microfiche undo work.mf 130"))
@record_argument
@click.argument("event", type=Count(1), required=False)
@name_option
@wait_option
@json_option
def undo(record: Path, event: int | None, name: str | None, as_json: bool) -> None:
    """Take back the newest pass in force; later passes leave its turns alone while they can.

    EVENT is the entry of that pass, to be sure which.
    """
    with opened(record, write=True) as held:
        chat = picked(held, name)
        made = chat.undo(event)
        undone = held.entry(made.about or 0)
        told = {"conversation": chat.name, "entry": made.id, "undone": undone.id}
        _say(as_json, told, f"Entry {undone.id} taken back: {marker(undone)}.")


@click.command(epilog=examples('microfiche pin work.mf "A leak is memory that grows for an hour." --kind definition'))
@record_argument
@click.argument("text")
@name_option
@click.option(
    "--kind",
    metavar="WORD",
    default="decision",
    show_default=True,
    help=f"What it is: {', '.join(PIN_KINDS)}, or a word of your own.",
)
@wait_option
@json_option
def pin(record: Path, text: str, name: str | None, kind: str, as_json: bool) -> None:
    """Keep a text word for word in every context from here on, until it is unpinned."""
    with opened(record, write=True) as held:
        chat = picked(held, name)
        made = chat.pin(text, kind)
        told = {"conversation": chat.name, "entry": made.entry, "kind": kind, "text": text}
        _say(as_json, told, f"Pinned as entry {made.entry} ({kind}).")


@click.command(epilog=examples("microfiche unpin work.mf 130"))
@record_argument
@click.argument("entry", metavar="PIN", type=Count(1))
@name_option
@wait_option
@json_option
def unpin(record: Path, entry: int, name: str | None, as_json: bool) -> None:
    """Let a pin go; an open question is closed so. PIN is its entry, as pins prints it."""
    with opened(record, write=True) as held:
        chat = picked(held, name)
        made = chat.unpin(entry)
        _say(as_json, {"conversation": chat.name, "entry": made.id, "pin": entry}, f"Pin {entry} let go.")


@click.command(epilog=examples("microfiche pins work.mf --kind question"))
@record_argument
@name_option
@click.option("--kind", metavar="WORD", help="Those of this kind only.")
@json_option
def pins(record: Path, name: str | None, kind: str | None, as_json: bool) -> None:
    """List the pins in force, oldest first."""
    with opened(record) as held:
        found = picked(held, name).pins(kind)
    if as_json:
        emit([{"entry": each.entry, "kind": each.kind, "text": each.text} for each in found])
        return
    for each in found:
        front = f"{each.entry:>7}  {plain(each.kind)}  "
        click.echo(front + fitted(each.text, max(room() - len(front), 20)))
