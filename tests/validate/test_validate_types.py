"""The vendors' own types as a judge: what repair leaves behind is what their clients take."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from anthropic.types import TextBlock, ToolUseBlock
from anthropic.types.beta import BetaMessageParam
from google.genai.types import Content
from microfiche.validate import repair, validate
from openai.types.chat import ChatCompletionMessage, ChatCompletionMessageParam
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


def test_answers_as_the_clients_give_them_are_judged_as_what_is_sent() -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {}}
    answer = [TextBlock(type="text", text="x"), ToolUseBlock.model_validate(call)]
    history: list[Any] = [{"role": "user", "content": "go"}, {"role": "assistant", "content": answer}]
    assert [found.rule for found in validate(history)] == ["unanswered-call"]
    mended, _ = repair(history)
    assert mended[1]["content"][1] == call and answer[0].text == "x"
    history.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1"}]})
    assert validate(history) == [] and repair(history)[0] is history

    function = {"id": "call_1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    message = ChatCompletionMessage.model_validate({"role": "assistant", "content": None, "tool_calls": [function]})
    assert [found.rule for found in validate([message], "openai")] == ["unanswered-call"]

    parts = [{"functionCall": {"name": "bash"}, "thoughtSignature": b"abc"}]
    content = Content.model_validate({"role": "model", "parts": parts})
    answered = {"role": "user", "parts": [{"functionResponse": {"name": "bash", "response": {}}}]}
    asked = {"role": "user", "parts": [{"text": "go"}]}
    assert validate([asked, content, answered], "gemini", model="gemini-3.6-flash") == []
    assert [found.rule for found in validate([asked, content], "gemini")] == ["unanswered-call"]


@pytest.mark.parametrize(("provider", "rule", "name", "change"), CASES)
def test_what_was_mended_is_sound_by_the_vendors_types(
    provider: str, rule: str, name: str, change: Callable[[Any, Any], Any], judges: dict[str, Callable[[Any], Any]]
) -> None:
    """Kind: a repair written for types of parts that no host has, which never did anything."""
    body = copy.deepcopy(BODIES[provider]())
    change(body, body[KEYS[provider]])
    mended, _ = repair(body, provider)
    for message in mended[KEYS[provider]]:
        drain(judges[provider](message))
