"""What rung 1 frees on real sessions, and how much of what it takes away was wanted again.

    python benches/elision.py SESSION... [--model NAME] [--missed]

Each session is cut after 25, 40, 55, 70 and 85 % of its turns and what is before the cut elided, the
newest 20,000 tokens protected. Then what the agent wrote behind the cut is read, in order.

* *Freed* is the share of the tokens of all results before the cut that elision takes away, and of those
  in front of the protected tail, which are all that it may touch.
* A *rare token* is a word (letters, digits, ``_``) of six or more characters that stood up to three times
  before the cut and after elision stands nowhere.
* It is *used again* if a later call or text of the assistant has it before any later result or user does:
  what was read again in between is not missed.

The words are taken apart here, by other rules than the package's.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from microfiche import formats
from microfiche.ladder.budget import Policy, Scale
from microfiche.ladder.elide import elide
from microfiche.ladder.plan import Plan, Source
from microfiche.ladder.projection import treated
from microfiche.ladder.snapshot import tail_start
from microfiche.messages import Message, Text, ToolCall, ToolResult, Turn
from microfiche.models import find

CUTS = (0.25, 0.40, 0.55, 0.70, 0.85)
WORD = re.compile(r"\w{6,}")
RARE = 3


def said(message: Message) -> Iterator[str]:
    """What the assistant wrote: texts and arguments."""
    for part in message.parts:
        if isinstance(part, Text):
            yield part.text
        elif isinstance(part, ToolCall):
            yield part.arguments


def shown(message: Message) -> Iterator[str]:
    """All text of a message."""
    yield from said(message)
    for part in message.parts:
        if isinstance(part, ToolResult):
            yield part.text


def words(turns: Sequence[Turn]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for turn in turns:
        for message in turn.messages:
            for text in shown(message):
                counts.update(WORD.findall(text))
    return counts


def used_again(removed: set[str], later: Sequence[Turn]) -> list[tuple[int, str]]:
    """The removed words that the assistant writes before anybody else does, with the turn."""
    left = set(removed)
    found = []
    for turn in later:
        for message in turn.messages:
            mine = message.role == "assistant"
            here = {word for text in (said if mine else shown)(message) for word in WORD.findall(text)} & left
            left -= here
            found += [(turn.number, word) for word in sorted(here) if mine]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sessions", nargs="+", type=Path)
    parser.add_argument("--model", default="claude-opus-5")
    parser.add_argument("--missed", action="store_true", help="list the words that were used again")
    options = parser.parse_args()
    model, policy = find(options.model), Policy()
    everything: Counter[str] = Counter()
    whys: Counter[str] = Counter()
    for path in options.sessions:
        _, turns = formats.read(path.read_bytes()).turns()
        totals: Counter[str] = Counter()
        for share in CUTS:
            before, later = turns[: int(share * len(turns))], turns[int(share * len(turns)) :]
            scale = Scale(model)
            protected = tail_start(Source(tuple(before)), policy.tail_tokens, scale)
            found = elide(before, protected, lambda spot: False, policy.elide_floor)
            after = treated(before, Plan(elided=found))
            counts = words(before)
            gone = {word for word in counts.keys() - words(after).keys() if counts[word] <= RARE}
            again = used_again(gone, later)
            totals["results"] += results(before, scale)
            totals["old"] += results([turn for turn in before if turn.number < protected], scale)
            totals["freed"] += results(before, scale) - results(after, scale)
            totals["rare"] += len(gone)
            totals["again"] += len(again)
            for spot, each in found.items():
                turn = before[spot[0] - 1]
                text = turn.messages[spot[1]].parts[spot[2]].text  # type: ignore[union-attr]
                whys[each.why] += len(text) - each.keep
            if options.missed:
                for turn_number, word in again:
                    origins = [
                        f"{turn.number} ({found[turn.number, m, p].why})"
                        for turn in before
                        for m, message in enumerate(turn.messages)
                        for p, part in enumerate(message.parts)
                        if (turn.number, m, p) in found and isinstance(part, ToolResult) and word in part.text
                    ]
                    print(f"    cut {share:.0%}: {word} of turn {', '.join(origins)} in turn {turn_number}")
        print(f"{path.name[:40]:42}{line(totals)}")
        everything += totals
    print(f"{'all':42}{line(everything)}")
    print("characters by rule: " + ", ".join(f"{why} {count:,}" for why, count in whys.most_common()))


def results(turns: Sequence[Turn], scale: Scale) -> int:
    """Tokens of the results."""
    return sum(
        scale.ruler.part(part)
        for turn in turns
        for message in turn.messages
        for part in message.parts
        if isinstance(part, ToolResult)
    )


def line(totals: Counter[str]) -> str:
    freed, old, rare = totals["freed"], max(totals["old"], 1), max(totals["rare"], 1)
    return (
        f"freed {freed / max(totals['results'], 1):6.1%} of results, {freed / old:6.1%} of old ones; "
        f"used again {totals['again']:4} of {totals['rare']:6} rare tokens, {totals['again'] / rare:6.2%}"
    )


if __name__ == "__main__":
    main()
