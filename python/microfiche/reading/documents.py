"""Texts to read off pages, made from a seed: code that no language knowledge helps with, and what may be asked of it.

A random identifier stands out on a page; an ordinary line of code among hundreds like it does not. So a document is
code from a twenty-word vocabulary, in turns with bars, parted by numbered comment lines. Behind some comments stands an
identifier, behind all others an ordinary line to ask for; some turns end with a decision, for questions on content.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from microfiche.pages.render import Bar, Segment

VOCABULARY = tuple(
    "index queue buffer token stream cache merge parse commit layout header offset length record budget "
    "window limit price model entry".split()
)
THINGS = tuple(
    "harbour orchard ledger turbine archive kitchen library compass lantern bakery viaduct garden theatre "
    "mill observatory ferry quarry nursery workshop brewery chapel stable lighthouse granary tannery".split()
)
STATES = tuple(
    "blue shut rented doubled covered painted drained moved locked heated insured empty raised lit mapped sold".split()
)

NOT_STATED = "not stated"


@dataclass(frozen=True, slots=True)
class Question:
    """``kind`` is line, identifier, gist or never; ``asks`` the words of the question, ``truth`` the answer."""

    kind: str
    asks: str
    truth: str


@dataclass(slots=True)
class Document:
    """Segments, and what can be asked: lines and identifiers by the comment above them, decisions by their thing."""

    segments: list[Segment] = field(default_factory=list)
    lines: dict[str, str] = field(default_factory=dict)
    identifiers: dict[str, str] = field(default_factory=dict)
    decisions: dict[str, str] = field(default_factory=dict)

    def questions(self, dice: random.Random, shown: str, counts: Sequence[int]) -> list[Question]:
        """Questions on what is ``shown``: so many lines, identifiers, decisions, and things that it never speaks of.

        Fewer where it does not hold so many.
        """
        lines = {comment: f"{line}\n" for comment, line in self.lines.items()}
        asked: list[Question] = []
        for kind, table, count in (("line", lines, counts[0]), ("identifier", self.identifiers, counts[1])):
            whole = [comment for comment, truth in table.items() if _stands(comment, truth, shown)]
            chosen = dice.sample(whole, min(count, len(whole)))
            asked += [Question(kind, f"{kind} under `{each}`", table[each].rstrip("\n")) for each in chosen]
        known = [thing for thing in self.decisions if decision(thing, self.decisions[thing]) in shown]
        strange = [thing for thing in THINGS if thing not in self.decisions]
        for kind, things, count in (("gist", known, counts[2]), ("never", strange, counts[3])):
            chosen = dice.sample(things, min(count, len(things)))
            asked += [
                Question(kind, f"in one word, what was decided about the {each}", self.decisions.get(each, NOT_STATED))
                for each in chosen
            ]
        return asked


def _stands(comment: str, truth: str, shown: str) -> bool:
    """Whether a comment and what belongs to it are shown, the one behind the other."""
    at = shown.find(f"{comment}\n")
    return at >= 0 and truth in shown[at : at + len(comment) + len(truth) + 40]


def decision(thing: str, state: str) -> str:
    """The words of a decision."""
    return f"# decided: the {thing} will be {state}"


def line(dice: random.Random) -> str:
    """One ordinary line of code, 30 to 80 characters, indented by 0 to 16 spaces."""

    def word() -> str:
        return dice.choice(VOCABULARY)

    def name() -> str:
        return "_".join(word() for _ in range(dice.randint(1, 3)))

    indent = " " * (4 * dice.randint(0, 4))
    forms = (
        lambda: f"{name()} = {name()}({name()}, {name()})",
        lambda: f"if {name()} < {name()} and not {name()}:",
        lambda: f"for {word()} in {name()}.{word()}({name()}):",
        lambda: f'{name()}["{word()}"] = {name()} - {dice.randint(0, 999)}',
        lambda: f"return {name()}.{word()}({name()})[{dice.randint(0, 99)}]",
        lambda: f"{name()}.{word()}({name()}={name()}, {word()}={dice.randint(0, 99)})",
    )
    return indent + dice.choice(forms)()


def identifier(dice: random.Random) -> str:
    """Twelve random hexadecimal digits."""
    return f"{dice.getrandbits(48):012x}"


def document(dice: random.Random, cells: int, number: int = 0, decisions: bool = True) -> Document:
    """A document that fills so many cells; ``number`` sets its turns and comments apart from other pages'.

    Without ``decisions`` it is code alone.
    """
    made = Document()
    used, turn, part = 0, 20 * number, 1000 * number
    things = dice.sample(THINGS, len(THINGS) * 3 // 4) if decisions else []
    while used < cells:
        turn += 1
        made.segments.append(Bar(turn, dice.choice(("result ok", "assistant", "call Write"))))
        text = []
        for _ in range(dice.randint(2, 4)):
            part += 1
            comment = f"# part {part}"
            if dice.random() < 0.3:
                made.identifiers[comment] = identifier(dice)
                target = f'{dice.choice(VOCABULARY)}_id = "{made.identifiers[comment]}"'
            else:
                made.lines[comment] = target = line(dice)
            text += [comment, target, *(line(dice) for _ in range(dice.randint(4, 9)))]
        if things and dice.random() < 0.9:
            thing = things.pop()
            made.decisions[thing] = dice.choice(STATES)
            text.append(decision(thing, made.decisions[thing]))
        joined = "\n".join(text) + "\n"
        made.segments.append(joined)
        # Less than a page takes of it: code is a little over a cell a character.
        used += round(0.9 * len(joined))
    return made


_SIGNS = tuple("( [ -> . == != += : ; , { } ] ) ' \" _ / * & | < > % # @".split())


def mixed_line(
    dice: random.Random, length: int = 50, words: Sequence[str] = VOCABULARY, signs: Sequence[str] = _SIGNS
) -> str:
    """Words, signs and random letters of about a length, with an identifier behind: for readers of single lines."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    text = ""
    while len(text) < length:
        kind = dice.random()
        if kind < 0.5:
            text += dice.choice(words)
        elif kind < 0.85:
            text += dice.choice(signs)
        else:
            text += "".join(dice.choice(letters) for _ in range(6))
    return f"{text} {identifier(dice)}"
