"""Instructions and bytes a page, against the baseline: ``python benches/instructions.py`` (takes valgrind and cargo).

Counted by callgrind, so the same to a few in a million whenever the same compiler made the code; no time is looked at.
A change of more than half a percent, or of any byte, is printed and makes the exit code 1: explain it in the commit
that makes it, with the figures that ``--write`` leaves in ``instructions.json``. The processor that valgrind shows has
no instructions for SHA-256, of which a page without digests has little.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from samples import code

BASELINE = Path(__file__).with_name("instructions.json")
ROOT = BASELINE.parent.parent
SHAPES = ["5 8 mono", "6 12 grey", "9 16 grey", "9 16 mono"]
LEVELS = ["fastest", "default"]
CHARACTERS = 60_000


def built() -> Path:
    """The example, optimised as the package is."""
    command = "cargo build --release -q -p microfiche-core --example instructions --message-format=json"
    lines = subprocess.run(command.split(), cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    made = (json.loads(line).get("executable") for line in lines)
    return Path(next(path for path in made if path))


def counted(program: Path, text: Path, shape: str, level: str) -> dict[str, int]:
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", "--toggle-collect=*measured*"]
        command += [f"--callgrind-out-file={folder}/out", str(program), str(text), *shape.split(), level]
        run = subprocess.run(command, check=True, capture_output=True, text=True)
    pages, size = map(int, run.stdout.split())
    found = re.search(r"Collected : (\d+)", run.stderr)
    assert found, run.stderr
    return {"instructions": int(found[1]) // pages, "bytes": size // pages}


def main() -> int:
    compiler = subprocess.run(["rustc", "--version"], check=True, capture_output=True, text=True).stdout.strip()
    program = built()
    now: dict[str, dict[str, int]] = {}
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "text")
        text.write_text(code(CHARACTERS), encoding="utf-8")
        for shape in SHAPES:
            for level in LEVELS:
                now[f"{shape} {level}"] = counted(program, text, shape, level)
    if sys.argv[1:] == ["--write"]:
        BASELINE.write_text(json.dumps({"compiler": compiler, "pages": now}, indent=1) + "\n", encoding="utf-8")
    before = json.loads(BASELINE.read_text(encoding="utf-8"))
    if compiler != before["compiler"]:
        print(f"{compiler}; the baseline was made by {before['compiler']}")
    changed = False
    for name, page in now.items():
        old = before["pages"].get(name, page)
        ratio = page["instructions"] / old["instructions"] - 1
        differs = abs(ratio) > 0.005 or page["bytes"] != old["bytes"]
        changed |= differs
        mark = f"  changed: {ratio:+.1%}, {page['bytes'] - old['bytes']:+,} bytes" if differs else ""
        print(f"{name:<22} {page['instructions']:>12,} instructions {page['bytes']:>9,} bytes a page{mark}")
    return int(changed)


if __name__ == "__main__":
    sys.exit(main())
