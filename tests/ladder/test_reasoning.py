"""Old reasoning: what leaves, what a provider asks for and stays, and that every wire takes what is left."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import builders
import microfiche as mf
import pytest
from builders import Story, code
from microfiche import formats
from microfiche.ladder.plan import Plan
from microfiche.ladder.reasoning import HOLLOW, thoughts, without
from microfiche.messages import History, Message, Reasoning, Text, ToolCall, Turn
from microfiche.testing import Judge
from microfiche.testing.anthropic import sign

MODELS = {
    "anthropic": "claude-opus-5",
    "openai_chat": "gpt-5.5",
    "openai_responses": "gpt-5.5",
    "gemini": "gemini-3-flash",
}
THOUGHT = "Let me see what the parser does with that. " * 20


def story(prompts: int = 6, rounds: int = 3) -> Story:
    told = Story()
    for prompt in range(prompts):
        told.user(f"task {prompt}")
        for at in range(rounds):
            uses = ("read_file", {"path": f"{prompt}-{at}.py"}, code(10 * prompt + at, 2_000))
            told.uses(uses, thinking=f"{prompt}.{at} {THOUGHT}")
    return told


def native(wire: str, told: Story) -> list[dict[str, Any]]:
    """The story in a wire, with a field for reasoning that services add to Chat, and Gemini's summaries of thoughts."""
    messages = told.native(wire)
    if wire == "openai_chat":
        number = 0
        for message in messages:
            if message["role"] == "assistant":
                number += 1
                message["reasoning_content"] = f"{number} {THOUGHT}"
    if wire == "gemini":
        for message in messages:
            if message["role"] == "model":
                message["parts"].insert(0, {"text": THOUGHT, "thought": True})
    return messages


def ran(fit: mf.Context) -> list[str]:
    return [rung.rung for rung in fit.receipt.rungs if not rung.reason and rung.rung != "write"]


def reasoned(messages: list[dict[str, Any]], wire: str) -> list[int]:
    """Numbers of the turns that have reasoning."""
    turns = formats.read(messages, wire).turns()[1]
    return [turn.number for turn in turns if any(map(thoughts, turn.messages))]


@pytest.mark.parametrize("wire", builders.WIRES)
def test_shaking_reasoning_leaves_old_reasoning_out(wire: str, tmp_path: Path) -> None:
    """The newest turns keep theirs, Chat Completions that of all answers since the user spoke; an event, and undone."""
    messages = native(wire, story())
    given = reasoned(messages, wire)
    model = MODELS[wire]
    with mf.Record.open(tmp_path / "a.mf") as record:
        chat = record.conversation("a")
        chat.append(messages, format=wire)
        policy = mf.Policy(tail_tokens=1)
        made = chat.shake("reasoning", model=model, policy=policy)
        stays = reasoned(made.messages, wire)
        assert stays == ([22, 23, 24] if wire == "openai_chat" else [24]) and stays == given[-len(stays) :]
        assert mf.validate(made.request, wire) == []
        assert [line["turn"] for line in made.receipt.reasoning] == given[: -len(stays)]
        assert all(line["parts"] == 1 and line["characters"] > 500 for line in made.receipt.reasoning)
        assert ran(made) == ["reasoning"]
        assert made.receipt.after.tokens < made.receipt.before.tokens - 100 * len(made.receipt.reasoning)
        event = record.entry(chat.tip or 0)
        assert event.kind == "compaction" and event.payload["why"] == "shake reasoning"
        assert event.payload["span"] == [2, given[-len(stays) - 1]]
        left = mf.audit(chat).removed(event.id)
        assert {each.reduced.kind for each in left} == {"reasoning"} and len(left) == len(given) - len(stays)
        with pytest.raises(mf.NothingToCompact) as told:
            chat.shake("reasoning", model=model, policy=policy)
        assert told.value.reason == "nothing_new"
        assert mf.Plan.from_json(made.plan.to_json()) == made.plan
        chat.undo()
        assert chat.context(model=model).messages == messages


@pytest.mark.parametrize("wire", builders.WIRES)
def test_what_is_said_and_called_stays(wire: str) -> None:
    messages = native(wire, story())
    policy = mf.Policy(tail_tokens=1, rungs=("reasoning",))
    full = mf.count(messages, model=MODELS[wire])
    fit = mf.compact(messages, model=MODELS[wire], budget=full - 200, policy=policy)
    before, after = formats.read(messages, wire).messages, formats.read(fit.messages, wire).messages

    def rest(told: list[Message]) -> list[Any]:
        return [
            [(type(part).__name__, getattr(part, "text", ""), getattr(part, "arguments", "")) for part in each.parts
             if not isinstance(part, Reasoning)]
            for each in told
        ]  # fmt: skip

    assert rest(before) == rest(after)
    assert len(reasoned(fit.messages, wire)) < len(reasoned(messages, wire))


def test_the_reasoning_of_one_long_task_leaves_too_but_that_of_the_newest_answer() -> None:
    """One prompt and 60 rounds: signed thinking of old rounds goes whole, the newest stays byte for byte."""
    messages = story(1, 60).native("anthropic")
    policy = mf.Policy(tail_tokens=1, rungs=("reasoning",))
    full = mf.count(messages, model="claude-opus-5")
    fit = mf.compact(messages, model="claude-opus-5", budget=full - 500, policy=policy)
    assert reasoned(fit.messages, "anthropic") == [61]
    assert fit.messages[-2:] == messages[-2:]
    assert mf.validate(fit.request, "anthropic") == []


