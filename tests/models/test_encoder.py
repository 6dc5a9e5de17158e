"""`mf.count` says which ruler it used; the one of tiktoken is exact about text, and an error where it cannot be."""

from __future__ import annotations

import copy
import json
import pickle
import sys
from types import SimpleNamespace
from typing import Any

import microfiche as mf
import pytest

SAID = [{"role": "user", "content": "one two three"}, {"role": "assistant", "content": "four"}]


class Words:
    """An encoding of a token a word, with the name of the real one."""

    name = "o200k_base"

    def encode_ordinary(self, text: str) -> list[int]:
        text.encode("utf-8")  # as the real one does
        return list(range(len(text.split())))


def library(get: Any) -> Any:
    def name_for(model: str) -> str:
        if not model.startswith(("gpt-", "o3")):
            raise KeyError(model)
        return "o200k_base"

    return SimpleNamespace(encoding_name_for_model=name_for, get_encoding=get)


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", library(lambda name: Words()))


def test_a_count_is_a_number_that_names_its_ruler() -> None:
    count = mf.count(SAID, model="gpt-4o")
    assert count == 2 * 4 + 5 + 2 and count.ruler == "UTF-8 bytes/3"
    assert mf.count(SAID, model="claude-opus-5").ruler == "UTF-8 bytes/2"
    assert json.dumps(count) == "15" and f"{count:,}" == "15" and isinstance(count, int)
    for twin in (copy.deepcopy(count), pickle.loads(pickle.dumps(count))):
        assert (twin, twin.ruler) == (count, count.ruler)


@pytest.mark.usefixtures("words")
def test_tiktoken_counts_text_and_the_frames_stay() -> None:
    count = mf.count(SAID, model="openai/gpt-4o", ruler="tiktoken")
    assert (count, count.ruler) == (2 * 4 + 3 + 1, "tiktoken o200k_base")
    long = mf.count([{"role": "user", "content": "word " * 10_000}], model="gpt-4o", ruler="tiktoken")
    assert 10_004 <= long <= 10_004 + 13  # a cut may part a word
    assert mf.count([{"role": "user", "content": "a \ud800 b"}], model="gpt-4o", ruler="tiktoken") == 4 + 3


@pytest.mark.usefixtures("words")
def test_other_models_and_rulers_are_refused() -> None:
    with pytest.raises(mf.BadInput, match="no vocabulary of claude-opus-5"):
        mf.count(SAID, model="claude-opus-5", ruler="tiktoken")
    with pytest.raises(mf.BadInput, match="'words' is no ruler"):
        mf.count(SAID, model="gpt-4o", ruler="words")  # type: ignore[arg-type]


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(mf.MicroficheError, match=r"microfiche\[tokens\]"):
        mf.count(SAID, model="gpt-4o", ruler="tiktoken")
    assert mf.count(SAID, model="gpt-4o") == 15


def test_without_its_vocabulary_the_folder_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(name: str) -> Any:
        raise ConnectionError("no network")

    monkeypatch.setitem(sys.modules, "tiktoken", library(unreachable))
    with pytest.raises(mf.MicroficheError, match=r"loaded \(ConnectionError\).*TIKTOKEN_CACHE_DIR"):
        mf.count(SAID, model="gpt-4o", ruler="tiktoken")


def test_the_real_library_with_a_vocabulary_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library is real, its vocabulary one token a byte: nothing is fetched."""
    tiktoken = pytest.importorskip("tiktoken", reason="the extra tokens is not installed")
    ranks = {bytes([byte]): byte for byte in range(256)}
    made = tiktoken.Encoding("bytes", pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 256})
    monkeypatch.setattr(tiktoken, "get_encoding", lambda name: made)
    for text in ("plain", "<|endoftext|>", "naïve 紙 \ud800", "a" * 50_000):
        count = mf.count([{"role": "user", "content": text}], model="gpt-4o", ruler="tiktoken")
        assert count == 4 + len(text.encode("utf-8", "surrogatepass")) and count.ruler == "tiktoken bytes"
