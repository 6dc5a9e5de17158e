"""ATIF trajectories, and the copies that the Claude Code exporter writes into results."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from microfiche import formats
from microfiche.errors import BadInput
from microfiche.formats.atif import clean
from microfiche.messages import History, Image, Opaque, Reasoning, Text

FAILED = "[error] tool reported failure"


def exported(
    output: str, stdout: str | None = None, stderr: str = "", fields: str = "", meta: Any = None, failed: bool = False
) -> str:
    """A result's content as the exporter writes it: output, copies, fields, failure."""
    chunks = []
    if stdout:
        chunks.append(f"[stdout]\n{stdout}".rstrip())
    if stderr:
        chunks.append(f"[stderr]\n{stderr}".rstrip())
    chunks += [fields] if fields else []
    if meta is not None:
        chunks.append(f"[metadata] {json.dumps(meta, ensure_ascii=False)}")
    parts = [output.rstrip(), "\n".join(chunks), FAILED if failed else ""]
    return "\n\n".join(part for part in parts if part).strip()


def trajectory(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    numbered = [{"step_id": at, **step} for at, step in enumerate(steps, 1)]
    agent = {"name": "claude-code", "version": "2.1", "model_name": "claude-opus-5"}
    return {"schema_version": "ATIF-v1.7", "session_id": "s", "agent": agent, "steps": numbered, **more}


def call(key: str, name: str = "Bash") -> dict[str, Any]:
    return {"tool_call_id": key, "function_name": name, "arguments": {"command": "ls"}}


def agent(message: str = "", calls: Any = (), results: Any = None, **more: Any) -> dict[str, Any]:
    step: dict[str, Any] = {"source": "agent", "message": message, **more}
    if calls:
        step["tool_calls"] = list(calls)
    if results is not None:
        step["observation"] = {"results": results}
    return step


def read(*steps: dict[str, Any], **more: Any) -> History:
    return formats.read(trajectory(*steps, **more))


META = {"type": "text", "file": {"content": "original\nfile [stdout]\n"}}


@pytest.mark.parametrize(
    ("content", "text", "failed"),
    [
        (exported("a.txt\nb.txt", "a.txt\nb.txt", meta={"x": 1}), "a.txt\nb.txt", False),
        (exported("a.txt", "\n\n a.txt\n"), "a.txt", False),
        (exported("1\tcode", meta=META), "1\tcode", False),
        (exported("no such dir", failed=True), "no such dir", True),
        (exported("out\nerr", "out", "\nerr", meta={"x": 1}), "out\nerr", False),
        (exported("err", None, "err", meta={"x": 1}), "err", False),
        (exported("out", "out", fields="[exit_code] -1\n[interrupted] True", meta={}, failed=True), "out", True),
        (exported("", meta={"x": 1}), "", False),
        (exported("", failed=True), "", True),
        ("plain", "plain", False),
        ("", "", False),
        ("\n", "\n", False),
        # The copy of something else is no copy; the metadata go all the same.
        (exported("first lines", "all of the lines"), "first lines\n\n[stdout]\nall of the lines", False),
        (
            exported("first lines", "all of the lines", meta={"x": 1}),
            "first lines\n\n[stdout]\nall of the lines",
            False,
        ),
        # An output that itself holds what an exporter writes.
        (exported("x\n\n[stdout]\nx", "x\n\n[stdout]\nx", meta={"x": 1}), "x\n\n[stdout]\nx", False),
        (exported("log\n\n[stdout]\nlog\n[stderr]\ne", meta={}), "log\n\n[stdout]\nlog\n[stderr]\ne", False),
        ("[metadata] {torn", "[metadata] {torn", False),
        ("a\n[metadata] {}", "a\n[metadata] {}", False),
        ("a\n\n[metadata] 5", "a\n\n[metadata] 5", False),
        ("a\n\n[exit_code] five", "a\n\n[exit_code] five", False),
        (f"a {FAILED}", f"a {FAILED}", False),
        (f"a\n{FAILED}", f"a\n{FAILED}", False),
    ],
)
def test_what_the_exporter_added_is_taken_off(content: str, text: str, failed: bool) -> None:
    found, copies, error = clean(content)
    assert (found, error) == (text, failed)
    ends = ("", f"\n\n{FAILED}", FAILED)
    assert any(found + copies + end == content for end in ends)


lines = st.lists(
    st.sampled_from(["a", "b b", "[stdout]", "[stderr]", "[metadata] {}", "", " x", "[exit_code] 1", FAILED]),
    max_size=8,
).map("\n".join)


@given(
    output=lines, stderr=st.sampled_from(["", "err"]), meta=st.sampled_from([{}, {"a": "b\nc"}]), failed=st.booleans()
)
@settings(max_examples=200, deadline=None)
def test_any_output_survives_its_export(output: str, stderr: str, meta: Any, failed: bool) -> None:
    """Whatever lines the output has, with a whole copy behind it just the output comes back."""
    output = f"begin\n{output}\nend"
    both = output + (f"\n{stderr}" if stderr else "")
    text, copies, error = clean(exported(both, output, stderr, meta=meta, failed=failed))
    assert (text, error) == (both, failed)
    assert copies.startswith("\n\n[stdout]\n")


@given(st.text(st.sampled_from("a \n[]{}"), max_size=60) | lines)
@settings(max_examples=200, deadline=None)
def test_nothing_is_lost_from_any_content(content: str) -> None:
    text, copies, failed = clean(content)
    rest = content[len(text + copies) :]
    assert content == text + copies + rest
    assert rest.strip() == (FAILED if failed else "")


def test_hostile_outputs_take_near_linear_time() -> None:
    mark = "\n\n[stdout]\n"
    for content in (mark * 50_000, "a" + mark * 50_000 + "[metadata] {}", "\n[exit_code] 1" * 50_000):
        text, copies, _ = clean(content)
        assert text + copies == content


def test_steps_become_messages() -> None:
    history = read(
        {"source": "system", "message": "rules"},
        {"source": "user", "message": "go"},
        agent(
            "look",
            [call("c1"), call("c2", "Read")],
            [{"source_call_id": "c2", "content": "two"}, {"source_call_id": "c1", "content": "one"}],
            reasoning_content="hmm",
        ),
        {"source": "system", "message": "later"},
        agent("done"),
    )
    assert history.format == "atif" and history.wire == "" and history.model == "claude-opus-5"
    assert history.system is not None and history.system.text == "rules"
    assert [message.role for message in history.messages] == ["user", "assistant", "tool", "system", "assistant"]
    thought, said, *calls = history.messages[1].parts
    assert thought == Reasoning("hmm", size=3) and said == Text("look")
    assert [each.name for each in history.messages[1].calls] == ["Bash", "Read"] and len(calls) == 2
    assert [(each.call_id, each.name, each.text) for each in history.messages[2].results] == [
        ("c1", "Bash", "one"),
        ("c2", "Read", "two"),
    ]
    assert history.messages[1].calls[0].arguments == '{"command":"ls"}'
    assert history.tool_names == ("Bash", "Read")


def test_copies_are_private_and_never_written() -> None:
    content = exported("a.txt", "a.txt", meta={"originalFile": "secret"}, failed=True)
    history = read(
        {"source": "user", "message": "go"}, agent("", [call("c1")], [{"source_call_id": "c1", "content": content}])
    )
    result = history.messages[2].results[0]
    assert result.text == "a.txt" and result.error
    assert isinstance(result.parts[1], Opaque) and result.parts[1].private
    assert result.native["content"] == content
    for wire in formats.WIRES:
        body, notes = formats.write(history, wire)
        assert "secret" not in json.dumps(body) and "[stdout]" not in json.dumps(body)
        assert "a.txt" in json.dumps(body)
        assert not any("copy" in note.what for note in notes)


def test_a_missing_observation_leaves_calls_open() -> None:
    history = read(agent("", [call("c1")]), agent("", [call("c2")], []), {"source": "user", "message": "stop"})
    assert [message.role for message in history.messages] == ["assistant", "assistant", "user"]


def test_results_that_name_no_call() -> None:
    alone = read(agent("", [call("c1"), call("c2")], [{"source_call_id": "c2", "content": "two"}, {"content": "one"}]))
    assert [result.text for result in alone.messages[1].results] == ["one", "two"]
    screen = read(agent("typing", None, [{"content": "$ ls"}]))
    assert [(message.role, message.text) for message in screen.messages] == [("assistant", "typing"), ("user", "$ ls")]
    extra = read(
        agent("", [call("c1")], [{"source_call_id": "c1", "content": "one"}, {"source_call_id": "zz", "content": "?"}])
    )
    assert [(message.role, message.text) for message in extra.messages[2:]] == [("user", "?")]


def test_content_lists_flags_and_references() -> None:
    parts = [
        {"type": "text", "text": "seen"},
        {"type": "image", "source": {"media_type": "image/jpeg", "path": "images/a.jpg"}},
        {"type": "audio", "source": {}},
    ]
    result = {
        "source_call_id": "c1",
        "content": parts,
        "extra": {"is_error": True},
        "subagent_trajectory_ref": [{"session_id": "x"}],
    }
    found = read({"source": "user", "message": parts}, agent("", [call("c1")], [result])).messages
    assert [type(part) for part in found[0].parts] == [Text, Image, Opaque]
    image = found[2].results[0].parts[1]
    assert isinstance(image, Image) and (image.url, image.owner, image.media_type) == (
        "images/a.jpg",
        "tool",
        "image/jpeg",
    )
    assert found[2].results[0].error
    assert [part.private for part in found[2].results[0].parts if isinstance(part, Opaque)] == [False, True]


def test_definitions_copied_steps_and_continuations() -> None:
    tools = [{"type": "function", "function": {"name": "Bash", "parameters": {"type": "object"}}}]
    data = trajectory(
        {"source": "user", "message": "go", "is_copied_context": True},
        continued_trajectory_ref="next.json",
        subagent_trajectories=[{}, {}],
    )
    data["agent"]["tool_definitions"] = tools
    history = formats.read(json.dumps(data))
    assert [note.what for note in history.notes] == [
        "steps copied in from an earlier trajectory (1)",
        "trajectories of sub-agents left out (2)",
        "the trajectory goes on in another file (1)",
    ]
    assert formats.write(history, "openai_chat")[0]["tools"] == tools
    assert formats.write(history, "anthropic")[0]["tools"] == [{"name": "Bash", "input_schema": {"type": "object"}}]


@pytest.mark.parametrize("steps", [None, [], [{"source": "agent", "message": ""}], [5]])
def test_a_trajectory_without_a_message_says_so(steps: Any) -> None:
    with pytest.raises(BadInput):
        formats.read({"schema_version": "ATIF-v1.7", "agent": {}, "steps": steps}, "atif")
