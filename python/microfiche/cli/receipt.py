"""A receipt for people to read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import click
from rich.table import Table

from microfiche.ladder.receipt import Amount, Receipt
from microfiche.pages.guide import spans

from .files import plain, print_table, table

_RUNGS = {
    "carry": "what the written form cannot hold",
    "unsendable": "images the model does not take",
    "plan": "the plan before, and pins",
    "elide": "old tool results",
    "images": "old screenshots",
    "reasoning": "old reasoning",
    "snapshot": "the middle as pages",
    "summary": "the oldest turns as a summary",
    "newest": "a newest result too large",
    "omit": "left out",
    "write": "frame and repairs",
}
_REASONS = {
    "nothing_old": "none that may go",
    "no_vision": "the model does not read images",
    "does_not_pay": "pages would cost as much as the text",
    "would_grow": "it would have grown",
    "no_room": "no room for a summary",
    "off": "switched off",
}
_WHY = {
    "superseded": "the same call was made again later",
    "repeated": "the same text stands again later",
    "written": "a write that succeeded",
    "log": "a long log without trouble; its end stays",
    "output": "long output of a command without an error; its end stays",
    "rule": "a rule of the policy",
    "flagged": "uneventful by the word of its tool",
    "empty": "nothing but blanks",
    "old": "not among the newest",
    "bytes": "too many bytes of images",
    "count": "too many images",
}


def show(receipt: Receipt, session: str) -> None:
    """Print the receipt of a pass over ``session``."""
    click.echo(plain(f"{session} for {receipt.model}, budget {receipt.budget.tokens:,} tokens"))
    if receipt.reason == "under_budget":
        done = "only what the provider would refuse was mended" if receipt.repairs else "nothing had to be changed"
        click.echo(f"Under budget: {done}.")
    click.echo()
    print_table(_amounts(receipt))
    click.echo()
    if receipt.pages:
        print_table(_pages(receipt))
        click.echo()
    for label, line in _details(receipt):
        click.echo(plain(f"{label:<11}{line}"))


def violations(receipt: Receipt) -> Iterator[str]:
    """A line for each reason for which the provider would refuse the context, the same one in many places once."""
    return map(plain, _gathered(receipt.violations, "{what} ({rule}); {cure}"))


_MOST_LINES = 20


def _gathered(found: Iterable[dict[str, str]], form: str = "{what}") -> Iterator[str]:
    """What was found, a line for all places of the same: a damaged file has thousands."""
    places: dict[str, list[str]] = {}
    for each in found:
        places.setdefault(form.format(**each), []).append(each["where"])
    for what, where in list(places.items())[:_MOST_LINES]:
        first = where[0] if len(where[0]) <= 120 else f"{where[0][:80]}...{where[0][-30:]}"
        more = f" and {plural(len(where) - 1, 'more place')}" if len(where) > 1 else ""
        yield f"{first}{more}: {what}"
    if len(places) > _MOST_LINES:
        yield f"{len(places) - _MOST_LINES:,} more kinds, which --json lists"


def _amounts(receipt: Receipt) -> Table:
    made = table(_="left", tokens="right", change="right", images="right", USD="right", bytes="right", __="left")

    def row(name: str, amount: Amount, before: Amount | None = None, reason: str = "") -> None:
        change = f"{amount.tokens - before.tokens:+,}" if before is not None and not reason else ""
        money = "unknown" if amount.money is None else f"{amount.money:.4f}"
        note = _REASONS.get(reason, reason)
        made.add_row(name, f"{amount.tokens:,}", change, f"{amount.images:,}", money, f"{amount.bytes:,}", note)

    row("given", receipt.before)
    for rung in receipt.rungs:
        row(_RUNGS.get(rung.rung, rung.rung), rung.after, rung.before, rung.reason)
    row("sent", receipt.after, receipt.before)
    return made


def _pages(receipt: Receipt) -> Table:
    made = table(
        page="right", turns="left", pixels="right", tokens="right", characters="right", bytes="right", _="left"
    )
    for page in receipt.pages:
        made.add_row(
            str(page.number),
            spans(range(page.turns[0], page.turns[1] + 1)) if page.turns else "",
            f"{page.width}x{page.height}",
            f"{page.tokens:,}",
            f"{page.characters:,}",
            f"{page.bytes:,}",
            "" if page.shown else "left out",
        )
    return made


def _details(receipt: Receipt) -> Iterator[tuple[str, str]]:
    """What became of the parts, a line a kind of fate."""
    yield from _fates("elided", "tool result", receipt.elided)
    yield from _fates("dropped", "image", receipt.images)
    if receipt.reasoning:
        turns = [line["turn"] for line in receipt.reasoning]
        yield "reasoning", f"left out of {plural(len(turns), 'turn')}: {spans(turns)}"
    for text in receipt.shortened:
        pages = plural(text["pages"], "page")
        fates = f"{text['head'] + text['tail']:,} characters as text, {text['drawn']:,} on {pages}"
        yield "shortened", f"a result of turn {text['turn']}: {fates}, {text['left_out']:,} left out"
    for summary in receipt.summaries:
        first, last = summary["turns"]
        lines = plural(sum(summary["lines"].values()), "line")
        yield "summarised", f"turns {spans(range(first, last + 1))} in {lines}"
    if receipt.summary_calls:
        dropped = "".join(f", {count:,} lines dropped: {flag}" for flag, count in receipt.summary_flags.items())
        yield "summariser", f"{plural(receipt.summary_calls, 'call')}{dropped}"
    if receipt.omitted_turns or receipt.omitted_pages:
        yield "omitted", _omitted(receipt)
    if exact := sum(page.exact for page in receipt.pages if page.shown):
        yield "exact", f"{plural(exact, 'value')} as text behind the pages"
    for kind, number in receipt.not_drawn.items():
        yield "not drawn", f"{plural(number, 'part')} of kind {kind}"
    if receipt.escapes:
        listed = ", ".join(f"{code} {count:,}" for code, count in list(receipt.escapes.items())[:8])
        more = f" and {len(receipt.escapes) - 8:,} more kinds" if len(receipt.escapes) > 8 else ""
        yield "escaped", f"{plural(sum(receipt.escapes.values()), 'character')} without a glyph: {listed}{more}"
    for line in _gathered(receipt.repairs):
        yield "repaired", line
    for line in _gathered(receipt.notes):
        yield "note", line
    yield "tokens", f"estimated as {receipt.ruler}, images by the model's own rule"
    yield "time", f"{receipt.seconds:.3f} s"


def _omitted(receipt: Receipt) -> str:
    """What was left out: whole turns, pages, and the turn of which only the end is shown."""
    counts = [(len(receipt.omitted_turns), "turn"), (receipt.omitted_pages, "page")]
    what = [spans(receipt.omitted_turns)] if receipt.omitted_turns else []
    if receipt.omitted_beginning is not None:
        what.append(f"the beginning of turn {receipt.omitted_beginning}")
    return f"{', '.join(plural(number, noun) for number, noun in counts if number)}: {' and '.join(what)}"


def _fates(label: str, noun: str, lines: Iterable[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    turns: dict[str, list[int]] = {}
    for line in lines:
        turns.setdefault(line["why"], []).append(line["turn"])
    for why, where in sorted(turns.items()):
        of = "turn" if len(set(where)) == 1 else "turns"
        yield label, f"{plural(len(where), noun)} of {of} {spans(sorted(set(where)))}: {_WHY.get(why, why)}"


def plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
