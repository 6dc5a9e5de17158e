"""The page for a model and a cell: as large as was read with success, and never scaled by the provider.

All lengths are pixels, all costs input tokens of the model. Row 0 of a page is its legend.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING

from ..errors import PageTooSmall
from .billing import side_limit, view

if TYPE_CHECKING:
    from fractions import Fraction

    from .catalogue import Model, Regime
    from .evidence import Cell

# A page must hold its longest mark and the legend's first items (docs/page-format.md).
LEAST_COLUMNS = 12
LEAST_CELLS = 96

# Pages have to cost clearly less than the text they replace (R131 of the rung that asks).
PAYS_BELOW = 0.85


# Cells that are read better in short rows than in long ones (benches/NOTES.md, blind readings): narrower than the
# default one, which is read without error either way, and not so low that they are for the gist only.
NARROW_BELOW, NARROW_FROM = 9, 12


@dataclass(frozen=True, slots=True)
class Geometry:
    """A page: ``width`` × ``height`` px, ``cols`` × ``rows`` cells of ``cell`` px, the legend's row included.

    ``tokens`` is what a full page costs. ``grid`` is what page sides are multiples of, in px; its
    height is the page's own where pages are always full. ``min_height`` is the lowest that the
    last page may be.
    """

    width: int
    height: int
    cols: int
    rows: int
    cell: tuple[int, int]
    tokens: int
    grid: tuple[int, int]
    min_height: int

    @property
    def capacity(self) -> int:
        """Cells for content: all but the legend's."""
        return self.cols * (self.rows - 1)


def page(model: Model, cell: Cell | tuple[int, int], images: int = 0, evidence_only: bool = True) -> Geometry:
    """The page that ``model`` reads at ``cell``, in a request that holds ``images`` images in all.

    The largest page of the regime that has reading evidence (1568×784 px on Claude's patches, 392×1568 there for
    cells under 9 px wide and from 12 px high, 1584×1584 on Gemini's, 1568×1568 on 32-px patches), within the
    regime's frame where there is none; ``evidence_only=False`` gives the densest page that the provider takes
    untouched instead, and of such the largest. Neither is ever scaled or refused. For an unknown model it is
    672×672 px, which no regime of the catalogue scales down. Raises ``PageTooSmall`` if too few cells fit.
    """
    size = _size(cell)
    limit = side_limit(model, images)
    regime = model.regime
    frame = _frame(regime, size) if evidence_only else (regime.reach, regime.reach)
    if limit is not None:
        frame = min(frame[0], limit), min(frame[1], limit)
    found = _largest(regime, size, frame) if evidence_only else _densest(regime, size, frame)
    if found is None:
        raise PageTooSmall(
            f"a page of {frame[0]}×{frame[1]} px for {model.id} has too few cells of {size[0]}×{size[1]} px",
            cure="choose a smaller cell",
        )
    return found


def hug(model: Model, geometry: Geometry, rows_used: int) -> int:
    """Height in px of a page of ``geometry`` with ``rows_used`` rows of cells in use, the legend's included.

    The rows rounded up to the regime's grid; more where the provider would scale a lower page up,
    the full height where it bills or scales flat.
    """
    if not 0 < rows_used <= geometry.rows:
        raise ValueError(f"a page of {geometry.rows} rows cannot use {rows_used}")
    step = geometry.grid[1]
    height = ceil(rows_used * geometry.cell[1] / step) * step
    return min(max(height, geometry.min_height), geometry.height)


def cost_ratio(model: Model, cell: Cell | tuple[int, int], images: int = 0) -> Fraction:
    """Tokens of a full page over the estimated tokens of the text on it, one byte a cell.

    Above ``PAYS_BELOW`` a page does not pay. Reflow packs about 1.15 characters into a cell, which is
    left out here: half-empty last rows and the text beside the pages use it up.
    """
    geometry = page(model, cell, images)
    return geometry.tokens * model.bytes_per_token / geometry.capacity


