"""Text and sessions of a given size for the benches: plausible agent work, the same on every run."""

from __future__ import annotations

import json
import random
from typing import Any

_WORDS = (
    "index queue buffer parse token stream cache merge branch commit render layout cell glyph page strip "
    "filter encode decode header offset length verify proof record entry turn label budget window limit "
    "price model"
).split()


def code(characters: int, seed: int = 1) -> str:
    """Source-code-like text of exactly so many characters."""
    random_ = random.Random(seed)
    lines: list[str] = []
    size = 0
    while size < characters:
        words = [random_.choice(_WORDS) for _ in range(random_.randint(2, 9))]
        indent = random_.choice(("", "    ", "        ", "\t", "\t\t"))
        line = random_.choice(
            (
                f"{indent}{words[0]}_{words[1]} = {words[-1]}({', '.join(words[2:5])})",
                f"{indent}if {words[0]} is not {words[1]}:  # {' '.join(words)}",
                f'{indent}{{"{words[0]}": "{random_.getrandbits(48):012x}", "n": {random_.randint(0, 99999)}}}',
                f"{random_.randint(1, 2000):>6}\t{indent}return self.{words[0]}.{words[1]}[{words[-1]}]",
                "",
            )
        )
        lines.append(line)
        size += len(line) + 1
    return "\n".join(lines)[:characters]


def session(characters: int, seed: int = 1) -> list[dict[str, Any]]:
    """An Anthropic message list whose tool results hold about so many characters: reads, runs, edits, some failures."""
    random_ = random.Random(seed)
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Make the parser faster and keep its tests green."}]
    size = 0
    number = 0
    while size < characters:
        number += 1
        path = f"src/{random_.choice(_WORDS)}/{random_.choice(_WORDS)}.py"
        kind = random_.choice(("Read", "Bash", "Bash", "Edit"))
        arguments = {
            "Read": {"file_path": path},
            "Bash": {"command": f"python -m pytest {path} -x --{random_.choice(_WORDS)}"},
            "Edit": {"file_path": path, "old_string": code(80, number), "new_string": code(120, number + 1)},
        }[kind]
        result = code(random_.randint(200, 12_000), seed * 1_000_003 + number)
        size += len(result)
        identifier = f"toolu_{number:06d}"
        messages.append(
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": f"Next I look at {path}."},
                    {"type": "tool_use", "id": identifier, "name": kind, "input": arguments},
                ],
            }
        )
        failed = random_.random() < 0.05
        block = {"type": "tool_result", "tool_use_id": identifier, "content": result}
        messages.append({"role": "user", "content": [block | ({"is_error": True} if failed else {})]})
    return messages


def session_lines(characters: int, seed: int = 1) -> bytes:
    """The same session as a Claude Code session file."""
    parent = None
    lines = []
    for at, message in enumerate(session(characters, seed)):
        uuid = f"00000000-0000-4000-8000-{at:012d}"
        line: dict[str, Any] = {"parentUuid": parent, "isSidechain": False, "type": message["role"], "uuid": uuid}
        line["sessionId"] = "11111111-1111-4111-8111-111111111111"
        line["message"] = message if message["role"] == "user" else {"id": f"msg_{at}", **message}
        lines.append(json.dumps(line))
        parent = uuid
    return "\n".join(lines).encode()
