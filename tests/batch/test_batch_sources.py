"""Which sessions an archive holds, and what they are called."""

from __future__ import annotations

from pathlib import Path

import microfiche as mf
import pytest
from archive_samples import said
from hypothesis import given
from hypothesis import strategies as st
from microfiche.batch.journal import RESERVED
from microfiche.batch.sources import Key, _Names, find


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("[]")
    return path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


def names(*arguments: str | Path) -> list[str]:
    return [source.name for source in find(arguments, {}, RESERVED)]


def test_a_session_is_called_as_it_was_given(here: Path) -> None:
    for name in ("a.json", "runs/x/s.jsonl", "runs/y/s.jsonl", "runs/y/notes.txt", "runs/y/s.TRAJ", "../up.json"):
        touch(here / name)
    assert names("a.json", "runs") == ["a.json", "runs/x/s.jsonl", "runs/y/s.TRAJ", "runs/y/s.jsonl"]
    assert names("runs/*/s.jsonl") == ["runs/x/s.jsonl", "runs/y/s.jsonl"]
    assert names("**/s.jsonl") == ["runs/x/s.jsonl", "runs/y/s.jsonl"]
    assert names("../up.json", "./a.json", here / "runs/x") == ["up.json", "a.json", "runs/x/s.jsonl"]
    assert names(here.parent / "up.json") == [str(here.parent / "up.json").lstrip("/")]
    assert names("runs/y/notes.txt") == ["runs/y/notes.txt"]


def test_each_session_once_whatever_ways_lead_to_it(here: Path) -> None:
    touch(here / "a/s.json")
    (here / "link").symlink_to("a")
    assert names("a", "a/s.json", "link/s.json", here / "a") == ["a/s.json"]


def test_names_that_are_taken_get_a_number(here: Path) -> None:
    for name in ("a/s.json", "../a/s.json", "../../a/s.json", "journal.jsonl", "manifest.jsonl"):
        touch(here / name)
    assert names("a", "../a", "../../a") == ["a/s.json", "a/s.json~2", "a/s.json~3"]
    assert names("journal.jsonl", "manifest.jsonl") == ["journal.jsonl~2", "manifest.jsonl~2"]
    for name in ("b", "../b/c.json", "../b/d.json"):
        touch(here / name)
    assert names("b", "../b") == ["b", "b~2/c.json", "b~2/d.json"]
    assert names("../b", "b") == ["b/c.json", "b/d.json", "b~2"]


def test_names_given_before_stay(here: Path) -> None:
    touch(here / "../a/s.json")
    (before,) = find(["../a"], {}, RESERVED)
    touch(here / "a/s.json")
    found = find(["a", "../a"], {before.key: before.name}, RESERVED)
    assert [source.name for source in found] == ["a/s.json~2", "a/s.json"]


@given(st.lists(st.lists(st.sampled_from(["a", "A", "b~2", "a~2", "b"]), min_size=1, max_size=3), max_size=12))
def test_no_name_is_another_or_stands_above_it(paths: list[list[str]]) -> None:
    given_out = _Names({Key("before", None): "b"}, ["A~2"])
    found = [given_out.of(Key(str(at), None), "/".join(parts)).casefold() for at, parts in enumerate(paths)]
    found += ["b", "a~2"]
    for at, name in enumerate(found):
        for other in found[:at]:
            assert name != other and not name.startswith(f"{other}/") and not other.startswith(f"{name}/")


def test_a_record_is_as_many_sessions_as_it_has_conversations(here: Path) -> None:
    with mf.Record.open(here / "work.mf") as record:
        for name in ("plain", "a/b", "..", "ж" * 90, "ж" * 91):
            record.conversation(name).append(said(1))
    found = find(["work.mf"], {}, RESERVED)
    assert {source.key.conversation for source in found} == {"plain", "a/b", "..", "ж" * 90, "ж" * 91}
    short = [source.name for source in found if len(source.name) < 30]
    assert sorted(short) == ["work.mf/%2E%2E", "work.mf/a%2Fb", "work.mf/plain"]
    assert len({source.name for source in found}) == 5
    assert all(len(source.name) < 200 for source in found)
    # In a folder it is known by its content, and the files beside it are no sessions.
    assert find([Path()], {}, RESERVED) == found
    stamps = {source.key.conversation: source.stamp for source in found}
    with mf.Record.open(here / "work.mf") as record:
        record.conversation("plain").append(said(2))
    changed = {source.key.conversation for source in find(["work.mf"], {}) if source.stamp not in stamps.values()}
    assert changed == {"plain"}


def test_what_is_not_there_or_cannot_be_opened_is_named(here: Path) -> None:
    (here / "broken.mf").write_bytes(b"SQLite format 3\0" + b"junk" * 100)
    found = find(["nowhere.json", "no*such", "broken.mf"], {})
    assert [source.name for source in found] == ["nowhere.json", "no*such", "broken.mf"]
    assert all(source.error for source in found)
