"""``microfiche models``: the catalogue."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import click

from microfiche import models as catalogue
from microfiche.models import FIDELITIES, Model, Reading
from microfiche.models.evidence import reasoning

from .files import examples, plain, print_table, table

_MATCHES = {
    "exact": "a row of the catalogue",
    "older": "no row of its own: the newest older version of its line answers for it",
    "family": "no row of its line: what is common to its provider's models",
    "unknown": "no provider is known by this name: the safest assumptions",
}


@click.command(epilog=examples("microfiche models --explain claude-opus-5", "microfiche models"))
@click.option("--explain", metavar="MODEL", help="Everything that is known of one model, and where it comes from.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def models(explain: str | None, as_json: bool) -> None:
    """List the models: what they bill, what they accept, and how small they read.

    A name is answered by its own row, else by the newest older version of the same line. Cells are the
    pixels of one character on a page, for the fidelities exact, working and gist; where nothing has been
    measured that is 9x16. Prices are USD for a million tokens.
    """
    if explain is not None:
        model = catalogue.find(explain)
        if as_json:
            click.echo(json.dumps(_data(model), indent=1))
        else:
            for label, line in _explained(model):
                click.echo(plain(f"{label:<14}{line}"))
    elif as_json:
        click.echo(json.dumps([_data(model) for model in catalogue.catalogue()], indent=1))
    else:
        _list()


def _list() -> None:
    made = table(
        model="left", window="right", output="right", USD_in="right", USD_out="right", cells="left", page="right",
        tokens="right",
    )  # fmt: skip
    for model in catalogue.catalogue():
        page = catalogue.page(model, catalogue.cell_for(model)) if model.vision else None
        made.add_row(
            model.id,
            _number(model.context_window),
            _number(model.max_output),
            _money(model.prices.input),
            _money(model.prices.output),
            " ".join(str(model.cells[fidelity]) for fidelity in FIDELITIES) if model.vision else _images(model),
            f"{page.width}x{page.height}" if page else "",
            _number(page.tokens) if page else "",
        )
    print_table(made)


def _explained(model: Model) -> Iterator[tuple[str, str]]:
    yield "model", f"{model.name}: {_MATCHES[model.match]}"
    if model.match == "older":
        yield "answered by", model.id
    yield "provider", f"{model.provider}, requests as {model.wire}"
    window = f"{model.context_window:,} tokens" if model.context_window else "unknown"
    output = f"{model.max_output:,} tokens" if model.max_output else "unknown"
    yield "window", f"{window}, output {output}"
    yield "price", _prices(model)
    yield "images", _images(model)
    ratio = float(model.bytes_per_token)
    yield "tokens", f"estimated as UTF-8 bytes / {ratio:g}; images by the rule {model.regime.name}"
    for reading in model.readings:
        yield "reading", f"{reading}{_grades(reading)}"
    if model.vision:
        for fidelity, why in reasoning(model.readings, model.cells):
            yield fidelity, why
            yield "", _page(model, fidelity)
    yield "source", model.source or "none"
    yield "as of", model.date or "unknown"
    if model.unverified:
        yield "unverified", model.unverified


def _prices(model: Model) -> str:
    prices = model.prices
    if prices.input is None:
        return "unknown"
    known = {"input": prices.input, "cached": prices.cached, "cache write": prices.cache_write, "output": prices.output}
    line = ", ".join(f"{name} {_money(value)}" for name, value in known.items() if value is not None)
    if prices.threshold is not None:
        line += f"; input {_money(prices.input_above)} for requests of more than {prices.threshold:,} tokens"
    return f"{line} (USD for a million tokens)"


def _images(model: Model) -> str:
    if not model.vision:
        return "reads none" if model.vision is False else "not known whether it reads any"
    limits = [f"in {' and '.join(sorted(model.image_roles))} messages"]
    if model.images_per_request is not None:
        limits.append(f"up to {model.images_per_request:,} in a request")
    if model.max_side is not None:
        limits.append(f"sides up to {model.max_side:,} px")
    if model.many_images is not None:
        limits.append(f"with more than {model.many_images.count} of them up to {model.many_images.side:,} px")
    return ", ".join(limits)


def _grades(reading: Reading) -> str:
    grades = [fidelity for fidelity in FIDELITIES if fidelity in reading.grades]
    return f" ({', '.join(grades)})" if grades else " (no grade)"


def _page(model: Model, fidelity: catalogue.Fidelity) -> str:
    cell = catalogue.cell_for(model, fidelity)
    page = catalogue.page(model, cell)
    pays = catalogue.never_pays(model, cell)
    worth = f"; {pays}" if pays else f", {float(catalogue.cost_ratio(model, cell)):.0%} of its text's tokens"
    return f"a page of {page.width}x{page.height} px holds {page.capacity:,} cells for {page.tokens:,} tokens{worth}"


def _data(model: Model) -> dict[str, Any]:
    """A model as plain data, with the page of each fidelity if it reads images."""
    plain_fields = (
        "name", "id", "provider", "match", "wire", "line", "version", "vision", "context_window", "max_output",
        "images_per_request", "max_side", "image_bytes", "request_bytes", "source", "date", "unverified",
    )  # fmt: skip
    data: dict[str, Any] = {name: getattr(model, name) for name in plain_fields}
    data["regime"] = model.regime.name
    data["bytes_per_token"] = float(model.bytes_per_token)
    data["image_roles"] = sorted(model.image_roles)
    data["many_images"] = None if model.many_images is None else asdict(model.many_images)
    data["prices"] = asdict(model.prices)
    data["readings"] = [asdict(each) | {"grades": sorted(each.grades)} for each in model.readings]
    data["cells"] = {fidelity: asdict(model.cells[fidelity]) for fidelity in FIDELITIES}
    if model.vision:
        pages = {fidelity: catalogue.page(model, model.cells[fidelity]) for fidelity in FIDELITIES}
        data["pages"] = {fidelity: {**asdict(page), "capacity": page.capacity} for fidelity, page in pages.items()}
    return data


def _number(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"


def _money(value: float | None) -> str:
    return "unknown" if value is None else f"{value:g}"
