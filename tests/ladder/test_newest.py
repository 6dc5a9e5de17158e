"""A newest result that is too large: first and last lines, pages of the middle, a pointer."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import builders
import microfiche as mf
import pytest
from builders import Story, code, png, prose, rounds
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from microfiche import formats, models
from microfiche.cli.receipt import show
from microfiche.fit import source_of
from microfiche.ladder.newest import LARGE, Shortened, is_pointer, shares, shorten
from microfiche.ladder.projection import project
from microfiche.models import Ruler
from microfiche.pages.render import read_back

OWN_MODEL = {
    "anthropic": "claude-opus-5",
    "openai_chat": "gpt-5.6-sol",
    "openai_responses": "gpt-5.6-sol",
    "gemini": "gemini-3.6-flash",
}
GIANT = code(9, 600_000)


def giant(before: int = 12, text: str = GIANT, error: bool = False) -> Story:
    return rounds(before, 2_000).uses(("run", {"command": "dump"}, text, error))


def newest_text(fit: mf.Context, wire: str) -> str:
    """What stands as text in the newest result, as the provider gets it."""
    found = formats.read(fit.request, wire).messages
    return next(result.text for message in reversed(found) for result in reversed(message.results))


@pytest.mark.parametrize("wire", builders.WIRES)
@pytest.mark.parametrize("budget", [25_000, 120_000])
def test_a_giant_newest_result_fits(wire: str, budget: int) -> None:
    """Kind: a tool result larger than the window made every pass fail, and the session was lost."""
    native = giant().native(wire)
    fit = mf.compact(native, model=OWN_MODEL[wire], budget=budget, format=wire)
    assert fit.tokens <= budget
    assert mf.validate(fit.request, wire, model=OWN_MODEL[wire]) == []
    [line] = fit.receipt.shortened
    assert line["characters"] == len(GIANT) == line["head"] + line["drawn"] + line["left_out"] + line["tail"]
    assert line["head"] and line["tail"] and line["drawn"] and line["pages"]
    assert "newest" in [rung.rung for rung in fit.receipt.rungs if not rung.reason]
    text = newest_text(fit, wire)
    assert text.startswith(GIANT[: line["head"]]) and text.endswith(GIANT[-line["tail"] :])
    assert GIANT[line["head"] - 1] == "\n" and GIANT[-line["tail"] - 1] == "\n"
    pages = [page for page in fit.pages if page.number > 1_000]
    assert len(pages) == line["pages"]
    assert read_back(pages) == GIANT[line["head"] : line["head"] + line["drawn"]]
    assert "on record as turn 14" in text
    assert f"page {pages[0].number}-{pages[-1].number}" in text
    if line["left_out"]:
        assert f"{line['left_out']:,} of 600,000 characters of this result left out here" in text


@pytest.mark.parametrize("wire", builders.WIRES)
@pytest.mark.parametrize("words", [("What does it say?",), ("Stop.", "What does it say?", "And quickly.")])
@pytest.mark.parametrize("joined", [False, True])
def test_words_behind_a_giant_result_leave_it_the_newest(wire: str, words: tuple[str, ...], joined: bool) -> None:
    """Kind: a user interrupted a run, and the output that the question was about had left the context."""
    story = giant()
    for each in words:
        story.user(each, joined=joined)
    native = story.native(wire)
    fit = mf.compact(native, model=OWN_MODEL[wire], budget=25_000, format=wire)
    assert fit.tokens <= 25_000 and mf.validate(fit.request, wire, model=OWN_MODEL[wire]) == []
    [line] = fit.receipt.shortened
    assert line["turn"] == 14 and line["head"] and line["tail"] and line["drawn"]
    text = newest_text(fit, wire)
    assert text.startswith(GIANT[: line["head"]]) and text.endswith(GIANT[-line["tail"] :])
    said = [m.text for m in formats.read(fit.request, wire).messages if m.role == "user"]
    assert [each for each in words if any(each in one for one in said)] == list(words)
    assert 14 not in fit.receipt.omitted_turns
    again = mf.compact(native, model=OWN_MODEL[wire], budget=25_000, format=wire, plan=fit.plan)
    assert (again.digest, again.plan) == (fit.digest, fit.plan)


def test_several_giants_behind_which_a_user_speaks_share_the_room() -> None:
    uses = [("run", {"command": str(at)}, code(at, 120_000), at == 1) for at in range(3)]
    story = rounds(12, 2_000).uses(*uses, ("ls", {}, code(7, 2_000))).user("And?", joined=True)
    fit = mf.compact(story.native("anthropic"), model="claude-opus-5", budget=30_000)
    assert fit.tokens <= 30_000 and mf.validate(fit.request, "anthropic", model="claude-opus-5") == []
    assert [line["turn"] for line in fit.receipt.shortened] == [14, 14, 14]
    sizes = [line["head"] + line["drawn"] + line["tail"] for line in fit.receipt.shortened]
    assert min(sizes) > 0.7 * max(sizes) > 1_000


def test_many_words_behind_a_giant_result_do_not_take_its_room() -> None:
    """Words of a user never change: the result has its share of the budget, and what is left, not less for them."""
    story = giant().user(prose(3, 3_000))
    fit = mf.compact(story.native("anthropic"), model="claude-opus-5", budget=40_000)
    assert fit.tokens <= 40_000 and prose(3, 3_000) in json.dumps(fit.messages[-1])
    [line] = fit.receipt.shortened
    assert line["head"] + line["drawn"] + line["tail"] > 30_000


def test_a_result_that_was_answered_is_history() -> None:
    """It becomes a placeholder or goes on pages like any other."""
    story = giant().says("It says nothing.").user("Go on.")
    fit = mf.compact(story.native("anthropic"), model="claude-opus-5", budget=60_000)
    assert not fit.plan.shortened and fit.plan.through == 14 and fit.tokens < 20_000


@pytest.mark.parametrize("wire", builders.WIRES)
def test_what_a_plan_says_of_it_holds(wire: str) -> None:
    """Handed back as JSON it makes the same context; later turns leave it as it is until it is paged."""
    story = giant(30)
    options: dict[str, Any] = {"model": OWN_MODEL[wire], "budget": 60_000, "format": wire}
    first = mf.compact(story.native(wire), **options)
    plan = mf.Plan.from_json(first.plan.to_json())
    assert plan == first.plan and plan.shortened
    again = mf.compact(story.native(wire), plan=plan, **options)
    assert (again.messages, again.digest, again.plan) == (first.messages, first.digest, first.plan)
    story.says("I see.").user("Go on.")
    later = mf.compact(story.native(wire), plan=plan, **options)
    assert later.plan == first.plan
    assert later.messages[: len(first.messages)] == first.messages
    for at in range(40):
        story.read(f"src/new_{at}.py", code(at, 4_000))
    last = mf.compact(story.native(wire), plan=plan, **options)
    assert last.tokens <= 60_000
    assert mf.validate(last.request, wire, model=OWN_MODEL[wire]) == []
    archive = last.plan.archive
    assert archive is None or archive.last >= 32


def test_pages_of_a_result_that_is_elided_later_are_no_longer_of_the_plan() -> None:
    story = giant(6)
    options: dict[str, Any] = {"model": "claude-haiku-4-5", "policy": mf.Policy(rungs=("elide", "newest"))}
    first = mf.compact(story.native("anthropic"), budget=25_000, **options)
    assert first.plan.shortened and first.drawn
    story.says("I have seen it.").user("Go on.")
    for at in range(8):
        story.uses(("run", {"command": f"check {at}"}, code(at, 4_000)))
    grown = story.native("anthropic")
    later = mf.compact(grown, budget=25_000, plan=first.plan, **options)
    assert not later.plan.shortened and 8 in {spot[0] for spot in later.plan.elided}
    source, _ = source_of(formats.read(grown, "anthropic"), "anthropic")
    assert later.drawn == project(source, later.plan).drawn == ()


def test_on_a_page_of_the_archive_what_was_left_out_stays_out() -> None:
    story = rounds(3, 2_000).read("giant.py", code(4, 60_000))
    options: dict[str, Any] = {"model": "claude-opus-5", "budget": 20_000}
    first = mf.compact(story.native("anthropic"), **options)
    [short] = first.plan.shortened.values()
    for at in range(6):
        story.read(f"src/new_{at}.py", code(at, 4_000))
    last = mf.compact(story.native("anthropic"), plan=first.plan, **options)
    archive = last.plan.archive
    assert archive is not None and archive.last >= 5 and not archive.left_out
    text = read_back([page for page in last.pages if page.number < 1_000])
    full = code(4, 60_000)
    assert full[: short.head + short.drawn] in text and full[-short.tail :] in text
    assert f"{short.left_out(full):,} of 60,000 characters" in text
    assert not [page for page in last.pages if page.number > 1_000]


def test_the_receipt_tells_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    fit = mf.compact(giant().native("anthropic"), model="claude-opus-5", budget=60_000)
    show(fit.receipt, "session")
    [line] = fit.receipt.shortened
    told = " ".join(capsys.readouterr().out.split())
    assert f"a result of turn 14: {line['head'] + line['tail']:,} characters as text, {line['drawn']:,} on " in told
    assert f"{line['left_out']:,} left out" in told
    assert json.loads(fit.receipt.to_json())["shortened"] == [line]


def test_parallel_results_share_the_room() -> None:
    """The small ones stay whole, pictures and errors stay with theirs."""
    small = code(1, 3_000)
    uses: list[tuple[Any, ...]] = [
        ("run", {"command": "a"}, code(2, 90_000)),
        ("read_file", {"path": "s.py"}, small),
        ("run", {"command": "b"}, code(3, 200_000), True),
        ("shot", {}, (code(4, 150_000), png(60, 40))),
    ]
    story = Story().user("go").uses(*uses)
    fit = mf.compact(story.native("anthropic"), model="claude-opus-5", budget=40_000)
    assert fit.tokens <= 40_000
    assert len(fit.plan.shortened) == 3
    results = [r for m in formats.read(fit.request, "anthropic").messages for r in m.results]
    assert results[1].text == small
    assert results[2].error and not results[0].error
    assert len({page.number for page in fit.pages}) == len(fit.pages)
    assert {line["turn"] for line in fit.receipt.shortened} == {2}
    assert mf.validate(fit.request, "anthropic", model="claude-opus-5") == []
    assert png(60, 40) in [part.data for part in results[3].parts if hasattr(part, "data")]


def test_many_small_results_of_one_batch_are_as_one_giant() -> None:
    """None of them is large; where large ones give enough, small ones stay whole."""
    small = [("ask", {"n": at}, code(at, 3_000)) for at in range(40)]
    for uses, shortened in ((small, 40), ([*small[:4], ("run", {"command": "a"}, code(99, 90_000))], 1)):
        story = Story().user("go").uses(*uses)
        fit = mf.compact(story.native("anthropic"), model="claude-opus-5", budget=18_000)
        assert fit.tokens <= 18_000 and len(fit.plan.shortened) == len(fit.receipt.shortened) == shortened
        results = [r for m in formats.read(fit.request, "anthropic").messages for r in m.results]
        assert [result.call_id for result in results] == [f"toolu_{at + 1:04d}" for at in range(len(uses))]
        assert mf.validate(fit.request, "anthropic", model="claude-opus-5") == []


def test_without_pages_the_lines_take_the_room() -> None:
    native = giant().native("openai_chat")
    fit = mf.compact(native, model="o3-mini", budget=30_000)
    [line] = fit.receipt.shortened
    assert not fit.pages and not line["drawn"]
    assert 13_000 < Ruler(models.find("o3-mini")).text(newest_text(fit, "openai_chat")) <= 15_100


def test_a_refusal_for_a_giant_result_is_recovered() -> None:
    body = {"error": {"type": "invalid_request_error", "message": "prompt is too long: 312000 tokens > 200000 maximum"}}
    native = giant(3).native("anthropic")
    fit = mf.recover(native, error=(400, body), model="claude-haiku-4-5", max_tokens=8_000)
    assert fit.receipt.shortened and fit.tokens <= 0.95 * 192_000


def test_what_never_changes_is_one_error() -> None:
    for story in (Story().user("go").says("ok").user(prose(1, 20_000)), Story().user(prose(1, 20_000))):
        with pytest.raises(mf.CannotFit, match=r"the newest (?:message|turn) alone"):
            mf.compact(story.native("anthropic"), model="claude-opus-5", budget=20_000)
    with pytest.raises(mf.CannotFit, match="system prompt alone"):
        mf.compact(giant(3).native("anthropic"), model="claude-opus-5", budget=20_000, system=prose(1, 20_000))


def test_what_fits_when_old_turns_leave_stays_whole() -> None:
    """Under its share the newest turn is left alone, however much history has to go for it."""
    text = code(5, 20_000)
    fit = mf.compact(giant(60, text).native("anthropic"), model="claude-opus-5", budget=25_000)
    assert not fit.plan.shortened and newest_text(fit, "anthropic") == text
    off = mf.Policy(rungs=("elide", "images", "snapshot", "omit"))
    with pytest.raises(mf.CannotFit, match="newest turn alone"):
        mf.compact(giant(3).native("anthropic"), model="claude-opus-5", budget=25_000, policy=off)


def test_our_own_pointer_is_refused_and_a_quoted_one_is_not() -> None:
    fit = mf.compact(giant(3).native("anthropic"), model="claude-opus-5", budget=60_000)
    with pytest.raises(mf.OwnOutput):
        mf.compact(fit.messages, model="claude-opus-5", budget=60_000)
    pointer = next(iter(Shortened(3, 4).parts("x" * 90, 7, True, ())), None)
    story = Story().user("go").uses(("grep", {}, f"plan: {pointer}"))
    assert mf.compact(story.native("anthropic"), model="claude-opus-5", budget=9_000).receipt.reason == "under_budget"


@pytest.mark.parametrize("change", [{"head": 10**9}, {"drawn": 5}, {"pages": ["0" * 64]}, {"tail": -1}, {"form": None}])
def test_a_forged_plan_is_refused(change: dict[str, Any]) -> None:
    native = giant(3, code(3, 90_000)).native("anthropic")
    fit = mf.compact(native, model="claude-opus-5", budget=30_000)
    data = json.loads(fit.plan.to_json())
    next(iter(data["shortened"].values())).update(change)
    with pytest.raises((mf.PlanMismatch, mf.BadInput)):
        mf.compact(native, model="claude-opus-5", budget=30_000, plan=mf.Plan.from_json(json.dumps(data)))


LINES = st.lists(st.text(max_size=60), max_size=200)


@settings(max_examples=60, deadline=None)
@given(LINES, st.integers(300, 9_000), st.sampled_from(["claude-opus-5", "gpt-5.6-sol", "o3-mini"]), st.booleans())
def test_no_character_is_lost_or_told_twice(lines: list[str], limit: int, model: str, recall: bool) -> None:
    text = "\n".join(lines) + "\n" + builders.STRANGE[3] * (LARGE // 10)
    ruler = Ruler(models.find(model))
    assume(ruler.text(text) > limit)
    short = shorten(text, (5, 1, 0, 0), False, limit, ruler, recall, None, lambda pages: True)
    assert short.left_out(text) >= 0 and short.head + short.tail <= len(text)
    parts = [part.text for part in short.parts(text, 5, recall, ()) if hasattr(part, "text")]
    assert sum(map(ruler.text, parts)) <= max(limit, 120)
    assert [part for part in parts if is_pointer(part)]
    told = [part for part in parts if not is_pointer(part)]
    assert "".join(told) == text[: short.head] + text[len(text) - short.tail :]
    count = re.search(r"([\d,]+) of", next(filter(is_pointer, parts)))
    assert count is not None and int(count[1].replace(",", "")) == short.left_out(text)


@given(st.dictionaries(st.tuples(st.integers(0, 9)), st.integers(0, 10_000), max_size=8), st.integers(0, 30_000))
def test_shares_fill_the_room(sizes: dict[tuple[int, ...], int], room: int) -> None:
    given_less = shares(sizes, room)
    total = sum(given_less.get(spot, size) for spot, size in sizes.items())
    assert all(given_less[spot] < sizes[spot] or not given_less[spot] for spot in given_less)
    assert total <= max(room, 0) or not room
    if sum(sizes.values()) > room:
        assert room - total < len(sizes)
    else:
        assert not given_less


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 1 << 32))
def test_random_giants(seed: int) -> None:
    """After any history, of any wire, whatever the giant is made of."""
    source = random.Random(seed)
    story = builders.random_story(seed)
    if isinstance(story.events[-1], builders.Assistant) and story.events[-1].calls:
        story.events.pop()
    kinds = [code(seed, 80_000), prose(seed, 15_000), "x" * 90_000, "\n" * 90_000, "漢字🧪" * 20_000, "\ud800" * 40_000]
    content = tuple(source.sample(kinds, source.randrange(1, 3))) + ((png(50, 30),) if seed % 2 else ())
    uses = [("run", {"command": str(at)}, content, source.random() < 0.3) for at in range(source.randrange(1, 4))]
    story.uses(*uses, text="now")
    wire = source.choice(builders.WIRES)
    model = source.choice([OWN_MODEL[wire], "o3-mini", "claude-haiku-4-5"])
    total = mf.count(story.native(wire), model=model)
    budget = int(total * source.uniform(0.1, 0.9))
    try:
        fit = mf.compact(story.native(wire), model=model, budget=budget, format=wire)
    except mf.CannotFit as error:
        assert "alone" in str(error) or "what never changes" in str(error)
        return
    assert fit.tokens <= budget
    assert mf.validate(fit.request, wire, model=model) == []
    again = mf.compact(story.native(wire), model=model, budget=budget, format=wire, plan=fit.plan)
    assert (again.plan, again.digest) == (fit.plan, fit.digest)


def test_a_record_holds_it_over_a_restart(tmp_path: Path) -> None:
    """The pass is an event with its turn in its span; what was left out is recalled whole."""
    native = giant(6, code(5, 200_000)).native("anthropic")
    options: dict[str, Any] = {"model": "claude-opus-5", "budget": 30_000}
    with mf.Record.open(tmp_path / "work.mf") as record:
        chat = record.conversation("triage")
        chat.append(native)
        first = chat.context(**options)
        assert first.receipt.shortened
        [event] = chat.state().events
        assert event.payload["span"][0] <= 8 <= event.payload["span"][1]
    with mf.Record.open(tmp_path / "work.mf") as record:
        chat = record.conversation("triage")
        again = chat.context(**options)
        assert (again.digest, again.messages) == (first.digest, first.messages)
        assert chat.recall(8) == native[-2:]
        assert record.verify()
