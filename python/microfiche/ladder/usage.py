"""What a provider's usage says of the input of a call: its tokens, and how many of them its prompt cache holds.

* Anthropic: ``input_tokens`` leaves out what ``cache_read_input_tokens`` and ``cache_creation_input_tokens`` count
  (docs.claude.com, prompt caching); of several iterations the last is the request that stands. Bedrock's Converse
  counts so too, as ``inputTokens``, ``cacheReadInputTokens`` and ``cacheWriteInputTokens`` (docs.aws.amazon.com).
* OpenAI: ``prompt_tokens`` and ``input_tokens`` include the ``cached_tokens`` of their details
  (platform.openai.com, prompt caching), DeepSeek's its ``prompt_cache_hit_tokens`` (api-docs.deepseek.com).
* Gemini: ``promptTokenCount`` includes ``cachedContentTokenCount`` (ai.google.dev, UsageMetadata).
"""

from __future__ import annotations

from typing import Any

_READ = ("cache_read_input_tokens", "cacheReadInputTokens")
_WRITTEN = ("cache_creation_input_tokens", "cacheWriteInputTokens")
_WITHOUT_CACHE = ("input_tokens", "inputTokens")
_WHOLE = ("prompt_tokens", "promptTokenCount", "prompt_token_count")
_DETAILS = ("prompt_tokens_details", "input_tokens_details")
_HELD = ("cachedContentTokenCount", "cached_content_token_count", "prompt_cache_hit_tokens")


def reported(usage: Any) -> int | None:
    """The input tokens of a whole request by the usage that came with its answer; ``None`` if it tells none."""
    usage = _standing(usage)
    if (whole := _number(usage, *_WHOLE)) is not None:
        return whole
    plain = _number(usage, *_WITHOUT_CACHE)
    if plain is None:
        return None
    return plain + (_number(usage, *_READ) or 0) + (_number(usage, *_WRITTEN) or 0)


def cached(usage: Any) -> int | None:
    """How many of the first tokens of the request are in the provider's cache now, as far as its usage tells.

    What a call read from it or wrote to it. OpenAI and Gemini say only what they read, which is the beginning that the
    call before had too: the least that is there. ``None`` if the usage tells nothing of a cache.
    """
    usage = _standing(usage)
    read, written = _number(usage, *_READ), _number(usage, *_WRITTEN)
    if read is not None or written is not None:
        return (read or 0) + (written or 0)
    for name in _DETAILS:
        if isinstance(usage.get(name), dict) and (held := _number(usage[name], "cached_tokens")) is not None:
            return held
    return _number(usage, *_HELD)


def _standing(usage: Any) -> dict[str, Any]:
    """The counts of the request that stands: those of the last iteration, where there were several."""
    if not isinstance(usage, dict):
        return {}
    iterations = usage.get("iterations")
    return _standing(iterations[-1]) if isinstance(iterations, list) and iterations else usage


def _number(counts: dict[str, Any], *names: str) -> int | None:
    """The first of the counts that is a number of tokens."""
    values = (counts.get(name) for name in names)
    return next((n for n in values if isinstance(n, int) and not isinstance(n, bool) and n >= 0), None)
