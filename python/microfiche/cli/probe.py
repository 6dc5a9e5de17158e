"""``microfiche probe``: how small a model reads, measured."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from microfiche import formats
from microfiche import models as catalogue
from microfiche.models.evidence import FIDELITIES, Cell, add_readings, reasoning
from microfiche.models.names import parse
from microfiche.pages.render import Ink
from microfiche.reading import probe as probing
from microfiche.reading import senders
from microfiche.reading.score import Tally, interval

from .files import Target, examples, plain, print_table, table
from .options import Count, inks, model_words, sizes


@click.command(epilog=examples("microfiche probe --model claude-opus-5 --dry-run"))
@click.option(
    "--model",
    required=True,
    **model_words,
    help="The model that reads, and that the readings are kept of.",
)
@click.option("--cell", "cells", multiple=True, metavar="WxH", callback=sizes, help="Pixels of a character; several.")
@click.option("--ink", type=inks, default="grey", show_default=True, help="Ink of the pages.")
@click.option("--pages", type=Count(1, 99), default=probing.PAGES, show_default=True, help="Pages a cell.")
@click.option("--seed", type=int, default=1, show_default=True, help="What the pages are made from.")
@click.option(
    "--format", "wire", type=click.Choice(formats.WIRES), help="The client to send by.  [default: the model's]"
)
@click.option("--base-url", metavar="URL", help="Another address than the provider's.")
@click.option("--max-tokens", type=Count(1), default=16_000, show_default=True, help="The longest answer.")
@click.option("--reader", metavar="CMD", help="A program that reads in the model's place.")
@click.option(
    "--out", type=Target(), metavar="DIR", help="Keep pages, questions and answers there, and go on from them."
)
@click.option("--dry-run", is_flag=True, help="Print what it would cost, and ask nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def probe(
    model: str,
    cells: tuple[tuple[int, int], ...],
    ink: Ink,
    pages: int,
    seed: int,
    wire: str | None,
    base_url: str | None,
    max_tokens: int,
    reader: str | None,
    out: Path | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Measure how small a model reads, and keep that for the catalogue.

    Full pages at a series of cells are sent to the model, one a request, through its provider's official client and
    with the key that this finds. Asked are lines, identifiers, decisions, and things that a page never speaks of. The
    rates become readings of your own, which decide from then on how large pages are drawn for this model.
    """
    cells = cells or probing.CELLS
    probing.check(cells, pages)
    found = catalogue.find(model, vision=True)
    trials = probing.trials(found, cells, ink, pages, seed)
    costs = probing.costs(found, trials)
    if dry_run:
        _print_costs(model, costs, as_json)
        return
    total = _total(costs)
    estimate = f", about {total:.2f} USD" if total is not None and reader is None else ""
    click.echo(plain(f"{len(trials):,} pages for {reader or model}{estimate}"), err=True)
    opened = senders.program(reader) if reader else senders.client(wire or found.wire, model, max_tokens, base_url)
    with opened as asked:
        answers = probing.ask(trials, asked, out, lambda trial: click.echo(f"  {trial.name}", err=True))
    tallies = probing.score(trials, answers)
    before = catalogue.find(model)
    by = f"own probe through {'a program' if reader else f'the client of {wire or found.wire}'}"
    made = list(probing.readings(tallies, ink, by, datetime.now(UTC).strftime("%Y-%m"), seed))
    kept = add_readings(parse(model).bare, made)
    after = catalogue.find(model)
    if as_json:
        told = [{"cell": list(cell), "ink": ink, "counts": tally.counts} for cell, tally in tallies.items()]
        chosen = {fidelity: str(after.cells[fidelity]) for fidelity in FIDELITIES}
        click.echo(json.dumps({"model": after.id, "cells": told, "chosen": chosen, "kept": str(kept)}, indent=1))
        return
    _print_rates(tallies)
    click.echo()
    for fidelity, why in reasoning(after.readings, after.cells):
        click.echo(plain(f"{fidelity:<9}{why}{_was(before.cells[fidelity], after.cells[fidelity])}"))
    click.echo(plain(f"\nKept in {kept}."))


def _was(before: Cell, after: Cell) -> str:
    return f" (was {before})" if str(before) != str(after) else ""


def _total(costs: list[probing.Cost]) -> float | None:
    """USD, ``None`` where no price is known."""
    known = [cost.money for cost in costs if cost.money is not None]
    return sum(known) if len(known) == len(costs) else None


def _print_costs(model: str, costs: list[probing.Cost], as_json: bool) -> None:
    rows: list[dict[str, Any]] = [
        {
            "cell": list(cost.cell), "requests": cost.requests, "questions": cost.questions,
            "input_tokens": cost.input_tokens, "output_tokens": cost.output_tokens, "usd": cost.money,
        }
        for cost in costs
    ]  # fmt: skip
    total = _total(costs)
    if as_json:
        click.echo(json.dumps({"model": model, "cells": rows, "usd": total}, indent=1))
        return
    made = table(cell="left", requests="right", questions="right", tokens_in="right", tokens_out="right", USD="right")
    for row in rows:
        money = "unknown" if row["usd"] is None else f"{row['usd']:.2f}"
        cell = f"{row['cell'][0]}x{row['cell'][1]}"
        made.add_row(
            cell, f"{row['requests']:,}", f"{row['questions']:,}", f"{row['input_tokens']:,}",
            f"{row['output_tokens']:,}", money,
        )  # fmt: skip
    print_table(made)
    price = "The price of the model is not known." if total is None else f"About {total:.2f} USD"
    more = "" if total is None else ", more if the model thinks before it answers."
    click.echo(f"\n{price}{more} Nothing was sent (--dry-run).")


def _print_rates(tallies: dict[tuple[int, int], Tally]) -> None:
    made = table(cell="left", counted="left", right="right", rate="right", interval_95="left")
    for cell, tally in tallies.items():
        for what, (right, n) in tally.counts.items():
            low, high = interval(right, n)
            made.add_row(f"{cell[0]}x{cell[1]}", what, f"{right}/{n}", f"{right / n:.0%}", f"{low:.0%} to {high:.0%}")
    print_table(made)
