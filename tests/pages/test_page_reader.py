"""The reader of pages in docs, written from the description of the format alone, agrees with ours."""

from __future__ import annotations

import ast
import importlib.util
import random
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from types import ModuleType

import pytest
from microfiche.errors import BadPage
from microfiche.pages import atlas
from microfiche.pages.atlas import Atlas
from microfiche.pages.render import Bar, Ink, Page, Segment, draw, normal, read_back

READER = Path(__file__).parents[2] / "docs" / "read_page.py"

KINDS = ("user", "assistant", "system", "call bash", "call a_B.c:-9", "result ok", "result error")
RARE = "\0\x1b\r\ud800\udc00¶а字\U0010ffff"
SHOWN = ("[0m", "<1b>", "s", "8s", "№", "…", "é", "│", "0", "12")


@pytest.fixture(scope="module")
def reader() -> ModuleType:
    spec = importlib.util.spec_from_file_location("read_page", READER)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def said(segments: list[Segment]) -> list[object]:
    return [each if isinstance(each, str) else (each.turn, each.kind) for each in segments]


def text(source: random.Random) -> str:
    runs = (" " * source.randint(1, 12), "\n" * source.randint(1, 4), "\t" * source.randint(1, 4), source.choice(RARE))
    words = (source.choice(SHOWN), "".join(source.choices("abc<>{}", k=source.randint(1, 30))))
    return "".join(source.choice(source.choice((runs, words))) for _ in range(source.randint(1, 50)))


def document(source: random.Random) -> list[Segment]:
    turns = (0, 1, 12, (1 << 64) - 1)
    return [
        Bar(source.choice(turns), source.choice(KINDS)) if source.random() < 0.4 else text(source)
        for _ in range(source.randint(1, 8))
    ]


def test_it_imports_nothing_of_ours() -> None:
    tree = ast.parse(READER.read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} <= set(sys.stdlib_module_names)


