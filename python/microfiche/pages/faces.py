"""The glyphs of font files, as coverage of the cells of a page.

Files are read by FreeType (the extra ``fonts``): TrueType, OpenType, BDF, PCF; the ``.hex`` files of GNU Unifont
are read here. A font is asked for every character that it maps. Whatever would show nothing, a box or a picture is
left out, and stands on a page as its code point:

* what has no ink at the cell, although the font maps it, or the shape that the font gives to characters it lacks;
* controls, blanks, unassigned code points and those to be ignored in display (Unicode 15.1, DerivedCoreProperties);
* emoji: as pictures of a few pixels they read worse than their number (Unicode 15.1, emoji-data: Emoji_Presentation).

Characters stand in logical order, one after the other, whatever direction their script is written in; letters are not
joined. Wide characters (Unicode Standard Annex 11: W and F) take two cells, all others one, but for glyphs of bitmap
fonts that are half as wide again as the font's ordinary ones.
"""

from __future__ import annotations

import threading
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from microfiche.errors import BadInput, MicroficheError

from .atlas import Glyph

# Of a cell's height: how high capitals are and how much lies under the baseline, as in our own font.
_CAPITALS = 0.7
_BELOW = 0.2
# Characters that one glyph may stand for: letters of three scripts, in their forms for compatibility.
_MOST_USES = 8
# Of an em: what lies under the baseline of Han characters (OpenType's ideographic em-box).
_BELOW_HAN = 0.12

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Cn", "Zs", "Zl", "Zp"})
_IGNORED = (
    (0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x3164, 0x3164), (0xFE00, 0xFE0F),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFFD), (0xE0000, 0xE0FFF),
)  # fmt: skip
_EMOJI = (
    (0x231A, 0x231B), (0x23E9, 0x23EC), (0x23F0, 0x23F0), (0x23F3, 0x23F3), (0x25FD, 0x25FE), (0x2614, 0x2615),
    (0x2648, 0x2653), (0x267F, 0x267F), (0x2693, 0x2693), (0x26A1, 0x26A1), (0x26AA, 0x26AB), (0x26BD, 0x26BE),
    (0x26C4, 0x26C5), (0x26CE, 0x26CE), (0x26D4, 0x26D4), (0x26EA, 0x26EA), (0x26F2, 0x26F3), (0x26F5, 0x26F5),
    (0x26FA, 0x26FA), (0x26FD, 0x26FD), (0x2705, 0x2705), (0x270A, 0x270B), (0x2728, 0x2728), (0x274C, 0x274C),
    (0x274E, 0x274E), (0x2753, 0x2755), (0x2757, 0x2757), (0x2795, 0x2797), (0x27B0, 0x27B0), (0x27BF, 0x27BF),
    (0x2B1B, 0x2B1C), (0x2B50, 0x2B50), (0x2B55, 0x2B55), (0x1F000, 0x1FAFF),
)  # fmt: skip
_NEVER = frozenset(code for first, last in (*_IGNORED, *_EMOJI) for code in range(first, last + 1))


def told(path: Path) -> list[tuple[str, str, str]]:
    """Family, style and kind (outlines, bitmaps or hex) of each face of a font file; none if it is no font."""
    if path.suffix.lower() == ".hex":
        return [(path.stem, "", "hex")] if next(_read_hex(path, 1), None) else []
    library = _freetype()
    faces: list[tuple[str, str, str]] = []
    count = 1
    with _FREETYPE:
        while len(faces) < count:
            try:
                face = library.Face(str(path), len(faces))
            except library.FT_Exception:
                break
            count = face.num_faces
            kind = "outlines" if face.is_scalable else "bitmaps"
            names = [each.decode("utf-8", "replace") if each else "" for each in (face.family_name, face.style_name)]
            faces.append((names[0] or path.stem, names[1], kind))
    return faces


