"""Faults that were reported of other tools, in the life of a session around its passes: none of them is one here.

Each test names its kind; the judge says whether what was sent could be sent.
"""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import builders
import microfiche as mf
import pytest
from judged import MODELS, accepted
from microfiche import formats
from microfiche.conversation import Conversation, Record

OPUS = MODELS["anthropic"]
STUBS = formats.tools.stubs(["read_file", "run", "deploy", "screenshot"], "anthropic")[0]


def shot(data: bytes) -> dict[str, Any]:
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(data).decode("ascii")}
    return {"type": "image", "source": source}


def digests(fit: mf.Context) -> list[str]:
    archive = fit.plan.archive
    return [page.digest for page in archive.full] if archive is not None else []


# ---------------------------------------------------------------- calls and results


@pytest.mark.parametrize("wire", builders.WIRES)
def test_what_stood_in_for_a_result_leaves_with_its_call(wire: str) -> None:
    """Kinds: a synthetic "missing result" that outlives its call; one spelled in the words of another provider."""
    story = builders.Story().user("Go.").uses(("run", {"command": "lost"}, "never"), answered=False)
    story.events += builders.rounds(30, 3_000).events
    for budget in (60_000, 12_000, 5_000):
        fit = mf.compact(story.native(wire), model=MODELS[wire], budget=budget, max_tokens=500, format=wire)
        tools = formats.tools.stubs(["read_file", "run"], wire)[0]
        accepted({**fit.request, "tools": tools}, wire)


def test_half_a_batch_is_no_turn_and_breaks_nothing(chat: Conversation) -> None:
    """Kinds: a pass between two results of one batch, and then two results of one id; ids of calls kept in memory."""
    chat.append(builders.rounds(20, 3_000).native("anthropic"))
    story = builders.Story(calls=100).uses(("run", {"command": "a"}, "one"), ("run", {"command": "b"}, "two"))
    call, results = story.native("anthropic")
    half = [call, {**results, "content": results["content"][:1]}]
    before = chat.record.head
    with pytest.raises(mf.TurnOpen, match="toolu_0102"):
        chat.append(half)
    assert chat.record.head == before
    fit = chat.context(model=OPUS, budget=12_000, tools=STUBS, pending=half)
    accepted(fit.request)
    chat.append([call, results])
    fit = chat.context(model=OPUS, budget=12_000, tools=STUBS)
    accepted(fit.request)
    text = json.dumps(fit.request)
    assert [text.count(f'"tool_use_id": "toolu_010{at}"') for at in (1, 2)] == [1, 1]


def test_a_call_that_waits_for_its_user_can_be_answered_after_a_pass(chat: Conversation) -> None:
    """Kinds: a call that waits for a confirmation is compacted away, and the answer fits nothing; a chain in flight."""
    chat.append(builders.rounds(30, 3_000).native("anthropic"))
    story = builders.Story(calls=100).uses(("deploy", {"to": "prod"}, "done"))
    call, result = story.native("anthropic")
    waiting = chat.context(model=OPUS, budget=12_000, tools=STUBS, pending=[call])
    assert waiting.plan and "toolu_0101" in json.dumps(waiting.request)
    chat.append([call, result])
    fit = chat.context(model=OPUS, budget=12_000, tools=STUBS)
    accepted(fit.request)
    assert json.dumps(fit.messages).count('"toolu_0101"') == 2


def test_a_request_for_a_summary_is_text_alone() -> None:
    """Kind: the request for the summary itself begins with a result whose call was cut, and is refused."""
    asked: list[mf.SummaryRequest] = []

    def summarize(request: mf.SummaryRequest) -> str:
        asked.append(request)
        return "- fact: files were read (turn 3)"

    native = builders.rounds(40, 3_000).native("openai_chat")
    fit = mf.compact(native, model="o3-mini", budget=12_000, summarize=summarize, format="openai_chat")
    assert asked and fit.receipt.summary_calls == len(asked)
    for each in asked:
        accepted({"model": OPUS, "max_tokens": 1_000, "messages": [{"role": "user", "content": each.prompt}]})


# ---------------------------------------------------------------- passes


