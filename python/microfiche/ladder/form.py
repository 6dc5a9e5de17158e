"""The form of pages: which cell, which size, and text drawn in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from microfiche.models import Fidelity, Model, cell_for, page
from microfiche.pages.render import Ink, Page, Segment, draw


@dataclass(frozen=True, slots=True)
class Form:
    """The form of the pages: cell and page in pixels; the last page's height is a multiple of ``grid``.

    ``grid`` 0 means full height always; ``least`` is the smallest height that is not resized.
    """

    cell: tuple[int, int]
    ink: Ink
    width: int
    height: int
    grid: int
    least: int = 0

    def draw(self, segments: Sequence[Segment], first: int = 1) -> list[Page]:
        """Pages of this form, numbered from ``first``."""
        return draw(
            segments,
            cell=self.cell,
            ink=self.ink,
            width=self.width,
            height=self.height,
            grid=self.grid,
            min_height=self.least,
            first=first,
        )


def form_for(model: Model, fidelity: Fidelity, images: int = 0) -> Form:
    """The form for a model and a fidelity: the cell with evidence, the page never resized."""
    cell = cell_for(model, fidelity)
    shape = page(model, cell, images)
    return Form(
        cell=shape.cell,
        ink=cell.ink,
        width=shape.width,
        height=shape.height,
        grid=shape.grid[1],
        least=shape.min_height,
    )
