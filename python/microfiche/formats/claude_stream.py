"""Claude Code stream-json (``--output-format stream-json``): the file's order is the conversation's."""

from __future__ import annotations

from collections import Counter

from ..messages import History
from . import session
from .jsonl import Line, Loaded

FORMAT = "claude_stream"


def read(loaded: Loaded) -> History:
    """Read the lines of one stream.

    Sub-agents' lines are left out and counted, as are answers the client wrote itself. ``usage`` is
    that of the last response, with the file's own sum under ``total`` if it has one.
    """
    counts: Counter[str] = Counter()
    lines: list[Line] = []
    names: list[str] = []
    model = total = None
    seen: set[str] = set()
    for line in loaded.lines:
        value = line.value
        kind, subtype = value.get("type"), value.get("subtype")
        if kind == "system" and subtype == "init":
            tools = value.get("tools")
            names = [name for name in tools if isinstance(name, str)] if isinstance(tools, list) else names
            model = value["model"] if isinstance(value.get("model"), str) else model
        elif kind == "system" and subtype == "compact_boundary":
            counts["compaction boundaries passed over: what stood before them is here"] += 1
        elif kind == "result" and isinstance(value.get("usage"), dict):
            total = value["usage"]
        if kind not in ("assistant", "user"):
            continue
        uuid = value.get("uuid")
        if isinstance(uuid, str) and uuid in seen:
            counts["lines left out: repeated"] += 1
            continue
        if isinstance(uuid, str):
            seen.add(uuid)
        if value.get("parent_tool_use_id") is not None:
            counts["lines of sub-agents left out"] += 1
        elif kind == "assistant" and session.is_synthetic(line):
            counts["answers left out: written by the client, not the model"] += 1
        elif value.get("isCompactSummary") and lines:
            counts["compaction summaries left out: what they sum up is here"] += 1
        else:
            lines.append(line)
    history = session.history(loaded, FORMAT, lines, counts, names)
    history.model = history.model or model
    if total is not None:
        history.usage = {**(history.usage or {}), "total": total}
    return history