def test_a_second_pass_over_the_same_history_is_none(chat: Conversation) -> None:
    """Kinds: a pass takes the same head again; twice triggered, and a session dead; "no change" leaves it busy."""
    chat.append(builders.rounds(40, 3_000).native("anthropic"))
    first = chat.context(model=OPUS, budget=20_000, tools=STUBS)
    head = chat.record.head
    for _ in range(3):
        again = chat.context(model=OPUS, budget=20_000, tools=STUBS)
        assert again.digest == first.digest and chat.record.head == head
    for _ in range(2):
        with pytest.raises(mf.NothingToCompact):
            chat.compact(model=OPUS, budget=20_000, tools=STUBS)
    assert chat.record.head == head
    accepted(chat.context(model=OPUS, budget=20_000, tools=STUBS).request)


def test_nothing_below_the_last_rung_asks_a_model(chat: Conversation) -> None:
    """Kinds: /compact needs the model that has just overflowed; a pass said to need none sends it all to a provider."""

    def down(request: mf.SummaryRequest) -> str:
        raise AssertionError("a model was asked")

    story = builders.rounds(40, 3_000)
    story.uses(*[("screenshot", {}, ("seen", builders.png(600, 400, noise=at))) for at in range(6)])
    chat.append(story.user("Go on.").native("anthropic"))
    fit = chat.compact(model=OPUS, tools=STUBS, summarize=down)
    assert fit.pages and fit.receipt.summary_calls == 0
    told = (400, {"error": {"message": "prompt is too long"}})
    again = chat.recover(told, chat.context(model=OPUS, tools=STUBS, summarize=down))
    assert again.tokens < fit.tokens and again.receipt.summary_calls == 0


def test_what_is_appended_during_a_pass_is_kept(chat: Conversation, tmp_path: Path) -> None:
    """Kinds: a pass overwrites what was appended meanwhile; planned on one branch and put on another."""
    chat.append(builders.rounds(30, 3_000).native("anthropic"))
    with Record.open(tmp_path / "work.mf") as other:
        twin = other.conversation("triage")
        made = chat.preview(model=OPUS, budget=12_000)
        twin.append([{"role": "assistant", "content": "Meanwhile."}, {"role": "user", "content": "And now?"}])
        with pytest.raises(mf.Conflict):
            chat._taken(made, "threshold")
        assert not twin.state().events
        chat.thread.refresh()
        fit = chat.context(model=OPUS, budget=12_000)
        assert "And now?" in str(fit.messages)


def test_a_move_between_plan_and_pass_is_a_conflict(chat: Conversation, tmp_path: Path) -> None:
    """Kind: a pass is prepared on one branch, the user goes to another, and it is committed there."""
    entries = chat.append(builders.rounds(30, 3_000).native("anthropic"))
    made = chat.preview(model=OPUS, budget=12_000)
    with Record.open(tmp_path / "work.mf") as other:
        twin = other.conversation("triage")
        twin.branch(entries[20].id)
        with pytest.raises(mf.Conflict):
            chat._taken(made, "threshold")
        assert twin.tip == entries[20].id and not twin.state().events


def test_going_back_before_a_pass_undoes_it_there_alone(chat: Conversation) -> None:
    """Kinds: going back past a compaction does nothing and says it did; a newer pass destroys the pages of an older."""
    entries = chat.append(builders.rounds(30, 3_000).native("anthropic"))
    early = chat.context(model=OPUS, budget=200_000).digest
    first = chat.context(model=OPUS, budget=30_000)
    at_first = chat.tip
    chat.append(builders.Story(calls=500).uses(*[("run", {}, builders.code(9, 30_000))]).native("anthropic"))
    second = chat.context(model=OPUS, budget=12_000)
    assert second.digest != first.digest
    chat.branch(at_first)
    assert chat.context(model=OPUS, budget=30_000).digest == first.digest
    chat.branch(entries[-1].id)
    assert not chat.state().plan and chat.context(model=OPUS, budget=200_000).digest == early


def test_a_fork_behind_a_pass_keeps_it(chat: Conversation) -> None:
    """Kind: a fork has new ids and forgets the boundary of the compaction: the whole history is sent again."""
    chat.append(builders.rounds(40, 3_000).native("anthropic"))
    fit = chat.context(model=OPUS, budget=20_000)
    fork = chat.fork("triage-b")
    assert fork.context(model=OPUS, budget=20_000).digest == fit.digest


