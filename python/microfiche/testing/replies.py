"""What the judge answers to a request that it accepts, spoken in the form of each provider, whole or streamed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from . import anthropic, openai_responses
from .rules import Object


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer.

    ``calls`` are (name, arguments) of tools, made in parallel. ``thinking`` goes out signed, and is known again when
    it comes back. ``stop`` replaces the provider's own stop reason; ``output_tokens`` is what the usage says.
    ``input_tokens`` replaces the judge's price in the usage, as a server would say that dropped some of the input.
    """

    text: str = ""
    calls: tuple[tuple[str, Object], ...] = ()
    thinking: str = ""
    stop: str | None = None
    output_tokens: int = 8
    input_tokens: int | None = None

    @staticmethod
    def empty() -> Reply:
        """A success that says nothing: what some servers answer to an input that did not fit."""
        return Reply(output_tokens=0)

    @staticmethod
    def cut(text: str = "and then") -> Reply:
        """An answer that ran into the end of the window."""
        return Reply(text, stop="model_context_window_exceeded")


@dataclass(frozen=True, slots=True)
class Refuse:
    """Refuse the next request, whatever it holds, in the provider's form; ``fields`` go into its error object."""

    message: str = "prompt is too long"
    status: int = 400
    fields: Object = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Request:
    """A request that came: its body, the status and body it was answered with, the input tokens it was billed.

    ``tokens`` is 0 where it was refused before it was priced.
    """

    provider: str
    model: str
    body: Any
    status: int
    answer: Any
    tokens: int = 0
    counting: bool = False


Line = str | Reply | Refuse | Callable[[Request], str | Reply | Refuse]
"""One line of a script: a text, a reply, a refusal, or what makes one of them from the request."""


def speak(provider: str, reply: Reply, model: str, used: int, serial: int) -> Object:
    """The body of the answer; ``serial`` makes its ids."""
    used = used if reply.input_tokens is None else reply.input_tokens
    return _SPEAKERS[provider](reply, model, used, f"{serial:06d}")


def _anthropic(reply: Reply, model: str, used: int, serial: str) -> Object:
    content: list[Object] = []
    if reply.thinking:
        signature = anthropic.sign(reply.thinking)
        content.append({"type": "thinking", "thinking": reply.thinking, "signature": signature})
    if reply.text:
        content.append({"type": "text", "text": reply.text})
    for at, (name, given) in enumerate(reply.calls):
        content.append({"type": "tool_use", "id": f"toolu_{serial}_{at}", "name": name, "input": given})
    return {
        "id": f"msg_{serial}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": reply.stop or ("tool_use" if reply.calls else "end_turn"),
        "stop_sequence": None,
        "usage": {"input_tokens": used, "output_tokens": reply.output_tokens},
    }


def _openai_chat(reply: Reply, model: str, used: int, serial: str) -> Object:
    message: Object = {"role": "assistant", "content": reply.text or (None if reply.calls else "")}
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": f"call_{serial}_{at}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(given)},
            }
            for at, (name, given) in enumerate(reply.calls)
        ]
    stop = reply.stop or ("tool_calls" if reply.calls else "stop")
    return {
        "id": f"chatcmpl-{serial}",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": stop, "logprobs": None}],
        "usage": {
            "prompt_tokens": used,
            "completion_tokens": reply.output_tokens,
            "total_tokens": used + reply.output_tokens,
        },
    }


def _openai_responses(reply: Reply, model: str, used: int, serial: str) -> Object:
    output: list[Object] = []
    if reply.thinking:
        serial = f"{openai_responses.TIED}{serial}"
        sealed = anthropic.sign(reply.thinking)
        output.append({"type": "reasoning", "id": f"rs_{serial}", "summary": [], "encrypted_content": sealed})
    if reply.text or (reply.thinking and not reply.calls):
        part = {"type": "output_text", "text": reply.text, "annotations": []}
        item: Object = {"type": "message", "id": f"msg_{serial}", "role": "assistant", "status": "completed"}
        output.append({**item, "content": [part]})
    for at, (name, given) in enumerate(reply.calls):
        item = {"type": "function_call", "id": f"fc_{serial}_{at}", "call_id": f"call_{serial}_{at}", "name": name}
        output.append({**item, "arguments": json.dumps(given), "status": "completed"})
    usage = {
        "input_tokens": used,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": reply.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": used + reply.output_tokens,
    }
    return {
        "id": f"resp_{serial}",
        "object": "response",
        "created_at": 0,
        "status": "incomplete" if reply.stop else "completed",
        "error": None,
        "incomplete_details": {"reason": reply.stop} if reply.stop else None,
        "model": model,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage,
    }


