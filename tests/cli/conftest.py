"""The commands as a shell runs them: arguments and bytes in, exit code and bytes out."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from microfiche.cli import main

SESSIONS = Path(__file__).parents[1] / "data" / "sessions"


@dataclass(frozen=True)
class Ran:
    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Runs a command line; ``stdin`` is what it reads from standard input."""

    def run(*args: object, stdin: bytes = b"") -> Ran:
        streams = {name: io.TextIOWrapper(io.BytesIO(data), "utf-8") for name, data in
                   (("stdin", stdin), ("stdout", b""), ("stderr", b""))}  # fmt: skip
        with monkeypatch.context() as patch:
            for name, stream in streams.items():
                patch.setattr(sys, name, stream)
            with pytest.raises(SystemExit) as ended:
                main([str(arg) for arg in args], prog_name="microfiche")
        for stream in streams.values():
            stream.flush()
        out, err = (streams[name].buffer.getvalue() for name in ("stdout", "stderr"))  # type: ignore[attr-defined]
        code = ended.value.code
        return Ran(code if isinstance(code, int) else 0, out, err.decode())

    return run


@pytest.fixture
def harbour() -> Path:
    """The sample session of the README: Claude Code, 41 turns."""
    return SESSIONS / "harbour.claude-code.jsonl"


@pytest.fixture
def moorings() -> Path:
    """A stream that begins with the assistant."""
    return SESSIONS / "moorings.stream.jsonl"


@pytest.fixture
def bulletin() -> Path:
    """A trajectory."""
    return SESSIONS / "bulletin.atif.json"


@pytest.fixture
def work(run: Callable[..., Ran], harbour: Path, tmp_path: Path) -> Path:
    """A record that holds the sample session as its only conversation, ``harbour``."""
    record = tmp_path / "work.mf"
    ran = run("import", harbour, record, "--name", "harbour")
    assert (ran.code, ran.err) == (0, "")
    return record


@pytest.fixture
def folder(tmp_path: Path, harbour: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a reader stands: with a session, a request, a text."""
    shutil.copy(harbour, tmp_path / "session.jsonl")
    (tmp_path / "notes.txt").write_text("Πειραιάς, then a line.\n" * 40, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def listing(directory: Path) -> dict[str, bytes]:
    """Every file of a directory, hidden ones too, with its bytes."""
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}
