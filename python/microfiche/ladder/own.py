"""What a pass of ours makes, told where it comes back: nothing is ever drawn from it."""

from __future__ import annotations

from typing import Any

from microfiche.errors import OwnOutput
from microfiche.messages import History, Image, Text, ToolResult
from microfiche.pages import guide
from microfiche.pages.render import OWN_CHUNK

from .elide import is_placeholder
from .images import is_marker
from .newest import is_pointer
from .summary import is_block


def refuse_own(history: History) -> None:
    """:class:`OwnOutput` if the history holds pages, a guide or placeholders that a pass made.

    Only a part that is one, from its first character to its last: text that quotes one is anybody's. A page that
    a tool gave is a picture like any other: somebody looked at a file. In a pass's own context a result
    has pages only beside a pointer, and that tells.
    """
    after_results = False
    for turn in history.turns()[1]:
        for message in turn.messages:
            # Where a result holds no pictures, they follow it as a user's message.
            shown, after_results = after_results, bool(message.results)
            for part in message.parts:
                if isinstance(part, ToolResult):
                    kind = next(filter(None, map(_own, (each for each in part.parts if isinstance(each, Text)))), "")
                    if is_placeholder(part.text):
                        kind = "placeholder"
                else:
                    kind = "" if shown and isinstance(part, Image) else _own(part)
                if kind:
                    raise OwnOutput(
                        f"a {kind} of ours stands in the input",
                        f"turn {turn.number}",
                        "pass the original messages and the plan: nothing is ever drawn from pages",
                    )


def _own(part: Any) -> str:
    """What of ours the part is; empty if it is not."""
    if isinstance(part, Image) and part.data is not None and OWN_CHUNK in part.data[:400]:
        return "page"
    if isinstance(part, Text) and guide.is_own(part.text):
        return "guide"
    if isinstance(part, Text) and is_block(part.text):
        return "summary"
    if isinstance(part, Text) and is_pointer(part.text):
        return "pointer"
    return "placeholder" if isinstance(part, Text) and is_marker(part.text) else ""
