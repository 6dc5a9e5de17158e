"""A conversation lives on its record: the agent's loop, passes, refusals, the tree, going on after a restart."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import builders
import microfiche as mf
import pytest
from microfiche import errors
from microfiche.auditing import audit
from microfiche.conversation import Conversation, Record

MODEL = "claude-haiku-4-5"


def opening(text: str = "Find the leak.") -> dict[str, Any]:
    return {"role": "user", "content": text}


def round_(at: int, size: int = 4_000, *, parallel: int = 1) -> list[dict[str, Any]]:
    """One assistant message with calls and the message that answers them all."""
    calls, results = [], []
    for each in range(parallel):
        id = f"toolu_{at}_{each}"
        calls.append({"type": "tool_use", "id": id, "name": "ask", "input": {"topic": f"{at} {each}"}})
        text = " ".join(f"w{at}x{each}x{i}" for i in range(size // 9))
        results.append({"type": "tool_result", "tool_use_id": id, "content": text})
    return [{"role": "assistant", "content": calls}, {"role": "user", "content": results}]


@pytest.fixture
def record(tmp_path: Path) -> Any:
    with Record.open(tmp_path / "work.mf") as opened:
        yield opened


@pytest.fixture
def chat(record: Record) -> Conversation:
    return record.conversation("triage")


def grown(chat: Conversation, rounds: int, first: int = 0) -> None:
    if chat.tip is None:
        chat.append(opening())
    for at in range(first, first + rounds):
        chat.append(round_(at, parallel=1 + at % 2))


def test_under_the_threshold_the_messages_come_back(chat: Conversation) -> None:
    grown(chat, 3)
    fit = chat.context(model=MODEL)
    assert fit.messages == [opening(), *(m for at in range(3) for m in round_(at, parallel=1 + at % 2))]
    assert not chat.state().events


def test_what_a_pass_makes_is_refused_before_it_is_on_record_and_never_after(chat: Conversation) -> None:
    """Kind: one message that makes every later context fail; a tool's result may be any text whatever."""
    grown(chat, 40)
    made = chat.context(model=MODEL, budget=20_000)
    assert made.pages
    tip = chat.tip
    with pytest.raises(mf.OwnOutput):
        chat.append(made.messages)
    with pytest.raises(mf.OwnOutput):
        chat.context(model=MODEL, pending=[made.messages[1]])
    assert chat.tip == tip
    turn = chat.append(opening("Go on."))[0].turn or 0
    where = f"recall of turn {turn + 1} returns them"
    line = f"[1,234 characters of this ask result left out: a write that succeeded; {where}]"
    chat.append([round_(50)[0], {"role": "user", "content": [{**round_(50)[1]["content"][0], "content": line}]}])
    assert chat.recall(turn + 1)[1]["content"][0]["content"] == line
    for budget in (None, 20_000):
        assert not mf.validate(chat.context(model=MODEL, budget=budget).request)
    page = made.pages[0]
    picture = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(page.png).decode()}
    with pytest.raises(mf.OwnOutput, match="a page of ours"):
        chat.append({"role": "user", "content": [{"type": "image", "source": picture}]})


@pytest.mark.parametrize("reports", [False, True])
def test_the_loop_survives_a_wall(chat: Conversation, record: Record, reports: bool) -> None:
    """The design's loop against a model that refuses, answers with parallel calls, and ends."""
    window = 40_000

    def send(request: dict[str, Any]) -> tuple[int, Any]:
        true = int(mf.count(request, model=MODEL) * 1.3)
        if true > window:
            return 400, {
                "error": {
                    "type": "invalid_request_error",
                    "message": f"prompt is too long: {true} tokens > {window} maximum",
                }
            }
        assert not mf.validate(request, model=MODEL)
        return 200, true

    chat.append(opening())
    recovered = 0
    for at in range(60):
        fit = chat.context(model=MODEL, budget=38_000, max_tokens=2_000)
        while True:
            status, answer = send(fit.request)
            if status == 200:
                break
            fit = chat.recover((status, answer), context=fit)
            recovered += 1
        for call in round_(at)[0]["content"]:
            chat.started(call)
        chat.append(round_(at), context=fit, usage={"input_tokens": answer} if reports else None)
    # Once refused it knows the ratio: the wall is met once, not sixty times. Who is told the true size never meets it.
    assert recovered == (not reports)
    assert chat.ratio(MODEL) == pytest.approx(1.0 if reports else 1.3, rel=0.01)
    assert record.verify()
    assert len(chat.state().events) >= 2


