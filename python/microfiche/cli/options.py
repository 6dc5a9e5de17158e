"""Options that several commands have, each told once."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Any, get_args

import click

from microfiche.models import FIDELITIES, catalogue
from microfiche.pages.render import Ink, Level

from .files import plain


class Count(click.IntRange):
    """A whole number within bounds."""

    name = "number"


class Share(click.FloatRange):
    """A number within bounds, with a fraction."""

    name = "number"


def size(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, int] | None:
    """The callback of an option that takes ``WxH`` in pixels."""
    if value is None:
        return None
    found = re.fullmatch(r"([0-9]{1,5})[xX×]([0-9]{1,5})", value)
    if found is None:
        raise click.BadParameter(f"{value!r} is not a width and a height in pixels, such as 9x16")
    return int(found[1]), int(found[2])


def sizes(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[int, int], ...]:
    """The callback of an option that takes ``WxH`` several times."""
    return tuple(found for value in values if (found := size(ctx, param, value)) is not None)


def models_of(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Completes the name of a model of the catalogue."""
    return [each.id for each in catalogue() if each.id.startswith(incomplete)]


model_words: dict[str, Any] = {"metavar": "MODEL", "shell_complete": models_of}
"""How every option that takes a model is shown and completed."""


def windowless(model: str) -> click.UsageError:
    """The error for a model whose context window nobody knows, where no budget was given."""
    near = get_close_matches(model, [each.id for each in catalogue()], 3, 0.7)
    meant = f"; did you mean {' or '.join(near)}?" if near else "; `microfiche models` lists those that are known"
    return click.UsageError(plain(f"the context window of {model} is not known: give --budget{meant}"))


font_option = click.option(
    "--font",
    "fonts",
    multiple=True,
    metavar="FONT",
    help="A font, by name or file, for characters that ours lacks; may be given several times.",
)
fidelity_option = click.option(
    "--fidelity",
    type=click.Choice(FIDELITIES),
    default="exact",
    show_default=True,
    help="How well the model has to read the pages: smaller letters hold more.",
)
vision_option = click.option(
    "--vision/--no-vision", default=None, help="Whether the model reads images.  [default: the catalogue's]"
)
level_option = click.option(
    "--level",
    type=click.Choice(get_args(Level)),
    default="default",
    show_default=True,
    help="Time against bytes; pixels are the same.",
)
inks = click.Choice(get_args(Ink))
