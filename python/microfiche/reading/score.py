"""What a reader got right: exactness of answers, rates with their intervals, edits between two texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import sqrt

from .documents import NOT_STATED, Question


def interval(hits: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % score interval of a rate (E. B. Wilson, 1927)."""
    if not n:
        return 0.0, 1.0
    z, rate = 1.959964, hits / n
    middle = rate + z * z / (2 * n)
    half = z * sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)


def judge(question: Question, given: str) -> Iterator[tuple[str, bool]]:
    """What is counted of an answer, and whether it is right.

    A line is exact with its indentation (blanks behind it do not count), and counted apart without it; an identifier
    without the blanks around it. A decision is right if the answer holds its word and no denial; of what was never
    said the answer has to say so.
    """
    if question.kind == "line":
        yield "lines", given.rstrip() == question.truth.rstrip()
        yield "text of lines", given.strip() == question.truth.strip()
        yield "indentation", _indent(given) == _indent(question.truth)
    elif question.kind == "identifier":
        yield "identifiers", given.strip().strip("\"'`") == question.truth
    else:
        words = re.findall(r"[a-z]+", given.casefold())
        denied = NOT_STATED in " ".join(words)
        if question.kind == "gist":
            yield "gist", question.truth in words and not denied
        else:
            yield "never", denied


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


@dataclass(slots=True)
class Tally:
    """Right and all answers by what was counted."""

    counts: dict[str, list[int]] = field(default_factory=dict)

    def add(self, what: str, right: bool) -> None:
        hits = self.counts.setdefault(what, [0, 0])
        hits[0] += right
        hits[1] += 1

    def answers(self, questions: Iterable[tuple[Question, str]]) -> None:
        for question, given in questions:
            for what, right in judge(question, given):
                self.add(what, right)

    def lines(self) -> Iterator[str]:
        """A line of text for each thing counted."""
        for what, (right, n) in self.counts.items():
            low, high = interval(right, n)
            yield f"{what} {right}/{n} = {right / n:.0%}, 95 % {low:.0%} to {high:.0%}"


def differences(want: str, got: str) -> list[str]:
    """A shortest list of edits from ``want`` to ``got``: ``ab`` is a read as b, ``a∅`` lost, ``∅b`` added."""
    rows = [list(range(len(got) + 1))]
    for i, a in enumerate(want, 1):
        row = [i]
        for j, b in enumerate(got, 1):
            row.append(min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (a != b)))
        rows.append(row)
    edits = []
    i, j = len(want), len(got)
    while i or j:
        if i and j and rows[i][j] == rows[i - 1][j - 1] + (want[i - 1] != got[j - 1]):
            i, j = i - 1, j - 1
            if want[i] != got[j]:
                edits.append(want[i] + got[j])
        elif i and rows[i][j] == rows[i - 1][j] + 1:
            i -= 1
            edits.append(want[i] + "∅")
        else:
            j -= 1
            edits.append("∅" + got[j])
    return edits
