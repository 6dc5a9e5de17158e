"""Session files of Claude Code in either form: lines of one response gathered, results put in call order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import BadInput
from ..messages import History, Message, Note
from . import anthropic, common
from .jsonl import Line, Loaded


@dataclass(slots=True)
class _Words:
    """A message of the user."""

    line: Line
    content: Any

    @property
    def lines(self) -> list[Line]:
        return [self.line]

    def messages(self) -> list[dict[str, Any]]:
        return [{"role": "user", "content": self.content}]


@dataclass(slots=True)
class _Answer:
    """One response of the model with the results of its calls and what came with them."""

    lines: list[Line] = field(default_factory=list)
    blocks: list[Any] = field(default_factory=list)
    marks: set[str | None] = field(default_factory=set)
    results: dict[str, Any] = field(default_factory=dict)
    beside: list[Any] = field(default_factory=list)

    @property
    def calls(self) -> list[str]:
        return [call for block in self.blocks if (call := call_id(block)) is not None]

    def messages(self) -> list[dict[str, Any]]:
        out = [{"role": "assistant", "content": self.blocks}] if self.blocks else []
        results = [self.results[call] for call in dict.fromkeys(self.calls) if call in self.results]
        if results:
            out.append({"role": "user", "content": results + self.beside})
        return out


def call_id(block: Any) -> str | None:
    """The id of a call that the client answers."""
    if isinstance(block, dict) and block.get("type") == "tool_use" and isinstance(block.get("id"), str):
        return str(block["id"])
    return None


def _mark(block: Any) -> str | None:
    """By what a block of one response is known when a file holds it twice: the id of a call, a signature."""
    if (call := call_id(block)) is not None:
        return call
    signature = block.get("signature") if isinstance(block, dict) else None
    return signature if isinstance(signature, str) and signature else None


def answered_id(block: Any) -> str | None:
    """The id of the call that a result answers."""
    if isinstance(block, dict) and block.get("type") == "tool_result":
        call = block.get("tool_use_id")
        return call if isinstance(call, str) else None
    return None


def message_of(line: Line) -> dict[str, Any]:
    message = line.value.get("message")
    return message if isinstance(message, dict) else {}


def blocks_of(line: Line) -> list[Any]:
    """The content of a line's message as blocks; a string is one text."""
    content = message_of(line).get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def compaction(line: Line) -> dict[str, Any] | None:
    """What a boundary that a compaction left in the file tells: trigger and tokens; ``None`` for other lines."""
    if line.value.get("type") != "system" or line.value.get("subtype") != "compact_boundary":
        return None
    told = line.value.get("compactMetadata") or line.value.get("compact_metadata")
    told = told if isinstance(told, dict) else {}
    trigger, numbers = told.get("trigger"), {}
    for name, keys in (("before", ("preTokens", "pre_tokens")), ("after", ("postTokens", "post_tokens"))):
        found = next((told[key] for key in keys if type(told.get(key)) is int), None)
        numbers[name] = found
    return {"trigger": trigger if isinstance(trigger, str) else "", **numbers}


def is_synthetic(line: Line) -> bool:
    """An assistant line that the client wrote by itself, such as a notice of an API error."""
    return bool(line.value.get("isApiErrorMessage")) or message_of(line).get("model") == "<synthetic>"


@dataclass(frozen=True, slots=True)
class Said:
    """Messages, and of which lines they were made: each line with the numbers of messages before and behind its own."""

    messages: list[Message]
    spans: list[tuple[int, int, list[Line]]]


def said(lines: Iterable[Line], counts: Counter[str]) -> Said:
    """The messages of assistant and user lines in the order of the conversation.

    Lines with one message id are one response, even when a result stands between them; results
    go to the response that called, in call order; the first result of a call counts.
    """
    natives: list[dict[str, Any]] = []
    ends: list[tuple[int, list[Line]]] = []
    for item in _gather(lines, counts):
        natives += item.messages()
        ends.append((len(natives), item.lines))
    messages = anthropic.read_messages(natives)
    # One native message may be two of ours: results, and joined to them the user's words.
    begins = [at for at, message in enumerate(messages) if not message.joined] + [len(messages)]
    spans, before = [], 0
    for end, made_of in ends:
        spans.append((before, begins[end], made_of))
        before = begins[end]
    return Said(messages, spans)


def _gather(lines: Iterable[Line], counts: Counter[str]) -> list[_Answer | _Words]:
    out: list[_Answer | _Words] = []
    answers: dict[str, _Answer] = {}
    owners: dict[str, _Answer] = {}
    for line in lines:
        if line.value.get("type") == "assistant":
            key = message_of(line).get("id")
            answer = answers.get(key) if isinstance(key, str) else None
            if answer is None:
                answer = _Answer()
                out.append(answer)
                if isinstance(key, str):
                    answers[key] = answer
            answer.lines.append(line)
            for block in blocks_of(line):
                if (mark := _mark(block)) is not None and mark in answer.marks:
                    counts["blocks left out: repeated"] += 1
                    continue
                answer.marks.add(mark)
                answer.blocks.append(block)
                if (call := call_id(block)) is not None:
                    owners[call] = answer
            continue
        content = message_of(line).get("content")
        if isinstance(content, str):
            out.append(_Words(line, content))
            continue
        owner = None
        rest = []
        for block in blocks_of(line):
            call = answered_id(block)
            if call is None or call not in owners:
                rest.append(block)
                continue
            owner = owners[call]
            if call in owner.results:
                counts["results left out: their call was answered before"] += 1
            else:
                owner.results[call] = block
        if owner is not None:
            owner.lines.append(line)
        if owner is not None and not any(answered_id(block) for block in rest):
            owner.beside.extend(rest)
        elif rest:
            out.append(_Words(line, rest))
    return out


def history(
    loaded: Loaded, format: str, lines: Sequence[Line], counts: Counter[str], tool_names: Sequence[str] = ()
) -> History:
    """The history of these lines: see :func:`history_of`."""
    return history_of(loaded, format, said(lines, counts), lines, counts, tool_names)


def history_of(
    loaded: Loaded,
    format: str,
    found: Said,
    lines: Sequence[Line],
    counts: Counter[str],
    tool_names: Sequence[str] = (),
) -> History:
    """The history of messages and the lines they are of, with the notes of loading and the counts of what was left out.

    ``usage`` is that of the last response as the file has it. The names of the tools are those given,
    else those that were called. Raises BadInput if no message is left.
    """
    messages = found.messages
    if not messages:
        raise BadInput("no message in it", loaded.where, "; ".join(note.what for note in _notes(loaded, counts)[:3]))
    called = (call.name for message in messages for call in message.calls)
    answers = [message_of(line) for line in lines if line.value.get("type") == "assistant"]
    models = [answer["model"] for answer in answers if isinstance(answer.get("model"), str)]
    usages = [answer["usage"] for answer in answers if isinstance(answer.get("usage"), dict)]
    return History(
        messages=messages,
        format=format,
        wire=anthropic.WIRE,
        tool_names=tuple(tool_names) or tuple(dict.fromkeys(called)),
        model=models[-1] if models else None,
        usage=dict(usages[-1]) if usages else None,
        notes=_notes(loaded, counts),
    )


def _notes(loaded: Loaded, counts: Counter[str]) -> list[Note]:
    return loaded.notes + common.counted(loaded.where, counts)
