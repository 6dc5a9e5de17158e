"""Fonts of a user: tiny ones made here, drawn beside our own, read back, and kept as an atlas."""

from __future__ import annotations

import gzip
import struct
import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from microfiche.errors import BadInput, MicroficheError, PlanMismatch
from microfiche.pages import atlas as atlases
from microfiche.pages import fonts
from microfiche.pages.atlas import Atlas
from microfiche.pages.render import draw, read_back, render

CELL = (7, 14)
HAN = "漢字中文書"
HEBREW = "שלום"


def bitmap(number: int, width: int) -> list[int]:
    """Sixteen rows of so many pixels, another picture for each number."""
    mask = (1 << width) - 1
    return [(number * 2654435761 >> row) & mask & ~1 if 2 <= row < 13 else 0 for row in range(16)]


def write_hex(path: Path, characters: str, blank: str = "") -> Path:
    lines = []
    for at, character in enumerate(characters):
        width = 16 if unicodedata.east_asian_width(character) in "WF" else 8
        rows = [0] * 16 if character in blank else bitmap(at + 1, width)
        lines.append(f"{ord(character):04X}:" + "".join(f"{row:0{width // 4}X}" for row in rows))
    path.write_text("\n".join(lines) + "\n")
    return path


def write_bdf(path: Path, characters: str) -> Path:
    """Adobe's Glyph Bitmap Distribution Format 2.1, of 6×12 pixels, wide characters of 12×12."""
    head = ["STARTFONT 2.1", "FONT -test-Tiny-Medium-R-Normal--12-120-75-75-C-60-ISO10646-1", "SIZE 12 75 75"]
    head += ["FONTBOUNDINGBOX 12 12 0 -2", "STARTPROPERTIES 4", "FONT_ASCENT 10", "FONT_DESCENT 2"]
    head += ['CHARSET_REGISTRY "ISO10646"', 'CHARSET_ENCODING "1"', "ENDPROPERTIES", f"CHARS {len(characters)}"]
    for at, character in enumerate(characters):
        width = 12 if unicodedata.east_asian_width(character) in "WF" else 6
        bytes_across = 2 if width == 12 else 1
        rows = [row << (8 * bytes_across - width) for row in bitmap(at + 31, width)[2:14]]
        head += [f"STARTCHAR u{ord(character):04x}", f"ENCODING {ord(character)}", "SWIDTH 500 0"]
        head += [f"DWIDTH {width} 0", f"BBX {width} 12 0 -2", "BITMAP"]
        head += [f"{row:0{2 * bytes_across}X}" for row in rows] + ["ENDCHAR"]
    path.write_text("\n".join([*head, "ENDFONT", ""]))
    return path


def write_pcf(path: Path, characters: str) -> Path:
    """X11's Portable Compiled Format, of the glyphs of :func:`write_bdf`; all numbers with the highest byte first."""
    order = 0x0C  # bytes and bits the highest first, rows padded to a byte
    wide = [unicodedata.east_asian_width(each) in "WF" for each in characters]
    metrics = [struct.pack(">5hH", 0, 12 if each else 6, 12 if each else 6, 10, 2, 0) for each in wide]
    rows = [
        b"".join(
            (row << (16 - 12 if two else 8 - 6)).to_bytes(2 if two else 1, "big")
            for row in bitmap(at + 31, 12 if two else 6)[2:14]
        )
        for at, two in enumerate(wide)
    ]
    texts = b"CHARSET_REGISTRY\0ISO10646\0CHARSET_ENCODING\x001\0"
    properties = struct.pack(">iibiibi", 2, 0, 1, 17, 26, 1, 43) + b"\0\0" + struct.pack(">i", len(texts)) + texts
    bounds = metrics[0] + metrics[wide.index(True)]
    accelerators = bytes(8) + struct.pack(">3i", 10, 2, 0) + bounds
    offsets = [sum(map(len, rows[:at])) for at in range(len(rows))]
    total = sum(map(len, rows))
    bitmaps = struct.pack(f">i{len(rows)}i4i", len(rows), *offsets, *[total] * 4) + b"".join(rows)
    last = max(map(ord, characters)) >> 8
    places = {ord(each): at for at, each in enumerate(characters)}
    indices = [places.get(code, 0xFFFF) for code in range((last + 1) << 8)]
    encodings = struct.pack(">5h", 0, 255, 0, last, 0) + struct.pack(f">{len(indices)}H", *indices)
    tables = {1: properties, 2: accelerators, 4: struct.pack(">i", len(metrics)) + b"".join(metrics)}
    tables |= {8: bitmaps, 32: encodings}
    at = 8 + 16 * len(tables)
    head, body = struct.pack("<4si", b"\x01fcp", len(tables)), b""
    for kind, data in tables.items():
        data = struct.pack("<i", order) + data + bytes(-len(data) % 4)
        head += struct.pack("<4i", kind, order, len(data), at + len(body))
        body += data
    path.write_bytes(gzip.compress(head + body) if path.suffix == ".gz" else head + body)
    return path


