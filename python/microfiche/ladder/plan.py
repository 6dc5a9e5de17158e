"""The plan: how each part of a path stands in a context, as data.

A plan names parts by spot and turns by number, so that it holds for any history that begins
with the same turns.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import accumulate, pairwise
from typing import Any, TypeVar

from microfiche.errors import BadInput, PlanMismatch
from microfiche.messages import Image, Message, Text, ToolResult, Turn, canonical, canonical_text
from microfiche.models import FIDELITIES, Fidelity
from microfiche.pages.script import Spot

from .elide import WHYS, Elision
from .form import Form
from .images import WHYS as IMAGE_WHYS
from .images import Dropped
from .newest import Shortened
from .reasoning import thoughts
from .summary import KINDS, Line, Summary, one_line

VERSION = 1

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Source:
    """What the ladder works on: turns, the messages before the first of them, texts that stand in every context.

    ``answering`` is the number of the turn from which on the provider may ask for reasoning as it was.
    """

    turns: tuple[Turn, ...]
    head: tuple[Message, ...] = ()
    pins: tuple[str, ...] = ()
    answering: int = 0

    @property
    def first_middle(self) -> int:
        """Index of the first turn that may be paged: behind the first user message, if the path opens with one."""
        return 1 if self.turns and self.turns[0].role == "user" else 0

    def cuts(self) -> frozenset[int]:
        """Numbers of the turns before which no call is open that is answered later: there a stretch may begin or end.

        A result mostly stands in the turn of its call; where it came later, the turns between belong together.
        """
        opened: dict[str, int] = {}
        across = [0] * (len(self.turns) + 1)
        for at, turn in enumerate(self.turns):
            for message in turn.messages:
                for result in message.results:
                    since = opened.pop(result.call_id, at)
                    across[since] += 1
                    across[at] -= 1
                opened |= {call.id: at for call in message.calls}
        held = list(accumulate(across))
        return frozenset(turn.number for at, turn in enumerate(self.turns) if at == 0 or not held[at - 1])


@dataclass(frozen=True, slots=True)
class FullPage:
    """A page that will not change any more: its turns, its pixels' digest, the last spot that stands on it.

    ``exact`` are the values that stand as text behind it.
    """

    number: int
    turns: tuple[int, int]
    digest: str
    upto: Spot
    exact: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Archive:
    """The paged middle: turns ``first`` to ``last`` (numbers), of which pages 1..``left_out`` are not shown.

    ``beside`` names the user turns whose words stand as text beside their page.
    """

    form: Form
    first: int
    last: int
    beside: tuple[int, ...] = ()
    full: tuple[FullPage, ...] = ()
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """Treatments of the parts of a path. A part that is not named stands verbatim.

    ``through`` is the last turn that the plan treats and ``source`` the digest of all turns up to
    it; ``omitted`` are ranges of whole turns that stand neither as text nor on a page. ``summaries``
    stand for theirs, oldest first: turns before the archive, or on those of its pages that are not shown.
    ``shortened`` are texts of results that were too large when they were the newest; ``reasoning`` numbers
    of turns that stand without theirs.
    """

    model: str = ""
    budget: int = 0
    fidelity: Fidelity = "exact"
    recall: bool = False
    through: int = 0
    source: str = ""
    elided: dict[Spot, Elision] = field(default_factory=dict)
    dropped: dict[Spot, Dropped] = field(default_factory=dict)
    shortened: dict[Spot, Shortened] = field(default_factory=dict)
    reasoning: tuple[int, ...] = ()
    archive: Archive | None = None
    summaries: tuple[Summary, ...] = ()
    omitted: tuple[tuple[int, int], ...] = ()

    def __bool__(self) -> bool:
        treated = self.elided or self.dropped or self.shortened or self.reasoning
        return bool(treated or self.archive or self.summaries or self.omitted)

    @property
    def lossy(self) -> bool:
        """Whether something was summarised or left out, pages included."""
        archive = self.archive
        return bool(self.summaries or self.omitted or (archive is not None and archive.left_out))

    @property
    def forms(self) -> frozenset[Form]:
        """The forms that its pages have."""
        forms = {each.form for each in self.shortened.values() if each.form is not None}
        return frozenset(forms | ({self.archive.form} if self.archive is not None else set()))

    @property
    def summarised(self) -> frozenset[int]:
        """Numbers of the turns that a summary stands for."""
        return frozenset(turn for each in self.summaries for turn in range(each.first, each.last + 1))

    @property
    def gone(self) -> frozenset[int]:
        """Numbers of the turns that were omitted or summarised as such, not as what stands on a page."""
        return self.summarised | {turn for first, last in self.omitted for turn in range(first, last + 1)}

    def frozen(self, spot: Spot) -> bool:
        """Whether the part stands on a full page, and so is out of reach of rungs 1 and 2."""
        if self.archive is None or not self.archive.full:
            return False
        return spot[:3] <= self.archive.full[-1].upto

    def to_json(self) -> str:
        """The plan as one JSON object; :meth:`from_json` reads it back equal."""
        data: dict[str, Any] = {"version": VERSION}
        data |= {name: getattr(self, name) for name in ("model", "budget", "fidelity", "recall", "through", "source")}
        data["elided"] = {_spell(spot): asdict(each) for spot, each in sorted(self.elided.items())}
        data["dropped"] = {_spell(spot): asdict(each) for spot, each in sorted(self.dropped.items())}
        data["shortened"] = {_spell(spot): asdict(each) for spot, each in sorted(self.shortened.items())}
        data["reasoning"] = self.reasoning
        if self.archive is not None:
            archive = asdict(self.archive)
            for page in archive["full"]:
                page["upto"] = _spell(page["upto"])
            data["archive"] = archive
        data["summaries"] = [asdict(each) for each in self.summaries]
        data["omitted"] = self.omitted
        return json.dumps(data, indent=1)

    @classmethod
    def from_json(cls, text: str | bytes, where: str = "plan") -> Plan:
        """Read a plan; :class:`BadInput` says what is wrong with it."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as exc:
            raise BadInput(f"not JSON ({exc})", where, "pass the plan.json that a pass wrote") from None
        if not isinstance(data, dict) or data.get("version") != VERSION:
            version = data.get("version") if isinstance(data, dict) else None
            raise BadInput(
                f"not a plan of version {VERSION} (version {version!r})",
                where,
                "pass a plan that a pass wrote",
            )
        try:
            archive = data.get("archive")
            return cls(
                model=_str(data["model"]),
                budget=_int(data["budget"]),
                fidelity=_one_of(data["fidelity"], FIDELITIES),
                recall=_one_of(data["recall"], (False, True)),
                through=_int(data["through"]),
                source=_str(data["source"]),
                elided={_spot(key, 3): _elision(**value) for key, value in data["elided"].items()},
                dropped={_spot(key, 3, 4): _dropped(**value) for key, value in data["dropped"].items()},
                shortened={_spot(key, 4): _shortened(**value) for key, value in data["shortened"].items()},
                reasoning=tuple(_int(turn) for turn in data.get("reasoning", ())),
                archive=None if archive is None else _archive(archive),
                summaries=tuple(_summary(**each) for each in data["summaries"]),
                omitted=tuple((_int(a), _int(b)) for a, b in data["omitted"]),
            )
        except (LookupError, TypeError, ValueError, AttributeError) as exc:
            raise BadInput(
                f"a field of the plan is missing or wrong ({exc})", where, "pass a plan that a pass wrote"
            ) from None


