"""Exact values of the pages: what a later call must repeat letter by letter, kept as text beside them.

A reader misreads long identifiers, silently: a dropped repeat, 0 for 8, a word borrowed from the
next line. So behind each full page stand, as text, some of the values that are on it or on a page
before it. Only whole words of the text are chosen, since a wrong value is worse than none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Literal, NamedTuple, TypeAlias

from .render import Bar, Segment

Class: TypeAlias = Literal["path", "id", "code", "hash", "url", "version", "number", "name"]

CLASSES: tuple[Class, ...] = ("path", "id", "code", "hash", "url", "version", "number", "name")
"""The classes of values, in the order of their rank where all else is equal."""
_PLACES = {kind: place for place, kind in enumerate(CLASSES)}

SHARE = 0.05
"""The values behind a page have at most this share of its characters, a line break for each included."""

# Of a page's allowance, what one class may take while others want it: lists of commits, links and
# numbers would fill it. Measured in benches/exact.py, like the ranks and sizes below.
_QUOTA: dict[Class, float] = {"hash": 0.25, "url": 0.25, "version": 0.15, "number": 0.15}

# A shorter result was asked for: a search that hit, a short listing, a state.
_SHORT = 1_500

# Values that found no room wait for a later page; so many of them, so that a pass stays linear.
_WAITING = 200

# Longer values are signed links and the like, which nobody types again.
_LONGEST = 256

RUN = 64
"""A run of characters of high entropy that is longer than this is not drawn."""


Kind: TypeAlias = Literal["base64", "hex", "digits"]


class Run(NamedTuple):
    """A run of characters of high entropy: where it stands in a text, and what it is written in."""

    start: int
    end: int
    kind: Kind


# What is no run, skipped in one step, and the next word that is long enough.
_RUN = re.compile(r"(?:[A-Za-z0-9+/_-]{0,64}+(?![A-Za-z0-9+/_-])[^A-Za-z0-9+/_-]++)*+([A-Za-z0-9+/_-]{65,}+={0,2})")
_RUN_LINE = re.compile(r"\n([A-Za-z0-9+/_-]++={0,2})(?=\n|\Z)")
_HEX = re.compile(r"[0-9a-f]+|[0-9A-F]+")
_KINDS = dict.fromkeys(ascii_lowercase, 0) | dict.fromkeys(ascii_uppercase, 1) | dict.fromkeys(digits, 2)
_KINDS |= dict.fromkeys("+/_-", 3)


def runs(text: str) -> list[Run]:
    """The runs of more than :data:`RUN` characters of high entropy, in order: base64 (RFC 4648 sections 4
    and 5), hex, decimals.

    A block that was broken into lines is one run, its shorter last line included. Linear.
    """
    found: list[Run] = []
    at = 0
    while match := _RUN.match(text, at):
        start, at = match.span(1)
        # The letter behind a backslash belongs to the escape.
        start += text[start - 1 : start] == "\\"
        width = at - start
        kind = _entropic(text[start:at]) if width > RUN else None
        if kind is None:
            continue
        lines = 1
        while (line := _RUN_LINE.match(text, at)) and len(line[1]) <= width:
            last = len(line[1]) < width
            if _entropic(line[1]) is None if len(line[1]) > RUN else lines == 1 and line[1][-1] != "=":
                break
            at = line.end()
            lines += 1
            if last:
                break
        found.append(Run(start, at, kind))
    return found


def _entropic(word: str) -> Kind | None:
    """What a long word is written in if chance wrote it; ``None`` for paths, rulers and long names.

    Of random hex digits six in sixteen are letters. In random base64 two neighbours are of different
    kinds (lower, upper, digit, sign) with probability 1 - 2 (26/64)² - (10/64)² - (2/64)² = 0.64; in
    paths, camel case and snake case about every fifth pair is. Two in five are capitals; a path that
    holds digests has few.
    """
    body = word.rstrip("=")
    distinct = len(set(body))
    if _HEX.fullmatch(body):
        if distinct < 8:
            return None
        letters = sum(map(body.count, "abcdefABCDEF"))
        return "digits" if not letters else "hex" if 0.1 < letters / len(body) < 0.7 else None
    kinds = [_KINDS[character] for character in body]
    changes = sum(a != b for a, b in pairwise(kinds))
    mixed = min(kinds.count(_KINDS["a"]), kinds.count(_KINDS["A"])) > 0.15 * len(body)
    return "base64" if mixed and changes > 0.45 * len(body) and distinct >= 20 else None


# Words, after what is skipped: plain words, which are most of a text; the colours of a terminal; what
# follows a backslash, where an escape and the first letter of a name look alike; paths that begin with a
# variable or behind a bracket; the number that begins a line. A word keeps the sign behind it that may
# part it from its rest.
_WORD = re.compile(
    r"[A-Za-z][a-z]*+(?![\w./@%+~:\\-])[^\w./@%+~\\$\x1b\n-]*+"
    r"|[^\w./@%+~\\$\x1b\n-]++"
    r"|(?:\n|\A)(?:[ \t]*+\d++(?=[:\t→|-]))?+"
    r"|\x1b\[[0-9;]*+[A-Za-z]"
    r"|\\+[\w./@%+~-]*+"
    r"|\$\w*+/[\w./@%+~-]*+"
    r"|(?<=[\])}$*!<])[./][\w./@%+~-]*+"
    r"|([A-Za-z]:\\[\w.+@~\\-]+"
    r"|[A-Za-z][A-Za-z0-9+.-]{1,20}+://[^\s\"'<>`{}|\\^]+"
    r"|[\w./@%+~-]++(?::\d++)?[\[({<$*!]?)"
)
# No word and no link goes on over these.
_BOUNDS = " \n\t\r\"'<>`{}|^"
_PARTS_WORD = frozenset("[({<$*!")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}

_LETTER = re.compile(r"[^\W\d_]")
_UUID = re.compile(r"[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}")
_UUID_LENGTH = 36
_MAIL = re.compile(r"[\w.+-]++@[\w.-]+\.[A-Za-z]{2,}")
_HASH = re.compile(r"(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,128}|(?=[A-F]*[0-9])(?=[0-9]*[A-F])[0-9A-F]{16,128}")
_VERSION = re.compile(r"(?:[\w./-]*[A-Za-z]@)?v?\d++(?:\.\d++){2,3}(?:[-+.]?[A-Za-z0-9]++)*+|v\d+(?:\.\d+)?")
_NUMBER = re.compile(r"-?\d{4,}|-?\d+\.\d{3,}|0x[0-9A-Fa-f]{3,16}")
_CODE = re.compile(r"ERR_[A-Z0-9_]+|[A-Z]{1,6}[0-9]{3,5}|[A-Z]{2,6}-[0-9]{2,6}")
_PATH = re.compile(r"(?:~|\.{1,2})?/?[\w.@+~-]++(?:/[\w.@+~-]++)*+/?")
_FILE = re.compile(r"[\w.@+-]*\.([A-Za-z][A-Za-z0-9]{0,9})")
_NAME = re.compile(r"[^\W\d]\w*")
_HUMP = re.compile(r"[a-z0-9][A-Z]")

# What a word without a slash ends in if it is a file: config.json, not config.load.
_FILE_TYPES = """
adoc asm astro bash bat bin bmp c cc cfg cjs class clj cmake cmd conf cpp crt cs css csv cxx dart db diff dll ex exe exs
fish gif go gradle gz h hbs hcl hpp hs htm html ico ini ipynb jar java jl jpeg jpg js json json5 jsonl jsx key kt kts
less lock log lua m4 md mdx mjs mk ml mod mp3 mp4 nim nix parquet patch pb pdf pem php pl plist png proto ps1 py pyc pyi
pyx rb rs rst sass scala scss sh so sol sql sqlite sum svelte svg swift tar tex tf tgz toml ts tsv tsx ttf txt vim vue
wasm webp whl woff woff2 xls xlsx xml yaml yml zig zip zsh
"""
_SUFFIXES = frozenset(_FILE_TYPES.split())

# Error names of POSIX.1-2017, <errno.h>, that programs report.
_ERROR_NAMES = """
EACCES EADDRINUSE EADDRNOTAVAIL EAGAIN EALREADY EBADF EBADMSG EBUSY ECANCELED ECHILD ECONNABORTED ECONNREFUSED
ECONNRESET EDEADLK EDESTADDRREQ EDOM EDQUOT EEXIST EFAULT EFBIG EHOSTUNREACH EIDRM EILSEQ EINPROGRESS EINTR EINVAL EIO
EISCONN EISDIR ELOOP EMFILE EMLINK EMSGSIZE ENAMETOOLONG ENETDOWN ENETRESET ENETUNREACH ENFILE ENOBUFS ENODEV ENOENT
ENOEXEC ENOLCK ENOMEM ENOPROTOOPT ENOSPC ENOSYS ENOTCONN ENOTDIR ENOTEMPTY ENOTSUP ENOTTY ENXIO EOPNOTSUPP EOVERFLOW
EPERM EPIPE EPROTO ERANGE EROFS ESPIPE ESRCH ETIMEDOUT ETXTBSY EXDEV
"""
_ERRNO = frozenset(_ERROR_NAMES.split())


def classify(word: str) -> Class | None:
    """The class of a word, ``None`` if it is no value: a plain word, a short number, something too long."""
    if not 4 <= len(word) <= _LONGEST or (word.isalpha() and word.islower()):
        return None
    if "://" in word:
        return "url"
    if word[1:3] == ":\\":
        return "path"
    if (len(word) == _UUID_LENGTH and _UUID.fullmatch(word)) or ("@" in word and _MAIL.fullmatch(word)):
        return "id"
    if _HASH.fullmatch(word):
        return "hash"
    if _VERSION.fullmatch(word):
        return "version"
    if _NUMBER.fullmatch(word):
        return "number"
    if word in _ERRNO or _CODE.fullmatch(word):
        return "code"
    if "/" in word:
        return "path" if _PATH.fullmatch(word) and _LETTER.search(word) and word[:2] not in ("s/", "y/") else None
    if _is_file(word):
        return "path"
    count = sum(map(str.isdigit, word))
    if count >= 3 and 3 * count >= len(word) and _LETTER.search(word):
        return "id"
    if 6 <= len(word) <= RUN and _NAME.fullmatch(word) and ("_" in word.strip("_") or _HUMP.search(word)):
        return "name"
    return None


def _is_file(word: str) -> bool:
    file = _FILE.fullmatch(word)
    return file is not None and file[1].lower() in _SUFFIXES


@lru_cache(1 << 14)
def _values(word: str) -> tuple[tuple[str, Class], ...]:
    """The values in a word as it stands in a text, each as it would be typed again.

    Without the signs of a diff, a leading ``./``, the full stop of a sentence, the line behind a file;
    a dotted expression falls into its names.
    """
    if "://" in word:
        word = word.rstrip(".,;:!?*[")
        if word.count(")") > word.count("("):
            word = word.removesuffix(")") if "(" in word else word.rstrip(").,;:!?")
        return ((word, "url"),) if len(word) <= _LONGEST else ()
    if word[1:3] == ":\\":
        return _classified([word.rstrip(".\\")])
    if word[-1] in _PARTS_WORD:
        word = word[:-1]
        if word[-1] == "/":
            return ()
    if "%" in word:
        return ()
    word, _, number = word.partition(":")
    word = word.lstrip("+-@").rstrip(".+-@~")
    while word.startswith("./"):
        word = word[2:]
    if "/" in word or _is_file(word):
        return _classified([word])
    if word[-1:].isdigit() or "-" in word or "@" in word:
        whole = classify(word)
        if whole is not None and whole != "name":
            return _classified([word, number])
    return _classified([*word.split("."), number])


def _classified(words: Iterable[str]) -> tuple[tuple[str, Class], ...]:
    return tuple((word, found) for word in words if (found := classify(word)) is not None)


def values(text: str) -> Iterator[tuple[str, Class]]:
    """The values in a text with their classes, each distinct word once, in order. Linear."""
    for word in dict.fromkeys(_WORD.findall(text)):
        if len(word) > 3:
            yield from _values(word)


def _unescape(arguments: str) -> str:
    """JSON text with its escapes resolved (RFC 8259 section 7), whole or cut."""

    def character(match: re.Match[str]) -> str:
        return chr(int(match[1], 16)) if match[1] else _ESCAPED.get(match[2], match[2])

    return _ESCAPE.sub(character, arguments) if "\\" in arguments else arguments


def _shown(value: str) -> Iterator[str]:
    """What stands in text where the value does: itself, and a path from and up to each of its slashes."""
    yield value
    at = value.find("/")
    while at >= 0:
        yield value[at + 1 :]
        yield value[:at]
        yield value[: at + 1]
        at = value.find("/", at + 1)


@dataclass(slots=True)
class _Candidate:
    value: str
    kind: Class
    rank: int
    order: int

    def key(self) -> tuple[int, int, int, int]:
        """Best first: by where it was found, by class; the shorter, of which more fit."""
        return self.rank, _PLACES[self.kind], len(self.value), self.order


# How likely a value is to be used again, by where it was found: in the arguments of a call, in what
# somebody said or a short result, in a long result. Names come later: code is read anew before it changes.
_RANKS = (0, 1, 3)
_NAME_RANKS = (2, 4, 5)
_LAST = 6


class Shelf:
    """Chooses the values behind one page after another; the same pages in the same order give the same values.

    ``standing`` are texts that stand in the context anyway.
    """

    def __init__(self, standing: Iterable[str] = ()) -> None:
        self._seen: set[str] = set()
        self._waiting: dict[str, _Candidate] = {}
        self._order = 0
        self._kind = ""
        # What the page before ended with: a word that may go on, or the inside of one too long to be a value.
        self._cut = ""
        self._inside = False
        for text in standing:
            self.stand(text)

    def copy(self) -> Shelf:
        """A shelf that goes on from here by itself."""
        made = Shelf()
        made._seen = set(self._seen)
        made._waiting = {value: replace(each) for value, each in self._waiting.items()}
        made._order, made._kind, made._cut, made._inside = self._order, self._kind, self._cut, self._inside
        return made

    def stand(self, text: str) -> None:
        """Say that a text stands in the context: its values need no place behind a page."""
        for value, _ in values(text):
            self._seen.update(_shown(value))

    def page(self, segments: Sequence[Segment], runs: Iterable[str] = ()) -> tuple[str, ...]:
        """The values behind the next page, by class and in the order in which they first appeared.

        ``segments`` is what stands on it, ``runs`` are those that a pointer on it stands for.
        """
        limit = int(SHARE * sum(len(segment) for segment in segments if isinstance(segment, str)))
        self._read(segments)
        for run in runs:
            if len(run) < limit and "\n" not in run:
                self._offer(run, "hash", _RANKS[1] if len(run) <= 2 * RUN else _LAST)
        return self._choose(limit)

    def _read(self, segments: Sequence[Segment]) -> None:
        """Take a page's values into account; a word that touches its end is judged with the next page."""
        for at, segment in enumerate(segments):
            if isinstance(segment, Bar):
                self._text(self._cut)
                self._cut, self._inside, self._kind = "", False, segment.kind
                continue
            text, self._cut = self._cut + segment, ""
            if self._inside:
                text = text[min((end for end in map(text.find, _BOUNDS) if end >= 0), default=len(text)) :]
                self._inside = not text
            if at == len(segments) - 1 and text:
                start = max(map(text.rfind, _BOUNDS)) + 1
                text, word = text[:start], text[start:]
                if len(word) <= _LONGEST:
                    self._cut = word
                else:
                    self._inside = True
            self._text(text)

    def _text(self, text: str) -> None:
        if self._kind.startswith("call "):
            text, where = _unescape(text), 0
        else:
            where = 2 if self._kind.startswith("result") and len(text) >= _SHORT else 1
        for value, kind in values(text):
            if value not in self._seen:
                self._offer(value, kind, (_NAME_RANKS if kind == "name" else _RANKS)[where])

    def _offer(self, value: str, kind: Class, rank: int) -> None:
        known = self._waiting.get(value)
        if known is None:
            self._waiting[value] = _Candidate(value, kind, rank, self._order)
            self._order += 1
        elif rank < known.rank:
            known.rank = rank

    def _choose(self, limit: int) -> tuple[str, ...]:
        """The best that fit; what is left goes on waiting."""
        queue = sorted(self._waiting.values(), key=_Candidate.key)
        quota = {kind: int(share * limit) for kind, share in _QUOTA.items()}
        chosen: list[_Candidate] = []
        least = min((len(each.value) for each in queue), default=0) + 1
        for quotas in (quota, {}):
            for each in queue:
                if limit < least:
                    break
                cost = len(each.value) + 1
                if cost <= min(limit, quotas.get(each.kind, limit)) and each.value not in self._seen:
                    limit -= cost
                    if each.kind in quotas:
                        quotas[each.kind] -= cost
                    chosen.append(each)
                    self._seen.update(_shown(each.value))
        # A longer path that came after shows the shorter one, too.
        inner = {part for each in chosen for part in _shown(each.value) if part != each.value}
        chosen = [each for each in chosen if each.value not in inner]
        left = [each for each in queue if each.value not in self._seen]
        self._waiting = {each.value: each for each in left[:_WAITING]}
        chosen.sort(key=lambda each: (_PLACES[each.kind], each.order))
        return tuple(each.value for each in chosen)
