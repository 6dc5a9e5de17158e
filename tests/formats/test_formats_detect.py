"""Which format is it, and what is said if it is none."""

from __future__ import annotations

from typing import Any

import pytest
from microfiche import formats
from microfiche.errors import BadInput, UnknownFormat

USER = {"role": "user", "content": "hi"}
TURN = {"type": "assistant", "message": {"id": "m", "role": "assistant", "content": []}}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]}], "anthropic"),
        ([USER, {"role": "assistant", "content": [{"type": "foo_tool_result", "tool_use_id": "t"}]}], "anthropic"),
        ([USER, {"role": "user", "content": [{"type": "image", "source": {}}]}], "anthropic"),
        ([{"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {}}]}], "anthropic"),
        ({"system": "s", "messages": [USER]}, "anthropic"),
        ({"tools": [{"name": "a", "input_schema": {}}], "messages": [USER]}, "anthropic"),
        ([{"id": "m", "type": "message", "role": "assistant", "content": [{"type": "tool_use"}]}], "anthropic"),
        ([USER], "anthropic"),
        ([], "anthropic"),
        ({"model": "gpt-5.6", "messages": [USER]}, "openai_chat"),
        ({"model": "openai/gpt-5.6", "messages": [USER]}, "openai_chat"),
        ({"model": "qwen", "messages": [{"role": "system", "content": "s"}, USER]}, "openai_chat"),
        ([{"role": "system", "content": "s"}, USER], "openai_chat"),
        ({"model": "claude-opus-5", "messages": [{"role": "system", "content": "s"}, USER]}, "openai_chat"),
        ({"messages": [USER], "max_completion_tokens": 5}, "openai_chat"),
        ({"tools": [{"type": "function", "function": {"name": "a"}}], "messages": [USER]}, "openai_chat"),
        ([USER, {"role": "assistant", "content": None}], "openai_chat"),
        ([USER, {"role": "assistant", "tool_calls": []}], "openai_chat"),
        ([USER, {"role": "tool", "tool_call_id": "c", "content": "x"}], "openai_chat"),
        ([{"role": "developer", "content": "s"}, USER], "openai_chat"),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]}], "openai_chat"),
        ({"input": [USER]}, "openai_responses"),
        ({"input": "hi"}, "openai_responses"),
        ([USER, {"type": "function_call", "call_id": "c"}], "openai_responses"),
        ([{"type": "message", "role": "user", "content": "a"}], "openai_responses"),
        ([{"role": "user", "content": [{"type": "input_text", "text": "a"}]}], "openai_responses"),
        ([{"type": "message", "role": "developer", "content": "a"}], "openai_responses"),
        ({"contents": []}, "gemini"),
        ([{"role": "user", "parts": [{"text": "a"}]}], "gemini"),
        ({"schema_version": "ATIF-v1.7", "steps": [], "agent": {}}, "atif"),
        ({**TURN, "uuid": "u", "parentUuid": None, "sessionId": "s"}, "claude_code"),
        ([{**TURN, "uuid": "u", "session_id": "s"}], "claude_stream"),
        ([{"type": "system", "subtype": "init", "session_id": "s"}, TURN], "claude_stream"),
        ('{"type":"summary","leafUuid":"u","summary":"x"}\n{}', "claude_code"),
        ('{"type":"system","subtype":"init","session_id":"s"}\n{"type":"result"}', "claude_stream"),
    ],
)
def test_the_format_is_told_by_what_only_it_has(source: Any, expected: str) -> None:
    assert formats.detect(source) == expected


@pytest.mark.parametrize("wire", ["anthropic", "openai_chat", "openai_responses"])
def test_text_alone_fits_several_and_the_caller_decides(wire: str) -> None:
    assert formats.detect([USER], prefer=wire) == wire
    assert formats.read([USER], prefer=wire).wire == wire
    assert formats.detect([{"role": "user", "parts": []}], prefer=wire) == "gemini"
    assert formats.detect([USER, {"role": "tool", "content": "x"}], prefer="anthropic") == "openai_chat"
    assert formats.detect([{"role": "system", "content": "s"}, USER], prefer=wire) == "openai_chat"
    assert formats.detect({"messages": [USER]}, prefer="openai_responses") == "openai_chat"
    assert formats.detect([USER], prefer="gemini") == "openai_chat"


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ({"a": 1}, '"a"'),
        ({}, "no fields"),
        ([1, 2], "a list of int"),
        (5, "int"),
        ('{"type":"session_meta","payload":{}}\n{"type":"response_item"}', "Codex"),
        ('{"type":"session","version":3}\n{"type":"message"}', "pi session"),
        ('{"type":"zig"}\n{"type":"zag"}', "zig, zag"),
        ('{"b":1}\n{"c":2}', '"b"'),
    ],
)
def test_what_fits_nothing_is_named(source: Any, told: str) -> None:
    with pytest.raises(UnknownFormat) as caught:
        formats.detect(source)
    assert told in caught.value.what
    assert caught.value.cure


def test_bad_format_names_are_told_with_the_good_ones() -> None:
    with pytest.raises(BadInput, match="anthropic"):
        formats.read([], "nonsense")
    with pytest.raises(BadInput, match="openai_chat"):
        formats.write(formats.read([USER]), "atif")
    with pytest.raises(BadInput, match="gemini"):
        formats.list_key("claude_code")


@pytest.mark.parametrize("wire", formats.WIRES)
@pytest.mark.parametrize("source", [{}, {"messages": 5, "input": 5, "contents": None}, 7, None])
def test_a_body_without_its_list_is_refused(wire: str, source: Any) -> None:
    with pytest.raises(BadInput):
        formats.read(source, wire)


@pytest.mark.parametrize("wire", formats.WIRES)
def test_a_message_that_is_no_object_is_named_by_place(wire: str) -> None:
    good = {"role": "user", "content": "a", "parts": []}
    with pytest.raises(BadInput, match=r"\[1\]"):
        formats.read([good, 5], wire)
