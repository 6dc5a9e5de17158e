"""What a pass of ours makes, told where it comes back: nothing is ever drawn from it."""

from __future__ import annotations

import re
from typing import Any

from microfiche.errors import OwnOutput
from microfiche.messages import History, Image, Text, ToolResult
from microfiche.pages import guide
from microfiche.pages.render import OWN_CHUNK
from microfiche.validate.draft import BEGINS

from .elide import is_placeholder
from .images import is_marker
from .newest import is_pointer
from .summary import is_block


def refuse_own(history: History, results: bool = True) -> None:
    """:class:`OwnOutput` if the history holds pages, a guide or placeholders that a pass made.

    Only a part that is one, from its first character to its last: text that quotes one is anybody's. What a tool gave
    is the tool's word, and could be anything: a page is a picture like any other, for somebody looked at a file, and a
    line of ours stands for something only in the turn that it names. (In a pass's own context a result has pages only
    beside such a line.) A tool that printed one would else end the conversation.
    """
    after_results = False
    turns = history.turns()[1]
    # Where a message was put in front of a conversation, the turns have moved by one.
    moved = 1 if turns and turns[0].role == "user" and turns[0].messages[0].text == BEGINS else 0
    for turn in turns:
        named = (turn.number, turn.number - moved)
        for message in turn.messages:
            # Where a result holds no pictures, they follow it as a user's message.
            shown, after_results = after_results, bool(message.results)
            for part in message.parts:
                if not isinstance(part, ToolResult):
                    kind = "" if shown and isinstance(part, Image) else _own(part, message.role, named)
                else:
                    kind = _line(part, named) if results else ""
                if kind:
                    raise OwnOutput(
                        f"a {kind} of ours stands in the input",
                        f"turn {turn.number}",
                        "pass the original messages and the plan: nothing is ever drawn from pages",
                    )


def _line(result: ToolResult, turns: tuple[int, int]) -> str:
    """What of ours stands for a result of one of these turns, or for a part of it; empty if nothing."""
    if is_placeholder(result.text) and _names(result.text, turns):
        return "placeholder"
    texts = [part.text for part in result.parts if isinstance(part, Text)]
    if any(is_pointer(text) and _names(text, turns) for text in texts):
        return "pointer"
    return "placeholder" if any(is_marker(text) and _names(text, turns) for text in texts) else ""


def _names(line: str, turns: tuple[int, int]) -> bool:
    """Whether the turn that a line of ours names is one of these."""
    named = _NAMED.search(line)
    return named is not None and int(named[1]) in turns


_NAMED = re.compile(r"(?:recall of|on record as) turn (\d{1,18})\b")


def _own(part: Any, role: str, turns: tuple[int, int]) -> str:
    """What of ours a part of one of these turns is that is no result; empty if it is not.

    A model may say again what it was shown, word for word; in a pass's context a user's message holds it.
    """
    if isinstance(part, Image) and part.data is not None and OWN_CHUNK in part.data[:400]:
        return "page"
    if not isinstance(part, Text):
        return ""
    if is_marker(part.text):
        return "placeholder" if _names(part.text, turns) else ""
    if role == "assistant":
        return ""
    if guide.is_own(part.text):
        return "guide"
    if is_block(part.text):
        return "summary"
    return "pointer" if is_pointer(part.text) else ""
