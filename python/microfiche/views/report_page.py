"""The reviewer's report as one HTML file: to read, to print, to keep. It runs nothing."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence

from microfiche.auditing import FORMS, Event, Evidence, Report
from microfiche.auditing import Link as Evidenced
from microfiche.auditing.report import day
from microfiche.pages.guide import spans
from microfiche.path import Sheet

from .html import asset, document, escape
from .links import Link, verify_command

_HEADINGS = {
    "record": "Does the record verify?",
    "saw": "What the call saw",
    "missing": "What it did not see word for word, and since when",
    "claims": "What its claims rest on",
    "events": "What changed what the model saw",
    "said": "What was said",
}
_OF_A_CALL = ("saw", "missing")
_FORMS = {
    "placeholder": "a line for it",
    "marker": "a line for the image",
    "page": "on pages",
    "summary": "in a summary",
    "omitted": "left out",
    "other_wire": "not carried by the wire",
    "elsewhere": "compacted by the session itself",
    "branch": "on another branch",
}
"""Forms as they stand in a table."""


def report_html(report: Report, link: Link, record: str) -> str:
    """The report as HTML; ``link`` leads from each entry to the page that ``view`` writes, ``record`` is the file."""
    style = asset("colours.css") + asset("report.css")
    return document(f"Report on {report.conversation}", "\n".join(_Teller(report, link, record).body()), style)


class _Teller:
    def __init__(self, report: Report, link: Link, record: str) -> None:
        self.report, self.link, self.record = report, link, record
        self.turns = {turn.number: turn.entry for turn in report.turns}

    def body(self) -> Iterator[str]:
        report = self.report
        shown = {name: words for name, words in _HEADINGS.items() if report.at is not None or name not in _OF_A_CALL}
        about = ""
        if report.at is None:
            shown["claims"] = "What claims rest on"
        else:
            about = f", with the call of {self.entry(report.at)}"
        yield f'<header><h1 dir="auto">{escape(report.conversation)}</h1><p>Report for a reviewer{about}</p>'
        contents = _items(f'<a href="#{name}">{words}</a>' for name, words in shown.items())
        yield f'<nav aria-label="Contents">{contents}</nav></header><main>'
        for name, words in shown.items():
            yield f'<section aria-labelledby="{name}"><h2 id="{name}">{words}</h2>'
            yield from getattr(self, f"_{name}")()
            yield "</section>"
        yield "</main>"

    def entry(self, id: int, words: str = "") -> str:
        """A link to an entry."""
        return f'<a href="{escape(self.link(id))}">{escape(words or f"entry {id}")}</a>'

    def turn(self, number: int) -> str:
        at = self.turns.get(number)
        return self.entry(at, str(number)) if at is not None else str(number)

    # The sections

    def _record(self) -> Iterator[str]:
        report = self.report
        tone = "good" if report.sound else "bad"
        yield f'<p class="{tone}"><strong>{escape(_sentence(report.verdict))}</strong></p>'
        yield _facts(("Entries", f"{report.head.size:,}"), ("Root", f"<code>{report.head.root}</code>"))
        command = escape(verify_command(self.record, report.head.size, report.head.root))
        yield f"<p>That was so when this was written. To hold the file as it is now against it:</p><pre>{command}</pre>"

    def _saw(self) -> Iterator[str]:
        report, seen = self.report, self.report.seen
        tone = "quiet" if seen is None else "good" if seen.proven else "bad"
        yield f'<p class="{tone}">{escape(_sentence(report.proof))}</p>'
        if seen is not None:
            model = f"{escape(seen.model)} ({escape(seen.wire)})"
            messages, pages = f"{len(seen.messages):,}", f"{len(seen.shown):,}"
            yield _facts(("Model", model), ("Messages", messages), ("Pages", pages))
            files = dict(zip((sheet.number for sheet in seen.sheets), seen.pages, strict=False))
            for sheet in report.shown:
                words = _page(sheet.number, sheet.turns, sheet.digest)
                yield f"<details><summary>{words}</summary>{_picture(sheet, files.get(sheet.number))}</details>"
        rows = (
            [
                self.turn(each.turn),
                f"{each.verbatim:,}" if each.verbatim else "",
                ", ".join(f"{number:,} {_form(form)}" for form, number in each.forms.items()),
                spans(each.pages) if each.pages else "",
            ]
            for each in report.stood
        )
        yield from _table(("turn", "parts word for word", "parts in another form", "on pages"), rows, numbers=(1,))
        met = {form for each in report.stood for form in each.forms}
        yield _facts(*((_form(name), escape(words)) for name, words in FORMS.items() if name in met))

    def _missing(self) -> Iterator[str]:
        if not self.report.not_considered:
            yield "<p>Nothing: all that was said before it stood word for word.</p>"
        for event, what, parts in self.report.since():
            named = f"Since {self.entry(event)}: {escape(what)}, {_many(len(parts), 'part')}"
            yield f"<details{' open' * (len(parts) <= 40)}><summary>{named}</summary>"
            rows = (
                [
                    self.turn(part.turn),
                    part.kind,
                    f"{part.characters:,}" if part.characters else "",
                    _form(part.form),
                    spans(part.pages) if part.pages else "",
                    escape(part.why),
                ]
                for part in parts
            )
            yield from _table(("turn", "part", "characters", "form", "on pages", ""), rows, numbers=(2,))
            yield "</details>"

    def _claims(self) -> Iterator[str]:
        if not self.report.evidence:
            yield "<p>No claim was recorded.</p>"
        yield from map(self._claim, self.report.evidence)

    def _claim(self, claim: Evidence) -> str:
        links = _items(self._evidence(claim, each) for each in claim.links)
        rests = links if claim.links else '<p class="bad">It names nothing that it rests on.</p>'
        return f'<h3 dir="auto">{escape(claim.text)} <small>{self.entry(claim.claim)}</small></h3>{rests}'

    def _evidence(self, claim: Evidence, link: Evidenced) -> str:
        of = f", for claim {link.of}" if link.of != claim.claim else ""
        branch = ' <span class="mark">on a branch that was left</span>' if link.branch else ""
        named = f"<strong>{escape(link.kind)}</strong> {escape(link.what)} {self.entry(link.entry)}{of}{branch}"
        return f'{named}<div class="quiet" dir="auto">{escape(_short(link.text))}</div>'

    def _events(self) -> Iterator[str]:
        yield f"<p>{_many(len(self.report.events), 'event')}, in the order in which they were written.</p>"
        rows = ([self.entry(each.entry, str(each.entry)), day(each.time), *_event(each)] for each in self.report.events)
        yield from _table(("entry", "when (UTC)", "what", ""), rows)

    def _said(self) -> Iterator[str]:
        yield f"<p>All {_many(len(self.report.turns), 'turn')}, on every branch, with the digest of each.</p>"
        rows = (
            [
                self.turn(turn.number),
                escape(turn.role) + ("" if turn.on_path else ' <span class="mark">branch</span>'),
                f"{turn.characters:,}",
                f"<code>{turn.digest[:16]}</code>",
                f'<span dir="auto">{escape(turn.begins)}</span>',
            ]
            for turn in self.report.turns
        )
        yield from _table(("turn", "who", "characters", "digest", "begins"), rows, numbers=(2,))


def _event(event: Event) -> tuple[str, str]:
    made = [f'<span dir="auto">{escape(event.what)}</span>']
    if context := event.told.get("context"):
        made.append(f'<div class="quiet">context from then on <code>{escape(context)}</code></div>')
    if lines := event.told.get("summary"):
        made.append(_items(f'<span dir="auto">{escape(line)}</span>' for line in lines))
    if pages := event.told.get("pages"):
        listed = _items(_page(page["number"], page["turns"], page["digest"]) for page in pages)
        made.append(f"<details><summary>{_many(len(pages), 'new page')}</summary>{listed}</details>")
    return escape(event.kind.replace("_", " ")), "".join(made)


def _page(number: int, turns: Sequence[int], digest: str) -> str:
    return f"page {number}, turns {turns[0]}–{turns[-1]} · <code>{digest}</code>"


def _picture(sheet: Sheet, png: bytes | None) -> str:
    if png is None:
        return "<p>This version draws the page otherwise: its digest is what stands on record.</p>"
    data = base64.b64encode(png).decode("ascii")
    size = f'width="{sheet.width}" height="{sheet.height}" loading="lazy" decoding="async"'
    return f'<img alt="Page {sheet.number}, as it was drawn for the model" {size} src="data:image/png;base64,{data}">'


def _form(name: str) -> str:
    return escape(_FORMS.get(name, name.replace("_", " ")))


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _short(text: str) -> str:
    words = " ".join(text[:2_000].split())
    return f"{words[:300]}…" if len(words) > 300 or len(text) > 2_000 else words


def _items(lines: Iterable[str]) -> str:
    """A list of lines that are HTML."""
    return f"<ul>{''.join(f'<li>{line}</li>' for line in lines)}</ul>"


def _facts(*rows: tuple[str, str]) -> str:
    return f'<dl class="facts">{"".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows)}</dl>'


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> Iterator[str]:
    """A table of cells that are HTML; ``numbers`` are the places of columns that stand to the right."""

    def side(at: int) -> str:
        return ' class="number"' if at in numbers else ""

    yield '<div class="wide" role="region" aria-label="Table" tabindex="0"><table><thead><tr>'
    yield "".join(f'<th scope="col"{side(at)}>{name}</th>' for at, name in enumerate(columns))
    yield "</tr></thead><tbody>"
    for row in rows:
        yield f"<tr>{''.join(f'<td{side(at)}>{cell}</td>' for at, cell in enumerate(row))}</tr>"
    yield "</tbody></table></div>"
