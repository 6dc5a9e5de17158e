"""The judge behind the official clients: what it answers they read, what it refuses they raise."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
import test_judge_rules as rules
from microfiche.refusal import Refusal, refusal
from microfiche.testing import Judge, Refuse, Reply

anthropic = pytest.importorskip("anthropic")
openai = pytest.importorskip("openai")
genai = pytest.importorskip("google.genai")


class Clients:
    """One client of each provider at a judge; ``send`` takes the body of a provider's wire."""

    def __init__(self, judge: Judge, http: httpx2.Client) -> None:
        options = {"api_key": "x", "http_client": http, "max_retries": 0}
        self.claude = anthropic.Anthropic(base_url=judge.url, **options)
        self.gpt = openai.OpenAI(base_url=f"{judge.url}/v1", **options)
        where = genai.types.HttpOptions(base_url=judge.url, httpx_client=http)
        self.gemini = genai.Client(api_key="x", http_options=where)

    def send(self, provider: str, body: dict[str, Any], model: str = rules.MODEL["gemini"]) -> Any:
        if provider == "anthropic":
            # Without a timeout of its own the client refuses to wait for long answers that are not streamed.
            return self.claude.messages.create(**body, timeout=60)
        if provider == "openai_chat":
            return self.gpt.chat.completions.create(**body)
        if provider == "openai_responses":
            return self.gpt.responses.create(**body)
        config = dict(body.get("generationConfig") or {})
        config["systemInstruction"] = body.get("systemInstruction")
        config["tools"] = body.get("tools")
        contents = [genai.types.Content.model_validate(content) for content in body["contents"]]
        settings = genai.types.GenerateContentConfig.model_validate(config)
        return self.gemini.models.generate_content(model=model, contents=contents, config=settings)


@pytest.fixture(scope="module")
def http() -> Iterator[httpx2.Client]:
    with httpx2.Client() as client:
        yield client


@pytest.mark.parametrize("provider", rules.SOUND)
def test_sound_requests_get_the_script(provider: str, http: httpx2.Client) -> None:
    script = ["hello", Reply("both", calls=(("bash", {"cmd": "ls"}), ("bash", {"cmd": "pwd"})), thinking="two calls")]
    with Judge(script=[*script, lambda request: f"{request.tokens} tokens"]) as judge:
        clients = Clients(judge, http)
        answers = [clients.send(provider, rules.SOUND[provider]()) for _ in range(4)]
        assert [texts(provider, answer) for answer in answers[:2]] == ["hello", "both"]
        assert calls(provider, answers[1]) == [("bash", {"cmd": "ls"}), ("bash", {"cmd": "pwd"})]
        assert texts(provider, answers[2]) == f"{judge.requests[2].tokens} tokens"
        assert texts(provider, answers[3]) == "ok"
        assert all(refusal(answer) is None for answer in answers)
        assert [request.provider for request in judge.requests] == [provider] * 4
        assert not judge.refusals
        assert usage(provider, answers[0]) == judge.requests[0].tokens


def texts(provider: str, answer: Any) -> str:
    if provider == "anthropic":
        return "".join(block.text for block in answer.content if block.type == "text")
    if provider == "openai_chat":
        return str(answer.choices[0].message.content)
    if provider == "openai_responses":
        return str(answer.output_text)
    return "".join(part.text for part in answer.candidates[0].content.parts if part.text and not part.thought)


def calls(provider: str, answer: Any) -> list[tuple[str, Any]]:
    import json

    if provider == "anthropic":
        return [(block.name, block.input) for block in answer.content if block.type == "tool_use"]
    if provider == "openai_chat":
        return [(c.function.name, json.loads(c.function.arguments)) for c in answer.choices[0].message.tool_calls]
    if provider == "openai_responses":
        return [(item.name, json.loads(item.arguments)) for item in answer.output if item.type == "function_call"]
    return [
        (part.function_call.name, part.function_call.args)
        for part in answer.candidates[0].content.parts
        if part.function_call
    ]


def usage(provider: str, answer: Any) -> int:
    if provider == "openai_chat":
        return int(answer.usage.prompt_tokens)
    return int(answer.usage_metadata.prompt_token_count if provider == "gemini" else answer.usage.input_tokens)


# A fault of each provider that its client lets through.
BROKEN = {
    "anthropic": rules.edit("messages.2.content.1", ...),
    "openai_chat": rules.edit("messages.4", ...),
    "openai_responses": rules.edit("input.6", ...),
    "gemini": rules.edit("contents.2.parts.0", ...),
}
RAISED = {
    "anthropic": anthropic.BadRequestError,
    "openai_chat": openai.BadRequestError,
    "openai_responses": openai.BadRequestError,
    "gemini": genai.errors.ClientError,
}


