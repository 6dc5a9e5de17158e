"""Estimates of input tokens without a tokenizer, and what they cost.

An estimate is the UTF-8 bytes over a constant of the model's family, rounded up for every part:
2 for Claude 4.7 and later, 2.5 for older Claude, Gemini and the unknown, 3 for OpenAI. Measured on
twenty corpora of agent text, code, JSON and prose this is 1.00 to 1.38 of the truth; on long runs
of hex or base64 it is as low as 0.61, and lower on control characters. A constant that held for these too
would let ordinary history go long before it must, for good; where one is refused, the ratio of its true
size is learnt, and what the provider counted last is where the next estimate starts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..messages import Image, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from .billing import image_tokens

if TYPE_CHECKING:
    from .catalogue import Model

# Allowances in tokens for the marks that a provider puts around things. OpenAI's published recipe
# for chat lists counts 3 a message and 1 for a name; Anthropic's count of an image is its patches
# and about 4 more. A call and its result each carry an id and field names.
MESSAGE = 4
IMAGE = 4
CALL = 12
RESULT = 12
TOOL = 8

# An image of unknown size counts as one of this size in px: no regime bills a screenshot of the most
# common screen, 1920×1080, more.
UNKNOWN_SIZE = 2048, 1152

# Characters of a thinking block's signature that stand for one thinking token.
SIGNATURE = 4


class Count(int):
    """A number of tokens. ``ruler`` names how they were counted."""

    ruler: str

    def __new__(cls, tokens: int, ruler: str = "") -> Count:
        made = super().__new__(cls, tokens)
        made.ruler = ruler
        return made


SPREAD = 138
"""An estimate of ordinary text over its true tokens, at most, in hundredths: see above."""


class Ruler:
    """Estimates the input tokens of one model. Every answer is a whole number of tokens, rounded up.

    ``low``: text counts no more than it may really have, for who asks what can be saved of it.
    """

    __slots__ = ("_per_bytes", "_tokens", "model", "name")

    def __init__(self, model: Model, low: bool = False) -> None:
        ratio = model.bytes_per_token
        self.model = model
        self._tokens, self._per_bytes = 100 * ratio.denominator, (SPREAD if low else 100) * ratio.numerator
        self.name = f"UTF-8 bytes/{self._per_bytes / self._tokens:g}"

    def text(self, text: str) -> int:
        """Tokens of a text; lone surrogates count three bytes."""
        size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        return -(-size * self._tokens // self._per_bytes)

    def image(self, width: int, height: int) -> int:
        """Tokens of an image of ``width`` × ``height`` px, 0 where a side is unknown."""
        if width < 1 or height < 1:
            width, height = UNKNOWN_SIZE
        return image_tokens(self.model, width, height) + IMAGE

    def part(self, part: Part) -> int:
        """Tokens of a part. Private parts are never sent and count nothing."""
        match part:
            case Text():
                return self.text(part.text)
            case Image():
                return self.image(part.width, part.height)
            case ToolCall():
                return self.text(part.name) + self.text(part.arguments) + CALL
            case ToolResult():
                return sum(map(self.part, part.parts)) + RESULT
            case Reasoning():
                return self.text(part.text) if part.text else -(-part.size // SIGNATURE)
            case Opaque():
                return 0 if part.private else self.data(part.native)

    def data(self, native: Any) -> int:
        """Tokens of a native object: those of its JSON without blanks."""
        return self.text(json.dumps(native, ensure_ascii=False, separators=(",", ":"), default=str))

    def message(self, message: Message) -> int:
        """Tokens of a message and its frame; one that shares its wire message with another has no frame."""
        return sum(map(self.part, message.parts)) + (0 if message.joined else MESSAGE)

    def messages(self, messages: Iterable[Message]) -> int:
        """Tokens of several messages."""
        return sum(map(self.message, messages))

    def system(self, system: Message | None) -> int:
        """Tokens of a system prompt that stands beside the list."""
        return 0 if system is None else self.message(system)

    def tools(self, tools: Sequence[Any] | None, names: Iterable[str] = ()) -> int:
        """Tokens of tool definitions; of stubs with an empty schema where only ``names`` are known."""
        if tools is None:
            tools = [{"name": name, "input_schema": {"type": "object"}} for name in names]
        return sum(self.data(tool) + TOOL for tool in tools)


def cost(model: Model, input_tokens: int) -> float | None:
    """USD for ``input_tokens`` tokens of uncached input; ``None`` where the price is unknown.

    Above the model's threshold (200,000 or 272,000 tokens) the higher price holds for all of them.
    """
    prices = model.prices
    price = prices.input
    if prices.threshold is not None and input_tokens > prices.threshold:
        price = prices.input_above
    return None if price is None else input_tokens * price / 1_000_000
