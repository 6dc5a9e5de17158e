"""The catalogue of models: the data of ``catalogue.json`` as objects, and the look-up by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from microfiche.errors import BadInput

from .evidence import FIDELITIES, Cell, Fidelity, Reading, cells_of, reading_of, user_readings
from .names import Name, parse

if TYPE_CHECKING:
    from fractions import Fraction

Wire = Literal["anthropic", "openai_chat", "openai_responses", "gemini"]


@dataclass(frozen=True, slots=True)
class Prices:
    """USD per million tokens; ``None`` is unknown.

    A request with more than ``threshold`` input tokens pays ``input_above`` for all of its input.
    """

    input: float | None = None
    cached: float | None = None
    cache_write: float | None = None
    output: float | None = None
    threshold: int | None = None
    input_above: float | None = None


@dataclass(frozen=True, slots=True)
class ManyImages:
    """A request with more than ``count`` images may hold none with a side above ``side`` px."""

    count: int
    side: int


@dataclass(frozen=True, eq=False)
class Regime:
    """How images are scaled and billed.

    ``rule`` names the function of :mod:`.billing` that does it with ``params``. ``page`` is the
    largest page (width, height in px) with reading evidence or, where there is none, the frame
    that pages stay in; ``narrow`` is the page for the small cells that were read better in short
    rows than in long ones. Page sides are multiples of ``grid`` px. Under a ``flat`` regime a lower page
    costs the same or is scaled, so pages have their full height. ``reach`` is the longest side in
    px that is worth a try beyond the evidence.
    """

    name: str
    rule: str
    params: Mapping[str, Any] = field(repr=False)
    page: tuple[int, int]
    grid: int
    flat: bool
    reach: int
    source: str = field(repr=False)
    status: str = field(repr=False)
    narrow: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Model:
    """What a model bills, sees and accepts, and how small it reads. ``None`` is unknown, everywhere.

    ``name`` is what was asked for, ``id`` the row that answers, ``match`` how they meet: ``exact``,
    ``older`` (the newest older version of the line), ``family`` (a provider's common ground: billing,
    roles and limits, but no window, price, sight or evidence) or ``unknown``.
    ``wire`` is the format of the provider's own requests; providers without one of the four take
    OpenAI's Chat Completions, OpenAI itself too, since every gateway speaks it.
    ``context_window`` and ``max_output`` are tokens; the window holds input and output together, but
    where the vendor parts them (OpenAI since GPT-5) it is the input's. ``vision`` tells whether the model reads images.
    ``max_side`` is px, ``many_images`` a tighter limit for many of them, ``image_bytes`` the largest
    image in bytes of base64, ``request_bytes`` the largest request body. ``image_roles`` are the
    places that may hold images: ``user``, and ``tool`` for results, as far as the wire has room for it.
    ``bytes_per_token`` is the UTF-8 bytes that an estimate counts as one token. ``cells`` gives the
    cell for each fidelity, as it follows from ``readings`` (:mod:`.evidence`), the catalogue's and the user's own.
    """

    name: str
    id: str
    provider: str
    match: Literal["exact", "older", "family", "unknown"]
    wire: Wire
    line: str
    version: tuple[int, ...]
    regime: Regime
    vision: bool | None
    bytes_per_token: Fraction
    cells: Mapping[Fidelity, Cell] = field(repr=False, hash=False)
    context_window: int | None = None
    max_output: int | None = None
    prices: Prices = Prices()
    images_per_request: int | None = None
    max_side: int | None = None
    many_images: ManyImages | None = None
    image_bytes: int | None = None
    request_bytes: int | None = None
    image_roles: frozenset[str] = frozenset({"user"})
    readings: tuple[Reading, ...] = field(repr=False, default=())
    source: str = ""
    date: str = ""
    unverified: str | None = None

    @property
    def known(self) -> bool:
        """Whether a row of the catalogue answers for the model."""
        return self.match in ("exact", "older")


def find(name: str, vision: bool | None = None) -> Model:
    """The model called ``name``: its row, else the newest older version of the same line.

    Hosts before the name (``anthropic/``, ``us.anthropic.``, ``openrouter/…``, ``models/``), dates
    (``-20250929``, ``@20250101``) and variants (``-v1:0``, ``:free``, ``-latest``) do not matter; a
    host with limits of its own (Bedrock, Vertex, Azure, Groq …) lowers those of the model. A line
    is never answered by another line. Reading evidence belongs to the version that was measured,
    so a row that answers for a newer version gives the default cell.

    A name older than every row of its line, or of no line, of a provider that the name tells: match
    ``family``, ``vision`` unknown. Any other name: match ``unknown``, ``vision`` false.
    ``vision`` overrides what the catalogue says; the caller answers for it. The user's own readings of exactly this
    model (:func:`.evidence.user_readings`) count like the catalogue's; what was read from pages has vision.
    :class:`~microfiche.errors.BadInput` if ``vision`` is neither true nor false.
    """
    if vision is not None and not isinstance(vision, bool):
        raise BadInput(
            f"{vision!r} is neither true nor false", "vision", "pass True, False, or None for the catalogue's"
        )
    asked = parse(name)
    model = _look_up(asked)
    changes: dict[str, Any] = {"name": name}
    own = user_readings().get(asked.bare, ())
    if own:
        readings = (model.readings if model.match == "exact" else ()) + own
        changes |= {"readings": readings, "cells": cells_of(readings, _data().default_cell)}
        changes |= {"vision": True} if not model.known else {}
    if vision is not None:
        changes["vision"] = vision
    return replace(model, **changes)


def catalogue() -> tuple[Model, ...]:
    """Every row of the catalogue."""
    return tuple(model for model, _ in _data().rows)


def regimes() -> tuple[Regime, ...]:
    """Every billing regime, those of no row (the stand-in for unknown models, old caps) included."""
    return tuple(_data().regimes.values())


def cell_for(model: Model, fidelity: Fidelity = "exact") -> Cell:
    """The smallest cell that ``model`` is known to read at ``fidelity``, 9×16 grey where nothing is known.

    What each grade asks for is told in :mod:`.evidence`. Raises :class:`~microfiche.errors.BadInput` for another word.
    """
    if fidelity not in FIDELITIES:
        raise BadInput(f'no fidelity "{fidelity}"', "fidelity", f"it is one of {', '.join(FIDELITIES)}")
    return model.cells[fidelity]


@dataclass(frozen=True, slots=True)
class _Data:
    raw: dict[str, Any]
    regimes: dict[str, Regime]
    default_cell: Cell
    rows: tuple[tuple[Model, Name], ...]


@cache
def _data() -> _Data:
    from pathlib import Path  # needed once, and slow to import

    raw = json.loads(Path(__file__).with_name("catalogue.json").read_text("utf-8"))
    regimes = {name: _regime(name, row) for name, row in raw["regimes"].items()}
    cell = Cell(**{**raw["default_cell"], "grade": "default"})
    rows = []
    for row in raw["models"]:
        name = parse(row["id"])
        if "version" in row:
            name = name._replace(version=tuple(row["version"]))
        rows.append((_model(raw, regimes, cell, name, row), name))
    return _Data(raw, regimes, cell, tuple(rows))


def _regime(name: str, row: dict[str, Any]) -> Regime:
    sizes: dict[str, Any] = {key: tuple(row[key]) for key in ("page", "narrow") if key in row}
    return Regime(name, **{**row, **sizes})


def _provider(raw: dict[str, Any], line: str) -> str:
    provider: str = raw["families"].get(line.split("-")[0], "unknown")
    return provider


def _tier(provider: dict[str, Any], version: tuple[int, ...]) -> dict[str, Any]:
    """The provider's rules for models of this version: those of the last tier that it reaches."""
    tiers: list[dict[str, Any]] = provider["tiers"]
    return [tier for tier in tiers if tuple(tier["since"]) <= version or tier is tiers[0]][-1]