@pytest.mark.parametrize("provider", rules.SOUND)
def test_faults_raise_the_clients_own_errors(provider: str, http: httpx2.Client) -> None:
    body = rules.SOUND[provider]()
    BROKEN[provider](body)
    with Judge() as judge:
        with pytest.raises(RAISED[provider]) as caught:
            Clients(judge, http).send(provider, body)
        assert refusal(caught.value) is None, "a broken pair is not cured by less"
        assert judge.refusals[0].answer == Judge().check(provider, body, rules.MODEL.get(provider))[1]  # type: ignore[index]


@pytest.mark.parametrize("provider", rules.SOUND)
def test_an_overflow_is_recognised_with_its_numbers(provider: str, http: httpx2.Client) -> None:
    body = rules.SOUND[provider]()
    used = Judge().count(provider, body, rules.MODEL.get(provider))
    with Judge(window=used - 1) as judge:
        with pytest.raises(RAISED[provider]) as caught:
            Clients(judge, http).send(provider, body)
        found = refusal(caught.value)
    told = provider != "openai_responses"
    assert found == Refusal("tokens", used if told else None, used - 1 if told else None)


@pytest.mark.parametrize(
    ("provider", "kind"), [("anthropic", "tokens_plus_max_tokens"), ("openai_chat", "tokens_plus_max_tokens")]
)
def test_too_long_an_answer_is_recognised(provider: str, kind: str, http: httpx2.Client) -> None:
    body = rules.SOUND[provider]()
    used = Judge().count(provider, body)
    with Judge(window=used + 999) as judge:
        with pytest.raises(RAISED[provider]) as caught:
            Clients(judge, http).send(provider, body)
        assert refusal(caught.value) == Refusal(kind, used, used + 999, 1000)  # type: ignore[arg-type]


def test_image_faults_are_recognised(http: httpx2.Client) -> None:
    with Judge(window=200_000) as judge:
        clients = Clients(judge, http)
        for body, kind, limit in (
            (rules.many(100, rules.b64(8, 8)), "image_count", 100),
            (rules.many(30, rules.b64(2001, 8)), "image_dimensions", 2000),
            (rules.many(1, rules.b64(8001, 8)), "image_dimensions", 8000),
        ):
            with pytest.raises(anthropic.BadRequestError) as caught:
                clients.send("anthropic", body)
            found = refusal(caught.value)
            assert found is not None and (found.kind, found.limit) == (kind, limit)


@pytest.mark.parametrize("provider", rules.SOUND)
def test_bytes_are_recognised(provider: str, http: httpx2.Client) -> None:
    with Judge(limits={provider: {"request_bytes": 500}}) as judge:
        with pytest.raises(Exception) as caught:
            Clients(judge, http).send(provider, rules.SOUND[provider]())
        found = refusal(caught.value)
        assert found is not None and found.kind == "bytes"


@pytest.mark.parametrize("provider", rules.SOUND)
def test_answers_that_are_none(provider: str, http: httpx2.Client) -> None:
    body = rules.SOUND[provider]()
    with Judge(script=[Reply.empty(), Reply("ok", input_tokens=12), Reply.cut(), Refuse("busy", 529)]) as judge:
        clients = Clients(judge, http)
        found = refusal(clients.send(provider, body))
        assert found is not None and found.kind == "silent"
        assert refusal(clients.send(provider, body), expected=1_000) == Refusal("silent", 1_000, 12)
        if provider != "gemini":  # its client knows only the stop reasons of its own
            found = refusal(clients.send(provider, body))
            assert found is not None and found.kind == "silent"
        else:
            judge.next_line(judge.requests[0])
        with pytest.raises(Exception) as caught:
            clients.send(provider, body)
        assert refusal(caught.value) is None


def test_signed_reasoning_goes_there_and_back(http: httpx2.Client) -> None:
    script = [Reply("yes", calls=(("bash", {"cmd": "ls"}),), thinking="I should look")]
    with Judge(script=script) as judge:
        clients = Clients(judge, http)
        body = rules.sound_anthropic()
        answer = clients.send("anthropic", body)
        said = {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in answer.content]}
        result = {"type": "tool_result", "tool_use_id": answer.content[-1].id, "content": "a"}
        body["messages"] += [said, {"role": "user", "content": [result]}]
        assert texts("anthropic", clients.send("anthropic", body)) == "ok"
        said["content"][0]["thinking"] = "I should not look"
        with pytest.raises(anthropic.BadRequestError, match="Invalid `signature`"):
            clients.send("anthropic", body)


