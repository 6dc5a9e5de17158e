"""``microfiche compact``: the receipt, the files, and what happens when it cannot."""

from __future__ import annotations

import base64
import json
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import microfiche as mf
import pytest
from conftest import Ran, listing
from microfiche import formats
from microfiche.messages import Image

Run = Callable[..., Ran]
MODEL = "claude-opus-5"
BUDGET = 20_000


def context_of(out: Path) -> Any:
    return json.loads((out / "context.json").read_text("ascii"))


def receipt_of(out: Path) -> Any:
    return json.loads((out / "receipt.json").read_text("ascii"))


def images_in(value: Any) -> Iterator[bytes]:
    """The bytes of every inline image of an Anthropic request, in order."""
    if isinstance(value, dict):
        if value.get("type") == "base64":
            yield base64.b64decode(value["data"])
        for each in value.values():
            yield from images_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from images_in(each)


@pytest.fixture
def done(run: Run, harbour: Path, tmp_path: Path) -> tuple[Ran, Path]:
    out = tmp_path / "out"
    return run("compact", harbour, "--model", MODEL, "--budget", BUDGET, "--out", out), out


def test_the_context_fits_and_can_be_sent(done: tuple[Ran, Path]) -> None:
    ran, out = done
    assert (ran.code, ran.err) == (0, "")
    context, receipt = context_of(out), receipt_of(out)
    assert mf.validate(context, "anthropic") == []
    assert mf.count(context, model=MODEL) == receipt["after"]["tokens"] <= BUDGET
    assert context["model"] == MODEL
    assert {tool["name"] for tool in context["tools"]} >= {"Bash", "Read", "Edit"}


def test_the_pages_are_those_in_the_context_and_read_back(done: tuple[Ran, Path], harbour: Path) -> None:
    _, out = done
    pages = [path.read_bytes() for path in sorted(out.glob("page-*.png"))]
    assert len(pages) >= 3
    assert [image for image in images_in(context_of(out)) if image in pages] == pages
    text = mf.read_back(pages)
    history = formats.read(harbour.read_bytes())
    said = [message.text for message in history.messages if message.role == "assistant" and message.text]
    on_pages = [words for words in said if words in text]
    assert len(on_pages) >= len(said) // 2
    assert "1\\u202f204.5" in text  # from a traceback in the middle: errors are never elided


def test_the_receipt_adds_up(done: tuple[Ran, Path], harbour: Path) -> None:
    ran, out = done
    receipt = receipt_of(out)
    assert mf.count(formats.read(harbour.read_bytes()), model=MODEL) == receipt["before"]["tokens"]
    ends = [receipt["before"], *(rung["after"] for rung in receipt["rungs"])]
    assert [rung["before"] for rung in receipt["rungs"]] == ends[:-1]
    assert ends[-1] == receipt["after"]
    assert receipt["before"]["money"] == pytest.approx(receipt["before"]["tokens"] * 5e-6)
    for number in (receipt["before"]["tokens"], receipt["after"]["tokens"], receipt["after"]["bytes"]):
        assert f"{number:,}" in ran.text
    for page in receipt["pages"]:
        assert f"{page['width']}x{page['height']}" in ran.text
        assert (out / f"page-{page['number']:03d}.png").stat().st_size == page["bytes"]
    assert sorted(receipt["files"]) == sorted(listing(out))


def test_the_same_session_gives_the_same_files(done: tuple[Ran, Path], run: Run, harbour: Path, tmp_path: Path) -> None:
    _, first = done
    run("compact", "-", "--model", MODEL, "--budget", "20k", "--out", tmp_path / "again", stdin=harbour.read_bytes())
    again = listing(tmp_path / "again")
    assert {name: data for name, data in listing(first).items() if name != "receipt.json"} == {
        name: data for name, data in again.items() if name != "receipt.json"
    }


def test_a_plan_keeps_every_full_page(done: tuple[Ran, Path], run: Run, harbour: Path, tmp_path: Path) -> None:
    _, first = done
    full = json.loads((first / "plan.json").read_text())["archive"]["full"]
    assert full
    second = tmp_path / "second"
    ran = run(
        "compact", harbour, "--model", MODEL, "--budget", 16_500, "--plan", first / "plan.json", "--out", second
    )  # fmt: skip
    assert ran.code == 0, ran.err
    for page in full:
        name = f"page-{page['number']:03d}.png"
        assert (second / name).read_bytes() == (first / name).read_bytes()
    assert receipt_of(second)["after"]["tokens"] <= 16_500


