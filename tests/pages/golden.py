"""Pages whose pixels are fixed: run this file to write their digests anew after the font or the grammar changed.

python tests/pages/golden.py
"""

from __future__ import annotations

import json
from pathlib import Path

from microfiche.pages.render import Bar, Page, Segment, draw

FILE = Path(__file__).with_name("golden.json")

ASCII = "".join(map(chr, range(0x20, 0x7F)))
DOCUMENT: list[Segment] = [
    Bar(1, "user"),
    "Why does the build fail?\n\n\n        see the log:\t\t\tbelow  ",
    Bar(2, "assistant"),
    ASCII + "\n",
    Bar(2, "call bash"),
    "cargo test 2>&1 | tail -20",
    Bar(2, "result error"),
    "\x1b[31merror\x1b[0m\r\n" + "│ ├── src/main.rs: ¿qué? ✅ — 日本\ud800\n" * 30 + "   ",
]


def pages() -> dict[str, list[Page]]:
    """The document at the cells in use, both inks and both forms of lines."""
    drawn = {}
    for width, height in [(9, 16), (7, 14), (6, 12), (5, 10), (5, 8)]:
        for ink in ("grey", "mono"):
            for lines in ("flow", "hard"):
                name = f"{width}x{height} {ink} {lines}"
                size = {"width": 61 * width + 3, "height": 12 * height + 2}
                drawn[name] = draw(DOCUMENT, cell=(width, height), ink=ink, lines=lines, grid=28, **size)
    return drawn


def digests() -> dict[str, list[str]]:
    return {name: [page.digest for page in series] for name, series in pages().items()}


if __name__ == "__main__":
    FILE.write_text(json.dumps(digests(), indent=1) + "\n", encoding="utf-8")
