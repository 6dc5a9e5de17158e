"""Estimates recounted by hand, and money."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from microfiche.messages import Image, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from microfiche.models import Ruler, catalogue, cost, find, image_tokens
from microfiche.models.tokens import CALL, IMAGE, MESSAGE, RESULT, TOOL, UNKNOWN_SIZE

RATIOS = {
    "claude-opus-5": 2.0,
    "claude-opus-4-7": 2.0,
    "claude-opus-4-6": 2.5,
    "claude-haiku-4-5": 2.5,
    "claude-haiku-5-5": 2.0,
    "gpt-5.6-sol": 3.0,
    "o3": 3.0,
    "gemini-3.6-flash": 2.5,
    "grok-4.7": 2.5,
    "never-heard-of": 2.5,
}


@pytest.mark.parametrize(("name", "ratio"), RATIOS.items())
@given(text=st.text(alphabet=st.characters()))
def test_text(name: str, ratio: float, text: str) -> None:
    size = len(text.encode("utf-8", "surrogatepass"))
    ruler = Ruler(find(name))
    assert ruler.text(text) == ceil(size / ratio)
    assert ruler.name == f"UTF-8 bytes/{ratio:g}"


def test_text_in_bytes_not_characters() -> None:
    ruler = Ruler(find("claude-opus-5"))
    assert ruler.text("") == 0
    assert ruler.text("abc") == 2
    assert ruler.text("日本") == 3
    assert ruler.text("\ud800") == 2
    assert ruler.text("a" * 1_000_001) == 500_001


def test_the_low_estimate_is_the_least_that_ordinary_text_has() -> None:
    model = find("claude-opus-5")
    assert Ruler(model, low=True).text("a" * 13_800) == 5_000 == ceil(Ruler(model).text("a" * 13_800) / 1.38)
    assert Ruler(model, low=True).name == "UTF-8 bytes/2.76"
    assert Ruler(model, low=True).image(200, 200) == Ruler(model).image(200, 200)


def test_parts() -> None:
    model = find("claude-opus-5")
    ruler = Ruler(model)
    assert ruler.part(ToolCall("id", "bash", '{"command":"ls"}')) == 2 + 8 + CALL
    assert ruler.part(ToolResult("id", (Text("ok"), Text("xyz")))) == 1 + 2 + RESULT
    assert ruler.part(Image(b"", width=1568, height=784)) == 1568 + IMAGE
    assert ruler.part(Image(b"", width=1568, height=784, owner="page")) == 1568 + IMAGE
    assert ruler.part(Image(None, url="https://x")) == image_tokens(model, *UNKNOWN_SIZE) + IMAGE
    assert ruler.part(ToolResult("id", (Image(b"", width=200, height=200),))) == 64 + IMAGE + RESULT
    assert ruler.part(Reasoning(text="", signed=True, size=401)) == 101
    assert ruler.part(Reasoning(text="four", signed=True, size=400)) == 2
    assert ruler.part(Reasoning()) == 0
    assert ruler.part(Opaque("document", {"a": "ü"})) == ceil(len('{"a":"ü"}'.encode()) / 2)
    assert ruler.part(Opaque("tool_use_result", {"a": "b" * 10_000}, private=True)) == 0


def test_an_image_is_never_priced_by_its_bytes() -> None:
    ruler = Ruler(find("gpt-5.6-sol"))
    small, large = (Image(bytes(size), width=800, height=600) for size in (10, 3_000_000))
    assert ruler.part(small) == ruler.part(large) < 1000


@pytest.mark.parametrize("model", catalogue(), ids=lambda model: model.id)
def test_an_unknown_image_counts_at_least_a_common_screenshot(model) -> None:  # type: ignore[no-untyped-def]
    ruler = Ruler(model)
    assert ruler.image(0, 0) >= ruler.image(1920, 1080)


def test_messages_are_the_sum_of_their_parts() -> None:
    ruler = Ruler(find("gemini-3.6-flash"))
    first = Message("user", (Text("hello"), Text("there")))
    second = Message("tool", (ToolResult("1", (Text("a"),)),))
    joined = Message("user", (Text("more"),), joined=True)
    assert ruler.message(first) == 2 + 2 + MESSAGE
    assert ruler.message(second) == 1 + RESULT + MESSAGE
    assert ruler.message(joined) == 2
    assert ruler.messages([first, second, joined]) == sum(map(ruler.message, (first, second, joined)))
    assert ruler.messages([]) == 0
    assert ruler.system(None) == 0
    assert ruler.system(Message("system", (Text("x" * 50),))) == 20 + MESSAGE


def test_tools() -> None:
    ruler = Ruler(find("claude-opus-5"))
    tool = {"name": "bash", "input_schema": {"type": "object"}}
    one = ceil(len('{"name":"bash","input_schema":{"type":"object"}}') / 2) + TOOL
    assert ruler.tools([tool]) == one
    assert ruler.tools(None, ["bash", "bash"]) == 2 * one
    assert ruler.tools([], ["bash"]) == 0
    assert ruler.tools(None) == 0


def test_cost_respects_the_cliffs() -> None:
    sol = find("gpt-5.6-sol")
    assert cost(sol, 0) == 0
    assert cost(sol, 272_000) == pytest.approx(1.088)
    assert cost(sol, 272_001) == pytest.approx(272_001 * 8 / 1e6)
    grok = find("grok-4.7")
    assert cost(grok, 200_000) == pytest.approx(0.4)
    assert cost(grok, 200_001) == pytest.approx(200_001 * 4 / 1e6)
    assert cost(find("claude-opus-5"), 1_000_000) == pytest.approx(5.0)
    assert cost(find("never-heard-of"), 10) is None
    assert cost(find("claude-fable-5-2"), 10) is None
    assert cost(replace(sol, prices=replace(sol.prices, input=None)), 10) is None
