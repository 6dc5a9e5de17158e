"""Which model a name means, and what every row says."""

from __future__ import annotations

import json
import re
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st
from microfiche.errors import BadInput
from microfiche.models import FIDELITIES, Cell, catalogue, cell_for, find, regimes

NAMES = [
    # name, row that answers, how
    ("claude-opus-5", "claude-opus-5", "exact"),
    ("anthropic/claude-opus-5", "claude-opus-5", "exact"),
    ("openrouter/anthropic/claude-opus-4.8:free", "claude-opus-4-8", "exact"),
    ("Claude-Opus-5", "claude-opus-5", "exact"),
    ("claude-opus-5[1m]", "claude-opus-5", "exact"),
    ("claude-haiku-4-5-20251001", "claude-haiku-4-5", "exact"),
    ("claude-haiku-4-5@20251001", "claude-haiku-4-5", "exact"),
    ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5", "exact"),
    ("anthropic.claude-opus-4-6-v1", "claude-opus-4-6", "exact"),
    (
        "arn:aws:bedrock:us-east-1:123456789012:inference-profile/eu.anthropic.claude-opus-4-5-20251101-v1:0",
        "claude-opus-4-5",
        "exact",
    ),
    ("publishers/anthropic/models/claude-opus-5-5", "claude-opus-5-5", "exact"),
    ("claude-opus-latest", "claude-opus-5-5", "older"),
    ("claude-opus-5-0", "claude-opus-5", "exact"),
    # Newer versions are answered by the newest older one of their line.
    ("claude-opus-5-9", "claude-opus-5-5", "older"),
    ("claude-opus-5-4", "claude-opus-5", "older"),
    ("claude-opus-9", "claude-opus-5-5", "older"),
    ("claude-sonnet-4-8", "claude-sonnet-4-6", "older"),
    ("gpt-5.3", "gpt-5.2", "older"),
    ("gemini-3.9-flash", "gemini-3.8-flash", "older"),
    ("gemini-3.7-flash-lite", "gemini-3.5-flash-lite", "older"),
    ("kimi-k2.7", "kimi-k2.6", "older"),
    ("glm-4.6v", "glm-4.5v", "older"),
    ("mistral-small-2701", "mistral-small-2603", "older"),
    # Never across lines.
    ("gpt-5", "gpt-5", "exact"),
    ("gpt-5-mini", "gpt-5-mini", "exact"),
    ("gpt-5.2-mini", "gpt-5-mini", "older"),
    ("gpt-5-mini-2025-08-07", "gpt-5-mini", "exact"),
    ("gpt-4o-2024-08-06", "gpt-4o", "exact"),
    ("gpt-4o-mini", "gpt-4o-mini", "exact"),
    ("gpt-4.1-nano", "gpt-4.1-nano", "exact"),
    ("azure/gpt-5.6-sol", "gpt-5.6-sol", "exact"),
    ("o4-mini", "o4-mini", "exact"),
    ("o3-mini", "o3-mini", "exact"),
    ("o3-2025-04-16", "o3", "exact"),
    ("models/gemini-3.6-flash", "gemini-3.6-flash", "exact"),
    ("gemini-2.5-flash-preview-05-20", "gemini-2.5-flash", "exact"),
    ("gemini-2.5-pro-001", "gemini-2.5-pro", "exact"),
    ("gemini-3-flash", "gemini-3-flash-preview", "exact"),
    ("x-ai/grok-4.7", "grok-4.7", "exact"),
    ("Qwen/Qwen2.5-VL-72B-Instruct", "qwen2.5-vl", "exact"),
    ("qwen/qwen3-vl-235b-a22b-instruct", "qwen3-vl", "exact"),
    ("meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8", "llama-4-maverick", "exact"),
    ("mistralai/pixtral-12b-2409", "pixtral-12b", "older"),
    ("pixtral-large-latest", "pixtral-large-latest", "exact"),
    ("mistral-large-latest", "mistral-large-4", "older"),
    ("deepseek/deepseek-v4.1-flash", "deepseek-flash", "exact"),
    ("groq/openai/gpt-oss-20b", "gpt-oss-120b", "exact"),
]
FAMILIES = [
    ("claude-opus-3", "anthropic"),
    ("claude-3-5-sonnet-20241022", "anthropic"),
    ("claude-2.1", "anthropic"),
    ("claude-nova-1", "anthropic"),
    ("gpt-4", "openai"),
    ("gpt-3.5-turbo-0125", "openai"),
    ("gpt-5.2-codex", "openai"),
    ("o1-preview", "openai"),
    ("o3-pro", "openai"),
    ("gemini-1.5-pro", "google"),
    ("grok-4-0709", "xai"),
    ("kimi-k2-0905", "moonshot"),
    ("deepseek-chat", "deepseek"),
    ("deepseek-v3", "deepseek"),
    ("glm-4.6", "zai"),
    ("mistral-large-2411", "mistral"),
    ("mistral-small-2506", "mistral"),
]


