"""The judge of OpenAI's Responses API.

Rules and texts: the guides of developers.openai.com, the types of openai 3.57 and error bodies of public reports.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from . import pricing
from .openai_chat import LIMITS, check_image, check_name, error
from .rules import Limits, Object, data_url, decode, is_object, is_text, measure, need, one_of

__all__ = ["LIMITS", "check", "error", "price"]

_FIELDS = frozenset(
    {
        "model",
        "input",
        "background",
        "conversation",
        "context_management",
        "include",
        "instructions",
        "max_output_tokens",
    }
    | {"max_tool_calls", "metadata", "moderation", "parallel_tool_calls", "previous_response_id", "prompt", "reasoning"}
    | {"prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "safety_identifier", "service_tier"}
    | {"store", "stream", "stream_options", "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p"}
    | {"truncation", "user"}
)
# A call, and the item that answers it.
_ANSWERS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "computer_call": "computer_call_output",
}
_ALONE = frozenset(
    {"message", "reasoning", "compaction", "compaction_trigger", "item_reference", "image_generation_call"}
    | {"web_search_call", "file_search_call", "code_interpreter_call", "mcp_call", "mcp_list_tools", "program"}
    | {"mcp_approval_request", "mcp_approval_response", "tool_search_call", "tool_search_output", "program_output"}
)
_PARTS = {
    "user": ("input_text", "input_image", "input_file"),
    "system": ("input_text", "input_image", "input_file"),
    "developer": ("input_text", "input_image", "input_file"),
    "assistant": ("output_text", "refusal"),
}


def check(body: Object, model: str, window: int, limits: Limits, counting: bool = False) -> int:
    """Apply every rule; the tokens of the input if it is accepted."""
    for field in body:
        need(field in _FIELDS, f"Unknown parameter: '{field}'.", param=field, code="unknown_parameter")
    need(is_text(body.get("model")), "Missing required parameter: 'model'.", param="model")
    given = body.get("input")
    need(given is not None, "Missing required parameter: 'input'.", param="input")
    need(isinstance(given, (str, list)), "Invalid type for 'input': expected a string or an array.", param="input")
    need(given, "Invalid 'input': empty. Expected at least one item.", param="input")
    need(body.get("instructions") is None or isinstance(body["instructions"], str), "Invalid type for 'instructions'.")
    items: list[Any] = given if isinstance(given, list) else []
    for at, item in enumerate(items):
        _item(item, f"input[{at}]", model)
    _pairs(items)
    _reasoning(items)
    _ids(items)
    _tools(body.get("tools"))
    count = sum(1 for part in _all_parts(items) if part["type"] == "input_image")
    need(
        count <= limits.images, f"Too many images in request: {count}, maximum allowed: {limits.images}", param="input"
    )
    output: Any = body.get("max_output_tokens", 0) or 0
    need(type(output) is int and output >= 0, "Invalid 'max_output_tokens': integer below minimum value.")
    used = price(body, model)
    # `truncation: auto` lets the server drop items from the start instead of refusing.
    need(
        used + (0 if counting else output) <= window or body.get("truncation") == "auto",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        param="input",
        code="context_length_exceeded",
    )
    return used


def price(body: Object, model: str) -> int:
    """Tokens of the input, by the judge's own prices."""
    total = 3 + pricing.text_tokens(body.get("instructions") or "", model)
    given = body["input"]
    if isinstance(given, str):
        return total + pricing.text_tokens(given, model)
    for item in given:
        total += 4 + _price(item, model)
    return total + sum(8 + pricing.json_tokens(tool, model) for tool in body.get("tools") or ())


def _price(item: Object, model: str) -> int:
    kind = item.get("type", "message")
    if kind == "reasoning":
        # Encrypted reasoning of closed turns is not billed; what may be of the open one is: four characters a token.
        return len(item.get("encrypted_content") or "") // 4
    held = item.get("content") if kind == "message" else item.get("output")
    if isinstance(held, str):
        return 8 + pricing.text_tokens(held, model)
    if isinstance(held, list):
        return 8 + sum(_price_part(part, model) for part in held)
    if kind == "function_call":
        return 8 + pricing.text_tokens(item["name"], model) + pricing.text_tokens(item["arguments"], model)
    return pricing.json_tokens(item, model)


def _price_part(part: Object, model: str) -> int:
    if part["type"] == "input_image":
        inline = data_url(part.get("image_url") or "")
        raw = decode(inline[1]) if inline else None
        seen = measure(raw) if raw else None
        return pricing.image_tokens(*(seen[1:] if seen else (1024, 1024)), model, part.get("detail") or "auto")
    text = part.get("text") or part.get("refusal")
    return pricing.text_tokens(text if isinstance(text, str) else json.dumps(part), model)


def _kind(item: Object) -> str:
    return str(item.get("type", "message"))


