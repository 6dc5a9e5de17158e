"""ATIF, the Agent Trajectory Interchange Format (Harbor), versions 1.0 to 1.8: read only."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from ..errors import BadInput
from ..messages import History, Image, Message, Note, Opaque, Reasoning, Text, ToolCall, ToolResult
from . import common
from .beside import Beside, Branch, Place
from .jsonl import Loaded

FORMAT = "atif"
_INNER = "trajectories of sub-agents left out"
_FAILED = "[error] tool reported failure"
_FIELDS = ("[metadata] ", "[is_image] ", "[interrupted] ", "[exit_code] ")
_MARKS = ("[stdout]\n", "[stderr]\n")


def read(loaded: Loaded) -> History:
    """Read one trajectory.

    A leading step of the system becomes :attr:`History.system`. A result keeps its raw object as
    native; of what the Claude Code exporter adds to its text (a second copy of the output, metadata,
    a failure line) the first two become a private part and the last the error flag.
    """
    document = loaded.document
    steps = document.get("steps") if isinstance(document, dict) else None
    if not isinstance(steps, list):
        raise BadInput('a trajectory without a list "steps"', loaded.where, "name what it is if it is no ATIF")
    counts: Counter[str] = Counter()
    messages: list[Message] = []
    for at, step in enumerate(steps):
        messages += _step(step, f"{loaded.where}: steps[{at}]", counts)
    if not messages:
        raise BadInput(f"no message in {len(steps)} steps", loaded.where)
    system = messages.pop(0) if messages[0].role == "system" else None
    agent = document["agent"] if isinstance(document.get("agent"), dict) else {}
    model = agent.get("model_name")
    tools = agent.get("tool_definitions")
    inner = document.get("subagent_trajectories")
    if isinstance(inner, list) and inner:
        counts[_INNER] += len(inner)
    if document.get("continued_trajectory_ref"):
        counts["the trajectory goes on in another file"] += 1
    usage = document.get("final_metrics")
    return History(
        messages=messages,
        format=FORMAT,
        system=system,
        tools=tools if isinstance(tools, list) and tools else None,
        tool_names=tuple(dict.fromkeys(call.name for message in messages for call in message.calls)),
        model=model if isinstance(model, str) else None,
        usage=dict(usage) if isinstance(usage, dict) else None,
        notes=loaded.notes + common.counted(loaded.where, counts),
    )


def whole(loaded: Loaded) -> tuple[History, Beside]:
    """The history that :func:`read` gives, and the trajectories of sub-agents inside it as branches of their own."""
    history, beside = read(loaded), Beside()
    inner = loaded.document.get("subagent_trajectories")
    for at, each in enumerate(inner if isinstance(inner, list) else ()):
        where = f"{loaded.where}: subagent_trajectories[{at}]"
        try:
            said = read(replace(loaded, document=each, where=where, notes=[]))
        except BadInput as error:
            beside.notes.append(Note(where, f"not read: {error.what}"))
            continue
        beside.branches.append(Branch(f"sidechain {at + 1}", Place(0, 0), tuple(said.messages), where))
        beside.notes += said.notes
    history.notes = [note for note in history.notes if not note.what.startswith(_INNER)]
    return history, beside


def _step(step: Any, where: str, counts: Counter[str]) -> list[Message]:
    step = common.as_object(step, where)
    if step.get("is_copied_context"):
        counts["steps copied in from an earlier trajectory"] += 1
    parts = _content(step.get("message"), "user")
    match step.get("source"):
        case "agent":
            return _agent(step, parts)
        case "system":
            return [Message("system", parts), *_results(step, [])]
    return [Message("user", parts), *_results(step, [])]


def _agent(step: dict[str, Any], parts: tuple[Text | Image | Opaque, ...]) -> list[Message]:
    reasoning = step.get("reasoning_content")
    thought = (Reasoning(reasoning, size=len(reasoning)),) if isinstance(reasoning, str) and reasoning else ()
    given = step.get("tool_calls")
    calls = [
        ToolCall(
            str(call["tool_call_id"]),
            str(call["function_name"]),
            common.arguments_text(call.get("arguments") or {}),
            native=call,
        )
        for call in (given if isinstance(given, list) else [])
        if isinstance(call, dict) and "tool_call_id" in call and "function_name" in call
    ]
    answer = [Message("assistant", (*thought, *parts, *calls))] if thought or parts or calls else []
    return [*answer, *_results(step, calls)]


def _results(step: dict[str, Any], calls: list[ToolCall]) -> list[Message]:
    """The observation: results in call order; what no call asked for is the environment speaking."""
    observation = step.get("observation")
    given = observation.get("results") if isinstance(observation, dict) else None
    results = [result for result in (given if isinstance(given, list) else []) if isinstance(result, dict)]
    order = {call.id: at for at, call in enumerate(calls)}
    claimed = {result.get("source_call_id") for result in results}
    unclaimed = [result for result in results if result.get("source_call_id") not in order]
    free = [call for call in calls if call.id not in claimed]
    sources: list[tuple[ToolCall, dict[str, Any]]] = []
    if len(free) == len(unclaimed):
        sources, unclaimed = list(zip(free, unclaimed, strict=True)), []
    sources += [
        (calls[order[result["source_call_id"]]], result) for result in results if result.get("source_call_id") in order
    ]
    answers = {call.id: _result(call, result) for call, result in reversed(sources)}
    messages = []
    if answers:
        ordered = sorted(answers.values(), key=lambda result: order[result.call_id])
        messages.append(Message("tool", tuple(ordered)))
    loose = tuple(part for result in unclaimed for part in _result(None, result).parts)
    if loose:
        messages.append(Message("user", loose))
    return messages


def _result(call: ToolCall | None, result: dict[str, Any]) -> ToolResult:
    content = result.get("content")
    error = False
    parts: tuple[Text | Image | Opaque, ...]
    if isinstance(content, str):
        text, copies, error = clean(content)
        parts = (Text(text),) if text or not copies else ()
        if copies:
            parts = (*parts, Opaque("atif_copy", copies, private=True))
    else:
        parts = _content(content, "tool")
    extra = result.get("extra")
    if isinstance(extra, dict):
        error = error or extra.get("is_error") is True or extra.get("tool_result_is_error") is True
    if result.get("subagent_trajectory_ref"):
        parts = (*parts, Opaque("subagent_trajectory_ref", result["subagent_trajectory_ref"], private=True))
    return ToolResult(call.id if call else "", parts, error, call.name if call else "", native=result)


def _content(content: Any, owner: Literal["user", "tool"]) -> tuple[Text | Image | Opaque, ...]:
    """A string, or a list of text and image parts; images are named by their path."""
    if isinstance(content, str):
        return (Text(content),) if content else ()
    return tuple(_part(part, owner) for part in content) if isinstance(content, list) else ()


def _part(part: Any, owner: Literal["user", "tool"]) -> Text | Image | Opaque:
    match part:
        case {"type": "text", "text": str(text)}:
            return Text(text, native=part)
        case {"type": "image", "source": {"path": str(path), **rest}}:
            media_type = rest.get("media_type")
            kind = media_type if isinstance(media_type, str) else "image/png"
            return Image(None, kind, owner=owner, url=path, native=part)
    return Opaque(common.kind_of(part), part)


def clean(content: str) -> tuple[str, str, bool]:
    """Split a result of the Claude Code exporter: the output, the copies behind it, the failure flag.

    The exporter writes the output, an empty line, then one after another ``[stdout]`` and
    ``[stderr]`` with their text, fields of one line such as ``[exit_code] 1`` and
    ``[metadata] {json}``; and, if the tool failed, an empty line and the words for that. They are
    taken off from the end. The copy goes only where it is one: an output that itself holds such
    lines stays whole.
    """
    body, failed = _without_failure(content)
    core = body
    for _ in _FIELDS:
        head, _, line = core.rpartition("\n")
        if not line.startswith(_FIELDS) or not _is_field(line):
            break
        core = head
    start = _copy_start(core)
    if start is not None:
        text = core[:start]
    elif len(core) < len(body) and (not core or core.endswith("\n")):
        text = core[:-1]
    elif len(core) < len(body) and any("\n\n" + mark in core for mark in _MARKS):
        text = core
    else:
        text = body
    return text, body[len(text) :], failed


def _without_failure(content: str) -> tuple[str, bool]:
    if content == _FAILED:
        return "", True
    if content.endswith("\n\n" + _FAILED):
        return content[: -len(_FAILED) - 2], True
    return content, False


def _is_field(line: str) -> bool:
    name, _, value = line.partition(" ")
    try:
        known = json.loads(value.lower() if name in ("[interrupted]", "[is_image]") else value)
    except (ValueError, RecursionError):
        return False
    return isinstance(known, dict if name == "[metadata]" else int)


def _copy_start(core: str) -> int | None:
    """Where the output ends, if what stands behind a mark equals what stands before it.

    The tool and the exporter trim differently, so blanks at the ends do not count; a tool that has
    both streams shows them one after the other. With each later mark the text before grows and the
    text behind shrinks, so at most one mark can be the right one: found by halving.
    """
    head, _, errors = core.rpartition("\n[stderr]\n")
    for mark in _MARKS:
        starts = _places(core, mark)
        for body, tail in ((core, ""), (head, errors)):
            halves = partial(_halves, core, len(mark), body, tail)
            at = bisect_left(starts, 0, key=lambda start: len(halves(start)[0]) - len(halves(start)[1]))
            if at < len(starts) and halves(starts[at])[0] == halves(starts[at])[1] != "":
                return starts[at]
    return None


def _halves(core: str, width: int, body: str, tail: str, start: int) -> tuple[str, str]:
    """What stands before the mark, and behind it in both streams."""
    copy = f"{body[start + 2 + width :].strip()}\n{tail.strip()}"
    return core[:start].strip(), copy.strip()


def _places(text: str, mark: str) -> list[int]:
    places = []
    at = text.find("\n\n" + mark)
    while at >= 0:
        places.append(at)
        at = text.find("\n\n" + mark, at + 2)
    return places
