"""Refused, recovered, accepted: through the official clients, in at most two passes and without a model.

Kinds of fault reported of others: a second refusal for the same size, bytes and image counts cured as if they were
tokens, a summariser called when the window was already full.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import builders
import httpx2
import microfiche as mf
import pytest
from microfiche import formats
from microfiche.testing import Judge, Refuse
from test_judge_clients import Clients

CASES = [
    ("anthropic", "claude-opus-5"),
    ("anthropic", "claude-haiku-4-5"),
    ("openai_chat", "gpt-5.6-sol"),
    ("openai_responses", "gpt-5.6-sol"),
    ("gemini", "gemini-3.6-flash"),
]


@pytest.fixture(scope="module")
def http() -> Iterator[httpx2.Client]:
    with httpx2.Client() as client:
        yield client


def body(wire: str, model: str, story: builders.Story, **more: Any) -> dict[str, Any]:
    """The whole history as the request that is about to fail."""
    tools = formats.tools.stubs(["read_file", "run", "screenshot"], wire)[0]
    made = {formats.list_key(wire): story.native(wire), "tools": tools}
    if wire == "gemini":
        return {**made, "generationConfig": {"maxOutputTokens": 2_000}}
    length = {
        "anthropic": "max_tokens",
        "openai_chat": "max_completion_tokens",
        "openai_responses": "max_output_tokens",
    }
    return {**made, "model": model, length[wire]: 2_000, **more}


def send(judge: Judge, http: httpx2.Client, wire: str, model: str, request: dict[str, Any]) -> int:
    """Send, and recover as long as it is refused; how often that was."""
    clients = Clients(judge, http)
    plan, ready = None, request
    for refused in range(3):
        try:
            clients.send(wire, ready, model)
        except Exception as error:
            assert mf.refusal(error) is not None, error
            fit = mf.recover(request, error=error, model=model, plan=plan, attempt=refused + 1 if refused < 2 else 2)
            plan, ready = fit.plan, fit.request
        else:
            return refused
    raise AssertionError(f"refused thrice: {[each.answer for each in judge.refusals]}")


@pytest.mark.parametrize(("wire", "model"), CASES)
@pytest.mark.parametrize("window", [6_000, 30_000])
def test_tokens(wire: str, model: str, window: int, http: httpx2.Client) -> None:
    story = builders.rounds(60, 4_500).user("And what now?")
    with Judge(window=window) as judge:
        assert 1 <= send(judge, http, wire, model, body(wire, model, story)) <= 2
        assert judge.requests[-1].tokens <= window


@pytest.mark.parametrize(("wire", "model"), CASES)
def test_bytes(wire: str, model: str, http: httpx2.Client) -> None:
    story = builders.Story().user("Find the button.")
    for at in range(24):
        story.uses(("screenshot", {}, ("the page", builders.png(300, 300, noise=at))))
    limits = {name: {"request_bytes": 1_500_000} for name in builders.WIRES}
    with Judge(limits=limits) as judge:
        assert 1 <= send(judge, http, wire, model, body(wire, model, story.user("Well?"))) <= 2


def test_bytes_without_a_number(http: httpx2.Client) -> None:
    story = builders.Story().user("Find the button.")
    for at in range(12):
        story.uses(("screenshot", {}, ("the page", builders.png(300, 300, noise=at))))
    model = "claude-opus-5"
    with Judge(script=[Refuse("Request exceeds the maximum size", 413)]) as judge:
        assert send(judge, http, "anthropic", model, body("anthropic", model, story.user("Well?"))) == 1
        assert len(str(judge.requests[1].body)) < len(str(judge.requests[0].body)) * 0.75


@pytest.mark.parametrize(("wire", "model"), CASES)
@pytest.mark.parametrize("limit", [60_000])
def test_bytes_of_text_alone(wire: str, model: str, limit: int, http: httpx2.Client) -> None:
    """Kind: a limit of bytes met by a history without any image, where dropping images cures nothing."""
    story = builders.rounds(40, 4_500).user("And what now?")
    with Judge(limits={name: {"request_bytes": limit} for name in builders.WIRES}) as judge:
        assert 1 <= send(judge, http, wire, model, body(wire, model, story)) <= 2
        kept = str(judge.requests[-1].body)
        assert "And what now?" in kept and "find out why the queue drops a batch" in kept


@pytest.mark.parametrize("wire", builders.WIRES)
def test_bytes_of_scripts_that_weigh_otherwise(wire: str, http: httpx2.Client) -> None:
    """Kind: bytes guessed from tokens, where old text has three bytes a character and new text one."""
    story = builders.Story().user("Translate.")
    for at in range(30):
        story.read(f"a{at}", "漢字かな交じりの長い結果。" * 100 if at < 15 else builders.code(at, 1_300))
    model = dict(CASES)[wire]
    with Judge(limits={name: {"request_bytes": 40_000} for name in builders.WIRES}) as judge:
        assert 1 <= send(judge, http, wire, model, body(wire, model, story.user("Well?"))) <= 2


def dense(kind: str, seed: int, size: int = 3_000) -> str:
    """Text of which each token is short, so that it weighs far more than its length tells."""
    source = random.Random(seed)
    match kind:
        case "control":
            return "".join(chr(source.randrange(32)) for _ in range(size))
        case "surrogates":
            return "a\udc00b\ud83d" * (size // 4)
        case "tags":
            return "<A " * (size // 3)
        case "uuids":
            return "\n".join(str(uuid.UUID(bytes=source.randbytes(16))) for _ in range(size // 37))
        case "colours":
            return "\x1b[31m\x1b[1;32mok\x1b[0m\n" * (size // 20)
        case _:
            return "\n".join(", ".join(str(source.randrange(10**5)) for _ in range(9)) for _ in range(size // 62))


@pytest.mark.parametrize("kind", ["control", "surrogates", "tags", "uuids", "colours", "numbers"])
@pytest.mark.parametrize(("wire", "model"), CASES)
def test_text_that_weighs_more_than_its_length_tells(wire: str, model: str, kind: str, tmp_path: Path) -> None:
    """Kind: ids, numbers and codes counted as prose, a request at twice its estimate, refused again and again."""
    story = builders.Story().user("Find it.")
    for at in range(60):
        story.uses(("read_file", {"path": f"{at}"}, f"{at}\n{dense(kind, at)}"))
    native, tools = story.user("Go on.").native(wire), formats.tools.stubs(["read_file"], wire)[0]
    window = 42_000
    judge = Judge(window=window)
    refused = []
    with mf.Record.open(tmp_path / "work.mf") as record:
        chat = record.conversation("triage")
        chat.append(native)
        for at in range(3):
            refused.append(0)
            while True:
                fit = chat.context(model=model, tools=tools, max_tokens=1_000, budget=window - 1_000)
                error = judge.check(wire, fit.request, model)
                if error is None:
                    break
                refused[-1] += 1
                chat.recover(error, context=fit)
            more = builders.Story(calls=100 + at).uses(("read_file", {"path": "z"}, dense(kind, 100 + at)))
            chat.append(more.native(wire), context=fit)
    assert max(refused) <= 1 and sum(refused) <= 2, refused


@pytest.mark.parametrize(("wire", "model"), CASES)
@pytest.mark.parametrize("window", [4_096, 20_000])
def test_a_window_far_below_that_of_the_catalogue_and_no_number(
    wire: str, model: str, window: int, http: httpx2.Client
) -> None:
    """Kind: a server of a small window that does not say how small, behind a name of a large model."""
    story = builders.rounds(40, 4_500).user("And what now?")

    def hidden(request: Any) -> Any:
        large = request.tokens + 800 > window
        return Refuse("The input is too long for this model's context window.") if large else "ok"

    with Judge(script=[hidden] * 3) as judge:
        request = body(wire, model, story)
        length = next(
            (key for key in ("max_tokens", "max_completion_tokens", "max_output_tokens") if key in request), ""
        )
        if length:
            request[length] = 1_000
        assert 1 <= send(judge, http, wire, model, request) <= 2


def test_images(http: httpx2.Client) -> None:
    story = builders.Story().user("Find the button.")
    for _ in range(25):
        story.uses(("screenshot", {}, ("the page", builders.png(2_100, 40))))
    with Judge() as judge:
        model = "claude-opus-5"
        assert 1 <= send(judge, http, "anthropic", model, body("anthropic", model, story.user("Well?"))) <= 2


def test_too_long_an_answer(http: httpx2.Client) -> None:
    story = builders.rounds(3, 1_000).user("And what now?")
    model = "claude-haiku-4-5"
    with Judge(window=20_000) as judge:
        assert send(judge, http, "anthropic", model, body("anthropic", model, story, max_tokens=19_500)) == 1
        assert judge.requests[-1].body["messages"] == judge.requests[0].body["messages"], (
            "lowering max_tokens was enough"
        )


@pytest.mark.parametrize(
    "line",
    [
        Refuse("prompt is too long"),
        Refuse("This request would exceed the tokens per minute: Limit 6000, Requested 14810. Request too large", 429),
    ],
    ids=str,
)
def test_a_refusal_without_numbers(line: Refuse, http: httpx2.Client) -> None:
    story = builders.rounds(40, 2_000).user("And what now?")
    model = "claude-opus-5"
    with Judge(script=[line]) as judge:
        assert send(judge, http, "anthropic", model, body("anthropic", model, story)) == 1
        assert judge.requests[1].tokens < judge.requests[0].tokens
