"""Turns to segments: order, bars, what is left off, and where each segment comes from."""

from __future__ import annotations

import json
import re
from typing import Any

import builders
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from microfiche import formats
from microfiche.messages import Image, Message, Opaque, Reasoning, Text, ToolCall, ToolResult, Turn, split_turns
from microfiche.pages.render import Bar, draw, normal, read_back
from microfiche.pages.script import BESIDE, BLOB, clean_name, clean_type, image_marker, write_script


def script(*messages: Message, beside: frozenset[int] = frozenset()) -> list[Any]:
    made = write_script(split_turns(messages)[1], beside)
    assert len(made.segments) == len(made.spots) == len(made.lasts)
    return made.segments


def test_a_round_in_its_order() -> None:
    segments = script(
        Message("user", (Text("look"), Text("here"))),
        Message("assistant", (Text("I read."), ToolCall("c1", "read", '{"p":1}'), ToolCall("c2", "run", "{}"))),
        Message("tool", (ToolResult("c1", (Text("a"), Text("b"))), ToolResult("c2", (Text("no"),), error=True))),
        Message("system", (Text("mind"),)),
    )
    assert segments == [
        Bar(1, "user"),
        "look\nhere",
        Bar(2, "assistant"),
        "I read.",
        Bar(2, "call read"),
        '{"p":1}',
        Bar(2, "call run"),
        "{}",
        Bar(2, "result ok"),
        "a\nb",
        Bar(2, "result error"),
        "no",
        Bar(2, "system"),
        "mind",
    ]


def test_texts_that_are_one_object_are_joined_like_any_other() -> None:
    same = Text("x")
    assert script(
        Message("assistant", (ToolCall("c", "t", ""),)), Message("tool", (ToolResult("c", (same, same)),))
    ) == [
        Bar(1, "call t"),
        Bar(1, "result ok"),
        "x\nx",
    ]


def test_text_behind_a_call_has_a_bar_of_its_own() -> None:
    segments = script(Message("assistant", (Text("a"), ToolCall("c", "t", "{}"), Text("b"))))
    assert segments == [Bar(1, "assistant"), "a", Bar(1, "call t"), "{}", Bar(1, "assistant"), "b"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("read_file", "read_file"),
        (" 7 user ", "7user"),
        ("a\nb", "ab"),
        ("", "-"),
        ("名前", "-"),
        ("x" * 99, "x" * 64),
        ("mcp__a.b:c-d", "mcp__a.b:c-d"),
    ],
)
def test_names_that_a_bar_cannot_hold_stand_in_the_text(name: str, shown: str) -> None:
    assert clean_name(name) == shown
    text = [] if name == shown else [f"{name}\n"]
    assert script(Message("assistant", (ToolCall("c", name, ""),))) == [Bar(1, f"call {shown}"), *text]


def test_reasoning_is_counted_and_every_turn_has_a_bar() -> None:
    turns = [
        Turn(1, (Message("assistant", (Reasoning("hm"), Reasoning("hmm"))),)),
        Turn(2, (Message("user", ()),)),
        Turn(3, (Message("user", (Text(""),)),)),
        Turn(4, (Message("assistant", (Opaque("copy", {"a": 1}, private=True),)),)),
    ]
    made = write_script(turns)
    assert made.segments == [Bar(1, "assistant"), Bar(2, "user"), Bar(3, "user"), Bar(4, "assistant")]
    assert made.reasoning == 2


def test_private_copies_never_show() -> None:
    copy = Opaque("metadata", {"secret": "sesame"}, private=True)
    segments = script(
        Message("assistant", (copy, ToolCall("c", "t", "{}"))),
        Message("tool", (ToolResult("c", (Text("out"), copy)),)),
        Message("user", (copy, Text("hi"))),
    )
    assert "sesame" not in str(segments)


def test_unknown_parts_show_as_json_and_blobs_as_their_size() -> None:
    made = write_script(
        split_turns(
            [
                Message("user", (Opaque("search_result", {"title": "é", "n": 1}),)),
                Message("user", (Opaque("document", {"data": "Q" * (BLOB + 1)}),)),
            ]
        )[1]
    )
    assert made.segments[1] == '[search_result] {"title": "é", "n": 1}'
    size = len(json.dumps({"data": "Q" * (BLOB + 1)}))
    assert made.segments[3] == f"[document: {size} characters, not drawn; turn 2]"
    assert made.opaque == {"document": 1}


def test_words_beside_the_page_leave_a_word_on_it() -> None:
    picture = Image(b"x", "image/png", 3, 4)
    messages = (Message("user", (Text("keep"), picture, Text("this"))), Message("user", (Text("drawn"),)))
    assert script(*messages, beside=frozenset((1,))) == [
        Bar(1, "user"),
        f"{BESIDE}\n[image image/png 3×4, of turn 1]",
        Bar(2, "user"),
        "drawn",
    ]


def test_spots_name_the_first_and_the_last_part_of_a_segment() -> None:
    picture = Image(b"x", "image/png", 3, 4)
    made = write_script(split_turns([Message("user", (Text("a"), picture, Text("b")))])[1])
    assert made.spots == [(1, 0, 0), (1, 0, 0)]
    assert made.lasts == [(1, 0, 0), (1, 0, 2)]


@given(st.text(max_size=90))
def test_no_media_type_and_no_name_forges_anything(text: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9!#$&^_.+/-]{1,64}", clean_type(text))
    assert re.fullmatch(r"\[image \S+ 2×3, of turn 5\]", image_marker(Image(b"", text, 2, 3), 5))
    Bar(1, f"call {clean_name(text)}")


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 32), st.sampled_from(builders.WIRES))
def test_any_history_is_in_normal_form_and_reads_back(seed: int, wire: str) -> None:
    history = formats.read(builders.random_story(seed).native(wire), wire)
    turns = split_turns(history.messages)[1]
    made = write_script(turns)
    assert tuple(made.segments) == normal(made.segments)
    assert made.spots == sorted(made.spots)
    bars = [segment.turn for segment in made.segments if isinstance(segment, Bar)]
    assert set(bars) == {turn.number for turn in turns}
    assert bars == sorted(bars)
    pages = draw(made.segments, cell=(9, 16), width=1568, height=784)
    assert tuple(read_back(pages, marks=True)) == tuple(made.segments)
