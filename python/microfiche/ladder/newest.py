"""A newest result that is too large: its first and last lines as text, its middle on pages, and a pointer.

Nothing else can be done with it: it cannot be omitted, for the call that it answers is the newest, and no
rung reaches the newest turn. The words of a user, the system prompt and the tools never change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from microfiche.messages import Image, Text, ToolResult, Turn
from microfiche.models.tokens import Ruler
from microfiche.pages import guide
from microfiche.pages.exact import Shelf
from microfiche.pages.render import Page
from microfiche.pages.script import Script, Spot

from .form import Form

LARGE = 4_000
"""A text of fewer characters is shortened only where those that are larger do not give enough."""

SMALL = 600
"""A text of fewer characters is never shortened: what stands for it is hardly less."""

# Of what a text may cost, the part that its first and last lines take where the rest is drawn; of that,
# what either takes at most, in tokens: a page tells the same for less.
_ENDS = 0.25
_END = 2_000


@dataclass(frozen=True, slots=True)
class Shortened:
    """How a text of a result stands: its first ``head`` and last ``tail`` characters as text, ``drawn`` more,
    behind the head, on pages of ``form`` whose pixels have the digests ``pages``. What is between is left out.
    """

    head: int
    tail: int
    drawn: int = 0
    form: Form | None = None
    pages: tuple[str, ...] = ()

    def left_out(self, text: str) -> int:
        """How many characters stand nowhere in the context."""
        return len(text) - self.head - self.drawn - self.tail

    def middle(self, text: str) -> str:
        """What is drawn."""
        return text[self.head : self.head + self.drawn]

    def parts(self, text: str, turn: int, recall: bool, pages: Sequence[Page]) -> Iterator[Text | Image]:
        """What stands for the text in its result."""
        if self.head:
            yield Text(text[: self.head])
        yield Text(self._pointer(text, turn, recall, pages))
        shelf = Shelf((text[: self.head], text[len(text) - self.tail :]))
        for page in pages:
            yield Image(page.png, "image/png", page.width, page.height, owner="page")
            if values := shelf.page(page.segments):
                yield Text(guide.exact(page.number, values))
        if self.tail:
            yield Text(text[len(text) - self.tail :])

    def flat(self, text: str, turn: int, recall: bool) -> str:
        """The same as one text, for a page of the archive: what was drawn is text again, what was left out is not."""
        if not self.left_out(text):
            return text
        shown = text[: self.head + self.drawn]
        pointer = self._pointer(text, turn, recall, ())
        return "\n".join(filter(None, (shown, pointer, text[len(text) - self.tail :] if self.tail else "")))

    def _pointer(self, text: str, turn: int, recall: bool, pages: Sequence[Page]) -> str:
        told = []
        if pages:
            last = f"-{pages[-1].number}" if len(pages) > 1 else ""
            told.append(_DRAWN.format(count=self.drawn, total=len(text), first=pages[0].number, last=last))
        if left_out := self.left_out(text):
            told.append(_LEFT_OUT.format(count=left_out, total=len(text)))
        return f"[{'; '.join(told)}; {(_RECALL if recall else _RECORD).format(turn=turn)}]"


_DRAWN = "the next {count:,} of {total:,} characters of this result are on page {first}{last}"
_LEFT_OUT = "{count:,} of {total:,} characters of this result left out here"
_RECALL = "recall of turn {turn} returns the whole"
_RECORD = "the whole is on record as turn {turn}, no recall from here"

_POINTER = re.compile(
    r"\[(?:the next [\d,]+ of [\d,]+ characters of this result are on page \d+(?:-\d+)?(?:; )?)?"
    r"(?:[\d,]+ of [\d,]+ characters of this result left out here)?; "
    r"(?:recall of turn \d+ returns the whole|the whole is on record as turn \d+, no recall from here)\]"
)


def is_pointer(text: str) -> bool:
    """Whether a text is a pointer of ours to the rest of a result, and nothing else."""
    return _POINTER.fullmatch(text) is not None


def large_texts(turn: Turn, least: int = LARGE) -> dict[Spot, str]:
    """The texts of a turn's results that have at least so many characters, by spot."""
    return {
        (turn.number, m, p, i): inner.text
        for m, message in enumerate(turn.messages)
        for p, part in enumerate(message.parts)
        if isinstance(part, ToolResult)
        for i, inner in enumerate(part.parts)
        if isinstance(inner, Text) and len(inner.text) >= least
    }


def with_digests(shortened: Mapping[Spot, Shortened], pages: Mapping[Spot, Sequence[Page]]) -> dict[Spot, Shortened]:
    """The same with the digests of their pages as drawn."""
    return {
        spot: replace(each, pages=tuple(page.digest for page in pages[spot])) if spot in pages else each
        for spot, each in shortened.items()
    }


def text_at(turn: Turn, spot: Spot) -> tuple[str, bool]:
    """A text of a result, and whether the result is an error."""
    result = turn.messages[spot[1]].parts[spot[2]]
    assert isinstance(result, ToolResult)
    text = result.parts[spot[3]]
    assert isinstance(text, Text)
    return text.text, result.error


