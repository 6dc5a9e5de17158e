"""A session of its own to look at: :func:`play` makes it on a record, the same every time."""

from .story import ASKED, BUDGET, MODEL, NAME, Clock, play

__all__ = ["ASKED", "BUDGET", "MODEL", "NAME", "Clock", "play"]
