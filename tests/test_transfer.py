"""Histories go into a record whole and come out as they went in."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import microfiche as mf
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from microfiche import formats
from microfiche.conversation import Conversation, Record
from microfiche.errors import NameTaken
from microfiche.formats.beside import Beside
from microfiche.messages import History, Message, Note, Text, ToolCall, ToolResult
from microfiche.record import OpenCalls
from microfiche.transfer import export_messages, import_history, standing_options, update_history
from microfiche.validate.draft import NO_RESULT

sys.path.insert(0, str(Path(__file__).parent / "formats"))
from wire_histories import BODIES

SESSIONS = Path(__file__).parent / "data" / "sessions"


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Record]:
    with Record.open(tmp_path / "work.mf") as opened:
        yield opened


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Record]:
    with Record.open(tmp_path_factory.mktemp("store") / "work.mf") as opened:
        yield opened


def fresh(record: Record) -> str:
    return f"c{len(record.conversations())}"


@given(data=st.data(), wire=st.sampled_from(sorted(BODIES)))
def test_a_request_comes_out_as_it_went_in(store: Record, data: st.DataObject, wire: str) -> None:
    body = data.draw(BODIES[wire])
    history = formats.read(body, wire)
    if not history.messages:
        return
    done = import_history(store, history, fresh(store))
    out, notes = export_messages(done.conversation)
    assert json.dumps(out, sort_keys=True) == json.dumps(formats.write(history, wire)[0], sort_keys=True)
    assert not notes


@given(data=st.data())
def test_so_does_a_list(store: Record, data: st.DataObject) -> None:
    items = data.draw(BODIES["anthropic"])["messages"]
    if items:
        done = import_history(store, formats.read(items, "anthropic"), fresh(store))
        assert export_messages(done.conversation)[0] == items


@st.composite
def loose_messages(draw: st.DrawFn) -> list[Message]:
    """Calls and results in any order, of few ids: unanswered, answered late, answered twice, used again."""
    kinds = st.sampled_from(["user", "call", "calls", "result"])
    messages = []
    for kind, id in draw(st.lists(st.tuples(kinds, st.sampled_from("abc")), min_size=1, max_size=12)):
        match kind:
            case "user":
                messages.append(Message("user", (Text(id),)))
            case "call":
                messages.append(Message("assistant", (ToolCall(id, "f", "{}"),)))
            case "calls":
                messages.append(Message("assistant", (ToolCall(id, "f", "{}"), ToolCall(f"{id}2", "g", "{}"))))
            case _:
                messages.append(Message("tool", (ToolResult(id, (Text("done"),)),)))
    return messages


def own(chat: Conversation) -> list[Message]:
    """The messages of a path without the results that imports put in."""
    kept = [
        Message(m.role, tuple(p for p in m.parts if not (isinstance(p, ToolResult) and p.text == NO_RESULT)))
        for _, m in chat.state().messages
    ]
    return [message for message in kept if message.parts]


@given(loose_messages())
def test_every_call_is_closed_and_nothing_of_the_file_is_lost(store: Record, messages: list[Message]) -> None:
    done = import_history(store, History(messages, "atif"), fresh(store))
    calls = OpenCalls()
    said = [message for _, message in done.conversation.state().messages]
    for message in said:
        calls.follow(message)
    assert not len(calls)
    added = [r for message in said for r in message.results if r.text == NO_RESULT]
    assert len(added) == sum(note.what.startswith("no result for call") for note in done.notes)
    assert own(done.conversation) == messages


_LATE = [
    Message("assistant", (ToolCall("b", "f", "{}"),)),
    Message("assistant", (ToolCall("a", "f", "{}"),)),
    Message("tool", (ToolResult("b", (Text("done"),)),)),
    Message("user", (Text("go on"),)),
]


@given(loose_messages(), st.integers(1, 12), st.integers(1, 12))
@example(_LATE, 1, 3)
def test_a_history_that_grows_is_followed(store: Record, messages: list[Message], first: int, second: int) -> None:
    first, second = sorted((min(first, len(messages)), min(second, len(messages))))
    chat = import_history(store, History(messages[:first], "atif"), fresh(store)).conversation
    for upto in (second, len(messages), len(messages)):
        update_history(chat, History(messages[:upto], "atif"))
        assert own(chat) == messages[:upto]
    size = store.head.size
    assert update_history(chat, History(messages, "atif")).messages == 0 and store.head.size == size


def test_a_session_is_whole_with_its_turns(record: Record) -> None:
    path = SESSIONS / "harbour.claude-code.jsonl"
    history = formats.read(path.read_bytes(), where=path.name)
    done = import_history(record, history, "harbour", source=path.name)
    assert [message for _, message in done.conversation.state().messages] == history.messages
    assert done.turns == len(history.turns()[1]) == record.conversations()[0].turns
    body, _ = formats.write(history, "anthropic")
    assert export_messages(done.conversation)[0] == body["messages"]
    assert record.verify(derived=True)
    (told,) = record.entries(kind="import")
    assert (told.payload["format"], told.payload["source"], told.about) == ("claude_code", path.name, done.tip)


def test_tools_and_system_prompt_stay_with_the_conversation_and_its_forks(record: Record) -> None:
    body = {
        "model": "claude-opus-5",
        "max_tokens": 100,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "tools": [{"name": "Bash", "description": "Runs.", "input_schema": {"type": "object"}}],
        "messages": [{"role": "user", "content": "Hello."}],
    }
    chat = import_history(record, formats.read(body), "a").conversation
    for each in (chat, chat.fork("b"), record.conversation("b").fork("c")):
        options = standing_options(each, "anthropic")
        assert options == {"system": body["system"], "tools": body["tools"]}
        fit = each.context(model="claude-opus-5", **options)
        assert (fit.request["system"], fit.request["tools"]) == (body["system"], body["tools"])
        assert export_messages(each)[0] == body
        for wire, system in (("openai_responses", "instructions"), ("gemini", "systemInstruction")):
            other = each.preview(model="claude-opus-5", format=wire, **standing_options(each, wire))
            assert "Be brief." in str(other.request[system]) and "Bash" in str(other.request["tools"])
            assert not mf.validate(other.request, wire)
        other = each.preview(model="claude-opus-5", format="openai_chat", **standing_options(each, "openai_chat"))
        assert other.request["messages"][0] == {"role": "system", "content": "Be brief."}
    chat.append({"role": "assistant", "content": "Hello yourself."})
    assert export_messages(chat)[0]["messages"][1:] == [{"role": "assistant", "content": "Hello yourself."}]


def test_damage_and_what_the_path_leaves_out_are_notes(record: Record) -> None:
    def line(uuid: str, parent: str | None, kind: str, content: Any, **more: Any) -> bytes:
        message = {"role": kind, "content": content} | ({"id": uuid} if kind == "assistant" else {})
        value = {"uuid": uuid, "parentUuid": parent, "sessionId": "s", "type": kind, "message": message, **more}
        return json.dumps(value).encode()

    boundary = {
        "uuid": "d", "parentUuid": None, "logicalParentUuid": "c", "sessionId": "s", "type": "system",
        "subtype": "compact_boundary", "compactMetadata": {"trigger": "auto", "preTokens": 155000},
    }  # fmt: skip
    lines = [
        line("a", None, "user", "Count the boats."),
        line("b", "a", "assistant", [{"type": "text", "text": "Seven."}]),
        line("x", "a", "assistant", [{"type": "text", "text": "Eight."}]),
        line("c", "b", "user", "Sure?"),
        b'{"torn',
        json.dumps(boundary).encode(),
        line("e", "d", "user", "A summary.", isCompactSummary=True),
        line("f", "e", "assistant", [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}]),
        json.dumps({"type": "custom-title", "customTitle": "Boats", "sessionId": "s"}).encode(),
    ]
    data = b"\n".join(lines)
    history, beside = formats.whole(data, where="s.jsonl")
    done = import_history(record, history, "s", source="s.jsonl", beside=beside)
    told = {entry.payload["where"]: entry.payload["note"] for entry in record.entries(kind="import")
            if "note" in entry.payload and ":" in entry.payload["where"]}  # fmt: skip
    assert told["s.jsonl:5"].startswith("damaged line passed over")
    assert done.branches == ("branch 1",) and (done.compactions, done.names) == (1, 1)
    assert done.conversation.thread.labels()["Boats"].entry == done.conversation.tip == done.tip
    whats = [note.what for note in done.notes]
    assert "no result for call t1 (Bash)" in whats
    # The context can be sent, and the file's own messages come out without what was put in.
    fit = done.conversation.preview(model="claude-opus-5", **standing_options(done.conversation, "anthropic"))
    assert not mf.validate(fit.request) and NO_RESULT in str(fit.messages)
    out = export_messages(done.conversation)[0]
    assert NO_RESULT not in str(out) and out[-1]["content"][0]["id"] == "t1"


def test_a_name_is_given_once_and_our_own_output_not_at_all(record: Record) -> None:
    history = formats.read([{"role": "user", "content": "x"}])
    import_history(record, history, "a")
    with pytest.raises(NameTaken, match="another name"):
        import_history(record, history, "a")
    session = formats.read((SESSIONS / "harbour.claude-code.jsonl").read_bytes())
    fit = mf.compact(session, model="claude-opus-5", budget=20_000)
    with pytest.raises(mf.OwnOutput):
        import_history(record, formats.read(fit.request), "b")
    with pytest.raises(mf.BadInput, match="no message"):
        import_history(record, formats.read([]), "b")
    assert [each.name for each in record.conversations()] == ["a"]


@pytest.mark.parametrize("path", sorted(SESSIONS.iterdir()), ids=lambda path: path.name)
def test_a_session_that_grows_is_followed_from_any_point(record: Record, path: Path) -> None:
    """Whatever stood in the file when it was imported: afterwards the path is the whole session."""
    history = formats.read(path.read_bytes(), where=path.name)
    cuts = range(1, len(history.messages), max(1, len(history.messages) // 8))
    for cut in cuts:
        part = dataclasses.replace(history, messages=history.messages[:cut])
        if cut % 2:  # cut inside a message too: a response that was still being written
            last = part.messages[-1]
            part.messages[-1] = dataclasses.replace(last, parts=last.parts[: max(1, len(last.parts) - 1)])
        chat = import_history(record, part, f"{path.name} {cut}").conversation
        done = update_history(chat, history)
        assert [message for _, message in chat.state().messages] == history.messages, cut
        assert done.messages > 0
        size = record.head.size
        assert update_history(chat, history).messages == 0 and record.head.size == size
    assert record.verify(derived=True)


def test_what_stood_behind_a_pin_is_followed_and_another_session_refused(record: Record) -> None:
    history = formats.read((SESSIONS / "harbour.claude-code.jsonl").read_bytes())
    turns = history.turns()[1]
    cut = sum(len(turn.messages) for turn in turns[:20])
    chat = import_history(record, dataclasses.replace(history, messages=history.messages[:cut]), "a").conversation
    pin = chat.pin("keep me")
    chat.compact(model="claude-opus-5", budget=20_000)
    update_history(chat, history)
    assert [message for _, message in chat.state().messages] == history.messages
    assert list(chat.state().pins) == [pin.entry] and len(chat.state().compactions) == 1
    size = record.head.size
    other = formats.read((SESSIONS / "moorings.stream.jsonl").read_bytes())
    with pytest.raises(mf.BadInput, match="part at message 1"):
        update_history(chat, other)
    chat.append({"role": "user", "content": "Only in the record."})
    longer = dataclasses.replace(history, messages=[*history.messages, Message("user", (Text("Only in the file."),))])
    for session in (history, longer, dataclasses.replace(history, messages=history.messages[:cut])):
        with pytest.raises(mf.BadInput, match="another name"):
            update_history(chat, session)
    assert record.head.size == size + 1


def test_a_note_is_written_once(record: Record) -> None:
    first = formats.read([{"role": "user", "content": "a"}])
    first.notes.append(Note("s:5", "damaged line passed over"))
    chat = import_history(record, first, "a").conversation
    more = formats.read([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])
    more.notes += [Note("s:5", "damaged line passed over"), Note("s:9", "damaged line passed over")]
    assert [note.where for note in update_history(chat, more).notes] == ["s:9"]


def test_what_stands_beside_a_stream_is_told_and_beside_a_request_nothing_stands() -> None:
    message = {"role": "user", "content": "Go."}
    boundary = {
        "type": "system",
        "subtype": "compact_boundary",
        "session_id": "s",
        "compact_metadata": {"trigger": "manual"},
    }
    lines = [{"type": "user", "session_id": "s", "message": message}, boundary]
    data = "\n".join(map(json.dumps, lines))
    assert formats.read(data).format == "claude_stream"
    (found,) = formats.whole(data, "claude_stream", "s")[1].compactions
    assert (found.at, found.where, found.trigger) == ((0, 1), "s:2", "manual")
    assert formats.whole([message], "anthropic")[1] == Beside()
