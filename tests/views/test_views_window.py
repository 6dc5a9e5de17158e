"""What fills the window adds up, whatever the wire, the model and the budget."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import microfiche as mf
import pytest
from microfiche import formats
from microfiche.conversation import Conversation, Record
from microfiche.models import Ruler, find
from microfiche.transfer import import_history
from microfiche.views.window import KINDS, composition

SESSIONS = Path(__file__).parents[1] / "data" / "sessions"
TOOLS = [{"name": "Bash", "description": "Runs a command.", "input_schema": {"type": "object"}}]


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Conversation]:
    with Record.open(tmp_path_factory.mktemp("window") / "work.mf") as record:
        history = formats.read((SESSIONS / "harbour.claude-code.jsonl").read_bytes())
        made = import_history(record, history, "harbour").conversation
        made.pin("Heights are in centimetres.", kind="definition")
        yield made


def spent(chat: Conversation, **options: Any) -> tuple[mf.Context, dict[str, int]]:
    made = chat.preview(**options)
    return made, composition(made, chat.state().history(made.receipt.format).pins)


@pytest.mark.parametrize("wire", formats.WIRES)
@pytest.mark.parametrize("budget", [25_000, 40_000, 400_000])
def test_the_sum_is_the_estimate(chat: Conversation, wire: str, budget: int) -> None:
    made, by = spent(chat, model="claude-opus-5", budget=budget, format=wire, system="Be brief.")
    assert tuple(by) == KINDS and min(by.values()) >= 0
    assert sum(by.values()) == made.tokens <= budget
    assert by["learnt"] == 0 and by["summaries"] == 0
    ruler = Ruler(find("claude-opus-5"))
    assert ruler.text("Be brief.") <= by["system"] <= ruler.text("Be brief.") + 8
    assert by["pins"] >= ruler.text("Heights are in centimetres.")
    drawn = sum(page.tokens for page in made.pages)
    assert by["pages"] >= drawn and (by["pages"] > 0) == bool(made.pages)


def test_each_kind_grows_by_what_is_added(chat: Conversation) -> None:
    asked: dict[str, Any] = {"model": "claude-opus-5", "budget": 400_000, "format": "anthropic"}
    _, bare = spent(chat, **asked)
    _, tools = spent(chat, tools=TOOLS, **asked)
    _, system = spent(chat, system="x" * 1000, **asked)
    _, said = spent(chat, pending=[{"role": "user", "content": "y" * 1000}], **asked)
    for with_more, kind in ((tools, "tools"), (system, "system"), (said, "text")):
        assert {name for name in KINDS if with_more[name] != bare[name]} == {kind}
    assert tools["tools"] == Ruler(find("claude-opus-5")).tools(TOOLS)  # in place of stubs for the tools called
    assert system["system"] >= bare["system"] + 500 and said["text"] >= bare["text"] + 500


def test_images_of_tools_are_images_and_the_history_s_own_are_not_pages(chat: Conversation) -> None:
    made, by = spent(chat, model="claude-opus-5", budget=400_000, format="anthropic")
    ruler = Ruler(find("claude-opus-5"))
    images = [
        part
        for _, message in chat.state().messages
        for result in message.results
        for part in result.parts
        if type(part).__name__ == "Image"
    ]
    assert by["images"] == sum(ruler.part(image) for image in images) > 0 == by["pages"]
    assert made.tokens == sum(by.values())


def test_a_summary_has_a_row_of_its_own(tmp_path: Path) -> None:
    def summarize(request: Any) -> str:
        return f"decision: keep the tides in order [turns {request.turns[0]}-{request.turns[-1]}]"

    with Record.open(tmp_path / "work.mf") as record:
        made = record.conversation("long")
        made.append({"role": "user", "content": "Go."})
        for at in range(60):
            made.append({"role": "assistant", "content": f"step {at} " + "word " * 400})
            made.append({"role": "user", "content": f"and then {at}?"})
        fit, by = spent(made, model="deepseek-chat", budget=9_000, summarize=summarize, vision=False)
        assert sum(by.values()) == fit.tokens
        assert fit.plan.summaries and by["summaries"] > 0
