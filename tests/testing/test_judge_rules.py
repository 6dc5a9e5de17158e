"""The judge accepts what is sound and refuses one fault of every rule, in each provider's own words and shape.

Kinds of fault reported of others: orphaned tool results, parted parallel results, empty text blocks, images where a
role takes none, large images among many, unsigned reasoning, a final assistant message, tool blocks without tools.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import builders
import pytest
from microfiche.testing import Judge
from microfiche.testing.anthropic import sign

Body = dict[str, Any]
PNG = builders._b64(builders.png(64, 48))


def b64(width: int, height: int) -> str:
    return builders._b64(builders.png(width, height))


def claude_image(data: str = PNG, **more: Any) -> Body:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}, **more}


def sound_anthropic() -> Body:
    return {
        "model": "claude-opus-5",
        "max_tokens": 1000,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "tools": [{"name": "bash", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "go"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "two calls", "signature": sign("two calls")},
                    {"type": "text", "text": "Both."},
                    {"type": "tool_use", "id": "t1", "name": "bash", "input": {"cmd": "ls"}},
                    {"type": "tool_use", "id": "t2", "name": "bash", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": "a.txt"},
                    {"type": "tool_result", "tool_use_id": "t2", "content": [claude_image()]},
                    {"type": "text", "text": "and now?"},
                ],
            },
            {"role": "assistant", "content": "Done."},
            {"role": "user", "content": [claude_image(), {"type": "text", "text": "look"}]},
        ],
    }


def gpt_image(url: str | None = None, **more: Any) -> Body:
    return {"type": "image_url", "image_url": {"url": url or f"data:image/png;base64,{PNG}", **more}}


def sound_chat() -> Body:
    function = {"name": "bash", "arguments": '{"cmd": "ls"}'}
    return {
        "model": "gpt-5.6-sol",
        "max_completion_tokens": 1000,
        "tools": [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}],
        "messages": [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "go"}, gpt_image(detail="original")]},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": function},
                    {"id": "c2", "type": "function", "function": function},
                ],
            },
            {"role": "tool", "tool_call_id": "c2", "content": ""},
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "a.txt"}]},
            {"role": "assistant", "content": "Done."},
            {"role": "user", "content": "and now?"},
        ],
    }


def sound_responses() -> Body:
    call = {"type": "function_call", "name": "bash", "arguments": "{}"}
    image = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "original"}
    said = {"type": "output_text", "text": "Both.", "annotations": []}
    return {
        "model": "gpt-5.6-sol",
        "instructions": "Be brief.",
        "max_output_tokens": 1000,
        "tools": [{"type": "function", "name": "bash", "parameters": {"type": "object"}}],
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "go"}, image]},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
            {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [said]},
            {**call, "call_id": "c1"},
            {**call, "call_id": "c2"},
            {"type": "function_call_output", "call_id": "c1", "output": "a.txt"},
            {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "x"}, image]},
            {"role": "user", "content": "and now?"},
        ],
    }


def sound_gemini() -> Body:
    image = {"inlineData": {"mimeType": "image/png", "data": PNG}}
    return {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "generationConfig": {"maxOutputTokens": 1000, "mediaResolution": "MEDIA_RESOLUTION_HIGH"},
        "tools": [{"functionDeclarations": [{"name": "bash"}]}],
        "contents": [
            {"role": "user", "parts": [{"text": "go"}, image]},
            {
                "role": "model",
                "parts": [
                    {"text": "plan", "thought": True},
                    {"functionCall": {"name": "bash", "args": {"cmd": "ls"}}, "thoughtSignature": "QUJD"},
                    {"functionCall": {"name": "bash"}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "bash", "response": {"output": "a.txt"}}},
                    {"functionResponse": {"name": "bash", "response": {}, "parts": [image]}},
                ],
            },
            {"role": "model", "parts": [{"text": "Done."}]},
            {"role": "user", "parts": [{"text": "and now?"}]},
        ],
    }


SOUND: dict[str, Callable[[], Body]] = {
    "anthropic": sound_anthropic,
    "openai_chat": sound_chat,
    "openai_responses": sound_responses,
    "gemini": sound_gemini,
}
LISTS = {"anthropic": "messages", "openai_chat": "messages", "openai_responses": "input", "gemini": "contents"}
MODEL = {"gemini": "gemini-3.6-flash"}


def verdict(provider: str, body: Any, **options: Any) -> tuple[int, Body] | None:
    model = options.pop("model", MODEL.get(provider))
    before = copy.deepcopy(body)
    found = Judge(**options).check(provider, body, model)
    assert body == before
    return found


def message_of(provider: str, refusal: tuple[int, Body] | None) -> str:
    """The message inside the provider's own error shape."""
    assert refusal is not None
    status, body = refusal
    error = body["error"]
    if provider == "anthropic":
        assert body["type"] == "error" and error["type"] == (
            "request_too_large" if status == 413 else "invalid_request_error"
        )
    elif provider == "gemini":
        assert error["code"] == status and error["status"] == "INVALID_ARGUMENT"
    else:
        assert {"message", "type", "param", "code"} == set(error)
    return str(error["message"])