def test_the_third_refusal_in_a_row_ends_it(chat: Conversation) -> None:
    grown(chat, 30)
    told = (400, {"error": {"message": "prompt is too long"}})
    fit = chat.context(model=MODEL)
    fit = chat.recover(told, context=fit)
    fit = chat.recover(told, context=fit)
    with pytest.raises(mf.CannotFit):
        chat.recover(told, context=fit)
    chat.append(round_(99), context=fit)
    fit = chat.context(model=MODEL)
    assert chat.recover(told, context=fit).tokens < fit.tokens


@pytest.mark.parametrize("numbers", ["both", "limit", "none"])
@pytest.mark.parametrize("share", [0.05, 0.5])
def test_a_small_window_is_learnt_for_good(chat: Conversation, numbers: str, share: float) -> None:
    """Kind: a window below that of the catalogue, learnt at the first refusal and run into again at every call."""
    grown(chat, 30)
    window = int(share * mf.count(chat.context(model=MODEL).request, model=MODEL))

    def send(request: dict[str, Any]) -> tuple[int, Any] | None:
        used = int(mf.count(request, model=MODEL) * 1.2)
        words = {
            "both": f"prompt is too long: {used} tokens > {window} maximum",
            "limit": f"the request exceeds the maximum context length of {window} tokens",
            "none": "prompt is too long",
        }
        return (400, {"error": {"message": words[numbers]}}) if used > window else None

    refused = []
    for at in range(100, 105):
        refused.append(0)
        while True:
            fit = chat.context(model=MODEL, max_tokens=500)
            if (error := send(fit.request)) is None:
                break
            refused[-1] += 1
            made = chat.recover(error, context=fit)
            # What is asked for again is what the recovery made.
            assert chat.context(model=MODEL, max_tokens=500).digest == made.digest
        chat.append(round_(at, 400), context=fit)
    assert 1 <= refused[0] <= 2 and max(refused[1:]) <= 2
    assert sum(refused[1:]) <= (0 if numbers == "both" else 4), refused
    assert chat.learnt("claude-haiku-4-5").budget is not None


def test_a_limit_of_bytes_is_learnt_for_good(chat: Conversation) -> None:
    """Kind: pages, which have many bytes, drawn again after a refusal for bytes, and refused again."""
    grown(chat, 30)
    refused = []
    for at in range(100, 103):
        refused.append(0)
        while True:
            fit = chat.context(model=MODEL, budget=40_000, max_tokens=500)
            wrote = len(json.dumps(fit.request))
            if wrote <= 100_000:
                break
            refused[-1] += 1
            chat.recover((413, "<html><h1>413 Request Entity Too Large</h1>nginx</html>"), context=fit)
        chat.append(round_(at, 400), context=fit)
    assert 1 <= refused[0] <= 2 and not any(refused[1:]), refused


def test_a_preview_of_a_recovery_records_nothing(chat: Conversation) -> None:
    grown(chat, 30)
    told = mf.Refusal("tokens", 90_000, 30_000)
    fit, before = chat.context(model=MODEL), chat.record.head
    made = chat.preview_recovery(told, fit)
    assert chat.record.head == before
    assert chat.recover(told, fit).digest == made.digest


def test_an_answer_that_was_cut_silently_is_a_refusal(chat: Conversation) -> None:
    grown(chat, 30)
    fit = chat.context(model=MODEL)
    answer = {"usage": {"prompt_tokens": 4_096, "completion_tokens": 5}, "choices": [{"message": {"content": "hm"}}]}
    assert chat.recover(answer, fit).tokens < 4_096


def test_pages_stay_from_pass_to_pass_and_over_a_restart(tmp_path: Path) -> None:
    digests: list[str] = []
    for lap in range(5):
        with Record.open(tmp_path / "work.mf") as record:
            chat = record.conversation("triage")
            grown(chat, 12, first=12 * lap)
            chat.context(model=MODEL, budget=25_000)
            archive = chat.state().plan.archive
            assert archive is not None
            now = [page.digest for page in archive.full]
            assert now[: len(digests)] == digests and len(now) > len(digests)
            digests = now
            assert record.verify()


