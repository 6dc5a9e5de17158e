"""Where the lines of a projection lead: an entry in the page that ``view`` writes, and the record itself."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from urllib.parse import quote

from microfiche.record import Record

Link = Callable[[int], str]
"""The address of an entry."""


def links_of(record: Record, page: str = "") -> Link:
    """Addresses in ``page``, by default the one that ``microfiche view`` writes for this record, in the same folder."""
    address = quote(page or f"{record.path.stem}.html", safe="/:.-_~%?=&")
    return lambda entry: f"{address}#e{entry}"


def verify_command(record: str, size: int, root: str) -> str:
    """What a reader types in a shell to hold the file of a record against a head."""
    file = f"./{record}" if record.startswith("-") else record
    return f"microfiche verify {shlex.quote(file)} --head {size}:{root}"
