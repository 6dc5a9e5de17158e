"""What the Gemini API (generateContent) demands of a request.

Sources: the error texts of public reports (quoted at the rules), the types of the google-genai package
3.6, ai.google.dev on thought signatures. Keys in camel case (REST) and snake case (Python client) are both
read, and written as they came. Base64 may be of either alphabet and unpadded, as in all JSON of protocol buffers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from microfiche.validate import images
from microfiche.validate.draft import BEGINS, CONTINUE, EMPTY, NO_RESULT, Draft, Limits, Object
from microfiche.validate.pairs import Ledger, Slot, as_object, settle, short, string

# ai.google.dev and the Vertex pages: 3,600 images at most on any host. The bytes of a request differ between the
# hosts and their ways of passing files (20 MB to 256 MB), so none is assumed.
LIMITS = Limits(images=3600)

STAND_IN = "skip_thought_signature_validator"

_ROLES = ("user", "model", "function")
# ai.google.dev, FunctionDeclaration.name: a letter or underscore first; 64, later 128 characters.
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")


def check(draft: Draft) -> None:
    """Find and mend, in an order in which no cure makes a fault for a rule already passed."""
    if not draft.listed and isinstance(draft.body.get(draft.key), dict):
        content = draft.body[draft.key]
        draft.fault("messages-shape", draft.key, "is one content, not a list", "put it in a list", "put in a list")
        draft.body[draft.key] = draft.messages = [content]
        draft.listed = True
    if not draft.check_listed(lambda text: {"role": "user", "parts": [{"text": text}]}):
        return
    for content in draft.messages:
        if content.get("role") is not None:  # a content without a role is the user's
            draft.set_role(content, _ROLES, "model")
        _parts(draft, content)
    _pairs(draft)
    for content in draft.messages:
        if not content["parts"]:
            # "contents.parts must not be empty"
            draft.fault("empty-message", content, "there are no parts", "leave the content out", "a marker put in")
            content["parts"] = [{"text": EMPTY}]
    _first(draft)
    _last(draft)
    _signatures(draft)
    pictures = list(_pictures(draft))
    images.check(draft, pictures, strict_type=False, any_kind=True)
    images.check_bytes(draft, pictures)


def field(part: Object, camel: str) -> tuple[str, Any]:
    """The key under which a field stands (camel or snake case), and its value."""
    if camel in part:
        return camel, part[camel]
    snake = re.sub("[A-Z]", lambda match: "_" + match[0].lower(), camel)
    return (snake, part[snake]) if snake in part else (camel, None)


def _parts(draft: Draft, content: Object) -> None:
    """Parts hold something, and calls and responses stand on their side."""
    parts = content.get("parts")
    if not isinstance(parts, list):
        if parts is not None:
            draft.fault("content-shape", draft.at(content, ".parts"), "is no list", "put it in a list", "put in a list")
        parts = [parts] if isinstance(parts, (dict, str)) else []
    kept: list[Object] = []
    for index, part in enumerate(parts):
        place = draft.at(content, f".parts[{index}]")
        if isinstance(part, str):
            draft.fault("part-shape", place, "is a string", "make it a text part", "made a text part")
            part = {"text": part}
        if not isinstance(part, dict):
            draft.fault("part-shape", place, "is not an object", "leave it out", "left out")
            continue
        made = _part(draft, content, part)
        if made is not None:
            kept.append(made)
    content["parts"] = kept


def _part(draft: Draft, content: Object, part: Object) -> Object | None:
    """The part, mended where needed; ``None`` to leave it out."""
    signed = field(part, "thoughtSignature")[1]
    held = [key for key, value in part.items() if value is not None and key != "thought"]
    if not held or (not signed and part.get("text") == "" and held == ["text"]):
        # "required oneof field 'data' must have one initialized field", "it has an empty text parameter"
        draft.fault("empty-text", part, "the part holds nothing", "leave it out", "empty part left out")
        return None
    model = content.get("role") == "model"
    key, call = field(part, "functionCall")
    if call is not None:
        return _call(draft, part, key, call, model)
    key, response = field(part, "functionResponse")
    if response is None:
        return part
    name = response.get("name") if isinstance(response, dict) else None
    if model or not isinstance(response, dict):
        draft.fault("block-role", part, f"{key} in a model's content", "put it in a user content", "replaced by text")
        return _text(draft, f"(a response of {name} stood here)", part)
    inner = response.get("response")
    if not isinstance(inner, dict):
        draft.fault("result-shape", part, "the response is not an object", "wrap it in one", "wrapped in an object")
        response["response"] = {} if inner is None else {"output": inner}
    return part


def _call(draft: Draft, part: Object, key: str, call: Any, model: bool) -> Object:
    if not isinstance(call, dict) or not model:
        name = call.get("name") if isinstance(call, dict) else None
        draft.fault("block-role", part, f"{key} in a user's content", "put it in a model content", "replaced by text")
        return _text(draft, f"(a call of {name} stood here)", part)
    name = call.get("name")
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        new = re.sub(r"[^a-zA-Z0-9_.:-]", "_", name)[:64] if isinstance(name, str) and name else "tool"
        call["name"] = new if _NAME.fullmatch(new) else f"_{new}"
        what = f"the function name {short(name)} is not allowed"
        cure = "use a-z A-Z 0-9 _ . : -, a letter or _ first, 128 at most"
        draft.fault("tool-name", part, what, cure, f"named {call['name']}")
    args = call.get("args")
    if args is not None and not isinstance(args, dict):
        draft.fault("tool-input", part, "args is not an object", "pass an object", "args made an object")
        call["args"] = as_object(args, "args")
    return part


def _text(draft: Draft, text: str, like: Object) -> Object:
    made: Object = {"text": text}
    draft.adopt(made, like)
    return made


def _pairs(draft: Draft) -> None:
    """The content behind a model's calls answers exactly those: by id where both have one, else by name."""
    contents = draft.messages
    batches: list[list[Slot]] = [[] for _ in contents]
    ledger = Ledger()
    for batch, content in zip(batches, contents, strict=True):
        calls = [(part, field(part, "functionCall")[1]) for part in content["parts"]]
        slots = [(Slot(part, string(call.get("id"))), call) for part, call in calls if call is not None]
        batch += [slot for slot, _ in slots]
        ledger.open([(("name", call["name"]), slot) for slot, call in slots])
        ledger.open([(("id", slot.id), slot) for slot, _ in slots if slot.id])
        content["parts"] = [
            made
            for part in content["parts"]
            for made in (_answer(draft, part, content, ledger) if field(part, "functionResponse")[1] else [part])
        ]

    def stub(slot: Slot) -> Object:
        key, call = field(slot.call, "functionCall")
        made = {"name": call["name"], "response": {"error": NO_RESULT}}
        if slot.id:
            made = {"id": slot.id, **made}
        return {"functionResponse" if key == "functionCall" else "function_response": made}

    settle(
        draft,
        batches,
        "parts",
        answers=lambda content: bool(content.get("role") != "model"),
        target=lambda: {"role": "user", "parts": []},
        stub=stub,
        text=lambda text: [{"text": text}],
        results_first=False,
    )