def test_a_plan_of_another_session_is_refused(done: tuple[Ran, Path], run: Run, bulletin: Path) -> None:
    _, out = done
    ran = run("compact", bulletin, "--model", MODEL, "--budget", "9k", "--plan", out / "plan.json", "--dry-run")
    assert ran.code == 1 and ran.err.count("\n") == 1


def test_under_budget_nothing_changes(run: Run, tmp_path: Path) -> None:
    body = {
        "model": MODEL,
        "max_tokens": 1000,
        "temperature": 0.5,
        "system": "Be brief.",
        "messages": [
            {"role": "user", "content": "Привет, \ud83d\ude00 1e400"},
            {"role": "assistant", "content": [{"type": "text", "text": "tab\there"}]},
            {"role": "user", "content": [{"type": "text", "text": "go on", "cache_control": {"type": "ephemeral"}}]},
        ],
    }
    session = tmp_path / "request.json"
    session.write_text(json.dumps(body))
    ran = run("compact", session, "--model", MODEL, "--out", tmp_path / "out")
    assert ran.code == 0
    assert "Under budget: nothing had to be changed." in ran.text
    assert context_of(tmp_path / "out") == json.loads(json.dumps(body))
    assert sorted(listing(tmp_path / "out")) == ["context.json", "plan.json", "receipt.json"]
    assert receipt_of(tmp_path / "out")["reason"] == "under_budget"


def test_a_session_mended_under_budget_is_not_said_to_be_as_it_was(run: Run, tmp_path: Path) -> None:
    session = tmp_path / "messages.json"
    session.write_text('[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]')
    ran = run("compact", session, "--model", MODEL, "--out", tmp_path / "out")
    assert ran.code == 0
    assert "Under budget: only what the provider would refuse was mended." in ran.text
    assert "nothing had to be changed" not in ran.text
    assert [each["where"] for each in receipt_of(tmp_path / "out")["repairs"]] == ["messages[1]"]


def test_dry_run_writes_nothing(run: Run, harbour: Path, tmp_path: Path) -> None:
    ran = run("compact", harbour, "--model", MODEL, "--budget", BUDGET, "--dry-run", "--out", tmp_path / "out")
    assert ran.code == 0
    assert "Nothing was written" in ran.text
    assert listing(tmp_path) == {}


def test_json_is_the_receipt(run: Run, harbour: Path, tmp_path: Path) -> None:
    ran = run("compact", harbour, "--model", MODEL, "--budget", BUDGET, "--json", "--out", tmp_path)
    printed = json.loads(ran.out)
    assert printed == receipt_of(tmp_path)
    assert "Wrote context.json" in ran.err
    dry = json.loads(run("compact", harbour, "--model", MODEL, "--budget", BUDGET, "--json", "--dry-run").out)
    assert dry.pop("files") == []
    assert {**dry, "seconds": 0} == {key: value for key, value in {**printed, "seconds": 0}.items() if key != "files"}


@pytest.mark.parametrize("spelling", ["20000", "20_000", "20k", "20K"])
def test_budget_spellings(run: Run, harbour: Path, spelling: str) -> None:
    ran = run("compact", harbour, "--model", MODEL, "--budget", spelling, "--dry-run", "--json")
    assert json.loads(ran.out)["budget"]["tokens"] == 20_000


@pytest.mark.parametrize("spelling", ["", "0", "-5", "12x", "1.5k", "k", "_1", "1__0", "٣", "9" * 40])
def test_a_budget_that_is_no_number_is_wrong_usage(run: Run, harbour: Path, spelling: str) -> None:
    ran = run("compact", harbour, "--model", MODEL, f"--budget={spelling}", "--dry-run")
    assert ran.code == 2 and "--budget" in ran.err


@pytest.mark.parametrize("wire", formats.WIRES)
@pytest.mark.parametrize("name", ["harbour", "moorings", "bulletin"])
def test_every_session_goes_out_in_every_form(
    run: Run, request: pytest.FixtureRequest, tmp_path: Path, name: str, wire: str
) -> None:
    model = {"anthropic": MODEL, "gemini": "gemini-3.6-flash"}.get(wire, "gpt-5.6-sol")
    session = request.getfixturevalue(name)
    budget = json.loads(run("compact", session, "--model", model, "--dry-run", "--json").out)["before"]["tokens"] // 2
    ran = run("compact", session, "--model", model, "--budget", budget, "--format", wire, "--out", tmp_path)
    assert ran.code == 0, ran.err
    assert mf.validate(context_of(tmp_path), wire) == []
    assert receipt_of(tmp_path)["format"] == wire


