"""Rung 4 in a pass: asked last, atomic, frozen once written; no turn leaves without being named."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import builders
import microfiche as mf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from microfiche import formats
from microfiche.errors import BadInput, CannotFit, OwnOutput
from microfiche.fit import fit as with_more
from microfiche.fit import source_of
from microfiche.ladder import compact as ladder
from microfiche.ladder.budget import Load, Policy, Scale, budget_for
from microfiche.ladder.plan import Source
from microfiche.ladder.projection import project
from microfiche.ladder.summarize import Failed, SummaryRequest, Writer
from microfiche.ladder.summary import block, is_block, tokens
from microfiche.messages import Text, split_turns
from microfiche.models import find
from test_passes import MODELS
from test_plan import mutate, outcome
from test_random import MODELS as ANY_MODEL
from test_random import moved_down_only, pairs, reads_back, receipt_adds_up
from test_summarize import WORTHLESS, faithful, raising, record_of

BLIND = {"anthropic": "claude-2.1", "openai_chat": "o3-mini", "openai_responses": "o3-mini", "gemini": "o3-mini"}


growing = partial(builders.growing, characters=2_500, lines=60)


class Asked:
    """A summariser that keeps what it was asked."""

    def __init__(self, answer: Callable[[SummaryRequest], Any] = faithful) -> None:
        self.requests: list[SummaryRequest] = []
        self._answer = answer

    def __call__(self, request: SummaryRequest) -> Any:
        self.requests.append(request)
        return self._answer(request)


def shown(fit: mf.Context, wire: str) -> str:
    """The text of the summary block in a request, empty if there is none; fails if there are two."""
    messages = formats.read(fit.request, wire).messages
    found = [p.text for m in messages for p in m.parts if isinstance(p, Text) and p.text.startswith("Summary of turn")]
    assert len(found) <= 1
    return found[0] if found else ""


def closed(native: Any, wire: str, fit: mf.Context) -> None:
    """Every turn stands verbatim, in a short form, on a page shown, in a summary, or is named as left out."""
    source, _ = source_of(formats.read(native, wire), wire)
    projection = project(source, mf.Plan.from_json(fit.plan.to_json()))
    verbatim = builders.verbatim(source.turns, projection.messages)
    treated = builders.treated(fit.plan)
    paged = {turn for page in fit.pages for turn in page.turns}
    summarised = fit.plan.summarised
    omitted = set(fit.receipt.omitted_turns)
    assert {turn.number for turn in source.turns} <= verbatim | treated | paged | summarised | omitted
    assert not omitted & (verbatim | paged | summarised)
    assert not summarised & verbatim
    told = "".join(part.text for message in projection.messages for part in message.parts if isinstance(part, Text))
    named = re.sub(r"pages? [\d, -]+(?=;|, [a-z])", "", told.partition("Left out here: ")[2].partition(";")[0])
    spans = [(int(a), int(b or a)) for a, b in re.findall(r"(\d+)(?:-(\d+))?", named)]
    assert omitted <= {turn for first, last in spans for turn in range(first, last + 1)}
    if fit.pages:
        reads_back(projection)


@pytest.mark.parametrize(
    ("wire", "sees"),
    [
        ("anthropic", True),
        ("gemini", True),
        ("anthropic", False),
        ("openai_chat", False),
        ("openai_responses", False),
        ("gemini", False),
    ],
)
def test_over_many_passes_a_summary_stays_and_so_do_pages(wire: str, sees: bool) -> None:
    model = MODELS[wire] if sees else BLIND[wire]
    plan: mf.Plan | None = None
    asked = Asked()
    full: list[str] = []
    written = 0
    for rounds in range(10, 110, 10):
        native = growing(1, rounds).native(wire)
        options: dict[str, Any] = {"model": model, "budget": 30_000, "format": wire, "policy": TENTH}
        before = len(asked.requests)
        fit = mf.compact(native, plan=plan, summarize=asked, **options)
        assert fit.receipt.summary_calls == len(asked.requests) - before <= 4
        assert fit.tokens <= 30_000 and mf.validate(fit.request, wire, model=model) == []
        assert mf.Plan.from_json(fit.plan.to_json()) == fit.plan
        closed(native, wire, fit)
        done = {rung.rung: rung for rung in fit.receipt.rungs if not rung.reason}
        assert ("summary" in done) == (len(asked.requests) > before)
        assert not fit.receipt.omitted_turns and "omit" not in done
        text = shown(fit, wire)
        assert text == block(fit.plan.summaries, recall=False)
        assert tokens(text) <= 3_000
        if plan is not None:
            assert fit.plan.summaries[: len(plan.summaries) - 1] == plan.summaries[:-1]
            assert plan.summarised <= fit.plan.summarised
            moved_down_only(plan, fit.plan)
        now = [page.digest for page in fit.plan.archive.full] if fit.plan.archive is not None else []
        assert now[: len(full)] == full
        full = now
        # The same again asks nobody.
        again = mf.compact(native, plan=fit.plan, summarize=raising, **options)
        assert (again.plan, again.messages, again.digest) == (fit.plan, fit.messages, fit.digest)
        assert again.receipt.summary_calls == 0
        written += "summary" in done
        plan = fit.plan
    assert written >= 2
    assert bool(full) == sees
    for each in asked.requests:
        assert tokens(each.prompt) + each.max_tokens <= Policy().summary_window


def test_the_rungs_go_in_order_and_the_summariser_comes_last() -> None:
    native = growing(2, 60).native("anthropic")
    asked = Asked()
    for budget, last in ((90_000, "elide"), (40_000, "snapshot"), (24_000, "summary")):
        policy = mf.Policy(target=1)
        fit = mf.compact(native, model="claude-opus-5", budget=budget, summarize=asked, policy=policy)
        names = [rung.rung for rung in fit.receipt.rungs if rung.rung not in ("plan", "carry", "write")]
        assert names == ["elide", "images", "snapshot", "summary", "omit"][: len(names)] and names[-1] == last
        assert len(asked.requests) == (last == "summary")
        assert fit.receipt.rungs[-2].reason == ""
    without = mf.compact(native, model="claude-opus-5", budget=24_000)
    assert "summary" not in [rung.rung for rung in without.receipt.rungs]
    off = mf.compact(native, model="claude-opus-5", budget=24_000, summarize=asked, policy=OFF)
    assert next(rung for rung in off.receipt.rungs if rung.rung == "summary").reason == "off"
    assert off.messages == without.messages
    assert len(asked.requests) == 1
    assert mf.compact(native, model="claude-opus-5", budget=10**6, summarize=raising).messages is native


TENTH = Policy(summary_share=0.1)
SMALL = Policy(summary_share=0.02)
OFF = Policy(rungs=("elide", "images", "snapshot", "omit"))


@pytest.mark.parametrize(
    ("what", "model"),
    [
        *((what, "o3-mini") for what in (*WORTHLESS, "raises")),
        *((what, "claude-opus-5") for what in ("nothing", "truncated JSON", "raises")),
    ],
)
def test_when_the_summariser_fails_nothing_is_lost(what: str, model: str) -> None:
    """Kind: the summary failed or was empty, and the history went all the same."""
    wire = "anthropic" if model == "claude-opus-5" else "openai_chat"
    native = growing(3, 60).native(wire)
    answer = raising if what == "raises" else lambda request: again(WORTHLESS[what], request)
    asked = Asked(answer)
    fit = mf.compact(native, model=model, budget=24_000, format=wire, summarize=asked)
    plain = mf.compact(native, model=model, budget=24_000, format=wire)
    assert (fit.plan, fit.messages, fit.digest) == (plain.plan, plain.messages, plain.digest)
    rung = next(rung for rung in fit.receipt.rungs if rung.rung == "summary")
    assert re.fullmatch(r"summary_failed: [^\n]+", rung.reason)
    assert rung.before == rung.after
    assert fit.receipt.summary_calls == len(asked.requests) == 1
    assert not fit.receipt.summaries


def again(answer: Any, request: SummaryRequest) -> Any:
    """A fake whose turns are of the request, as far as it names turn 3, and whose excess is for its length."""
    if not isinstance(answer, str):
        return answer
    told = re.sub(r"\b3\b", str(request.turns[0]), answer).replace("87", str(request.turns[-1] + 1))
    return told * 8 if len(answer) > 9_000 else told


def test_a_failure_is_of_one_pass_and_the_next_may_succeed() -> None:
    first = mf.compact(growing(3, 60).native("anthropic"), model="claude-opus-5", budget=24_000, summarize=raising)
    assert first.receipt.omitted_turns and first.plan.archive is not None
    native = growing(3, 90).native("anthropic")
    fit = mf.compact(native, model="claude-opus-5", budget=24_000, plan=first.plan, summarize=faithful)
    assert fit.plan.summaries
    closed(native, "anthropic", fit)
    # What was left out once is not summarised afterwards, and still named.
    assert not set(first.receipt.omitted_turns) & fit.plan.summarised
    assert set(first.receipt.omitted_turns) <= set(fit.receipt.omitted_turns) | fit.plan.summarised
    later = mf.compact(growing(3, 120).native("anthropic"), model="claude-opus-5", budget=24_000, plan=fit.plan)
    assert later.plan.summaries == fit.plan.summaries, "without a summariser a summary stays"
    closed(growing(3, 120).native("anthropic"), "anthropic", later)


def facts(count: int) -> builders.Story:
    story = builders.Story().user("Work through the list.")
    for at in range(count):
        if at % 6 == 2:
            story.user(f"FACT-{at:03} holds.")
        story.uses(("ask", {"step": at}, builders.code(at, 3_000)))
    return story


@pytest.mark.parametrize("model", ["o3-mini", "gpt-5.6-sol"])
def test_planted_facts_survive_many_passes(model: str) -> None:
    """Kinds: rules vanish after a summary; a later summary erodes what an older one said; it grows without bound."""
    plan = None
    sizes = []
    merged = 0
    for count in range(20, 180, 20):
        native = facts(count).native("openai_chat")
        options: dict[str, Any] = {"model": model, "budget": 24_000, "format": "openai_chat", "policy": TENTH}
        fit = mf.compact(native, plan=plan, summarize=faithful, **options)
        told = json.dumps(fit.messages) + "".join(page.text for page in fit.pages)
        assert [at for at in range(2, count, 6) if f"FACT-{at:03}" not in told] == []
        sizes.append(tokens(shown(fit, "openai_chat")))
        merged += plan is not None and plan.summaries[-1:] != fit.plan.summaries[len(plan.summaries) - 1 :][:1]
        plan = fit.plan
    assert max(sizes) <= 2_400
    assert plan is not None and plan.summaries
    assert merged or model != "o3-mini"


def test_a_merged_summary_is_written_from_the_source() -> None:
    asked = Asked()
    plan = None
    for count in range(20, 220, 20):
        native = facts(count).native("openai_chat")
        options: dict[str, Any] = {"model": "o3-mini", "budget": 24_000, "format": "openai_chat", "policy": SMALL}
        plan = mf.compact(native, plan=plan, summarize=asked, **options).plan
    source = split_turns(formats.read(facts(200).native("openai_chat"), "openai_chat").messages)[1]
    originals = {turn.number: [text_of(part) for m in turn.messages for part in m.parts] for turn in source}
    again_asked = 0
    seen: set[int] = set()
    for request in asked.requests:
        assert "Summary of turn" not in request.prompt
        again_asked += bool(seen & set(request.turns))
        seen |= set(request.turns)
        for turn, _, text in record_of(request.prompt):
            begin, _, rest = text.partition("[... ")
            assert any(each.startswith(begin) and each.endswith(rest.partition(" ...]")[2]) for each in originals[turn])
    assert again_asked


def text_of(part: Any) -> str:
    return str(getattr(part, "arguments", None) or part.text)


def test_no_call_where_it_cannot_help() -> None:
    story = growing(4, 20)
    story.user("x" * 60_000)
    asked = Asked()
    with pytest.raises(CannotFit):
        mf.compact(story.native("anthropic"), model="claude-opus-5", budget=20_000, summarize=asked)
    assert asked.requests == []


def test_calls_and_window_are_the_policys() -> None:
    native = growing(5, 200).native("openai_chat")
    for calls, window in ((1, 100_000), (3, 20_000), (6, 10_000)):
        asked = Asked()
        policy = Policy(summary_calls=calls, summary_window=window)
        fit = mf.compact(native, model="o3-mini", budget=60_000, format="openai_chat", summarize=asked, policy=policy)
        assert 1 <= len(asked.requests) <= calls
        assert all(tokens(each.prompt) + each.max_tokens <= window for each in asked.requests)
        covered = [turn for each in asked.requests for turn in each.turns]
        assert covered == sorted(fit.plan.summarised)
    tight = Policy(summary_calls=1, summary_window=6_000)
    asked = Asked()
    fit = mf.compact(native, model="o3-mini", budget=60_000, format="openai_chat", summarize=asked, policy=tight)
    reason = next(rung.reason for rung in fit.receipt.rungs if rung.rung == "summary")
    assert "do not fit 1 requests of 6,000 tokens" in reason and asked.requests == []


def test_a_pass_that_is_done_again_for_the_frame_asks_once() -> None:
    source = Source(tuple(split_turns(formats.read(growing(6, 80).native("openai_chat"), "openai_chat").messages)[1]))
    model, policy = find("o3-mini"), Policy()
    limits = budget_for(model, policy, 40_000)
    asked = Asked()
    writer = Writer(asked, 4, 100_000)
    plans = []
    asked_first = 0
    for frame in (0, 60, 900, 3_000):
        fixed = {"the frame": Load(frame)}
        result = ladder.compact(source, model, limits, policy, fixed, None, writer=writer)
        assert limits.holds(result.load)
        plans.append(result.plan.summaries)
        asked_first = asked_first or len(asked.requests)
        assert len(asked.requests) == asked_first
    assert len(set(plans)) == 1 and plans[0]


def test_spared_turns_are_summarised_only_where_nothing_else_fits_and_force_asks_nobody() -> None:
    native = growing(6, 60).native("openai_chat")
    options: dict[str, Any] = {"model": "o3-mini", "format": "openai_chat"}
    spared = with_more(native, budget=50_000, spared=[(35, 37)], summarize=faithful, **options)
    assert spared.plan.summaries and not spared.plan.gone & {35, 36, 37}
    needed = with_more(native, budget=12_000, spared=[(35, 37)], summarize=faithful, **options)
    assert {35, 36, 37} <= needed.plan.summarised
    forced = with_more(native, budget=200_000, force=True, summarize=raising, **options)
    assert "summary" not in [rung.rung for rung in forced.receipt.rungs]


def test_a_path_that_skips_numbers() -> None:
    native = growing(12, 60).native("openai_chat")
    history = formats.read(native, "openai_chat")
    count = len(history.turns()[1])
    history.numbers = tuple(2 + 3 * at + (at > 20) * 40 for at in range(count))
    asked = Asked(lambda request: "\n".join(f"- fact: of {n} (turns {n}, {n + 1})" for n in request.turns[::9]))
    options: dict[str, Any] = {"model": "o3-mini", "budget": 30_000, "format": "openai_chat"}
    fit = mf.compact(history, summarize=asked, **options)
    on_path = set(history.numbers)
    assert fit.plan.summaries and fit.receipt.summary_flags["pointers to other turns"] > 0
    assert all({a, b} <= on_path for each in fit.plan.summaries for line in each.lines for a, b in line.turns)
    again = mf.compact(history, plan=fit.plan, summarize=raising, **options)
    assert (again.plan, again.messages) == (fit.plan, fit.messages)


def test_what_stays_in_view_is_told_to_the_summariser() -> None:
    """Kind: the summary contradicts rules that stand in the system prompt, since it was made without them."""
    native = growing(13, 60).native("anthropic")
    asked = Asked()
    options: dict[str, Any] = {"model": "claude-opus-5", "budget": 24_000}
    mf.compact(native, system='MUST NOT push to "main".\nEver.', summarize=asked, **options)
    (request,) = asked.requests
    before = request.prompt.partition("--- begin of the record ---")[0].split("\n")
    assert r'"MUST NOT push to \"main\".\nEver."' in before
    assert '"Mend the queue. Never touch the vendored files."' in before
    asked = Asked()
    mf.compact(native, system="x\ud800" * 2_000, summarize=asked, **options)
    assert asked.requests
    assert all(tokens(each.prompt) + each.max_tokens <= Policy().summary_window for each in asked.requests)


def test_async_summarisers() -> None:
    native = growing(7, 60).native("anthropic")
    options: dict[str, Any] = {"model": "claude-opus-5", "budget": 24_000}

    async def later(request: SummaryRequest) -> str:
        await asyncio.sleep(0)
        return faithful(request)

    plain = mf.compact(native, summarize=faithful, **options)
    assert plain.plan.summaries
    assert mf.compact(native, summarize=later, **options).plan == plain.plan

    async def within() -> mf.Context:
        with pytest.raises(BadInput, match="to_thread"):
            mf.compact(native, summarize=later, **options)
        return await asyncio.to_thread(mf.compact, native, summarize=later, **options)

    assert asyncio.run(within()).plan == plain.plan


@pytest.mark.parametrize("wire", builders.WIRES)
def test_a_summary_in_the_input_is_refused(wire: str) -> None:
    native = growing(8, 60).native(wire)
    fit = mf.compact(native, model=BLIND[wire], budget=24_000, format=wire, summarize=faithful)
    assert shown(fit, wire)
    with pytest.raises(OwnOutput, match="summary"):
        mf.compact(fit.messages, model=BLIND[wire], budget=24_000, format=wire)
    quoted = [*native, *builders.Story().user("It said: " + shown(fit, wire)).native(wire)]
    mf.compact(quoted, model=BLIND[wire], budget=24_000, format=wire)


def test_a_summarised_turn_is_recalled_whole_and_the_block_says_how() -> None:
    native = growing(9, 60).native("anthropic")
    tools = [{"name": "recall", "input_schema": {"type": "object"}}]
    fit = mf.compact(native, model="claude-opus-5", budget=24_000, tools=tools, summarize=faithful)
    assert "the tool named recall returns the exact text of a turn by its number" in shown(fit, "anthropic")
    turns = split_turns(formats.read(native, "anthropic").messages)[1]
    for turn in turns:
        if turn.number in fit.plan.summarised:
            assert formats.read(fit.recall(turn.number), "anthropic").messages == list(turn.messages)


def test_the_summary_stands_behind_the_guide_and_carries_the_mark_where_no_full_page_does() -> None:
    native = growing(10, 60).native("anthropic")
    fit = mf.compact(native, model="claude-opus-5", budget=24_000, summarize=faithful)
    middle = next(m["content"] for m in fit.messages if "Earlier turns" in json.dumps(m)[:200])
    assert middle[0]["text"].startswith("Earlier turns") and is_block(middle[1]["text"])
    assert middle[2]["type"] == "image"
    assert json.dumps(fit.messages).count('"cache_control"') == 1 and "cache_control" not in middle[1]
    blind = mf.compact(native, model=BLIND["anthropic"], budget=24_000, summarize=faithful)
    middle = next(m["content"] for m in blind.messages if "Summary of" in json.dumps(m)[:200])
    assert is_block(middle[0]["text"]) and "cache_control" in middle[0]


@cache
def summarising(model: str) -> tuple[list[Any], int, str]:
    wire = "anthropic"
    plan = None
    for rounds in (40, 60, 80):
        native = growing(11, rounds).native(wire)
        plan = mf.compact(native, model=model, budget=20_000, plan=plan, summarize=faithful).plan
    assert plan is not None and len(plan.summaries) >= 2
    return native, 20_000, plan.to_json()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1 << 32), st.sampled_from(["claude-opus-5", "claude-2.1"]))
def test_a_tampered_plan_never_crashes(seed: int, model: str) -> None:
    messages, budget, text = summarising(model)
    changed = json.loads(mutate(text, seed))
    if isinstance(changed, dict) and random.Random(seed).random() < 0.7:
        changed = json.loads(text) | {"summaries": changed.get("summaries"), "omitted": changed.get("omitted")}
    outcome(messages, budget, json.dumps(changed))


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data["summaries"].pop(0),
        lambda data: data["summaries"][0].update(last=data["summaries"][0]["last"] + 3),
        lambda data: data["summaries"][-1].update(last=data["through"] + 9),
        lambda data: data["summaries"].append(data["summaries"][0]),
        lambda data: data["summaries"][0].update(first=1),
        lambda data: data["omitted"].append([data["summaries"][0]["first"]] * 2),
        lambda data: data["summaries"][0]["lines"][0].update(text="two\nlines"),
        lambda data: data["summaries"][0]["lines"][0].update(kind="order"),
        lambda data: data["summaries"][0]["lines"][0].update(turns=[]),
    ],
)
def test_a_plan_that_no_pass_made_is_refused(change: Callable[[Any], Any]) -> None:
    messages, budget, text = summarising("claude-2.1")
    data = json.loads(text)
    change(data)
    with pytest.raises(BadInput):
        mf.compact(messages, model="claude-2.1", budget=budget, plan=mf.Plan.from_json(json.dumps(data)))


def check(seed: int) -> int:
    """A random history that grows, any model, a summariser of moods; says how many passes summarised."""
    source = random.Random(seed)
    story = builders.random_story(seed)
    for at in range(source.randrange(10, 40)):
        builders.step(story, source, seed * 1_000 + 500 + at, ["a.py", "b.py", "c.py", "d.py"])
    wire = source.choice(builders.WIRES)
    model, vision = source.choice(ANY_MODEL)
    ends = [at for at, event in enumerate(story.events) if not isinstance(event, builders.Result)]
    stops = sorted(source.sample(ends[1:], min(4, len(ends) - 1)))
    whole = formats.read(story.native(wire), wire)
    budget = int(mf.count(whole, model=model, vision=vision) * source.uniform(0.1, 0.5)) + 1
    policy = Policy(summary_share=source.choice((0.1, 0.3)), summary_window=source.choice((6_000, 100_000)))

    def moody(request: SummaryRequest) -> Any:
        mood = source.random()
        if mood < 0.15:
            raise ConnectionError("no line")
        if mood < 0.3:
            return source.choice(list(WORTHLESS.values()))
        return f"- fact: {builders.prose(seed, 9)} (turn {source.choice(request.turns)})\n- fact: no (turn 0)\n" * 2

    plan: mf.Plan | None = None
    made = 0
    for stop in [*stops, len(story.events)]:
        native = builders.Story(story.events[:stop]).native(wire)
        options: dict[str, Any] = {"model": model, "vision": vision, "budget": budget, "format": wire}
        options["policy"] = policy
        try:
            fit = mf.compact(native, plan=plan, summarize=moody, **options)
        except CannotFit:
            with pytest.raises(CannotFit):
                mf.compact(native, plan=plan, **options)
            continue
        assert fit.tokens <= budget
        assert mf.validate(fit.request, wire, model=model) == []
        history = formats.read(native, wire)
        receipt_adds_up(fit, mf.count(history, model=model, vision=vision))
        pairs(formats.read(fit.request, wire).messages)
        done = [rung.rung for rung in fit.receipt.rungs if not rung.reason]
        made += "summary" in done
        if fit.plan:
            closed(native, wire, fit)
        again = mf.compact(native, plan=fit.plan, summarize=raising, **options)
        assert (again.plan, again.messages, again.digest) == (fit.plan, fit.messages, fit.digest)
        assert tokens(shown(fit, wire)) <= policy.summary_share * budget + 1
        plan = fit.plan
    return made


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 1 << 32))
def test_random_histories(seed: int) -> None:
    check(seed)


@pytest.mark.full
def test_many_random_histories() -> None:
    assert sum(check(seed) for seed in range(1_000)) > 300


def test_the_scale_of_a_summary_is_never_too_small() -> None:
    text = "naïve 漢字 plain words and 0123456789abcdef" * 9
    for name, vision in ANY_MODEL:
        assert Scale(find(name, vision)).ruler.text(text) <= tokens(text)
    with pytest.raises(Failed):
        Writer(faithful, 1, 100_000).write(
            split_turns(formats.read([{"role": "user", "content": text}]).messages)[1], 5
        )
