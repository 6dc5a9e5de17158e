"""The judge of the Anthropic Messages API.

Rules and texts: platform.claude.com (vision, tool use, extended thinking, errors), the types of anthropic 2.14,
and error bodies of public reports.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import Any

from . import pricing
from .rules import Limits, Object, Picture, Refused, decode, is_object, is_text, measure, need, one_of

LIMITS = Limits(
    request_bytes=32_000_000,
    images=600,
    image_bytes=10_000_000,
    image_types=frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"}),
    image_side=8000,
)
SMALL_WINDOW = 200_000  # models of this window take 100 images
MANY_IMAGES, MANY_IMAGES_SIDE = 20, 2000

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_FIELDS = frozenset(
    {"model", "max_tokens", "messages", "system", "tools", "tool_choice", "stop_sequences", "temperature", "top_p"}
    | {"top_k", "stream", "metadata", "thinking", "service_tier", "container", "context_management", "mcp_servers"}
    | {"output_config", "output_format", "cache_control", "inference_geo", "speed"}
)
_BLOCK_FIELDS = {
    "text": {"text", "citations", "cache_control"},
    "image": {"source", "cache_control", "transformations"},
    "tool_use": {"id", "name", "input", "cache_control", "caller"},
    "tool_result": {"tool_use_id", "content", "is_error", "cache_control"},
    "thinking": {"thinking", "signature"},
    "redacted_thinking": {"data"},
}
_OTHER_BLOCKS = ("document", "search_result", "compaction", "container_upload", "tool_reference", "browser_state")
_THOUGHTS = ("thinking", "redacted_thinking")


def sign(thinking: str) -> str:
    """The signature under which the judge itself sends reasoning, and by which it knows it again."""
    return _SIGNED + hashlib.sha256(thinking.encode("utf-8", "surrogatepass")).hexdigest()


_SIGNED = "JUDGE0"


def error(refused: Refused) -> Object:
    kinds = {401: "authentication_error", 404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error"}
    kind = refused.fields.get("type") or kinds.get(refused.status, "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": refused.message}, "request_id": "req_judge"}


def check(body: Object, model: str, window: int, limits: Limits, counting: bool = False) -> int:
    """Apply every rule; the tokens of the input if it is accepted."""
    for field in body:
        need(field in _FIELDS, f"{field}: Extra inputs are not permitted")
    need(is_text(body.get("model")), "model: Field required")
    output: Any = body.get("max_tokens", 1 if counting else None)
    need(output is not None, "max_tokens: Field required")
    need(type(output) is int and output >= 1, "max_tokens: Input should be greater than or equal to 1")
    messages: Any = body.get("messages")
    need(isinstance(messages, list), "messages: Input should be a valid list")
    need(messages, "messages: at least one message is required")
    version = pricing.claude_version(model)
    _shapes(messages, version)
    _pairs(messages)
    _thoughts(body, messages, version)
    _system(body.get("system"))
    _tools(body, messages)
    _marks(body)
    _end(messages, version)
    _pictures(messages, version, window, limits)
    used = price(body, model)
    need(used <= window, f"prompt is too long: {used} tokens > {window} maximum")
    need(
        counting or used + output <= window,
        f"input length and `max_tokens` exceed context limit: {used} + {output} > {window}, "
        "decrease input length or `max_tokens` and try again",
    )
    return used


def price(body: Object, model: str) -> int:
    """Tokens of the input, by the judge's own prices."""
    total = 0
    for message in body["messages"]:
        total += 4 + _price(message["content"], model)
    if body.get("system"):
        total += 4 + _price(body["system"], model)
    return total + sum(pricing.json_tokens(tool, model) + 8 for tool in body.get("tools") or ())


