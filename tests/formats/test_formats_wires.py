"""What each wire's reader makes of its forms, and what its writer makes of parts that are new."""

from __future__ import annotations

import base64
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from microfiche import formats
from microfiche.errors import BadInput
from microfiche.messages import (
    History,
    Image,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    split_turns,
)
from wire_histories import PNG64, png

PAGE = Image(png(16, 9), "image/png", 16, 9, owner="page")


def only(wire: str, *messages: Message, **body: Any) -> dict[str, Any]:
    """What a history of these messages is written as."""
    written, notes = formats.write(History(list(messages), wire, wire=wire, body=body))
    assert notes == []
    return written


# Anthropic


def blocks(*content: Any, role: str = "assistant") -> tuple[Part, ...]:
    return formats.read([{"role": role, "content": list(content)}], "anthropic").messages[0].parts


def test_anthropic_reasoning_is_whole_and_sized() -> None:
    full = {"type": "thinking", "thinking": "abc", "signature": "sig"}
    empty = {"type": "thinking", "thinking": "", "signature": "x" * 40}
    sealed = {"type": "redacted_thinking", "data": "y" * 7}
    unsigned = {"type": "thinking", "thinking": "abcd", "signature": ""}
    found = blocks(full, empty, sealed, unsigned)
    assert found == (
        Reasoning("abc", True, 3, full),
        Reasoning("", True, 40, empty),
        Reasoning("", True, 7, sealed),
        Reasoning("abcd", False, 4, unsigned),
    )


@pytest.mark.parametrize(
    ("block", "pair"),
    [
        ({"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}, "srv_1"),
        ({"type": "mcp_tool_use", "id": "mcp_1", "name": "x", "input": {}}, "mcp_1"),
        ({"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}, "srv_1"),
        ({"type": "foo_tool_result", "tool_use_id": "srv_2"}, "srv_2"),
        ({"type": "compaction", "content": None}, None),
        ({"type": "document", "id": "d", "source": {}}, None),
        ({"type": "text"}, None),
        ({"type": "tool_use", "name": "no id"}, None),
        ({"type": 5}, None),
        ("a string", None),
        (None, None),
    ],
)
def test_anthropic_blocks_not_modelled_ride_along(block: Any, pair: str | None) -> None:
    (part,) = blocks(block)
    assert isinstance(part, Opaque) and part.pair == pair and part.native == block and not part.private


def test_anthropic_results_and_words_in_one_message_are_two_turns() -> None:
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "first"},
                {"type": "tool_result", "tool_use_id": "t"},
                {"type": "text", "text": "last"},
            ],
        },
    ]
    history = formats.read(messages)
    assert [message.role for message in history.messages] == ["user", "assistant", "tool", "user"]
    assert [len(turn.messages) for turn in split_turns(history.messages)[1]] == [1, 2, 1]
    assert history.messages[3].joined and history.messages[2].results[0].name == "f"
    assert formats.write(history)[0]["messages"] == messages
    fewer = replace(history, messages=[*history.messages[:3], replace(history.messages[3], parts=(Text("new"),))])
    content = formats.write(fewer)[0]["messages"][2]["content"]
    assert [block["type"] for block in content] == ["tool_result", "text"]
    alone = replace(history, messages=[history.messages[0], history.messages[3]])
    assert len(formats.write(alone)[0]["messages"]) == 2


def test_anthropic_writes_new_parts() -> None:
    body = only(
        "anthropic",
        Message("user", (Text("go"), replace(PAGE, mark=True))),
        Message("assistant", (ToolCall("t", "f", '{"a":1}'), ToolCall("u", "g", "torn {"))),
        Message("tool", (ToolResult("t", (Text("x"),), error=True), ToolResult("u", ()))),
        Message("user", (Text("more", mark=True),), joined=True),
        Message("user", (Image(None, url="https://example.test/a.png"), Image(None, file_id="f1"))),
    )
    data = base64.b64encode(png(16, 9)).decode()
    assert body["messages"] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "go"},
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": data},
                    "transformations": {"oversized_image": "error"},
                    "cache_control": {"type": "ephemeral"},
                },
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}},
                {"type": "tool_use", "id": "u", "name": "g", "input": {"arguments": "torn {"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t", "is_error": True, "content": "x"},
                {"type": "tool_result", "tool_use_id": "u"},
                {"type": "text", "text": "more", "cache_control": {"type": "ephemeral"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "image", "source": {"type": "url", "url": "https://example.test/a.png"}},
                {"type": "image", "source": {"type": "file", "file_id": "f1"}},
            ],
        },
    ]


