"""What the pages for a task say runs: every command line in its order, every block of Python as it stands.

Python runs in a process of its own, as a reader would run it, with the official clients before the judge.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from microfiche.demo import NAME
from microfiche.testing import Judge

if TYPE_CHECKING:
    from conftest import Ran

    Run = Callable[..., Ran]

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TASKS = ("quickstart", "recover", "reviewer", "cells", "fonts")

PREAMBLE = """
import json
import builders
from microfiche import formats

TURNS = builders.rounds(30, 4_500).user("And what now?")
SYSTEM = "You look after a harbour."
text = "any text\\n" * 2000


def native(wire):
    return {"model": MODELS[wire], formats.list_key(wire): TURNS.native(wire), "tools": tools(wire)}


def tools(wire):
    return formats.tools.stubs(["read_file", "run", "screenshot"], wire)[0]


MODELS = {"anthropic": "claude-opus-5", "openai_chat": "gpt-5.6-sol", "openai_responses": "gpt-5.6-sol"}
messages, TOOLS = TURNS.native("anthropic"), tools("anthropic")
CONFIG = {"max_output_tokens": 2_000, "tools": tools("gemini")}
REQUESTS = {
    "Anthropic": native("anthropic") | {"max_tokens": 2_000},
    "OpenAI, Chat Completions": native("openai_chat") | {"max_completion_tokens": 2_000},
    "OpenAI, Responses": native("openai_responses") | {"max_output_tokens": 2_000},
    "Google": {"model": "gemini-3.6-flash", "contents": TURNS.native("gemini"), "config": CONFIG},
}
request = REQUESTS.get(HEADING)
"""


def commands(page: str) -> list[list[str]]:
    found = re.findall(r"^    (microfiche .*)$", (DOCS / f"{page}.md").read_text("utf-8"), re.MULTILINE)
    return [shlex.split(line)[1:] for line in found]


def blocks(page: str) -> Iterator[tuple[str, str]]:
    """The blocks of Python, each with the heading that it stands under."""
    text = (DOCS / f"{page}.md").read_text("utf-8")
    for piece in re.split(r"^##? ", text, flags=re.MULTILINE)[1:]:
        heading = piece.split("\n", 1)[0]
        for block in re.findall(r"^```python\n(.*?)^```$", piece, re.MULTILINE | re.DOTALL):
            yield heading, block


def runs(code: str, judge: Judge, heading: str = "") -> None:
    """Run code as a program of its own, with clients that find the judge where they find their provider."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "ANTHROPIC_API_KEY": "x", "ANTHROPIC_BASE_URL": judge.url,
        "OPENAI_API_KEY": "x", "OPENAI_BASE_URL": f"{judge.url}/v1",
        "GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": judge.url,
    }  # fmt: skip
    program = f"HEADING = {heading!r}\n{PREAMBLE}\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


def needs_font(page: str) -> None:
    """Skip the page on fonts where the one that it names is not installed."""
    if page == "fonts":
        pytest.importorskip("freetype")
        if not any("DejaVuSansMono" in str(each) for each in Path("/usr/share/fonts").rglob("*.ttf")):
            pytest.skip("the font that the page names is not installed")


@pytest.mark.parametrize("page", TASKS)
def test_the_commands_of_a_task_run_in_their_order(run: Run, folder: Path, page: str) -> None:
    needs_font(page)
    if page == "recover":
        ran = run("compact", "session.jsonl", "--model", "claude-opus-5", "--budget", "100k", "--out", "whole")
        assert ran.code == 0
        (folder / "whole" / "context.json").rename(folder / "request.json")
    if page == "reviewer":
        assert run("demo").code == 0
    lines = [words for words in commands(page) if words[0] != "demo" or page != "reviewer"]
    assert len(lines) >= 1
    for words in lines:
        ran = run(*words)
        assert ran.code == 0, (words, ran.err)
        if "--out" in words:
            assert (folder / words[words.index("--out") + 1]).exists()


@pytest.mark.parametrize("page", ["quickstart", "cells", "fonts"])
def test_the_code_of_a_task_runs(folder: Path, page: str) -> None:
    needs_font(page)
    code = [block for _, block in blocks(page)]
    assert code
    with Judge() as judge:
        runs("\n".join(code), judge)


@pytest.mark.parametrize("heading", ["Anthropic", "OpenAI, Chat Completions", "OpenAI, Responses", "Google"])
def test_each_official_client_recovers_in_the_lines_shown(heading: str) -> None:
    (block,) = [block for under, block in blocks("recover") if under == heading]
    with Judge(window=36_000) as judge:
        runs(
            f"{block}\nimport microfiche as mf\nassert answer is not None and mf.refusal(answer) is None",
            judge,
            heading,
        )
        assert len(judge.refusals) >= 1 and judge.requests[-1].status == 200
        assert judge.requests[-1].tokens <= 36_000
    assert len(judge.refusals) <= 2


def test_what_a_refusal_tells_is_as_shown() -> None:
    (block,) = [block for under, block in blocks("recover") if under == "What happens"]
    with Judge() as judge:
        runs(block, judge)


def test_the_reviewers_guide_is_about_what_the_demonstration_leaves(run: Run, folder: Path) -> None:
    assert run("demo").code == 0
    record = f"microfiche-demo/{NAME}.mf"
    said = run("show", record, 24, "--name", NAME).text
    assert "entry 84" in said and "frost guard" in said
    report = run("audit", record, "--name", NAME, "--at", 84).text
    for words in ("What the call of entry 84 saw", "What it did not see word for word", "proven by its digest"):
        assert words in report
    claims = run("audit", record, "--name", NAME, "--at", 74).text.split("Claims of this turn")[1]
    assert "the vents stay shut below 2 degrees" in claims and "check message" in claims
    assert run("show", record, "--removed", 77, "--name", NAME).text


def test_every_document_is_linked_from_the_readme_and_the_index_for_models() -> None:
    for index in ("README.md", "llms.txt"):
        text = (ROOT / index).read_text("utf-8")
        linked = set(re.findall(r"\]\(((?:docs/)?\w[\w-]*\.md)\)", text))
        for page in sorted(DOCS.glob("*.md")):
            assert f"docs/{page.name}" in linked, (index, page.name)
        for target in linked:
            assert (ROOT / target).exists(), (index, target)


def test_the_picture_of_a_page_is_what_the_command_draws() -> None:
    pillow = pytest.importorskip("PIL.Image")
    spec = importlib.util.spec_from_file_location("make_pictures", DOCS / "make_pictures.py")
    assert spec is not None and spec.loader is not None
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    with pillow.open(maker.PICTURE) as kept:
        assert kept.convert("L").tobytes() == maker.picture().convert("L").tobytes(), "python docs/make_pictures.py"
    assert "](docs/images/page.png)" in (ROOT / "README.md").read_text("utf-8")
