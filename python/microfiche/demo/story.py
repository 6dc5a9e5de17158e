"""The story: vents of a greenhouse that opened in the frost, and an agent that finds out why."""

from __future__ import annotations

import base64
from typing import Any

from microfiche.agent_tools import tools as own_tools
from microfiche.conversation import Conversation, Record
from microfiche.fit import Context
from microfiche.record import Entry

from . import material

NAME = "greenhouse"
MODEL = "claude-opus-5"
BUDGET = 24_000
"""Tokens of a context: small, so that a short session meets what a long one does."""

_BEGAN = 1_793_601_000_000_000  # 2 November 2026, 06:30 UTC, in microseconds
_SYSTEM = "You look after the controller of a greenhouse. Say what you know, and what you only believe."
_WINDOW = 20_000
"""Tokens that the provider turns out to take."""


class Clock:
    """Seconds of the story: each commit twenty after the one before."""

    def __init__(self) -> None:
        self.now = _BEGAN

    def __call__(self) -> int:
        self.now += 20_000_000
        return self.now


def _tool(name: str, about: str, **properties: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()}}
    return {"name": name, "description": about, "input_schema": schema}


_TOOLS = [
    _tool("read_file", "Reads a file.", path="string"),
    _tool("run", "Runs a command.", command="string"),
    _tool("edit_file", "Writes a file anew.", path="string", text="string"),
    _tool("panel", "Takes a screenshot of the panel.", night="string"),
    *own_tools("anthropic"),
]

ASKED: dict[str, Any] = {
    "model": MODEL,
    "system": _SYSTEM,
    "tools": _TOOLS,
    "max_tokens": 1_500,
    "budget": BUDGET,
}
"""What contexts of the story are asked for with."""

Result = str | tuple[str, bytes]
"""What a tool answers: a text, or a text with a picture."""


Call = tuple[str, dict[str, Any], Result | None]
"""A tool, its arguments and what it answers; nothing for one of our own tools, which the conversation answers."""


class Actor:
    """The runtime of the story: it asks for contexts, and appends what was said under them."""

    def __init__(self, chat: Conversation) -> None:
        self.chat = chat
        self.calls = 0
        self.sent: Context | None = None

    def context(self) -> Context:
        self.sent = self.chat.context(**ASKED)
        return self.sent

    def user(self, text: str) -> Entry:
        return self.chat.append({"role": "user", "content": text}, format="anthropic")[-1]

    def say(self, text: str) -> Entry:
        return self._append([{"role": "assistant", "content": [{"type": "text", "text": text}]}], self.context())[0]

    def act(self, text: str, *calls: Call, error: bool = False) -> Entry:
        """An answer with calls and their results; the entry of these."""
        context = self.context()
        said: list[dict[str, Any]] = [{"type": "text", "text": text}]
        results: list[dict[str, Any]] = []
        for name, arguments, result in calls:
            self.calls += 1
            call: dict[str, Any] = {"type": "tool_use", "id": f"toolu_{self.calls:04d}"}
            call |= {"name": name, "input": arguments}
            said.append(call)
            self.chat.started(call)
            results.append(self.chat.answer(call) if result is None else _result(call["id"], result, error))
        batch = [{"role": "assistant", "content": said}, {"role": "user", "content": results}]
        return self._append(batch, context)[-1]

    def _append(self, messages: list[dict[str, Any]], context: Context) -> list[Entry]:
        usage = {"input_tokens": context.tokens, "output_tokens": 180}
        return self.chat.append(messages, context=context, usage=usage)

    def look(self, what: str, seed: int, *paths: str) -> Entry:
        """Read files in parallel."""
        read: list[Call] = [
            ("read_file", {"path": path}, material.module(path.split("/")[-1].removesuffix(".py"), 14, seed + at))
            for at, path in enumerate(paths)
        ]
        return self.act(what, *read)


def _result(call: str, result: Result, error: bool) -> dict[str, Any]:
    text, picture = (result, b"") if isinstance(result, str) else result
    content: list[dict[str, Any]] = [{"type": "text", "text": text}]
    if picture:
        source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(picture).decode("ascii")}
        content.append({"type": "image", "source": source})
    return {"type": "tool_result", "tool_use_id": call, "content": content} | ({"is_error": True} if error else {})


_GUARD = '''

def frost_guard(outside: list[float], now: int) -> bool:
    """Whether the vents may open: not below 2 degrees."""
    return outside[now - 60] > FROST_LIMIT  # minutes
'''


def play(record: Record) -> Conversation:
    """Put the story on an empty record, best one opened with a :class:`Clock`: the conversation it is about.

    Parallel calls, screenshots, a refusal, a failure that is none, two branches and a fork, passes of every kind, pins
    and claims stand in it.
    """
    chat = record.conversation(NAME)
    actor = Actor(chat)
    log, guard = _finding(actor)
    _refused(actor)
    _wrong_way(actor)
    _right_way(actor, log, guard)
    _review(actor)
    return chat


