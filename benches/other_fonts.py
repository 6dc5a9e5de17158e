"""What a font of another script costs and gives: ``python benches/other_fonts.py FONT``.

FONT is the name or file of a font with Han characters. Printed are the time and size of its atlas at two cells, and
passes over a made history of tool results in random Han, with the font and without: tokens, pages, characters that
stand as code points.
"""

from __future__ import annotations

import random
import sys
import zlib
from time import perf_counter
from typing import Any

import microfiche as mf
from microfiche.pages import fonts

BUDGET = 150_000


def history(rounds: int = 150, seed: int = 1) -> list[dict[str, Any]]:
    """Calls with results of 2,000 characters, one in ten a line break, the rest Han of the first 4,096."""
    dice = random.Random(seed)
    messages: list[dict[str, Any]] = [{"role": "user", "content": "看一下队列。"}]
    for at in range(rounds):
        text = "".join(chr(dice.randint(0x4E00, 0x5DFF)) if dice.random() < 0.9 else "\n" for _ in range(2_000))
        call = {"type": "tool_use", "id": f"toolu_{at}", "name": "ask", "input": {"question": at}}
        messages.append({"role": "assistant", "content": [call]})
        result = {"type": "tool_result", "tool_use_id": f"toolu_{at}", "content": text}
        messages.append({"role": "user", "content": [result]})
    return messages


def sharing(font: str, cell: tuple[int, int]) -> tuple[int, int]:
    """Han characters with a half that one before them has too, in four levels, and how many there are."""
    taken: set[bytes] = set()
    shared = count = 0
    for code, cells, width, _, coverage in fonts.find(font).glyphs(cell):
        if not 0x4E00 <= code <= 0x9FFF or cells != 2:
            continue
        levels = bytes(sum(each >= border for border in (40, 112, 183)) for each in coverage)
        rows = [levels[at : at + width] for at in range(0, len(levels), width)]
        halves = {b"".join(row[: width // 2] for row in rows), b"".join(row[width // 2 :] for row in rows)}
        count += 1
        if len(halves) < 2 or halves & taken:
            shared += 1
        else:
            taken |= halves
    return shared, count


def main(font: str) -> None:
    shared, count = sharing(font, (9, 16))
    print(f"of {count:,} Han characters {shared:,} ({shared / count:.1%}) share a half at 9x16")
    for cell in ((9, 16), (7, 14)):
        began = perf_counter()
        atlas = fonts.atlas_for(font, cell, "grey")
        took = perf_counter() - began
        size = len(zlib.compress(atlas.data))
        print(f"{cell[0]}x{cell[1]}: {len(atlas.characters()):,} characters in {took:.1f} s, {size:,} bytes compressed")
    messages = history()
    for fidelity in ("exact", "gist"):
        for chosen in ((), (font,)):
            policy = mf.Policy(font=chosen, rungs=("snapshot", "omit"))
            began = perf_counter()
            fit = mf.compact(messages, model="claude-opus-5", budget=BUDGET, policy=policy, fidelity=fidelity)
            took = perf_counter() - began
            form = fit.plan.archive.form.cell if fit.plan.archive is not None else (0, 0)
            escaped = sum(fit.receipt.escapes.values())
            print(
                f"{fidelity:6} {'font' if chosen else 'ours':5} {form[0]}x{form[1]}: {fit.receipt.before.tokens:,} to "
                f"{fit.tokens:,} tokens, {len(fit.pages)} pages, {fit.receipt.omitted_pages} left out, "
                f"{escaped:,} escaped, {took:.1f} s"
            )


if __name__ == "__main__":
    main(sys.argv[1])