def test_anthropic_a_mark_never_changes_the_callers_block() -> None:
    block = {"type": "text", "text": "a"}
    kept = {"type": "text", "text": "b", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    history = formats.read([{"role": "user", "content": [block, kept]}])
    parts = tuple(replace(part, mark=True) for part in history.messages[0].parts if isinstance(part, Text))
    history.messages = [Message("user", parts)]
    content = formats.write(history)[0]["messages"][0]["content"]
    # Before a mark of an hour there is none of less.
    assert content[0]["cache_control"] == kept["cache_control"] and content[1] == kept
    assert block == {"type": "text", "text": "a"}


def test_anthropic_private_parts_and_reasoning_of_elsewhere_stay_behind() -> None:
    body = only(
        "anthropic", Message("assistant", (Reasoning("r"), Opaque("x", {"type": "x"}, private=True), Text("a")))
    )
    assert body["messages"] == [{"role": "assistant", "content": [{"type": "text", "text": "a"}]}]


# OpenAI Chat


def test_chat_reads_calls_results_and_names() -> None:
    history = formats.read(
        [
            {"role": "developer", "content": "s"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{ "a" : 1 }'}},
                    {"id": "c2", "type": "custom", "custom": {"name": "g", "input": "free text"}},
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "one"},
            {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "two"}]},
        ]
    )
    assert [message.role for message in history.messages] == ["system", "assistant", "tool", "tool"]
    assert [(call.id, call.name, call.arguments) for call in history.messages[1].calls] == [
        ("c1", "f", '{ "a" : 1 }'),
        ("c2", "g", "free text"),
    ]
    assert [message.results[0].name for message in history.messages[2:]] == ["f", "g"]
    assert [message.results[0].text for message in history.messages[2:]] == ["one", "two"]
    assert history.system is None
    assert split_turns(history.messages)[1][0].open_calls == ()


def test_chat_pairs_the_old_function_call_form() -> None:
    history = formats.read(
        [
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "function", "name": "f", "content": "x"},
        ]
    )
    assert history.messages[1].results[0].call_id == history.messages[0].calls[0].id
    assert history.messages[1].results[0].name == "f"


def test_chat_reasoning_fields_are_reasoning() -> None:
    messages = [
        {"role": "assistant", "content": "a", "reasoning_content": "why"},
        {"role": "assistant", "content": "b", "reasoning": "so", "reasoning_details": [{"data": "x"}]},
        {"role": "assistant", "content": "c", "reasoning_content": None},
    ]
    history = formats.read(messages, "openai_chat")
    first, second = history.messages[0].parts[0], history.messages[1].parts[0]
    assert isinstance(first, Reasoning) and first.text == "why" and not first.signed
    assert isinstance(second, Reasoning) and second.text == "so" and second.signed
    history.messages = [replace(message, parts=(message.parts[-1],)) for message in history.messages]
    assert [set(message) for message in formats.write(history)[0]["messages"]] == [
        {"role", "content"},
        {"role", "content"},
        {"role", "content", "reasoning_content"},
    ]


