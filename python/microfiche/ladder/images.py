"""Rung 2: old tool screenshots become markers, the text around them stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from microfiche.messages import Image, ToolResult, Turn
from microfiche.pages.script import Spot, image_marker

from .budget import Budget, Load, base64_size


@dataclass(frozen=True, slots=True)
class Dropped:
    """Why an image is a marker: ``old`` (a tool's, not among the newest), or forced by ``bytes`` or ``count``."""

    why: str

    def marker(self, image: Image, turn: int, recall: bool) -> str:
        where = f"recall of turn {turn} returns it" if recall else f"it is on record as turn {turn}"
        return f"{image_marker(image, turn)[:-1]} left out: {where}]"


def spots_of(turns: Sequence[Turn]) -> Iterator[tuple[Spot, Image]]:
    """Every image with its spot, oldest first."""
    for turn in turns:
        for m, message in enumerate(turn.messages):
            for p, part in enumerate(message.parts):
                if isinstance(part, Image):
                    yield (turn.number, m, p), part
                elif isinstance(part, ToolResult):
                    for i, inner in enumerate(part.parts):
                        if isinstance(inner, Image):
                            yield (turn.number, m, p, i), inner


def drop_old(turns: Sequence[Turn], protected: int, frozen: Callable[[Spot], bool], newest: int) -> dict[Spot, Dropped]:
    """Tool images before turn ``protected`` that are not among the ``newest`` of their kind."""
    shots = [(spot, image) for spot, image in spots_of(turns) if image.owner == "tool"]
    old = shots[: max(len(shots) - newest, 0)]
    return {spot: Dropped("old") for spot, _ in old if spot[0] < protected and not frozen(spot)}


def drop_forced(
    turns: Sequence[Turn],
    load: Load,
    budget: Budget,
    dropped: dict[Spot, Dropped],
    keep: Callable[[Spot], bool],
) -> dict[Spot, Dropped]:
    """More images, until bytes and count fit: tools' oldest first, then the user's oldest.

    ``load`` is that of the whole request with ``dropped`` applied. ``keep`` spots stay whatever
    happens (the newest user message never changes).
    """
    more: dict[Spot, Dropped] = {}
    images = [(spot, image) for spot, image in spots_of(turns) if spot not in dropped and not keep(spot)]
    images.sort(key=lambda item: item[1].owner != "tool")
    count, size = load.images, load.image_bytes
    for spot, image in images:
        over_count = budget.images is not None and count > budget.images
        if not over_count and size <= budget.image_bytes:
            break
        more[spot] = Dropped("count" if over_count else "bytes")
        count -= 1
        size -= base64_size(image.data)
    return more