def _price(content: Any, model: str) -> int:
    if isinstance(content, str):
        return pricing.text_tokens(content, model)
    total = 0
    for block in content or ():
        kind = block.get("type")
        if kind == "text":
            total += pricing.text_tokens(block["text"], model)
        elif kind == "image":
            shown = _measured(block)
            total += pricing.image_tokens(*(shown or (1024, 1024)), model)
        elif kind == "tool_use":
            total += pricing.text_tokens(block["name"], model) + pricing.json_tokens(block["input"], model) + 10
        elif kind == "tool_result":
            total += _price(block.get("content"), model) + 10
        elif kind in _THOUGHTS:
            # Reasoning of closed turns is not billed; what may be of the open one is: four characters a token.
            total += len(block.get("signature") or block.get("data") or "") // 4
        else:
            total += pricing.json_tokens(block, model)
    return total


def _measured(block: Object) -> tuple[int, int] | None:
    source = block["source"]
    raw = decode(source.get("data")) if source.get("type") == "base64" else None
    seen = measure(raw) if raw else None
    return seen[1:] if seen else None


def _blocks(message: Object) -> list[Object]:
    content = message["content"]
    return content if isinstance(content, list) else []


def _shapes(messages: list[Any], version: tuple[int, int] | None) -> None:
    last = len(messages) - 1
    for at, message in enumerate(messages):
        need(is_object(message), f"messages.{at}: Input should be an object")
        for field in message:
            need(field in ("role", "content"), f"messages.{at}.{field}: Extra inputs are not permitted")
        role, content = message.get("role"), message.get("content")
        inside = role == "system" and (version is None or version >= (4, 8))
        need(role in ("user", "assistant") or inside, f"messages.{at}.role: unexpected role {role!r}")
        need(isinstance(content, (str, list)), f"messages.{at}.content: Input should be a valid string or list")
        final = at == last and role == "assistant"
        need(
            content or final,
            f"messages.{at}: all messages must have non-empty content except for the optional final assistant message",
        )
        if isinstance(content, str):
            need(final or content.strip(), "messages: text content blocks must contain non-whitespace text")
            continue
        for place, block in enumerate(content):
            _block(block, role, f"messages.{at}.content.{place}")
    content = messages[0]["content"]
    # "sent back first in `messages`, in place of the messages it summarizes" (types of anthropic 2.14)
    sums_up = isinstance(content, list) and content and content[0]["type"] == "compaction"
    need(sums_up or messages[0]["role"] == "user", 'messages: first message must use the "user" role')
    for at, message in enumerate(messages):
        if message["role"] == "system":
            after = messages[at + 1]["role"] if at < last else "assistant"
            before = messages[at - 1]["role"]
            need(
                before == "user" and after == "assistant",
                f"messages.{at}: a system message must follow a user message and precede the assistant",
            )


