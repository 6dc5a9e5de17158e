"""Whether a pass pays while everything fits: what it saves at the calls left, against what the cache has to write anew.

A provider's prompt cache holds a prefix. Read from it a token costs a tenth of its price or less, written to it
up to a quarter more; a pass changes the prefix from the first turn that it touches on.
"""

from __future__ import annotations

from collections.abc import Sequence

from microfiche.messages import Message
from microfiche.models import Model

from .budget import Scale


def spent(model: Model, tokens: int, cached: int, calls: int) -> float | None:
    """USD of input for ``calls`` calls with a context of so many tokens, the first ``cached`` of them in the cache.

    What the first call writes the others read. ``None`` where the model's price is not known; a model without
    prices of a cache pays its input each time.
    """
    prices = model.prices
    if prices.input is None:
        return None
    dearer = 1.0
    if prices.threshold is not None and prices.input_above is not None and tokens > prices.threshold:
        dearer = prices.input_above / prices.input if prices.input else 1.0
    read = prices.cached if prices.cached is not None else prices.input
    write = prices.cache_write if prices.cache_write is not None else prices.input
    held = min(cached, tokens)
    return dearer * (read * held + write * (tokens - held) + read * tokens * max(calls - 1, 0)) / 1_000_000


def common_tokens(one: Sequence[Message], other: Sequence[Message], scale: Scale) -> int:
    """Tokens of the messages with which both begin."""
    total = 0
    for a, b in zip(one, other, strict=False):
        if a is not b and a != b:
            break
        total += scale.message(a).tokens
    return total


def pays(model: Model, stays: int, made: int, common: int, cached: int, calls: int) -> bool:
    """Whether a context of ``made`` tokens is cheaper than one of ``stays``, of which ``cached`` are in the cache.

    ``common`` are the tokens with which both begin. Where no price is known, nothing pays.
    """
    before = spent(model, stays, cached, calls)
    after = spent(model, made, min(cached, common), calls)
    return before is not None and after is not None and after < before
