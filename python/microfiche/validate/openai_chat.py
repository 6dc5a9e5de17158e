"""What OpenAI's Chat Completions, and the many hosts that speak it, demand of a request.

Sources: the error texts of public reports (quoted at the rules), the types of the openai package 3.57.
The wire is spoken by many models: what only OpenAI's own servers refuse is not judged where the model's
name tells another maker.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from microfiche.validate import images
from microfiche.validate.anthropic_common import claude_version
from microfiche.validate.draft import CONTINUE, EMPTY, NO_RESULT, Draft, Limits, Object, as_text
from microfiche.validate.pairs import Ledger, Slot, as_object, clean, drop_copies, parse_object, rename, short, string

LIMITS = Limits(
    images=1500,  # developers.openai.com, the guide to images and vision, with the 512 MB of a request
    request_bytes=512 * 1024 * 1024,
    image_types=frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"}),
)

_ROLES = ("developer", "system", "user", "assistant", "tool", "function")
# "string does not match pattern. Expected … '^[a-zA-Z0-9_\\.-]+$'", "maximum length 64"; older models
# refuse the dot.
_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
# Hosts of these hold names to their own rule: "Function name was … but must be a-z, A-Z, 0-9, or contain underscores
# and dashes, with a maximum length of 64" (Mistral); of the two that Claude has, the shorter length.
_STRICT = ("claude", "stral", "xtral", "deepseek")
_STRICT_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ID_LENGTH = 40  # "messages[1].tool_calls[0].id: string too long. Expected a string with maximum length 40"
_MEDIA = ("image_url", "input_audio", "file")
_OPENAI = re.compile(r"(?:^|/)(?:gpt-\d|chatgpt|codex|o[1-9](?:-|$))")
_OTHERS = re.compile(
    r"claude|gemini|gemma|deepseek|mistral|mixtral|ministral|pixtral|codestral|devstral|magistral|qwen|kimi|moonshot"
    r"|glm|grok|llama|minimax|command|nova|phi|hermes|nemotron|mimo|step|ernie|hunyuan|doubao|seed"
)


def check(draft: Draft) -> None:
    """Find and mend, in an order in which no cure makes a fault for a rule already passed."""
    if not draft.check_listed(lambda text: {"role": "user", "content": text}):
        return
    for message in draft.messages:
        draft.set_role(message, _ROLES, "assistant")
        _calls(draft, message)
    _pairs(draft)
    for message in draft.messages:
        _content(draft, message)
    _move_images(draft)
    _last(draft)
    pictures = list(_pictures(draft))
    images.check(draft, pictures, strict_type=False, any_kind=_foreign(draft))
    _tools(draft)
    images.check_bytes(draft, pictures)


def _foreign(draft: Draft) -> bool:
    """True if the model's name tells another maker than OpenAI."""
    return draft.model is not None and _OTHERS.search(draft.model.lower()) is not None


def _own(draft: Draft) -> bool:
    """True if the model's name tells one of OpenAI's own."""
    return draft.model is not None and _OPENAI.search(draft.model.lower()) is not None


def _named(draft: Draft, word: str) -> bool:
    return draft.model is not None and word in draft.model.lower()


def _mistral(draft: Draft) -> bool:
    return _named(draft, "stral") or _named(draft, "xtral")  # ministral, codestral; pixtral, mixtral


