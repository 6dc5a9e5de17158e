"""Claude Code's two session files: what is gathered, what is left out, and that it is said."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from microfiche import formats
from microfiche.errors import BadInput
from microfiche.messages import History, Opaque, Reasoning, Text, ToolCall, split_turns


def lines(*items: dict[str, Any]) -> str:
    return "\n".join(json.dumps(item) for item in items) + "\n"


def call(key: str, name: str = "Bash") -> dict[str, Any]:
    return {"type": "tool_use", "id": key, "name": name, "input": {"k": key}}


def result(key: str, content: Any = None, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": key, "content": content or f"out {key}", **more}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def notes(history: History) -> list[str]:
    return [note.what for note in history.notes]


def shape(history: History) -> list[Any]:
    """Roles with the texts, call ids and answered ids of each message."""
    return [
        (
            message.role,
            *(
                part.id if isinstance(part, ToolCall) else getattr(part, "call_id", None) or getattr(part, "text", "?")
                for part in message.parts
            ),
        )
        for message in history.messages
    ]


# stream-json


def said(message: str, *blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    body = {
        "id": message,
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-5",
        "content": list(blocks),
        "stop_reason": None,
        "usage": {"input_tokens": 5, "output_tokens": 1},
    }
    return {"type": "assistant", "message": body, "parent_tool_use_id": None, "session_id": "s", **more}


def heard(*blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    message = {"role": "user", "content": list(blocks)}
    return {"type": "user", "message": message, "parent_tool_use_id": None, "session_id": "s", **more}


INIT = {"type": "system", "subtype": "init", "session_id": "s", "tools": ["Bash", "Read"], "model": "claude-x"}


def test_a_response_that_resumes_after_a_result_is_one_message() -> None:
    history = formats.read(
        lines(
            INIT,
            said("m1", {"type": "thinking", "thinking": "", "signature": "abcd" * 10}),
            said("m1", call("t1")),
            heard(result("t1"), tool_use_result={"stdout": "secret"}),
            said("m1", call("t2", "Read")),
            heard(result("t2", is_error=True), tool_use_result="secret"),
            said("m2", text("done")),
            {"type": "result", "session_id": "s", "usage": {"output_tokens": 99}, "result": "done"},
        )
    )
    assert history.format == "claude_stream" and history.wire == "anthropic"
    assert shape(history) == [("assistant", "", "t1", "t2"), ("tool", "t1", "t2"), ("assistant", "done")]
    thought = history.messages[0].parts[0]
    assert isinstance(thought, Reasoning) and thought.signed and thought.size == 40
    first, second = history.messages[1].results
    assert (first.name, first.error, second.name, second.error) == ("Bash", False, "Read", True)
    assert history.tool_names == ("Bash", "Read") and history.model == "claude-opus-5"
    assert history.usage == {"input_tokens": 5, "output_tokens": 1, "total": {"output_tokens": 99}}
    assert history.notes == []
    written = json.dumps(formats.write(history)[0])
    for private in ("secret", "usage", "session_id", "stop_reason"):
        assert private not in written


def test_results_out_of_order_stand_in_call_order_in_one_message() -> None:
    history = formats.read(
        lines(
            said("m1", call("t1")),
            said("m1", call("t2")),
            heard(result("t2")),
            said("m1", call("t3")),
            heard(result("t3")),
            heard(result("t1")),
        )
    )
    assert shape(history) == [("assistant", "t1", "t2", "t3"), ("tool", "t1", "t2", "t3")]
    body, _ = formats.write(history)
    assert [block["tool_use_id"] for block in body["messages"][1]["content"]] == ["t1", "t2", "t3"]


def test_a_late_result_goes_to_the_batch_that_called() -> None:
    history = formats.read(
        lines(said("m1", call("t1"), call("t2")), heard(result("t2")), said("m2", call("t3")), heard(result("t1")))
    )
    assert shape(history) == [("assistant", "t1", "t2"), ("tool", "t1", "t2"), ("assistant", "t3")]
    assert [open_call.id for turn in split_turns(history.messages)[1] for open_call in turn.open_calls] == ["t3"]


def test_the_first_of_two_results_counts_and_repeats_are_named() -> None:
    again = {**heard(result("t1")), "uuid": "u1"}
    history = formats.read(
        lines(said("m1", call("t1")), again, again, heard(result("t1", "other")), said("m2", text("x")))
    )
    assert shape(history) == [("assistant", "t1"), ("tool", "t1"), ("assistant", "x")]
    assert history.messages[1].results[0].text == "out t1"
    assert notes(history) == [
        "lines left out: repeated (1)",
        "results left out: their call was answered before (1)",
    ]


def test_a_session_may_begin_with_the_assistant_and_end_with_an_open_call() -> None:
    history = formats.read(lines(INIT, said("m1", text("I begin")), said("m1", call("t1"))))
    assert shape(history) == [("assistant", "I begin", "t1")]
    assert split_turns(history.messages)[1][0].open_calls[0].id == "t1"


def test_sub_agents_and_synthetic_answers_are_left_out_and_named() -> None:
    history = formats.read(
        lines(
            heard(text("go")),
            said("m1", call("t1", "Task")),
            {**heard(text("sub prompt")), "parent_tool_use_id": "t1"},
            {**said("m9", text("sub answer")), "parent_tool_use_id": "t1"},
            {"type": "tool_progress", "tool_use_id": "t1", "parent_tool_use_id": None, "session_id": "s"},
            {"type": "system", "subtype": "thinking_tokens", "session_id": "s"},
            {"type": "rate_limit_event", "session_id": "s"},
            heard(result("t1")),
            {**said("m3", text("API Error")), "isApiErrorMessage": True},
        )
    )
    assert shape(history) == [("user", "go"), ("assistant", "t1"), ("tool", "t1")]
    assert notes(history) == [
        "answers left out: written by the client, not the model (1)",
        "lines of sub-agents left out (2)",
    ]


def test_words_that_came_with_results_are_joined_to_them() -> None:
    history = formats.read(lines(said("m1", call("t1")), heard(text("note"), result("t1")), heard(text("later"))))
    assert shape(history) == [("assistant", "t1"), ("tool", "t1"), ("user", "note"), ("user", "later")]
    assert [message.joined for message in history.messages] == [False, False, True, False]
    content = formats.write(history)[0]["messages"][1]["content"]
    assert [block["type"] for block in content] == ["tool_result", "text"]


def test_images_and_lists_in_results() -> None:
    image = {"type": "image", "source": {"type": "url", "url": "https://example.test/a.png"}}
    history = formats.read(lines(said("m1", call("t1")), heard(result("t1", [text("seen"), image, {"type": "new"}]))))
    seen, picture, new = history.messages[1].results[0].parts
    assert isinstance(seen, Text) and seen.text == "seen"
    assert getattr(picture, "owner", "") == "tool"
    assert isinstance(new, Opaque) and new.kind == "new"


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_however_the_lines_of_a_session_interleave_the_talk_is_the_same(data: st.DataObject) -> None:
    """Results may come at any place after their call: the messages do not change."""
    items: list[dict[str, Any]] = []
    expected: list[Any] = []
    for turn in range(data.draw(st.integers(1, 4))):
        keys = [f"t{turn}_{at}" for at in range(data.draw(st.integers(1, 4)))]
        queue = [said(f"m{turn}", call(key)) for key in keys]
        for key in keys:
            asked = next(at for at, item in enumerate(queue) if item["message"]["content"] == [call(key)])
            queue.insert(data.draw(st.integers(asked + 1, len(queue))), heard(result(key)))
        items += queue
        expected += [("assistant", *keys), ("tool", *keys)]
    assert shape(formats.read(lines(*items))) == expected


# session JSONL: a tree

CHAIN = {"isSidechain": False, "userType": "external", "cwd": "/w", "sessionId": "s", "version": "2.1.328"}


class Tree:
    """Writes the lines of a session file; every line's uuid is its name."""

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []

    def add(self, uuid: str, parent: str | None, kind: str, **more: Any) -> Tree:
        self.items.append({"parentUuid": parent, **CHAIN, "type": kind, "uuid": uuid, **more})
        return self

    def user(self, uuid: str, parent: str | None, *blocks: Any, **more: Any) -> Tree:
        content = blocks[0] if len(blocks) == 1 and isinstance(blocks[0], str) else list(blocks)
        return self.add(uuid, parent, "user", message={"role": "user", "content": content}, **more)

    def said(self, uuid: str, parent: str | None, message: str, *blocks: Any, **more: Any) -> Tree:
        return self.add(uuid, parent, "assistant", message=said(message, *blocks)["message"], **more)

    def read(self) -> History:
        return formats.read(lines(*self.items), where="f")


