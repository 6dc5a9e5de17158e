"""How much a page holds, by measurement: cells, characters and bytes of real text, and what it costs a model.

Densities say nothing about whether a model reads them: every row has the grade that the catalogue has for this model at
this cell.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from microfiche import models
from microfiche.messages import History, ToolResult
from microfiche.models import FIDELITIES, Model
from microfiche.pages.render import Cell, Ink, Lines, Page, Segment, draw
from microfiche.pages.script import write_script
from microfiche.reading import documents

MODELS = ("claude-opus-5", "gpt-5.6-sol", "gemini-3.6-flash")
CELLS: tuple[Cell, ...] = ((5, 10), (6, 12), (7, 14), (9, 16))
CHARACTERS = 400_000
"""Of each kind of text so many characters are measured."""


@dataclass(frozen=True, slots=True)
class Density:
    """One kind of text on the pages of a model.

    ``characters`` are those measured, bars left out; ``cells_per_character`` counts the cells in use under the
    legends. ``characters_per_page`` and ``characters_per_token`` are of full pages (of all, if there is but one),
    ``bytes_per_character`` of their PNG files. ``gain`` is the text's tokens, by the model's own estimate, over the
    pages'. ``grade`` is what the model is known to read at this cell: a fidelity; ``default`` for 9×16 and more without
    evidence; ``none``.
    """

    model: str
    text: str
    cell: Cell
    ink: Ink
    lines: Lines
    grade: str
    characters: int
    pages: int
    page: tuple[int, int]
    page_tokens: int
    cells_per_character: float
    characters_per_page: float
    characters_per_token: float
    bytes_per_character: float
    gain: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def grade(model: Model, cell: Cell, ink: Ink = "grey") -> str:
    """The best fidelity with evidence that the model reads at a cell, else ``default`` or ``none``.

    Grey ink is read better than one bit: evidence of mono counts for it, and not the other way.
    """
    for fidelity in FIDELITIES:
        own = models.cell_for(model, fidelity)
        fits = own.width <= cell[0] and own.height <= cell[1] and ink in ("grey", own.ink)
        if fits and own.grade == "measured":
            return fidelity
        if fits and fidelity == "exact":
            return "default"
    return "none"


def texts_of(histories: Iterable[History]) -> dict[str, list[Segment]]:
    """Kinds of text of transcripts, as segments: all of it as pages hold it, then words, calls and results apart."""
    whole: list[Segment] = []
    kinds: dict[str, list[str]] = {"words": [], "calls": [], "results": []}
    for history in histories:
        _, turns = history.turns()
        whole += write_script(turns).segments
        for turn in turns:
            for message in turn.messages:
                kinds["words"].append(message.text)
                kinds["calls"] += [call.arguments for call in message.calls]
                kinds["results"] += [part.text for part in message.parts if isinstance(part, ToolResult)]
    found: dict[str, list[Segment]] = {"all": whole}
    for kind, texts in kinds.items():
        joined = "\n".join(filter(None, texts))
        found[kind] = [joined] if joined else []
    return {kind: segments for kind, segments in found.items() if segments}


def sample(seed: int, characters: int = 100_000) -> dict[str, list[Segment]]:
    """Kinds of text made from a seed, where no transcript is given: code with bars, JSON, a log."""
    dice = random.Random(f"density/{seed}")
    entries: list[str] = []
    while len(entries) * 150 < characters:
        words = [dice.choice(documents.VOCABULARY) for _ in range(5)]
        entries.append(
            f'  {{"{words[0]}": "{documents.identifier(dice)}", "{words[1]}": [{dice.randint(0, 9999)}, null],\n'
            f'    "{words[2]}": {{"{words[3]}": "{" ".join(words)}", "ok": true}}}}'
        )
    log: list[str] = []
    while len(log) * 60 < characters:
        words = [dice.choice(documents.VOCABULARY) for _ in range(4)]
        time = f"2026-11-{dice.randint(1, 30):02d}T{dice.randint(0, 23):02d}:{dice.randint(0, 59):02d}:07Z"
        level = dice.choice(("INFO ", "WARN ", "ERROR"))
        log.append(f"{time} {level} {words[0]}.{words[1]} {words[2]}={dice.randint(0, 99999)} {words[3]}")
    return {
        "code": documents.document(dice, characters).segments,
        "json": ["[\n" + ",\n".join(entries) + "\n]\n"],
        "log": ["\n".join(log) + "\n"],
    }


def measure(
    texts: Mapping[str, Sequence[Segment]],
    names: Sequence[str] = MODELS,
    cells: Sequence[Cell] = CELLS,
    inks: Sequence[Ink] = ("grey",),
    layouts: Sequence[Lines] = ("flow", "hard"),
    characters: int = CHARACTERS,
) -> Iterator[Density]:
    """A row for every model, kind of text, cell, ink and layout; a model counts as one that sees."""
    for name in names:
        model = models.find(name, vision=True)
        for kind, segments in texts.items():
            some = list(_first(segments, characters))
            for cell in cells:
                for ink in inks:
                    for lines in layouts:
                        yield _row(model, kind, some, cell, ink, lines)


def _first(segments: Sequence[Segment], characters: int) -> Iterator[Segment]:
    """The segments up to so many characters."""
    for segment in segments:
        if characters <= 0:
            return
        if isinstance(segment, str):
            segment = segment[:characters]
            characters -= len(segment)
        yield segment


def _row(model: Model, kind: str, segments: Sequence[Segment], cell: Cell, ink: Ink, lines: Lines) -> Density:
    form = models.page(model, cell)
    flat = model.regime.flat
    pages = draw(
        segments,
        cell=cell,
        ink=ink,
        width=form.width,
        height=form.height,
        grid=0 if flat else form.grid[1],
        min_height=0 if flat else form.min_height,
        lines=lines,
    )
    full: Sequence[Page] = pages[:-1] or pages
    ruler = models.Ruler(model)
    length = sum(len(page.text) for page in full)
    text = "".join(segment for page in full for segment in page.segments if isinstance(segment, str))
    # A bar costs text too: the words that name the turn and who speaks.
    bars = "".join(f"{bar.turn} {bar.kind}" for page in full for bar in page.segments if not isinstance(bar, str))
    tokens = sum(models.image_tokens(model, page.width, page.height) for page in full)
    return Density(
        model=model.id,
        text=kind,
        cell=cell,
        ink=ink,
        lines=lines,
        grade=grade(model, cell, ink),
        characters=sum(len(page.text) for page in pages),
        pages=len(pages),
        page=(form.width, form.height),
        page_tokens=form.tokens,
        cells_per_character=round(sum(page.cells for page in full) / max(length, 1), 4),
        characters_per_page=round(length / max(len(full), 1), 1),
        characters_per_token=round(length / max(tokens, 1), 3),
        bytes_per_character=round(sum(len(page.png) for page in full) / max(length, 1), 3),
        gain=round(ruler.text(text + bars) / max(tokens, 1), 3),
    )
