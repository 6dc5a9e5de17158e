"""Is this request sendable? The rules of each provider, and the least repair where it is not.

They work on native objects (a whole request body, or the bare list of messages, items or
contents) and know nothing of our own message classes. A request that its provider would accept is never
flagged: where the vendors say nothing certain, a rule stays silent. What cannot be told from a request
alone (whether reasoning is the reasoning that was signed, whether an item id is known to the server) is
not judged.
NUL and other control characters have their JSON escapes, and pass.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from microfiche.validate.draft import Draft, Limits, Repair, Violation

if TYPE_CHECKING:
    from microfiche.models import Model

__all__ = ["PROVIDERS", "Limits", "Repair", "Violation", "default_limits", "limits_for", "mend", "repair", "validate"]

# The key of the conversation in a body. The rules of a wire are the module of its name here: `check` and
# `LIMITS`, loaded at first use.
_KEYS = {
    "anthropic": "messages",
    "openai_chat": "messages",
    "openai_responses": "input",
    "gemini": "contents",
}

PROVIDERS: tuple[str, ...] = (*_KEYS, "openai")
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
    return _mended(body, _judge(body, provider, limits, model))


def mend(
    body: Any, provider: str = "anthropic", limits: Limits | None = None, model: str | None = None
) -> tuple[Any, list[Repair], list[Violation]]:
    """What :func:`repair` gives, and what :func:`validate` says about its result."""
    draft = _judge(body, provider, limits, model)
    result, repairs = _mended(body, draft)
    return result, repairs, validate(result, provider, limits, model) if repairs else draft.violations


def default_limits(provider: str) -> Limits:
    """The limits that are applied where none are passed. Raises ``ValueError`` for an unknown provider."""
    limits: Limits = _rules(_wire(provider, {})).LIMITS
    return limits


def limits_for(model: Model, provider: str) -> Limits:
    """The limits of a model of the catalogue, on the wire of a provider; that wire's where the model has none."""
    many = model.many_images
    known = {
        "images": model.images_per_request,
        "image_side": model.max_side,
        "many_images": many.count if many else None,
        "many_images_side": many.side if many else None,
        "image_bytes": model.image_bytes,
        "request_bytes": model.request_bytes,
    }
    given: dict[str, Any] = {name: value for name, value in known.items() if value is not None}
    return replace(default_limits(provider), **given)


def _mended(body: Any, draft: Draft) -> tuple[Any, list[Repair]]:
    if not draft.repairs or draft.bottomless:
        return body, []
    return draft.result, draft.repairs


def _judge(source: Any, provider: str, limits: Limits | None, model: str | None) -> Draft:
    wire = _wire(provider, source)
    rules = _rules(wire)
    draft = Draft(source, _KEYS[wire], limits if limits is not None else rules.LIMITS, model, binary=wire == "gemini")
    if not draft.bottomless:
        rules.check(draft)
    return draft


def _rules(wire: str) -> Any:
    return import_module(f"microfiche.validate.{wire}")


def _wire(provider: str, source: Any) -> str:
    if provider == "openai":
        return "openai_responses" if _is_responses(source) else "openai_chat"
    if provider not in _KEYS:
        raise ValueError(f"unknown provider {provider!r}; known are {', '.join(PROVIDERS)}")
    return provider


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
