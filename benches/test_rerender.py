"""The rate of re-rendering an archive of 1,000 generated sessions: ``pytest benches/test_rerender.py -s``."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest
from samples import session_lines

SESSIONS, CHARACTERS = 1_000, 100_000


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archive")
    for seed in range(SESSIONS):
        (folder / f"session-{seed:04}.jsonl").write_bytes(session_lines(CHARACTERS, seed))
    return folder


@pytest.mark.parametrize("jobs", sorted({1, os.cpu_count() or 1}))
def test_archive(archive: Path, tmp_path: Path, jobs: int) -> None:
    program = "from microfiche.cli import main; main()"
    words = ["rerender", archive, "--model", "claude-opus-5", "--out", tmp_path / "out", "--jobs", jobs]
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", program, *map(str, words)], check=True)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"\n{jobs} processes: {seconds:.1f} s, {SESSIONS / seconds:.0f} sessions/s; the largest took {peak:.0f} MB")
