"""How long drawing and whole passes take. Run with ``pytest benches`` after ``pip install '.[bench]'``.

Times move with the machine: quote the ratio of two rows of one run.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import microfiche as mf
import pytest
from microfiche import formats
from microfiche.ladder import form, shelves
from microfiche.pages import exact, kept
from microfiche.pages.render import draw
from PIL import Image, ImageDraw, ImageFont
from samples import code, session, session_lines

SHAPES = {
    "5x8 mono": ((5, 8), "mono"),
    "6x12 grey": ((6, 12), "grey"),
    "9x16 grey": ((9, 16), "grey"),
    "9x16 mono": ((9, 16), "mono"),
}
PAGE = {"width": 1568, "height": 784}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("level", ["fastest", "default"])
@pytest.mark.parametrize("characters", [12_000, 100_000, 1_000_000, 10_000_000])
def test_text_to_pages(benchmark: Any, characters: int, level: str, shape: str) -> None:
    """One thread, one string, PNG files out."""
    cell, ink = SHAPES[shape]
    text = code(characters)
    rounds = 3 if characters > 1_000_000 else 15
    pages = benchmark.pedantic(
        lambda: draw([text], cell=cell, ink=ink, level=level, threads=1, **PAGE), rounds=rounds, warmup_rounds=1
    )
    benchmark.extra_info["pages"] = len(pages)
    benchmark.extra_info["bytes"] = sum(len(page.png) for page in pages)


@pytest.mark.parametrize("threads", [1, 2])
def test_two_threads(benchmark: Any, threads: int) -> None:
    text = code(1_000_000)
    benchmark.pedantic(
        lambda: draw([text], cell=(9, 16), ink="grey", threads=threads, **PAGE), rounds=7, warmup_rounds=1
    )


class Glyphs(ImageFont.ImageFont):
    """Pillow's own bitmap font object, holding the glyphs of our atlas at one cell."""

    def __init__(self, cell: tuple[int, int]) -> None:
        width, height = cell
        drawn = draw(["".join(map(chr, range(33, 127)))], cell=cell, ink="mono", width=width * 94, height=height * 4)[0]
        sheet = drawn.image().convert("L").crop((0, height, width * 94, 2 * height))
        inked = sheet.point([255 - level for level in range(256)]).convert("1")
        table = []
        for code_point in range(256):
            left = (code_point - 33) * width if 33 <= code_point < 127 else -width
            table += [width, 0, 0, -height, width, 0, left, 0, left + width, height]
        blank = Image.new("1", (width * 95, height))
        blank.paste(inked, (width, 0))
        table = [value + width if at % 10 in (6, 8) else value for at, value in enumerate(table)]
        packed = b"".join((value & 0xFFFF).to_bytes(2, "big") for value in table)
        self.font = Image.core.font(blank.im, packed)


@pytest.mark.parametrize("drawer", ["fastest", "default", "pillow"])
@pytest.mark.parametrize("cell", [(5, 8), (9, 16)], ids=["5x8", "9x16"])
def test_against_pillow(benchmark: Any, cell: tuple[int, int], drawer: str) -> None:
    """The same grid of the same glyphs, black on white at 1 bit, saved as PNG: one full 1568×1568 page."""
    columns, rows = 1568 // cell[0], 1568 // cell[1]
    body = "".join(each for each in code(columns * rows * 2) if "!" <= each <= "~")[: columns * (rows - 1)]
    if drawer != "pillow":
        result = benchmark.pedantic(
            lambda: draw([body], cell=cell, ink="mono", width=1568, height=1568, level=drawer, threads=1),
            rounds=100,
            warmup_rounds=2,
        )
        assert len(result) == 1
        return
    font = Glyphs(cell)
    lines = [body[at : at + columns] for at in range(0, len(body), columns)]

    def pillow() -> bytes:
        import io

        image = Image.new("1", (1568, 1568), 1)
        pen = ImageDraw.Draw(image)
        for row, line in enumerate(lines, 1):
            pen.text((0, row * cell[1]), line, fill=0, font=font)
        file = io.BytesIO()
        image.save(file, "PNG")
        return file.getvalue()

    assert benchmark.pedantic(pillow, rounds=5, warmup_rounds=1)


def forget() -> None:
    """As in a process that has made no pass yet, but for its modules and atlases."""
    kept.pages.clear()
    shelves.forget()
    exact._values.cache_clear()


@pytest.mark.parametrize("rungs", ["every rung", "no elision"])
def test_whole_pass(benchmark: Any, rungs: str) -> None:
    """A message list of 1M characters made to fit, drawn, written and validated; without elision all of it is drawn."""
    messages = session(1_000_000)
    policy = mf.Policy() if rungs == "every rung" else mf.Policy(rungs=("images", "snapshot", "omit"))
    fit = benchmark.pedantic(
        lambda: mf.compact(messages, model="claude-opus-5", budget=150_000, policy=policy),
        setup=forget,
        rounds=7,
        warmup_rounds=1,
    )
    assert fit.tokens <= 150_000
    benchmark.extra_info["pages"] = len(fit.receipt.pages)


