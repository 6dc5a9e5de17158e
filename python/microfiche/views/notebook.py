"""A conversation as a Jupyter notebook: what was said as Markdown cells, calls of tools as code cells.

Nothing in it is run, and nothing in it can be that a kernel would take for a program: the source of a code cell
is JSON. Jupyter shows what is rendered without trust, so words of a transcript that would load or lead elsewhere
stand in fences.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from microfiche.conversation import Conversation
from microfiche.messages import Image, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from microfiche.record import Entry

from .links import Link
from .thread import escaped, events, fenced, marker, prose, when

FORMAT = (4, 5)
"""Of notebooks; 4.5 is the first whose cells have ids (https://nbformat.readthedocs.io/en/latest/format_description.html)."""

_SHOWN = frozenset({"image/png", "image/jpeg", "image/gif"})

_TALL = 40
"""Lines of an output beyond which Jupyter shows it in a box to scroll."""

_LONE = re.compile("[\ud800-\udfff]")


def notebook(chat: Conversation, link: Link) -> dict[str, Any]:
    """The path as a notebook of :data:`FORMAT`; the metadata of a cell names its entry, a line in it leads there."""
    cells = list(_cells(chat, link, alone=True))
    return {
        "nbformat": FORMAT[0],
        "nbformat_minor": FORMAT[1],
        "metadata": {
            "language_info": {"name": "json"},
            "microfiche": {"conversation": _sound(chat.name), "tip": chat.tip, "head": list(chat.record.head)},
        },
        "cells": cells,
    }


def notebook_markdown(chat: Conversation, link: Link) -> Iterator[str]:
    """The same cells as Markdown."""
    for cell in _cells(chat, link, alone=False):
        source = cell["source"]
        if cell["cell_type"] == "markdown":
            yield f"{source}\n\n"
            continue
        yield f"{fenced(source, 'json').strip()}\n\n"
        for output in cell["outputs"]:
            if output["output_type"] == "stream":
                failed = "*error*\n\n" if output["name"] == "stderr" else ""
                yield f"{failed}{fenced(output['text']).strip()}\n\n"
            else:
                yield f"*{escaped(output['data']['text/plain'])}*\n\n"


def _cells(chat: Conversation, link: Link, alone: bool) -> Iterator[dict[str, Any]]:
    yield _markdown(f"# {escaped(chat.name)}", "top", None)
    listed = list(events(chat))
    at = 0
    while at < len(listed):
        entry = listed[at]
        at += 1
        if entry.message is None or entry.kind == "report":
            yield from _event(entry, link, alone)
            continue
        results: list[tuple[Entry, ToolResult]] = []
        if entry.message.calls:
            # The results of a turn stand behind the message that calls, with nothing but events between.
            behind = at
            while behind < len(listed) and (listed[behind].message is None or _only_results(listed[behind].message)):
                results += [(listed[behind], each) for each in getattr(listed[behind].message, "results", ())]
                behind += 1
            between = [each for each in listed[at:behind] if each.message is None]
            yield from _said(entry, entry.message, results, link, alone)
            for each in between:
                yield from _event(each, link, alone)
            at = behind
        else:
            yield from _said(entry, entry.message, results, link, alone)


def _only_results(message: Message | None) -> bool:
    return message is not None and all(isinstance(part, ToolResult) for part in message.parts)


def _event(entry: Entry, link: Link, alone: bool) -> Iterator[dict[str, Any]]:
    kind = entry.kind.replace("_", " ")
    words = f"> **{kind}** ([entry {entry.id}]({link(entry.id)}), {when(entry)}): {escaped(marker(entry))}"
    if entry.message is not None:
        words = "\n\n".join((words, prose(_sound(entry.message.text), alone).strip("\n")))
    yield _markdown(words, f"e{entry.id}", entry)


def _said(
    entry: Entry, message: Message, results: Sequence[tuple[Entry, ToolResult]], link: Link, alone: bool
) -> Iterator[dict[str, Any]]:
    turn = f"Turn {entry.turn}" if entry.turn else "Head"
    answers = dict.fromkeys(each.id for each, _ in results)
    led = "".join(f", results in [entry {id}]({link(id)})" for id in answers)
    words = [f"**{turn} · {message.role}** · [entry {entry.id}]({link(entry.id)}){led}"]
    words += [
        _words(part, message.role, alone) for part in message.parts if not isinstance(part, ToolCall | ToolResult)
    ]
    yield _markdown("\n\n".join(filter(None, words)), f"e{entry.id}", entry)
    waiting = list(results)
    for nth, call in enumerate(message.calls):
        found = next((each for each in waiting if each[1].call_id == call.id), None)
        if found is not None:
            waiting.remove(found)
        yield _code(entry, nth, {"tool": call.name, "arguments": _parsed(call.arguments)}, found)
    # Results of no call that stands here, as a provider's log may have them.
    unasked = [*waiting, *((entry, part) for part in message.results)]
    for nth, (of, result) in enumerate(unasked, len(message.calls)):
        yield _code(of, nth, {"tool": result.name, "result of call": result.call_id}, (of, result))


def _words(part: Part, role: str, alone: bool) -> str:
    match part:
        case Text() if role in ("user", "assistant"):
            return prose(_sound(part.text), alone).strip("\n")
        case Text():
            return fenced(_sound(part.text)).strip("\n")
        case Reasoning() if part.text:
            return f"*reasoning*\n{fenced(_sound(part.text))}".strip("\n")
        case Reasoning():
            return "*reasoning, kept by its provider*"
        case Image():
            return f"*{escaped(_picture(part))}*"
        case Opaque():
            return f"*{escaped(part.kind)}, carried through*"
    return ""


def _picture(image: Image) -> str:
    size = f" {image.width}×{image.height}" if image.width else ""
    where = f", blob {image.digest}" if image.data is not None else ""
    return _sound(f"image {image.media_type}{size}{where}")


def _code(entry: Entry, nth: int, source: dict[str, Any], answer: tuple[Entry, ToolResult] | None) -> dict[str, Any]:
    told: dict[str, Any] = {"entry": entry.id, "turn": entry.turn}
    outputs: list[dict[str, Any]] = []
    if answer is not None:
        told["result"] = answer[0].id
        outputs = [_output(part, answer[1].error) for part in answer[1].parts]
    tall = sum(output.get("text", "").count("\n") for output in outputs) > _TALL
    return {
        "cell_type": "code",
        "id": f"e{entry.id}-{nth}",
        "metadata": {"microfiche": told, **({"scrolled": True} if tall else {})},
        "execution_count": entry.turn or None,
        "source": _sound(json.dumps(source, indent=1, ensure_ascii=False)),
        "outputs": outputs,
    }


def _output(part: Part, error: bool) -> dict[str, Any]:
    if isinstance(part, Image):
        data: dict[str, Any] = {"text/plain": _picture(part)}
        if part.data is not None and part.media_type in _SHOWN:
            data[part.media_type] = base64.b64encode(part.data).decode("ascii")
        return {"output_type": "display_data", "data": data, "metadata": {}}
    text = part.text if isinstance(part, Text) else f"[{getattr(part, 'kind', 'part')}]"
    return {"output_type": "stream", "name": "stderr" if error else "stdout", "text": _sound(text)}


def _markdown(source: str, id: str, entry: Entry | None) -> dict[str, Any]:
    told = {"microfiche": {"entry": entry.id, "turn": entry.turn}} if entry is not None else {}
    return {"cell_type": "markdown", "id": id, "metadata": told, "source": _sound(source)}


def _parsed(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def _sound(text: str) -> str:
    """The text with lone surrogates as their numbers: a notebook is UTF-8."""
    return _LONE.sub(lambda found: f"U+{ord(found[0]):04X}", text)
