"""A plan in the making, with what it draws and weighs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from .budget import Load, Scale
from .plan import Plan, Source
from .projection import Drawn, Projection, assemble, draw_plan, settle


@dataclass(slots=True)
class Draft:
    """A plan in the making, with its projection and load, drawn once for each archive it has."""

    source: Source
    scale: Scale
    fixed: Load
    plan: Plan
    spared: frozenset[int] = frozenset()
    drawn: Drawn = field(default_factory=Drawn)
    _made: Projection | None = field(default=None, init=False, repr=False, compare=False)

    def with_plan(self, plan: Plan, redraw: bool) -> Draft:
        """The draft with another plan; with ``redraw`` its pages are drawn, else those at hand are its own."""
        if not redraw:
            return replace(self, plan=plan, drawn=self.drawn.still(plan))
        drawn = draw_plan(self.source, plan)
        return replace(self, plan=settle(self.source, plan, drawn.script, drawn.pages), drawn=drawn)

    def projection(self) -> Projection:
        if self._made is None:
            self._made = assemble(self.source, self.plan, self.drawn)
        return self._made

    def load(self) -> Load:
        return self.fixed + self.scale.messages(self.projection().messages)
