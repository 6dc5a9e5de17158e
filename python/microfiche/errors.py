"""The errors of the package: each says what is wrong, where, and what to do."""

from __future__ import annotations


class MicroficheError(Exception):
    """Root of every error that the package raises on purpose.

    ``what`` is the fault, ``where`` the place (file, line, turn, entry, byte; may be
    empty), ``cure`` what to do about it (may be empty). ``str()`` joins them in one line.
    """

    def __init__(self, what: str, where: str = "", cure: str = "") -> None:
        self.what = what
        self.where = where
        self.cure = cure
        line = f"{where}: {what}" if where else what
        super().__init__(f"{line}; {cure}" if cure else line)


class BadInput(MicroficheError):
    """The input cannot be read as what it is said to be."""


class UnknownFormat(BadInput):
    """No wire or transcript format fits the input."""


class OwnOutput(BadInput):
    """The input holds our own pages, guides or placeholders instead of the original history."""


class PlanMismatch(BadInput):
    """The plan was made for another history, model or page form."""


class BadPage(BadInput):
    """An image is not a page of glyphs, or one that was damaged."""


class PageTooSmall(MicroficheError):
    """The page form has too few cells for the marks that must stand on it unparted."""


class NoVision(MicroficheError):
    """The model does not read images, so there is nothing to draw pages for."""


class CannotFit(MicroficheError):
    """The parts that never change are larger than the budget. ``least`` is what they take, in estimated tokens."""

    def __init__(self, what: str, where: str = "", cure: str = "", least: int | None = None) -> None:
        super().__init__(what, where, cure)
        self.least = least


class RecordError(MicroficheError):
    """Something about a record on disk; what was written before stands."""


class NotARecord(RecordError):
    """The file is not a record, or there is none."""


class NewerFormat(RecordError):
    """The record was written in a format that this version does not know."""


class Locked(RecordError):
    """Another process holds the record longer than we were told to wait."""


class ReadOnly(RecordError):
    """The record cannot be written: opened for reading, or the file or its folder forbids it."""


class StorageFailed(RecordError):
    """The disk or file system refused: full, failing, or without what a write-ahead log needs."""


class Damaged(RecordError):
    """The record does not hold what its hashes say. ``entry`` is the number of the entry, if one is known."""

    def __init__(self, what: str, where: str = "", cure: str = "", entry: int | None = None) -> None:
        super().__init__(what, where, cure or "run verify, and restore the record from a copy")
        self.entry = entry


class Conflict(RecordError):
    """The tip is not where the writer thought it was; nothing was written. ``tip`` is where it is now."""

    def __init__(self, what: str, where: str = "", cure: str = "", tip: int | None = None) -> None:
        super().__init__(what, where, cure)
        self.tip = tip


class TurnOpen(RecordError):
    """A call has no result yet, so this is no turn boundary. ``calls`` are the ids of such calls."""

    def __init__(self, what: str, where: str = "", cure: str = "", calls: tuple[str, ...] = ()) -> None:
        super().__init__(what, where, cure)
        self.calls = calls


class NoSuchEntry(RecordError):
    """No entry, turn, label or conversation of that name or number is where it was looked for."""


class NameTaken(RecordError):
    """A conversation of that name exists already."""


class Busy(MicroficheError):
    """Another pass over the conversation is under way."""


class Gone(MicroficheError):
    """A checkpoint lies in a stretch that was trimmed: it is discarded, never moved."""


class Stale(MicroficheError):
    """What was planned on a tip that has moved since is not done."""


class NothingLoaded(MicroficheError):
    """The conversation holds no message."""


class NothingToRetry(MicroficheError):
    """No attempt failed since the last message."""


class NothingToCompact(MicroficheError):
    """A pass that was asked for changed nothing. ``reason`` is one word that says why.

    ``empty`` (no turns), ``all_recent`` (everything is in the protected tail), ``nothing_new`` (nothing since the
    pass before), ``would_grow``, ``no_vision``, ``does_not_pay``, ``disabled`` (no rung is allowed).
    """

    def __init__(self, what: str, where: str = "", cure: str = "", reason: str = "") -> None:
        super().__init__(what, where, cure)
        self.reason = reason


class PinsTooLarge(MicroficheError):
    """Pinned texts take more than their share of the budget; the message names them."""
