"""Bytes and times against general encoders and another drawer of pages; what is not installed is left out.

``python benches/rivals.py bytes FILE`` draws pages of a text and prints their bytes at each level beside libdeflate's
on the same scanlines, libdeflate 12's with the best of the fixed filters, and oxipng's for the same page at its
default (``pip install deflate pyoxipng``).

``python benches/rivals.py filters FILE`` compresses pages of a text with libdeflate 1 under other choices of which
scanlines of a cell are filtered by Up: none, all, ours, and the best set that a greedy search from ours finds.

``python benches/rivals.py peer FILE FOLDER`` draws one page of the text at 5×8, black on white, in turns with
oh-my-pi's native renderer, which ``npm install @oh-my-pi/pi-natives-linux-x64`` put into FOLDER/node_modules (or that
of another system), and once more at 8×13. Each of nine rounds starts Node anew; its time is that of the calls alone.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from microfiche.pages.render import Page, draw

SHAPES = {"5×8 mono": ((5, 8), "mono"), "6×12 grey": ((6, 12), "grey"), "9×16 grey": ((9, 16), "grey")}
SHAPES["9×16 mono"] = ((9, 16), "mono")
WIDTH, HEIGHT = 1568, 784
PAGES = 6

PEER = """
import { createRequire } from "node:module";
import { readFileSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
const [, , folder, file, font, runs] = process.argv;
const found = readdirSync(folder, { recursive: true }).find((each) => each.endsWith(".node"));
const { renderSnapcompactPng } = createRequire(resolve(folder) + "/")(resolve(join(folder, found)));
const text = readFileSync(file, "utf-8");
const times = [];
let size = 0;
for (let run = 0; run < Number(runs) + 1; run++) {
  const began = process.hrtime.bigint();
  const page = await renderSnapcompactPng(text, { size: 1568, font, variant: "bw" });
  times.push(Number(process.hrtime.bigint() - began) / 1e9);
  size = Buffer.from(page, "base64").length;
}
console.log(JSON.stringify([Math.min(...times.slice(1)), size]));
"""


def scanlines(page: Page) -> tuple[bytes, int]:
    """A page's filtered scanlines as its file holds them, and how many bytes of the file are not their stream."""
    at, data = 8, b""
    while at < len(page.png):
        length = int.from_bytes(page.png[at : at + 4], "big")
        if page.png[at + 4 : at + 8] == b"IDAT":
            data += page.png[at + 8 : at + 8 + length]
        at += 12 + length
    return zlib.decompress(data), len(page.png) - len(data)


def unfiltered(filtered: bytes, height: int) -> Iterator[bytes]:
    """Scanlines from filtered ones, of which we write the filters 0 (None) and 2 (Up)."""
    line = len(filtered) // height
    above = bytes(line - 1)
    for at in range(0, len(filtered), line):
        row = filtered[at + 1 : at + line]
        if filtered[at] == 2:
            row = bytes((a + b) & 255 for a, b in zip(row, above, strict=True))
        above = row
        yield row


# None, Sub, Up, Average: from the bytes to the left and above (ISO/IEC 15948, 9.2).
GUESSES: list[Callable[[int, int], int]] = [
    lambda left, above: 0,
    lambda left, above: left,
    lambda left, above: above,
    lambda left, above: (left + above) // 2,
]


def refiltered(rows: list[bytes], kind: int) -> bytes:
    """All scanlines under one filter."""
    out = bytearray()
    above = bytes(len(rows[0]))
    for row in rows:
        left = b"\0" + row[:-1]
        guess = GUESSES[kind]
        out.append(kind)
        out += bytes((each - guess(a, b)) & 255 for each, a, b in zip(row, left, above, strict=True))
        above = row
    return bytes(out)


def sizes(path: str) -> None:
    import deflate
    import oxipng

    text = Path(path).read_text(encoding="utf-8")
    columns = ("fastest", "default", "smallest", "libdeflate 1", "libdeflate 6", "12, best fixed", "oxipng")
    print(f"{'bytes a page':<12}" + "".join(f"{name:>16}" for name in columns))
    for name, (cell, ink) in SHAPES.items():
        cells = (WIDTH // cell[0]) * (HEIGHT // cell[1])
        totals = [0] * len(columns)
        for number in range(PAGES):
            start = number * len(text) // PAGES
            kinds: list[Any] = ["fastest", "default", "smallest"]
            part = text[start : start + cells]
            drawn = [
                draw([part], cell=cell, ink=ink, width=WIDTH, height=HEIGHT, level=level, threads=1)[0]  # type: ignore[arg-type]
                for level in kinds
            ]
            filtered, rest = scanlines(drawn[1])
            rows = list(unfiltered(filtered, drawn[1].height))
            fixed = min(len(deflate.zlib_compress(refiltered(rows, kind), 12)) for kind in range(4))
            found = [len(page.png) for page in drawn]
            found += [rest + len(deflate.zlib_compress(filtered, level)) for level in (1, 6)]
            found += [rest + fixed, len(oxipng.optimize_from_memory(drawn[1].png))]
            totals = [a + b for a, b in zip(totals, found, strict=True)]
        print(f"{name:<12}" + "".join(f"{total / PAGES:>16,.0f}" for total in totals))


def filters(path: str) -> None:
    import deflate

    text = Path(path).read_text(encoding="utf-8")
    shapes = SHAPES | {"7×14 mono": ((7, 14), "mono"), "5×10 grey": ((5, 10), "grey"), "7×14 grey": ((7, 14), "grey")}
    print(f"{'bytes a page':<12}{'None':>10}{'Up':>10}{'ours':>10}{'best':>10}")
    for name, (cell, ink) in shapes.items():
        cells, pitch = (WIDTH // cell[0]) * (HEIGHT // cell[1]), cell[1]
        # Each page's scanlines under either filter.
        pages: list[tuple[list[bytes], list[bytes]]] = []
        ours: set[int] = set()
        for number in range(PAGES):
            start = number * len(text) // PAGES
            part = text[start : start + cells]
            page = draw([part], cell=cell, ink=ink, width=WIDTH, height=HEIGHT, threads=1)[0]  # type: ignore[arg-type]
            filtered, _ = scanlines(page)
            rows = list(unfiltered(filtered, page.height))
            line = len(rows[0]) + 1
            ours = {y for y in range(pitch) if filtered[y * line] == 2}
            both = [refiltered(rows, kind) for kind in (0, 2)]
            split = [[each[at : at + line] for at in range(0, len(each), line)] for each in both]
            pages.append((split[0], split[1]))

        def size(rows: set[int], pages: list[Any] = pages, pitch: int = pitch) -> int:
            def chosen(none: list[bytes], up: list[bytes]) -> bytes:
                return b"".join(up[y] if y % pitch in rows else none[y] for y in range(len(none)))

            return sum(len(deflate.zlib_compress(chosen(*page), 1)) for page in pages) // len(pages)

        best = ours
        while better := [trial for y in range(1, pitch) if size(trial := best ^ {y}) < size(best)]:
            best = min(better, key=size)
        found = (size(set()), size(set(range(pitch))), size(ours), size(best))
        print(f"{name:<12}" + "".join(f"{each:>10,}" for each in found))


def peer(path: str, folder: str) -> None:
    import tempfile

    text = " ".join(Path(path).read_text(encoding="utf-8").split())
    text = "".join(each for each in text if " " <= each <= "~")
    for cell, font, characters in (((5, 8), "5x8", 12_000), ((5, 8), "5x8", 60_000), ((8, 13), "8x13", 23_000)):
        part = text[:characters]
        ours: dict[str, list[float]] = {"default": [], "fastest": []}
        theirs: list[float] = []
        size: dict[str, int] = {}
        with tempfile.TemporaryDirectory() as place:
            script, file = Path(place, "peer.mjs"), Path(place, "text")
            script.write_text(PEER, encoding="utf-8")
            file.write_text(part, encoding="utf-8")
            for _ in range(9):
                command = ["node", str(script), folder + "/node_modules", str(file), font, "8"]
                least, size["peer"] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
                theirs.append(least)
                for level, times in ours.items():
                    best = float("inf")
                    for _ in range(40):
                        began = time.perf_counter()
                        page = draw([part], cell=cell, ink="mono", width=1568, height=1568, level=level, threads=1)[0]  # type: ignore[arg-type]
                        best = min(best, time.perf_counter() - began)
                    times.append(best)
                    size[level] = len(page.png)
        least = statistics.median(theirs)
        print(f"{font}, {len(part):,} characters: oh-my-pi {least * 1e3:.2f} ms, {size['peer']:,} bytes")
        for level, times in ours.items():
            ratio = statistics.median(a / b for a, b in zip(theirs, times, strict=True))
            least = statistics.median(times)
            print(f"  {level:<8} {least * 1e6:8.0f} µs, {size[level]:,} bytes; {ratio:.0f} times as fast")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["bytes", path]:
            sizes(path)
        case ["filters", path]:
            filters(path)
        case ["peer", path, folder]:
            peer(path, folder)
        case _:
            sys.exit(__doc__)
