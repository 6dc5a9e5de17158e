#!/usr/bin/env python3
"""Check a microfiche record with nothing but Python's standard library: python verify_record.py RECORD [HEADS].

Written from docs/record-format.md alone; imports nothing of microfiche. Prints the head and exits 0
if the record is sound; else names the first fault and exits 3.
"""

import hashlib
import json
import re
import sqlite3
import sys
import unicodedata
import zlib
from pathlib import Path

PATH = {"message", "compaction", "undo", "trim", "pin", "unpin", "report"}
SIDE = {"move", "label", "label_loss", "fork", "started", "interruption", "failure", "claim", "import"}
FAULTS = (ValueError, TypeError, KeyError, RecursionError, OverflowError, zlib.error, sqlite3.Error)
SCHEMA = "b3634b8c2ee3199649bc9762e66c403f4fae079979e201b69e99284a24e13f59"


def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def root_of(peaks):
    root = peaks[-1] if peaks else sha()
    for peak in peaks[-2::-1]:
        root = sha(b"\1", peak, root)
    return root


def plain(data, size):
    if len(data) == size:
        return data
    stream = zlib.decompressobj()
    out = stream.decompress(data, size + 1) if len(data) < size else b""  # no more, however far it would swell
    if len(out) != size or not stream.eof or stream.unused_data:
        raise ValueError("a blob of another size")
    return out


def check(path, heads_path):
    db = sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
    if db.execute("PRAGMA application_id").fetchone() != (0x6D666368,):
        raise ValueError("not a record")
    if db.execute("PRAGMA user_version").fetchone() != (1,):
        raise ValueError("not a record of format 1")
    made = db.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name").fetchall()
    made = "".join(f"{name}\n{sql}\n" for name, sql in made if name != "search" and not name.startswith("search_"))
    if sha(made.encode()).hex() != SCHEMA:
        raise ValueError("tables, indexes or triggers are not those of format 1")
    lines = Path(heads_path).read_text("latin-1").split("\n") if heads_path else [""]
    if lines.pop():
        raise ValueError("the list of heads ends inside a line")
    outside = {}
    for at, line in enumerate(lines, 1):
        if not (match := re.fullmatch(r"(\d{1,18}) ([0-9a-f]{64}) (\d{1,18})", line)):
            raise ValueError(f"line {at} of the list of heads is none")
        outside.setdefault(int(match[1]), set()).add((bytes.fromhex(match[2]), int(match[3])))
    db.execute("BEGIN")
    commits = {row[0]: row for row in db.execute("SELECT size, root, time FROM heads")}
    blobs = db.execute("SELECT id, digest, size, crc, data FROM blobs ORDER BY id")
    seen, peaks, size, time, ended = set(), [], 0, -1 << 63, 0
    talks = {}  # conversation -> [tip, turns, copies still to come]
    places = [None]  # entry -> (conversation, turn, open) of path entries
    columns = "id, conversation, kind, parent, about, turn, open, time, nodes, blobs, payload"
    for row in db.execute(f"SELECT {columns} FROM entries ORDER BY id"):
        id, name, kind, parent, about, turn, open, when, nodes, named, payload = row
        where = f"entry {size + 1}: "
        if id != size + 1 or not (isinstance(name, str) and isinstance(kind, str) and isinstance(payload, str)):
            raise ValueError(where + "missing, or of another type")
        if any(type(n) not in (int, type(None)) for n in (parent, about, turn, open)) or type(when) is not int:
            raise ValueError(where + "a number of another type")
        told = ["-" if value is None else str(value) for value in (id, name, kind, parent, about, turn, open, when)]
        node = kept = sha(b"\0", "".join(f"{value}\n" for value in told).encode(), sha(payload.encode()), named)
        size += 1
        left = size
        while left % 2 == 0:
            node = sha(b"\1", peaks.pop(), node)
            kept, left = kept + node, left // 2
        peaks.append(node)
        if kept != nodes:
            raise ValueError(where + "not what its leaf or nodes say")
        for digest in (named[at : at + 32] for at in range(0, len(named), 32)):
            if digest not in seen:
                seen.add(digest)
                number, key, length, crc, data = blobs.fetchone() or (0, b"", 0, 0, b"")
                stored = (number, key, crc, sha(plain(data, length)))
                if stored != (len(seen), digest, zlib.crc32(data), digest):
                    raise ValueError(where + f"blob {digest.hex()} is not there as it was")
        talk = talks.setdefault(name, [None, 0, 0])
        if not 0 < len(name) <= 200 or any(unicodedata.category(each) in ("Cc", "Cs") for each in name):
            raise ValueError(where + "no name of a conversation")
        if kind not in PATH | SIDE or (when <= time if ended == size - 1 else when != time):
            raise ValueError(where + "a kind or time that cannot be")
        time = when
        if about is not None and not 0 < about < id:
            raise ValueError(where + "about an entry that is not before it")
        if kind in PATH:
            if parent != talk[0]:
                raise ValueError(where + "does not follow the tip")
            before = places[parent][1] if parent else 0
            numbers = range(before, talk[1] + 1) if talk[2] else (before, talk[1] + 1)
            if turn not in numbers or open is None:
                raise ValueError(where + "a turn that cannot follow")
            talk[:] = [id, max(talk[1], turn), max(0, talk[2] - 1)]
            places.append((name, turn, open))
        else:
            if (parent, turn, open) != (None, None, None):
                raise ValueError(where + "not beside a path")
            if kind in ("move", "label") and about and (not places[about] or places[about][::2] != (name, 0)):
                raise ValueError(where + "not on a turn boundary of its conversation")
            if kind == "move":
                talk[0] = about
            if kind == "fork":
                note = json.loads(payload)
                talk[1:] = [note["turns"], note["entries"]]
                if [type(count) for count in talk[1:]] != [int, int] or min(talk[1:]) < 0:
                    raise ValueError(where + "a fork note that counts nothing")
            places.append(None)
        if id in commits:
            if commits[id] != (id, root_of(peaks), when):
                raise ValueError(f"the head of size {id} does not fit")
            del commits[id]
            ended = id
        if id in outside and outside.pop(id) != {(root_of(peaks), when)}:
            raise ValueError(f"rewritten at or before entry {id}: the list of heads says so")
    if blobs.fetchone() or commits or ended != size:
        raise ValueError("entries, blobs or heads beyond the end")
    if outside:
        raise ValueError(f"cut off after entry {size}: the list of heads knows more")
    found = {name: (tip, turns) for name, tip, turns in db.execute("SELECT name, tip, turns FROM conversations")}
    if found != {name: (tip, turns) for name, (tip, turns, _) in talks.items()}:
        raise ValueError("a tip or turn counter is not what the entries say")
    return size, root_of(peaks).hex()


if __name__ == "__main__":
    record = sys.argv[1]
    beside = sys.argv[2] if len(sys.argv) > 2 else f"{record}.heads" if Path(f"{record}.heads").exists() else None
    try:
        print(*check(record, beside))
    except FAULTS as fault:
        sys.exit(print(f"unsound: {fault}") or 3)
