"""What OpenAI's Responses API demands of a request.

Sources: the error texts of public reports (quoted at the rules), the types of the openai package 3.57.
Item types that are not known here pass; a pair is told by its ``call_id``, whatever the kind.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from microfiche.validate import images
from microfiche.validate.draft import EMPTY, NO_RESULT, Draft, Limits, Object, as_text, texts
from microfiche.validate.openai_chat import LIMITS as CHAT_LIMITS
from microfiche.validate.openai_chat import mend_arguments, replacer
from microfiche.validate.pairs import Ledger, Slot, clean, drop_copies, rename, short, string

LIMITS: Limits = CHAT_LIMITS

_ROLES = ("user", "assistant", "system", "developer")
_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,128}")
_ID_LENGTH = 64  # "input[3].call_id: string too long. Expected a string with maximum length 64"

# The outputs whose type is not the call's with `_output` behind it.
_OUTPUTS = {"tool_search_call": "tool_search_output", "program": "program_output"}
_CALLS = {output: call for call, output in _OUTPUTS.items()}

_STUBS: dict[str, Callable[[str], Object]] = {
    "function_call": lambda id_: {"type": "function_call_output", "call_id": id_, "output": NO_RESULT},
    "custom_tool_call": lambda id_: {"type": "custom_tool_call_output", "call_id": id_, "output": NO_RESULT},
    "local_shell_call": lambda id_: {"type": "local_shell_call_output", "id": id_, "output": '{"output": ""}'},
    "shell_call": lambda id_: {
        "type": "shell_call_output",
        "call_id": id_,
        "output": [{"stdout": "", "stderr": NO_RESULT, "outcome": {"type": "exit", "exit_code": 1}}],
    },
    "apply_patch_call": lambda id_: {
        "type": "apply_patch_call_output",
        "call_id": id_,
        "status": "failed",
        "output": NO_RESULT,
    },
}


def check(draft: Draft) -> None:
    """Find and mend, in an order in which no cure makes a fault for a rule already passed."""
    if isinstance(draft.body.get("input"), str) or _elsewhere(draft):
        return
    if not draft.check_listed(lambda text: {"role": "user", "content": text}):
        return
    _types(draft)
    _pairs(draft)
    _twice(draft)
    _reasoning(draft)
    pictures = list(_pictures(draft))
    images.check(draft, pictures, strict_type=False)
    images.check_bytes(draft, pictures)


def _chained(draft: Draft) -> bool:
    """True if the server holds an earlier part of the conversation."""
    return not draft.bare and bool(draft.body.get("previous_response_id") or draft.body.get("conversation"))


def _elsewhere(draft: Draft) -> bool:
    """True if the request need not hold any input of its own."""
    empty = not draft.bare and not draft.body.get("input")
    return empty and (_chained(draft) or bool(draft.body.get("prompt")))


def kind(item: Object) -> str:
    """The type of an item. A message may lack it, and a reference, which is an id and nothing else."""
    type_ = item.get("type")
    if isinstance(type_, str):
        return type_
    return "message" if "role" in item or "content" in item or "id" not in item else "item_reference"


def _types(draft: Draft) -> None:
    kept: list[Any] = []
    for item in draft.messages:
        type_ = item.get("type")
        if type_ is not None and not isinstance(type_, str):
            draft.fault("item-shape", item, "the type is no text", "name the item's type", "left out")
            continue
        if type_ == "context_compaction":
            # Refused as an input type: https://github.com/openai/codex/issues/26573
            draft.fault("item-type", item, "context_compaction is no input type", "leave it out", "left out")
            continue
        if kind(item) == "message":
            if "role" not in item and "content" not in item:
                draft.fault("item-shape", item, "has neither type nor role", "name the item's type", "left out")
                continue
            draft.set_role(item, _ROLES, "assistant")
            _message(draft, item)
        elif type_ in ("function_call", "custom_tool_call"):
            _call(draft, item)
        elif type_ == "reasoning" and not isinstance(item.get("summary"), list):
            # "Missing required parameter: 'input[1].summary'"
            draft.fault("reasoning-shape", item, "the summary is no list", "give an empty list", "an empty list set")
            item["summary"] = []
        elif type_ in ("function_call_output", "custom_tool_call_output"):
            _output(draft, item)
        kept.append(item)
    draft.messages[:] = kept


def _call(draft: Draft, item: Object) -> None:
    name = item.get("name")
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        item["name"] = clean(name, "tool", 64)
        what = f"the tool name {short(name)} is not 1 to 128 of a-z A-Z 0-9 _ - ."
        draft.fault("tool-name", item, what, "rename the tool", f"named {item['name']}")
    if item["type"] == "function_call":
        mend_arguments(draft, item, item, parsed=False)
    elif not isinstance(item.get("input"), str):
        draft.fault("tool-input", item, "the input is no text", "pass text", "input written as text")
        item["input"] = as_text(item.get("input"))


def _output(draft: Draft, item: Object) -> None:
    output = item.get("output")
    if isinstance(output, list):
        _parts(draft, item, "output", "input_text", "user")
    elif not isinstance(output, str):
        draft.fault("result-shape", item, "the output is no text or list", "write it as text", "written as text")
        item["output"] = as_text(output)


def _message(draft: Draft, item: Object) -> None:
    content = item.get("content")
    if isinstance(content, list):
        assistant = item["role"] == "assistant"
        _parts(draft, item, "content", "output_text" if assistant else "input_text", item["role"])
    elif not isinstance(content, str):
        what = "is null" if content is None else f"is a {type(content).__name__}"
        place = draft.at(item, ".content")
        draft.fault("empty-message", place, what, "leave the message out or fill it", "a marker put in")
        item["content"] = EMPTY


def _parts(draft: Draft, holder: Object, key: str, text_type: str, role: str) -> None:
    """Parts are typed, and of the types that their side of the conversation has."""
    kept: list[Any] = []
    for index, part in enumerate(holder[key]):
        place = draft.at(holder, f".{key}[{index}]")
        type_ = part.get("type") if isinstance(part, dict) else None
        if isinstance(part, str):
            draft.fault("part-shape", place, "is a string", "make it a text part", "made a text part")
            kept.append(_text(text_type, part))
        elif not isinstance(type_, str):
            draft.fault("part-shape", place, "is not a typed part", "leave it out", "left out")
        elif type_ in ("text", "input_text", "output_text"):
            # "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'."
            if not isinstance(part.get("text"), str):
                draft.fault("empty-text", place, "the text part has no text", "leave it out", "left out")
                continue
            if type_ != text_type:
                draft.fault("part-type", place, f"{type_} in a {role} message", f"use {text_type}", f"made {text_type}")
                part["type"] = text_type
            kept.append(part)
        elif role == "assistant" and type_ in ("input_image", "image_url", "input_file"):
            draft.fault("part-role", place, f"{type_} in an assistant message", "put it in a user message", "made text")
            kept.append(_text(text_type, f"[{type_} left out: it stood in an assistant message]"))
        elif type_ == "image_url":
            draft.fault("part-type", place, "image_url is a type of another API", "use input_image", "made input_image")
            link = part.get("image_url")
            part["type"] = "input_image"
            part["image_url"] = link.get("url") if isinstance(link, dict) else link
            if isinstance(link, dict) and isinstance(link.get("detail"), str):
                part["detail"] = link["detail"]
            part.setdefault("detail", "auto")
            kept.append(part)
        else:
            kept.append(part)
    holder[key] = kept


def _text(type_: str, text: str) -> Object:
    made: Object = {"type": type_, "text": text}
    return {**made, "annotations": []} if type_ == "output_text" else made


def _named_by_id(item: Object) -> bool:
    # A local shell's output names the call in `id`.
    return kind(item) == "local_shell_call_output" and "call_id" not in item


def _call_id(item: Object) -> str | None:
    return string(item.get("id" if _named_by_id(item) else "call_id"))


def _is_output(item: Object) -> bool:
    type_ = kind(item)
    return (type_.endswith("_call_output") or type_ in _CALLS) and (_call_id(item) is not None or _must_name(item))


def _must_name(item: Object) -> bool:
    # An output may name its tool instead of a call; one that names neither answers nothing.
    return kind(item) in ("function_call_output", "custom_tool_call_output") and "name" not in item


def _is_call(item: Object) -> bool:
    # Calls that the server answers itself (web search, MCP …) carry no call_id.
    type_ = kind(item)
    if type_ in ("function_call", "custom_tool_call"):
        return True
    return (type_.endswith("_call") or type_ in _OUTPUTS) and string(item.get("call_id")) is not None


def _pairs(draft: Draft) -> None:
    """Each call has one output behind it, each output a call before it."""
    references = any(kind(item) == "item_reference" for item in draft.messages)
    ledger = Ledger()
    batches: list[list[Slot]] = []
    aliases: dict[str, str | None] = {}
    kept: list[Any] = []
    open_run = False
    unanswered: Counter[str | None] = Counter()
    clashing: set[int] = set()
    for item in draft.messages:
        if _is_call(item):
            slot = Slot(item, string(item.get("call_id")))
            if unanswered[slot.id]:
                clashing.add(id(item))
            unanswered[slot.id] += 1
            if not open_run:
                batches.append([])
            batches[-1].append(slot)
            open_run = True
            type_ = item["type"]
            ledger.open([((_OUTPUTS.get(type_, f"{type_}_output"), slot.id), slot)])
            if type_ == "local_shell_call" and isinstance(item.get("id"), str):
                aliases[item["id"]] = slot.id
        elif _is_output(item):
            key = (kind(item), _call_id(item))
            if key[0] == "local_shell_call_output" and not ledger.knows(key) and key[1] in aliases:
                key = (key[0], aliases[key[1]])
            taken = ledger.take(key)
            if taken is not None:
                taken.result = item
                unanswered[taken.id] -= 1
                open_run = False
            elif ledger.knows(key):
                draft.fault(
                    "duplicate-result", item, f"a second output for {short(key[1])}", "leave it out", "left out"
                )
                continue
            elif not (_chained(draft) or references):
                # "No tool call found for function call output with call_id …"
                what = f"no call before it has the call_id {short(key[1])}"
                draft.fault("orphan-result", item, what, "leave it out, or keep its text", "kept as a user's text")
                kept.append(_orphan(draft, item))
                continue
        kept.append(item)
    copies = drop_copies(draft, batches)
    left = Counter(slot.id for batch in batches for slot in batch)

    def assign(slot: Slot, new: str) -> None:
        slot.call["call_id"] = new
        if slot.result is not None:
            slot.result["id" if _named_by_id(slot.result) else "call_id"] = new

    rename(
        draft,
        batches,
        lambda id_: 0 < len(id_) <= _ID_LENGTH,
        f"of 1 to {_ID_LENGTH} characters",
        assign,
        longest=_ID_LENGTH,
        everywhere=False,
        clashing={id(slot.call) for batch in batches for slot in batch if left[slot.id] > 1} & clashing,
    )
    stubs: dict[int, Object | None] = {}
    for slot in (slot for batch in batches for slot in batch if slot.result is None):
        if references:
            continue  # the output may be the item that is referred to
        # "No tool output found for function call …"
        make = _STUBS.get(slot.call["type"])
        did = "left out" if make is None else "an output added that says none was recorded"
        what = f"no output answers {short(slot.id)}"
        draft.fault("unanswered-call", slot.call, what, "answer each call", did)
        stubs[id(slot.call)] = None if make is None else make(slot.id or "")
    out: list[Object] = []
    waiting: list[Object] = []
    for item in kept:
        if waiting and not _is_call(item):
            out += waiting
            waiting = []
        if id(item) in copies:
            continue
        if id(item) not in stubs:
            out.append(item)
            continue
        stub = stubs[id(item)]
        if stub is not None:
            out.append(item)
            waiting.append(stub)
    draft.messages[:] = out + waiting


def _orphan(draft: Draft, item: Object) -> Object:
    head = f"(result of a call that is not in this conversation, {_call_id(item)})"
    output = item.get("output")
    text = texts(output)
    parts: list[Object] = [{"type": "input_text", "text": f"{head}\n{text}" if text else head}]
    if isinstance(output, list):
        parts += [
            part for part in output if isinstance(part, dict) and part.get("type") in ("input_image", "input_file")
        ]
    made: Object = {"type": "message", "role": "user", "content": parts}
    draft.adopt(made, item)
    return made


def _twice(draft: Draft) -> None:
    """The second item of an id gives it up, or goes where it cannot ("Duplicate item found with id …")."""
    seen: dict[str, Object] = {}
    kept: list[Object] = []
    for item in draft.messages:
        id_ = item.get("id")
        # A local shell's output carries its call's id; a reference may name an item beside it.
        if not isinstance(id_, str) or kind(item) in ("item_reference", "local_shell_call_output"):
            kept.append(item)
            continue
        first = seen.setdefault(id_, item)
        if first is item:
            kept.append(item)
            continue
        free = kind(item) in ("message", "function_call", "function_call_output", "custom_tool_call")
        if free and (item != first or _is_call(item) or _is_output(item)):
            did = "its id taken off"
            del item["id"]
            kept.append(item)
        else:
            did = "left out"
        draft.fault("duplicate-id", item, f"another item has the id {short(id_)}", "send each item once", did)
    draft.messages[:] = kept


def _reasoning(draft: Draft) -> None:
    """Reasoning and the item behind it stand or fall together.

    "Item … of type 'reasoning' was provided without its required following item." Whether an item needs
    the reasoning before it cannot be told from the request; where reasoning is left out here, the items
    behind it lose the ids by which the server would know.
    """
    kept: list[Object] = []
    items = draft.messages
    unstored = not draft.bare and draft.body.get("store") is False
    followed = False  # looked at from the end: does something of the model's stand behind?
    drop: set[int] = set()
    for item in reversed(items):
        if kind(item) != "reasoning":
            followed = _of_model(item)
        elif not followed:
            drop.add(id(item))
            what = "no item of the model's follows the reasoning"
            draft.fault("reasoning-alone", item, what, "send it with the item that followed, or not at all", "left out")
        elif unstored and not item.get("encrypted_content"):
            # "Item with id 'rs_…' not found. Items are not persisted when `store` is set to false."
            drop.add(id(item))
            what = "reasoning without encrypted_content in a request that is not stored"
            draft.fault("reasoning-unstored", item, what, "include encrypted_content", "left out")
    loose = False
    for item in items:
        if id(item) in drop:
            loose = True
            continue
        loose = loose and _of_model(item)
        if loose and kind(item) in ("message", "function_call", "custom_tool_call"):
            item.pop("id", None)
        kept.append(item)
    draft.messages[:] = kept


def _of_model(item: Object) -> bool:
    type_ = kind(item)
    if type_ == "message":
        return item.get("role") == "assistant"
    return not (type_.endswith("_call_output") and type_ != "shell_call_output")


def _pictures(draft: Draft) -> Iterator[images.Picture]:
    for item in draft.messages:
        for key in ("content", "output"):
            parts = item.get(key)
            if isinstance(parts, dict) and isinstance(parts.get("image_url"), str):
                yield images.Picture(parts, None, None, _never)  # a computer's screenshot: its shape is fixed
            for part in list(parts) if isinstance(parts, list) else ():
                if not isinstance(part, dict) or part.get("type") != "input_image":
                    continue
                replace = replacer(draft, item, key, part, "input_text")
                if isinstance(part.get("image_url"), str):
                    yield images.from_url(part, part, "image_url", replace)
                elif isinstance(part.get("file_id"), str):
                    yield images.Picture(part, None, None, replace)
                else:
                    what = "the image has no URL and no file_id"
                    draft.fault("image-shape", part, what, "name one", "replaced by a line of text")
                    replace("[image left out: it had no URL]")


def _never(text: str) -> None:
    """A screenshot stays: no text may stand in its place."""
