"""Random valid requests in the four wires, for the tests of their readers and writers."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from typing import Any

from hypothesis import strategies as st


def png(width: int = 8, height: int = 8) -> bytes:
    """A blank grey PNG of the given size."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\xff" * width) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


PNG64 = base64.b64encode(png()).decode()

text = st.text(max_size=20)
words = st.text(min_size=1, max_size=20)
names = st.from_regex(r"[a-z_]{1,8}", fullmatch=True)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**80), 2**80) | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(text, json_values, max_size=3)
extras = st.dictionaries(st.from_regex(r"x_[a-z]{1,4}", fullmatch=True), json_values, max_size=2)


def with_extras(draw: st.DrawFn, item: dict[str, Any]) -> dict[str, Any]:
    return {**draw(extras), **item}


@st.composite
def anthropic_bodies(draw: st.DrawFn) -> dict[str, Any]:
    ids = iter(range(1000))

    def image() -> dict[str, Any]:
        source = draw(
            st.sampled_from(
                [
                    {"type": "base64", "media_type": "image/png", "data": PNG64},
                    {"type": "base64", "media_type": "image/png", "data": "no base64 é"},
                    {"type": "url", "url": "https://example.test/a.png"},
                    {"type": "file", "file_id": "file_1"},
                ]
            )
        )
        return with_extras(draw, {"type": "image", "source": source})

    def block() -> dict[str, Any]:
        match draw(st.integers(0, 5)):
            case 0:
                return image()
            case 1:
                return with_extras(draw, {"type": "document", "source": {"type": "text", "data": draw(text)}})
            case 2:
                return {"type": draw(names), **draw(extras)}
        return with_extras(draw, {"type": "text", "text": draw(words)})

    def answer(calls: list[str]) -> dict[str, Any]:
        blocks: list[Any] = []
        for _ in range(draw(st.integers(0, 2))):
            blocks.append({"type": "thinking", "thinking": draw(text), "signature": draw(text)})
        if draw(st.booleans()):
            blocks.append({"type": "redacted_thinking", "data": draw(text)})
        blocks += [block() for _ in range(draw(st.integers(0, 2)))]
        for call in calls:
            blocks.append(
                with_extras(draw, {"type": "tool_use", "id": call, "name": draw(names), "input": draw(objects)})
            )
        if not calls and draw(st.booleans()):
            return {"role": "assistant", "content": draw(words)}
        return {"role": "assistant", "content": blocks}

    def results(calls: list[str]) -> dict[str, Any]:
        blocks: list[Any] = []
        for call in calls:
            result: dict[str, Any] = {"type": "tool_result", "tool_use_id": call}
            match draw(st.integers(0, 3)):
                case 0:
                    result["content"] = draw(text)
                case 1:
                    result["content"] = [block() for _ in range(draw(st.integers(0, 3)))]
                case 2:
                    result["content"] = [image()]
            if draw(st.booleans()):
                result["is_error"] = draw(st.booleans())
            blocks.append(with_extras(draw, result))
        for _ in range(draw(st.integers(0, 2))):
            blocks.insert(draw(st.integers(0, len(blocks))), block())
        return {"role": "user", "content": blocks}

    messages: list[Any] = []
    for _ in range(draw(st.integers(0, 4))):
        match draw(st.integers(0, 3)):
            case 0:
                messages.append(with_extras(draw, {"role": "user", "content": draw(text)}))
            case 1:
                messages.append({"role": "user", "content": [block() for _ in range(draw(st.integers(0, 3)))]})
            case 2:
                messages.append({"role": "system", "content": draw(words)})
            case 3:
                calls = [f"toolu_{next(ids)}" for _ in range(draw(st.integers(0, 3)))]
                messages.append(answer(calls))
                if calls:
                    messages.append(results(calls))
    body = {**draw(extras), "model": "m", "max_tokens": 9, "messages": messages}
    body |= draw(
        st.sampled_from(
            [{}, {"system": "s"}, {"system": []}, {"system": [{"type": "text", "text": "s"}]}, {"system": None}]
        )
    )
    return body | draw(st.sampled_from([{}, {"tools": None}, {"tools": [{"name": "a", "input_schema": {}}]}]))


