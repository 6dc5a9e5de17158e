"""The demonstration: made whole, the same every time, and everything that it leaves says what it should."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import microfiche as mf
import pytest
from microfiche.demo import BUDGET, NAME, Clock, play

if TYPE_CHECKING:
    from conftest import Ran

    Run = Callable[..., Ran]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from click.testing import CliRunner
    from microfiche.cli import main

    folder = tmp_path_factory.mktemp("demo") / "here" / "demo"
    ran = CliRunner().invoke(main, ["demo", str(folder)])
    assert ran.exit_code == 0, ran.output
    (folder.parent / "said.txt").write_text(ran.output)
    return folder


def kinds(record: Path) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    with mf.Record.open(record, read_only=True) as held:
        for entry in held.entries(conversation=NAME):
            found.setdefault(entry.kind, []).append(entry)
    return found


def test_the_session_has_all_that_there_is_to_show(made: Path) -> None:
    found = kinds(made / f"{NAME}.mf")
    passes = found["compaction"]
    assert len(passes) >= 5
    assert {each.payload["why"] for each in passes} >= {"threshold", "refusal", "shake elide images"}
    assert all(each.payload["after"]["tokens"] <= BUDGET < each.payload["before"]["tokens"] for each in passes)
    assert [each.payload.get("kind") for each in found["failure"]] == ["tokens", None]
    assert "prompt is too long" in found["failure"][0].payload["what"]
    assert {each.payload["kind"] for each in found["pin"]} == {"definition", "question", "decision"}
    assert len(found["claim"]) == 2 and all(each.payload["rests_on"] for each in found["claim"])
    assert found["move"] and found["report"] and len(found["label"]) == 2
    messages = [each.message for each in found["message"]]
    assert any(len(each.results) >= 3 for each in messages), "parallel calls"
    pictures = [
        part
        for each in messages
        for result in each.results
        for part in result.parts
        if part.__class__.__name__ == "Image"
    ]
    assert len(pictures) == 3 and all((each.width, each.height) == (640, 352) for each in pictures)
    with mf.Record.open(made / f"{NAME}.mf", read_only=True) as held:
        assert [each.name for each in held.conversations()] == [NAME, "review"]
        assert held.verify() and held.verify(derived=True)


def test_contexts_of_every_call_are_proven(made: Path) -> None:
    with mf.Record.open(made / f"{NAME}.mf", read_only=True) as held:
        for name in (NAME, "review"):
            audit = mf.audit(held.conversation(name))
            told = [e for e in held.entries(conversation=name) if "context" in e.payload and e.kind != "failure"]
            assert len(told) >= 6
            for entry in told:
                assert audit.context_at(entry).proven, entry.id


def test_every_request_is_one_that_the_provider_takes(made: Path) -> None:
    body = json.loads((made / "out" / "context.json").read_text())
    assert mf.validate(body, "anthropic") == []
    assert {each["name"] for each in body["tools"]} >= {"run", "recall"}
    pages = sorted((made / "out").glob("page-*.png"))
    assert pages and "frost" in mf.read_back([each.read_bytes() for each in pages])
    session = json.loads((made / "session.json").read_text())
    assert mf.validate(session, "anthropic") == []
    fit = mf.compact(session, model="claude-opus-5", budget=BUDGET)
    assert fit.tokens <= BUDGET and fit.pages


def test_what_is_said_is_there(made: Path, run: Run) -> None:
    said = (made.parent / "said.txt").read_text()
    for line in re.findall(rf"^  ({re.escape(str(made))}\S*)", said, re.MULTILINE):
        assert Path(line).stat().st_size > 0
    commands = re.findall(r"^  microfiche (.+)$", said, re.MULTILINE)
    assert len(commands) == 5
    for line in commands:
        ran = run(*line.split(" "))
        assert ran.code == 0 and ran.out, line
    for name in (f"{NAME}.html", "report.html", "slides.html"):
        text = (made / name).read_text("utf-8")
        assert text.startswith("<!doctype html>") and "Content-Security-Policy" in text
    assert json.loads((made / "notebook.ipynb").read_text("utf-8"))["nbformat"] == 4
    assert "> **compaction**" in (made / "thread.md").read_text("utf-8")


def test_the_same_comes_out_every_time(made: Path, tmp_path: Path) -> None:
    with mf.Record.open(made / f"{NAME}.mf", read_only=True) as first:
        head = first.head
    with mf.Record.open(tmp_path / "again.mf", clock=Clock()) as again:
        play(again)
        assert again.head == head


def test_json_tells_it_too_and_a_folder_that_is_there_is_left_alone(run: Run, tmp_path: Path) -> None:
    ran = run("demo", tmp_path / "demo", "--json")
    told = json.loads(ran.text)
    assert ran.code == 0 and ran.err == ""
    assert told["files"] == sorted(
        str(p.relative_to(tmp_path / "demo")) for p in (tmp_path / "demo").rglob("*") if p.is_file()
    )
    assert told["tokens"]["now"] < told["tokens"]["whole"] and len(told["passes"]) >= 5
    before = sorted(tmp_path.rglob("*"))
    again = run("demo", tmp_path / "demo")
    assert (again.code, "is there already" in again.err) == (1, True)
    assert sorted(tmp_path.rglob("*")) == before
