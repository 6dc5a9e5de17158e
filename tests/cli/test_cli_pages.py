"""``microfiche render`` and ``microfiche read``."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import microfiche as mf
import pytest
from conftest import Ran, listing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

Run = Callable[..., Ran]
TEXT = "def fold(records):\n\treturn sorted(records)  # « Ålesund » ✓\n\n\n\n        deep\r\n" * 150


def pages_in(directory: Path, stem: str) -> list[Path]:
    return sorted(directory.glob(f"{stem}-*.png"))


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "notes.txt"
    path.write_bytes(TEXT.encode())
    return path


@pytest.mark.parametrize("lines", ["flow", "hard"])
@pytest.mark.parametrize("ink", ["grey", "mono"])
@pytest.mark.parametrize("level", ["fastest", "default", "smallest"])
def test_text_comes_back(run: Run, notes: Path, tmp_path: Path, lines: str, ink: str, level: str) -> None:
    out = tmp_path / "out"
    ran = run(
        "render", notes, "--cell", "6x12", "--ink", ink, "--lines", lines, "--level", level, "--height", 400,
        "--out", out,
    )  # fmt: skip
    assert (ran.code, ran.err) == (0, "")
    assert len(pages_in(out, "notes")) > 1
    assert run("read", *pages_in(out, "notes")).out == TEXT.encode()


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=300) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_come_back(run: Run, tmp_path: Path, data: bytes) -> None:
    out = tmp_path / "out"
    ran = run("render", "-", "--cell", "5x10", "--width", 200, "--height", 60, "--out", out, stdin=data)
    assert ran.code == 0, ran.err
    assert run("read", *pages_in(out, "stdin")).out == data if data else pages_in(out, "stdin") == []


def test_bytes_that_are_no_text_are_named(run: Run, tmp_path: Path) -> None:
    ran = run("render", "-", "--cell", "9x16", "--out", tmp_path, stdin=b"a\xff\xfeb")
    assert ran.code == 0
    assert "2 bytes are no UTF-8" in ran.err


def test_the_model_decides_cell_and_page(run: Run, notes: Path, tmp_path: Path) -> None:
    args = ("render", notes, "--model", "claude-opus-5", "--json")
    exact = json.loads(run(*args, "--out", tmp_path / "exact").out)["files"][0]
    gist = json.loads(run(*args, "--fidelity", "gist", "--out", tmp_path / "gist").out)["files"][0]
    assert exact["pages"][0]["cell"] == [9, 16] and gist["pages"][0]["cell"] == [5, 10]
    assert len(gist["pages"]) < len(exact["pages"])
    drawn = mf.render(TEXT, model="claude-opus-5")
    assert [page["digest"] for page in exact["pages"]] == [page.digest for page in drawn]
    assert [page["tokens"] for page in exact["pages"]] == [page.tokens for page in drawn]
    assert sum(page["characters"] for page in exact["pages"]) == exact["characters"] == len(TEXT)


def test_several_files_are_several_series(run: Run, notes: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.md"
    other.write_text("x")
    empty = tmp_path / "empty"
    empty.write_text("")
    ran = run("render", notes, other, empty, "-", "--cell", "9x16", "--out", tmp_path / "out", stdin=b"y")
    assert ran.code == 0
    names = [*(path.name for path in pages_in(tmp_path / "out", "notes")), "other-001.png", "stdin-001.png"]
    assert sorted(listing(tmp_path / "out")) == names
    assert "empty, no page" in ran.text


def test_two_files_of_one_name_are_refused(run: Run, notes: Path, tmp_path: Path) -> None:
    again = tmp_path / "notes.md"
    again.write_text("x")
    ran = run("render", notes, again, "--cell", "9x16", "--out", tmp_path / "out")
    assert ran.code == 2 and "notes-001.png" in ran.err


def test_stale_pages_go_and_foreign_files_stay(run: Run, notes: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    args = ("render", "--cell", "9x16", "--height", 200, "--out", out)
    run(*args, notes)
    assert len(pages_in(out, "notes")) > 2
    kept = {"notes-x.png": b"mine", "notes-900.png": b"mine", "notes.txt": b"mine"}
    for name, data in kept.items():
        (out / name).write_bytes(data)
    notes.write_text("short")
    assert run(*args, notes).code == 0
    assert {name: data for name, data in listing(out).items() if name != "notes-001.png"} == kept
    assert run("read", out / "notes-001.png").out == b"short"


def test_a_foreign_picture_is_never_replaced(run: Run, notes: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    Image.new("L", (40, 40), 255).save(out / "notes-001.png")
    before = listing(out)
    ran = run("render", notes, "--cell", "9x16", "--out", out)
    assert ran.code == 1 and "notes-001.png" in ran.err and ran.err.count("\n") == 1
    assert listing(out) == before


@pytest.mark.parametrize(
    "args, word",
    [
        (("--model", "o3-mini"), "does not read images"),
        (("--model", "nobody-1"), "--vision"),
        (("--cell", "3x5"), "cell"),
        (("--cell", "9x16", "--width", 50), "too small"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    run: Run, notes: Path, tmp_path: Path, args: tuple[str, ...], word: str
) -> None:
    ran = run("render", notes, *args, "--out", tmp_path / "out")
    assert ran.code == 1
    assert word in ran.err and ran.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_model_that_is_said_to_see_gets_pages(run: Run, notes: Path, tmp_path: Path) -> None:
    assert run("render", notes, "--model", "nobody-1", "--vision", "--out", tmp_path / "out").code == 0


def test_wrong_usage(run: Run, notes: Path, tmp_path: Path) -> None:
    assert run("render", notes, "--out", tmp_path / "out").code == 2
    assert run("render", notes, "--cell", "9x16").code == 2
    assert run("render", "--cell", "9x16", "--out", tmp_path / "out").code == 2
    for cell in ("9", "x", "9x", "axb", "9x16x2", "-9x16", "9" * 9 + "x16"):
        assert run("render", notes, "--cell", cell, "--out", tmp_path / "out").code == 2
    assert run("read").code == 2


def test_missing_files_are_named_and_nothing_is_written(run: Run, notes: Path, tmp_path: Path) -> None:
    missing = tmp_path / "missing.txt"
    ran = run("render", notes, missing, "--cell", "9x16", "--out", tmp_path / "out")
    assert ran.code == 1 and str(missing) in ran.err and ran.err.count("\n") == 1
    assert not (tmp_path / "out").exists()
    assert run("read", missing).code == 1


# ---------------------------------------------------------------- read


@pytest.fixture
def pages(run: Run, notes: Path, tmp_path: Path) -> list[Path]:
    run("render", notes, "--cell", "7x14", "--height", 500, "--out", tmp_path / "pages")
    return pages_in(tmp_path / "pages", "notes")


def test_read_takes_cell_and_ink_and_standard_input(run: Run, pages: list[Path]) -> None:
    assert run("read", "--cell", "7x14", "--ink", "grey", *pages).out == TEXT.encode()
    assert run("read", "-", *pages[1:], stdin=pages[0].read_bytes()).out == TEXT.encode()
    assert run("read", "--cell", "9x16", *pages).code == 1


def test_read_writes_to_a_file(run: Run, pages: list[Path], tmp_path: Path) -> None:
    ran = run("read", *pages, "--out", tmp_path / "text")
    assert (ran.code, ran.out) == (0, b"")
    assert (tmp_path / "text").read_bytes() == TEXT.encode()


def test_pages_that_another_program_saved_read_the_same(run: Run, pages: list[Path]) -> None:
    for page in pages:
        with Image.open(page) as image:
            rgb = image.convert("RGB")
        rgb.save(page)
    assert run("read", *pages).out == TEXT.encode()


def test_marks_are_lines_of_json(run: Run, tmp_path: Path) -> None:
    from microfiche.pages.render import Bar, draw

    segments = [Bar(3, "user"), "hello\nthere", Bar(4, "call Read"), "{}", Bar(4, "result error"), "\udc80\ud800"]
    (page,) = draw(segments, cell=(9, 16), width=600, height=200)
    page.save(tmp_path / "page.png")
    ran = run("read", "--marks", tmp_path / "page.png")
    lines = [json.loads(line) for line in ran.text.splitlines()]
    assert lines == [
        {"turn": 3, "kind": "user"},
        {"text": "hello\nthere"},
        {"turn": 4, "kind": "call Read"},
        {"text": "{}"},
        {"turn": 4, "kind": "result error"},
        {"text": "\udc80\ud800"},
    ]
    assert run("read", tmp_path / "page.png").code == 0


def foreign(kind: str) -> bytes:
    file = io.BytesIO()
    match kind:
        case "text":
            return b"hello"
        case "empty":
            return b""
        case "photo":
            Image.frombytes("L", (90, 64), bytes(at * 37 % 256 for at in range(90 * 64))).save(file, "PNG")
        case "blank":
            Image.new("L", (90, 64), 255).save(file, "PNG")
        case "jpeg":
            Image.new("L", (90, 64), 255).save(file, "JPEG")
    return file.getvalue()


@pytest.mark.parametrize("kind", ["text", "empty", "photo", "blank", "jpeg"])
def test_what_is_no_page_is_named(run: Run, pages: list[Path], tmp_path: Path, kind: str) -> None:
    bad = tmp_path / "bad.png"
    bad.write_bytes(foreign(kind))
    for args in ((bad,), (pages[0], bad), (bad, *pages)):
        ran = run("read", *args, "--out", tmp_path / "text")
        assert ran.code == 1
        assert str(bad) in ran.err and ran.err.count("\n") == 1
        assert not (tmp_path / "text").exists()


def test_a_damaged_page_is_named(run: Run, pages: list[Path], tmp_path: Path) -> None:
    data = pages[1].read_bytes()
    for at in (10, len(data) // 2, len(data) - 8):
        pages[1].write_bytes(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
        ran = run("read", *pages)
        if ran.code == 0:  # a flip outside header and pixels says nothing about the text
            assert ran.out == TEXT.encode()
        else:
            assert ran.code == 1 and str(pages[1]) in ran.err
    pages[1].write_bytes(data[: len(data) // 2])
    ran = run("read", *pages)
    assert ran.code == 1 and str(pages[1]) in ran.err and ran.out == b""


def test_reading_does_not_depend_on_the_page_s_name(run: Run, pages: list[Path], tmp_path: Path) -> None:
    moved = tmp_path / "x"
    pages[0].rename(moved)
    assert run("read", moved, *pages[1:]).out == TEXT.encode()
