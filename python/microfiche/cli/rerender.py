"""``microfiche rerender``: whole archives of sessions as pages."""

from __future__ import annotations

import importlib.util
import json
import os
import time
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from microfiche.batch.journal import MANIFESTS, Manifest
from microfiche.batch.rows import Look
from microfiche.batch.run import Outcome, Total, rerender_archives
from microfiche.batch.sources import Source
from microfiche.models import Fidelity
from microfiche.pages.render import Level

from .files import Target, examples, plain
from .options import Count, fidelity_option, font_option, level_option, model_words, vision_option
from .receipt import plural

_EXAMPLE = "microfiche rerender archive/ work.mf --model claude-opus-5 --out pages/"


@click.command(epilog=examples(_EXAMPLE))
@click.argument("archives", nargs=-1, required=True, metavar="ARCHIVE...", type=click.Path(path_type=Path))
@click.option("--model", required=True, **model_words, help="The model that will read the pages.")
@click.option("--out", required=True, type=Target(), metavar="DIR", help="Where the pages and the manifest go.")
@fidelity_option
@level_option
@vision_option
@font_option
@click.option(
    "--manifest",
    type=click.Choice(MANIFESTS),
    help="What the list of pages is.  [default: parquet where PyArrow is installed, else jsonl]",
)
@click.option("--jobs", type=Count(1, 512), metavar="N", help="Processes that draw.  [default: one for each core]")
@click.option("--json", "as_json", is_flag=True, help="Print what was drawn as JSON.")
@click.pass_context
def rerender(
    ctx: click.Context,
    archives: tuple[Path, ...],
    model: str,
    out: Path,
    fidelity: Fidelity,
    level: Level,
    vision: bool | None,
    fonts: tuple[str, ...],
    manifest: Manifest | None,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Draw every turn of many sessions on pages, for instance for another model.

    ARCHIVE is a session file, a record, a folder of such, or a pattern such as 'runs/*/session.jsonl'. Each session
    gets a folder of its own in DIR. A run that was killed goes on when it is started again; sessions that have not
    changed are left alone. A session that cannot be read is reported and passed over, and the exit code is 1.
    """
    look = Look(model, fidelity, level, vision, fonts)
    if manifest is None:
        manifest = "parquet" if importlib.util.find_spec("pyarrow") is not None else "jsonl"
    began = time.monotonic()
    with Ahead(Console(stderr=True, markup=False, highlight=False, emoji=False)) as ahead:
        total = rerender_archives(
            archives, out, look, jobs=jobs or _cores(), manifest=manifest, began=ahead.begin, done=ahead.advance
        )
    for name, error in total.failed:
        click.echo(plain(f"{name}: {error}"), err=True)
    if as_json:
        click.echo(json.dumps(_told(total), indent=1))
    click.echo(_summary(total, out, time.monotonic() - began), err=as_json)
    if total.failed:
        ctx.exit(1)


class Ahead:
    """How far a run is, how fast, and how long it will take, on a terminal; elsewhere nothing."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.fields[count]:,}/{task.fields[sessions]:,} sessions"),
            BarColumn(),
            _Rate(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("", total=None, count=0, sessions=0, characters=0)

    def __enter__(self) -> Ahead:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def begin(self, sources: list[Source]) -> None:
        total = sum(source.weight for source in sources)
        self._progress.update(self._task, total=total, sessions=len(sources))

    def advance(self, outcome: Outcome) -> None:
        task = self._progress.tasks[0]
        if outcome.drawn is None:
            # No work: it must not make the rest seem fast.
            self._progress.update(self._task, total=(task.total or 0) - outcome.source.weight)
        else:
            characters = task.fields["characters"] + outcome.drawn.characters
            self._progress.update(self._task, advance=outcome.source.weight, characters=characters)
        self._progress.update(self._task, count=task.fields["count"] + 1)


class _Rate(ProgressColumn):
    """Characters drawn a second, since the run began."""

    def render(self, task: Task) -> Text:
        rate = task.fields["characters"] / task.elapsed if task.elapsed else 0
        return Text(f"{rate / 1e6:.1f} M characters/s")


def _cores() -> int:
    """The processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def _told(total: Total) -> dict[str, Any]:
    return {
        "sessions": total.sources,
        "drawn": total.drawn,
        "unchanged": total.skipped,
        "failed": [{"session": name, "error": error} for name, error in total.failed],
        "characters": total.characters,
        "pages": total.pages,
        "tokens": total.tokens,
        "bytes": total.bytes,
        "manifest": str(total.manifest),
    }


def _summary(total: Total, out: Path, seconds: float) -> str:
    parts = [f"{plural(total.drawn, 'session')} on {plural(total.pages, 'page')} in {out}"]
    if total.drawn:
        rate = total.characters / max(seconds, 1e-3)
        parts.append(f"{total.tokens:,} tokens, {total.bytes:,} bytes, {rate:,.0f} characters/s")
    if total.skipped:
        parts.append(f"{total.skipped:,} unchanged")
    if total.failed:
        parts.append(f"{len(total.failed):,} not drawn")
    return plain("; ".join(parts))
