"""Tries changed shapes of the font against the independent reader: ``python benches/reading/tune.py TRIALS``.

A trial is a name line in brackets and the lines of ``fonts/fiche.txt`` that it changes:

    [rounder O]
    004F O cap full :: 3,9 ~6,9 6,4.5 ~6,0 3,0 ~0,0 0,4.5 ~0,9 3,9

Each is put into the font, the engine is built (``--build``), and ``ocr.py`` reads the corpora that the font is tuned
on, never those that it is judged on. Printed are the edits and identifiers of each trial beside those of the font as
it stands. ``--keep`` keeps a trial that makes fewer edits; the next ones are tried on top of it. At the end the font is
what was kept, and built.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FONT = HERE.parent.parent / "fonts" / "fiche.txt"
TRAIN = ["text", "mixed", "alike-train"]


def trials(path: Path) -> list[tuple[str, list[str]]]:
    found: list[tuple[str, list[str]]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            found.append((line.strip("[]"), []))
        elif line.strip():
            found[-1][1].append(line)
    return found


def changed(font: str, lines: list[str]) -> str:
    """The font with the lines of the same names replaced."""
    fresh = {line.split()[0]: line for line in lines}
    old = font.splitlines()
    missing = fresh.keys() - {line.split()[0] for line in old if line and not line.startswith("#")}
    if missing:
        raise SystemExit(f"not in {FONT.name}: {' '.join(sorted(missing))}")
    return "\n".join(fresh.get(line.split()[0], line) if line.strip() else line for line in old) + "\n"


def read(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Build the engine and let the reader read."""
    subprocess.run(options.build, shell=True, check=True)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "read.json"
        wanted = ["--cells", *options.cells, "--scales", *options.scales, "--corpora", *options.corpora]
        wanted += ["--inks", options.ink, "--json", str(out)]
        command = [options.reader, str(HERE / "ocr.py"), *wanted]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        found: list[dict[str, Any]] = json.loads(out.read_text(encoding="utf-8"))
        return found


def total(results: list[dict[str, Any]]) -> int:
    return sum(sum(each["edits"].values()) for each in results)


def show(name: str, results: list[dict[str, Any]]) -> None:
    edits: dict[str, int] = {}
    for each in results:
        for edit, n in each["edits"].items():
            edits[edit] = edits.get(edit, 0) + n
    worst = sorted(edits.items(), key=lambda item: -item[1])[:14]
    parts = [f"{sum(each['edits'].values())},{each['found']}/{each['identifiers']}" for each in results]
    print(f"{name:24} {total(results):5}  {' '.join(parts)}  {' '.join(f'{e}×{n}' for e, n in worst)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trials", type=Path)
    parser.add_argument("--cells", nargs="+", default=["5x10", "6x12"])
    parser.add_argument("--scales", nargs="+", default=["1.0", "0.75"])
    parser.add_argument("--corpora", nargs="+", default=TRAIN, choices=TRAIN)
    parser.add_argument("--ink", default="grey", choices=["grey", "mono"])
    parser.add_argument("--build", default="maturin develop --release -q", help="shell command that builds the engine")
    parser.add_argument("--reader", default=sys.executable, help="the Python that has rapidocr")
    parser.add_argument("--keep", action="store_true", help="keep what makes fewer edits")
    options = parser.parse_args()
    font = FONT.read_text(encoding="utf-8")
    try:
        best = read(options)
        show("as it stands", best)
        for name, lines in trials(options.trials):
            FONT.write_text(changed(font, lines), encoding="utf-8")
            results = read(options)
            show(name, results)
            if options.keep and total(results) < total(best):
                font, best = changed(font, lines), results
    finally:
        FONT.write_text(font, encoding="utf-8")
        subprocess.run(options.build, shell=True, check=True)


if __name__ == "__main__":
    main()
