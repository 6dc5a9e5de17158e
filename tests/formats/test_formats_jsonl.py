"""Damaged files are read as far as they are sound, and each damage is named by line."""

from __future__ import annotations

import json
import math

import pytest
from microfiche import formats
from microfiche.errors import BadInput
from microfiche.formats import jsonl
from microfiche.messages import Text

FIRST = '{"type":"user","session_id":"s","parent_tool_use_id":null,"message":{"role":"user","content":"go"}}'
LAST = (
    '{"type":"assistant","session_id":"s","parent_tool_use_id":null,'
    '"message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"done"}]}}'
)


def texts(source: str | bytes) -> list[str]:
    return [message.text for message in formats.read(source).messages]


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ('{"type":"user","mess', "damaged line passed over"),
        ("garbage", "damaged line passed over"),
        ("\0" * 40, "NUL characters (40) passed over"),
        ('"a string"', "a str is no object"),
        ('{"n":' + "1" * 5000 + "}", "a number too long"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
    ],
)
def test_a_damaged_line_is_passed_over_and_named(damage: str, told: str) -> None:
    history = formats.read(f"{FIRST}\n{damage}\n{LAST}\n", where="file")
    assert [message.text for message in history.messages] == ["go", "done"]
    assert [note.where for note in history.notes] == ["file:2"]
    assert told in history.notes[0].what


def test_a_torn_last_line_loses_only_itself() -> None:
    whole = f"{FIRST}\n{LAST}"
    for cut in range(len(FIRST) + 2, len(whole)):
        history = formats.read(whole[:cut])
        assert [message.text for message in history.messages] == ["go"]
        assert [note.what[:14] for note in history.notes] == ["torn last line"]
        assert history.notes[0].where == "input:2"


def test_a_torn_first_line_loses_only_itself() -> None:
    history = formats.read(f"{FIRST[20:]}\n{LAST}")
    assert [message.text for message in history.messages] == ["done"]
    assert history.notes[0].where == "input:1"


def test_nul_before_a_sound_line_is_passed_over() -> None:
    history = formats.read(f"{FIRST}\n\0\0{LAST}\n")
    assert [message.text for message in history.messages] == ["go", "done"]
    assert history.notes[0].what == "NUL characters (2) passed over"


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
@pytest.mark.parametrize("coding", ["utf-8", "utf-16-le"])
def test_marks_and_line_ends(mark: str, end: str, coding: str) -> None:
    if coding != "utf-8" and not mark:
        return
    text = mark + FIRST + end + LAST + end
    assert texts(text) == ["go", "done"]
    assert texts(text.encode(coding)) == ["go", "done"]


def test_separators_inside_strings_part_no_line() -> None:
    odd = "a\u2028b\u0085c\x0cd"
    line = json.dumps({**json.loads(FIRST), "message": {"role": "user", "content": odd}}, ensure_ascii=False)
    assert texts(f"{line.replace(chr(92) + 'f', chr(92) + 'u000c')}\n{LAST}") == [odd, "done"]


def test_lone_surrogates_are_kept() -> None:
    lone = FIRST.replace("go", "\\ud83d x \\udc00")
    assert texts(f"{lone}\n{LAST}")[0] == "\ud83d x \udc00"
    raw = FIRST.replace("go", "\ud83d").encode("utf-8", "surrogatepass") + b"\n" + LAST.encode()
    assert texts(raw)[0] == "\ud83d"
    body = {"messages": [{"role": "user", "content": "\udc00\ud83d"}]}
    assert formats.write(formats.read(json.dumps(body)))[0] == body


def test_bytes_that_are_no_text_are_named() -> None:
    history = formats.read(FIRST.replace("go", "g\x00o").encode().replace(b"\x00", b"\xff") + b"\n" + LAST.encode())
    assert [message.text for message in history.messages] == ["g\ufffdo", "done"]
    assert "no UTF-8 at byte" in history.notes[0].what and history.notes[0].where == "input:1"


def test_numbers_stay_exact_and_constants_are_told() -> None:
    big = 2**200 + 1
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {"n": big, "x": math.inf, "y": math.nan}}
    body = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": [call]}]}
    history = formats.read(json.dumps(body))
    assert [note.what for note in history.notes] == ["kept, though no JSON: Infinity, NaN"]
    written = formats.write(history)[0]["messages"][1]["content"][0]["input"]
    assert written["n"] == big and written["x"] == math.inf and math.isnan(written["y"])
    assert str(big) in history.messages[1].calls[0].arguments
    lines = formats.read(f"{FIRST}\n" + LAST.replace('"id":"m1"', '"id":"m1","x":NaN'))
    assert [(note.where, note.what) for note in lines.notes] == [("input:2", "kept, though no JSON: NaN")]


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("", "empty"),
        (" \n\t\n", "empty"),
        (b"\0" * 100, "NUL"),
        ("{", "no JSON"),
        ('{"messages": [', "no JSON"),
        ('{\n "messages": [\n  {"role": "user",\n', "line 4"),
        ("plain words", "no JSON"),
        ("[" * 100_000, "nested"),
        ("1" * 5000, "number too long"),
    ],
)
def test_what_is_no_history_says_what_it_is(source: str | bytes, told: str) -> None:
    with pytest.raises(BadInput, match=told) as caught:
        formats.read(source, where="talk.json")
    assert caught.value.where == "talk.json"


def test_many_damaged_lines_take_linear_time() -> None:
    history = formats.read("\n".join([FIRST, *(["{"] * 20_000), LAST]))
    assert len(history.notes) == 20_000


def test_a_loaded_document_holds_no_lines() -> None:
    loaded = jsonl.load('{"a": 1}', "w")
    assert loaded.document == {"a": 1} and loaded.lines == []


def test_one_message_a_line_is_a_list() -> None:
    history = formats.read('{"role":"user","content":"a"}\n{"role":"assistant","content":"b"}\n')
    assert [message.parts for message in history.messages] == [(Text("a"),), (Text("b"),)]
