"""The vendors' own types as a judge: what repair leaves behind is what their clients take."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from anthropic.types.beta import BetaMessageParam
from google.genai.types import Content
from microfiche.validate import repair
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter
from test_validate_corpus import CASES
from validate_samples import BODIES, KEYS

TYPES: dict[str, Any] = {
    "anthropic": BetaMessageParam,
    "openai_chat": ChatCompletionMessageParam,
    "openai_responses": ResponseInputItemParam,
    "gemini": Content,
}


@pytest.fixture(scope="module")
def judges() -> dict[str, Callable[[Any], Any]]:
    return {provider: TypeAdapter(type_).validate_python for provider, type_ in TYPES.items()}


def drain(value: Any) -> None:
    """Iterables of typed dicts are judged when they are read."""
    if isinstance(value, dict):
        for item in value.values():
            drain(item)
    elif hasattr(value, "__next__") or isinstance(value, list):
        for item in value:
            drain(item)


@pytest.mark.parametrize("provider", BODIES)
def test_the_samples_are_sound_by_the_vendors_types(provider: str, judges: dict[str, Callable[[Any], Any]]) -> None:
    for message in BODIES[provider]()[KEYS[provider]]:
        drain(judges[provider](message))


@pytest.mark.parametrize(("provider", "rule", "name", "change"), CASES)
def test_what_was_mended_is_sound_by_the_vendors_types(
    provider: str, rule: str, name: str, change: Callable[[Any, Any], Any], judges: dict[str, Callable[[Any], Any]]
) -> None:
    body = copy.deepcopy(BODIES[provider]())
    change(body, body[KEYS[provider]])
    mended, _ = repair(body, provider)
    for message in mended[KEYS[provider]]:
        drain(judges[provider](message))
