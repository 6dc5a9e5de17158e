"""Rows of sessions to rows of pages, as objects and as tables."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import microfiche as mf
import pyarrow
import pytest
from archive_samples import said
from microfiche import formats, models
from microfiche.batch import tables
from microfiche.batch.rows import Look, SessionRow
from microfiche.ladder.form import form_for
from microfiche.pages.script import write_script

MODEL = "claude-opus-5"


def alone(messages: list[object], model: str = MODEL) -> list[bytes]:
    """The pages of a session as a pass draws the middle of a history."""
    script = write_script(formats.read(messages).turns()[1])
    return [page.png for page in form_for(models.find(model), "exact").draw(script.segments)]


def test_pages_are_those_of_single_rendering() -> None:
    rows = list(mf.rerender([{"session": "a", "text": json.dumps(said(1, turns=12))}], model=MODEL))
    assert len(rows) > 3
    assert [row["png"] for row in rows] == alone(said(1, turns=12))
    assert [row["page"] for row in rows] == list(range(1, len(rows) + 1))
    text = mf.read_back([row["png"] for row in rows])
    assert "berth 1 11 119: free" in text and "Session 1: look after the harbour." in text
    for row in rows:
        assert row["bytes"] == len(row["png"])
        assert row["tokens"] == models.image_tokens(models.find(MODEL), row["width"], row["height"])
        assert row["error"] == "" and row["model"] == MODEL
    assert sorted({turn for row in rows for turn in row["turns"]}) == list(range(1, 14))


def test_threads_change_no_byte() -> None:
    session = {"session": "a", "text": json.dumps(said(1, turns=20))}
    assert list(mf.rerender([session], model=MODEL)) == list(mf.rerender([session], model=MODEL, threads=3))


def test_a_row_may_name_its_own_model_and_path(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps(said(2)))
    rows = list(mf.rerender([{"path": str(path), "model": "gemini-3-pro"}, {"path": str(path)}], model=MODEL))
    assert [row["model"] for row in rows] == ["gemini-3-pro"] + [MODEL] * (len(rows) - 1)
    assert rows[0]["png"] == alone(said(2), "gemini-3-pro")[0]
    assert {row["session"] for row in rows} == {str(path)}


def test_a_conversation_of_a_record_keeps_its_turn_numbers(tmp_path: Path) -> None:
    with mf.Record.open(tmp_path / "r.mf") as record:
        record.conversation("one").append(said(1))
        chat = record.conversation("two")
        for entry in chat.append(said(2))[:1]:
            chat.append(said(3))
            chat.branch(entry.id)
        chat.append(said(4)[1:])
    path = str(tmp_path / "r.mf")
    (row,) = mf.rerender([{"session": "r", "path": path}], model=MODEL)
    assert "2 conversations" in row["error"]
    (row,) = mf.rerender([{"session": "r", "path": path, "conversation": "three"}], model=MODEL)
    assert "three" in row["error"]
    rows = list(mf.rerender([{"session": "r", "path": path, "conversation": "two"}], model=MODEL))
    text = mf.read_back([row["png"] for row in rows])
    assert "Session 2" in text and "berth 4" in text and "Session 3" not in text
    assert sorted({turn for row in rows for turn in row["turns"]}) == [1, 9, 10, 11]


@pytest.mark.parametrize(
    "row",
    [
        {"session": "bad", "text": "no session"},
        {"session": "bad", "text": ""},
        {"session": "bad", "text": b"\xff\xfe\x00"},
        {"session": "bad", "text": "[" * 5000},
        {"session": "bad", "path": "/nowhere/at/all.json"},
        {"session": "bad"},
        {"session": "bad", "text": "[]", "path": "x"},
        {"session": "bad", "text": json.dumps(said(1)), "model": "gpt-3.5-turbo"},
    ],
    ids=str,
)
def test_what_cannot_be_drawn_is_a_row_and_the_rest_goes_on(row: SessionRow) -> None:
    good = {"session": "good", "text": json.dumps(said(1))}
    first, *rest = mf.rerender([row, good], model=MODEL)
    assert (first["session"], first["page"], first["png"]) == ("bad", 0, b"")
    assert first["error"] and "\n" not in first["error"]
    assert [each["png"] for each in rest] == alone(said(1))


def test_a_model_without_vision_is_refused_at_once() -> None:
    with pytest.raises(mf.NoVision):
        mf.rerender([], model="gpt-3.5-turbo")
    Look("gpt-3.5-turbo", vision=True)


def test_our_own_pages_are_not_drawn_again() -> None:
    policy = mf.Policy(rungs=("snapshot",))
    fit = mf.compact(said(1, turns=80), model=MODEL, budget=100_000, policy=policy)
    assert fit.pages
    (row,) = mf.rerender([{"session": "a", "text": json.dumps(fit.request)}], model=MODEL)
    assert "ours stands in the input" in row["error"]


def test_tables_in_and_out() -> None:
    sessions = [{"session": f"s{n}", "text": json.dumps(said(n))} for n in range(3)]
    bad = {"session": "bad", "text": "junk"}
    table = pyarrow.Table.from_pylist([*sessions, bad])
    made = tables.rerender(table, model=MODEL)
    assert isinstance(made, pyarrow.Table) and made.schema == tables.schema()
    rows = made.to_pylist()
    assert rows[:-1] == list(mf.rerender(sessions, model=MODEL))
    assert rows[-1]["session"] == "bad" and rows[-1]["error"]
    (batch,) = table.slice(1, 1).to_batches()
    assert tables.rerender(batch, model=MODEL).to_pylist() == [row for row in rows if row["session"] == "s1"]
    assert tables.rerender(table.slice(0, 0), model=MODEL).num_rows == 0


def test_without_pyarrow_tables_say_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(mf.MicroficheError, match=r"microfiche\[arrow\]"):
        tables.rerender(object(), model=MODEL)