def write_ttf(path: Path, characters: str, blank: str = "", family: str = "Tiny Outlines", boxes: str = "") -> Path:
    """A TrueType font: each character a few bars of its own; ``boxes`` show what .notdef shows, ``blank`` nothing."""
    from fontTools.fontBuilder import FontBuilder
    from fontTools.pens.ttGlyphPen import TTGlyphPen

    def drawn(number: int, wide: bool) -> Any:
        pen = TTGlyphPen(None)
        width = 900 if wide else 500
        for bar in range(10):
            if number >> bar & 1:
                across, up = bar % 2 * width // 2 + 60, bar // 2 * 150 - 60
                pen.moveTo((across, up))
                pen.lineTo((across, up + 100))
                pen.lineTo((across + width // 2 - 80, up + 100))
                pen.lineTo((across + width // 2 - 80, up))
                pen.closePath()
        return pen.glyph()

    shown = sorted(characters)
    names = {character: f"u{ord(character):04X}" for character in shown}
    wide = {each: unicodedata.east_asian_width(each) in "WF" for each in shown}
    glyphs = {".notdef": drawn(0b1111111111, False)}
    for at, each in enumerate(shown, 3):
        glyphs[names[each]] = drawn(0b1111111111 if each in boxes else 0 if each in blank else at * 4 | 3, wide[each])
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder(list(glyphs))
    builder.setupCharacterMap({ord(each): name for each, name in names.items()})
    builder.setupGlyf(glyphs)
    widths = {names[each]: (1000 if wide[each] else 560, 0) for each in shown}
    builder.setupHorizontalMetrics({".notdef": (560, 0), **widths})
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": family, "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost()
    builder.save(path)
    return path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder of fonts, and none of the system."""
    monkeypatch.setattr(fonts, "folders", lambda: [tmp_path / "fonts"])
    monkeypatch.setattr(fonts, "_FOUND", {})
    (tmp_path / "fonts").mkdir()
    return tmp_path / "fonts"


@pytest.mark.parametrize("kind", ["hex", "bdf", "pcf", "pcf.gz", "ttf"])
@pytest.mark.parametrize("ink", ["grey", "mono"])
def test_what_a_font_has_is_drawn_and_reads_back(tmp_path: Path, kind: str, ink: Any) -> None:
    characters = HAN + HEBREW + "ӂ"
    if kind == "hex":
        path = write_hex(tmp_path / "tiny.hex", characters)
    elif kind == "ttf":
        path = write_ttf(tmp_path / "tiny.ttf", characters)
    elif kind.startswith("pcf"):
        path = write_pcf(tmp_path / f"tiny.{kind}", characters)
    else:
        path = write_bdf(tmp_path / "tiny.bdf", characters)
    text = f"a {HAN}, {HEBREW} ӂ\n\tb   {HAN[::-1]}\x1b"
    for cell in (CELL, (9, 16), (6, 12)):
        pages = render(text, cell=cell, ink=ink, font=path, width=700, height=300)
        assert pages[0].escapes == {"\x1b": 1}, (cell, kind)
        assert read_back(pages) == text
        assert read_back([page.png for page in pages], font=path) == text
        assert read_back(pages[0].png, cell, ink, font=str(path)) == text
    assert sum(render(text, cell=CELL, width=700, height=300)[0].escapes.values()) == len(HAN) * 2 + len(HEBREW) + 2


def test_formats_of_the_same_glyphs_draw_the_same(tmp_path: Path) -> None:
    bdf, pcf = write_bdf(tmp_path / "a.bdf", HAN + HEBREW), write_pcf(tmp_path / "a.pcf", HAN + HEBREW)
    for cell in (CELL, (9, 16), (6, 12), (12, 24)):
        drawn = [render(HAN + HEBREW, cell=cell, font=font)[0].digest for font in (bdf, pcf)]
        assert drawn[0] == drawn[1] != render(HAN + HEBREW, cell=cell)[0].digest


def test_wide_characters_take_two_cells_and_others_one(tmp_path: Path) -> None:
    for path in (write_ttf(tmp_path / "a.ttf", HAN + HEBREW), write_hex(tmp_path / "b.hex", HAN + HEBREW)):
        atlas = fonts.atlas_for(path, CELL, "grey")
        assert {atlas.cells(each) for each in HAN} == {2}
        assert {atlas.cells(each) for each in HEBREW} == {1}
        assert atlas.cells("a") == atlas.cells(" ") == 1 and atlas.cells("か") == 0
        [page] = draw([HAN + HEBREW], cell=CELL, width=700, height=300, atlas=atlas)
        assert page.cells == 2 * len(HAN) + len(HEBREW)


def test_logical_order_is_kept_whatever_the_direction(tmp_path: Path) -> None:
    """The cells of a right-to-left word are its characters in the order in which they are said."""
    path = write_hex(tmp_path / "a.hex", HEBREW)
    pixels = []
    for text in (HEBREW, HEBREW[::-1]):
        [page] = render(text, cell=CELL, font=path, width=700, height=300)
        row = page.array()[14:28]
        pixels.append([row[:, 7 * at : 7 * at + 7].tobytes() for at in range(len(text))])
    assert pixels[0] == pixels[1][::-1] and pixels[0] != pixels[1]


def test_no_box_no_blank_and_no_picture_is_drawn(tmp_path: Path) -> None:
    """What has no ink, what shows .notdef, what is invisible by nature, and emoji."""
    blank, boxes = "ӂӄ", "ӆӈ"
    invisible = "\u200b\u00a0\u3000\ufe0f\ufffd\u0378\x85"
    emoji = "🎉⏰🀄"
    path = write_ttf(tmp_path / "a.ttf", HAN + blank + boxes + invisible + emoji, blank + invisible[3], boxes=boxes)
    atlas = fonts.atlas_for(path, CELL, "grey")
    assert all(atlas.cells(each) for each in HAN)
    assert not any(atlas.cells(each) for each in blank + boxes + invisible + emoji)
    path = write_hex(tmp_path / "a.hex", HAN + blank + invisible + emoji, blank)
    atlas = fonts.atlas_for(path, CELL, "grey")
    assert all(atlas.cells(each) for each in HAN)
    assert not any(atlas.cells(each) for each in blank + invisible + emoji)
    text = f"{emoji} {blank}"
    assert read_back(render(text, cell=CELL, font=path)) == text


def test_ours_stays_ours_and_the_first_font_goes_before_the_second(tmp_path: Path) -> None:
    first, second = write_hex(tmp_path / "a.hex", "é" + HAN[:2]), write_hex(tmp_path / "b.hex", "é→x" + HAN[::-1])
    own = render("é→x", cell=CELL)[0]
    for font in (first, [first, second], second):
        assert render("é→x", cell=CELL, font=font)[0].digest == own.digest
    both = fonts.atlas_for([first, second], CELL, "grey")
    assert all(both.cells(each) for each in HAN)
    for text, font in ((HAN[:2], first), (HAN[2:], second)):
        alone = draw([text], cell=CELL, width=700, height=300, atlas=fonts.atlas_for(font, CELL, "grey"))
        assert draw([text], cell=CELL, width=700, height=300, atlas=both)[0].digest == alone[0].digest
    swapped = fonts.atlas_for([second, first], CELL, "grey")
    assert swapped.digest != both.digest


def test_a_font_is_found_by_name_and_file(home: Path) -> None:
    write_ttf(home / "TinyOutlines.ttf", HAN)
    write_hex(home / "bits.hex", HAN)
    write_bdf(home / "tiny.bdf", HEBREW)
    (home / "broken.ttf").write_bytes(b"no font")
    (home / "notes.txt").write_text("no font")
    found = {font.name: font.kind for font in fonts.installed()}
    assert found == {"Tiny Outlines Regular": "outlines", "bits": "hex", "tiny Regular": "bitmaps"}
    for name in ("tiny outlines", "Tiny Outlines Regular", "tinyoutlines", str(home / "TinyOutlines.ttf")):
        assert fonts.find(name).path == home / "TinyOutlines.ttf"
    with pytest.raises(BadInput, match="no font is called 'nowhere'"):
        fonts.find("nowhere")
    with pytest.raises(BadInput, match="no such font file"):
        fonts.find(home / "gone.ttf")
    with pytest.raises(BadInput, match="no font that can be read"):
        fonts.find(home / "broken.ttf")
    with pytest.raises(BadInput, match="is no font"):
        fonts.fonts_of(7)  # type: ignore[arg-type]


def test_a_font_that_is_written_anew_is_another(home: Path) -> None:
    path = write_hex(home / "bits.hex", HAN)
    before = fonts.find("bits")
    assert fonts.find("BITS") is before
    write_hex(path, HAN + HEBREW)
    after = fonts.find("bits")
    assert after != before and fonts.atlas_for("bits", CELL, "grey").cells(HEBREW[0]) == 1
    path.unlink()
    with pytest.raises(BadInput, match="no font is called"):
        fonts.find("bits")


def test_fonts_are_drawn_from_several_threads(tmp_path: Path) -> None:
    path = write_ttf(tmp_path / "a.ttf", HAN + HEBREW)
    expected = [fonts.atlas_for(path, (width, 16), "grey").digest for width in range(6, 14)]
    fonts._atlas.cache_clear()
    with ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(lambda width: fonts.atlas_for(path, (width, 16), "grey").digest, range(6, 14)))
    assert drawn == expected


def test_without_freetype_only_hex_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outlines, bits = write_ttf(tmp_path / "a.ttf", HAN), write_hex(tmp_path / "b.hex", HAN)
    monkeypatch.setitem(sys.modules, "freetype", None)
    fonts._read.cache_clear()
    with pytest.raises(MicroficheError, match="freetype-py is not installed"):
        render(HAN, cell=CELL, font=outlines)
    assert not render(HAN, cell=CELL, font=bits, width=700, height=300)[0].escapes


def test_a_faulty_hex_file_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.hex"
    path.write_text(f"{'0416:' + '00ff' * 8}\n0417:zz\n")
    with pytest.raises(BadInput, match="line 2 is no glyph"):
        render("Ж", cell=CELL, font=path)


def test_text_of_mostly_wide_characters_moves_to_a_larger_cell(tmp_path: Path) -> None:
    path = write_hex(tmp_path / "a.hex", HAN)
    model = "gemini-3.6-flash"
    plain, mixed, wide = "some words " * 9, f"some words {HAN}", HAN * 9 + " some words"
    cells = [render(text, model=model, fidelity="gist", font=path)[0].cell for text in (plain, mixed, wide)]
    assert cells == [(5, 10), (5, 10), (7, 14)]
    assert render(wide, model=model, fidelity="exact", font=path)[0].cell == (9, 16)
    assert render(wide, model=model, fidelity="gist")[0].cell == (5, 10)
    assert render(wide, cell=(5, 10), font=path)[0].cell == (5, 10)
    assert read_back(render(wide, model=model, fidelity="gist", font=path)) == wide


def test_an_atlas_is_bytes_that_draw_and_read_without_the_font(tmp_path: Path) -> None:
    path = write_hex(tmp_path / "a.hex", HAN)
    atlas = fonts.atlas_for(path, CELL, "grey")
    [page] = draw([HAN], cell=CELL, width=700, height=300, atlas=atlas)
    path.unlink()
    kept = Atlas.load(atlas.data)
    assert kept == atlas and kept.digest == page.atlas and kept.characters() == atlas.characters()
    [again] = draw([HAN], cell=CELL, width=700, height=300, atlas=kept)
    assert again.png == page.png
    assert read_back(page.png, font=kept) == HAN
    with pytest.raises(BadInput, match="cannot draw 9x16"):
        fonts.atlas_for(kept, (9, 16), "grey")
    for faulty in (b"", b"PNG", atlas.data[:-1], atlas.data + b"\0"):
        with pytest.raises(BadInput, match="atlas"):
            Atlas.load(faulty)


def test_an_atlas_is_named_while_it_is_at_hand() -> None:
    own = atlases.own(CELL, "grey")
    assert atlases.named("", CELL, "grey") is None and atlases.named(own.digest, CELL, "grey") is None
    with pytest.raises(PlanMismatch, match="a font that is not at hand"):
        atlases.named("0" * 64, CELL, "grey")
    other = atlases.make(CELL, "grey", [(0x6F22, 2, 4, 2, b"\x40\xff\x90\xff\xff\x40\xff\x00")])
    atlases.remember(other.data)
    assert atlases.named(other.digest, CELL, "grey") == other


picture = st.tuples(st.integers(1, 2), st.integers(1, 20), st.integers(1, 20))


@settings(deadline=None, max_examples=60)
@given(
    st.dictionaries(st.integers(0x80, 0x10FFFF), st.tuples(picture, st.binary(min_size=400, max_size=400))), st.data()
)
def test_any_glyphs_read_back_or_are_escaped(glyphs: dict[int, Any], data: st.DataObject) -> None:
    offered = [
        (code, cells, width, height, pixels[: width * height])
        for code, ((cells, width, height), pixels) in glyphs.items()
    ]
    ink = data.draw(st.sampled_from(["grey", "mono"]))
    atlas = atlases.make(CELL, ink, offered)
    text = "".join(map(chr, glyphs)) + data.draw(st.text(max_size=40))
    pages = draw([text] if text else [], cell=CELL, ink=ink, width=140, height=280, atlas=atlas)
    assert read_back([page.png for page in pages], font=atlas) == text
    escaped = set().union(*(page.escapes for page in pages)) if pages else set()
    # A wide one may also be escaped at the end of a row.
    assert all(atlas.cells(each) != 1 for each in escaped)
    assert Atlas.load(atlas.data) == atlas
