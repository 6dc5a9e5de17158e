"""After a refusal: what the provider said becomes a smaller request, without a model."""

from __future__ import annotations

import base64
import io
import socket
from typing import Any

import microfiche as mf
import microfiche.clients
import pytest
from PIL import Image


def history(rounds: int, size: int = 6_000) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Find the leak."}]
    for at in range(rounds):
        call = {"type": "tool_use", "id": f"t{at}", "name": "ask", "input": {"topic": f"leak {at}"}}
        text = " ".join(f"word{at}_{i}" for i in range(size // 10))
        messages.append({"role": "assistant", "content": [call]})
        messages.append(
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{at}", "content": text}]}
        )
    return messages


def shot(width: int, height: int, grain: int = 0) -> dict[str, Any]:
    file = io.BytesIO()
    Image.effect_noise((width, height), grain).save(file, "PNG")
    data = base64.b64encode(file.getvalue()).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def error(message: str, status: int = 400, kind: str = "invalid_request_error") -> tuple[int, dict[str, Any]]:
    return status, {"type": "error", "error": {"type": kind, "message": message}}


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a recovery opened a socket")

    monkeypatch.setattr(socket, "create_connection", refuse)


def test_a_true_size_teaches_the_ratio() -> None:
    messages = history(60)
    estimate = mf.count(messages, model="claude-haiku-4-5")
    used = int(estimate * 1.4)
    fit = mf.recover(
        messages, error=error(f"prompt is too long: {used} tokens > 150000 maximum"), model="claude-haiku-4-5"
    )
    # What is kept, counted as the provider counts, fits the window and leaves room for the answer.
    assert fit.receipt.after.tokens * 1.4 <= 150_000 - 32_000
    assert fit.tokens >= fit.receipt.after.tokens * 1.39
    assert fit.pages and not mf.validate(fit.request)


def test_no_numbers_still_shrink() -> None:
    messages = history(60)
    estimate = mf.count(messages, model="claude-opus-5")
    fit = mf.recover(messages, error=error("prompt is too long"), model="claude-opus-5")
    assert fit.tokens < 0.75 * estimate


def test_a_limit_alone_is_gone_down_to() -> None:
    """Kind: a refusal that tells the limit and not what was sent, recovered in steps instead of at once."""
    told = error("This model's maximum context length is 8192 tokens.")
    fit = mf.recover(history(60), error=told, model="claude-opus-5", max_tokens=1_000)
    assert fit.tokens <= 8_192 - 1_000


def test_an_answer_longer_than_the_window_told_is_shortened() -> None:
    """Kind: the input shrinks, the answer asked for is still longer than the whole window."""
    used = mf.count(history(60), model="claude-opus-5")
    told = error(f"prompt is too long: {used} tokens > 16000 maximum")
    fit = mf.recover({"messages": history(60), "max_tokens": 32_000}, error=told, model="claude-opus-5")
    assert fit.tokens + fit.request["max_tokens"] <= 16_000


def test_what_was_judged_before_is_taken_as_it_is() -> None:
    told = mf.Refusal("tokens", 300_000, 150_000)
    assert mf.refusal(told) is told
    fit = mf.recover(history(60), error=told, model="claude-haiku-4-5")
    assert fit.tokens < 150_000


def test_an_input_that_was_dropped_silently_is_recovered() -> None:
    """Kind: a local server that cuts the input to its window and answers as if nothing had happened."""
    answer = {"done_reason": "stop", "message": {"content": "Hello!"}, "prompt_eval_count": 4_096, "eval_count": 9}
    fit = mf.recover(history(60), error=answer, model="claude-opus-5", max_tokens=500)
    assert fit.tokens <= 4_096 - 500


@pytest.mark.parametrize("attempt", [0, 3, True, "1"])
def test_what_is_no_attempt(attempt: Any) -> None:
    with pytest.raises(mf.BadInput, match="attempt"):
        mf.recover(history(2), error=mf.Refusal("tokens"), model="claude-opus-5", attempt=attempt)


def test_only_the_answer_is_too_long() -> None:
    messages = history(3)
    told = error("input length and `max_tokens` exceed context limit: 180000 + 64000 > 200000, decrease input length")
    fit = mf.recover(messages, error=told, model="claude-haiku-4-5", max_tokens=64_000)
    assert fit.messages == messages
    assert fit.request["max_tokens"] <= 20_000


def test_bytes_drop_images_not_text() -> None:
    messages = history(3)
    for at in range(8):
        messages.append(
            {"role": "assistant", "content": [{"type": "tool_use", "id": f"s{at}", "name": "shot", "input": {}}]}
        )
        result = {"type": "tool_result", "tool_use_id": f"s{at}", "content": [shot(400, 300, 90)]}
        messages.append({"role": "user", "content": [result]})
    told = error("Request exceeds the maximum size", 413, "request_too_large")
    fit = mf.recover(messages, error=told, model="claude-opus-5")
    assert fit.receipt.after.images < fit.receipt.before.images
    assert not fit.pages
    assert not mf.validate(fit.request)


class Proxy:
    """A client whose server bills the base64 of images by its characters, half a token each."""

    def __init__(self) -> None:
        self.messages = self
        self.refused = 0

    def create(self, **request: Any) -> list[Any]:
        sent = request["messages"]
        shots = [part for message in sent for part in pictures(message["content"])]
        tokens = mf.count(sent, model=request["model"]) + sum(len(part["source"]["data"]) for part in shots) // 2
        if tokens > 190_000:
            self.refused += 1
            raise RuntimeError(f"prompt is too long: {tokens} tokens > 200000 maximum")
        return list(sent)


def pictures(content: Any) -> list[Any]:
    if isinstance(content, str):
        return []
    inner = [part for block in content for part in pictures(block.get("content", []))]
    return inner + [block for block in content if block["type"] == "image"]


def test_images_billed_as_text_leave_and_the_text_stays() -> None:
    """Kind: a proxy bills the base64 of images by its characters, eighty times what an image has."""
    messages = history(45, 800)
    for message in messages[2::2]:
        [result] = message["content"]
        result["content"] = [{"type": "text", "text": result["content"]}, shot(300, 200, 60)]
    proxy = Proxy()
    create = mf.clients.anthropic(proxy)
    for _ in range(2):
        taken = create(model="claude-haiku-4-5", max_tokens=4_000, messages=messages)
        # One refusal tells it all, also for the requests to come; no word of the text was given for it.
        assert proxy.refused == 1
        assert not [part for message in taken for part in pictures(message["content"])]
        assert all(f"word{at}_79" in str(taken) for at in range(45))
        assert create.context is not None and not mf.validate(create.context.request)
        messages = [*messages, {"role": "assistant", "content": "Found."}, {"role": "user", "content": "Go on."}]


@pytest.mark.parametrize("side", [40, 400])
def test_tools_that_were_not_passed_are_not_taken_for_images_billed_as_text(side: int) -> None:
    """Kind: a count far above the estimate is put on the one picture, which leaves while the text stays too large."""
    messages: list[Any] = history(20, 400)
    messages[2]["content"][0]["content"] = [shot(side, side, 1)]
    estimate = mf.count(messages, model="claude-haiku-4-5")
    used = 6 * estimate
    told = error(f"prompt is too long: {used} tokens > {used // 2} maximum")
    fit = mf.recover(messages, error=told, model="claude-haiku-4-5")
    assert fit.receipt.after.tokens <= estimate // 2


def test_a_side_too_long_leaves_and_the_others_stay() -> None:
    told = error(
        "messages.2.content.0.image.source.base64.data: At least one of the image dimensions exceed max allowed size"
        " for many-image requests: 2000 pixels"
    )
    content = [shot(2400, 20), shot(300, 200), {"type": "text", "text": "compare these"}]
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "hello"},
        {"role": "user", "content": content},
    ]
    fit = mf.recover(messages, error=told, model="claude-opus-5")
    assert fit.receipt.after.images == 1
    assert [line["why"] for line in fit.receipt.images] == ["side"]


