"""Attempts to make the ladder send what a provider refuses, lose what it may not lose, or not come to an end.

Each history goes through every rung at several budgets; a judge that shares no code with the package says whether
the request is sound. Kinds of fault reported of others stand with each attempt.
"""

from __future__ import annotations

import base64
import copy
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import builders
import microfiche as mf
import pytest
from builders import Story, code, log, png, prose, rounds
from microfiche import formats
from microfiche.messages import Image, Opaque, Text
from microfiche.testing import Judge
from microfiche.testing.anthropic import sign

MODELS = {
    "anthropic": "claude-opus-5",
    "openai_chat": "gpt-5.6-sol",
    "openai_responses": "gpt-5.6-sol",
    "gemini": "gemini-3.6-flash",
}
RUNGS = (
    ("elide", "images", "reasoning", "snapshot", "newest", "omit"),
    ("reasoning", "omit"),
    ("snapshot", "omit"),
    ("newest", "omit"),
)
SHARES = (0.85, 0.4, 0.15)
EPHEMERAL = {"type": "ephemeral"}


def contexts(native: Any, wire: str, window: float = 1.1, **options: Any) -> Iterator[mf.Context]:
    """The contexts of every rung and budget that holds what never changes, each accepted by the judge.

    Its window is so many times the budget: it prices text by rules of its own.
    """
    asked: dict[str, Any] = {"model": MODELS[wire], "max_tokens": 1_000, "format": wire} | options
    given = copy.deepcopy(native)
    total = mf.count(native, model=asked["model"])
    made = 0
    for rungs in RUNGS:
        for share in SHARES:
            budget = int(share * total)
            policy = mf.Policy(rungs=rungs, tail_tokens=min(2_000, budget // 8))
            try:
                fit = mf.compact(native, budget=budget, policy=policy, **asked)
            except mf.CannotFit:
                continue
            made += 1
            assert fit.tokens <= budget
            assert mf.validate(fit.request, wire, model=asked["model"]) == []
            refusal = Judge(window=int(window * budget) + 4_000).check(wire, fit.request, asked["model"])
            assert refusal is None, (rungs, share, refusal)
            paired(fit, wire)
            yield fit
    assert native == given, "the caller's own list was changed"
    assert made, "no budget held: the attempt tried nothing"


def paired(fit: mf.Context, wire: str) -> None:
    """Every call has exactly one result, and every result its call before it."""
    open_calls: Counter[str] = Counter()
    for message in formats.read(fit.request, wire).messages:
        for result in message.results:
            assert open_calls[result.call_id] == 1
            del open_calls[result.call_id]
        for call in message.calls:
            assert call.id not in open_calls
            open_calls[call.id] += 1
    assert not open_calls


def parallel() -> Story:
    return rounds(4, 3_000).uses(*(("read_file", {"path": f"{at}.py"}, code(at, 2_500)) for at in range(10)))


@pytest.mark.parametrize("wire", builders.WIRES)
@pytest.mark.parametrize("behind", range(3))
def test_a_cut_never_parts_a_batch(wire: str, behind: int) -> None:
    """Kinds: the last six messages kept land in a batch of ten parallel calls; answers gone, their results left."""
    story = parallel()
    for at in range(behind):
        story.read(f"later_{at}.py", code(50 + at, 2_000))
    for _ in contexts(story.native(wire), wire):
        pass


def orphaned(native: list[Any]) -> None:
    """The call of the second result is cut away."""
    del native[1]


def copied(native: list[Any]) -> None:
    """The same group of calls and results stands on both sides of a cut."""
    native[5:5] = copy.deepcopy(native[1:3])


def unanswered(native: list[Any]) -> None:
    """A crash in the middle of a tool, then ten more messages."""
    del native[6]


def answered_twice(native: list[Any]) -> None:
    """A pass between two results gave one id two results."""
    native.insert(3, copy.deepcopy(native[2]))


def headless(native: list[Any]) -> None:
    """The list begins with a result."""
    del native[:2]


@pytest.mark.parametrize("wire", builders.WIRES)
@pytest.mark.parametrize("damage", [orphaned, copied, unanswered, answered_twice, headless])
def test_what_other_tools_cut_badly_is_sent_soundly(wire: str, damage: Callable[[list[Any]], None]) -> None:
    """Kinds: unexpected tool_use_id, duplicate tool_call_id, no tool output found, a list that begins with a result."""
    native = rounds(10, 3_000).native(wire)
    damage(native)
    for _ in contexts(native, wire):
        pass


def signed(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for message in messages:
        for block in message["content"] if isinstance(message["content"], list) else ():
            if block["type"] == "thinking":
                block["signature"] = sign(block["thinking"])
    return messages


def test_reasoning_is_whole_or_gone() -> None:
    """Kinds: part of a thinking block copied; redacted and plain ones parted; an answer left with reasoning alone."""
    story = Story()
    for at in range(8):
        story.user(f"task {at}").uses(("run", {"command": str(at)}, code(at, 3_000)), thinking=f"{at} {prose(at, 60)}")
    native = signed(story.native("anthropic"))
    for message in native[1::3]:
        message["content"].insert(1, {"type": "redacted_thinking", "data": "c2VhbGVk" * 20})
    native.insert(3, {"role": "assistant", "content": [copy.deepcopy(native[1]["content"][0])]})
    before = {json.dumps(block) for m in native for block in m["content"] if isinstance(block, dict)}
    for fit in contexts(native, "anthropic"):
        for message in fit.messages:
            blocks = [block for block in message["content"] if isinstance(block, dict)]
            thoughts = [block for block in blocks if block["type"] in ("thinking", "redacted_thinking")]
            assert {json.dumps(block) for block in thoughts} <= before
            assert not thoughts or len(thoughts) < len(blocks) or message == native[3]
            kinds = [block["type"] for block in thoughts]
            assert kinds in ([], ["thinking", "redacted_thinking"], ["thinking"])


def test_server_tools_stay_with_their_results() -> None:
    """Kinds: a server's tool use without its result, and a result of a type nobody had heard of."""
    native = rounds(6, 3_000).native("anthropic")
    uses = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
    gives = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    native.insert(5, {"role": "assistant", "content": [uses, gives, {"type": "text", "text": "found"}]})
    for fit in contexts(native, "anthropic"):
        kinds = Counter(block["type"] for m in fit.messages for block in m["content"] if isinstance(block, dict))
        assert kinds["server_tool_use"] == kinds["web_search_tool_result"]


@pytest.mark.parametrize("wire", builders.WIRES)
def test_images_that_became_too_many_or_too_large(wire: str) -> None:
    """Kinds: 21 images of which one is 2,001 pixels wide; an old image, valid once, refused for ever after."""
    story = Story().user("look", png(2_001, 10))
    for at in range(24):
        story.uses(("shot", {"at": at}, ("a view", png(300, 200, noise=at))), text=prose(at, 80))
    story.user("and this", png(2_400, 40))
    for fit in contexts(story.native(wire), wire):
        assert fit.receipt.after.images <= 100


def test_bytes_bind_where_tokens_do_not() -> None:
    """Kinds: 42 pictures of 800 kB in the last messages pass the token budget and fail by their bytes."""
    story = Story().user("go")
    shot = png(900, 660, noise=1)
    assert len(shot) > 590_000
    for at in range(42):
        story.uses(("shot", {"at": at}, ("view", shot)))
    fit = mf.compact(story.native("anthropic"), model="claude-opus-5", budget=150_000)
    assert fit.receipt.after.bytes < 18.5 * 1024 * 1024 and fit.receipt.after.images >= 3
    assert mf.validate(fit.request, "anthropic", model="claude-opus-5") == []


@pytest.mark.parametrize("wire", builders.WIRES)
def test_an_image_is_priced_as_an_image(wire: str) -> None:
    """Kinds: base64 counted as text (a million tokens for 3 MB), or an image counted as nothing."""
    noise = png(512, 512, noise=3)
    with_image = mf.count(Story().user("see", noise).native(wire), model=MODELS[wire])
    without = mf.count(Story().user("see").native(wire), model=MODELS[wire])
    assert 150 < with_image - without < 3_000 < len(base64.b64encode(noise)) // 4


@pytest.mark.parametrize("wire", builders.WIRES)
def test_results_that_fill_the_tail(wire: str) -> None:
    """Kinds: 40 calls of results that each fill the tail, so that no cut was found; one result larger than all else."""
    story = Story().user("go")
    for at in range(12):
        story.uses(("dump", {"at": at}, code(at, 20_000)))
    story.uses(("dump", {"at": 99}, code(99, 120_000)))
    for fit in contexts(story.native(wire), wire):
        assert "dump" in json.dumps(fit.messages[-2:])


def test_overhead_above_the_budget_is_one_error_that_names_it() -> None:
    """Kind: system and tools alone above the threshold, and a pass from the first message on, for ever."""
    tools = [{"name": f"t{at}", "description": prose(at, 300), "input_schema": {"type": "object"}} for at in range(40)]
    with pytest.raises(mf.CannotFit, match="the tools alone"):
        mf.compact(Story().user("hi").native("anthropic"), model="claude-opus-5", budget=20_000, tools=tools)


def test_a_pass_that_gains_nothing_changes_nothing_and_says_so() -> None:
    """Kinds: 734,649 to 707,322 tokens told as a success; a short history that pages made larger."""
    native = Story().user("hi").says(prose(1, 30)).user("so?").says(prose(2, 30)).user("well?").native("anthropic")
    fit = mf.compact(native, model="claude-opus-5", budget=100_000)
    assert fit.messages is native and fit.receipt.reason == "under_budget"
    size = fit.tokens
    with pytest.raises(mf.CannotFit):
        mf.compact(native, model="claude-opus-5", budget=10)
    for share in (0.9, 0.7, 0.5):
        try:
            made = mf.compact(native, model="claude-opus-5", budget=int(share * size))
        except mf.CannotFit:
            continue
        assert made.tokens <= share * size


def test_twenty_passes_end_and_nothing_vanishes_unnamed() -> None:
    """Kinds: what one pass kept is gone after the next; the archive itself grows past the threshold; endless passes."""
    story, plan = rounds(40, 2_000), None
    for at in range(20):
        for more in range(4):
            story.read(f"n_{at}_{more}.py", code(100 * at + more, 1_500))
        native = story.native("anthropic")
        fit = mf.compact(native, model="claude-opus-5", budget=24_000, plan=plan)
        again = mf.compact(native, model="claude-opus-5", budget=24_000, plan=fit.plan)
        assert (again.plan, again.messages) == (fit.plan, fit.messages)
        assert fit.tokens <= 24_000
        numbers = {turn.number for turn in formats.read(native, "anthropic").turns()[1]}
        archive = fit.plan.archive
        assert archive is not None
        paged = {turn for page in fit.pages for turn in page.turns}
        told = paged | set(fit.receipt.omitted_turns) | {1} | {n for n in numbers if n > archive.last}
        assert told == numbers
        plan = fit.plan


STRANGE = {
    "half an emoji at every cut": "🧪" * 40_000,
    "lone surrogates of a tool": "a\udc00b\ud83d" * 9_000,
    "nothing but blanks": " " * 90_000,
    "zeros and escapes": "\0\x1b[31m\r" * 12_000,
    "one line": "x" * 90_000,
    "tags without end": "<A " * 30_000,
    "brackets": "[[((" * 22_000,
    "our own words": "[1,000 characters of this bash result left out: nothing but blanks; recall of turn 3 returns "
    "them]\n" * 900,
    "a legend of ours": "page 1  turns 1-9  T user  T assistant  ⏎ line break\n" * 1_500,
}


@pytest.mark.parametrize("wire", builders.WIRES)
@pytest.mark.parametrize("kind", sorted(STRANGE))
def test_text_that_breaks_others(kind: str, wire: str) -> None:
    """Kinds: a cut in half an emoji, surrogates of tools, minutes in a regular expression, text like marks."""
    text = STRANGE[kind]
    story = rounds(4, 1_500).uses(("bash", {"command": "old"}, text)).read("x.py", code(1, 2_000))
    story.uses(("bash", {"command": "new"}, text))
    # What such text costs no two rulers agree on.
    for fit in contexts(story.native(wire), wire, window=20):
        json.dumps(fit.request).encode("ascii")


@pytest.mark.parametrize("wire", builders.WIRES)
def test_empty_things(wire: str) -> None:
    """Kinds: text content blocks must be non-empty; an empty result; a message of nothing."""
    story = rounds(5, 3_000).says("").user("").uses(("run", {}, "")).uses(("run", {}, "  \n")).says(" ").user("go on")
    story.uses(("shot", {}, (" \n", png(30, 20)))).uses(("shot", {}, ("\n", " ")))
    story.uses(("run", {}, code(4, 6_000)))
    for _ in contexts(story.native(wire), wire):
        pass


COMPACTIONS = {
    "anthropic": {"role": "assistant", "content": [{"type": "compaction", "content": "the boats WERE-COUNTED"}]},
    "openai_responses": {"type": "compaction", "id": "cmp_1", "encrypted_content": "WERE-COUNTED" * 300},
}


@pytest.mark.parametrize("at", [0, 1, 11, 29, 59])
@pytest.mark.parametrize("wire", COMPACTIONS)
def test_the_providers_own_compaction_is_carried(wire: str, at: int) -> None:
    """Kinds: a compaction of null content sent back, and refused; one that only the provider can read, drawn and lost.

    Anthropic passes over all that stands before one, so nothing of ours may.
    """
    story = rounds(30, 2_500)
    native = story.native(wire)
    older = json.loads(json.dumps(COMPACTIONS[wire]).replace("WERE-COUNTED", "OLDER").replace("cmp_1", "cmp_0"))
    native[at:at] = [older, COMPACTIONS[wire]] if wire == "openai_responses" else [COMPACTIONS[wire]]
    assert mf.compact(native, model=MODELS[wire], budget=10**6, format=wire).messages is native
    for fit in contexts(native, wire):
        parts = [part for message in formats.read(fit.request, wire).messages for part in message.parts]
        held = [i for i, part in enumerate(parts) if isinstance(part, Opaque) and part.kind == "compaction"]
        assert held and "WERE-COUNTED" in json.dumps(parts[held[-1]].native)
        assert "WERE-COUNTED" not in "".join(page.text for page in fit.pages)
        if any(isinstance(part, Image) for part in parts) or fit.receipt.omitted_turns:
            assert held == [0]


def test_pins_and_pages_stand_behind_a_compaction_of_the_newest_turn(tmp_path: Path) -> None:
    """Kind: what was promised to stand in every context, sent where the provider passes over it."""
    with mf.Record.open(tmp_path / "work.mf") as record:
        chat = record.conversation("main")
        chat.append(rounds(30, 2_500).native("anthropic"))
        chat.pin("Never touch the lock.")
        chat.append(
            {"role": "assistant", "content": [COMPACTIONS["anthropic"]["content"][0], {"type": "text", "text": "Go"}]}
        )
        chat.append({"role": "user", "content": "And now?"})
        for budget in (None, 20_000):
            fit = chat.context(model="claude-opus-5", budget=budget)
            text = json.dumps(fit.messages)
            assert text.count("WERE-COUNTED") == 1
            assert text.index("WERE-COUNTED") < text.index("Never touch the lock.")
            assert Judge().check("anthropic", fit.request, "claude-opus-5") is None
            assert bool(fit.pages) == (budget is not None)
        chat.append({"role": "assistant", "content": "Done."}, context=fit)
        assert mf.audit(chat).context_at(chat.tip).digest == fit.digest


def test_the_opening_task_and_the_newest_words_stand_whole() -> None:
    """Kinds: the opening task cut to a preview, the end of a request of several parts lost."""
    task = prose(5, 90) + " Reply as: YES or NO."
    story = Story().user(task)
    for at in range(30):
        story.read(f"{at}.py", code(at, 2_000))
    story.user("first part", "second part: keep the lock", png(40, 30))
    for wire in builders.WIRES:
        for fit in contexts(story.native(wire), wire):
            said = [p.text for m in formats.read(fit.request, wire).messages for p in m.parts if isinstance(p, Text)]
            assert said[0] == task or task in said
            assert any("second part: keep the lock" in text for text in said[-3:])


@pytest.mark.parametrize("tail", [0, 1])
def test_a_tail_of_nothing_is_the_newest_turn(tail: int) -> None:
    """Kind: a kept tail of 0 protected everything."""
    native = rounds(30, 2_000).native("anthropic")
    fit = mf.compact(native, model="claude-opus-5", budget=16_000, policy=mf.Policy(tail_tokens=tail, tail_share=0))
    assert fit.plan.archive is not None and fit.plan.archive.last == 30
    assert fit.messages[-2:] == native[-2:]


def test_a_result_is_on_a_page_or_named_after_any_number_of_passes() -> None:
    """Kind: a result first shortened, then drawn as what its short form was: content in neither form."""
    marks = [f"needle-{at:04d}-{at * 7919 % 10007}" for at in range(60)]
    body = "\n".join(f"{mark} {prose(at, 60)}" for at, mark in enumerate(marks))
    story = Story().user("go").uses(("dump", {"at": 1}, body))
    plan = None
    for at in range(12):
        for more in range(4):
            story.read(f"{at}_{more}.py", code(10 * at + more, 1_500))
        fit = mf.compact(story.native("anthropic"), model="claude-opus-5", budget=30_000, plan=plan)
        plan = fit.plan
        if 2 not in fit.receipt.omitted_turns and (2, 1, 0) not in plan.elided:
            text = "".join(page.text for page in fit.pages) + json.dumps(fit.messages)
            begins = fit.receipt.omitted_beginning == 2
            assert begins or all(mark in text for mark in marks)
    assert plan is not None and plan.archive is not None


def test_a_model_without_eyes_gets_no_page() -> None:
    """Kind: a text model that fails hard at the first page."""
    native = rounds(30, 3_000).native("openai_chat")
    fit = mf.compact(native, model="o3-mini", budget=12_000, max_tokens=1_000)
    assert not fit.pages and "image" not in json.dumps(fit.request)
    assert Judge(window=20_000).check("openai_chat", fit.request, "o3-mini") is None


def test_errors_outlive_every_budget() -> None:
    """Kind: the failure that explained everything was elided as old output."""
    story = rounds(5, 1_500)
    story.uses(("bash", {"command": "make"}, log(3, 200) + "\nmain.c:7:1: error: expected ';'", True))
    for at in range(12):
        story.uses(("bash", {"command": f"show {at}"}, log(at, 200)))
    for budget in (40_000, 20_000, 10_000):
        fit = mf.compact(story.native("anthropic"), model="claude-opus-5", budget=budget)
        assert (7, 1, 0) not in fit.plan.elided


@pytest.mark.parametrize("wire", builders.WIRES)
def test_indentation_tells_pages_apart(wire: str) -> None:
    """Kind: blanks folded before they were drawn, and one page for programs that do different things."""
    lines = ["def run(batch):", "for each in batch:", "if each.late:", "drop(each)", "send(each)"] * 60
    drawn = {}
    for depths in ((0, 1, 2, 3, 2), (0, 1, 2, 3, 1), (0, 1, 2, 3, 3)):
        body = "\n".join("    " * depths[at % 5] + line for at, line in enumerate(lines))
        native = Story().user("Why is it lost?").read("queue.py", body).says("Hm.").user("Go on.").native(wire)
        policy = mf.Policy(rungs=("snapshot",), tail_tokens=50, pays=10)
        fit = mf.compact(native, model=MODELS[wire], budget=mf.count(native, model=MODELS[wire]) - 1, policy=policy)
        assert body in mf.read_back(fit.pages)
        drawn[body] = tuple(page.png for page in fit.pages)
    assert len(set(drawn.values())) == 3


def test_definitions_of_server_tools_stay_as_they_were() -> None:
    """Kind: tools of a provider's own type rewritten on the way, and refused."""
    tools = [
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
        {"type": "brew_coffee_20990101", "name": "coffee", "strength": {"beans": 7}},
        {"name": "read_file", "description": "x", "input_schema": {"type": "object"}, "cache_control": EPHEMERAL},
    ]
    for fit in contexts(rounds(20, 3_000).native("anthropic"), "anthropic", tools=copy.deepcopy(tools)):
        assert fit.request["tools"] == tools


def test_a_system_prompt_is_never_touched_and_no_page_depends_on_it() -> None:
    """Kinds: the line that names the client drawn or moved; a line that changes with every call in the pages."""
    native = rounds(40, 3_000).native("anthropic")
    seen = set()
    for stamp in ("09:00", "09:01 <fresh tag=7>"):
        system = [
            {"type": "text", "text": "You are the agent of this house."},
            {"type": "text", "text": prose(3, 900), "cache_control": EPHEMERAL},
            {"type": "text", "text": f"It is {stamp}."},
        ]
        fit = mf.compact(native, model="claude-opus-5", budget=30_000, system=copy.deepcopy(system))
        assert fit.pages and fit.request["system"] == system
        seen.add(tuple(page.png for page in fit.pages))
    assert len(seen) == 1


def test_thousands_of_short_turns_fill_their_pages() -> None:
    """Kind: 317 images of which less than half was used, and a request that no server took."""
    story = Story().user("Count.")
    for at in range(3_000):
        story.uses(("run", {"command": f"step {at}"}, f"step {at}: {prose(at, 12)}"))
    native = story.user("Go on.").native("anthropic")
    fit = mf.compact(native, model="claude-opus-5", budget=150_000, max_tokens=1_000)
    full, rows = fit.pages[:-1], 784 // 16
    assert 1 < len(fit.pages) <= 100 and not fit.receipt.omitted_turns
    assert all(page.height // 16 == rows for page in full)
    parts = mf.read_back(full, marks=True)
    bars = [f" {part.turn} {part.kind} " for part in parts if isinstance(part, mf.Bar)]
    assert sum(len(page.text) for page in full) + sum(map(len, bars)) >= 0.9 * (1_568 // 9) * (rows - 1) * len(full)
    assert Judge(window=200_000).check("anthropic", fit.request, "claude-opus-5") is None