def _calls(draft: Draft, message: Object) -> None:
    """Calls stand in assistant messages, as a filled list of functions (or custom tools) with text arguments."""
    if "tool_calls" not in message:
        return
    calls = message["tool_calls"]
    if calls is None:
        return
    place = draft.at(message, ".tool_calls")
    if message["role"] != "assistant":
        draft.fault("call-role", place, f"calls in a message of role {message['role']}", "leave them out", "left out")
        del message["tool_calls"]
        return
    if not isinstance(calls, list) or not calls:
        # "[] is too short - 'messages.1.tool_calls'"
        draft.fault("empty-calls", place, "is no filled list", "leave the field out", "field left out")
        del message["tool_calls"]
        return
    kept: list[Any] = []
    for index, call in enumerate(calls):
        if isinstance(call, dict) and isinstance(call.get("type"), str) and call["type"] not in ("function", "custom"):
            kept.append(call)  # a kind of some host's own
            continue
        if not isinstance(call, dict) or not isinstance(call.get(_kind(call)), dict):
            draft.fault("call-shape", f"{place}[{index}]", "names no function", "leave it out", "left out")
            continue
        if not isinstance(call.get("type"), str):
            draft.fault("call-shape", call, "has no type", "name the call's type", "type set to function")
            call["type"] = "function"
        kept.append(call)
        inner = call[_kind(call)]
        name = inner.get("name")
        if not _name_ok(draft, name):
            inner["name"] = clean(name, "tool", 64)
            what = f"the tool name {short(name)} is not 1 to 64 of a-z A-Z 0-9 _ - ."
            draft.fault("tool-name", call, what, "rename the tool", f"named {inner['name']}")
        if _kind(call) == "custom":
            if not isinstance(inner.get("input"), str):
                draft.fault("tool-input", call, "the input is no text", "pass text", "input written as text")
                inner["input"] = as_text(inner.get("input"))
        else:
            mend_arguments(draft, call, inner, parsed=not _own(draft))
    if kept:
        message["tool_calls"] = kept
    else:
        del message["tool_calls"]


def _kind(call: Any) -> str:
    return "custom" if isinstance(call, dict) and call.get("type") == "custom" else "function"


def _name_ok(draft: Draft, name: Any) -> bool:
    if not isinstance(name, str) or not name:
        return False
    if any(_named(draft, word) for word in _STRICT):
        return _STRICT_NAME.fullmatch(name) is not None
    return _foreign(draft) or _NAME.fullmatch(name) is not None


def mend_arguments(draft: Draft, node: Object, holder: Object, *, parsed: bool) -> None:
    """Arguments are text; where the host is one that parses it, the JSON text of an object.

    OpenAI's own servers take back what their models wrote, torn JSON too (agents answer it with an error
    and go on). Hosts that render calls into a model's own form parse it first.
    """
    arguments = holder.get("arguments")
    if isinstance(arguments, str) and (not parsed or parse_object(arguments) is not None):
        return
    what = "are not the JSON text of an object" if isinstance(arguments, str) else "are no text"
    draft.fault(
        "tool-input",
        node,
        f"the arguments {what}",
        "pass the JSON text of an object",
        "arguments written as the JSON text of an object",
    )
    holder["arguments"] = as_text(as_object(arguments, "arguments"))


def _pairs(draft: Draft) -> None:
    """Tool messages stand directly behind their assistant message, one for each call."""
    messages = draft.messages
    batches: list[list[Slot]] = []
    ledger = Ledger()
    matched: dict[int, Slot] = {}
    dropped: set[int] = set()
    tool = {id(message) for message in messages if message["role"] == "tool"}
    for message in messages:
        batch: list[Slot] = []
        batches.append(batch)
        if message["role"] == "assistant":
            batch += [Slot(call, string(call.get("id"))) for call in message.get("tool_calls") or ()]
            ledger.open((slot.id, slot) for slot in batch)
        elif message["role"] == "tool":
            id_ = string(message.get("tool_call_id"))
            slot = ledger.take(id_)
            if slot is not None:
                slot.result = message
                matched[id(message)] = slot
            elif ledger.knows(id_):
                draft.fault(
                    "duplicate-result", message, f"a second result for {short(id_)}", "leave it out", "left out"
                )
                dropped.add(id(message))
            else:
                # "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'"
                what = f"no call before it has the id {short(id_)}"
                cure = "leave it out, or keep its content as a user's text"
                draft.fault("orphan-result", message, what, cure, "kept as a user's text")
                _free(message)
    copies = drop_copies(draft, batches)
    if copies:
        for message in messages:
            calls = message.get("tool_calls")
            if calls and any(id(call) in copies for call in calls):
                message["tool_calls"] = [call for call in calls if id(call) not in copies]
                if not message["tool_calls"]:
                    del message["tool_calls"]

    def assign(slot: Slot, new: str) -> None:
        slot.call["id"] = new
        if slot.result is not None:
            slot.result["tool_call_id"] = new

    longest = 10**6 if _foreign(draft) else _ID_LENGTH
    rename(
        draft,
        batches,
        lambda id_: 0 < len(id_) <= longest,
        f"of 1 to {_ID_LENGTH} characters",
        assign,
        longest=_ID_LENGTH,
        # Only DeepSeek is known to refuse an id that an earlier message used and had answered.
        everywhere=_named(draft, "deepseek"),
    )
    out: list[Object] = []
    for index, message in enumerate(messages):
        if id(message) in dropped or id(message) in matched:
            continue  # a matched one comes with its batch
        out.append(message)
        if not batches[index]:
            continue
        zone: list[Object] = []  # an orphan among the results is a user's message by now
        for follower in messages[index + 1 :]:
            if id(follower) not in tool:
                break
            zone.append(follower)
        out += _answers(draft, batches[index], zone)
    messages[:] = out