def test_a_prompt_opens_a_session_that_begins_with_the_assistant(run: Run, moorings: Path, tmp_path: Path) -> None:
    ran = run("compact", moorings, "--model", MODEL, "--prompt", "Why do the moorings fail?", "--out", tmp_path)
    assert ran.code == 0
    first = context_of(tmp_path)["messages"][0]
    assert first["role"] == "user" and "Why do the moorings fail?" in json.dumps(first)


def test_a_prompt_is_refused_where_the_user_began(run: Run, harbour: Path) -> None:
    ran = run("compact", harbour, "--model", MODEL, "--prompt", "x", "--dry-run")
    assert ran.code == 2 and "opening user message" in ran.err


def test_a_model_without_vision_gets_no_pages_and_the_receipt_says_so(run: Run, harbour: Path, tmp_path: Path) -> None:
    args = ("compact", harbour, "--model", MODEL, "--no-vision", "--budget", BUDGET, "--out", tmp_path)
    ran = run(*args)
    assert ran.code == 0, ran.err
    receipt = receipt_of(tmp_path)
    done = {rung["rung"]: rung["reason"] for rung in receipt["rungs"]}
    assert done["snapshot"] == "no_vision" and done["elide"] == "" and done["unsendable"] == ""
    assert receipt["pages"] == [] and receipt["omitted_turns"]
    assert "the model does not read images" in ran.text and "omitted" in ran.text


def test_an_unknown_model_needs_a_budget_and_gets_pages_only_if_it_is_said_to_see(run: Run, harbour: Path) -> None:
    assert run("compact", harbour, "--model", "nobody-1", "--dry-run").code == 2
    args = ("compact", harbour, "--model", "nobody-1", "--budget", BUDGET, "--dry-run", "--json")
    assert json.loads(run(*args).out)["pages"] == []
    assert json.loads(run(*args, "--vision").out)["pages"] != []


def test_a_misspelt_model_is_told_what_it_may_mean(run: Run, harbour: Path) -> None:
    ran = run("compact", harbour, "--model", "claud-opus-5", "--dry-run")
    assert ran.code == 2 and "claude-opus-5" in ran.err
    ran = run("compact", harbour, "--model", "house-made", "--dry-run")
    assert ran.code == 2 and "microfiche models" in ran.err


def test_a_page_left_out_of_a_turn_is_named(run: Run, tmp_path: Path) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "ls", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "\n".join(f"{i} of {i * i}" for i in range(2000))}
    told = [("user", "List."), ("assistant", [call]), ("user", [result]), ("assistant", "Done."), ("user", "And?")]
    path = tmp_path / "list.json"
    path.write_text(json.dumps([{"role": role, "content": content} for role, content in told]))
    words = ("compact", path, "--model", "claude-opus-5", "--budget", "4k", "--dry-run")
    receipt = json.loads(run(*words, "--json").text)
    assert receipt["omitted_pages"] and not receipt["omitted_turns"] and receipt["omitted_beginning"] == 2
    (line,) = [line for line in run(*words).text.splitlines() if line.startswith("omitted")]
    assert line.endswith(": the beginning of turn 2") and "page" in line and "0 turns" not in line


def test_fidelity_decides_the_cell(run: Run, harbour: Path) -> None:
    args = ("compact", harbour, "--model", MODEL, "--budget", BUDGET, "--dry-run", "--json")
    exact, gist = (json.loads(run(*args, "--fidelity", word).out)["pages"] for word in ("exact", "gist"))
    assert gist[0]["characters"] / gist[0]["tokens"] > 2 * exact[0]["characters"] / exact[0]["tokens"]


def test_it_needs_no_network(run: Run, harbour: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    assert run("compact", harbour, "--model", MODEL, "--budget", BUDGET, "--dry-run").code == 0


# ---------------------------------------------------------------- what stands in the directory


def test_stale_pages_go_and_other_files_stay(done: tuple[Ran, Path], run: Run, harbour: Path) -> None:
    _, out = done
    (out / "notes.txt").write_text("mine")
    (out / "page-099.png").write_bytes(b"mine too")
    ran = run("compact", harbour, "--model", MODEL, "--budget", "60k", "--out", out)
    assert ran.code == 0
    assert sorted(listing(out)) == ["context.json", "notes.txt", "page-099.png", "plan.json", "receipt.json"]


@pytest.mark.parametrize("name", ["page-001.png", "context.json", "plan.json", "receipt.json"])
@pytest.mark.parametrize(
    "content", [b"mine", b"{}", b'{"files": ["../mine"]}', b'{"files": ["mine.txt"]}', b"[" * 9999], ids=range(5)
)
def test_a_foreign_file_is_never_replaced(run: Run, harbour: Path, tmp_path: Path, name: str, content: bytes) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "mine").write_bytes(b"mine")
    (out / name).write_bytes(content)
    before = listing(out)
    ran = run("compact", harbour, "--model", MODEL, "--budget", BUDGET, "--out", out)
    assert ran.code == 1
    assert ran.err.count("\n") == 1 and name in ran.err and "choose another --out" in ran.err
    assert listing(out) == before
    assert (tmp_path / "mine").read_bytes() == b"mine"