def _finding(actor: Actor) -> tuple[Entry, Entry]:
    chat = actor.chat
    actor.user(
        "Last night the vents of 温室3 opened at -3.6 degrees and the orchids froze. Find out why and mend it. "
        "Do not change the frost limit of 2 degrees: Dr. Ἀγάθη Παππά set it, and it is not ours to change."
    )
    chat.pin("A frost night is a night with an hour below 2 degrees outside.", "definition")
    actor.act(
        "I look at the panel, the log of the night and the guard at the same time.",
        ("panel", {"night": "2026-11-01"}, ("The panel, 18:00 to 10:40.", material.screenshot(1000))),
        ("run", {"command": "journalctl -u controller --since 18:00 | head -90"}, material.log(0, 90)),
        ("run", {"command": "ls controller/"}, "bus.py  frost.py  lamps.py  mist.py  schedule.py  vents.py"),
    )
    log = actor.act(
        "The vents opened after 23:00. I read on in the log.",
        ("run", {"command": "journalctl -u controller --since 22:30 | head -110"}, material.log(270, 110)),
    )
    chat.pin("Was the clock of the bus changed on 25 October, when summer time ended?", "question")
    actor.look("Now the code that opens vents.", 3, "controller/vents.py", "controller/schedule.py")
    guard = actor.act(
        "The decision itself should stand in frost.py.",
        ("read_file", {"path": "controller/frost.py"}, material.module("frost", 12, 9, _GUARD)),
    )
    actor.act(
        "I try the guard on the night.",
        ("run", {"command": "python -m controller.replay 2026-11-01"}, "replay: no module named controller.replay"),
        error=True,
    )
    actor.look("Then I have to read how readings reach it.", 21, "controller/bus.py", "controller/mist.py")
    actor.act(
        "The tests first, as they are.",
        ("run", {"command": "pytest -v"}, material.tests(150, ["test_guard_at_night"])),
        ("panel", {"night": "2026-10-31"}, ("The night before.", material.screenshot(700))),
    )
    chat.checkpoint("cause known")
    actor.say(
        "The guard takes `outside[now - 60]`. That index is in minutes, and since the bus delivers a reading a minute "
        "it is the temperature of an hour ago: at 23:06 it still saw +2.3 degrees while it was already below zero."
    )
    chat.claim(
        "The vents opened because the guard compared the temperature of an hour before.",
        [("execution", log), ("document", guard)],
    )
    return log, guard


def _refused(actor: Actor) -> None:
    """The provider takes less than was thought, and says so in its own form; then it is merely busy."""
    chat = actor.chat
    actor.user("Good. Before you change anything: does anything else use that index?")
    actor.look("I look through the rest.", 40, "controller/lamps.py", "tests/test_frost.py")
    sent = actor.context()
    # What was estimated as the budget allows is a tenth more by the provider's own count.
    message = f"prompt is too long: {sent.tokens * 11 // 10} tokens > {_WINDOW} maximum"
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": message}, "request_id": "req_demo"}
    chat.recover((400, body), sent)
    busy = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "req_busy"}
    chat.fail(RuntimeError(f"529 {busy}"), actor.context())
    actor.say("Nothing else does: lamps.py counts its own minutes, and the test has the same mistake as the guard.")


def _wrong_way(actor: Actor) -> None:
    chat = actor.chat
    chat.checkpoint("before the change")
    actor.user("Then mend it.")
    actor.act(
        "I let the bus deliver a reading an hour, so that the index is right.",
        ("edit_file", {"path": "controller/bus.py", "text": "READINGS_PER_HOUR = 1\n"}, "Wrote controller/bus.py."),
        ("run", {"command": "pytest -v"}, material.tests(140, ["test_mist_follows", "test_lamps_dim", "test_alarm"])),
    )
    actor.look(
        "Three others fail now. Do they need a reading a minute?", 60, "tests/test_mist.py", "tests/test_alarm.py"
    )
    actor.act(
        "The log of the test run.",
        ("run", {"command": "cat build/test.log"}, material.log(400, 120)),
    )
    actor.say("They do: mist, lamps and alarm count on a reading a minute. This was the wrong place.")
    report = "A reading an hour breaks mist, lamps and alarm. Mend the guard, not the bus: outside[now]."
    chat.rewind("before the change", report)


def _right_way(actor: Actor, log: Entry, guard: Entry) -> None:
    chat = actor.chat
    chat.pin("The guard compares the newest reading, outside[now]; the bus stays as it is.", "decision")
    actor.act(
        "I mend the guard, and the test that had the same mistake.",
        (
            "edit_file",
            {"path": "controller/frost.py", "text": material.module("frost", 12, 9)},
            "Wrote controller/frost.py.",
        ),
        (
            "edit_file",
            {"path": "tests/test_frost.py", "text": material.module("test_frost", 8, 4)},
            "Wrote tests/test_frost.py.",
        ),
    )
    passed = actor.act("And the tests.", ("run", {"command": "pytest -v"}, material.tests(172)))
    actor.act(
        "I run the night again with the new guard.",
        ("run", {"command": "python tools/again.py 2026-11-01"}, material.log(0, 130)),
        (
            "panel",
            {"night": "2026-11-01, again"},
            ("The same night, new guard.", material.screenshot(1000, wrong=False)),
        ),
    )
    chat.claim("With the new guard the vents stay shut below 2 degrees.", [("check", passed), ("document", guard)])
    (question,) = chat.pins("question")
    actor.act("One question is open: I look up what was said of the bus.", ("recall", {"turn": 3}, None))
    chat.unpin(question)
    chat.shake(**ASKED)
    actor.user("Write the note for Dr. Παππά.")
    actor.say(
        "The vents of 温室3 opened at -3.6 degrees because the frost guard looked at the degrees of an hour before. "
        "It looks at the newest reading now; the limit of 2 degrees is as you set it, and all 172 tests pass."
    )


def _review(actor: Actor) -> None:
    """Somebody else asks in a fork, where nothing that they do is seen by the conversation."""
    fork = actor.chat.fork("review")
    other = Actor(fork)
    other.calls = actor.calls
    other.user("What did you stop considering before you wrote that note?")
    other.say(
        "The log before 22:30 stood on pages or was left out; the test run and the new guard were before me in full."
    )