def test_a_conversation_begun_anew_knows_nothing_of_the_old(chat: Conversation) -> None:
    """Kinds: /compact after a fresh start brings the old history back; fragments of other sessions in a summary."""
    chat.append(builders.rounds(40, 3_000).native("anthropic"))
    chat.context(model=OPUS, budget=20_000)
    fresh = chat.record.conversation("fresh")
    fresh.append({"role": "user", "content": "Another matter."})
    with pytest.raises(mf.NothingToCompact):
        fresh.compact(model=OPUS)
    assert fresh.context(model=OPUS).messages == [{"role": "user", "content": "Another matter."}]


def test_after_a_restart_the_first_call_sends_the_compacted_view(tmp_path: Path) -> None:
    """Kinds: no prompt works after a pass; the first call after a restart sends everything; a pass forgotten."""
    with Record.open(tmp_path / "work.mf") as record:
        chat = record.conversation("triage")
        chat.append(builders.rounds(40, 3_000).native("anthropic"))
        fit = chat.context(model=OPUS, budget=20_000, tools=STUBS)
        id = chat.name
    with Record.open(tmp_path / "work.mf") as record:
        chat = record.conversation(id)
        assert chat.context(model=OPUS, budget=20_000, tools=STUBS).digest == fit.digest
        resumed = chat.resume(model=OPUS, budget=20_000, tools=STUBS)
        assert resumed.digest == fit.digest and len(chat.state().events) == 1
        chat.append([{"role": "assistant", "content": "Well."}, {"role": "user", "content": "Go on."}])
        accepted(chat.context(model=OPUS, budget=20_000, tools=STUBS).request)


def test_pages_leave_with_the_plan_that_drew_them(chat: Conversation) -> None:
    """Kind: pages of an older compaction are sent on after the strategy was switched to a summary."""
    chat.append(builders.rounds(40, 3_000).native("anthropic"))
    assert chat.context(model=OPUS, budget=20_000).pages
    blind = chat.context(model=OPUS, budget=20_000, vision=False, summarize=lambda _: "- fact: files (turn 3)")
    assert not blind.pages and blind.receipt.after.images == 0 and "image" not in json.dumps(blind.messages)


def test_the_beginning_of_a_context_changes_with_passes_only(chat: Conversation) -> None:
    """Kinds: old results aged one a turn, each breaking the prefix of the cache; a cut that moves every turn."""
    chat.append({"role": "user", "content": "Mend the queue."})
    sent: list[list[str]] = []
    for at in range(60):
        fit = chat.context(model=OPUS, budget=16_000)
        sent.append([json.dumps(message) for message in fit.messages])
        story = builders.Story(calls=at).read(f"{at}.py", builders.code(at, 1_800))
        chat.append(story.native("anthropic"), context=fit)
    broken = sum(later[: len(earlier) - 1] != earlier[:-1] for earlier, later in pairwise(sent))
    assert 0 < broken == len(chat.state().events) <= 20


# ---------------------------------------------------------------- estimates and thresholds


@pytest.mark.parametrize("wire", builders.WIRES)
def test_system_and_tools_weigh_in_every_number(wire: str, chat: Conversation) -> None:
    """Kinds: system and tools not counted, a fifth of the truth told; two knobs, and a pass at a quarter of one."""
    tools = formats.tools.stubs([f"tool_{at}_{builders.prose(at, 3)[:30].replace(' ', '_')}" for at in range(60)], wire)
    system = builders.prose(7, 3_000)
    native = builders.rounds(10, 1_000).native(wire)
    alone = mf.count(native, model=MODELS[wire])
    whole = mf.count(native, model=MODELS[wire], system=system, tools=tools[0])
    fit = mf.compact(native, model=MODELS[wire], system=system, tools=tools[0], format=wire, budget=10**6)
    assert whole > alone + 5_000 and abs(fit.tokens - whole) <= 0.01 * whole
    with pytest.raises(mf.CannotFit, match="system prompt"):
        mf.compact(native, model=MODELS[wire], system=system, tools=tools[0], format=wire, budget=2_000)
    for policy, budget in ((mf.Policy(threshold=1.0, threshold_tokens=whole - 1), None), (None, whole - 1)):
        made = mf.compact(
            native, model=MODELS[wire], system=system, tools=tools[0], format=wire, policy=policy, budget=budget
        )
        assert made.plan and made.tokens < whole