def test_a_dangling_link_is_foreign_too(run: Run, harbour: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "context.json").symlink_to(tmp_path / "elsewhere.json")
    assert run("compact", harbour, "--model", MODEL, "--budget", BUDGET, "--out", out).code == 1
    assert not (tmp_path / "elsewhere.json").exists()


def test_a_failure_leaves_everything_as_it_was(
    done: tuple[Ran, Path], run: Run, harbour: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, out = done
    before = listing(out)
    renamed = Path.replace

    def fail(path: Path, target: Path) -> Path:
        if target.name == "plan.json" and path.suffix == ".new":
            raise OSError(28, "No space left on device")
        return renamed(path, target)

    monkeypatch.setattr(Path, "replace", fail)
    ran = run("compact", harbour, "--model", MODEL, "--budget", "12k", "--out", out)
    assert ran.code == 1 and "No space left on device" in ran.err
    assert listing(out) == before


def test_a_directory_made_for_nothing_is_removed(
    run: Run, harbour: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(handle: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    assert run("compact", harbour, "--model", MODEL, "--budget", BUDGET, "--out", tmp_path / "out").code == 1
    assert listing(tmp_path) == {}


# ---------------------------------------------------------------- bad input


def expect_refusal(ran: Ran, *words: str) -> None:
    """One line on standard error that holds the words, and nothing on standard output."""
    assert ran.code == 1, (ran.code, ran.err)
    assert ran.out == b""
    assert ran.err.startswith("microfiche: ") and ran.err.count("\n") == 1
    for word in words:
        assert word in ran.err


@pytest.mark.parametrize(
    "content",
    [b"", b"\0\0\0", b"hello", b"\xff\xfe\xfa", b"[1, 2]", b'{"a": 1}', b'{"type": "session_meta"}\n{"type": "x"}'],
)
def test_what_is_no_session_is_refused(run: Run, tmp_path: Path, content: bytes) -> None:
    session = tmp_path / "session"
    session.write_bytes(content)
    expect_refusal(run("compact", session, "--model", MODEL, "--out", tmp_path / "out"), str(session))
    assert not (tmp_path / "out").exists()
    expect_refusal(run("compact", "-", "--model", MODEL, "--dry-run", stdin=content), "standard input")


def test_what_cannot_be_read_is_refused(run: Run, tmp_path: Path) -> None:
    missing = tmp_path / "a\x1b[31mb\n.jsonl"
    ran = run("compact", missing, "--model", MODEL, "--out", tmp_path / "out")
    expect_refusal(ran, "No such file", "check the name")
    assert "\x1b" not in ran.err
    expect_refusal(run("compact", tmp_path, "--model", MODEL, "--dry-run"), str(tmp_path), "name a file")


def test_an_out_that_is_a_file_is_refused(run: Run, harbour: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    expect_refusal(run("compact", harbour, "--model", MODEL, "--out", tmp_path / "out"), "not a directory")
    assert (tmp_path / "out").read_text() == "mine"


def test_a_torn_session_is_read_as_far_as_it_goes(run: Run, harbour: Path, tmp_path: Path) -> None:
    session = tmp_path / "torn.jsonl"
    session.write_bytes(harbour.read_bytes()[:-40])
    ran = run("compact", session, "--model", MODEL, "--budget", BUDGET, "--dry-run")
    assert ran.code == 0
    assert "torn last line" in ran.text


def test_our_own_context_is_refused(done: tuple[Ran, Path], run: Run) -> None:
    _, out = done
    expect_refusal(run("compact", out / "context.json", "--model", MODEL, "--dry-run"), "original messages")


def test_a_budget_below_what_never_changes_is_refused(run: Run, harbour: Path, tmp_path: Path) -> None:
    ran = run("compact", harbour, "--model", MODEL, "--budget", 300, "--out", tmp_path / "out")
    expect_refusal(ran, "raise the budget")
    assert listing(tmp_path) == {}


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"version": 1}', b"\xff", b"[" * 9999], ids=range(6))
def test_what_is_no_plan_is_refused(run: Run, harbour: Path, tmp_path: Path, content: bytes) -> None:
    plan = tmp_path / "plan.json"
    plan.write_bytes(content)
    expect_refusal(run("compact", harbour, "--model", MODEL, "--plan", plan, "--dry-run"), str(plan))


def test_wrong_usage(run: Run, harbour: Path) -> None:
    assert run("compact", harbour, "--model", MODEL).code == 2  # neither --out nor --dry-run
    assert run("compact", harbour, "--dry-run").code == 2  # no model
    assert run("compact", "--model", MODEL, "--dry-run").code == 2  # no session
    assert run("compact", harbour, "--model", MODEL, "--dry-run", "--from", "word").code == 2
    assert run("compact", harbour, "--model", MODEL, "--dry-run", "--format", "atif").code == 2
    assert run("compact", harbour, "--model", MODEL, "--dry-run", "--fidelity", "best").code == 2


def test_a_context_that_would_be_refused_is_written_and_named(run: Run, tmp_path: Path) -> None:
    deep: Any = 1
    for _ in range(600):
        deep = [deep]
    body = {"model": MODEL, "max_tokens": 9, "metadata": {"x": deep}, "messages": [{"role": "user", "content": "hi"}]}
    ran = run("compact", "-", "--model", MODEL, "--out", tmp_path, stdin=json.dumps(body).encode())
    assert ran.code == 3
    assert "too-deep" in ran.err and ran.err.count("\n") == 1
    assert sorted(listing(tmp_path)) == ["context.json", "plan.json", "receipt.json"]
    assert receipt_of(tmp_path)["violations"]


def test_damaged_bytes_never_break_it(run: Run, harbour: Path) -> None:
    """Any byte of a session may be wrong: it is read as far as it is sound, or refused in one line."""
    data = harbour.read_bytes()
    for at in range(0, len(data), len(data) // 12):
        broken = data[:at] + b"\xff\x00\x1b" + data[at + 7 :]
        ran = run("compact", "-", "--model", MODEL, "--budget", BUDGET, "--dry-run", "--json", stdin=broken)
        assert ran.code in (0, 1), ran.err
        if ran.code == 0:
            assert json.loads(ran.out)["after"]["tokens"] <= BUDGET


def test_the_same_damage_in_many_places_is_one_line(run: Run, harbour: Path, tmp_path: Path) -> None:
    lines = harbour.read_bytes().splitlines()
    broken = b"\n".join(line + b"\n[1]" for line in lines) + b'\n{"torn'
    ran = run("compact", "-", "--model", MODEL, "--budget", BUDGET, "--out", tmp_path, stdin=broken)
    assert ran.code == 0
    damage = [line for line in ran.text.splitlines() if "damaged line" in line]
    assert damage == [
        f"note       standard input:2 and {len(lines) - 1} more places: damaged line passed over: a list is no object"
    ]
    assert "torn last line" in ran.text
    assert sum("damaged line" in note["what"] for note in receipt_of(tmp_path)["notes"]) == len(lines)


def test_repairs_of_many_kinds_do_not_flood_the_terminal(run: Run, tmp_path: Path) -> None:
    calls = [{"type": "tool_use", "id": "t", "name": "n", "input": {}} for _ in range(60)]
    results = [{"type": "tool_result", "tool_use_id": "t", "content": str(number)} for number in range(60)]
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": calls},
        {"role": "user", "content": results},
    ]
    ran = run("compact", "-", "--model", MODEL, "--out", tmp_path, stdin=json.dumps(messages).encode())
    assert ran.code == 0
    kinds = {repair["what"] for repair in receipt_of(tmp_path)["repairs"]}
    assert len(kinds) >= 59
    told = [line for line in ran.text.splitlines() if line.startswith("repaired")]
    assert len(told) == 21 and told[-1] == f"repaired   {len(kinds) - 20} more kinds, which --json lists"


def test_a_session_read_as_what_it_is_not_is_refused(run: Run, harbour: Path) -> None:
    for name in ("anthropic", "openai_chat", "gemini"):
        ran = run("compact", harbour, "--from", name, "--model", MODEL, "--dry-run")
        expect_refusal(ran, name, "no message")


def test_screenshots_of_the_sample_are_pictures(harbour: Path) -> None:
    """Rung 2 has something to do on the sample: five images of known size."""
    history = formats.read(harbour.read_bytes())
    images = [
        part
        for message in history.messages
        for result in message.results
        for part in result.parts
        if isinstance(part, Image)
    ]
    assert [(image.width, image.height) for image in images] == [(256, 112)] * 5


def test_an_empty_name_for_the_output_is_wrong_usage(run: Run, harbour: Path, tmp_path: Path) -> None:
    ran = run("compact", harbour, "--model", MODEL, "--budget", BUDGET, "--out", "")
    assert ran.code == 2 and "empty" in ran.err
