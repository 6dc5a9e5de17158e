"""Values beside pages: the right words, whole words only, within the allowance, the same every time."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
import string
import time
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from microfiche.messages import Message, Text, ToolCall, ToolResult, split_turns
from microfiche.pages import exact
from microfiche.pages.exact import CLASSES, SHARE, Shelf, classify
from microfiche.pages.render import Bar, Segment
from microfiche.pages.script import write_script

CALL = Bar(3, "call Bash")
RESULT = Bar(3, "result ok")

EXAMPLES = {
    "path": [
        "/app/src/main.go",
        "src/lexer",
        "~/.bashrc/x",
        "../lib/a-b_c.ts",
        "README.md",
        "C:\\Users\\ana\\notas.txt",
        "docs/año/índice.md",
        "node_modules/@types/node/index.d.ts",
    ],
    "id": ["550e8400-e29b-41d4-a716-446655440000", "toolu_01A09q90", "ana@example.org", "i0ab12cd34"],
    "code": ["ENOENT", "TS2345", "E0308", "ERR_MODULE_NOT_FOUND", "CVE-2024", "ORA-01017"],
    "hash": ["cb1b3b6", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"],
    "url": ["https://example.org/a?b=c#d", "postgres://u@host:5432/db"],
    "version": ["1.26.4", "10.0.0.12", "v1.2.3-rc1", "vitest@1.2.3"],
    "number": ["65536", "3.14159", "0x7ffe"],
    "name": ["read_back", "FullPage", "camelCase"],
}
PLAIN = [
    "",
    "the",
    "however",
    "12",
    "100",
    "12:30",
    "...",
    "----",
    "====",
    "/",
    "//",
    "s/a/b/",
    "utf8",
    "Error",
    "x" * 300,
]


def select(source: str | Sequence[Segment], limit: int, seen: Sequence[str] = ()) -> list[str]:
    """What is chosen of a text or segments, on a page with so many blanks that ``limit`` characters have room."""
    segments = [source] if isinstance(source, str) else list(source)
    size = sum(len(each) for each in segments if isinstance(each, str))
    blanks = " " * max(round(limit / SHARE) - size, 0)
    return list(Shelf(seen).page([*segments, Bar(0, "user"), blanks]))


@pytest.mark.parametrize(("kind", "word"), [(kind, word) for kind, all_ in EXAMPLES.items() for word in all_])
def test_each_class_knows_its_words(kind: str, word: str) -> None:
    assert classify(word) == kind
    assert select(f"before {word} behind", 400) == [word]


@pytest.mark.parametrize("word", PLAIN)
def test_other_words_are_no_values(word: str) -> None:
    assert classify(word) is None
    assert select(f"before {word} behind", 400) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("./lexer/lexer.go:214:7: undefined", ["lexer/lexer.go"]),
        ("See docs/guide.md.", ["docs/guide.md"]),
        ("(https://example.org/x_(y)), too", ["https://example.org/x_(y)"]),
        ("cat x 2>/dev/null >/tmp/out.log", ["/dev/null", "/tmp/out.log"]),
        ("--- a\n+++ b\n-old_name\n+new_name = 1", ["old_name", "new_name"]),
        ("2207\tdef go_home\n2208:x\n 2209→y", ["go_home"]),
        ("self.node_manager.append_newline()", ["node_manager", "append_newline"]),
        ("\x1b[31mFAIL\x1b[0m tests/test_a.py", ["tests/test_a.py"]),
        ("connect db.internal:54321", ["54321"]),
        ("pip install numpy==1.26.4", ["1.26.4"]),
        ("--seed=48213 --out=build/x", ["build/x", "48213"]),
        ("src/a.py,src/b.py", ["src/a.py", "src/b.py"]),
    ],
)
def test_a_value_stands_as_it_would_be_typed(text: str, expected: list[str]) -> None:
    assert select(text, 400) == expected


@pytest.mark.parametrize(
    "text",
    [
        "$HOME/notes/a.md",
        "${ROOT}/notes/a.md",
        "app/[id]/page",
        "src/**/deep_name"[:8],
        "</section>",
        "%2Fapp%2Fmain",
        r"\napp/main.go",
        r"\my_macro",
        "https://example.org/" + "a" * 300,
    ],
)
def test_nothing_is_chosen_that_the_text_does_not_show_whole(text: str) -> None:
    """A wrong value in plain text would be believed: rather none."""
    assert [value for value in select(text, 400) if value != "page"] == []


def test_arguments_are_read_as_what_they_say() -> None:
    """Escapes of JSON are not letters of the words behind them."""
    arguments = json.dumps({"command": 'cat\nsrc/net/a.py\tb_c_d "e/f.txt" C:\\temp\\x.log\u2028caf\u00e9/x.py'})
    assert select([CALL, arguments], 400) == ["src/net/a.py", "e/f.txt", "C:\\temp\\x.log", "café/x.py"]
    assert "nsrc/net/a.py" not in select([RESULT, arguments], 400)


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=400), st.integers(0, 500))
def test_values_fit_and_are_words_of_the_text(text: str, limit: int) -> None:
    chosen = select(text, limit)
    assert sum(len(value) + 1 for value in chosen) <= max(limit, SHARE * len(text))
    assert len(set(chosen)) == len(chosen)
    assert all(value in text and not re.search(r"\s", value) for value in chosen)


words = st.one_of(
    st.from_regex(r"[a-z]{2,6}(/[a-z_]{2,8}){1,3}\.(py|go)", fullmatch=True),
    st.from_regex(r"[a-z]{3,6}_[a-z]{3,6}(\.[a-z]{3,6}_[a-z]{3,6})?", fullmatch=True),
    st.from_regex(r"[0-9a-f]{7,12}", fullmatch=True),
    st.from_regex(r"[0-9]{1,7}", fullmatch=True),
    st.sampled_from(["the", "and", "-", "→", "=", "(", ")", "\n", "\n\n", "'", "Ünïcode", "界", "\ud800"]),
)
documents = st.lists(words, min_size=1, max_size=60).map(" ".join)


@settings(max_examples=60, deadline=None)
@given(documents, st.integers(40, 600))
def test_a_value_is_never_a_part_of_a_longer_word(text: str, limit: int) -> None:
    tokens = {part for token in text.split() for part in (token, *(token.split(".") if "/" not in token else ()))}
    assert set(select(text, limit)) <= tokens


@settings(max_examples=40, deadline=None)
@given(st.lists(documents, min_size=1, max_size=6), st.data())
def test_pages_behind_change_nothing_before_them(texts: list[str], data: st.DataObject) -> None:
    pages = [
        [Bar(at, data.draw(st.sampled_from(["result ok", "call Read", "user"]))), text] for at, text in enumerate(texts)
    ]
    shelf = Shelf(["an_old_name"])
    whole = [shelf.page(page) for page in pages]
    for count in range(len(pages)):
        again = Shelf(["an_old_name"])
        assert [again.page(page) for page in pages[:count]] == whole[:count]
    chosen = [value for page in whole for value in page]
    assert len(set(chosen)) == len(chosen)
    for page, text in zip(whole, texts, strict=True):
        assert sum(len(value) + 1 for value in page) <= SHARE * len(text)


def test_what_stands_as_text_is_not_repeated() -> None:
    text = "src/net/socket.py src/net/other.py net/socket.py socket.py read_all"
    assert select(text, 400, seen=["/app/src/net/socket.py", "read_all"]) == ["src/net/other.py"]
    shelf = Shelf(["Please mend src/net/socket.py; read_all fails."])
    shelf.stand("and src/net/other.py")
    assert shelf.page([RESULT, text + " the" * 500]) == ()


def test_what_a_chosen_path_shows_is_not_repeated() -> None:
    assert select("src/net/socket.py then /app/src/net/socket.py", 400) == ["/app/src/net/socket.py"]
    shelf = Shelf()
    assert shelf.page([RESULT, "/app/src/net/socket.py " + prose(2_000)]) == ("/app/src/net/socket.py",)
    assert shelf.page([" src/net/socket.py and /app/src/net " + prose(2_000)]) == ()


def prose(characters: int) -> str:
    return ("nothing of note happens here " * (characters // 29 + 1))[:characters]


def test_a_word_cut_by_a_page_is_judged_with_the_next_page() -> None:
    filler = prose(2_000)
    shelf = Shelf()
    assert shelf.page([RESULT, f"{filler} src/parser/to"]) == ()
    assert shelf.page([f"kens/table.py {filler}", Bar(4, "user"), "x" + filler]) == ("src/parser/tokens/table.py",)


@given(st.integers(1, 700))
@settings(max_examples=80, deadline=None)
def test_no_part_of_a_word_is_chosen_wherever_a_page_ends(at: int) -> None:
    """Arguments without a blank, links with brackets, a word longer than any value: cut at every place."""
    link = "https://example.org/a_(b)/c?d=e&f=g"
    text = json.dumps({"paths": ["src/one/alpha.py", "src/two/beta.py"], "to": f"{'lib/x' * 90}/y.py", "u": link})
    text = text.replace(" ", "")
    filler = prose(3_000)
    shelf = Shelf()
    chosen = shelf.page([CALL, filler + "\n" + text[:at]])
    chosen += shelf.page([text[at:] + "\n" + filler, Bar(4, "user")]) if at < len(text) else ()
    chosen += shelf.page([filler])
    assert set(chosen) <= {"src/one/alpha.py", "src/two/beta.py", link}
    assert len(chosen) == 3


def test_a_word_at_the_end_of_its_text_is_whole() -> None:
    filler = prose(2_000)
    shelf = Shelf()
    assert shelf.page([RESULT, f"{filler} src/parser/tokens.py"]) == ()
    assert shelf.page([Bar(4, "assistant"), filler]) == ("src/parser/tokens.py",)


def test_what_finds_no_room_stands_behind_a_later_page() -> None:
    """A listing fills the allowance of its page many times over; pages of code leave theirs."""
    names = [f"src/part{at:02}/unit{at:02}.py" for at in range(60)]
    listing = "\n".join(names) + "\n" + prose(2_000)
    shelf = Shelf()
    pages = [shelf.page([RESULT, listing]), *(shelf.page([prose(4_000)]) for _ in range(9))]
    assert all(sum(len(value) + 1 for value in page) <= 205 for page in pages)
    assert sorted(value for page in pages for value in page) == names


def test_what_was_called_with_comes_before_what_was_printed() -> None:
    printed = "\n".join(f"lib/module{at:02}/file{at:02}.py" for at in range(80))
    called = json.dumps({"file_path": "/srv/project/very/deep/down/the_one_that_matters.py"})
    chosen = select([RESULT, printed, CALL, called], 60)
    assert "/srv/project/very/deep/down/the_one_that_matters.py" in chosen and len(chosen) < 5


def test_no_class_starves_the_others() -> None:
    """A log of commits, links and numbers leaves room for the rest."""
    rng = random.Random(5)
    rows = [
        f"{rng.getrandbits(40):010x}a1 https://example.org/{rng.getrandbits(30)} {rng.getrandbits(30)} {at}.{at}.{at}"
        for at in range(40)
    ]
    names = [f"handler_{word}" for word in ("alpha", "beta", "gamma", "delta")]
    chosen = select(
        [Bar(1, "assistant"), "\n".join(rows), Bar(2, "result ok"), " ".join(names) + " " + prose(3_000)], 800
    )
    kinds = [classify(value) for value in chosen]
    assert set(names) <= set(chosen)
    assert {"hash", "url", "number", "version", "name"} <= set(kinds)
    assert kinds == sorted(kinds, key=lambda kind: CLASSES.index(kind))  # type: ignore[arg-type]
    assert sum(len(value) + 1 for value in chosen) > 700, "what no class wants the others take"


@pytest.mark.parametrize("seed", range(40))
def test_random_runs_are_found_whole(seed: int) -> None:
    rng = random.Random(seed)
    data = rng.randbytes(rng.randint(60, 400))
    for kind, text in (
        ("base64", base64.b64encode(data).decode()),
        ("base64", base64.urlsafe_b64encode(data).decode()),
        ("hex", data.hex()),
        ("hex", data.hex().upper()),
        ("digits", str(int.from_bytes(data, "big"))),
    ):
        around = f"key: {text}\nnext"
        assert [tuple(run) for run in exact.runs(around)] == [(5, 5 + len(text), kind)]


def test_a_block_in_lines_is_one_run() -> None:
    rng = random.Random(9)
    for size in (200, 570, 571):
        block = base64.encodebytes(rng.randbytes(size)).decode().rstrip("\n")
        text = f"-----BEGIN KEY-----\n{block}\n-----END KEY-----\nafter"
        (run,) = exact.runs(text)
        assert text[run.start : run.end] == block


def test_the_letter_of_an_escape_is_no_part_of_a_run() -> None:
    body = base64.b64encode(random.Random(2).randbytes(90)).decode()
    text = json.dumps({"a": f"\n{body}\n"})
    (run,) = exact.runs(text)
    assert text[run.start : run.end] == body


@pytest.mark.parametrize(
    "text",
    [
        "=" * 100,
        "-" * 100,
        "a" * 100,
        "0123456" * 20,
        hashlib.sha256(b"x").hexdigest(),
        "/app/packages/happy/src/browser/utilities/BrowserFrameNavigatorFactory/index",
        "test_that_a_rather_long_name_of_a_test_says_all_that_it_wants_to_say_about_a_thing",
        "/tmp/run/5c1f0a77-3d2e-4b18-9a60-7e4f21c8d905/tasks/bc3e7f1d20a85c946/out/stdout",
        "AbstractSingletonProxyFactoryBeanThatNobodyEverWantedToSeeInARealProgramAnywhere",
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/abcdefghijklmnopq",
    ],
)
def test_long_words_of_people_are_no_runs(text: str) -> None:
    assert exact.runs(f"x {text} y") == []


def test_a_page_points_to_a_run_and_the_run_stands_beside_it() -> None:
    blob = base64.b64encode(random.Random(1).randbytes(163)).decode()
    digest = hashlib.sha512(b"y").hexdigest()
    turns = split_turns(
        [
            Message("user", (Text("go"),)),
            Message("assistant", (Text("so"), ToolCall("c", "Bash", json.dumps({"key": blob})))),
            Message("tool", (ToolResult("c", (Text(f"sum {digest} ok"),)),)),
        ]
    )[1]
    script = write_script(turns)
    text = "".join(segment for segment in script.segments if isinstance(segment, str))
    assert f"[{len(blob)} characters of base64, turn 2]" in text
    assert "sum [128 characters of hex, turn 2] ok" in text
    assert blob not in text and digest not in text
    assert [(pointer.run, pointer.kind) for pointer in script.pointers] == [(blob, "base64"), (digest, "hex")]
    for pointer in script.pointers:
        segment, offset = pointer.at
        assert str(script.segments[segment])[offset:].startswith(f"[{len(pointer.run)} characters")
    shelf = Shelf()
    assert shelf.page([*script.segments, prose(6_000)], [pointer.run for pointer in script.pointers]) == (digest,)
    assert shelf.page([prose(8_000)]) == (blob,), "a longer one only where nothing else wants the room"


def test_a_block_in_lines_never_stands_beside_a_page() -> None:
    """Values stand one a line: what has line breaks cannot."""
    block = base64.encodebytes(random.Random(6).randbytes(70)).decode().rstrip()
    shelf = Shelf()
    assert shelf.page([prose(9_000)], [block, block.replace("\n", "")]) == (block.replace("\n", ""),)
    assert shelf.page([prose(9_000)]) == ()


def test_joined_texts_keep_the_places_of_pointers() -> None:
    rng = random.Random(3)
    blobs = [rng.randbytes(40).hex() for _ in range(4)]
    parts = tuple(Text(f"{'é' * at}{blob} and {blob[:64]}") for at, blob in enumerate(blobs))
    script = write_script(split_turns([Message("user", parts), Message("assistant", parts[:1])])[1])
    assert len(script.pointers) == 5
    for pointer in script.pointers:
        segment, offset = pointer.at
        assert str(script.segments[segment])[offset:].startswith("[80 characters of hex, turn ")


HOSTILE = {
    "one word": "a" * 300_000,
    "one run": base64.b64encode(random.Random(4).randbytes(225_000)).decode(),
    "lines of runs": base64.encodebytes(random.Random(4).randbytes(225_000)).decode(),
    "slashes": "aB/" * 100_000,
    "dots": "a." * 150_000,
    "colons": "x:" * 150_000,
    "schemes": "a://" * 75_000,
    "at signs": "a@" * 150_000,
    "backslashes": "\\" * 300_000,
    "versions": "1." * 150_000,
    "variables": "$a" * 150_000,
    "blanks": " " * 300_000,
    "brackets": "a[/" * 100_000,
    "escapes": "\\u00" * 75_000,
    "line numbers": "\n1" * 150_000,
    "distinct": " ".join(f"a{at}/b_{at}" for at in range(25_000)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_time_is_linear_on_hostile_text(name: str) -> None:
    """300,000 characters each: what is quadratic takes minutes here, what is linear some hundredths of a second."""
    text = HOSTILE[name]
    start = time.process_time()
    exact.runs(text)
    select(text, 1_000)
    select([CALL, text], 1_000)
    shelf = Shelf()
    for at in range(0, len(text), 10_000):
        shelf.page([text[at : at + 10_000]])
    assert time.process_time() - start < 8


def test_case_of_letters_and_digits_is_kept() -> None:
    """What is chosen is what stands there, letter by letter."""
    rng = random.Random(8)
    alphabet = string.ascii_letters + string.digits
    made = ["req_" + "".join(rng.choice(alphabet) for _ in range(12)) + "007" for _ in range(12)]
    chosen = select("\n".join(made), 400)
    assert chosen and set(chosen) <= set(made)