def _gemini(reply: Reply, model: str, used: int, serial: str) -> Object:
    parts: list[Object] = []
    if reply.thinking:
        parts.append({"text": reply.thinking, "thought": True})
    if reply.text:
        parts.append({"text": reply.text})
    for at, (name, given) in enumerate(reply.calls):
        call: Object = {"functionCall": {"id": f"call_{serial}_{at}", "name": name, "args": given}}
        parts.append(call if at else {**call, "thoughtSignature": _SIGNATURE})
    usage = {"promptTokenCount": used, "totalTokenCount": used + reply.output_tokens}
    usage["candidatesTokenCount"] = reply.output_tokens
    content = {"role": "model", "parts": parts} if parts else {"role": "model"}
    return {
        "candidates": [{"content": content, "finishReason": reply.stop or "STOP", "index": 0}],
        "usageMetadata": usage,
        "modelVersion": model,
        "responseId": serial,
    }


_SIGNATURE = "anVkZ2U="
_SPEAKERS = {
    "anthropic": _anthropic,
    "openai_chat": _openai_chat,
    "openai_responses": _openai_responses,
    "gemini": _gemini,
}

COUNTED = {
    "anthropic": lambda used: {"input_tokens": used},
    "gemini": lambda used: {"totalTokens": used},
}
"""The answer to a request that only counts."""


def stream(provider: str, answer: Object) -> Iterator[tuple[str | None, Any]]:
    """The events of a streamed answer: (name or ``None``, data)."""
    return _STREAMS[provider](answer)


def _stream_anthropic(answer: Object) -> Iterator[tuple[str | None, Any]]:
    begun = {**answer, "content": [], "stop_reason": None, "usage": {**answer["usage"], "output_tokens": 1}}
    yield "message_start", {"type": "message_start", "message": begun}
    for index, block in enumerate(answer["content"]):
        yield from _block_events(index, block)
    stop = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
    usage = {"output_tokens": answer["usage"]["output_tokens"]}
    yield "message_delta", {"type": "message_delta", "delta": stop, "usage": usage}
    yield "message_stop", {"type": "message_stop"}


def _block_events(index: int, block: Object) -> Iterator[tuple[str | None, Any]]:
    if block["type"] == "text":
        begun: Object = {"type": "text", "text": ""}
        deltas: list[Object] = [{"type": "text_delta", "text": block["text"]}]
    elif block["type"] == "thinking":
        begun = {"type": "thinking", "thinking": "", "signature": ""}
        deltas = [{"type": "thinking_delta", "thinking": block["thinking"]}]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    else:
        begun = {**block, "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
    yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": begun}
    for delta in deltas:
        yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
    yield "content_block_stop", {"type": "content_block_stop", "index": index}


def _stream_openai_chat(answer: Object) -> Iterator[tuple[str | None, Any]]:
    choice = answer["choices"][0]
    delta = dict(choice["message"])
    if "tool_calls" in delta:
        delta["tool_calls"] = [{"index": at, **call} for at, call in enumerate(delta["tool_calls"])]
    frame = {key: answer[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    yield None, {**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield None, {**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
    yield None, {**frame, "choices": [], "usage": answer["usage"]}
    yield None, "[DONE]"


def _stream_openai_responses(answer: Object) -> Iterator[tuple[str | None, Any]]:
    events: list[Object] = [{"type": "response.created", "response": {**answer, "output": [], "status": "in_progress"}}]
    for index, item in enumerate(answer["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        events.append({"type": "response.output_item.added", "output_index": index, "item": item})
        if item["type"] == "message":
            text = {**place, "content_index": 0, "delta": item["content"][0]["text"], "logprobs": []}
            events.append({"type": "response.output_text.delta", **text})
        elif item["type"] == "function_call":
            delta = {**place, "delta": item["arguments"]}
            events.append({"type": "response.function_call_arguments.delta", **delta})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": f"response.{answer['status']}", "response": answer})
    for number, event in enumerate(events):
        yield event["type"], {**event, "sequence_number": number}


def _stream_gemini(answer: Object) -> Iterator[tuple[str | None, Any]]:
    yield None, answer


_STREAMS = {
    "anthropic": _stream_anthropic,
    "openai_chat": _stream_openai_chat,
    "openai_responses": _stream_openai_responses,
    "gemini": _stream_gemini,
}

__all__ = ["COUNTED", "Line", "Refuse", "Reply", "Request", "speak", "stream"]