def _item(item: Any, where: str, model: str) -> None:
    need(is_object(item), f"Invalid type for '{where}': expected an object.", param=where)
    kind = _kind(item)
    need(
        kind in _ALONE or kind in _ANSWERS or kind in _ANSWERS.values(),
        f"Invalid value: '{kind}'. Supported values are: 'message', 'function_call', 'function_call_output', …",
        param=f"{where}.type",
        code="invalid_value",
    )
    if kind == "message":
        role = item.get("role")
        need(
            one_of(role, _PARTS),
            f"Invalid value: '{role}'. Supported values are: {list(_PARTS)}.",
            param=f"{where}.role",
        )
        content = item.get("content")
        need(isinstance(content, (str, list)), f"Missing required parameter: '{where}.content'.", param=where)
        for at, part in enumerate(content if isinstance(content, list) else ()):
            _part(part, _PARTS[role], f"{where}.content[{at}]", model)
    elif kind in _ANSWERS or kind in _ANSWERS.values():
        id_ = item.get("call_id")
        need(is_text(id_), f"Missing required parameter: '{where}.call_id'.", param=f"{where}.call_id")
        need(
            len(id_) <= 64,
            f"Invalid '{where}.call_id': string too long. Expected a string with maximum length 64, but got a string "
            f"with length {len(id_)} instead.",
            param=f"{where}.call_id",
            code="string_above_max_length",
        )
    if kind == "function_call":
        check_name(item.get("name"), f"{where}.name")
        need(isinstance(item.get("arguments"), str), f"Missing required parameter: '{where}.arguments'.", param=where)
    elif kind == "custom_tool_call":
        need(isinstance(item.get("input"), str), f"Missing required parameter: '{where}.input'.", param=where)
    elif kind in ("function_call_output", "custom_tool_call_output"):
        output = item.get("output")
        need(isinstance(output, (str, list)), f"Missing required parameter: '{where}.output'.", param=where)
        for at, part in enumerate(output if isinstance(output, list) else ()):
            _part(part, _PARTS["user"], f"{where}.output[{at}]", model)
    elif kind == "reasoning":
        need(isinstance(item.get("summary"), list), f"Missing required parameter: '{where}.summary'.", param=where)
        sealed = item.get("encrypted_content")
        need(sealed is None or isinstance(sealed, str), f"Invalid type for '{where}.encrypted_content'.", param=where)


def _part(part: Any, allowed: tuple[str, ...], where: str, model: str) -> None:
    need(is_object(part) and is_text(part.get("type")), f"Missing required parameter: '{where}.type'.", param=where)
    kind = part["type"]
    need(
        kind in allowed,
        f"Invalid value: '{kind}'. Supported values are: {' and '.join(map(repr, allowed))}.",
        param=f"{where}.type",
        code="invalid_value",
    )
    if kind in ("input_text", "output_text"):
        need(isinstance(part.get("text"), str), f"Missing required parameter: '{where}.text'.", param=where)
    elif kind == "input_image":
        url = part.get("image_url")
        need(
            is_text(url) or is_text(part.get("file_id")),
            f"Missing required parameter: '{where}.image_url'.",
            param=where,
        )
        if is_text(url):
            check_image(str(url), part.get("detail"), f"{where}.image_url", model)


def _all_parts(items: list[Object]) -> list[Object]:
    held = [item.get("content") if _kind(item) == "message" else item.get("output") for item in items]
    return [part for parts in held if isinstance(parts, list) for part in parts if is_object(part) and "type" in part]


def _pairs(items: list[Object]) -> None:
    """Every call is answered once, behind it; every answer has its call.

    A later call may have the id of one that was answered: that it is refused is not known.
    """
    asked: dict[tuple[str, str], bool] = {}
    for item in items:
        kind = _kind(item)
        if kind in _ANSWERS:
            key = (_ANSWERS[kind], item["call_id"])
            need(asked.get(key, True), f"Duplicate tool call with call_id {item['call_id']}.", param="input")
            asked[key] = False
        elif kind in _ANSWERS.values():
            key = (kind, item["call_id"])
            name = "function" if kind == "function_call_output" else kind.removesuffix("_output")
            need(
                key in asked,
                f"No tool call found for {name} call output with call_id {item['call_id']}.",
                param="input",
            )
            need(not asked[key], f"Duplicate output for call_id {item['call_id']}.", param="input")
            asked[key] = True
    for (kind, id_), answered in asked.items():
        name = "function" if kind == "function_call_output" else kind.removesuffix("_output")
        need(answered, f"No tool output found for {name} call {id_}.", param="input")


def _reasoning(items: list[Object]) -> None:
    """A reasoning item stands before the item that it led to."""
    for at, item in enumerate(items):
        if _kind(item) != "reasoning":
            continue
        follower = items[at + 1] if at + 1 < len(items) else {"type": "end"}
        kind = _kind(follower)
        led = kind in ("reasoning", *_ANSWERS) or (kind == "message" and follower.get("role") == "assistant")
        led = led or kind.endswith("_call")
        need(
            led,
            f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item.",
            param="input",
        )


TIED = "tied"
"""In an id of the judge's own, after the kind: the item stands or falls with the reasoning of the same serial."""

_TIED = re.compile(rf"(?:msg|fc)_({TIED}\d+)(?:_\d+)?")


def _ids(items: list[Object]) -> None:
    """Item ids stand once, and with the reasoning that they were made under."""
    ids = [item["id"] for item in items if _kind(item) != "item_reference" and is_text(item.get("id"))]
    for id_, times in Counter(ids).items():
        need(
            times == 1,
            f"Duplicate item found with id {id_}. Remove duplicate items from your input and try again.",
            param="input",
        )
    known = set(ids)
    for item in items:
        tied = _TIED.fullmatch(str(item.get("id")))
        need(
            tied is None or f"rs_{tied[1]}" in known,
            f"Item '{item.get('id')}' of type '{_kind(item)}' was provided without its required 'reasoning' item: "
            f"'rs_{tied[1] if tied else ''}'.",
            param="input",
        )


def _tools(tools: Any) -> None:
    need(tools is None or isinstance(tools, list), "Invalid type for 'tools'.", param="tools")
    for at, tool in enumerate(tools or ()):
        need(
            is_object(tool) and is_text(tool.get("type")),
            f"Missing required parameter: 'tools[{at}].type'.",
            param="tools",
        )
        if tool["type"] in ("function", "custom"):
            check_name(tool.get("name"), f"tools[{at}].name")
