"""Blind readings: does a reader who has never seen the text get lines and identifiers off a page?

    python benches/reading/blind.py make OUT --cell 6x12 --seed 1 --pages 10
    python benches/reading/blind.py score OUT/keys/*.json --answers OUT

``make`` writes readings: folders with four pages, the questions and (in the first) a checker page that shows
whether the viewer scales images. That is all a reader gets. The keys go into a folder of their own and stay with the
scorer. A reader can be any person, program or model; it writes ``answers.json`` beside the pages.

A page is full and as a model gets it: legend, turn bars, marks, the real page size. Its text is code from a
twenty-word vocabulary, so that no language prior helps. For each page four ordinary lines and two twelve-digit
hexadecimal identifiers are asked, each named by the comment line above it. ``score`` counts what is exact, pools the
rates over all keys of a design and gives their 95 % intervals (Wilson's score interval).

``--pitch`` sets the glyphs of a cell on a wider grid, ``--used`` leaves a share of the rows empty, ``--size`` gives the
page other sides, ``--gap`` parts its rows by rules, ``--columns`` sets them in columns: trials of layouts that a page
cannot have. They are drawn by putting the cells of a page in new places.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from microfiche.models import find, page
from microfiche.pages.render import draw
from microfiche.reading.documents import Question, document
from microfiche.reading.score import Tally, judge

LINES = 4
"""Ordinary lines that are asked of a page, and half as many identifiers."""
QUESTIONS = 24
"""Most questions of a reading."""
RULE = 190
"""Level of a rule between rows, of 255."""


@dataclass(frozen=True)
class Design:
    """How the pages are drawn.

    The cell, its ink, the grid it stands on, the share of rows in use, the lines asked, the size of the page if it is
    not the model's, after how many rows how many pixels are left for a faint rule, and the columns of text with
    the pixels between them.
    """

    cell: tuple[int, int]
    ink: str
    pitch: tuple[int, int]
    used: float = 1.0
    lines: int = LINES
    size: tuple[int, int] | None = None
    gap: tuple[int, int] | None = None
    columns: tuple[int, int] = (1, 0)

    def __str__(self) -> str:
        name = f"{self.cell[0]}x{self.cell[1]} {self.ink}"
        if self.pitch != self.cell:
            name += f" on {self.pitch[0]}x{self.pitch[1]}"
        if self.size:
            name += f", page {self.size[0]}x{self.size[1]}"
        if self.gap:
            name += f", a rule in {self.gap[1]} px after {self.gap[0]} rows"
        if self.columns[0] > 1:
            name += f", {self.columns[0]} columns {self.columns[1]} px apart"
        return name if self.used == 1 else f"{name}, {self.used:.0%} of the rows"


def _page(design: Design, seed: int, number: int, model: str) -> tuple[Any, list[Question]]:
    """One page as an image, and what is asked of it."""
    dice = random.Random(f"{seed}/{number}")
    wide, high = design.pitch
    size = design.size
    if size is None:
        form = page(find(model, vision=True), design.pitch)
        size = form.width, form.height
    every, gap = design.gap or (1, 0)
    count, gutter = design.columns
    cols = (size[0] - (count - 1) * gutter) // count // wide
    tops: list[int] = []
    while (top := len(tops) * high + len(tops) // every * gap) + high <= round(size[1] * design.used):
        tops.append(top)
    rows = len(tops) * count
    made = document(dice, cols * rows, number, decisions=False)
    (width, height) = design.cell
    [first, *_] = draw(
        made.segments,
        cell=design.cell,
        ink=design.ink,  # type: ignore[arg-type]
        width=cols * width,
        height=rows * height,
        grid=0,
        first=number,
    )
    asked = made.questions(dice, first.text, (design.lines, design.lines // 2, 0, 0))
    from PIL import Image, ImageDraw

    drawn = first.image().convert("L")
    spread = Image.new("L", (size[0], round(size[1] * design.used)), 255)
    pen = ImageDraw.Draw(spread)
    for row, top in enumerate(tops):
        if gap and row and row % every == 0:
            pen.line((0, top - gap // 2 - 1, size[0], top - gap // 2 - 1), fill=RULE)
    step = cols * wide + gutter
    for column in range(1, count):
        pen.line((column * step - gutter // 2, 0, column * step - gutter // 2, size[1]), fill=RULE)
    for row in range(rows):
        left, top = row // len(tops) * step, tops[row % len(tops)]
        for col in range(cols):
            cell = drawn.crop((col * width, row * height, (col + 1) * width, (row + 1) * height))
            spread.paste(cell, (left + col * wide + (wide - width) // 2, top + (high - height) // 2))
    return spread, asked


def make(out: Path, keys: Path, name: str, design: Design, seeds: list[int], pages: int, model: str) -> None:
    """Write readings of ``pages`` pages for each seed, and their keys."""
    wanted = [(seed, number) for seed in seeds for number in range(1, pages + 1)]
    each = QUESTIONS // (design.lines + design.lines // 2)
    readings = ceil(len(wanted) / each)
    keys.mkdir(parents=True, exist_ok=True)
    for reading in range(readings):
        folder = out / (name if readings == 1 else f"{name}-{reading + 1}")
        folder.mkdir(parents=True, exist_ok=True)
        answers: dict[str, tuple[str, str]] = {}
        listed = []
        for place, (seed, number) in enumerate(wanted[reading * each : (reading + 1) * each], 1):
            image, asked = _page(design, seed, number, model)
            image.save(folder / f"page-{place}.png")
            for question in asked:
                answers[str(len(answers) + 1)] = question.kind, question.truth
                listed.append(f"{len(answers)}. page-{place}.png: {question.asks}")
        if reading == 0:
            _checker(folder / "checker.png", image.width, image.height)
        _questions(folder / "questions.txt", listed, reading == 0)
        key = {"design": str(design), "seeds": seeds, "reading": folder.name, "answers": answers}
        (keys / f"{folder.name}.json").write_text(json.dumps(key, indent=1))
    print(f"{readings} reading(s), {len(wanted)} page(s) of {image.width}×{image.height} px, {design}")


def _questions(path: Path, listed: list[str], checker: bool) -> None:
    first = (
        "First look at checker.png: single black and white pixels above, thin stripes of one pixel below. Say in\n"
        '"checker" whether you make out single pixels or an even grey.\n'
        if checker
        else ""
    )
    numbered = "\n".join(listed)
    path.write_text(
        f"{first}"
        "Each image page-N.png beside this file is a page of text. View each page whole, at its own size. Its first\n"
        "row is a legend that explains the marks; below, the text runs on from row to row, and the mark for a line\n"
        "break parts its lines. The text holds comment lines such as `# part 1012`, each on a line of its own.\n"
        "For each item below, give what stands there, character by character:\n"
        "- a *line* is the whole line directly after that comment line (up to the next line-break mark), with its\n"
        "  indentation as that many spaces (a white-on-black number is a count of spaces);\n"
        "- an *identifier* is the twelve hexadecimal digits in the line directly after that comment line.\n"
        "The words repeat all over the page and no line can be guessed. Copy what is there and nothing else.\n\n"
        "Write answers.json beside this file: one JSON object from the item's number to the text, such as\n"
        '{"1": "        a_line(of, text)", "2": "0123456789ab"}, and under "notes" in a sentence or two what was hard\n'
        "to make out: which marks, which characters.\n\n"
        f"{numbered}\n"
    )


def _checker(path: Path, width: int, height: int) -> None:
    """Single pixels above, stripes of one pixel below: even grey where a viewer scales them."""
    from PIL import Image

    board = Image.new("L", (width, height))
    half = height // 2
    board.putdata(
        [
            255 * ((x + y) & 1 if y < half else (x if x < width // 2 else y) & 1)
            for y in range(height)
            for x in range(width)
        ]
    )
    board.save(path)


def score(keys: list[Path], answers: Path) -> None:
    """Print rates with their intervals by design, and every answer that is not exact beside the truth."""
    tallies: dict[str, Tally] = {}
    for path in keys:
        key = json.loads(path.read_text())
        answered = answers / key["reading"] / "answers.json"
        if not answered.exists():
            continue
        given = json.loads(answered.read_text())
        print(f"{key['reading']}: {key['design']}; checker: {given.get('checker', '-')}; {given.get('notes', '')}")
        for number, (kind, truth) in key["answers"].items():
            answer = str(given.get(number, ""))
            for what, right in judge(Question(kind, "", truth), answer):
                tallies.setdefault(key["design"], Tally()).add(what, right)
                if not right and what in ("lines", "identifiers"):
                    print(f"  {number:>2} {truth!r}\n     {answer!r}")
    for design, tally in tallies.items():
        for line in tally.lines():
            print(f"{design}: {line}")


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.partition("x")
    return int(width), int(height)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make")
    making.add_argument("out", type=Path)
    making.add_argument("--keys", type=Path, help="folder of the keys (OUT/keys)")
    making.add_argument("--name", default="reading")
    making.add_argument("--cell", type=_size, default=(9, 16))
    making.add_argument("--pitch", type=_size, help="grid that the cells are set on (the cell)")
    making.add_argument("--used", type=float, default=1.0, help="share of the rows in use")
    making.add_argument("--lines", type=int, default=LINES, help="ordinary lines asked of a page, an even number")
    making.add_argument("--size", type=_size, help="width and height of a page in px (the model's)")
    making.add_argument("--columns", type=_size, default=(1, 0), help="NxPX: N columns of text, PX pixels apart")
    making.add_argument("--gap", type=_size, help="NxPX: PX pixels with a faint rule after every N rows")
    making.add_argument("--ink", default="grey", choices=("grey", "mono"))
    making.add_argument("--seeds", type=int, nargs="+", default=[1])
    making.add_argument("--pages", type=int, default=4, help="pages for each seed")
    making.add_argument("--model", default="claude-opus-5")
    scoring = commands.add_parser("score")
    scoring.add_argument("keys", type=Path, nargs="+")
    scoring.add_argument("--answers", type=Path, required=True, help="folder of the readings")
    options = parser.parse_args()
    if options.command == "make":
        pitch = options.pitch or options.cell
        layout = options.size, options.gap, options.columns
        design = Design(options.cell, options.ink, pitch, options.used, options.lines, *layout)
        keys = options.keys or options.out / "keys"
        make(options.out, keys, options.name, design, options.seeds, options.pages, options.model)
    else:
        score(options.keys, options.answers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
