"""Segments to pages and back, through the engine.

The grammar of a page is specified in ``docs/page-format.md``. A page names its own cells, ink and
marks by its pixels alone, so :func:`read_back` needs nothing beside the image.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, overload

import microfiche._core as _core
from microfiche import models
from microfiche.errors import BadInput, BadPage, MicroficheError, NoVision

from .atlas import Atlas, named, remember

if TYPE_CHECKING:
    import numpy
    import PIL.Image

    from .fonts import FontLike

Ink: TypeAlias = Literal["grey", "mono"]
Lines: TypeAlias = Literal["flow", "hard"]
Level: TypeAlias = Literal["fastest", "default", "smallest"]
Cell: TypeAlias = tuple[int, int]

GRAMMAR: int = _core.GRAMMAR
"""The version of the page grammar (docs/page-format.md) that this engine draws."""

_KIND = re.compile(r"user|assistant|system|result ok|result error|call [A-Za-z0-9_.:-]{1,64}")
_TURN_END = 1 << 64
OWN_CHUNK = b"tEXtmicrofiche\0"
"""Stands in the first 400 bytes of every page's file, and of no other picture."""

# Modes of Pillow that a PNG holds as they are; others are read as RGB.
_PNG_MODES = frozenset(("1", "L", "LA", "I;16", "P", "RGB", "RGBA"))


@dataclass(frozen=True, slots=True)
class Bar:
    """A turn bar: a mark on the page that says where a turn, a call or a result begins.

    ``turn`` is the turn's number, 0 to 2**64 - 1. ``kind`` is ``user``, ``assistant``, ``system``,
    ``call NAME``, ``result ok`` or ``result error``; NAME is 1 to 64 of ``[A-Za-z0-9_.:-]``.

    Raises :class:`~microfiche.errors.BadInput` for anything else.
    """

    turn: int
    kind: str

    def __post_init__(self) -> None:
        if not 0 <= self.turn < _TURN_END:
            raise BadInput(f"a bar's turn is 0 to 2**64 - 1, not {self.turn}")
        if not _KIND.fullmatch(self.kind):
            raise BadInput(f"no bar has the kind {self.kind!r}")


Segment: TypeAlias = Bar | str


