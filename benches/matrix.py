"""Run whole passes over session files for a row of models and check what every pass promises.

    python benches/matrix.py SESSION...

Each session is compacted for each model at 25 % and at 10 % of its estimated tokens, but never under
head + newest turn + guide + four full pages. A pass must give a page (three at the smaller budget),
fit, validate, recount to its receipt, and every page must read back to its source from pixels.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import perf_counter

import microfiche as mf
from microfiche import formats, models
from microfiche.messages import History, split_turns
from microfiche.pages.guide import guide

MODELS = ("claude-opus-5", "claude-haiku-4-5", "gpt-5.6-sol", "gemini-3.6-flash", "a-model-nobody-knows")


def floor(history: History, name: str) -> int:
    """The least budget: what never changes, the guide, and four full pages."""
    model = models.find(name, vision=True)
    ruler = models.Ruler(model)
    head, turns = split_turns(history.messages)
    kept = list(head) + list(turns[-1].messages)
    if turns[0].role == "user":
        kept += turns[0].messages
    form = models.page(model, models.cell_for(model))
    return (
        ruler.system(history.system)
        + ruler.tools(history.tools, history.tool_names)
        + ruler.messages(kept)
        + ruler.text(guide(form.cell, form.cols, form.rows, recall=False))
        + 4 * ruler.image(form.width, form.height)
    )


def check(path: Path, name: str, share: float, pages: int) -> list[str]:
    """What went wrong in one pass; empty if nothing did. Prints a line of figures."""
    history = formats.read(path.read_bytes(), where=path.name)
    total = mf.count(history, model=name, vision=True)
    budget = max(int(total * share), floor(history, name))
    began = perf_counter()
    fit = mf.compact(history, model=name, budget=budget, vision=True)
    took = perf_counter() - began
    receipt = fit.receipt
    wrong = []
    if len(fit.pages) < pages:
        wrong.append(f"{len(fit.pages)} pages")
    recount = mf.count(fit.request, model=name, vision=True)
    if recount > budget:
        wrong.append(f"{recount} tokens of {budget}")
    if recount != receipt.after.tokens or recount != fit.tokens:
        wrong.append(f"the receipt says {receipt.after.tokens}, a recount {recount}")
    if receipt.before.tokens != total:
        wrong.append(f"the receipt begins at {receipt.before.tokens}, not at {total}")
    if any(a.after != b.before for a, b in zip(receipt.rungs, receipt.rungs[1:], strict=False)):
        wrong.append("the rungs are not contiguous")
    wrong += [str(each) for each in mf.validate(fit.request, receipt.format)]
    for page in fit.pages:
        if mf.read_back(page.png, marks=True) != list(page.segments):
            wrong.append(f"page {page.number} does not read back")
    print(
        f"{path.name[:32]:32} {name:20} {total:>8,} -> {fit.tokens:>7,} of {budget:>7,}"
        f"  pages {len(fit.pages):>3}/{len(receipt.pages):<3} {took * 1e3:5.0f} ms  {'; '.join(wrong) or 'ok'}"
    )
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sessions", nargs="+", type=Path)
    sessions = parser.parse_args().sessions
    wrong = 0
    for path in sessions:
        for name in MODELS:
            wrong += bool(check(path, name, 0.25, 1)) + bool(check(path, name, 0.10, 3))
    print(f"{wrong} of {len(sessions) * len(MODELS) * 2} passes went wrong" if wrong else "every pass holds")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
