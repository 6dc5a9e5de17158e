"""Makes the sample sessions: three runs of an agent on a project that does not exist.

    python tests/data/make_sessions.py [DIR]

``harbour.claude-code.jsonl`` is a long session file (parallel calls, failures, files read again, long
logs, tabs, other alphabets, screenshots), ``moorings.stream.jsonl`` a stream that begins with the
assistant, ``bulletin.atif.json`` a trajectory. The same bytes come out everywhere: no clock, no
library compressor, and dice of their own.
"""

# ruff: noqa: E501 (prose of the sessions)

from __future__ import annotations

import base64
import hashlib
import json
import sys
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from microfiche.demo import material

T = TypeVar("T")
CWD = "/home/ada/harbour"
MODEL = "claude-opus-5"
BEGAN = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
TOOLS = ["Bash", "Read", "Grep", "Glob", "Edit", "Write", "TodoWrite", "mcp__browser__screenshot"]


class Dice(material.Dice):
    def between(self, low: int, high: int) -> int:
        return low + self.below(high - low + 1)

    def pick(self, items: Sequence[T]) -> T:
        return items[self.below(len(items))]


# ---------------------------------------------------------------- the project

PLACES = [
    "Ålesund",
    "Zürich-Enge",
    "São Sebastião",
    "Þorlákshöfn",
    "Łeba",
    "Brest",
    "Cádiz",
    "Ærøskøbing",
    "Hoek",
    "Πειραιάς",
]
TOPICS = {
    "tides": ("Tide", ["height", "moment", "gauge", "slope"]),
    "gauges": ("Gauge", ["serial", "offset", "drift", "installed"]),
    "berths": ("Berth", ["length", "depth", "quay", "shore_power"]),
    "pilots": ("Pilot", ["callsign", "licence", "watch", "boat"]),
    "forecasts": ("Forecast", ["issued", "horizon", "spread", "source"]),
    "bulletins": ("Bulletin", ["headline", "valid_from", "valid_until", "area"]),
    "locks": ("Lock", ["chamber", "gate_width", "level_up", "level_down"]),
    "moorings": ("Mooring", ["bollard", "load", "line_count", "inspected"]),
    "charts": ("Chart", ["edition", "datum", "scale", "sheets"]),
}
VERBS = ["collect", "merge", "screen", "rank", "window", "pair", "shift", "settle", "trim", "fold"]
ABOUT = [
    "Keeps the order in which the records came in.",
    "Values outside the window are left as they are.",
    "The first of two equal records wins.",
    "Times are UTC; callers turn them into local time for display.",
    "Linear in the number of records.",
    "An empty input gives an empty answer, not an error.",
]


def module(dice: Dice, topic: str, functions: int) -> str:
    name, fields = TOPICS[topic]
    noun = topic[:-1]
    lines = [
        f'"""{name} records: how they are read, checked and put in order."""',
        "",
        "from __future__ import annotations",
        "",
        "from collections.abc import Iterable, Iterator",
        "from dataclasses import dataclass, replace",
        "",
        f"LIMIT = {dice.between(20, 900)}",
        f'HOME = "{dice.pick(PLACES)}"',
        "",
        "",
        "@dataclass(frozen=True, slots=True)",
        f"class {name}:",
        f'    """One {noun} as the port authority publishes it."""',
        "",
        "    place: str",
        *(f"    {field}: {dice.pick(['int', 'float', 'str', 'int | None'])}" for field in fields),
        "",
    ]
    for at in range(functions):
        field, other = dice.pick(fields), dice.pick(fields)
        verb = VERBS[(at + len(topic)) % len(VERBS)]
        function = f"{verb}_{noun}_{field}" if at >= len(VERBS) else f"{verb}_{topic}"
        body = [
            [
                f"    kept: list[{name}] = []",
                f"    for {noun} in records:",
                f"        if {noun}.{field} is None or {noun}.{field} > limit:",
                "            continue",
                f"        kept.append(replace({noun}, {other}={noun}.{other}))",
                f"    return sorted(kept, key=lambda each: (each.place, each.{field}))",
            ],
            [
                f"    by_place: dict[str, {name}] = {{}}",
                f"    for {noun} in records:",
                f"        known = by_place.get({noun}.place)",
                f"        if known is None or {noun}.{field} < known.{field}:",
                f"            by_place[{noun}.place] = {noun}",
                "    return list(by_place.values())[:limit]",
            ],
            [
                f"    window: list[{name}] = []",
                f"    for at, {noun} in enumerate(records):",
                f"        if at and {noun}.{field} == window[-1].{field}:",
                f"            window[-1] = {noun}  # the later reading of {dice.pick(PLACES)} is the corrected one",
                "        elif len(window) < limit:",
                f"            window.append({noun})",
                "    return window",
            ],
        ][dice.below(3)]
        lines += [
            "",
            f"def {function}(records: Iterable[{name}], limit: int = LIMIT) -> list[{name}]:",
            f'    """The {topic} by {field}. {dice.pick(ABOUT)}"""',
            *body,
            "",
        ]
    return "\n".join(lines)


