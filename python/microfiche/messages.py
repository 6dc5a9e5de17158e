"""Messages, their parts, and the turns they make.

A part's own fields are authoritative. ``native`` is the object the part was read from in the
wire format named by :attr:`History.wire`; a writer of that wire takes from it only the fields
that are not modelled here, so that what was read is written back as it was.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Text:
    """A stretch of text. ``mark`` asks the writer for a prompt-cache mark behind it."""

    text: str
    native: Any = None
    mark: bool = False


@dataclass(frozen=True, slots=True)
class Image:
    """A picture.

    ``data`` holds its bytes, or ``None`` where the wire names it by ``url`` or ``file_id``.
    ``width`` and ``height`` are pixels read from the header, 0 where unknown.
    ``owner`` says whose it is: the user's, a tool's, or ``page`` for one of our pages.
    ``mark`` asks the writer for a prompt-cache mark behind it.
    """

    data: bytes | None
    media_type: str = "image/png"
    width: int = 0
    height: int = 0
    owner: Literal["user", "tool", "page"] = "user"
    url: str | None = None
    file_id: str | None = None
    native: Any = None
    mark: bool = False

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the bytes; of the reference where there are none."""
        source = self.data if self.data is not None else f"{self.url or ''}\0{self.file_id or ''}".encode()
        return hashlib.sha256(source).hexdigest()


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool. ``arguments`` is raw JSON text, as the wire had it where it has text."""

    id: str
    name: str
    arguments: str
    native: Any = None


@dataclass(frozen=True, slots=True)
class Opaque:
    """Something not modelled, carried through. ``kind`` names its wire type.

    ``private`` parts are copies kept by an exporter for its own screens: never shown to a model.
    ``pair`` is the id by which it belongs to a call or result, if it does.
    """

    kind: str
    native: Any = None
    private: bool = False
    pair: str | None = None


@dataclass(frozen=True, slots=True)
class Reasoning:
    """The model's reasoning: opaque, signed or not. ``size`` is what the wire bills for it, in characters."""

    text: str = ""
    signed: bool = False
    size: int = 0
    native: Any = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call gave back. ``name`` is the tool's where the wire or the call tells it.

    ``uneventful`` is the tool's own word on whether anybody will miss the result once it is old: true, false,
    or ``None`` where it says nothing. Natively it is the field ``microfiche_uneventful`` of the result (Anthropic:
    its block, OpenAI: its message or item, Gemini: its part), which is kept here and never sent.
    """

    call_id: str
    parts: tuple[Text | Image | Opaque, ...]
    error: bool = False
    name: str = ""
    native: Any = None
    uneventful: bool | None = None

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))


Part = Text | Image | ToolCall | ToolResult | Reasoning | Opaque


@dataclass(frozen=True, slots=True)
class Message:
    """One message. A message of role ``tool`` carries results only.

    ``joined`` says that on the wire it shares one message with the one before it: results and a
    user's words that came together are two messages here, since they belong to two turns.
    ``native`` holds the wire's envelope without its content.
    """

    role: Role
    parts: tuple[Part, ...]
    native: Any = None
    joined: bool = False

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def results(self) -> tuple[ToolResult, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolResult))


@dataclass(frozen=True, slots=True)
class Note:
    """Something found while reading: damage, a line passed over, a copy set apart."""

    where: str
    what: str


@dataclass(slots=True)
class History:
    """What a reader found in a request body, a list of messages or a session file.

    ``format`` is the form it was read from, ``wire`` the one whose native objects ride along
    (``""`` if none). ``system`` stands apart where the wire has it beside the list. ``tools`` are
    native definitions, ``tool_names`` names alone where a session knows no more. ``body`` holds
    the request's other fields. ``bare`` tells that a list came in, not a body. ``numbers`` are those of
    the turns in order, counted from 1 where empty; ``pins`` texts that stand in every context.
    """

    messages: list[Message]
    format: str
    wire: str = ""
    system: Message | None = None
    tools: list[Any] | None = None
    tool_names: tuple[str, ...] = ()
    body: dict[str, Any] = field(default_factory=dict)
    bare: bool = False
    model: str | None = None
    usage: dict[str, Any] | None = None
    notes: list[Note] = field(default_factory=list)
    numbers: tuple[int, ...] = ()
    pins: tuple[str, ...] = ()

    def turns(self) -> tuple[tuple[Message, ...], list[Turn]]:
        """The head, and the turns with their numbers."""
        head, turns = split_turns(self.messages)
        if self.numbers:
            turns = [Turn(number, turn.messages) for number, turn in zip(self.numbers, turns, strict=True)]
        return head, turns


@dataclass(frozen=True, slots=True)
class Turn:
    """The smallest stretch after which a history can be sent.

    One user message, or one assistant message with all results of its calls; any other message
    belongs to the turn before it.
    """

    number: int
    messages: tuple[Message, ...]

    @property
    def role(self) -> Role:
        return self.messages[0].role

    @property
    def open_calls(self) -> tuple[ToolCall, ...]:
        """Calls of this turn that no result answers."""
        answered = {result.call_id for message in self.messages for result in message.results}
        return tuple(call for message in self.messages for call in message.calls if call.id not in answered)


def split_turns(messages: Sequence[Message], first: int = 1) -> tuple[tuple[Message, ...], list[Turn]]:
    """Cut messages into the head (what stands before the first turn) and turns numbered from ``first``."""
    head: list[Message] = []
    groups: list[list[Message]] = []
    for message in messages:
        if message.role in ("user", "assistant"):
            groups.append([message])
        elif groups:
            groups[-1].append(message)
        else:
            head.append(message)
    return tuple(head), [Turn(first + at, tuple(group)) for at, group in enumerate(groups)]


def canonical(part: Part | Message) -> Any:
    """The JSON-ready form of a part or message that digests are taken of: content, no native fields.

    Bytes stand as their SHA-256. Reasoning and opaque parts have no content of ours, so their
    native form stands for them.
    """
    match part:
        case Message():
            return [part.role, [canonical(each) for each in part.parts]]
        case Text():
            return ["text", part.text]
        case Image():
            return ["image", part.digest, part.media_type]
        case ToolCall():
            return ["call", part.id, part.name, part.arguments]
        case ToolResult():
            return ["result", part.call_id, part.error, [canonical(each) for each in part.parts]]
        case Reasoning():
            return ["reasoning", part.native if part.native is not None else part.text]
        case Opaque():
            return ["opaque", part.kind, part.native]


canonical_text = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str).encode
"""The text of canonical forms that digests are taken of: JSON in ASCII with sorted keys, so lone surrogates survive."""


def digest(items: Iterable[Part | Message]) -> str:
    """SHA-256 (hex) of the canonical form."""
    text = canonical_text([canonical(item) for item in items])
    return hashlib.sha256(text.encode("ascii")).hexdigest()
