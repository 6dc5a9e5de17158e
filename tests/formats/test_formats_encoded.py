"""Base64 that is remembered is judged as if it were read."""

from __future__ import annotations

import base64

import pytest
from microfiche.formats import encoded
from microfiche.formats.encoded import decode64, encode64, remembered, standard64

DATA = bytes(range(251, 256)) * 3
STANDARD = base64.b64encode(DATA).decode()
OTHERS = [STANDARD.rstrip("="), STANDARD.replace("+", "-").replace("/", "_"), f"{STANDARD[:8]}\n{STANDARD[8:]}"]


@pytest.mark.parametrize("text", OTHERS)
def test_other_forms_are_read_and_stay_other_forms(text: str) -> None:
    for _ in range(2):
        assert decode64(text) == DATA
        assert standard64(text) is None or text == STANDARD
    with remembered():
        assert encode64(DATA) == STANDARD
        for _ in range(2):
            assert decode64(text) == DATA
            assert standard64(text) is None or text == STANDARD


def test_what_was_written_or_read_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with remembered():
        assert standard64(STANDARD) == DATA
        other = encode64(b"other")
        monkeypatch.setattr(encoded.base64, "b64decode", None)
        assert decode64(STANDARD) == standard64(STANDARD) == DATA
        assert decode64(other) == standard64(other) == b"other"
        monkeypatch.undo()
    # Behind the block nothing is held.
    assert encoded._KNOWN.get() is None
    assert decode64(STANDARD) == DATA


@pytest.mark.parametrize("text", ["not base64!", "é", "A", None, 3])
def test_what_is_no_base64(text: object) -> None:
    with remembered():
        assert decode64(text) is None or text == "not base64!"
        assert not isinstance(text, str) or standard64(text) is None
