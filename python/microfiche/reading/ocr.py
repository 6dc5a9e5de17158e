"""An independent reader that knows nothing of us: how often it reads a line as it was drawn.

``rapidocr`` (PP-OCRv6 small, its models come in the wheel; ``pip install 'microfiche[bench]'``) gets known lines,
cut out of their pages and scaled to 48 px, natively and after a resample. It judges the shapes of glyphs: it
saturates above 6×11, dislikes wide tracking, and says little about a language model that reads whole pages. White
space is left out of the comparison (the reader guesses it), and full-width or curly variants of ASCII punctuation
count as the plain ones.
"""

from __future__ import annotations

import random
import re
import shlex
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from microfiche.errors import MicroficheError
from microfiche.pages.render import Cell, Ink, draw

from .documents import identifier, line, mixed_line
from .score import differences

if TYPE_CHECKING:
    import PIL.Image

HEIGHT = 48
"""Pixels of a line as the recogniser wants it."""

_LOOKALIKES = str.maketrans("’‘“”，：；（）！？", "''\"\",:;()!?")
_IDENTIFIER = re.compile(r"[0-9a-f]{12}")

Reader = Callable[["PIL.Image.Image"], str]
"""Reads the image of one line."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader made of lines at a cell: ``cer`` is edits over characters, ``found`` the identifiers read whole.

    ``confusions`` counts edits: ``ab`` is a read as b, ``a∅`` lost, ``∅b`` added.
    """

    reader: str
    text: str
    cell: Cell
    ink: Ink
    scale: float
    lines: int
    characters: int
    edits: int
    found: int
    identifiers: int
    confusions: dict[str, int] = field(repr=False, hash=False)

    @property
    def cer(self) -> float:
        return self.edits / max(self.characters, 1)

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "cer": round(self.cer, 6)}


def texts(seed: int, count: int) -> dict[str, list[str]]:
    """Lines to read: ordinary code, and words, signs and letters mixed; an identifier behind each."""
    dice = random.Random(f"reading/{seed}")
    return {
        "code": [f"{line(dice).strip()}  # {identifier(dice)}" for _ in range(count)],
        "mixed": [mixed_line(dice) for _ in range(count)],
    }


def row_image(text: str, cell: Cell, ink: Ink) -> PIL.Image.Image:
    """The pixels of a line, cut out below the legend of a page that holds nothing else."""
    width, height = cell
    columns = max(len(text) + 1, 32)
    [page] = draw([text], cell=cell, ink=ink, width=columns * width, height=4 * height)
    return page.image().convert("L").crop((0, height, (len(text) + 1) * width, 2 * height))


def rapidocr() -> Reader:
    """The reader of the package ``rapidocr``."""
    try:
        import numpy
        from PIL import Image
        from rapidocr import RapidOCR
    except ImportError as error:
        raise MicroficheError(
            "rapidocr is not installed", "the reader", "pip install 'microfiche[bench]', or name another with --reader"
        ) from error
    engine = RapidOCR(params={"Global.log_level": "error"})

    def read(image: PIL.Image.Image) -> str:
        size = (max(1, round(image.width * HEIGHT / image.height)), HEIGHT)
        pixels = numpy.asarray(image.resize(size, Image.Resampling.BICUBIC).convert("RGB"))
        answer = engine(pixels, use_det=False, use_cls=False, use_rec=True)
        return "".join(answer.txts or ())

    return read


def program(command: str) -> Reader:
    """A program as reader: it gets the PNG file of a line as its last argument and prints what it reads."""
    words = shlex.split(command)

    def read(image: PIL.Image.Image) -> str:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "line.png"
            image.save(file)
            return run([*words, str(file)], command)

    return read


def run(words: Sequence[str], command: str) -> str:
    """What a program prints; :class:`MicroficheError` if it cannot be run or fails."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, encoding="utf-8", check=False)
    except OSError as error:
        raise MicroficheError(f"the reader cannot be run: {error.strerror}", command, "name a program") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no word why"])[-1]
        raise MicroficheError(f"the reader ended with code {done.returncode}: {last}", command, "mend the reader")
    return done.stdout


def measure(
    reader: Reader,
    name: str,
    lines: dict[str, list[str]],
    cells: Sequence[Cell],
    inks: Sequence[Ink] = ("grey",),
    scales: Sequence[float] = (1.0, 0.75),
) -> Iterator[Reading]:
    """A reading for every cell, ink, scale and kind of text."""
    for cell in cells:
        for ink in inks:
            for scale in scales:
                for kind, some in lines.items():
                    yield _measured(reader, name, kind, some, cell, ink, scale)


def _measured(
    reader: Reader, name: str, kind: str, lines: Sequence[str], cell: Cell, ink: Ink, scale: float
) -> Reading:
    edits, characters, found, identifiers = misread(reader, lines, lambda each: row_image(each, cell, ink), scale)
    ranked = dict(sorted(edits.items(), key=lambda item: (-item[1], item[0])))
    return Reading(name, kind, cell, ink, scale, len(lines), characters, edits.total(), found, identifiers, ranked)


def misread(
    reader: Reader,
    lines: Sequence[str],
    row: Callable[[str], PIL.Image.Image],
    scale: float,
    identifier: re.Pattern[str] = _IDENTIFIER,
) -> tuple[Counter[str], int, int, int]:
    """What a reader makes of lines as ``row`` draws them: edits, characters, identifiers read whole and all of them."""
    edits: Counter[str] = Counter()
    characters = found = identifiers = 0
    for each in lines:
        want, got = plain(each), plain(reader(scaled(row(each), scale)))
        edits.update(differences(want, got))
        characters += len(want)
        wanted = identifier.findall(each)
        identifiers += len(wanted)
        found += sum(whole in got for whole in wanted)
    return edits, characters, found, identifiers


def scaled(image: PIL.Image.Image, scale: float) -> PIL.Image.Image:
    """An image resampled by Lanczos' filter, as a provider would."""
    if scale == 1:
        return image
    from PIL import Image

    size = max(1, round(image.width * scale)), max(1, round(image.height * scale))
    return image.resize(size, Image.Resampling.LANCZOS)


def plain(text: str) -> str:
    """What is compared of a text."""
    return re.sub(r"\s+", "", text).translate(_LOOKALIKES)
