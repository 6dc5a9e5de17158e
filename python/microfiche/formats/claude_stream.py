"""Claude Code stream-json (``--output-format stream-json``): the file's order is the conversation's."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..messages import History
from . import session
from .beside import Beside, Branch, Compaction, Place
from .jsonl import Line, Loaded

FORMAT = "claude_stream"


def read(loaded: Loaded) -> History:
    """Read the lines of one stream.

    Sub-agents' lines are left out and counted, as are answers the client wrote itself. ``usage`` is
    that of the last response, with the file's own sum under ``total`` if it has one.
    """
    stream = _Stream(loaded)
    if stream.agents:
        stream.counts["lines of sub-agents left out"] += sum(map(len, stream.agents.values()))
    if stream.boundaries:
        stream.counts["compaction boundaries passed over: what stood before them is here"] += len(stream.boundaries)
    return stream.history(session.said(stream.lines, stream.counts))


def whole(loaded: Loaded) -> tuple[History, Beside]:
    """The history that :func:`read` gives, its compactions, and its sub-agents as branches from the beginning."""
    stream, beside = _Stream(loaded), Beside()
    found = session.said(stream.lines, stream.counts)
    history = stream.history(found)
    ends = {line.number: end for _, end, lines in found.spans for line in lines}
    behind = 0
    places: dict[int, int] = {}  # line -> messages before it
    for line in loaded.lines:
        places[line.number] = behind = max(behind, ends.get(line.number, 0))
    summaries = iter([*stream.summaries, None])
    summary = next(summaries)
    for number, told in stream.boundaries:
        while summary is not None and summary.number < number:
            summary = next(summaries)
        words = ""
        if summary is not None:
            blocks = session.blocks_of(summary)
            words = "\n".join(block["text"] for block in blocks if isinstance(block, dict) and block.get("text"))
        beside.compactions.append(
            Compaction(Place(0, places[number]), f"{loaded.where}:{number}", summary=words, **told)
        )
    for at, lines in enumerate(stream.agents.values(), 1):
        messages = tuple(session.said(lines, Counter()).messages)
        if messages:
            where = f"{loaded.where}:{lines[-1].number}"
            beside.branches.append(Branch(f"sidechain {at}", Place(0, 0), messages, where))
    return history, beside


class _Stream:
    """The lines of a stream by what they are."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self.counts: Counter[str] = Counter()
        self.lines: list[Line] = []
        self.agents: dict[str, list[Line]] = {}
        self.boundaries: list[tuple[int, dict[str, Any]]] = []
        self.summaries: list[Line] = []
        self.names: list[str] = []
        self.model: str | None = None
        self.total: dict[str, Any] | None = None
        seen: set[str] = set()
        for line in loaded.lines:
            self._note(line)
            if line.value.get("type") in ("assistant", "user"):
                self._sort(line, seen)

    def _note(self, line: Line) -> None:
        value = line.value
        kind, subtype = value.get("type"), value.get("subtype")
        if kind == "system" and subtype == "init":
            tools = value.get("tools")
            self.names = [name for name in tools if isinstance(name, str)] if isinstance(tools, list) else self.names
            self.model = value["model"] if isinstance(value.get("model"), str) else self.model
        elif (told := session.compaction(line)) is not None:
            self.boundaries.append((line.number, told))
        elif kind == "result" and isinstance(value.get("usage"), dict):
            self.total = value["usage"]

    def _sort(self, line: Line, seen: set[str]) -> None:
        value = line.value
        uuid, agent = value.get("uuid"), value.get("parent_tool_use_id")
        if isinstance(uuid, str) and uuid in seen:
            self.counts["lines left out: repeated"] += 1
            return
        if isinstance(uuid, str):
            seen.add(uuid)
        if agent is not None:
            self.agents.setdefault(str(agent), []).append(line)
        elif value.get("type") == "assistant" and session.is_synthetic(line):
            self.counts["answers left out: written by the client, not the model"] += 1
        elif value.get("isCompactSummary") and self.lines:
            self.counts["compaction summaries left out: what they sum up is here"] += 1
            self.summaries.append(line)
        else:
            self.lines.append(line)

    def history(self, found: session.Said) -> History:
        history = session.history_of(self.loaded, FORMAT, found, self.lines, self.counts, self.names)
        history.model = history.model or self.model
        if self.total is not None:
            history.usage = {**(history.usage or {}), "total": self.total}
        return history
