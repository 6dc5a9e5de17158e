"""Old reasoning leaves: thoughts of turns that stand otherwise, whole, and never those that a provider asks for.

Pages leave reasoning out in any case, so nothing is lost here that the next rung would keep. A message keeps
what it said and called; where it holds nothing else its reasoning stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from microfiche.messages import Message, Opaque, Reasoning, Text, Turn

HOLLOW = Reasoning()
"""What stands in the place of reasoning left out: no writer writes it, and the writer that has to knows of it."""


def thoughts(message: Message) -> list[Reasoning]:
    """The reasoning of a message that can leave: none where the message would hold nothing else."""
    found = [part for part in message.parts if isinstance(part, Reasoning) and part != HOLLOW]
    return found if found and any(map(_stands, message.parts)) else []


def _stands(part: object) -> bool:
    if isinstance(part, Reasoning) or (isinstance(part, Opaque) and part.private):
        return False
    return not isinstance(part, Text) or bool(part.text.strip())


def without(turn: Turn) -> Turn:
    """The turn without its reasoning."""
    return Turn(
        turn.number,
        tuple(
            replace(each, parts=tuple(HOLLOW if isinstance(part, Reasoning) else part for part in each.parts))
            if thoughts(each)
            else each
            for each in turn.messages
        ),
    )


def old(turns: Sequence[Turn], before: int, out_of_reach: Iterable[int]) -> Iterator[int]:
    """Numbers of the turns before turn ``before`` that have reasoning which can leave."""
    kept = frozenset(out_of_reach)
    for turn in turns:
        if turn.number < before and turn.number not in kept and any(map(thoughts, turn.messages)):
            yield turn.number
