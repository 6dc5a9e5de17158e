"""Rows of sessions to rows of pages: a pure function, which a batch or a distributed engine can map.

A row goes in for each session, a row comes out for each page. Nothing is kept between rows, so that they may be
drawn in any order, anywhere, and are the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, cast

from microfiche import formats, models
from microfiche.conversation import Record
from microfiche.errors import BadInput, MicroficheError, NoSuchEntry, NoVision
from microfiche.ladder.form import Form, form_for
from microfiche.ladder.own import refuse_own
from microfiche.messages import History
from microfiche.models import Fidelity
from microfiche.pages.render import Level, Page, Segment
from microfiche.pages.script import write_script
from microfiche.record.sqlite import is_database


class SessionRow(TypedDict, total=False):
    """A session: what it is called, and its ``text`` (str or bytes) or the ``path`` of its file.

    ``path`` may be that of a record: then ``conversation`` names one of it, and may be left away where it holds one.
    ``model`` is who will read the pages, where that is not the same for all.
    """

    session: str
    text: str | bytes
    path: str
    conversation: str | None
    model: str


class PageRow(TypedDict):
    """A page of a session, or with page 0 and ``error`` why there is none.

    ``turns`` are the numbers of the turns on it, ``digest`` its identity (SHA-256 of its pixels, hex), ``tokens`` what
    the model bills for it, ``bytes`` the size of ``png``, its file.
    """

    session: str
    model: str
    page: int
    turns: list[int]
    width: int
    height: int
    tokens: int
    bytes: int
    digest: str
    png: bytes
    error: str


@dataclass(frozen=True, slots=True)
class Look:
    """How sessions are drawn: for which model, how well it has to read, with which fonts beside ours, at which level.

    :class:`~microfiche.errors.NoVision` for a model that reads no images, unless ``vision`` says that it does.
    """

    model: str
    fidelity: Fidelity = "exact"
    level: Level = "default"
    vision: bool | None = None
    font: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        reader = self.reader
        if not reader.vision:
            cure = "name a model that reads images, or say that it does (vision)"
            if reader.known:
                raise NoVision(f"{reader.name} does not read images", cure=cure)
            raise NoVision(f"whether {reader.name} reads images is not known", cure=cure)
        self.form()

    @property
    def reader(self) -> models.Model:
        return models.find(self.model, self.vision)

    def form(self, segments: Iterable[Segment] = ()) -> Form:
        """The form of the pages: the model's; where most of the text is wide and a font draws it, a larger cell."""
        text = "".join(each for each in segments if isinstance(each, str)) if self.font else ""
        return form_for(self.reader, self.fidelity, self.font, text)

    def pages(self, history: History, threads: int = 1) -> Iterator[tuple[Page, int]]:
        """The pages of all turns of a history, each with what the model bills for it.

        Turns stand as they were said: nothing is elided. As in a pass, reasoning, the system prompt and the tools'
        definitions are not drawn, a picture is a marker and a long run of random characters a pointer.
        """
        refuse_own(history)
        segments = write_script(history.turns()[1]).segments
        reader = self.reader
        for page in self.form(segments).draw(segments, level=self.level, threads=threads):
            yield page, models.image_tokens(reader, page.width, page.height)


def load(row: SessionRow) -> History:
    """The history of a row: of its text, its file, or a conversation of the record that its file is."""
    name = row["session"]
    text, path, conversation = row.get("text"), row.get("path"), row.get("conversation")
    if (text is None) == (path is None):
        raise BadInput("neither or both of a text and a path", name, "give one of them")
    if text is not None:
        return formats.read(text, where=name)
    assert path is not None
    if is_database(path):
        with Record.open(path, create=False, read_only=True) as record:
            return _conversation(record, conversation)
    if conversation is not None:
        raise BadInput("a conversation is named, and this is no record", name)
    return formats.read(Path(path).read_bytes(), where=name)


def _conversation(record: Record, name: str | None) -> History:
    names = [each.name for each in record.conversations()]
    if name is None:
        if len(names) != 1:
            raise BadInput(f"the record holds {len(names):,} conversations", str(record.path), "name one")
        name = names[0]
    elif name not in names:
        raise NoSuchEntry(f"no conversation {name!r}", str(record.path))
    state = record.conversation(name).state()
    return state.history(state.wire())


def rerender(
    sessions: Iterable[SessionRow],
    *,
    model: str | None = None,
    fidelity: Fidelity = "exact",
    level: Level = "default",
    vision: bool | None = None,
    font: tuple[str, ...] = (),
    threads: int = 1,
) -> Iterator[PageRow]:
    """The pages of sessions, one session after another: a row for each page.

    A row without a ``model`` takes the one given. A session that cannot be drawn is one row that says why; the
    others go on. The pages of one session are held at a time. ``threads`` changes no byte. For PyArrow tables see
    :func:`microfiche.batch.tables.rerender`.

    :class:`~microfiche.errors.NoVision` for a given model that reads no images.
    """
    look = Look(model, fidelity, level, vision, font) if model is not None else None
    return _drawn(sessions, look, (fidelity, level, vision, font), threads)


def _drawn(sessions: Iterable[SessionRow], look: Look | None, rest: tuple[Any, ...], threads: int) -> Iterator[PageRow]:
    for row in sessions:
        session, own = row.get("session") or row.get("path") or "", row.get("model")
        try:
            if own is not None:
                look_here = Look(own, *rest)
            elif look is not None:
                look_here = look
            else:
                raise BadInput("no model", session, "name who will read the pages")
            # Drawn whole before the first row goes out: a session is drawn or it is not.
            pages = list(look_here.pages(load(cast(SessionRow, {**row, "session": session})), threads))
        except Exception as error:
            yield _failed(session, own or (look.model if look is not None else ""), fault(error))
            continue
        for page, tokens in pages:
            yield page_row(session, look_here.model, page, tokens)


def page_row(session: str, model: str, page: Page, tokens: int) -> PageRow:
    return {
        "session": session,
        "model": model,
        "page": page.number,
        "turns": list(page.turns),
        "width": page.width,
        "height": page.height,
        "tokens": tokens,
        "bytes": len(page.png),
        "digest": page.digest,
        "png": page.png,
        "error": "",
    }


def _failed(session: str, model: str, error: str) -> PageRow:
    nothing: Mapping[str, Any] = {"page": 0, "turns": [], "width": 0, "height": 0, "tokens": 0, "bytes": 0}
    return cast(PageRow, {"session": session, "model": model, **nothing, "digest": "", "png": b"", "error": error})


def fault(error: Exception) -> str:
    """An error in one line; of one that nobody foresaw, its name too."""
    if isinstance(error, MicroficheError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename or 'the file'}: {error.strerror or error}"
    return f"{type(error).__name__}: {error}"
