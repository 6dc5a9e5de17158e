"""Claude Code session JSONL: a tree of lines, of which one path is the conversation."""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from ..messages import History, Message, Note
from . import session
from .beside import Beside, Branch, Compaction, Name, Place
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
    if tree.side:
        counts["sidechain lines left out"] += len(tree.side)
    lines = _spoken(tree.complete(tree.path(tree.tip()), set()), counts)
    return session.history(loaded, FORMAT, lines, counts)


def whole(loaded: Loaded) -> tuple[History, Beside]:
    """The history that :func:`read` gives, and all that the file holds beside it.

    A branch is what its newest leaf has that no other path before it has; where it parts inside a turn it begins
    with that turn. The lines of sub-agents (sidechains) are branches that begin where everything does.
    """
    counts: Counter[str] = Counter()
    tree = _Tree(loaded, counts)
    beside = Beside()
    trunk = tree.complete(tree.path(tree.tip()), tree.given)
    lines = _spoken(trunk, counts)
    found = session.said(lines, counts)
    history = session.history_of(loaded, FORMAT, found, lines, counts)
    tree.place(0, found)
    tellers = [("branch", tree)]
    if tree.side:
        tellers.append(("sidechain", _Tree(replace(loaded, lines=tree.side), Counter())))
    said = [found.messages]
    for kind, each in tellers:
        new = each.branches(said, loaded.where)
        order = sorted(new, key=lambda at: at[0])
        names = {line: f"{kind} {number}" for number, (line, _) in enumerate(order, 1)}
        beside.branches += [replace(branch, name=names[line]) for line, branch in new]
        _boundaries(each, loaded.where, beside)
    _names(tree, loaded, Place(0, len(found.messages)), beside)
    return history, beside


def _boundaries(tree: _Tree, where: str, beside: Beside) -> None:
    summaries = {
        line.value.get("parentUuid"): "\n".join(
            block["text"] for block in session.blocks_of(line) if isinstance(block, dict) and block.get("text")
        )
        for line in tree.main
        if line.value.get("isCompactSummary")
    }
    for line in tree.main:
        if (told := session.compaction(line)) is None:
            continue
        at = tree.place_of(line)
        if at is None:  # what stood before is gone, or of another file
            continue
        beside.compactions.append(
            Compaction(
                at,
                f"{where}:{line.number}",
                summary=summaries.get(line.value["uuid"], ""),
                kept=tree.kept(line, at),
                **told,
            )
        )


def _names(tree: _Tree, loaded: Loaded, tip: Place, beside: Beside) -> None:
    for line in loaded.lines:
        kind = line.value.get("type")
        name = line.value.get(_NAMES[kind]) if isinstance(kind, str) and kind in _NAMES else None
        if not isinstance(name, str) or not name.strip():
            continue
        where, told = f"{loaded.where}:{line.number}", str(kind).replace("-", " ")
        at: Place | None = tip
        if kind == "summary":
            leaf = tree.by_uuid.get(str(line.value.get("leafUuid")))
            at = tree.place_of(leaf) if leaf is not None else None
        if at is None:
            beside.notes.append(Note(where, f"{told} of a line that is not in the file: {name}"))
        else:
            beside.names.append(Name(name, told, at, where))


_NAMES = {"summary": "summary", "custom-title": "customTitle", "ai-title": "aiTitle", "tag": "tag"}