def glyphs(path: Path, index: int, kind: str, cell: tuple[int, int]) -> list[Glyph]:
    """A glyph for every character of a face that may be drawn, by code point, whether or not it has ink."""
    if kind == "hex":
        return [_placed(code, bitmap, cell) for code, bitmap in _read_hex(path) if may_be_drawn(code)]
    with _FREETYPE, _Face(path, index) as face:
        return list(face.outlines(cell) if kind == "outlines" else face.bitmaps(cell))


def may_be_drawn(code: int) -> bool:
    """Whether a code point is one that a font of a user may show: neither ASCII nor invisible nor an emoji."""
    return 0x80 <= code <= 0x10FFFF and code not in _NEVER and unicodedata.category(chr(code)) not in _INVISIBLE


_FREETYPE = threading.Lock()
"""A library of FreeType, and the faces that it opens, are for one thread at a time (its manual, FT_Library)."""


def _freetype() -> Any:
    try:
        import freetype
    except ImportError as error:
        cure = "pip install 'microfiche[fonts]'"
        raise MicroficheError("freetype-py is not installed", "fonts of the system", cure) from error
    return freetype


@dataclass(frozen=True, slots=True)
class _Bitmap:
    """Pixels of 0 or 255, row by row, and how many cells they are meant for."""

    cells: int
    width: int
    height: int
    pixels: bytes


_BITS = [bytes(255 if byte >> (7 - at) & 1 else 0 for at in range(8)) for byte in range(256)]


def _unpacked(packed: bytes, width: int) -> bytes:
    return b"".join(map(_BITS.__getitem__, packed))[:width]


def _placed(code: int, bitmap: _Bitmap, cell: tuple[int, int]) -> Glyph:
    """A bitmap in its cells: pixel for pixel in the middle where it fits, else (scaled there) as it is.

    Where the cells are twice as large or more it is scaled too.
    """
    width, height = cell[0] * bitmap.cells, cell[1]
    free = width - bitmap.width, height - bitmap.height
    doubled = width >= 2 * bitmap.width and height >= 2 * bitmap.height
    if min(free) < 0 or doubled or free == (0, 0):
        return code, bitmap.cells, bitmap.width, bitmap.height, bitmap.pixels
    left, above = free[0] // 2, (free[1] + 1) // 2
    rows = [bitmap.pixels[at : at + bitmap.width] for at in range(0, len(bitmap.pixels), bitmap.width)]
    blank = bytes(width)
    inked = [bytes(left) + row + bytes(free[0] - left) for row in rows]
    return code, bitmap.cells, width, height, b"".join([blank] * above + inked + [blank] * (free[1] - above))


def _read_hex(path: Path, most: int | None = None) -> Iterator[tuple[int, _Bitmap]]:
    """The glyphs of a .hex file: a line each, code point, colon, 16 rows of 8 to 32 pixels in hexadecimal.

    (GNU Unifont's format, unifoundry.com/unifont/unifont-utilities.html.) ``most`` stops after so many lines.
    """
    found: dict[int, _Bitmap] = {}
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            code, colon, digits = line.strip().partition(b":")
            if not line.strip() or line.startswith(b"#"):
                continue
            try:
                rows = bytes.fromhex(digits.decode("ascii"))
                value = int(code, 16)
            except ValueError:
                rows, value = b"", -1
            if not colon or not 0 <= value <= 0x10FFFF or len(rows) not in (16, 32, 48, 64):
                if most is None:
                    raise BadInput(f"line {number} is no glyph of a .hex file", str(path), "give a Unifont .hex file")
                return
            across = len(rows) // 16
            pixels = b"".join(_unpacked(rows[at : at + across], 8 * across) for at in range(0, len(rows), across))
            found[value] = _Bitmap(min(across, 2), 8 * across, 16, pixels)
            if len(found) == most:
                break
    yield from sorted(found.items())


