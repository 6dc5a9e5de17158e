"""What fills the window: the tokens of a context by what they are spent on."""

from __future__ import annotations

from collections.abc import Sequence

from microfiche import formats, models
from microfiche.fit import Context
from microfiche.ladder.summary import is_block
from microfiche.messages import Image, Message, Part, Text, ToolResult
from microfiche.models import Ruler
from microfiche.pages import guide

KINDS = ("system", "tools", "text", "images", "pages", "pins", "summaries", "learnt")
"""``pages`` are the pages with the guide and all that stands beside them, ``text`` is what is left (calls,
results, reasoning and the frames of messages included); ``learnt`` is what refusals taught to add."""


def composition(context: Context, pins: Sequence[str] = ()) -> dict[str, int]:
    """Estimated tokens of a context by :data:`KINDS`; their sum is ``context.tokens``.

    ``pins`` are the texts as the context has them, one a pin.
    """
    wire = context.receipt.format
    ruler = Ruler(models.find(context.receipt.model))
    sent = formats.read(context.request, wire)
    spent = dict.fromkeys(KINDS, 0)
    system, said = sent.system, sent.messages
    head = next((at for at, message in enumerate(said) if message.role != "system"), len(said))
    spent["system"] = ruler.system(system) + ruler.messages(said[:head])
    spent["tools"] = ruler.tools(sent.tools, sent.tool_names)
    pages = {page.png for page in context.pages}
    pinned = guide.pins(pins) if pins else None
    for message in said[head:]:
        _message(message, ruler, pages, pinned, spent)
    spent["learnt"] = context.tokens - sum(spent.values())
    return spent


def _message(message: Message, ruler: Ruler, pages: set[bytes], pinned: str | None, spent: dict[str, int]) -> None:
    frame = ruler.message(message) - sum(map(ruler.part, message.parts))
    kinds = [_kind(part, pages, pinned) for part in message.parts]
    ours = [at for at, kind in enumerate(kinds) if kind == "pages"]
    for at, (part, kind) in enumerate(zip(message.parts, kinds, strict=True)):
        # Between our pages stand words and values that belong to them.
        if kind == "text" and ours and ours[0] < at < ours[-1]:
            kind = "pages"
        images = _images(part) if kind == "text" else ()
        inside = sum(map(ruler.part, images))
        spent["images"] += inside
        spent[kind] += ruler.part(part) - inside
    spent["text"] += frame


def _images(part: Part) -> Sequence[Part]:
    return [each for each in part.parts if isinstance(each, Image)] if isinstance(part, ToolResult) else ()


def _kind(part: Part, pages: set[bytes], pinned: str | None) -> str:
    match part:
        case Image():
            return "pages" if part.data in pages else "images"
        case Text() if part.text == pinned:
            return "pins"
        case Text() if is_block(part.text):
            return "summaries"
        case Text() if guide.is_own(part.text):
            return "pages"
    return "text"