def _answer(draft: Draft, part: Object, content: Object, ledger: Ledger) -> list[Object]:
    """Match a response to a call; what it becomes: itself, nothing (a second one), or text (an orphan)."""
    response = field(part, "functionResponse")[1]
    id_, name = string(response.get("id")), string(response.get("name"))
    slot = ledger.take(("id", id_)) if id_ else None
    if slot is None and id_ and ledger.knows(("id", id_)):
        draft.fault("duplicate-result", part, f"a second response for {short(id_)}", "leave it out", "left out")
        return []
    if slot is None:
        slot = ledger.take(("name", name))
    if slot is None:
        # "the number of function response parts is equal to the number of function call parts"
        what = f"no call before it waits for a response of {short(name)}"
        draft.fault("orphan-result", part, what, "leave it out, or keep its content as text", "kept as text")
        text = f"(response of {name} to a call that is not in this conversation)\n{_plain(response['response'])}"
        inner = response.get("parts")
        inner = [item for item in inner if isinstance(item, dict)] if isinstance(inner, list) else []
        kept = (_part(draft, content, item) for item in inner)
        return [_text(draft, text, part), *(item for item in kept if item is not None)]
    slot.result, slot.home = part, content
    call = field(slot.call, "functionCall")[1]
    if name != call["name"]:
        draft.fault(
            "response-name", part, f"the call is one of {short(call['name'])}", "name the call's function", "named so"
        )
        response["name"] = call["name"]
    if id_ and slot.id and id_ != slot.id:
        draft.fault(
            "response-id", part, f"the call has the id {short(slot.id)}", "use the call's id", "id set to the call's"
        )
        response["id"] = slot.id
    return [part]


