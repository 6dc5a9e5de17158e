"""The audit: contexts proven from the record, every absent part explained, twins that audit alike."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import builders
import microfiche as mf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from microfiche import formats
from microfiche.auditing import FORMS, Audit, Reduced, Seen
from microfiche.conversation import Conversation, Record
from microfiche.messages import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult

MODEL = "claude-haiku-4-5"
GPT = "gpt-5.6-sol"


def opening(text: str = "Find the leak.") -> dict[str, Any]:
    return {"role": "user", "content": text}


def round_(at: int, size: int = 6_000) -> list[dict[str, Any]]:
    """A call and its result that no rule elides, in texts that stand nowhere else."""
    made = builders.Story(calls=at)
    return made.uses(("ask", {"question": at}, f"of {at}:\n{builders.code(at, size)}")).native("anthropic")


@pytest.fixture
def record(tmp_path: Path) -> Any:
    with Record.open(tmp_path / "work.mf") as opened:
        yield opened


@pytest.fixture
def chat(record: Record) -> Conversation:
    return record.conversation("triage")


def loop(chat: Conversation, rounds: int, first: int = 0, **options: Any) -> list[int]:
    """The agent's loop; gives the entries of its calls."""
    calls = []
    if chat.tip is None:
        chat.append(opening())
    for at in range(first, first + rounds):
        fit = chat.context(model=MODEL, **options)
        calls.append(chat.append(round_(at), context=fit, usage={"input_tokens": fit.tokens})[0].id)
    return calls


# Contexts


def test_every_call_is_proven_with_what_it_was_asked_with(chat: Conversation) -> None:
    system = [{"type": "text", "text": "Be brief. " * 200}]
    tools = [{"name": "Bash", "description": "d" * 3_000, "input_schema": {"type": "object"}}, *mf.tools("anthropic")]
    sent = {}
    chat.append(opening())
    for at in range(16):
        fit = chat.context(model=MODEL, budget=14_000, system=system, tools=tools)
        sent[chat.append(round_(at), context=fit)[0].id] = fit
    audit = mf.audit(chat)
    for entry, fit in sent.items():
        seen = audit.context_at(entry)
        assert seen.proven and seen.redrawn and seen.digest == fit.digest
        assert seen.messages == fit.messages and seen.system == system and seen.tools == tools
        assert seen.pages[-len(fit.pages) :] == tuple(page.png for page in fit.pages) or not fit.pages
    assert len(chat.state().compactions) > 2
    # System and tools are kept once, however many calls there are.
    blobs = {digest for entry in chat.thread.path() for digest in entry.blobs}
    assert sum(b"d" * 3_000 in chat.record.blob(each) for each in blobs) == 1


def test_a_pass_and_a_failure_are_contexts_too(chat: Conversation) -> None:
    loop(chat, 12, budget=60_000)
    fit = chat.context(model=MODEL, budget=14_000, pending=opening("And now?"))
    failure = chat.fail(ConnectionError("reset"), context=fit)
    audit = mf.audit(chat)
    seen = audit.context_at(failure)
    assert seen.proven and seen.messages == fit.messages and "And now?" in str(seen.messages[-1])
    for event in chat.state().events:
        assert audit.context_at(event).proven
    # The attempt is repeated with what was pending.
    assert chat.retry().digest == fit.digest


def test_what_happens_between_context_and_answer_was_not_seen(chat: Conversation) -> None:
    loop(chat, 3)
    fit = chat.context(model=MODEL, pending=opening("Go on."))
    chat.pin("A decision made while the model was thinking.")
    entry = chat.append([opening("Go on."), *round_(50)], context=fit)[1].id
    later = chat.append(round_(51), context=chat.context(model=MODEL))[0].id
    audit = mf.audit(chat)
    assert audit.context_at(entry).proven and "while the model" not in str(audit.context_at(entry).messages)
    assert audit.context_at(later).proven and "while the model" in str(audit.context_at(later).messages)