def _block(block: Any, role: str, where: str) -> None:
    need(is_object(block) and is_text(block.get("type")), f"{where}.type: Field required")
    kind = block["type"]
    known = kind in _BLOCK_FIELDS or kind in _OTHER_BLOCKS or kind.endswith(("_tool_use", "_tool_result"))
    need(known, f"{where}: Input tag '{kind}' found using 'type' does not match any of the expected tags")
    for field in block if kind in _BLOCK_FIELDS else ():
        allowed = field == "type" or field in _BLOCK_FIELDS[kind]
        need(allowed, f"{where}.{kind}.{field}: Extra inputs are not permitted")
    if kind == "text":
        need(isinstance(block.get("text"), str), f"{where}.text.text: Field required")
        need(block["text"], "messages: text content blocks must be non-empty")
        need(block["text"].strip(), "messages: text content blocks must contain non-whitespace text")
    elif kind == "image":
        need(role == "user", f"{where}: `image` blocks are only permitted in `user` messages")
        need(is_object(block.get("source")), f"{where}.image.source: Field required")
    elif kind == "tool_use":
        need(role == "assistant", f"{where}: `tool_use` blocks can only be in `assistant` messages")
        ok = is_text(block.get("id")) and _ID.fullmatch(block["id"])
        need(ok, f"{where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
        ok = is_text(block.get("name")) and _NAME.fullmatch(block["name"])
        need(ok, f"{where}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        need(is_object(block.get("input")), f"{where}.tool_use.input: Input should be a valid dictionary")
    elif kind == "tool_result":
        need(role == "user", f"{where}: `tool_result` blocks can only be in `user` messages")
        _result(block, where)
    elif kind in _THOUGHTS:
        need(role == "assistant", f"{where}: `{kind}` blocks can only be in `assistant` messages")
        field = "signature" if kind == "thinking" else "data"
        need(is_text(block.get(field)), f"{where}.{kind}.{field}: Field required")
        if kind == "thinking":
            need(isinstance(block.get("thinking"), str), f"{where}.thinking.thinking: Field required")
            ours = block["signature"].startswith(_SIGNED)
            genuine = not ours or block["signature"] == sign(block["thinking"])
            need(genuine, f"{where}: Invalid `signature` in `thinking` block")
    elif kind == "compaction":
        need(block.get("content") != "", f"{where}.compaction.content: must be null or non-empty")


def _result(block: Object, where: str) -> None:
    need(is_text(block.get("tool_use_id")), f"{where}.tool_result.tool_use_id: Field required")
    content = block.get("content")
    need(
        content is None or isinstance(content, (str, list)),
        f"{where}.tool_result.content: Input should be a valid string or list",
    )
    need(
        content or block.get("is_error") is not True,
        f"{where}.tool_result: content cannot be empty if `is_error` is true",
    )
    for place, part in enumerate(content if isinstance(content, list) else ()):
        inner = f"{where}.tool_result.content.{place}"
        need(is_object(part) and is_text(part.get("type")), f"{inner}.type: Field required")
        allowed = ("text", "image", "document", "search_result", "tool_reference", "browser_state")
        need(part["type"] in allowed, f"{inner}: Input tag '{part['type']}' does not match any of the expected tags")
        _block(part, "user", inner)


def _pairs(messages: list[Object]) -> None:
    """Each call answered in the very next message, results first, each once; ids used once."""
    ids = Counter(block["id"] for m in messages for block in _blocks(m) if block["type"] == "tool_use")
    for id_, times in ids.items():
        need(times == 1, f"messages: `tool_use` ids must be unique; found {times} with id: {id_}")
    asked: list[str] = []
    for at, message in enumerate(messages):
        blocks = _blocks(message)
        given = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        leading = 0
        while leading < len(blocks) and blocks[leading]["type"] == "tool_result":
            leading += 1
        first = {block["tool_use_id"] for block in blocks[:leading]}
        missing = [id_ for id_ in asked if id_ not in first]
        need(
            not missing,
            f"messages.{at - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
            f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the next "
            "message.",
        )
        for id_ in given:
            need(
                id_ in asked,
                f"messages.{at}.content: unexpected `tool_use_id` found in `tool_result` blocks: {id_}. Each "
                "`tool_result` block must have a corresponding `tool_use` block in the previous message.",
            )
        need(
            len(given) == len(set(given)),
            f"messages.{at}: each tool_use must have a single result. Found multiple `tool_result` blocks",
        )
        need(len(given) == leading, f"messages.{at}: `tool_result` blocks must come first in the message")
        asked = [block["id"] for block in blocks if block["type"] == "tool_use"]
    need(
        not asked,
        f"messages.{len(messages) - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(asked)}",
    )


def _thoughts(body: Object, messages: list[Object], version: tuple[int, int] | None) -> None:
    for at, message in enumerate(messages):
        blocks = _blocks(message)
        kinds = [block["type"] for block in blocks]
        if version is not None and version < (4, 6) and any(kind in _THOUGHTS for kind in kinds):
            need(kinds[0] in _THOUGHTS, f"messages.{at}: if a message has thinking blocks, the first block must be one")
        if at == len(messages) - 1 and kinds and kinds[-1] in _THOUGHTS:
            raise Refused("messages: The final block in an assistant message cannot be `thinking`.")
    thinking = body.get("thinking")
    if is_object(thinking) and thinking.get("type") == "enabled":
        budget = thinking.get("budget_tokens")
        need(
            type(budget) is int and budget >= 1024,
            "thinking.budget_tokens: Input should be greater than or equal to 1024",
        )
        need(body.get("max_tokens", 1 << 40) > budget, "`max_tokens` must be greater than `thinking.budget_tokens`")
        _begins_with_thought(messages)


def _begins_with_thought(messages: list[Object]) -> None:
    """With reasoning switched on by a budget, the message whose calls are being answered begins with reasoning.

    The API combines neighbours of one role; whether before this rule is not known: either reading will do.
    """
    at = last = len(messages) - 2
    if last < 0 or not any(block["type"] == "tool_result" for block in _blocks(messages[-1])):
        return
    while at > 0 and messages[at - 1]["role"] == "assistant":
        at -= 1
    kinds = [next((block["type"] for block in _blocks(messages[each])), "text") for each in (last, at)]
    need(
        any(kind in _THOUGHTS for kind in kinds),
        f"messages.{last}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{kinds[0]}`. When "
        "`thinking` is enabled, a final `assistant` message must start with a thinking block",
    )


def _system(system: Any) -> None:
    need(system is None or isinstance(system, (str, list)), "system: Input should be a valid string or list")
    for at, block in enumerate(system if isinstance(system, list) else ()):
        text = is_object(block) and block.get("type") == "text" and isinstance(block.get("text"), str)
        need(text, f"system.{at}: Input should be a text block")
        need(block["text"], "system: text content blocks must be non-empty")


def _tools(body: Object, messages: list[Object]) -> None:
    tools = body.get("tools")
    need(tools is None or isinstance(tools, list), "tools: Input should be a valid list")
    used = any(block["type"] in ("tool_use", "tool_result") for m in messages for block in _blocks(m))
    need(tools or not used, "Requests which have `tool_use` or `tool_result` blocks in messages must define tools")
    names: set[str] = set()
    for at, tool in enumerate(tools or ()):
        need(is_object(tool) and is_text(tool.get("name")), f"tools.{at}.name: Field required")
        if tool.get("type") in (None, "custom"):
            need(
                _NAME.fullmatch(tool["name"]),
                f"tools.{at}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'",
            )
            schema: Any = tool.get("input_schema")
            need(is_object(schema), f"tools.{at}.custom.input_schema: Field required")
            need(schema.get("type") == "object", f"tools.{at}.custom.input_schema.type: Input should be 'object'")
        need(tool["name"] not in names, "tools: Tool names must be unique.")
        names.add(tool["name"])


def _marks(body: Object) -> None:
    """Four marks, those of an hour before those of five minutes.

    Texts: github.com/cnighswonger/claude-code-cache-fix/issues/44; that the mark of the body itself takes a place:
    platform.claude.com, prompt caching, "automatic caching".
    """
    marked, short = 0, False
    places = [("tools", body.get("tools")), ("system", body.get("system"))]
    places += [(f"messages.{at}.content", _blocks(message)) for at, message in enumerate(body["messages"])]
    for where, holder in places:
        for at, block in enumerate(holder if isinstance(holder, list) else ()):
            inner = block.get("content")
            for each in (*(inner if isinstance(inner, list) else ()), block):
                if not is_object(each) or each.get("cache_control") is None:
                    continue
                marked += 1
                mark = each["cache_control"]
                need(
                    is_object(mark) and mark.get("type") == "ephemeral",
                    "cache_control.type: Input should be 'ephemeral'",
                )
                need(one_of(mark.get("ttl", "5m"), ("5m", "1h")), "cache_control.ttl: Input should be '5m' or '1h'")
                long = mark.get("ttl") == "1h"
                need(
                    not (long and short),
                    f"{where}.{at}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' "
                    "cache_control block. Note that blocks are processed in the following order: `tools`, `system`, "
                    "`messages`.",
                )
                short = short or not long
    marked += body.get("cache_control") is not None
    need(marked <= 4, f"A maximum of 4 blocks with cache_control may be provided. Found {marked}.")


def _end(messages: list[Object], version: tuple[int, int] | None) -> None:
    last = messages[-1]
    if last["role"] != "assistant":
        return
    blocks = _blocks(last)
    if blocks and (blocks[-1]["type"] == "compaction" or blocks[-1]["type"].endswith(("_tool_result", "r_tool_use"))):
        return  # a turn that the server paused
    need(
        version is None or version < (4, 6),
        "This model does not support assistant message prefill. The conversation must end with a user message.",
    )
    content = last["content"]
    text = content if isinstance(content, str) else blocks[-1].get("text", "") if blocks else ""
    need(text == text.rstrip(), "messages: final assistant content cannot end with trailing whitespace")


def _pictures(messages: list[Object], version: tuple[int, int] | None, window: int, limits: Limits) -> None:
    pictures: list[Picture] = []
    named = 0
    for at, message in enumerate(messages):
        for place, block in enumerate(_blocks(message)):
            inner = block.get("content") if block["type"] == "tool_result" else None
            where = f"messages.{at}.content.{place}"
            for each in (block, *(inner if isinstance(inner, list) else ())):
                if each["type"] != "image":
                    continue
                if each["source"].get("type") != "base64":
                    need(each["source"].get("type") in ("url", "file"), f"{where}.image.source.type: unknown")
                    named += 1
                    continue
                pictures.append(_picture(each, where, version, limits))
    most = min(limits.images, 100 if window <= SMALL_WINDOW else limits.images)
    count = len(pictures) + named
    need(count <= most, f"Too many images in request: {count} > {most}")
    if count > MANY_IMAGES:
        for picture in pictures:
            need(
                max(picture.width, picture.height) <= MANY_IMAGES_SIDE,
                f"{picture.where}.image.source.base64.data: At least one of the image dimensions exceed max allowed "
                f"size for many-image requests: {MANY_IMAGES_SIDE} pixels",
            )


def _picture(block: Object, where: str, version: tuple[int, int] | None, limits: Limits) -> Picture:
    source = block["source"]
    path = f"{where}.image.source.base64"
    declared: Any = source.get("media_type")
    need(
        one_of(declared, limits.image_types),
        f"{path}.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'",
    )
    weight = len(source["data"]) if isinstance(source.get("data"), str) else 0
    need(
        weight <= limits.image_bytes,
        f"{path}: image exceeds {limits.image_bytes // 1_000_000} MB maximum: {weight} bytes > {limits.image_bytes} "
        "bytes",
    )
    raw = decode(source.get("data"))
    need(raw, f"{path}.data: invalid base64 data")
    seen = measure(raw or b"")
    if seen is None:
        raise Refused(f"{path}: Could not process image")
    need(
        seen[0] == declared,
        f"{path}.data: The image was specified using the {declared} media type, but the image appears to be a "
        f"{seen[0]} image",
    )
    _, width, height = seen
    need(width and height, f"{path}: Could not process image")
    need(
        max(width, height) <= limits.image_side,
        f"{path}.data: At least one of the image dimensions exceed max allowed size: {limits.image_side} pixels",
    )
    transformations = block.get("transformations")
    if is_object(transformations) and transformations.get("oversized_image") == "error":
        best = pricing.fitting(width, height, version or (4, 0))
        need(
            best == (width, height),
            f"{path}: the image is {width}x{height} and would be resized; the largest size that fits is "
            f"{best[0]}x{best[1]}",
        )
    return Picture(where, seen[0], width, height, weight)
