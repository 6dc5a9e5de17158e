"""Random sound histories stay as they are; random damage is mended, once and for all, in linear time."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from microfiche.validate import Limits, mend, repair, validate
from validate_samples import BODIES, KEYS, PNG

MODELS = {
    "anthropic": "claude-opus-5",
    "openai_chat": "gpt-5.6-sol",
    "openai_responses": "gpt-5.6-sol",
    "gemini": "gemini-3.6-flash",
}

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
spoken = words.map(lambda text: text + "x")  # not blank, and without white space at its end
# A step of a conversation: how many calls its assistant message makes, and what is said.
steps = st.lists(
    st.fixed_dictionaries(
        {
            "calls": st.integers(0, 4),
            "said": spoken,
            "asked": st.none() | spoken,
            "image": st.booleans(),
            "why": st.booleans(),
        }
    ),
    max_size=6,
)


def anthropic(plan: list[dict[str, Any]]) -> list[Any]:
    messages: list[Any] = [{"role": "user", "content": "go"}]
    source = {"type": "base64", "media_type": "image/png", "data": PNG}
    for number, step in enumerate(plan):
        content: list[Any] = [{"type": "thinking", "thinking": "", "signature": "c2ln"}] if step["why"] else []
        content.append({"type": "text", "text": step["said"]})
        calls = [f"toolu_{number}_{index}" for index in range(step["calls"])]
        content += [{"type": "tool_use", "id": id_, "name": "bash", "input": {"n": number}} for id_ in calls]
        messages.append({"role": "assistant", "content": content})
        answer: list[Any] = [
            {
                "type": "tool_result",
                "tool_use_id": id_,
                "content": [{"type": "image", "source": source}] if step["image"] else "",
            }
            for id_ in reversed(calls)
        ]
        if step["asked"] is not None or not calls:
            answer.append({"type": "text", "text": step["asked"] or "and?"})
        messages.append({"role": "user", "content": answer})
    return messages


def openai_chat(plan: list[dict[str, Any]]) -> list[Any]:
    messages: list[Any] = [{"role": "system", "content": ""}]
    for step in plan:
        # Ids are used again in every step: that is answered, and sound.
        calls = [
            {
                "id": f"call_{index}",
                "type": "function",
                "function": {"name": "bash", "arguments": json.dumps({"x": step["said"]})},
            }
            for index in range(step["calls"])
        ]
        message = {"role": "assistant", "content": None if calls and step["why"] else step["said"]}
        messages.append({**message, "tool_calls": calls} if calls else message)
        messages += [{"role": "tool", "tool_call_id": call["id"], "content": step["said"]} for call in reversed(calls)]
        if step["asked"] is not None:
            part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
            messages.append(
                {"role": "user", "content": [{"type": "text", "text": ""}, part] if step["image"] else step["asked"]}
            )
    return messages


def openai_responses(plan: list[dict[str, Any]]) -> list[Any]:
    items: list[Any] = [{"role": "user", "content": "go"}]
    for number, step in enumerate(plan):
        if step["why"]:
            items.append({"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "gAAA"})
        items.append({"role": "assistant", "content": [{"type": "output_text", "text": step["said"]}]})
        kind = "custom_tool_call" if step["image"] else "function_call"
        for index in range(step["calls"]):
            call = {"type": kind, "id": f"x_{number}_{index}", "call_id": f"call_{index}", "name": "bash"}
            items.append({**call, "input": step["said"]} if step["image"] else {**call, "arguments": "{}"})
        if step["asked"] is not None:
            items.append({"role": "user", "content": step["asked"]})
        items += [
            {"type": f"{kind}_output", "call_id": f"call_{index}", "output": step["said"]}
            for index in range(step["calls"])
        ]
    return items


def gemini(plan: list[dict[str, Any]]) -> list[Any]:
    contents: list[Any] = [{"role": "user", "parts": [{"text": "go"}]}]
    for number, step in enumerate(plan):
        parts: list[Any] = [{"text": step["said"], "thought": step["why"]}]
        answer: list[Any] = []
        for index in range(step["calls"]):
            id_ = {"id": f"f{number}_{index}"} if step["image"] else {}
            part: Any = {"functionCall": {**id_, "name": f"tool_{index % 2}", "args": {"n": number}}}
            parts.append(part if index else {**part, "thoughtSignature": "QUJD"})
            answer.append(
                {"functionResponse": {**id_, "name": f"tool_{index % 2}", "response": {"output": step["said"]}}}
            )
        contents.append({"role": "model", "parts": parts})
        if step["asked"] is not None or not answer:
            answer.append({"text": step["asked"] or "and?"})
        contents.append({"role": "user", "parts": answer})
    return contents


MAKERS: dict[str, Callable[[list[dict[str, Any]]], list[Any]]] = {
    "anthropic": anthropic,
    "openai_chat": openai_chat,
    "openai_responses": openai_responses,
    "gemini": gemini,
}


@pytest.mark.parametrize("provider", MAKERS)
@given(plan=steps)
@settings(max_examples=60, deadline=None)
def test_sound_histories_stay_as_they_are(provider: str, plan: list[dict[str, Any]]) -> None:
    messages = MAKERS[provider](plan)
    before = copy.deepcopy(messages)
    assert validate(messages, provider, model=MODELS[provider]) == []
    mended, repairs = repair(messages, provider, model=MODELS[provider])
    assert mended is messages and repairs == [] and messages == before


VALUES: list[Any] = [None, "", " ", "x", 0, -1.5, float("nan"), [], {}, [None], {"type": "text"}, "\ud800", True]


def damage(value: Any, choose: random.Random) -> None:
    """One change somewhere inside: something removed, doubled, moved or overwritten."""
    while True:
        inner = list(value.values()) if isinstance(value, dict) else value
        deeper = [item for item in inner if isinstance(item, (dict, list)) and item]
        if deeper and choose.random() < 0.8:
            value = choose.choice(deeper)
            continue
        if isinstance(value, dict):
            key = choose.choice(list(value))
            if choose.random() < 0.3:
                del value[key]
            else:
                value[key] = copy.deepcopy(choose.choice(VALUES))
            return
        index = choose.randrange(len(value))
        action = choose.randrange(5)
        if action == 0:
            del value[index]
        elif action == 1:
            value.insert(choose.randrange(len(value) + 1), copy.deepcopy(value[index]))
        elif action == 2:
            value.insert(choose.randrange(len(value)), value.pop(index))
        elif action == 3:
            value[index] = copy.deepcopy(choose.choice(VALUES))
        else:
            value[index:] = value[index:][::-1]
        return


@pytest.mark.parametrize("provider", MAKERS)
@given(plan=steps, seed=st.integers(0, 2**32), count=st.integers(1, 6), bare=st.booleans())
@settings(max_examples=150, deadline=None)
def test_damage_is_mended(provider: str, plan: list[dict[str, Any]], seed: int, count: int, bare: bool) -> None:
    check_damage(provider, plan, seed, count, bare)


@pytest.mark.full
@pytest.mark.parametrize("provider", MAKERS)
@given(plan=steps, seed=st.integers(0, 2**32), count=st.integers(1, 12), bare=st.booleans())
@settings(max_examples=5000, deadline=None)
def test_much_damage_is_mended(provider: str, plan: list[dict[str, Any]], seed: int, count: int, bare: bool) -> None:
    check_damage(provider, plan, seed, count, bare)


@pytest.mark.parametrize("provider", MAKERS)
@given(plan=steps, seed=st.integers(0, 2**32), count=st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_mending_is_repair_and_what_validation_then_says(
    provider: str, plan: list[dict[str, Any]], seed: int, count: int
) -> None:
    choose = random.Random(seed)
    messages = MAKERS[provider](plan)
    for _ in range(count):
        if messages:
            damage(messages, choose)
    model = MODELS[provider]
    mended, repairs, violations = mend(messages, provider, model=model)
    again, same = repair(messages, provider, model=model)
    assert repr((mended, repairs)) == repr((again, same))  # a NaN is not equal to itself
    assert violations == validate(mended, provider, model=model)
    assert (mended is messages) == (not repairs)


def check_damage(provider: str, plan: list[dict[str, Any]], seed: int, count: int, bare: bool) -> None:
    choose = random.Random(seed)
    body = BODIES[provider]()
    body[KEYS[provider]] += MAKERS[provider](plan)
    for _ in range(count):
        if body[KEYS[provider]]:
            damage(body[KEYS[provider]], choose)
    subject: Any = body[KEYS[provider]] if bare else body
    model = MODELS[provider]
    found = validate(subject, provider, model=model)
    mended, repairs = repair(subject, provider, model=model)
    left = validate(mended, provider, model=model)
    assert {violation.rule for violation in left} <= {"no-messages"}
    assert repair(mended, provider, model=model)[0] is mended
    assert (mended is subject) == (repairs == [])
    assert bool(repairs) <= bool(found)
    json.dumps(mended, allow_nan=False, ensure_ascii=False).encode()


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["role", "content", "type", "text", "id", "parts", "source", "tool_use_id", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@pytest.mark.parametrize("provider", MAKERS)
@given(value=JUNK)
@settings(max_examples=150, deadline=None)
def test_nothing_breaks_on_junk(provider: str, value: Any) -> None:
    validate(value, provider)
    mended, _ = repair(value, provider)
    assert repair(mended, provider)[0] is mended


def _big(provider: str, size: int) -> list[tuple[str, Any]]:
    """Large requests of the kinds that make a careless algorithm quadratic."""
    step = {"calls": 2, "said": "x", "asked": "y", "image": False, "why": True}
    sound = MAKERS[provider]([step] * (size // 6))
    calls = [
        item for item in sound if item.get("role") in ("assistant", "model") or str(item.get("type")).endswith("_call")
    ]
    others = [
        item for item in sound if item.get("role") in ("user", "tool") or str(item.get("type")).endswith("_output")
    ]
    one_id = json.loads(json.dumps(sound).replace("_1", "_0"))
    return [
        ("sound", sound),
        ("the same ids everywhere", one_id),
        ("calls only", calls),
        ("results only", others),
        ("results first", others + calls),
        ("reversed", sound[::-1]),
        ("empty", [{"role": "user"}] * size),
        ("white space", [{"role": "user", "content": " " * (200 * size), "parts": [{"text": " " * (200 * size)}]}]),
        (
            "many fields",
            [{"role": "user", "content": "x", "parts": [{"text": "x"}], **{f"k{n}": n for n in range(size)}}],
        ),
        ("base64 of nothing", [{"role": "user", "content": [_picture(provider, "=" * (100 * size))], "parts": []}]),
    ]


def _picture(provider: str, data: str) -> dict[str, Any]:
    if provider == "anthropic":
        return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    if provider == "openai_chat":
        return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    return {"type": "input_image", "image_url": f"data:image/png;base64,{data}"}


@pytest.mark.parametrize("provider", MAKERS)
def test_hostile_sizes_are_mended_to_their_end(provider: str) -> None:
    """Anything but linear time would not come back."""
    for name, messages in _big(provider, 3000):
        mended, _ = repair(messages, provider, model=MODELS[provider])
        assert validate(mended, provider, model=MODELS[provider]) == [], name


def test_deep_nesting_is_said_and_breaks_nothing() -> None:
    value: Any = "x"
    for _ in range(20_000):
        value = [value]
    messages = [{"role": "user", "content": [{"type": "text", "text": "x", "extra": value}]}]
    for provider in MAKERS:
        assert "too-deep" in {found.rule for found in validate(messages, provider, Limits(request_bytes=1))}


def test_a_request_that_holds_itself_is_said_and_ends() -> None:
    message: dict[str, Any] = {"role": "user", "content": "x"}
    message["again"] = message
    assert [found.rule for found in validate([message])] == ["too-deep"]
