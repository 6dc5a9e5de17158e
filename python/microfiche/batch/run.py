"""A run over archives: every session on pages in a folder of its own, on all cores, to be gone on with after a kill."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from microfiche.pages.render import GRAMMAR

from .journal import RESERVED, Drawn, Journal, Manifest
from .rows import Look, fault
from .sources import Key, Source, find
from .worker import Worker, draw


@dataclass(frozen=True, slots=True)
class Outcome:
    """A session that is done: drawn, there already (``drawn`` is ``None``), or not to be had (``error``)."""

    source: Source
    drawn: Drawn | None = None
    error: str = ""


@dataclass(slots=True)
class Total:
    """What a run came to; ``sources`` are all sessions that it found, ``failed`` those without pages."""

    sources: int = 0
    skipped: int = 0
    drawn: int = 0
    characters: int = 0
    pages: int = 0
    tokens: int = 0
    bytes: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    manifest: Path | None = None

    def add(self, outcome: Outcome) -> None:
        if outcome.error:
            self.failed.append((outcome.source.name, outcome.error))
        elif outcome.drawn is None:
            self.skipped += 1
        else:
            self.drawn += 1
            self.characters += outcome.drawn.characters
            self.pages += len(outcome.drawn.pages)
            self.tokens += sum(page["tokens"] for page in outcome.drawn.pages)
            self.bytes += sum(page["bytes"] for page in outcome.drawn.pages)


def rerender_archives(
    archives: Sequence[str | Path],
    out: str | Path,
    look: Look,
    *,
    jobs: int = 1,
    manifest: Manifest = "jsonl",
    began: Callable[[list[Source]], None] = lambda _: None,
    done: Callable[[Outcome], None] = lambda _: None,
) -> Total:
    """Draw every session of files, folders, globs and records into ``out``, and list the pages in a manifest.

    Sessions that are there and have not changed since are left alone; one that cannot be drawn is told by ``done``,
    which hears of each session, and the others go on. ``began`` hears of all of them first. With ``jobs`` over 1 as
    many processes draw; the files are the same for any number. See :class:`Journal` for what is refused.
    """
    with Journal(Path(out), _settings(look)) as journal:
        sources = find(archives, journal.names, RESERVED)
        began(sources)
        total = Total(len(sources))
        for outcome, pages in _outcomes(sources, journal, look, jobs):
            if outcome.drawn is not None:
                assert pages is not None
                journal.add(outcome.source, outcome.drawn, pages)
            total.add(outcome)
            done(outcome)
        total.manifest = journal.close(manifest)
    return total


def _settings(look: Look) -> dict[str, Any]:
    """All that decides the bytes of pages."""
    made_by = {"microfiche_version": version("microfiche"), "grammar": GRAMMAR}
    return {**made_by, **asdict(look), "form": asdict(look.form())}


_Found = tuple[Outcome, Path | None]


def _outcomes(sources: Sequence[Source], journal: Journal, look: Look, jobs: int) -> Iterator[_Found]:
    """What becomes of each session, as it is known; with the folder of the pages that were drawn."""
    waiting: list[tuple[Source, Path]] = []
    for number, source in enumerate(sources):
        if source.error or journal.has(source):
            yield Outcome(source, None, source.error), None
        else:
            waiting.append((source, journal.scratch / str(number)))
    if jobs == 1 or len(waiting) == 1:
        for source, folder in waiting:
            yield _try(lambda key, folder: draw(look, key, folder, threads=jobs), source, folder)
        return
    with _workers(waiting, look, min(jobs, len(waiting))) as results:
        for _ in waiting:
            yield results.get()


def _try(drawer: Callable[[Key, Path], Drawn], source: Source, folder: Path) -> _Found:
    try:
        return Outcome(source, drawer(source.key, folder)), folder
    except Exception as error:
        return Outcome(source, None, fault(error)), None


@contextmanager
def _workers(waiting: Sequence[tuple[Source, Path]], look: Look, jobs: int) -> Iterator[queue.Queue[_Found]]:
    """Processes that draw, each with a thread that hands it one session after another; ended with the block."""
    # The large ones first, so that none is left for the end; a tie keeps their order.
    tasks = iter(sorted(waiting, key=lambda task: -task[0].weight))
    lock = threading.Lock()
    results: queue.Queue[_Found] = queue.Queue()
    workers = [Worker(look) for _ in range(jobs)]
    stopped = threading.Event()

    def feed(worker: Worker) -> None:
        while not stopped.is_set():
            with lock:
                task = next(tasks, None)
            if task is None:
                break
            results.put(_try(worker.draw, *task))
        worker.close()

    threads = [threading.Thread(target=feed, args=(worker,), daemon=True) for worker in workers]
    try:
        for thread in threads:
            thread.start()
        yield results
    finally:
        stopped.set()
        for worker in workers:
            worker.stop()
        for thread in threads:
            thread.join()
