"""Refusals in the wordings of many providers, in wrappings and variations nobody wrote down, and what is none.

Kinds of fault reported of others: an overflow text that was not recognised, a refusal of bytes read as one of
tokens, a rate limit read as an overflow, a matcher that ran over the conversation.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from microfiche.refusal import Refusal, refusal


def table(name: str) -> list[dict[str, Any]]:
    lines = (Path(__file__).parent / "data" / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


TABLE = table("refusals.jsonl")
"""Errors seen in the wild, with their sources."""
WORDINGS = table("refusal_wordings.jsonl")
"""Wordings of other gateways and servers, most of them spelled anew: refusals, and what is none."""
SPOKEN = [row for row in TABLE if row["status"] != 200]
REFUSED = [row for row in SPOKEN if row["kind"]]
LONG = "prompt is too long: 210000 tokens > 200000 maximum"


def name(row: dict[str, Any]) -> str:
    return f"{row['provider']}-{row['status']}-{row['kind']}"


def kind(found: Refusal | None) -> str | None:
    return found.kind if found else None


@pytest.mark.parametrize("row", TABLE, ids=name)
def test_every_labelled_case(row: dict[str, Any]) -> None:
    found = refusal(row["status"], row["body"], window=row.get("window"), expected=row.get("expected"))
    assert kind(found) == row["kind"]
    for number in ("used", "limit", "max_tokens"):
        if number in row:
            assert getattr(found, number) == row[number]


def test_the_table_holds_ninety_nine_cases_of_every_kind() -> None:
    assert len(TABLE) == 99
    assert len({row["kind"] for row in TABLE}) == 9


UNSEEN: list[tuple[int, str, str, int | None, int | None, int | None]] = [
    (
        400,
        "'max_tokens' or 'max_completion_tokens' is too large: 20000. This model's maximum context length is 16384 "
        "tokens and your request has 8000 input tokens (20000 > 16384 - 8000).",
        "tokens_plus_max_tokens",
        8000,
        16384,
        20000,
    ),
    (
        400,
        "This model's maximum context length is 128,000 tokens. However, you requested 140,123 tokens (138,075 in the "
        "messages, 2,048 in the completion).",
        "tokens",
        138_075,
        128_000,
        2048,
    ),
    (
        400,
        "Requested token count exceeds the model's maximum context length of 131072 tokens. You requested a total of "
        "133000 tokens: 101000 tokens from the input messages and 32000 tokens for the completion.",
        "tokens_plus_max_tokens",
        101_000,
        131_072,
        32_000,
    ),
    (400, "Input is too long: 350000 tokens, at most 262144 are accepted", "tokens", 350_000, 262_144, None),
    (400, "prompt tokens (90000) exceed the model's context window (65536)", "tokens", 90_000, 65_536, None),
    (400, "Your request of 140000 tokens exceeds the 128000-token context window", "tokens", 140_000, 128_000, None),
    (
        400,
        "Prompt length (9000) plus max_tokens (4096) exceeds the context size of 8192",
        "tokens_plus_max_tokens",
        9000,
        8192,
        4096,
    ),
    (400, "request (33792 tokens) exceeds the available context size (32768 tokens)", "tokens", 33_792, 32_768, None),
    (400, "Sequence length 9001 exceeds the maximum context length of 8192", "tokens", 9001, 8192, None),
    (400, "Total prompt tokens: 5000. Context limit: 4096.", "tokens", 5000, 4096, None),
    (400, "The input is 1\u202f200\u202f000 tokens, over the limit of 1_000_000", "tokens", 1_200_000, 1_000_000, None),
    (400, "input tokens exceed the maximum allowed: got 50000 tokens, maximum 32000", "tokens", 50_000, 32_000, None),
    (400, "The conversation is too long. Please start a new one.", "tokens", None, None, None),
    (400, "messages too long", "tokens", None, None, None),
    (422, "Context overflow: prompt too large for the model", "tokens", None, None, None),
    (400, "Request body too large for this model. Max size: 8000 tokens.", "tokens", None, 8000, None),
    (503, "maximum context length is 32768 tokens, but 40000 tokens were sent", "tokens", 40_000, 32_768, None),
    (413, "Payload Too Large", "bytes", None, None, None),
    (413, "Request too large. Max 32MB.", "bytes", None, 32_000_000, None),
    (400, "Total size of the request is 25 MB which exceeds the limit of 20 MiB", "bytes", 25_000_000, 20 << 20, None),
    (400, "Input exceeds maximum size of 10 MB", "bytes", None, 10_000_000, None),
    (429, "Received message larger than max (5000000 vs. 4194304)", "bytes", 5_000_000, 4 << 20, None),
    (
        400,
        "messages.0.content.3.image.source.base64: image exceeds 10 MB maximum: 12,345,678 bytes > 10,485,760 bytes",
        "image_bytes",
        12_345_678,
        10_485_760,
        None,
    ),
    (400, "Image dimensions exceed the maximum of 8000 pixels", "image_dimensions", None, 8000, None),
    (400, "A request may contain at most 100 images; 134 were given", "image_count", 134, 100, None),
    (400, "You may provide up to 16 images per request, got 17.", "image_count", 17, 16, None),
    (400, "at most 5 image(s) may be provided in one request", "image_count", None, 5, None),
    (
        429,
        "Request too large for gpt-5 on tokens per min (TPM): Limit 500,000, Requested 812,345.",
        "rate_tokens",
        812_345,
        500_000,
        None,
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", UNSEEN, ids=lambda case: case[1][:40])
def test_wordings_that_no_table_holds(case: tuple[int, str, str, int | None, int | None, int | None]) -> None:
    status, body, kind, used, limit, output = case
    assert refusal(status, body) == Refusal(kind, used, limit, output)  # type: ignore[arg-type]


@pytest.mark.parametrize("row", WORDINGS, ids=lambda row: str(row["body"])[:40])
def test_more_wordings(row: dict[str, Any]) -> None:
    found = refusal(row["status"], row["body"])
    if row["kind"] is None:
        assert found is None
    else:
        assert found == Refusal(row["kind"], row["used"], row["limit"], row["max_tokens"])


NONE: list[tuple[int | None, Any]] = [
    *(
        (400, text)
        for text in (
            "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude-opus-5",
            "`max_tokens` must be greater than `thinking.budget_tokens`",
            "thinking.budget_tokens: Input should be greater than or equal to 1024",
            "Thinking budget (40000 tokens) exceeds the maximum of 32768",
            "temperature: Input should be less than or equal to 1",
            "temperature exceeds the model maximum of 2",
            "Requested 200000 output tokens exceeds the model limit of 8192 output tokens",
            "Range of max_tokens should be [1, 8192]",
            "max_tokens must be at least 1, got 0",
            "max_tokens must be at least 1, got -1",
            "context deadline exceeded",
            "Tool names too long: at most 64 characters",
            "Invalid 'tools': array too long. Expected an array with maximum length 128, but got length 200.",
            "Too many tools: 200 > 128",
            "The tool description exceeds the limit of 1024 characters",
            "A maximum of 4 blocks with cache_control may be provided. Found 5.",
            'messages: roles must alternate between "user" and "assistant"',
            "messages: text content blocks must be non-empty",
            "messages.3.content.0.tool_use.name: string too long",
            "Your credit balance is too low to access the API.",
            "Could not process image",
            "Unsupported image type image/bmp; only png, jpeg, gif, webp are supported",
            "This model does not support image inputs",
            "image too small: must be at least 28 pixels",
            "The image data is not valid base64",
            "Invalid schema for function 'x': maximum depth exceeded",
            "JSON nesting too deep: exceeds maximum depth of 100",
            "maxOutputTokens value of 65537 but the supported range is from 1 (inclusive) to 65537 (exclusive)",
            "Number of function response parts should be equal to number of function call parts",
            "Session token expired: exceeded lifetime",
            "Access token limit exceeded",
            "audio input exceeds max duration of 60 seconds",
            "prompt_cache_key: string too long",
            "metadata.user_id: exceeds 256 characters",
        )
    ),
    (429, "Number of request tokens has exceeded your per-minute rate limit"),
    (429, "Rate limit reached for requests per min: Limit 3, Requested 1"),
    (429, {"error": {"code": "context_length_exceeded_soon", "message": "too many requests"}}),
    (401, "prompt is too long"),
    (403, "input too long"),
    (404, "model not found: context length exceeded"),
    (408, "prompt is too long: 3 tokens > 2 maximum"),
    (402, "You requested up to 65536 tokens, but can only afford 1000"),
    (500, "Internal error"),
    (503, "prompt is too long"),
    (504, "context deadline exceeded"),
    (200, "prompt is too long"),
    (200, {"role": "assistant", "content": "prompt is too long: 3 tokens > 2 maximum"}),
    (
        400,
        {"detail": [{"loc": ["body"], "msg": "field required", "input": "prompt is too long: 9 tokens > 2 maximum"}]},
    ),
    (400, {"error": {"message": "Failed to call a function", "failed_generation": "context_length_exceeded"}}),
    (400, {"error": {"message": 'messages.1: not a string: "prompt is too long: 300000 tokens > 200000 maximum"'}}),
    (400, {"messages": [{"role": "user", "content": "context_length_exceeded: prompt is too long"}]}),
    (400, None),
    (None, None),
]


@pytest.mark.parametrize("case", NONE, ids=lambda case: str(case[1])[:40])
def test_what_a_smaller_request_does_not_cure(case: tuple[int | None, Any]) -> None:
    assert refusal(*case) is None


# ---------------------------------------------------------------- variations


def scaled(text: str, source: random.Random) -> str:
    """Every number of the text times one factor, some with separators."""
    factor = source.uniform(1.5, 9)

    def other(match: re.Match[str]) -> str:
        number = int(int(match[0]) * factor)
        return f"{number:,}" if source.random() < 0.5 else str(number)

    return re.sub(r"(?<![\w.\-\[])\d{4,}(?![\w\-.]\w|\d)", other, text)


def wrapped(row: dict[str, Any], source: random.Random) -> tuple[int | None, Any]:
    """The case as a gateway, a stream or a log would hand it on."""
    body = row["body"]
    try:
        parsed = json.loads(body)
    except ValueError:
        parsed = {"error": {"message": body}}
    spoken = isinstance(parsed, dict)
    choice = source.randrange(7)
    if choice == 0:
        return row["status"], {"error": {"message": f"Provider returned error: {body}", "type": "upstream"}}
    if choice == 1:
        return row["status"], [parsed]
    if choice == 2:
        return row["status"], {"message": "Upstream error", "error": {"metadata": {"raw": body}}}
    if choice == 3:
        return row["status"], body.encode()
    if choice == 4:
        return row["status"], f"litellm.BadRequestError: XException - {body}"
    if choice == 5 and row["status"] == 400 and spoken:
        return 200, f"event: ping\ndata: {{}}\n\nevent: error\ndata: {json.dumps({**parsed, 'type': 'error'})}\n\n"
    return row["status"], parsed


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(REFUSED), st.integers(0, 1 << 32))
def test_other_numbers_case_and_wrappings_change_nothing(row: dict[str, Any], seed: int) -> None:
    source = random.Random(seed)
    if "(no body)" in row["body"]:
        return
    varied = {**row, "body": scaled(row["body"], source) if row["body"][0] != "{" else row["body"]}
    if row["body"][0] not in "{<" and source.random() < 0.5:
        varied["body"] = varied["body"].upper()
    status, body = wrapped(varied, source)
    assert kind(refusal(status, body)) == row["kind"], (status, body)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([row for row in SPOKEN if not row["kind"]]), st.integers(0, 1 << 32))
def test_no_alarm_in_any_wrapping(row: dict[str, Any], seed: int) -> None:
    status, body = wrapped(row, random.Random(seed))
    assert refusal(status, body) is None


# ---------------------------------------------------------------- exceptions


def reply(status: int, body: Any, url: str = "https://provider.test/v1") -> httpx2.Response:
    request = httpx2.Request("POST", url)
    content = body if isinstance(body, str) else json.dumps(body)
    return httpx2.Response(status, text=content, request=request)


Reply = tuple[int, str]


def sender(provider: str, reply: list[Reply]) -> Callable[[], Any]:
    """A request through the official client, answered with what stands in ``reply`` then."""
    transport = httpx2.MockTransport(lambda request: httpx2.Response(reply[0][0], text=reply[0][1]))
    http = httpx2.Client(transport=transport)
    said: Any = [{"role": "user", "content": "hi"}]
    if provider == "anthropic":
        claude = pytest.importorskip("anthropic").Anthropic(api_key="x", http_client=http, max_retries=0)
        return lambda: claude.messages.create(model="m", max_tokens=1, messages=said)
    if provider == "openai":
        gpt = pytest.importorskip("openai").OpenAI(api_key="x", http_client=http, max_retries=0)
        return lambda: gpt.chat.completions.create(model="m", messages=said)
    genai = pytest.importorskip("google.genai")
    gemini = genai.Client(api_key="x", http_options=genai.types.HttpOptions(httpx_client=http))
    return lambda: gemini.models.generate_content(model="m", contents="hi")


@pytest.mark.parametrize("provider", ["anthropic", "openai", "google"])
def test_exceptions_of_the_official_clients(provider: str) -> None:
    replies: list[Reply] = [(0, "")]
    send = sender(provider, replies)
    for row in [*SPOKEN, *(row for row in WORDINGS if row["status"] >= 400 and isinstance(row["body"], str))]:
        replies[0] = (row["status"], row["body"])
        with pytest.raises(Exception) as caught:
            send()
        assert kind(refusal(caught.value)) == row["kind"], (row, repr(caught.value))


def test_an_error_inside_a_stream() -> None:
    event = {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8 maximum"},
    }
    text = f"event: error\ndata: {json.dumps(event)}\n\n"
    headers = {"content-type": "text/event-stream"}
    http = httpx2.Client(transport=httpx2.MockTransport(lambda _: httpx2.Response(200, text=text, headers=headers)))
    anthropic = pytest.importorskip("anthropic")
    client = anthropic.Anthropic(api_key="x", http_client=http, max_retries=0)
    with pytest.raises(anthropic.APIError) as caught:
        list(client.messages.create(model="m", max_tokens=1, messages=[{"role": "user", "content": "x"}], stream=True))
    assert refusal(caught.value) == Refusal("tokens", 9, 8)

    openai = pytest.importorskip("openai")
    failed = {"error": {"code": "context_length_exceeded", "message": "Your input exceeds the context window."}}
    text = f"data: {json.dumps(failed)}\n\n"
    client = openai.OpenAI(api_key="x", http_client=http, max_retries=0)
    with pytest.raises(openai.APIError) as caught:
        list(client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}], stream=True))
    assert refusal(caught.value) == Refusal("tokens")


def test_responses_and_errors_of_other_libraries() -> None:
    said = {"error": {"message": "prompt is too long: 9 tokens > 8 maximum"}}
    assert refusal(reply(400, said)) == Refusal("tokens", 9, 8)
    assert refusal(SimpleNamespace(status_code=400, text=json.dumps(said))) == Refusal("tokens", 9, 8)
    with pytest.raises(httpx2.HTTPStatusError) as caught:
        reply(400, said).raise_for_status()
    assert refusal(caught.value) == Refusal("tokens", 9, 8)

    class ClientError(Exception):
        response = {  # noqa: RUF012 - the form botocore gives it
            "Error": {"Code": "ValidationException", "Message": "Input is too long for requested model."},
            "ResponseMetadata": {"HTTPStatusCode": 400},
        }

    assert refusal(ClientError()) == Refusal("tokens")
    assert refusal(ValueError("Requested tokens (2285) exceed context window of 2048")) == Refusal("tokens", 2285, 2048)
    try:
        try:
            raise ValueError("Requested tokens (2285) exceed context window of 2048")
        except ValueError as error:
            raise RuntimeError("the model call failed") from error
    except RuntimeError as error:
        assert refusal(error) == Refusal("tokens", 2285, 2048)


def test_an_unread_body_is_not_an_empty_one() -> None:
    class Unread:
        status_code = 400

        @property
        def text(self) -> str:
            raise RuntimeError("the stream was not read")

    assert refusal(Unread()) is None
    assert refusal(400, "") == Refusal("tokens")
    unread = Unread()
    unread.status_code = 413
    assert refusal(unread) == Refusal("bytes")


@pytest.mark.parametrize("name", ["response", "status_code", "code", "body", "details", "message", "type", "text"])
def test_an_attribute_that_raises_hides_no_refusal(name: str) -> None:
    """Properties of clients' errors raise when what they tell of was not read, or never came."""

    def raises(self: Any) -> Any:
        raise RuntimeError("there is none")

    odd = type("Odd", (Exception,), {name: property(raises)})
    assert refusal(odd(LONG)) == Refusal("tokens", 210_000, 200_000)
    answer = type("Answer", (), {"choices": property(raises), "model_dump": raises, "stop_reason": "end_turn"})
    assert refusal(answer()) is None
    assert refusal({"error": answer()}) is None


