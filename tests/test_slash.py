"""Slash commands: each does what it says, tells it, and whatever cannot be done is an answer."""

from __future__ import annotations

from typing import Any

import builders
import microfiche as mf
import pytest
from microfiche.conversation import Conversation

MODEL = "claude-opus-5"


def grown(chat: Conversation, rounds: int = 20, model: str = MODEL) -> Conversation:
    story = builders.rounds(rounds, 3_000)
    story.uses(*[("run", {"command": "make"}, builders.log(at, 60)) for at in range(3)])
    chat.append(story.says("Read.").user("And now?").says("Done.").user("Go on.").native("anthropic"))
    return chat


def test_compact_makes_a_pass_and_tells_it(chat: Conversation) -> None:
    said = mf.command(grown(chat), "/compact", model=MODEL)
    assert said.done and isinstance(said.value, mf.Context)
    assert f"{said.value.receipt.after.tokens:,}" in said.text and "snapshot" in said.text
    assert chat.state().events[-1].payload["why"] == "by hand"
    again = mf.command(chat, "  /COMPACT\tfit\n", model=MODEL)
    assert not again.done and "nothing new" in again.text
    assert isinstance(again.value, mf.NothingToCompact) and again.value.reason == "nothing_new"


def test_refusals_of_a_pass_are_distinct(chat: Conversation) -> None:
    """Kind: one answer for a conversation that is empty, one that is all recent, and one where passes are off."""
    reasons = [mf.command(chat, "/compact", model=MODEL).value.reason]
    chat.append({"role": "user", "content": "Hello."})
    for model in (MODEL, "o3-mini"):
        assert mf.command(chat, "/compact", model=model).value.reason == "all_recent"
    chat.append({"role": "assistant", "content": "Hi."})
    chat.append([{"role": "user", "content": "Go on."}])
    reasons.append(mf.command(chat, "/compact", model=MODEL).value.reason)
    grown_chat = grown(chat.record.conversation("other"))
    off = mf.Policy(rungs=())
    reasons.append(mf.command(grown_chat, "/compact", model=MODEL, policy=off).value.reason)
    assert reasons == ["empty", "all_recent", "disabled"]
    with grown_chat._alone():
        busy = mf.command(grown_chat, "/compact", model=MODEL)
    assert not busy.done and isinstance(busy.value, mf.Busy)


def test_a_focus_reaches_the_summariser(chat: Conversation) -> None:
    prompts: list[str] = []

    def summarize(request: mf.SummaryRequest) -> str:
        prompts.append(request.prompt)
        return "- fact: files were read (turn 3)"

    policy = mf.Policy(rungs=("summary", "omit"))
    words = {"model": "o3-mini", "summarize": summarize, "policy": policy, "budget": 9_000}
    said = mf.command(grown(chat), "/compact the  parser\n of dates", **words)  # type: ignore[arg-type]
    assert said.done and said.value.receipt.summary_calls == len(prompts) == 1
    assert prompts[0].endswith("in the user's words: the parser of dates")
    assert "files were read" in str(said.value.messages) and "focus was not used" not in said.text
    assert not mf.command(chat, "/compact " + "x" * 501, model=MODEL).done


def down(request: mf.SummaryRequest) -> str:
    raise RuntimeError("line\x1b[2J down")


OWN = ("summary", "omit")
SMALL = {"model": "o3-mini", "budget": 9_000}


@pytest.mark.parametrize(
    ("done", "why", "options"),
    [
        (True, "there is no summariser", {}),
        (True, "there is no summariser", {"policy": mf.Policy(rungs=("omit",)), **SMALL}),
        (True, "does not fit its budget without one", {"summarize": down}),
        (True, "the policy allows no summary", {"summarize": down, "policy": mf.Policy(rungs=("omit",)), **SMALL}),
        (True, "the summary failed", {"summarize": down, "policy": mf.Policy(rungs=OWN), **SMALL}),
        (True, "no room for", {"summarize": down, "policy": mf.Policy(rungs=OWN, summary_tokens=50), **SMALL}),
        (False, "there is no summariser", {"model": "o3-mini"}),
        (False, "does not fit its budget without one", {"model": "o3-mini", "summarize": down}),
        (False, "the policy allows no summary", {"summarize": down, "policy": mf.Policy(rungs=())}),
    ],
)
def test_a_focus_that_was_not_used_says_why(chat: Conversation, done: bool, why: str, options: dict[str, Any]) -> None:
    """Kind: a user says what a summary has to keep, no summary is made, and nobody says why."""
    said = mf.command(grown(chat), "/compact the parser", **{"model": MODEL, **options})
    assert said.done is done
    assert said.text.splitlines()[-1].startswith("The focus was not used: ") and why in said.text
    assert "focus" not in mf.command(grown(chat, 30), "/compact", **{"model": MODEL, **options}).text


