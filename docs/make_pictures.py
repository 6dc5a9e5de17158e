"""Draws the picture of the README anew: the upper part of a page that its own command writes, pixel by pixel.

python docs/make_pictures.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from click.testing import CliRunner
from microfiche.cli import main
from PIL import Image

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "page.png"
SESSION = ROOT / "tests" / "data" / "sessions" / "harbour.claude-code.jsonl"
SHOWN = (784, 416)
"""Pixels of the part of the page that is shown."""


def picture() -> Image.Image:
    """The upper part of the first page of the README's command."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["compact", str(SESSION), "--model", "claude-opus-5", "--budget", "20k", "--out", folder]
        ran = CliRunner().invoke(main, words)
        assert ran.exit_code == 0, ran.output
        with Image.open(Path(folder) / "page-001.png") as page:
            return page.crop((0, 0, *SHOWN))


if __name__ == "__main__":
    PICTURE.parent.mkdir(exist_ok=True)
    picture().save(PICTURE, optimize=True)
