"""A corpus of faults: every one is flagged for its provider, mended, and leaves its neighbours alone."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from microfiche.fit import compact
from microfiche.models import find
from microfiche.validate import PROVIDERS, Limits, default_limits, limits_for, repair, validate
from validate_samples import BODIES, KEYS, PNG

Body = dict[str, Any]
Fault = tuple[str, str, Callable[[Body, list[Any]], Any]]  # rule, name, what is done to body and list

JPEG = "/9j/4AAQSkZJRgABAQ=="
HUGE = 10**5000


def _swap(items: list[Any], a: int, b: int) -> None:
    items[a], items[b] = items[b], items[a]


ANTHROPIC: list[Fault] = [
    ("unanswered-call", "results cut off", lambda b, m: m.pop()),
    ("unanswered-call", "one result lost", lambda b, m: m[2]["content"].pop(1)),
    ("unanswered-call", "text between", lambda b, m: m.insert(2, {"role": "assistant", "content": "x"}) or m.pop()),
    ("parted-results", "an assistant message between", lambda b, m: m.insert(2, {"role": "assistant", "content": "x"})),
    ("parted-results", "a user message between", lambda b, m: m.insert(2, {"role": "user", "content": "wait"})),
    ("parted-results", "a batch parted", lambda b, m: m.append({"role": "user", "content": [m[2]["content"].pop(1)]})),
    ("orphan-result", "call cut off", lambda b, m: m.pop(1)),
    ("orphan-result", "head cut off", lambda b, m: m.__delitem__(slice(0, 2))),
    ("duplicate-result", "result twice", lambda b, m: m[2]["content"].insert(0, copy.deepcopy(m[2]["content"][0]))),
    ("result-order", "text before results", lambda b, m: m[2]["content"].reverse()),
    ("duplicate-call", "calls copied", lambda b, m: m.append(copy.deepcopy(m[1]))),
    ("duplicate-id", "one id for two calls", lambda b, m: m[1]["content"][3].update(id="toolu_1")),
    ("tool-id", "an id with a colon", lambda b, m: m[1]["content"][2].update(id="functions.bash:0")),
    ("tool-input", "arguments as text", lambda b, m: m[1]["content"][2].update(input='{"cmd": "ls"}')),
    ("tool-name", "a name with a blank", lambda b, m: m[1]["content"][2].update(name="run it")),
    ("tool-name", "no name", lambda b, m: m[1]["content"][2].pop("name")),
    ("tool-name", "a definition's name", lambda b, m: b["tools"][0].update(name="a/b")),
    ("duplicate-tool", "a tool defined twice", lambda b, m: b["tools"].append(b["tools"][0])),
    ("tool-schema", "no schema", lambda b, m: b["tools"][0].pop("input_schema")),
    ("no-tools", "no tools", lambda b, m: b.pop("tools")),
    ("role", "role tool", lambda b, m: m[0].update(role="tool")),
    ("role", "no role", lambda b, m: m[0].pop("role")),
    ("first-message", "begins with the assistant", lambda b, m: m.pop(0)),
    ("empty-message", "null content", lambda b, m: m[0].update(content=None)),
    ("empty-message", "blank content", lambda b, m: m[0].update(content=" \n")),
    ("empty-text", "empty block", lambda b, m: m[1]["content"][1].update(text="")),
    ("empty-text", "empty block in a result", lambda b, m: m[2]["content"][1]["content"][0].update(text="")),
    ("empty-text", "empty system block", lambda b, m: b["system"][0].update(text="")),
    ("system-shape", "image in system", lambda b, m: b["system"].append({"type": "image"})),
    ("empty-error", "error without content", lambda b, m: m[2]["content"][0].update(is_error=True, content="")),
    ("unsigned-thinking", "no signature", lambda b, m: m[1]["content"][0].pop("signature")),
    ("cache-mark", "mark on thinking", lambda b, m: m[1]["content"][0].update(cache_control={"type": "ephemeral"})),
    (
        "cache-marks",
        "five marks",
        lambda b, m: [
            x.update(cache_control={"type": "ephemeral"}) for x in (*m[1]["content"][1:], m[2]["content"][2])
        ],
    ),
    ("block-role", "a call of the user's", lambda b, m: m[2]["content"].append(m[1]["content"].pop())),
    ("content-shape", "one block, no list", lambda b, m: m[0].update(content={"type": "text", "text": "go"})),
    ("block-shape", "a string for a block", lambda b, m: m[1]["content"].insert(1, "text")),
    ("message-shape", "null for a message", lambda b, m: m.append(None)),
    ("image-type", "wrong media type", lambda b, m: m[2]["content"][1]["content"][1]["source"].update(data=JPEG)),
    ("image-data", "torn base64", lambda b, m: m[2]["content"][1]["content"][1]["source"].update(data=PNG[:21])),
    ("lone-surrogate", "half an emoji", lambda b, m: m[0].update(content="\ud83d")),
    ("lone-surrogate", "in a key", lambda b, m: m[1]["content"][2]["input"].update({"\udc00": 1})),
    ("not-a-json-number", "NaN", lambda b, m: m[1]["content"][2]["input"].update(x=float("nan"))),
    ("not-a-json-number", "too many digits", lambda b, m: m[1]["content"][2]["input"].update(x=HUGE)),
]

CHAT: list[Fault] = [
    ("unanswered-call", "results cut off", lambda b, m: m.__delitem__(slice(3, None))),
    ("unanswered-call", "one result lost", lambda b, m: m.pop(3)),
    ("parted-results", "a user message between", lambda b, m: m.insert(4, {"role": "user", "content": "wait"})),
    ("parted-results", "a late result", lambda b, m: m.append(m.pop(3))),
    ("orphan-result", "call cut off", lambda b, m: m.pop(2)),
    ("orphan-result", "no id", lambda b, m: m[3].pop("tool_call_id")),
    ("duplicate-result", "result twice", lambda b, m: m.insert(4, copy.deepcopy(m[3]))),
    ("duplicate-id", "one id for two calls", lambda b, m: m[2]["tool_calls"][1].update(id="call_1")),
    ("duplicate-call", "calls copied", lambda b, m: m.append(copy.deepcopy(m[2]))),
    ("tool-id", "an empty id", lambda b, m: m[2]["tool_calls"][0].update(id="")),
    ("tool-id", "a long id", lambda b, m: m[2]["tool_calls"][0].update(id="x" * 41)),
    ("tool-input", "an object for text", lambda b, m: m[2]["tool_calls"][0]["function"].update(arguments={"a": 1})),
    ("tool-input", "torn arguments", lambda b, m: m[2]["tool_calls"][0]["function"].update(arguments='{"a": ')),
    ("tool-input", "NaN in arguments", lambda b, m: m[2]["tool_calls"][0]["function"].update(arguments='{"a": NaN}')),
    ("tool-input", "no arguments", lambda b, m: m[2]["tool_calls"][0]["function"].pop("arguments")),
    ("tool-name", "a name with a blank", lambda b, m: m[2]["tool_calls"][0]["function"].update(name="a b")),
    ("call-shape", "no function", lambda b, m: m[2]["tool_calls"][1].pop("function")),
    ("empty-calls", "empty calls", lambda b, m: m[5].update(tool_calls=[])),
    ("call-role", "calls of the user's", lambda b, m: m[1].update(tool_calls=m[2]["tool_calls"])),
    ("role", "role model", lambda b, m: m[5].update(role="model")),
    ("empty-message", "null content of the user's", lambda b, m: m[1].update(content=None)),
    ("empty-message", "null content without calls", lambda b, m: m[5].update(content=None)),
    ("empty-message", "empty list", lambda b, m: m[1].update(content=[])),
    ("part-role", "image in a result", lambda b, m: m[3].update(content=[m[1]["content"][1]])),
    ("part-role", "image of the assistant's", lambda b, m: m[5].update(content=[m[1]["content"][1]])),
    ("part-shape", "a string for a part", lambda b, m: m[1]["content"].append("x")),
    ("image-shape", "URL as a string", lambda b, m: m[1]["content"][1].update(image_url="https://example.org/a.png")),
    ("image-data", "torn data", lambda b, m: m[1]["content"][1]["image_url"].update(url="data:image/png;base64,x")),
    ("image-data", "no image", lambda b, m: m[1]["content"][1]["image_url"].update(url="data:image/png;base64,Qk0A")),
    ("lone-surrogate", "half an emoji", lambda b, m: m[3].update(content="\udfff")),
    ("not-a-json-number", "Infinity", lambda b, m: b.update(temperature=float("inf"))),
]

RESPONSES: list[Fault] = [
    ("unanswered-call", "output lost", lambda b, m: m.pop(4)),
    ("unanswered-call", "custom output lost", lambda b, m: m.pop(5)),
    ("unanswered-call", "cut behind the calls", lambda b, m: m.__delitem__(slice(4, None))),
    ("orphan-result", "call lost", lambda b, m: m.pop(2)),
    ("orphan-result", "output before its call", lambda b, m: m.insert(0, m.pop(4))),
    ("orphan-result", "no call_id", lambda b, m: m[5].pop("call_id")),
    ("orphan-result", "output of another kind", lambda b, m: m[5].update(type="function_call_output")),
    ("duplicate-result", "output twice", lambda b, m: m.append(copy.deepcopy(m[4]))),
    ("duplicate-call", "call twice", lambda b, m: m.insert(3, copy.deepcopy(m[2]))),
    ("tool-id", "a long call_id", lambda b, m: [m[i].update(call_id="x" * 65) for i in (2, 4)]),
    ("tool-input", "an object for text", lambda b, m: m[2].update(arguments={"a": 1})),
    ("tool-input", "custom input is no text", lambda b, m: m[3].update(input={"a": 1})),
    ("tool-name", "an empty name", lambda b, m: m[2].update(name="")),
    ("reasoning-alone", "the user behind it", lambda b, m: m.insert(2, {"role": "user", "content": "x"})),
    ("reasoning-alone", "at the end", lambda b, m: m.__delitem__(slice(2, None))),
    ("reasoning-unstored", "not stored", lambda b, m: b.update(store=False) or m[1].pop("encrypted_content")),
    ("reasoning-shape", "no summary", lambda b, m: m[1].pop("summary")),
    ("duplicate-id", "an item twice", lambda b, m: m.append(copy.deepcopy(m[6]))),
    ("item-type", "context_compaction", lambda b, m: m[7].update(type="context_compaction")),
    ("item-shape", "an empty item", lambda b, m: m.insert(0, {})),
    ("role", "role tool", lambda b, m: m[0].update(role="tool")),
    ("empty-message", "null content", lambda b, m: m[8].update(content=None)),
    ("part-type", "text of the other side", lambda b, m: m[6]["content"][0].update(type="input_text")),
    ("part-type", "a part of chat", lambda b, m: m[0]["content"].append({"type": "text", "text": "x"})),
    (
        "part-type",
        "an image of chat",
        lambda b, m: m[0]["content"].append({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}),
    ),
    ("part-role", "image of the assistant's", lambda b, m: m[6]["content"].append(m[0]["content"][1])),
    ("result-shape", "null output", lambda b, m: m[5].update(output=None)),
    ("image-shape", "image without a URL", lambda b, m: m[0]["content"][1].pop("image_url")),
    ("image-data", "torn data", lambda b, m: m[4]["output"][1].update(image_url="data:image/png;base64,####")),
    ("lone-surrogate", "half an emoji", lambda b, m: m[8].update(content="a\ud83db")),
    ("not-a-json-number", "NaN", lambda b, m: m[2].update(x=float("nan"))),
]

GEMINI: list[Fault] = [
    ("unanswered-call", "responses cut off", lambda b, m: m.pop()),
    ("unanswered-call", "one response lost", lambda b, m: m[2]["parts"].pop()),
    ("parted-results", "responses parted", lambda b, m: m.append({"role": "user", "parts": [m[2]["parts"].pop()]})),
    (
        "parted-results",
        "a model content between",
        lambda b, m: m.insert(2, {"role": "model", "parts": [{"text": "x"}]}),
    ),
    ("orphan-result", "one response too many", lambda b, m: m[2]["parts"].append(copy.deepcopy(m[2]["parts"][1]))),
    ("duplicate-result", "response twice", lambda b, m: m[2]["parts"].append(copy.deepcopy(m[2]["parts"][0]))),
    ("orphan-result", "call lost", lambda b, m: m[1]["parts"].pop(1)),
    ("response-name", "another name", lambda b, m: m[2]["parts"][0]["functionResponse"].update(name="sh")),
    ("response-id", "another id", lambda b, m: m[2]["parts"][0]["functionResponse"].update(id="f9")),
    ("unsigned-call", "no signature", lambda b, m: m[1]["parts"][1].pop("thoughtSignature")),
    ("tool-input", "args as text", lambda b, m: m[1]["parts"][1]["functionCall"].update(args='{"cmd": "ls"}')),
    ("tool-name", "a name with a blank", lambda b, m: m[1]["parts"][2]["functionCall"].update(name="a b")),
    ("result-shape", "a response of text", lambda b, m: m[2]["parts"][0]["functionResponse"].update(response="a.txt")),
    ("result-shape", "no response", lambda b, m: m[2]["parts"][0]["functionResponse"].pop("response")),
    ("block-role", "a call of the user's", lambda b, m: m[0]["parts"].append(m[1]["parts"][2])),
    ("block-role", "a response of the model's", lambda b, m: m[1]["parts"].append(m[2]["parts"][0])),
    ("role", "role assistant", lambda b, m: m[1].update(role="assistant")),
    ("role", "role system", lambda b, m: m.insert(0, {"role": "system", "parts": [{"text": "x"}]})),
    ("first-message", "begins with the model", lambda b, m: m.pop(0)),
    ("empty-message", "no parts", lambda b, m: m[0].update(parts=[])),
    ("empty-message", "parts missing", lambda b, m: m[0].pop("parts")),
    ("empty-text", "an empty part", lambda b, m: m[0]["parts"].append({})),
    ("empty-text", "empty text", lambda b, m: m[0]["parts"].append({"text": ""})),
    ("content-shape", "one part, no list", lambda b, m: m[0].update(parts={"text": "go"})),
    ("part-shape", "a string for a part", lambda b, m: m[0]["parts"].append("x")),
    ("message-shape", "a string for a content", lambda b, m: m.append("x")),
    ("image-shape", "no media type", lambda b, m: m[0]["parts"][1]["inlineData"].pop("mimeType")),
    ("image-shape", "no data", lambda b, m: m[0]["parts"][1]["inlineData"].update(data="")),
    ("image-data", "torn data", lambda b, m: m[0]["parts"][1]["inlineData"].update(data="####")),
    ("lone-surrogate", "half an emoji", lambda b, m: m[0]["parts"][0].update(text="\ud83d")),
    ("not-a-json-number", "NaN", lambda b, m: m[1]["parts"][1]["functionCall"]["args"].update(x=float("nan"))),
]

CORPUS: dict[str, list[Fault]] = {
    "anthropic": ANTHROPIC,
    "openai_chat": CHAT,
    "openai_responses": RESPONSES,
    "gemini": GEMINI,
}
CASES = [
    pytest.param(provider, *fault, id=f"{provider}: {fault[1]}")
    for provider, faults in CORPUS.items()
    for fault in faults
]


@pytest.mark.parametrize(("provider", "rule", "name", "change"), CASES)
@pytest.mark.parametrize("bare", [False, True], ids=["body", "list"])
def test_every_fault_is_flagged_and_mended(
    provider: str, rule: str, name: str, change: Callable[[Body, list[Any]], Any], bare: bool
) -> None:
    body = BODIES[provider]()
    sound = copy.deepcopy(body)
    change(body, body[KEYS[provider]])
    given: Any = body[KEYS[provider]] if bare else body
    if bare and given == sound[KEYS[provider]]:
        return  # the fault is in the body alone
    model = body["model"]
    before = copy.deepcopy(given)
    found = validate(given, provider, model=model)
    if not (bare and name in ("not stored", "five marks")):  # faults by what stands in the body
        assert rule in {violation.rule for violation in found}
    assert all(violation.where and violation.what and violation.cure for violation in found)
    mended, repairs = repair(given, provider, model=model)
    assert _same(given, before), "the input was changed"
    assert validate(mended, provider, model=model) == []
    again, more = repair(mended, provider, model=model)
    assert again is mended and more == []
    json.dumps(mended, allow_nan=False, ensure_ascii=False).encode()
    if name != "not stored":  # what follows the reasoning loses its id with it
        _neighbours_stay(given if bare else body[KEYS[provider]], mended if bare else mended[KEYS[provider]], repairs)


def _same(a: Any, b: Any) -> bool:
    """Equality in which NaN equals itself."""
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b) or (a != a and b != b)


def _neighbours_stay(before: list[Any], after: list[Any], repairs: list[Any]) -> None:
    """A message that no repair names, and that is neither next to such a one nor shares a call's id with
    it, is still there, and in order."""
    named = {int(number) for repair in repairs for number in re.findall(r"^\w+\[(\d+)\]", repair.where)}
    near = {index + step for index in named for step in (-1, 0, 1)}
    ids = {id_ for index in named for id_ in _ids(before[index])}
    rest = iter(after)
    for index, message in enumerate(before):
        if index not in near and not ids & _ids(message):
            assert any(_same(message, other) for other in rest), f"message {index} was changed"


def _ids(value: Any) -> set[str]:
    if isinstance(value, list):
        return {id_ for item in value for id_ in _ids(item)}
    if not isinstance(value, dict):
        return set()
    own = {value[key] for key in ("id", "call_id", "tool_use_id", "tool_call_id") if isinstance(value.get(key), str)}
    return own | {id_ for item in value.values() for id_ in _ids(item)}


def test_the_corpus_has_at_least_twelve_kinds_for_each_provider() -> None:
    for faults in CORPUS.values():
        assert len({rule for rule, _, _ in faults}) >= 12


@pytest.mark.parametrize("provider", BODIES)
def test_sound_samples_come_back_as_the_same_objects(provider: str) -> None:
    body = BODIES[provider]()
    for given in (body, body[KEYS[provider]]):
        assert validate(given, provider, model=body["model"]) == []
        mended, repairs = repair(given, provider, model=body["model"])
        assert mended is given and repairs == []
    assert body == BODIES[provider]()


@pytest.mark.parametrize("provider", BODIES)
def test_sound_samples_under_budget_are_sent_as_the_same_objects(provider: str) -> None:
    """Kind: what needed nothing done to it was changed by the way to the provider and back."""
    body = BODIES[provider]()
    fit = compact(body, model=body["model"], budget=10**6, format=provider)
    assert fit.messages is body[KEYS[provider]] and body == BODIES[provider]()
    assert {name: fit.request[name] for name in body} == body
    assert not fit.plan and fit.receipt.repairs == () and fit.digest


@pytest.mark.parametrize("provider", BODIES)
@pytest.mark.parametrize("given", [None, 3, "text", {}, {"x": 1}, set(), b"x"])
def test_what_is_no_list_is_said_and_comes_back(provider: str, given: Any) -> None:
    if provider == "openai_responses" and given == "text":
        return  # a string is a sound input
    assert validate(given, provider)
    mended, repairs = repair(given, provider)
    assert mended is given and repairs == []


def test_openai_tells_its_wires_by_the_shape() -> None:
    for provider in ("openai_chat", "openai_responses"):
        body = BODIES[provider]()
        assert validate(body, "openai") == [] == validate(body[KEYS[provider]], "openai")
        del body[KEYS[provider]][2]
        assert validate(body, "openai") == validate(body, provider) != []
        assert validate(body[KEYS[provider]], "openai") == validate(body[KEYS[provider]], provider)
    assert validate("hello", "openai_responses") == [] == validate({"input": "hello"}, "openai")


def test_an_unknown_provider_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"openai_responses.*gemini") as caught:
        validate([], "acme")
    assert all(name in str(caught.value) for name in PROVIDERS)
    with pytest.raises(ValueError, match="acme"):
        repair([], "acme")


@pytest.mark.parametrize("provider", BODIES)
def test_limits_of_the_callers_own(provider: str) -> None:
    body = BODIES[provider]()
    model = body["model"]
    assert [found.rule for found in validate(body, provider, Limits(images=0), model)] == ["too-many-images"] * (
        1 if provider in ("anthropic", "openai_chat") else 2
    )
    for limits, rule in (
        (Limits(image_side=7), "image-too-large"),
        (Limits(image_bytes=10), "image-too-large"),
        (Limits(many_images=0, many_images_side=7), "many-images-too-large"),
        (
            Limits(request_bytes=len(json.dumps(body, ensure_ascii=False, separators=(",", ":"))) - 5),
            "request-too-large",
        ),
    ):
        assert {found.rule for found in validate(body, provider, limits)} == {rule}
        mended, _ = repair(body, provider, limits)
        assert validate(mended, provider, limits) == []
        assert PNG not in str(mended) or rule == "request-too-large"
    tiny = validate(body, provider, Limits(request_bytes=10))
    assert tiny[-1].rule == "request-too-large" and tiny[-1].where == KEYS[provider]


def test_openais_own_models_take_their_torn_arguments_back() -> None:
    chat = BODIES["openai_chat"]()
    chat["messages"][2]["tool_calls"][0]["function"]["arguments"] = '{"cmd": '
    for model, sound in (("gpt-5.6-sol", True), ("openai/o4-mini", True), ("m", False), ("openai/gpt-oss-120b", False)):
        assert (validate(chat, "openai", model=model) == []) == sound, model
    responses = BODIES["openai_responses"]()
    responses["input"][2]["arguments"] = '{"cmd": '
    assert validate(responses, "openai") == []


def test_limits_of_a_model_go_before_those_of_the_wire() -> None:
    model = find("claude-haiku-4-5")
    limits = limits_for(model, "openai_chat")
    assert limits.images == model.images_per_request and limits.many_images == 20
    assert limits.image_types == default_limits("openai_chat").image_types
    unknown = limits_for(find("somebody-else-1"), "gemini")
    assert unknown.images == 3600


INSTRUCTING = re.compile(
    r"\b(you|your|must|please|ignore|system prompt|instructions?|should|do not|don't|always|never)\b", re.I
)


@pytest.mark.parametrize(("provider", "rule", "name", "change"), CASES)
def test_what_repair_writes_into_a_request_does_not_sound_like_an_instruction(
    provider: str, rule: str, name: str, change: Callable[[Body, list[Any]], Any]
) -> None:
    body = BODIES[provider]()
    change(body, body[KEYS[provider]])
    mended, _ = repair(body, provider)
    old = set(_strings(body))
    for text in _strings(mended):
        if text not in old:
            assert not INSTRUCTING.search(text), text


def _strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for item in value.values() for text in _strings(item)]
    if isinstance(value, list):
        return [text for item in value for text in _strings(item)]
    return [value] if isinstance(value, str) else []