def _answers(draft: Draft, batch: list[Slot], zone: list[Object]) -> list[Object]:
    """The tool messages of a batch: those in their place, then those brought here, then stubs."""
    mine = {id(slot.result): slot for slot in batch if slot.result is not None}
    out = [message for message in zone if mine.pop(id(message), None) is not None]
    for slot in mine.values():
        draft.fault(
            "parted-results",
            slot.result,
            "not directly behind its call",
            "put all results directly behind the message of their calls",
            "moved behind the message of its call",
        )
        out.append(slot.result or {})
    for slot in batch:
        if slot.result is None:
            draft.fault(
                "unanswered-call",
                slot.call,
                f"no result answers {short(slot.id)}",
                "answer each call directly behind its message",
                "a result added that says none was recorded",
            )
            out.append({"role": "tool", "tool_call_id": slot.id, "content": NO_RESULT})
    return out


def _free(message: Object) -> None:
    """Make a tool message that answers nothing the user's."""
    head = f"(result of a call that is not in this conversation, {message.pop('tool_call_id', None)})"
    message.pop("name", None)
    message["role"] = "user"
    content = message.get("content")
    if isinstance(content, list):
        message["content"] = [{"type": "text", "text": head}, *content]
    else:
        message["content"] = f"{head}\n{content}" if isinstance(content, str) and content else head


def _content(draft: Draft, message: Object) -> None:
    content = message.get("content")
    place = draft.at(message, ".content")
    if isinstance(content, str):
        return
    if content is None:
        speaks = ("tool_calls", "function_call", "refusal", "audio")
        if message["role"] != "assistant" or not any(message.get(field) for field in speaks):
            # "Invalid value for 'content': expected a string, got null."
            draft.fault("empty-message", place, "is null", "leave the message out or fill it", "a marker put in")
            message["content"] = EMPTY
        return
    if not isinstance(content, list):
        draft.fault("content-shape", place, f"is a {type(content).__name__}", "write it as text", "written as text")
        message["content"] = as_text(content)
        return
    kept: list[Any] = []
    for index, part in enumerate(content):
        made = _part(draft, message["role"], part, f"{place}[{index}]")
        if made is not None:
            kept.append(made)
    if not kept:
        draft.fault("empty-message", place, "is an empty list", "leave the message out or fill it", "a marker put in")
        message["content"] = EMPTY
    else:
        message["content"] = kept