IMPORTER = '''"""Readings of tide gauges, from the CSV files that the gauges' makers write."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from harbour.tides import Tide

SEPARATORS = (";", ",", "\\t")


class BadRow(ValueError):
    """A row that cannot be read; says which one and why."""


def read_file(path: Path) -> Iterator[Tide]:
    """The readings of one file, in its order. Rows without a height are passed over."""
    text = path.read_text("utf-8")
    separator = max(SEPARATORS, key=text.count)
    for number, row in enumerate(csv.reader(text.splitlines(), delimiter=separator), 1):
        if number == 1 or not row:
            continue
        yield _reading(number, row)


def _reading(number: int, row: list[str]) -> Tide:
    try:
        moment = datetime.fromisoformat(row[0].strip())
        height = float(row[2].replace(",", "."))
    except (IndexError, ValueError) as error:
        raise BadRow(f"row {number}: {error}") from error
    return Tide(place=row[1].strip(), height=height, moment=moment, gauge=row[3], slope=0.0)
'''

GO_FILE = """package gauge

import (
\t"bufio"
\t"fmt"
\t"io"
\t"strings"
)

// Frame is one line of a gauge's serial output.
type Frame struct {
\tSerial string
\tMillimetres int
\tChecksum byte
}

// Scan reads frames until the gauge is switched off.
func Scan(r io.Reader, emit func(Frame) error) error {
\tlines := bufio.NewScanner(r)
\tfor lines.Scan() {
\t\tfields := strings.Fields(lines.Text())
\t\tif len(fields) != 3 {
\t\t\tcontinue
\t\t}
\t\tvar frame Frame
\t\tif _, err := fmt.Sscanf(lines.Text(), "%s %d %x", &frame.Serial, &frame.Millimetres, &frame.Checksum); err != nil {
\t\t\treturn fmt.Errorf("frame %q: %w", lines.Text(), err)
\t\t}
\t\tif err := emit(frame); err != nil {
\t\t\treturn err
\t\t}
\t}
\treturn lines.Err()
}
"""

MAKEFILE = (
    "PYTHON ?= python3\n\n.PHONY: test gauge docs\n\ntest:\n\t$(PYTHON) -m pytest -q\n\ngauge:\n\tcd gauge && go build"
    " ./...\n\ndocs:\n\tmkdir -p site\n\t$(PYTHON) -m harbour.docs --out site\n"
)


def project(dice: Dice) -> dict[str, str]:
    files = {f"src/harbour/{topic}.py": module(dice, topic, dice.between(5, 7)) for topic in TOPICS}
    files["src/harbour/importer.py"] = IMPORTER
    files["gauge/scan.go"] = GO_FILE
    files["Makefile"] = MAKEFILE
    return files


# ---------------------------------------------------------------- what tools print


def numbered(text: str, first: int = 1) -> str:
    """A file as the Read tool shows it."""
    return "\n".join(f"{at:6}\t{line}" for at, line in enumerate(text.rstrip("\n").split("\n"), first))


