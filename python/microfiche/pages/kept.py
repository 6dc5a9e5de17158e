"""Pages that were drawn before: a text that grew is drawn from its last page on.

What is kept is bounded, and found by the whole text and the form, never by an image; a page that is taken from
here is the one that drawing gives. Layout looks ahead by one item, so a page is known by a text that agrees
up to the end of the page behind it.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

from .render import Bar, Page, Segment, cut, normal

ROOM = 48 * 1024 * 1024
"""Bytes of files and characters of text that are kept, in all."""

Position = tuple[int, int]
Draw = Callable[[Sequence[Segment], int, int | None], list[Page]]
"""Draws segments on pages numbered from a number, beginning inside of a turn if there is one."""


@dataclass(slots=True, eq=False)
class _Document:
    form: Hashable
    segments: tuple[Segment, ...]
    pages: list[Page]

    @property
    def size(self) -> int:
        texts = sum(len(segment) for segment in self.segments if isinstance(segment, str))
        return texts + sum(len(page.png) for page in self.pages)


class Kept:
    """A bounded number of documents with their pages, the one used last at the end. Threads may share it."""

    def __init__(self, room: int = ROOM) -> None:
        self._room = room
        self._documents: list[_Document] = []
        self._lock = threading.Lock()

    def draw(self, segments: Sequence[Segment], form: Hashable, draw: Draw) -> list[Page]:
        """The pages of a document; ``form`` is all that decides how ``draw`` draws it."""
        document = normal(segments)
        if not document or not isinstance(document[0], Bar):
            # A legend tells of turns if there is one anywhere, so only what begins with a bar is as it continues.
            return draw(document, 1, None)
        with self._lock:
            known, pages = self._nearest(document, form)
        if known is None or len(pages) < len(known.pages) or known.segments != document:
            pages = self._continued(document, pages, draw)
        with self._lock:
            self._keep(_Document(form, document, pages), known)
        return list(pages)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._documents.clear()

    def _nearest(self, document: Sequence[Segment], form: Hashable) -> tuple[_Document | None, list[Page]]:
        """The document with the most pages that are this one's too, and those."""
        best: tuple[_Document | None, list[Page]] = None, []
        for known in self._documents:
            if known.form != form:
                continue
            pages = _shared(known, document)
            if len(pages) > len(best[1]):
                best = known, pages
        return best

    @staticmethod
    def _continued(document: Sequence[Segment], pages: list[Page], draw: Draw) -> list[Page]:
        if not pages:
            return draw(document, 1, None)
        start = pages[-1].end
        inside = next(each.turn for each in reversed(document[: start[0]]) if isinstance(each, Bar))
        rest = draw(cut(document, start, (len(document), 0)), pages[-1].number + 1, inside)
        moved = [replace(page, start=_behind(start, page.start), end=_behind(start, page.end)) for page in rest]
        return pages + moved

    def _keep(self, made: _Document, known: _Document | None) -> None:
        if known is not None and known in self._documents:
            self._documents.remove(known)
            if len(known.pages) > len(made.pages):
                # It holds all of the new one but a page.
                made = known
        self._documents.append(made)
        room = self._room
        for at in range(len(self._documents) - 1, -1, -1):
            room -= self._documents[at].size
            if room < 0:
                del self._documents[: at + 1]
                break


def _shared(known: _Document, document: Sequence[Segment]) -> list[Page]:
    """The pages of a document that are pages of another."""
    agree = _agreement(known.segments, document)
    if agree == (len(document), 0) and len(known.segments) == len(document):
        return known.pages
    whole = bisect_right(known.pages, agree, key=lambda page: page.end)
    return known.pages[: max(whole - 1, 0)]


def _agreement(one: Sequence[Segment], other: Sequence[Segment]) -> Position:
    """Up to where two documents are the same."""
    at = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a is not b and a != b), None)
    if at is None:
        return min(len(one), len(other)), 0
    a, b = one[at], other[at]
    if isinstance(a, str) and isinstance(b, str):
        # How long a beginning they share: as long beginnings differ, all longer ones do.
        return at, bisect_right(range(1, min(len(a), len(b)) + 1), False, key=lambda size: a[:size] != b[:size])
    return at, 0


def _behind(start: Position, place: Position) -> Position:
    """A place in what stands behind another, in the whole document."""
    segment, offset = place
    return start[0] + segment, offset + start[1] if segment == 0 else offset


pages = Kept()
"""Those of this process."""
