"""``audit``: the reviewer's report, as text and as data."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import microfiche as mf
import pytest
from conftest import Ran
from microfiche.conversation import Record

Run = Callable[..., Ran]

GOLDEN = Path(__file__).parents[1] / "data" / "golden" / "0.1.mf"


def test_the_report_names_every_turn_and_every_pass(run: Run, work: Path) -> None:
    assert run("compact", work, "--model", "claude-opus-5", "--budget", "20k").code == 0
    ran = run("audit", work)
    assert ran.code == 0, ran.err
    with Record.open(work, read_only=True) as record:
        chat = record.conversation(record.conversations()[0].name)
        turns = {entry.turn for entry, _ in chat.state().messages}
        passes = [entry.id for entry in chat.state().events]
    lines = ran.text.split("\n")
    assert turns <= {int(line.split()[0]) for line in lines if line.split()[:1] and line.split()[0].isdigit()}
    assert all(any(line.split()[:1] == [str(id)] and "compaction" in line for line in lines) for id in passes)
    data = json.loads(run("audit", work, "--json").text)
    assert data["sound"] and {turn["number"] for turn in data["turns"]} == turns
    assert [event["entry"] for event in data["events"] if event["kind"] == "compaction"] == passes


def test_at_a_pass_it_says_what_was_not_seen(run: Run, work: Path) -> None:
    assert run("compact", work, "--model", "claude-opus-5", "--budget", "20k").code == 0
    with Record.open(work, read_only=True) as record:
        event = record.conversation(record.conversations()[0].name).state().events[-1].id
    data = json.loads(run("audit", work, "--at", event, "--json").text)
    assert data["not_considered"] and data["seen"]
    assert "page" in {each["form"] for each in data["not_considered"]}
    assert run("audit", work, "--at", event).code == 0


def test_an_entry_that_is_not_there_is_named(run: Run, work: Path) -> None:
    ran = run("audit", work, "--at", 99_999)
    assert ran.code == 1 and "99999" in ran.err


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    return Path(shutil.copy(GOLDEN, tmp_path / "golden.mf"))


def call_of(record: Path) -> tuple[int, mf.auditing.Report]:
    """A call whose turn has claims, and the report on it."""
    with Record.open(record, read_only=True) as held:
        chat = held.conversation("golden")
        claim = next(each for each in held.entries(conversation="golden") if each.kind == "claim")
        turn = held.entry(claim.about or 0).turn
        call = next(e for e, m in chat.state().messages if e.turn == turn and m.role == "assistant")
        return call.id, mf.audit(chat).report(call)


def test_text_html_and_json_tell_the_same(run: Run, golden: Path, tmp_path: Path) -> None:
    at, report = call_of(golden)
    ask = ("audit", golden, "--name", "golden", "--at", at)
    data = json.loads(run(*ask, "--json").text)
    text = run(*ask).text
    written = run(*ask, "--html", tmp_path / "report.html")
    assert written.out == b"" and "Wrote" in written.err
    html = (tmp_path / "report.html").read_text("utf-8")
    assert report.seen is not None and report.seen.proven and report.holds
    assert data["at"] == data["seen"]["entry"] == at
    digests = {page["digest"] for event in data["events"] for page in event["told"].get("pages", ())}
    digests |= {page["digest"] for page in data["seen"]["pages"]}
    assert len(digests) > 5
    for word in (data["head"]["root"], report.seen.recorded, *digests):
        assert word in text and word in html
    for claim in data["evidence"]:
        assert claim["text"] in text and claim["text"] in html and claim["links"]
        for link in claim["links"]:
            assert f"golden.html#e{link['entry']}" in html
    assert [each["claim"] for each in data["evidence"]] == [each.claim for each in report.evidence] != []
    for event, _, parts in report.since():
        assert f"since entry {event} " in text and f"golden.html#e{event}" in html
        assert sum(each["event"] == event for each in data["not_considered"]) == len(parts)
    assert html.count("data:image/png;base64,") == len(report.seen.pages)
    # What stood and what was reduced are all that had been said on the path.
    reduced = {part.key for part in report.not_considered if part.key.inner < 0}
    assert sum(each.verbatim for each in report.stood) + len(reduced) >= len(report.stood)
    for each in report.stood:
        assert sum(each.forms.values()) == sum(part.turn == each.turn for part in report.not_considered)


def test_the_report_in_html_runs_nothing_and_loads_nothing(run: Run, tmp_path: Path) -> None:
    evil = "</td><script>alert(1)</script><img src=x onerror=alert(1)>\u202e"
    with Record.open(tmp_path / "evil.mf") as record:
        chat = record.conversation(evil)
        chat.append({"role": "user", "content": evil})
        chat.pin(evil)
        chat.claim(evil, rests_on=[("check", 1)])
        chat.fail(RuntimeError(evil))
    assert run("audit", tmp_path / "evil.mf", "--html", tmp_path / "evil.html", "--view", "a b/<v>.html").code == 0
    html = (tmp_path / "evil.html").read_text("utf-8")
    assert "<pre>microfiche verify evil.mf --head " in html
    assert "<script" not in html and "<img" not in html and "\u202e" not in html
    assert "default-src 'none'" in html and "script-src" not in html
    assert {each.partition("#")[0] for each in re.findall(r'href="([^"]*)"', html)} == {"", "a%20b/%3Cv%3E.html"}


def test_what_does_not_hold_is_said_by_the_exit_code(run: Run, golden: Path, tmp_path: Path) -> None:
    size, root = run("verify", golden).text.splitlines()[1].split()[1].split(":")
    ask = ("audit", golden, "--name", "golden")
    held = run(*ask, "--head", f"{size}:{root}")
    assert held.code == 0 and "1 kept elsewhere fits" in held.text
    wrong = run(*ask, "--head", f"{size}:{'0' * 64}", "--html", tmp_path / "report.html")
    assert wrong.code == 3
    assert "NOT SOUND" in (tmp_path / "report.html").read_text("utf-8")
    assert run(*ask, "--html", tmp_path / "r.html", "--json").code == 2
    assert run(*ask, "--view", "x.html").code == 2
    assert run(*ask, "--heads", tmp_path / "none.heads").code == 1
