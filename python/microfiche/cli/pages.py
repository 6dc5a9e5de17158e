"""``microfiche render`` and ``microfiche read``: any text to pages, and pages back to text."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from microfiche.errors import BadPage, MicroficheError, NoVision
from microfiche.models import Fidelity
from microfiche.pages.render import OWN_CHUNK, Cell, Ink, Level, Lines, Page, Segment, read_back, series
from microfiche.pages.render import render as draw_text

from .files import STDIN, Target, examples, name_of, plain, read_bytes, write_all, write_one
from .options import Count, fidelity_option, font_option, inks, level_option, model_words, size, vision_option

# A text chunk that every page of ours has behind its header.


@click.command(
    epilog=examples(
        "microfiche render notes.txt src/main.rs --model claude-opus-5 --out pages/",
        "git diff | microfiche render - --cell 7x14 --out pages/",
    )
)
@click.argument("texts", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--out", required=True, type=Target(), metavar="DIR", help="Where the pages go.")
@click.option("--model", **model_words, help="The model that will read them: decides cell and page.")
@click.option(
    "--cell", metavar="WxH", callback=size, help="Pixels of one character, 4x6 to 16x32.  [default: the model's]"
)
@click.option("--ink", type=inks, help="Four grey levels or one bit.  [default: the model's, else grey]")
@click.option(
    "--lines",
    type=click.Choice(("flow", "hard")),
    default="flow",
    show_default=True,
    help="Run on after a line break, or begin a new row.",
)
@fidelity_option
@level_option
@click.option("--width", type=Count(1, 16_384), help="Pixels of a page.  [default: the model's, else 1568]")
@click.option("--height", type=Count(1, 16_384), help="Pixels of a page.  [default: the model's, else 784]")
@vision_option
@font_option
@click.option("--json", "as_json", is_flag=True, help="Print what was drawn as JSON.")
def render(
    texts: tuple[Path, ...],
    out: Path,
    model: str | None,
    cell: Cell | None,
    ink: Ink | None,
    lines: Lines,
    fidelity: Fidelity,
    level: Level,
    width: int | None,
    height: int | None,
    vision: bool | None,
    fonts: tuple[str, ...],
    as_json: bool,
) -> None:
    """Draw texts on pages.

    Each FILE (- for standard input) becomes a series of its own, NAME-001.png and so on. Pages that an
    earlier run wrote under these names are replaced, other files never. Bytes that are no UTF-8 stand on
    the pages as escapes, and read gives them back.
    """
    if model is None and cell is None:
        raise click.UsageError("give --model, or --cell to draw for none")
    stems = [_stem(path) for path in texts]
    for stem in stems:
        if stems.count(stem) > 1:
            raise click.UsageError(f"two files would be written as {plain(stem)}-001.png: rename one")

    files: dict[str, bytes] = {}
    drawn: list[dict[str, Any]] = []
    for path, stem in zip(texts, stems, strict=True):
        text, undecoded = _decode(read_bytes(path))
        try:
            pages = draw_text(
                text,
                model=model,
                fidelity=fidelity,
                cell=cell,
                ink=ink,
                lines=lines,
                level=level,
                width=width,
                height=height,
                vision=vision,
                font=fonts,
            )
        except NoVision as error:
            raise NoVision(error.what, cure="name a model that does, or give --vision if this one does") from error
        names = series(stem, (page.number for page in pages))
        files.update(zip(names, (page.png for page in pages), strict=True))
        drawn.append(_summary(path, text, undecoded, dict(zip(names, pages, strict=True))))
    write_all(out, files, _pages_before(out, stems))

    if as_json:
        click.echo(json.dumps({"files": drawn}, indent=1))
    for each in drawn:
        click.echo(_line(each, model, out), err=as_json)
        if each["undecoded"]:
            click.echo(f"{plain(each['source'])}: {each['undecoded']:,} bytes are no UTF-8: escaped", err=True)


def _stem(path: Path) -> str:
    return "stdin" if path == STDIN else path.stem


def _decode(data: bytes) -> tuple[str, int]:
    """The text, with bytes that are no UTF-8 as lone surrogates (PEP 383), and how many those are."""
    try:
        return data.decode("utf-8"), 0
    except UnicodeDecodeError:
        text = data.decode("utf-8", "surrogateescape")
        return text, len(re.findall("[\udc80-\udcff]", text))


def _summary(path: Path, text: str, undecoded: int, pages: dict[str, Page]) -> dict[str, Any]:
    escapes: dict[str, int] = {}
    for page in pages.values():
        for character, count in page.escapes.items():
            code = f"U+{ord(character):04X}"
            escapes[code] = escapes.get(code, 0) + count
    return {
        "source": name_of(path),
        "characters": len(text),
        "undecoded": undecoded,
        "escapes": dict(sorted(escapes.items(), key=lambda item: (-item[1], item[0]))),
        "pages": [
            {
                "file": name,
                "width": page.width,
                "height": page.height,
                "cell": list(page.cell),
                "ink": page.ink,
                "tokens": page.tokens,
                "characters": len(page.text),
                "bytes": len(page.png),
                "digest": page.digest,
            }
            for name, page in pages.items()
        ],
    }


def _line(drawn: dict[str, Any], model: str | None, out: Path) -> str:
    pages = drawn["pages"]
    if not pages:
        return plain(f"{drawn['source']}: empty, no page")
    names = pages[0]["file"] if len(pages) == 1 else f"{pages[0]['file']} to {pages[-1]['file']}"
    cell = "x".join(map(str, pages[0]["cell"]))
    cost = f", {sum(page['tokens'] for page in pages):,} tokens for {model}" if model is not None else ""
    escaped = sum(drawn["escapes"].values())
    note = f", {escaped:,} escaped" if escaped else ""
    return plain(
        f"{drawn['source']}: {drawn['characters']:,} characters on {len(pages):,} "
        f"page{'' if len(pages) == 1 else 's'} at {cell} {pages[0]['ink']}{cost}{note}: {names} in {out}"
    )


def _pages_before(out: Path, stems: Sequence[str]) -> list[str]:
    """The pages of these series that stand in ``out``, by what is in the files, not by their names alone."""
    if not out.is_dir():
        return []
    ours = re.compile(f"({'|'.join(map(re.escape, stems))})-[0-9]{{3,9}}\\.png")
    return sorted(path.name for path in out.iterdir() if ours.fullmatch(path.name) and _is_page(path))


def _is_page(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return OWN_CHUNK in file.read(400)


@click.command(epilog=examples("microfiche read pages/notes-*.png > notes.txt", "microfiche read page-001.png --marks"))
@click.argument("pages", nargs=-1, required=True, metavar="PAGE...", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--cell", metavar="WxH", callback=size, help="Pixels of one character.  [default: tried out]")
@click.option("--ink", type=inks, help="[default: tried out]")
@font_option
@click.option("--marks", is_flag=True, help="Print bars and texts as JSON, one a line.")
@click.option("--out", type=Target(), metavar="FILE", help="Write there, not to standard output.")
def read(
    pages: tuple[Path, ...],
    cell: Cell | None,
    ink: Ink | None,
    fonts: tuple[str, ...],
    marks: bool,
    out: Path | None,
) -> None:
    """Read pages back to the text that they were drawn from, exactly and from their pixels alone.

    Pages are taken in the order given. A page that another program saved again reads the same as long as
    it was not scaled or blurred. One that was drawn with --font is read with the same.
    """
    images = [(name_of(path), read_bytes(path)) for path in pages]
    try:
        segments = read_back([image for _, image in images], cell, ink, marks=True, font=fonts)
    except BadPage as error:
        raise _named(error, images, cell, ink, fonts) from error
    data = b"".join(_marked(segments)) if marks else _encode("".join(s for s in segments if isinstance(s, str)))
    if out is not None:
        write_one(out, data)
    else:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def _named(
    error: BadPage,
    images: Sequence[tuple[str, bytes]],
    cell: Cell | None,
    ink: Ink | None,
    fonts: tuple[str, ...],
) -> MicroficheError:
    """The error with the name of the file it is about: the first that cannot be read by itself."""
    cure = error.cure or "give the pages as they were drawn, in their order"
    for name, image in images:
        try:
            read_back(image, cell, ink, font=fonts)
        except BadPage as own:
            return BadPage(own.what, name, own.cure or cure)
    return BadPage(error.what, ", ".join(name for name, _ in images[:3]), cure)


def _marked(segments: Sequence[Segment]) -> Iterator[bytes]:
    for segment in segments:
        form = {"text": segment} if isinstance(segment, str) else {"turn": segment.turn, "kind": segment.kind}
        yield json.dumps(form).encode("ascii") + b"\n"


def _encode(text: str) -> bytes:
    """UTF-8. Lone surrogates are the bytes that they stand for (PEP 383), or three bytes if some stand for none."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