def test_a_compaction_records_what_changed_not_the_history(chat: Conversation) -> None:
    grown(chat, 40)
    chat.context(model=MODEL, budget=30_000)
    grown(chat, 6, first=40)
    chat.context(model=MODEL, budget=30_000)
    first, second = chat.state().events
    assert len(str(second.payload)) < len(str(first.payload))
    # The glyphs of the pages are a blob, which the record keeps once.
    written = {name: value for name, value in first.payload.items() if name != "atlases"}
    assert len(str(written)) < 0.1 * len(str([chat.recall(turn) for turn in range(1, 40)]))


@pytest.mark.parametrize("what", ["move", "append", "rewind"])
def test_a_pass_is_recorded_on_the_path_that_it_was_made_of_or_not_at_all(record: Record, what: str) -> None:
    """Kind: a pass prepared on one branch and written on another, which no context could be made of any more."""
    chat = record.conversation("slow")
    grown(chat, 60)
    early = list(chat.thread.path(chat.tip))[4]
    assert early.message is not None
    chat.branch(early.id)
    chat.checkpoint("early")
    chat.branch(max(entry.id for entry in record.entries(kind="message")))

    def meanwhile(request: Any) -> str:
        if what == "move":
            chat.branch(early.id)
        elif what == "rewind":
            chat.rewind("early", "It was the other pump.")
        else:
            chat.append(opening("One more thing."))
        return f"- fact: it was summed up (turn {request.turns[0]})"

    policy = mf.Policy(rungs=("summary", "omit"))
    with pytest.raises(mf.Conflict):
        chat.context(model=MODEL, budget=12_000, policy=policy, summarize=meanwhile)
    assert not chat.state().compactions
    assert record.verify()
    fit = chat.context(model=MODEL, budget=12_000)
    assert not mf.validate(fit.request)
    assert what != "append" or "One more thing." in str(fit.messages)


def test_a_pass_by_hand_that_does_nothing_records_nothing(chat: Conversation) -> None:
    """Kind: told that nothing was compacted, and the plan before was gone: a larger budget makes a new one."""
    grown(chat, 40)
    small = chat.context(model=MODEL, budget=20_000)
    assert small.plan
    tip, entries = chat.tip, len(list(chat.record.entries()))
    for what in ("elide", "images", "reasoning", None):
        with pytest.raises(mf.NothingToCompact):
            chat.shake(what, model=MODEL)
    assert (chat.tip, len(list(chat.record.entries()))) == (tip, entries)
    assert chat.context(model=MODEL, budget=20_000).digest == small.digest


def test_undo_gives_the_turns_back_and_later_passes_spare_them(chat: Conversation) -> None:
    grown(chat, 24)
    before = chat.context(model=MODEL, budget=200_000).digest
    fit = chat.compact(model=MODEL, budget=200_000)
    assert fit.pages
    chat.undo()
    assert chat.context(model=MODEL, budget=200_000).digest == before
    first, last = chat.state().spared[0]
    grown(chat, 4, first=24)
    again = chat.context(model=MODEL, budget=160_000)
    archive = again.plan.archive
    assert archive is None or archive.last < first or archive.first > last


def test_nothing_to_compact_says_why(chat: Conversation) -> None:
    with pytest.raises(mf.NothingToCompact) as empty:
        chat.compact(model=MODEL)
    assert empty.value.reason == "empty"
    chat.append(opening())
    chat.append(round_(0))
    with pytest.raises(mf.NothingToCompact) as recent:
        chat.compact(model=MODEL)
    assert recent.value.reason == "all_recent"
    grown(chat, 20, first=1)
    chat.compact(model=MODEL)
    with pytest.raises(mf.NothingToCompact) as new:
        chat.compact(model=MODEL)
    assert new.value.reason == "nothing_new"
    with pytest.raises(mf.NothingToCompact) as off:
        chat.compact(model=MODEL, policy=mf.Policy(rungs=()))
    assert off.value.reason == "disabled"


def test_pins_stand_in_every_context_until_unpinned(chat: Conversation) -> None:
    grown(chat, 4)
    pin = chat.pin("A leak is memory that grows for an hour.", kind="definition")
    for budget in (100_000, 20_000, 12_000):
        grown(chat, 6, first=10 + budget)
        fit = chat.context(model=MODEL, budget=budget)
        assert str(fit.messages).count("[definition] A leak is memory that grows for an hour.") == 1
    assert [each.text for each in chat.pins("definition")] == [pin.text]
    chat.unpin(pin)
    assert "grows for an hour" not in str(chat.context(model=MODEL, budget=12_000).messages)
    with pytest.raises(mf.PinsTooLarge, match="unpin"):
        chat.pin("x" * 20_000)
    chat.pin("x" * 2_000)
    with pytest.raises(mf.PinsTooLarge, match="unpin"):
        chat.context(model=MODEL, budget=4_000)


