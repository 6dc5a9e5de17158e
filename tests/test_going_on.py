"""Going on after a restart: the same bytes and view, checkpoints where they were, cuts that can be sent."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import builders
import microfiche as mf
import pytest
from builders import Assistant, Call, Result, Story
from hypothesis import given, settings
from hypothesis import strategies as st
from microfiche import formats
from microfiche.messages import split_turns

MODEL = "claude-haiku-4-5"


@pytest.mark.parametrize("wire", builders.WIRES)
def test_the_model_sees_the_very_bytes_again(tmp_path: Path, wire: str) -> None:
    told = Story().user("Look \u202e at \U0001f9ea it.", builders.png(40, 30, noise=1))
    told.uses(
        ("run", {"cmd": "cat x"}, "\x00\x1b[31mred\x1b[0m\r\n  two  blanks\t\n" + "x" * 5_000),
        ("shot", {}, ("seen", builders.png(80, 60, noise=2))),
        ("run", {"cmd": "false"}, "exit 1", True),
        thinking="first what is there",
        text="Reading.",
    )
    native = told.says("It is red.", "so that is it").user("Go on.").native(wire)
    asked: dict[str, Any] = {"model": MODEL, "budget": 150_000, "format": wire}
    with mf.Record.open(tmp_path / "work.mf") as record:
        chat = record.conversation("a")
        chat.append(native, format=wire)
        before = chat.context(**asked)
    with mf.Record.open(tmp_path / "work.mf") as record:
        chat = record.conversation("a")
        head = record.head
        for after in (chat.context(**asked), chat.resume(**asked)):
            assert json.dumps(after.messages) == json.dumps(before.messages) == json.dumps(native)
            assert after.digest == before.digest
        if wire != "openai_chat":  # which sends no reasoning back
            assert builders._b64(b"first what is there") in json.dumps(after.messages)
        assert record.head == head


def test_resume_right_behind_a_pass_gives_its_view(tmp_path: Path) -> None:
    with mf.Record.open(tmp_path / "work.mf") as record:
        chat = record.conversation("a")
        chat.append(builders.rounds(30, 3_000).native("anthropic"))
        fit = chat.compact(model=MODEL, budget=20_000)
        assert fit.pages and fit.entry == chat.tip
    with mf.Record.open(tmp_path / "work.mf") as record:
        chat = record.conversation("a")
        head = record.head
        again = chat.resume(model=MODEL, budget=20_000)
        assert (again.digest, again.messages, again.plan) == (fit.digest, fit.messages, fit.plan)
        assert [page.png for page in again.pages] == [page.png for page in fit.pages]
        assert record.head == head, "going on wrote something"
        chat.append(Story(calls=90).read("more.py", builders.code(7, 900)).native("anthropic"), context=again)
        after = chat.resume(model=MODEL, budget=20_000)
        assert after.plan.archive.full[:1] == fit.plan.archive.full[:1] and "more.py" in json.dumps(after.messages)


def test_checkpoints_are_where_they_were(tmp_path: Path) -> None:
    names = ("start", "half way", "end")
    with mf.Record.open(tmp_path / "work.mf") as record:
        chat = record.conversation("a")
        marked = {}
        for at, name in enumerate(names):
            chat.append(builders.rounds(3, 100, seed=10 * at).native("anthropic"))
            marked[name] = (chat.checkpoint(name), chat.context(model=MODEL).messages)
        assert len({label.entry for label, _ in marked.values()}) == 3
        chat.append({"role": "user", "content": "And then?"})
    for name in ("half way", "end", "start", "end"):
        with mf.Record.open(tmp_path / "work.mf") as record:
            chat = record.conversation("a")
            label, messages = marked[name]
            assert chat.thread.labels()[name] == label
            assert chat.rewind(name).entry == label.entry == chat.tip
            assert chat.context(model=MODEL).messages == messages


def same_ids(story: Story) -> Story:
    """The story with ids that every batch of calls uses again."""
    events: list[builders.Event] = []
    now: dict[str, str] = {}
    for event in story.events:
        if isinstance(event, Assistant) and event.calls:
            now = {call.id: f"call_{at}" for at, call in enumerate(event.calls)}
            calls = tuple(Call(now[call.id], call.name, call.arguments) for call in event.calls)
            event = Assistant(event.text, calls, event.thinking)
        elif isinstance(event, Result):
            event = Result(now[event.id], event.content, event.error)
        events.append(event)
    return Story(events, story.calls)


def sendable(fit: mf.Context, wire: str) -> None:
    assert fit.tokens <= fit.plan.budget or not fit.plan
    assert mf.validate(fit.request, wire, model=MODEL) == []
    head, turns = split_turns(formats.read(fit.request, wire).messages)
    assert not any(message.results for message in head)
    for turn in turns:
        calls = sorted(call.id for message in turn.messages for call in message.calls)
        assert calls == sorted(result.call_id for message in turn.messages for result in message.results)


def check_cut(folder: Path, seed: int) -> str:
    """One history goes into a record and is resumed in less room than it takes; says how that ended."""
    source = random.Random(seed)
    story = builders.random_story(seed)
    if isinstance(story.events[-1], Assistant) and story.events[-1].calls:
        story.events.pop()  # a record takes no open call
    assert story.events
    wire = source.choice(builders.WIRES)
    if wire != "gemini" and source.random() < 0.5:  # which has no ids
        story = same_ids(story)
    policy = mf.Policy(rungs=source.choice((("omit",), ("elide", "images", "omit"), mf.Policy().rungs)))
    path = folder / f"{seed}.mf"
    with mf.Record.open(path) as record:
        record.conversation("a").append(story.native(wire), format=wire)
    with mf.Record.open(path) as record:
        chat = record.conversation("a")
        total = mf.count(chat.standing(model=MODEL, format=wire).request, model=MODEL)
        asked: dict[str, Any] = {"model": MODEL, "format": wire, "policy": policy, "max_tokens": 100}
        asked["budget"] = int(total * source.uniform(0.1, 0.9)) + 1
        try:
            fit = chat.resume(**asked)
        except mf.CannotFit:
            return "cannot fit"
        assert fit.tokens <= asked["budget"]
        sendable(fit, wire)
        chat.append(Story(calls=900).says("Well.").user("Go on.").native(wire), format=wire)
        sendable(chat.context(**{**asked, "budget": 2 * total}), wire)
        trimmed = any(entry.kind == "trim" for entry in chat.thread.path())
        assert trimmed == bool(fit.plan.omitted)
    return "trimmed" if trimmed else "fits"


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_no_cut_parts_a_call_from_its_result(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    check_cut(tmp_path_factory.mktemp("cut"), seed)


@pytest.mark.full
def test_many_cuts(tmp_path: Path) -> None:
    ends = [check_cut(tmp_path, seed) for seed in range(400)]
    assert all(ends.count(end) > 5 for end in ("trimmed", "fits", "cannot fit")), ends


@pytest.mark.parametrize("chain", ["one batch", "one after the other"])
@pytest.mark.parametrize("wire", builders.WIRES)
def test_where_no_cut_is_legal_it_shrinks_further(tmp_path: Path, wire: str, chain: str) -> None:
    uses = [("ask", {"question": at}, f"of {at}:\n{builders.code(at, 3_000)}") for at in range(50)]
    story = Story().user("Find the leak.")
    if chain == "one batch":  # all one turn, and the newest
        story.uses(*uses)
    else:
        for use in uses:
            story.uses(use)
    with mf.Record.open(tmp_path / "work.mf") as record:
        chat = record.conversation("a")
        chat.append(story.native(wire), format=wire)
        fit = chat.resume(model=MODEL, format=wire, budget=12_000)
        assert fit.tokens <= 12_000
        sendable(fit, wire)
        assert chat.state().messages[-1][1].results[-1].text == uses[-1][2]
        if chain == "one batch":
            sent = formats.read(fit.request, wire).messages
            assert sum(len(message.calls) for message in sent) == 50
            # With nothing but leaving out whole turns allowed it is an error, and never half a batch.
            with pytest.raises(mf.CannotFit):
                whole = mf.Policy(rungs=("omit",))
                mf.compact(story.native(wire), model=MODEL, format=wire, budget=12_000, policy=whole)
