"""What a wire said goes through a record and comes out as it came in."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path
from typing import Any

import builders
import pytest
from microfiche import formats
from record_lives import fresh

SAID = [
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
    {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "a"}, {"type": "refusal", "refusal": "b"}],
    },
    {"role": "assistant", "content": "as a string"},
]


def histories(wire: str) -> list[Any]:
    story = builders.Story().user("look at this", builders.png(40, 30, noise=1), "and say")
    story.uses(
        ("read_file", {"path": "a.py"}, "def main():\n" * 300),
        ("screenshot", {}, ("a screen", builders.png(300, 200, noise=2))),
        ("run", {"cmd": "false"}, "exit 1", True),
        thinking="first the file",
        text="reading",
    )
    story.says("done").says("twice").user("joined", joined=True).says("\ud83d lone")
    native = story.native(wire)
    return native + SAID if wire == "openai_responses" else native


@pytest.mark.parametrize("wire", builders.WIRES)
def test_identity_through_the_record(tmp_path: Path, wire: str) -> None:
    native = histories(wire)
    history = formats.read(native, wire)
    with fresh(tmp_path) as record:
        thread = record.thread("t")
        thread.append(history.messages)
        found = [entry.message for entry in thread.path()]
        assert found == history.messages
        assert formats.write(dataclasses.replace(history, messages=found))[0][formats.list_key(wire)] == native
        copy = thread.fork("f")
        assert [entry.message for entry in copy.path()] == history.messages
        assert record.verify(derived=True)


def test_a_picture_of_a_wire_is_kept_once(tmp_path: Path) -> None:
    picture = random.Random(1).randbytes(4000)
    with fresh(tmp_path) as record:
        for wire in builders.WIRES:
            story = builders.Story().user("see", picture).uses(("screenshot", {}, ("screen", picture)))
            record.thread(wire).append(formats.read(story.native(wire), wire).messages)
        assert {record.blob(digest) for entry in record.entries() for digest in entry.blobs} == {picture}
