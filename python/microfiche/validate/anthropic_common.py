"""What the rules of the Anthropic Messages API share: the version of a model, the blocks of a message."""

from __future__ import annotations

import re
from typing import Any

from microfiche.validate.draft import Draft, Object


def claude_version(model: str | None) -> tuple[int, int] | None:
    """Version of a Claude model by its name: ``claude-opus-4-6`` → (4, 6); ``None`` if it tells none.

    A date is no version: ``claude-opus-4-20250514`` → (4, 0).
    """
    if model is None:
        return None
    found = re.search(
        r"(?:claude-(?:[a-z]+-)?|(?:opus|sonnet|haiku|fable|mythos)-)(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)",
        model.lower(),
    )
    return (int(found[1]), int(found[2] or 0)) if found else None


def older(draft: Draft, version: tuple[int, int]) -> bool:
    """Whether the model is known to be of a version before this one."""
    known = claude_version(draft.model)
    return known is not None and known < version


def refuses_prefill(draft: Draft) -> bool:
    """Claude 4.6 and later refuse a final assistant message; without a model's name it is not judged."""
    known = claude_version(draft.model)
    return known is not None and known >= (4, 6)


def blocks(message: Object) -> list[Any]:
    """The blocks of a message; none where its content is a string."""
    content = message.get("content")
    return content if isinstance(content, list) else []


def text_block(draft: Draft, text: str, like: Object) -> Object:
    """A block that stands in the place of another."""
    made: Object = {"type": "text", "text": text}
    draft.adopt(made, like)
    return made


def is_result(type_: str) -> bool:
    """Whether a block of this type is the result of a call, of whatever tool."""
    return type_ == "tool_result" or type_.endswith("_tool_result")
