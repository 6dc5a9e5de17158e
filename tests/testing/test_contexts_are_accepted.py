"""Random histories through every rung: a judge that shares no code with the package accepts every context.

Kinds of fault reported of others: a compacted context that the provider refuses for an orphaned or parted result, an
empty block, an image where none may stand, a second list of ids, an answer of the model at the end; and one that is
larger than it was said to be.
"""

from __future__ import annotations

import copy
import random
from collections import Counter
from typing import Any

import builders
import httpx2
import microfiche as mf
import pytest
from microfiche import formats
from microfiche.testing import Judge
from microfiche.testing.anthropic import sign
from microfiche.testing.openai_responses import TIED
from test_judge_clients import Clients

MODELS = {
    "anthropic": ("claude-opus-5", "claude-haiku-4-5", "claude-opus-4-6", "claude-sonnet-5-5"),
    "openai_chat": (
        "gpt-5.6-sol",
        "gpt-4.1",
        "anthropic/claude-opus-5",
        "mistral-large-4",
        "pixtral-12b",
        "deepseek-flash",
        "nobody-knows-1",
    ),
    "openai_responses": ("gpt-5.6-sol", "gpt-5.2", "gpt-6-sol"),
    "gemini": ("gemini-3.6-flash", "gemini-2.5-flash", "gemini-4-argon"),
}
RUNGS = (
    ("elide", "images", "reasoning", "snapshot", "newest", "omit"),
    ("elide", "images", "omit"),
    ("reasoning", "omit"),
    ("snapshot", "omit"),
    ("omit",),
)
SHARES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.3)

# How much more than the estimate the judge's own prices may come to. The highest measured is 1.06.
ERROR = 1.10


def history(seed: int, wire: str, source: random.Random) -> list[Any]:
    """A random story in a wire's form, with more of what sessions do to it."""
    story = builders.random_story(seed)
    if source.random() < 0.1:
        text = "漢字かな交じりの長い結果。\n" * source.randrange(200, 3_000)
        story.read("docs/読.md", text)
    if source.random() < 0.1:
        story.uses(*[("read_file", {"path": f"src/{at}.py"}, builders.code(seed + at, 300)) for at in range(12)])
    if source.random() < 0.2:
        story.uses(
            ("run", {"command": "make check"}, builders.log(seed, 30)), thinking="One more look before I answer."
        )
    native = story.native(wire)
    if source.random() < 0.3:
        reuse_ids(native, source.choice((13, 17, 30)))
    if source.random() < 0.25:
        damage(native, source)
    sign_thoughts(native)
    tie(native)
    return native


def sign_thoughts(native: list[Any]) -> None:
    """Under the judge's own signature no character of a thought may change."""
    for message in native:
        for block in message.get("content") if isinstance(message.get("content"), list) else ():
            if block.get("type") == "thinking":
                block["signature"] = sign(block["thinking"])


def tie(native: list[Any]) -> None:
    """Under ids of the judge's own, what follows reasoning must not be sent without it."""
    items = [item for item in native if item.get("type") == "reasoning"]
    for number, item in enumerate(items):
        place = next(at for at, each in enumerate(native) if each is item)
        item["id"] = f"rs_{TIED}{number}"
        follower = native[place + 1] if place + 1 < len(native) else {}
        kind = {"function_call": "fc", "message": "msg"}.get(follower.get("type", ""))
        if kind:
            follower["id"] = f"{kind}_{TIED}{number}"


def reuse_ids(value: Any, count: int) -> None:
    """Ids that begin anew after ``count`` calls, as some models make them; results keep those of their calls."""
    if isinstance(value, list):
        for each in value:
            reuse_ids(each, count)
    elif isinstance(value, dict):
        for key, each in value.items():
            if isinstance(each, str) and each.startswith("toolu_"):
                value[key] = f"toolu_{int(each[6:]) % count}"
            else:
                reuse_ids(each, count)


def damage(native: list[Any], source: random.Random) -> None:
    """What a bad trim leaves behind: a message gone, copied, emptied or moved."""
    at = source.randrange(len(native))
    choice = source.randrange(4)
    if choice == 0 and len(native) > 1:
        del native[at]
    elif choice == 1:
        native.insert(at, copy.deepcopy(native[at]))
    elif choice == 2 and "content" in native[at]:
        native[at]["content"] = ""
    else:
        native.insert(source.randrange(len(native)), native.pop(at))


