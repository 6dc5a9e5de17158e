"""What a context may cost: the policy, the limits of a model, and the load of a list of messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import PurePath
from typing import Any, Literal

from microfiche.errors import BadInput
from microfiche.formats.common import plain
from microfiche.messages import Image, Message, ToolResult
from microfiche.models import ManyImages, Model
from microfiche.models.tokens import Ruler

from .elide import Rule
from .usage import cached

RUNGS = ("elide", "images", "reasoning", "snapshot", "summary", "newest", "omit")

FREE = ("elide", "images", "reasoning", "snapshot")
"""Those that lose nothing that is on no page and no record, and need no model: what a pass by hand runs."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What a pass may do; :class:`BadInput` for what is none of that: unknown rungs, numbers out of range.

    Shares are fractions of the budget, from 0 to 1 (``pays`` may be more); tokens are the model's.

    * ``tail_tokens``, ``tail_share``: the newest whole turns within the smaller of the two stay
      verbatim (at least one turn).
    * ``elide_floor``: results of fewer characters are never elided.
    * ``protect``: names of tools, or patterns such as ``mcp__db__*``, whose results are never elided.
    * ``rules``: callables that say of a call and its result whether nobody will miss it: true, false, or
      ``None`` for no opinion. The first opinion decides, before the rules of the house; errors stay all the same.
    * ``screenshots``: so many of the newest tool images stay.
    * ``beside_share``: user-authored text of paged turns stays text while all of it is under this share.
    * ``pays``: pages are drawn if they and the text beside them cost at most this share of the text, counted low.
    * ``image_bytes``: bytes of base64 image data in one request.
    * ``images``: images in one request, if the model takes so many; ``image_side`` and ``image_size``: a longer side
      (pixels) or more base64 (bytes) of one image make it a marker.
    * ``threshold``, ``threshold_tokens``: without a budget, the smaller of this share of (window - output
      reserve) and so many tokens is the budget.
    * ``target``: a pass that runs goes on, by rungs that lose nothing, until the context is within this
      share of the budget: else the next turn would make it run again.
    * ``max_output``: the output reserve, if the model can give so much, in tokens.
    * ``recall``: whether somebody answers a recall by turn number; ``None`` looks for a tool of that name.
    * ``summary_tokens``, ``summary_share``: a summary has at most so many tokens and half the share;
      all of a context have at most the share.
    * ``summary_room``: so much is summarised at once that this share is free afterwards, if that can be
      had of what stands before the tail.
    * ``omit_room``: so much is left out at once that this share is free afterwards, if that can be had of what
      stands before the tail.
    * ``summary_calls``, ``summary_window``: calls of the summariser in one pass, and the tokens that it
      reads in one call, its answer included.
    * ``newest_share``: where not everything fits, results that no answer has seen may have so much; what they take
      beyond that becomes first and last lines, pages and a pointer.
    * ``goal``: ``fit`` runs a pass when the budget is exceeded; ``cost`` also when that is cheaper over the
      ``calls_left`` (this one included), the first ``cached`` tokens of what was sent last being in the
      provider's cache. Only by rungs that lose nothing and need no model. ``cached`` may be the usage that came with
      the last answer; ``None`` takes that which a conversation has on record, and is 0 without one.
    * ``font``: names or files of fonts that draw on pages what ours lacks, the first that has a character
      (:mod:`microfiche.pages.fonts`); one may stand by itself.
    * ``rungs``: the mechanisms allowed, of ``elide``, ``images``, ``reasoning``, ``snapshot``, ``summary``,
      ``newest``, ``omit``.
    """

    tail_tokens: int = 20_000
    tail_share: float = 0.25
    elide_floor: int = 400
    protect: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    screenshots: int = 3
    beside_share: float = 0.10
    pays: float = 0.85
    image_bytes: int = 18 * 1024 * 1024
    images: int | None = None
    image_side: int | None = None
    image_size: int | None = None
    threshold: float = 0.8
    threshold_tokens: int | None = None
    target: float = 0.8
    max_output: int = 32_000
    recall: bool | None = None
    summary_tokens: int = 4_000
    summary_share: float = 0.20
    summary_room: float = 0.10
    omit_room: float = 0.10
    summary_calls: int = 4
    summary_window: int = 100_000
    newest_share: float = 0.5
    goal: Literal["fit", "cost"] = "fit"
    calls_left: int = 20
    cached: Any = None
    font: tuple[str, ...] = ()
    rungs: tuple[str, ...] = RUNGS

    def to_dict(self) -> dict[str, Any]:
        """The policy as plain data, but for its rules: they are code."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "rules"}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Policy:
        """The policy of plain data; lists stand for tuples. :class:`BadInput` for what is none of its fields."""
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in data.items()
        }
        try:
            return cls(**values)
        except TypeError as exc:
            raise BadInput(f"not a policy ({exc})", "policy", "pass what to_dict gave") from None

    def __post_init__(self) -> None:
        if self.goal not in ("fit", "cost"):
            raise BadInput(f"no goal {self.goal!r}", "policy", "it is fit or cost")
        if self.recall not in (None, False, True):
            raise BadInput(f"recall is {self.recall!r}", "policy", "it is true, false, or None to look for a tool")
        self._list("rungs", RUNGS.__contains__, f"rungs, which are {', '.join(RUNGS)}")
        self._list("protect", _is_text, "names or patterns of tools")
        self._list("rules", callable, "callables")
        if isinstance(self.font, str | PurePath):
            object.__setattr__(self, "font", (self.font,))
        self._list("font", lambda each: isinstance(each, str | PurePath), "names or files of fonts")
        object.__setattr__(self, "font", tuple(map(str, self.font)))
        if isinstance(self.cached, dict) or hasattr(self.cached, "model_dump"):
            object.__setattr__(self, "cached", cached(plain(self.cached)))
        if self.cached is not None and not _is_whole(self.cached, 0):
            raise BadInput(f"cached is {self.cached!r}", "policy", "it is a number of tokens, or a provider's usage")
        for each in fields(self):
            value = getattr(self, each.name)
            if each.type == "int" or (each.type == "int | None" and value is not None):
                # A request for an answer of no tokens is refused.
                least = 1 if each.name == "max_output" else 0
                if not _is_whole(value, least):
                    raise BadInput(f"{each.name} is {value!r}", "policy", f"it is a whole number of at least {least}")
            elif each.type == "float":
                number = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
                if not number or (value > 1 and each.name != "pays"):
                    most = "" if each.name == "pays" else " to 1"
                    raise BadInput(f"{each.name} is {value!r}", "policy", f"it is a share, from 0{most}")

    def _list(self, name: str, allowed: Callable[[Any], bool], what: str) -> None:
        """Make a tuple of a field that is a list of what is allowed there."""
        value = getattr(self, name)
        if not isinstance(value, tuple | list):
            raise BadInput(f"{name} is {value!r}", "policy", f"it is a tuple of {what}")
        for each in value:
            if not allowed(each):
                raise BadInput(f"{name} holds {each!r}", "policy", f"it is a tuple of {what}")
        object.__setattr__(self, name, tuple(value))


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