def test_the_plan_goes_on() -> None:
    messages = history(60)
    first = mf.compact(messages, model="claude-opus-5", budget=100_000)
    fit = mf.recover(
        messages,
        error=error("prompt is too long: 130000 tokens > 120000 maximum"),
        model="claude-opus-5",
        plan=first.plan,
    )
    assert fit.receipt.after.tokens < first.receipt.after.tokens
    old, new = first.plan.archive, fit.plan.archive
    assert old is not None and new is not None
    assert [page.digest for page in new.full][: len(old.full)] == [page.digest for page in old.full]


def test_what_is_no_refusal_is_told() -> None:
    with pytest.raises(mf.BadInput):
        mf.recover(
            history(2),
            error=error("Number of requests has exceeded your rate limit", 429, "rate_limit_error"),
            model="claude-opus-5",
        )


def test_nothing_left_to_leave_out() -> None:
    messages = [{"role": "user", "content": "word " * 40_000}]
    with pytest.raises(mf.CannotFit):
        mf.recover(messages, error=error("prompt is too long: 210000 tokens > 20000 maximum"), model="claude-haiku-4-5")


@pytest.mark.parametrize("model", ["o3-mini"])
def test_a_model_that_reads_no_images_gets_none(model: str) -> None:
    content = [{"type": "image_url", "image_url": {"url": "data:image/png;base64," + shot(30, 20)["source"]["data"]}}]
    messages = [{"role": "user", "content": [*content, {"type": "text", "text": "what is this"}]}]
    fit = mf.compact(messages, model=model, budget=10_000)
    assert "image_url" not in str(fit.messages)
    assert "what is this" in str(fit.messages)
    assert [line["why"] for line in fit.receipt.images] == ["unseen"]