def test_an_error_in_a_group_is_found() -> None:
    """Task groups of asyncio and anyio raise what their tasks raised together."""
    group = ExceptionGroup("tasks", [ValueError("of another task"), ExceptionGroup("more", [RuntimeError(LONG)])])
    outer = RuntimeError("the model call failed")
    outer.__cause__ = group
    for error in (group, outer):
        assert refusal(error) == Refusal("tokens", 210_000, 200_000)
    assert refusal(ExceptionGroup("tasks", [ValueError("no"), TimeoutError()])) is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Request failed with status code 413", "bytes"),
        ("Error code: 413", "bytes"),
        ("413 Client Error: Payload for url: https://api.example.com/v1/chat", "bytes"),
        ("Error code: 400 - input too long", "tokens"),
        ("HTTP 403: input too long", None),
        ("Error code: 401 - token limit exceeded for key", None),
        ("status=404 model not found: context length exceeded", None),
        ("Error code: 503 - prompt is too long", None),
        ("got 413 files, the last has no end", None),
    ],
)
def test_the_status_that_a_wrapper_left_in_the_text_counts(text: str, kind: str | None) -> None:
    found = refusal(RuntimeError(text))
    assert (found and found.kind) == kind


def test_causes_without_an_end_come_to_one() -> None:
    error = RuntimeError("again")
    error.__cause__ = ExceptionGroup("tasks", [error, error, error])
    assert refusal(error) is None
    body: list[Any] = []
    body.append({"error": body})
    assert refusal(400, body) is None
    body[0] = body
    assert refusal(400, body) is None


