"""A document served to this machine's own browser, and to nobody else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HOST = "127.0.0.1"


@contextmanager
def serving(document: str, port: int = 0) -> Iterator[str]:
    """Serve one document on the loopback while the block runs; gives its address. Port 0 is a free one.

    Only requests that name this machine are answered: a page from elsewhere whose name was bent to this
    address cannot read it.
    """
    body = document.encode("utf-8")

    class Handler(BaseHTTPRequestHandler):
        server_version = "microfiche"
        sys_version = ""

        def do_GET(self) -> None:
            if self.headers.get("Host", "") not in names:
                self.send_error(403, "not this machine's name")
            elif self.path.partition("?")[0] != "/":
                self.send_error(404)
            else:
                self._send()

        do_HEAD = do_GET

        def _send(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Cross-Origin-Resource-Policy", "same-origin")
            self.send_header("Content-Security-Policy", "frame-ancestors 'none'")
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer((HOST, port), Handler) as server:
        own = server.server_address[1]
        names = {f"{HOST}:{own}", f"localhost:{own}"} | ({HOST, "localhost"} if own == 80 else set())
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://{HOST}:{own}/"
        finally:
            server.shutdown()
            thread.join()
