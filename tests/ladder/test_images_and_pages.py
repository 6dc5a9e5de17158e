"""Where the number of images binds, pictures make room for pages before turns are left out."""

from __future__ import annotations

import base64
import io
from typing import Any

import microfiche as mf
import pytest
from PIL import Image


def picture(width: int, height: int, shade: int) -> dict[str, Any]:
    file = io.BytesIO()
    Image.new("RGB", (width, height), (shade, 0, 0)).save(file, "PNG")
    data = base64.b64encode(file.getvalue()).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def history(rounds: int = 80) -> list[dict[str, Any]]:
    """A large picture in front (Anthropic takes 20 images at most then), a screenshot every round, some of the user."""
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": "begin"}, picture(3000, 200, 1)]}
    ]
    for at in range(rounds):
        words = {"type": "text", "text": f"step {at} " + "foo bar " * 40}
        calls = [
            {"type": "tool_use", "id": f"{name}{at}", "name": name, "input": {"p": at}} for name in ("read", "shot")
        ]
        results: list[dict[str, Any]] = [
            {"type": "tool_result", "tool_use_id": f"read{at}", "content": f"file {at}\n" * 60},
            {"type": "tool_result", "tool_use_id": f"shot{at}", "content": [picture(800, 600, at)]},
        ]
        own = [picture(400, 300, at), {"type": "text", "text": f"user says {at}"}] if at % 9 == 0 else []
        messages += [{"role": "assistant", "content": [words, *calls]}, {"role": "user", "content": [*results, *own]}]
    return messages


@pytest.mark.parametrize("budget", [90_000, 40_000, 26_000])
def test_turns_stay_in_view_where_pictures_can_leave(budget: int) -> None:
    fit = mf.compact(history(), model="claude-opus-5", budget=budget)
    assert fit.tokens <= budget
    assert fit.receipt.after.images <= 20
    assert not fit.receipt.omitted_turns
    assert not mf.validate(fit.request, model="claude-opus-5")


def test_the_newest_pictures_stay() -> None:
    fit = mf.compact(history(), model="claude-opus-5", budget=40_000)
    assert fit.pages
    shots = [part for m in fit.messages for part in m["content"] if part.get("type") == "tool_result"]
    kept = [part["tool_use_id"] for part in shots if "image" in str(part["content"])]
    assert {"shot79", "shot78", "shot77"} <= set(kept)