def request(seed: int) -> tuple[str, str, int, dict[str, Any]] | None:
    """One context of one random history: wire, model, budget and the request; ``None`` if it cannot fit."""
    source = random.Random(seed)
    wire = source.choice(builders.WIRES)
    model = source.choice(MODELS[wire])
    body: dict[str, Any] = {formats.list_key(wire): history(seed, wire, source)}
    if source.random() < 0.5:
        body["tools"] = TOOLS[wire]
    # Later models have no budget for reasoning any more: their client warns of it.
    if model == "claude-haiku-4-5" and thinks(body["messages"]):
        body.update(max_tokens=3_000, thinking={"type": "enabled", "budget_tokens": 2_000})
    vision = True if model.startswith("nobody") else None
    policy = mf.Policy(rungs=source.choice(RUNGS) if source.random() < 0.4 else RUNGS[0])
    total = mf.count(body, model=model, vision=vision)
    budget = max(int(total * source.choice(SHARES)), 1)
    options: dict[str, Any] = {"model": model, "policy": policy, "vision": vision, "format": wire}
    if "max_tokens" not in body:
        options["max_tokens"] = 1_000
    plan = earlier_plan(body, wire, budget, options, source) if source.random() < 0.3 else None
    try:
        fit = mf.compact(body, budget=budget, plan=plan, **options)
    except mf.CannotFit:
        return None
    assert fit.tokens <= budget
    return wire, model, budget, fit.request


def thinks(messages: list[Any]) -> bool:
    """True if the list ends with the answers to a message that begins with reasoning."""
    if len(messages) < 2 or not all(isinstance(each["content"], list) for each in messages[-2:]):
        return False
    asked, given = (message["content"] for message in messages[-2:])
    calls = [block["id"] for block in asked if block["type"] == "tool_use"]
    answers = [block.get("tool_use_id") for block in given]
    return bool(calls) and calls == answers and asked[0]["type"] == "thinking"


def earlier_plan(body: Any, wire: str, budget: int, options: Any, source: random.Random) -> mf.Plan | None:
    """The plan of a pass that ran when the history was shorter, up to something that the user said."""
    key = formats.list_key(wire)
    said = [
        at
        for at, message in enumerate(body[key])
        if message.get("role") == "user" and "tool_use_id" not in str(message)
    ]
    said = [at for at in said if at and "functionResponse" not in body[key][at].get("parts", [{}])[0]]
    if not said:
        return None
    try:
        return mf.compact({**body, key: body[key][: source.choice(said) + 1]}, budget=budget // 2 + 1, **options).plan
    except mf.CannotFit:
        return None


TOOLS = {
    wire: formats.tools.stubs(["read_file", "write_file", "run", "screenshot", "recall"], wire)[0]
    for wire in builders.WIRES
}


def outcome(seed: int) -> str:
    made = request(seed)
    if made is None:
        return "cannot fit"
    wire, model, budget, body = made
    refusal = Judge(window=int(budget * ERROR) + 3_200).check(wire, body, model)
    assert refusal is None, (seed, wire, model, refusal)
    return "accepted"


def test_contexts_in_process() -> None:
    ends = Counter(outcome(seed) for seed in range(300))
    assert ends["accepted"] > 200, ends


@pytest.mark.full
def test_ten_thousand_contexts() -> None:
    ends = Counter(outcome(seed) for seed in range(300, 10_300))
    assert ends["accepted"] > 7_000, ends


def through_the_clients(seeds: range) -> Counter[str]:
    """Send the contexts with the official clients; what was sent, by wire."""
    sent: Counter[str] = Counter()
    with Judge() as judge, httpx2.Client() as http:
        clients = Clients(judge, http)
        for seed in seeds:
            if (made := request(seed)) is None:
                continue
            wire, model, _, body = made
            clients.send(wire, body, model=model)
            sent[wire] += 1
        assert not judge.refusals
        assert Counter(each.provider for each in judge.requests) == sent
    return sent


def test_contexts_through_the_clients() -> None:
    sent = through_the_clients(range(130))
    assert set(sent) == set(builders.WIRES)
    assert sum(sent.values()) >= 100


@pytest.mark.full
def test_more_contexts_through_the_clients() -> None:
    assert sum(through_the_clients(range(300, 500)).values()) >= 100