def _model(raw: dict[str, Any], regimes: dict[str, Regime], default: Cell, name: Name, row: dict[str, Any]) -> Model:
    """A model from its provider's common ground and, where there is one, its row."""
    from fractions import Fraction  # costs a tenth of the package's whole import

    provider_name = _provider(raw, name.line)
    provider = raw["providers"][provider_name]
    tier = _tier(provider, name.version)
    regime = regimes[row.get("regime", tier["regime"])]
    prices = dict(row.get("prices", {}))
    threshold, above = prices.pop("above", (None, None))
    many = provider["many_images"]
    readings = tuple(reading_of(each, f"catalogue, {row['id']}") for each in row.get("readings", ()))
    sources = (row.get("source"), provider["source"], regime.source)
    return Model(
        name=name.bare,
        id=row.get("id", name.bare),
        provider=provider_name,
        match="exact" if row else "unknown" if provider_name == "unknown" else "family",
        wire=provider["wire"],
        line=name.line,
        version=name.version,
        regime=regime,
        vision=row["vision"] if row else False if provider_name == "unknown" else None,
        bytes_per_token=Fraction(tier["bytes_per_token"]),
        cells=cells_of(readings, default),
        context_window=row.get("context_window"),
        max_output=row.get("max_output"),
        prices=Prices(**prices, threshold=threshold, input_above=above),
        images_per_request=row.get("images_per_request", provider["images_per_request"]),
        max_side=provider["max_side"],
        many_images=ManyImages(*many) if many else None,
        image_bytes=provider["image_bytes"],
        request_bytes=provider["request_bytes"],
        image_roles=frozenset(row.get("image_roles", provider["image_roles"])),
        readings=readings,
        source="; ".join(source for source in sources if source),
        date=row.get("date", raw["as_of"]),
        unverified=row.get("unverified"),
    )


