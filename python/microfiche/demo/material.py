"""What the tools of the demonstration answer: files, logs, test runs and screenshots, all made up here."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

ZONES = ("Θ-ορχιδέες", "温室3", "north bench", "mist room")
"""Zones of the greenhouse; their names hold wide and Greek letters, as names do."""

_VERBS = ("collect", "smooth", "clamp", "merge", "rank", "settle", "window", "shift", "screen", "pair")
_NOUNS = ("reading", "vent", "lamp", "mist", "alarm", "schedule", "probe", "shade", "bench", "valve")
_ABOUT = (
    "Readings outside the range of the sensor are dropped, never clamped.",
    "Times are UTC; the panel turns them into local time.",
    "The first of two equal readings wins.",
    "An empty list gives an empty answer, not an error.",
    "Keeps the order in which the bus delivered them.",
)


class Dice:
    """A linear congruential generator (the constants of Knuth's MMIX), read from its upper bits."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def below(self, limit: int) -> int:
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % limit


def module(name: str, functions: int, seed: int, extra: str = "") -> str:
    """A Python file of so many functions; ``extra`` stands at its end."""
    dice = Dice(seed)
    lines = [
        f'"""{name.capitalize()}: one part of the greenhouse controller."""',
        "",
        "from __future__ import annotations",
    ]
    lines += ["", "from collections.abc import Iterable", "", f"LIMIT = {20 + dice.below(60)}", ""]
    for at in range(functions):
        verb, noun = _VERBS[(at + seed) % len(_VERBS)], _NOUNS[dice.below(len(_NOUNS))]
        limit, step = 2 + dice.below(40), 1 + dice.below(9)
        lines += [
            "",
            f"def {verb}_{noun}s_{at}(readings: Iterable[float], limit: float = {limit}) -> list[float]:",
            f'    """{_ABOUT[dice.below(len(_ABOUT))]}"""',
            "    kept = []",
            f"    for at, each in enumerate(readings, {step}):",
            f"        if each > limit * at / {step + 1}:",
            "            continue",
            f"        kept.append(round(each + {dice.below(90) / 100:.2f}, 2))",
            "    return kept",
            "",
        ]
    return "\n".join(lines) + extra


def temperature(minute: int) -> float:
    """Degrees outside on the night in question, at a minute since 18:00."""
    return round(9.0 - 13.4 * (1 - abs(minute - 500) / 500) + (minute * 7 % 11) / 20, 1)


def log(first: int, lines: int, step: int = 3) -> str:
    """Lines of the controller's log from a minute since 18:00 on; the vents open where its clock is an hour off."""
    told = []
    for minute in range(first, first + lines * step, step):
        hour, rest = divmod(18 * 60 + minute, 60)
        degrees = temperature(minute)
        # The frost guard compares with the hour before.
        vents = "open" if temperature(max(minute - 60, 0)) > 2.0 and degrees < 4 else "shut"
        zone = ZONES[minute // step % len(ZONES)]
        told.append(
            f"{hour % 24:02d}:{rest:02d}:07Z controller[412] zone={zone} outside={degrees:+.1f} vents={vents}"
            f" duty={minute * 13 % 100:02d}% bus=ok seq={40_000 + minute}"
        )
    return "\n".join(told)


def tests(passed: int, failures: Sequence[str] = ()) -> str:
    """What pytest prints."""
    told = [f"tests/test_{_NOUNS[at % len(_NOUNS)]}s.py::test_{_VERBS[at % 10]}_{at} PASSED" for at in range(passed)]
    for each in failures:
        told += [f"tests/test_frost.py::{each} FAILED", f"E   AssertionError: {each}: vents open at -3.6 degrees"]
    total = f"{len(failures)} failed, " if failures else ""
    return "\n".join([*told, f"===== {total}{passed} passed in 2.31s ====="])


WIDTH, HEIGHT = 640, 352
_PAPER, _GRID, _CURVE, _OPEN = range(4)
_PALETTE = b"\xff\xff\xff\xd4\xd9\xde\x1f\x5f\xa8\xd9\x48\x2b"


def screenshot(until: int, wrong: bool = True) -> bytes:
    """A PNG of the panel: the temperature outside until a minute since 18:00, and below when the vents were open."""
    canvas = [bytearray(WIDTH) for _ in range(HEIGHT)]
    for x in range(40, WIDTH, 80):
        for row in canvas:
            row[x] = _GRID
    for y in range(20, HEIGHT - 40, 40):
        canvas[y] = bytearray([_GRID]) * WIDTH
    below = 0
    for x in range(WIDTH):
        minute = x * 1000 // WIDTH
        if minute > until:
            break
        degrees = temperature(minute)
        y = int(150 - degrees * 12)
        for at in range(min(y, below or y), max(y, below or y) + 2):
            canvas[at][x] = _CURVE
        below = y
        seen = temperature(max(minute - 60, 0)) if wrong else degrees
        if seen > 2.0:
            for at in range(HEIGHT - 28, HEIGHT - 12):
                canvas[at][x] = _OPEN
    return _png(canvas)


def _png(canvas: Sequence[bytearray]) -> bytes:
    """A PNG of four colours; stored, not compressed, so that no version of a library makes other bytes."""
    rows = bytearray()
    for row in canvas:
        rows.append(0)
        for x in range(0, WIDTH, 4):
            rows.append(row[x] << 6 | row[x + 1] << 4 | row[x + 2] << 2 | row[x + 3])
    stored = b"\x01" + struct.pack("<HH", len(rows), len(rows) ^ 0xFFFF) + rows
    body = b"\x78\x01" + stored + struct.pack(">I", zlib.adler32(rows))
    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 2, 3, 0, 0, 0)
    pieces = ((b"IHDR", head), (b"PLTE", _PALETTE), (b"IDAT", body), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in pieces
    )