def test_parallel_results_on_other_branches_are_recovered_in_call_order() -> None:
    tree = Tree().user("1", None, "go").said("2", "1", "m1", call("a")).said("3", "2", "m1", call("b"))
    tree.said("4", "3", "m1", call("c"))
    tree.user("r3", "4", result("c"), toolUseResult={"stdout": "private"})
    tree.user("r1", "2", result("a")).user("r2", "3", result("b")).said("5", "r2", "m2", text("done"))
    history = tree.read()
    assert history.format == "claude_code" and history.wire == "anthropic"
    assert shape(history) == [
        ("user", "go"),
        ("assistant", "a", "b", "c"),
        ("tool", "a", "b", "c"),
        ("assistant", "done"),
    ]
    assert history.tool_names == ("Bash",)
    written = json.dumps(formats.write(history)[0])
    for private in ("private", "toolUseResult", "uuid", "sessionId"):
        assert private not in written


def test_lines_of_other_kinds_do_not_cut_the_chain() -> None:
    tree = Tree().user("1", None, "go").add("p", "1", "progress").add("a", "p", "attachment", attachment={})
    tree.add("s", "a", "system", subtype="info").add("n", "s", "something_new").said("2", "n", "m1", text("hi"))
    tree.items.append({"type": "file-history-snapshot", "messageId": "2", "snapshot": {}})
    tree.items.append({"type": "custom-title", "customTitle": "t", "sessionId": "s"})
    history = tree.read()
    assert shape(history) == [("user", "go"), ("assistant", "hi")]
    assert notes(history) == ["attachments passed over (1)"]


