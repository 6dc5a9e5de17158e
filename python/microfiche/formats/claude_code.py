"""Claude Code session JSONL: a tree of lines, of which one path is the conversation."""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Iterator

from ..messages import History, Note
from . import session
from .jsonl import Line, Loaded

FORMAT = "claude_code"


def read(loaded: Loaded) -> History:
    """Read the whole conversation that ends at the file's tip.

    The tip is the leaf that the file names explicitly, else its newest leaf off every sidechain. From
    there the path goes up by parent, over a compaction boundary to what stood before it: the history
    is the original one, and the summary of a stretch that is there is left out and counted. Where the
    file no longer holds the originals, the summary stays as the user message that it is. Lines of one
    response that the path misses (parallel calls fork the tree) are brought back, with their results.
    """
    counts: Counter[str] = Counter()
    tree = _Tree(loaded, counts)
    path = tree.path()
    lines = [line for line in tree.complete(path) if _is_said(line, counts)]
    originals, kept = False, []
    for line in lines:
        if line.value.get("isCompactSummary") and originals:
            counts["compaction summaries left out: what they sum up is here"] += 1
            continue
        originals = originals or not line.value.get("isCompactSummary")
        kept.append(line)
    return session.history(loaded, FORMAT, kept, counts)


def asides(loaded: Loaded) -> list[Note]:
    """What the file holds beside the conversation: its compactions, its titles, branches off the path to the tip."""
    tree = _Tree(loaded, Counter())
    given = {line.value["uuid"] for line in tree.complete(tree.path())}
    notes = session.compactions(loaded)
    for line in loaded.lines:
        for kind, key in _TITLES.items():
            if line.value.get("type") == kind and isinstance(title := line.value.get(key), str):
                notes.append(Note(f"{loaded.where}:{line.number}", f"{kind.replace('-', ' ')}: {title}"))
    off = [line for line in tree.main if line.value["uuid"] not in given and line.value.get("type") in _SPOKEN]
    if off:
        parents = {line.value.get("parentUuid") for line in off}
        leaves = sum(line.value["uuid"] not in parents for line in off)
        ends = f"{leaves} branch{'' if leaves == 1 else 'es'}"
        notes.append(Note(loaded.where, f"{ends} off the path to the tip not read ({len(off)} lines)"))
    return notes


_TITLES = {"summary": "summary", "custom-title": "customTitle", "ai-title": "aiTitle", "tag": "tag"}
_SPOKEN = ("user", "assistant")


def _is_said(line: Line, counts: Counter[str]) -> bool:
    """Whether the line is a message that the model saw or wrote."""
    match line.value.get("type"):
        case "assistant":
            if session.is_synthetic(line):
                counts["answers left out: written by the client, not the model"] += 1
                return False
            return True
        case "user":
            if line.value.get("isVisibleInTranscriptOnly") and not line.value.get("isCompactSummary"):
                counts["user lines left out: for display only"] += 1
                return False
            return True
        case "attachment":
            counts["attachments passed over"] += 1
    return False


class _Tree:
    """The lines that have a uuid, and how they hang together."""

    def __init__(self, loaded: Loaded, counts: Counter[str]) -> None:
        self.loaded = loaded
        self.counts = counts
        nodes = [line for line in loaded.lines if isinstance(line.value.get("uuid"), str)]
        main = [line for line in nodes if not line.value.get("isSidechain")]
        if any(line.value.get("type") in ("user", "assistant") for line in main):
            if len(main) < len(nodes):
                counts["sidechain lines left out"] += len(nodes) - len(main)
        else:
            main = nodes  # the file of a sub-agent: all of it is one sidechain
        self.by_uuid: dict[str, Line] = {}
        for line in main:
            self.by_uuid.setdefault(line.value["uuid"], line)
        self.main = list(self.by_uuid.values())
        self.before = dict(zip(self.by_uuid, [None, *self.main], strict=False))
        self.responses: dict[str, list[Line]] = {}
        self.results: dict[str, list[Line]] = {}
        for line in self.main:
            if line.value.get("type") == "assistant" and (key := _response(line)) is not None:
                self.responses.setdefault(key, []).append(line)
            elif line.value.get("type") == "user":
                for block in session.blocks_of(line):
                    if (call := session.answered_id(block)) is not None:
                        self.results.setdefault(call, []).append(line)

    def tip(self) -> Line | None:
        for line in reversed(self.loaded.lines):
            if line.value.get("type") == "last-prompt" and line.value.get("explicit"):
                named = self.by_uuid.get(str(line.value.get("leafUuid")))
                if named is not None:
                    return named
        parents = {line.value.get("parentUuid") for line in self.main}
        leaves = (line for line in reversed(self.main) if line.value["uuid"] not in parents)
        return next(leaves, self.main[-1] if self.main else None)

    def path(self) -> list[Line]:
        """The lines from the root to the tip."""
        path: list[Line] = []
        seen: set[str] = set()
        line = self.tip()
        while line is not None and line.value["uuid"] not in seen:
            seen.add(line.value["uuid"])
            path.append(line)
            line = self.parent(line)
        path.reverse()
        return path

    def parent(self, line: Line) -> Line | None:
        """The line before this one: by parent, over a boundary by its logical parent.

        If the parent is not in the file, the nearest line before stands in for it where a damaged
        line between the two may have been the parent.
        """
        value = line.value
        boundary = value.get("subtype") == "compact_boundary"
        link = value.get("parentUuid") or (value.get("logicalParentUuid") if boundary else None)
        before = self.before[value["uuid"]]
        if link is None:
            return before if boundary and "logicalParentUuid" not in value else None
        if (found := self.by_uuid.get(link)) is not None or before is None:
            return found
        damaged = self.loaded.damaged
        at = bisect(damaged, before.number)
        if at < len(damaged) and damaged[at] < line.number:
            what = f"parent lost with a damaged line: read on at line {before.number}"
            self.loaded.notes.append(Note(f"{self.loaded.where}:{line.number}", what))
            return before
        if not boundary:
            self.counts["paths that begin at a line whose parent is not in the file"] += 1
        return None

    def complete(self, path: list[Line]) -> Iterator[Line]:
        """The path with the lines it misses of its responses, each followed by results that it misses."""
        given = {line.value["uuid"] for line in path}
        done: set[str] = set()
        for line in path:
            key = _response(line) if line.value.get("type") == "assistant" else None
            if key is None:
                yield line
                continue
            if key in done:
                continue
            done.add(key)
            whole = self.responses[key]
            yield from whole
            calls = (session.call_id(block) for each in whole for block in session.blocks_of(each))
            for call in calls:
                found = self.results.get(call, []) if call is not None else []
                if found and not any(each.value["uuid"] in given for each in found):
                    given.add(found[0].value["uuid"])
                    yield found[0]


def _response(line: Line) -> str | None:
    """What the lines of one response share."""
    key = session.message_of(line).get("id")
    return key if isinstance(key, str) else None