def test_chat_images_of_results_follow_their_batch() -> None:
    picture = Image(png(), owner="tool")
    history = History(
        [
            Message("assistant", (ToolCall("c1", "shot", "{}"), ToolCall("c2", "ls", "{}"))),
            Message("tool", (ToolResult("c1", (Text("seen"), picture), name="shot"), ToolResult("c2", (Text("a"),)))),
            Message("user", (Text("more"),)),
            Message("assistant", (ToolCall("c3", "shot", "{}"),)),
            Message("tool", (ToolResult("c3", (replace(PAGE),), name="shot"),)),
        ],
        "openai_chat",
        wire="openai_chat",
    )
    body, notes = formats.write(history)
    roles = [message["role"] for message in body["messages"]]
    assert roles == ["assistant", "tool", "tool", "user", "user", "assistant", "tool", "user"]
    assert body["messages"][1]["content"] == "seen" and body["messages"][6]["content"] == ""
    assert body["messages"][3]["content"] == [
        {"type": "text", "text": "[from the result of shot c1]"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG64}"}},
    ]
    assert body["messages"][7]["content"][1]["image_url"]["detail"] == "original"
    assert [note.what for note in notes] == ["images of tool results moved behind the batch, into a user message (2)"]


def test_chat_file_ids_are_left_out_and_named() -> None:
    history = History([Message("user", (Text("a"), Image(None, file_id="f")))], "openai_chat", wire="openai_chat")
    body, notes = formats.write(history)
    assert body["messages"][0]["content"] == [{"type": "text", "text": "a"}]
    assert len(notes) == 1 and "file id" in notes[0].what


# OpenAI Responses


def test_responses_gathers_the_assistants_side() -> None:
    items = [
        {"role": "user", "content": "go"},
        {
            "type": "reasoning",
            "id": "r",
            "summary": [{"type": "summary_text", "text": "why"}],
            "encrypted_content": "x",
        },
        {
            "type": "message",
            "id": "m",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "a"}, {"type": "output_text", "text": "b"}],
        },
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "shell_call", "call_id": "c2", "action": {"commands": ["ls"]}, "status": "completed"},
        {"type": "function_call_output", "call_id": "c1", "output": "one"},
        {"type": "shell_call_output", "call_id": "c2", "output": [{"stdout": "x"}]},
        {"type": "computer_call_output", "call_id": "c9", "output": {"type": "computer_screenshot", "image_url": "u"}},
        {"type": "reasoning", "id": "r2", "summary": []},
        {"type": "web_search_call", "id": "w", "status": "completed"},
        {"role": "assistant", "content": "done"},
    ]
    history = formats.read(items)
    assert [message.role for message in history.messages] == ["user", "assistant", "tool", "assistant"]
    answer = history.messages[1]
    assert [type(part) for part in answer.parts] == [Reasoning, Text, Text, ToolCall, ToolCall]
    thought = answer.parts[0]
    assert isinstance(thought, Reasoning) and (thought.text, thought.signed) == ("why", True)
    assert [(call.name, call.arguments) for call in answer.calls] == [
        ("f", "{}"),
        ("shell", '{"action":{"commands":["ls"]}}'),
    ]
    assert [result.name for result in history.messages[2].results] == ["f", "shell", ""]
    assert split_turns(history.messages)[1][1].open_calls == ()
    assert formats.write(history)[0]["input"] == items
    kept = replace(answer, parts=(answer.parts[1], answer.parts[3]))
    written = formats.write(replace(history, messages=[kept]))[0]["input"]
    assert written == [{**items[2], "content": [items[2]["content"][0]]}, items[3]]


def test_responses_writes_new_parts() -> None:
    body = only(
        "openai_responses",
        Message("user", (Text("go"),)),
        Message("user", (Text("see"), PAGE, Image(None, file_id="f"))),
        Message("assistant", (Text("a"), ToolCall("c", "f", "{}"))),
        Message("tool", (ToolResult("c", (Text("x"), PAGE)), ToolResult("d", ()))),
        truncation="auto",
    )
    data = f"data:image/png;base64,{base64.b64encode(png(16, 9)).decode()}"
    page = {"type": "input_image", "detail": "original", "image_url": data}
    assert body == {
        "truncation": "disabled",
        "input": [
            {"role": "user", "content": "go"},
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "see"},
                    page,
                    {"type": "input_image", "detail": "auto", "file_id": "f"},
                ],
            },
            {"role": "assistant", "content": "a"},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "x"}, page]},
            {"type": "function_call_output", "call_id": "d", "output": ""},
        ],
    }


