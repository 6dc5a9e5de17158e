"""Turns to segments: what stands on the pages, in which order, and where each segment comes from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from microfiche.messages import Image, Message, Opaque, Reasoning, Text, ToolCall, ToolResult, Turn

from .exact import runs
from .render import Bar, Segment

Spot = tuple[int, ...]
"""The address of a part: (turn number, message in the turn, part in the message[, part in the result])."""

# A blob (base64, an encrypted payload) has long stretches without a blank; drawn it would cost a
# page and tell a reader nothing.
BLOB = 2_000

COMPACTION = "compaction"
"""The kind of an opaque part by which a provider stands in for what was before it (Anthropic, OpenAI Responses)."""

BESIDE = "(these words stand as text beside the page)"


class Pointer(NamedTuple):
    """Where a pointer stands on the pages, (segment, offset), the run it stands for, and what that is written in."""

    at: tuple[int, int]
    run: str
    kind: str


@dataclass(slots=True)
class Script:
    """Segments in normal form, with the spots of the first and last part in each, and what was left off the pages.

    A long run of high entropy is a pointer in the text: drawn, it would derail a reader.
    """

    segments: list[Segment] = field(default_factory=list)
    spots: list[Spot] = field(default_factory=list)
    lasts: list[Spot] = field(default_factory=list)
    reasoning: int = 0
    opaque: dict[str, int] = field(default_factory=dict)
    pointers: list[Pointer] = field(default_factory=list)

    def bar(self, spot: Spot, turn: int, kind: str) -> None:
        self.segments.append(Bar(turn, kind))
        self.spots.append(spot)
        self.lasts.append(spot)

    def text(self, spot: Spot, text: str) -> None:
        """Append text; adjacent texts become one segment."""
        if not text:
            return
        text = self._without_runs(spot, text)
        if self.segments and isinstance(self.segments[-1], str):
            self.segments[-1] += text
            self.lasts[-1] = spot
        else:
            self.segments.append(text)
            self.spots.append(spot)
            self.lasts.append(spot)

    def _without_runs(self, spot: Spot, text: str) -> str:
        last = self.segments[-1] if self.segments else None
        segment, offset = (len(self.segments) - 1, len(last)) if isinstance(last, str) else (len(self.segments), 0)
        pieces: list[str] = []
        at = 0
        for run in runs(text):
            before = text[at : run.start]
            offset += len(before)
            pointer = f"[{run.end - run.start} characters of {run.kind}, turn {spot[0]}]"
            self.pointers.append(Pointer((segment, offset), text[run.start : run.end], run.kind))
            pieces += before, pointer
            offset += len(pointer)
            at = run.end
        return "".join((*pieces, text[at:])) if pieces else text


def clean_name(name: str) -> str:
    """A tool's name as a bar can hold it: [A-Za-z0-9_.:-], at most 64, ``-`` if none are left."""
    return re.sub(r"[^A-Za-z0-9_.:-]", "", name)[:64] or "-"


def image_marker(image: Image, turn: int) -> str:
    """What stands in a text where an image was."""
    size = f" {image.width}×{image.height}" if image.width else ""
    return f"[image {clean_type(image.media_type)}{size}, of turn {turn}]"


def clean_type(media_type: str) -> str:
    """A media type in the characters that one has (RFC 6838 section 4.2), at most 64."""
    return re.sub(r"[^A-Za-z0-9!#$&^_.+/-]", "", media_type)[:64] or "-"


def write_script(turns: Iterable[Turn], beside: frozenset[int] = frozenset()) -> Script:
    """The segments of whole turns, in the form in which their messages are given.

    ``beside`` names the user turns whose words stand as text beside the page: the page says so
    in their place. Reasoning is left out and counted; so is an opaque part that holds a blob.
    A provider's own compaction is not drawn either: it says again what was said, and only the provider reads all of it.
    A turn of which nothing is drawn has its bar all the same.
    """
    script = Script()
    for turn in turns:
        drawn = len(script.segments)
        for m, message in enumerate(turn.messages):
            _message(script, turn.number, m, message, turn.number in beside)
        if len(script.segments) == drawn:
            script.bar((turn.number, 0, 0), turn.number, _SPEAKERS[turn.role])
    return script


_SPEAKERS = {"user": "user", "assistant": "assistant", "system": "system", "tool": "result ok"}


def _message(script: Script, turn: int, m: int, message: Message, beside: bool) -> None:
    speaker = _SPEAKERS[message.role]
    open_bar = False
    told = False
    for p, part in enumerate(message.parts):
        spot = (turn, m, p)
        if isinstance(part, ToolCall):
            name = clean_name(part.name)
            script.bar(spot, turn, f"call {name}")
            if name != part.name:
                script.text(spot, f"{part.name}\n")
            script.text(spot, part.arguments)
            open_bar = False
        elif isinstance(part, ToolResult):
            script.bar(spot, turn, "result error" if part.error else "result ok")
            for i, inner in enumerate(part.parts):
                _content(script, spot, turn, inner, joined=i > 0)
            open_bar = False
        elif isinstance(part, Reasoning):
            script.reasoning += 1
        else:
            if isinstance(part, Opaque) and part.private:
                continue
            if not open_bar:
                script.bar(spot, turn, speaker)
            if beside and isinstance(part, Text) and message.role == "user":
                if not told:
                    script.text(spot, BESIDE)
                told = True
            else:
                _content(script, spot, turn, part, joined=open_bar)
            open_bar = True


def _content(script: Script, spot: Spot, turn: int, part: Text | Image | Opaque, joined: bool) -> None:
    if isinstance(part, Text):
        text = part.text
    elif isinstance(part, Image):
        text = image_marker(part, turn)
    elif part.private:
        return
    else:
        body = json.dumps(part.native, ensure_ascii=False, default=str)
        if part.kind == COMPACTION or any(len(word) > BLOB for word in body.split()):
            script.opaque[part.kind] = script.opaque.get(part.kind, 0) + 1
            text = f"[{part.kind}: {len(body)} characters, not drawn; turn {turn}]"
        else:
            text = f"[{part.kind}] {body}"
    if text:
        script.text(spot, f"\n{text}" if joined else text)
