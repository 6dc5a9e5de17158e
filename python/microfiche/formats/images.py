"""Image headers: the kind and the size of a picture, without decoding a pixel."""

from __future__ import annotations

_PNG = b"\x89PNG\r\n\x1a\n"
# JPEG frame headers are C0..CF but for C4 (Huffman tables), C8 (reserved) and CC (arithmetic conditioning);
# ITU T.81, table B.1. The same table: markers without a length are TEM (01) and RST0..SOI (D0..D8).
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_BARE_MARKERS = frozenset({0x01, *range(0xD0, 0xD9)})


KINDS = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""The media types whose headers are known here."""


def media_type(data: bytes) -> str:
    """The media type that the first bytes tell, one of :data:`KINDS`, ``""`` if they tell none of them."""
    if data.startswith(_PNG):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    return ""


def size(data: bytes) -> tuple[int, int]:
    """Width and height in pixels as the header has them; ``(0, 0)`` where it is torn or of another kind."""
    match media_type(data):
        case "image/png":
            return _big(data, 16, 4) if data[12:16] == b"IHDR" else (0, 0)
        case "image/jpeg":
            return _jpeg(data)
        case "image/gif":
            return _little(data, 6, 2)
        case "image/webp":
            return _webp(data)
    return 0, 0


def is_torn(data: bytes) -> bool:
    """Whether the end of a PNG is missing: the chunk ``IEND`` (PNG, third edition, section 11.2.5)."""
    return data.startswith(_PNG) and data.rfind(b"IEND") < 0  # searched from the end, where a whole file has it


def _big(data: bytes, at: int, width: int) -> tuple[int, int]:
    if len(data) < at + 2 * width:
        return 0, 0
    return int.from_bytes(data[at : at + width]), int.from_bytes(data[at + width : at + 2 * width])


def _little(data: bytes, at: int, width: int) -> tuple[int, int]:
    if len(data) < at + 2 * width:
        return 0, 0
    first, second = data[at : at + width], data[at + width : at + 2 * width]
    return int.from_bytes(first, "little"), int.from_bytes(second, "little")


def _jpeg(data: bytes) -> tuple[int, int]:
    at = 2
    while at + 4 <= len(data):
        if data[at] != 0xFF:
            return 0, 0
        marker = data[at + 1]
        if marker == 0xFF:  # a fill byte
            at += 1
        elif marker in _BARE_MARKERS:
            at += 2
        elif marker in _FRAMES:
            height, width = _big(data, at + 5, 2)
            return width, height
        elif marker in (0xD9, 0xDA):  # the end, or pixels before any frame
            return 0, 0
        else:
            at += 2 + max(2, int.from_bytes(data[at + 2 : at + 4]))
    return 0, 0


def _webp(data: bytes) -> tuple[int, int]:
    """The three chunk kinds: RFC 6386 section 9.1 (VP8), WebP lossless section 3 (VP8L), container (VP8X)."""
    kind = data[12:16]
    if kind == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        width, height = _little(data, 26, 2)
        return width & 0x3FFF, height & 0x3FFF
    if kind == b"VP8L" and len(data) >= 25 and data[20] == 0x2F:
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8X" and len(data) >= 30:
        width, height = _little(data, 24, 3)
        return width + 1, height + 1
    return 0, 0
