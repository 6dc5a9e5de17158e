"""What a session holds beside its conversation comes into a record: branches, compactions and names as events."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import microfiche as mf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from microfiche import formats
from microfiche.auditing import audit
from microfiche.conversation import Conversation, Record
from microfiche.formats import anthropic
from microfiche.messages import Message
from microfiche.transfer import Imported, export_messages, import_history, update_history
from microfiche.validate.draft import NO_RESULT

Line = dict[str, Any]


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Record]:
    with Record.open(tmp_path / "work.mf") as opened:
        yield opened


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Record]:
    with Record.open(tmp_path_factory.mktemp("store") / "work.mf") as opened:
        yield opened


def line(uuid: str, parent: str | None, kind: str, content: Any, **more: Any) -> Line:
    message = {"role": kind, "content": content} | ({"id": f"msg_{uuid}"} if kind == "assistant" else {})
    return {"uuid": uuid, "parentUuid": parent, "sessionId": "s", "type": kind, "message": message} | more


def text(words: str) -> list[Line]:
    return [{"type": "text", "text": words}]


def call(id: str) -> Line:
    return {"type": "tool_use", "id": id, "name": "Bash", "input": {}}


def result(id: str, words: str = "done") -> Line:
    return {"type": "tool_result", "tool_use_id": id, "content": words}


def boundary(uuid: str, before: str, **metadata: Any) -> Line:
    told = {"trigger": "auto", "preTokens": 155_000} | metadata
    return {"uuid": uuid, "parentUuid": None, "logicalParentUuid": before, "sessionId": "s", "type": "system",
            "subtype": "compact_boundary", "compactMetadata": told}  # fmt: skip


def put(record: Record, lines: list[Line], name: str = "s") -> Imported:
    history, beside = formats.whole("\n".join(map(json.dumps, lines)), where="s.jsonl")
    return import_history(record, history, name, source="s.jsonl", beside=beside)


def grown(chat: Conversation, lines: list[Line]) -> Imported:
    history, beside = formats.whole("\n".join(map(json.dumps, lines)), where="s.jsonl")
    return update_history(chat, history, source="s.jsonl", beside=beside)


def said(chat: Conversation, tip: Any = "tip") -> list[str]:
    """The texts of a path, calls and results by their ids, with a mark for each compaction."""
    out = []
    for entry in chat.thread.path(tip):
        if entry.message is None:
            out.append(f"[{entry.kind}]")
            continue
        for part in entry.message.parts:
            out.append(getattr(part, "text", "") or f"call {getattr(part, 'id', '')}")
    return out


def labelled(chat: Conversation) -> dict[str, list[str]]:
    return {name: said(chat, label.entry) for name, label in chat.thread.labels().items()}


REWOUND = [
    line("a", None, "user", "Count the boats."),
    line("b", "a", "assistant", text("Seven.")),
    line("c", "b", "user", "Sure?"),
    line("d", "c", "assistant", text("Yes.")),
    line("e", "b", "user", "Count again."),
    line("f", "e", "assistant", text("Eight.")),
]


def test_a_rewind_is_a_branch_with_a_checkpoint_at_its_end(record: Record) -> None:
    done = put(record, REWOUND)
    chat = done.conversation
    assert said(chat) == ["Count the boats.", "Seven.", "Count again.", "Eight."]
    assert (done.messages, done.turns, done.branches) == (6, 6, ("branch 1",))
    assert labelled(chat) == {"branch 1": ["Count the boats.", "Seven.", "Sure?", "Yes."]}
    assert [(branch.current, branch.turn) for branch in chat.thread.branches()] == [(True, 4), (False, 6)]
    assert record.verify(derived=True)
    chat.rewind("branch 1")
    assert said(chat) == ["Count the boats.", "Seven.", "Sure?", "Yes."]
    assert not grown(chat, REWOUND)


def test_a_fork_inside_a_turn_has_that_turn_again(record: Record) -> None:
    lines = [
        line("a", None, "user", "Go."),
        line("b", "a", "assistant", [call("t1")]),
        line("c", "b", "user", [result("t1", "refused")]),
        line("d", "c", "assistant", text("Then not.")),
        line("e", "b", "user", [result("t1", "allowed")]),
        line("f", "e", "assistant", text("Done.")),
        line("g", "b", "user", "Stop at once."),
        line("h", "f", "user", "Thanks."),
    ]
    chat = put(record, lines).conversation
    assert said(chat) == ["Go.", "call t1", "allowed", "Done.", "Thanks."]
    assert labelled(chat) == {
        "branch 1": ["Go.", "call t1", "refused", "Then not."],
        "branch 2": ["Go.", "call t1", NO_RESULT, "Stop at once."],
    }
    assert record.verify(derived=True)


def test_parallel_calls_that_fork_the_tree_are_no_branch(record: Record) -> None:
    def answer(uuid: str, parent: str, block: Line, id: str) -> Line:
        made = line(uuid, parent, "assistant", [block])
        made["message"]["id"] = id
        return made

    def batch(parent: str, front: str) -> list[Line]:
        return [
            answer(f"{front}2", parent, call(f"{front}t1"), f"{front}m"),
            answer(f"{front}3", f"{front}2", call(f"{front}t2"), f"{front}m"),
            line(f"{front}4", f"{front}2", "user", [result(f"{front}t1")]),
            line(f"{front}5", f"{front}3", "user", [result(f"{front}t2")]),
            line(f"{front}6", f"{front}5", "assistant", text(f"{front} done")),
        ]

    lines = [line("a", None, "user", "Go."), *batch("a", "x"), line("b", "a", "user", "Rather:"), *batch("b", "y")]
    done = put(record, lines)
    assert done.branches == ("branch 1",)
    assert said(done.conversation)[-5:] == ["call yt1", "call yt2", "done", "done", "y done"]
    assert labelled(done.conversation)["branch 1"][1:] == ["call xt1", "call xt2", "done", "done", "x done"]


COMPACTED = [
    line("a", None, "user", "Count the boats."),
    line("b", "a", "assistant", text("Seven.")),
    line("c", "b", "user", "And the gulls."),
    line("d", "c", "assistant", text("Forty.")),
    boundary("e", "d", postTokens=900),
    line("f", "e", "user", "Boats were counted: seven.", isCompactSummary=True),
    line("g", "f", "user", "Go on."),
    line("h", "g", "assistant", text("Going on.")),
]


def test_a_compaction_is_an_event_and_the_originals_stay(record: Record) -> None:
    done = put(record, COMPACTED)
    chat = done.conversation
    assert said(chat) == [
        "Count the boats.",
        "Seven.",
        "And the gulls.",
        "Forty.",
        "[compaction]",
        "Go on.",
        "Going on.",
    ]
    assert (done.compactions, done.branches) == (1, ())
    (event,) = chat.state().imported
    assert event.payload["span"] == [1, 4] and event.payload["summary"] == "Boats were counted: seven."
    assert (event.payload["before"], event.payload["after"]) == ({"tokens": 155_000}, {"tokens": 900})
    told = audit(chat)
    # The session's own model had lost them; a context of the record has them again.
    gone = told.not_considered(done.tip)
    assert {(each.turn, each.form, each.event) for each in gone} == {(n, "elsewhere", event.id) for n in (1, 2, 3, 4)}
    assert not told.not_considered(event.parent or 0)
    assert [each.reduced.turn for each in told.removed(event)] == [1, 2, 3, 4]
    (way,) = told.trace(turn=2)
    assert [(step.kind, step.forms) for step in way.steps] == [
        ("message", {"verbatim": 1}), ("compaction", {"elsewhere": 1}), ("import", {"verbatim": 1}),
    ]  # fmt: skip
    ways = {trace.turn: [step.readable for step in trace.steps] for trace in told.trace(text="Forty")}
    assert ways == {4: [True, False, True]}
    assert [step.readable for step in told.trace(text="Seven")[0].steps] == [True, True, True]
    assert "by the session itself, auto, turns 1-4" in str(told.report(done.tip))
    assert not grown(chat, COMPACTED) and len(chat.state().imported) == 1
    fit = chat.context(model="claude-opus-5")
    assert fit.messages[0]["content"] == "Count the boats." and not mf.validate(fit.request)
    answer = chat.append({"role": "assistant", "content": "Here."}, context=fit)[0]
    assert not told.not_considered(answer) and told.context_at(answer).proven
    with pytest.raises(mf.MicroficheError, match="no pass to undo"):
        chat.undo()
    fork = chat.fork("f")
    assert said(fork) == said(chat) and audit(fork).removed(fork.state().imported[0])


@pytest.mark.parametrize(
    "told",
    [{"preservedSegment": {"headUuid": "c", "anchorUuid": "f", "tailUuid": "d"}},
     {"preservedMessages": {"anchorUuid": "f", "uuids": ["c", "d"]}}],
)  # fmt: skip
def test_what_a_compaction_kept_is_not_in_its_span(record: Record, told: Line) -> None:
    lines = [*COMPACTED[:4], boundary("e", "d", **told), *COMPACTED[5:]]
    chat = put(record, lines).conversation
    assert chat.state().imported[0].payload["span"] == [1, 2]


def test_a_compaction_that_the_path_goes_round_is_found_and_its_summary_is_no_branch(record: Record) -> None:
    lines = [*COMPACTED[:6], line("g", "d", "user", "Go on."), line("h", "g", "assistant", text("Going on."))]
    done = put(record, lines)
    assert done.branches == () and said(done.conversation)[3:6] == ["Forty.", "[compaction]", "Go on."]


def test_a_summary_of_what_is_gone_stays_a_message(record: Record) -> None:
    done = put(record, [boundary("e", "gone"), *COMPACTED[5:]])
    assert done.compactions == 0 and said(done.conversation)[0] == "Boats were counted: seven."


def test_compactions_on_branches_stay_there(record: Record) -> None:
    lines = [*COMPACTED, line("i", "b", "user", "Rather the gulls."), line("j", "i", "assistant", text("None."))]
    done = put(record, lines)
    assert said(done.conversation) == ["Count the boats.", "Seven.", "Rather the gulls.", "None."]
    assert labelled(done.conversation)["branch 1"][4] == "[compaction]" and done.compactions == 1
    assert record.verify(derived=True)


def test_sidechains_are_branches_from_the_beginning(record: Record) -> None:
    lines = [
        line("a", None, "user", "Go."),
        line("b", "a", "assistant", [call("t1")]),
        line("x", None, "user", "Look at the boats.", isSidechain=True),
        line("y", "x", "assistant", text("Looked."), isSidechain=True),
        line("c", "b", "user", [result("t1", "Looked.")]),
    ]
    done = put(record, lines)
    assert labelled(done.conversation) == {"sidechain 1": ["Look at the boats.", "Looked."]}
    assert not [note for note in done.notes if "sidechain" in note.what]
    assert said(done.conversation) == ["Go.", "call t1", "Looked."]


def test_titles_and_summaries_are_checkpoints_where_they_belong(record: Record) -> None:
    lines = [
        {"type": "summary", "summary": "Of another file", "leafUuid": "nowhere", "sessionId": "s"},
        *REWOUND,
        {"type": "summary", "summary": "Boats, checked", "leafUuid": "d"},
        {"type": "summary", "summary": "Early", "leafUuid": "b"},
        {"type": "custom-title", "customTitle": "Boats", "sessionId": "s"},
        {"type": "custom-title", "customTitle": "Boats", "sessionId": "s"},
    ]
    done = put(record, lines)
    found = labelled(done.conversation)
    assert found["Boats, checked"] == found["branch 1"] and found["Early"] == ["Count the boats.", "Seven."]
    assert found["Boats"] == said(done.conversation) and done.names == 3
    assert "summary of a line that is not in the file: Of another file" in [note.what for note in done.notes]
    assert not grown(done.conversation, lines)


def test_a_session_that_was_rewound_since_is_followed(record: Record) -> None:
    """The path goes where the session went; what it left gets a checkpoint and is not written twice."""
    chat = put(record, REWOUND[:4]).conversation
    pin = chat.pin("keep me")
    before = record.head.size
    done = grown(chat, REWOUND)
    assert said(chat) == ["Count the boats.", "Seven.", "Count again.", "Eight."]
    assert labelled(chat) == {"branch 1": ["Count the boats.", "Seven.", "Sure?", "Yes.", "[pin]"]}
    assert done.messages == 2 and any("went back" in note.what for note in done.notes)
    assert record.head.size == before + 2 + 5  # two moves, two messages, the checkpoint, the import and a note
    assert pin.entry not in chat.state().pins
    assert not grown(chat, REWOUND)
    more = [*REWOUND, line("i", "d", "user", "Really?"), line("j", "f", "user", "Good.")]
    assert grown(chat, more).branches == ("branch 1",)
    assert said(chat)[-1] == "Good." and labelled(chat)["branch 1"][-1] == "Really?"
    chat.append({"role": "user", "content": "Only in the record."})
    with pytest.raises(mf.BadInput, match="another name"):
        grown(chat, [*more, line("k", "b", "user", "Third way.")])


def test_a_branch_of_a_branch_that_is_there_parts_from_it(record: Record) -> None:
    lines = [*REWOUND, line("i", "f", "user", "Good.")]
    chat = put(record, lines).conversation
    more = [*lines, line("j", "c", "assistant", text("No.")), line("k", "i", "assistant", text("Indeed."))]
    assert grown(chat, more).branches == ("branch 2",)
    assert labelled(chat)["branch 2"] == ["Count the boats.", "Seven.", "Sure?", "No."]
    assert said(chat)[-1] == "Indeed."


def test_sub_agents_of_a_stream_and_of_a_trajectory_are_branches(record: Record) -> None:
    def heard(words: str, agent: str | None = None) -> Line:
        return {"type": "user", "session_id": "s", "parent_tool_use_id": agent,
                "message": {"role": "user", "content": words}}  # fmt: skip

    summary = {**heard("Summed up."), "isCompactSummary": True}
    marks = {"type": "system", "subtype": "compact_boundary", "session_id": "s", "compact_metadata": {"pre_tokens": 9}}
    chat = put(record, [heard("Go."), heard("Sub.", "t1"), marks, summary, heard("On."), heard("Sub two.", "t2")], "a")
    assert said(chat.conversation) == ["Go.", "[compaction]", "On."]
    assert labelled(chat.conversation) == {"sidechain 1": ["Sub."], "sidechain 2": ["Sub two."]}
    event = chat.conversation.state().imported[0]
    assert event.payload["summary"] == "Summed up." and event.payload["before"] == {"tokens": 9}

    def steps(words: str) -> list[Line]:
        return [{"step_id": 1, "source": "user", "message": words}]

    trajectory = {"schema_version": "ATIF-v1.8", "agent": {"name": "x"}, "steps": steps("Go."),
                  "subagent_trajectories": [{"steps": steps("Sub.")}, {"steps": 3}]}  # fmt: skip
    history, beside = formats.whole(trajectory, where="t.json")
    done = import_history(record, history, "b", beside=beside)
    assert labelled(done.conversation) == {"sidechain 1": ["Sub."]}
    assert [note.where for note in done.notes] == ["t.json: subagent_trajectories[1]"]


def test_a_providers_own_compaction_is_an_event_too(record: Record) -> None:
    body = [
        {"role": "user", "content": "Count the boats."},
        {"role": "assistant", "content": [{"type": "compaction", "content": "Boats were to be counted."}, *text("7.")]},
        {"role": "user", "content": "Go on."},
    ]
    history, beside = formats.whole(body)
    chat = import_history(record, history, "a", beside=beside).conversation
    assert chat.state().imported[0].payload["span"] == [1, 1] and export_messages(chat)[0] == body
    items = [{"type": "message", "role": "user", "content": "Hi."}, {"type": "compaction", "encrypted_content": "x"}]
    history, beside = formats.whole(items, "openai_responses")
    chat = import_history(record, history, "b", beside=beside).conversation
    assert len(chat.state().imported) == 1 and export_messages(chat)[0] == items


class Tree:
    """A session file made at random: turns that hang anywhere, each with the messages of the path to it."""

    def __init__(self, seed: int, turns: int) -> None:
        source = random.Random(seed)
        self.lines: list[Line] = []
        self.paths: dict[str | None, list[Line]] = {None: []}
        ends: list[str | None] = [None]
        for at in range(turns):
            parent = ends[-1] if source.random() < 0.6 else source.choice(ends)
            uuid, native = f"u{at}", list(self.paths[parent])
            match source.choice(["user", "text", "call"]) if parent else "user":
                case "user":
                    self.add(native, line(uuid, parent, "user", f"words {at}"))
                case "text":
                    self.add(native, line(uuid, parent, "assistant", text(f"answer {at}")))
                case _:
                    self.add(native, line(f"{uuid}c", parent, "assistant", [call(f"t{at}")]))
                    self.lines.append(
                        {"uuid": f"{uuid}p", "parentUuid": f"{uuid}c", "sessionId": "s", "type": "progress"}
                    )
                    self.add(native, line(uuid, f"{uuid}p", "user", [result(f"t{at}", f"result {at}")]))
            self.paths[uuid] = native
            ends.append(uuid)

    def add(self, native: list[Line], made: Line) -> None:
        self.lines.append(made)
        native.append({key: value for key, value in made["message"].items() if key != "id"})

    def leaves(self) -> list[str]:
        parents = {each["parentUuid"] for each in self.lines}
        return [uuid for uuid in self.paths if uuid is not None and uuid not in parents]


def path_of(chat: Conversation, tip: Any) -> list[Message]:
    return [entry.message for entry in chat.thread.path(tip) if entry.message is not None]


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6), turns=st.integers(1, 25), cut=st.integers(1, 25))
def test_every_leaf_of_any_tree_has_its_path(store: Record, seed: int, turns: int, cut: int) -> None:
    tree = Tree(seed, turns)
    leaves = tree.leaves()
    wanted = [anthropic.read_messages(tree.paths[leaf]) for leaf in leaves]

    def right(chat: Conversation) -> None:
        assert path_of(chat, "tip") == wanted[-1]
        ends = [label.entry for label in chat.thread.labels().values()]
        found = [path_of(chat, end) for end in ends]
        for each in wanted[:-1]:
            assert each in found

    name = f"c{len(store.conversations())}"
    done = put(store, tree.lines, name)
    right(done.conversation)
    assert len(done.branches) == len(leaves) - 1
    written = sum(entry.message is not None for entry in store.entries(conversation=name))
    assert written == len(tree.lines) - sum(each["type"] == "progress" for each in tree.lines)
    size = store.head.size
    assert not grown(done.conversation, tree.lines) and store.head.size == size
    # In two goes: whatever happened to the session in between.
    early = Tree(seed, min(cut, turns))
    chat = put(store, early.lines, f"{name} again").conversation
    grown(chat, tree.lines)
    right(chat)
