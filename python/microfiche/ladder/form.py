"""The form of pages: which cell, which size, and text drawn in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from microfiche.models import Fidelity, Model, cell_for, page
from microfiche.pages import atlas, kept
from microfiche.pages.render import WIDE_CELL, Cell, Ink, Level, Page, Segment, atlas_of, draw, moved


@dataclass(frozen=True, slots=True)
class Form:
    """The form of the pages: cell and page in pixels; the last page's height is a multiple of ``grid``.

    ``grid`` 0 means full height always; ``least`` is the smallest height that is not resized. ``atlas`` is the digest
    of the glyphs, with empty those of our own font in any version.
    """

    cell: tuple[int, int]
    ink: Ink
    width: int
    height: int
    grid: int
    least: int = 0
    atlas: str = ""

    def pages(self, segments: Sequence[Segment]) -> list[Page]:
        """Pages of this form, drawn as far as this process has not drawn them before (:mod:`microfiche.pages.kept`).

        For one history after another: a pass draws what the pass before drew, and a little more.
        """
        if atlas.named(self.atlas, self.cell, self.ink) is not None:
            # With glyphs of other fonts a file depends on all that is drawn with it.
            return self.draw(segments)
        return kept.pages.draw(segments, self, self.draw)

    def draw(
        self,
        segments: Sequence[Segment],
        first: int = 1,
        inside: int | None = None,
        level: Level = "default",
        threads: int = 0,
    ) -> list[Page]:
        """Pages of this form, numbered from ``first``; ``inside`` is the turn that they begin inside of.

        ``level`` and ``threads`` as in :func:`microfiche.pages.render.draw`.
        """
        return draw(
            segments,
            cell=self.cell,
            ink=self.ink,
            width=self.width,
            height=self.height,
            grid=self.grid,
            min_height=self.least,
            first=first,
            inside=inside,
            level=level,
            threads=threads,
            atlas=atlas.named(self.atlas, self.cell, self.ink),
            # A plan and a context hold the pages' identities.
            digests=True,
        )


def form_for(model: Model, fidelity: Fidelity, font: tuple[str, ...] = (), text: str = "") -> Form:
    """The form for a model and a fidelity: the cell with evidence, the page never resized.

    ``font`` names fonts that draw what ours lacks. With one, a ``text`` of mostly wide characters gets a cell for them.
    """
    own = cell_for(model, fidelity)
    cell = own.width, own.height
    return _form(model, moved(cell, atlas_of(font, cell, own.ink), text), own.ink, font)


def continues(form: Form, model: Model, fidelity: Fidelity, font: tuple[str, ...] = ()) -> bool:
    """Whether pages of this form may be followed by others: it is the model's and the fonts', for whatever text."""
    own = cell_for(model, fidelity)
    cell = own.width, own.height
    wide = (max(cell[0], WIDE_CELL[0]), max(cell[1], WIDE_CELL[1])) if font else cell
    return form.cell in (cell, wide) and form == _form(model, form.cell, own.ink, font)


def _form(model: Model, cell: Cell, ink: Ink, font: tuple[str, ...]) -> Form:
    shape = page(model, cell)
    return Form(
        cell=cell,
        ink=ink,
        width=shape.width,
        height=shape.height,
        grid=shape.grid[1],
        least=shape.min_height,
        atlas=(atlas_of(font, cell, ink) or atlas.own(cell, ink)).digest,
    )
