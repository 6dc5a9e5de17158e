"""How well an independent reader reads the font: ``python benches/reading/ocr.py``.

Draws known lines with :func:`microfiche.pages.render.draw`, cuts each row out of its page, scales it
to 48 px, gives it to ``rapidocr`` (PP-OCRv6 small, its models come in the wheel) and counts what it
got wrong. Needs ``pip install '.[bench]'``. The reader saturates above 6×11 and dislikes wide tracking:
it judges the shapes of glyphs, not size or spacing, and says little about a vision language model.

Two corpora: ``text`` is corpus.txt, twenty lines of code, JSON, logs, English and Spanish, each with a
12-hex identifier; ``mixed`` is made from a seed: words, punctuation and random letters that no
language knowledge helps with, again with an identifier a line.

White space is left out of the comparison (the reader guesses it), and full-width or curly variants of
ASCII punctuation count as the plain ones. CER is the edit distance over the length of the wanted text.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from microfiche.pages.render import draw

CELLS = ["5x10", "6x12", "7x14", "9x16"]
READER_HEIGHT = 48  # pixels of a line as the recogniser wants it
LOOKALIKES = str.maketrans("’‘“”，：；（）！？", "''\"\",:;()!?")
IDENTIFIER = re.compile(r"[0-9a-f]{12}")
WORDS = ["index", "queue", "build_page", "total", "count", "self.rows", "line", "buffer", "flush"]
WORDS += ["read_next", "commit", "value", "key", "node", "parent", "left", "right", "offset"]
SIGNS = ["(", "[", "->", ".", "==", " = ", ", ", "+=", ": ", "!=", "{", "}", "]", ")", ";", "'", '"', "_"]
SIGNS += ["/", "*", "&", "|", "<", ">", "%", "#", "@"]
ALNUM = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


def text_lines() -> list[str]:
    return (Path(__file__).parent / "corpus.txt").read_text(encoding="utf-8").splitlines()


def mixed_lines(count: int = 40, seed: int = 1) -> list[str]:
    rng = random.Random(seed)
    lines = []
    for _ in range(count):
        line = ""
        while len(line) < 50:
            kind = rng.random()
            if kind < 0.5:
                line += rng.choice(WORDS)
            elif kind < 0.85:
                line += rng.choice(SIGNS)
            else:
                line += "".join(rng.choice(ALNUM) for _ in range(6))
        lines.append(f"{line} {rng.getrandbits(48):012x}")
    return lines


def row_image(line: str, cell: tuple[int, int], ink: Any) -> Any:
    """The pixels of a line, cut out below the legend of a page that holds nothing else."""
    width, height = cell
    columns = max(len(line) + 1, 32)
    [page] = draw([line], cell=cell, ink=ink, width=columns * width, height=4 * height)
    return page.image().convert("L").crop((0, height, (len(line) + 1) * width, 2 * height))


class Reader:
    def __init__(self) -> None:
        from rapidocr import RapidOCR

        self.engine = RapidOCR(params={"Global.log_level": "error"})

    def read(self, image: Any, scale: float) -> str:
        import numpy as np
        from PIL import Image

        if scale != 1:
            size = (round(image.width * scale), round(image.height * scale))
            image = image.resize(size, Image.Resampling.LANCZOS)
        size = (max(1, round(image.width * READER_HEIGHT / image.height)), READER_HEIGHT)
        pixels = np.asarray(image.resize(size, Image.Resampling.BICUBIC).convert("RGB"))
        answer = self.engine(pixels, use_det=False, use_cls=False, use_rec=True)
        return "".join(answer.txts or ())


def plain(text: str) -> str:
    return re.sub(r"\s+", "", text).translate(LOOKALIKES)


def differences(want: str, got: str) -> list[str]:
    """A shortest list of edits from ``want`` to ``got``: ``ab`` is a read as b, ``a∅`` lost, ``∅b`` added."""
    rows = [list(range(len(got) + 1))]
    for i, a in enumerate(want, 1):
        row = [i]
        for j, b in enumerate(got, 1):
            row.append(min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (a != b)))
        rows.append(row)
    edits = []
    i, j = len(want), len(got)
    while i or j:
        if i and j and rows[i][j] == rows[i - 1][j - 1] + (want[i - 1] != got[j - 1]):
            i, j = i - 1, j - 1
            if want[i] != got[j]:
                edits.append(want[i] + got[j])
        elif i and rows[i][j] == rows[i - 1][j] + 1:
            i -= 1
            edits.append(want[i] + "∅")
        else:
            j -= 1
            edits.append("∅" + got[j])
    return edits


def judge(reader: Reader, lines: Sequence[str], cell: tuple[int, int], ink: str, scale: float) -> str:
    edits: Counter[str] = Counter()
    length = found = identifiers = 0
    for line in lines:
        want, got = plain(line), plain(reader.read(row_image(line, cell, ink), scale))
        edits.update(differences(want, got))
        length += len(want)
        wanted = IDENTIFIER.findall(line)
        identifiers += len(wanted)
        found += sum(identifier in got for identifier in wanted)
    worst = " ".join(f"{edit}×{n}" if n > 1 else edit for edit, n in edits.most_common(12))
    return f"{100 * edits.total() / length:6.2f} %  {found:3}/{identifiers:<3}  {worst}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cells", nargs="+", default=CELLS, metavar="WxH")
    parser.add_argument("--inks", nargs="+", default=["grey"], choices=["grey", "mono"])
    parser.add_argument("--scales", nargs="+", type=float, default=[1.0, 0.75])
    parser.add_argument("--corpora", nargs="+", default=["text", "mixed"], choices=["text", "mixed"])
    options = parser.parse_args()
    corpora = {"text": text_lines, "mixed": mixed_lines}
    reader = Reader()
    print("cell  ink   scale corpus     CER     ids    commonest edits")
    for name in options.cells:
        width, _, height = name.partition("x")
        for ink in options.inks:
            for scale in options.scales:
                for corpus in options.corpora:
                    result = judge(reader, corpora[corpus](), (int(width), int(height)), ink, scale)
                    print(f"{name:5} {ink:5} {scale:<5} {corpus:6} {result}", flush=True)


if __name__ == "__main__":
    main()
