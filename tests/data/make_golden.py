"""Makes the golden record of this version: a life with every kind of event, on a clock of its own.

    python tests/data/make_golden.py tests/data/golden/0.1.mf

A golden record of a released version is never made again: its contexts must prove as long as there is a
microfiche. That of the version in the making is, whenever a wording, the grammar of pages or the font changes.
"""

from __future__ import annotations

import sys
import tempfile
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import builders
import microfiche as mf

SYSTEM = "You look after the queue. " * 60
CLAUDE = "claude-haiku-4-5"
GPT = "gpt-5.6-sol"


def live(record: mf.Record) -> None:
    """Two conversations: one of Anthropic's wire with everything, one of Chat Completions that is compacted."""
    chat = record.conversation("golden")
    ticks = count()

    def work(rounds: int, model: str, wire: str, budget: int) -> None:
        for _ in range(rounds):
            at = next(ticks)
            fit = chat.context(model=model, budget=budget, system=SYSTEM, tools=mf.tools(wire), format=wire)
            made = builders.Story(calls=10 * at)
            if at % 3 == 2:
                made.uses(("shot", {"at": at}, (f"seen {at}", builders.png(320, 200 + at))), thinking=f"hm {at}")
            elif at % 3 == 1:
                made.read("src/queue.py", builders.code(7, 2_000))
            else:
                # Wide characters, marks and controls: what a page has to escape or to count.
                text = f"第{at}回 naïve 𝔘 \x1b[0m\r\n\t\t\t\n\n\n\n{builders.code(at, 4_000)}"
                made.uses(("ask", {"question": at}, text), ("run", {"command": f"check {at}"}, f"ok {at}"))
            chat.append(made.native(wire), context=fit, usage={"input_tokens": fit.tokens}, format=wire)

    chat.append(builders.Story().user("Mend the queue. Never touch vendored files.").native("anthropic"))
    work(12, CLAUDE, "anthropic", 60_000)
    chat.pin("The queue holds at most 512 items.", kind="parameter")
    chat.shake(model=CLAUDE, budget=14_000, system=SYSTEM, tools=mf.tools("anthropic"))
    chat.checkpoint("before the split")
    work(8, CLAUDE, "anthropic", 14_000)
    chat.undo()
    chat.rewind("before the split", report="The split loses items.")
    first = chat.tip or 1
    work(10, CLAUDE, "anthropic", 11_000)
    claim = chat.claim("The cache keeps every item.", rests_on=[("query", first), ("execution", first - 1)])
    chat.claim("So it must be bounded.", rests_on=[("check", claim)])
    fit = chat.context(model=CLAUDE, budget=11_000, system=SYSTEM)
    chat.fail(ConnectionError("reset by peer"), context=fit)
    chat.resume(model=CLAUDE, budget=5_000, system=SYSTEM, policy=mf.Policy(rungs=("omit",)))
    chat = chat.fork("golden, on another wire")
    work(8, GPT, "openai_chat", 9_000)
    chat.compact(
        model=GPT,
        budget=6_000,
        system=SYSTEM,
        policy=mf.Policy(rungs=("summary", "omit")),
        summarize=lambda request: f"- fact: the queue was split (turn {request.turns[0]})",
    )


def main(target: Path) -> None:
    clock = count(1_700_000_000_000_000, 1_000_000)
    for old in (target, Path(f"{target}.heads")):
        old.unlink(missing_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        mf.Record.open(Path(folder) / "golden.mf", clock=lambda: next(clock)) as record,
    ):
        live(record)
        print(*record.backup(target))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
