"""The values behind full pages, chosen again only behind pages that are new.

What a shelf chooses depends on all pages before, in their order, and on what stands in the context anyway. As long
as those are the very same, so is what it chose.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from microfiche.pages.exact import Shelf
from microfiche.pages.render import Page

_MOST = 8
"""Histories that are remembered."""


class Step(NamedTuple):
    """A full page, the texts that stand beside it, and the runs that its pointers stand for."""

    page: Page
    beside: tuple[str, ...]
    runs: tuple[str, ...]


@dataclass(slots=True)
class _Chosen:
    standing: tuple[str, ...]
    steps: list[Step]
    values: list[tuple[str, ...]]
    shelf: Shelf

    def shared(self, standing: tuple[str, ...], steps: Sequence[Step]) -> int:
        """How many of the steps were taken here; 0 unless one of the two goes on where the other ends."""
        if standing != self.standing:
            return 0
        pairs = list(zip(self.steps, steps, strict=False))
        same = all(a.page is b.page and (a.beside, a.runs) == (b.beside, b.runs) for a, b in pairs)
        return len(pairs) if same else 0


_known: list[_Chosen] = []
_lock = threading.Lock()


def forget() -> None:
    """Remember nothing."""
    with _lock:
        _known.clear()


def values(standing: tuple[str, ...], steps: Sequence[Step]) -> list[tuple[str, ...]]:
    """The values behind each page; ``standing`` are the texts that stand in the context anyway."""
    with _lock:
        found = max(_known, key=lambda each: each.shared(standing, steps), default=None)
        done = found.shared(standing, steps) if found is not None else 0
        if found is not None and done:
            _known.remove(found)
            _known.append(found)
            if done == len(steps):
                return found.values[:done]
            made = _Chosen(standing, list(found.steps), list(found.values), found.shelf.copy())
        else:
            found = None
            made = _Chosen(standing, [], [], Shelf(standing))
    for step in steps[done:]:
        for text in step.beside:
            made.shelf.stand(text)
        made.values.append(made.shelf.page(step.page.segments, step.runs))
        made.steps.append(step)
    with _lock:
        if found in _known:
            _known.remove(found)
        _known.append(made)
        del _known[:-_MOST]
    return list(made.values)