@pytest.mark.parametrize(
    "error", [ValueError("no"), KeyError("prompt"), TimeoutError(), ConnectionError("too long ago"), Exception()]
)
def test_other_exceptions(error: Exception) -> None:
    assert refusal(error) is None


# ---------------------------------------------------------------- answers


def test_answers_that_are_none() -> None:
    full = {
        "type": "message",
        "stop_reason": "model_context_window_exceeded",
        "content": [{"type": "text", "text": "…"}],
    }
    usage = {"input_tokens": 100, "cache_read_input_tokens": 98_000, "output_tokens": 1_900}
    assert refusal({**full, "usage": usage}) == Refusal("silent", 98_100, 100_000)
    assert refusal({"choices": [{"finish_reason": "model_length", "message": {"content": "ab"}}]}) == Refusal("silent")
    nothing = {"choices": [{"finish_reason": "length", "message": {"content": ""}}]}
    assert refusal({**nothing, "usage": {"prompt_tokens": 7, "completion_tokens": 0}}) == Refusal("silent", 7)
    gemini = {"candidates": [{"finishReason": "MAX_TOKENS", "content": {"role": "model"}}]}
    counted = {"usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 0}}
    assert refusal({**gemini, **counted}) == Refusal("silent", 9)
    responses = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": []}
    assert refusal({**responses, "usage": {"input_tokens": 9, "output_tokens": 0}}) == Refusal("silent", 9)
    failed = SimpleNamespace(status="failed", error=SimpleNamespace(code="context_length_exceeded", message="no"))
    assert refusal(failed) == Refusal("tokens")
    assert refusal({"base_resp": {"status_code": 2013, "status_msg": "context window exceeds limit"}}) == Refusal(
        "tokens"
    )


CLAUDE = {"type": "message", "usage": {"input_tokens": 9, "output_tokens": 2}}
CLAUDE_0 = {"type": "message", "usage": {"input_tokens": 9, "output_tokens": 0}}
GPT_0 = {"usage": {"prompt_tokens": 9, "completion_tokens": 0}}
GEMINI_0 = {"usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 0}}


def chat(stop: str, **message: Any) -> dict[str, Any]:
    return {"choices": [{"finish_reason": stop, "message": message}]}


GOOD = [
    {**CLAUDE, "stop_reason": "end_turn", "content": [{"type": "text", "text": "ok"}]},
    {**CLAUDE, "stop_reason": "end_turn", "content": []},
    {**CLAUDE_0, "stop_reason": "max_tokens", "content": [{"type": "thinking", "thinking": ""}]},
    {**CLAUDE_0, "stop_reason": "refusal", "content": []},
    {**GPT_0, **chat("tool_calls", content=None, tool_calls=[{"id": "1"}])},
    {**GPT_0, **chat("content_filter", content="")},
    {**chat("length", content=""), "usage": {"prompt_tokens": 9, "completion_tokens": 400}},
    chat("stop", content="error: context_length_exceeded"),
    {**GEMINI_0, "candidates": [{"finishReason": "SAFETY"}]},
    {**GEMINI_0, "candidates": [{"finishReason": "STOP", "content": {"parts": [{"functionCall": {"name": "x"}}]}}]},
    {**CLAUDE_0, "type": None, "status": "completed", "error": None, "output": [{"type": "function_call"}]},
    {"done_reason": "stop", "message": {"content": "hi"}, "prompt_eval_count": 900, "eval_count": 1},
    {"role": "tool", "content": "Error: context_length_exceeded"},
    {},
    [],
    "prompt is too long: 3 tokens > 2 maximum",
    None,
]


@pytest.mark.parametrize("answer", GOOD, ids=str)
def test_sound_answers(answer: Any) -> None:
    assert refusal(answer) is None
    assert refusal(answer, window=1_000, expected=15) is None
    if isinstance(answer, dict):
        assert refusal(200, json.dumps(answer)) is None


# ---------------------------------------------------------------- hostile bodies

HOSTILE = [
    "prompt " * 400_000,
    "exceeds " * 300_000,
    "1" * 2_000_000,
    "1 > " * 500_000,
    "image max " * 200_000,
    '"' * 2_000_000,
    "{" * 2_000_000,
    "[" * 2_000_000,
    '{"error":' * 200_000,
    '{"message":"' + "\\" * 1_000_000,
    "data: {}\n" * 200_000,
    "messages[0]" * 200_000,
    "max_tokens " * 200_000,
    "input tokens 1 " * 200_000,
    " " * 2_000_000 + "x",
    json.dumps({"error": {"message": "tokens " * 500_000}}),
    json.dumps({"errors": [{"message": "input too long"}] * 100_000}),
]


@pytest.mark.parametrize("body", HOSTILE, ids=lambda body: body[:16])
def test_hostile_bodies_are_judged_to_their_end(body: str) -> None:
    """Anything but linear time would not come back."""
    assert refusal(400, body) == refusal(400, body)
    assert refusal(200, body) == refusal(200, body)
    assert refusal(RuntimeError(body)) == refusal(RuntimeError(body))


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(st.none(), st.integers(-5, 700)),
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20)),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(st.sampled_from(["error", "message", "code", "usage", "choices", "type", "status"]), inner),
        ),
        max_leaves=12,
    ),
)
def test_never_raises(status: int | None, body: Any) -> None:
    assert isinstance(refusal(status, body), (Refusal, type(None)))
    assert isinstance(refusal(body), (Refusal, type(None)))
    assert isinstance(refusal((status, body)), (Refusal, type(None)))


