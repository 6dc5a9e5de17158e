"""The local server in front of the judge: routes, headers, whole and streamed answers."""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from . import anthropic, gemini, openai_chat, openai_responses
from .replies import COUNTED, Refuse, Request, speak, stream
from .rules import Object, Refused, is_object, parse

if TYPE_CHECKING:
    from .judge import Judge

_ROUTES = (
    (re.compile(r"/v1/messages(?P<count>/count_tokens)?"), "anthropic"),
    (re.compile(r"(?:/v1)?/chat/completions"), "openai_chat"),
    (re.compile(r"(?:/v1)?/responses"), "openai_responses"),
    (
        re.compile(
            r"/v1(?:beta|alpha)?/models/(?P<model>[^:]+):(?:(?P<count>countTokens)|(?P<stream>stream)?[gG]enerateContent)"
        ),
        "gemini",
    ),
)
_ERRORS = {
    "anthropic": anthropic.error,
    "openai_chat": openai_chat.error,
    "openai_responses": openai_responses.error,
    "gemini": gemini.error,
}
_KEYS = {"anthropic": ("x-api-key", "authorization"), "gemini": ("x-goog-api-key",)}


class Server:
    """Serves on a free port of the loopback address until closed."""

    def __init__(self, judge: Judge) -> None:
        handler = type("Handler", (_Handler,), {"judge": judge})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening and wait for the thread."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    judge: Judge
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Tests keep their output to themselves; what came stands in the judge's requests."""

    def do_POST(self) -> None:
        path, _, query = self.path.partition("?")
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        for pattern, provider in _ROUTES:
            if found := pattern.fullmatch(path):
                told = found.groupdict()
                self._answer(
                    provider, raw, unquote(told.get("model") or ""), bool(told.get("count")), bool(told.get("stream"))
                )
                return
        self._send(404, {"error": {"message": f"no such address: {path}?{query}"}})

    def _answer(self, provider: str, raw: bytes, model: str, counting: bool, streamed: bool) -> None:
        body: Any = None
        used, status = 0, 200
        try:
            if not any(self.headers.get(name) for name in _KEYS.get(provider, ("authorization",))):
                raise Refused("no API key was given", 401)
            body = parse(raw)
            if counting and provider == "gemini":
                body = _counted(body, model)
            name = model or (str(body.get("model")) if is_object(body) else "")
            used = self.judge.count(provider, body, name, counting)
            streamed = streamed or body.get("stream") is True
            if counting:
                answer: Object = COUNTED[provider](used)
            else:
                asked = Request(provider, name, body, 0, None, used)
                line = self.judge.next_line(asked)
                if isinstance(line, Refuse):
                    raise Refused(line.message, line.status, **line.fields)
                answer = speak(provider, line, name, used, len(self.judge.requests))
        except Refused as refused:
            status, answer, streamed = refused.status, _ERRORS[provider](refused), False
        name = model or (str(body.get("model")) if is_object(body) else "")
        self.judge.keep(Request(provider, name, body, status, answer, used, counting))
        if streamed:
            self._stream(provider, answer)
        else:
            self._send(status, answer)

    def _send(self, status: int, answer: Object) -> None:
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.send_header("request-id", "req_judge")
        # The clients wait and try again on some statuses; a test wants the first word.
        self.send_header("x-should-retry", "false")
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, provider: str, answer: Object) -> None:
        lines = []
        for name, data in stream(provider, answer):
            lines.append(f"event: {name}\n" if name else "")
            lines.append(f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n")
        data = "".join(lines).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _counted(body: Any, model: str) -> Any:
    """The request inside one that counts, which names its model once more."""
    if not is_object(body):
        return body
    inner = body.get("generateContentRequest")
    inner = dict(inner) if is_object(inner) else dict(body)
    inner.pop("model", None)
    return inner
