"""The judge of OpenAI's Chat Completions.

Rules and texts: the guides of developers.openai.com, the types of openai 3.57 and error bodies of public reports.
Hosts of other makers' models differ where they are known to; a model's name tells them.
"""

from __future__ import annotations

import json
import re
from typing import Any

from . import pricing
from .rules import Limits, Object, Refused, data_url, decode, is_object, is_text, measure, need

LIMITS = Limits(
    request_bytes=512 * 1024 * 1024,
    images=1500,
    image_bytes=1 << 60,
    image_types=frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"}),
)
PATCHES = 30_000  # of 32 px, for one image

_FIELDS = frozenset(
    {"model", "messages", "audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs"}
    | {"max_completion_tokens", "max_tokens", "metadata", "modalities", "moderation", "n", "parallel_tool_calls"}
    | {"prediction", "presence_penalty", "prompt_cache_key", "prompt_cache_retention", "reasoning_effort", "seed"}
    | {"response_format", "safety_identifier", "service_tier", "stop", "store", "stream", "stream_options", "user"}
    | {"temperature", "tool_choice", "tools", "top_logprobs", "top_p", "verbosity", "web_search_options"}
    | {"prompt_cache_options"}
)
_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_ID_LENGTH = 40
# A gateway hands Claude's calls on to Anthropic's own rules.
_CLAUDE_ID = re.compile(r"[a-zA-Z0-9_-]+")
_CLAUDE_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_ROLES = ("developer", "system", "user", "assistant", "tool", "function")
_PARTS = {
    "user": ("text", "image_url", "input_audio", "file"),
    "assistant": ("text", "refusal"),
    "developer": ("text",),
    "system": ("text",),
    "tool": ("text",),
    "function": (),
}
_DETAILS = ("low", "high", "auto", "original")


def error(refused: Refused) -> Object:
    kinds = {401: "authentication_error", 429: "rate_limit_error"}
    told: Object = {
        "message": refused.message,
        "type": kinds.get(refused.status, "invalid_request_error"),
        "param": None,
        "code": None,
    }
    return {"error": {**told, **refused.fields}}


def check(body: Object, model: str, window: int, limits: Limits, counting: bool = False) -> int:
    """Apply every rule; the tokens of the input if it is accepted."""
    for field in body:
        need(field in _FIELDS, f"Unrecognized request argument supplied: {field}")
    need(is_text(body.get("model")), "you must provide a model parameter")
    messages: Any = body.get("messages")
    need(isinstance(messages, list), "Missing required parameter: 'messages'.", param="messages")
    need(messages, "Invalid 'messages': empty array. Expected an array with minimum length 1.", param="messages")
    for at, message in enumerate(messages):
        _message(message, f"messages[{at}]", model)
    _pairs(messages, model)
    _tools(body.get("tools"))
    output = _output(body, model)
    claude, mistral = pricing.claude_version(model), pricing.is_mistral(model)
    if mistral or (claude is not None and claude >= (4, 6)):
        last = messages[-1]
        need(
            last["role"] != "assistant" or (mistral and last.get("prefix")),
            "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",
        )
    count = sum(1 for message in messages for part in _parts(message) if part["type"] == "image_url")
    need(count <= limits.images, f"Too many images in request: {count}, maximum allowed: {limits.images}")
    used = price(body, model)
    need(
        used <= window,
        f"This model's maximum context length is {window} tokens. However, your messages resulted in {used} tokens. "
        "Please reduce the length of the messages.",
        param="messages",
        code="context_length_exceeded",
    )
    need(
        counting or used + output <= window,
        f"This model's maximum context length is {window} tokens. However, you requested {used + output} tokens "
        f"({used} in the messages, {output} in the completion). Please reduce the length of the messages or "
        "completion.",
        param="messages",
        code="context_length_exceeded",
    )
    return used


def _output(body: Object, model: str) -> int:
    reasons = re.match(r"(?:.*/)?(?:gpt-[5-9]|o\d)", model) is not None
    need(
        not reasons or "max_tokens" not in body,
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        param="max_tokens",
        code="unsupported_parameter",
    )
    asked: Any = body.get("max_completion_tokens", body.get("max_tokens", 0))
    need(type(asked) is int and asked >= 0, "Invalid 'max_completion_tokens': integer below minimum value.")
    return int(asked)