def test_reasoning_leaves_before_pages_are_drawn_and_only_if_it_must() -> None:
    messages = story().native("anthropic")
    tools = [{"name": "read_file", "description": "", "input_schema": {"type": "object"}}]
    full = mf.count(messages, model="claude-opus-5", tools=tools)
    assert mf.compact(messages, model="claude-opus-5", budget=full, tools=tools).messages is messages
    policy = mf.Policy(tail_tokens=1, target=1)
    fit = mf.compact(messages, model="claude-opus-5", budget=full - 500, policy=policy, tools=tools)
    assert ran(fit) == ["reasoning"]
    assert fit.plan.reasoning and fit.plan.archive is None


def test_items_lose_the_ids_that_stand_or_fall_with_their_reasoning() -> None:
    """Kind: "was provided without its required 'reasoning' item", for an item that the server knows by its id."""
    items: list[dict[str, Any]] = []
    for at in range(8):
        items += [
            {"role": "user", "content": f"go {at}"},
            {"type": "reasoning", "id": f"rs_{at}", "summary": [], "encrypted_content": "e" * 2_000},
            {"type": "message", "id": f"msg_{at}", "role": "assistant", "status": "completed",
             "content": [{"type": "output_text", "text": f"said {at}", "annotations": []}]},
            {"type": "function_call", "id": f"fc_{at}", "call_id": f"c{at}", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": f"c{at}", "output": f"done {at}"},
        ]  # fmt: skip
    policy = mf.Policy(tail_tokens=1, rungs=("reasoning",))
    full = mf.count(items, model="gpt-5.5")
    fit = mf.compact(items, model="gpt-5.5", budget=full - 100, policy=policy)
    ids = [item["id"] for item in fit.messages if "id" in item]
    assert ids == ["rs_7", "msg_7", "fc_7"]
    assert [item["call_id"] for item in fit.messages if item.get("type") == "function_call"] == [
        f"c{at}" for at in range(8)
    ]
    said = [[item for item in each if item.get("role") == "user"] for each in (items, fit.messages)]
    assert said[0] == said[1]


RUNGS = ("elide", "images", "reasoning", "snapshot", "newest", "omit")


@pytest.mark.parametrize("words", [None, "behind the results", "joined to the results"])
@pytest.mark.parametrize("rung", [*RUNGS, "all"])
def test_the_answer_being_answered_keeps_its_reasoning_in_every_rung(rung: str, words: str | None) -> None:
    """Kind: "a final assistant message must start with a thinking block", after a pass had moved or dropped it."""
    told = story(4, 5).uses(("run", {"command": "dump"}, code(77, 60_000)), thinking=f"last {THOUGHT}")
    if words is not None:
        told.user(words, joined=words.startswith("joined"))
    messages = told.native("anthropic")
    signed = [block for m in messages for block in m["content"] if isinstance(block, dict) and "signature" in block]
    for block in signed:
        block["signature"] = sign(block["thinking"])
    body = {"messages": messages, "max_tokens": 3_000, "thinking": {"type": "enabled", "budget_tokens": 2_000}}
    total = mf.count(body, model="claude-haiku-4-5")
    chosen = RUNGS if rung == "all" else (rung, "newest", "omit") if rung != "newest" else ("newest", "omit")
    fitted = 0
    for share in (0.95, 0.7, 0.4, 0.2):
        budget = int(share * total)
        policy = mf.Policy(rungs=chosen, tail_tokens=1)
        fit = mf.compact(body, model="claude-haiku-4-5", budget=budget, policy=policy)
        assert Judge(window=int(1.1 * budget) + 3_200).check("anthropic", fit.request, "claude-haiku-4-5") is None
        answer = next(m for m in reversed(fit.messages) if m["role"] == "assistant")
        assert answer["content"][0] == signed[-1]
        fitted += bool(fit.plan)
    assert fitted == 4


@pytest.mark.parametrize(
    ("parts", "leaves"),
    [
        ((Reasoning("a", native={}), Text("said")), True),
        ((Reasoning("a", native={}), ToolCall("c", "f", "{}")), True),
        ((Reasoning("a", native={}),), False),
        ((Reasoning("a", native={}), Text(" \n")), False),
        ((Text("said"),), False),
        ((HOLLOW, Text("said")), False),
    ],
)
def test_a_message_never_becomes_empty(parts: tuple[Any, ...], leaves: bool) -> None:
    message = Message("assistant", parts)
    assert bool(thoughts(message)) is leaves
    left = without(Turn(1, (message,))).messages[0].parts
    assert len(left) == len(parts)
    assert (left[0] == HOLLOW) is (leaves or parts[0] == HOLLOW)


def test_hollow_reasoning_is_written_nowhere() -> None:
    for wire in builders.WIRES:
        body, _ = formats.write(History([Message("assistant", (HOLLOW, Text("said")))], wire, wire=wire), wire)
        assert "said" in json.dumps(body) and "reason" not in json.dumps(body) and "think" not in json.dumps(body)


@pytest.mark.parametrize("turns", [(1,), (2, 99), (4, 2), (2, 2)])
def test_a_plan_that_takes_reasoning_where_there_is_none_is_refused(turns: tuple[int, ...]) -> None:
    messages = story(2, 3).native("anthropic")
    policy = mf.Policy(tail_tokens=1, rungs=("reasoning",))
    budget = mf.count(messages, model="claude-opus-5") - 100
    plan = mf.compact(messages, model="claude-opus-5", budget=budget, policy=policy).plan
    assert isinstance(plan, Plan) and plan.reasoning == (2, 3, 4, 6, 7)
    with pytest.raises(mf.PlanMismatch):
        mf.compact(messages, model="claude-opus-5", budget=budget, plan=replace(plan, reasoning=turns), policy=policy)
