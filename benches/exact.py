"""What stands beside the pages, measured on real sessions: of the rare values that a later call repeats, how many?

    python benches/exact.py SESSION... [--held-out SESSION...] [--missed]

Each session is cut after 25, 40, 55, 70 and 85 % of its turns and what is before the cut compacted
to half of its tokens, by elision and pages. Then the calls behind the cut are read.

* A *value* is a word (a stretch of letters, digits and ``_ . / @ + ~ -``; of a dotted expression each
  name is one) of a call's arguments that is a path or file, URL, hash, id (letters mixed with a third of
  digits; UUIDs), version, error code, number of four digits or more, or a name in snake or camel case.
  It has four characters or more. The number in front of a line, as tools print it, is none.
* It is *rare* if its one earlier occurrence is on a full page, once. Beside that are counted values
  that stand up to three times, or at all, on full pages and nowhere else.
* It *stood in text* if it is a whole word of the text of the context, or all of a path or URL up to or
  from a slash of one.

This judge has its own word rules and shares no code with ``microfiche.pages.exact``.
"""

from __future__ import annotations

import argparse
import errno
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from time import process_time

from microfiche import formats
from microfiche.ladder.budget import Policy, Scale, budget_for
from microfiche.ladder.compact import Outcome, compact
from microfiche.ladder.plan import Source
from microfiche.ladder.projection import settle
from microfiche.messages import Message, Part, Text, ToolCall, ToolResult, Turn, split_turns
from microfiche.models import find

CUTS = (0.25, 0.40, 0.55, 0.70, 0.85)
FILES = (
    "abs c cfg cpp css csv go h html java js json lock log md mod patch py rs sh sql sum tengo toml ts tsx txt xml "
    "yaml yml"
)
ERRORS = frozenset(errno.errorcode.values())

SEPARATORS = re.compile(r"[^\w./@+~:-]+")
LINE_NUMBER = re.compile(r"^[ \t]*\d+(?=[:\t→|-])", re.MULTILINE)
COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
URL = re.compile(r"\w+://[^\s\"'<>`{}|\\^)\]]+")
KINDS = {
    "url": re.compile(r"\w+://.+"),
    "id": re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
    "hash": re.compile(r"(?=.*\d)(?=.*[a-f])[0-9a-f]{7,128}"),
    "version": re.compile(r"v?\d+(\.\d+){2,3}([-+.]?[a-z0-9]+)*"),
    "number": re.compile(r"\d{4,}"),
    "code": re.compile(r"[A-Z]{1,5}\d{3,5}|ERR_\w+"),
    "path": re.compile(rf"(?=.*[A-Za-z]{{2}})[\w.@+~-]*(/[\w.@+~-]+)+/?|[\w+@-][\w.+@-]*\.({FILES.replace(' ', '|')})"),
    "name": re.compile(r"(?=\w{6})[A-Za-z_]\w*([A-Za-z0-9]_|[a-z][A-Z])\w+"),
}
NAMES = "name"


def kind_of(word: str) -> str | None:
    if len(word) < 4:
        return None
    for kind, rule in KINDS.items():
        if rule.fullmatch(word) or (kind == "code" and word in ERRORS):
            return kind
    digits = sum(map(str.isdigit, word))
    mixed = word.isalnum() and not word.isdigit() and digits >= 3 and 3 * digits >= len(word)
    return "id" if mixed else None


def words(text: str) -> Iterator[str]:
    text = LINE_NUMBER.sub(" ", COLOUR.sub(" ", text))
    for url in URL.findall(text):
        yield url.rstrip(".,;:")
    for stretch in SEPARATORS.split(URL.sub(" ", text)):
        for piece in stretch.split(":"):
            word = piece.strip("+-@").rstrip(".~")
            while word.startswith("./"):
                word = word[2:]
            if "/" in word or KINDS["path"].fullmatch(word) or KINDS["version"].fullmatch(word):
                yield word
            else:
                yield from word.split(".")


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield repr(value)


def texts(parts: Iterable[Part]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Text):
            yield part.text
        elif isinstance(part, ToolCall):
            try:
                yield from strings(json.loads(part.arguments))
            except ValueError:
                yield part.arguments
        elif isinstance(part, ToolResult):
            yield from texts(part.parts)


def in_messages(messages: Iterable[Message]) -> Iterator[str]:
    for message in messages:
        yield from texts(message.parts)


def shown(word: str) -> Iterator[str]:
    """A word, and what of a path stands with it."""
    yield word
    for at, character in enumerate(word):
        if character == "/":
            yield from (word[:at], word[: at + 1], word[at + 1 :])


