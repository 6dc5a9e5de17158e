"""One line for the official clients: send, and where the provider refuses for size, recover and send again.

    send = microfiche.clients.anthropic(Anthropic())
    answer = send(model="claude-opus-5", max_tokens=8_000, messages=messages)

What is sent is fitted beforehand (:func:`microfiche.compact`), and after a refusal by what that said
(:func:`microfiche.recover`), at most twice: no model is asked, nothing is left out unnamed. Every other
error is raised as it came. Nothing of the clients is imported here; the extras ``anthropic``, ``openai`` and
``google`` install them.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import suppress
from itertools import chain, islice
from typing import Any, TypeAlias, TypeVar

from microfiche import fit, formats, models
from microfiche.errors import BadInput, CannotFit, PlanMismatch
from microfiche.fit import Context
from microfiche.ladder.budget import Policy
from microfiche.ladder.plan import Plan
from microfiche.ladder.summarize import Summarizer, SummaryRequest
from microfiche.recovery import PASSES, Learnt, recovered, unmet, within
from microfiche.refusal import Refusal, refusal

_T = TypeVar("_T")

_Tries: TypeAlias = Generator[dict[str, Any], Any, None]
"""Gives what to send, is told the answer or the exception that came of it; ends at an answer, else raises."""

_WORTH_COUNTING = 2_000
"""Estimated tokens of a request from which on a usage of less than half of them tells that some were dropped."""

# Arguments of the clients' methods that are no part of the request.
_BESIDE = ("timeout", "extra_headers", "extra_query", "extra_body")


class _Conversation:
    """What is known of a conversation between its requests.

    The plan, the context that was sent last, and what the refusals of each model taught.
    """

    def __init__(self, wire: str, options: dict[str, Any]) -> None:
        self.wire = wire
        self.options = options
        self.plan: Plan | None = None
        self.context: Context | None = None
        self.learnt: dict[str, Learnt] = {}

    def tries(self, request: dict[str, Any]) -> _Tries:
        beside = {name: request[name] for name in _BESIDE if name in request}
        # The clients take anything that gives messages one by one; here they are read more than once.
        given = {
            name: list(value) if isinstance(value, Iterator) else value
            for name, value in request.items()
            if name not in beside
        }
        body = formats.common.plain(_body(given) if self.wire == "gemini" else given)
        model = str(given.get("model") or "")
        ready = self._fitted(body, model)
        for attempt in range(1, PASSES + 2):
            told = yield beside | (_arguments(given, ready) if self.wire == "gemini" else ready)
            found = self._judged(told, body, model, bool(given.get("stream")))
            if found is None:
                if isinstance(told, Exception):
                    raise told
                return
            if attempt > PASSES:
                why = f"refused {attempt} times in a row"
                error = unmet(why, self.context, found, model) if self.context else CannotFit(why, model, found.cure)
                raise error from (told if isinstance(told, Exception) else None)
            ready = self._recovered(body, found, model, attempt)

    def _judged(self, told: Any, body: dict[str, Any], model: str, streams: bool) -> Refusal | None:
        """The refusal that an exception or an answer means. A stream is handed on as it comes."""
        if isinstance(told, Exception):
            return refusal(told)
        if streams:
            return None
        if isinstance(told, Iterator | AsyncIterator):
            return None
        sent = self.context
        weight = sent.tokens if sent is not None else fit.count(body, model=model)
        # What a provider counts of images is not known everywhere, and of little is soon the half.
        sure = weight >= _WORTH_COUNTING and (sent is None or not sent.receipt.after.images)
        return refusal(told, window=models.find(model).context_window, expected=weight if sure else None)

    def _fitted(self, body: dict[str, Any], model: str) -> dict[str, Any]:
        """The request within its budget; as it is where no budget is known."""
        learnt = self.learnt.get(model, Learnt())
        options = learnt.narrowed(self.options, model, body)
        if options.get("budget") is None and models.find(model).context_window is None:
            return body
        policy = options.get("policy") or Policy()

        def make(plan: Plan | None, budget: int | None, allowed: Policy) -> Context:
            told = options | {"budget": budget, "policy": allowed}
            return fit.fit(body, model=model, plan=plan, format=self.wire, ratio=learnt.ratio, **told)

        budget = options.get("budget")
        made = self._with_plan(lambda plan: make(plan, budget, policy))
        if learnt.size is not None:
            made = within(
                learnt.size, made, budget, policy, lambda *less: self._with_plan(lambda plan: make(plan, *less))
            )
        return self._keep(made)

    def _recovered(self, body: dict[str, Any], found: Refusal, model: str, attempt: int) -> dict[str, Any]:
        learnt = self.learnt.get(model, Learnt())
        limit = self.context.asked.get("max_tokens") if self.context is not None else None
        options = {**self.options, "max_tokens": limit, "format": self.wire}
        made, self.learnt[model] = self._with_plan(
            lambda plan: recovered(body, found, model, plan, options, learnt, attempt)
        )
        return self._keep(made)

    def _with_plan(self, make: Callable[[Plan | None], _T]) -> _T:
        """What is made with the plan of the request before, or without where it is another history's."""
        try:
            return make(self.plan)
        except PlanMismatch:
            return make(None)

    def _keep(self, context: Context) -> dict[str, Any]:
        self.context = context
        self.plan = context.plan if context.plan else None
        return context.request


