"""A system prompt passed beside a list reaches the request in the place its wire has for it."""

from __future__ import annotations

from typing import Any

import microfiche as mf
import pytest

USER = {
    "anthropic": {"role": "user", "content": "hi"},
    "openai_chat": {"role": "user", "content": "hi"},
    "gemini": {"role": "user", "parts": [{"text": "hi"}]},
}
MODEL = {"anthropic": "claude-opus-5", "openai_chat": "gpt-5.6-sol", "gemini": "gemini-3.6-flash"}


def _place(wire: str, request: dict[str, Any]) -> Any:
    return {
        "anthropic": lambda: request["system"],
        "openai_chat": lambda: request["messages"][0],
        "gemini": lambda: request["systemInstruction"],
    }[wire]()


@pytest.mark.parametrize("wire", USER)
@pytest.mark.parametrize("many", [1, 400])
def test_system_stands_in_the_request_and_not_in_the_list(wire: str, many: int) -> None:
    turn = USER[wire]
    answer = (
        {"role": "model", "parts": [{"text": "yes " * 300}]}
        if wire == "gemini"
        else {"role": "assistant", "content": "yes " * 300}
    )
    messages = [turn, answer] * many + [turn]
    fit = mf.compact(messages, model=MODEL[wire], system="be kind", budget=30_000)
    assert "be kind" in str(_place(wire, fit.request))
    assert "be kind" not in str(fit.messages)
    assert fit.tokens == mf.count(fit.request, model=MODEL[wire])
    assert not mf.validate(fit.request, provider=wire)
    assert (fit.messages is messages) == (many == 1)
