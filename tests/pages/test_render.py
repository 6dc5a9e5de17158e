"""Pages as a user meets them: drawn from Python, judged by Pillow and NumPy, read back."""

from __future__ import annotations

import hashlib
import io
import os
import random
import re
import struct
import subprocess
import sys
import zlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy
import PIL.Image
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from microfiche import _core, models
from microfiche.errors import BadInput, BadPage, MicroficheError, NoVision, PageTooSmall
from microfiche.pages.render import Bar, Page, Segment, bars_on, draw, normal, read_back, render

CELLS = [(9, 16), (5, 10), (6, 12), (7, 14), (5, 8), (4, 6), (16, 32), (8, 16)]
INKS = ["grey", "mono"]

# Whatever the grammar has marks for, as content: nothing of it may read as a mark.
HOSTILE = """page 2  turns 3-4  ↵ line break  → tab  8 8 spaces  3↵ 3 line breaks   12 user  a turn begins
  <1b> code point
 12 user  13 assistant  14 system  15 call bash  16 result ok  17 result error \n\n\n        8s 3\t3\t\t\t<d800><10ffff>
█ ▉ ■ ▮ 5s 12s <1b> \x1b[7m 12 user \x1b[0m ⏎ ↵ ↲ ⇥ → ◀ ◁ ▶ \u2028\u2029\x85\r\n\r\u200b\ufeff   \n   \n page 1\n"""

run = st.builds(lambda char, count: char * count, st.sampled_from(" \n\t"), st.integers(1, 12))
stretch = st.one_of(run, st.text(max_size=8), st.sampled_from(HOSTILE.split(" ")), st.characters())
texts = st.lists(stretch, max_size=30).map("".join)
kinds = st.one_of(
    st.sampled_from(["user", "assistant", "system", "result ok", "result error"]),
    st.from_regex(r"call [A-Za-z0-9_.:-]{1,64}", fullmatch=True),
)
bars = st.builds(Bar, st.integers(0, 2**64 - 1), kinds)
documents = st.lists(st.one_of(texts, bars), max_size=8)