@pytest.mark.parametrize(("name", "row", "match"), NAMES)
def test_names(name: str, row: str, match: str) -> None:
    model = find(name)
    assert (model.id, model.match) == (row, match)
    assert model.known and model.name == name


@pytest.mark.parametrize(("name", "provider"), FAMILIES)
def test_a_family_gives_no_sight_price_or_window(name: str, provider: str) -> None:
    model = find(name)
    assert (model.match, model.provider) == ("family", provider)
    assert not model.known
    assert model.vision is None and model.context_window is None and model.prices.input is None
    assert {cell_for(model, fidelity).grade for fidelity in FIDELITIES} == {"default"}
    assert find(name, vision=True).vision is True


@pytest.mark.parametrize("name", ["", "/", ":", "wat", "my-own-model-7b", "ollama/phi-9", "٣", "-", "a/b/"])
def test_unknown_names(name: str) -> None:
    model = find(name)
    assert (model.match, model.provider, model.vision, model.known) == ("unknown", "unknown", False, False)
    assert find(name, vision=True).vision is True
    assert model.regime.name == "unknown" and model.wire == "openai_chat"


@given(st.text(alphabet=st.sampled_from("claude-gpt.o/0123456789:@vVé_ [x"), max_size=60) | st.text())
def test_any_name_is_answered(name: str) -> None:
    model = find(name)
    assert model.name == name
    assert model.vision is not True or model.known


def test_a_name_may_be_huge() -> None:
    for name in ("claude-opus-" + "9" * 100_000, "9" * 100_000, "-" * 100_000, "v1." * 50_000, "a1" * 50_000):
        assert find(name).match in ("family", "unknown")


@given(st.sampled_from([model.id for model in catalogue()]), st.sampled_from(["", "openrouter/x/", "models/"]))
def test_every_row_finds_itself(name: str, host: str) -> None:
    found = find(host + name)
    assert (found.id, found.match) == (name, "exact")


def test_vision_can_be_overridden_both_ways() -> None:
    assert find("o3-mini").vision is False
    assert find("gpt-oss-120b").vision is False
    assert find("gpt-oss-120b", vision=True).vision is True
    assert find("claude-opus-5").vision is True
    assert find("claude-opus-5", vision=False).vision is False


def test_a_newer_version_does_not_inherit_a_reading() -> None:
    assert cell_for(find("gemini-3.6-flash"), "gist").width == 5
    newer = find("gemini-3.7-flash")
    assert newer.id == "gemini-3.6-flash" and newer.match == "older"
    assert str(cell_for(newer, "gist")) == "9x16"


def test_a_version_rule_of_the_provider_goes_before_the_older_row() -> None:
    # Claude from 4.7 on has the larger tier, Gemini from 3 on the token budget.
    assert find("claude-sonnet-4-6").regime.name == "anthropic-standard"
    newer = find("claude-sonnet-4-8")
    assert (newer.id, newer.regime.name, float(newer.bytes_per_token)) == (
        "claude-sonnet-4-6",
        "anthropic-high",
        2.0,
    )
    pro = find("gemini-3-pro")
    assert (pro.id, pro.regime.name, pro.image_roles) == (
        "gemini-2.5-pro",
        "gemini-3",
        frozenset({"user", "tool"}),
    )


def test_hosts_lower_limits_only() -> None:
    assert find("claude-opus-5").image_bytes == 10_000_000
    bedrock = find("bedrock/us.anthropic.claude-opus-5-20260101-v1:0")
    assert (bedrock.image_bytes, bedrock.request_bytes, bedrock.images_per_request) == (5_000_000, 20_000_000, 600)
    assert find("vertex_ai/claude-opus-5@20260101").image_bytes == 5_000_000
    assert find("vertex_ai/gemini-3.6-flash").image_bytes == 5_000_000
    assert find("azure/gpt-5.6-sol").images_per_request == 50
    assert find("groq/meta-llama/llama-4-scout-17b-16e-instruct").images_per_request == 5
    assert find("openai/gpt-5.6-sol") == find("openai/gpt-5.6-sol") != find("azure/gpt-5.6-sol")


