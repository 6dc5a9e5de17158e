"""Image headers against an independent encoder."""

from __future__ import annotations

import base64
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from microfiche.formats.common import encode64
from microfiche.formats.images import is_torn, media_type, size
from PIL import Image

KINDS = [
    ("PNG", {}),
    ("JPEG", {}),
    ("JPEG", {"progressive": True}),
    ("GIF", {}),
    ("WEBP", {"lossless": True}),
    ("WEBP", {"lossless": False}),
    ("WEBP", {"exif": b"Exif\0\0"}),
]


def encoded(kind: str, options: dict[str, object], width: int, height: int) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (width, height), (1, 2, 3)).save(out, kind, **options)
    return out.getvalue()


@pytest.mark.parametrize(("kind", "options"), KINDS)
@pytest.mark.parametrize(("width", "height"), [(1, 1), (2, 700), (300, 5), (1025, 2)])
def test_the_size_is_what_the_encoder_was_given(kind: str, options: dict[str, object], width: int, height: int) -> None:
    data = encoded(kind, options, width, height)
    assert size(data) == (width, height)
    assert media_type(data) == f"image/{kind.lower()}"


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_a_torn_header_is_unknown_or_right(kind: str, options: dict[str, object]) -> None:
    data = encoded(kind, options, 300, 200)
    assert {size(data[:cut]) for cut in range(min(len(data), 800))} <= {(0, 0), (300, 200)}


@given(st.sampled_from([b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"RIFF0000WEBP"]), st.binary())
@settings(max_examples=100, deadline=None)
def test_any_bytes_give_some_size(start: bytes, rest: bytes) -> None:
    width, height = size(start + rest)
    assert width >= 0 <= height


def test_a_long_run_of_jpeg_fill_bytes_ends() -> None:
    assert size(b"\xff\xd8" + b"\xff" * 100_000) == (0, 0)


@pytest.mark.parametrize("length", [*range(70), 4_095, 4_096, 100_000])
def test_base64_is_the_standard_librarys(length: int) -> None:
    data = bytes(at * 7 % 256 for at in range(length))
    assert encode64(data) == base64.b64encode(data).decode("ascii")


def test_a_png_is_torn_where_its_end_is_missing() -> None:
    whole = encoded("PNG", {}, 30, 20)
    assert not is_torn(whole)
    assert not is_torn(whole + b"what others append")
    assert is_torn(whole[:-12]) and is_torn(whole[:-6])
    assert not is_torn(encoded("JPEG", {}, 30, 20)[:-12])  # of a PNG alone it can be told
