"""The glyphs of pages as one table: of our own font, and of fonts that a user adds.

A page is drawn and read by an atlas. It is plain bytes, named by their SHA-256, so that pages can be drawn
and read again where the font they came from is gone, ours of an older version included.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

import microfiche._core as _core
from microfiche.errors import BadInput, PlanMismatch

if TYPE_CHECKING:
    from collections.abc import Sequence

Glyph = tuple[int, int, int, int, bytes]
"""A glyph to be added: code point, cells (1 or 2), width and height in pixels, coverage (0 white to 255 black)."""


class Atlas:
    """Every glyph that pages of one cell and ink may hold; what is not among them stands as an escape.

    ``cell`` is in pixels, ``ink`` grey or mono. Made by :func:`make`, :func:`own` and :meth:`load`.
    """

    __slots__ = ("_data", "cell", "core", "digest", "ink")

    def __init__(self, core: _core.Atlas, data: bytes) -> None:
        self.core = core
        self.cell = core.cell
        self.ink = core.ink
        self.digest = hashlib.sha256(data).hexdigest()
        self._data = data

    @classmethod
    def load(cls, data: bytes) -> Atlas:
        """The atlas of its bytes; :class:`~microfiche.errors.BadInput` for what breaks the law of the font."""
        return cls(_core.Atlas.load(data), data)

    @property
    def data(self) -> bytes:
        """The atlas as bytes, the same for the same glyphs on every machine."""
        return self._data

    def cells(self, character: str) -> int:
        """How many cells a character takes; 0 if it stands as its code point."""
        return self.core.cells(ord(character))

    def characters(self) -> list[str]:
        """Every character that is drawn, the space included, by code point."""
        return [chr(code) for code in self.core.drawable() if not 0xD800 <= code < 0xE000]

    def mostly_wide(self, text: str) -> bool:
        """Whether more than half of a text's characters, blanks left out, take two cells."""
        if text.isascii():
            return False
        wide = others = 0
        for character, count in Counter(text).items():
            if character.isspace():
                continue
            if self.cells(character) == 2:
                wide += count
            else:
                others += count
        return wide > others

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Atlas) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"Atlas({self.cell[0]}x{self.cell[1]} {self.ink}, {self.digest[:12]})"


@lru_cache(maxsize=64)
def own(cell: tuple[int, int], ink: str) -> Atlas:
    """The atlas of our own font as this version draws it."""
    return make(cell, ink, ())


def make(cell: tuple[int, int], ink: str, glyphs: Sequence[Glyph]) -> Atlas:
    """Our own font with more glyphs: those that the law of the font lets in, the first where two look alike.

    ASCII and whatever our font draws stays ours.
    """
    core = _core.Atlas(cell, ink, glyphs)
    return Atlas(core, core.data())


# Atlases that a plan may name: those made here, and bytes that a record keeps, by their digest.
_MADE: dict[str, Atlas] = {}
_KEPT: dict[str, bytes] = {}
_LOCK = threading.Lock()


def remember(atlas: Atlas | bytes) -> None:
    """Let plans of this process name an atlas, as one that was made or as the bytes that were kept of it."""
    with _LOCK:
        if isinstance(atlas, Atlas):
            _MADE[atlas.digest] = atlas
        else:
            _KEPT[hashlib.sha256(atlas).hexdigest()] = atlas


def named(digest: str, cell: tuple[int, int], ink: str) -> Atlas | None:
    """The atlas of a digest; ``None`` stands for our own font, whose name may be left empty.

    :class:`~microfiche.errors.PlanMismatch` if it is not at hand, or is none to this version.
    """
    if not digest or digest == own(cell, ink).digest:
        return None
    with _LOCK:
        made, kept = _MADE.get(digest), _KEPT.get(digest)
    if made is None and kept is not None:
        try:
            made = Atlas.load(kept)
        except BadInput as exc:  # another version's, with other marks
            raise PlanMismatch(
                f"its pages are drawn with an atlas that this version cannot use ({exc.what})",
                "plan",
                "draw them with the version that made them, or pass no plan",
            ) from exc
        remember(made)
    if made is None:
        raise PlanMismatch(
            f"its pages are drawn with a font that is not at hand (atlas {digest[:12]})",
            "plan",
            "pass the font with the policy, or no plan",
        )
    return made
