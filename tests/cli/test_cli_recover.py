"""A refused request or conversation made smaller from the command line, and what is told of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import microfiche as mf
import pytest
from conftest import Ran
from microfiche.conversation import Record

Run = Callable[..., Ran]
MODEL = "claude-opus-5"


@pytest.fixture
def refused(tmp_path: Path) -> Path:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Find the leak."}]
    for at in range(20):
        call = {"type": "tool_use", "id": f"t{at}", "name": "ask", "input": {"topic": f"leak {at}"}}
        text = " ".join(f"word{at}_{i}" for i in range(400))
        result = {"type": "tool_result", "tool_use_id": f"t{at}", "content": text}
        messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    path = tmp_path / "request.json"
    path.write_text(json.dumps({"model": MODEL, "max_tokens": 1_000, "messages": messages}))
    return path


def too_long(path: Path, share: float = 0.5) -> tuple[int, str]:
    """A window of a share of the request, and the refusal that tells it."""
    used = mf.count(json.loads(path.read_text()), model=MODEL)
    message = f"prompt is too long: {used} tokens > {int(share * used)} maximum"
    return int(share * used), json.dumps(
        {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    )


def test_a_refused_request_becomes_one_that_fits(run: Run, refused: Path, tmp_path: Path) -> None:
    window, error = too_long(refused)
    (tmp_path / "refusal.json").write_text(error)
    out = tmp_path / "out"
    ran = run("recover", refused, "--error", f"@{tmp_path}/refusal.json", "--model", MODEL, "--out", out)
    assert ran.code == 0, ran.err
    assert "after a refusal: send fewer input tokens" in ran.text
    request = json.loads((out / "context.json").read_text())
    assert mf.count(request, model=MODEL) + request["max_tokens"] <= window
    assert mf.validate(request) == []
    # The second refusal goes on with the plan of the first.
    again = run("recover", refused, "--again", "--plan", out / "plan.json", "--model", MODEL, "--out", out, "--json")
    assert again.code == 0 and json.loads(again.text)["after"]["tokens"] < mf.count(request, model=MODEL)


def test_a_budget_below_the_limit_is_explained(run: Run, refused: Path) -> None:
    used = mf.count(json.loads(refused.read_text()), model=MODEL)
    for counted, told in ((3 * used, True), (used, False)):
        error = f"prompt is too long: {counted} tokens > {counted // 2} maximum"
        ran = run("recover", refused, "--error", error, "--model", MODEL, "--dry-run")
        assert ran.code == 0, ran.err
        assert ("The provider counted 3.00 tokens for each one estimated" in ran.text) is told


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ((), "tokens"),
        (("--status", "413"), "bytes"),
        (("--error", "prompt is too long"), "tokens"),
        (("--error", "Too Large", "--status", "413"), "bytes"),
        (("--error", '{"error": {"code": "context_length_exceeded", "message": "no"}}'), "tokens"),
        (("--error", '{"stop_reason": "model_context_window_exceeded", "content": []}'), "silent"),
    ],
)
def test_a_dry_run_tells_the_refusal_and_writes_nothing(
    run: Run, refused: Path, words: tuple[str, ...], kind: str
) -> None:
    before = sorted(refused.parent.iterdir())
    ran = run("recover", refused, *words, "--model", MODEL, "--dry-run", "--json")
    assert ran.code == 0, ran.err
    told = json.loads(ran.text)
    assert told["refusal"]["kind"] == kind and told["files"] == []
    assert told["after"]["tokens"] < told["before"]["tokens"]
    assert sorted(refused.parent.iterdir()) == before


def test_standard_input_is_a_request_too(run: Run, refused: Path, tmp_path: Path) -> None:
    ran = run("recover", "-", "--model", MODEL, "--out", tmp_path / "out", stdin=refused.read_bytes())
    assert ran.code == 0 and "standard input" in ran.text


@pytest.mark.parametrize("error", ["Rate limit reached", "overloaded", "@nowhere.json", ""])
def test_another_error_is_not_cured(run: Run, refused: Path, error: str) -> None:
    words = ("--status", "500") if not error else ()
    ran = run("recover", refused, "--error", error, *words, "--model", MODEL, "--dry-run")
    assert ran.code == 1 and len(ran.err.splitlines()) == 1


def test_a_record_keeps_the_refusal_and_what_it_taught(run: Run, work: Path, tmp_path: Path) -> None:
    words = ("recover", work, "--error", "prompt is too long: 40000 tokens > 20000 maximum", "--model", MODEL)
    with Record.open(work, read_only=True) as held:
        before = held.head
    dry = run(*words, "--dry-run", "--json")
    assert dry.code == 0, dry.err
    with Record.open(work, read_only=True) as held:
        assert held.head == before
    ran = run(*words, "--json", "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    assert json.loads(ran.text)["after"] == json.loads(dry.text)["after"]
    with Record.open(work, read_only=True) as held:
        chat = held.conversation("harbour")
        assert chat.state().events[-1].payload["why"] == "refusal"
        assert held.entry(json.loads(ran.text)["entry"]).kind == "compaction"
        assert (chat.learnt(MODEL).budget or 0) <= 20_000
    window = json.loads(run("context", work, "--model", MODEL, "--json").text)
    assert window["tokens"] <= 20_000 and not window["pass_due"]
    assert run(*words).code == 0
    third = run(*words)
    assert third.code == 1 and "refused three times in a row" in third.err


@pytest.mark.parametrize("option", [("--plan", "x"), ("--from", "atif"), ("--again",)])
def test_what_a_record_knows_by_itself_is_refused(run: Run, work: Path, option: tuple[str, ...]) -> None:
    ran = run("recover", work, "--model", MODEL, "--dry-run", *option)
    assert ran.code == 2 and "is not for a record" in ran.err


def test_wrong_usage(run: Run, refused: Path) -> None:
    assert run("recover", refused, "--model", MODEL).code == 2
    assert run("recover", refused, "--model", MODEL, "--dry-run", "--name", "x").code == 2
    assert run("recover", refused, "--model", MODEL, "--dry-run", "--status", "9").code == 2
