"""Sound requests of each wire, made here."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any


def image(width: int, height: int) -> str:
    """Base64 of a PNG whose header says so many pixels (all white, one bit each)."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\xff" * ((width + 7) // 8)) * height
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    png = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )
    return base64.b64encode(png).decode()


PNG = image(8, 8)
if not PNG.endswith("="):  # the padding is what a test cuts off
    PNG = next(data for side in range(9, 40) if (data := image(side, 8)).endswith("="))


def anthropic_body() -> dict[str, Any]:
    """A request with parallel calls, an image in a result, signed thinking and a cache mark."""
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
                            {
                                "type": "image",
                                "source": {"type": "base64", "media_type": "image/png", "data": PNG},
                            },
                        ],
                    },
                    {"type": "text", "text": "and now?"},
                ],
            },
        ],
    }