def test_items_stand_and_fall_with_their_reasoning(http: httpx2.Client) -> None:
    with Judge(script=[Reply("", calls=(("bash", {}),), thinking="look first")]) as judge:
        clients = Clients(judge, http)
        body = rules.sound_responses()
        answer = clients.send("openai_responses", body)
        items = [item.model_dump(exclude_none=True) for item in answer.output]
        output = {"type": "function_call_output", "call_id": items[-1]["call_id"], "output": "a"}
        sent = [*body["input"], *items, output]
        assert texts("openai_responses", clients.send("openai_responses", {**body, "input": sent})) == "ok"
        sent.remove(items[0])
        with pytest.raises(openai.BadRequestError, match="without its required 'reasoning' item"):
            clients.send("openai_responses", {**body, "input": sent})


def test_counting(http: httpx2.Client) -> None:
    with Judge(script=["kept for the answer"]) as judge:
        clients = Clients(judge, http)
        body = rules.sound_anthropic()
        used = Judge().count("anthropic", body)
        del body["max_tokens"]
        assert clients.claude.messages.count_tokens(**body).input_tokens == used
        told = clients.gemini.models.count_tokens(model="gemini-3.6-flash", contents="how many are these?")
        assert 4 <= told.total_tokens <= 20
        assert [request.counting for request in judge.requests] == [True, True]
        assert texts("openai_chat", clients.send("openai_chat", rules.sound_chat())) == "kept for the answer"


def test_streams(http: httpx2.Client) -> None:
    reply = Reply("both", calls=(("bash", {"cmd": "ls"}),), thinking="hm")
    with Judge(script=[reply] * 4) as judge:
        clients = Clients(judge, http)
        with clients.claude.messages.stream(**rules.sound_anthropic()) as events:
            answer = events.get_final_message()
        assert (texts("anthropic", answer), calls("anthropic", answer)) == ("both", [("bash", {"cmd": "ls"})])
        assert answer.content[0].signature

        with clients.gpt.chat.completions.stream(**rules.sound_chat()) as events:
            chat = events.get_final_completion()
        assert chat.choices[0].message.content == "both"
        assert calls("openai_chat", chat) == [("bash", {"cmd": "ls"})]
        assert chat.choices[0].finish_reason == "tool_calls"

        with clients.gpt.responses.stream(**rules.sound_responses()) as events:
            response = events.get_final_response()
        assert (texts("openai_responses", response), calls("openai_responses", response)) == (
            "both",
            [("bash", {"cmd": "ls"})],
        )

        chunks = list(clients.gemini.models.generate_content_stream(model="gemini-3.6-flash", contents="go"))
        assert chunks[0].candidates[0].content.parts[1].text == "both"

        broken = rules.sound_anthropic()
        del broken["messages"][2]
        with pytest.raises(anthropic.BadRequestError), clients.claude.messages.stream(**broken) as events:
            events.get_final_message()


def test_no_key_no_answer_and_no_such_address(http: httpx2.Client) -> None:
    with Judge() as judge:
        answer = http.post(f"{judge.url}/v1/messages", json=rules.sound_anthropic())
        assert answer.status_code == 401 and answer.json()["error"]["type"] == "authentication_error"
        assert http.post(f"{judge.url}/v1/embeddings", json={}).status_code == 404
        answer = http.post(f"{judge.url}/v1/messages", content=b'{"model":', headers={"x-api-key": "x"})
        assert answer.status_code == 400 and "not valid JSON" in answer.json()["error"]["message"]
        answer = http.post(f"{judge.url}/v1/messages", content=b'{"x": NaN}', headers={"x-api-key": "x"})
        assert answer.status_code == 400 and "not valid JSON" in answer.json()["error"]["message"]


def test_many_threads_share_a_judge() -> None:
    with Judge(script=[str(number) for number in range(40)]) as judge:
        heard: list[str] = []

        def ask() -> None:
            with httpx2.Client() as own:
                clients = Clients(judge, own)
                heard.extend(texts("anthropic", clients.send("anthropic", rules.sound_anthropic())) for _ in range(10))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(heard, key=int) == [str(number) for number in range(40)]
        assert len(judge.requests) == 40
    with pytest.raises(RuntimeError, match="inside"):
        _ = judge.url