@pytest.mark.parametrize("provider", SOUND)
def test_what_is_sound_is_accepted(provider: str) -> None:
    assert verdict(provider, SOUND[provider]()) is None


def edit(path: str, value: Any) -> Callable[[Body], None]:
    """Set what stands at a dotted path; ``...`` deletes it, ``+`` at the end of the path inserts before."""

    def change(body: Body) -> None:
        *way, last = [int(key) if key.lstrip("-").isdecimal() else key for key in path.split(".")]
        at: Any = body
        for key in way:
            at = at[key]
        if value is ...:
            del at[last]
        elif isinstance(last, str) and last.startswith("+"):
            at.insert(int(last[1:]) if len(last) > 1 else len(at), value)
        else:
            at[last] = value

    return change


def swap(path: str, one: int, two: int) -> Callable[[Body], None]:
    def change(body: Body) -> None:
        at: Any = body
        for key in path.split("."):
            at = at[int(key) if key.isdecimal() else key]
        at[one], at[two] = at[two], at[one]

    return change


HOUR = {"type": "ephemeral", "ttl": "1h"}
ANSWER = {"type": "tool_result", "tool_use_id": "t1"}
REDACTED = {"type": "redacted_thinking", "data": "x"}
STRICT = {"oversized_image": "error"}
TOOL = {"role": "tool", "content": ""}
CALL = {"functionCall": {"name": "x"}}
RESPONSE = {"functionResponse": {"name": "x", "response": {}}}
BLOB = {"inlineData": {"mimeType": "image/png", "data": PNG}}
FAULTS: list[tuple[str, str, Callable[[Body], None]]] = [
    # provider, a piece of the refusal's text, the fault
    ("anthropic", "max_tokens: Field required", edit("max_tokens", ...)),
    ("anthropic", "max_tokens: Input should be", edit("max_tokens", 0)),
    ("anthropic", "Extra inputs", edit("n", 1)),
    ("anthropic", "messages.0.id: Extra inputs", edit("messages.0.id", "msg_1")),
    ("anthropic", "thinking.note: Extra inputs", edit("messages.1.content.0.note", 1)),
    ("anthropic", "at least one message", edit("messages", [])),
    ("anthropic", "unexpected role", edit("messages.0.role", "developer")),
    ("anthropic", "first message must use", edit("messages.+0", {"role": "assistant", "content": "I begin."})),
    ("anthropic", "non-empty content", edit("messages.0.content", "")),
    ("anthropic", "non-empty content", edit("messages.3.content", [])),
    ("anthropic", "must be non-empty", edit("messages.1.content.1.text", "")),
    ("anthropic", "non-whitespace", edit("messages.1.content.1.text", " \n")),
    ("anthropic", "were found without `tool_result`", edit("messages.2.content.1", ...)),
    ("anthropic", "were found without `tool_result`", edit("messages.2", ...)),
    ("anthropic", "were found without `tool_result`", swap("messages.2.content", 0, 2)),
    ("anthropic", "were found without `tool_result`", edit("messages.2.content.0.tool_use_id", "t2")),
    ("anthropic", "unexpected `tool_use_id`", edit("messages.1.content.2", ...)),
    ("anthropic", "unexpected `tool_use_id`", edit("messages.4.content.+0", ANSWER)),
    ("anthropic", "single result", edit("messages.2.content.+0", ANSWER)),
    ("anthropic", "ids must be unique", edit("messages.1.content.3.id", "t1")),
    ("anthropic", "tool_use.id: String should match", edit("messages.1.content.2.id", "a b")),
    ("anthropic", "tool_use.name: String should match", edit("messages.1.content.2.name", "a.b")),
    ("anthropic", "valid dictionary", edit("messages.1.content.2.input", "ls")),
    ("anthropic", "signature: Field required", edit("messages.1.content.0.signature", "")),
    ("anthropic", "Invalid `signature`", edit("messages.1.content.0.thinking", "other thoughts")),
    ("anthropic", "can only be in `assistant`", edit("messages.4.content.+0", REDACTED)),
    ("anthropic", "only permitted in `user`", edit("messages.1.content.+1", claude_image())),
    ("anthropic", "Input should be a text block", edit("system.+", claude_image())),
    ("anthropic", "expected tags", edit("messages.0.content", [{"type": "input_text", "text": "go"}])),
    ("anthropic", "expected tags", edit("messages.2.content.0.content", [{"type": "tool_use"}])),
    ("anthropic", "content cannot be empty if `is_error`", edit("messages.2.content.0", {**ANSWER, "is_error": True})),
    ("anthropic", "must not come after", edit("messages.1.content.1.cache_control", HOUR)),
    ("anthropic", "Input should be '5m' or '1h'", edit("system.0.cache_control.ttl", "2h")),
    ("anthropic", "must define tools", edit("tools", [])),
    ("anthropic", "names must be unique", edit("tools.+", {"name": "bash", "input_schema": {"type": "object"}})),
    ("anthropic", "input_schema", edit("tools.0.input_schema", {})),
    ("anthropic", "assistant message prefill", edit("messages.+", {"role": "assistant", "content": "Sure"})),
    ("anthropic", "system message must follow", edit("messages.+4", {"role": "system", "content": "x"})),
    ("anthropic", "budget_tokens", edit("thinking", {"type": "enabled", "budget_tokens": 2000})),
    ("anthropic", "media_type", edit("messages.4.content.0.source.media_type", "image/bmp")),
    ("anthropic", "appears to be a image/png", edit("messages.4.content.0.source.media_type", "image/jpeg")),
    ("anthropic", "invalid base64", edit("messages.4.content.0.source.data", PNG[:-1])),
    ("anthropic", "invalid base64", edit("messages.4.content.0.source.data", "")),
    ("anthropic", "Could not process image", edit("messages.4.content.0.source.data", "AAAA")),
    ("anthropic", "max allowed size: 8000", edit("messages.2.content.1.content.0", claude_image(b64(8001, 8)))),
    ("anthropic", "would be resized", edit("messages.4.content.0", claude_image(b64(2600, 9), transformations=STRICT))),
    ("anthropic", "surrogate", edit("messages.0.content", "half \ud83d")),
    ("anthropic", "not valid JSON", edit("messages.1.content.2.input", {"x": float("nan")})),
    ("anthropic", "not valid JSON", edit("messages.1.content.2.input", {"x": b"bytes"})),
    ("openai_chat", "Unrecognized request argument", edit("system", "x")),
    ("openai_chat", "'max_tokens' is not supported", edit("max_tokens", 9)),
    ("openai_chat", "empty array", edit("messages", [])),
    ("openai_chat", "Supported values", edit("messages.0.role", "model")),
    ("openai_chat", "got null", edit("messages.1.content", None)),
    ("openai_chat", "empty array", edit("messages.1.content", [])),
    ("openai_chat", "Invalid type", edit("messages.1.content", 7)),
    ("openai_chat", "did not have response messages: c1", edit("messages.4", ...)),
    ("openai_chat", "did not have response messages", edit("messages.+3", {"role": "user", "content": "wait"})),
    ("openai_chat", "must be a response to a preceeding", edit("messages.+1", {**TOOL, "tool_call_id": "c1"})),
    ("openai_chat", "not found in 'tool_calls'", edit("messages.4.tool_call_id", "c2")),
    ("openai_chat", "not found in 'tool_calls'", edit("messages.+5", {**TOOL, "tool_call_id": "c9"})),
    ("openai_chat", "Duplicate tool call ids", edit("messages.2.tool_calls.0.id", "c2")),
    ("openai_chat", "[] is too short", edit("messages.5.tool_calls", [])),
    ("openai_chat", "string too long", edit("messages.2.tool_calls.0.id", "c" * 41)),
    ("openai_chat", "does not match pattern", edit("messages.2.tool_calls.0.function", {"name": "a b"})),
    ("openai_chat", "expected a string", edit("messages.2.tool_calls.0.function", {"name": "a", "arguments": {}})),
    ("openai_chat", "tool_calls", edit("messages.1.tool_calls", [{"id": "x"}])),
    ("openai_chat", "Invalid value: 'image_url'", edit("messages.4.content.+", gpt_image())),
    ("openai_chat", "Invalid value: 'image_url'", edit("messages.0.content", [gpt_image()])),
    ("openai_chat", "Invalid value: 'image_url'", edit("messages.5.content", [gpt_image()])),
    ("openai_chat", "Invalid value: 'tool_use'", edit("messages.1.content.+", {"type": "tool_use"})),
    ("openai_chat", "data URL", edit("messages.1.content.1", gpt_image("data:image/png;base64,???="))),
    ("openai_chat", "unsupported image", edit("messages.1.content.1", gpt_image("data:image/png;base64,AAAA"))),
    ("openai_chat", "expected a URL", edit("messages.1.content.1", gpt_image("file:///a.png"))),
    ("openai_chat", "Supported values", edit("messages.1.content.1", gpt_image(detail="best"))),
    ("openai_chat", "patches", edit("messages.1.content.1", gpt_image(f"data:image/png;base64,{b64(6400, 5000)}"))),
    ("openai_chat", "tools", edit("tools", [])),
    ("openai_chat", "tools[0].type", edit("tools.0", {"name": "bash", "input_schema": {}})),
    ("openai_chat", "surrogate", edit("messages.6.content", "half \ud83d")),
    ("openai_responses", "Unknown parameter: 'messages'", edit("messages", [])),
    ("openai_responses", "empty", edit("input", [])),
    ("openai_responses", "Invalid value: 'context_compaction'", edit("input.+", {"type": "context_compaction"})),
    ("openai_responses", "No tool output found for function call c2", edit("input.6", ...)),
    ("openai_responses", "No tool call found", edit("input.4", ...)),
    ("openai_responses", "No tool call found", swap("input", 3, 5)),
    ("openai_responses", "Duplicate output", edit("input.6.call_id", "c1")),
    ("openai_responses", "Duplicate tool call", edit("input.4.call_id", "c1")),
    ("openai_responses", "string too long", edit("input.3.call_id", "c" * 65)),
    ("openai_responses", "required following item", edit("input.+", {"type": "reasoning", "summary": []})),
    ("openai_responses", "required following item", edit("input.+2", {"role": "user", "content": "wait"})),
    ("openai_responses", "Duplicate item found", edit("input.2.id", "rs_1")),
    ("openai_responses", "without its required 'reasoning' item: 'rs_tied7'", edit("input.3.id", "fc_tied7_0")),
    ("openai_responses", "summary", edit("input.1.summary", ...)),
    ("openai_responses", "'output_text' and 'refusal'", edit("input.2.content", [{"type": "input_text", "text": "x"}])),
    ("openai_responses", "Invalid value: 'text'", edit("input.0.content.0", {"type": "text", "text": "go"})),
    ("openai_responses", "Supported values", edit("input.0.role", "tool")),
    ("openai_responses", "does not match pattern", edit("input.3.name", "")),
    ("openai_responses", "arguments", edit("input.3.arguments", {})),
    ("openai_responses", "output", edit("input.5.output", None)),
    ("openai_responses", "unsupported image", edit("input.0.content.1.image_url", "data:image/png;base64,AAAA")),
    ("openai_responses", "image_url", edit("input.0.content.1.image_url", ...)),
    ("openai_responses", "surrogate", edit("instructions", "\udc00")),
    ("gemini", "Unknown name", edit("messages", [])),
    ("gemini", "not specified", edit("contents", [])),
    ("gemini", "must not be empty", edit("contents.3.parts", [])),
    ("gemini", "valid role", edit("contents.3.role", "assistant")),
    ("gemini", "oneof field 'data' must have", edit("contents.3.parts.0", {})),
    ("gemini", "already set", edit("contents.3.parts.0.functionCall", {"name": "x"})),
    ("gemini", "Unknown name", edit("contents.3.parts.0.type", "text")),
    ("gemini", "begin with a user turn", edit("contents.0", ...)),
    ("gemini", "number of function response parts", edit("contents.2.parts.0", ...)),
    ("gemini", "number of function response parts", edit("contents.+2", {"role": "user", "parts": [{"text": "wait"}]})),
    ("gemini", "immediately after a function call turn", edit("contents.1.parts", [{"text": "no call"}])),
    ("gemini", "ending with a model turn", edit("contents.4", ...)),
    ("gemini", "named as the functions", edit("contents.2.parts.0.functionResponse.name", "other")),
    ("gemini", "followed by a function response", edit("contents.+", {"role": "model", "parts": [CALL]})),
    ("gemini", "only allowed in turns of role model", edit("contents.0.parts.+", CALL)),
    ("gemini", "not allowed in turns of role model", edit("contents.1.parts.+", RESPONSE)),
    ("gemini", "Invalid function name", edit("contents.1.parts.1.functionCall.name", "a b")),
    ("gemini", "args: not an object", edit("contents.1.parts.1.functionCall.args", [])),
    ("gemini", "response: not an object", edit("contents.2.parts.0.functionResponse.response", "a.txt")),
    ("gemini", "text parts only", edit("systemInstruction.parts", [BLOB])),
    ("gemini", "role model", edit("contents.3.parts.+", BLOB)),
    ("gemini", "Base64", edit("contents.0.parts.1.inlineData.data", "no!")),
    ("gemini", "Unsupported MIME", edit("contents.0.parts.1.inlineData.mimeType", "image/gif")),
    ("gemini", "Unable to process", edit("contents.0.parts.1.inlineData.mimeType", "image/jpeg")),
    ("gemini", "Duplicate function", edit("tools.0.functionDeclarations.+", {"name": "bash"})),
    ("gemini", "must be positive", edit("generationConfig.maxOutputTokens", 0)),
    ("gemini", "surrogate", edit("contents.4.parts.0.text", "\ud83d")),
]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault[0]}-{fault[1][:32]}")
def test_every_fault_is_refused(fault: tuple[str, str, Callable[[Body], None]]) -> None:
    provider, text, change = fault
    body = SOUND[provider]()
    change(body)
    assert text in message_of(provider, verdict(provider, body))


