"""How well an independent reader reads the font: ``python benches/reading/ocr.py``.

Draws known lines with :func:`microfiche.pages.render.draw`, cuts each row out of its page, scales it
to 48 px, gives it to ``rapidocr`` (PP-OCRv6 small, its models come in the wheel) and counts what it
got wrong. Needs ``pip install '.[bench]'``. The reader saturates above 6×11 and dislikes wide tracking:
it judges the shapes of glyphs, not size or spacing, and says little about a vision language model.

The font is tuned on two corpora: ``text`` is corpus.txt, twenty lines of code, JSON, logs, English and Spanish,
each with a 12-hex identifier; ``mixed`` is made from a seed: words, punctuation and random letters that no
language knowledge helps with, again with an identifier a line. It is judged on others: ``unseen`` is unseen.txt,
forty lines of more kinds and languages; ``mixed2`` is made from another seed; ``alike`` is forty identifiers of
which half the characters are l, I, 1, O and 0.

``--fonts`` names rivals: files of monospaced outline fonts, which are drawn by FreeType at the size whose advance
fits the cell, in the same four levels. They are never part of the package.

White space is left out of the comparison (the reader guesses it), and full-width or curly variants of
ASCII punctuation count as the plain ones. CER is the edit distance over the length of the wanted text.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from microfiche.reading.documents import mixed_line
from microfiche.reading.ocr import Reader, misread, rapidocr, row_image

CELLS = ["5x10", "6x12", "7x14", "9x16"]
FINE = 8  # samples along a pixel of a rival
IDENTIFIER = re.compile(r"(?<![0-9a-f])[0-9a-f]{12}(?![0-9a-f])|(?<=@)\w{8}(?=@)")
WORDS = ["index", "queue", "build_page", "total", "count", "self.rows", "line", "buffer", "flush"]
WORDS += ["read_next", "commit", "value", "key", "node", "parent", "left", "right", "offset"]
SIGNS = ["(", "[", "->", ".", "==", " = ", ", ", "+=", ": ", "!=", "{", "}", "]", ")", ";", "'", '"', "_"]
SIGNS += ["/", "*", "&", "|", "<", ">", "%", "#", "@"]
ALNUM = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
TRAIN = ["text", "mixed", "alike-train"]
TEST = ["unseen", "mixed2", "alike"]

Drawer = Callable[[str, tuple[int, int]], Any]
"""A line as an image of a row of cells."""


def text_lines(name: str = "corpus.txt") -> list[str]:
    return (Path(__file__).parent / name).read_text(encoding="utf-8").splitlines()


def mixed_lines(count: int = 40, seed: int = 1) -> list[str]:
    rng = random.Random(seed)
    return [mixed_line(rng, 50, WORDS, SIGNS) for _ in range(count)]


def alike_lines(count: int = 40, seed: int = 3) -> list[str]:
    """Identifiers of eight characters between two ``@``, half of them l, I, 1, O or 0."""
    rng = random.Random(seed)
    one = lambda: rng.choice("lI1O0") if rng.random() < 0.5 else rng.choice(ALNUM)  # noqa: E731
    return [f"{rng.choice(WORDS)} = @{''.join(one() for _ in range(8))}@" for _ in range(count)]


CORPORA: dict[str, Callable[[], list[str]]] = {
    "text": text_lines,
    "mixed": mixed_lines,
    "unseen": lambda: text_lines("unseen.txt"),
    "mixed2": lambda: mixed_lines(seed=2),
    "alike": alike_lines,
    "alike-train": lambda: alike_lines(seed=30),
}


def fiche(ink: Any) -> Drawer:
    """The font of the pages, cut out below the legend of a page that holds nothing else."""

    return lambda line, cell: row_image(line, cell, ink)


def outlines(path: Path) -> Drawer:
    """A rival: an outline font at the size whose advance fills the cell, unhinted area coverage in four levels."""
    from PIL import Image, ImageDraw, ImageFont

    def row(line: str, cell: tuple[int, int]) -> Any:
        width, height = cell
        sizes = [ImageFont.truetype(str(path), size * FINE) for size in range(6, 40)]
        font = [font for font in sizes if font.getlength("0") <= (width + 0.25) * FINE][-1]
        _, top, _, bottom = font.getbbox("Ég|")
        image = Image.new("L", ((len(line) + 1) * width * FINE, height * FINE), 255)
        pen = ImageDraw.Draw(image)
        above = (height * FINE - bottom - top) // 2 // FINE * FINE
        for place, character in enumerate(line):
            pen.text((place * width * FINE, above), character, font=font, fill=0)
        return image.reduce(FINE).point([round(level / 85) * 85 for level in range(256)])

    return row


def judge(reader: Reader, row: Drawer, lines: Sequence[str], cell: tuple[int, int], scale: float) -> dict[str, Any]:
    """What the reader makes of lines: characters, edits (commonest first), identifiers and how many were found."""
    edits, length, found, identifiers = misread(reader, lines, lambda line: row(line, cell), scale, IDENTIFIER)
    return {"length": length, "edits": dict(edits.most_common()), "found": found, "identifiers": identifiers}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cells", nargs="+", default=CELLS, metavar="WxH")
    parser.add_argument("--inks", nargs="+", default=["grey"], choices=["grey", "mono"])
    parser.add_argument("--scales", nargs="+", type=float, default=[1.0, 0.75, 0.7])
    parser.add_argument("--corpora", nargs="+", default=TRAIN[:2], choices=CORPORA, help=f"{TRAIN}; to judge: {TEST}")
    parser.add_argument("--fonts", nargs="*", type=Path, default=[], help="files of rivals, drawn in grey")
    parser.add_argument("--edits", type=int, default=12, help="how many of the commonest edits to print")
    parser.add_argument("--json", type=Path, help="write everything here, the confusion matrix included")
    options = parser.parse_args()
    reader = rapidocr()
    drawers = {f"fiche {ink}": fiche(ink) for ink in options.inks}
    drawers |= {path.stem[:16]: outlines(path) for path in options.fonts}
    results = []
    print("cell  font             scale corpus     CER     ids    commonest edits")
    for name in options.cells:
        width, _, height = name.partition("x")
        for font, row in drawers.items():
            for scale in options.scales:
                for corpus in options.corpora:
                    found = judge(reader, row, CORPORA[corpus](), (int(width), int(height)), scale)
                    results.append({"cell": name, "font": font, "scale": scale, "corpus": corpus, **found})
                    edits = list(found["edits"].items())
                    worst = " ".join(f"{edit}×{n}" if n > 1 else edit for edit, n in edits[: options.edits])
                    rate = 100 * sum(found["edits"].values()) / found["length"]
                    ids = f"{found['found']:3}/{found['identifiers']:<3}"
                    print(f"{name:5} {font:16} {scale:<5} {corpus:6} {rate:6.2f} %  {ids}  {worst}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