def _body(given: dict[str, Any]) -> dict[str, Any]:
    """The request body that a call of ``generate_content`` means."""
    config = _config(given)
    body: dict[str, Any] = {"contents": _contents(given.get("contents"))}
    for names in (("systemInstruction", "system_instruction"), ("tools",)):
        value = next((config[name] for name in names if name in config), None)
        if value is not None:
            body[names[0]] = {"parts": [{"text": value}]} if isinstance(value, str) else value
    limit = next((config[name] for name in ("maxOutputTokens", "max_output_tokens") if name in config), None)
    return body if limit is None else {**body, "generationConfig": {"maxOutputTokens": limit}}


def _config(given: dict[str, Any]) -> dict[str, Any]:
    """The settings of a call of ``generate_content``. Its tools may be functions: those stay what they are."""
    config = given.get("config") or {}
    if (names := getattr(config, "model_fields_set", None)) is not None:
        config = {name: getattr(config, name) for name in names}
    if not isinstance(config, dict):
        raise BadInput("the config is no object", "config", "pass a dict or a GenerateContentConfig")
    return dict(formats.common.plain(config))


def _contents(given: Any) -> Any:
    """The list of contents that the client makes of what it takes: contents, parts, texts and files, or one of them.

    Parts that follow one another are one message (github.com/googleapis/python-genai, README, "how to structure
    contents").
    """
    if given is None:
        return None
    contents: list[Any] = []
    parts: list[Any] | None = None
    for each in formats.common.plain(given if isinstance(given, list | tuple) else [given]):
        if isinstance(each, dict) and ("parts" in each or "role" in each):
            contents.append(each)
            parts = None
            continue
        called = isinstance(each, dict) and not each.keys().isdisjoint(("functionCall", "function_call"))
        role = "model" if called else "user"
        if parts is None or contents[-1]["role"] != role:
            parts = []
            contents.append({"role": role, "parts": parts})
        parts += map(_part, each) if isinstance(each, list) else [_part(each)]
    return contents


def _part(given: Any) -> Any:
    if isinstance(given, str):
        return {"text": given}
    if not isinstance(given, dict):
        raise BadInput(f"a {type(given).__name__} is no part of contents", "contents", "pass a text, a Part or a File")
    if "uri" in given:
        names = {"fileUri": "uri", "mimeType": next((key for key in ("mimeType", "mime_type") if key in given), "")}
        return {"fileData": {name: given[key] for name, key in names.items() if key in given}}
    return given


