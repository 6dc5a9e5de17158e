"""Rung 1: what it takes, what it never takes, and that every placeholder tells the truth."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import builders
import microfiche as mf
import pytest
from builders import Story, code, log
from hypothesis import given
from hypothesis import strategies as st
from microfiche import formats
from microfiche.ladder.elide import Elision, _Ranges, elide, is_placeholder
from microfiche.messages import Text, ToolCall, ToolResult, Turn, split_turns

FLOOR = 400


def turns_of(story: Story) -> list[Turn]:
    return split_turns(formats.read(story.native("anthropic"), "anthropic").messages)[1]


def elided(story: Story, protected: int | None = None, floor: int = FLOOR) -> dict[int, Elision]:
    """What goes, by turn, with everything before ``protected`` (default: all turns) in reach."""
    turns = turns_of(story)
    found = elide(turns, protected or turns[-1].number + 1, lambda spot: False, floor)
    return {spot[0]: elision for spot, elision in found.items()}


def reads(*uses: tuple[dict[str, Any], str], tool: str = "read_file") -> Story:
    """A prompt, then a read a turn: the first is turn 2."""
    story = Story().user("go")
    for arguments, text in uses:
        story.uses((tool, arguments, text))
    return story


LONG = code(1, 3_000)
LINES = LONG.split("\n")


def part_of(first: int, last: int) -> str:
    return "\n".join(LINES[first - 1 : last])


@pytest.mark.parametrize("tool", ["read_file", "View", "x7"])
@pytest.mark.parametrize("key", ["path", "file_path", "filename"])
def test_a_full_read_after_a_range_stands_for_it(tool: str, key: str) -> None:
    story = reads(({key: "a.py", "offset": 5, "limit": 40}, part_of(5, 44)), ({key: "a.py"}, LONG + "\nx"), tool=tool)
    assert elided(story) == {2: Elision("superseded", 3)}


@pytest.mark.parametrize(
    ("early", "late", "goes"),
    [
        ((1, 40), (1, 40), True),
        ((10, 30), (1, 40), True),
        ((1, 40), (10, 30), False),
        ((1, 30), (31, 60), False),
        ((1, 30), (20, 60), False),
        ((20, 40), (21, 40), False),
        ((20, 41), (20, 40), False),
    ],
)
@pytest.mark.parametrize(
    "ask",
    [
        lambda a, b: {"offset": a, "limit": b - a + 1},
        lambda a, b: {"start_line": a, "end_line": b},
        lambda a, b: {"view_range": [a, b]},
    ],
)
def test_ranges(early: tuple[int, int], late: tuple[int, int], goes: bool, ask: Callable[[int, int], Any]) -> None:
    first = {"path": "a.py", **ask(*early)}
    second = {"path": "a.py", **ask(*late)}
    story = reads((first, part_of(*early)), (second, part_of(*late) + " "))
    assert bool(elided(story, floor=1)) == goes


def test_the_last_line_without_a_break_counts() -> None:
    whole = {"path": "a.py"}
    story = reads((whole, "x" * 500 + "\nlast"), ({**whole, "offset": 1, "limit": 1}, "x" * 500 + " "))
    assert elided(story) == {}


def test_a_read_that_gave_less_than_it_was_asked_for_covers_what_it_gave() -> None:
    cut = "\n".join(LINES[:20])
    story = reads(
        ({"path": "a.py", "offset": 1, "limit": 60}, part_of(1, 60)),
        ({"path": "a.py", "offset": 1, "limit": 2000}, cut),
    )
    assert elided(story) == {}


def test_other_files_and_other_tools_do_not_stand_for_a_read() -> None:
    story = reads(({"path": "a.py"}, LONG), ({"path": "b.py"}, LONG + "\n#"))
    story.uses(("list", {"path": "a.py"}, LONG + "\n##"))
    assert elided(story) == {}


def test_the_same_call_again_stands_for_the_earlier_even_where_the_file_shrank() -> None:
    story = reads(({"path": "a.py"}, LONG), ({"path": "a.py"}, part_of(1, 30)))
    assert elided(story) == {2: Elision("superseded", 3)}


def test_a_later_complaint_does_not_stand_for_a_read() -> None:
    for complaint, error in (("Error: the file is locked", False), ("gone", True)):
        story = Story().user("go").uses(("read_file", {"path": "a.py"}, LONG))
        story.uses(("read_file", {"path": "a.py"}, complaint, error))
        assert elided(story) == {}


def test_repeats_writes_logs_and_blanks() -> None:
    story = Story().user("go")
    story.uses(("fetch", {"id": 1}, LONG)).uses(("fetch", {"id": 2}, LONG))
    story.uses(("write_file", {"path": "a.py", "content": LONG}, "written\n" + code(7, 900)))
    story.uses(("bash", {"command": "make"}, log(1, 90)))
    story.uses(("bash", {"command": "true"}, " \n" * 400))
    keep = len("\n".join(log(1, 90).split("\n")[-8:]))
    assert elided(story) == {
        2: Elision("repeated", 3),
        4: Elision("written"),
        5: Elision("log", keep=keep),
        6: Elision("empty"),
    }


TROUBLES = (
    "TypeError: x is not a function",
    "1 test FAILED",
    "warning: unused variable",
    "exit code 1",
    "Exit status: 2",
    "java.lang.NullPointerException",
    "command not found",
    "✗ adds two numbers",
    "npm ERR! code 1",
    "Connection refused",
    "thread 'main' panicked at",
    "Segmentation fault (core dumped)",
    "not ok 3 - queue",
    "fatal: no upstream",
)

TROUBLE_WORDS = (
    *("2 errors", "exceptions: 2", "the failure is here", "3 warnings", "err: x", "Traceback", "1 fail", "it failed"),
    *("failing", "it fails", "panic: x", "it panicked", "cannot open", "can't open", "could not open", "unable to do"),
    *("denied", "refused", "undefined", "unresolved", "unexpected", "invalid", "missing", "not found", "no such file"),
    *("segfault", "dumped", "Killed", "assert x", "assertion x", "abort", "Aborted", "timed out", "timeout"),
    *("conflict", "2 conflicts", "1 problem", "27 problems", "exited with code 1", "return code 3", "returned 1"),
    *("exit with status 9", "✘ adds", "✖ adds", "❌ adds"),
)
"""Each word of trouble once, alone on its line."""


@pytest.mark.parametrize("trouble", TROUBLES)
def test_what_tells_of_trouble_stays(trouble: str) -> None:
    story = Story().user("go")
    story.uses(("write_file", {"path": "a.py", "content": "x"}, code(7, 900) + "\n" + trouble))
    story.uses(("bash", {"command": "make"}, log(1, 40) + "\n" + trouble + "\n" + log(2, 40)))
    story.uses(("bash", {"command": "again"}, log(3, 40) + "\n" + trouble))
    story.uses(("bash", {"command": "again"}, log(4, 40)))
    assert elided(story) == {5: Elision("log", keep=elided(story)[5].keep)}


@pytest.mark.parametrize("word", TROUBLE_WORDS)
def test_a_word_of_trouble_is_neither_a_plain_success_nor_replaced_by_the_next_run(word: str) -> None:
    story = Story().user("go")
    story.uses(("write_file", {"path": "a.py", "content": "x"}, code(7, 900) + "\n" + word))
    story.uses(("bash", {"command": "make"}, code(1, 900) + "\n" + word))
    story.uses(("bash", {"command": "make"}, code(2, 900)))
    assert elided(story) == {}
    story.uses(("write_file", {"path": "b.py", "content": "x"}, code(8, 900)))
    story.uses(("bash", {"command": "make"}, code(3, 900)))
    assert {turn: each.why for turn, each in elided(story).items()} == {4: "superseded", 5: "written"}


@pytest.mark.parametrize("wire", ["anthropic", "gemini"])
@pytest.mark.parametrize("budget", [40_000, 20_000, 9_000])
def test_a_result_flagged_error_is_never_elided(wire: str, budget: int) -> None:
    story = Story().user("go")
    for at in range(30):
        story.uses(("read_file", {"path": "same.py"}, LONG, at % 3 == 0))
    fit = mf.compact(story.native(wire), model="claude-opus-5", budget=budget, format=wire)
    assert fit.plan.elided
    turns = split_turns(formats.read(story.native(wire), wire).messages)[1]
    for turn, m, p in fit.plan.elided:
        assert not turns[turn - 1].messages[m].parts[p].error  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "findings",
    [
        "a.py:3:7: error: no such name",
        "FAILED a.py::test_x",
        "2 failed, 7 passed",
        "✗ adds",
        "error TS2304: x",
        "3 problems",
    ],
)
def test_findings_of_a_checker_stay_when_it_runs_again(findings: str) -> None:
    story = Story().user("go").uses(("check", {"path": "a.py"}, f"{code(1, 600)}\n{findings}\n"))
    story.uses(("check", {"path": "a.py"}, code(2, 4_000)))
    assert elided(story) == {}


def test_a_file_that_speaks_of_errors_may_be_superseded() -> None:
    text = "".join(f"{at:6}\tif error: raise ValueError('failed')\n" for at in range(1, 30))
    story = reads(({"path": "a.py"}, text), ({"path": "a.py"}, text + "    30\tpass"))
    assert elided(story) == {2: Elision("superseded", 3)}


def test_an_answer_to_text_is_no_write() -> None:
    story = Story().user("go")
    story.uses(("ask_expert", {"text": "why?"}, code(3, 2_000)))
    story.uses(("http", {"url": "http://x/y", "body": "q", "text": "z"}, code(4, 2_000)))
    assert elided(story) == {}


def test_below_the_floor_nothing_is_touched() -> None:
    short = code(5, FLOOR - 1)
    story = reads(({"path": "a.py"}, short), ({"path": "a.py"}, short), ({"path": "b.py"}, short + "xx"))
    assert elided(story) == {}
    assert set(elided(story, floor=FLOOR - 1)) == {2}


def test_what_a_log_would_save_counts_not_what_it_is() -> None:
    tail = "\n".join("Compiling the last units " + "z" * 70 for _ in range(8))
    story = Story().user("go").uses(("bash", {"command": "make"}, "\n".join(["Comp"] * 60) + "\n" + tail))
    assert elided(story) == {}


def test_results_with_pictures_stay_whole() -> None:
    story = Story().user("go")
    for _ in range(2):
        story.uses(("read_file", {"path": "a.png"}, (LONG, builders.png(20, 20))))
    assert elided(story) == {}


def test_the_protected_tail_is_left_alone() -> None:
    story = reads(*[({"path": "a.py"}, LONG)] * 6)
    assert set(elided(story, protected=5)) == {2, 3, 4}


def test_a_placeholder_says_what_how_long_why_and_where() -> None:
    result = ToolResult("c", (Text("y" * 1_234),), name="Read\nMe!")
    told = Elision("superseded", 9).placeholder(result, 4, True)
    assert told == (
        "[1,234 characters of this ReadMe result left out: turn 9 has a later result for the same call; "
        "recall of turn 4 returns them]"
    )
    assert "no recall from here" in Elision("empty").placeholder(result, 4, False)


def test_counts_are_exact_and_the_rest_is_kept() -> None:
    story = Story().user("go").uses(("bash", {"command": "make"}, log(1, 200)))
    story.uses(*[("note", {}, "fine")] * 2)
    text = log(1, 200)
    (spot, elision) = next(iter(elide(turns_of(story), 99, lambda spot: False, FLOOR).items()))
    result = turns_of(story)[spot[0] - 1].messages[spot[1]].parts[spot[2]]
    told = elision.placeholder(result, spot[0], True)  # type: ignore[arg-type]
    line, _, kept = told.partition("\n")
    assert text.endswith(kept)
    assert int(re.findall(r"[\d,]+", line)[0].replace(",", "")) == len(text) - len(kept)


def test_recall_of_the_named_turn_returns_the_original() -> None:
    story = reads(*[({"path": "a.py"}, code(at, 3_000)) for at in range(12)])
    messages = story.native("anthropic")
    fit = mf.compact(messages, model="claude-opus-5", budget=14_000, policy=mf.Policy(rungs=("elide",)))
    shown = [block for message in fit.messages for block in message["content"] if isinstance(block, dict)]
    told = [block["content"] for block in shown if block["type"] == "tool_result" and block["content"][0] == "["]
    assert len(told) >= 5
    for text in told:
        assert is_placeholder(text)
        turn = int(re.findall(r"turn (\d+)", text)[-1])
        assert fit.recall(turn) == messages[2 * turn - 3 : 2 * turn - 1]


@pytest.mark.parametrize("tool", ["read_file", "a" * 300, "näme with blanks\nand breaks"])
@pytest.mark.parametrize("why", ["superseded", "repeated", "written", "empty", "log"])
@pytest.mark.parametrize("recall", [True, False])
def test_a_placeholder_is_known_and_nothing_around_it(tool: str, why: str, recall: bool) -> None:
    text = log(1, 200)
    keep = 300 if why == "log" else 0
    told = Elision(why, 3, keep).placeholder(ToolResult("c", (Text(text),), name=tool), 2, recall)
    assert is_placeholder(told)
    assert not is_placeholder("I saw this: " + told)
    assert not is_placeholder(told + text)


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=14), st.integers(0, 12), st.integers(0, 12))
def test_ranges_cover_as_a_plain_search_says(ranges: list[tuple[int, int]], start: int, stop: int) -> None:
    kept = _Ranges()
    for turn, (first, last) in enumerate(ranges):
        kept.add(first, last, turn)
        assert kept.starts == sorted(kept.starts)
    found = kept.covering(start, stop)
    fit = [turn for turn, (first, last) in enumerate(ranges) if first <= start and stop <= last]
    assert (found is None) == (not fit)
    assert found is None or found in fit


# ---------------------------------------------------------------- long output, and what the policy says


def commands(*outputs: str) -> Story:
    story = Story().user("go")
    for at, text in enumerate(outputs):
        story.uses(("bash", {"command": f"show {at}"}, text))
    return story


def test_long_output_of_a_command_keeps_its_last_lines() -> None:
    listing = code(3, 5_000)
    found = elided(commands(listing, code(4, 1_000), "an unexpected error of mine\n" + listing))
    assert {turn: each.why for turn, each in found.items()} == {2: "output", 4: "output"}
    tail = listing[-found[2].keep :]
    assert tail == "\n".join(listing.split("\n")[-8:])
    result = ToolResult("c", (Text(listing),), name="bash")
    placeholder = found[2].placeholder(result, 2, True)
    assert placeholder.endswith(f"\n{tail}") and is_placeholder(placeholder)


@pytest.mark.parametrize("trouble", TROUBLES)
def test_long_output_with_trouble_at_its_place_stays(trouble: str) -> None:
    listing = code(3, 5_000)
    assert elided(commands(f"{listing}\n{trouble}\n{listing}")) == {}
    assert elided(commands(f"{listing}\n{trouble}")) == {}


def test_a_rule_of_the_policy_decides_first() -> None:
    """Yes, no, or no opinion; an error stays whatever a rule says, and so does what is short or recent."""
    story = Story().user("go")
    for at in range(8):
        story.uses((f"tool_{at % 2}", {"q": at}, code(at, 3_000), at == 2))
    story.uses(("bash", {"command": "make"}, log(1, 200)))
    story.uses(("tool_0", {"q": 99}, "short"))
    for at in range(12):
        story.read(f"{at}.py", code(100 + at, 3_000))
    seen: list[Any] = []

    def rule(call: ToolCall | None, result: ToolResult) -> bool | None:
        seen.append((call and call.name, result.name))
        return True if call is not None and call.name == "tool_0" else None

    policy = mf.Policy(rules=(rule, lambda call, result: False if "Compiling" in result.text else None))
    native = story.native("anthropic")
    fit = mf.compact(native, model="claude-opus-5", budget=30_000, policy=policy)
    why = {spot[0]: each.why for spot, each in fit.plan.elided.items()}
    assert why == {2: "rule", 6: "rule", 8: "rule"} and len(seen) >= 10
    without = mf.compact(native, model="claude-opus-5", budget=30_000)
    assert {spot[0]: each.why for spot, each in without.plan.elided.items()} == {10: "log"}
    assert mf.Plan.from_json(fit.plan.to_json()) == fit.plan
    placeholder = next(iter(fit.plan.elided.values())).placeholder(ToolResult("c", (Text("x" * 900),)), 3, False)
    assert "uneventful by the settings of this conversation" in placeholder and is_placeholder(placeholder)


def test_a_rule_that_raises_is_named_and_nothing_is_lost(tmp_path: Path) -> None:
    """Kind of report: an error of a user's hook comes out bare, from deep inside a pass."""

    def careless(call: ToolCall | None, result: ToolResult) -> bool | None:
        raise KeyError("path")

    policy = mf.Policy(rules=(lambda call, result: None, careless))
    native = commands(*(log(at, 300) for at in range(12))).native("anthropic")
    before = json.dumps(native)
    with pytest.raises(mf.BadInput) as caught:
        mf.compact(native, model="claude-opus-5", budget=30_000, policy=policy)
    assert isinstance(caught.value.__cause__, KeyError)
    for told in ("careless raised KeyError: 'path'", "policy.rules[1]", "bash in turn ", "mend the rule"):
        assert told in str(caught.value)
    assert json.dumps(native) == before
    with mf.Record.open(tmp_path / "r.mf") as record:
        chat = record.conversation("chat")
        chat.append(native)
        tip = chat.tip
        with pytest.raises(mf.BadInput, match="careless"):
            chat.context(model="claude-opus-5", budget=30_000, policy=policy)
        assert chat.tip == tip
        assert chat.context(model="claude-opus-5", budget=30_000).tokens <= 30_000


