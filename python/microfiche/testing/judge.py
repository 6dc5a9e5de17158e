"""The judge: one set of rules for each provider, in process or behind a local server."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

from . import anthropic, gemini, openai_chat, openai_responses
from .replies import Line, Refuse, Reply, Request
from .rules import Limits, Object, Refused, check_json, is_object
from .server import Server

PROVIDERS: dict[str, ModuleType] = {
    "anthropic": anthropic,
    "openai_chat": openai_chat,
    "openai_responses": openai_responses,
    "gemini": gemini,
}


class Judge:
    """A strict stand-in for the providers' servers.

    In process, :meth:`check` says whether a request would be accepted. As a context manager it serves Anthropic
    Messages, OpenAI Chat and Responses and Gemini at :attr:`url` (and ``url + "/v1"`` for the OpenAI client), to
    threads of its own; :attr:`requests` keeps what came.

    ``window`` is the context window in tokens of every model, or of models by name (the longest name that the model's
    begins with counts; ``""`` for all others; 1,000,000 where nothing is said). ``limits`` replace those of a
    provider: a mapping from its name to fields of :class:`Limits`. ``script`` is what is answered, one line for each
    request that is not only counting; behind its end the answer is ``ok``.
    """

    def __init__(
        self,
        window: int | Mapping[str, int] | None = None,
        script: Iterable[Line] = (),
        limits: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self._windows = {"": window} if isinstance(window, int) else dict(window or {})
        self._limits: dict[str, Limits] = {
            name: replace(module.LIMITS, **(limits or {}).get(name, {})) for name, module in PROVIDERS.items()
        }
        self._script: Iterator[Line] = iter(script)
        self._lock = threading.Lock()
        self._server: Server | None = None
        self.requests: list[Request] = []

    @property
    def url(self) -> str:
        """The base of the local server, ``http://127.0.0.1:<port>``."""
        if self._server is None:
            raise RuntimeError("the judge serves inside `with Judge() as judge:` only")
        return self._server.url

    @property
    def refusals(self) -> list[Request]:
        """The requests that were refused."""
        return [request for request in self.requests if request.status >= 400]

    def __enter__(self) -> Judge:
        self._server = Server(self)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    def window(self, model: str) -> int:
        """The context window of a model, in tokens."""
        bare = model.rpartition("/")[2]
        names = [name for name in self._windows if bare.startswith(name)]
        return self._windows[max(names, key=len)] if names else 1_000_000

    def check(self, provider: str, body: Any, model: str | None = None) -> tuple[int, Object] | None:
        """``None`` if the provider would accept the request, else the status and body of its refusal.

        ``provider`` is ``anthropic``, ``openai_chat``, ``openai_responses`` or ``gemini``; ``model`` is needed for
        Gemini, whose requests name it in the address. Raises ``ValueError`` for an unknown provider.
        """
        try:
            self.count(provider, body, model)
        except Refused as refused:
            return refused.status, PROVIDERS[provider].error(refused)
        return None

    def count(self, provider: str, body: Any, model: str | None = None, counting: bool = False) -> int:
        """The input tokens of a request that is accepted; raises :class:`Refused`."""
        if provider not in PROVIDERS:
            raise ValueError(f"unknown provider {provider!r}; known are {', '.join(PROVIDERS)}")
        limits = self._limits[provider]
        size = check_json(body)
        if size > limits.request_bytes:
            raise _too_large(provider, limits)
        if not is_object(body):
            raise Refused("The request body is not a JSON object")
        model = model if model is not None else str(body.get("model") or "")
        used: int = PROVIDERS[provider].check(body, model.lower(), self.window(model), limits, counting)
        return used

    def next_line(self, request: Request) -> Reply | Refuse:
        """What the script says to this request."""
        with self._lock:
            line = next(self._script, "ok")
        if callable(line):
            line = line(request)
        return Reply(line) if isinstance(line, str) else line

    def keep(self, request: Request) -> int:
        """Remember a request; its number."""
        with self._lock:
            self.requests.append(request)
            return len(self.requests)


def _too_large(provider: str, limits: Limits) -> Refused:
    if provider == "gemini":
        return Refused(f"Request payload size exceeds the limit: {limits.request_bytes} bytes.")
    if provider == "anthropic":
        return Refused("Request exceeds the maximum size", 413)
    return Refused("Request body is too large", 413, code="request_too_large")
