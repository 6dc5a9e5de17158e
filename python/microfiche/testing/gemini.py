"""The judge of Gemini's generateContent.

Rules and texts: ai.google.dev (function calling, thought signatures, media resolution), the types of google-genai
3.6 and error bodies of public reports. Field names are taken in camel case and in snake case, as the API does.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from . import pricing
from .rules import Limits, Object, Refused, decode, is_object, is_text, measure, need, one_of

LIMITS = Limits(
    request_bytes=20 * 1024 * 1024,
    images=3000,
    image_bytes=7 * 1024 * 1024 * 4 // 3,
    image_types=frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}),
)
STAND_IN = "skip_thought_signature_validator"

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
_FIELDS = frozenset(
    {"contents", "tools", "toolConfig", "safetySettings", "systemInstruction", "generationConfig", "cachedContent"}
    | {"model", "labels", "serviceTier", "store"}
)
_DATA = frozenset(
    {"text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult"}
    | {"toolCall", "toolResponse"}
)
_EXTRA = frozenset({"thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata"})


def error(refused: Refused) -> Object:
    kinds = {401: "UNAUTHENTICATED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"}
    status = kinds.get(refused.status, "INVALID_ARGUMENT")
    return {"error": {"code": refused.status, "message": refused.message, "status": status}}


def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), name)


def _fields(value: Object) -> Object:
    """The fields of an object under the camel-case names."""
    return {_camel(key): each for key, each in value.items()}


def check(body: Object, model: str, window: int, limits: Limits, counting: bool = False) -> int:
    """Apply every rule; the tokens of the input if it is accepted."""
    told = _fields(body)
    for field in told:
        need(field in _FIELDS, f'Invalid JSON payload received. Unknown name "{field}": Cannot find field.')
    contents: Any = told.get("contents")
    need(isinstance(contents, list) and contents, "* GenerateContentRequest.contents: contents is not specified")
    for at, content in enumerate(contents):
        where = f"GenerateContentRequest.contents[{at}]"
        need(is_object(content), f"* {where}: not an object")
        for field in content:
            need(
                field in ("role", "parts"),
                f"Invalid JSON payload received. Unknown name \"{field}\" at 'contents[{at}]'",
            )
        need(content.get("role", "user") in ("user", "model", "function"), "Please use a valid role: user, model.")
        need(
            isinstance(content.get("parts"), list) and content["parts"],
            f"* {where}.parts: contents.parts must not be empty.",
        )
        for place, part in enumerate(content["parts"]):
            _part(part, content.get("role", "user"), f"{where}.parts[{place}]", limits)
    _order(contents)
    _end(contents, model)
    _signatures(contents, model)
    _system(told.get("systemInstruction"))
    _tools(told.get("tools"))
    count = sum(1 for content in contents for part in content["parts"] for _ in _blobs(part))
    need(count <= limits.images, f"Too many images in request: {count}, the maximum is {limits.images}")
    config = told.get("generationConfig") or {}
    need(is_object(config), "generation_config: not an object")
    output: Any = _fields(config).get("maxOutputTokens", 1)
    need(type(output) is int and output >= 1, "max_output_tokens must be positive.")
    used = price(body, model)
    need(
        used <= window,
        f"The input token count ({used}) exceeds the maximum number of tokens allowed ({window}).",
    )
    return used


def price(body: Object, model: str) -> int:
    """Tokens of the input, by the judge's own prices."""
    told = _fields(body)
    config = _fields(told.get("generationConfig") or {})
    detail = str(config.get("mediaResolution", "")).removeprefix("MEDIA_RESOLUTION_").lower() or "high"
    total = 0
    for content in told["contents"]:
        total += 4 + sum(_price(part, model, detail) for part in content["parts"])
    if told.get("systemInstruction"):
        system = told["systemInstruction"]
        total += 4 + sum(_price(part, model, detail) for part in system["parts"])
    return total + sum(8 + pricing.json_tokens(tool, model) for tool in told.get("tools") or ())


