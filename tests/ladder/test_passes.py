"""Many passes over a history that grows: what was drawn stays, byte for byte, and caches with it."""

from __future__ import annotations

import base64
import json
from typing import Any

import builders
import microfiche as mf
import pytest
from microfiche.testing import Judge

BUDGETS = dict.fromkeys(builders.WIRES, 22_000)
MODELS = {
    "anthropic": "claude-opus-5",
    "openai_chat": "gpt-5.6-sol",
    "openai_responses": "gpt-5.6-sol",
    "gemini": "gemini-3.6-flash",
}


def native(message: Any) -> str:
    """The message as text, without cache marks, which are no part of what a cache compares."""
    return json.dumps(message, sort_keys=True).replace('"cache_control": {"type": "ephemeral"}, ', "")


@pytest.mark.parametrize("wire", builders.WIRES)
def test_full_pages_and_the_prefix_stay(wire: str) -> None:
    plan: mf.Plan | None = None
    full: list[str] = []
    passes = extended = 0
    before: list[str] = []
    for rounds in range(8, 88, 4):
        messages = builders.growing(1, rounds).native(wire)
        fit = mf.compact(messages, model=MODELS[wire], budget=BUDGETS[wire], plan=plan, format=wire)
        assert fit.tokens <= BUDGETS[wire]
        assert mf.validate(fit.request, wire) == []
        archive = fit.plan.archive
        now = [page.digest for page in archive.full] if archive is not None else []
        assert now[: len(full)] == full, "a full page changed or went"
        lines = [native(message) for message in fit.messages]
        if fit.plan and fit.plan == plan:
            # No pass: the context before is the beginning of this one (a note that a pass left the last word
            # to the user is no part of it).
            kept = [line for line in before if "(continue)" not in line]
            assert lines[: len(kept)] == kept
            extended += 1
        elif plan is not None and plan.archive is not None:
            passes += 1
            same_prefix(plan, fit, before, lines)
        if rounds % 16 == 0:
            again = mf.compact(messages, model=MODELS[wire], budget=BUDGETS[wire], plan=fit.plan, format=wire)
            assert (again.plan, again.messages, again.digest) == (fit.plan, fit.messages, fit.digest)
        assert sum(line.count('"text": "Earlier turns of this conversation') for line in lines) == bool(now)
        plan, full, before = fit.plan, now, lines
    assert passes >= 4
    assert len(full) >= 4


def test_twenty_passes_leave_full_pages_and_what_is_before_them_as_they_were() -> None:
    """Kind: a new archive with every pass, and nothing of it ever read from the prompt cache."""
    plan: mf.Plan | None = None
    before: list[str] = []
    pages: dict[int, bytes] = {}
    passes = 0
    for rounds in range(8, 400, 5):
        messages = builders.growing(1, rounds, 900, 10).native("anthropic")
        fit = mf.compact(messages, model=MODELS["anthropic"], budget=20_000, plan=plan)
        archive = fit.plan.archive
        lines = [native(message) for message in fit.messages]
        if plan is not None and plan.archive is not None and fit.plan != plan:
            passes += 1
            assert archive is not None and archive.full[: len(plan.archive.full)] == plan.archive.full
            same_prefix(plan, fit, before, lines)
        if archive is not None:
            full = {page.number for page in archive.full}
            for page in fit.pages:
                assert page.number not in full or pages.setdefault(page.number, page.png) == page.png
        plan, before = fit.plan, lines
        if passes == 20:
            break
    assert passes == 20 and len(pages) >= 12


def same_prefix(plan: mf.Plan, fit: mf.Context, before: list[str], lines: list[str]) -> None:
    """Up to the last page that was full and is still shown with the same first page, bytes are the same."""
    assert plan.archive is not None and fit.plan.archive is not None
    if plan.archive.left_out != fit.plan.archive.left_out:
        return
    old, new = "\n".join(before), "\n".join(lines)
    shown = len(plan.archive.full) - plan.archive.left_out
    if shown:
        end = base64.b64encode(fit.pages[shown - 1].png).decode()
        assert old[: old.index(end)] == new[: new.index(end)]