# Gemini


def test_gemini_pairs_calls_without_ids() -> None:
    contents = [
        {"role": "user", "parts": [{"text": "go"}]},
        {
            "role": "model",
            "parts": [
                {"functionCall": {"name": "f", "args": {"n": 1}}},
                {"functionCall": {"name": "g"}},
                {"functionCall": {"name": "f", "id": "own"}},
                {"functionCall": {"name": "f"}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "g", "response": {"result": "G"}}},
                {"functionResponse": {"name": "f", "id": "own", "response": {"error": "bad"}}},
                {"functionResponse": {"name": "f", "response": {"a": 1}}},
                {"functionResponse": {"name": "f", "response": {"output": "F2"}}},
            ],
        },
    ]
    history = formats.read(contents)
    calls, results = history.messages[1].calls, history.messages[2].results
    assert [result.call_id for result in results] == [calls[1].id, "own", calls[0].id, calls[3].id]
    assert [(result.text, result.error) for result in results] == [
        ("G", False),
        ("bad", True),
        ('{"a":1}', False),
        ("F2", False),
    ]
    assert len({call.id for call in calls}) == 4
    assert formats.write(history)[0] == {"contents": contents}
    assert formats.read(contents) == history


def test_gemini_keeps_spellings_signatures_and_unknown_parts() -> None:
    contents = [
        {"parts": [{"inline_data": {"mime_type": "image/png", "data": PNG64}}]},
        {
            "role": "model",
            "parts": [
                {"text": "plan", "thought": True, "thought_signature": "QQ"},
                {"function_call": {"name": "f", "args": {}}, "thought_signature": "QQ"},
                {"thoughtSignature": "QQ"},
                {"codeExecutionResult": {"id": "e", "output": "x"}},
            ],
        },
    ]
    history = formats.read(contents)
    picture = history.messages[0].parts[0]
    assert isinstance(picture, Image) and (picture.width, picture.height, picture.data) == (8, 8, png())
    thought, call, signature, code = history.messages[1].parts
    assert isinstance(thought, Reasoning) and thought.signed and thought.text == "plan"
    assert isinstance(call, ToolCall) and isinstance(signature, Opaque)
    assert isinstance(code, Opaque) and (code.kind, code.pair) == ("codeExecutionResult", "e")
    history.messages[1] = replace(history.messages[1], parts=(replace(call, arguments='{"a":1}'),))
    assert formats.write(history)[0]["contents"][1]["parts"] == [
        {"function_call": {"name": "f", "args": {"a": 1}}, "thought_signature": "QQ"}
    ]


def test_gemini_writes_new_parts() -> None:
    body = only(
        "gemini",
        Message("user", (Text("go"), PAGE)),
        Message("assistant", (ToolCall("c", "f", "{}"),)),
        Message("tool", (ToolResult("c", (Text("x"), replace(PAGE)), error=True, name="f"),)),
        Message("user", (Text("and"),), joined=True),
        generationConfig={"temperature": 0},
    )
    page = {"inlineData": {"mimeType": "image/png", "data": base64.b64encode(png(16, 9)).decode()}}
    assert body == {
        "generationConfig": {"temperature": 0, "mediaResolution": "MEDIA_RESOLUTION_HIGH"},
        "contents": [
            {"role": "user", "parts": [{"text": "go"}, page]},
            {"role": "model", "parts": [{"functionCall": {"id": "c", "name": "f", "args": {}}}]},
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"id": "c", "name": "f", "response": {"error": "x"}, "parts": [page]}},
                    {"text": "and"},
                ],
            },
        ],
    }
    chosen = only("gemini", Message("user", (PAGE,)), generation_config={"media_resolution": "MEDIA_RESOLUTION_LOW"})
    assert chosen["generation_config"] == {"media_resolution": "MEDIA_RESOLUTION_LOW"}