@dataclass(frozen=True, slots=True)
class Load:
    """What a list of messages weighs: tokens, bytes of text and base64 together, images.

    ``large`` counts the images with a side that a request of many images may not hold.
    """

    tokens: int = 0
    bytes: int = 0
    images: int = 0
    image_bytes: int = 0
    large: int = 0

    def __add__(self, other: Load) -> Load:
        return Load(
            self.tokens + other.tokens,
            self.bytes + other.bytes,
            self.images + other.images,
            self.image_bytes + other.image_bytes,
            self.large + other.large,
        )

    def __sub__(self, other: Load) -> Load:
        return Load(
            self.tokens - other.tokens,
            self.bytes - other.bytes,
            self.images - other.images,
            self.image_bytes - other.image_bytes,
            self.large - other.large,
        )


@dataclass(frozen=True, slots=True)
class Budget:
    """Three budgets at once, the tightest decides; ``None`` means no limit is known.

    ``many`` is the tighter count that holds as soon as a side of one image is too long for many.
    """

    tokens: int
    image_bytes: int
    images: int | None = None
    many: ManyImages | None = None

    def holds(self, load: Load) -> bool:
        return load.tokens <= self.tokens and self.holds_images(load)

    def holds_images(self, load: Load) -> bool:
        most = self.most_images(load)
        return load.image_bytes <= self.image_bytes and (most is None or load.images <= most)

    def most_images(self, load: Load) -> int | None:
        """How many images a request may hold that holds these."""
        counts = (self.images, self.many.count if self.many and load.large else None)
        return min((count for count in counts if count is not None), default=None)

    def image(self, image: Image) -> Load:
        """What one image weighs of what the image budgets count."""
        large = self.many is not None and max(image.width, image.height) > self.many.side
        return Load(images=1, image_bytes=base64_size(image.data), large=int(large))

    def over(self, load: Load) -> str:
        """Which budget is broken, in words; empty if none."""
        broken = []
        if load.tokens > self.tokens:
            broken.append(f"{load.tokens:,} of {self.tokens:,} tokens")
        if load.image_bytes > self.image_bytes:
            broken.append(f"{load.image_bytes:,} of {self.image_bytes:,} bytes of base64 images")
        most = self.most_images(load)
        if most is not None and load.images > most:
            broken.append(f"{load.images} of {most} images")
        return ", ".join(broken)


