"""How a list may end, and what a tool may be named, where the model tells the host."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from microfiche.testing import Judge
from microfiche.validate import repair, validate
from validate_samples import BODIES

ENDINGS = [
    ("gemini", "gemini-3.6-flash", True),
    ("gemini", "gemini-4-argon", True),
    ("gemini", "gemini-3.1-pro-preview", False),
    ("gemini", "gemini-2.5-flash", False),
    ("openai_chat", "mistral-large-4", True),
    ("openai_chat", "anthropic/claude-opus-5", True),
    ("openai_chat", "claude-opus-4-5", False),
    ("openai_chat", "gpt-5.6-sol", False),
    ("openai_chat", "deepseek-flash", False),
]


def ended(provider: str, **more: Any) -> dict[str, Any]:
    body = copy.deepcopy(BODIES[provider]())
    if provider == "gemini":
        body["contents"].append({"role": "model", "parts": [{"text": "It is"}]})
    else:
        body["messages"].append({"role": "assistant", "content": "It is", **more})
    return body


@pytest.mark.parametrize(("provider", "model", "refused"), ENDINGS)
def test_a_list_that_ends_with_the_model(provider: str, model: str, refused: bool) -> None:
    body = ended(provider)
    assert [found.rule for found in validate(body, provider, model=model)] == ["final-assistant"] * refused
    mended, repairs = repair(body, provider, model=model)
    assert len(repairs) == refused
    assert validate(mended, provider, model=model) == []
    key = "contents" if provider == "gemini" else "messages"
    assert mended[key][: len(body[key])] == body[key]
    assert repair(mended, provider, model=model)[1] == []


def test_a_prefix_is_asked_for() -> None:
    assert validate(ended("openai_chat", prefix=True), "openai_chat", model="mistral-large-4") == []


@pytest.mark.parametrize("model", ["claude-opus-5", "mistral-large-4", "pixtral-12b", "deepseek-flash"])
@pytest.mark.parametrize("name", ["weird<tool>", "a.b", "x" * 65, ""])
def test_hosts_that_hold_names_to_a_rule(model: str, name: str) -> None:
    body = copy.deepcopy(BODIES["openai_chat"]())
    call = next(message for message in body["messages"] if message.get("tool_calls"))["tool_calls"][0]
    call["function"]["name"] = name
    body["messages"].append({"role": "user", "content": "go on"})
    assert [found.rule for found in validate(body, "openai_chat", model=model)] == ["tool-name"]
    mended, _ = repair(body, "openai_chat", model=model)
    assert validate(mended, "openai_chat", model=model) == []


def test_a_call_whose_id_another_call_still_waits_under_gets_its_own() -> None:
    """Kind: a moved call leaves two open under one id, each with an answer, and the provider refuses the second."""

    def call(path: str) -> dict[str, Any]:
        return {"type": "function_call", "call_id": "c1", "name": "read", "arguments": f'{{"path": "{path}"}}'}

    def output(text: str) -> dict[str, Any]:
        return {"type": "function_call_output", "call_id": "c1", "output": text}

    says = {"role": "assistant", "content": "One more."}
    user = {"role": "user", "content": "Read."}
    body = {"model": "gpt-5.2", "input": [user, call("a"), says, call("b"), output("B"), says, output("A")]}
    assert [each.rule for each in validate(body, "openai_responses")] == ["duplicate-id"]
    mended, _ = repair(body, "openai_responses")
    assert Judge().check("openai_responses", mended) is None
    # One behind the other an id may come again.
    body["input"] = [user, call("a"), output("A"), says, call("b"), output("B")]
    assert validate(body, "openai_responses") == []
