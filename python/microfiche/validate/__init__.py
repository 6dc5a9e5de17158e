"""Is this request sendable? The rules of each provider, and the least repair where it is not.

Both functions work on native objects (a whole request body, or the bare list of messages, items or
contents) and know nothing of our own message classes. A request that its provider would accept is never
flagged: where the vendors say nothing certain, a rule stays silent. What cannot be told from a request
alone (whether reasoning is the reasoning that was signed, whether an item id is known to the server) is
not judged.
NUL and other control characters have their JSON escapes, and pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from microfiche.validate import anthropic, gemini, openai_chat, openai_responses
from microfiche.validate.draft import Draft, Limits, Repair, Violation

__all__ = ["PROVIDERS", "Limits", "Repair", "Violation", "default_limits", "repair", "validate"]


@dataclass(frozen=True, slots=True)
class _Wire:
    key: str
    check: Callable[[Draft], None]
    limits: Limits
    binary: bool = False


_WIRES: dict[str, _Wire] = {
    "anthropic": _Wire("messages", anthropic.check, anthropic.LIMITS),
    "openai_chat": _Wire("messages", openai_chat.check, openai_chat.LIMITS),
    "openai_responses": _Wire("input", openai_responses.check, openai_responses.LIMITS),
    "gemini": _Wire("contents", gemini.check, gemini.LIMITS, binary=True),
}

PROVIDERS: tuple[str, ...] = (*_WIRES, "openai")
"""The names that :func:`validate` and :func:`repair` know; ``openai`` tells its two wires by the shape."""


def validate(
    messages: Any, provider: str = "anthropic", limits: Limits | None = None, model: str | None = None
) -> list[Violation]:
    """Everything for which the provider would refuse the request; empty if it can be sent.

    ``messages`` is a request body or the bare list inside it; of a bare list only what the list tells is
    judged. ``limits`` replace the provider's own. ``model`` (else the body's) decides the rules that
    differ between models; they are not applied where it is unknown.

    Raises ``ValueError`` for an unknown provider.
    """
    return _judge(messages, provider, limits, model).violations


def repair(
    body: Any, provider: str = "anthropic", limits: Limits | None = None, model: str | None = None
) -> tuple[Any, list[Repair]]:
    """The request with the least changes that make it sendable, and what they were.

    The input is never changed; the very same object comes back when nothing was mended. What stays
    unsendable is what :func:`validate` says about the result. Repairing twice changes nothing more.
    """
    draft = _judge(body, provider, limits, model)
    return (draft.result, draft.repairs) if draft.repairs else (body, [])


def default_limits(provider: str) -> Limits:
    """The limits that are applied where none are passed."""
    return _wire(provider, {}).limits


def _judge(source: Any, provider: str, limits: Limits | None, model: str | None) -> Draft:
    wire = _wire(provider, source)
    draft = Draft(source, wire.key, limits if limits is not None else wire.limits, model, binary=wire.binary)
    if not draft.bottomless:
        wire.check(draft)
    return draft


def _wire(provider: str, source: Any) -> _Wire:
    if provider == "openai":
        provider = "openai_responses" if _is_responses(source) else "openai_chat"
    if provider not in _WIRES:
        raise ValueError(f"unknown provider {provider!r}; known are {', '.join(PROVIDERS)}")
    return _WIRES[provider]


def _is_responses(source: Any) -> bool:
    """Responses name their list ``input``; in a bare one, items and parts have types of their own."""
    if isinstance(source, dict):
        return "messages" not in source
    for item in source if isinstance(source, (list, tuple)) else ():
        if not isinstance(item, dict):
            continue
        if item.get("role") == "tool" or "tool_calls" in item:
            return False
        if "type" in item:
            return True
        content = item.get("content")
        for part in content if isinstance(content, (list, tuple)) else ():
            type_ = part.get("type") if isinstance(part, dict) else None
            if isinstance(type_, str) and type_ in ("text", "image_url"):
                return False
            if isinstance(type_, str) and type_.startswith(("input_t", "input_i", "input_f", "output_")):
                return True
    return False
