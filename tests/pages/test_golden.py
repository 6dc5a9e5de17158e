"""The same input gives the same pixels, on every machine and in every release of a grammar."""

from __future__ import annotations

import json

import golden
from microfiche.pages.render import normal, read_back


def test_pixels_are_those_of_the_golden_file() -> None:
    assert golden.digests() == json.loads(golden.FILE.read_text(encoding="utf-8"))


def test_golden_pages_read_back() -> None:
    for series in golden.pages().values():
        assert read_back(series, marks=True) == list(normal(golden.DOCUMENT))