def test_second_pass(benchmark: Any) -> None:
    """The same again with the plan of the first pass and nothing new."""
    messages = session(1_000_000)
    plan = mf.compact(messages, model="claude-opus-5", budget=150_000).plan
    benchmark.pedantic(
        lambda: mf.compact(messages, model="claude-opus-5", budget=150_000, plan=plan), rounds=7, warmup_rounds=1
    )


def test_beside_the_drawing() -> None:
    """Processor time of a pass over a session file of 1M characters, reading and checks included, without drawing."""
    from time import process_time

    data, draw = session_lines(1_000_000), form.draw
    spent: list[float] = []

    def timed(*given: Any, **options: Any) -> Any:
        began = process_time()
        pages = draw(*given, **options)
        spent[-1] += process_time() - began
        return pages

    form.draw = timed
    try:
        beside = []
        for _ in range(7):
            forget()
            spent.append(0.0)
            began = process_time()
            mf.compact(data, model="claude-opus-5", budget=150_000)
            beside.append(process_time() - began - spent[-1])
    finally:
        form.draw = draw
    print(f"\nbeside the drawing: {min(beside) * 1e3:.0f} ms of processor time, drawing {min(spent) * 1e3:.0f} ms")


def test_a_turn_more(benchmark: Any) -> None:
    """Everything drawn, the plan of the pass before, and turns of 12,000 characters more, so that a page fills."""
    messages, policy = session(1_000_000), mf.Policy(rungs=("images", "snapshot", "omit"))
    longer = session(1_012_000)
    assert longer[: len(messages)] == messages
    plan = mf.compact(messages, model="claude-opus-5", budget=150_000, policy=policy).plan

    def before() -> None:
        forget()
        mf.compact(messages, model="claude-opus-5", budget=150_000, policy=policy, plan=plan)

    benchmark.pedantic(
        lambda: mf.compact(longer, model="claude-opus-5", budget=150_000, policy=policy, plan=plan),
        setup=before,
        rounds=7,
        warmup_rounds=1,
    )


@pytest.mark.parametrize("told", ["numbers", "nothing"])
def test_recovery(benchmark: Any, told: str) -> None:
    """A history of about 200,000 tokens that was refused, made to fit without a model at the default cell."""
    messages = session(400_000)
    tokens = mf.count(messages, model="claude-haiku-4-5")
    error = mf.Refusal("tokens", tokens, 150_000) if told == "numbers" else mf.Refusal("tokens")
    fit = benchmark.pedantic(
        lambda: mf.recover(messages, error=error, model="claude-haiku-4-5", max_tokens=8_000),
        setup=forget,
        rounds=7,
        warmup_rounds=1,
    )
    assert fit.tokens <= 150_000
    benchmark.extra_info["tokens"] = tokens
    benchmark.extra_info["pages"] = len(fit.receipt.pages)


def test_read_session(benchmark: Any) -> None:
    """A Claude Code session file of 1M characters to messages."""
    data = session_lines(1_000_000)
    benchmark.pedantic(lambda: formats.read(data), rounds=7, warmup_rounds=1)


def test_peak_memory() -> None:
    """Peak memory of a whole pass in a process of its own, beside what it held before (Linux)."""
    program = (
        "import sys; sys.path.insert(0, 'benches')\n"
        "import microfiche as mf\nfrom samples import session\n"
        # The kernel's own high-water mark: getrusage() keeps that of the parent over exec.
        "def peak(): return int(next(l for l in open('/proc/self/status') if l.startswith('VmHWM')).split()[1])\n"
        "messages = session(1_000_000)\n"
        "before = peak()\n"
        "mf.compact(messages, model='claude-opus-5', budget=150_000)\n"
        "print(before, peak())"
    )
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    before, after = map(int, run.stdout.split())
    print(f"\npeak memory: {before / 1024:.0f} MB with the session read, {after / 1024:.0f} MB after the pass")


def test_peak_memory_of_drawing() -> None:
    """Peak memory of drawing 10M characters in a process of its own, beside its input and output (Linux)."""
    program = (
        "import sys; sys.path.insert(0, 'benches')\n"
        "from microfiche.pages.render import draw\n"
        "from samples import code\n"
        "def peak(): return int(next(l for l in open('/proc/self/status') if l.startswith('VmHWM')).split()[1])\n"
        "text = code(1_000_000) * 10\n"
        "draw(['x'], cell=(9, 16), width=1568, height=784)\n"
        "before = peak()\n"
        "pages = draw([text], cell=(9, 16), width=1568, height=784)\n"
        "print(before, peak(), sum(len(page.png) + len(page.text) for page in pages))"
    )
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    before, after, output = map(int, run.stdout.split())
    print(f"\ndrawing 10M characters: {(after - before) / 1024 - output / 2**20:.0f} MiB above input and output")


def test_import_time() -> None:
    """What ``import microfiche`` adds to a bare interpreter, the least of eleven interleaved runs each."""
    import time

    def run(program: str) -> float:
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", program], check=True)
        return time.perf_counter() - began

    pairs = [(run("pass"), run("import microfiche")) for _ in range(11)]
    bare, ours = (min(times) for times in zip(*pairs, strict=True))
    print(f"\nimport: bare {bare * 1e3:.1f} ms, with microfiche {ours * 1e3:.1f} ms, adds {(ours - bare) * 1e3:.1f} ms")