def test_a_branch_that_was_left_is_not_the_conversation() -> None:
    tree = Tree().user("1", None, "go").said("2", "1", "m1", text("old way"))
    tree.user("3", "1", "go differently").said("4", "3", "m2", text("new way"))
    assert shape(tree.read()) == [("user", "go"), ("user", "go differently"), ("assistant", "new way")]
    tree.items.append({"type": "last-prompt", "leafUuid": "2", "sessionId": "s"})
    assert shape(tree.read())[-1] == ("assistant", "new way")
    tree.items[-1]["explicit"] = True
    assert shape(tree.read()) == [("user", "go"), ("assistant", "old way")]


def test_sidechains_are_left_out_unless_the_file_is_one() -> None:
    tree = Tree().user("1", None, "go").said("2", "1", "m1", call("a", "Task"))
    tree.user("s1", None, "sub", isSidechain=True).said("s2", "s1", "m8", text("sub answer"), isSidechain=True)
    tree.user("3", "2", result("a"))
    tree.said("s3", "s2", "m9", text("more"), isSidechain=True)
    history = tree.read()
    assert shape(history) == [("user", "go"), ("assistant", "a"), ("tool", "a")]
    assert notes(history) == ["sidechain lines left out (3)"]
    tree.items = [item for item in tree.items if item["isSidechain"]]
    assert shape(tree.read()) == [("user", "sub"), ("assistant", "sub answer"), ("assistant", "more")]
    assert tree.read().notes == []