@pytest.mark.parametrize(
    ("patterns", "kept"), [(("bash",), True), (("b*", "x"), True), (("Bash", "ba"), False), ((), False)]
)
def test_protected_tools_are_never_elided(patterns: tuple[str, ...], kept: bool) -> None:
    story = commands(*(log(at, 300) for at in range(12)))
    policy = mf.Policy(protect=patterns, rules=(lambda call, result: True,))
    fit = mf.compact(story.native("anthropic"), model="claude-opus-5", budget=30_000, policy=policy)
    assert bool(fit.plan.elided) != kept


def test_a_policy_is_plain_data_but_for_its_rules() -> None:
    policy = mf.Policy(protect=("a", "b*"), rungs=("elide",), target=0.7, rules=(lambda call, result: None,))
    back = mf.Policy.from_dict(json.loads(json.dumps(policy.to_dict())))
    assert back == mf.Policy(protect=("a", "b*"), rungs=("elide",), target=0.7)
    for wrong in ({"colour": 1}, {"target": -1}, {"protect": 3}):
        with pytest.raises(mf.BadInput):
            mf.Policy.from_dict(wrong)


@pytest.mark.parametrize("text", ["a." * 200_000, "9" * 400_000, "\n" * 400_000, "1 a" * 150_000, "[[[" * 100_000])
def test_looking_for_trouble_comes_to_an_end(text: str) -> None:
    """Anything but linear time would not come back."""
    assert elided(commands(text)) == elided(commands(text))


