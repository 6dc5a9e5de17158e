"""What the Anthropic Messages API demands of calls, their results and the definitions of tools.

Sources: see :mod:`microfiche.validate.anthropic`.
"""

from __future__ import annotations

import re
from typing import Any

from microfiche.validate.anthropic_common import blocks, is_result, text_block
from microfiche.validate.draft import NO_RESULT, Draft, Object, blank, texts
from microfiche.validate.pairs import (
    Ledger,
    Slot,
    as_object,
    clean,
    drop_copies,
    rename,
    settle,
    short,
    string,
)

_ID = re.compile(r"[a-zA-Z0-9_-]+")  # "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")  # "tools.0.custom.name: String should match pattern …{1,128}"
_NAME_LENGTH = 128


def check_names(draft: Draft) -> None:
    """Names and inputs of calls."""
    for message in draft.messages:
        if message["role"] != "assistant":
            continue
        for block in blocks(message):
            if block["type"] != "tool_use":
                continue
            name = block.get("name")
            if not (isinstance(name, str) and _NAME.fullmatch(name)):
                new = clean(name, "tool", _NAME_LENGTH)
                draft.fault(
                    "tool-name",
                    block,
                    f"the tool name {short(name)} is not 1 to {_NAME_LENGTH} of a-z A-Z 0-9 _ -",
                    "rename the tool",
                    f"named {new}",
                )
                block["name"] = new
            if not isinstance(block.get("input"), dict):
                draft.fault(
                    "tool-input",
                    block,
                    "the input is not an object",
                    "pass an object",
                    "input made an object",
                )
                block["input"] = as_object(block.get("input"), "input")


def pair(draft: Draft) -> None:
    """Every call answered in the very next message, all siblings there, once each, results first."""
    messages = draft.messages
    batches: list[list[Slot]] = [[] for _ in messages]
    ledger = Ledger()
    for batch, message in zip(batches, messages, strict=True):
        if message["role"] == "assistant":
            calls = [block for block in blocks(message) if block["type"] == "tool_use"]
            batch += [Slot(call, string(call.get("id"))) for call in calls]
            ledger.open((slot.id, slot) for slot in batch)
        elif message["role"] == "user" and isinstance(message.get("content"), list):
            message["content"] = _answers(draft, message, ledger)
    copies = drop_copies(draft, batches)
    if copies:
        for message in messages:
            if isinstance(message.get("content"), list):
                message["content"] = [block for block in message["content"] if id(block) not in copies]

    def assign(slot: Slot, new: str) -> None:
        slot.call["id"] = new
        if slot.result is not None:
            slot.result["tool_use_id"] = new

    # "`tool_use` ids must be unique", in the whole request.
    rename(draft, batches, lambda id_: _ID.fullmatch(id_) is not None, "of a-z A-Z 0-9 _ -", assign)
    settle(
        draft,
        batches,
        "content",
        answers=lambda message: bool(message["role"] == "user"),
        target=lambda: {"role": "user", "content": []},
        stub=lambda slot: {
            "type": "tool_result",
            "tool_use_id": slot.id,
            "content": NO_RESULT,
            "is_error": True,
        },
        text=lambda text: [] if blank(text) else [{"type": "text", "text": text}],
        results_first=True,
    )


def _answers(draft: Draft, message: Object, ledger: Ledger) -> list[Any]:
    """The blocks of a user message; its results are matched to the calls before it."""
    kept: list[Any] = []
    for block in message["content"]:
        if block["type"] != "tool_result":
            kept.append(block)
            continue
        id_ = string(block.get("tool_use_id"))
        slot = ledger.take(id_)
        if slot is not None:
            slot.result, slot.home = block, message
            kept.append(block)
        elif ledger.knows(id_):
            # "each tool_use must have a single result"
            draft.fault("duplicate-result", block, f"a second result for {short(id_)}", "leave it out", "left out")
        else:
            what = f"no call before it has the id {short(id_)}"
            draft.fault("orphan-result", block, what, "leave it out, or keep its content as text", "kept as text")
            kept.extend(_orphan(draft, block))
    return kept


def _orphan(draft: Draft, block: Object) -> list[Object]:
    content = block.get("content")
    text = texts(content)
    head = f"(result of a call that is not in this conversation, {block.get('tool_use_id')})"
    made = [text_block(draft, f"{head}\n{text}" if text else head, block)]
    if isinstance(content, list):
        made += [part for part in content if part["type"] in ("image", "document")]
    return made


