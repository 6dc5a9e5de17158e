"""``microfiche bench``: how much pages hold, and how well they are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import click

from microfiche import density, formats
from microfiche.errors import BadInput
from microfiche.pages.render import Cell, Lines
from microfiche.reading import ocr

from .files import examples, name_of, plain, print_table, read_bytes, table
from .options import Count, Share, inks, model_words, sizes

_READERS = "rapidocr"


@click.command(
    epilog=examples(
        "microfiche bench density session.jsonl --model claude-opus-5",
        "microfiche bench reading --cell 7x14 --reader ./read-line",
    )
)
@click.argument("what", metavar="density|reading")
@click.argument("sessions", nargs=-1, metavar="[SESSION]...", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--model",
    "names",
    multiple=True,
    **model_words,
    help="density: a model; may be given several times.",
)
@click.option("--cell", "cells", multiple=True, metavar="WxH", callback=sizes, help="Pixels of a character; several.")
@click.option("--ink", "inks", multiple=True, type=inks, help="Several.  [default: grey]")
@click.option("--lines", "layouts", multiple=True, type=click.Choice(get_args(Lines)), help="density.  [default: both]")
@click.option("--characters", type=Count(1), help="density: of each kind of text at most so many.")
@click.option("--scale", "scales", multiple=True, type=Share(0.1, 4), help="reading.  [default: 1 and 0.75]")
@click.option(
    "--reader", metavar="CMD", help="reading: a program that prints what a PNG file says.  [default: rapidocr]"
)
@click.option("--count", type=Count(1), default=40, show_default=True, help="reading: lines of each kind.")
@click.option("--seed", type=int, default=1, show_default=True, help="What made texts are made from.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def bench(what: str, sessions: tuple[Path, ...], as_json: bool, **options: Any) -> None:
    """Measure how much text pages hold (density) or how well an independent reader reads them (reading).

    density draws the text of SESSIONs (else made text) for models, cells and layouts. Every row says how well
    the model is known to read that cell. reading has a program read lines that were made from the seed, natively and
    resampled, and counts what it confuses.
    """
    rows: list[dict[str, Any]]
    if what == "density":
        _refuse(what, options, ("scales", "reader"))
        rows = _density(sessions, options)
    elif what == "reading":
        _refuse(what, options, ("names", "layouts", "characters"))
        if sessions:
            raise click.UsageError("reading takes no SESSION: its lines are made from --seed")
        rows = _reading(options)
    else:
        raise click.UsageError(f"no bench is called {plain(what)!r}: it is density or reading")
    if as_json:
        click.echo(json.dumps({"bench": what, "seed": options["seed"], "rows": rows}, indent=1, ensure_ascii=False))
    elif what == "density":
        _print_density(rows)
    else:
        _print_reading(rows)


def _refuse(what: str, options: dict[str, Any], others: tuple[str, ...]) -> None:
    flags = {"names": "--model", "layouts": "--lines", "scales": "--scale"}
    for name in others:
        if options[name]:
            raise click.UsageError(f"{flags.get(name, f'--{name}')} is not for {what}")


def _density(sessions: tuple[Path, ...], options: dict[str, Any]) -> list[dict[str, Any]]:
    if sessions:
        texts = density.texts_of(formats.read(read_bytes(path), where=name_of(path)) for path in sessions)
        if not texts:
            raise BadInput("there is no text", ", ".join(map(name_of, sessions)), "give sessions that say something")
    else:
        texts = density.sample(options["seed"])
    made = density.measure(
        texts,
        options["names"] or density.MODELS,
        options["cells"] or density.CELLS,
        options["inks"] or ("grey",),
        options["layouts"] or get_args(Lines),
        options["characters"] or density.CHARACTERS,
    )
    return [row.to_dict() for row in made]


def _print_density(rows: list[dict[str, Any]]) -> None:
    made = table(
        model="left", text="left", cell="left", ink="left", lines="left", reads="left", cells_a_char="right",
        chars_a_page="right", chars_a_token="right", bytes_a_char="right", gain="right",
    )  # fmt: skip
    for row in rows:
        made.add_row(
            row["model"],
            row["text"],
            _size(row["cell"]),
            row["ink"],
            row["lines"],
            row["grade"],
            f"{row['cells_per_character']:.2f}",
            f"{row['characters_per_page']:,.0f}",
            f"{row['characters_per_token']:.2f}",
            f"{row['bytes_per_character']:.2f}",
            f"{row['gain']:.2f}",
        )
    print_table(made)
    click.echo(
        "\nreads: the fidelity at which the model is known to read this cell; default: 9x16 grey and more without"
        "\nevidence; none: no evidence. gain: tokens of the text, as estimated for the model, over those of its pages."
    )


def _reading(options: dict[str, Any]) -> list[dict[str, Any]]:
    command = options["reader"]
    reader = ocr.rapidocr() if command is None else ocr.program(command)
    lines = ocr.texts(options["seed"], options["count"])
    cells = options["cells"] or density.CELLS
    scales = options["scales"] or (1.0, 0.75)
    name = command or _READERS
    return [row.to_dict() for row in ocr.measure(reader, name, lines, cells, options["inks"] or ("grey",), scales)]


def _print_reading(rows: list[dict[str, Any]]) -> None:
    made = table(
        cell="left", ink="left", scale="right", text="left", errors="right", ids="right", commonest_edits="left"
    )
    for row in rows:
        worst = " ".join(f"{edit}×{n}" if n > 1 else edit for edit, n in list(row["confusions"].items())[:12])
        made.add_row(
            _size(row["cell"]), row["ink"], f"{row['scale']:g}", row["text"], f"{row['cer']:.2%}",
            f"{row['found']}/{row['identifiers']}", plain(worst),
        )  # fmt: skip
    print_table(made)


def _size(cell: Cell) -> str:
    return f"{cell[0]}x{cell[1]}"