# all


@pytest.mark.parametrize("wire", formats.WIRES)
def test_without_pages_no_switch_is_set(wire: str) -> None:
    body = only(wire, Message("user", (Text("a"), Image(png(), owner="user"))))
    assert set(body) == {formats.list_key(wire)}
    assert "original" not in str(body) and "transformations" not in str(body)


def test_odd_base64_is_read_and_written_as_it_came() -> None:
    data = png()
    plain = base64.b64encode(data).decode()
    for odd in (
        plain.rstrip("="),
        plain + "\n",
        base64.urlsafe_b64encode(data).decode(),
        "\n".join([plain[:40], plain[40:]]),
    ):
        messages = [
            {
                "role": "user",
                "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": odd}}],
            }
        ]
        history = formats.read(messages)
        image = history.messages[0].parts[0]
        assert isinstance(image, Image) and image.data == data
        assert formats.write(history)[0]["messages"] == messages


@pytest.mark.parametrize(
    ("wire", "prompt", "written"),
    [
        ("anthropic", "s", {"system": "s"}),
        ("anthropic", [{"type": "text", "text": "s"}], {"system": [{"type": "text", "text": "s"}]}),
        ("openai_responses", "s", {"instructions": "s"}),
        ("gemini", "s", {"systemInstruction": "s"}),
        ("gemini", [{"text": "s"}], {"systemInstruction": {"parts": [{"text": "s"}]}}),
        ("gemini", {"parts": [{"text": "s"}]}, {"systemInstruction": {"parts": [{"text": "s"}]}}),
        ("openai_chat", "s", {"messages": [{"role": "system", "content": "s"}]}),
    ],
)
def test_a_system_prompt_beside_the_list(wire: str, prompt: Any, written: dict[str, Any]) -> None:
    history = formats.read([], wire)
    history.system = formats.system_message(prompt, wire)
    assert history.system.text == "s"
    body, _ = formats.write(history)
    assert {formats.list_key(wire): [], **written} == body


@pytest.mark.parametrize("wire", ["anthropic", "openai_responses", "gemini"])
def test_what_is_no_system_prompt_is_refused(wire: str) -> None:
    with pytest.raises(BadInput, match="no system prompt"):
        formats.system_message(5, wire)


def test_objects_of_the_clients_are_taken() -> None:
    class Block(SimpleNamespace):
        def model_dump(self, **_: Any) -> dict[str, Any]:
            return dict(vars(self))

    content = [Block(type="text", text="a"), {"type": "tool_use", "id": "t", "name": "f", "input": {}}]
    messages = [{"role": "assistant", "content": content}, Block(role="user", content="b")]
    history = formats.read(messages, "anthropic")
    assert [message.text for message in history.messages] == ["a", "b"]
    assert isinstance(messages[0]["content"][0], Block)  # type: ignore[index]
    assert formats.write(history)[0]["messages"][0]["content"][0] == {"type": "text", "text": "a"}


@pytest.mark.parametrize("depth", [100_000, 950])
def test_arguments_nested_too_deeply_are_refused_or_read(depth: int) -> None:
    nested: Any = {}
    for _ in range(depth):
        nested = {"a": nested}
    content = [{"type": "tool_use", "id": "t", "name": "f", "input": nested}]
    try:
        history = formats.read([{"role": "assistant", "content": content}], "anthropic")
    except BadInput as error:
        assert "JSON cannot hold" in error.what
    else:
        assert formats.write(history)[0]["messages"][0]["content"][0]["input"] is nested


def test_a_number_too_long_for_json_is_refused() -> None:
    content = [{"type": "tool_use", "id": "t", "name": "f", "input": {"n": 10**5000}}]
    with pytest.raises(BadInput, match="JSON cannot hold"):
        formats.read([{"role": "assistant", "content": content}], "anthropic")