def pair_server_tools(draft: Draft) -> None:
    """``server_tool_use`` and its likes pair with any ``*_tool_result`` by id, before the user speaks again.

    The result may open a later assistant message: a paused turn is sent back as it is, and calls made
    from running code are answered while the code's own call is open.
    """
    waiting: dict[Any, tuple[Object, Object]] = {}
    seen: set[Any] = set()
    answered: set[Any] = set()
    drop: dict[int, Object] = {}

    def leave_open() -> None:
        for block, message in waiting.values():
            drop[id(block)] = message
            draft.fault(
                "unanswered-call",
                block,
                f"no result answers {block.get('id')}",
                "leave the call out",
                "call left out",
            )
        waiting.clear()

    for message in draft.messages:
        content = message.get("content")
        if message["role"] == "user" and (
            isinstance(content, str) or any(not is_result(block["type"]) for block in blocks(message))
        ):
            leave_open()
        for block in blocks(message):
            type_ = block["type"]
            if type_ != "tool_use" and type_.endswith("_tool_use"):
                id_ = string(block.get("id"))
                if id_ in seen:
                    drop[id(block)] = message
                    draft.fault(
                        "duplicate-call",
                        block,
                        f"another call has the id {short(id_)}",
                        "leave it out",
                        "left out",
                    )
                else:
                    seen.add(id_)
                    waiting[id_] = (block, message)
            elif type_ != "tool_result" and type_.endswith("_tool_result"):
                id_ = string(block.get("tool_use_id"))
                if waiting.pop(id_, None) is None:
                    twice = id_ in answered
                    drop[id(block)] = message
                    draft.fault(
                        "duplicate-result" if twice else "orphan-result",
                        block,
                        f"{'a second result for' if twice else 'no call before it has the id'} {short(id_)}",
                        "leave it out",
                        "left out",
                    )
                answered.add(id_)
    if drop:
        for message in {id(message): message for message in drop.values()}.values():
            message["content"] = [block for block in message["content"] if id(block) not in drop]


def check_tools(draft: Draft) -> None:
    """Tool blocks need definitions; a body that has none gets stubs of the names that are called."""
    if draft.bare:
        return
    tools = draft.body.get("tools")
    if isinstance(tools, list) and tools:
        _definitions(draft, tools)
        return
    names = {
        block["name"]: None
        for message in draft.messages
        for block in blocks(message)
        if block["type"] == "tool_use" and message["role"] == "assistant"
    }
    if names:
        draft.fault(
            "no-tools",
            "tools",
            "there are tool calls but no tools",
            "define the tools that are called",
            f"stubs added for {', '.join(names)}",
        )
        draft.body["tools"] = [{"name": name, "input_schema": {"type": "object"}} for name in names]


def _definitions(draft: Draft, tools: list[Any]) -> None:
    kept: list[Any] = []
    seen: set[str] = set()
    for index, tool in enumerate(tools):
        if not isinstance(tool, dict):
            draft.fault("tool-shape", f"tools[{index}]", "is not an object", "leave it out", "left out")
            continue
        name = tool.get("name")
        if tool.get("type") in (None, "custom"):
            if not (isinstance(name, str) and _NAME.fullmatch(name)):
                new = clean(name, "tool", _NAME_LENGTH)
                draft.fault(
                    "tool-name",
                    tool,
                    f"the tool name {short(name)} is not allowed",
                    "rename it",
                    f"named {new}",
                )
                name = tool["name"] = new
            schema = tool.get("input_schema")
            if not isinstance(schema, dict) or schema.get("type") != "object":
                draft.fault(
                    "tool-schema",
                    tool,
                    "the schema is not that of an object",
                    "describe an object",
                    "type set",
                )
                tool["input_schema"] = {**(schema if isinstance(schema, dict) else {}), "type": "object"}
        if isinstance(name, str) and name in seen:
            # "tools: Tool names must be unique."
            draft.fault("duplicate-tool", tool, f"a second tool named {short(name)}", "leave it out", "left out")
            continue
        if isinstance(name, str):
            seen.add(name)
        kept.append(tool)
    draft.body["tools"] = kept
