"""The Anthropic rules: each fault is flagged, mended, and leaves the rest as it was."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from microfiche.validate import repair, validate
from validate_samples import PNG, anthropic_body, image

Change = Callable[[dict[str, Any]], Any]


def faulty(change: Change, model: str | None = None) -> tuple[dict[str, Any], set[str]]:
    """The sample with a fault, what repair makes of it, and the rules that flagged it."""
    body = anthropic_body()
    change(body)
    before = copy.deepcopy(body)
    rules = {found.rule for found in validate(body, "anthropic", model=model)}
    mended, repairs = repair(body, "anthropic", model=model)
    assert body == before
    assert validate(mended, "anthropic", model=model) == []
    again, more = repair(mended, "anthropic", model=model)
    assert again is mended and more == []
    assert repairs and mended is not body
    return mended, rules


def test_a_sound_request_comes_back_as_the_same_object() -> None:
    body = anthropic_body()
    assert validate(body) == []
    assert repair(body) == (body, []) and repair(body)[0] is body
    bare = body["messages"]
    assert validate(bare) == [] and repair(bare)[0] is bare


def test_an_answer_sent_back_whole_is_a_message_again() -> None:
    def change(body: dict[str, Any]) -> None:
        told = {"id": "msg_1", "type": "message", "model": "m", "stop_reason": "tool_use", "usage": {"input_tokens": 1}}
        body["messages"][1] |= told

    mended, rules = faulty(change)
    assert rules == {"extra-field"} and mended == anthropic_body()


def test_dangling_calls_are_answered_by_error_results() -> None:
    mended, rules = faulty(lambda body: body["messages"].pop())
    assert rules == {"unanswered-call"}
    results = mended["messages"][2]
    assert results["role"] == "user"
    assert [block["tool_use_id"] for block in results["content"]] == ["toolu_1", "toolu_2"]
    assert all(block["is_error"] and block["content"] for block in results["content"])


def test_one_missing_sibling_is_added_and_the_other_stays() -> None:
    mended, rules = faulty(lambda body: body["messages"][2]["content"].pop(0))
    assert rules == {"unanswered-call"}
    ids = [block.get("tool_use_id") for block in mended["messages"][2]["content"]]
    assert ids == ["toolu_2", "toolu_1", None]


def test_an_orphan_result_becomes_text_with_its_content() -> None:
    mended, rules = faulty(lambda body: body["messages"].pop(1))
    assert rules == {"orphan-result"}
    content = mended["messages"][1]["content"]
    assert "a.txt" in content[0]["text"] and "toolu_1" in content[0]["text"]
    assert content[-1] == {"type": "text", "text": "and now?"}
    assert any(block["type"] == "image" for block in content)


def test_results_behind_text_move_to_the_front() -> None:
    def change(body: dict[str, Any]) -> None:
        body["messages"][2]["content"].insert(0, body["messages"][2]["content"].pop())

    mended, rules = faulty(change)
    assert rules == {"result-order"} and mended == anthropic_body()


def test_a_batch_parted_over_two_messages_is_joined() -> None:
    def change(body: dict[str, Any]) -> None:
        body["messages"].insert(2, {"role": "user", "content": [body["messages"][2]["content"].pop(0)]})

    mended, rules = faulty(change)
    assert rules == {"parted-results"}
    assert [block.get("tool_use_id") for block in mended["messages"][2]["content"]] == ["toolu_1", "toolu_2"]
    assert mended["messages"][3]["content"] == [{"type": "text", "text": "and now?"}]


def test_a_second_result_is_left_out_and_the_first_wins() -> None:
    def change(body: dict[str, Any]) -> None:
        body["messages"][2]["content"].insert(1, {"type": "tool_result", "tool_use_id": "toolu_1", "content": "b"})

    mended, rules = faulty(change)
    assert rules == {"duplicate-result"} and mended == anthropic_body()


def test_a_copy_of_a_call_without_an_answer_is_left_out() -> None:
    def change(body: dict[str, Any]) -> None:
        body["messages"][1]["content"].append(copy.deepcopy(body["messages"][1]["content"][2]))

    mended, rules = faulty(change)
    assert rules == {"duplicate-call"} and mended == anthropic_body()


def test_a_reused_id_is_changed_in_call_and_result() -> None:
    def change(body: dict[str, Any]) -> None:
        body["messages"] += copy.deepcopy(body["messages"][1:])

    mended, rules = faulty(change)
    assert rules == {"duplicate-id"}
    calls = [block["id"] for block in mended["messages"][3]["content"] if block["type"] == "tool_use"]
    results = [block["tool_use_id"] for block in mended["messages"][4]["content"] if "tool_use_id" in block]
    assert calls == results and not set(calls) & {"toolu_1", "toolu_2"}
    assert mended["messages"][:3] == anthropic_body()["messages"]


@pytest.mark.parametrize("id_", ["a.b:c", "", "späte", "x\n"])
def test_ids_of_other_characters_are_changed_together(id_: str) -> None:
    def change(body: dict[str, Any]) -> None:
        body["messages"][1]["content"][2]["id"] = id_
        body["messages"][2]["content"][0]["tool_use_id"] = id_

    mended, rules = faulty(change)
    assert rules == {"tool-id"}
    assert mended["messages"][1]["content"][2]["id"] == mended["messages"][2]["content"][0]["tool_use_id"]


@pytest.mark.parametrize("input_", [None, "", "[]", "{", 3, ["x"], '{"cmd": "ls"}'])
def test_the_input_of_a_call_is_an_object(input_: Any) -> None:
    mended, rules = faulty(lambda body: body["messages"][1]["content"][2].update(input=input_))
    assert rules == {"tool-input"}
    assert isinstance(mended["messages"][1]["content"][2]["input"], dict)
    if input_ == '{"cmd": "ls"}':
        assert mended == anthropic_body()


def test_server_calls_pair_with_any_kind_of_result() -> None:
    def add(*blocks: dict[str, Any]) -> Change:
        return lambda body: body["messages"].extend(
            [
                {"role": "assistant", "content": [*blocks, {"type": "text", "text": "so"}]},
                {"role": "user", "content": "?"},
            ]
        )

    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "foo", "input": {}}
    result = {"type": "foo_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    sound = anthropic_body()
    add(call, result)(sound)
    assert validate(sound) == []
    assert faulty(add(call))[1] == {"unanswered-call"}
    assert faulty(add(result))[1] == {"orphan-result"}
    assert faulty(add(call, result, result))[1] == {"duplicate-result"}


def test_a_paused_turn_of_server_tools_may_end_the_list() -> None:
    body = anthropic_body()
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    body["messages"].append({"role": "assistant", "content": [call]})
    assert validate(body, model="claude-opus-5") == []


@pytest.mark.parametrize(
    ("model", "refused"),
    [
        ("claude-opus-4-6", True),
        ("us.anthropic.claude-sonnet-4-6-v1:0", True),
        ("claude-opus-5", True),
        ("anthropic/claude-opus-4.7", True),
        ("claude-haiku-4-5-20251001", False),
        ("claude-opus-4-20250514", False),
        ("claude-3-5-sonnet-20241022", False),
        ("some-model", False),
        (None, False),
    ],
)
def test_a_final_assistant_message_is_refused_from_4_6_on(model: str | None, refused: bool) -> None:
    body = anthropic_body()
    del body["model"]
    body["messages"].append({"role": "assistant", "content": "So"})
    assert [found.rule for found in validate(body, model=model)] == ["final-assistant"] * refused
    mended, _ = repair(body, "anthropic", model=model)
    assert validate(mended, model=model) == []
    assert len(mended["messages"]) == 4 + refused


def test_the_first_message_is_the_users() -> None:
    mended, rules = faulty(lambda body: body["messages"].pop(0))
    assert rules == {"first-message"}
    assert mended["messages"][0]["role"] == "user"
    assert mended["messages"][1:] == anthropic_body()["messages"][1:]


@pytest.mark.parametrize("empty", ["", "  \n", [], None, [{"type": "text", "text": " "}]])
def test_empty_messages_are_marked(empty: Any) -> None:
    mended, rules = faulty(lambda body: body["messages"][0].update(content=empty))
    assert "empty-message" in rules
    assert mended["messages"][0]["content"] == "(empty message)"


def test_empty_text_blocks_go_and_the_others_stay() -> None:
    mended, rules = faulty(lambda body: body["messages"][1]["content"].insert(1, {"type": "text", "text": ""}))
    assert rules == {"empty-text"} and mended == anthropic_body()


def test_compaction_content_may_be_null_but_not_empty() -> None:
    def add(content: Any) -> Change:
        return lambda body: body["messages"].append(
            {"role": "assistant", "content": [{"type": "compaction", "content": content}]}
        )

    sound = anthropic_body()
    add(None)(sound)
    assert validate(sound, model="claude-opus-5") == []
    mended, rules = faulty(add(""))
    assert rules == {"empty-compaction"} and mended == sound


@pytest.mark.parametrize(
    ("block", "rule"),
    [
        ({"type": "thinking", "thinking": "hm"}, "unsigned-thinking"),
        ({"type": "thinking", "thinking": "hm", "signature": ""}, "unsigned-thinking"),
        ({"type": "redacted_thinking"}, "unsigned-thinking"),
        ({"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}, "block-role"),
        ({"type": "tool_result", "tool_use_id": "toolu_1", "content": "a"}, "block-role"),
    ],
)
def test_blocks_that_an_assistant_message_cannot_hold(block: dict[str, Any], rule: str) -> None:
    _, rules = faulty(lambda body: body["messages"][1]["content"].insert(1, block))
    assert rules == {rule}


def test_signed_thinking_without_text_is_sound() -> None:
    body = anthropic_body()
    body["messages"][1]["content"][0] = {"type": "thinking", "thinking": "", "signature": "EqQB"}
    assert validate(body, model="claude-opus-5") == []


def test_the_list_does_not_end_with_thinking() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "EqQB"}
    _, rules = faulty(lambda body: body["messages"].append({"role": "assistant", "content": [thinking]}))
    assert "final-thinking" in rules


def test_at_most_four_cache_marks_and_none_on_thinking() -> None:
    mark = {"type": "ephemeral"}

    def change(body: dict[str, Any]) -> None:
        for block in (*body["messages"][1]["content"][1:], *body["messages"][2]["content"]):
            block["cache_control"] = mark

    mended, rules = faulty(change)
    assert rules == {"cache-marks"}
    assert mended["system"] == anthropic_body()["system"]
    assert str(mended).count("cache_control") == 4

    hour = {"type": "ephemeral", "ttl": "1h"}

    def behind(body: dict[str, Any]) -> None:
        body["system"] = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
        body["messages"][2]["content"][-1]["cache_control"] = hour

    mended, rules = faulty(behind)
    assert rules == {"cache-time"}
    assert mended["messages"][2]["content"][-1]["cache_control"] == {"type": "ephemeral"}
    sound = anthropic_body()
    sound["system"] = [{"type": "text", "text": "Be brief.", "cache_control": hour}]
    sound["messages"][2]["content"][-1]["cache_control"] = mark
    assert validate(sound) == []

    mended, rules = faulty(lambda body: body["messages"][1]["content"][0].update(cache_control=mark))
    assert rules == {"cache-mark"} and mended == anthropic_body()


def test_tools_are_stubbed_in_a_body_and_not_asked_for_in_a_list() -> None:
    mended, rules = faulty(lambda body: body.pop("tools"))
    assert rules == {"no-tools"}
    assert [tool["name"] for tool in mended["tools"]] == ["bash", "shot"]
    assert validate(anthropic_body()["messages"]) == []


def test_lone_surrogates_and_numbers_that_json_lacks() -> None:
    mended, rules = faulty(lambda body: body["messages"][2]["content"][0].update(content="a\ud83d"))
    assert rules == {"lone-surrogate"}
    assert mended["messages"][2]["content"][0]["content"] == "a<d83d>"
    mended, rules = faulty(lambda body: body["messages"][1]["content"][2]["input"].update(x=float("nan"), y=10**5000))
    assert rules == {"not-a-json-number"}
    assert mended["messages"][1]["content"][2]["input"]["x"] == "NaN"


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ({"type": "base64", "media_type": "image/jpeg", "data": PNG}, "image-type"),
        ({"type": "base64", "media_type": "image/png", "data": PNG[:-1]}, "image-data"),
        ({"type": "base64", "media_type": "image/png", "data": "no base64!"}, "image-data"),
        ({"type": "base64", "media_type": "image/png", "data": ""}, "image-data"),
        ({"type": "base64", "media_type": "image/bmp", "data": "Qk0AAAAA"}, "image-data"),
        ({"type": "base64", "media_type": "image/png", "data": image(8001, 1)}, "image-too-large"),
        ({"type": "base64", "media_type": "image/png"}, "image-shape"),
        (None, "image-shape"),
    ],
)
def test_images(source: Any, rule: str) -> None:
    _, rules = faulty(lambda body: body["messages"][2]["content"][1]["content"][1].update(source=source))
    assert rules == {rule}


@pytest.mark.parametrize(("count", "side", "sound"), [(20, 2001, True), (21, 2000, True), (21, 2001, False)])
def test_more_than_twenty_images_have_at_most_2000_pixels_a_side(count: int, side: int, sound: bool) -> None:
    def block(width: int) -> dict[str, Any]:
        return {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": image(width, 10)},
        }

    messages = [{"role": "user", "content": [block(side), *(block(10) for _ in range(count - 1))]}]
    rules = [found.rule for found in validate(messages)]
    assert rules == ([] if sound else ["many-images-too-large"])
    mended, _ = repair(messages, "anthropic")
    assert validate(mended) == []
    assert mended[0]["content"][1:] == messages[0]["content"][1:]


@pytest.mark.parametrize(
    ("at", "model", "sound"),
    [
        (3, "claude-opus-5", True),
        (3, None, True),
        (1, "claude-opus-5", True),
        (3, "claude-opus-4-7", False),
        (2, "claude-opus-5", False),
        (0, "claude-opus-5", False),
    ],
)
def test_where_a_system_message_may_stand(at: int, model: str | None, sound: bool) -> None:
    def change(body: dict[str, Any]) -> None:
        body["messages"].insert(at, {"role": "system", "content": "be brief"})

    if sound:
        body = anthropic_body()
        change(body)
        assert validate(body, model=model) == []
    else:
        mended, rules = faulty(change, model)
        assert "system-place" in rules
        assert "be brief" in str(mended)


def test_a_leading_system_message_moves_to_system() -> None:
    def change(body: dict[str, Any]) -> None:
        body["messages"].insert(0, {"role": "system", "content": body.pop("system")})

    mended, rules = faulty(change)
    assert rules == {"system-place"} and mended == anthropic_body()


def test_a_system_message_of_settings_alone_may_stand_anywhere() -> None:
    body = anthropic_body()
    body["messages"].insert(0, {"role": "system", "content": [], "output_config": {"effort": "low"}})
    assert validate(body, model="claude-opus-5") == []
