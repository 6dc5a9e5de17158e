"""What a record costs: in bytes for what is said, and for a pass no more than what the pass changed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import builders
import microfiche as mf
import pytest
from microfiche.conversation import Record

MODEL = "claude-haiku-4-5"


def session(first: int, rounds: int, characters: int) -> tuple[list[dict[str, Any]], int]:
    """Rounds of one call each, none like another; and how many characters of text they hold."""
    story = builders.Story()
    story.calls = first
    texts = [builders.code(at, characters) for at in range(first, first + rounds)]
    for at, text in enumerate(texts, first):
        story.uses(("read_file", {"path": f"src/{at}.py"}, text), text=f"Next I read {at}.")
    return story.native("anthropic"), sum(map(len, texts))


def size(record: Record) -> int:
    """Bytes of the file, with all that stood in its log."""
    with closing(sqlite3.connect(record.path)) as db:
        assert db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    return record.path.stat().st_size


def asked(record: Record, sql: str) -> list[Any]:
    with closing(sqlite3.connect(record.path)) as db:
        return db.execute(sql).fetchall()


@pytest.mark.parametrize("characters", [100_000, pytest.param(1_000_000, marks=pytest.mark.full)])
def test_a_session_takes_two_bytes_a_character_at_most(tmp_path: Path, characters: int) -> None:
    """Hashes, indexes, the search and a pass included; what is said again is not stored again."""
    with Record.open(tmp_path / "work.mf") as record:
        chat = record.conversation("triage")
        chat.append({"role": "user", "content": "Read all of it."})
        said, text = session(0, characters // 2_000, 2_000)
        assert 0.99 * characters < text <= characters
        chat.append(said)
        chat.compact(model=MODEL)
        once = size(record)
        assert once < 2 * characters + 100_000
        blobs = asked(record, "SELECT digest, size FROM blobs")
        assert len({digest for digest, _ in blobs}) == len(blobs) >= characters // 2_000
        # Each result comes a second time, by calls of their own: entries, and no blob.
        again, _ = session(0, characters // 2_000, 2_000)
        for message in again:
            for block in message["content"]:
                for key in ("id", "tool_use_id"):
                    if key in block:
                        block[key] = f"again_{block[key]}"
        chat.append(again)
        assert asked(record, "SELECT digest, size FROM blobs") == blobs
        assert size(record) - once < characters + 100_000
        assert record.verify()


@pytest.mark.parametrize("messages, passes", [(400, 8), pytest.param(10_000, 50, marks=pytest.mark.full)])
def test_a_pass_costs_what_it_changed_however_long_the_path(tmp_path: Path, messages: int, passes: int) -> None:
    """The same bounds for 400 messages and 10,000: no pixels, no copy of the history, each blob once."""
    with Record.open(tmp_path / "work.mf") as record:
        chat = record.conversation("triage")
        chat.append({"role": "user", "content": "Read all of it."})
        chat.append(session(0, messages // 2, 300)[0])
        policy = mf.Policy(tail_tokens=1_500)
        first = chat.compact(model=MODEL, policy=policy)
        assert len(first.pages) >= 3
        grown = 0
        for lap in range(passes):
            chat.append(session(messages + 4 * lap, 4, 1_200)[0])
            before, blobs = size(record), asked(record, "SELECT id, digest FROM blobs ORDER BY id")
            fit = chat.compact(model=MODEL, policy=policy)
            assert fit.pages
            grown += size(record) - before
            ((kind, payload),) = asked(record, "SELECT kind, payload FROM entries ORDER BY id DESC LIMIT 1")
            assert kind == "compaction" and len(payload) < 8_000
            # What the pass says is in its payload: the texts and the glyphs were there.
            assert asked(record, "SELECT id, digest FROM blobs ORDER BY id") == blobs
        assert len(chat.state().compactions) == passes + 1
        assert grown < passes * 8_000 + 20_000
        digests = [digest for _, digest in blobs]
        assert len(set(digests)) == len(digests)
        assert not any(record.blob(digest).startswith(b"\x89PNG") for digest in digests)
        assert record.verify()
