"""Calls and their results: matching by id, ids of their own, and results where the provider wants them.

The wires differ in what a call looks like, not in what a pair is: the newest open call of an id takes the
result; a call without one is answered by a stub; what answers nothing is an orphan.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import Any

from microfiche.validate.draft import Draft, Names, Object


class Slot:
    """A call and its answer. ``home`` is the message in which the result was found."""

    __slots__ = ("call", "home", "id", "result")

    def __init__(self, call: Object, id_: str | None) -> None:
        self.call = call
        self.id = id_
        self.result: Object | None = None
        self.home: Object | None = None


class Ledger:
    """The open calls. Matching takes constant time a call, whatever the ids."""

    def __init__(self) -> None:
        self._open: dict[Hashable, list[deque[Slot]]] = {}

    def open(self, batch: Iterable[tuple[Hashable, Slot]]) -> None:
        """Enter the calls of one message, each under a key."""
        queues: dict[Hashable, deque[Slot]] = {}
        for key, slot in batch:
            queues.setdefault(key, deque()).append(slot)
        for key, queue in queues.items():
            self._open.setdefault(key, []).append(queue)

    def knows(self, key: Hashable) -> bool:
        """True if a call was ever entered under the key."""
        return key in self._open

    def take(self, key: Hashable) -> Slot | None:
        """The first open call of the newest message that has one under the key."""
        stack = self._open.get(key, [])
        while stack:
            queue = stack[-1]
            while queue:
                slot = queue.popleft()
                if slot.result is None:
                    return slot
            if len(stack) == 1:
                return None
            stack.pop()
        return None


def string(value: Any) -> str | None:
    """The value if it is a string."""
    return value if isinstance(value, str) else None


def short(value: Any) -> str:
    """A value for a line of text."""
    if isinstance(value, str):
        return repr(value) if len(value) <= 60 else f"{value[:57]!r}..."
    return repr(value) if value is None or isinstance(value, (bool, int, float)) else f"a {type(value).__name__}"


def clean(value: Any, fallback: str, longest: int) -> str:
    """A name of a-z A-Z 0-9 _ - made of a value."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", value[:longest]) if isinstance(value, str) and value else fallback


def parse_object(text: str) -> Object | None:
    """The object of a JSON text; ``None`` if it is not strictly one."""

    def refuse(name: str) -> Any:
        raise ValueError(name)

    try:
        # Numbers are not needed: reading them as text spares the limit on the digits of an int.
        value = json.loads(text, parse_constant=refuse, parse_int=str)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def as_object(value: Any, key: str) -> Object:
    """The object that a value is, or is the JSON text of; else an object that holds it under ``key``."""
    if isinstance(value, dict):
        return value
    if value is None or value == "":
        return {}
    if isinstance(value, str) and parse_object(value) is not None:
        try:
            parsed: Object = json.loads(value)
            return parsed
        except ValueError:  # an integer of more digits than Python converts
            pass
    return {key: value}


def drop_copies(draft: Draft, batches: Sequence[list[Slot]]) -> set[int]:
    """Calls that stand there twice, with an answer once, are one call: the ids of the objects to leave out."""
    same: dict[str | None, list[Slot]] = {}
    for batch in batches:
        for slot in batch:
            same.setdefault(slot.id, []).append(slot)
    dropped: set[int] = set()
    for slots in same.values():
        if len(slots) == 1:
            continue
        first = next((slot for slot in slots if slot.result is not None), slots[0])
        for slot in slots:
            if slot is not first and slot.result is None and slot.call == first.call:
                draft.fault("duplicate-call", slot.call, "the same call a second time", "leave it out", "left out")
                dropped.add(id(slot.call))
    if dropped:
        for batch in batches:
            batch[:] = [slot for slot in batch if id(slot.call) not in dropped]
    return dropped


