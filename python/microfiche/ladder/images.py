"""Rung 2: old tool screenshots become markers, the text around them stays."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from microfiche.messages import Image, ToolResult, Turn
from microfiche.models import Model
from microfiche.pages.script import Spot, image_marker

from .budget import Budget, Load, Policy, base64_size


@dataclass(frozen=True, slots=True)
class Dropped:
    """Why an image is a marker.

    ``old`` (a tool's, not among the newest), forced by ``bytes`` or ``count``, too large by itself (``side``,
    ``size``), or ``unseen``: the model does not read images.
    """

    why: str

    def marker(self, image: Image, turn: int, recall: bool) -> str:
        where = f"recall of turn {turn} returns it" if recall else f"it is on record as turn {turn}"
        return f"{image_marker(image, turn)[:-1]} left out: {where}]"


WHYS = ("old", "bytes", "count", "side", "size", "unseen")

_MARKER = re.compile(
    r"\[image [A-Za-z0-9!#$&^_.+/-]{1,64}(?: \d+×\d+)?, of turn \d+ left out: "
    r"(?:recall of turn \d+ returns it|it is on record as turn \d+)\]"
)


def is_marker(text: str) -> bool:
    """Whether a text is the marker of an image that was left out, and nothing else."""
    return _MARKER.fullmatch(text) is not None


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


def drop_unfit(turns: Sequence[Turn], model: Model, policy: Policy) -> dict[Spot, Dropped]:
    """Images that cannot be sent whatever the budget: the model does not read them, or they are too large."""
    side, size = policy.image_side, policy.image_size
    unfit: dict[Spot, Dropped] = {}
    for spot, image in spots_of(turns):
        if model.known and not model.vision:
            unfit[spot] = Dropped("unseen")
        elif side is not None and max(image.width, image.height) > side:
            unfit[spot] = Dropped("side")
        elif size is not None and base64_size(image.data) > size:
            unfit[spot] = Dropped("size")
    return unfit


def drop_old(
    turns: Sequence[Turn], protected: int, frozen: Callable[[Spot], bool], newest: int
) -> Iterator[tuple[Spot, Dropped, Image]]:
    """Tool images before turn ``protected`` that are not among the ``newest`` of their kind."""
    shots = [(spot, image) for spot, image in spots_of(turns) if image.owner == "tool"]
    old = shots[: max(len(shots) - newest, 0)]
    for spot, image in old:
        if spot[0] < protected and not frozen(spot):
            yield spot, Dropped("old"), image


def drop_forced(
    turns: Sequence[Turn],
    load: Load,
    budget: Budget,
    dropped: dict[Spot, Dropped],
    keep: Callable[[Spot], bool],
    head: int,
) -> dict[Spot, Dropped]:
    """More images, until bytes and count fit: tools' oldest first, then the user's oldest, those of the head last.

    ``load`` is that of the whole request with ``dropped`` applied, ``head`` the last turn of the head.
    ``keep`` spots stay whatever happens (the newest user message never changes).
    """
    more: dict[Spot, Dropped] = {}
    images = [(spot, image) for spot, image in spots_of(turns) if spot not in dropped and not keep(spot)]
    images.sort(key=lambda item: (item[0][0] <= head, item[1].owner != "tool"))
    for spot, image in images:
        if budget.holds_images(load):
            break
        more[spot] = Dropped("bytes" if load.image_bytes > budget.image_bytes else "count")
        load -= budget.image(image)
    return more