def price(body: Object, model: str) -> int:
    """Tokens of the input, by the judge's own prices."""
    total = 3
    for message in body["messages"]:
        total += 4
        content = message.get("content")
        total += pricing.text_tokens(content, model) if isinstance(content, str) else 0
        for part in _parts(message):
            if part["type"] == "image_url":
                total += _image(part["image_url"], model)
            else:
                total += pricing.text_tokens(part.get("text") or part.get("refusal") or json.dumps(part), model)
        for call in message.get("tool_calls") or ():
            inner = call.get("function") or call.get("custom")
            given = inner.get("arguments", inner.get("input"))
            total += 8 + pricing.text_tokens(inner["name"], model) + pricing.text_tokens(given, model)
    return total + sum(8 + pricing.json_tokens(tool, model) for tool in body.get("tools") or ())


def _image(link: Object, model: str) -> int:
    inline = data_url(link["url"])
    raw = decode(inline[1]) if inline else None
    seen = measure(raw) if raw else None
    return pricing.image_tokens(*(seen[1:] if seen else (1024, 1024)), model, link.get("detail", "auto"))


def _parts(message: Object) -> list[Object]:
    content = message.get("content")
    return content if isinstance(content, list) else []


def _message(message: Any, where: str, model: str) -> None:
    need(is_object(message), f"Invalid type for '{where}': expected an object.", param=where)
    role = message.get("role")
    need(
        role in _ROLES,
        f"Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', 'tool', …",
        param=f"{where}.role",
    )
    content, calls = message.get("content"), message.get("tool_calls")
    speaks = role == "assistant" and (
        calls or message.get("refusal") or message.get("function_call") or message.get("audio")
    )
    need(
        content is not None or speaks,
        "Invalid value for 'content': expected a string, got null.",
        param=f"{where}.content",
    )
    need(
        content is None or isinstance(content, (str, list)),
        f"Invalid type for '{where}.content'.",
        param=f"{where}.content",
    )
    need(
        content != [],
        f"Invalid '{where}.content': empty array. Expected an array with minimum length 1.",
        param=f"{where}.content",
    )
    for at, part in enumerate(_parts(message)):
        _part(part, role, f"{where}.content[{at}]", model)
    if calls is None:
        return
    need(role == "assistant", f"Unknown parameter: '{where}.tool_calls'.", param=f"{where}.tool_calls")
    need(isinstance(calls, list), f"Invalid type for '{where}.tool_calls'.", param=f"{where}.tool_calls")
    need(calls, f"[] is too short - '{where}.tool_calls'", param=f"{where}.tool_calls")
    for at, call in enumerate(calls):
        _call(call, f"{where}.tool_calls[{at}]", model)


def _part(part: Any, role: str, where: str, model: str) -> None:
    need(is_object(part) and is_text(part.get("type")), f"Missing required parameter: '{where}.type'.", param=where)
    kind = part["type"]
    allowed = _PARTS[role]
    if role == "tool" and ("claude" in model or pricing.is_mistral(model)):
        allowed = ("text", "image_url")
    need(
        kind in allowed,
        f"Invalid value: '{kind}'. Supported values are: {', '.join(map(repr, allowed))}.",
        param=f"{where}.type",
        code="invalid_value",
    )
    if kind == "text":
        need(isinstance(part.get("text"), str), f"Missing required parameter: '{where}.text'.", param=where)
    elif kind == "image_url":
        link = part.get("image_url")
        need(is_object(link) and is_text(link.get("url")), f"Invalid type for '{where}.image_url'.", param=where)
        check_image(link["url"], link.get("detail"), f"{where}.image_url.url", model)


