"""Writing whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import listing
from microfiche.cli.files import plain, write_all, write_one
from microfiche.errors import MicroficheError
from microfiche.pages.render import series

OLD = {"b": b"old b", "c": b"old c", "a": b"old a"}
NEW = {"a": b"new a", "b": b"new b", "d": b"new d"}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    write_all(tmp_path / "out", OLD, [])
    (tmp_path / "out" / "foreign").write_bytes(b"foreign")
    return tmp_path / "out"


def test_ours_are_replaced_or_removed(out: Path) -> None:
    write_all(out, NEW, list(OLD))
    assert listing(out) == {**NEW, "foreign": b"foreign"}


def test_ours_may_be_gone_already(out: Path) -> None:
    (out / "c").unlink()
    write_all(out, NEW, list(OLD))
    assert listing(out) == {**NEW, "foreign": b"foreign"}


def test_files_have_the_rights_that_the_user_gives_new_files(out: Path, tmp_path: Path) -> None:
    (tmp_path / "usual").write_bytes(b"")
    assert (out / "a").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.parametrize("target, name", [(os, "fsync"), (Path, "replace"), (Path, "open")])
@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full", "stopped"]
)
def test_a_failure_at_any_step_leaves_the_directory_as_it_was(
    out: Path, monkeypatch: pytest.MonkeyPatch, target: Any, name: str, error: BaseException
) -> None:
    before = listing(out)
    real = getattr(target, name)

    def failing_at(step: int) -> Callable[..., Any]:
        calls = 0

        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == step:
                raise error
            return real(*args, **kwargs)

        return call

    steps = {"fsync": 3, "open": 3, "replace": 6}[name]
    for step in range(1, steps + 1):
        with monkeypatch.context() as patch:
            patch.setattr(target, name, failing_at(step))
            with pytest.raises((MicroficheError, KeyboardInterrupt)):
                write_all(out, NEW, list(OLD))
        assert listing(out) == before
    with monkeypatch.context() as patch:
        patch.setattr(target, name, failing_at(steps + 2))
        write_all(out, NEW, list(OLD))
    assert listing(out) == {**NEW, "foreign": b"foreign"}


def test_a_stop_between_renames_leaves_no_file_that_neither_list_names(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``a`` plays the list: the last of the old files to go, the first of the new ones to come."""
    real = Path.replace
    seen: list[set[str]] = []

    def watch(path: Path, target: Path) -> Path:
        moved = real(path, target)
        seen.append({name for name in listing(out) if not name.startswith(".")} - {"foreign"})
        return moved

    monkeypatch.setattr(Path, "replace", watch)
    write_all(out, NEW, list(OLD))
    assert len(seen) == 6
    for names in seen:
        assert "a" in names or not names


def test_one_file_is_replaced_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "text"
    write_one(path, b"one")
    write_one(path, b"two")
    assert listing(tmp_path) == {"text": b"two"}

    def fail(handle: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(MicroficheError, match="Input/output error"):
        write_one(path, b"three")
    assert listing(tmp_path) == {"text": b"two"}


def test_plain_text_holds_nothing_a_terminal_obeys() -> None:
    assert plain("a\x1b[31m\n\x9b\u202e\ud800é✓") == "a\\x1b[31m\\n\\x9b\\u202e\\ud800é✓"


@pytest.mark.parametrize("numbers", [[], [1], [999], range(1, 1001), range(998, 12_000), [5, 1_000_000]])
def test_names_of_pages_sort_as_their_numbers(numbers: list[int]) -> None:
    """As a shell's ``*`` lists them, so that they are read back in their order."""
    names = series("page", numbers)
    assert names == sorted(names)
    assert [int(name[5:-4]) for name in names] == list(numbers)
    assert all(len(name) >= len("page-001.png") for name in names)