def test_branching_moves_the_tip_and_siblings_feel_nothing(chat: Conversation) -> None:
    grown(chat, 20)
    fork_point = chat.tip
    chat.append(opening("Try the allocator."))
    a = chat.tip
    digest_a = chat.context(model=MODEL, budget=100_000).digest
    chat.branch(fork_point)
    chat.append(opening("Try the cache."))
    chat.compact(model=MODEL, budget=100_000)
    b = chat.tip
    digest_b = chat.context(model=MODEL, budget=100_000).digest
    chat.branch(a)
    assert chat.context(model=MODEL, budget=100_000).digest == digest_a
    chat.branch(b)
    assert chat.context(model=MODEL, budget=100_000).digest == digest_b


def test_a_fork_has_entries_of_its_own_and_the_same_context(chat: Conversation) -> None:
    grown(chat, 30)
    chat.pin("keep me")
    chat.context(model=MODEL, budget=25_000)
    other = chat.fork("triage-b")
    again = other.fork("triage-c")
    want = chat.context(model=MODEL, budget=25_000).digest
    assert other.context(model=MODEL, budget=25_000).digest == want == again.context(model=MODEL, budget=25_000).digest
    chat.append(opening("only here"))
    assert "only here" not in str(other.context(model=MODEL, budget=25_000).messages)
    assert {e.id for e in chat.thread.path()}.isdisjoint(e.id for e in other.thread.path())
    assert chat.record.verify()


def test_rewind_returns_with_a_report(chat: Conversation) -> None:
    grown(chat, 3)
    chat.checkpoint("before refactor")
    want = chat.context(model=MODEL).messages
    grown(chat, 4, first=3)
    planned = chat.tip
    done = chat.rewind("before refactor", report="tried X; failed because Y", planned_on=planned)
    assert done.turns_left == 4
    messages = chat.context(model=MODEL).messages
    assert messages[: len(want)] == want
    assert "tried X; failed because Y" in str(messages[len(want) :])
    with pytest.raises(mf.Stale):
        chat.rewind("before refactor", planned_on=planned)
    assert chat.rewind("before refactor").turns_left == 1


def test_resume_trims_and_loses_labels_by_event(tmp_path: Path) -> None:
    with Record.open(tmp_path / "work.mf") as record:
        chat = record.conversation("triage")
        grown(chat, 5)
        chat.checkpoint("early")
        grown(chat, 60, first=5)
    with Record.open(tmp_path / "work.mf") as record:
        chat = record.conversation("triage")
        fit = chat.resume(model=MODEL, budget=8_000, policy=mf.Policy(rungs=("omit",)))
        assert fit.tokens <= 8_000
        assert any(entry.kind == "trim" for entry in chat.thread.path())
        with pytest.raises(mf.Gone):
            chat.rewind("early")
        assert chat.context(model=MODEL, budget=8_000, policy=mf.Policy(rungs=("omit",))).tokens <= 8_000
        assert record.verify()


def test_a_trim_holds_for_larger_budgets_and_other_models_until_its_pass_is_undone(chat: Conversation) -> None:
    grown(chat, 60)
    chat.pin("stays")
    fit = chat.resume(model=MODEL, budget=8_000, policy=mf.Policy(rungs=("omit",)))
    (gone,) = fit.plan.omitted
    passes = len(chat.state().compactions)
    for asked in (
        {"model": MODEL, "budget": 150_000},
        {"model": "gpt-5.4"},
        {"model": "gemini-3-pro", "budget": 90_000},
    ):
        fit = chat.context(**asked)
        assert fit.plan.omitted == (gone,) and "stays" in str(fit.messages)
        assert not mf.validate(fit.request, fit.receipt.format)
        answer = chat.append({"role": "assistant", "content": f"for {asked}"}, context=fit)[0]
        seen = audit(chat)
        assert seen.context_at(answer).proven
        assert {each.form for each in seen.not_considered(answer) if gone[0] <= each.turn <= gone[1]} == {"omitted"}
        chat.append({"role": "user", "content": "Go on."})
    assert chat.fork("f").context(model=MODEL).plan.omitted == (gone,)
    while len(chat.state().compactions) >= passes:
        chat.undo()
    assert not chat.state().trims and not chat.context(model=MODEL, budget=150_000).plan.omitted