@st.composite
def chat_bodies(draw: st.DrawFn) -> dict[str, Any]:
    ids = iter(range(1000))

    def part() -> dict[str, Any]:
        return draw(
            st.sampled_from(
                [
                    {"type": "text", "text": draw(text)},
                    {"type": "text", "text": draw(text), "prompt_cache_breakpoint": {"mode": "explicit"}},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG64}", "detail": "low"}},
                    {"type": "image_url", "image_url": {"url": "https://example.test/a.png"}},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,é"}},
                    {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
                    {"type": "file", "file": {"file_id": "f"}},
                ]
            )
        )

    def call(key: str) -> dict[str, Any]:
        if draw(st.booleans()):
            return {"id": key, "type": "custom", "custom": {"name": draw(names), "input": draw(text)}}
        given = draw(text | objects.map(json.dumps))
        return {"id": key, "type": "function", "function": {"name": draw(names), "arguments": given}}

    messages: list[Any] = []
    for _ in range(draw(st.integers(0, 5))):
        match draw(st.integers(0, 4)):
            case 0:
                role = draw(st.sampled_from(["system", "developer", "user"]))
                messages.append(with_extras(draw, {"role": role, "content": draw(text)}))
            case 1:
                messages.append({"role": "user", "content": [part() for _ in range(draw(st.integers(0, 3)))]})
            case 2:
                refusal = [{"type": "text", "text": draw(text)}, {"type": "refusal", "refusal": draw(text)}]
                content = draw(st.sampled_from([draw(text), None, refusal]))
                messages.append(with_extras(draw, {"role": "assistant", "content": content, "refusal": None}))
            case 3:
                answer: dict[str, Any] = {"role": "assistant"} | draw(
                    st.sampled_from(
                        [
                            {},
                            {"content": None},
                            {"content": draw(text)},
                            {"reasoning_content": draw(text), "content": ""},
                        ]
                    )
                )
                keys = [f"call_{next(ids)}" for _ in range(draw(st.integers(0, 3)))]
                answer["tool_calls"] = [call(key) for key in keys]
                messages.append(with_extras(draw, answer))
                for key in keys:
                    content = draw(st.sampled_from([draw(text), [{"type": "text", "text": draw(text)}]]))
                    messages.append(with_extras(draw, {"role": "tool", "tool_call_id": key, "content": content}))
            case 4:
                named = {"name": draw(names), "arguments": draw(text)}
                messages.append({"role": "assistant", "content": None, "function_call": named})
                messages.append({"role": "function", "name": named["name"], "content": draw(text)})
    return {**draw(extras), "model": "m", "messages": messages}


@st.composite
def responses_bodies(draw: st.DrawFn) -> dict[str, Any]:
    ids = iter(range(1000))

    def part() -> dict[str, Any]:
        return draw(
            st.sampled_from(
                [
                    {"type": "input_text", "text": draw(text)},
                    {"type": "input_image", "image_url": f"data:image/png;base64,{PNG64}", "detail": "high"},
                    {"type": "input_image", "image_url": "https://example.test/a.png"},
                    {"type": "input_image", "file_id": "f", "detail": "auto"},
                    {"type": "input_file", "file_id": "f"},
                ]
            )
        )

    def said() -> dict[str, Any]:
        return draw(
            st.sampled_from(
                [
                    {"type": "output_text", "text": draw(text), "annotations": []},
                    {"type": "refusal", "refusal": draw(text)},
                ]
            )
        )

    items: list[Any] = []
    for _ in range(draw(st.integers(0, 6))):
        key = next(ids)
        match draw(st.integers(0, 7)):
            case 0:
                role = draw(st.sampled_from(["user", "system", "developer"]))
                items.append({"role": role, "content": draw(text)})
            case 1:
                parts = [part() for _ in range(draw(st.integers(0, 3)))]
                items.append(with_extras(draw, {"type": "message", "role": "user", "content": parts}))
            case 2:
                items.append({"type": "reasoning", "id": f"rs_{key}", "summary": [], "encrypted_content": draw(text)})
            case 3:
                parts = [said() for _ in range(draw(st.integers(0, 3)))]
                items.append(
                    {"type": "message", "id": f"m_{key}", "role": "assistant", "status": "completed", "content": parts}
                )
            case 4:
                items.append({"role": "assistant", "content": draw(text)})
            case 5:
                call = {"type": "function_call", "call_id": f"c_{key}", "name": draw(names), "arguments": draw(text)}
                items.append(with_extras(draw, call))
                output = draw(st.sampled_from([draw(text), [part(), part()], []]))
                items.append({"type": "function_call_output", "call_id": f"c_{key}", "output": output})
            case 6:
                items.append(
                    {"type": "shell_call", "call_id": f"c_{key}", "action": draw(objects), "status": "completed"}
                )
                items.append({"type": "shell_call_output", "call_id": f"c_{key}", "output": [draw(objects)]})
            case 7:
                items.append({"type": draw(st.sampled_from(["compaction", "mcp_call", "foo"])), "id": f"x_{key}"})
    given = draw(st.sampled_from([items, items, draw(text)]))
    return {**draw(extras), "model": "m", "input": given} | draw(
        st.sampled_from([{}, {"instructions": "s"}, {"instructions": None}])
    )


