"""Whether the judge takes a request, asked with one model for each wire."""

from __future__ import annotations

from typing import Any

from microfiche.testing import Judge

MODELS = {
    "anthropic": "claude-opus-5",
    "openai_chat": "gpt-5.6-sol",
    "openai_responses": "gpt-5.6-sol",
    "gemini": "gemini-3.6-flash",
}


def accepted(request: Any, wire: str = "anthropic") -> None:
    refusal = Judge().check(wire, request, MODELS[wire])
    assert refusal is None, refusal
