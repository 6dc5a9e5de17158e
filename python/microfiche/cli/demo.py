"""``microfiche demo``: a session of its own, and everything run on it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from microfiche import demo as story
from microfiche.auditing import audit as audit_of
from microfiche.conversation import Record
from microfiche.errors import MicroficheError
from microfiche.pages.render import series
from microfiche.transfer import export_messages
from microfiche.views.browse import browse
from microfiche.views.html import view
from microfiche.views.links import links_of
from microfiche.views.projections import project
from microfiche.views.report_page import report_html

from .contexts import files_of
from .files import Target, examples, plain
from .progress import working
from .receipt import plural
from .record import emit, json_option

_RECORD = f"{story.NAME}.mf"
_WHAT = {
    f"{story.NAME}.html": "the view: open it in a browser",
    "report.html": "the reviewer's report of the last answer",
    "slides.html": "decisions, evidence and open questions as slides",
    "notebook.ipynb": "the same record as a notebook",
    "thread.md": "the thread to read, with a marker for each pass",
    "out/context.json": "the request that the next call would send",
    "session.json": "the messages alone, as any agent has them",
    _RECORD: "the record of it all",
}


@click.command("demo", epilog=examples("microfiche demo", "microfiche demo greenhouse --json"))
@click.argument("folder", metavar="[DIR]", type=Target(), default="microfiche-demo")
@json_option
def demo(folder: Path, as_json: bool) -> None:
    """Make a session, run everything on it, and say what to look at.

    An agent finds out why the vents of a greenhouse opened in the frost: parallel calls, screenshots, a refusal,
    a way that was left, a fork, passes, pins and claims. DIR, by default microfiche-demo, must not be there yet.
    Nothing is asked of a model or of the network, and the same comes out every time.
    """
    if os.path.lexists(folder):
        raise MicroficheError("is there already", str(folder), "name another folder: microfiche demo DIR")
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Whole or not at all: everything is made beside it, then renamed.
    with TemporaryDirectory(prefix=".microfiche-demo-", dir=folder.parent) as scratch, working("Making the session"):
        made = Path(scratch) / "demo"
        made.mkdir()
        told = _made(made)
        told["files"] = sorted(str(each.relative_to(made)) for each in made.rglob("*") if each.is_file())
        made.rename(folder)
    if as_json:
        emit({"folder": str(folder), **told})
        return
    click.echo(plain(f"Made a session of {told['turns']} turns in {folder}:"))
    click.echo()
    for line in _story(told):
        click.echo(line)
    click.echo()
    for name, what in {**_WHAT, f"out/{told['page']}": "a page, as the model reads it"}.items():
        click.echo(plain(f"  {folder / name!s:<{len(str(folder)) + 18}}  {what}"))
    click.echo("\nThen ask the record yourself:\n")
    record = folder / _RECORD
    for words in (f"tree {record}", f"log {record} --name {story.NAME}", f"search {record} frost_guard",
                  f"audit {record} --name {story.NAME} --at {told['last']}", f"verify {record}"):  # fmt: skip
        click.echo(plain(f"  microfiche {words}"))


def _made(folder: Path) -> dict[str, Any]:
    """Everything, in a folder; what there is to tell of it."""
    with Record.open(folder / _RECORD, clock=story.Clock()) as record:
        chat = story.play(record)
        context = chat.preview(**story.ASKED)
        last = chat.state().messages[-1][0].id
        entries = list(record.entries())
        out = folder / "out"
        out.mkdir()
        for name, data in files_of(context).items():
            (out / name).write_bytes(data)
        link = links_of(record)
        names = [each.name for each in record.conversations()]
        texts = {
            "session.json": json.dumps(export_messages(chat)[0], indent=1) + "\n",
            f"{story.NAME}.html": view(browse(record, names, record_name=_RECORD)),
            "report.html": report_html(audit_of(chat).report(last), link, _RECORD),
            "slides.html": project(chat, "slides"),
            "notebook.ipynb": project(chat, "notebook"),
            "thread.md": project(chat, "thread", as_markdown=True),
        }
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8", newline="\n")
        own = [each for each in entries if each.conversation == chat.name]
        return {
            "record": _RECORD,
            "conversations": names,
            "turns": chat.thread.standing.turns,
            "entries": len(entries),
            "head": list(record.head),
            "last": last,
            "passes": _passes(own),
            "tokens": {"now": context.tokens, "whole": context.receipt.before.tokens},
            "pages": len(context.pages),
            "page": series("page", (page.number for page in context.pages))[0],
        }


def _passes(entries: list[Any]) -> list[dict[str, Any]]:
    """The passes of a conversation: why, and tokens before and after."""
    return [
        {"entry": each.id, "why": each.payload["why"], "before": each.payload["before"]["tokens"],
         "after": each.payload["after"]["tokens"]}
        for each in entries if each.kind == "compaction"
    ]  # fmt: skip


def _story(told: dict[str, Any]) -> list[str]:
    passes, tokens = told["passes"], told["tokens"]
    refused = next(each for each in passes if each["why"] == "refusal")
    return [
        f"  {len(passes)} passes on its branches kept it under {story.BUDGET:,} tokens; without them the next call"
        f" would send {tokens['whole']:,}, with them it sends {tokens['now']:,}, {told['pages']} of it pages.",
        f"  At entry {refused['entry']} a request was refused as too long: {refused['before']:,} tokens became"
        f" {refused['after']:,}, without a model.",
        f"  {told['entries']} entries of {plural(len(told['conversations']), 'conversation')} are on record;"
        " nothing of them is lost.",
    ]