@st.composite
def gemini_bodies(draw: st.DrawFn) -> dict[str, Any]:
    def part() -> dict[str, Any]:
        return draw(
            st.sampled_from(
                [
                    {"text": draw(text)},
                    {"text": draw(text), "thoughtSignature": "QUJD"},
                    {"thoughtSignature": "QUJD"},
                    {"inlineData": {"mimeType": "image/png", "data": PNG64}},
                    {"inline_data": {"mime_type": "image/png", "data": PNG64}, "video_metadata": {}},
                    {"inlineData": {"mimeType": "audio/wav", "data": "AA=="}},
                    {"fileData": {"mimeType": "image/png", "fileUri": "gs://a/b.png"}},
                    {"executableCode": {"language": "PYTHON", "code": draw(text)}},
                ]
            )
        )

    def response(name: str, key: str | None) -> dict[str, Any]:
        given: dict[str, Any] = {"name": name, "response": draw(objects | st.fixed_dictionaries({"output": text}))}
        if key is not None:
            given["id"] = key
        if draw(st.booleans()):
            given["parts"] = [{"inlineData": {"mimeType": "image/png", "data": PNG64}}]
        return {draw(st.sampled_from(["functionResponse", "function_response"])): given}

    contents: list[Any] = []
    for number in range(draw(st.integers(0, 4))):
        match draw(st.integers(0, 2)):
            case 0:
                head = draw(st.sampled_from([{}, {"role": "user"}]))
                contents.append({**head, "parts": [part() for _ in range(draw(st.integers(0, 3)))]})
            case 1:
                contents.append({"role": "model", "parts": [{"text": draw(text), "thought": True}, part()]})
            case 2:
                calls = [
                    (draw(names), draw(st.sampled_from([None, f"f{number}{at}"])))
                    for at in range(draw(st.integers(1, 3)))
                ]
                answer: list[Any] = [part()]
                for name, key in calls:
                    given = {"name": name} | draw(st.sampled_from([{}, {"args": draw(objects)}]))
                    answer.append({"functionCall": given | ({"id": key} if key else {}), "thoughtSignature": "QUJD"})
                contents.append({"role": "model", "parts": answer})
                results = [response(name, key) for name, key in calls]
                for _ in range(draw(st.integers(0, 2))):
                    results.insert(draw(st.integers(0, len(results))), part())
                contents.append({"role": draw(st.sampled_from(["user", "function"])), "parts": results})
    body = {**draw(extras), "contents": contents}
    return body | draw(
        st.sampled_from(
            [
                {},
                {"systemInstruction": {"parts": [{"text": "s"}]}},
                {"system_instruction": "s"},
                {"systemInstruction": {"role": "system", "parts": []}},
                {"tools": [{"functionDeclarations": [{"name": "a"}]}], "generationConfig": {"temperature": 0}},
            ]
        )
    )


BODIES = {
    "anthropic": anthropic_bodies(),
    "openai_chat": chat_bodies(),
    "openai_responses": responses_bodies(),
    "gemini": gemini_bodies(),
}
