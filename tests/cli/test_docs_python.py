"""Every block of Python in the docs runs, and none is left out.

The blocks of a page are one program, run in a process of its own with the official clients before the judge.
``BEFORE`` is what the page takes for granted, ``BETWEEN`` stands between its blocks, ``AFTER`` is what must hold then.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import test_docs_run as docs
from microfiche.testing import Judge, Refuse, Reply
from microfiche.testing.replies import Line

if TYPE_CHECKING:
    from test_docs_run import Run

CALL = Reply("I look.", calls=(("read_file", {"path": "src/queue.py"}),))
LINES = "\n".join(f"- fact: file {turn} was read (turn {turn})" for turn in range(2, 30))
SCRIPTS: dict[str, list[Line]] = {
    "conversation": [*[CALL] * 8, Refuse(), *[CALL] * 8, "It was the queue."],
    "clients": [Refuse(), "It was the queue.", *[LINES] * 9],
    "summaries": [LINES] * 9,
}

LONG = 'messages = builders.rounds(150, 4_500).user("And what now?").native("anthropic")\n'
CLIENT = "from anthropic import Anthropic\nclient = Anthropic(max_retries=0)\n"
RUN = """
def run(call):
    assert call.name == "read_file"
    return {"type": "tool_result", "tool_use_id": call.id, "content": builders.code(len(call.id), 4_500)}
"""

BEFORE = {
    "audit": f"""
import microfiche as mf
from anthropic.types import ToolUseBlock
{RUN}
with mf.Record.open("work.mf") as record:
    chat = record.conversation("triage")
    chat.append({{"role": "user", "content": "Mind that the replica lags by an hour."}})
    chat.append({{"role": "assistant", "content": "I shall."}})
    chat.append(messages)
    fit = chat.context(model="claude-opus-5", budget=20_000, max_tokens=1_000, tools=TOOLS)
    assert fit.pages
    entry = chat.append({{"role": "assistant", "content": "It is mended."}}, context=fit)[-1]
calls = [
    ToolUseBlock(id="t1", type="tool_use", name="recall", input={{"turn": 1}}),
    ToolUseBlock(id="t2", type="tool_use", name="read_file", input={{"path": "a.py"}}),
]
""",
    "clients": "",
    "compact": "",
    "conversation": CLIENT + RUN,
    "rerender": """
import os
import pyarrow, pyarrow.parquet
rows = {"session": ["a"], "text": [open("archive/session.jsonl").read()]}
text = rows["text"][0]
os.mkdir("sessions")
pyarrow.parquet.write_table(pyarrow.table(rows), "sessions/a.parquet")
""",
    "summaries": CLIENT + "plan = None\n" + LONG,
}

BETWEEN = {"clients": LONG}

AFTER = {
    "audit": """
assert seen.proven and seen.redrawn and len(seen.pages) >= 1
assert any(part.form == "page" for part in audit.not_considered(entry))
(way,) = audit.trace(text="the replica lags by an hour")
assert [link.kind for link in audit.evidence(claim).links] == ["query", "execution"]
assert [result["tool_use_id"] for result in results] == ["t1", "t2"] and "the replica" in str(results[0])
record.close()
""",
    "clients": """
assert answer.content[0].text == "It was the queue." and send.context.plan
assert fit.receipt.summaries and fit.tokens <= 120_000
""",
    "compact": "assert answer.content",
    "conversation": """
assert answer.content[0].text == "It was the queue."
assert len(list(record.entries(conversation="triage"))) >= 50
assert said.done and said.value.plan
assert chat.learnt("claude-opus-5")
record.close()
""",
    "rerender": """
assert total.drawn == 1 and total.pages >= 2 and not total.failed
assert page["page"] >= 2 and page["png"].startswith(b"\\x89PNG")
made = pyarrow.parquet.read_table("drawn/part-0.parquet").to_pylist()
assert [each["page"] for each in made] == list(range(1, page["page"] + 1)) and made[-1]["digest"] == page["digest"]
""",
    "summaries": "assert fit.receipt.summaries and fit.receipt.summary_calls >= 1 and fit.tokens <= 120_000",
}

ELSEWHERE = {"quickstart", "cells", "fonts", "recover", "render"}
"""Pages whose blocks run in ``test_docs_run`` and ``test_cli_docs``, which also runs the README's first."""


@pytest.mark.parametrize("page", sorted(BEFORE))
def test_the_python_of_a_page_runs(run: Run, folder: Path, page: str) -> None:
    if page == "compact":
        assert run("compact", "session.jsonl", "--model", "claude-opus-5", "--budget", "20k", "--out", "out").code == 0
    if page == "rerender":
        pytest.importorskip("pyarrow")
        (folder / "archive").mkdir()
        shutil.move("session.jsonl", folder / "archive")
    code = BETWEEN.get(page, "").join(block for _, block in docs.blocks(page))
    with Judge(script=SCRIPTS.get(page, [])) as judge:
        docs.runs(f"{BEFORE[page]}\n{code}\n{AFTER[page]}", judge)
        assert len(judge.refusals) == sum(isinstance(line, Refuse) for line in SCRIPTS.get(page, []))
        assert page in ("audit", "rerender") or judge.requests[-1].status == 200


def test_no_block_of_python_is_left_out() -> None:
    for page in sorted(docs.DOCS.glob("*.md")):
        there = re.findall(r"^ *(?:```|~~~) *(?:python|py|pycon)\b", page.read_text("utf-8"), re.MULTILINE)
        assert len(there) == len(list(docs.blocks(page.stem))), page.name
        assert bool(there) == (page.stem in ELSEWHERE | BEFORE.keys()), page.name
