"""That something is under way: a line on standard error, while a terminal is there to show it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from .files import plain


@contextmanager
def working(what: str) -> Iterator[None]:
    """Say what is being done and for how long, and take the line away at the end. Print nothing inside."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(
        *columns, console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False
    ) as shown:
        shown.add_task(plain(what), total=None)
        yield
