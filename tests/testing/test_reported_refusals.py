"""Faults that were reported of other tools, around refusals and recovery: none of them is one here.

Each test names its kind; the judge says whether what was sent could be sent.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
from pathlib import Path
from typing import Any

import builders
import microfiche as mf
import pytest
from judged import MODELS, accepted
from microfiche import formats
from microfiche.conversation import Conversation, Record

TOO_LONG = (400, {"error": {"message": "prompt is too long"}})


def body(wire: str, story: builders.Story) -> dict[str, Any]:
    return {formats.list_key(wire): story.native(wire), "tools": formats.tools.stubs(["read_file", "run"], wire)[0]}


@pytest.mark.parametrize("wire", builders.WIRES)
def test_a_batch_of_parallel_calls_is_never_parted(wire: str) -> None:
    """Kind: the cut lands inside a parallel batch, and results stay whose calls are gone."""
    story = builders.Story().user("Read all of it.")
    for lap in range(6):
        story.uses(*[("read_file", {"path": f"{lap}/{at}"}, builders.code(9 * lap + at, 1_500)) for at in range(10)])
    for tokens in (4_000, 9_000, 20_000, 40_000):
        told = mf.Refusal("tokens", 60_000, tokens)
        try:
            fit = mf.recover(body(wire, story.user("Go on.")), error=told, model=MODELS[wire], max_tokens=500)
        except mf.CannotFit:
            continue
        accepted(fit.request, wire)


@pytest.mark.parametrize("wire", builders.WIRES)
def test_one_chain_of_tools_without_a_legal_cut_is_shrunk_further(wire: str) -> None:
    """Kind: no valid cut point, because the one turn that is left is larger than what may stay."""
    story = builders.Story().user("Dump it.").uses(("run", {"command": "dump"}, builders.code(1, 600_000)))
    fit = mf.recover(body(wire, story), error=mf.Refusal("tokens", 300_000, 40_000), model=MODELS[wire], max_tokens=500)
    assert fit.tokens <= 40_000
    accepted(fit.request, wire)


@pytest.mark.parametrize("part", ["system", "tools", "user"])
def test_what_never_changes_is_named_at_once(part: str) -> None:
    """Kind: a fixed part above the threshold, and compaction in a loop instead of one clear error."""
    long = builders.prose(1, 90_000)
    options: dict[str, Any] = {"system": long} if part == "system" else {}
    if part == "tools":
        options["tools"] = [{"name": "t", "description": long, "input_schema": {"type": "object"}}]
    said = [{"role": "user", "content": long if part == "user" else "Go."}]
    with pytest.raises(mf.CannotFit) as caught:
        mf.recover(said, error=mf.Refusal("tokens", 400_000, 200_000), model=MODELS["anthropic"], **options)
    names = {"system": "the system prompt", "tools": "the tools", "user": "the newest message"}
    assert names[part] in str(caught.value)
    assert "too many" in str(caught.value) and caught.value.least


def test_bytes_are_no_tokens() -> None:
    """Kind: a refusal for bytes read as an overflow of tokens, and answered with pages, which have more bytes."""
    story = builders.rounds(40, 4_500).user("Go on.")
    request = body("anthropic", story)
    fit = mf.recover(request, error=(413, "Payload Too Large"), model="nobody-knows-1", vision=True)
    assert len(json.dumps(fit.request)) < 0.6 * len(json.dumps(request)) and not fit.pages


def test_a_model_of_unknown_window_is_recovered() -> None:
    """Kind: an unknown window and a refusal for size leave the session stuck."""
    request = body("openai_chat", builders.rounds(40, 4_500).user("Go on."))
    for error in (TOO_LONG, (413, "Too Large"), (400, {"error": {"message": "too many images: 21 > 20"}})):
        try:
            fit = mf.recover(request, error=error, model="nobody-knows-1")
        except mf.CannotFit as caught:
            assert "image" in str(caught)
        else:
            accepted(fit.request, "openai_chat")


def test_an_overflow_does_not_get_past_the_policy(chat: Conversation) -> None:
    """Kind: what the user switched off is run all the same when a request was refused."""
    chat.append(builders.rounds(40, 3_000).user("Go on.").native("anthropic"))
    policy = mf.Policy(rungs=("elide", "images"), protect=("read_file",))
    fit = chat.context(model=MODELS["anthropic"], policy=policy)
    with pytest.raises(mf.CannotFit):
        chat.recover(TOO_LONG, fit)
    assert not chat.state().plan


def test_a_recovery_without_a_gain_is_no_success(chat: Conversation) -> None:
    """Kind: a pass that leaves the request as large as it was, reported as done and refused again for ever."""
    chat.append({"role": "user", "content": "Hello."})
    fit = chat.context(model=MODELS["anthropic"], max_tokens=1_024)
    for _ in range(2):
        with pytest.raises(mf.CannotFit):
            chat.recover(TOO_LONG, fit)
    with pytest.raises(mf.CannotFit, match="three times"):
        chat.recover(TOO_LONG, fit)


@pytest.mark.parametrize(
    ("part", "name"),
    [("system", "the system prompt"), ("tools", "the tools"), ("user", "the newest message"), ("old", "the history")],
)
@pytest.mark.parametrize("told", [TOO_LONG, (413, "Payload Too Large")])
def test_the_end_of_a_recovery_names_the_largest_part(chat: Conversation, part: str, name: str, told: Any) -> None:
    """Kind: "cannot fit" that does not say whether the system, the tools or a message is to be cut."""
    long = builders.prose(1, 2_000)
    options: dict[str, Any] = {"system": long} if part == "system" else {}
    if part == "tools":
        options["tools"] = [{"name": "t", "description": long, "input_schema": {"type": "object"}}]
    chat.append({"role": "user", "content": "Hello."})
    if part == "old":
        chat.append([{"role": "assistant", "content": long}])
    if part in ("old", "user"):
        chat.append({"role": "user", "content": long if part == "user" else "Go on."})
    fit = chat.context(model=MODELS["anthropic"], **options)
    with pytest.raises(mf.CannotFit) as caught:
        for _ in range(3):
            with contextlib.suppress(mf.CannotFit):
                chat.recover(told, fit)
        chat.recover(told, fit)
    assert f"the largest part is {name}" in str(caught.value) and "three times" in str(caught.value)
    size, whole = re.findall(r"([\d,]+) of ([\d,]+) (?:tokens|bytes) sent", str(caught.value))[0]
    assert 0.9 < int(size.replace(",", "")) / int(whole.replace(",", "")) <= 1


def test_what_a_provider_counted_is_what_the_parts_add_up_to(chat: Conversation) -> None:
    """Kind: an error in estimated tokens, beside a refusal that told the true ones."""
    chat.append({"role": "user", "content": builders.prose(1, 2_000)})
    fit = chat.context(model=MODELS["anthropic"])
    for _ in range(2):
        with pytest.raises(mf.CannotFit):
            chat.recover(mf.Refusal("tokens", 7_000, 3_000), fit)
    with pytest.raises(mf.CannotFit, match=r"tokens, 7,000 of 3,000.* newest message: (7,00\d) of \1 tokens"):
        chat.recover(mf.Refusal("tokens", 7_000, 3_000), fit)


def test_a_recovery_and_a_pass_by_hand_do_not_meet(chat: Conversation) -> None:
    """Kind: compacted twice at once, with two entries."""
    chat.append(builders.rounds(40, 3_000).user("Go on.").native("anthropic"))
    fit = chat.context(model=MODELS["anthropic"])
    ends: list[str] = []

    def run(what: Any) -> None:
        try:
            what()
            ends.append("done")
        except mf.Busy:
            ends.append("busy")
        except mf.NothingToCompact:
            ends.append("nothing")

    with chat._alone():
        for what in (lambda: chat.recover(TOO_LONG, fit), lambda: chat.compact(model=MODELS["anthropic"])):
            thread = threading.Thread(target=run, args=(what,))
            thread.start()
            thread.join()
    assert ends == ["busy", "busy"] and not chat.state().events
    assert chat.recover(TOO_LONG, fit).tokens < fit.tokens and len(chat.state().events) == 1


def test_a_refusal_is_kept_over_a_restart(tmp_path: Path) -> None:
    """Kind: ids and sizes held in memory alone, so that a session that was reopened runs into the wall again."""
    told = (400, {"error": {"message": "prompt is too long: 90000 tokens > 30000 maximum"}})
    with Record.open(tmp_path / "work.mf") as record:
        chat = record.conversation("triage")
        chat.append(builders.rounds(40, 3_000).user("Go on.").native("anthropic"))
        made = chat.recover(told, chat.context(model=MODELS["anthropic"], max_tokens=500))
    with Record.open(tmp_path / "work.mf") as record:
        chat = record.conversation("triage")
        again = chat.context(model=MODELS["anthropic"], max_tokens=500)
        assert again.digest == made.digest and again.request["max_tokens"] == 500
        assert chat.learnt(made.receipt.model).budget is not None
        assert record.verify()


def test_another_model_is_not_held_to_what_one_was_refused_for(chat: Conversation) -> None:
    """Kind: a small window met once, and every model after it kept that small."""
    chat.append(builders.rounds(40, 3_000).user("Go on.").native("anthropic"))
    small = chat.recover(mf.Refusal("tokens", 90_000, 20_000), chat.context(model="claude-haiku-4-5"))
    assert small.tokens <= 20_000
    assert chat.context(model="claude-opus-5").receipt.budget.tokens > 100_000


def test_a_reasoning_turn_goes_whole_or_not_at_all() -> None:
    """Kind: part of the newest thinking is changed by a recovery, and every later call refused."""
    story = builders.rounds(30, 3_000)
    story.uses(("run", {"command": "make"}, builders.code(5, 60_000)), thinking="I have to see the whole output.")
    request = body("anthropic", story)
    fit = mf.recover(request, error=mf.Refusal("tokens", 90_000, 25_000), model=MODELS["anthropic"], max_tokens=500)
    thoughts = [each for each in request["messages"][-2]["content"] if each["type"] == "thinking"]
    sent = [each for each in fit.messages[-2]["content"] if each["type"] == "thinking"]
    assert sent == thoughts
    accepted(fit.request)


@pytest.mark.parametrize("window", [None, 10])
def test_a_conversation_that_quotes_a_refusal_is_none(window: int | None) -> None:
    """Kind: a matcher run over what the conversation says."""
    said = "API Error: 400 prompt is too long: 210000 tokens > 200000 maximum (context_length_exceeded)"
    answers = [
        {"type": "message", "stop_reason": "end_turn", "content": [{"type": "text", "text": said}]},
        {"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": said}}]},
        {"candidates": [{"finishReason": "STOP", "content": {"parts": [{"text": said}]}}]},
        {"status": "completed", "output": [{"type": "message", "content": [{"type": "output_text", "text": said}]}]},
        {"role": "tool", "content": said},
    ]
    for answer in answers:
        assert mf.refusal(answer, window=window) is None
        assert mf.refusal(200, json.dumps(answer), window=window) is None
