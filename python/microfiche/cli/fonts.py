"""``microfiche fonts``: what there is to draw characters with that our own font lacks."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

import click

from microfiche.pages import atlas as atlases
from microfiche.pages.atlas import Atlas
from microfiche.pages.fonts import Font, atlas_for, fonts_of, installed
from microfiche.pages.render import Cell, Ink, draw

from .files import Target, examples, name_of, plain, print_table, read_bytes, table, write_one
from .options import font_option, inks, size

_WIDTH = 1568  # pixels of a specimen, as wide as a page for Claude
_SHOWN = 20


@click.command(epilog=examples("microfiche fonts notes.txt --font 'DejaVu Sans'", "microfiche fonts"))
@click.argument("texts", nargs=-1, metavar="[FILE]...", type=click.Path(path_type=Path, allow_dash=True))
@font_option
@click.option("--cell", metavar="WxH", callback=size, default="9x16", show_default=True, help="Pixels of a character.")
@click.option("--ink", type=inks, default="grey", show_default=True, help="Ink of the page.")
@click.option("--specimen", type=Target(), metavar="FILE", help="Draw every character there, as a PNG.")
@click.option(
    "--atlas", "glyphs", type=Target(), metavar="FILE", help="Write the glyphs of the cell and ink, to read pages by."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def fonts(
    texts: tuple[Path, ...],
    fonts: tuple[str, ...],
    cell: Cell,
    ink: Ink,
    specimen: Path | None,
    glyphs: Path | None,
    as_json: bool,
) -> None:
    """List the fonts of the user and of the system, or show what one can draw.

    With FILE or --font: how many characters are drawn at the cell, by our own font and by each --font, and
    which characters of the texts are not and would stand as their code points.
    """
    if not texts and not fonts and specimen is None and glyphs is None:
        _list(as_json)
        return
    chosen = fonts_of(fonts)
    atlas = atlas_for(chosen, cell, ink) if chosen else atlases.own(cell, ink)
    told: dict[str, Any] = {"cell": list(cell), "ink": ink, "atlas": atlas.digest, "fonts": _gains(chosen, cell, ink)}
    if texts:
        told["texts"] = [_coverage(path, atlas) for path in texts]
    if specimen is not None:
        write_one(specimen, _specimen(atlas))
        told["specimen"] = str(specimen)
    if glyphs is not None:
        write_one(glyphs, atlas.data)
        told["file"] = str(glyphs)
    if as_json:
        click.echo(json.dumps(told, indent=1))
        return
    click.echo(f"{cell[0]}x{cell[1]} {ink}")
    for each in told["fonts"]:
        click.echo(plain(f"{each['font']}: {each['characters']:,} characters{each['path'] and ', ' + each['path']}"))
    for each in told.get("texts", ()):
        click.echo(plain(_covered(each)))
    for file in (specimen, glyphs):
        if file is not None:
            click.echo(plain(f"Wrote {file}."))


def _list(as_json: bool) -> None:
    found = installed()
    if as_json:
        rows = [{"family": f.family, "style": f.style, "kind": f.kind, "path": str(f.path)} for f in found]
        click.echo(json.dumps(rows, indent=1))
        return
    made = table(family="left", style="left", kind="left", file="left")
    for font in found:
        made.add_row(plain(font.family), plain(font.style), font.kind, plain(str(font.path)))
    print_table(made)


def _gains(chosen: tuple[Font, ...], cell: Cell, ink: Ink) -> list[dict[str, Any]]:
    """How many characters our font draws, and how many each font adds to those before it."""
    before = len(atlases.own(cell, ink).characters())
    gains = [{"font": "our own", "path": "", "characters": before}]
    for at, font in enumerate(chosen, 1):
        now = len(atlas_for(chosen[:at], cell, ink).characters())
        gains.append({"font": font.name, "path": str(font.path), "characters": now - before})
        before = now
    return gains


def _coverage(path: Path, atlas: Atlas) -> dict[str, Any]:
    counts = Counter(read_bytes(path).decode("utf-8", "surrogateescape"))
    # These have marks.
    for mark in "\n\t":
        counts.pop(mark, None)
    missing = {each: count for each, count in counts.items() if not atlas.cells(each)}
    ranked = sorted(missing.items(), key=lambda item: (-item[1], item[0]))
    return {
        "source": name_of(path),
        "characters": counts.total(),
        "drawn": counts.total() - sum(missing.values()),
        "wide": sum(count for each, count in counts.items() if atlas.cells(each) == 2),
        "escapes": {f"U+{ord(each):04X}": count for each, count in ranked},
    }


def _covered(text: dict[str, Any]) -> str:
    share = text["drawn"] / text["characters"] if text["characters"] else 1
    line = f"{text['source']}: {text['drawn']:,} of {text['characters']:,} characters drawn ({share:.2%})"
    line += f", {text['wide']:,} of them wide" if text["wide"] else ""
    escapes = list(text["escapes"].items())
    named = [f"{code} {_name(code)} {count:,}" for code, count in escapes[:_SHOWN]]
    more = f"; and {len(escapes) - _SHOWN:,} more" if len(escapes) > _SHOWN else ""
    return f"{line}; as code points: {'; '.join(named)}{more}" if named else line


def _name(code: str) -> str:
    return unicodedata.name(chr(int(code[2:], 16)), "").lower() or "without a name"


def _specimen(atlas: Atlas) -> bytes:
    """Every character that is drawn, as a page: a line for each 256 code points, headed by the first."""
    lines: list[str] = []
    for character in atlas.characters():
        head = f"{ord(character) // 256 * 256:04x} "
        if not lines or not lines[-1].startswith(head):
            lines.append(head)
        lines[-1] += character
    text = "\n".join(lines)
    width, height = atlas.cell
    columns = _WIDTH // width
    # Two cells a character and a row a line are enough; the page is as high as its rows.
    rows = 2 + sum(-(-2 * len(line) // columns) + 1 for line in lines)
    cell: Cell = atlas.cell
    ink: Ink = "mono" if atlas.ink == "mono" else "grey"
    drawn = atlas if atlas != atlases.own(cell, ink) else None
    [page] = draw([text], cell=cell, ink=ink, width=_WIDTH, height=max(rows, 8) * height, lines="hard", atlas=drawn)
    return page.png