def test_log(dice: Dice, failed: Sequence[str] = ()) -> str:
    names = [
        f"tests/test_{topic}.py::test_{verb}_{what}"
        for topic in TOPICS
        for verb in VERBS[: dice.between(3, 5)]
        for what in ("keeps_order", "empty", "limit")[: dice.between(2, 3)]
    ]
    lines = ["============================= test session starts ==============================", f"rootdir: {CWD}"]
    lines += [f"{name:<60} PASSED [{100 * at // len(names):3}%]" for at, name in enumerate(names, 1)]
    for name in failed:
        lines.append(f"{name:<60} FAILED [100%]")
    if failed:
        lines += ["", "=================================== FAILURES ==================================="]
        for name in failed:
            lines += [
                f"________ {name.split('::')[1]} ________",
                "",
                "    def test_reads_every_row(tmp_path):",
                "        path = write(tmp_path, ROWS)",
                ">       assert len(list(read_file(path))) == 4",
                f"E       harbour.importer.BadRow: row {dice.between(3, 9)}: could not convert string to float: '1\\u202f204.5'",
                "",
                "src/harbour/importer.py:37: BadRow",
            ]
    lines.append(f"====== {len(failed)} failed, {len(names)} passed in 4.{dice.between(10, 99)}s ======")
    if not failed:
        lines[-1] = f"====== {len(names)} passed in 4.{dice.between(10, 99)}s ======"
    return "\n".join(lines)


def server_log(dice: Dice, count: int) -> str:
    moment = BEGAN
    lines = []
    for _ in range(count):
        moment += timedelta(milliseconds=dice.between(40, 9000))
        colour, level = dice.pick([("32", "INFO"), ("32", "INFO"), ("32", "INFO"), ("36", "DEBUG")])
        lines.append(
            f"{moment.isoformat(timespec='milliseconds')} \x1b[{colour}m{level:<5}\x1b[0m harbour.http "
            f"GET /v2/{dice.pick(list(TOPICS))}/{dice.between(1, 9999)}?place={dice.pick(PLACES)} "
            f"200 {dice.between(180, 90000)}B {dice.between(1, 240)}ms"
        )
    return "\n".join(lines)


def build_log(dice: Dice, count: int) -> str:
    lines = [f"  Compiling gauge/internal/{dice.pick(VERBS)}{at} v0.{dice.between(1, 30)}.{at}" for at in range(count)]
    return "\n".join([*lines, f"Finished in {dice.between(9, 40)}.{dice.between(10, 99)}s"])


def grep(files: dict[str, str], word: str) -> str:
    hits = [
        f"{path}:{at}:{line}"
        for path, text in sorted(files.items())
        for at, line in enumerate(text.split("\n"), 1)
        if word in line
    ]
    return "\n".join(hits[:60]) or "No matches found"


def readings(dice: Dice, count: int) -> str:
    rows = [
        {
            "id": hashlib.sha256(f"reading {at} {dice.state}".encode()).hexdigest()[:12],
            "place": dice.pick(PLACES),
            "height_mm": dice.between(-900, 6400),
            "moment": (BEGAN + timedelta(minutes=10 * at)).isoformat(),
            "quality": dice.pick(["good", "good", "good", "interpolated"]),
        }
        for at in range(count)
    ]
    return json.dumps(rows, indent=2, ensure_ascii=False)


