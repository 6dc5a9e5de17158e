"""The names that hosts give to models, taken apart: host, line, version.

A *line* is what stays of a name when its version is taken out (``claude-opus``, ``gpt-mini``,
``gemini-flash``); only versions of one line are compared.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_VENDOR = re.compile(
    r"(?:(?:us|eu|apac|ap|jp|au|ca|sa|me|global|us-gov)\.)?"
    r"(?:anthropic|amazon|meta|mistral|cohere|openai|google|deepseek|qwen|moonshotai|moonshot|zai|xai|minimax|ai21)"
    r"\.(?=.)"
)
_DATE = re.compile(r"(?:19|20)\d{6}|(?:19|20)\d\d-[01]\d-[0-3]\d")
_MONTH_DAY = re.compile(r"[01]\d-[0-3]\d")
_VERSION = re.compile(r"([a-z]*?)v?(\d+(?:\.\d+)*)([a-z]*)")
_SIZE = re.compile(r"a?\d+(?:\.\d+)?[bme]")
_NOISE = frozenset({"latest", "thinking", "default", "instruct", "it", "fp8", "maas"})
_TRIAL = frozenset({"preview", "exp", "experimental"})  # Gemini's names; o1-preview is another model than o1


class Name(NamedTuple):
    """A model's name taken apart.

    ``bare`` is the name without host, date and variant; ``line`` and ``version`` (``()`` if it has
    none) say what it is. ``stamp`` tells that the version is a release date such as 2603, which
    compares with no ordinary version. ``hosts`` are the words before the name and what its form
    gives away (Bedrock's dotted vendors, Vertex's ``@``), ``newest`` tells that it asks for the latest.
    """

    bare: str
    line: str
    version: tuple[int, ...]
    stamp: bool
    hosts: tuple[str, ...]
    newest: bool


def parse(name: str) -> Name:
    """Take a name apart; any string will do."""
    path = [piece for piece in name.strip().lower().replace("_", "-").split("/") if piece]
    bare = path.pop() if path else ""
    hosts = [word.replace("_", "-") for piece in path for word in piece.split(":")]
    if bare.startswith("arn:"):
        *words, bare = bare.split(":")
        hosts += words
    bare, _, variant = bare.partition(":")
    bare = bare.partition("[")[0]
    if vendor := _VENDOR.match(bare):
        bare = bare[vendor.end() :]
        hosts.append("bedrock")
    if "@" in bare[1:]:
        bare = bare.split("@")[0]
        hosts.append("vertex")
    if variant.isdigit() or bare.startswith("claude"):
        bare = re.sub(r"-v\d+$", "", bare)
    bare = re.sub(rf"-(?:{_DATE.pattern})(?=-|$)", "", bare)
    bare = re.sub(rf"-(?:{_MONTH_DAY.pattern}|0\d\d)$", "", bare)

    line: list[str] = []
    version: tuple[int, ...] = ()
    stamp = adjacent = False
    for token in bare.split("-"):
        if token in _NOISE or _SIZE.fullmatch(token) or (token in _TRIAL and line[:1] == ["gemini"]):
            adjacent = False
            continue
        found = _VERSION.fullmatch(token) if len(token) <= 24 else None
        if not found:
            line.append(token)
            adjacent = False
            continue
        before, digits, after = found.groups()
        numbers = tuple(int(each) for each in digits.split("."))
        if len(digits) >= 4 and "." not in digits:
            if not version:
                version, stamp = numbers, True
        elif not version or (adjacent and not before and not after):
            version += numbers
        else:
            line.append(digits)
        line += [word for word in (before, after) if word]
        adjacent = True
    while len(version) > 1 and version[-1] == 0:
        version = version[:-1]
    return Name(bare, "-".join(line), version, stamp, tuple(hosts), "latest" in bare.split("-"))