def compacted() -> Tree:
    tree = Tree().user("1", None, "go").said("2", "1", "m1", text("long work"))
    tree.add("b", None, "system", subtype="compact_boundary", logicalParentUuid="2", compactMetadata={"preTokens": 9})
    tree.user("c", "b", "This session is being continued", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    return tree.user("5", "c", "go on").said("6", "5", "m2", text("done"))


def test_a_compaction_boundary_is_crossed_and_the_summary_left_out() -> None:
    history = compacted().read()
    assert shape(history) == [("user", "go"), ("assistant", "long work"), ("user", "go on"), ("assistant", "done")]
    assert notes(history) == ["compaction summaries left out: what they sum up is here (1)"]


def test_two_boundaries_are_both_crossed() -> None:
    tree = compacted()
    tree.add("b2", None, "system", subtype="compact_boundary", logicalParentUuid="6")
    tree.user("c2", "b2", "continued again", isCompactSummary=True).user("9", "c2", "more")
    history = tree.read()
    assert [row[1] for row in shape(history)] == ["go", "long work", "go on", "done", "more"]
    assert notes(history) == ["compaction summaries left out: what they sum up is here (2)"]


@pytest.mark.parametrize("after", ["2", "c"])
def test_messages_that_a_compaction_preserved_are_not_doubled(after: str) -> None:
    """The talk goes on behind the preserved messages or behind the summary: either way all is there once."""
    tree = Tree().user("1", None, "go").said("2", "1", "m1", text("kept"))
    segment = {"preservedSegment": {"headUuid": "1", "anchorUuid": "c", "tailUuid": "2"}}
    tree.add("b", None, "system", subtype="compact_boundary", logicalParentUuid="2", compactMetadata=segment)
    tree.user("c", "b", "summary", isCompactSummary=True).user("5", after, "go on")
    assert shape(tree.read()) == [("user", "go"), ("assistant", "kept"), ("user", "go on")]


def test_blocks_logged_twice_count_once() -> None:
    thought = {"type": "thinking", "thinking": "", "signature": "sig"}
    history = formats.read(
        lines(
            said("m1", thought, call("t1")), heard(result("t1")), said("m1", thought, call("t1"), text("a"), text("a"))
        )
    )
    assert shape(history) == [("assistant", "", "t1", "a", "a"), ("tool", "t1")]
    assert notes(history) == ["blocks left out: repeated (2)"]


def test_ids_of_calls_that_are_used_again() -> None:
    history = formats.read(
        lines(said("m1", call("t")), heard(result("t", "one")), said("m2", call("t")), heard(result("t", "two")))
    )
    assert [message.results[0].text for message in history.messages[1::2]] == ["one", "two"]


def test_without_the_originals_the_summary_stays() -> None:
    tree = compacted()
    tree.items = tree.items[2:]
    history = tree.read()
    assert [row[1] for row in shape(history)] == ["This session is being continued", "go on", "done"]
    assert history.notes == []


def test_meta_lines_stay_and_the_clients_own_answers_go() -> None:
    tree = Tree().user("1", None, "caveat", isMeta=True).user("2", "1", "go")
    tree.said("3", "2", "m1", text("API Error"), isApiErrorMessage=True)
    synthetic = said("m2", text("No response"))["message"] | {"model": "<synthetic>"}
    tree.add("4", "3", "assistant", message=synthetic).user("5", "4", "shown only", isVisibleInTranscriptOnly=True)
    history = tree.user("6", "5", "again").read()
    assert shape(history) == [("user", "caveat"), ("user", "go"), ("user", "again")]
    assert notes(history) == [
        "answers left out: written by the client, not the model (2)",
        "user lines left out: for display only (1)",
    ]


def test_a_parent_lost_with_a_damaged_line_is_bridged_and_told() -> None:
    tree = Tree().user("1", None, "go").said("2", "1", "m1", text("lost")).user("3", "2", "next")
    rows = lines(*tree.items).splitlines()
    rows[1] = rows[1][:40]
    history = formats.read("\n".join(rows), where="f")
    assert shape(history) == [("user", "go"), ("user", "next")]
    assert [note.where for note in history.notes] == ["f:2", "f:3"]
    assert "read on at line 1" in history.notes[1].what


def test_a_parent_that_was_never_there_begins_the_path() -> None:
    history = Tree().user("1", None, "other").user("3", "gone", "next").read()
    assert shape(history) == [("user", "next")]
    assert notes(history) == ["paths that begin at a line whose parent is not in the file (1)"]


def test_a_ring_of_parents_ends() -> None:
    assert shape(Tree().user("1", "2", "a").user("2", "1", "b").read()) == [("user", "a"), ("user", "b")]


def test_a_long_chain_is_read() -> None:
    tree = Tree()
    for at in range(5000):
        tree.user(str(at), str(at - 1) if at else None, f"n {at}")
    assert len(tree.read().messages) == 5000


@pytest.mark.parametrize(
    "items",
    [
        [INIT],
        [{"type": "summary", "leafUuid": "u", "summary": "x"}],
        [{**CHAIN, "type": "user", "uuid": "1", "parentUuid": None}],
        [{**CHAIN, "type": "assistant", "uuid": "1", "parentUuid": None, "message": 5}],
    ],
)
def test_a_file_without_a_message_says_so(items: list[dict[str, Any]]) -> None:
    with pytest.raises(BadInput, match="no message"):
        formats.read(lines(*items))


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_any_lines_are_read_or_refused_politely(data: st.DataObject) -> None:
    """Fields of the wrong type, missing and unknown: a history or BadInput, never another error."""
    junk = st.none() | st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2)
    block = st.sampled_from([text("x"), call("t1"), result("t1"), {"type": "tool_use"}, 5, {}])
    message = st.fixed_dictionaries({"content": junk | st.lists(block, max_size=3), "id": junk | st.just("m")})
    line = st.fixed_dictionaries(
        {"type": st.sampled_from(["user", "assistant", "system", "attachment"]), "uuid": st.sampled_from("abc")},
        optional={
            "parentUuid": st.sampled_from(["a", "b", "c", None]),
            "message": junk | message,
            "isSidechain": st.booleans(),
            "isCompactSummary": st.booleans(),
            "subtype": st.just("compact_boundary") | junk,
            "logicalParentUuid": st.sampled_from(["a", "b", "z"]),
            "parent_tool_use_id": junk,
            "tools": junk,
            "usage": junk,
        },
    )
    items = data.draw(st.lists(line, min_size=1, max_size=6))
    for name in ("claude_code", "claude_stream"):
        try:
            history = formats.read(items, name)
        except BadInput:
            continue
        formats.write(history)
