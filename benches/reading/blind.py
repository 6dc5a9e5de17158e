"""Blind readings: does a reader who has never seen the text get lines and identifiers off a page?

    python benches/reading/blind.py make OUT --cell 9x16 --ink grey --seed 1 --readings 10
    python benches/reading/blind.py score OUT/key.json ANSWERS.json...

``make`` writes, for every reading, a folder with the pages and a list of questions (what a reader gets,
nothing else), a checker page that shows whether the viewer scales images, and one key, which stays
with the scorer. A page is full and as a model gets it: legend, turn bars, marks, the real page size.

The text is code from a twenty-word vocabulary, so that no language prior helps; each reading is asked
for ordinary lines and twelve-digit hexadecimal identifiers, each named by the comment line above it.
Answers are a JSON object from question to text, as the reader wrote it. ``score`` counts what is
exact, pools the rates and gives their 95 % intervals (Wilson's score interval).
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator
from math import sqrt
from pathlib import Path

from microfiche.models import find, page
from microfiche.pages.render import Bar, Segment, draw

VOCABULARY = (
    "index queue buffer token stream cache merge parse commit layout header offset length record budget "
    "window limit price model entry"
).split()
LINES, IDENTIFIERS = 4, 2


def _line(dice: random.Random) -> str:
    """One ordinary line of code, 30 to 80 characters, indented by 0 to 16 spaces."""
    word = lambda: dice.choice(VOCABULARY)  # noqa: E731
    name = lambda: "_".join(word() for _ in range(dice.randint(1, 3)))  # noqa: E731
    indent = " " * (4 * dice.randint(0, 4))
    return (
        indent
        + dice.choice(
            (
                lambda: f"{name()} = {name()}({name()}, {name()})",
                lambda: f"if {name()} < {name()} and not {name()}:",
                lambda: f"for {word()} in {name()}.{word()}({name()}):",
                lambda: f'{name()}["{word()}"] = {name()} - {dice.randint(0, 999)}',
                lambda: f"return {name()}.{word()}({name()})[{dice.randint(0, 99)}]",
                lambda: f"{name()}.{word()}({name()}={name()}, {word()}={dice.randint(0, 99)})",
            )
        )()
    )


def _document(dice: random.Random, cells: int) -> tuple[list[Segment], dict[str, str], dict[str, str]]:
    """Segments that fill so many cells, and what stands under each comment: ordinary lines, identifiers."""
    segments: list[Segment] = []
    lines: dict[str, str] = {}
    identifiers: dict[str, str] = {}
    used, turn, part = 0, 0, 0
    while used < cells:
        turn += 1
        segments.append(Bar(turn, dice.choice(("result ok", "assistant", "call Write"))))
        text = []
        for _ in range(dice.randint(2, 4)):
            part += 1
            comment = f"# part {part}"
            if dice.random() < 0.3:
                identifiers[comment] = f"{dice.getrandbits(48):012x}"
                target = f'{dice.choice(VOCABULARY)}_id = "{identifiers[comment]}"'
            else:
                lines[comment] = target = _line(dice)
            text += [comment, target, *(_line(dice) for _ in range(dice.randint(4, 9)))]
        joined = "\n".join(text) + "\n"
        segments.append(joined)
        used += len(joined) + 16
    return segments, lines, identifiers


def make(out: Path, cell: tuple[int, int], ink: str, seed: int, readings: int, model: str, pages: int) -> None:
    """Write the folders of a round of readings and their key."""
    form = page(find(model, vision=True), cell)
    key: dict[str, dict[str, str]] = {}
    for number in range(1, readings + 1):
        dice = random.Random(f"{seed}/{cell}/{number}")
        segments, lines, identifiers = _document(dice, form.capacity * pages)
        drawn = draw(segments, cell=cell, ink=ink, width=form.width, height=form.height, grid=0)[:pages]  # type: ignore[arg-type]
        shown = "".join(each.text for each in drawn)
        asked = {}
        for kind, table, count in (("line", lines, LINES), ("identifier", identifiers, IDENTIFIERS)):
            whole = [comment for comment, target in table.items() if f"{comment}\n{target}" in shown or kind != "line"]
            whole = [comment for comment in whole if f"{comment}\n" in shown]
            asked |= {f"{kind} under {comment}": table[comment] for comment in dice.sample(whole, count)}
        folder = out / f"reading-{number:02d}"
        folder.mkdir(parents=True, exist_ok=True)
        for each in drawn:
            each.save(folder / f"page-{each.number}.png")
        _questions(folder / "questions.txt", list(asked), len(drawn))
        key[folder.name] = asked
    (out / "key.json").write_text(json.dumps({"cell": cell, "ink": ink, "seed": seed, "answers": key}, indent=1))
    _checker(out / "checker.png", form.width, form.height)
    print(f"{readings} readings of {pages} page(s) of {form.width}×{form.height} px in {out}")


def _questions(path: Path, asked: list[str], pages: int) -> None:
    listed = "\n".join(f"- {question}" for question in asked)
    path.write_text(
        f"The {pages} image(s) page-N.png beside this file hold one running text. Its first row is a legend that\n"
        "explains the marks. The text holds comment lines such as `# part 12`, each on a line of its own.\n"
        "For each item below, give what stands there, character by character:\n"
        "- a *line* is the whole line directly after that comment line (up to the next line-break mark), with its\n"
        "  indentation as that many spaces (a white-on-black number is a count of spaces);\n"
        "- an *identifier* is the twelve hexadecimal digits in the line directly after that comment line.\n"
        "Answer with one JSON object from the item's words to the text. Look closely; do not guess from habit.\n\n"
        f"{listed}\n"
    )


def _checker(path: Path, width: int, height: int) -> None:
    """A one-pixel checkerboard with a solid quarter: grey where a viewer scales it."""
    from PIL import Image

    board = Image.new("L", (width, height))
    board.putdata(
        [255 * ((x + y) & 1) if x < width // 2 or y < height // 2 else 0 for y in range(height) for x in range(width)]
    )
    board.save(path)


def interval(hits: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % score interval of a rate."""
    if not n:
        return 0.0, 1.0
    z, rate = 1.959964, hits / n
    middle = rate + z * z / (2 * n)
    half = z * sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)


