"""What the Anthropic Messages API demands of a request.

Sources: the error texts of public reports (named at each rule where they are quoted), the types of the
anthropic package 2.14 and the vision and tool-use pages of platform.claude.com, read 2026-11-30.
Whatever is not known to be refused is let through: unknown block types, unknown fields, what stands
beside the conversation in a body (``max_tokens`` and the like are the caller's).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from microfiche.formats.anthropic import LIST_KEY, marked, marks_left
from microfiche.validate import anthropic_calls, images
from microfiche.validate.anthropic_common import blocks, older, refuses_prefill, text_block
from microfiche.validate.draft import BEGINS, CONTINUE, EMPTY, Draft, Limits, Object, as_text, blank, texts
from microfiche.validate.pairs import short

# The vision page, see above. The 600 images are those of the million-token models (100 with a 200k window), the
# 10 MB are the first-party API's (5 MB on Bedrock and Vertex): the larger figure wherever two are known.
LIMITS = Limits(
    images=600,
    image_side=8000,
    many_images=20,
    many_images_side=2000,
    image_bytes=10 * 1024 * 1024,
    request_bytes=32 * 1024 * 1024,
    image_types=frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"}),
)

_ROLES = ("user", "assistant", "system")
_THOUGHTS = ("thinking", "redacted_thinking")
# All that a message of the user or the assistant has, by the types of the package.
_MESSAGE_FIELDS = frozenset({"role", "content"})


def check(draft: Draft) -> None:
    """Find and mend, in an order in which no cure makes a fault for a rule already passed."""
    if not draft.check_listed(lambda text: {"role": "user", "content": text}):
        return
    _fields(draft)
    _shapes(draft)
    _roles(draft)
    _blocks(draft)
    _thoughts(draft)
    anthropic_calls.check_names(draft)
    anthropic_calls.pair(draft)
    anthropic_calls.pair_server_tools(draft)
    _system(draft)
    pictures = list(_pictures(draft))
    images.check(draft, pictures, strict_type=True)
    _ends(draft)
    _empty(draft)
    _marks(draft)
    anthropic_calls.check_tools(draft)
    images.check_bytes(draft, pictures)


def _fields(draft: Draft) -> None:
    """A message holds role and content; an answer that is sent back whole has its id, usage and more.

    Inside the list, system messages may carry settings.
    """
    for message in draft.messages:
        others = [key for key in message if key not in _MESSAGE_FIELDS]
        if others and message.get("role") != "system":
            # "messages.1.id: Extra inputs are not permitted"
            names = short(", ".join(map(str, others)))
            draft.fault("extra-field", message, f"holds {names}", "send role and content only", f"{names} left out")
            for key in others:
                del message[key]


def _shapes(draft: Draft) -> None:
    """The content of a message is a string or a list of typed blocks."""
    for message in draft.messages:
        content = message.get("content")
        place = draft.at(message, ".content")
        if isinstance(content, list):
            message["content"] = _typed(draft, message, content)
        elif isinstance(content, dict):
            draft.fault("content-shape", place, "is a block, not a list", "put it in a list", "put in a list")
            message["content"] = _typed(draft, message, [content])
        elif content is not None and not isinstance(content, str):
            draft.fault("content-shape", place, f"is a {type(content).__name__}", "write it as text", "written as text")
            message["content"] = as_text(content)


def _typed(draft: Draft, message: Object, content: list[Any]) -> list[Any]:
    kept: list[Any] = []
    for index, block in enumerate(content):
        if isinstance(block, dict) and isinstance(block.get("type"), str):
            kept.append(block)
            continue
        place = draft.at(message, f".content[{index}]")
        if isinstance(block, dict) and isinstance(block.get("text"), str):
            draft.fault("block-shape", place, "has no type", "name the block's type", "type text added")
            kept.append(draft.adopt({"type": "text", **block}, block))
            kept[-1]["type"] = "text"
        elif isinstance(block, str):
            draft.fault("block-shape", place, "is a string", "make it a text block", "made a text block")
            kept.append({"type": "text", "text": block})
        else:
            draft.fault("block-shape", place, "is not a typed block", "leave it out", "left out")
    return kept


def _roles(draft: Draft) -> None:
    """Roles are known, and system messages stand where the model takes them.

    Inside the list they came with Claude 4.8: behind a user message (or server tools) and before the
    assistant or the end. With no content they carry settings only, and may stand anywhere.
    """
    messages = draft.messages
    for message in messages:
        draft.set_role(message, _ROLES, "assistant")
    _leading_system(draft)
    follows: list[bool] = []  # may a system message follow what comes before this one?
    allowed = False
    for message in messages:
        follows.append(allowed)
        if message["role"] != "system":
            allowed = message["role"] == "user" or _ends_with_server_tool(message)
    precedes = True
    for message, after in zip(reversed(messages), reversed(follows), strict=True):
        if message["role"] != "system":
            precedes = message["role"] == "assistant"
        elif message.get("content") == []:
            continue
        elif older(draft, (4, 8)) or not after or not precedes:
            if older(draft, (4, 8)):
                what = "this model takes no system message inside the list"
            else:
                what = "a system message stands behind a user message, and before the assistant or the end"
            draft.fault("system-place", message, what, "use `system` or the role user", "role set to user")
            message["role"] = "user"
            precedes = False


def _ends_with_server_tool(message: Object) -> bool:
    content = blocks(message)
    type_ = content[-1]["type"] if content else ""
    return type_ != "tool_use" and type_.endswith(("_tool_use", "_tool_result"))


def _leading_system(draft: Draft) -> None:
    # "messages.0: use the top-level 'system' parameter for the initial system prompt"
    messages = draft.messages
    content = messages[0].get("content")
    if draft.bare or draft.body.get("system") or messages[0]["role"] != "system" or not content or len(messages) == 1:
        return
    what = "the list begins with a system message"
    draft.fault("system-place", messages[0], what, "use `system`", "moved to `system`")
    draft.body["system"] = content
    del messages[0]


def _blocks(draft: Draft) -> None:
    """Blocks that are empty, or stand where their kind may not."""
    for message in draft.messages:
        content = message.get("content")
        if not isinstance(content, list):
            continue
        role = message["role"]
        kept: list[Any] = []
        for block in content:
            made = _block(draft, block, role)
            if made is not None:
                kept.append(made)
        message["content"] = kept


def _block(draft: Draft, block: Object, role: str) -> Object | None:
    """The block, mended where needed; ``None`` to leave it out."""
    type_ = block["type"]
    if type_ == "text":
        if not isinstance(block.get("text"), str) or blank(block["text"]):
            # "text content blocks must be non-empty", "… must contain non-whitespace text"
            draft.fault("empty-text", block, "the text block is empty", "leave it out", "empty text block left out")
            return None
        return block
    if type_ == "compaction":
        if block.get("content") == "":
            draft.fault("empty-compaction", block, 'the content is ""', "use null", "content set to null")
            block["content"] = None
        return block
    if role != "assistant" and (type_ in _THOUGHTS or type_ == "tool_use"):
        name = block.get("name")
        cure = "leave it out" if type_ != "tool_use" else "put it in an assistant message"
        draft.fault("block-role", block, f"{type_} in a message of role {role}", cure, f"{type_} left out")
        if type_ != "tool_use":
            return None
        return text_block(draft, f"(a call of {name} stood here)", block)
    if role != "user" and type_ in ("tool_result", "image"):
        what = f"{type_} in a message of role {role}"
        draft.fault("block-role", block, what, "put it in a user message", f"{type_} replaced by text")
        if type_ == "image":
            return text_block(draft, f"[image left out: it stood in a message of role {role}]", block)
        return text_block(
            draft, "\n".join(filter(None, ("(result of a tool call)", texts(block.get("content"))))), block
        )
    if type_ == "tool_result":
        _result(draft, block)
    return block


def _result(draft: Draft, block: Object) -> None:
    content = block.get("content")
    if content is not None and not isinstance(content, (str, list)):
        draft.fault("result-shape", block, "the content is no string or list", "write it as text", "written as text")
        content = block["content"] = as_text(content)
    if isinstance(content, list):
        kept = []
        for part in _typed(draft, block, content):
            # White space alone is known to be refused outside results; here it says nothing either.
            if part["type"] == "text" and (not isinstance(part.get("text"), str) or blank(part["text"])):
                draft.fault("empty-text", part, "the text block is empty", "leave it out", "empty text block left out")
            else:
                kept.append(part)
        block["content"] = content = kept
    if block.get("is_error") is True and not content:
        # "content cannot be empty if is_error is true"
        draft.fault("empty-error", block, "an error result without content", "say that there was none", "content set")
        block["content"] = "(no output)"


def _thoughts(draft: Draft) -> None:
    """Reasoning: signed, in front where the model demands it, never cached, never last in the list."""
    for message in draft.messages:
        content = message.get("content")
        if not isinstance(content, list) or message["role"] != "assistant":
            continue
        kept: list[Any] = []
        for block in content:
            if block["type"] in _THOUGHTS:
                field = "signature" if block["type"] == "thinking" else "data"
                if not (isinstance(block.get(field), str) and block[field]):
                    draft.fault(
                        "unsigned-thinking",
                        block,
                        f"{block['type']} without {field}",
                        "leave it out",
                        "left out",
                    )
                    continue
                if block.get("cache_control") is not None:
                    draft.fault(
                        "cache-mark",
                        block,
                        "a cache mark on reasoning",
                        "take it off",
                        "cache mark taken off",
                    )
                    del block["cache_control"]
            kept.append(block)
        thoughts = [block for block in kept if block["type"] in _THOUGHTS]
        if thoughts and kept[0]["type"] not in _THOUGHTS and older(draft, (4, 6)):
            # "If an assistant message contains any thinking blocks, the first block must be thinking":
            # reported for models up to 4.5; later ones may think after they have begun to speak.
            draft.fault(
                "thinking-order",
                thoughts[0],
                "reasoning behind other blocks",
                "put it first",
                "reasoning put first",
            )
            kept = thoughts + [block for block in kept if block["type"] not in _THOUGHTS]
        message["content"] = kept
    last = draft.messages[-1]
    if last["role"] == "assistant":
        content = blocks(last)
        while content and content[-1]["type"] in _THOUGHTS:
            # "The final block in an assistant message cannot be `thinking`": in the last message only.
            draft.fault("final-thinking", content[-1], "the list ends with reasoning", "leave it out", "left out")
            content.pop()


def _system(draft: Draft) -> None:
    """System text: a string or text blocks, none of them empty, in the body or as a message."""
    holders = [(message, "content") for message in draft.messages if message["role"] == "system"]
    if not draft.bare and draft.body.get("system") is not None:
        holders.append((draft.body, "system"))
    for holder, key in holders:
        content = holder.get(key)
        if isinstance(content, str):
            continue
        if not isinstance(content, list):
            if key == "system":
                draft.fault("system-shape", key, "is no string or list", "pass text", "written as text")
                holder[key] = texts([content]) or as_text(content)
            continue
        kept = []
        for index, block in enumerate(content):
            place = draft.at(block) if isinstance(block, dict) else f"{key}[{index}]"
            if not isinstance(block, dict) or block.get("type") != "text" or not isinstance(block.get("text"), str):
                draft.fault("system-shape", place, "only text blocks may stand here", "leave it out", "left out")
            elif blank(block["text"]):
                draft.fault(
                    "empty-text",
                    place,
                    "the text block is empty",
                    "leave it out",
                    "empty text block left out",
                )
            else:
                kept.append(block)
        holder[key] = kept
    if not draft.bare and draft.body.get("system") == [] and draft.repairs:
        del draft.body["system"]


def _pictures(draft: Draft) -> Iterator[images.Picture]:
    """All images of the request, oldest first, those inside results included."""
    for message in draft.messages:
        for block in blocks(message):
            if block["type"] == "image":
                yield from _picture(draft, message, block)
            elif block["type"] == "tool_result" and isinstance(block.get("content"), list):
                for part in list(block["content"]):
                    if part["type"] == "image":
                        yield from _picture(draft, block, part)


def _picture(draft: Draft, holder: Object, block: Object) -> Iterator[images.Picture]:
    replace = _replacer(draft, holder, block)
    source = block.get("source")
    if not isinstance(source, dict) or not isinstance(source.get("type"), str):
        draft.fault("image-shape", block, "the image has no source", "name its source", "replaced by a line of text")
        replace("[image left out: it had no source]")
    elif source["type"] != "base64":
        yield images.Picture(block, None, None, replace)
    elif not isinstance(source.get("data"), str):
        draft.fault("image-shape", block, "the image has no data", "give its base64", "replaced by a line of text")
        replace("[image left out: it had no data]")
    else:
        media_type = source.get("media_type")
        yield images.Picture(
            block,
            source["data"],
            media_type if isinstance(media_type, str) else None,
            replace,
            recode=lambda text: source.__setitem__("data", text),
            retype=lambda text: source.__setitem__("media_type", text),
        )


def _replacer(draft: Draft, holder: Object, block: Object) -> Callable[[str], None]:
    def replace(text: str) -> None:
        made: Object = {"type": "text", "text": text}
        if block.get("cache_control") is not None:
            made["cache_control"] = block["cache_control"]
        draft.adopt(made, block)
        holder["content"] = [made if part is block else part for part in holder["content"]]

    return replace


def _ends(draft: Draft) -> None:
    """The first message is the user's; the last one is not the assistant's where the model refuses that."""
    messages = draft.messages
    first = next((message for message in messages if message["role"] != "system"), None)
    # A compaction is sent "first in `messages`, in place of the messages it summarizes".
    sums_up = first is not None and [block["type"] for block in blocks(first)[:1]] == ["compaction"]
    if first is not None and first["role"] == "assistant" and not sums_up:
        draft.fault(
            "first-message",
            first,
            "the conversation begins with the assistant",
            "begin with a user message",
            "a user message put in front that says so",
        )
        messages.insert(0, {"role": "user", "content": BEGINS})
    last = messages[-1]
    if last["role"] != "assistant":
        return
    content = blocks(last)
    # A paused turn of server tools and a compaction are sent back to be continued: that is no prefill.
    if _ends_with_server_tool(last) or (content and content[-1]["type"] == "compaction"):
        return
    if refuses_prefill(draft):
        draft.fault(
            "final-assistant",
            last,
            "this model refuses a list that ends with the assistant",
            "end with a user message",
            "a short user message added",
        )
        messages.append({"role": "user", "content": CONTINUE})
        return
    text = last.get("content") if not content else content[-1].get("text") if content[-1]["type"] == "text" else None
    if isinstance(text, str) and text and text[-1].isspace():
        # "final assistant content cannot end with trailing whitespace"
        draft.fault("final-space", last, "the last text ends with white space", "cut it off", "white space cut off")
        if content:
            content[-1]["text"] = text.rstrip()
        else:
            last["content"] = text.rstrip()


def _empty(draft: Draft) -> None:
    """Messages hold something ("… non-empty content except for the optional final assistant message")."""
    last = draft.messages[-1]
    for message in draft.messages:
        content = message.get("content")
        if content in ("", []) and message is last and message["role"] == "assistant":
            continue
        if content == [] and message["role"] == "system":
            continue
        if not content or blank(content):
            draft.fault("empty-message", message, "the message is empty", "leave it out or fill it", "a marker put in")
            message["content"] = EMPTY


def _marks(draft: Draft) -> None:
    """At most four cache marks, the long ones first.

    The earliest go, those of messages before those of system and tools.
    """
    body = {LIST_KEY: draft.messages} if draft.bare else draft.body
    marks = marked(body)
    beside = {id(each) for each in marked({**body, LIST_KEY: []})}
    first = [each for each in marks if id(each) not in beside] + [each for each in marks if id(each) in beside]
    for block in first[: max(0, len(marks) - marks_left(body))]:
        draft.fault(
            "cache-marks",
            block,
            f"{len(marks)} cache marks, the limit is {marks_left(body)}",
            "keep the last ones",
            "cache mark taken off",
        )
        del block["cache_control"]
    short = False
    for block in marked(body):
        told = block["cache_control"]
        if short and isinstance(told, dict) and told.get("ttl") == "1h":
            draft.fault(
                "cache-time",
                block,
                "a cache mark of an hour behind one of five minutes",
                "put the longer ones first: tools, system and messages are processed in this order",
                "made one of five minutes",
            )
            block["cache_control"] = {key: value for key, value in told.items() if key != "ttl"}
        short = short or not isinstance(told, dict) or told.get("ttl") != "1h"