def screenshot(dice: Dice, width: int = 256, height: int = 112) -> bytes:
    """A tide curve as a 1-bit PNG; its pixels are stored, not compressed, so that no zlib decides the bytes."""
    level = height // 2
    rows = []
    curve = []
    for _ in range(width):
        level = min(max(level + dice.between(-2, 2), 2), height - 3)
        curve.append(level)
    for y in range(height):
        bits = "".join("0" if y == curve[x] or y == height - 1 or x == 0 else "1" for x in range(width))
        rows.append(b"\0" + int(bits, 2).to_bytes(width // 8))
    raw = b"".join(rows)
    stored = b"\x78\x01\x01" + len(raw).to_bytes(2, "little") + (len(raw) ^ 0xFFFF).to_bytes(2, "little") + raw
    header = width.to_bytes(4) + height.to_bytes(4) + bytes([1, 0, 0, 0, 0])

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4) + kind + data + zlib.crc32(kind + data).to_bytes(4)

    data = chunk(b"IDAT", stored + zlib.adler32(raw).to_bytes(4))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + data + chunk(b"IEND", b"")


# ---------------------------------------------------------------- the forms of a session

Call = tuple[str, dict[str, Any], Any] | tuple[str, dict[str, Any], Any, bool]


class ClaudeCode:
    """A session file: a tree of lines, one line a block, results hanging off the call that they answer."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.lines: list[dict[str, Any]] = []
        self.parent: str | None = None
        self.count = 0
        self.answers = 0

    def _line(self, kind: str, parent: str | None, **fields: Any) -> str:
        self.count += 1
        digest = hashlib.sha256(f"{self.session} {self.count}".encode()).hexdigest()
        uuid = f"{digest[:8]}-{digest[8:12]}-4{digest[12:15]}-a{digest[15:18]}-{digest[18:30]}"
        moment = (BEGAN + timedelta(seconds=7 * self.count)).isoformat(timespec="milliseconds")
        common = {"isSidechain": False, "userType": "external", "cwd": CWD, "sessionId": self.session}
        more = {"version": "2.1.300", "gitBranch": "main", "type": kind, "uuid": uuid, "timestamp": moment}
        self.lines.append({"parentUuid": parent, **common, **more, **fields})
        return uuid

    def user(self, text: str) -> None:
        self.parent = self._line("user", self.parent, message={"role": "user", "content": text})

    def answer(self, text: str = "", *calls: Call, thought: bool = False) -> None:
        self.answers += 1
        blocks: list[dict[str, Any]] = []
        if thought:
            seed = hashlib.sha512(f"{self.session} thought {self.answers}".encode()).digest()
            blocks.append({"type": "thinking", "thinking": "", "signature": base64.b64encode(seed * 2).decode()})
        if text:
            blocks.append({"type": "text", "text": text})
        spots = []
        for at, (name, arguments, *_) in enumerate(calls):
            identity = f"toolu_{self.answers:03}{at:02}{hashlib.sha256(name.encode()).hexdigest()[:14]}"
            blocks.append({"type": "tool_use", "id": identity, "name": name, "input": arguments})
            spots.append(identity)
        frame = {"id": f"msg_{self.answers:04}", "type": "message", "role": "assistant", "model": MODEL}
        called: dict[str, str] = {}
        parent = self.parent
        for block in blocks:
            last = block is blocks[-1]
            reason = ("tool_use" if calls else "end_turn") if last else None
            usage = {"input_tokens": 4, "cache_read_input_tokens": 900 * self.answers, "output_tokens": 60}
            message = {**frame, "content": [block], "stop_reason": reason, "usage": usage}
            parent = self._line("assistant", parent, requestId=f"req_{self.answers:04}", message=message)
            if block["type"] == "tool_use":
                called[block["id"]] = parent
        for identity, (_, _, output, *error) in zip(spots, calls, strict=True):
            result = {"tool_use_id": identity, "type": "tool_result", "content": output}
            if error and error[0]:
                result["is_error"] = True
            private = {"stdout": output[:60], "stderr": "", "interrupted": False} if isinstance(output, str) else {}
            parent = self._line(
                "user", called[identity], message={"role": "user", "content": [result]}, toolUseResult=private
            )
        self.parent = parent

    def dump(self) -> str:
        return "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in self.lines)


def picture(data: bytes) -> list[dict[str, Any]]:
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(data).decode()}
    return [{"type": "text", "text": "Screenshot taken."}, {"type": "image", "source": source}]


def bash(command: str, output: str, error: bool = False) -> Call:
    return ("Bash", {"command": command, "description": "Run " + command.split()[0]}, output, error)


def read(files: dict[str, str], path: str) -> Call:
    return ("Read", {"file_path": f"{CWD}/{path}"}, numbered(files[path]))


def edit(files: dict[str, str], path: str, old: str, new: str) -> Call:
    assert old in files[path], (path, old)
    files[path] = files[path].replace(old, new, 1)
    at = files[path].split(new)[0].count("\n")
    around = files[path].split("\n")[max(0, at - 6) : at + 12]
    told = f"The file {CWD}/{path} has been updated. Here's the result of running `cat -n` on a snippet:\n"
    arguments = {"file_path": f"{CWD}/{path}", "old_string": old, "new_string": new}
    return ("Edit", arguments, told + numbered("\n".join(around), max(1, at - 5)))


# ---------------------------------------------------------------- the sessions


def harbour() -> str:
    dice = Dice(1887)
    files = project(dice)
    run = ClaudeCode("5b1c7f0e-3a52-4c1d-9b7e-0d4f6a8e2c11")
    run.user(
        "The nightly import of the tide gauges has lost readings since the makers changed their CSV files. Please find out"
        " which rows go missing, fix the importer, and add tests.\n\nTwo things that must not change: `read_file` stays a"
        " generator (the files have up to 40 million rows), and a row that cannot be read still raises `BadRow` with its"
        " number. Places are names as people write them: Ålesund, São Sebastião, Πειραιάς."
    )
    run.answer(
        "I'll look at the importer and at what calls it.",
        ("Glob", {"pattern": "**/*.py"}, "\n".join(f"{CWD}/{path}" for path in sorted(files))),
        read(files, "src/harbour/importer.py"),
        thought=True,
    )
    run.answer(
        "",
        ("Grep", {"pattern": "read_file", "path": CWD}, grep(files, "read_file")),
        read(files, "src/harbour/tides.py"),
    )
    run.answer("The tests first, as they are now.", bash("make test", test_log(dice)))
    for topic in ("gauges", "berths", "forecasts"):
        run.answer(
            f"`{topic}` takes the same records further on; checking what it expects of them.",
            read(files, f"src/harbour/{topic}.py"),
            (
                "Grep",
                {"pattern": topic[:-1], "path": f"{CWD}/src", "output_mode": "content"},
                grep(files, f"{topic[:-1]}.place"),
            ),
        )
    rows = (
        "moment;place;height;gauge\n2026-10-25T00:50:00+02:00;Ålesund;1204,5;G-17\n2026-10-25T02:10:00+02:00;Ålesund;"
        "1 198,0;G-17\n2026-10-25T02:10:00+01:00;Ålesund;1\u202f204,5;G-17\n\n2026-10-25T03:00:00+01:00;Πειραιάς;;G-02\n"
    )
    run.answer(
        "Now a real file from the night of the change to winter time.",
        bash("head -n 6 data/2026-10-25.csv", rows),
        bash("wc -l data/2026-10-25.csv", "  143882 data/2026-10-25.csv"),
        thought=True,
    )
    run.answer(
        "There it is: a narrow no-break space (U+202F) as the thousands separator → `float()` refuses it. Let me see how"
        " often.",
        bash(
            "grep -c $'\\u202f' data/*.csv",
            "\n".join(f"data/2026-10-{day:02}.csv:{dice.between(0, 4000)}" for day in range(1, 32)),
        ),
    )
    run.answer(
        "And how the service fares with what did come in.", bash("journalctl -u harbour -n 50", server_log(dice, 50))
    )
    run.answer(
        "",
        bash("curl -s localhost:8080/v2/tides?limit=30", readings(dice, 30)),
        bash(
            "python -m harbour.replay data/2026-10-25.csv",
            'Traceback (most recent call last):\n  File "replay.py", line 12, in'
            " <module>\n    for tide in read_file(path):\nharbour.importer.BadRow: row 4: could not convert string to float:"
            " '1\\u202f204.5'\n",
            True,
        ),
    )
    run.answer(
        "What the operators see at the moment:",
        ("mcp__browser__screenshot", {"url": "http://localhost:8080/"}, picture(screenshot(dice))),
    )
    run.answer(
        "The failure is in `_reading`. Writing a test that shows it.",
        (
            "Write",
            {
                "file_path": f"{CWD}/tests/test_importer.py",
                "content": "from harbour.importer import read_file\n\nROWS = ("
                "\n    'moment;place;height;gauge\\n'\n    '2026-10-25T02:10:00+01:00;Ålesund;1\\u202f204,5;G-17\\n'\n)\n\n\ndef write(tmp_path,"
                " rows):\n    path = tmp_path / 'rows.csv'\n    path.write_text(rows, 'utf-8')\n    return path\n\n\ndef"
                " test_reads_every_row(tmp_path):\n    path = write(tmp_path, ROWS)\n    assert len(list(read_file(path))) == 1\n",
            },
            f"File created successfully at: {CWD}/tests/test_importer.py",
        ),
    )
    run.answer("", bash("make test", test_log(dice, ["tests/test_importer.py::test_reads_every_row"]), True))
    run.answer(
        "It fails as it should. The fix: every kind of blank goes before the number is read.",
        edit(
            files,
            "src/harbour/importer.py",
            'height = float(row[2].replace(",", "."))',
            'height = float("".join(row[2].split()).replace(",", "."))  # split knows U+00A0 and U+202F too',
        ),
        thought=True,
    )
    run.answer("", read(files, "src/harbour/importer.py"), bash("make test", test_log(dice)))
    run.user("Good. Rows without a height (the Πειραιάς one) should be passed over, as the docstring says, not raise.")
    run.answer(
        "You are right, an empty height raises `BadRow` today.",
        edit(
            files,
            "src/harbour/importer.py",
            "        if number == 1 or not row:\n            continue",
            "        if number == 1 or not row or (len(row) > 2 and not row[2].strip()):\n            continue",
        ),
    )
    run.answer("", bash("make test", test_log(dice)), read(files, "src/harbour/importer.py"))
    run.answer(
        "The page again, now with the night's readings:",
        ("mcp__browser__screenshot", {"url": "http://localhost:8080/"}, picture(screenshot(dice))),
    )
    for round_, topic in enumerate(("bulletins", "locks", "moorings", "charts", "pilots")):
        run.answer(
            f"Does `{topic}` depend on the old behaviour anywhere?",
            read(files, f"src/harbour/{topic}.py"),
            bash(f"python -m pytest tests/test_{topic}.py -q", "." * dice.between(20, 40) + "  [100%]\n"),
            thought=round_ % 2 == 0,
        )
        if round_ == 2:
            run.answer("", bash("cd gauge && go build ./... -v", build_log(dice, 90)), read(files, "gauge/scan.go"))
    run.answer(
        "",
        read(files, "Makefile"),
        ("mcp__browser__screenshot", {"url": "http://localhost:8080/locks"}, picture(screenshot(dice))),
    )
    run.answer(
        "",
        (
            "TodoWrite",
            {"todos": [{"content": "Replay October", "status": "in_progress", "activeForm": "Replaying October"}]},
            "Todos have been modified successfully.",
        ),
    )
    for day in (25, 26, 27, 28):
        run.answer(
            f"Replaying {day} October.",
            bash(f"python -m harbour.replay data/2026-10-{day}.csv --verbose", server_log(dice, 40)),
            bash(f"curl -s 'localhost:8080/v2/tides?day=2026-10-{day}&limit=16'", readings(dice, 16)),
        )
    run.answer("", ("mcp__browser__screenshot", {"url": "http://localhost:8080/"}, picture(screenshot(dice))))
    run.user(
        "One more: the two readings at 02:10 on the 25th are an hour apart (+02:00 and +01:00), but the site shows one. Can"
        " you see why?"
    )
    run.answer(
        "They differ only in their offset. Looking for the place where offsets get lost.",
        ("Grep", {"pattern": "moment", "path": f"{CWD}/src", "output_mode": "content"}, grep(files, "moment")),
        read(files, "src/harbour/tides.py"),
        thought=True,
    )
    run.answer(
        "",
        bash(
            "git log --oneline -n 25",
            "\n".join(
                f"{hashlib.sha256(bytes([at])).hexdigest()[:9]} {dice.pick(['Fix', 'Add', 'Move', 'Drop'])} {dice.pick(list(TOPICS))}"
                for at in range(25)
            ),
        ),
    )
    run.answer(
        "The importer keeps the offset; the window in `tides` compares wall-clock times. Making the importer hand over UTC"
        " puts it right for every caller.",
        edit(
            files,
            "src/harbour/importer.py",
            "moment = datetime.fromisoformat(row[0].strip())",
            "moment = datetime.fromisoformat(row[0].strip()).astimezone(UTC)",
        ),
        edit(
            files,
            "src/harbour/importer.py",
            "from datetime import datetime, timedelta",
            "from datetime import UTC, datetime",
        ),
    )
    run.answer(
        "",
        bash("make test", test_log(dice)),
        ("mcp__browser__screenshot", {"url": "http://localhost:8080/"}, picture(screenshot(dice))),
    )
    run.answer(
        "Done. ✓ Blanks of every kind inside a height are taken out before it is read, rows without a height are passed over,"
        " and moments are UTC, so 02:10+02:00 and 02:10+01:00 stay two readings. `read_file` is still a generator and"
        " `BadRow` still names its row. All tests pass."
    )
    run.user("Thank you. Please also write the entry for the changelog.")
    run.answer("", bash("head -n 20 CHANGELOG.md", "# Changelog\n\n## Unreleased\n\n- Locks know their chambers.\n"))
    return run.dump()


def moorings() -> str:
    """The stream form: no parents, no opening prompt, one result a line."""
    dice = Dice(42)
    files = project(dice)
    session = "0c9d4f7a-8e11-4b63-a1f2-7c35d0b9e604"
    run = ClaudeCode(session)
    run.answer(
        "I'll read the module and its neighbours.",
        read(files, "src/harbour/moorings.py"),
        read(files, "src/harbour/berths.py"),
        thought=True,
    )
    run.answer("", bash("make test", test_log(dice)), bash("make gauge", build_log(dice, 50)))
    run.answer(
        "",
        read(files, "src/harbour/moorings.py"),
        bash("ls data", "ls: cannot access 'data': No such file or directory", True),
    )
    run.answer("The bollards' loads are compared as text: `'90' > '100'`. They have to be numbers.")
    lines: list[dict[str, Any]] = [
        {"type": "system", "subtype": "init", "cwd": CWD, "session_id": session, "tools": TOOLS, "model": MODEL}
    ]
    for line in run.lines:
        form = {"type": line["type"], "message": line["message"], "parent_tool_use_id": None, "session_id": session}
        if "toolUseResult" in line:
            form["tool_use_result"] = line["toolUseResult"]
        lines.append({**form, "uuid": line["uuid"]})
    usage = {"input_tokens": 16, "cache_read_input_tokens": 9000, "output_tokens": 240}
    lines.append({"type": "result", "subtype": "success", "is_error": False, "session_id": session, "usage": usage})
    return "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)


def bulletin() -> str:
    """The trajectory form, with the copies that its exporter keeps inside a result."""
    dice = Dice(7)
    files = project(dice)
    steps: list[dict[str, Any]] = [
        {"step_id": 1, "source": "user", "message": "Which bulletins are valid for São Sebastião on Sunday?"}
    ]

    def step(text: str, *calls: Call) -> None:
        number = len(steps) + 1
        moment = (BEGAN + timedelta(seconds=9 * number)).isoformat(timespec="milliseconds")
        entry: dict[str, Any] = {
            "step_id": number,
            "timestamp": moment,
            "source": "agent",
            "model_name": MODEL,
            "message": text,
        }
        if calls:
            ids = [f"call_{number}_{at}" for at in range(len(calls))]
            entry["tool_calls"] = [
                {"tool_call_id": id_, "function_name": name, "arguments": arguments}
                for id_, (name, arguments, *_) in zip(ids, calls, strict=True)
            ]
            results = []
            for id_, (_, _, output, *error) in zip(ids, calls, strict=True):
                copies = f"\n[stdout]\n{output}\n[metadata] " + json.dumps({"interrupted": False})
                flag = "\n\n[error] tool reported failure" if error and error[0] else ""
                results.append({"source_call_id": id_, "content": output + copies + flag})
            entry["observation"] = {"results": results}
        entry["metrics"] = {"prompt_tokens": 900 * number, "completion_tokens": 60}
        steps.append(entry)

    step("Looking at how bulletins are stored.", read(files, "src/harbour/bulletins.py"))
    step("", bash("curl -s localhost:8080/v2/bulletins?limit=30", readings(dice, 16)))
    step("", bash("cat data/areas.json", "cat: data/areas.json: No such file or directory", True))
    step("", read(files, "src/harbour/bulletins.py"), bash("make test", test_log(dice)))
    step("Two: the swell warning until 18:00 and the notice about the lights at the north mole.")
    agent = {"name": "claude-code", "version": "2.1.300", "model_name": MODEL}
    whole = {"schema_version": "ATIF-v1.7", "session_id": "bulletin", "agent": agent, "steps": steps}
    return json.dumps({**whole, "final_metrics": {"total_steps": len(steps)}}, ensure_ascii=False, indent=1) + "\n"


SESSIONS = {
    "harbour.claude-code.jsonl": harbour,
    "moorings.stream.jsonl": moorings,
    "bulletin.atif.json": bulletin,
}


def main(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, make in SESSIONS.items():
        (directory / name).write_bytes(make().encode("utf-8"))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "sessions")
