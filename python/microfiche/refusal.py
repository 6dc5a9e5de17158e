"""A provider's refusal for size: its kind, its numbers, its cure.

The rules stand in :mod:`microfiche.refusal_rules` and are loaded on first use: the patterns of some thirty
providers take longer to compile than the rest of the package to import.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Kind", "Refusal", "refusal"]

Kind = Literal[
    "tokens",
    "tokens_plus_max_tokens",
    "bytes",
    "image_count",
    "image_dimensions",
    "image_bytes",
    "rate_tokens",
    "silent",
]

_CURES: dict[Kind, str] = {
    "tokens": "send fewer input tokens",
    "tokens_plus_max_tokens": "lower max_tokens, or send fewer input tokens",
    "bytes": "send fewer bytes: drop images first",
    "image_count": "send fewer images",
    "image_dimensions": "send images of smaller sides",
    "image_bytes": "send images of fewer bytes",
    "rate_tokens": "send a smaller request: waiting does not help, it exceeds the limit by itself",
    "silent": "send fewer input tokens: the answer was cut short or empty, or the input was truncated",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request was too large.

    ``used`` and ``limit`` are in the unit of the kind (tokens, bytes, images or pixels), ``max_tokens`` is the
    output that was asked for; ``None`` where the provider does not say. ``used`` is the input alone.
    """

    kind: Kind
    used: int | None = None
    limit: int | None = None
    max_tokens: int | None = None

    @property
    def cure(self) -> str:
        """What to do about it, in one line."""
        return _CURES[self.kind]


def refusal(error: Any, body: Any = None, *, window: int | None = None, expected: int | None = None) -> Refusal | None:
    """The refusal that an error or an answer means; ``None`` for everything that a smaller request does not cure.

    ``error`` is an exception of a client (told by its ``status_code``, ``code``, ``response``, ``body`` and
    ``message``; its causes are looked at too), a status with the ``body`` (also as one pair), an HTTP response, or
    a successful answer (object or dict) whose stop reason or usage tells that it was truncated or empty. What was
    judged already comes back as it is.

    ``window`` (tokens) lets an answer be recognised whose counted input exceeds it, ``expected`` (estimated input
    tokens of the request) one for which the provider silently dropped more than half of the input.
    """
    if isinstance(error, Refusal):
        return error
    from microfiche.refusal_rules import judge

    return judge(error, body, window, expected)