TOO_LONG = "Invalid '{}': string too long. Expected a string with maximum length {}, but got a longer one instead."


@pytest.mark.parametrize(
    ("name", "most", "kind"),
    [
        ("messages[1].content", 10485760, "tokens"),
        ("input[3].content[0].text", 10485760, "tokens"),
        ("input[2].output", 10485760, "tokens"),
        ("user", 64, None),
        ("messages[3].tool_calls[0].id", 40, None),
        ("tools[0].function.description", 1024, None),
    ],
)
def test_the_field_that_is_too_long_is_read_from_the_message(name: str, most: int, kind: str | None) -> None:
    """Kind of report: a 400 of ``string_above_max_length`` that does not name its ``param``, or lost its code."""
    message = TOO_LONG.format(name, most)
    for text in (message, message.replace("'", '"')):
        full = {"error": {"message": text, "param": None, "code": "string_above_max_length"}}
        bare = {"error": {"message": text}}
        wrapped = {"error": {"message": f"litellm.BadRequestError: OpenAIException - {text}"}}
        lost = Exception(f"Error code: 400 - {full}")
        for error in ((400, full), (400, json.dumps(full)), (400, bare), (400, wrapped), lost):
            found = refusal(error)
            assert (found and found.kind) == kind, error
            assert found is None or (found.used, found.limit) == (None, None)  # characters are no window


def test_a_too_long_field_that_nobody_names() -> None:
    def found(text: str) -> Any:
        return refusal((400, {"error": {"message": text, "code": "string_above_max_length"}}))

    assert found("String too long: expected maximum length 10485760.").kind == "tokens"
    assert found("String too long: expected maximum length 64.") is None
    assert found("String too long.") is None


@pytest.mark.parametrize(
    "message",
    [
        "Invalid value: got \"Error: Invalid 'messages[1].content': string too long\"",
        "1 validation error: input_value='Invalid \\'messages[1].content\\': string too long'",
        "Tool 'x' said {'error': {'message': \"Invalid 'messages[1].content': string too long\"}}",
    ],
)
def test_a_quoted_complaint_of_length_is_none(message: str) -> None:
    assert refusal((400, {"error": {"message": message, "code": "invalid_value"}})) is None


def test_every_kind_names_its_cure() -> None:
    cures = {Refusal(row["kind"]).cure for row in TABLE if row["kind"]}
    assert len(cures) == 8