def base64_size(data: bytes | None) -> int:
    """Bytes of ``data`` in base64 (RFC 4648 section 4, padded): four for every started three."""
    return 0 if data is None else (len(data) + 2) // 3 * 4


def images_of(message: Message) -> Iterable[Image]:
    """Every image of a message, those inside results included, in order."""
    for part in message.parts:
        if isinstance(part, Image):
            yield part
        elif isinstance(part, ToolResult):
            for inner in part.parts:
                if isinstance(inner, Image):
                    yield inner


class Scale:
    """Weighs messages for one model, by the ``low`` estimate of text or the high one.

    A message is weighed once: histories are long and mostly stay.
    """

    def __init__(self, model: Model, low: bool = False) -> None:
        self.model = model
        self.ruler = Ruler(model, low)
        self._known: dict[int, tuple[Message, Load]] = {}

    def message(self, message: Message) -> Load:
        known = self._known.get(id(message))
        if known is not None and known[0] is message:
            return known[1]
        images = list(images_of(message))
        encoded = sum(base64_size(image.data) for image in images)
        many = self.model.many_images
        large = sum(max(image.width, image.height) > many.side for image in images) if many is not None else 0
        load = Load(self.ruler.message(message), _text_bytes(message) + encoded, len(images), encoded, large)
        self._known[id(message)] = (message, load)
        return load

    def messages(self, messages: Iterable[Message]) -> Load:
        loads = [self.message(message) for message in messages]
        return Load(
            sum(load.tokens for load in loads),
            sum(load.bytes for load in loads),
            sum(load.images for load in loads),
            sum(load.image_bytes for load in loads),
            sum(load.large for load in loads),
        )


def _text_bytes(message: Message) -> int:
    size = 0
    for part in message.parts:
        for inner in part.parts if isinstance(part, ToolResult) else (part,):
            for name in ("text", "arguments", "name"):
                value = getattr(inner, name, "")
                size += len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
    return size


def output_reserve(model: Model, policy: Policy) -> int:
    """Tokens kept for the answer: what the model can give, up to the policy's cap."""
    return min(model.max_output or policy.max_output, policy.max_output)


def budget_for(model: Model, policy: Policy, tokens: int | None = None, max_tokens: int | None = None) -> Budget:
    """The budget of a request, in input tokens of the whole request.

    Without ``tokens`` it is ``threshold`` × (window - ``max_tokens``, else the output reserve), or
    ``threshold_tokens`` if that is less. :class:`BadInput` for a model whose window is unknown, and for a
    budget below 1.
    """
    if tokens is None:
        if model.context_window is None:
            raise BadInput(f"the context window of {model.id} is not known", "budget", "pass a budget in input tokens")
        reserve = output_reserve(model, policy) if max_tokens is None else max_tokens
        tokens = int(policy.threshold * (model.context_window - reserve))
        if policy.threshold_tokens is not None:
            tokens = min(tokens, policy.threshold_tokens)
    if tokens < 1:
        raise BadInput(
            f"a budget of {tokens} input tokens holds nothing", "budget", "pass a larger one, or less output"
        )
    counts = [count for count in (model.images_per_request, policy.images) if count is not None]
    return Budget(tokens, policy.image_bytes, min(counts, default=None), model.many_images)