def _look_up(name: Name) -> Model:
    data = _data()
    model = next((model for model, row in data.rows if row.bare == name.bare), None) or _newest(data, name)
    if model is None:
        model = _model(data.raw, data.regimes, data.default_cell, name, {})
    return _hosted(data, model, name.hosts)


def _newest(data: _Data, name: Name) -> Model | None:
    """The row of the name's line with its version, else with the newest older one."""
    line = [
        (row.version, model)
        for model, row in data.rows
        if row.line == name.line and (row.stamp == name.stamp or not row.version)
    ]
    asked_newest = name.newest and not name.version
    older = [(version, model) for version, model in line if version <= name.version or asked_newest]
    if not older:
        return None
    version, model = max(older, key=lambda each: each[0])
    if version == name.version:
        return model
    if asked_newest:
        return replace(model, match="older")
    # A row's own regime holds for its version; where the provider has a rule by version, that decides.
    provider = data.raw["providers"][model.provider]
    tier, asked = _tier(provider, version), _tier(provider, name.version)
    changes: dict[str, Any] = {}
    if tier is not asked:
        fresh = _model(data.raw, data.regimes, data.default_cell, name, {})
        changes = {
            "regime": fresh.regime,
            "bytes_per_token": fresh.bytes_per_token,
            "image_roles": fresh.image_roles,
        }
    return replace(model, match="older", cells=dict.fromkeys(FIDELITIES, data.default_cell), readings=(), **changes)


def _hosted(data: _Data, model: Model, hosts: tuple[str, ...]) -> Model:
    """The model with the limits of the hosts it is called through, where they are tighter."""
    changes: dict[str, int] = {}
    for host in data.raw["hosts"].values():
        if not set(host["names"]).isdisjoint(hosts):
            for limit in ("images_per_request", "image_bytes", "request_bytes"):
                own = changes.get(limit, getattr(model, limit))
                if limit in host:
                    changes[limit] = min(each for each in (own, host[limit]) if each is not None)
    changed: dict[str, Any] = dict(changes)
    return replace(model, **changed) if changed else model