def _one_of(value: Any, allowed: tuple[_T, ...]) -> _T:
    for each in allowed:
        if value == each and type(value) is type(each):
            return each
    raise ValueError(f"{value!r} is none of {allowed}")


def _str(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _int(value: Any, most: int = 1 << 53) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ValueError(f"{value!r} is not a whole number from 0 to {most}")
    return value


def _elision(why: Any, by: Any, keep: Any) -> Elision:
    return Elision(_one_of(why, WHYS), _int(by), _int(keep))


def _dropped(why: Any) -> Dropped:
    return Dropped(_one_of(why, IMAGE_WHYS))


def _shortened(head: Any, tail: Any, drawn: Any, form: Any, pages: Any) -> Shortened:
    digests = tuple(_str(each) for each in pages)
    if (form is None) != (not digests) or (form is None) != (drawn == 0):
        raise ValueError("what is drawn of a result has a form and pages")
    return Shortened(_int(head), _int(tail), _int(drawn), None if form is None else _form(form), digests)


def _summary(first: Any, last: Any, lines: Any, cut: Any) -> Summary:
    return Summary(_int(first), _int(last), tuple(_summary_line(**each) for each in lines), _int(cut))


def _summary_line(kind: Any, text: Any, turns: Any) -> Line:
    if not _str(text) or one_line(text, len(text)) != text:
        raise ValueError(f"{text!r} is not one line of text")
    spans = tuple((_int(a), _int(b)) for a, b in turns)
    if not spans:
        raise ValueError("a line of a summary names no turn")
    return Line(_one_of(kind, KINDS), text, spans)


_LONGEST_SIDE = 8192
"""More pixels a side than any provider takes."""


def _form(data: dict[str, Any]) -> Form:
    width, height = data["cell"]
    return Form(
        cell=(_int(width, 32), _int(height, 32)),
        ink=_one_of(data["ink"], ("grey", "mono")),
        # Plans of before there were atlases name none.
        atlas=_digest(data.get("atlas", "")),
        **{name: _int(data[name], _LONGEST_SIDE) for name in ("width", "height", "grid", "least")},
    )


def _digest(value: Any) -> str:
    if _str(value) and not re.fullmatch("[0-9a-f]{64}", value):
        raise ValueError(f"{value!r} is no digest")
    return str(value)


def _archive(data: dict[str, Any]) -> Archive:
    return Archive(
        form=_form(data["form"]),
        first=_int(data["first"]),
        last=_int(data["last"]),
        beside=tuple(_int(turn) for turn in data["beside"]),
        full=tuple(
            FullPage(
                _int(page["number"]),
                (_int(page["turns"][0]), _int(page["turns"][1])),
                _str(page["digest"]),
                _spot(page["upto"], 3),
                tuple(_str(value) for value in page["exact"]),
            )
            for page in data["full"]
        ),
        left_out=_int(data["left_out"]),
    )


def _spell(spot: Spot) -> str:
    return ".".join(map(str, spot))


def _spot(text: str, *lengths: int) -> Spot:
    spot = tuple(_int(int(each)) for each in text.split("."))
    if len(spot) not in lengths or _spell(spot) != text:
        raise ValueError(f"{text!r} is not the place of a part")
    return spot


def source_digest(source: Source, through: int) -> str:
    """SHA-256 (hex) of the canonical form of the head and of every turn up to number ``through``."""
    sha = hashlib.sha256()
    for message in (
        *source.head,
        *(m for turn in source.turns if turn.number <= through for m in turn.messages),
    ):
        sha.update(canonical_text(canonical(message)).encode("ascii") + b"\n")
    return sha.hexdigest()


def check_source(source: Source, plan: Plan) -> None:
    """:class:`PlanMismatch` unless the history begins with the turns that the plan was made for."""
    if not plan:
        return
    last = source.turns[-1].number if source.turns else 0
    if plan.through > last:
        raise mismatch(f"the plan treats turns up to {plan.through}, the history ends at turn {last}")
    if source_digest(source, plan.through) != plan.source:
        raise mismatch(f"turns 1 to {plan.through} are not those that the plan was made for")
    if fault := _fault(source, plan):
        raise mismatch(fault)


def _fault(source: Source, plan: Plan) -> str:
    """What the plan says of the turns that a pass over them cannot have said; empty if nothing."""
    turns = {turn.number: turn for turn in source.turns}
    middle = source.turns[source.first_middle : -1]
    end = min(plan.through, middle[-1].number if middle else 0)
    for spots, kind in ((plan.elided, ToolResult), (plan.dropped, Image)):
        for spot in spots:
            part = _part(turns.get(spot[0]), spot)
            if spot[0] > plan.through or not isinstance(part, kind):
                return f"part {_spell(spot)} is none that the plan can treat"
            if isinstance(part, ToolResult) and plan.elided[spot].keep > len(part.text):
                return f"part {_spell(spot)} is shorter than what the plan keeps of it"
    for spot, short in plan.shortened.items():
        part = _part(turns.get(spot[0]), spot)
        if spot[0] > plan.through or not isinstance(part, Text) or short.left_out(part.text) < 0:
            return f"part {_spell(spot)} is none that the plan can treat"
    for number in plan.reasoning:
        if number > plan.through or number not in turns or not any(map(thoughts, turns[number].messages)):
            return f"turn {number} has no reasoning that the plan can leave out"
    if any(a >= b for a, b in pairwise(plan.reasoning)):
        return "the turns without their reasoning are not in order"
    archive = plan.archive
    if archive is not None and archive.left_out > len(archive.full):
        return "the pages are not those of the history"
    if not _tile(plan, [turn.number for turn in middle], end):
        return "the turns left out or summarised are not the oldest of the middle"
    if archive is not None:
        users = {turn.number for turn in middle if turn.role == "user"}
        if not first_paged(source, plan) == archive.first <= archive.last <= end:
            return f"turns {archive.first} to {archive.last} cannot stand on pages"
        if not users.issuperset(archive.beside):
            return "the pages are not those of the history"
    return ""


def _tile(plan: Plan, middle: Sequence[int], end: int) -> bool:
    """Whether the turns gone, each once, are all before the archive and summarised ones of its pages not shown."""
    archive = plan.archive
    before = archive.first - 1 if archive is not None else end
    unseen = archive.full[archive.left_out - 1].turns[1] if archive is not None and archive.left_out else 0
    taken = ranges(plan)
    first = middle[0] if middle else 0
    if any(not first <= a <= b <= end for a, b in taken) or any(b >= c for (_, b), (c, _) in pairwise(taken)):
        return False
    if archive is None:
        before = taken[-1][1] if taken else 0
    inside = [each for each in taken if each[1] > before]
    if any(a <= before or b > unseen or (a, b) in plan.omitted for a, b in inside):
        return False
    return plan.gone.issuperset(turn for turn in middle if turn <= before)


def ranges(plan: Plan) -> list[tuple[int, int]]:
    """The turns gone as ranges, oldest first."""
    return sorted([*plan.omitted, *((each.first, each.last) for each in plan.summaries)])


def _part(turn: Turn | None, spot: Spot) -> Any:
    try:
        part: Any = turn.messages[spot[1]].parts[spot[2]] if turn is not None else None
        return part if len(spot) == 3 else part.parts[spot[3]]
    except (IndexError, AttributeError):
        return None


def mismatch(what: str) -> PlanMismatch:
    """The error of a plan that is not one of this history."""
    return PlanMismatch(what, "plan", "pass the original history, unchanged, with its plan, or no plan")


def first_paged(source: Source, plan: Plan) -> int:
    """Number of the first turn that may stand on a page: behind the head and what went before pages were drawn."""
    turns, at = source.turns, source.first_middle
    first = turns[at].number if at < len(turns) else max((turn.number for turn in turns), default=0) + 1
    archive = plan.archive
    return max([first, *(last + 1 for _, last in ranges(plan) if archive is None or last < archive.first)])
