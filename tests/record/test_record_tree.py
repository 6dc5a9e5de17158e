"""Conversations: whole turns, tips, forks, labels, and what stands on a path."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from microfiche.errors import BadInput, Conflict, NameTaken, NoSuchEntry, TurnOpen
from microfiche.messages import Message, Text, ToolCall
from microfiche.record import Draft, Entry, Label, Record, Ref
from record_lives import boundaries, calls, fresh, live, results, said, says, tool_turn, user


@pytest.fixture
def record(tmp_path: Path) -> Record:
    with fresh(tmp_path) as record:
        yield record


def test_messages_come_back_as_they_were_after_reopening(tmp_path: Path) -> None:
    stretch = [user("read \ud800 it"), *tool_turn("c1", "x" * 5000), says("done\0")]
    with fresh(tmp_path) as record:
        record.thread("t").append(stretch)
    with fresh(tmp_path) as record:
        assert said(record.thread("t")) == stretch


def test_turns_are_numbered_once_and_for_ever(record: Record) -> None:
    t = record.thread("t")
    t.append([Message("system", (Text("be brief"),)), user("one"), *tool_turn("a"), says("two")])
    assert [e.turn for e in t.path()] == [0, 1, 2, 2, 3]
    back = t.path()
    assert next(back).turn == 0
    t.move(next(back).id)  # behind turn 1
    t.append([user("another way")])
    assert [e.turn for e in t.path()] == [0, 1, 4]
    assert t.turn(2) == tuple(tool_turn("a")) and t.turn(4) == (user("another way"),)
    assert t.turn(0) == (Message("system", (Text("be brief"),)),)
    assert t.standing.turns == 4
    with pytest.raises(NoSuchEntry, match="no turn 5"):
        t.turn(5)


def test_a_message_that_joins_a_turn_later_is_read_where_the_path_is(record: Record) -> None:
    t = record.thread("t")
    (one,) = t.append([user("one")])
    t.append([Message("system", (Text("left"),))])
    t.move(one.id)
    t.append([Message("system", (Text("right"),)), says("two")])
    assert [m.text for m in t.turn(1)] == ["one", "right"]
    t.move(next(e.id for e in record.entries() if e.message and e.message.text == "left"))
    assert [m.text for m in t.turn(1)] == ["one", "left"]


def test_an_open_call_is_named_and_nothing_is_written(record: Record) -> None:
    t = record.thread("t")
    t.append([user("go")])
    before = record.head
    with pytest.raises(TurnOpen, match="c2") as caught:
        t.append([calls("c1", "c2"), results("c1")])
    assert caught.value.calls == ("c2",)
    for drafts in (
        [Draft("message", message=calls("x")), Draft("pin", {"text": "p"}), Draft("message", message=results("x"))],
        [Draft("message", message=calls("x")), Draft("move", about=1), Draft("message", message=results("x"))],
    ):
        with pytest.raises(TurnOpen, match="x"):
            t.commit(drafts)
    with pytest.raises(TurnOpen):
        t.append([results("again"), calls("again")])  # the result came before its call
    assert record.head == before and t.tip == 1


def test_ids_that_are_used_again_are_other_calls(record: Record) -> None:
    t = record.thread("t")
    t.append([user("go"), *tool_turn("x"), *tool_turn("x")])
    with pytest.raises(TurnOpen):
        t.append([*tool_turn("x"), calls("x")])


def test_a_move_adds_no_path_entry_and_goes_back_and_forth(record: Record) -> None:
    t = record.thread("t")
    one, two = t.append([user("one"), says("two")])
    t.append([user("a")])
    way_a = said(t)
    path_entries = [e for e in record.entries() if e.on_path]
    move = t.move(two.id)
    assert [e for e in record.entries() if e.on_path] == path_entries
    assert (move.kind, move.about, move.payload["from"]) == ("move", two.id, Ref(path_entries[-1].id))
    t.append([user("b")])
    way_b = said(t)
    t.move(path_entries[-1].id)
    assert said(t) == way_a
    t.move(max(t.children(two.id)))
    assert said(t) == way_b
    assert [b.tip for b in t.branches()] == [path_entries[-1].id, t.tip] and t.branches()[-1].current
    t.move(None)
    assert said(t) == [] and t.tip is None
    t.append([user("new root")])
    assert t.children(None) == [one.id, t.tip]
    assert record.verify(derived=True)


def test_the_tip_is_where_it_was_left(tmp_path: Path) -> None:
    with fresh(tmp_path) as record:
        t = record.thread("t")
        (first, _) = t.append([user("one"), says("two")])
        t.move(first.id)
    with fresh(tmp_path) as record:
        assert record.thread("t").tip == first.id


def test_a_move_lands_on_turn_boundaries_only(record: Record) -> None:
    t = record.thread("t")
    go, call, result, _ = t.append([user("go"), calls("a", "b"), results("a"), results("b")])
    for inside in (call, result):
        with pytest.raises(TurnOpen, match=f"take {go.id}") as caught:
            t.move(inside.id)
        assert caught.value.calls[-1] == "b"
    for nowhere in (99, t.label("l").id):
        with pytest.raises(NoSuchEntry):
            t.move(nowhere)
    record.thread("u").append([user("other")])
    with pytest.raises(NoSuchEntry):
        t.move(record.thread("u").tip)


def test_of_two_writers_one_wins(record: Record) -> None:
    ours, theirs = record.thread("t"), record.thread("t")
    theirs.append([user("first")])
    size = record.head.size
    for attempt in (
        lambda: ours.append([user("second")]),
        lambda: ours.move(None),
        lambda: ours.append_event("pin", {"text": "p"}),
        lambda: ours.append([user("x")], expect_tip=77),
    ):
        with pytest.raises(Conflict) as caught:
            attempt()
        assert caught.value.tip == theirs.tip
    assert record.head.size == size
    assert ours.refresh() == theirs.tip
    ours.append([user("second")])
    theirs.append([user("third")], expect_tip=ours.tip)
    assert [m.text for m in said(ours)] == ["first", "second", "third"]


def test_a_side_entry_does_not_ask_for_the_tip(record: Record) -> None:
    ours, theirs = record.thread("t"), record.thread("t")
    theirs.append([user("first")])
    failure = ours.side("failure", theirs.tip, {"status": 400})
    assert ours.sides("failure") == [failure] == ours.sides(about=theirs.tip)
    with pytest.raises(Conflict):
        ours.append([user("second")])


def test_a_fork_copies_the_path_with_every_reference(record: Record) -> None:
    t = record.thread("t")
    first, second = t.append([user("one"), says("two")])
    t.append([user("aside")])
    t.move(second.id)
    pin = t.append_event("pin", {"text": "keep", "said": Ref(first.id)})
    gone = t.append_event("pin", {"text": "forget"})
    t.append_event("unpin", about=gone.id)
    t.append_event("compaction", {"span": [Ref(first.id), Ref(second.id)], "atlas": b"atlas" * 999})
    label, lost = t.label("start", first.id), t.label("lost", second.id)
    t.side("label_loss", lost.id, {"why": "test"})
    t.side("claim", second.id, {"text": "so", "rests_on": [("query", Ref(first.id)), ("check", Ref(label.id))]})
    t.append([user("three"), says("four")], meta={"context": "c" * 64})
    blobs_before = record.verify().size
    f = t.fork("f").fork("g")
    theirs, ours = list(t.path()), list(f.path())
    assert {e.id for e in theirs}.isdisjoint(e.id for e in ours)
    assert [(e.kind, e.turn, e.open, e.message) for e in ours] == [(e.kind, e.turn, e.open, e.message) for e in theirs]
    own = {e.id for e in record.entries(conversation="g")}
    at = dict(zip((e.id for e in theirs), (e.id for e in ours), strict=True))
    assert [p.payload for p in f.pins()] == [{"text": "keep", "said": Ref(at[first.id])}]
    assert f.pins()[0].id == at[pin.id]
    compaction = next(e for e in ours if e.kind == "compaction")
    assert compaction.payload["span"] == [Ref(at[first.id]), Ref(at[second.id])]
    assert list(f.labels()) == ["start"] and f.labels()["start"].entry == at[first.id]
    (claim,) = f.claims()
    assert claim.about == at[second.id]
    rests = claim.payload["rests_on"]
    assert rests[0] == ("query", Ref(at[first.id])) and rests[1][1].entry == f.labels()["start"].id
    assert {ref.entry for _, ref in rests} <= own
    note = next(iter(record.entries(conversation="g")))
    assert (note.kind, note.about, note.payload["from"]) == ("fork", record.thread("f").tip, "f")
    # Numbers go on behind the source's highest, which an abandoned branch had.
    assert t.standing.turns == 5
    f.append([user("five")])
    assert [e.turn for e in f.path() if e.message][-1] == 6
    assert "five" not in [m.text for m in said(t)] and blobs_before < record.head.size
    assert record.verify(derived=True)


def test_a_fork_costs_its_path_alone(record: Record) -> None:
    t = record.thread("t")
    (root,) = t.append([user("root")])
    for sibling in range(20):
        t.move(root.id)
        t.append([user(f"branch {sibling}"), says("x" * 5000)])
    before, blobs = record.head.size, {d for e in record.entries() for d in e.blobs}
    t.fork("f")
    assert record.head.size - before == 1 + 3
    assert {d for e in record.entries() for d in e.blobs} == blobs


def test_a_fork_that_fails_leaves_no_half_child(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    t = record.thread("t")
    t.append([user(str(at)) for at in range(200)])
    head = record.head
    made = []

    def failing(*args: object) -> str:
        made.append(args)
        if len(made) == 150:
            raise RuntimeError("power")
        return str(args[0])

    monkeypatch.setattr("microfiche.record.tree.renumber", failing)
    with pytest.raises(RuntimeError):
        t.fork("f")
    monkeypatch.undo()
    assert record.head == head and [c.name for c in record.conversations()] == ["t"]
    t.append([user("on")])
    t.fork("f")
    with pytest.raises(NameTaken):
        t.fork("f")
    assert record.verify(derived=True)


def test_labels_mark_boundaries_and_last(tmp_path: Path) -> None:
    with fresh(tmp_path) as record:
        t = record.thread("t")
        go, call, *_ = t.append([user("go"), *tool_turn("a"), says("done")])
        set_at = {"end": t.label("end"), "inside": t.label("inside", call.id), "first": t.label("first", go.id)}
        assert set_at["end"] == Label("end", t.tip, set_at["end"].id, False)
        assert (set_at["inside"].entry, set_at["inside"].moved) == (go.id, True)
        t.started(ToolCall("run", "bash", "{}"))
        while_running = t.label("running")
        assert (while_running.entry, while_running.moved) == (t.tip, True)
    with fresh(tmp_path) as record:
        t = record.thread("t")
        assert t.labels() == {**set_at, "running": while_running}
        for label in (*set_at.values(), while_running):
            t.move(label.entry)
            assert t.tip == label.entry
        again = t.label("first")
        assert t.labels()["first"] == again
        t.side("label_loss", again.id)
        assert t.labels()["first"] == set_at["first"]  # what was lost is that setting of it
        assert record.verify(derived=True)


def test_a_commit_is_one(record: Record) -> None:
    t = record.thread("t")
    first, _ = t.append([user("one"), says("two")])
    t.label("l", first.id)
    trim = Draft("trim", {"behind": Ref(first.id)})
    report = Draft("report", {"label": "l"}, message=user("tried it; it failed"))
    entries = t.commit(
        [Draft("move", {"why": "rewind"}, first.id), report, trim, Draft("label_loss", {"by": Ref(trim)}, about=trim)]
    )
    assert [e.kind for e in entries] == ["move", "report", "trim", "label_loss"]
    assert entries[1].parent == first.id and entries[1].turn == 3 and t.turn(3) == (user("tried it; it failed"),)
    assert entries[3].payload["by"] == Ref(entries[2].id) and entries[3].about == entries[2].id == t.tip
    assert len(record.heads()) == 3
    size = record.head.size
    with pytest.raises(NoSuchEntry):
        t.commit([Draft("message", message=user("x")), Draft("claim", {"of": Ref(Draft("pin"))})])
    with pytest.raises(NoSuchEntry):
        t.commit([Draft("message", message=user("x")), Draft("claim", about=999)])
    assert record.head.size == size and record.verify(derived=True)


@pytest.mark.parametrize(
    "draft",
    [
        Draft("fork"),
        Draft("nonsense"),
        Draft("message"),
        Draft("pin", message=user("x")),
        Draft("started"),
        Draft("label"),
        Draft("unpin"),
        Draft("claim", {"x": object()}),
    ],
)
def test_drafts_that_have_no_place(record: Record, draft: Draft) -> None:
    with pytest.raises(BadInput):
        record.thread("t").commit([draft])
    assert record.head.size == 0


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 201, "\ud800"])
def test_names_that_cannot_be(record: Record, name: str) -> None:
    with pytest.raises(BadInput):
        record.thread(name)


def test_pins_are_those_of_the_path(record: Record) -> None:
    t = record.thread("t")
    (one,) = t.append([user("one")])
    a = t.append_event("pin", {"text": "a", "kind": "decision"})
    t.append_event("unpin", about=a.id)
    b = t.append_event("pin", {"text": "b", "kind": "open question"})
    assert t.pins() == [b]
    t.move(a.id)
    assert t.pins() == [a]
    t.move(one.id)
    assert t.pins() == []


def test_meta_stands_with_the_answer(record: Record) -> None:
    t = record.thread("t")
    entries = t.append([user("q"), *tool_turn("a"), says("x")], meta={"context": "d" * 64})
    assert [e.payload for e in entries] == [{}, {"context": "d" * 64}, {}, {}]
    entries = t.append([user("q"), says("x")], meta=[{"n": 1}, None])
    assert [e.payload for e in entries] == [{"n": 1}, {}]
    with pytest.raises(BadInput):
        t.append([user("q")], meta=[])


@pytest.mark.parametrize("seed", range(6))
def test_nothing_written_ever_changes(tmp_path: Path, seed: int) -> None:
    source = random.Random(seed)
    with fresh(tmp_path) as record:
        seen: list[Entry] = []
        heads = []
        for _ in range(6):
            live(record, source, 5, f"t{seed}")
            now = list(record.entries())
            assert now[: len(seen)] == seen
            seen = now
            heads.append(record.head)
            assert record.verify(derived=True)
        for old in heads:
            assert record.growth(old).holds
        for thread in map(record.thread, (c.name for c in record.conversations())):
            path = list(thread.path())
            assert [e.parent for e in path] == [None, *(e.id for e in path)][: len(path)]
            assert not path or path[-1].open == 0
            numbers = [e.turn for e in path]
            assert numbers == sorted(numbers)
            for branch in thread.branches():
                assert branch.tip in boundaries(thread)
            for entry in path:
                if entry.message is not None and entry.turn:
                    assert entry.message in thread.turn(entry.turn)