@pytest.mark.parametrize("ink", ["grey", "mono"])
@pytest.mark.parametrize("cell", [(4, 6), (5, 10), (7, 13), (9, 16)])
def test_both_read_the_same(reader: ModuleType, cell: tuple[int, int], ink: Ink) -> None:
    source, table = random.Random(f"{cell} {ink}"), reader.Atlas(atlas.own(cell, ink).data)
    for _ in range(6):
        segments, columns = document(source), source.randint(12, 60)
        pages = draw(
            segments,
            cell=cell,
            ink=ink,
            width=columns * cell[0] + source.randrange(cell[0]),
            height=max(source.randint(3, 12), 96 // columns + 3) * cell[1],
            lines=source.choice(("flow", "hard")),
            first=source.choice((1, 99)),
        )
        assert reader.read([page.png for page in pages], table) == said(list(normal(segments)))


def test_glyphs_of_another_font_whose_halves_are_shared(reader: ModuleType) -> None:
    """Three Han characters of two halves, so that a half alone names none of them."""
    left, right = b"\xff\0\xff\0" * 56, b"\0\0\xff\xff" * 56
    wide = [
        (0x5B57, 2, 28, 14, b"".join(one[at : at + 14] + two[at : at + 14] for at in range(0, 196, 14)))
        for one, two in ((left, left[14:]), (left, right), (right, left))
    ]
    glyphs = [(code, *rest) for code, (_, *rest) in zip((0x5B57, 0x6F22, 0x8A9E), wide, strict=True)]
    made = atlas.make((14, 14), "grey", glyphs)  # type: ignore[arg-type]
    assert [made.cells(each) for each in "字漢語"] == [2, 2, 2]
    given = "a字 漢語字\n" * 40
    pages = draw([given], cell=(14, 14), width=14 * 33, height=14 * 9, atlas=made)
    assert len(pages) > 1
    assert reader.read([page.png for page in pages], reader.Atlas(made.data)) == [given]


def test_damage_is_told(reader: ModuleType, forged: list[tuple[str, list[str], bool]], table: Atlas) -> None:
    """Both refuse the same streams, and read the same from those that no writer makes but every reader takes."""
    made = reader.Atlas(table.data)
    for name, cells, right in forged:
        page = drawn(table, cells)
        try:
            ours: object = said(read_back(page, marks=True))
        except BadPage:
            ours = None
        try:
            theirs = reader.read([page], made)
        except reader.Damage:
            theirs = None
        assert (ours is not None, theirs) == (right, ours), name


@pytest.fixture(scope="module")
def table() -> Atlas:
    return atlas.own((9, 16), "grey")


@pytest.fixture
def forged() -> list[tuple[str, list[str], bool]]:
    """Streams by name, a cell each: a glyph, a word, or ``[x]`` for an inverse one; and whether it can be read."""

    def inverse(characters: str) -> list[str]:
        return ["SOLID" if each == " " else f"[{each}]" for each in characters]

    return [
        ("plain", ["a"], True),
        ("two and a unit", [*inverse("2"), "NEWLINE"], True),
        ("a count that needs no s", [*inverse("5s"), "a"], True),
        ("an escape of what is drawn", inverse("<61>"), True),
        ("an escape of a line break", inverse("<a>"), True),
        ("a lone surrogate", inverse("<d800>"), True),
        ("padding after a hard line", ["HARD", *[" "] * 39, "a"], True),
        ("no padding after a hard line", ["HARD", "a"], False),
        ("a count of nothing", inverse("0"), False),
        ("a leading zero", inverse("007"), False),
        ("a count of too much", inverse("9" * 20), False),
        ("an s alone", inverse("s"), False),
        ("a letter alone", inverse("Z"), False),
        ("no code point", inverse("<110000>"), False),
        ("capitals", inverse("<1B>"), False),
        ("a zero before an escape", inverse("<01b>"), False),
        ("an empty escape", inverse("<>"), False),
        ("an escape without an end", inverse("<1b"), False),
        ("a bar", inverse(" 12 user "), True),
        ("a bar of no kind", inverse(" 12 human "), False),
        ("a result of no kind", inverse(" 12 result maybe "), False),
        ("a turn with a zero", inverse(" 012 user "), False),
        ("a turn too large", inverse(f" {1 << 64} user "), False),
        ("a name too long", inverse(f" 1 call {'a' * 65} "), False),
        ("no name", inverse(" 1 call "), False),
        ("a bar without an end", inverse(" 12 user"), False),
        ("solid twice", ["SOLID", "SOLID"], False),
        ("a wide glyph", ["LEFT", "RIGHT"], True),
        ("a left half", ["LEFT", "a"], False),
        ("a right half", ["RIGHT"], False),
        ("a wide glyph over a row's end", [*[" "] * 39, "LEFT", "RIGHT"], False),
    ]


def drawn(table: Atlas, cells: list[str], columns: int = 40, rows: int = 6) -> bytes:
    """A PNG of cells under a legend, made here: no writer would."""
    (w, h), area = table.cell, table.cell[0] * table.cell[1]
    glyphs, at = {" ": [3] * area, "SOLID": [0] * area}, len(b"microfiche atlas 1\n") + 3
    names = {0x110000: "NEWLINE", 0x110001: "TAB", 0x110002: "HARD"}
    while at < len(table.data):
        number = int.from_bytes(table.data[at : at + 4], "big")
        code, count = number & 0x7FFFFFFF, area * (1 + (number >> 31))
        packed = table.data[at + 4 : at + 4 + count // 4]
        levels = [byte >> shift & 3 for byte in packed for shift in (6, 4, 2, 0)]
        at += 4 + count // 4
        if count == area:
            name = f"[{chr(code - 0x110100)}]" if code >= 0x110100 else names.get(code) or chr(code)
            glyphs[name] = levels
        else:
            glyphs["LEFT"], glyphs["RIGHT"] = levels[:area], levels[area:]
    grid = [*"page 1".ljust(columns), *cells]
    grid += [" "] * (columns * rows - len(grid))
    lines = b""
    for y in range(rows * h):
        row = [glyphs[name][y % h * w : y % h * w + w] for name in grid[y // h * columns : y // h * columns + columns]]
        bits = "".join(f"{level:02b}" for tile in row for level in tile)
        lines += b"\0" + int(bits, 2).to_bytes(len(bits) // 8, "big")
    head = struct.pack(">IIBBBBB", columns * w, rows * h, 2, 0, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(lines)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )


def test_as_a_program(tmp_path: Path, table: Atlas) -> None:
    (tmp_path / "atlas").write_bytes(table.data)
    pages: list[Page] = draw([Bar(1, "user"), "a\ud800b\r"], cell=(9, 16), width=360, height=160)
    pages[0].save(tmp_path / "page.png")
    command = [sys.executable, READER, tmp_path / "atlas", tmp_path / "page.png"]
    done = subprocess.run(command, capture_output=True, check=True)
    assert done.stdout == "\n[1 user]\na\ud800b\r".encode("utf-8", "surrogatepass")
    (tmp_path / "page.png").write_bytes(pages[0].png[:-30])
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 3 and done.stderr.startswith(b"damaged: ")