def _marks(key: dict[str, dict[str, str]], answers: dict[str, dict[str, str]]) -> Iterator[tuple[str, bool, str, str]]:
    for reading, asked in key.items():
        if reading not in answers:
            continue
        for question, truth in asked.items():
            given = str(answers[reading].get(question, ""))
            if question.startswith("identifier"):
                yield "identifiers exact", given.strip() == truth, truth, given
            else:
                yield "lines exact", given.rstrip() == truth, truth, given
                yield "text exact", given.strip() == truth.strip(), truth, given
                space = len(given) - len(given.lstrip(" ")), len(truth) - len(truth.lstrip(" "))
                yield "indentation exact", space[0] == space[1], truth, given


def score(path: Path, answered: list[Path]) -> None:
    """Print rates with their intervals, and every answer that is not exact beside the truth."""
    data = json.loads(path.read_text())
    answers: dict[str, dict[str, str]] = {}
    for each in answered:
        answers |= json.loads(each.read_text())
    tally: dict[str, list[int]] = {}
    for kind, right, truth, given in _marks(data["answers"], answers):
        hits = tally.setdefault(kind, [0, 0])
        hits[0] += right
        hits[1] += 1
        if not right and kind in ("lines exact", "identifiers exact"):
            print(f"  {truth!r}\n  {given!r}\n")
    for kind, (hits, n) in tally.items():
        low, high = interval(hits, n)
        print(f"{'x'.join(map(str, data['cell']))} {data['ink']} {kind}: {hits}/{n}, 95 % {low:.0%} to {high:.0%}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make")
    making.add_argument("out", type=Path)
    making.add_argument("--cell", default="9x16")
    making.add_argument("--ink", default="grey", choices=("grey", "mono"))
    making.add_argument("--seed", type=int, default=1)
    making.add_argument("--readings", type=int, default=10)
    making.add_argument("--pages", type=int, default=1)
    making.add_argument("--model", default="claude-opus-5")
    scoring = commands.add_parser("score")
    scoring.add_argument("key", type=Path)
    scoring.add_argument("answers", type=Path, nargs="+")
    options = parser.parse_args()
    if options.command == "make":
        width, height = map(int, options.cell.split("x"))
        make(
            options.out,
            (width, height),
            options.ink,
            options.seed,
            options.readings,
            options.model,
            options.pages,
        )
    else:
        score(options.key, options.answers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