def _spoken(path: Iterable[Line], counts: Counter[str]) -> list[Line]:
    """The messages of a path; summaries of what is there are left out and counted."""
    originals, kept = False, []
    for line in path:
        if not _is_said(line, counts):
            continue
        if line.value.get("isCompactSummary") and originals:
            counts["compaction summaries left out: what they sum up is here"] += 1
            continue
        originals = originals or not line.value.get("isCompactSummary")
        kept.append(line)
    return kept


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
    """The lines that have a uuid, and how they hang together; lines of sidechains stand apart in ``side``."""

    def __init__(self, loaded: Loaded, counts: Counter[str]) -> None:
        self.loaded = loaded
        self.counts = counts
        nodes = [line for line in loaded.lines if isinstance(line.value.get("uuid"), str)]
        main = [line for line in nodes if not line.value.get("isSidechain")]
        self.side = [line for line in nodes if line.value.get("isSidechain")]
        if not any(line.value.get("type") in ("user", "assistant") for line in main):
            main, self.side = nodes, []  # the file of a sub-agent: all of it is one sidechain
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
        self.given: set[str] = set()
        self._parents: dict[str, Line | None] = {}
        self._spans: dict[str, tuple[Place, Place, list[Line]]] = {}
        self._near: dict[str, Line | None] = {}

    def tip(self) -> Line | None:
        for line in reversed(self.loaded.lines):
            if line.value.get("type") == "last-prompt" and line.value.get("explicit"):
                named = self.by_uuid.get(str(line.value.get("leafUuid")))
                if named is not None:
                    return named
        parents = {line.value.get("parentUuid") for line in self.main}
        leaves = (line for line in reversed(self.main) if line.value["uuid"] not in parents)
        return next(leaves, self.main[-1] if self.main else None)

    def path(self, line: Line | None) -> list[Line]:
        """The lines that lead to a line from the root, or from behind what is given already."""
        path: list[Line] = []
        seen: set[str] = set()
        while line is not None and line.value["uuid"] not in seen and line.value["uuid"] not in self.given:
            seen.add(line.value["uuid"])
            path.append(line)
            line = self.parent(line)
        path.reverse()
        return path

    def parent(self, line: Line) -> Line | None:
        """The line before this one; looked for once, since what is found missing is noted."""
        uuid = line.value["uuid"]
        if uuid not in self._parents:
            self._parents[uuid] = self._parent(line)
        return self._parents[uuid]

    def _parent(self, line: Line) -> Line | None:
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

    def complete(self, path: Iterable[Line], given: set[str]) -> list[Line]:
        """A path with the lines it misses of its responses, each followed by results that it misses: all ``given``."""
        out: list[Line] = []
        path = list(path)
        given.update(line.value["uuid"] for line in path)
        done: set[str] = set()
        for line in path:
            key = _response(line) if line.value.get("type") == "assistant" else None
            if key is None:
                out.append(line)
                continue
            if key in done:
                continue
            done.add(key)
            whole = self.responses[key]
            given.update(each.value["uuid"] for each in whole)
            out += whole
            calls = (session.call_id(block) for each in whole for block in session.blocks_of(each))
            for call in calls:
                found = self.results.get(call, []) if call is not None else []
                if found and not any(each.value["uuid"] in given for each in found):
                    given.add(found[0].value["uuid"])
                    out.append(found[0])
        return out

    # Places of lines among the messages

    def place(self, branch: int, found: session.Said) -> None:
        """Note where the lines of these messages stand in a branch."""
        for begin, end, lines in found.spans:
            span = (Place(branch, begin), Place(branch, end), lines)
            for line in lines:
                self._spans.setdefault(line.value["uuid"], span)

    def _nearest(self, line: Line | None) -> Line | None:
        """The nearest line up from here (or here) that is in a message. Asked for lines that are given already."""
        way: list[str] = []
        seen: set[str] = set()
        found = None
        while line is not None and (uuid := line.value["uuid"]) not in seen:
            if uuid in self._spans:
                found = line
                break
            if uuid in self._near:
                found = self._near[uuid]
                break
            seen.add(uuid)
            way.append(uuid)
            line = self.parent(line)
        self._near.update(dict.fromkeys(way, found))
        return found

    def place_of(self, line: Line) -> Place | None:
        """The place behind the message that a line is in, or that is the nearest up from it; none if there is none."""
        found = self._nearest(line)
        return self._spans[found.value["uuid"]][1] if found is not None else None

    def kept(self, boundary: Line, at: Place) -> int:
        """How many messages before a boundary it says were kept."""
        told = boundary.value.get("compactMetadata")
        told = told if isinstance(told, dict) else {}
        segment, chosen = told.get("preservedSegment"), told.get("preservedMessages")
        heads = [segment.get("headUuid")] if isinstance(segment, dict) else []
        if isinstance(chosen, dict) and isinstance(chosen.get("uuids"), list):
            heads += chosen["uuids"]
        begins = [self._spans[uuid][0] for uuid in heads if isinstance(uuid, str) and uuid in self._spans]
        return max((at.messages - each.messages for each in begins if each.branch == at.branch), default=0)

    def branches(self, said: list[list[Message]], where: str) -> list[tuple[int, Branch]]:
        """The branches off what is given, newest leaf first, each with the line it ends at.

        ``said`` are the messages of every branch so far; those of the new ones are added.
        """
        out: list[tuple[int, Branch]] = []
        parents = {up.value["uuid"] for line in self.main if (up := self.parent(line)) is not None}
        leaves = [line for line in self.main if line.value["uuid"] not in parents]
        for leaf in reversed(leaves):
            own = self.path(leaf)
            if not own:
                continue
            anchor = self._nearest(self.parent(own[0]))
            lines = _spoken(self.complete(own, self.given), Counter())
            start = Place(0, 0)
            if anchor is not None:
                lines = [line for line in lines if not line.value.get("isCompactSummary")]
                begin, start, around = self._spans[anchor.value["uuid"]]
                # Where it parts from an answer with calls, their results may be others here: the turn stands again.
                asked = [line for line in around if line.value.get("type") == "assistant"]
                asked = asked[: asked.index(anchor) + 1] if anchor in asked else []
                if lines and any(map(_calls, asked)):
                    start, lines = begin, [*asked, *lines]
            found = session.said(lines, Counter())
            if not found.messages or _repeats(found.messages, said, start):
                continue
            self.place(len(said), found)
            said.append(found.messages)
            out.append((leaf.number, Branch("", start, tuple(found.messages), f"{where}:{leaf.number}")))
        return out


def _repeats(messages: list[Message], said: list[list[Message]], start: Place) -> bool:
    """Whether these messages already stand there."""
    there = said[start.branch]
    return there[start.messages : start.messages + len(messages)] == messages


def _calls(line: Line) -> bool:
    return any(session.call_id(block) is not None for block in session.blocks_of(line))


def _response(line: Line) -> str | None:
    """What the lines of one response share."""
    key = session.message_of(line).get("id")
    return key if isinstance(key, str) else None
