"""Payloads come back as they went in, and what is large is kept once."""

from __future__ import annotations

import base64
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from microfiche.errors import BadInput
from microfiche.messages import Image, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from microfiche.record.entries import OpenCalls, Packer, Ref, renumber, unpack
from record_lives import fresh, says, user

texts = st.text(st.characters(codec=None, categories=None), max_size=60)
long_texts = st.builds(lambda text, times: text * times, texts, st.sampled_from([1, 50]))
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | long_texts
    | st.binary(max_size=40)
    | st.builds(Ref, st.integers(1, 99)),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(texts | st.sampled_from(["$text", "$dict", "$", "message"]), inner, max_size=4)
    ),
    max_leaves=12,
)
inner_parts = st.one_of(
    st.builds(Text, long_texts, plain, st.booleans()),
    st.builds(
        Image, st.none() | st.binary(max_size=50), texts, st.integers(0, 9), st.integers(0, 9),
        st.sampled_from(["user", "tool", "page"]), st.none() | texts, st.none() | texts, plain, st.booleans(),
    ),
    st.builds(Opaque, texts, plain, st.booleans(), st.none() | texts),
)  # fmt: skip
parts = inner_parts | st.one_of(
    st.builds(ToolCall, texts, texts, long_texts, plain),
    st.builds(Reasoning, long_texts, st.booleans(), st.integers(0), plain),
    st.builds(ToolResult, texts, st.lists(inner_parts, max_size=3).map(tuple), st.booleans(), texts, plain),
)
messages = st.builds(
    Message, st.sampled_from(["system", "user", "assistant", "tool"]), st.lists(parts, max_size=4).map(tuple), plain,
    st.booleans(),
)  # fmt: skip


def spell(value: Any) -> str:
    """A form in which NaN equals NaN and 1 differs from True."""
    return repr(value)


def there_and_back(payload: dict[str, Any], message: Message | None) -> tuple[dict[str, Any], Message | None, Packer]:
    packer = Packer(lambda _: 0)
    text, mentioned = packer.pack(payload, message)
    assert text.isascii() and "\n" not in text
    assert len(mentioned) == 32 * len({mentioned[at : at + 32] for at in range(0, len(mentioned), 32)})
    return *unpack(text, packer.blobs.__getitem__), packer


@given(st.dictionaries(texts.filter(lambda key: not key.startswith("$") and key != "message"), plain, max_size=4))
def test_any_plain_value_comes_back(payload: dict[str, Any]) -> None:
    assert spell(there_and_back(payload, None)[0]) == spell(payload)


@given(messages)
def test_any_message_comes_back(message: Message) -> None:
    payload, found, _ = there_and_back({"n": 1}, message)
    assert spell(found) == spell(message) and payload == {"n": 1}


HARD: list[Any] = [
    "\ud83d\ude00", "\ude00\ud83d", "x" * 2000 + "\ud800", "\0", '{"$text":1}',
    10**5000, -(10**5000), 2**1024, math.inf, -math.inf, -0.0, (1, (2, [3])), b"",
    {"$text": "00"}, {"$dict": []}, {"\ud83d\ude00": 1}, {"": {"": None}},
]  # fmt: skip


@pytest.mark.parametrize("value", HARD, ids=range(len(HARD)))
def test_hard_values_come_back(value: Any) -> None:
    message = Message("user", (Text("t", native=value),))
    payload, found, _ = there_and_back({"v": value}, message)
    assert payload == {"v": value} and type(payload["v"]) is type(value)
    assert found == message
    assert repr(payload["v"]) == repr(value) if not isinstance(value, int) else True


def test_nan_comes_back() -> None:
    assert math.isnan(there_and_back({"v": math.nan}, None)[0]["v"])


def test_two_lone_surrogates_are_not_joined() -> None:
    payload, _, _ = there_and_back({"v": ["\ud83d\ude00", "\U0001f600"]}, None)
    assert [len(text) for text in payload["v"]] == [2, 1]


@pytest.mark.parametrize("value", [object(), {1: 2}, {1, 2}, 1j, range(3)])
def test_what_is_no_plain_data_is_refused(value: object) -> None:
    with pytest.raises(BadInput):
        Packer(lambda _: 0).pack({"v": value}, None)


def test_depth_is_bounded() -> None:
    value: Any = 0
    for _ in range(5000):
        value = [value]
    with pytest.raises(BadInput, match="nested"):
        Packer(lambda _: 0).pack({"v": value}, None)


@pytest.mark.parametrize("key", ["message", "$x"])
def test_reserved_keys_are_refused(key: str) -> None:
    with pytest.raises(BadInput):
        Packer(lambda _: 0).pack({key: 1}, None)


def test_a_picture_and_its_spellings_are_one_blob() -> None:
    data = bytes(range(256)) * 8
    spelled = base64.b64encode(data).decode()
    native = {"source": {"data": spelled}, "url": "data:image/png;base64," + spelled}
    image = Image(data, native=native)
    message = Message("tool", (ToolResult("c", (image,), native={"content": [native]}),))
    _, found, packer = there_and_back({}, message)
    assert found == message
    assert list(packer.blobs.values()) == [data]


def test_a_long_text_is_one_blob() -> None:
    text = "line\n" * 1000
    message = Message("user", (Text(text, native={"type": "text", "text": text}),))
    _, found, packer = there_and_back({"again": text}, message)
    assert found == message
    assert list(packer.blobs.values()) == [text.encode()]


def test_references_are_rewritten_and_lookalikes_are_not() -> None:
    packer = Packer(lambda _: 0)
    payload = {"span": [Ref(3), Ref(4)], "far": Ref(99), "fake": {"$entry": 3}, "text": '{"$entry":3}', "n": 3}
    text, _ = packer.pack(payload, None)
    found, _ = unpack(renumber(text, {3: 30, 4: 40}), packer.blobs.__getitem__)
    assert found == {**payload, "span": [Ref(30), Ref(40)]}


def test_open_calls_know_ids_that_are_used_again() -> None:
    one = Message("assistant", (ToolCall("a", "f", ""), ToolCall("a", "g", ""), ToolCall("b", "h", "")))
    calls = OpenCalls()
    calls.follow(Message("tool", (ToolResult("a", ()),)))  # before its call: answers nothing
    calls.follow(one)
    assert [call.name for call in calls.calls] == ["f", "g", "h"] and len(calls) == 3
    calls.follow(Message("tool", (ToolResult("a", ()), ToolResult("b", ()))))
    assert [call.name for call in calls.calls] == ["g"] and len(calls) == 1


@settings(max_examples=15, deadline=None)
@given(st.lists(messages.filter(lambda m: not m.calls), min_size=1, max_size=4))
def test_a_path_reads_back_what_was_appended(tmp_path_factory: pytest.TempPathFactory, stretch: list[Message]) -> None:
    with fresh(tmp_path_factory.mktemp("r")) as record:
        thread = record.thread("t")
        thread.append([user("hi"), *stretch, says("done")])
        assert [spell(e.message) for e in thread.path()] == [spell(m) for m in (user("hi"), *stretch, says("done"))]
        assert record.verify(derived=True)