FLAG = "microfiche_uneventful"


def flagged(wire: str, flags: dict[int, Any]) -> list[dict[str, Any]]:
    """Reads of a tool that nothing else would elide; the results numbered so in the order of their calls say this."""
    story = Story().user("go")
    for at in range(10):
        story.uses(("lookup", {"q": at}, code(at, 3_000), at == 9))
    story.user("and now?")
    messages = story.native(wire)
    results = [
        each
        for message in messages
        for each in (message, *(message.get("content") or ()), *message.get("parts", ()))
        if isinstance(each, dict)
        and (
            each.get("type") in ("tool_result", "function_call_output")
            or each.get("role") == "tool"
            or "functionResponse" in each
        )
    ]
    for at, flag in flags.items():
        results[at][FLAG] = flag
    return messages


@pytest.mark.parametrize("wire", builders.WIRES)
def test_a_tool_says_itself_that_its_result_is_uneventful(wire: str, tmp_path: Path) -> None:
    """True lets a result go, false keeps it, any other word is none; the field is kept on record and never sent."""
    messages = flagged(wire, {0: True, 3: True, 5: "yes", 6: False, 8: 1, 9: True})
    fit = mf.compact(messages, model="claude-opus-5", budget=13_000, format=wire, policy=mf.Policy(rungs=("elide",)))
    assert {spot[0]: each.why for spot, each in fit.plan.elided.items()} == {2: "flagged", 5: "flagged"}
    assert FLAG not in json.dumps(fit.request) and FLAG in json.dumps(messages)
    assert "uneventful by the word of its tool" in json.dumps(fit.messages)
    under = mf.compact(messages, model="claude-opus-5", budget=200_000, format=wire)
    assert FLAG not in json.dumps(under.request) + json.dumps(under.messages)
    assert under.messages == flagged(wire, {})
    with mf.Record.open(tmp_path / "a.mf") as record:
        chat = record.conversation("a")
        chat.append(messages, format=wire)
        told = [result.uneventful for turn in range(1, 12) for m in chat.said(turn) for result in m.results]
        assert told == [True, None, None, True, None, None, False, None, None, True]
        assert FLAG not in json.dumps(chat.context(model="claude-opus-5", format=wire).request)
        assert record.verify()


def test_the_word_of_a_policy_stands_above_that_of_a_tool() -> None:
    messages = flagged("anthropic", {0: True, 1: False})
    turns = split_turns(formats.read(messages, "anthropic").messages)[1]

    def why(**said: Any) -> dict[int, str]:
        found = elide(turns, 99, lambda spot: False, FLOOR, **said)
        return {spot[0]: each.why for spot, each in found.items()}

    assert why() == {2: "flagged"}
    assert why(protect=("look*",)) == {}
    assert why(rules=(lambda call, result: True,)) == dict.fromkeys(range(2, 11), "rule")
    assert why(rules=(lambda call, result: False,)) == {}
