"""Histories for tests: told once as plain events, then spelled in the native form of any wire.

Nothing here uses the package, so that what a test feeds in is what a provider would.
"""

from __future__ import annotations

import base64
import json
import random
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

WIRES = ("anthropic", "openai_chat", "openai_responses", "gemini")

VERBS = [
    "read",
    "parse",
    "walk",
    "merge",
    "check",
    "route",
    "fetch",
    "index",
    "guard",
    "split",
    "join",
    "visit",
    "store",
]
NOUNS = [
    "queue",
    "token",
    "node",
    "batch",
    "frame",
    "table",
    "cursor",
    "parser",
    "header",
    "record",
    "budget",
    "window",
]


def png(width: int, height: int, noise: int | None = None) -> bytes:
    """A PNG of 8-bit grey, flat, or of seeded noise that no deflate shrinks."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    if noise is None:
        rows = b"".join(b"\0" + b"\xcc" * width for _ in range(height))
    else:
        source = random.Random(noise)
        rows = b"".join(b"\0" + source.randbytes(width) for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    body = zlib.compress(rows, 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


Content = str | bytes
"""A text, or the bytes of a PNG."""


@dataclass(frozen=True)
class User:
    """What a user says; ``joined`` puts it into the wire message of the results before it, where that is done."""

    content: tuple[Content, ...]
    joined: bool = False


@dataclass(frozen=True)
class Call:
    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Assistant:
    text: str = ""
    calls: tuple[Call, ...] = ()
    thinking: str = ""


@dataclass(frozen=True)
class Result:
    id: str
    content: tuple[Content, ...]
    error: bool = False


Event = User | Assistant | Result


@dataclass
class Story:
    """A history in the making. Calls get ids by themselves."""

    events: list[Event] = field(default_factory=list)
    calls: int = 0

    def user(self, *content: Content, joined: bool = False) -> Story:
        self.events.append(User(content, joined))
        return self

    def says(self, text: str, thinking: str = "") -> Story:
        self.events.append(Assistant(text, (), thinking))
        return self

    def uses(self, *uses: tuple[Any, ...], text: str = "", thinking: str = "", answered: bool = True) -> Story:
        """One assistant message with calls: (name, arguments, result, error?); a result is content or a tuple of it."""
        calls, results = [], []
        for name, arguments, result, *error in uses:
            self.calls += 1
            call = Call(f"toolu_{self.calls:04d}", name, arguments)
            calls.append(call)
            content = result if isinstance(result, tuple) else (result,)
            results.append(Result(call.id, content, bool(error and error[0])))
        self.events.append(Assistant(text, tuple(calls), thinking))
        if answered:
            self.events += results
        return self

    def read(self, path: str, text: str, **more: Any) -> Story:
        return self.uses(("read_file", {"path": path, **more}, text))

    def native(self, wire: str) -> list[dict[str, Any]]:
        return _SPELL[wire](self.events)


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _groups(events: Iterable[Event]) -> Iterable[User | Assistant | list[Result]]:
    batch: list[Result] = []
    for event in events:
        if isinstance(event, Result):
            batch.append(event)
            continue
        if batch:
            yield batch
            batch = []
        yield event
    if batch:
        yield batch


def _anthropic(events: Sequence[Event]) -> list[dict[str, Any]]:
    def blocks(content: tuple[Content, ...]) -> list[dict[str, Any]]:
        return [
            {"type": "text", "text": each}
            if isinstance(each, str)
            else {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _b64(each)}}
            for each in content
        ]

    out: list[dict[str, Any]] = []
    for group in _groups(events):
        if isinstance(group, User):
            if group.joined and out and out[-1]["role"] == "user" and isinstance(out[-1]["content"], list):
                out[-1]["content"] += blocks(group.content)
            elif len(group.content) == 1 and isinstance(group.content[0], str):
                out.append({"role": "user", "content": group.content[0]})
            else:
                out.append({"role": "user", "content": blocks(group.content)})
        elif isinstance(group, Assistant):
            listed: list[dict[str, Any]] = []
            if group.thinking:
                signature = _b64(group.thinking.encode())
                listed.append({"type": "thinking", "thinking": group.thinking, "signature": signature})
            if group.text:
                listed.append({"type": "text", "text": group.text})
            listed += [{"type": "tool_use", "id": c.id, "name": c.name, "input": c.arguments} for c in group.calls]
            out.append({"role": "assistant", "content": listed})
        else:
            results: list[dict[str, Any]] = []
            for result in group:
                lone = len(result.content) == 1 and isinstance(result.content[0], str)
                block = {"type": "tool_result", "tool_use_id": result.id}
                block["content"] = result.content[0] if lone else blocks(result.content)  # type: ignore[assignment]
                results.append({**block, "is_error": True} if result.error else block)
            out.append({"role": "user", "content": results})
    return out


def _texts(content: tuple[Content, ...]) -> str:
    return "\n".join(each for each in content if isinstance(each, str))


def _openai_chat(events: Sequence[Event]) -> list[dict[str, Any]]:
    def parts(content: tuple[Content, ...]) -> list[dict[str, Any]]:
        return [
            {"type": "text", "text": each}
            if isinstance(each, str)
            else {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_b64(each)}"}}
            for each in content
        ]

    out: list[dict[str, Any]] = []
    for group in _groups(events):
        if isinstance(group, User):
            lone = len(group.content) == 1 and isinstance(group.content[0], str)
            out.append({"role": "user", "content": group.content[0] if lone else parts(group.content)})
        elif isinstance(group, Assistant):
            message: dict[str, Any] = {"role": "assistant", "content": group.text or None}
            if group.calls:
                message["tool_calls"] = [
                    {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": json.dumps(c.arguments)}}
                    for c in group.calls
                ]
            elif not group.text:
                message["content"] = ""
            out.append(message)
        else:
            pictures = [each for result in group for each in result.content if isinstance(each, bytes)]
            out += [{"role": "tool", "tool_call_id": r.id, "content": _texts(r.content)} for r in group]
            if pictures:
                out.append({"role": "user", "content": parts(("from the tool:", *pictures))})
    return out


def _openai_responses(events: Sequence[Event]) -> list[dict[str, Any]]:
    def parts(content: tuple[Content, ...]) -> list[dict[str, Any]]:
        return [
            {"type": "input_text", "text": each}
            if isinstance(each, str)
            else {"type": "input_image", "detail": "auto", "image_url": f"data:image/png;base64,{_b64(each)}"}
            for each in content
        ]

    out: list[dict[str, Any]] = []
    for at, group in enumerate(_groups(events)):
        if isinstance(group, User):
            out.append({"role": "user", "content": parts(group.content)})
        elif isinstance(group, Assistant):
            if group.thinking:
                sealed = _b64(group.thinking.encode())
                out.append({"type": "reasoning", "id": f"rs_{at}", "summary": [], "encrypted_content": sealed})
            if group.text or (group.thinking and not group.calls):
                content = [{"type": "output_text", "text": group.text or "ok", "annotations": []}]
                item = {"type": "message", "id": f"msg_{at}", "role": "assistant", "status": "completed"}
                out.append({**item, "content": content})
            for c in group.calls:
                item = {"type": "function_call", "call_id": c.id, "name": c.name}
                out.append({**item, "arguments": json.dumps(c.arguments)})
        else:
            for result in group:
                lone = len(result.content) == 1 and isinstance(result.content[0], str)
                output = result.content[0] if lone else parts(result.content)
                out.append({"type": "function_call_output", "call_id": result.id, "output": output})
    return out


def _gemini(events: Sequence[Event]) -> list[dict[str, Any]]:
    def parts(content: tuple[Content, ...]) -> list[dict[str, Any]]:
        return [
            {"text": each} if isinstance(each, str) else {"inlineData": {"mimeType": "image/png", "data": _b64(each)}}
            for each in content
        ]

    names = {c.id: c.name for e in events if isinstance(e, Assistant) for c in e.calls}
    out: list[dict[str, Any]] = []
    for group in _groups(events):
        if isinstance(group, User):
            out.append({"role": "user", "parts": parts(group.content)})
        elif isinstance(group, Assistant):
            listed: list[dict[str, Any]] = [{"text": group.text}] if group.text else []
            for at, c in enumerate(group.calls):
                part: dict[str, Any] = {"functionCall": {"name": c.name, "args": c.arguments}}
                if at == 0:
                    part["thoughtSignature"] = _b64((group.thinking or c.id).encode())
                listed.append(part)
            out.append({"role": "model", "parts": listed or [{"text": "ok"}]})
        else:
            responses: list[dict[str, Any]] = []
            for result in group:
                key = "error" if result.error else "output"
                response = {"name": names[result.id], "response": {key: _texts(result.content)}}
                pictures = [each for each in result.content if isinstance(each, bytes)]
                if pictures:
                    response["parts"] = parts(tuple(pictures))
                responses.append({"functionResponse": response})
            out.append({"role": "user", "parts": responses})
    return out


_SPELL = {
    "anthropic": _anthropic,
    "openai_chat": _openai_chat,
    "openai_responses": _openai_responses,
    "gemini": _gemini,
}


# ---------------------------------------------------------------- contents


def code(seed: int, characters: int) -> str:
    """Lines that look like code, seeded; no line says that something went wrong."""
    source = random.Random(seed)
    lines: list[str] = []
    size = 0
    while size < characters:
        indent = " " * (4 * source.randrange(4))
        verb, one, two = source.choice(VERBS), source.choice(NOUNS), source.choice(NOUNS)
        line = source.choice(
            [
                f"{indent}def {verb}_{one}({two}: int) -> int:",
                f"{indent}{one}_{source.randrange(999)} = {verb}({two}, {source.randrange(10**6):#x})",
                f"{indent}if {one} > {source.randrange(99)}:\treturn {verb}_{two}",
                "",
            ]
        )
        lines.append(line)
        size += len(line) + 1
    return "\n".join(lines)[:characters]


def prose(seed: int, words: int) -> str:
    source = random.Random(seed)
    return " ".join(source.choice(VERBS if source.random() < 0.5 else NOUNS) for _ in range(words)) + "."


def log(seed: int, lines: int) -> str:
    """A long log without trouble: few shapes of line, many of each."""
    source = random.Random(seed)
    return "\n".join(
        f"Compiling unit {source.randrange(10**5)} of the {source.choice(NOUNS)} crate" for _ in range(lines)
    )


STRANGE = (
    "",
    " ",
    "\x00\x1b[31mred\x1b[0m\r\n",
    "\ud800 alone \udfff",
    "🧪 naïve 漢字 e\u0301",
    "   \t\t\t\n\n\n\n   ",
    " 3 result ok ",
    "<1b>4s",
    "[120 characters of this read_file result left out: nothing but blanks; recall of turn 2 returns them] and more",
)


def rounds(count: int, size: int = 1_200, seed: int = 0, **more: Any) -> Story:
    """One prompt, then so many rounds of one tool call each, on distinct files."""
    story = Story().user("Please find out why the queue drops a batch, and mend it.")
    for at in range(count):
        story.uses(
            ("read_file", {"path": f"src/file_{at}.py"}, code(seed + at, size)), text=f"Next I read file {at}.", **more
        )
    return story


def random_story(seed: int) -> Story:
    """A history with a bit of everything that sessions do, as seeded."""
    source = random.Random(seed)
    story = Story()
    if source.random() < 0.9:
        story.user(prose(seed, source.randrange(3, 80)))
    elif source.random() < 0.5:
        story.says("I am ready.")
    paths = [f"src/{noun}.py" for noun in source.sample(NOUNS, 4)]
    for at in range(source.randrange(4, 40)):
        step(story, source, seed * 1_000 + at, paths)
    if source.random() < 0.2:
        story.uses(("run", {"command": "make"}, "late"), answered=False)
    return story


def step(story: Story, source: random.Random, seed: int, paths: list[str]) -> None:
    """One more thing that happens, whatever it is."""
    thinking = prose(seed, 12) if source.random() < 0.3 else ""
    path = source.choice(paths)
    kind = source.choice(["read", "range", "write", "log", "fail", "many", "shot", "user", "say", "strange", "big"])
    if kind == "read":
        story.uses(("read_file", {"path": path}, code(seed, source.randrange(50, 4_000))), thinking=thinking)
    elif kind == "range":
        start = source.randrange(1, 90)
        arguments = {"path": path, "offset": start, "limit": source.randrange(1, 60)}
        story.uses(("read_file", arguments, code(seed, source.randrange(50, 2_000))), text=prose(seed, 6))
    elif kind == "write":
        arguments = {"path": path, "content": code(seed, source.randrange(20, 3_000))}
        story.uses(("write_file", arguments, "wrote it\n" + code(seed, source.randrange(0, 900))))
    elif kind == "log":
        story.uses(("run", {"command": f"build {seed}"}, log(seed, source.randrange(10, 120))), thinking=thinking)
    elif kind == "fail":
        story.uses(("run", {"command": "test"}, f"FAILED {path}\nTypeError: {code(seed, 900)}", True))
    elif kind == "many":
        uses = [("read_file", {"path": each}, code(seed + at, 600), at == 1) for at, each in enumerate(paths)]
        story.uses(*uses, text="All at once.", thinking=thinking)
        if source.random() < 0.5:
            story.user("And keep the old name, please.", joined=True)
    elif kind == "shot":
        story.uses(("screenshot", {}, ("the page", png(source.randrange(8, 900), source.randrange(8, 700)), "after")))
    elif kind == "user":
        content: list[Content] = [prose(seed, source.randrange(1, 120))]
        if source.random() < 0.3:
            content.append(png(64, 48))
        story.user(*content)
    elif kind == "say":
        story.says(prose(seed, source.randrange(1, 200)), thinking)
    elif kind == "strange":
        story.uses(("weird<tool>\n 7 user ", {"s": source.choice(STRANGE)}, source.choice(STRANGE)))
    else:
        story.uses(("read_file", {"path": path + str(seed)}, code(seed, source.randrange(6_000, 20_000))))


def growing(seed: int, rounds: int, characters: int = 1_400, lines: int = 44) -> Story:
    """A session of many rounds with everything in it; no wire's list is shorter for a longer story."""
    story = Story().user("Mend the queue. Never touch the vendored files.")
    for at in range(rounds):
        path = f"src/{at if at % 3 else 0}.py"
        story.uses(
            ("read_file", {"path": path}, code(seed + at, characters)),
            ("run", {"command": f"build {at}"}, log(at, lines)),
            text=f"Round {at}.",
        )
        if at % 7 == 3:
            story.uses(("screenshot", {}, ("seen", png(300, 200 + at))))
        if at % 11 == 5:
            story.user(f"Remember rule {at}: {prose(at, 20)}", png(40, 30 + at))
    return story


# ---------------------------------------------------------------- what became of the turns


def verbatim(turns: Iterable[Any], messages: Iterable[Any]) -> set[int]:
    """Numbers of the turns whose messages all stand, as the very same objects, among ``messages``."""
    sent = set(map(id, messages))
    return {turn.number for turn in turns if {id(message) for message in turn.messages} <= sent}


def treated(plan: Any) -> set[int]:
    """Numbers of the turns of which a plan has something in a short form, or without its reasoning."""
    return {spot[0] for spot in (*plan.elided, *plan.dropped, *plan.shortened)} | set(plan.reasoning)
