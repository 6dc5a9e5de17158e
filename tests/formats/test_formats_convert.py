"""From one wire to another: what is carried, what is named, and what the official types say of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anthropic.types
import openai.types.chat
import openai.types.responses
import pytest
from google.genai import types as genai
from hypothesis import given, settings
from hypothesis import strategies as st
from microfiche import formats
from microfiche.messages import History, Image, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from pydantic import TypeAdapter
from wire_histories import names, objects, png, words

ADAPTERS: dict[str, TypeAdapter[Any]] = {
    "anthropic": TypeAdapter(list[anthropic.types.MessageParam]),
    "openai_chat": TypeAdapter(list[openai.types.chat.ChatCompletionMessageParam]),
    "openai_responses": TypeAdapter(list[openai.types.responses.ResponseInputItemParam]),
    "gemini": TypeAdapter(list[genai.Content]),
}
TOOLS: dict[str, TypeAdapter[Any]] = {
    "anthropic": TypeAdapter(list[anthropic.types.ToolParam]),
    "openai_chat": TypeAdapter(list[openai.types.chat.ChatCompletionToolUnionParam]),
    "openai_responses": TypeAdapter(list[openai.types.responses.FunctionToolParam]),
    "gemini": TypeAdapter(list[genai.Tool]),
}


def judge(adapter: TypeAdapter[Any], value: Any) -> None:
    """Raises what the official types object to. Iterables in them are checked only as they are walked."""
    walk(adapter.validate_python(value))


def walk(value: Any) -> None:
    if isinstance(value, dict):
        for each in value.values():
            walk(each)
    elif isinstance(value, Iterator | list | tuple):
        for each in value:
            walk(each)


@st.composite
def neutral(draw: st.DrawFn) -> History:
    """A history of no wire: questions, answers, batches of calls with results, images, reasoning."""
    messages = [Message("user", (Text(draw(words)), Image(png(), owner="user")))]
    for number in range(draw(st.integers(0, 3))):
        keys = [f"call_{number}_{at}" for at in range(draw(st.integers(0, 3)))]
        thought = (Reasoning("r", signed=draw(st.booleans())),) if draw(st.booleans()) else ()
        calls = [ToolCall(key, draw(names), json.dumps(draw(objects))) for key in keys]
        messages.append(Message("assistant", (*thought, Text(draw(words)), *calls)))
        if calls:
            results = []
            for call in calls:
                extra = draw(st.sampled_from([(), (Image(png(), owner="tool"),), (Image(png(), owner="page"),)]))
                parts = (Text(draw(words)), *extra)
                results.append(ToolResult(call.id, parts, draw(st.booleans()), call.name))
            messages.append(Message("tool", tuple(results)))
        if draw(st.booleans()):
            messages.append(Message("user", (Text(draw(words)),), joined=bool(calls)))
    system = Message("system", (Text("rules"),)) if draw(st.booleans()) else None
    return History(messages, "atif", system=system, tool_names=("f",), model="m")


@pytest.mark.parametrize("wire", formats.WIRES)
@given(history=neutral())
@settings(max_examples=25, deadline=None)
def test_the_official_types_accept_what_is_written(wire: str, history: History) -> None:
    body, notes = formats.write(history, wire)
    judge(ADAPTERS[wire], body[formats.list_key(wire)])
    judge(TOOLS[wire], body["tools"])
    json.dumps(body)
    assert body["model"] == "m"
    assert any("stubs" in note.what for note in notes)
    again = formats.read(body, wire)
    calls = [call for message in history.messages for call in message.calls]
    assert [(call.id, call.name, json.loads(call.arguments)) for m in again.messages for call in m.calls] == [
        (call.id, call.name, json.loads(call.arguments)) for call in calls
    ]
    assert [result.call_id for message in again.messages for result in message.results] == [call.id for call in calls]


def test_the_judges_judge() -> None:
    with pytest.raises(ValueError):
        judge(ADAPTERS["anthropic"], [{"role": "user", "content": [{"type": "text", "text": 5}]}])
    with pytest.raises(ValueError):
        judge(ADAPTERS["openai_chat"], [{"role": "tool", "content": "x"}])
    with pytest.raises(ValueError):
        judge(ADAPTERS["openai_responses"], [{"type": "function_call_output", "call_id": "c"}])
    with pytest.raises(ValueError):
        judge(ADAPTERS["gemini"], [{"role": "user", "parts": [{"inlineData": 5}]}])


def test_what_cannot_be_carried_is_named_once_a_kind() -> None:
    history = formats.read(
        {
            "model": "claude-opus-5",
            "max_tokens": 5,
            "temperature": 1,
            "thinking": {"type": "adaptive"},
            "tools": [
                {"name": "f", "description": "d", "input_schema": {"type": "object", "properties": {}}},
                {"type": "web_search_20260209", "name": "web_search"},
            ],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "go"}, {"type": "document", "source": {}}]},
                {"role": "assistant", "content": [{"type": "thinking", "thinking": "a", "signature": "s"}]},
                {
                    "role": "assistant",
                    "content": [{"type": "thinking", "thinking": "a", "signature": "s"}, {"type": "text", "text": "b"}],
                },
            ],
        }
    )
    body, notes = formats.write(history, "openai_chat")
    assert body == {
        "model": "claude-opus-5",
        "max_completion_tokens": 5,
        "tools": [
            {
                "type": "function",
                "function": {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}},
            }
        ],
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "b"},
        ],
    }
    assert [note.what for note in notes] == [
        '"document" left out: it has no counterpart (1)',
        "signed reasoning left out: another provider does not take it (2)",
        'request field left out: "temperature" (1)',
        'request field left out: "thinking" (1)',
        "tools left out, openai_chat has no counterpart: web_search_20260209 (1)",
    ]


SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
DEFINITIONS = {
    "anthropic": [{"name": "f", "description": "d", "input_schema": SCHEMA}],
    "openai_chat": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}}],
    "openai_responses": [{"type": "function", "name": "f", "description": "d", "parameters": SCHEMA, "strict": None}],
    "gemini": [{"functionDeclarations": [{"name": "f", "description": "d", "parametersJsonSchema": SCHEMA}]}],
}


@pytest.mark.parametrize("source", formats.WIRES)
@pytest.mark.parametrize("target", formats.WIRES)
def test_definitions_go_from_any_wire_to_any(source: str, target: str) -> None:
    history = formats.read({formats.list_key(source): [], "tools": DEFINITIONS[source]}, source)
    body, notes = formats.write(history, target)
    assert body["tools"] == DEFINITIONS[target]
    assert notes == []
    judge(TOOLS[target], body["tools"])


def test_gemini_schemas_in_capitals_become_json_schema() -> None:
    parameters = {"type": "OBJECT", "properties": {"type": {"type": "STRING", "enum": ["OBJECT"]}}}
    tools = [{"function_declarations": [{"name": "f", "parameters": parameters}, {"name": "g"}]}, {"googleSearch": {}}]
    body, notes = formats.write(formats.read({"contents": [], "tools": tools}), "anthropic")
    assert body["tools"] == [
        {
            "name": "f",
            "input_schema": {"type": "object", "properties": {"type": {"type": "string", "enum": ["OBJECT"]}}},
        },
        {"name": "g", "input_schema": {"type": "object"}},
    ]
    assert [note.what for note in notes] == ["tools left out, anthropic has no counterpart: googleSearch (1)"]


@pytest.mark.parametrize("target", formats.WIRES)
@pytest.mark.parametrize(
    ("wire", "fields"),
    [
        ("anthropic", {"max_tokens": 7}),
        ("openai_chat", {"max_completion_tokens": 7}),
        ("openai_chat", {"max_tokens": 7}),
        ("openai_responses", {"max_output_tokens": 7}),
        ("gemini", {"generationConfig": {"maxOutputTokens": 7}}),
        ("gemini", {"generation_config": {"max_output_tokens": 7}}),
    ],
)
def test_the_length_of_the_answer_is_carried(wire: str, fields: dict[str, Any], target: str) -> None:
    body, notes = formats.write(formats.read({**fields, formats.list_key(wire): []}, wire), target)
    assert notes == []
    if wire == target:
        assert body == {**fields, formats.list_key(wire): []}
    else:
        carried = formats.read(body, target).body
        assert carried in [
            {"max_tokens": 7},
            {"max_completion_tokens": 7},
            {"max_output_tokens": 7},
            {"generationConfig": {"maxOutputTokens": 7}},
        ]


def test_leading_system_messages_move_beside_the_list() -> None:
    chat = [
        {"role": "system", "content": "one"},
        {"role": "developer", "content": "two"},
        {"role": "user", "content": "go"},
        {"role": "system", "content": "mid"},
    ]
    history = formats.read(chat)
    anthropic_body, _ = formats.write(history, "anthropic")
    assert anthropic_body["system"] == [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    assert [message["role"] for message in anthropic_body["messages"]] == ["user", "system"]
    gemini_body, notes = formats.write(history, "gemini")
    assert [content["role"] for content in gemini_body["contents"]] == ["user", "user"]
    assert "system messages" in notes[0].what
    responses_body, _ = formats.write(history, "openai_responses")
    assert responses_body["instructions"] == "one\ntwo"
    back, _ = formats.write(formats.read(anthropic_body, "anthropic"), "openai_chat")
    assert [message["role"] for message in back["messages"]] == ["system", "user", "system"]


def test_a_chat_batch_becomes_one_message_elsewhere() -> None:
    calls = [{"id": f"c{at}", "type": "function", "function": {"name": "f", "arguments": "{}"}} for at in range(3)]
    chat = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        *({"role": "tool", "tool_call_id": f"c{at}", "content": str(at)} for at in range(3)),
    ]
    body, _ = formats.write(formats.read(chat), "anthropic")
    assert [len(message["content"]) for message in body["messages"][1:]] == [3, 3]
    body, _ = formats.write(formats.read(chat), "gemini")
    assert [len(content["parts"]) for content in body["contents"][1:]] == [3, 3]


def test_opaque_parts_inside_results_stay_behind_and_private_ones_unnamed() -> None:
    parts = (Text("a"), Opaque("tool_reference", {"type": "tool_reference"}), Opaque("copy", "x", private=True))
    history = History([Message("tool", (ToolResult("t", parts),))], "anthropic", wire="anthropic")
    body, notes = formats.write(history, "openai_responses")
    assert body["input"] == [{"type": "function_call_output", "call_id": "t", "output": "a"}]
    assert [note.what for note in notes] == ['"tool_reference" left out: it has no counterpart (1)']
    body, notes = formats.write(history)
    assert len(body["messages"][0]["content"][0]["content"]) == 2 and notes == []