def _part(draft: Draft, role: str, part: Any, place: str) -> Any:
    """The part, mended where needed; ``None`` to leave it out."""
    if isinstance(part, str):
        draft.fault("part-shape", place, "is a string", "make it a text part", "made a text part")
        return {"type": "text", "text": part}
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        draft.fault("part-shape", place, "is not a typed part", "leave it out", "left out")
        return None
    type_ = part["type"]
    if type_ == "text" and not isinstance(part.get("text"), str):
        draft.fault("empty-text", place, "the text part has no text", "leave it out", "left out")
        return None
    if type_ not in _MEDIA or role == "user":
        return part
    if role == "tool" and type_ == "image_url":
        # Mistral's hold images, and gateways take them to Claude; elsewhere tool messages hold text alone.
        return part
    draft.fault("part-role", place, f"{type_} in a message of role {role}", "put it in a user message", "made text")
    return {"type": "text", "text": f"[{type_} left out: it stood in a message of role {role}]"}


def _move_images(draft: Draft) -> None:
    """Images of tool messages go to a user message behind the batch."""
    if _mistral(draft) or _named(draft, "claude"):
        return
    out: list[Object] = []
    moved: list[Any] = []
    for message in draft.messages:
        if message["role"] != "tool" and moved:
            out.append({"role": "user", "content": moved})
            moved = []
        out.append(message)
        content = message.get("content")
        if message["role"] != "tool" or not isinstance(content, list):
            continue
        found = [part for part in content if part["type"] == "image_url"]
        if found:
            draft.fault(
                "part-role",
                found[0],
                "an image in a message of role tool",
                "put it in a user message behind the results",
                "moved to a user message behind the results",
            )
            id_ = message.get("tool_call_id")
            rest = [part for part in content if part["type"] != "image_url"]
            message["content"] = rest or "(an image; it stands behind the results)"
            moved += [{"type": "text", "text": f"(image from the result of {id_})"}, *found]
    if moved:
        out.append({"role": "user", "content": moved})
    draft.messages[:] = out


def _last(draft: Draft) -> None:
    """The list ends with the assistant only where the model goes on from there."""
    last = draft.messages[-1]
    if last["role"] != "assistant" or last.get("prefix"):
        return
    # "Expected last role User or Tool (or Assistant with prefix True)"; Claude's own rule reaches through gateways.
    claude = claude_version(draft.model)
    if _mistral(draft) or (claude is not None and claude >= (4, 6)):
        what = "this model refuses a list that ends with the assistant"
        draft.fault("final-assistant", last, what, "end with a user message", "a short user message added")
        draft.messages.append({"role": "user", "content": CONTINUE})


def _pictures(draft: Draft) -> Iterator[images.Picture]:
    for message in draft.messages:
        content = message.get("content")
        for part in list(content) if isinstance(content, list) else ():
            if part["type"] != "image_url":
                continue
            replace = replacer(draft, message, "content", part, "text")
            link = part.get("image_url")
            if isinstance(link, str):
                draft.fault("image-shape", part, "image_url is a string", "make it {url: …}", "made an object")
                link = part["image_url"] = {"url": link}
            if not isinstance(link, dict) or not isinstance(link.get("url"), str):
                draft.fault("image-shape", part, "the image has no URL", "name its URL", "replaced by a line of text")
                replace("[image left out: it had no URL]")
                continue
            yield images.from_url(part, link, "url", replace)


def replacer(draft: Draft, holder: Object, key: str, part: Object, type_: str) -> Callable[[str], None]:
    """Puts a text part in the stead of another one in the list ``holder[key]``."""

    def replace(text: str) -> None:
        made = draft.adopt({"type": type_, "text": text}, part)
        holder[key] = [made if other is part else other for other in holder[key]]

    return replace


def _tools(draft: Draft) -> None:
    tools = None if draft.bare else draft.body.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        inner = tool.get("function") if isinstance(tool, dict) else None
        if isinstance(inner, dict) and not _name_ok(draft, inner.get("name")):
            name = inner.get("name")
            inner["name"] = clean(name, "tool", 64)
            what = f"the tool name {short(name)} is not 1 to 64 of a-z A-Z 0-9 _ - ."
            draft.fault("tool-name", tool, what, "rename the tool", f"named {inner['name']}")