def check_image(url: str, detail: Any, where: str, model: str) -> None:
    """An image by its URL; also that of the Responses judge."""
    need(
        detail is None or detail in _DETAILS,
        f"Invalid value: '{detail}'. Supported values are: {_DETAILS}.",
        param=where,
    )
    if not url.startswith("data:"):
        need(
            url.startswith(("https://", "http://")),
            f"Invalid '{where}': expected a URL.",
            param=where,
            code="invalid_image_url",
        )
        return
    inline = data_url(url)
    raw = decode(inline[1]) if inline else None
    if inline is None or not raw:
        raise Refused(f"Invalid '{where}'. Expected a base64-encoded data URL with an image MIME type.", param=where)
    seen = measure(raw)
    kinds = ["png", "jpeg", "gif", "webp"]
    ok = seen is not None and seen[0] in LIMITS.image_types and seen[1] and seen[2]
    if seen is None or not ok:
        raise Refused(
            f"You uploaded an unsupported image. Please make sure your image is one of the following formats: {kinds}.",
            code="invalid_image_format",
        )
    count = -(-seen[1] // 32) * -(-seen[2] // 32)
    need(count <= PATCHES, f"Image is too large: {count} patches, the maximum is {PATCHES}.", param=where)


def _call(call: Any, where: str, model: str) -> None:
    need(is_object(call), f"Invalid type for '{where}'.", param=where)
    kind = call.get("type")
    need(kind in ("function", "custom"), f"Missing required parameter: '{where}.type'.", param=f"{where}.type")
    id_ = call.get("id")
    need(is_text(id_), f"Missing required parameter: '{where}.id'.", param=f"{where}.id")
    if "claude" in model:
        need(_CLAUDE_ID.fullmatch(id_), "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    need(
        len(id_) <= _ID_LENGTH or "claude" in model,
        f"Invalid '{where}.id': string too long. Expected a string with maximum length {_ID_LENGTH}, but got a string "
        f"with length {len(id_)} instead.",
        param=f"{where}.id",
        code="string_above_max_length",
    )
    inner: Any = call.get(kind)
    need(is_object(inner), f"Missing required parameter: '{where}.{kind}'.", param=where)
    if "claude" in model:
        named = is_text(inner.get("name")) and _CLAUDE_NAME.fullmatch(inner["name"])
        need(named, "tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'")
    else:
        check_name(inner.get("name"), f"{where}.{kind}.name")
    given = inner.get("arguments" if kind == "function" else "input")
    need(isinstance(given, str), f"Invalid type for '{where}.{kind}.arguments': expected a string.", param=where)


def check_name(name: Any, where: str) -> None:
    """The name of a function; also that of the Responses judge."""
    need(
        is_text(name) and _NAME.fullmatch(name),
        f"Invalid '{where}': string does not match pattern. Expected a string that matches the pattern "
        "'^[a-zA-Z0-9_\\\\.-]+$'.",
        param=where,
        code="invalid_value",
    )


def _pairs(messages: list[Object], model: str) -> None:
    """Tool messages stand directly behind the calls that they answer, one for each."""
    waiting: list[str] = []
    known: set[str] = set()

    def answered(at: int) -> None:
        need(
            not waiting,
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(waiting)}",
            param=f"messages.[{at}].role",
        )

    open_ = False
    for at, message in enumerate(messages):
        if message["role"] == "tool":
            need(
                open_,
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                "'tool_calls'.",
                param=f"messages.[{at}].role",
            )
            id_: Any = message.get("tool_call_id")
            need(
                id_ in waiting,
                f"Invalid parameter: 'tool_call_id' of '{id_}' not found in 'tool_calls' of previous message.",
            )
            waiting.remove(id_)
            continue
        answered(at)
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
        need(len(waiting) == len(set(waiting)), f"Duplicate tool call ids in messages[{at}].")
        if "deepseek" in model:
            need(not known & set(waiting), f"Duplicate value for 'tool_call_id' of {waiting} in messages[{at}].")
        known.update(waiting)
        open_ = bool(waiting)
    answered(len(messages))


def _tools(tools: Any) -> None:
    need(tools is None or isinstance(tools, list), "Invalid type for 'tools'.", param="tools")
    need(tools != [], "Invalid 'tools': empty array. Expected an array with minimum length 1.", param="tools")
    need(len(tools or ()) <= 128, "Invalid 'tools': array too long.", param="tools", code="array_above_max_length")
    for at, tool in enumerate(tools or ()):
        kind = tool.get("type") if is_object(tool) else None
        need(kind in ("function", "custom"), f"Missing required parameter: 'tools[{at}].type'.", param=f"tools[{at}]")
        inner = tool.get(kind)
        need(is_object(inner), f"Missing required parameter: 'tools[{at}].{kind}'.", param=f"tools[{at}]")
        check_name(inner.get("name"), f"tools[{at}].{kind}.name")