@pytest.mark.parametrize("provider", SOUND)
@pytest.mark.parametrize(
    "body", [None, [], "hello", {}, {"model": 3}, {"messages": 3}, {"input": 3, "contents": {}}], ids=str
)
def test_what_is_no_request_is_refused(provider: str, body: Any) -> None:
    refusal = verdict(provider, body)
    assert refusal is not None and refusal[0] == 400


@pytest.mark.parametrize("provider", SOUND)
def test_any_damage_is_judged_and_never_raises(provider: str) -> None:
    """Values of any kind anywhere: a verdict comes, and a judge that is asked again says the same."""
    source = random.Random(provider)
    for _ in range(600):
        body = SOUND[provider]()
        damage(body, source)
        assert verdict(provider, body) == verdict(provider, body)


def damage(value: Any, source: random.Random) -> None:
    """Replace, remove or double one thing somewhere inside."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = source.choice(keys)
        inner = value[key]
        if isinstance(inner, (dict, list)) and source.random() < 0.75:
            value = inner
            continue
        choice = source.randrange(4)
        if choice == 0:
            del value[key]
        elif choice == 1 and isinstance(value, list):
            value.insert(key, copy.deepcopy(inner))
        else:
            value[key] = source.choice(
                [None, 0, -1, "", " ", "x", [], {}, [[]], [{}], {"type": "text"}, True, 1.5, "user"]
            )
        return


# ---------------------------------------------------------------- sizes


def test_models_have_rules_of_their_own() -> None:
    last = {"role": "assistant", "content": "Sure:"}
    body = sound_anthropic()
    body["messages"].append(last)
    assert verdict("anthropic", {**body, "model": "claude-opus-4-5"}) is None
    assert verdict("anthropic", {**body, "model": "claude-opus-4-6"}) is not None
    body["messages"][-1] = {**last, "content": "Sure: "}
    assert "whitespace" in message_of("anthropic", verdict("anthropic", {**body, "model": "claude-opus-4-5"}))

    body = sound_anthropic()
    blocks = body["messages"][1]["content"]
    blocks[0], blocks[1] = blocks[1], blocks[0]
    assert verdict("anthropic", body) is None
    assert "first block" in message_of("anthropic", verdict("anthropic", {**body, "model": "claude-opus-4-5"}))

    chat = sound_chat()
    chat["messages"][4]["content"].append(gpt_image())
    assert verdict("openai_chat", chat) is not None
    assert verdict("openai_chat", {**chat, "model": "anthropic/claude-opus-5"}) is None
    chat = sound_chat()
    chat["messages"].append({"role": "assistant", "content": "Sure"})
    assert verdict("openai_chat", chat) is None
    assert "Expected last role" in message_of(
        "openai_chat", verdict("openai_chat", {**chat, "model": "mistral-large-4"})
    )

    unsigned = sound_gemini()
    del unsigned["contents"][1]["parts"][1]["thoughtSignature"]
    assert verdict("gemini", unsigned) is None, "a turn that is over needs none"
    unsigned["contents"] = unsigned["contents"][:3]
    assert "thought_signature" in message_of("gemini", verdict("gemini", unsigned))
    assert verdict("gemini", unsigned, model="gemini-2.5-flash") is None


def test_reasoning_with_a_budget_leads_the_message_that_is_answered() -> None:
    body = sound_anthropic()
    body["messages"] = body["messages"][:3]
    body.update(max_tokens=3_000, thinking={"type": "enabled", "budget_tokens": 2_000})
    assert verdict("anthropic", body) is None
    del body["messages"][1]["content"][0]
    assert "Expected `thinking`" in message_of("anthropic", verdict("anthropic", body))
    body["messages"] += [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "and now?"}]
    assert verdict("anthropic", body) is None


def test_snake_case_is_gemini_too() -> None:
    body = {
        "system_instruction": {"parts": [{"text": "x"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "go"}, {"inline_data": {"mime_type": "image/png", "data": PNG}}]}
        ],
        "generation_config": {"max_output_tokens": 5, "media_resolution": "MEDIA_RESOLUTION_LOW"},
    }
    assert verdict("gemini", body) is None


def many(count: int, data: str) -> Body:
    body = sound_anthropic()
    body["messages"][-1]["content"] = [claude_image(data) for _ in range(count)]
    return body


def test_many_images_have_smaller_sides() -> None:
    large, fine = b64(2001, 8), b64(2000, 8)
    # One more image stands in a tool result: it counts.
    assert verdict("anthropic", many(19, large)) is None
    assert "many-image requests: 2000 pixels" in message_of("anthropic", verdict("anthropic", many(20, large)))
    assert verdict("anthropic", many(99, fine)) is None
    assert verdict("anthropic", many(99, fine), window=200_000) is None
    assert "101 > 100" in message_of("anthropic", verdict("anthropic", many(100, fine), window=200_000))
    assert "601 > 600" in message_of("anthropic", verdict("anthropic", many(600, b64(8, 8))))


def test_bytes() -> None:
    limits = {name: {"request_bytes": 3_000} for name in SOUND}
    for provider in SOUND:
        body = SOUND[provider]()
        key = LISTS[provider]
        body[key] = body[key][:1]
        assert verdict(provider, body, limits=limits) is None
        body[key][0] = {"role": "user", "parts" if provider == "gemini" else "content": "é" * 1_600}
        refusal = verdict(provider, body, limits=limits)
        assert refusal is not None
        assert refusal[0] == (400 if provider == "gemini" else 413)
    body = sound_anthropic()
    heavy = verdict("anthropic", body, limits={"anthropic": {"image_bytes": 60}})
    assert "bytes > 60 bytes" in message_of("anthropic", heavy)


@pytest.mark.parametrize("provider", SOUND)
def test_the_window(provider: str) -> None:
    body = SOUND[provider]()
    used = Judge().count(provider, body, MODEL.get(provider))
    assert 60 < used < 6_000
    output = 0 if provider == "gemini" else 1_000
    assert verdict(provider, body, window=used + output) is None
    refusal = verdict(provider, body, window=used + output - 1)
    assert refusal is not None and refusal[0] == 400
    if provider in ("anthropic", "openai_chat"):
        assert f"{used}" in message_of(provider, refusal) and "1000" in message_of(provider, refusal)
    refusal = verdict(provider, body, window=used - 1)
    text = message_of(provider, refusal)
    assert "context" in text or f"{used}" in text
    if provider.startswith("openai"):
        assert refusal is not None and refusal[1]["error"]["code"] == "context_length_exceeded"


def test_windows_by_model() -> None:
    judge = Judge(window={"claude-haiku": 10, "claude": 50_000, "": 20})
    assert judge.window("claude-haiku-4-5") == 10
    assert judge.window("anthropic/claude-opus-5") == 50_000
    assert judge.window("gpt-5.5") == 20
    assert Judge().window("gpt-5.5") == 1_000_000


def test_a_server_that_truncates_refuses_nothing_for_size() -> None:
    body = sound_responses()
    assert verdict("openai_responses", body, window=10) is not None
    assert verdict("openai_responses", {**body, "truncation": "auto"}, window=10) is None


def test_an_unknown_provider() -> None:
    with pytest.raises(ValueError, match="anthropic, openai_chat"):
        Judge().check("cohere", {})


def test_it_imports_nothing_of_the_package() -> None:
    import ast
    from pathlib import Path

    import microfiche.testing

    for file in Path(microfiche.testing.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert node.level <= 1 and "microfiche" not in (node.module or ""), file
            elif isinstance(node, ast.Import):
                assert not any(alias.name.startswith("microfiche") for alias in node.names), file


def test_a_final_answer_without_content_is_judged() -> None:
    body = {
        "model": "claude-haiku-4-5",
        "max_tokens": 10,
        "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": []}],
    }
    assert Judge().check("anthropic", body, "claude-haiku-4-5") is None
