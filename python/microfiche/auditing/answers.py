"""What the audit answers with: plain values, each of which names the entries it is told from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from microfiche.ladder.treatments import Form
from microfiche.messages import Part
from microfiche.pages.render import Page
from microfiche.path import Sheet

FORMS = {
    "placeholder": "a tool result of which a line stands, that says what it was",
    "marker": "an image of which a line stands",
    "shortened": "a large result of which beginning and end stand, its middle on pages or left out",
    "page": "drawn on pages",
    "not_drawn": "reasoning, or data that no page shows; the turn stands without it",
    "summary": "in a summary that names its turn",
    "omitted": "left out, and named as such",
    "other_wire": "left out because another provider's wire does not carry it",
    "elsewhere": "in the summary of a compaction that the session made before it was imported, or left out by it",
    "branch": "on a branch that was left",
}
"""The forms in which a part can stand in a context, other than word for word."""


class Key(NamedTuple):
    """A part of the record: its entry, its place in the message, and in a result (-1: the part itself)."""

    entry: int
    part: int
    inner: int = -1


@dataclass(frozen=True, slots=True)
class Reduced:
    """A part that a context holds in another form than its own, or not at all.

    ``kind`` is ``text``, ``image``, ``call``, ``result``, ``reasoning`` or ``opaque``; ``form`` one of
    :data:`FORMS`; ``event`` the entry since which it stands so. ``pages`` are the numbers of pages where it
    can be read, ``characters`` the length of its text.
    """

    turn: int
    key: Key
    kind: str
    form: str
    event: int
    pages: tuple[int, ...] = ()
    why: str = ""
    characters: int = 0


@dataclass(frozen=True, slots=True)
class Removed:
    """A part that an event reduced, with the original."""

    reduced: Reduced
    original: Part


@dataclass(frozen=True, slots=True)
class Seen:
    """The context of a call, made again.

    ``recorded`` is the digest that was kept with the call, ``digest`` that of what was made again:
    ``proven`` tells that they are equal. ``redrawn`` tells that the pages came out as they were to the
    pixel; where this version draws other glyphs, the pages' identities stand on record, and in ``messages``
    (native, of ``wire``) a line stands for each. ``sheets`` are all pages of the plan as the record keeps them,
    ``pages`` their files if redrawn; the numbers of those shown are ``shown``. ``system`` and ``tools`` are native.
    """

    entry: int
    at: int | None
    model: str
    wire: str
    recorded: str
    digest: str
    redrawn: bool
    system: Any
    tools: list[Any] | None
    messages: list[Any] = field(repr=False)
    sheets: tuple[Sheet, ...] = field(repr=False)
    shown: tuple[int, ...] = ()
    pages: tuple[bytes, ...] = field(repr=False, default=())

    @property
    def proven(self) -> bool:
        return self.digest == self.recorded


@dataclass(frozen=True, slots=True)
class Step:
    """What an entry did to a turn: the forms of its parts from then on, and how many have each.

    ``readable`` tells whether the text that was asked for can still be read anywhere in the context
    (``None`` if a turn was asked for), ``summarised`` whether a summary has it.
    """

    entry: int
    kind: str
    why: str
    time: int
    forms: dict[str, int]
    pages: tuple[int, ...] = ()
    readable: bool | None = None
    summarised: bool | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """A turn's way through all passes, oldest step first; the first is its entry."""

    turn: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """One thing that a claim rests on: an entry of the record, with the turn it belongs to and its words.

    ``of`` is the claim, ``branch`` tells that the entry is not on the current path.
    """

    of: int
    kind: str
    entry: int
    turn: int | None
    what: str
    text: str
    branch: bool


@dataclass(frozen=True, slots=True)
class Evidence:
    """A claim and every link below it; a claim that another rests on is followed, once."""

    claim: int
    text: str
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class Standing:
    """What an event left: in which form parts stand from then on.

    ``changed`` holds the parts that stand otherwise than before it on its path: their form and the entry since
    which they have it, ``None`` for a part that stands word for word again. ``sheets`` are all pages of the plan,
    of which the first ``left_out`` are not shown; ``pages`` are the same drawn again, ``None`` where this version
    draws otherwise. ``wire`` is the one that the plan holds for, empty without a plan.
    """

    event: int
    wire: str
    changed: Mapping[Key, tuple[Form, int] | None]
    sheets: tuple[Sheet, ...]
    left_out: int
    pages: tuple[Page | None, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Whole:
    """All of a conversation at once: what each event left, by its entry, and whether contexts of calls prove.

    A context is proven here by the identities of its pages on record; whether this version draws them so to the
    pixel is told by the pages of the standings.
    """

    standings: Mapping[int, Standing]
    proven: Mapping[int, bool]