def _plain(value: Object) -> str:
    return "\n".join(f"{key}: {item}" for key, item in value.items())


def _first(draft: Draft) -> None:
    first = draft.messages[0]
    if first.get("role") == "model":
        draft.fault(
            "first-message",
            first,
            "the conversation begins with the model",
            "begin with a user content",
            "a user content put in front that says so",
        )
        draft.messages.insert(0, {"role": "user", "parts": [{"text": BEGINS}]})


def _version(model: str | None) -> tuple[int, int] | None:
    found = re.search(r"gemini-(\d+)(?:\.(\d+))?", model.lower()) if model else None
    return (int(found[1]), int(found[2] or 0)) if found else None


def _last(draft: Draft) -> None:
    # "Requests ending with a model turn are not supported.": models after 3.1 (pipecat pull request 5821).
    version = _version(draft.model)
    last = draft.messages[-1]
    if version is None or version <= (3, 1) or last.get("role") != "model":
        return
    what = "this model refuses contents that end with the model's"
    draft.fault("final-assistant", last, what, "end with a user content", "a short user content added")
    draft.messages.append({"role": "user", "parts": [{"text": CONTINUE}]})


def _signatures(draft: Draft) -> None:
    """From Gemini 3 on, the first call of each step of the current turn carries its thought signature.

    The current turn begins at the last content in which the user says something. For calls made elsewhere
    the documentation names a stand-in value.
    """
    version = _version(draft.model)
    if version is None or version < (3, 0):
        return
    contents = draft.messages
    start = len(contents)
    while start and (contents[start - 1].get("role") == "model" or not _speaks(contents[start - 1])):
        start -= 1
    for content in contents[start:]:
        calls = [part for part in content["parts"] if field(part, "functionCall")[1] is not None]
        if content.get("role") == "model" and calls and not field(calls[0], "thoughtSignature")[1]:
            what = "a call of the current turn without its thought signature"
            cure = f"send the signature, or {STAND_IN} for a call made elsewhere"
            draft.fault("unsigned-call", calls[0], what, cure, "the documented stand-in set")
            calls[0]["thoughtSignature" if "functionCall" in calls[0] else "thought_signature"] = STAND_IN


def _speaks(content: Object) -> bool:
    return any(field(part, "functionResponse")[1] is None for part in content["parts"])


def _pictures(draft: Draft) -> Iterator[images.Picture]:
    for content in draft.messages:
        for part in list(content["parts"]):
            response = field(part, "functionResponse")[1]
            inner = response.get("parts") if isinstance(response, dict) else None
            holders = [(content, part)]
            if isinstance(inner, list):
                holders += [(response, item) for item in inner if isinstance(item, dict)]
            for holder, item in holders:
                yield from _picture(draft, holder, item)


def _picture(draft: Draft, holder: Object, part: Object) -> Iterator[images.Picture]:
    _, blob = field(part, "inlineData")
    if not isinstance(blob, dict):
        return
    media_type = field(blob, "mimeType")[1]
    data = blob.get("data")
    replace = _replacer(draft, holder, part)
    if not isinstance(data, (str, bytes)) or not data:
        draft.fault("image-shape", part, "the inline data is empty", "give its base64", "replaced by a line of text")
        replace("[inline data left out: it was empty]")
    elif not isinstance(media_type, str) or not media_type:
        draft.fault("image-shape", part, "the inline data has no media type", "name it", "replaced by a line of text")
        replace("[inline data left out: it had no media type]")
    elif media_type.lower().startswith("image/"):
        yield images.Picture(part, data, media_type.lower(), replace)


def _replacer(draft: Draft, holder: Object, part: Object) -> Callable[[str], None]:
    def replace(text: str) -> None:
        made = _text(draft, text, part)
        holder["parts"] = [made if other is part else other for other in holder["parts"]]

    return replace
