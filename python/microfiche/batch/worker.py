"""The processes that draw: a line of JSON in for each session, one out when its pages are written.

A worker ends when its input does, so none outlives a run that is killed, and an end of its own (a session that
takes more memory than there is) costs one session.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from microfiche.errors import MicroficheError
from microfiche.pages.render import series

from .journal import Drawn
from .rows import Look, SessionRow, fault, load, page_row
from .sources import Key


def draw(look: Look, key: Key, folder: Path, threads: int = 1) -> Drawn:
    """Write the pages of a session into a new folder. Its parent is not made: who is alone must not leave anything."""
    row: SessionRow = {"session": key.conversation or key.path, "path": key.path, "conversation": key.conversation}
    pages = list(look.pages(load(row), threads))
    folder.mkdir()
    rows: list[dict[str, Any]] = []
    for name, (page, tokens) in zip(series("page", (page.number for page, _ in pages)), pages, strict=True):
        (folder / name).write_bytes(page.png)
        told: dict[str, Any] = {**page_row("", "", page, tokens), "file": name}
        rows.append({name: value for name, value in told.items() if name not in ("session", "model", "png", "error")})
    return Drawn(sum(len(page.text) for page, _ in pages), rows)


class Worker:
    """A process that draws sessions in one look, begun again where it ended by itself."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._process: subprocess.Popen[bytes] | None = None

    def draw(self, key: Key, folder: Path) -> Drawn:
        """What :func:`draw` does, there; :class:`MicroficheError` with the fault of a session that cannot be drawn."""
        process = self._process if self._process is not None else self._begin()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(_line({"path": key.path, "conversation": key.conversation, "folder": str(folder)}))
            process.stdin.flush()
            answer = process.stdout.readline()
        except BrokenPipeError:
            answer = b""
        if not answer:
            self.close()
            raise MicroficheError(f"the process that drew it ended ({process.returncode})", key.path)
        told = json.loads(answer)
        if "error" in told:
            raise MicroficheError(told["error"])
        return Drawn(told["characters"], told["pages"])

    def _begin(self) -> subprocess.Popen[bytes]:
        program = "from microfiche.batch.worker import main; main()"
        # Modules are found there as they are here.
        path = os.pathsep.join(each for each in sys.path if each)
        self._process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
        )
        assert self._process.stdin is not None
        self._process.stdin.write(_line(asdict(self._look)))
        return self._process

    def stop(self) -> None:
        """End the process, whatever it is at, from any thread."""
        process = self._process
        if process is not None:
            process.kill()

    def close(self) -> None:
        """End the process and let go of it."""
        if self._process is not None:
            self._process.kill()
            with suppress(OSError), self._process:
                pass
            self._process = None


def main() -> None:
    """What a worker runs."""
    # The run that began it decides what an interruption means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    told = json.loads(sys.stdin.buffer.readline())
    look = Look(**{**told, "font": tuple(told["font"])})
    for line in sys.stdin.buffer:
        task = json.loads(line)
        try:
            answer: dict[str, Any] = asdict(draw(look, Key(task["path"], task["conversation"]), Path(task["folder"])))
        except Exception as error:
            answer = {"error": fault(error)}
        sys.stdout.buffer.write(_line(answer))
        sys.stdout.buffer.flush()


def _line(value: Any) -> bytes:
    return json.dumps(value).encode("ascii") + b"\n"