@pytest.mark.parametrize("ttl", [None, "1h"])
@pytest.mark.parametrize("beside", [0, 1, 3, 4])
@pytest.mark.parametrize("whole", [False, True])
def test_our_mark_and_the_callers_are_an_order_that_is_accepted(ttl: str | None, beside: int, whole: bool) -> None:
    """Kind: a mark of five minutes put before the caller's of an hour, and every request refused from then on.

    Four marks in the system prompt and the tools leave no place: the earliest makes room, and stays with the caller.
    """
    mark = {"type": "ephemeral"} | ({"ttl": ttl} if ttl else {})
    messages = builders.growing(2, 40).native("anthropic")
    messages[-1] = {**messages[-1], "content": [*messages[-1]["content"][:-1], {**messages[-1]["content"][-1]}]}
    messages[-1]["content"][-1]["cache_control"] = mark
    system = [{"type": "text", "text": f"Rule {at}.", "cache_control": mark} for at in range(beside)] or "Be brief."
    tools = [{"name": name, "input_schema": {"type": "object"}} for name in ("read_file", "run", "screenshot")]
    body = {"model": "claude-opus-5", "max_tokens": 900, "system": system, "tools": tools, "messages": messages}
    body |= {"cache_control": mark} if whole else {}
    before = json.dumps(body)
    fit = mf.compact(body, model="claude-opus-5", budget=20_000)
    assert json.dumps(body) == before
    assert Judge().check("anthropic", fit.request, "claude-opus-5") is None
    assert not fit.receipt.repairs
    middle = next(m["content"] for m in fit.messages if "Earlier turns" in json.dumps(m)[:200])
    assert len([block for block in middle if "cache_control" in block]) == 1
    assert json.dumps(fit.request).count('"cache_control"') == min(beside + 2 + whole, 4)


@pytest.mark.parametrize("places", [(), (0, -1, -3, -5), (-1, -3, -5, -7), (0, -1)])
def test_one_mark_on_the_last_full_page_and_four_in_all(places: tuple[int, ...]) -> None:
    """Kind: no cache mark behind the boundary of a compaction, so that the stable middle was billed on every turn."""
    story = builders.growing(2, 40)
    messages = story.native("anthropic")
    marked = {"type": "ephemeral"}
    for at in places:
        content = messages[at]["content"]
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        messages[at] = {**messages[at], "content": [*blocks[:-1], {**blocks[-1], "cache_control": marked}]}
    before = json.dumps(messages)
    fit = mf.compact(messages, model="claude-opus-5", budget=20_000)
    assert json.dumps(messages) == before
    assert json.dumps(fit.messages).count('"cache_control"') == min(len(places) + 1, 4)
    assert "cache-marks" not in json.dumps(fit.receipt.repairs)
    middle = next(m["content"] for m in fit.messages if "Earlier turns" in json.dumps(m)[:200])
    carriers = [at for at, block in enumerate(middle) if "cache_control" in block]
    assert len(carriers) == 1
    last_full = fit.plan.archive.full[-1]  # type: ignore[union-attr]
    pages = [at for at, block in enumerate(middle) if block["type"] == "image" and "transformations" in block]
    shown = [page.number for page in fit.pages]
    at = pages[shown.index(last_full.number)]
    following = pages[shown.index(last_full.number) + 1]
    assert at <= carriers[0] < following
    assert all("transformations" not in block for block in middle[at + 1 : carriers[0] + 1])


@pytest.mark.parametrize("fidelity", ["exact", "working", "gist"])
def test_a_page_of_a_turn_is_the_same_after_five_passes(fidelity: Any) -> None:
    plan = None
    first: dict[int, bytes] = {}
    for rounds in (20, 26, 32, 38, 44, 50):
        messages = builders.growing(3, rounds).native("anthropic")
        fit = mf.compact(messages, model="claude-opus-5", budget=24_000, plan=plan, fidelity=fidelity)
        plan = fit.plan
        full = {page.number for page in plan.archive.full} if plan.archive is not None else set()
        for page in fit.pages:
            if page.number in full:
                assert first.setdefault(page.number, page.png) == page.png
    assert first