class _Face:
    """An open face of a font file."""

    def __init__(self, path: Path, index: int) -> None:
        self._library = _freetype()
        try:
            self._face = self._library.Face(str(path), index)
        except self._library.FT_Exception as error:
            raise BadInput(f"cannot be read: {error}", str(path), "give a whole font file") from error

    def __enter__(self) -> _Face:
        return self

    def __exit__(self, *_: object) -> None:
        del self._face

    def _mapped(self) -> list[tuple[int, int]]:
        """Code points and glyphs; none of a glyph that stands for many, which is a box or a blank."""
        pairs = [(code, glyph) for code, glyph in self._face.get_chars() if glyph]
        uses = Counter(glyph for _, glyph in pairs)
        return sorted((code, glyph) for code, glyph in pairs if uses[glyph] <= _MOST_USES and may_be_drawn(code))

    def outlines(self, cell: tuple[int, int]) -> Iterator[Glyph]:
        """Outlines scaled so that capitals are as high as ours, or a wide em fills its cells; each within its cells."""
        pen = _Pen(self._library, self._face)
        capitals = pen.height_of("H") or 0.7 * self._face.units_per_EM
        lacking = {cells: pen.coverage(0, cells, cell, capitals) for cells in (1, 2)}
        for code, glyph in self._mapped():
            cells = 2 if unicodedata.east_asian_width(chr(code)) in "WF" else 1
            coverage = pen.coverage(glyph, cells, cell, capitals)
            if coverage is not None and coverage != lacking[cells]:
                yield code, cells, cell[0] * cells, cell[1], coverage

    def bitmaps(self, cell: tuple[int, int]) -> Iterator[Glyph]:
        """Bitmaps of the largest size that the cell holds, else of the smallest."""
        face = self._face
        sizes = [size.height for size in face.available_sizes]
        fitting = [height for height in sizes if height <= cell[1]]
        face.select_size(sizes.index(max(fitting) if fitting else min(sizes)))
        above = face.size.ascender >> 6
        height = above - (face.size.descender >> 6)
        mapped = self._mapped()
        narrow = self._narrow(mapped)
        # No look at glyph 0 here: in these formats it may be any character's.
        for code, glyph in mapped:
            bitmap = self._bitmap(glyph, narrow, above, height)
            if bitmap is not None:
                yield _placed(code, bitmap, cell)

    def _narrow(self, mapped: Iterable[tuple[int, int]]) -> int:
        """The width of an ordinary character: of a letter, else of the narrowest glyph."""
        face = self._face
        letters = [glyph for letter in "xn0" if (glyph := face.get_char_index(letter))]
        widths = []
        for glyph in letters[:1] or [glyph for _, glyph in mapped][:100]:
            face.load_glyph(glyph, self._library.FT_LOAD_DEFAULT)
            widths.append(face.glyph.advance.x >> 6)
        return max(min(filter(None, widths), default=1), 1)

    def _bitmap(self, glyph: int, narrow: int, above: int, height: int) -> _Bitmap | None:
        face = self._face
        try:
            face.load_glyph(glyph, self._library.FT_LOAD_RENDER | self._library.FT_LOAD_TARGET_MONO)
        except self._library.FT_Exception:
            return None
        slot = face.glyph
        bitmap = slot.bitmap
        if bitmap.pixel_mode != self._library.FT_PIXEL_MODE_MONO or not bitmap.rows:
            return None
        cells = 2 if 2 * (slot.advance.x >> 6) >= 3 * narrow else 1
        width = max(narrow * cells, bitmap.width)
        left = min(max(slot.bitmap_left, 0), width - bitmap.width)
        rows = [_unpacked(each, bitmap.width) for each in _rows_of(bitmap)]
        inked = [bytes(left) + row + bytes(width - left - len(row)) for row in rows]
        top = above - slot.bitmap_top
        tall = max(height, len(inked))
        top = min(max(top, 0), tall - len(inked))
        blank = bytes(width)
        full = [blank] * top + inked + [blank] * (tall - top - len(inked))
        return _Bitmap(cells, width, tall, b"".join(full))