def test_retry_after_a_restart(tmp_path: Path) -> None:
    with Record.open(tmp_path / "work.mf") as record:
        chat = record.conversation("triage")
        with pytest.raises(mf.NothingLoaded):
            chat.retry()
        grown(chat, 2)
        with pytest.raises(mf.NothingToRetry):
            chat.retry()
        fit = chat.context(model=MODEL, system="be brief", max_tokens=500)
        chat.fail(ConnectionError("reset by peer"), context=fit)
    with Record.open(tmp_path / "work.mf") as record:
        chat = record.conversation("triage")
        again = chat.retry()
        assert again.digest == fit.digest and again.request == fit.request


def test_every_error_can_be_caught_by_its_public_name() -> None:
    for name, each in vars(errors).items():
        if isinstance(each, type) and issubclass(each, mf.MicroficheError):
            assert getattr(mf, name) is each and name in mf.__all__


def test_an_open_call_is_named(chat: Conversation) -> None:
    chat.append(opening())
    with pytest.raises(mf.TurnOpen, match="toolu_0_0"):
        chat.append(round_(0)[:1])


def test_two_writers_one_wins(tmp_path: Path) -> None:
    with Record.open(tmp_path / "work.mf") as one, Record.open(tmp_path / "work.mf") as two:
        a, b = one.conversation("triage"), two.conversation("triage")
        a.append(opening())
        with pytest.raises(mf.Conflict) as lost:
            b.append(opening("no, mine"))
        assert lost.value.tip == a.tip


def test_recall_is_the_original(chat: Conversation) -> None:
    grown(chat, 30)
    chat.context(model=MODEL, budget=20_000)
    assert chat.recall(5) == round_(3, parallel=2)
    assert [hit.turn for hit in chat.search("w7x1x3")] == [9]


def test_a_switch_of_models_makes_a_new_plan(chat: Conversation) -> None:
    grown(chat, 30)
    claude = chat.context(model=MODEL, budget=20_000)
    gpt = chat.context(model="gpt-5.6-sol", budget=20_000, format="openai_chat")
    assert gpt.pages and gpt.pages[0].height != claude.pages[0].height
    assert not mf.validate(gpt.request, "openai_chat")
    assert chat.recall(5) == round_(3, parallel=2)


def test_a_pass_over_a_path_that_skips_numbers(chat: Conversation) -> None:
    grown(chat, 10)
    chat.append({"role": "assistant", "content": "Two ways from here."})
    chat.checkpoint("here")
    grown(chat, 8, first=10)
    chat.rewind("here", report="no use " * 600)
    fit = chat.compact(model=MODEL, budget=9_000, policy=mf.Policy(tail_tokens=1))
    *_, last, report = sorted({entry.turn for entry, _ in chat.state().messages})
    assert report > last + 1 and fit.plan.archive is not None and fit.plan.archive.last == last
    # The plan holds for the pass after it.
    chat.append({"role": "assistant", "content": "Then the cache."})
    assert chat.context(model=MODEL, budget=9_000).plan.archive == fit.plan.archive


def test_a_picture_that_was_dropped_is_recalled_and_its_pages_are_drawn_again_after_a_restart(tmp_path: Path) -> None:
    shot = builders.png(300, 200, noise=7)
    with Record.open(tmp_path / "work.mf") as record:
        chat = record.conversation("triage")
        chat.append(builders.Story().user("Look.").uses(("shot", {}, ("seen", shot))).native("anthropic"))
        grown(chat, 24)
        fit = chat.compact(model=MODEL, budget=20_000, policy=mf.Policy(screenshots=0))
        sent = [page.png for page in fit.pages]
        assert sent and builders._b64(shot) not in json.dumps(fit.messages)
    with Record.open(tmp_path / "work.mf") as record:
        chat = record.conversation("triage")
        assert builders._b64(shot) in json.dumps(chat.recall(2))
        again = chat.context(model=MODEL, budget=20_000, policy=mf.Policy(screenshots=0))
        assert again.digest == fit.digest and [page.png for page in again.pages] == sent