@pytest.mark.parametrize("model", catalogue(), ids=lambda model: model.id)
def test_every_row_is_whole(model) -> None:  # type: ignore[no-untyped-def]
    assert model.source and re.fullmatch(r"20\d\d-\d\d-\d\d", model.date)
    assert model.provider != "unknown"
    assert model.wire in ("anthropic", "openai_chat", "gemini")
    assert "user" in model.image_roles and model.image_roles <= {"user", "tool"}
    assert set(model.cells) == set(FIDELITIES)
    for cell in model.cells.values():
        assert cell.evidence and re.fullmatch(r"20\d\d-\d\d", cell.date) and cell.ink in ("grey", "mono")
        assert (cell.width, cell.height) == (9, 16) or cell.grade == "measured"
    widths = [model.cells[fidelity].width for fidelity in FIDELITIES]
    assert widths == sorted(widths, reverse=True)
    for figure in (model.context_window, model.max_output, model.images_per_request, model.max_side):
        assert figure is None or (isinstance(figure, int) and figure > 0)
    prices = model.prices
    assert (prices.threshold is None) == (prices.input_above is None)
    for price in (prices.input, prices.cached, prices.cache_write, prices.output, prices.input_above):
        assert price is None or price >= 0
    if prices.input_above is not None:
        assert prices.input is not None and prices.input_above > prices.input
    if prices.cached is not None and prices.input is not None:
        assert prices.cached <= prices.input


def test_cells_of_the_models_that_were_read() -> None:
    assert cell_for(find("claude-opus-5"), "gist") == Cell(
        5,
        10,
        "grey",
        "94/98 questions on content at cells far smaller than 9x16, agent sessions, JetBrains Mono grey; "
        "pxpipe's published readings, 2026-08",
        "2026-08",
        "measured",
    )
    # 100/100 identifiers at 9x16: identifiers alone give gist.
    assert cell_for(find("claude-opus-5")).grade == "default"
    got = {
        name: [str(cell_for(find(name), fidelity)) for fidelity in FIDELITIES]
        for name in ("claude-fable-5", "claude-opus-5", "claude-opus-4-8", "gemini-3.6-flash", "gpt-5.6-sol")
    }
    assert got == {
        "claude-fable-5": ["9x16", "9x16", "5x10"],
        "claude-opus-5": ["9x16", "9x16", "5x10"],
        "claude-opus-4-8": ["9x16", "9x16", "9x16"],  # 77/98 gist questions
        "gemini-3.6-flash": ["9x16", "9x16", "5x10"],
        "gpt-5.6-sol": ["9x16", "9x16", "9x16"],  # 83/98
    }
    with pytest.raises(BadInput, match="one of exact, working, gist"):
        cell_for(find("claude-opus-5"), "best")  # type: ignore[arg-type]


def test_ids_and_regimes_are_named_once() -> None:
    text = resources.files("microfiche.models").joinpath("catalogue.json").read_text("utf-8")

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        assert len({key for key, _ in pairs}) == len(pairs), pairs
        return dict(pairs)

    raw = json.loads(text, object_pairs_hook=once)
    ids = [row["id"] for row in raw["models"]]
    assert len(ids) == len(set(ids)) == len(catalogue()) >= 76
    assert all(regime.source and regime.status for regime in regimes())


def test_windows_and_limits_of_the_usual_models() -> None:
    opus, haiku, sol, flash = map(find, ("claude-opus-5", "claude-haiku-4-5", "gpt-5.6-sol", "gemini-3.6-flash"))
    assert [model.context_window for model in (opus, haiku, sol, flash)] == [1_000_000, 200_000, 922_000, 1_048_576]
    assert [model.max_output for model in (opus, haiku, sol, flash)] == [128_000, 64_000, 128_000, 65_536]
    assert [model.images_per_request for model in (opus, haiku, sol, flash)] == [600, 100, 1500, 3000]
    assert [model.wire for model in (opus, haiku, sol, flash)] == ["anthropic", "anthropic", "openai_chat", "gemini"]
    assert opus.many_images is not None and (opus.many_images.count, opus.many_images.side) == (20, 2000)
    assert opus.max_side == 8000 and opus.request_bytes == 32_000_000
    assert sol.prices.input == 4.0 and sol.prices.input_above == 8.0 and sol.prices.threshold == 272_000