def test_a_context_of_another_path_is_told_from_the_right_one(chat: Conversation) -> None:
    loop(chat, 2)
    fit = chat.context(model=MODEL, pending=opening("This was sent."))
    # Never appended: what the call saw is not on record, and the audit does not make it up.
    entry = chat.append(round_(9), context=fit)[0].id
    assert not mf.audit(chat).context_at(entry).proven


def test_forks_prove_the_calls_they_copied(chat: Conversation) -> None:
    loop(chat, 14, budget=14_000)
    other = chat.fork("b").fork("c")
    audit = mf.audit(other)
    calls = [entry for entry in other.thread.path() if "asked" in entry.payload]
    assert len(calls) > 14 and all(audit.context_at(each).proven for each in calls)
    with pytest.raises(mf.NoSuchEntry):
        audit.context_at(next(chat.thread.path()))


def test_other_glyphs_prove_the_context_by_the_identities_on_record(
    chat: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    from microfiche.ladder import form
    from microfiche.pages import render

    calls = loop(chat, 16, budget=14_000)
    before = mf.audit(chat).context_at(calls[-1])
    assert before.redrawn and before.pages

    def bumped(*given: Any, **options: Any) -> Any:
        return render.draw(*given, **{**options, "ink": "mono"})

    monkeypatch.setattr(form, "draw", bumped)
    after = mf.audit(chat).context_at(calls[-1])
    assert after.proven and not after.redrawn and not after.pages
    assert after.sheets == before.sheets
    assert after.shown == before.shown and len(after.shown) < len(after.sheets)
    told = re.findall(r"\[page (\d+), \d+×\d+ pixels, ([0-9a-f]{64})\]", str(after.messages))
    assert [(int(number), digest) for number, digest in told] == [
        (sheet.number, sheet.digest) for sheet in after.sheets if sheet.number in after.shown
    ]
    assert mf.audit(chat).not_considered(calls[-1])


def test_where_no_context_was_recorded_it_says_so(chat: Conversation) -> None:
    entry = chat.append([opening(), *round_(0)])[1]
    with pytest.raises(mf.BadInput, match="no context was recorded"):
        mf.audit(chat).context_at(entry)
    assert mf.audit(chat).not_considered(entry) == ()
    with pytest.raises(mf.NoSuchEntry):
        mf.audit(chat).context_at(999)


# What was not considered, and the way there


def test_every_form_is_named_with_its_event(chat: Conversation) -> None:
    shot = builders.png(600, 400, noise=3)
    story = builders.Story().user("Fix it.").says("Well.", thinking="hm " * 50)
    story.read("a.py", builders.code(1, 3_000)).uses(*(("shot", {"n": n}, ("seen", shot)) for n in range(5)))
    story.read("a.py", builders.code(1, 3_000))
    chat.append(story.native("anthropic"))
    loop(chat, 6, first=100, budget=90_000)
    shaken = chat.shake(model=MODEL, budget=30_000).entry
    paged = chat.compact(model=MODEL, budget=20_000).entry
    calls = loop(chat, 14, first=200, budget=9_000)
    moved = chat.branch(calls[0] - 1)
    calls += loop(chat, 1, first=300, budget=9_000)
    missing = mf.audit(chat).not_considered(calls[-1])
    by_form = {form: {each.event for each in missing if each.form == form} for form in FORMS}
    assert moved.id in by_form["branch"] and by_form["omitted"]
    early = mf.audit(chat).not_considered(paged or 0)
    by_form = {form: {each.event for each in early if each.form == form} for form in FORMS}
    assert by_form["page"] == by_form["not_drawn"] == {paged}
    assert by_form["placeholder"] == by_form["marker"] == {shaken}
    assert {each.kind for each in early if each.form == "marker"} == {"image"}
    removed = mf.audit(chat).removed(shaken or 0)
    assert {each.reduced.form for each in removed} == {"placeholder", "marker"}
    assert {each.original.data for each in removed if isinstance(each.original, Image)} == {shot}
    assert builders.code(1, 3_000) in {each.original.text for each in removed if isinstance(each.original, ToolResult)}
    with pytest.raises(mf.BadInput):
        mf.audit(chat).removed(calls[0])


def test_an_early_caveat_is_traced_to_the_event_that_took_it(chat: Conversation) -> None:
    caveat = "the replica lags by an hour on Mondays"
    chat.append([opening(), {"role": "assistant", "content": f"Careful: {caveat}."}])
    loop(chat, 30, first=10, budget=9_000)
    (trace,) = mf.audit(chat).trace(text=caveat)
    assert trace.turn == 2 and trace.steps[0].forms == {"verbatim": 1} and trace.steps[0].readable
    forms = [set(step.forms) for step in trace.steps[1:]]
    assert forms[0] == {"page"} and forms[-1] == {"omitted"}
    for step in trace.steps[1:]:
        seen = mf.audit(chat).context_at(step.entry)
        texts = [*texts_of(seen), *mf.read_back([page for page, _ in shown(seen)]).split("\n")]
        assert step.readable == (caveat in " ".join(" ".join(texts).split()))
    assert mf.audit(chat).trace(turn=2)[0].steps[-1].entry == trace.steps[-1].entry
    assert mf.audit(chat).trace(text="words that nobody said") == ()
    with pytest.raises(mf.NoSuchEntry):
        mf.audit(chat).trace(turn=999)
    with pytest.raises(mf.BadInput):
        mf.audit(chat).trace()


def test_a_summary_that_kept_the_caveat_is_told_from_one_that_did_not(chat: Conversation) -> None:
    caveat = "the replica lags by an hour on Mondays"
    chat.append([opening(), {"role": "assistant", "content": f"Careful: {caveat}."}])
    loop(chat, 20, first=10, budget=200_000)
    policy = mf.Policy(rungs=("summary", "omit"))
    tip = chat.tip
    for said, kept in ((caveat, True), ("all is well", False)):
        chat.branch(tip)
        chat.context(
            model=MODEL, budget=12_000, policy=policy, summarize=lambda _, said=said: f"- fact: {said} (turn 2)"
        )
        (trace,) = mf.audit(chat).trace(text=caveat)
        last = trace.steps[-1]
        assert last.forms == {"summary": 1} and last.summarised is kept and last.readable is kept
        events = mf.audit(chat).report().to_dict()["events"]
        assert events[-1]["told"]["summary"] == [f"[fact] {said}"]


def test_a_summary_that_failed_is_an_event(chat: Conversation) -> None:
    loop(chat, 20, budget=200_000)

    def broken(request: Any) -> str:
        raise TimeoutError("no answer")

    chat.context(model=MODEL, budget=12_000, policy=mf.Policy(rungs=("summary", "omit")), summarize=broken)
    (failure,) = chat.thread.sides("failure")
    assert "TimeoutError" in failure.payload["what"]
    with pytest.raises(mf.NothingToRetry):
        chat.retry()


def test_a_turn_on_a_branch_that_was_left_is_traced_there(chat: Conversation) -> None:
    loop(chat, 2)
    chat.checkpoint("here")
    chat.append([opening("Try X."), {"role": "assistant", "content": "X fails."}])
    turn = 4
    chat.rewind("here", report="X fails")
    (trace,) = mf.audit(chat).trace(turn=turn)
    assert [step.kind for step in trace.steps] == ["message", "move"] and trace.steps[-1].forms == {"branch": 1}


# Claims


def test_evidence_resolves_after_five_compactions_as_after_none(tmp_path: Path) -> None:
    told = []
    for budget in (500_000, 9_000):
        with Record.open(tmp_path / f"{budget}.mf") as record:
            chat = record.conversation("x")
            calls = loop(chat, 6, budget=budget)
            first = chat.claim("it is the cache", rests_on=[("query", calls[1]), ("execution", calls[2])])
            second = chat.claim("so evict", rests_on=[("check", first), ("document", calls[3])])
            loop(chat, 20, first=20, budget=budget)
            assert len(chat.state().compactions) >= 5 or budget == 500_000
            evidence = mf.audit(chat).evidence(second)
            told.append([(each.kind, each.turn, each.what, each.text, each.branch) for each in evidence.links])
            assert [each.of for each in evidence.links] == [second.id, second.id, first.id, first.id]
            with pytest.raises(mf.BadInput):
                mf.audit(chat).evidence(calls[0])
            fork = chat.fork("y")
            copied = mf.audit(fork).evidence(fork.thread.claims()[-1])
            assert [(each.kind, each.turn) for each in copied.links] == [(each[0], each[1]) for each in told[-1]]
    assert told[0] == told[1]


# Twins


def life_of_twin(chat: Conversation, compacted: bool) -> None:
    """The same session on two branches, compacted on the way or never."""

    def grow(rounds: int, first: int) -> None:
        for at in range(first, first + rounds):
            fit = chat.context(model=MODEL, budget=9_000 if compacted else 500_000)
            chat.append(round_(at), context=fit)

    chat.append(opening())
    grow(8, 0)
    chat.checkpoint("fork here")
    grow(10, 100)
    chat.rewind("fork here", report="no use")
    chat.pin("Only read.")
    grow(10, 200)


def test_twins_audit_alike_but_for_events(tmp_path: Path) -> None:
    reports, traces, recalls = [], [], []
    for compacted in (True, False):
        with Record.open(tmp_path / f"{compacted}.mf") as record:
            chat = record.conversation("twin")
            life_of_twin(chat, compacted)
            passes = [entry for entry in record.entries() if entry.kind == "compaction"]
            assert len(passes) >= 5 if compacted else not passes
            report = mf.audit(chat).report().to_dict()
            assert report["sound"]
            reports.append(report["turns"])
            others = [(e["kind"], e["what"]) for e in report["events"] if e["kind"] != "compaction"]
            traces.append([(kind, what) for kind, what in others if kind != "move"])
            recalls.append([chat.recall(turn["number"]) for turn in report["turns"]])
    assert reports[0] == reports[1] and recalls[0] == recalls[1] and traces[0] == traces[1]


def test_a_report_holds_both_truths(chat: Conversation) -> None:
    calls = loop(chat, 20, budget=9_000)
    report = mf.audit(chat).report(at=calls[-1])
    data = json.loads(json.dumps(report.to_dict()))
    assert data["sound"] and data["seen"]["proven"] and data["not_considered"]
    assert [turn["number"] for turn in data["turns"]] == list(range(1, 22))
    told = [event for event in data["events"] if event["kind"] == "compaction"]
    assert len(told) == len(chat.state().compactions)
    drawn = {page["digest"] for event in told for page in event["told"]["pages"]}
    assert {sheet.digest for sheet in chat.state().sheets} <= drawn
    text = str(report)
    assert "proven by its digest" in text and all(event["what"] in text for event in told)


# Closure


def texts_of(seen: Seen) -> list[str]:
    """Every text in the messages of a context, read from what is sent."""
    out = []
    for message in formats.read(seen.messages, seen.wire).messages:
        for part in message.parts:
            match part:
                case Text() | ToolResult():
                    out.append(part.text)
                case ToolCall():
                    out.append(part.arguments)
                case _:
                    pass
    return out


def shown(seen: Seen) -> Iterator[tuple[bytes, int]]:
    """The pages that the messages hold, with their numbers."""
    numbers = {page: sheet.number for page, sheet in zip(seen.pages, seen.sheets, strict=True)}
    for message in formats.read(seen.messages, seen.wire).messages:
        for part in message.parts:
            for each in part.parts if isinstance(part, ToolResult) else (part,):
                if isinstance(each, Image) and each.data in numbers:
                    yield each.data, numbers[each.data]


def check_closure(audit: Audit, call: int, chat: Conversation) -> None:
    """Every part of the path is in the context as it was, or is named with its form and the event that did it."""
    seen = audit.context_at(call)
    assert seen.proven and seen.redrawn
    missing = {each.key: each for each in audit.not_considered(call)}
    texts = texts_of(seen)
    images = {
        each.digest
        for message in formats.read(seen.messages, seen.wire).messages
        for part in message.parts
        for each in (part.parts if isinstance(part, ToolResult) else (part,))
        if isinstance(each, Image)
    }
    pages = {number: mf.read_back(page) for page, number in shown(seen)}
    path = [entry for entry in chat.thread.path(seen.at) if entry.message is not None]
    events = {entry.id: entry.kind for entry in chat.record.entries(1, call)}
    for entry in path:
        assert entry.message is not None
        for at, part in enumerate(entry.message.parts):
            for inner, each in [(-1, part), *_images(part)]:
                told = missing.pop((entry.id, at, inner), None)
                _check_part(each, told, texts, images, pages, events)
    for each in missing.values():
        assert each.form == "branch" and events[each.event] == "move" and each.event < call


def _images(part: Part) -> Iterator[tuple[int, Part]]:
    if isinstance(part, ToolResult):
        yield from ((at, each) for at, each in enumerate(part.parts) if isinstance(each, Image))


def _check_part(
    part: Part,
    told: Reduced | None,
    texts: list[str],
    images: set[str],
    pages: dict[int, str],
    events: dict[int, str],
) -> None:
    text = part.arguments if isinstance(part, ToolCall) else getattr(part, "text", "")
    if told is None:
        match part:
            case Image():
                assert part.digest in images
            case ToolCall():
                assert any(json.loads(part.arguments) == _loaded(each) for each in texts)
            case Text() | ToolResult():
                assert any(text in each for each in texts)
            case Reasoning() | Opaque():
                pass
        return
    assert told.form in FORMS
    assert events[told.event] in ("compaction", "undo", "message", "failure")
    if told.form == "page" and isinstance(part, Text | ToolResult | ToolCall) and not told.why:
        assert told.pages and text in "".join(pages[number] for number in told.pages)
    if told.form in ("omitted", "summary", "page", "placeholder") and isinstance(part, Text) and len(text) > 40:
        assert not any(text in each for each in texts)
    if isinstance(part, Image) and told.form in ("marker", "omitted", "summary"):
        assert part.digest not in images


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


class Life:
    """A conversation that lives at random, and the calls that it made."""

    def __init__(self, record: Record, seed: int) -> None:
        self.record = record
        self.source = random.Random(seed)
        self.chats = [record.conversation("0")]
        self.calls: list[tuple[Conversation, int]] = []
        self.made = 0
        self.chats[0].append(opening("Begin with this one."))

    def options(self) -> dict[str, Any]:
        source = self.source
        wire = source.choice(("anthropic",) * 6 + builders.WIRES)
        model = {"anthropic": MODEL, "gemini": "gemini-3.6-flash"}.get(wire, GPT)
        more: dict[str, Any] = {"tools": mf.tools(wire)} if source.random() < 0.5 else {}
        if source.random() < 0.5:
            more["system"] = "Be brief."
        return {"model": model, "format": wire, "budget": source.choice((7_000, 9_000, 14_000, 40_000)), **more}

    def story(self, size: int) -> builders.Story:
        """A stretch in texts that stand nowhere else."""
        source = self.source
        self.made += 100
        story = builders.Story(calls=self.made)
        for at in range(self.made, self.made + size):
            kind = source.randrange(6)
            text = f"of {at}:\n{builders.code(at, source.choice((300, 3_000, 9_000)))}"
            if kind == 0:
                story.user(f"wish {at}: {builders.prose(at, 30)}").says(f"yes {at}: {builders.prose(-at, 20)}")
            elif kind == 1:
                picture = builders.png(200 + at % 50, 100, noise=at)
                story.uses(("shot", {"at": at}, (f"seen {at}", picture)), thinking=f"hm {at}")
            elif kind == 2:
                story.read(f"src/{at % 3}.py", text)
            elif kind == 3:
                story.uses(("run", {"command": f"a {at}"}, text), ("run", {"command": f"b {at}"}, f"ok {at}"))
            else:
                story.uses(("run", {"command": f"c {at}"}, text, kind == 4), text=f"now {at}, {builders.prose(at, 9)}")
        return story

    def step(self) -> None:
        source = self.source
        chat = source.choice(self.chats)
        usual = ("call",) * 9 + ("grow",) * 4 + ("compact", "compact", "shake", "undo", "pin", "resume", "fail")
        act = source.choice((*usual, *usual, "unpin", "branch", "fork", "checkpoint", "rewind"))
        with suppress(mf.NothingToCompact, mf.CannotFit, mf.NoSuchEntry, mf.Gone, mf.PinsTooLarge):
            getattr(self, act)(chat)

    def call(self, chat: Conversation) -> None:
        options = self.options()
        pending = builders.Story().user(f"ask {self.made}: {builders.prose(self.made, 12)}").native(options["format"])
        pending = pending if self.source.random() < 0.4 else []
        fit = chat.context(pending=pending or None, **options)
        native = self.story(1).native(options["format"])
        if native[0].get("role") == "user":
            chat.append([*pending, *native], format=options["format"])
            return
        entries = chat.append([*pending, *native], context=fit, format=options["format"])
        answer = next(entry for entry in entries if entry.message is not None and entry.message.role == "assistant")
        self.calls.append((chat, answer.id))

    def fail(self, chat: Conversation) -> None:
        fit = chat.context(**self.options())
        self.calls.append((chat, chat.fail(ConnectionError("reset"), context=fit).id))

    def grow(self, chat: Conversation) -> None:
        chat.append(self.story(self.source.randrange(1, 6)).native("anthropic"), format="anthropic")

    def compact(self, chat: Conversation) -> None:
        entry = chat.compact(**self.options()).entry
        self.calls.append((chat, entry or 0))

    def shake(self, chat: Conversation) -> None:
        chat.shake(**self.options())

    def undo(self, chat: Conversation) -> None:
        chat.undo()

    def branch(self, chat: Conversation) -> None:
        bounds = [entry.id for entry in chat.thread.path() if not entry.open and (entry.turn or 0) > 0]
        chat.branch(self.source.choice(bounds))

    def fork(self, chat: Conversation) -> None:
        if len(self.chats) < 3:
            self.chats.append(chat.fork(str(len(self.chats))))

    def pin(self, chat: Conversation) -> None:
        chat.pin(f"pin {self.made}: {builders.prose(self.made, 12)}")

    def unpin(self, chat: Conversation) -> None:
        chat.unpin(self.source.choice(chat.pins() or [0]))

    def checkpoint(self, chat: Conversation) -> None:
        chat.checkpoint("mark")

    def rewind(self, chat: Conversation) -> None:
        chat.rewind("mark", report=f"report {self.made}: {builders.prose(self.made, 12)}")

    def resume(self, chat: Conversation) -> None:
        chat.resume(**self.options())


def live(path: Path, seed: int, steps: int) -> int:
    with Record.open(path) as record:
        life = Life(record, seed)
        for _ in range(steps):
            life.step()
        assert record.verify(derived=True)
        for chat, call in life.calls:
            check_closure(Audit(chat), call, chat)
        for chat in life.chats:
            for entry in chat.thread.path():
                if "asked" in entry.payload:
                    assert Audit(chat).context_at(entry).proven
        return len(life.calls)


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 1 << 32))
def test_nothing_is_missing_without_an_event(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    live(tmp_path_factory.mktemp("life") / "work.mf", seed, 24)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(60))
def test_many_lives(tmp_path: Path, seed: int) -> None:
    live(tmp_path / "work.mf", seed, 60)
