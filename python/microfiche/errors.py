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
    """The parts that never change are larger than the budget."""
