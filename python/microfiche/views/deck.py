"""A conversation as slides: what was asked, decided, claimed and on what evidence, left open, and lost from view.

Every line is of one entry and leads to it. Long words are cut, with a sign that says so: the entry has all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from microfiche.auditing import audit
from microfiche.auditing.report import summary_of
from microfiche.auditing.walk import imported, spoken
from microfiche.conversation import Conversation
from microfiche.messages import Message, Text
from microfiche.record import Entry

from .html import asset, document, escape
from .links import Link
from .thread import escaped, events, marker

_LONGEST = 280
_ON_A_SLIDE = 6


@dataclass(frozen=True, slots=True)
class Line:
    """One line: the entry that says it, what kind of thing it is, its words; ``under`` are lines that it rests on."""

    entry: int
    kind: str
    text: str
    under: tuple[Line, ...] = ()


@dataclass(frozen=True, slots=True)
class Slide:
    """One slide; ``part`` and ``parts`` number those of one title."""

    title: str
    lines: tuple[Line, ...]
    part: int = 1
    parts: int = 1


def deck(chat: Conversation) -> list[Slide]:
    """The slides of a conversation's path, told of its entries."""
    listed = list(events(chat))
    pins = chat.state().pins
    summaries = list(_summaries(chat, listed))
    groups: list[tuple[str, list[Line]]] = [
        ("What was asked", [_line(entry, "user", _asked(entry.message)) for entry in listed if _asks(entry)]),
        (
            "Decided and kept word for word",
            [_line(each.entry, each.kind, each.text) for each in pins.values() if each.kind != "question"],
        ),
        ("Decided and found, as summaries keep it", [each for each in summaries if each.kind != "open question"]),
    ]
    for entry in listed:
        if entry.kind == "claim":
            groups.append(("Claimed, and what it rests on", [_claim(chat, entry)]))
    groups += [
        (
            "Open questions",
            [
                *(_line(each.entry, "pinned", each.text) for each in pins.values() if each.kind == "question"),
                *(each for each in summaries if each.kind == "open question"),
            ],
        ),
        ("Questions that were closed", list(_closed(chat, listed))),
        ("Tried and left", [_line(each, "report", _words(each)) for each in listed if _reports(each)]),
        (
            "When the model's view changed",
            [_line(each, each.kind, _event(each)) for each in listed if each.kind in ("compaction", "undo", "trim")],
        ),
        (
            "What failed",
            [_line(each, each.kind, _event(each)) for each in listed if each.kind in ("failure", "interruption")],
        ),
    ]
    slides = [Slide(chat.name, (_line(listed[-1], "newest entry", _words(listed[-1])),) if listed else ())]
    for title, lines in groups:
        parts = [tuple(lines[at : at + _ON_A_SLIDE]) for at in range(0, len(lines), _ON_A_SLIDE)]
        slides += [Slide(title, part, at, len(parts)) for at, part in enumerate(parts, 1)]
    return slides


def _asks(entry: Entry) -> bool:
    return entry.kind == "message" and entry.message is not None and bool(_asked(entry.message))


def _asked(message: Message | None) -> str:
    if message is None or message.role != "user":
        return ""
    return "\n".join(part.text for part in message.parts if isinstance(part, Text)).strip()


def _reports(entry: Entry) -> bool:
    return entry.kind == "report" and entry.message is not None


def _words(entry: Entry) -> str:
    return spoken(entry.message) if entry.message is not None else marker(entry)


def _event(entry: Entry) -> str:
    """The marker behind the word for its kind, which stands before the line."""
    words = marker(entry)
    return next((words.removeprefix(each) for each in ("compacted ", "failed: ") if words.startswith(each)), words)


def _line(entry: Entry | int, kind: str, text: str, under: Iterable[Line] = ()) -> Line:
    id = entry if isinstance(entry, int) else entry.id
    words = " ".join(text[: 4 * _LONGEST].split())
    cut = words[:_LONGEST].rstrip() + "…" if len(words) > _LONGEST or len(text) > 4 * _LONGEST else words
    return Line(id, kind.replace("_", " "), cut, tuple(under))


def _claim(chat: Conversation, entry: Entry) -> Line:
    evidence = audit(chat).evidence(entry)
    under = (_line(each.entry, each.kind, each.text or marker(chat.entry(each.entry))) for each in evidence.links)
    return _line(entry, "claim", evidence.text, under)


def _summaries(chat: Conversation, listed: Iterable[Entry]) -> Iterator[Line]:
    """The lines of summaries in force, each of the pass that brought it."""
    standing = {(line.kind, line.text) for each in chat.state().plan.summaries for line in each.lines}
    for entry in listed:
        if entry.kind == "compaction" and not imported(entry):
            for line in summary_of(entry):
                if (line["kind"], line["text"]) in standing and line["kind"] != "artifact":
                    standing.discard((line["kind"], line["text"]))
                    yield _line(entry, line["kind"], line["text"])


def _closed(chat: Conversation, listed: Iterable[Entry]) -> Iterator[Line]:
    asked: dict[int, Mapping[str, Any]] = {each.id: each.payload for each in listed if each.kind == "pin"}
    for entry in listed:
        if entry.kind == "unpin" and asked.get(entry.about or 0, {}).get("kind") == "question":
            yield _line(entry, "closed", asked[entry.about or 0]["text"])


def slides_html(slides: Iterable[Slide], link: Link) -> str:
    """The deck as one HTML file."""
    told = list(slides)
    body = "\n".join(_section(slide, link, at, len(told)) for at, slide in enumerate(told, 1))
    return document(
        f"{told[0].title} · slides",
        f'<main>\n{body}\n</main>\n<p class="keys">← → or Page Up and Page Down</p>',
        asset("colours.css") + asset("deck.css"),
        asset("deck.js"),
    )


def _section(slide: Slide, link: Link, at: int, of: int) -> str:
    level = "h1" if at == 1 else "h2"
    part = f' <span class="quiet">{slide.part} of {slide.parts}</span>' if slide.parts > 1 else ""
    lines = "\n".join(_item(each, link) for each in slide.lines)
    return (
        f'<section id="s{at}" tabindex="-1" aria-label="Slide {at} of {of}">\n'
        f'<{level} dir="auto">{escape(slide.title)}{part}</{level}>\n<ul>\n{lines}\n</ul>\n'
        f'<p class="number quiet">{at} / {of}</p>\n</section>'
    )


def _item(line: Line, link: Link) -> str:
    under = f"<ul>{''.join(_item(each, link) for each in line.under)}</ul>" if line.under else ""
    lead = f'<a href="{escape(link(line.entry))}">entry {line.entry}</a>'
    return (
        f'<li data-entry="{line.entry}"><span class="kind">{escape(line.kind)}</span> '
        f'<span class="text" dir="auto">{escape(line.text)}</span> {lead}{under}</li>'
    )


def slides_markdown(slides: Iterable[Slide], link: Link) -> Iterator[str]:
    """The deck as Markdown, a rule between slides."""
    for at, slide in enumerate(slides):
        part = f" ({slide.part} of {slide.parts})" if slide.parts > 1 else ""
        yield f"\n---\n\n## {escaped(slide.title)}{part}\n\n" if at else f"# {escaped(slide.title)}\n\n"
        for line in slide.lines:
            yield from _bullets(line, link, "")


def _bullets(line: Line, link: Link, indent: str) -> Iterator[str]:
    yield f"{indent}* **{escaped(line.kind)}** {escaped(line.text)} ([entry {line.entry}]({link(line.entry)}))\n"
    for each in line.under:
        yield from _bullets(each, link, indent + "  ")