def test_a_larger_budget_or_another_model_makes_a_new_plan() -> None:
    messages = builders.growing(4, 30).native("anthropic")
    small = mf.compact(messages, model="claude-opus-5", budget=20_000)
    assert small.plan.archive is not None
    larger = mf.compact(messages, model="claude-opus-5", budget=30_000, plan=small.plan)
    assert larger.plan == mf.compact(messages, model="claude-opus-5", budget=30_000).plan != small.plan
    other = mf.compact(messages, model="gemini-3.6-flash", budget=20_000, plan=small.plan)
    assert other.plan == mf.compact(messages, model="gemini-3.6-flash", budget=20_000).plan
    everything = mf.compact(messages, model="claude-opus-5", budget=10**6, plan=small.plan)
    assert everything.messages is messages
    assert not everything.plan


def test_a_smaller_budget_moves_parts_down_only() -> None:
    messages = builders.growing(5, 40).native("anthropic")
    plan = None
    elided: set[Any] = set()
    full: list[Any] = []
    for budget in (50_000, 35_000, 24_000, 16_000, 11_000):
        fit = mf.compact(messages, model="claude-opus-5", budget=budget, plan=plan)
        plan = fit.plan
        assert fit.tokens <= budget
        assert elided <= set(plan.elided)
        elided = set(plan.elided)
        if plan.archive is not None:
            assert [page.digest for page in plan.archive.full][: len(full)] == full
            full = [page.digest for page in plan.archive.full]
    assert full


def test_a_smaller_budget_that_still_holds_changes_nothing() -> None:
    messages = builders.growing(6, 30).native("anthropic")
    fit = mf.compact(messages, model="claude-opus-5", budget=30_000)
    less = mf.compact(messages, model="claude-opus-5", budget=fit.tokens, plan=fit.plan)
    assert (less.plan, less.messages) == (fit.plan, fit.messages)
    back = mf.compact(messages, model="claude-opus-5", budget=30_000, plan=less.plan)
    assert (back.plan, back.messages) == (fit.plan, fit.messages)


def test_a_picture_told_of_on_a_full_page_is_out_of_reach() -> None:
    """The page breaks inside a user's message behind its picture: dropping that would change what is drawn."""
    picture = [builders.png(300, 300, seed) for seed in range(4)]
    story = builders.Story().user("go")
    story.user(builders.prose(1, 600), picture[0], builders.prose(2, 1_600))
    for at in range(6):
        story.uses(("read_file", {"path": f"{at}.py"}, builders.code(at, 1_800)))
    size = -(-len(picture[0]) // 3) * 4
    policy = mf.Policy(image_bytes=3 * size + 200_000, tail_share=0.5)
    first = mf.compact(story.native("anthropic"), model="claude-opus-5", budget=12_000, policy=policy)
    archive = first.plan.archive
    assert archive is not None and archive.full and archive.full[-1].upto[0] == 2 and 2 not in archive.beside
    for at in (1, 2, 3):
        story.user(f"see {at}", picture[at])
    policy = mf.Policy(image_bytes=3 * size + 1_000, tail_share=0.5)
    second = mf.compact(story.native("anthropic"), model="claude-opus-5", budget=12_000, policy=policy, plan=first.plan)
    assert (2, 0, 1) not in second.plan.dropped
    assert second.receipt.after.tokens <= 12_000
    new = second.plan.archive
    assert new is None or new.full[: len(archive.full)] == archive.full


def test_bulk_is_what_leaves_and_the_receipt_says_how_much_of_each_kind() -> None:
    """Kind: words of people went with the history while output of tools stayed."""
    messages = builders.growing(7, 60).native("anthropic")
    fit = mf.compact(messages, model="claude-opus-5", budget=30_000)
    kinds = fit.receipt.kinds
    lost = {kind: before - after for kind, (before, after) in kinds.items()}
    assert lost["results"] > 0.8 * sum(lost.values())
    assert sum(before for before, _ in kinds.values()) <= fit.receipt.before.tokens
    whole = mf.compact(messages, model="claude-opus-5", budget=10**6)
    assert all(before == after for before, after in whole.receipt.kinds.values())
