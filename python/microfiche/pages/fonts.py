"""Fonts of the user and of the system: glyphs for the characters that our own font lacks.

Here they are found and told apart; their glyphs are drawn by :mod:`.faces`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from microfiche.errors import BadInput

from . import faces
from .atlas import Atlas, Glyph, make, remember

FontLike: TypeAlias = "str | Path | Font | Atlas | Sequence[str | Path | Font]"
"""A font by name or file, several of them (the first that has a character draws it), or an atlas."""

_SUFFIXES = frozenset({".ttf", ".otf", ".ttc", ".otc", ".bdf", ".pcf", ".hex"})
_PACKED = ".pcf.gz"


@dataclass(frozen=True, slots=True)
class Font:
    """A face of a font file. ``family`` and ``style`` are its own words, ``kind`` is outlines, bitmaps or hex."""

    path: Path
    index: int
    family: str
    style: str
    kind: str
    # A file that is written anew is another font.
    stamp: tuple[int, int] = field(repr=False, default=(0, 0))

    @property
    def name(self) -> str:
        return f"{self.family} {self.style}".strip()

    @property
    def stands(self) -> bool:
        """Whether the file is there, and as it was."""
        try:
            return _stamp(self.path) == self.stamp
        except OSError:
            return False

    def glyphs(self, cell: tuple[int, int]) -> list[Glyph]:
        """A glyph for every character that may be drawn, by code point, whether or not it has ink."""
        return faces.glyphs(self.path, self.index, self.kind, cell)


def atlas_for(font: FontLike, cell: tuple[int, int], ink: str) -> Atlas:
    """The atlas of our own font and what others add to it; a given atlas must be of that cell and ink.

    Raises :class:`~microfiche.errors.BadInput` for a font that is nowhere or no font.
    """
    if isinstance(font, Atlas):
        if (font.cell, font.ink) != (cell, ink):
            raise BadInput(
                f"an atlas of {font.cell[0]}x{font.cell[1]} {font.ink} cannot draw {cell[0]}x{cell[1]} {ink}",
                "font",
                "pass the font, or the cell and ink of its atlas",
            )
        remember(font)
        return font
    return _atlas(fonts_of(font), cell, ink)


def fonts_of(font: FontLike) -> tuple[Font, ...]:
    """The fonts that are meant, in their order."""
    if isinstance(font, str | Path | Font):
        font = (font,)
    if not isinstance(font, Sequence) or not all(isinstance(each, str | Path | Font) for each in font):
        raise BadInput(f"a {type(font).__name__} is no font", "font", "pass the name of a font, or its file")
    return tuple(each if isinstance(each, Font) else find(each) for each in font)


@lru_cache(maxsize=16)
def _atlas(fonts: tuple[Font, ...], cell: tuple[int, int], ink: str) -> Atlas:
    atlas = make(cell, ink, [glyph for font in fonts for glyph in font.glyphs(cell)])
    remember(atlas)
    return atlas


def find(font: str | Path) -> Font:
    """The font of a file, or of a name: a family's ordinary style, a family with its style, or a file's stem."""
    path = Path(font)
    if isinstance(font, Path) or os.sep in font or path.suffix.lower() in _SUFFIXES or font.endswith(_PACKED):
        if not path.is_file():
            raise BadInput("there is no such font file", str(font), "check the path")
        fonts = read(path)
        if not fonts:
            raise BadInput("this is no font that can be read", str(font), "give TTF, OTF, TTC, BDF, PCF or hex")
        return fonts[0]
    wanted = _folded(font)
    if wanted in _FOUND and _FOUND[wanted].stands:
        return _FOUND[wanted]
    named = [each for each in installed() if wanted in (_folded(each.family), _folded(each.name))]
    named = named or [each for each in installed() if _folded(each.path.stem) == wanted]
    if not named:
        raise BadInput(f"no font is called {font!r}", "font", "name one that `microfiche fonts` lists, or a file")
    found = min(named, key=lambda each: (_folded(each.name) != wanted, _plainness(each), str(each.path)))
    _FOUND[wanted] = found
    return found


_FOUND: dict[str, Font] = {}
"""Fonts by their folded name: a pass asks several times, and a system has hundreds."""


def _folded(name: str) -> str:
    return "".join(name.casefold().split())


def _plainness(font: Font) -> int:
    styles = ("regular", "book", "normal", "roman", "medium", "")
    style = font.style.casefold()
    return styles.index(style) if style in styles else len(styles)


def folders() -> list[Path]:
    """Where fonts of the user and of the system are looked for: as the XDG and the systems' own conventions have it."""
    home = Path.home()
    if sys.platform == "darwin":
        return [home / "Library/Fonts", Path("/Library/Fonts"), Path("/System/Library/Fonts")]
    if sys.platform == "win32":
        local = Path(os.environ.get("LOCALAPPDATA", home / "AppData/Local"))
        return [local / "Microsoft/Windows/Fonts", Path(os.environ.get("WINDIR", "C:/Windows")) / "Fonts"]
    own = Path(os.environ.get("XDG_DATA_HOME") or home / ".local/share")
    shared = (os.environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share").split(":")
    return [own / "fonts", home / ".fonts", *(Path(each) / "fonts" for each in shared if each)]


def installed() -> list[Font]:
    """Every font of the user and of the system, by name."""
    files = [file for folder in folders() if folder.is_dir() for file in folder.rglob("*") if _is_font(file)]
    found = {(font.path, font.index): font for file in sorted(files) for font in read(file)}
    return sorted(found.values(), key=lambda each: (each.family.casefold(), each.style.casefold(), str(each.path)))


def _is_font(file: Path) -> bool:
    return (file.suffix.lower() in _SUFFIXES or file.name.endswith(_PACKED)) and file.is_file()


def read(path: Path) -> list[Font]:
    """The faces of a font file; none if it is no font."""
    try:
        return list(_read(path, _stamp(path)))
    except OSError:
        return []


def _stamp(path: Path) -> tuple[int, int]:
    told = path.stat()
    return told.st_mtime_ns, told.st_size


@lru_cache(maxsize=4096)
def _read(path: Path, stamp: tuple[int, int]) -> tuple[Font, ...]:
    found = enumerate(faces.told(path))
    return tuple(Font(path, index, family, style, kind, stamp) for index, (family, style, kind) in found)