def _price(part: Object, model: str, detail: str) -> int:
    told = _fields(part)
    if "text" in told:
        return pricing.text_tokens(told["text"], model)
    if "functionCall" in told:
        call = told["functionCall"]
        return 8 + pricing.text_tokens(call["name"], model) + pricing.json_tokens(call.get("args") or {}, model)
    if "functionResponse" in told:
        answer = told["functionResponse"]
        shown = sum(_price_blob(blob, told, model, detail) for blob in _blobs(part))
        return 8 + shown + pricing.json_tokens(answer.get("response") or {}, model)
    blobs = list(_blobs(part))
    return sum(_price_blob(blob, told, model, detail) for blob in blobs) if blobs else pricing.json_tokens(part, model)


def _price_blob(blob: Object, part: Object, model: str, detail: str) -> int:
    own = _fields(part.get("mediaResolution") or {}) if is_object(part.get("mediaResolution")) else {}
    level = str(own.get("level", "")).removeprefix("MEDIA_RESOLUTION_").lower() or detail
    raw = decode(_fields(blob).get("data"), any_form=True)
    seen = measure(raw) if raw else None
    return pricing.image_tokens(*(seen[1:] if seen else (1024, 1024)), model, level)


def _blobs(part: Object) -> list[Object]:
    """Inline images of a part, those inside a function's response too."""
    told = _fields(part)
    answer: Any = told.get("functionResponse")
    inner = answer.get("parts") if is_object(answer) else None
    held = [told.get("inlineData"), *(_fields(each).get("inlineData") for each in inner or () if is_object(each))]
    return [blob for blob in held if is_object(blob) and str(_fields(blob).get("mimeType")).startswith("image/")]


def _part(part: Any, role: str, where: str, limits: Limits) -> None:
    need(is_object(part), f"* {where}: not an object")
    told = _fields(part)
    for field in told:
        need(field in _DATA or field in _EXTRA, f"Invalid JSON payload received. Unknown name \"{field}\" at '{where}'")
    data = [field for field in told if field in _DATA]
    need(
        data or "thoughtSignature" in told,
        f"* {where}.data: required oneof field 'data' must have one initialized field",
    )
    need(len(data) <= 1, f"* {where}: oneof field 'data' is already set. Cannot set '{data[-1]}'")
    if "text" in told:
        need(isinstance(told["text"], str), f"* {where}.text: not a string")
    if "functionCall" in told:
        call = told["functionCall"]
        need(role == "model", "Function calls are only allowed in turns of role model.")
        need(is_object(call) and is_text(call.get("name")), f"* {where}.function_call.name: Name cannot be empty.")
        need(_NAME.fullmatch(call["name"]), f"* {where}.function_call.name: Invalid function name.")
        need(call.get("args") is None or is_object(call["args"]), f"* {where}.function_call.args: not an object")
    if "functionResponse" in told:
        answer = told["functionResponse"]
        need(role != "model", "Function responses are not allowed in turns of role model.")
        need(
            is_object(answer) and is_text(answer.get("name")),
            f"* {where}.function_response.name: Name cannot be empty.",
        )
        need(is_object(answer.get("response")), f"* {where}.function_response.response: not an object")
        need(isinstance(answer.get("parts") or [], list), f"* {where}.function_response.parts: not a list")
        for place, inner in enumerate(answer.get("parts") or ()):
            need(is_object(inner), f"* {where}.function_response.parts[{place}]: not an object")
            blob = _fields(inner).get("inlineData")
            if blob is not None:
                _blob(blob, f"{where}.function_response.parts[{place}].inline_data", limits)
    if "inlineData" in told:
        need(role != "model", f"* {where}.inline_data: images are not allowed in turns of role model")
        _blob(told["inlineData"], f"{where}.inline_data", limits)


