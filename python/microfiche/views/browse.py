"""A record as data for the HTML view: every entry, what each event left, the pages and pictures.

Plain data of what stands in the record and of what the audit folds from it. What a call saw is folded in the
page from the events on its path, as :class:`microfiche.auditing.Audit` does.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from microfiche import models
from microfiche.auditing import FORMS, Standing, Whole, audit
from microfiche.auditing.report import summary_of
from microfiche.auditing.walk import carried, imported, spoken
from microfiche.conversation import Conversation
from microfiche.ladder.usage import reported
from microfiche.messages import Image, Message, Opaque, Part, Reasoning, ToolResult
from microfiche.pages.render import Page, bars_on
from microfiche.path import Sheet
from microfiche.record import Entry, Record, Ref, Verdict

from .links import verify_command
from .thread import marker, part_data, when
from .tree import tree

LONGEST_TEXT = 200_000
"""Characters of one text that the page holds; of a longer one its beginning and its end, and how much is between."""

PAGES_LIMIT = 16 << 20
IMAGES_LIMIT = 16 << 20
"""Bytes of page and picture files that the page holds, the newest first; the rest are named."""

_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_FORM = {name: at for at, name in enumerate(FORMS)}


def browse(
    record: Record,
    names: Iterable[str],
    prove: int = 100,
    *,
    record_name: str = "",
    head: tuple[int, str] | str | None = None,
    heads: Path | None = None,
) -> dict[str, Any]:
    """The conversations of these names as data for the view.

    The contexts of all passes and of the newest ``prove`` calls of each are made again and held against the
    digests recorded with them. ``head`` and ``heads`` were kept elsewhere and are held against the record.
    """
    from importlib.metadata import version  # slow to import

    told = _Teller(record)
    forks = list(record.entries(kind="fork"))
    conversations = [told.conversation(Conversation(record, name), forks, prove) for name in names]
    return {
        "by": f"microfiche {version('microfiche')}",
        "record": _record(record, record.verify(head, heads), record_name or record.path.name),
        "forms": [[name, words] for name, words in FORMS.items()],
        "conversations": conversations,
        "pages": told.pages(),
        "images": told.images(),
    }


def _record(record: Record, verdict: Verdict, name: str) -> dict[str, Any]:
    # A session's record is gone with the command.
    command = verify_command(name, verdict.size, verdict.root) if name == record.path.name else ""
    told = {"name": name, "verify": command, "sound": verdict.sound, "against": verdict.against, "where": verdict.where}
    return told | {"size": verdict.size, "root": verdict.root, "reason": verdict.reason, "entry": verdict.entry}


@dataclass(slots=True)
class _Teller:
    record: Record
    # A page by its identity, its place in the list and its file if this version draws it.
    _pages: dict[Sheet, tuple[int, Page | None]] = field(default_factory=dict)
    _images: dict[str, Image] = field(default_factory=dict)

    def conversation(self, chat: Conversation, forks: list[Entry], prove: int) -> dict[str, Any]:
        entries = list(self.record.entries(conversation=chat.name))
        calls = [entry for entry in entries if "asked" in entry.payload]
        brought = {entry.time for entry in entries if entry.kind == "import" and "format" in entry.payload}
        newest = calls[-prove:] if prove else []
        whole = audit(chat).whole({each.id for each in calls if each.kind == "compaction" or each in newest})
        return {
            **tree(chat, forks),
            "name": chat.name,
            "tip": chat.tip,
            "entries": [self._entry(each) | ({"brought": True} if each.time in brought else {}) for each in entries],
            "calls": {each.id: _call(each, whole) for each in calls},
            "passes": {each.event: self._standing(each) for each in whole.standings.values()},
        }

    def _entry(self, entry: Entry) -> dict[str, Any]:
        told: dict[str, Any] = {"id": entry.id, "kind": entry.kind, "time": when(entry), "leaf": entry.leaf.hex()}
        told |= {"parent": entry.parent} if entry.on_path else {"about": entry.about}
        if entry.kind in ("undo", "unpin"):
            told["about"] = entry.about
        if entry.turn is not None:
            told["turn"] = entry.turn
        if entry.kind != "message":
            told["what"] = marker(entry)
            told["told"] = _told(entry)
        if entry.message is not None:
            told |= {"role": entry.message.role, "wire": entry.payload.get("wire", "")}
            told["parts"] = [self._part(part) for part in entry.message.parts]
        return told

    def _part(self, part: Part) -> dict[str, Any]:
        told = part_data(part)
        told["size"] = len(spoken(Message("user", (part,))))
        if isinstance(part, ToolResult):
            told["parts"] = [self._part(each) for each in part.parts]
        if isinstance(part, Opaque | Reasoning) and not carried(part):
            told["carried"] = False
        if isinstance(part, Image) and part.data is not None and part.media_type in _PICTURES:
            self._images.pop(part.digest, None)  # the newest place counts
            self._images[part.digest] = part
        return {name: _bounded(value) for name, value in told.items()}

    def _standing(self, standing: Standing) -> dict[str, Any]:
        sheets = []
        for sheet, page in zip(standing.sheets, standing.pages, strict=True):
            at, known = self._pages.pop(sheet, (len(self._pages), None))
            self._pages[sheet] = (at, page or known)
            sheets.append(at)
        changed = [
            [*key, None] if each is None else [*key, _FORM[each[0].name], each[1], list(each[0].pages), each[0].why]
            for key, each in standing.changed.items()
        ]
        return {"wire": standing.wire, "sheets": sheets, "left_out": standing.left_out, "changed": changed}

    def pages(self) -> list[dict[str, Any]]:
        left = PAGES_LIMIT
        listed: dict[int, dict[str, Any]] = {}
        for sheet, (at, page) in reversed(self._pages.items()):
            told: dict[str, Any] = {**sheet._asdict(), "redrawn": page is not None}
            if page is not None and len(page.png) <= left:
                left -= len(page.png)
                bars = [[bar.turn, bar.kind, [list(box) for box in bar.boxes]] for bar in bars_on(page)]
                told |= {"png": _base64(page.png), "bars": bars, "cell": page.cell}
            listed[at] = told
        return [listed[at] for at in range(len(listed))]

    def images(self) -> dict[str, Any]:
        left = IMAGES_LIMIT
        kept: dict[str, Any] = {}
        for digest, image in reversed(self._images.items()):
            data = image.data or b""
            if len(data) <= left:
                left -= len(data)
                kept[digest] = {"type": image.media_type, "data": _base64(data)}
        return kept


def _call(entry: Entry, whole: Whole) -> dict[str, Any]:
    told = entry.payload
    at = entry.id if entry.kind == "compaction" else _plain(told.get("at"))
    call: dict[str, Any] = {"at": at, "model": told["model"], "context": told["context"], "estimate": told["estimate"]}
    call |= {"reported": reported(told.get("usage")), "wire": json.loads(told["asked"])["format"]}
    return call | ({"proven": whole.proven[entry.id]} if entry.id in whole.proven else {})


_TELL = {
    "failure": ("error", "what", "kind", "used", "limit"),
    "claim": ("text", "rests_on"),
    "pin": ("kind", "text"),
    "move": ("from", "label", "why"),
    "label": ("name", "moved"),
    "label_loss": ("name",),
    "report": ("label",),
    "fork": ("from",),
    "trim": ("first", "last"),
    "import": ("note", "where", "source", "messages", "turns", "format"),
    "compaction": ("why", "span", "model", "before", "after", "rungs", "versions", "context", "trigger"),
}


def _told(entry: Entry) -> dict[str, Any]:
    told = {name: _plain(entry.payload[name]) for name in _TELL.get(entry.kind, ()) if name in entry.payload}
    if imported(entry):
        told["summary"] = [{"kind": "summary", "text": entry.payload["summary"]}] if entry.payload["summary"] else []
    elif entry.kind == "compaction":
        told["summary"] = list(summary_of(entry))
        model = models.find(entry.payload["model"])
        for name in ("before", "after"):
            told[name] |= {"money": models.cost(model, told[name]["tokens"])}
    return {name: _bounded(value) for name, value in told.items()}


def _plain(value: Any) -> Any:
    match value:
        case Ref():
            return value.entry
        case Mapping():
            return {key: _plain(each) for key, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
    return value


def _bounded(value: Any) -> Any:
    if not isinstance(value, str) or len(value) <= LONGEST_TEXT:
        return value
    half = LONGEST_TEXT // 2
    between = len(value) - 2 * half
    return [value[:half], between, value[-half:]]


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