def _arguments(given: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """The arguments of ``generate_content`` for a body: those given, with its contents, tools and settings."""
    config = _config(given)
    told = dict(body.get("generationConfig") or {})
    if "tools" in body and "tools" not in config:
        told["tools"] = body["tools"]
    snake = {"maxOutputTokens": "max_output_tokens", "mediaResolution": "media_resolution"}
    settings = {name: value for name, value in config.items() if name not in {snake.get(key, key) for key in told}}
    return {**given, "contents": body["contents"], "config": settings | told}


class Sender:
    """Sends the requests of one conversation, each with its whole history; not for several threads at once.

    ``context`` is the one sent last, with its receipt; ``None`` where there was nothing to fit it by.
    """

    def __init__(self, send: Callable[..., Any], conversation: _Conversation) -> None:
        self._send = send
        self._conversation = conversation

    @property
    def context(self) -> Context | None:
        return self._conversation.context

    def __call__(self, **request: Any) -> Any:
        """What the client's own method answers to these arguments.

        :class:`~microfiche.errors.CannotFit` if the request is refused once more after two recoveries, or
        what never changes in it is too large.
        """
        tries = self._conversation.tries(request)
        ready = next(tries)
        while True:
            told: Any
            try:
                told = self._send(**ready)
            except Exception as exc:
                told = exc
            try:
                ready = tries.send(told)
            except StopIteration:
                return told


class AsyncSender:
    """:class:`Sender` for a client that is awaited. Fitting runs in a thread, so that the loop goes on."""

    def __init__(self, send: Callable[..., Awaitable[Any]], conversation: _Conversation) -> None:
        self._send = send
        self._conversation = conversation

    @property
    def context(self) -> Context | None:
        return self._conversation.context

    async def __call__(self, **request: Any) -> Any:
        """See :meth:`Sender.__call__`."""
        tries = self._conversation.tries(request)
        ready = await asyncio.to_thread(next, tries)
        while True:
            told: Any
            try:
                told = await self._send(**ready)
            except Exception as exc:
                told = exc
            following = await asyncio.to_thread(_next, tries, told)
            if following is None:
                return told
            ready = following


def _next(tries: _Tries, told: Any) -> dict[str, Any] | None:
    # A StopIteration does not pass through a future.
    try:
        return tries.send(told)
    except StopIteration:
        return None


def anthropic(client: Any, *, budget: int | None = None, policy: Policy | None = None) -> Any:
    """A :class:`Sender` for ``client.messages.create``, an :class:`AsyncSender` for that of an async client.

    ``budget`` and ``policy`` are those of :func:`microfiche.compact`.
    """
    return _sender(client.messages.create, "anthropic", budget, policy)


def openai(client: Any, *, budget: int | None = None, policy: Policy | None = None) -> Any:
    """The same for ``client.chat.completions.create``."""
    return _sender(client.chat.completions.create, "openai_chat", budget, policy)


def openai_responses(client: Any, *, budget: int | None = None, policy: Policy | None = None) -> Any:
    """The same for ``client.responses.create``."""
    return _sender(client.responses.create, "openai_responses", budget, policy)


def google(client: Any, *, budget: int | None = None, policy: Policy | None = None, stream: bool = False) -> Any:
    """The same for ``client.models.generate_content`` or ``generate_content_stream``; ``client.aio`` is awaited."""
    if not stream:
        return _sender(client.models.generate_content, "gemini", budget, policy)
    send = client.models.generate_content_stream
    begun = _begun_later if inspect.iscoroutinefunction(inspect.unwrap(send)) else _begun
    return _sender(begun(send), "gemini", budget, policy)


def _begun(send: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    """The stream with its first chunk there: this client sends, and is refused, when that is asked for."""

    def run(**request: Any) -> Iterator[Any]:
        stream = iter(send(**request))
        first = list(islice(stream, 1))
        return chain(first, stream)

    return run


def _begun_later(send: Callable[..., Awaitable[AsyncIterator[Any]]]) -> Callable[..., Awaitable[AsyncIterator[Any]]]:
    async def run(**request: Any) -> AsyncIterator[Any]:
        stream = aiter(await send(**request))
        first = [each async for each in _first(stream)]

        async def rest() -> AsyncIterator[Any]:
            for each in first:
                yield each
            async for each in stream:
                yield each

        return rest()

    return run


async def _first(stream: AsyncIterator[Any]) -> AsyncIterator[Any]:
    with suppress(StopAsyncIteration):
        yield await anext(stream)


def _sender(send: Any, wire: str, budget: int | None, policy: Policy | None) -> Sender | AsyncSender:
    conversation = _Conversation(wire, {"budget": budget, "policy": policy})
    return (AsyncSender if inspect.iscoroutinefunction(inspect.unwrap(send)) else Sender)(send, conversation)


def summarizer(client: Any, model: str, *, reasoning: int = 8_000) -> Summarizer:
    """A summariser for :func:`microfiche.compact` that asks ``model`` through an official client, sync or async.

    ``client`` is one of Anthropic, OpenAI (its chat endpoint) or Google (``client.aio`` to await it). The model may
    think for ``reasoning`` tokens beyond the length of the answer. :class:`~microfiche.errors.BadInput` for another.
    """
    if hasattr(client, "messages"):
        return _asking(client.messages.create, model, reasoning, _ask_anthropic, _anthropic_text)
    if hasattr(client, "chat"):
        return _asking(client.chat.completions.create, model, reasoning, _ask_openai, _openai_text)
    if hasattr(getattr(client, "models", None), "generate_content"):
        return _asking(client.models.generate_content, model, reasoning, _ask_google, _google_text)
    raise BadInput(f"{type(client).__name__} is no client that is known", "summarizer", "pass any callable instead")


_Ask: TypeAlias = Callable[[str, str, int], dict[str, Any]]
"""The arguments of a client's method for a model, a prompt and the longest answer."""


def _asking(create: Any, model: str, reasoning: int, ask: _Ask, text: Callable[[Any], str]) -> Summarizer:
    def arguments(request: SummaryRequest) -> dict[str, Any]:
        return ask(model, request.prompt, request.max_tokens + reasoning)

    async def awaited(request: SummaryRequest) -> str:
        return text(await create(**arguments(request)))

    def plain(request: SummaryRequest) -> str:
        return text(create(**arguments(request)))

    return awaited if inspect.iscoroutinefunction(inspect.unwrap(create)) else plain


def _ask_anthropic(model: str, prompt: str, longest: int) -> dict[str, Any]:
    return {"model": model, "max_tokens": longest, "messages": [{"role": "user", "content": prompt}]}


def _anthropic_text(answer: Any) -> str:
    return "".join(block.text for block in answer.content if block.type == "text")


def _ask_openai(model: str, prompt: str, longest: int) -> dict[str, Any]:
    return {"model": model, "max_completion_tokens": longest, "messages": [{"role": "user", "content": prompt}]}


def _openai_text(answer: Any) -> str:
    return answer.choices[0].message.content or ""


def _ask_google(model: str, prompt: str, longest: int) -> dict[str, Any]:
    return {"model": model, "contents": prompt, "config": {"max_output_tokens": longest}}


def _google_text(answer: Any) -> str:
    return answer.text or ""