def cases(path: Path) -> Iterator[tuple[float, Source, Outcome, list[Turn]]]:
    history = formats.read(path.read_bytes())
    head, turns = split_turns(history.messages)
    model = find("claude-opus-5")
    policy = Policy(rungs=("elide", "images", "snapshot"))
    for cut in CUTS:
        at = int(cut * len(turns))
        source = Source(tuple(turns[:at]), head)
        tokens = Scale(model).messages(message for turn in source.turns for message in turn.messages).tokens
        outcome = compact(source, model, budget_for(model, policy, tokens // 2), policy, {})
        if outcome.plan.archive is not None and outcome.plan.archive.full:
            yield cut, source, outcome, turns[at:]


def wanted(outcome: Outcome, later: Iterable[Turn]) -> dict[str, tuple[str, int, int]]:
    """Values of later calls that stand on full pages only: class, how often, first page."""
    pages = outcome.projection.pages
    times: Counter[str] = Counter()
    first: dict[str, int] = {}
    for page in pages[:-1]:
        for segment in page.segments:
            for word in words(segment if isinstance(segment, str) else ""):
                times[word] += 1
                first.setdefault(word, page.number)
    seen = set(words(pages[-1].text))
    for text in in_messages(outcome.projection.messages):
        if not text.startswith("Exact values up to page "):
            seen.update(words(text))
    found = {}
    for turn in later:
        for message in turn.messages:
            for text in texts(message.calls):
                for word in words(text):
                    kind = kind_of(word)
                    if word not in seen and kind is not None and word in times:
                        found[word] = (kind, times[word], first[word])
                    seen.add(word)
        for text in in_messages(turn.messages):
            seen.update(words(text))
    return found


GROUPS = {"once": 1, "up to 3": 3, "all": 1 << 30}


class Tally:
    def __init__(self) -> None:
        self.need: Counter[tuple[str, str]] = Counter()
        self.stood: Counter[tuple[str, str]] = Counter()
        self.values = self.characters = self.on_pages = self.tokens = self.page_tokens = 0
        self.largest = 0.0

    def add(self, outcome: Outcome, later: Iterable[Turn], missed: str) -> None:
        archive = outcome.plan.archive
        assert archive is not None
        in_text = {
            part for text in in_messages(outcome.projection.messages) for word in words(text) for part in shown(word)
        }
        for value, (kind, times, page) in wanted(outcome, later).items():
            for group, most in GROUPS.items():
                if times <= most:
                    self.need[group, kind] += 1
                    self.stood[group, kind] += value in in_text
            if missed and value not in in_text:
                print(f"  {missed}: {kind} {value} ({times} times, first on page {page})")
        ruler = Scale(find("claude-opus-5")).ruler
        for page, full in zip(outcome.projection.pages, archive.full, strict=False):
            size = sum(len(value) + 1 for value in full.exact)
            self.values += len(full.exact)
            self.characters += size
            self.on_pages += len(page.text)
            self.largest = max(self.largest, size / len(page.text))
            self.tokens += ruler.text("\n".join(full.exact))
            self.page_tokens += ruler.image(page.width, page.height)

    def report(self, name: str) -> None:
        kinds = [kind for kind in KINDS if self.need["all", kind]]
        share = self.characters / max(self.on_pages, 1)
        print(
            f"{name}: {self.values} values, {share:.2%} of the characters (at most {self.largest:.2%} of a page), "
            f"{self.tokens / max(self.page_tokens, 1):.1%} of the tokens of their pages"
        )
        for group in GROUPS:
            rows = {"all but names": [kind for kind in kinds if kind != NAMES], **{kind: [kind] for kind in kinds}}
            cells = []
            for label, members in {"all": kinds, **rows}.items():
                need, stood = (sum(count[group, kind] for kind in members) for count in (self.need, self.stood))
                if need:
                    cells.append(f"{label} {stood}/{need} ({stood / need:.0%})")
            print(f"  {group:8} {'  '.join(cells)}")


def measure(title: str, paths: list[Path], missed: bool) -> None:
    total = Tally()
    spent = characters = 0.0
    for path in paths:
        one = Tally()
        for cut, source, outcome, later in cases(path):
            label = f"{path.name.split('.')[0]} {cut:.0%}"
            one.add(outcome, later, label if missed else "")
            total.add(outcome, later, "")
            start = process_time()
            settle(source, outcome.plan, outcome.projection.script, outcome.projection.pages)
            spent += process_time() - start
            characters += sum(len(page.text) for page in outcome.projection.pages[:-1])
        one.report(path.name.split(".")[0])
    total.report(f"{title}, {len(paths)} sessions")
    print(f"  {spent / max(characters, 1) * 1e8:.1f} ms for each 100,000 characters on pages\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("sessions", nargs="*", type=Path, help="sessions that the ranking was tuned on")
    parser.add_argument("--held-out", nargs="*", type=Path, default=[], help="sessions that it was only tested on")
    parser.add_argument("--missed", action="store_true", help="list the values that did not stand in text")
    options = parser.parse_args()
    if options.sessions:
        measure("Tuned on", options.sessions, options.missed)
    if options.held_out:
        measure("Held out", options.held_out, options.missed)


if __name__ == "__main__":
    main()
