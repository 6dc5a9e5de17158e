"""``microfiche fonts``, and pages drawn and read with one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import PIL.Image
import pytest
from conftest import Ran
from microfiche.pages import fonts

Run = Callable[..., Ran]


@pytest.fixture
def font(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A font of two Han characters, the only one there is."""
    path = tmp_path / "fonts" / "two.hex"
    path.parent.mkdir()
    path.write_text("5B57:" + "00007ffe40024002" * 8 + "\n6F22:" + "00007ffe5ffa4002" * 8 + "\n")
    monkeypatch.setattr(fonts, "folders", lambda: [path.parent])
    monkeypatch.setattr(fonts, "_FOUND", {})
    return path


def test_fonts_are_listed(run: Run, font: Path) -> None:
    assert [line.split()[0] for line in run("fonts").text.splitlines()[2:]] == ["two"]
    assert json.loads(run("fonts", "--json").out) == [{"family": "two", "style": "", "kind": "hex", "path": str(font)}]


def test_coverage_and_specimen(run: Run, font: Path, tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_text("漢字漢 ӂ\n")
    ran = run("fonts", text, "--font", "two", "--specimen", tmp_path / "s.png", "--json")
    told = json.loads(ran.out)
    assert [each["characters"] for each in told["fonts"][1:]] == [2]
    assert told["texts"] == [
        {"source": str(text), "characters": 5, "drawn": 4, "wide": 3, "escapes": {"U+04C2": 1}}
    ]  # fmt: skip
    with PIL.Image.open(tmp_path / "s.png") as specimen:
        assert specimen.width == 1568
    made = run("fonts", "--font", "two", "--cell", "7x14", "--atlas", tmp_path / "a").text
    assert made.endswith(f"Wrote {tmp_path / 'a'}.\n")
    assert (tmp_path / "a").read_bytes() == fonts.atlas_for(font, (7, 14), "grey").data
    plain = run("fonts", text).text
    assert "1 of 5 characters drawn (20.00%)" in plain and "U+6F22 cjk unified ideograph-6f22 2" in plain
    assert run("fonts", "--font", "nowhere").code == 1


def test_pages_are_drawn_and_read_with_a_font(run: Run, font: Path, tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_text("漢字 and more\n" * 30)
    assert run("render", text, "--cell", "7x14", "--font", "two", "--out", tmp_path / "out", "--json").code == 0
    page = tmp_path / "out" / "a-001.png"
    assert run("read", page, "--font", font).out == text.read_bytes()
    failed = run("read", page)
    assert failed.code == 1 and "no glyph of the font" in failed.err
