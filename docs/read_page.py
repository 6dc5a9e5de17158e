#!/usr/bin/env python3
"""Read pages with nothing but Python's standard library: python read_page.py ATLAS PAGE.png ...

Written from docs/page-format.md alone; imports nothing of microfiche. Takes the files of a document's pages as they
were written, in order, and the atlas of their cell and ink (microfiche fonts --cell 9x16 --ink grey --atlas ATLAS, or
a blob of the record). Prints the text; a bar stands in a line of its own. Exits 3 where a page is damaged.
"""

import struct
import sys
import zlib
from pathlib import Path

MARKS = {0x110000: "NEWLINE", 0x110001: "TAB", 0x110002: "HARD"}
LIMIT = 1 << 30  # code points that counts may unfold to
KINDS = ("user", "assistant", "system", "result ok", "result error")


class Damage(Exception):
    pass


def levels(data, count, bits):
    """So many numbers of so many bits, the first in the highest bits."""
    whole = int.from_bytes(data, "big")
    return tuple(whole >> (8 * len(data) - bits * at) & ((1 << bits) - 1) for at in range(1, count + 1))


class Atlas:
    """What each cell's pixels mean: (name, value) by levels; the code points of wide glyphs by both halves."""

    def __init__(self, data):
        head = b"microfiche atlas 1\n"
        if not data.startswith(head):
            raise Damage("no atlas")
        at = len(head) + 3
        self.width, self.height, self.bits = data[len(head) : at]
        area = self.width * self.height
        self.wide = {}
        self.tiles = {(0,) * area: ("solid", ""), ((1 << self.bits) - 1,) * area: ("blank", "")}
        while at < len(data):
            number = int.from_bytes(data[at : at + 4], "big")
            code, halves = number & 0x7FFFFFFF, 2 if number >> 31 else 1
            size = -(-area * halves * self.bits // 8)
            drawn = levels(data[at + 4 : at + 4 + size], area * halves, self.bits)
            at += 4 + size
            if halves == 2:
                self.wide[drawn] = chr(code)
                for half in (drawn[:area], drawn[area:]):
                    self.tiles[half] = ("half", half)
            elif code >= 0x110100:
                self.tiles[drawn] = ("inverse", chr(code - 0x110100))
            else:
                self.tiles[drawn] = (MARKS[code], "") if code in MARKS else ("glyph", chr(code))


def pixels(png):
    """Rows of levels, and the bits of a pixel, of a file as it was written."""
    if png[:8] != b"\x89PNG\r\n\x1a\n":
        raise Damage("no PNG")
    at, head, packed = 8, (0,) * 7, b""
    while at < len(png):
        (size,), name = struct.unpack(">I", png[at : at + 4]), png[at + 4 : at + 8]
        body, at = png[at + 8 : at + 8 + size], at + 12 + size
        if zlib.crc32(name + body) != int.from_bytes(png[at - 4 : at], "big"):
            raise Damage("a chunk of the PNG was changed")
        head = struct.unpack(">IIBBBBB", body) if name == b"IHDR" else head
        packed += body if name == b"IDAT" else b""
    width, height, bits, *rest = head
    if bits not in (1, 2) or rest != [0, 0, 0, 0]:
        raise Damage("not a file as pages are written")
    stride = -(-width * bits // 8)
    lines, above, rows = zlib.decompress(packed), bytes(stride), []
    for start in range(0, height * (stride + 1), stride + 1):
        kind, line = lines[start], lines[start + 1 : start + 1 + stride]
        if kind not in (0, 2):
            raise Damage("a filter that pages do not have")
        above = bytes((a + b) & 255 for a, b in zip(line, above, strict=True)) if kind == 2 else line
        rows.append(levels(above, width, bits))
    return rows, bits


def cells(png, atlas):
    """Columns, and the cells of a page: those of the legend first."""
    rows, bits = pixels(png)
    if bits != atlas.bits:
        raise Damage("another ink than the atlas has")
    w, h = atlas.width, atlas.height
    columns, found = len(rows[0]) // w, []
    for top in range(0, len(rows) // h * h, h):
        for left in range(0, columns * w, w):
            tile = tuple(level for row in rows[top : top + h] for level in row[left : left + w])
            found.append(atlas.tiles.get(tile, ("damage", "")))
    return columns, found


def number(digits, base=10):
    if not digits or digits[0] == "0" != digits:
        raise Damage("a number with leading zeros, or none")
    return int(digits, base)


class Stream:
    """The cells of a page under its legend, and where they are read."""

    def __init__(self, png, atlas):
        self.columns, found = cells(png, atlas)
        legend = "".join(value if name == "glyph" else " " for name, value in found[: self.columns])
        if not (legend.startswith("page ") and legend[5:].split(" ")[0].isdigit()):
            raise Damage("the first row is no legend")
        self.cells, self.at = found[self.columns :], 0
        if ("damage", "") in self.cells:
            raise Damage("a cell that no table has")
        while self.cells and self.cells[-1][0] == "blank":
            self.cells.pop()
        self.cells.append(("end", ""))

    def next(self):
        return self.cells[self.at]

    def take(self, name):
        """The value of the next cell, which has to be of that name."""
        found, value = self.next()
        if found != name:
            raise Damage(f"{found} where {name} should be")
        self.at += 1
        return value

    def inverse(self, allowed):
        """The inverse characters from here on that are among those allowed."""
        found = ""
        while self.next()[0] == "inverse" and self.next()[1] in allowed:
            found += self.take("inverse")
        return found

    def word(self):
        found = self.inverse("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_.:-")
        self.take("solid")
        return found

    def unit(self):
        """What a count is of, or a single mark: spaces if nothing else is said."""
        name, value = self.next()
        if name not in ("NEWLINE", "HARD", "TAB"):
            self.at += (name, value) == ("inverse", "s")
            return " "
        self.take(name)
        while name == "HARD" and self.at % self.columns and self.next()[0] != "end":
            self.take("blank")
        return "\t" if name == "TAB" else "\n"

    def items(self, atlas):
        """Texts as (what, how often), bars as (turn, kind)."""
        while (name := self.next()[0]) != "end":
            value = self.next()[1]
            if name in ("glyph", "blank"):
                yield self.take(name) or " ", 1
            elif name in ("NEWLINE", "HARD", "TAB"):
                yield self.unit(), 1
            elif name == "half":
                parted = self.at % self.columns == self.columns - 1
                both = self.take("half") + self.take("half")
                if parted or both not in atlas.wide:
                    raise Damage("half of a wide glyph")
                yield atlas.wide[both], 1
            elif name == "solid":
                yield self.bar()
            elif value.isdigit():
                times = number(self.inverse("0123456789"))
                yield self.unit(), times
            elif value == "<":
                self.take("inverse")
                code = number(self.inverse("0123456789abcdef"), 16)
                if self.take("inverse") != ">" or code > 0x10FFFF:
                    raise Damage("an escape without an end, or of no code point")
                yield chr(code), 1
            else:
                raise Damage("an inverse cell that begins nothing")

    def bar(self):
        self.take("solid")
        turn, kind = number(self.word()), self.word()
        if kind in ("call", "result"):
            kind += f" {self.word()}"
        named = kind.startswith("call ") and 0 < len(kind[5:]) <= 64
        if turn >= 1 << 64 or not (named or kind in KINDS):
            raise Damage("a bar of no turn or kind")
        return turn, kind


def read(pngs, atlas):
    """The segments: texts, and bars as (turn, kind)."""
    out, room = [], LIMIT
    for png in pngs:
        for what, more in Stream(png, atlas).items(atlas):
            if isinstance(what, int):
                out.append((what, more))
                continue
            room -= more
            if room < 0 or not more:
                raise Damage("a count of nothing, or of more than the limit")
            if not out or isinstance(out[-1], tuple):
                out.append([])
            out[-1].append(what * more)
    return [each if isinstance(each, tuple) else "".join(each) for each in out]


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogatepass", newline="")
    try:
        found = read([Path(name).read_bytes() for name in sys.argv[2:]], Atlas(Path(sys.argv[1]).read_bytes()))
    except (Damage, ValueError, IndexError, KeyError, struct.error, zlib.error) as fault:
        sys.exit(print(f"damaged: {fault}", file=sys.stderr) or 3)
    for each in found:
        sys.stdout.write(each if isinstance(each, str) else f"\n[{each[0]} {each[1]}]\n")