def test_a_summary_that_failed_is_told(chat: Conversation) -> None:
    """Kind: the call for a summary fails, turns are left out instead, and the user reads of a success."""
    said = mf.command(grown(chat), "/compact", summarize=down, policy=mf.Policy(rungs=OWN), **SMALL)  # type: ignore[arg-type]
    assert said.done and said.value.receipt.omitted_turns
    assert "The summary failed (RuntimeError: line" in said.text and "\x1b" not in said.text


def test_cost_runs_a_pass_only_if_it_pays(chat: Conversation) -> None:
    grown(chat)
    few = mf.command(chat, "/compact cost", model=MODEL, policy=mf.Policy(calls_left=1, cached=10**6))
    assert not few.done and few.value.reason == "does_not_pay" and not chat.state().events
    many = mf.command(chat, "/compact cost", model=MODEL, policy=mf.Policy(calls_left=500))
    assert many.done and many.value.pages


@pytest.mark.parametrize("what", ["", "elide", "images", "reasoning"])
def test_shake_draws_nothing_and_asks_nobody(chat: Conversation, what: str) -> None:
    story = builders.rounds(3, 2_000, thinking="Let me see. " * 40)
    for at in range(6):
        story.uses(("screenshot", {}, ("the page", builders.png(600, 400, noise=at))), thinking="Again. " * 60)
        story.uses(("run", {"command": f"build {at}"}, builders.log(at, 100)), thinking="Hm. " * 60)
    chat.append(story.says("Seen.").user("On.").native("anthropic"))
    small = mf.Policy(tail_tokens=100)
    said = mf.command(chat, f"/shake {what}", model=MODEL, policy=small)
    assert said.done, said.text
    assert not said.value.pages and said.value.receipt.summary_calls == 0
    assert said.value.receipt.after.tokens < said.value.receipt.before.tokens


def test_context_adds_up_and_records_nothing(chat: Conversation) -> None:
    grown(chat)
    head = chat.record.head
    said = mf.command(chat, "/context", model=MODEL, system="Be brief.", tools=mf.tools("anthropic"), max_tokens=1_000)
    spent = said.value["spent"]
    assert sum(spent.values()) + said.value["free"] == said.value["budget"]
    assert sum(spent.values()) == said.value["tokens"] and spent["system"] and spent["tools"]
    assert f"{said.value['free']:,}" in said.text and "free" in said.text
    due = mf.command(chat, "/context", model=MODEL, budget=10_000)
    assert due.value["pass_due"] and "makes a pass first" in due.text
    assert chat.record.head == head


def test_tree_shows_and_moves(chat: Conversation) -> None:
    grown(chat, 3)
    tip = chat.tip
    first = mf.command(chat, "/tree", model=MODEL)
    start = first.value["stretches"][0]["entries"][0]
    moved = mf.command(chat, f"/tree {start}", model=MODEL)
    assert moved.done and chat.tip == start
    chat.append([{"role": "assistant", "content": "Otherwise."}, {"role": "user", "content": "\x1b[31mWhy?"}])
    shown = mf.command(chat, "/tree", model=MODEL)
    assert "<- tip" in shown.text and len(shown.value["stretches"]) >= 3 and "\x1b" not in shown.text
    mf.command(chat, f"/tree {tip}", model=MODEL)
    assert chat.tip == tip


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "compact",
        "/compacts",
        "/help me",
        "/shake everything",
        "/context now",
        "/tree up",
        "/tree 999999",
        "/tree -1",
        "/tree " + "9" * 400,
        "/tree ٣",
        None,
        7,
    ],
)
def test_what_is_no_command_is_an_answer(chat: Conversation, text: Any) -> None:
    head = grown(chat, 2).record.head
    said = mf.command(chat, text, model=MODEL)
    assert not said.done and isinstance(said.value, mf.MicroficheError) and said.text
    if not str(text).startswith(("/shake", "/context", "/tree")):
        assert all(name in said.text for name in ("/compact", "/shake", "/context", "/tree"))
    assert chat.record.head == head


def test_a_model_of_unknown_window_is_an_answer(chat: Conversation) -> None:
    said = mf.command(grown(chat, 2), "/compact", model="nobody-knows-1")
    assert not said.done and "budget" in said.text
