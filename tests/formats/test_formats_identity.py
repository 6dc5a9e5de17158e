"""What is read and not changed is written back equal, and what comes in is never changed."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from microfiche import formats
from microfiche.errors import BadInput
from microfiche.messages import History, Message, Text, ToolResult
from wire_histories import BODIES

WIRES = sorted(BODIES)


@pytest.mark.parametrize("wire", WIRES)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_a_body_is_written_back_equal(wire: str, data: st.DataObject) -> None:
    body = data.draw(BODIES[wire])
    before = copy.deepcopy(body)
    history = formats.read(body, wire)
    written, notes = formats.write(history)
    assert written == before
    assert notes == []
    assert body == before
    assert not history.bare and history.wire == history.format == wire


@pytest.mark.parametrize("wire", WIRES)
@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_a_bare_list_is_written_back_equal(wire: str, data: st.DataObject) -> None:
    items = data.draw(BODIES[wire])[formats.list_key(wire)]
    if isinstance(items, str):
        return
    history = formats.read(items, wire)
    written, _ = formats.write(history)
    assert written == {formats.list_key(wire): items}
    assert history.bare


@pytest.mark.parametrize("wire", WIRES)
@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_text_and_objects_read_alike(wire: str, data: st.DataObject) -> None:
    body = data.draw(BODIES[wire])
    read = formats.read(json.dumps(body), wire)
    assert formats.write(read)[0] == body
    assert read == formats.read(json.loads(json.dumps(body)), wire)


@pytest.mark.parametrize("wire", WIRES)
@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_a_changed_result_keeps_its_other_fields(wire: str, data: st.DataObject) -> None:
    """Every result becomes a placeholder: only its content changes, and the original body stays as it was."""
    body = data.draw(BODIES[wire])
    before = copy.deepcopy(body)
    history = formats.read(body, wire)
    history.messages = [_elided(message) for message in history.messages]
    written, _ = formats.write(history)
    assert body == before
    found = [result for message in formats.read(written, wire).messages for result in message.results]
    assert all(result.text == "gone" for result in found)
    assert _without_contents(written) == _without_contents(before)


def _elided(message: Message) -> Message:
    parts = tuple(
        replace(part, parts=(Text("gone"),), error=False) if isinstance(part, ToolResult) else part
        for part in message.parts
    )
    return replace(message, parts=parts)


def _without_contents(value: Any) -> Any:
    """The value with what results hold left out."""
    if isinstance(value, list):
        return [_without_contents(each) for each in value]
    if not isinstance(value, dict):
        return value
    if value.get("type") == "tool_result":
        return {key: each for key, each in value.items() if key not in ("content", "is_error")}
    if value.get("role") in ("tool", "function") and "content" in value:
        return {key: each for key, each in value.items() if key != "content"}
    if str(value.get("type")).endswith("_output"):
        return {key: each for key, each in value.items() if key != "output"}
    for key in ("functionResponse", "function_response"):
        if key in value:
            return {key: {k: v for k, v in value[key].items() if k not in ("response", "parts")}}
    return {key: _without_contents(each) for key, each in value.items()}


JUNK = st.sampled_from([None, 5, "x", "", [], {}, [5], [None], [{}], {"a": 1}, True])


@pytest.mark.parametrize("wire", WIRES)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_faulty_bodies_are_written_back_with_their_faults(wire: str, data: st.DataObject) -> None:
    """One value anywhere is another or gone: refused as BadInput, or read, carried and written as it came."""
    body = data.draw(BODIES[wire])
    places = [place for place in _places(body) if place]
    place = data.draw(st.sampled_from(places))
    faulty = _put(body, place, data.draw(JUNK | st.just(_GONE)))
    before = copy.deepcopy(faulty)
    try:
        history = formats.read(faulty, wire)
    except BadInput:
        return
    assert formats.write(history)[0] == before == faulty
    for target in WIRES:
        formats.write(history, target)


_GONE = object()


def _places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from _places(each, (*place, key))


def _put(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    if not place:
        return new
    value = copy.copy(value)
    inner = _put(value[place[0]], place[1:], new)
    if inner is _GONE:
        del value[place[0]]
    else:
        value[place[0]] = inner
    return value


@pytest.mark.parametrize("wire", WIRES)
@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_every_history_can_be_written_in_every_wire(wire: str, data: st.DataObject) -> None:
    """Calls, results and texts arrive; what is written is read again as the same."""
    history = formats.read(data.draw(BODIES[wire]), wire)
    for target in WIRES:
        if target == wire:
            continue
        body, _ = formats.write(history, target)
        again = formats.read(json.loads(json.dumps(body)), target)
        assert [call.name for call in _calls(again)] == [call.name for call in _calls(history)]
        assert _texts(again) == _texts(history)
        assert formats.write(again)[0] == body


def _calls(history: History) -> list[Any]:
    return [call for message in history.messages for call in message.calls]


def _texts(history: History) -> str:
    """The plain text of the conversation, line ends and captions of images out of results aside."""
    system = [history.system] if history.system else []
    return "".join(
        part.text.replace("\n", "")
        for message in system + history.messages
        for part in message.parts
        if isinstance(part, Text) and not part.text.startswith("[from the result of ")
    )


def test_wires_know_their_names() -> None:
    assert set(formats.WIRES) < set(formats.FORMATS)
    assert [formats.list_key(wire) for wire in formats.WIRES] == ["messages", "messages", "input", "contents"]
    assert [formats.provider(wire) for wire in formats.WIRES] == ["anthropic", "openai", "openai", "gemini"]