def test_a_counter_that_stands_still_is_survived(chat: Conversation) -> None:
    """Kinds: 136 % of a window and no pass, since a counter stood at 0; a usage from before a pass taken for now."""
    chat.append({"role": "user", "content": "Go."})
    for at in range(60):
        fit = chat.context(model=OPUS, budget=16_000)
        assert fit.tokens <= 16_000
        story = builders.Story(calls=at).read(f"{at}.py", builders.code(at, 1_800))
        chat.append(story.native("anthropic"), context=fit, usage={"input_tokens": 0, "output_tokens": 0})
    last = chat.context(model=OPUS, budget=16_000)
    # What was reported before a pass says nothing of the context after it.
    story = builders.Story(calls=100).read("z.py", builders.code(100, 9_000))
    chat.append(story.native("anthropic"), context=last, usage={"input_tokens": int(1.2 * last.tokens)})
    after = chat.compact(model=OPUS, budget=14_000)
    assert after.tokens == after.receipt.after.tokens <= 14_000


def test_a_new_picture_behind_a_report_is_priced_as_a_picture(chat: Conversation) -> None:
    """Kinds: what is new since the last usage counted as JSON, base64 and all; base64 billed by its characters."""
    chat.append({"role": "user", "content": "Look."})
    fit = chat.context(model=OPUS)
    chat.append({"role": "assistant", "content": "At what?"}, context=fit, usage={"input_tokens": 900})
    before = chat.context(model=OPUS).tokens
    chat.append({"role": "user", "content": [shot(builders.png(1000, 800, noise=3))]})
    assert 800 < chat.context(model=OPUS).tokens - before < 3_000


@pytest.mark.parametrize("wire", builders.WIRES)
def test_scripts_have_their_own_prices(wire: str) -> None:
    """Kinds: four characters a token for Chinese, and a kept tail thrice its size; one density for JSON and prose."""
    han = "数据库连接失败重试次数超过上限请检查配置" * 200
    assert mf.count([{"role": "user", "content": han}], model=OPUS) > 0.5 * len(han)
    story = builders.Story().user("去。")
    for at in range(40):
        story.uses(("run", {"command": f"{at}"}, han[at : at + 2_000]))
    fit = mf.compact(story.native(wire), model=MODELS[wire], budget=40_000, max_tokens=500, format=wire)
    tail = [m for m in formats.read(fit.request, wire).messages[-2:] for m in m.results]
    assert tail and fit.tokens <= 40_000
    accepted({**fit.request, "tools": formats.tools.stubs(["run"], wire)[0]}, wire)


def test_one_result_is_bound_whatever_the_whole_is() -> None:
    """Kind: a result of 482,000 tokens in a window of 500,000, left alone since the whole was not large enough."""
    story = builders.Story().user("Dump.").says("Yes.").user("All.")
    story.uses(("run", {"command": "dump"}, builders.code(1, 900_000))).user("Go on.")
    request = {"messages": story.native("anthropic"), "tools": STUBS, "max_tokens": 1_000}
    whole = mf.count(request, model=OPUS)
    fit = mf.compact(request, model=OPUS, budget=int(0.9 * whole))
    assert fit.tokens <= 0.9 * whole and "Go on." in str(fit.messages)


# ---------------------------------------------------------------- images


