"""A session into a record, and what the record holds: ``import``, ``log``, ``show``, ``search``, ``tree``."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.cells import cell_len

from microfiche import formats
from microfiche.auditing import FORMS, audit
from microfiche.conversation import Conversation, Record
from microfiche.errors import BadInput
from microfiche.messages import Image, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from microfiche.pages.guide import spans
from microfiche.record import Entry
from microfiche.transfer import check_importable, import_history, update_history
from microfiche.views.thread import data, events, gist, marker, part_data, when
from microfiche.views.tree import stretches
from microfiche.views.tree import tree as tree_data

from .files import STDIN, examples, name_of, plain, read_bytes
from .options import Count
from .progress import working
from .receipt import plural
from .record import (
    EXPORT,
    emit,
    fitted,
    is_record,
    json_option,
    name_option,
    opened,
    picked,
    record_argument,
    room,
    styled,
    wait_option,
    waiting,
)


@click.command(
    "import",
    epilog=examples(
        "microfiche import session.jsonl work.mf --name triage",
        "microfiche import session.jsonl work.mf --name triage --update",
    ),
)
@click.argument("session", type=click.Path(path_type=Path, allow_dash=True))
@record_argument
@click.option("--name", metavar="NAME", help="The new conversation.  [default: SESSION's name without its ending]")
@click.option(
    "--from", "source_format", type=click.Choice(formats.FORMATS), help="What SESSION is.  [default: detected]"
)
@click.option("--update", is_flag=True, help="Add to the conversation what SESSION has said since it was imported.")
@wait_option
@json_option
def import_(
    session: Path, record: Path, name: str | None, source_format: str | None, update: bool, as_json: bool
) -> None:
    """Put a session into a record as a new conversation.

    SESSION is a session file, a request body or a list of messages, or - for standard input; RECORD is
    made if it is not there. Branches of the session become branches that end at checkpoints, its
    compactions and titles events; damage and calls without a result are noted. What export wrote of a
    whole record becomes a record again, in a new file.
    """
    if session != STDIN and is_record(session):
        raise BadInput("this is a record, no session", str(session), "give the session first, then the record")
    source = read_bytes(session)
    if source.startswith(EXPORT):
        if name is not None or source_format is not None or update:
            raise click.UsageError(f"{plain(name_of(session))} is a whole record: give no --name, --from or --update")
        _whole(source, record, as_json)
        return
    if name is None:
        if session == STDIN:
            raise click.UsageError("give --name for a session from standard input")
        name = session.stem
    where = name_of(session)
    history, beside = formats.whole(source, source_format, where)
    check_importable(history, name, where)
    target = opened(record, write=True) if update else Record.open(record, wait=waiting())
    with target as held, working(f"Importing {where}"):
        if update:
            done = update_history(picked(held, name), history, source=where, beside=beside)
        else:
            done = import_history(held, history, name, source=where, beside=beside)
    if as_json:
        notes = [{"where": note.where, "what": note.what} for note in done.notes]
        told = {"conversation": name, "format": history.format, "messages": done.messages, "turns": done.turns}
        told |= {"branches": list(done.branches), "compactions": done.compactions, "names": done.names}
        emit({**told, "tip": done.tip, "notes": notes})
        return
    if not done:
        click.echo(plain(f"Nothing new in {where}."))
        return
    what = f"{plural(done.messages, 'message')} in {plural(done.turns, 'turn')}"
    click.echo(plain(f"Imported {what} ({history.format}) into {record} as {name}; the tip is entry {done.tip}."))
    for branch in done.branches:
        click.echo(plain(f"branch     ends at checkpoint {branch}"))
    if done.compactions or done.names:
        told_by = f"{plural(done.compactions, 'compaction')} and {plural(done.names, 'name')} of the session"
        click.echo(f"events     {told_by}: see log")
    for note in done.notes:
        click.echo(plain(f"note       {note.where}: {note.what}" if note.where else f"note       {note.what}"))


def _whole(source: bytes, record: Path, as_json: bool) -> None:
    try:
        lines = source.decode("ascii").splitlines()
    except UnicodeDecodeError as error:
        raise BadInput(f"not what an export wrote (byte {error.start} is not ASCII)", cure="export again") from error
    with working("Importing a record"):
        held = Record.import_(lines, record)
    with held:
        size, root = held.head
        names = [each.name for each in held.conversations()]
    if as_json:
        emit({"size": size, "root": root, "conversations": names})
    else:
        click.echo(plain(f"Imported a record of {size:,} entries into {record}, head {size}:{root}."))


@click.command(epilog=examples("microfiche log work.mf --last 20", "microfiche log work.mf --all --json"))
@record_argument
@name_option
@click.option("--last", type=Count(1), metavar="N", help="The newest N lines only.")
@click.option("--all", "everything", is_flag=True, help="Every entry in order of writing, of all branches.")
@json_option
def log(record: Path, name: str | None, last: int | None, everything: bool, as_json: bool) -> None:
    """List what happened: entry, turn, who, what; events stand between the messages.

    By default the path to the tip, with its checkpoints, failures, claims and import notes.
    """
    with opened(record) as held:
        chat = picked(held, name)
        found = held.entries(conversation=chat.name) if everything else events(chat, last)
        entries = list(deque(found, last))
        if as_json:
            emit([data(entry) for entry in entries])
            return
        # As wide as they have to be: a narrow terminal has no room to spare.
        digits = max((len(str(entry.id)) for entry in entries), default=0)
        turns = max((len(str(entry.turn)) for entry in entries if entry.turn is not None), default=0)
        for entry in entries:
            turn = "" if entry.turn is None else str(entry.turn)
            click.echo(_line(entry, f"{entry.id:>{digits}} {turn:>{turns}}  "))


_COLOURS = {"user": "green", "assistant": "cyan"}
_EVENTS = {"failure": "red", "interruption": "red", "label_loss": "red", "compaction": "yellow", "undo": "yellow"}


def _line(entry: Entry, front: str) -> str:
    if entry.kind == "message" and entry.message is not None:
        role = entry.message.role
        said = fitted(gist(entry.message), room() - len(front) - 11)
        return f"{styled(front, dim=True)}{styled(f'{role:<9}', fg=_COLOURS.get(role))}  {said}"
    told = f"{marker(entry)}: {gist(entry.message)}" if entry.message is not None else marker(entry)
    return styled(front, dim=True) + styled(
        f"── {fitted(told, room() - len(front) - 6)} ──", fg=_EVENTS.get(entry.kind)
    )


@click.command(epilog=examples("microfiche show work.mf 12", "microfiche show work.mf --removed 130"))
@record_argument
@click.argument("turn", type=Count(0), required=False)
@click.option("--removed", type=Count(1), metavar="EVENT", help="What the pass of this entry took away.")
@name_option
@json_option
def show(record: Path, turn: int | None, removed: int | None, name: str | None, as_json: bool) -> None:
    """Print the original messages of a turn, whatever a context shows of it.

    Turn 0 is what stands before the first. --removed prints what a pass took out of the context: each
    part with the form that it has now, and its original. --json prints native messages.
    """
    if (turn is None) == (removed is None):
        raise click.UsageError("give a TURN, or --removed EVENT")
    with opened(record) as held:
        chat = picked(held, name)
        if removed is not None:
            _removed(chat, removed, as_json)
        elif turn is not None and as_json:
            emit(chat.recall(turn))
        elif turn is not None:
            for entry in chat.thread.turn_entries(turn):
                if entry.message is not None:
                    click.echo(f"── entry {entry.id}, turn {entry.turn}, {entry.message.role}, {when(entry)}")
                    _print(entry.message)


def _removed(chat: Conversation, event: int, as_json: bool) -> None:
    removed = audit(chat).removed(event)
    if as_json:
        emit([{**asdict(each.reduced), "means": FORMS[each.reduced.form], "original": part_data(each.original)}
              for each in removed])  # fmt: skip
        return
    for each in removed:
        told = each.reduced
        pages = f" (page{'' if len(told.pages) == 1 else 's'} {spans(told.pages)})" if told.pages else ""
        click.echo(plain(f"── turn {told.turn}, entry {told.key.entry}, {told.kind}: {FORMS[told.form]}{pages}"))
        for line in _told(each.original):
            click.echo(line)
    click.echo(f"{plural(len(removed), 'part')} taken out or reduced by entry {event}.", err=True)


def _print(message: Message) -> None:
    for part in message.parts:
        for line in _told(part):
            click.echo(line)


def _told(part: Any) -> Iterator[str]:
    match part:
        case Text():
            yield lines(part.text)
        case ToolCall():
            yield f"call {plain(part.name)} {plain(part.id)}"
            yield lines(part.arguments)
        case ToolResult():
            yield f"result{' (error)' if part.error else ''} {plain(part.name)} {plain(part.call_id)}"
            for inner in part.parts:
                yield from _told(inner)
        case Reasoning():
            yield f"reasoning\n{lines(part.text)}" if part.text else "reasoning, kept by its provider"
        case Image():
            named = f"blob {part.digest}" if part.data is not None else part.url or part.file_id or ""
            yield plain(f"image {part.media_type} {part.width}x{part.height} {named}")
        case Opaque():
            yield f"{plain(part.kind)}, carried through"


def lines(text: str) -> str:
    """A text for the terminal: its own line breaks and tabs, and nothing that a terminal would obey."""
    return "\n".join("\t".join(map(plain, line.split("\t"))) for line in text.split("\n"))


@click.command(
    epilog=examples('microfiche search work.mf "disk full"', 'microfiche search work.mf "disk full" --limit 5 --json')
)
@record_argument
@click.argument("text")
@name_option
@click.option("--limit", type=Count(1, 10_000), default=20, show_default=True, help="So many at most.")
@click.option("--skip", type=Count(0), default=0, help="Leave out so many of the newest.")
@json_option
def search(record: Path, text: str, name: str | None, limit: int, skip: int, as_json: bool) -> None:
    """Find turns that hold the words of TEXT one behind the other, newest first.

    Case and accents do not count; the last word may be the beginning of one. Without --name every
    conversation is searched.
    """
    if not any(map(str.isalnum, text)):
        raise click.UsageError("TEXT has neither a letter nor a figure to look for")
    with opened(record) as held:
        chat = picked(held, name) if name is not None else None
        hits = held.search(text, chat.name if chat is not None else None, limit, skip)
        found = [(hit, held.entry(hit.entry)) for hit in hits]
    if as_json:
        emit([{**hit._asdict(), "text": gist(entry.message) if entry.message else ""} for hit, entry in found])
        return
    for hit, entry in found:
        front = f"{plain(hit.conversation)}  turn {hit.turn}  entry {hit.entry}  "
        said = gist(entry.message) if entry.message is not None else ""
        click.echo(front + fitted(_around(said, text), max(room() - len(front), 20)))
    if not found:
        click.echo("Nothing found.", err=True)


def _around(said: str, text: str) -> str:
    """The text from a little before the words that were looked for."""
    words = text.split()
    at = said.casefold().find(words[0].casefold()) if words else -1
    return said if at < 20 else "…" + said[at - 15 :]


@click.command(epilog=examples("microfiche tree work.mf", "microfiche tree work.mf --name triage --json"))
@record_argument
@name_option
@json_option
def tree(record: Path, name: str | None, as_json: bool) -> None:
    """Show the tree of each conversation: branches, checkpoints, passes, forks, and the tip.

    A line is a stretch of turns with what was asked in it first and answered last. branch moves the
    tip to any entry listed.
    """
    with opened(record) as held:
        chats = [picked(held, name)] if name is not None else [held.conversation(c.name) for c in held.conversations()]
        forks = list(held.entries(kind="fork"))
        if as_json:
            emit([tree_data(chat, forks) for chat in chats])
            return
        for chat in chats:
            origin = next((f" ({marker(fork)})" for fork in forks if fork.conversation == chat.name), "")
            where = "the beginning" if chat.tip is None else f"entry {chat.tip}"
            click.echo(fitted(f"{chat.name}{origin}: the tip is {where}"))
            for line in _drawn(chat, forks):
                click.echo(line)


_LEAST = 14
"""Cells below which the beginning of a text says nothing."""


def _quoted(asked: str, answered: str, left: int) -> str:
    """What was asked and answered, in so many cells: both if both have room, else what was asked."""
    said = [each for each in (asked, answered) if each]
    each = (left - 4 * (len(said) - 1)) // max(len(said), 1) - 2
    if each < _LEAST:
        said, each = said[:1], left - 2
    if not said or each < _LEAST:
        return ""
    shown = [fitted(text, each) for text in said]
    if len(said) == 2:  # what one does not need the other may have
        shown[1] = fitted(said[1], left - 8 - cell_len(shown[0]))
        shown[0] = fitted(said[0], left - 8 - cell_len(shown[1]))
    return "  " + " -> ".join(f'"{text}"' for text in shown)


def _drawn(chat: Conversation, forks: Sequence[Entry]) -> Iterator[str]:
    """The way to the tip (where it is elsewhere, to the newest leaf) in one column, what branches off beside it."""
    marks: dict[int | None, list[str]] = {}
    for label in chat.thread.labels().values():
        marks.setdefault(label.entry, []).append(f"entry {label.entry}: checkpoint {label.name}")
    for fork in forks:
        if fork.payload["from"] == chat.name:
            marks.setdefault(fork.about, []).append(f"entry {fork.about}: forked as {fork.conversation}")
    waiting = [(root, "", "") for root in reversed(stretches(chat))]
    while waiting:
        stretch, first, rest = waiting.pop()
        begin, end = stretch.nodes[0], stretch.nodes[-1]
        tip = "  <- tip" if end.id == chat.tip else ""
        turns = f"turns {begin.turn}-{end.turn}" if begin.turn != end.turn else f"turn {begin.turn}"
        ids = f"entries {begin.id}-{end.id}" if begin.id != end.id else f"entry {begin.id}"
        left = room() - len(first) - 2 - len(tip)
        head = fitted(f"{turns}, {ids}", left)
        said = _quoted(stretch.asked, stretch.answered, left - len(head) - 2)
        yield f"{first}● {styled(head, bold=stretch.current)}{said}{styled(tip, fg='green', bold=True)}"
        below = rest + ("│   " if stretch.branches else "    ")
        for node in stretch.nodes:
            told = [f"entry {node.id}: {node.what}"] if node.what else []
            for line in (*told, *marks.get(node.id, ())):
                yield below + styled(fitted(line, room() - len(below)), dim=True)
        main = next((each for each in stretch.branches if each.current), None)
        if stretch.branches and main is None:
            main = stretch.branches[-1]
        if main is not None:
            waiting.append((main, rest, rest))
        waiting += [(each, f"{rest}├─", f"{rest}│ ") for each in reversed(stretch.branches) if each is not main]