def _blob(blob: Any, where: str, limits: Limits) -> None:
    need(is_object(blob), f"* {where}: not an object")
    told = _fields(blob)
    kind, data = told.get("mimeType"), told.get("data")
    need(is_text(kind), f"* {where}.mime_type: mime type must not be empty")
    raw = decode(data, any_form=True)  # as protocol buffers read it
    need(raw, f"* {where}.data: Base64 decoding failed")
    if not str(kind).startswith("image/"):
        return
    need(one_of(kind, limits.image_types), f"Unsupported MIME type: {kind}")
    need(
        len(str(data)) <= limits.image_bytes,
        f"The image is too large: {len(str(data))} bytes of base64, the maximum is {limits.image_bytes} bytes.",
    )
    seen = measure(raw or b"")
    if kind not in ("image/heic", "image/heif"):
        need(seen is not None and seen[0] == kind, "Unable to process input image. Please retry or report.")
    if seen is not None and not (seen[1] and seen[2]):
        raise Refused("Unable to process input image. Please retry or report.")


def _order(contents: list[Object]) -> None:
    """User first; the responses to calls right behind them, as many and of the same names.

    Neighbours of one role are let through: Google's own command line sends a model's text and calls apart.
    """
    need(contents[0].get("role", "user") != "model", "Please ensure that multiturn requests begin with a user turn.")
    asked: Counter[str] = Counter()
    for content in contents:
        parts = [_fields(part) for part in content["parts"]]
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        answers = [part["functionResponse"] for part in parts if "functionResponse" in part]
        if answers or asked:
            need(
                asked,
                "Please ensure that function response turn comes immediately after a function call turn.",
            )
            need(
                len(answers) == sum(asked.values()),
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn.",
            )
            names = Counter(str(answer["name"]) for answer in answers)
            need(names == asked, "Please ensure that function responses are named as the functions that were called.")
        if calls:
            ids = [call["id"] for call in calls if call.get("id")]
            need(len(ids) == len(set(ids)), "Function call ids must be unique.")
        asked = Counter(str(call["name"]) for call in calls)
    need(not asked, "Please ensure that function call turn is followed by a function response turn.")


def _version(model: str) -> tuple[int, int] | None:
    found = re.search(r"gemini-(\d+)(?:\.(\d+))?", model)
    return (int(found[1]), int(found[2] or 0)) if found else None


def _end(contents: list[Object], model: str) -> None:
    """Models after 3.1 take no prefill (github.com/pipecat-ai/pipecat/pull/5821)."""
    version = _version(model)
    prefill = contents[-1].get("role", "user") != "model" or version is None or version <= (3, 1)
    need(prefill, "Requests ending with a model turn are not supported.")


def _signatures(contents: list[Object], model: str) -> None:
    """From Gemini 3 on, the first call of every step of the current turn carries its thought signature."""
    version = _version(model)
    if version is None or version < (3, 0):
        return
    start = 0
    for at, content in enumerate(contents):
        spoken = any("functionResponse" not in _fields(part) for part in content["parts"])
        if content.get("role", "user") != "model" and spoken:
            start = at
    for at, content in enumerate(contents[start:], start):
        parts = [_fields(part) for part in content["parts"]]
        calls = [part for part in parts if "functionCall" in part]
        if calls:
            need(
                is_text(calls[0].get("thoughtSignature")),
                f"Function call is missing a thought_signature in functionCall parts. This is required for tools to "
                f"work correctly. Additional data, function call `{calls[0]['functionCall']['name']}`, position {at}.",
            )


def _system(system: Any) -> None:
    if system is None:
        return
    need(
        is_object(system) and isinstance(system.get("parts"), list) and system["parts"],
        "systemInstruction.parts: empty",
    )
    for part in system["parts"]:
        need(is_object(part) and isinstance(part.get("text"), str), "systemInstruction takes text parts only")


def _tools(tools: Any) -> None:
    need(tools is None or isinstance(tools, list), "tools: not a list")
    names: set[str] = set()
    for tool in tools or ():
        need(is_object(tool), "tools: not an object")
        declared = _fields(tool).get("functionDeclarations") or []
        need(isinstance(declared, list), "tools.function_declarations: not a list")
        for function in declared:
            need(
                is_object(function) and is_text(function.get("name")),
                "function_declarations.name: Name cannot be empty.",
            )
            need(_NAME.fullmatch(function["name"]), "function_declarations.name: Invalid function name.")
            need(function["name"] not in names, f"Duplicate function declaration found: {function['name']}")
            names.add(function["name"])
