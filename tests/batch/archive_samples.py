"""Archives for the tests: small sessions, and what a folder of pages holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def said(number: int, turns: int = 3) -> list[dict[str, Any]]:
    """An Anthropic message list with calls and results, different for each number."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"Session {number}: look after the harbour."}]
    for turn in range(turns):
        call = {"type": "tool_use", "id": f"t{turn}", "name": "Bash", "input": {"command": f"ls {number} {turn}"}}
        text = "\n".join(f"berth {number} {turn} {line}: free\t{line * 37 % 11}" for line in range(120))
        messages.append({"role": "assistant", "content": [{"type": "text", "text": "Next."}, call]})
        result = {"type": "tool_result", "tool_use_id": f"t{turn}", "content": text}
        messages.append({"role": "user", "content": [result]})
    return messages


def archive(folder: Path, sessions: int = 8) -> Path:
    """A folder of session files, a folder in it included."""
    (folder / "deep").mkdir(parents=True)
    for number in range(sessions):
        place = folder / "deep" if number % 3 == 0 else folder
        (place / f"session-{number}.json").write_text(json.dumps(said(number)))
    return folder


def tree(folder: Path) -> dict[str, bytes]:
    """Every file under a folder, hidden ones too, with its bytes."""
    return {str(each.relative_to(folder)): each.read_bytes() for each in sorted(folder.rglob("*")) if each.is_file()}