def draw_shortened(turns: Mapping[int, Turn], shortened: Mapping[Spot, Shortened]) -> dict[Spot, tuple[Page, ...]]:
    """The pages of every text that has some.

    They are numbered apart from those of the archive, which grows: from a thousand times their turn.
    """
    pages: dict[Spot, tuple[Page, ...]] = {}
    taken: dict[int, int] = {}
    for spot, each in sorted(shortened.items()):
        if each.form is None or not each.drawn:
            continue
        number = spot[0]
        first = 1_000 * number + 1 + taken.get(number, 0)
        text, error = text_at(turns[number], spot)
        pages[spot] = _draw(each, text, spot, error, first)
        taken[number] = taken.get(number, 0) + len(pages[spot])
    return pages


def result_script(each: Shortened, text: str, spot: Spot, error: bool) -> Script:
    """What stands on the pages of a shortened text."""
    script = Script()
    script.bar(spot, spot[0], "result error" if error else "result ok")
    script.text(spot, each.middle(text))
    return script


def _draw(each: Shortened, text: str, spot: Spot, error: bool, first: int) -> tuple[Page, ...]:
    assert each.form is not None
    return tuple(each.form.draw(result_script(each, text, spot, error).segments, first))


def shares(sizes: Mapping[Spot, int], room: int) -> dict[Spot, int]:
    """What each text may cost so that all fit the room: the small ones stay whole, the others get the same.

    Only those that have to shrink are named.
    """
    left = dict(sorted(sizes.items(), key=lambda item: item[1]))
    for spot in list(left):
        if left[spot] > room // len(left):
            break
        room -= left.pop(spot)
    return dict.fromkeys(left, max(room, 0) // len(left)) if left else {}


def shorten(
    text: str,
    spot: Spot,
    error: bool,
    limit: int,
    ruler: Ruler,
    recall: bool,
    form: Form | None,
    fits: Callable[[Sequence[Page]], bool],
) -> Shortened:
    """The text within ``limit`` tokens, as far as its pointer allows: with pages where there is a ``form``.

    ``fits`` tells whether the images of so many pages fit the request. The digests of its pages are not filled in.
    """
    limit -= ruler.text(Shortened(0, 0).flat("0" * LARGE, spot[0], recall)) + _JOINT
    if form is not None:
        end = min(int(_ENDS * limit) // 2, _END)
        head, tail = _head(text, end, ruler), _tail(text, end, ruler)
        # A page holds fewer characters than cells, but for long runs of blanks and line breaks.
        cells = (form.width // form.cell[0]) * (form.height // form.cell[1])
        most = limit // ruler.image(form.width, form.height) + 1
        drawn = min(len(text) - head - tail, 2 * most * cells)
        while drawn > 0:
            each = Shortened(head, tail, drawn, form)
            pages = _draw(each, text, spot, error, 1)
            cost = sum(_cost(part, ruler) for part in each.parts(text, spot[0], recall, pages))
            if cost <= limit and fits(pages):
                return each
            # In steps of what is too much, and a little more.
            keep = min(0.95, limit / max(cost, 1)) if cost > limit else 0.8
            drawn = _line_end(text, head, int(keep * drawn))
    return Shortened(_head(text, limit // 2, ruler), _tail(text, limit // 2, ruler))


# A pointer that names pages is longer by so many tokens.
_JOINT = 40


def _cost(part: Text | Image, ruler: Ruler) -> int:
    return ruler.image(part.width, part.height) if isinstance(part, Image) else ruler.text(part.text)


def _line_end(text: str, start: int, length: int) -> int:
    """The length of the whole lines among so many characters, if they are half of them; else that length."""
    at = text.rfind("\n", start + length // 2, start + length)
    return at + 1 - start if at >= 0 else length


def _head(text: str, limit: int, ruler: Ruler) -> int:
    """How many characters at the beginning, in whole lines if there are any, have at most ``limit`` tokens.

    None if they are all blank: a block of nothing but blanks is refused.
    """
    size = _line_end(text, 0, _longest(limit, lambda size: ruler.text(text[:size]), len(text) // 2))
    return size if text[:size].strip() else 0


def _tail(text: str, limit: int, ruler: Ruler) -> int:
    """How many characters at the end, in whole lines if there are any, have at most ``limit`` tokens."""
    size = _longest(limit, lambda size: ruler.text(text[len(text) - size :]), len(text) // 2)
    at = text.find("\n", len(text) - size, len(text) - size // 2)
    size = len(text) - at - 1 if at >= 0 else size
    return size if text[len(text) - size :].strip() else 0


def _longest(limit: int, cost: Callable[[int], int], most: int) -> int:
    """The largest size, up to ``most``, that costs at most ``limit``: a token is at most four characters."""
    low, high = 0, max(min(most, 4 * limit), 0)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if cost(middle) <= limit else (low, middle - 1)
    return low