def never_pays(model: Model, cell: Cell | tuple[int, int], images: int = 0) -> str | None:
    """Why pages at ``cell`` cost ``model`` as much as the text or more; ``None`` where they pay."""
    ratio = cost_ratio(model, cell, images)
    if ratio <= PAYS_BELOW:
        return None
    width, height = _size(cell)
    return (
        f"a full page of {width}x{height} cells costs {model.id} {float(ratio):.0%} of its text's tokens "
        f"({model.regime.name} billing)"
    )


def _size(cell: Cell | tuple[int, int]) -> tuple[int, int]:
    return cell if isinstance(cell, tuple) else (cell.width, cell.height)


def _frame(regime: Regime, cell: tuple[int, int]) -> tuple[int, int]:
    short = cell[0] < NARROW_BELOW and cell[1] >= NARROW_FROM
    return regime.narrow if regime.narrow and short else regime.page


def _up(length: int, step: int) -> int:
    """``length`` rounded up to a multiple of ``step``."""
    return -(-length // step) * step


def _untouched(regime: Regime, width: int, height: int) -> int | None:
    """Tokens of a page that the provider does not scale; ``None`` if it does."""
    sees = view(regime, width, height)
    return sees.tokens if sees[:2] == (width, height) else None


def _on_the_edge(regime: Regime, tokens: int) -> bool:
    """Whether the page uses up a budget to the last token.

    The provider's floating-point floor may then drop a row or column and resample the page.
    """
    return regime.rule == "gemini_budget" and tokens == regime.params["budgets"][regime.params["auto"]]


def _geometry(regime: Regime, cell: tuple[int, int], width: int, height: int) -> Geometry | None:
    tokens = _untouched(regime, width, height)
    cols, rows = width // cell[0], height // cell[1]
    if tokens is None or cols < LEAST_COLUMNS or cols * (rows - 1) < LEAST_CELLS:
        return None
    if _on_the_edge(regime, tokens):
        return None
    if regime.flat:
        return Geometry(width, height, cols, rows, cell, tokens, (regime.grid, height), height)
    least = height
    for low in range(regime.grid, height, regime.grid):
        price = _untouched(regime, width, low)
        if price is not None and price <= tokens:
            least = low
            break
    return Geometry(width, height, cols, rows, cell, tokens, (regime.grid, regime.grid), least)


@lru_cache(maxsize=256)
def _largest(regime: Regime, cell: tuple[int, int], frame: tuple[int, int]) -> Geometry | None:
    """The page with the most cells in the frame, of those the cheapest, of those the widest."""
    grid = regime.grid
    width, height = (side // grid * grid for side in frame)
    if not width or not height:
        return None
    if _untouched(regime, width, height) is None:
        sizes = [
            (w, h)
            for w in range(grid, width + 1, grid)
            for h in range(grid, height + 1, grid)
            if _untouched(regime, w, h) is not None
        ]
        if not sizes:
            return None

        def worth(size: tuple[int, int]) -> tuple[int, int, int]:
            cells = (size[0] // cell[0]) * (size[1] // cell[1])
            return cells, -view(regime, *size).tokens, size[0]

        width, height = max(sizes, key=worth)
    if not regime.flat:
        # Grid steps that hold no whole cell are billed for nothing.
        trimmed = _up(width // cell[0] * cell[0], grid), _up(height // cell[1] * cell[1], grid)
        if min(trimmed) > 0 and _untouched(regime, *trimmed) is not None:
            width, height = trimmed
    return _geometry(regime, cell, width, height)


@lru_cache(maxsize=64)
def _densest(regime: Regime, cell: tuple[int, int], frame: tuple[int, int]) -> Geometry | None:
    """The page of the frame with the most cells a token; of equals the one with the most cells.

    Then the squarest, then the widest.
    """
    pages: list[tuple[float, int, int, int, int]] = []
    for width in range(regime.grid, frame[0] + 1, regime.grid):
        for height in range(regime.grid, frame[1] + 1, regime.grid):
            cells = (width // cell[0]) * (height // cell[1])
            tokens = _untouched(regime, width, height) if cells else None
            if tokens is not None and not _on_the_edge(regime, tokens):
                pages.append((cells / tokens, cells, -max(width, height), width, height))
    return _geometry(regime, cell, *max(pages)[3:]) if pages else None