@pytest.mark.parametrize("damage", ["header", "end", "base64", "page"])
@pytest.mark.parametrize("wire", builders.WIRES)
def test_a_bad_picture_is_not_sent_for_ever(wire: str, damage: str) -> None:
    """Kind: one corrupt image in the history, sent again with every call and every pass, and refused each time."""
    picture = builders.png(640, 480)
    data = {"header": picture[:20], "end": picture[:-20], "base64": picture, "page": b"<html>404</html>"}[damage]
    story = builders.Story().user("See.", data).says("Hm.").uses(("screenshot", {}, ("the page", data)))
    native = story.user("Go on.").native(wire)
    if damage == "base64":
        native = json.loads(json.dumps(native).replace(base64.b64encode(data).decode("ascii"), "%%%%"))
    tools = formats.tools.stubs(["screenshot"], wire)[0]
    fit = mf.compact(native, model=MODELS[wire], tools=tools, max_tokens=500, format=wire)
    accepted(fit.request, wire)
    assert {"image-data"} <= {each["rule"] for each in fit.receipt.repairs}
    assert mf.validate(fit.request, wire) == [] and "left out" in json.dumps(fit.messages)


def test_images_alone_leave_without_a_model(chat: Conversation) -> None:
    """Kinds: text-only turns fail for the pictures before them; a wish for a light pass that takes images alone."""
    story = builders.Story().user("Look at all.")
    for at in range(12):
        story.uses(("screenshot", {}, ("seen", builders.png(900, 700, noise=at))))
    chat.append(story.says("Seen.").user("Now only text.").native("anthropic"))
    before = chat.context(model=OPUS, tools=STUBS)
    fit = chat.shake("images", model=OPUS, tools=STUBS, policy=mf.Policy(tail_tokens=100))
    assert fit.receipt.after.images == 3 < before.receipt.after.images == 12
    assert not fit.pages and str(fit.messages).count("'seen'") == 12 and "turn 2" in str(fit.messages)
    accepted(fit.request)


def test_a_picture_that_left_is_named_where_it_stood() -> None:
    """Kinds: a reference to an image that is gone, and a model that makes its content up; pages and pictures over a
    limit together."""
    story = builders.rounds(60, 3_000)
    for at in range(12):
        story.uses(("screenshot", {}, (f"shot {at}.png", builders.png(900, 700, noise=at))))
    native = story.user("Go on.").native("anthropic")
    fit = mf.compact(native, model=OPUS, budget=30_000, tools=STUBS, policy=mf.Policy(images=8, tail_tokens=100))
    accepted(fit.request)
    assert fit.receipt.after.images <= 8 and fit.pages
    gone = [line for line in fit.receipt.images if line["why"]]
    assert gone and all(fit.recall(line["turn"]) for line in gone)


def test_pages_have_bytes_too() -> None:
    """Kinds: rendered pages beyond what a body may have, refused now and then; the archive that no pass can shrink."""
    native = builders.rounds(300, 3_000).native("anthropic")
    policy = mf.Policy(image_bytes=200_000)
    fit = mf.compact(native, model=OPUS, budget=150_000, policy=policy, tools=STUBS)
    size = sum(len(base64.b64encode(page.png)) for page in fit.pages)
    assert 0 < size <= 200_000 and fit.tokens <= 150_000
    more = mf.compact(native, model=OPUS, budget=150_000, policy=replace(policy, image_bytes=60_000), plan=fit.plan)
    assert sum(len(base64.b64encode(page.png)) for page in more.pages) <= 60_000
    assert digests(more) == digests(fit)[: len(digests(more))] or not more.pages


def test_passes_keep_no_pixels(tmp_path: Path) -> None:
    """Kind: each pass stores its images again: 89 pictures as 19 GiB after 588 compactions."""
    story = builders.rounds(30, 3_000)
    for at in range(10):
        story.uses(("screenshot", {}, ("seen", builders.png(200, 200, noise=at))))
    sizes, drawn = [], 0
    for at in range(12):
        with Record.open(tmp_path / "work.mf") as record:
            chat = record.conversation("triage")
            if at == 0:
                chat.append(story.native("anthropic"))
            said = [{"role": "assistant", "content": f"{at}"}, {"role": "user", "content": builders.code(at, 6_000)}]
            chat.append(said)
            fit = chat.context(model=OPUS, budget=14_000)
            drawn += sum(len(page.png) for page in fit.pages)
            passes = len(chat.state().events)
        sizes.append((tmp_path / "work.mf").stat().st_size)
    assert passes > 3 and drawn > 10 * (sizes[-1] - sizes[0]), (passes, drawn, sizes)
