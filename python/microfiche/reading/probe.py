"""The probe: pages at a series of cells, read by a model that has not seen them, scored into readings of the catalogue.

A page is full and as the model gets it: legend, bars, marks, its real size. Of each are asked ordinary lines and
identifiers named by the comment above them, decisions on what the text says, and things that it never speaks of. One
page a request, nothing else beside it, so that no answer helps another.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from microfiche import models
from microfiche.errors import BadInput, MicroficheError
from microfiche.models import Model
from microfiche.models.evidence import Reading
from microfiche.pages.render import Cell, Ink, Page, draw

from .documents import NOT_STATED, Question, document
from .score import Tally
from .senders import Asked

CELLS: tuple[Cell, ...] = ((9, 16), (7, 14), (6, 12), (5, 10))
PAGES = 10
"""Pages a cell: with four lines each the least that exact reading is graded by."""

COUNTS = (4, 2, 4, 2)
"""Of each page: lines, identifiers, decisions, things it never speaks of."""

_ANSWER_TOKENS = 60
"""Tokens of an answer to one question, at most, as the estimate of the cost takes it."""

_KINDS = ("lines", "identifiers", "gist", "never")


@dataclass(frozen=True, slots=True)
class Trial:
    """One page to be read: its number among those of its cell, and what is asked."""

    cell: Cell
    ink: Ink
    number: int
    page: Page
    questions: tuple[Question, ...]

    @property
    def words(self) -> str:
        """What a reader is asked, in words."""
        listed = "\n".join(f"{at}. {question.asks}" for at, question in enumerate(self.questions, 1))
        return _WORDS.format(listed=listed, strange=NOT_STATED)

    @property
    def name(self) -> str:
        """What it is kept under: the same page and questions have the same name."""
        told = hashlib.sha256(f"{self.page.digest}\n{self.words}".encode()).hexdigest()
        return f"{self.cell[0]}x{self.cell[1]}-{self.ink}-{self.number:02d}-{told[:8]}"


_WORDS = """\
The image is a page of text. Its first row is a legend that explains the marks; below, the text runs on from row to
row, and the mark for a line break parts its lines. The text holds comment lines such as `# part 1012`, each on a line
of its own. For each item below give what the page says:
- a line: the whole line directly after that comment line, up to the next line-break mark, character by character,
  with its indentation as that many spaces (a white-on-black number is a count of spaces);
- an identifier: the twelve hexadecimal digits in the line directly after that comment line;
- what was decided: one word; if the page says nothing of it, the words "{strange}".
The words repeat all over the page and no line can be guessed: copy what is there and nothing else.

{listed}

Answer with one JSON object from the item's number to its text, such as
{{"1": "        a_line(of, text)", "2": "0123456789ab"}}.
"""


def trials(
    model: Model, cells: Sequence[Cell] = CELLS, ink: Ink = "grey", pages: int = PAGES, seed: int = 1
) -> list[Trial]:
    """The pages of a probe and what is asked of them, from a seed; the largest cell first."""
    return [
        _trial(model, cell, ink, number, seed)
        for cell in sorted(cells, key=lambda each: -each[0] * each[1])
        for number in range(1, pages + 1)
    ]


def _trial(model: Model, cell: Cell, ink: Ink, number: int, seed: int) -> Trial:
    form = models.page(model, cell)
    dice = random.Random(f"probe/{seed}/{cell[0]}x{cell[1]}/{number}")
    made = document(dice, form.capacity, number)
    [page, *_] = draw(made.segments, cell=cell, ink=ink, width=form.width, height=form.height, grid=0, first=number)
    questions = made.questions(dice, page.text, COUNTS)
    dice.shuffle(questions)
    return Trial(cell, ink, number, page, tuple(questions))


@dataclass(frozen=True, slots=True)
class Cost:
    """What the trials of one cell cost: ``money`` in USD, ``None`` where no price is known."""

    cell: Cell
    requests: int
    questions: int
    input_tokens: int
    output_tokens: int
    money: float | None


def costs(model: Model, asked: Sequence[Trial]) -> list[Cost]:
    """An estimate for each cell; a model that thinks before it answers takes more."""
    ruler = models.Ruler(model)
    found = []
    for cell in dict.fromkeys(trial.cell for trial in asked):
        some = [trial for trial in asked if trial.cell == cell]
        given = [ruler.image(t.page.width, t.page.height) + ruler.text(t.words) for t in some]
        questions = sum(len(trial.questions) for trial in some)
        answered = questions * _ANSWER_TOKENS
        prices = [models.cost(model, tokens) for tokens in given]
        money = None
        if model.prices.output is not None and None not in prices:
            money = sum(filter(None, prices)) + answered * model.prices.output / 1_000_000
        found.append(Cost(cell, len(some), questions, sum(given), answered, money))
    return found


def ask(
    asked: Sequence[Trial], reader: Asked, folder: Path | None = None, done: Callable[[Trial], None] = lambda _: None
) -> dict[str, str]:
    """The answers of a reader by the trial's name.

    In a ``folder`` each page, its questions and the answer are kept as soon as it came, and what was answered there is
    not asked again. ``done`` is told of each.
    """
    answers: dict[str, str] = {}
    if folder is not None:
        _make(folder)
    for trial in asked:
        kept = folder / f"{trial.name}.answer.txt" if folder is not None else None
        if kept is not None and kept.is_file():
            answers[trial.name] = kept.read_text("utf-8")
        else:
            answers[trial.name] = reader(trial.page, trial.words)
            if kept is not None and folder is not None:
                trial.page.save(folder / f"{trial.name}.png")
                (folder / f"{trial.name}.questions.txt").write_text(trial.words, "utf-8")
                # Last and whole: where it stands the trial is done.
                draft = kept.with_suffix(".new")
                draft.write_text(answers[trial.name], "utf-8", errors="surrogatepass")
                draft.replace(kept)
        done(trial)
    return answers


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MicroficheError(f"cannot be made: {error.strerror}", str(folder), "choose another --out") from error


def score(asked: Sequence[Trial], answers: Mapping[str, str]) -> dict[Cell, Tally]:
    """Right and all answers by cell. What is no JSON object answers nothing, and is counted as unreadable."""
    tallies: dict[Cell, Tally] = {}
    for trial in asked:
        tally = tallies.setdefault(trial.cell, Tally())
        given = parsed(answers[trial.name])
        tally.add("readable answers", given is not None)
        pairs = ((q, str((given or {}).get(str(at), ""))) for at, q in enumerate(trial.questions, 1))
        tally.answers(pairs)
    return tallies


def parsed(answer: str) -> dict[str, object] | None:
    """The JSON object in an answer, be there words or a fence around it; ``None`` if there is none."""
    start, end = answer.find("{"), answer.rfind("}")
    try:
        found = json.loads(answer[start : end + 1], strict=False) if 0 <= start < end else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def readings(tallies: Mapping[Cell, Tally], ink: Ink, by: str, date: str, seed: int) -> Iterator[Reading]:
    """What the catalogue keeps of a probe."""
    for cell, tally in tallies.items():
        for kind in _KINDS:
            right, n = tally.counts.get(kind, (0, 0))
            if n:
                on = f"full pages of code from a twenty-word vocabulary, our own font, seed {seed}"
                yield Reading(kind, cell, right, n, by, date, on, ink)


def check(cells: Sequence[Cell], pages: int) -> None:
    """:class:`BadInput` for what cannot be a probe."""
    if pages < 1 or not cells:
        raise BadInput("a probe has at least one page and one cell", "probe", "ask for more")
    if len(set(cells)) != len(cells):
        raise BadInput("a cell is named twice", "probe", "name each once")
