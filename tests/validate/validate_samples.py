"""Sound requests of each wire, made here."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable
from typing import Any


def image(width: int, height: int) -> str:
    """Base64 of a PNG whose header says so many pixels (all white, one bit each)."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\xff" * ((width + 7) // 8)) * height
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return base64.b64encode(png).decode()


# With padding, which a test cuts off.
PNG = next(data for side in range(8, 40) if (data := image(side, 8)).endswith("="))


def anthropic_body() -> dict[str, Any]:
    """Parallel calls, an image in a result, signed thinking, a cache mark."""
    return {
        "model": "m",
        "max_tokens": 9,
        "system": [{"type": "text", "text": "sys", "cache_control": {"type": "ephemeral"}}],
        "tools": [
            {"name": "bash", "description": "runs", "input_schema": {"type": "object"}},
            {"name": "shot", "input_schema": {"type": "object", "properties": {}}},
        ],
        "messages": [
            {"role": "user", "content": "go"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "…", "signature": "EqQB"},
                    {"type": "text", "text": "two calls"},
                    {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"cmd": "ls"}},
                    {"type": "tool_use", "id": "toolu_2", "name": "shot", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": "a.txt"},
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_2",
                        "is_error": False,
                        "content": [
                            {"type": "text", "text": "shot"},
                            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                        ],
                    },
                    {"type": "text", "text": "and now?"},
                ],
            },
        ],
    }


def chat_body() -> dict[str, Any]:
    """Parallel calls, an empty result, an image of the user's."""
    return {
        "model": "m",
        "messages": [
            {"role": "developer", "content": "sys"},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "go"},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "high"}},
                ],
            },
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "bash", "arguments": '{"cmd":"ls"}'}},
                    {"id": "call_2", "type": "function", "function": {"name": "bash", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "a.txt"},
            {"role": "tool", "tool_call_id": "call_2", "content": ""},
            {"role": "assistant", "content": "done"},
        ],
    }


def responses_body() -> dict[str, Any]:
    """Reasoning, a call, a custom call, an image in an output, a compaction."""
    picture = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "original"}
    return {
        "model": "gpt-5.6-sol",
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}, dict(picture)]},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "bash", "arguments": '{"cmd":"ls"}'},
            {"type": "custom_tool_call", "id": "ct_1", "call_id": "call_2", "name": "edit", "input": "free text"},
            {
                "type": "function_call_output",
                "call_id": "call_1",
                "output": [{"type": "input_text", "text": "a.txt"}, dict(picture)],
            },
            {"type": "custom_tool_call_output", "call_id": "call_2", "output": "ok"},
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "done", "annotations": []}],
            },
            {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAB"},
            {"role": "user", "content": "and now?"},
        ],
    }


def gemini_body() -> dict[str, Any]:
    """Parallel calls with and without an id, a thought, a signature, images on both sides."""
    return {
        "model": "gemini-3.6-flash",
        "contents": [
            {"role": "user", "parts": [{"text": "go"}, {"inlineData": {"mimeType": "image/png", "data": PNG}}]},
            {
                "role": "model",
                "parts": [
                    {"text": "plan", "thought": True},
                    {
                        "functionCall": {"id": "f1", "name": "bash", "args": {"cmd": "ls"}},
                        "thoughtSignature": "QUJD",
                    },
                    {"functionCall": {"name": "shot"}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"id": "f1", "name": "bash", "response": {"output": "a.txt"}}},
                    {
                        "functionResponse": {
                            "name": "shot",
                            "response": {"output": "see part"},
                            "parts": [{"inlineData": {"mimeType": "image/png", "data": PNG}}],
                        }
                    },
                ],
            },
        ],
    }


BODIES: dict[str, Callable[[], dict[str, Any]]] = {
    "anthropic": anthropic_body,
    "openai_chat": chat_body,
    "openai_responses": responses_body,
    "gemini": gemini_body,
}
KEYS = {"anthropic": "messages", "openai_chat": "messages", "openai_responses": "input", "gemini": "contents"}
