"""Documents to read off pages, what is asked of them, and how answers are scored."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from microfiche.pages.render import Bar, draw
from microfiche.reading import documents, score
from microfiche.reading.documents import NOT_STATED, Question


def test_a_document_is_made_from_its_seed_alone() -> None:
    first, again, other = (documents.document(random.Random(seed), 5_000, 3) for seed in (1, 1, 2))
    assert first.segments == again.segments != other.segments
    assert first.questions(random.Random(1), "", (4, 2, 2, 2)) != []


def test_a_document_holds_what_is_asked_of_it() -> None:
    made = documents.document(random.Random(7), 12_000, 2)
    text = "".join(segment for segment in made.segments if isinstance(segment, str))
    assert len(text) > 9_000 and isinstance(made.segments[0], Bar)
    for comment, target in made.lines.items():
        assert f"{comment}\n{target}\n" in text
        assert re.fullmatch(r"# part 2\d\d\d", comment) and 20 < len(target) < 110
    for comment, found in made.identifiers.items():
        assert re.search(rf'{comment}\n\w+_id = "{found}"\n', text)
    for thing, state in made.decisions.items():
        assert text.count(f"the {thing} will be {state}\n") == 1
    assert len(set(made.lines.values())) > 0.9 * len(made.lines)


def test_only_what_is_shown_is_asked() -> None:
    made = documents.document(random.Random(3), 20_000)
    [page, *_] = draw(made.segments, cell=(9, 16), width=1568, height=784)
    asked = made.questions(random.Random(1), page.text, (4, 2, 2, 2))
    assert [each.kind for each in asked] == ["line"] * 4 + ["identifier"] * 2 + ["gist"] * 2 + ["never"] * 2
    for each in asked:
        if each.kind == "never":
            assert each.truth == NOT_STATED and each.asks.split()[-1] not in page.text
        else:
            assert each.truth in page.text
    assert made.questions(random.Random(1), "", (4, 2, 2, 0)) == []


@pytest.mark.parametrize(
    ("kind", "truth", "given", "right"),
    [
        ("line", "    a = b", "    a = b  ", [True, True, True]),
        ("line", "    a = b", "a = b", [False, True, False]),
        ("line", "    a = b", "    a = c", [False, False, True]),
        ("line", "a", "", [False, False, True]),
        ("identifier", "0a1b", " 0a1b\n", [True]),
        ("identifier", "0a1b", '"0a1b"', [True]),
        ("identifier", "0a1b", "0a1b2", [False]),
        ("gist", "blue", "It will be Blue.", [True]),
        ("gist", "blue", "bluest", [False]),
        ("gist", "blue", "not stated whether blue", [False]),
        ("never", NOT_STATED, "Not stated.", [True]),
        ("never", NOT_STATED, "blue", [False]),
        ("never", NOT_STATED, "", [False]),
    ],
)
def test_answers_are_judged(kind: str, truth: str, given: str, right: list[bool]) -> None:
    assert [hit for _, hit in score.judge(Question(kind, "?", truth), given)] == right


def test_rates_have_their_intervals() -> None:
    # Wilson's interval for 9 of 10: 59.6 to 98.2 %.
    low, high = score.interval(9, 10)
    assert (round(low, 3), round(high, 3)) == (0.596, 0.982)
    assert score.interval(0, 0) == (0.0, 1.0) and score.interval(0, 5)[0] == 0
    tally = score.Tally()
    tally.answers([(Question("line", "?", "a"), "a"), (Question("line", "?", "b"), " b")])
    assert tally.counts == {"lines": [1, 2], "text of lines": [2, 2], "indentation": [1, 2]}
    assert next(tally.lines()) == "lines 1/2 = 50%, 95 % 9% to 91%"


@given(st.text("abc", max_size=8), st.text("abc", max_size=8))
def test_edits_lead_from_one_text_to_the_other(want: str, got: str) -> None:
    edits = score.differences(want, got)
    assert abs(len(want) - len(got)) <= len(edits) <= max(len(want), len(got))
    assert (edits == []) == (want == got)
    lost = sum(edit[1] == "∅" for edit in edits)
    assert len(want) - lost + sum(edit[0] == "∅" for edit in edits) == len(got)


def test_confusions_are_named() -> None:
    pairs = [("b0ok", "bOok"), ("book", "bok"), ("bok", "boks")]
    assert [score.differences(*pair) for pair in pairs] == [["0O"], ["o∅"], ["∅s"]]
