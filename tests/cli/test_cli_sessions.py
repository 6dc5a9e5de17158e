"""The sample sessions come out of their script to the byte, and are what the docs say they are."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from conftest import listing
from microfiche import formats
from microfiche.messages import split_turns

DATA = Path(__file__).parents[1] / "data"


def test_the_script_makes_the_sessions(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("make_sessions", DATA / "make_sessions.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.main(tmp_path)
    assert listing(tmp_path) == listing(DATA / "sessions")


@pytest.mark.parametrize(
    "name, format, opens",
    [
        ("harbour.claude-code.jsonl", "claude_code", "user"),
        ("moorings.stream.jsonl", "claude_stream", "assistant"),
        ("bulletin.atif.json", "atif", "user"),
    ],
)
def test_each_is_read_whole_and_as_what_it_is(name: str, format: str, opens: str) -> None:
    history = formats.read((DATA / "sessions" / name).read_bytes(), where=name)
    head, turns = split_turns(history.messages)
    assert (history.format, history.messages[len(head)].role) == (format, opens)
    assert not any(turn.open_calls for turn in turns)
    assert any(len(message.calls) > 1 for message in history.messages)
    assert any(result.error for message in history.messages for result in message.results)
    assert not [note for note in history.notes if "left out" in note.what or "damaged" in note.what]