def _rows_of(bitmap: Any) -> Iterator[bytes]:
    import ctypes

    data = ctypes.string_at(bitmap._FT_Bitmap.buffer, bitmap.rows * bitmap.pitch)
    for row in range(bitmap.rows):
        yield data[row * bitmap.pitch : row * bitmap.pitch + (bitmap.width + 7) // 8]


class _Pen:
    """Draws the outlines of a face: FreeType's own functions on one buffer, since a font has tens of thousands."""

    def __init__(self, library: Any, face: Any) -> None:
        import ctypes

        from freetype import ft_structs, raw

        self._ctypes, self._structs, self._raw = ctypes, ft_structs, raw
        self._library, self._face = library, face
        self._handle = library.get_handle()

    def height_of(self, letter: str) -> int:
        """The height of a letter in units of the font; 0 if there is none."""
        glyph = self._face.get_char_index(letter)
        box = self._load(glyph)[1] if glyph else None
        return max(box.yMax, 0) if box is not None else 0

    def _load(self, glyph: int) -> tuple[Any, Any]:
        """The outline of a glyph and its box, in units of the font; no box if it has none."""
        try:
            self._face.load_glyph(glyph, self._library.FT_LOAD_NO_SCALE | self._library.FT_LOAD_NO_BITMAP)
        except self._library.FT_Exception:
            return None, None
        slot = self._face.glyph._FT_GlyphSlot.contents
        if slot.format != self._library.FT_GLYPH_FORMAT_OUTLINE or not slot.outline.n_points:
            return None, None
        box = self._structs.FT_BBox()
        self._raw.FT_Outline_Get_CBox(self._ctypes.byref(slot.outline), self._ctypes.byref(box))
        return slot, box

    def coverage(self, glyph: int, cells: int, cell: tuple[int, int], capitals: float) -> bytes | None:
        """The coverage of a glyph in its cells; ``None`` if it has no outline."""
        slot, box = self._load(glyph)
        if slot is None:
            return None
        width, height = cell[0] * cells, cell[1]
        if cells == 2:
            em = self._face.units_per_EM
            scale = min(width, height) / em
            baseline = (height - scale * em) / 2 + _BELOW_HAN * scale * em
        else:
            scale = _CAPITALS * height / capitals
            baseline = float(round(_BELOW * height))
        advance = slot.advance.x or box.xMax - box.xMin
        begin = 0 if slot.advance.x else box.xMin
        across, left = _fitted(box.xMin - begin, box.xMax - begin, scale, width, (width - advance * scale) / 2, advance)
        left -= begin * across
        down, base = _fitted(box.yMin, box.yMax, scale, height, baseline, 0)
        byref = self._ctypes.byref
        # 16.16 fixed point takes units of the font to 1/64 of a pixel.
        matrix = self._structs.FT_Matrix(round(across * 64 * 65536), 0, 0, round(down * 64 * 65536))
        self._raw.FT_Outline_Transform(byref(slot.outline), byref(matrix))
        self._raw.FT_Outline_Translate(byref(slot.outline), round(left * 64), round(base * 64))
        buffer = (self._ctypes.c_ubyte * (width * height))()
        bitmap = self._structs.FT_Bitmap()
        bitmap.rows, bitmap.width, bitmap.pitch = height, width, width
        bitmap.buffer = self._ctypes.cast(buffer, type(bitmap.buffer))
        bitmap.num_grays, bitmap.pixel_mode = 256, self._library.FT_PIXEL_MODE_GRAY
        failed = self._raw.FT_Outline_Get_Bitmap(self._handle, byref(slot.outline), byref(bitmap))
        return None if failed else bytes(buffer)


def _fitted(low: float, high: float, scale: float, room: int, start: float, advance: float) -> tuple[float, float]:
    """The scale and the start at which a stretch of units, and its advance, lies within so many pixels."""
    widest = max(high - low, advance)
    if widest * scale > room:
        scale = room / widest
        start = (room - advance * scale) / 2 if advance else start
    if start + low * scale < 0:
        start = -low * scale
    elif start + high * scale > room:
        start = room - high * scale
    return scale, start