@dataclass(frozen=True, slots=True)
class Page:
    """One page of glyphs.

    ``png`` is the file. ``width`` and ``height`` are pixels, ``cell`` the pixels of one character.
    ``segments`` is what stands on the page: its source from ``start`` up to ``end``, each the index
    of a segment of the document in normal form and an offset in code points within it.
    ``turns`` are the turns on it in order, the one it begins inside of included. ``escapes`` counts
    the characters that the font does not have and that stand as their code points.
    ``atlas`` is the digest of the atlas that it is drawn by, empty for our own font.
    ``cells`` is how many cells under the legend are in use. ``tokens`` is what the model it was
    drawn for bills for it, 0 without a model. ``known_digest`` is :attr:`digest` where it is known.
    """

    png: bytes = field(repr=False)
    width: int
    height: int
    number: int
    cell: Cell
    ink: Ink
    segments: tuple[Segment, ...] = field(repr=False)
    start: tuple[int, int]
    end: tuple[int, int]
    turns: tuple[int, ...]
    escapes: dict[str, int] = field(hash=False)
    cells: int
    tokens: int = 0
    atlas: str = ""
    known_digest: str | None = field(default=None, repr=False, compare=False)

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the packed scanlines before PNG filters.

        With width, height and ink it is the page's identity, whatever its encoding. Where the page was drawn
        without it, it is read from the file when it is first asked for.
        """
        if self.known_digest is None:
            object.__setattr__(self, "known_digest", _core.digest(self.png).hex())
        return cast(str, self.known_digest)

    @property
    def text(self) -> str:
        """The text on the page, bars left out."""
        return "".join(segment for segment in self.segments if isinstance(segment, str))

    def array(self) -> numpy.ndarray[tuple[int, int], numpy.dtype[numpy.uint8]]:
        """The pixels as a NumPy array: shape (height, width), uint8, 0 black to 255 white."""
        try:
            import numpy
        except ImportError as error:
            raise _missing("NumPy") from error
        width, height, grey = _core.pixels(self.png)
        return numpy.frombuffer(grey, numpy.uint8).reshape(height, width)

    def image(self) -> PIL.Image.Image:
        """The page as a Pillow image, read from ``png``."""
        try:
            import PIL.Image
        except ImportError as error:
            raise _missing("Pillow") from error
        return PIL.Image.open(io.BytesIO(self.png))

    def save(self, path: str | Path) -> None:
        """Writes the PNG file."""
        Path(path).write_bytes(self.png)


def series(stem: str, numbers: Iterable[int]) -> list[str]:
    """The names of numbered pages: ``page-001.png`` …, of so many digits that a shell lists them in order."""
    listed = list(numbers)
    digits = max(3, len(str(max(listed, default=0))))
    return [f"{stem}-{number:0{digits}d}.png" for number in listed]


def _missing(what: str) -> MicroficheError:
    return MicroficheError(f"{what} is not installed", cure="pip install 'microfiche[images]'")


def normal(segments: Iterable[Segment]) -> tuple[Segment, ...]:
    """Normal form: texts side by side merged, empty ones dropped. :class:`BadInput` for what is no segment."""
    merged: list[Segment] = []
    segments = list(segments)
    for segment in segments:
        if not isinstance(segment, str | Bar):
            raise BadInput(f"a {type(segment).__name__} is no segment", "pages", "pass text, or bars and texts")
    for is_text, group in groupby(segments, lambda segment: isinstance(segment, str)):
        if is_text:
            text = "".join(segment for segment in group if isinstance(segment, str))
            merged += [text] if text else []
        else:
            merged += group
    return tuple(merged)


def draw(
    segments: Sequence[Segment],
    *,
    cell: Cell,
    ink: Ink = "grey",
    width: int,
    height: int,
    grid: int = 1,
    min_height: int = 0,
    lines: Lines = "flow",
    level: Level = "default",
    first: int = 1,
    inside: int | None = None,
    digests: bool = False,
    threads: int = 0,
    atlas: Atlas | None = None,
) -> list[Page]:
    """Draws segments on as few pages as hold them; no segments, no pages.

    ``width`` × ``height`` are the pixels of a full page. The last page is as high as its rows,
    rounded up to a multiple of ``grid`` pixels and at least ``min_height``; with ``grid=0`` it is
    full height too. ``lines="hard"`` begins a new row after each line break. ``first`` numbers the
    first page; ``inside`` is the turn that the text before the first bar belongs to, if any.
    ``level`` trades time for bytes, never pixels; ``digests`` makes the pages' digests on the way, where they
    are wanted anyway; ``threads`` (0: as many as pay) changes neither.
    ``atlas`` holds the glyphs of another font beside our own (see :mod:`.fonts`).

    Raises :class:`~microfiche.errors.PageTooSmall` for fewer than 12 columns or 96 cells under the
    legend, :class:`~microfiche.errors.BadInput` for a cell outside 4×6 to 16×32 and other values
    out of range.
    """
    document = normal(segments)
    _check_cell(cell)
    for name, value in (("width", width), ("height", height), ("grid", grid), ("min_height", min_height)):
        if not isinstance(value, int) or not 0 <= value < 1 << 31:
            raise BadInput(f"{name} is a number of pixels, not {value!r}")
    if not 0 <= first < _TURN_END or (inside is not None and not 0 <= inside < _TURN_END):
        raise BadInput("first and inside are 0 to 2**64 - 1")
    sheets = _core.render(
        [segment if isinstance(segment, str) else (segment.turn, segment.kind) for segment in document],
        cell,
        ink,
        width,
        height,
        grid,
        min_height,
        lines,
        level,
        first,
        inside,
        digests,
        max(threads, 0),
        atlas.core if atlas is not None else None,
    )
    if atlas is not None:
        remember(atlas)
    return [
        Page(
            png=sheet.png,
            width=sheet.width,
            height=sheet.height,
            number=sheet.number,
            cell=cell,
            ink=ink,
            segments=cut(document, sheet.start, sheet.end),
            start=sheet.start,
            end=sheet.end,
            turns=tuple(sheet.turns),
            escapes={chr(code_point): count for code_point, count in sheet.escapes},
            cells=sheet.cells,
            known_digest=None if sheet.digest is None else bytes(sheet.digest).hex(),
            atlas=atlas.digest if atlas is not None else "",
        )
        for sheet in sheets
    ]


def _check_cell(cell: Any) -> None:
    """:class:`BadInput` unless it is two numbers of pixels; how small and how large they may be, the engine knows."""
    pair = isinstance(cell, tuple) and len(cell) == 2
    if not pair or not all(isinstance(side, int) and 0 < side < 1 << 16 for side in cell):
        raise BadInput(f"{cell!r} is no cell", cure="pass its width and height in pixels, such as (9, 16)")


def cut(document: Sequence[Segment], start: tuple[int, int], end: tuple[int, int]) -> tuple[Segment, ...]:
    """The segments from one position up to another."""
    (first, begin), (last, stop) = start, end
    parts: list[Segment] = []
    for at in range(first, last + (stop > 0)):
        segment = document[at]
        if isinstance(segment, str):
            # One slice, for a text may be on thousands of pages.
            segment = segment[begin if at == first else 0 : stop if at == last else None]
        parts.append(segment)
    return tuple(parts)


# A full page where no model says more: the page with the most reading evidence (Claude's).
_WIDTH, _HEIGHT = 1568, 784


def render(
    text: str,
    *,
    model: str | models.Model | None = None,
    fidelity: models.Fidelity = "exact",
    cell: Cell | None = None,
    ink: Ink | None = None,
    lines: Lines = "flow",
    level: Level = "default",
    width: int | None = None,
    height: int | None = None,
    vision: bool | None = None,
    threads: int = 0,
    font: FontLike | None = None,
) -> list[Page]:
    """Draws a text for a model: with its cell for ``fidelity``, on its page; ``""`` gives no pages.

    ``cell``, ``ink``, ``width`` and ``height`` override the model's. Without a model ``cell`` is
    needed, and a page is 1568×784 pixels. ``vision=True`` says that a model sees of which the
    catalogue does not know it. ``font`` draws what our own font lacks: the name or file of a font of the
    user or the system, or several (:mod:`microfiche.pages.fonts`); :func:`read_back` has to be told the same. A text of
    mostly wide characters is moved from a smaller cell of the model's to 7×14. See :func:`draw` for the rest.

    Raises :class:`~microfiche.errors.NoVision` for a model that reads no images, and what
    :func:`draw` raises.
    """
    if model is None:
        if cell is None:
            raise BadInput("neither a model nor a cell is given", cure="name the model that will read the pages")
        return draw(
            [text],
            cell=cell,
            ink=ink or "grey",
            width=width or _WIDTH,
            height=height or _HEIGHT,
            lines=lines,
            level=level,
            threads=threads,
            atlas=atlas_of(font, cell, ink or "grey"),
        )
    reader = models.find(model, vision) if isinstance(model, str) else model
    if not reader.vision:
        if reader.known:
            raise NoVision(f"{reader.name} does not read images", cure="choose a model with vision")
        raise NoVision(f"whether {reader.name} reads images is not known", cure="if it does, say so with vision=True")
    own = models.cell_for(reader, fidelity)
    ink = ink or own.ink
    if cell is None:
        cell = own.width, own.height
        cell = moved(cell, atlas_of(font, cell, ink), text)
    _check_cell(cell)
    page = models.page(reader, cell)
    full = reader.regime.flat
    drawn = draw(
        [text],
        cell=cell,
        ink=ink,
        width=width or page.width,
        height=height or page.height,
        grid=0 if full else page.grid[1],
        min_height=0 if full else page.min_height,
        lines=lines,
        level=level,
        threads=threads,
        atlas=atlas_of(font, cell, ink),
    )
    return [replace(each, tokens=models.image_tokens(reader, each.width, each.height)) for each in drawn]


WIDE_CELL: Cell = (7, 14)
"""The least cell for text of mostly wide characters: 14×14 pixels are what a strong model needs for random Han."""


def moved(cell: Cell, atlas: Atlas | None, text: str) -> Cell:
    """The cell at which a text is drawn for which ``cell`` would be taken: a larger one where most of it is wide."""
    if atlas is None or not atlas.mostly_wide(text):
        return cell
    return max(cell[0], WIDE_CELL[0]), max(cell[1], WIDE_CELL[1])


def atlas_of(font: FontLike | None, cell: Cell, ink: Ink) -> Atlas | None:
    """The atlas of our own font and of others; ``None`` without any."""
    if font is None or font == ():
        return None
    from .fonts import atlas_for

    _check_cell(cell)
    return atlas_for(font, cell, ink)


Readable: TypeAlias = "Page | bytes | str | Path | PIL.Image.Image | numpy.ndarray[Any, Any]"


@overload
def read_back(
    pages: Readable | Sequence[Readable],
    cell: Cell | None = ...,
    ink: Ink | None = ...,
    marks: Literal[False] = ...,
    limit: int = ...,
    font: FontLike | None = ...,
) -> str: ...
@overload
def read_back(
    pages: Readable | Sequence[Readable],
    cell: Cell | None = ...,
    ink: Ink | None = ...,
    *,
    marks: Literal[True],
    limit: int = ...,
    font: FontLike | None = ...,
) -> list[Segment]: ...
def read_back(
    pages: Readable | Sequence[Readable],
    cell: Cell | None = None,
    ink: Ink | None = None,
    marks: bool = False,
    limit: int = 1 << 30,
    font: FontLike | None = None,
) -> str | list[Segment]:
    """What pages say, from their pixels alone.

    A page is a :class:`Page`, the bytes or the path of a PNG (of any colour type, interlaced or
    not), a Pillow image or a NumPy array of shape (height, width) or (height, width, 3), uint8; or
    a sequence of these, taken in the order given. Without ``cell`` and ``ink`` those are tried at
    which the first row is a legend. With ``marks`` the segments come back in normal form, else
    their text. ``limit`` bounds the bytes of text, since a forged page can count to any number.
    ``font`` is the one that the pages were drawn with beside our own, or their atlas; a :class:`Page` knows its own.

    Raises :class:`~microfiche.errors.BadPage` for what is not a page, was scaled or damaged,
    :class:`~microfiche.errors.BadInput` for what is no cell or ink.
    """
    if cell is not None:
        _check_cell(cell)
    several = isinstance(pages, Sequence) and not isinstance(pages, str | bytes | bytearray | memoryview)
    images: Iterable[Any] = pages if several else (pages,)  # type: ignore[assignment]
    images = list(images)
    pixels = [_pixels(image) for image in images]
    atlas = _reading_atlas(images, pixels, cell, ink, font)
    pieces = _core.read(pixels, cell, ink, limit, atlas.core if atlas is not None else None)
    if marks:
        return [piece if isinstance(piece, str) else Bar(*piece) for piece in pieces]
    return "".join(piece for piece in pieces if isinstance(piece, str))


def _reading_atlas(
    images: Sequence[Any],
    pixels: Sequence[bytes | tuple[int, int, bytes]],
    cell: Cell | None,
    ink: Ink | None,
    font: FontLike | None,
) -> Atlas | None:
    """The atlas to read pages by; a font is drawn at the cell that their first has by its legend."""
    if isinstance(font, Atlas):
        return font
    if font is None or font == ():
        drawn = next((page for page in images if isinstance(page, Page) and page.atlas), None)
        return named(drawn.atlas, drawn.cell, drawn.ink) if drawn is not None else None
    found = _core.form(pixels[0], cell, ink) if pixels else None
    return atlas_of(font, *found) if found is not None else None  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class PlacedBar:
    """A bar as it stands on a page: ``boxes`` are (left, top, width, height) in pixels, one a row that it takes."""

    turn: int
    kind: str
    boxes: tuple[tuple[int, int, int, int], ...]


def bars_on(page: Readable, font: FontLike | None = None) -> list[PlacedBar]:
    """Where the bars of a page stand, in reading order, told from its pixels alone as :func:`read_back` reads them."""
    pixels = _pixels(page)
    atlas = _reading_atlas([page], [pixels], None, None, font)
    width, height, columns, found = _core.bars(pixels, atlas.core if atlas is not None else None)
    return [
        PlacedBar(turn, kind, tuple(_boxes(row, column, cells, columns, (width, height))))
        for turn, kind, row, column, cells in found
    ]


def _boxes(row: int, column: int, cells: int, columns: int, cell: Cell) -> Iterable[tuple[int, int, int, int]]:
    width, height = cell
    while cells > 0:
        here = min(cells, columns - column)
        yield column * width, row * height, here * width, height
        row, column, cells = row + 1, 0, cells - here


def _pixels(page: Any) -> bytes | tuple[int, int, bytes]:
    """A readable thing as the engine takes it: a PNG file, or width, height and grey pixels."""
    match page:
        case Page():
            return page.png
        case bytes():
            return page
        case bytearray() | memoryview():
            return bytes(page)
        case str() | Path():
            try:
                return Path(page).read_bytes()
            except OSError as error:
                raise BadPage(f"cannot be read: {error.strerror or error}", str(page)) from error
    if hasattr(page, "__array_interface__") and not hasattr(page, "save"):
        return _grey(page)
    if hasattr(page, "save"):
        image = page if page.mode in _PNG_MODES else page.convert("RGB")
        file = io.BytesIO()
        image.save(file, "PNG", compress_level=1)
        return file.getvalue()
    raise BadPage(f"a page cannot be read from {type(page).__name__}")


def _grey(array: Any) -> tuple[int, int, bytes]:
    """The pixels of a NumPy array as 8-bit grey; ITU-R BT.601 luma for colours."""
    import numpy

    if array.dtype != numpy.uint8 or array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] != 3):
        raise BadPage(
            f"an array of {array.dtype} with shape {array.shape} is no image",
            cure="give uint8 of shape (height, width) or (height, width, 3)",
        )
    if array.ndim == 3:
        luma = (array.astype(numpy.uint32) @ numpy.array([299, 587, 114], numpy.uint32) + 500) // 1000
        array = luma.astype(numpy.uint8)
    height, width = array.shape
    return width, height, array.tobytes()
