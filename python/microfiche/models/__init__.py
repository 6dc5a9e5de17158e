"""Models: what they bill for images, what they see and accept, how small they read."""

from __future__ import annotations

from .billing import image_tokens, rejects, resized, seen, side_limit
from .catalogue import (
    ManyImages,
    Model,
    Prices,
    Regime,
    catalogue,
    cell_for,
    find,
    regimes,
)
from .evidence import FIDELITIES, Cell, Fidelity, Reading
from .geometry import Geometry, cost_ratio, hug, never_pays, page
from .tokens import Count, Ruler, cost

__all__ = [
    "FIDELITIES",
    "Cell",
    "Count",
    "Fidelity",
    "Geometry",
    "ManyImages",
    "Model",
    "Prices",
    "Reading",
    "Regime",
    "Ruler",
    "catalogue",
    "cell_for",
    "cost",
    "cost_ratio",
    "find",
    "hug",
    "image_tokens",
    "never_pays",
    "page",
    "regimes",
    "rejects",
    "resized",
    "seen",
    "side_limit",
]