def rename(
    draft: Draft,
    batches: Iterable[list[Slot]],
    valid: Callable[[str], bool],
    allowed: str,
    assign: Callable[[Slot, str], None],
    *,
    longest: int = 64,
    everywhere: bool = True,
    clashing: Collection[int] = (),
) -> None:
    """Give calls whose id is not valid, or taken, an id of their own, and their results with them.

    ``everywhere``: ids are unique in the request, not only in their message. ``clashing`` are the ids of call objects
    whose own id was still that of a call without an answer.
    """
    batches = [batch for batch in batches if batch]
    names = Names(slot.id for batch in batches for slot in batch if slot.id is not None and valid(slot.id))
    used: set[str] = set()
    for batch in batches:
        if not everywhere:
            used = set()
        for slot in batch:
            good = slot.id is not None and valid(slot.id)
            if slot.id is not None and good and slot.id not in used and id(slot.call) not in clashing:
                used.add(slot.id)
                continue
            new = names.fresh(clean(slot.id, "call", longest), longest)
            used.add(new)
            what = f"another call has the id {short(slot.id)}" if good else f"the id {short(slot.id)} is not {allowed}"
            cure = "give the call and its result an id of their own"
            draft.fault("duplicate-id" if good else "tool-id", slot.call, what, cure, f"id set to {new}")
            slot.id = new
            assign(slot, new)


def settle(
    draft: Draft,
    batches: Sequence[list[Slot]],
    key: str,
    *,
    answers: Callable[[Object], bool],
    target: Callable[[], Object],
    stub: Callable[[Slot], Object],
    text: Callable[[str], list[Object]],
    results_first: bool,
) -> None:
    """Bring each batch's results into the one message behind its calls; stubs for what has none.

    ``key`` holds a message's blocks; ``answers`` tells messages that may hold results; ``target`` makes
    an empty one, ``stub`` a result, ``text`` the blocks of a plain string.
    """
    out: list[Object] = []
    messages = draft.messages
    gone: set[int] = set()
    filled: Object | None = None
    for index, message in enumerate(messages):
        if message is not filled and not _keep(message, key, gone):
            continue
        out.append(message)
        if not batches[index]:
            continue
        following = messages[index + 1] if index + 1 < len(messages) else None
        filled = following if following is not None and answers(following) else target()
        _gather(draft, batches[index], filled, key, gone, stub, text, results_first)
        if filled is not following:
            out.append(filled)
    messages[:] = out


def _keep(message: Object, key: str, gone: set[int]) -> bool:
    """Take out what has gone to another message; false if nothing else was there."""
    content = message.get(key)
    if not isinstance(content, list) or not any(id(block) in gone for block in content):
        return True
    message[key] = [block for block in content if id(block) not in gone]
    return bool(message[key])


def _gather(
    draft: Draft,
    batch: list[Slot],
    into: Object,
    key: str,
    gone: set[int],
    stub: Callable[[Slot], Object],
    text: Callable[[str], list[Object]],
    results_first: bool,
) -> None:
    content = into.get(key)
    here = [block for block in content if id(block) not in gone] if isinstance(content, list) else []
    home = {id(slot.result) for slot in batch if slot.home is into}
    own = [block for block in here if id(block) in home]
    if results_first:
        for block in here[len(own) :]:
            if id(block) in home:
                what = "a result behind another block"
                draft.fault("result-order", block, what, "put results first", "put in front")
    added: list[Object] = []
    for slot in batch:
        if slot.result is None:
            draft.fault(
                "unanswered-call",
                slot.call,
                f"no result answers {short(slot.id)}",
                "answer each call in the very next message",
                "an error result added that says none was recorded",
            )
            added.append(stub(slot))
        elif slot.home is not into:
            draft.fault(
                "parted-results",
                slot.result,
                "not in the message right behind its call",
                "put all results of a message's calls into the next message",
                "moved to the message behind its call",
            )
            gone.add(id(slot.result))
            added.append(slot.result)
    if added or (results_first and own != here[: len(own)]) or (isinstance(content, list) and len(here) < len(content)):
        rest = [block for block in here if id(block) not in home]
        into[key] = own + added + rest + (text(content) if isinstance(content, str) else [])