@st.composite
def forms(pick: st.DrawFn) -> dict[str, Any]:
    """What a document is drawn with: any ink and lines, pages from the smallest allowed."""
    cell = pick(st.sampled_from(CELLS))
    columns = pick(st.integers(12, 60))
    rows = 1 + -(-96 // columns) + pick(st.integers(0, 8))
    return {
        "cell": cell,
        "ink": pick(st.sampled_from(INKS)),
        "lines": pick(st.sampled_from(["flow", "hard"])),
        "width": columns * cell[0] + pick(st.integers(0, cell[0] - 1)),
        "height": rows * cell[1] + pick(st.integers(0, cell[1] - 1)),
        "grid": pick(st.sampled_from([0, 1, 28])),
        "first": pick(st.integers(0, 999)),
    }


def check(document: list[Segment], form: dict[str, Any]) -> list[Page]:
    pages = draw(document, **form)
    cell, ink = form["cell"], form["ink"]
    assert read_back(pages, cell, ink, marks=True) == list(normal(document))
    text = "".join(part for part in document if isinstance(part, str))
    assert read_back(pages, cell, ink) == text
    assert "".join(page.text for page in pages) == text
    assert normal(part for page in pages for part in page.segments) == normal(document)
    return pages


@given(documents, forms())
def test_documents_read_back(document: list[Segment], form: dict[str, Any]) -> None:
    check(document, form)


@pytest.mark.full
@settings(max_examples=5000, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(documents, forms())
def test_documents_read_back_at_length(document: list[Segment], form: dict[str, Any]) -> None:
    check(document, form)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("ink", INKS)
@pytest.mark.parametrize("lines", ["flow", "hard"])
def test_hostile_text_reads_as_text(cell: tuple[int, int], ink: str, lines: str) -> None:
    size = {"width": 50 * cell[0], "height": 8 * cell[1]}
    document: list[Segment] = [HOSTILE, Bar(12, "user"), HOSTILE * 3, Bar(13, "call " + "x" * 64), HOSTILE]
    pages = check(document, {"cell": cell, "ink": ink, "lines": lines, **size})
    assert len(pages) > 3


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("ink", INKS)
def test_every_code_point_of_the_first_plane_reads_back(cell: tuple[int, int], ink: str) -> None:
    step = 97  # enough to meet every block
    text = "".join(map(chr, [*range(0x600), *range(0x600, 0x10000, step), 0xD800, 0xDFFF, 0x1F600, 0x10FFFF]))
    form = {"cell": cell, "ink": ink, "width": 800, "height": 800}
    pages = check([text], form)
    expected = Counter(char for char in text if not _core.drawable(ord(char), cell, ink) and char not in "\t\n")
    found = sum((Counter(page.escapes) for page in pages), Counter[str]())
    wide = {char for char in found if char not in expected}
    assert {char: found[char] for char in found if char not in wide} == expected
    assert all(_core.drawable(ord(char), cell, ink) for char in wide)


def test_ascii_and_the_accents_of_spanish_are_drawn_at_the_cells_in_use() -> None:
    text = "".join(map(chr, range(0x20, 0x7F))) + "áéíóúüñÁÉÍÓÚÜÑ¿¡ \n\t"
    for cell in [(9, 16), (7, 14), (6, 12), (5, 10)]:
        for page in draw([text], cell=cell, width=1568, height=784):
            assert page.escapes == {}


# Re-encoding: by another program, in another process, with nothing kept but what is seen.
REENCODE = """
import io, sys
import PIL.Image
how, source, target = sys.argv[1:]
image = PIL.Image.open(source)
image.load()
image.info.clear()
if how == "palette":
    image = image.convert("L").convert("P")
elif how == "alpha":
    image = image.convert("RGBA")
elif how == "clear":
    ink = image.convert("L").point(lambda value: 255 - value)
    image = PIL.Image.new("LA", image.size, 0)
    image.putalpha(ink)
elif how == "deep":
    image = image.convert("L").convert("I;16").point(lambda value: value * 257)
else:
    image = image.convert("RGB")
image.save(target, "WEBP" if how == "webp" else "PNG", **({"lossless": True} if how == "webp" else {}))
"""


@pytest.mark.parametrize("how", ["rgb", "palette", "alpha", "clear", "deep"])
def test_reencoded_pages_read_back(how: str, tmp_path: Path) -> None:
    document: list[Segment] = [Bar(7, "user"), HOSTILE, Bar(8, "assistant"), "ok\n" * 40 + "   "]
    pages = draw(document, cell=(9, 16), width=640, height=240)
    files = []
    for page in pages:
        source, target = tmp_path / f"{page.number}.png", tmp_path / f"{page.number}-again.png"
        page.save(source)
        subprocess.run([sys.executable, "-c", REENCODE, how, source, target], check=True)
        assert b"microfiche" not in target.read_bytes()
        files.append(target)
    assert read_back(files, marks=True) == list(normal(document))
    assert read_back([str(file) for file in files]) == "".join(page.text for page in pages)


def test_pages_read_back_from_every_kind_of_image() -> None:
    page = draw(["some text\n\n\n    and more"], cell=(6, 12), width=400, height=200)[0]
    for form in (page, page.png, bytearray(page.png), page.image(), page.image().convert("RGB"), page.array(),
                 numpy.stack([page.array()] * 3, axis=2)):  # fmt: skip
        assert read_back(form) == page.text
        assert read_back([form]) == page.text


def test_interlaced_pages_read_back() -> None:
    """Adam7 written by hand, since Pillow does not write it."""
    page = draw(["interlaced\ttext\n"], cell=(8, 16), ink="mono", width=200, height=200)[0]
    pixels = page.array()
    passes = [(0, 8, 0, 8), (0, 8, 4, 8), (4, 8, 0, 4), (0, 4, 2, 4), (2, 4, 0, 2), (0, 2, 1, 2), (1, 2, 0, 1)]
    data = b"".join(b"\0" + row.tobytes() for y, dy, x, dx in passes for row in pixels[y::dy, x::dx] if row.size)

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", page.width, page.height, 8, 0, 0, 0, 1)
    file = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")
    assert read_back(file) == page.text


@pytest.mark.parametrize("ink", INKS)
@pytest.mark.parametrize("level", ["fastest", "default", "smallest"])
def test_files_are_what_the_page_says(ink: str, level: str) -> None:
    cell = (7, 14)
    pages = draw([Bar(4, "system"), HOSTILE * 9, Bar(9, "user"), "bye"], cell=cell, ink=ink, level=level,
                 width=501, height=300, first=12)  # fmt: skip
    assert len(pages) > 2
    for page in pages:
        image = page.image()
        image.verify()
        image = page.image()
        image.load()
        assert image.size == (page.width, page.height)
        depth = 2 if ink == "grey" else 1
        assert page.png[24:26] == bytes([depth, 0])
        # The digest is taken of the packed scanlines, the bits past the right edge white.
        levels = page.array().astype(numpy.uint16) * (2**depth - 1) // 255
        bits = numpy.stack([levels >> shift & 1 for shift in reversed(range(depth))], axis=2).reshape(page.height, -1)
        padding = -bits.shape[1] % 8
        packed = numpy.packbits(numpy.pad(bits, ((0, 0), (0, padding)), constant_values=1).astype(numpy.uint8), axis=1)
        assert page.digest == hashlib.sha256(packed.tobytes()).hexdigest()
        # The text chunk is for people and tools.
        note = dict(line.split("=", 1) for line in image.info["microfiche"].split("\n"))
        assert note["page"] == str(page.number)
        assert note["cell"] == "7x14"
        assert note["ink"] == ink
        assert note["grammar"] == str(_core.GRAMMAR)
        assert note["turns"] == f"{min(page.turns)}-{max(page.turns)}"
        source = hashlib.sha256()
        for segment in page.segments:
            if isinstance(segment, Bar):
                source.update(f"bar {segment.turn} {segment.kind}\n".encode())
            else:
                data = segment.encode("utf-8", "surrogatepass")
                source.update(f"text {len(data)}\n".encode() + data)
        assert note["source"] == source.hexdigest()


@given(st.integers(1, 400), st.sampled_from([0, 1, 28, 32, 1000]), st.sampled_from([0, 96]))
def test_the_last_page_hugs_its_rows(cells: int, grid: int, least: int) -> None:
    page = draw(["x" * cells], cell=(5, 10), width=100, height=300, grid=grid, min_height=least)[-1]
    rows = 1 + -(-cells // 20)
    wanted = max(rows * 10, least)
    assert page.height == (300 if grid == 0 else min(300, -(-wanted // grid) * grid))
    assert page.cells == cells


def test_ink_stays_in_its_cells() -> None:
    width, height, (w, h) = 333, 222, (9, 16)
    pages = draw(["█@" * 2000], cell=(w, h), width=width, height=height, grid=0)
    assert len(pages) > 3
    for page in pages:
        pixels = page.array()
        assert (pixels[:, width // w * w :] == 255).all()
        assert (pixels[height // h * h :] == 255).all()
        assert (pixels[(height // h - 1) * h : height // h * h] != 255).any() or page is pages[-1]


def test_glyphs_of_a_text_do_not_depend_on_where_it_stands() -> None:
    form = {"cell": (9, 16), "width": 450, "height": 160}
    alone = draw(["Agj{"], **form)[0].array()[16:32, :36]
    behind = draw([Bar(3, "user"), "\n" * 50, "Agj{"], **form)[0].array()
    at = 9 * (len(" 3 user ") + len("50") + 1)
    assert (behind[16:32, at : at + 36] == alone).all()


def test_threads_levels_and_surroundings_change_no_pixel() -> None:
    text = "\n".join(f"{line:5} {hashlib.sha256(str(line).encode()).hexdigest()}" for line in range(600))
    pages = {threads: draw([text], cell=(6, 12), width=500, height=500, threads=threads) for threads in (0, 1, 2, 8)}
    assert len(pages[1]) > 8
    assert all([page.png for page in each] == [page.png for page in pages[1]] for each in pages.values())
    digests = [page.digest for page in pages[1]]
    for level in ("fastest", "smallest"):
        again = draw([text], cell=(6, 12), width=500, height=500, level=level)
        assert [page.digest for page in again] == digests
    script = (
        "import hashlib\nfrom microfiche.pages.render import draw\n"
        "text = '\\n'.join(f'{line:5} {hashlib.sha256(str(line).encode()).hexdigest()}' for line in range(600))\n"
        "print(*[page.digest for page in draw([text], cell=(6, 12), width=500, height=500)])"
    )
    for locale, seed in (("C", "1"), ("tr_TR.UTF-8", "2"), ("ar_EG.UTF-8", "3")):
        surroundings = {**os.environ, "LC_ALL": locale, "LANG": locale, "PYTHONHASHSEED": seed, "TZ": "Asia/Kathmandu"}
        out = subprocess.run([sys.executable, "-c", script], env=surroundings, capture_output=True, check=True)
        assert out.stdout.decode().split() == digests


def test_full_pages_stay_as_they_are_when_turns_are_appended() -> None:
    chance = random.Random(5)
    document: list[Segment] = []
    before: list[Page] = []
    for turn in range(1, 60):
        document += [Bar(turn, "user"), "".join(chance.choices("ab \n\té", k=chance.randrange(200)))]
        pages = draw(document, cell=(5, 10), width=200, height=100)
        full = before[:-1]
        assert [page.png for page in pages[: len(full)]] == [page.png for page in full]
        before = pages
    assert len(before) > 10


def test_turns_of_a_page_include_the_one_it_begins_inside_of() -> None:
    document: list[Segment] = [Bar(3, "user"), "a" * 500, Bar(4, "assistant"), "b" * 100, Bar(9, "user"), "c" * 600]
    pages = draw(document, cell=(5, 10), width=200, height=100)
    seen = []
    for page in pages:
        inside = [page.start[0] - 1 if page.start[1] == 0 else page.start[0]]
        first = page.segments[0]
        wanted = [first.turn] if isinstance(first, Bar) else [
            part.turn for part in document[: inside[0] + 1] if isinstance(part, Bar)
        ][-1:]  # fmt: skip
        wanted += [part.turn for part in page.segments if isinstance(part, Bar) and part.turn not in wanted]
        assert list(page.turns) == wanted
        seen += wanted
    assert set(seen) == {3, 4, 9}
    rest = draw(["more of turn 8", Bar(9, "user"), "c"], cell=(5, 10), width=400, height=100, inside=8)[0]
    assert rest.turns == (8, 9)


def test_nothing_gives_nothing() -> None:
    assert draw([], cell=(9, 16), width=400, height=200) == []
    assert draw(["", ""], cell=(9, 16), width=400, height=200) == []
    assert render("", cell=(9, 16)) == []
    assert read_back([]) == ""
    assert read_back([], marks=True) == []


def test_bad_choices_are_named() -> None:
    def refused(error: type[MicroficheError], words: str, **changes: Any) -> None:
        form = {"cell": (9, 16), "width": 400, "height": 200, **changes}
        with pytest.raises(error, match=words):
            draw(["x"], **form)

    refused(BadInput, "cell 3x16", cell=(3, 16))
    refused(BadInput, "no ink", ink="blue")
    refused(BadInput, "no level", level="best")
    refused(BadInput, "no form of lines", lines="soft")
    refused(BadInput, "too large", width=100_000, height=100_000)
    refused(BadInput, "number of pixels", width=-1)
    refused(BadInput, "0 to 2", first=-1)
    refused(PageTooSmall, "11 × 12 cells", width=107)
    refused(PageTooSmall, "0 × 0 cells", width=0, height=0)
    for turn, kind in ((-1, "user"), (2**64, "user"), (1, "User"), (1, "call a b"), (1, "call " + "x" * 65), (1, "")):
        with pytest.raises(BadInput):
            Bar(turn, kind)
    with pytest.raises(BadInput):
        Bar(1, "call bash\n")


def test_what_is_no_page_is_refused(tmp_path: Path) -> None:
    page = draw(["some words, enough of them to be cut"], cell=(9, 16), width=400, height=200)[0]
    pixels = page.array()

    def refused(image: Any, words: str, **known: Any) -> None:
        with pytest.raises(BadPage, match=words):
            read_back(image, **known)

    refused(b"", "not a PNG")
    refused(b"GIF89a", "not a PNG")
    refused(page.png[:200], "not a PNG")
    refused(PIL.Image.new("RGB", (300, 300), "white"), "not a page")
    refused(page, "not a page", cell=(5, 10))
    refused(page.image().resize((200, page.height // 2)), "not a page")
    refused(pixels[:, 1:], "not a page")
    refused(tmp_path / "absent.png", "absent.png")
    refused(12, "int")
    refused(pixels.astype(float), "float64")
    spoiled = pixels.copy()
    spoiled[20, 40] = 255 - spoiled[20, 40]
    refused(spoiled, "row 1, column 4: no glyph")
    cut = draw([Bar(1, "call bash"), "x"], cell=(9, 16), width=400, height=200)[0].array().copy()
    cut[16:32, 5 * 9 :] = 255
    refused(cut, "row 1, column 0: .*cut off")


def test_a_bomb_is_refused_before_it_is_unfolded() -> None:
    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + header
    idat = b"IDAT" + zlib.compress(bytes(10_000))
    file = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk))
    file += struct.pack(">I", len(idat) - 4) + idat + struct.pack(">I", zlib.crc32(idat))
    with pytest.raises(BadPage, match="60000 × 60000"):
        read_back(file)
    spaces = draw([" " * 10**6 + "x"], cell=(9, 16), width=400, height=200)
    with pytest.raises(BadPage, match="limit of 1000 bytes"):
        read_back(spaces, limit=1000)
    assert len(read_back(spaces)) == 10**6 + 1


@given(st.binary(max_size=300))
def test_no_bytes_crash_the_decoder(data: bytes) -> None:
    for file in (data, b"\x89PNG\r\n\x1a\n" + data):
        with pytest.raises(BadPage):
            read_back(file)


def test_the_legend_says_what_stands_on_the_page() -> None:
    document: list[Segment] = [Bar(3, "user"), "a" * 3000, Bar(12, "assistant"), "b"]
    pages = draw(document, cell=(8, 16), ink="mono", width=1600, height=200)
    plain = draw(["a"], cell=(8, 16), ink="mono", width=1600, height=200)[0]

    def row(text: str) -> numpy.ndarray[tuple[int, int], numpy.dtype[numpy.uint8]]:
        return draw([text], cell=(8, 16), ink="mono", width=1600, height=200)[0].array()[16:32, : 8 * len(text)]

    for page, words in zip(pages, ["page 1  turn 3", "page 2  turns 3-12"], strict=True):
        assert (page.array()[:16, : 8 * len(words)] == row(words)).all()
    whole = pages[0].array()[:16]
    what = row("earlier turns of this conversation, for reading")
    starts = [x for x in range(0, 1600 - what.shape[1], 8) if (whole[:, x : x + what.shape[1]] == what).all()]
    assert len(starts) == 1
    assert (plain.array()[:16, : 8 * 6] == row("page 1")).all()
    assert not (plain.array()[:16, 8 * 8 : 8 * 12] == row("turn")).all()


def test_render_takes_page_and_cell_of_the_model() -> None:
    text = "".join(f"line {number}: déjà vu\n" for number in range(2000))
    for name in ("claude-opus-5", "gpt-5.6-sol", "gemini-3.6-flash"):
        model = models.find(name)
        cell = models.cell_for(model)
        geometry = models.page(model, cell)
        pages = render(text, model=name)
        assert read_back(pages) == text
        assert {page.cell for page in pages} == {(cell.width, cell.height)}
        assert all((page.width, page.height) == (geometry.width, geometry.height) for page in pages[:-1])
        rows = 1 + -(-pages[-1].cells // geometry.cols)
        assert pages[-1].height == models.hug(model, geometry, rows)
        for page in pages:
            assert page.tokens == models.image_tokens(model, page.width, page.height) > 0
            assert not models.resized(model, page.width, page.height)
    own = render(text, model="claude-opus-5", cell=(5, 10), ink="mono", lines="hard", width=700, height=700)
    assert (own[0].cell, own[0].ink, own[0].width, own[0].height) == ((5, 10), "mono", 700, 700)
    assert read_back(own) == text
    bare = render(text, cell=(6, 12))
    assert (bare[0].width, bare[0].height, bare[0].tokens) == (1568, 784, 0)


def test_render_needs_a_reader_that_sees() -> None:
    blind = next(model for model in models.catalogue() if model.vision is False)
    with pytest.raises(NoVision, match=re.escape(blind.id)):
        render("x", model=blind.id)
    with pytest.raises(NoVision, match="vision=True"):
        render("x", model="nobody-knows-1")
    assert render("x", model="nobody-knows-1", vision=True)[0].tokens > 0
    with pytest.raises(BadInput, match="neither a model nor a cell"):
        render("x")


def test_pages_are_saved_as_they_are(tmp_path: Path) -> None:
    page = draw(["x"], cell=(9, 16), width=400, height=200)[0]
    page.save(tmp_path / "page.png")
    assert (tmp_path / "page.png").read_bytes() == page.png
    assert numpy.asarray(PIL.Image.open(io.BytesIO(page.png)).convert("L")).tolist() == page.array().tolist()


@pytest.mark.parametrize(("ink", "noise"), [("grey", 40), ("mono", 120)])
def test_a_little_noise_does_not_matter(ink: str, noise: int) -> None:
    page = draw([HOSTILE], cell=(7, 14), ink=ink, width=700, height=400)[0]
    chance = numpy.random.default_rng(3)
    pixels = page.array().astype(int) + chance.integers(-noise, noise + 1, (page.height, page.width))
    assert read_back(pixels.clip(0, 255).astype(numpy.uint8)) == page.text


def test_pages_are_drawn_and_read_by_several_threads_at_once() -> None:
    def once(number: int) -> list[bytes]:
        pages = draw([HOSTILE * 9], cell=(8, 15 + number % 2), width=500, height=200)
        assert read_back(pages) == HOSTILE * 9
        return [page.png for page in pages]

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(once, range(16)))
    assert all(result == results[number % 2] for number, result in enumerate(results))


@pytest.mark.parametrize("form", [{"model": "claude-opus-5"}, {"width": 1568}])
@pytest.mark.parametrize("cell", ["9x16", 9, (9,), (9, 16, 1), [9, 16], (9.0, 16), (0, 0), (-1, 5), (9, 1 << 40)])
def test_what_is_no_cell_is_told(cell: Any, form: Any) -> None:
    with pytest.raises(BadInput, match="is no cell; pass its width and height"):
        render("x", cell=cell, **form)
    with pytest.raises(BadInput, match="is no cell; pass its width and height"):
        read_back([], cell=cell)


@pytest.mark.parametrize("name", ["width", "height"])
@pytest.mark.parametrize("value", ["1568", 784.5])
def test_a_size_is_a_whole_number_of_pixels(name: str, value: Any) -> None:
    with pytest.raises(BadInput, match=f"{name} is a number of pixels, not {value!r}"):
        render("x", cell=(9, 16), **{name: value})


@pytest.mark.parametrize("wrong", [b"bytes", [b"x"], [None], [("bar", 1)]])
def test_what_is_no_segment_is_told(wrong: Any) -> None:
    with pytest.raises(BadInput, match="segment"):
        normal(wrong)


@settings(deadline=None)
@given(documents, forms())
def test_bars_are_found_where_they_stand(document: list[Segment], form: dict[str, Any]) -> None:
    wanted = [segment for segment in document if isinstance(segment, Bar)]
    pages = draw(document, **form)
    found = [bar for page in pages for bar in bars_on(page)]
    assert [(bar.turn, bar.kind) for bar in found] == [(bar.turn, bar.kind) for bar in wanted]
    for page in pages:
        ends = []
        for bar in bars_on(page.png):
            # As many cells as the bar has characters and edges, in reading order, none outside the page.
            width, height = page.cell
            assert sum(box[2] for box in bar.boxes) == width * len(f" {bar.turn} {bar.kind} ")
            for left, top, across, high in bar.boxes:
                assert top >= height == high and left >= 0 and left + across <= page.width and top + high <= page.height
                ends.append((top, left))
        assert ends == sorted(ends)


def test_a_bar_over_the_end_of_a_row_has_two_boxes() -> None:
    columns = 20
    (page,) = draw(["x" * 15, Bar(7, "result ok")], cell=(9, 16), width=9 * columns, height=16 * 8)
    (bar,) = bars_on(page)
    assert bar.boxes == ((9 * 15, 16, 9 * 5, 16), (0, 32, 9 * 8, 16))
