"""The verifier in docs, written from the description of the format alone, agrees with ours."""

from __future__ import annotations

import ast
import random
import subprocess
import sys
from pathlib import Path

import pytest
from microfiche.messages import ToolCall
from microfiche.record import Ref
from record_lives import calls, fresh, live, says, shot, user

VERIFIER = Path(__file__).parents[2] / "docs" / "verify_record.py"

GOLDEN = "29bbcdebd185b38155cf39f9b44e374641b89524c6e8856da3daf1870900ca80"


def run(*args: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, VERIFIER, *map(str, args)], capture_output=True, text=True, check=False)


def test_it_imports_nothing_of_ours() -> None:
    tree = ast.parse(VERIFIER.read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} <= set(sys.stdlib_module_names)
    assert len(VERIFIER.read_text().splitlines()) < 130


@pytest.mark.parametrize("seed", range(4))
def test_both_find_the_same_head(tmp_path: Path, seed: int) -> None:
    with fresh(tmp_path) as record:
        live(record, random.Random(seed), 25)
        verdict = record.verify()
        told = run(record.path)
        assert told.returncode == 0, told.stdout
        assert told.stdout.split() == [str(verdict.size), verdict.root] == [str(v) for v in record.head]
        assert run(record.path, record.heads_path).stdout == told.stdout


def test_what_is_no_record(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"no" * 500)
    told = run(tmp_path / "x")
    assert told.returncode == 3 and told.stdout.startswith("unsound")


def test_the_format_does_not_drift(tmp_path: Path) -> None:
    """The same life with the same clock has the root it had when the format was fixed."""
    with fresh(tmp_path) as record:
        t = record.thread("pinned")
        (first,) = t.append([user("what is \ud800 this? " * 90)])
        t.started(ToolCall("c", "look", "{}"))
        t.append([calls("c"), shot("c", bytes(range(256)) * 8), says("a picture")], meta={"context": "0f" * 32})
        t.label("seen")
        t.move(first.id)
        t.append_event("pin", {"said": Ref(first.id), "n": [1.5, float("inf"), 2**2000, (None, True), {"$": {}}]})
        t.fork("copy")
        assert (record.head.size, record.head.root) == (11, GOLDEN)
