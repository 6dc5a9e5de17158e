"""One line around the official clients, sync and async, before the judge."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import builders
import httpx2
import microfiche as mf
import pytest
from microfiche import clients, formats
from microfiche.testing import Judge, Refuse

anthropic = pytest.importorskip("anthropic")
openai = pytest.importorskip("openai")
genai = pytest.importorskip("google.genai")

CASES = [
    ("anthropic", "claude-opus-5"),
    ("openai_chat", "gpt-5.6-sol"),
    ("openai_responses", "gpt-5.6-sol"),
    ("gemini", "gemini-3.6-flash"),
]
LENGTH = {"anthropic": "max_tokens", "openai_chat": "max_completion_tokens", "openai_responses": "max_output_tokens"}


@pytest.fixture(scope="module")
def http() -> Iterator[httpx2.Client]:
    with httpx2.Client() as client:
        yield client


WRAPPERS = {
    "anthropic": clients.anthropic,
    "openai_chat": clients.openai,
    "openai_responses": clients.openai_responses,
    "gemini": clients.google,
}


def client(wire: str, judge: Judge, http: Any) -> Any:
    """The official client of a wire at the judge, async if ``http`` is."""
    own = {"api_key": "x", "http_client": http, "max_retries": 0}
    waits = isinstance(http, httpx2.AsyncClient)
    if wire == "anthropic":
        return (anthropic.AsyncAnthropic if waits else anthropic.Anthropic)(base_url=judge.url, **own)
    if wire == "gemini":
        name = "httpx_async_client" if waits else "httpx_client"
        made = genai.Client(api_key="x", http_options=genai.types.HttpOptions(base_url=judge.url, **{name: http}))
        return made.aio if waits else made
    return (openai.AsyncOpenAI if waits else openai.OpenAI)(base_url=f"{judge.url}/v1", **own)


def sender(wire: str, judge: Judge, http: Any, **options: Any) -> Any:
    return WRAPPERS[wire](client(wire, judge, http), **options)


def request(wire: str, model: str, story: builders.Story) -> dict[str, Any]:
    tools = formats.tools.stubs(["read_file", "run", "screenshot"], wire)[0]
    if wire == "gemini":
        config = {"max_output_tokens": 2_000, "tools": tools, "system_instruction": "Be brief.", "temperature": 0.5}
        return {"model": model, "contents": story.native(wire), "config": config}
    made = {"model": model, formats.list_key(wire): story.native(wire), "tools": tools, LENGTH[wire]: 2_000}
    return {**made, "timeout": 60}


@pytest.mark.parametrize(("wire", "model"), CASES)
def test_a_refusal_is_recovered_in_one_line(wire: str, model: str, http: httpx2.Client) -> None:
    story = builders.rounds(30, 4_500).user("And what now?")
    with Judge(window=36_000) as judge:
        send = sender(wire, judge, http)
        answer = send(**request(wire, model, story))
        assert answer is not None and mf.refusal(answer) is None
        assert 1 <= len(judge.refusals) <= 2
        assert judge.requests[-1].tokens <= 36_000
        assert send.context is not None and send.context.plan
        # The next turn goes on with the plan and with what was learnt of the window.
        plan, before = send.context.plan, len(judge.refusals)
        story.read("more.py", builders.code(1, 900)).user("Go on.")
        send(**request(wire, model, story))
        assert len(judge.refusals) - before <= 1
        assert send.context.plan.archive is not None and plan.archive is not None
        frozen = plan.archive.full
        assert send.context.plan.archive.full[: len(frozen)] == frozen


@pytest.mark.parametrize(("wire", "model"), CASES)
def test_async_clients_are_awaited(wire: str, model: str) -> None:
    story = builders.rounds(30, 4_500).user("And what now?")

    async def run(judge: Judge) -> Any:
        async with httpx2.AsyncClient() as http:
            return await sender(wire, judge, http)(**request(wire, model, story))

    with Judge(window=36_000) as judge:
        assert asyncio.run(run(judge)) is not None
        assert 1 <= len(judge.refusals) <= 2


def streaming(wire: str, judge: Judge, http: Any) -> tuple[Any, dict[str, Any]]:
    """A sender that streams, and what is passed beside the request."""
    return sender(wire, judge, http, **({"stream": True} if wire == "gemini" else {})), (
        {} if wire == "gemini" else {"stream": True}
    )


@pytest.mark.parametrize(("wire", "model"), CASES)
def test_a_refused_stream_is_recovered_before_its_first_event(wire: str, model: str, http: httpx2.Client) -> None:
    story = builders.rounds(30, 4_500).user("And what now?")
    with Judge(window=36_000) as judge:
        send, beside = streaming(wire, judge, http)
        assert len(list(send(**request(wire, model, story), **beside))) >= 1
        assert 1 <= len(judge.refusals) <= 2 and judge.requests[-1].status == 200


@pytest.mark.parametrize(("wire", "model"), CASES)
def test_a_refused_stream_is_recovered_by_async_clients(wire: str, model: str) -> None:
    story = builders.rounds(30, 4_500).user("And what now?")

    async def run(judge: Judge) -> int:
        async with httpx2.AsyncClient() as http:
            send, beside = streaming(wire, judge, http)
            return len([each async for each in await send(**request(wire, model, story), **beside)])

    with Judge(window=36_000) as judge:
        assert asyncio.run(run(judge)) >= 1
        assert 1 <= len(judge.refusals) <= 2 and judge.requests[-1].status == 200


@pytest.mark.parametrize(("wire", "model"), CASES)
def test_a_budget_is_met_before_anything_is_sent(wire: str, model: str, http: httpx2.Client) -> None:
    story = builders.rounds(30, 4_500).user("And what now?")
    with Judge(window=36_000) as judge:
        send = sender(wire, judge, http, budget=30_000)
        send(**request(wire, model, story))
        assert not judge.refusals and len(judge.requests) == 1
        assert send.context.tokens <= 30_000


def test_what_small_requests_ask_for_arrives_as_it_is(http: httpx2.Client) -> None:
    story = builders.Story().user("Hello.")
    with Judge(script=["hi"] * 4) as judge:
        for wire, model in CASES:
            sender(wire, judge, http)(**request(wire, model, story))
        for (wire, _), sent in zip(CASES, judge.requests, strict=True):
            assert len(sent.body[formats.list_key(wire)]) == 1 and sent.body["tools"]
        config = judge.requests[-1].body["generationConfig"]
        assert config["maxOutputTokens"] == 2_000 and config["temperature"] == 0.5
        assert "Be brief." in str(judge.requests[-1].body["systemInstruction"])


def test_other_errors_come_as_they_are(http: httpx2.Client) -> None:
    with Judge(script=[Refuse("Number of requests has exceeded your rate limit", 429)]) as judge:
        send = sender("anthropic", judge, http)
        with pytest.raises(anthropic.APIStatusError):
            send(**request("anthropic", "claude-opus-5", builders.rounds(3)))
        assert len(judge.requests) == 1


def test_the_third_refusal_is_final(http: httpx2.Client) -> None:
    with Judge(script=[Refuse("prompt is too long")] * 5) as judge:
        send = sender("anthropic", judge, http)
        with pytest.raises(mf.CannotFit, match="refused 3 times in a row") as caught:
            send(**request("anthropic", "claude-opus-5", builders.rounds(30, 4_500)))
        assert isinstance(caught.value.__cause__, anthropic.APIStatusError)
        assert len(judge.requests) == 3


def test_another_history_begins_anew(http: httpx2.Client) -> None:
    with Judge() as judge:
        send = sender("anthropic", judge, http, budget=20_000)
        send(**request("anthropic", "claude-opus-5", builders.rounds(30, 4_500)))
        assert send.context.plan
        send(**request("anthropic", "claude-opus-5", builders.rounds(30, 4_500, seed=900)))
        send(**request("anthropic", "claude-opus-5", builders.Story().user("Hello.")))
        assert not send.context.plan and not judge.refusals


def test_a_model_of_unknown_window_is_sent_as_it_is_and_recovered(http: httpx2.Client) -> None:
    story = builders.rounds(30, 4_500).user("And what now?")
    with Judge(window=36_000) as judge:
        send = sender("openai_chat", judge, http)
        send(**request("openai_chat", "nobody-knows-1", story))
        assert 1 <= len(judge.refusals) <= 2 and send.context is not None


# ---------------------------------------------------------------- summarisers

ANSWER = "\n".join(f"- fact: file {turn} was read (turn {turn})" for turn in range(2, 6))
ASKED = [("anthropic", "claude-haiku-4-5"), ("openai_chat", "gpt-5.6-sol"), ("gemini", "gemini-3.6-flash")]


def summarised(summarize: Any) -> mf.Context:
    native = builders.rounds(30, 3_000).native("openai_chat")
    return mf.compact(native, model="o3-mini", budget=15_000, summarize=summarize)


@pytest.mark.parametrize(("wire", "model"), ASKED)
def test_official_clients_summarise(wire: str, model: str, http: httpx2.Client) -> None:
    """Kind: the call for a summary takes over a budget of thinking larger than its max_tokens, and is refused."""
    with Judge(script=[ANSWER] * 4) as judge:
        fit = summarised(clients.summarizer(client(wire, judge, http), model))
        assert 1 <= fit.receipt.summary_calls == len(judge.requests) and fit.plan.summaries
        assert "budget_tokens" not in str(judge.requests)
        assert "file 3 was read" in str(fit.messages) and not fit.receipt.omitted_turns


@pytest.mark.parametrize(("wire", "model"), ASKED)
def test_async_clients_summarise(wire: str, model: str) -> None:
    # Each asking has a loop of its own, so no connection may outlive it.
    http = httpx2.AsyncClient(limits=httpx2.Limits(max_keepalive_connections=0))
    with Judge(script=[ANSWER] * 4) as judge:
        fit = summarised(clients.summarizer(client(wire, judge, http), model))
        assert fit.plan.summaries and fit.receipt.summary_calls == len(judge.requests)
    asyncio.run(http.aclose())


def test_a_client_that_fails_costs_nothing(http: httpx2.Client) -> None:
    with Judge(script=[Refuse("Overloaded", 529)] * 4) as judge:
        fit = summarised(clients.summarizer(client("anthropic", judge, http), "claude-haiku-4-5"))
        assert not fit.plan.summaries and fit.tokens <= 15_000
        assert any(rung.reason.startswith("summary_failed") for rung in fit.receipt.rungs)
    with pytest.raises(mf.BadInput, match="no client that is known"):
        clients.summarizer(object(), "m")


# ---------------------------------------------------------------- what the README shows


def test_the_recovery_that_the_readme_shows(http: httpx2.Client) -> None:
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    (shown,) = [each for each in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "mf.recover(" in each]
    story = builders.rounds(20, 4_500).user("And what now?")
    tools = formats.tools.stubs(["read_file"], "anthropic")[0]
    body = {"model": "claude-opus-5", "max_tokens": 1_000, "messages": story.native("anthropic"), "tools": tools}
    with Judge(window=30_000) as judge:
        names: dict[str, Any] = {"mf": mf, "client": client("anthropic", judge, http), "request": body}
        exec(shown, names)
        assert len(judge.refusals) == 2 and len(judge.requests) == 4
        assert names["answer"].content and names["send"].context.plan
    with Judge(script=[Refuse("Overloaded", 529)]) as judge:
        names["client"] = client("anthropic", judge, http)
        with pytest.raises(anthropic.APIStatusError):
            exec(shown, names)


def _weather(city: str) -> str:
    """The weather of a city."""
    return f"rain in {city}"


def _shapes() -> dict[str, tuple[Any, Any]]:
    """What the client of Google takes as contents and as settings, in each of its forms."""
    types = genai.types
    text, picture = (
        types.Part.from_text(text="Look."),
        types.Part.from_bytes(data=builders.png(30, 20), mime_type="image/png"),
    )
    call = types.Part.from_function_call(name="look", args={"at": 1})
    user = types.Content(role="user", parts=[text])
    return {
        "a text": ("Look.", {"system_instruction": ["Be brief.", "Be kind."]}),
        "texts": (["Look.", "There."], None),
        "a part": (text, None),
        "parts and texts": ([text, "at this", text], types.GenerateContentConfig(temperature=0.5)),
        "lists of parts": ([[text, text]], None),
        "a content": (user, types.GenerateContentConfig(system_instruction="Be brief.", max_output_tokens=50)),
        "a dict": ({"role": "user", "parts": [{"text": "Look."}]}, {"response_mime_type": "application/json"}),
        "parts of both": ([text, call, types.Part.from_function_response(name="look", response={"is": 2})], None),
        "contents": ([user, types.Content(role="model", parts=[text]), user, "And now?"], None),
        "a file": ([types.File(uri="https://files/1", mime_type="text/plain"), "Read."], None),
        "functions": (
            user,
            types.GenerateContentConfig(
                tools=[_weather], automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True)
            ),
        ),
        "functions in a dict": (user, {"tools": [_weather], "automatic_function_calling": {"disable": True}}),
        "a picture": ([picture, "See?"], None),
    }


@pytest.mark.parametrize("shape", _shapes())
def test_what_googles_client_takes_is_sent_as_it_sends_it(shape: str, http: httpx2.Client) -> None:
    contents, config = _shapes()[shape]
    asked = {"model": "gemini-2.5-pro", "contents": contents} | ({} if config is None else {"config": config})
    with Judge(window=100_000) as judge:
        plain = client("gemini", judge, http)
        for send in (plain.models.generate_content, clients.google(plain)):
            send(**asked)
        one, other = (dict(each.body) for each in judge.requests)
    settings = other.pop("generationConfig")
    assert settings.pop("maxOutputTokens") == one.get("generationConfig", {}).pop("maxOutputTokens", 32_000)
    assert settings == one.pop("generationConfig", {})
    assert other == one


def test_messages_may_come_from_an_iterator(http: httpx2.Client) -> None:
    """The clients take any iterable; what is recovered is read more than once."""
    messages = builders.rounds(30, 4_500).user("And what now?").native("anthropic")
    with Judge(window=36_000) as judge:
        answer = sender("anthropic", judge, http)(model="claude-opus-5", max_tokens=2_000, messages=iter(messages))
        assert answer.content and judge.refusals


def test_a_window_smaller_than_the_answer_that_nobody_tells_of(http: httpx2.Client) -> None:
    """A refusal without numbers may mean the answer that was asked for: a request of six words was refused for good."""
    with Judge(window=8_000) as judge:
        send = sender("openai_responses", judge, http)
        assert send(model="gpt-5.6-sol", input="Hello there.").output
        assert 1 <= len(judge.refusals) <= 2
        assert send(model="gpt-5.6-sol", input=builders.rounds(30, 4_500).native("openai_responses")).output
