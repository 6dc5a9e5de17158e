"""The record: an append-only, tamper-evident log of conversations in one SQLite file."""

from __future__ import annotations

from .entries import PATH_KINDS, SIDE_KINDS, Draft, Entry, OpenCalls, Ref
from .record import Growth, Head, Hit, Proof, Record
from .tree import Branch, Label, Standing, Thread
from .verify import Verdict
from .writing import Commit

__all__ = [
    "PATH_KINDS",
    "SIDE_KINDS",
    "Branch",
    "Commit",
    "Draft",
    "Entry",
    "Growth",
    "Head",
    "Hit",
    "Label",
    "OpenCalls",
    "Proof",
    "Record",
    "Ref",
    "Standing",
    "Thread",
    "Verdict",
]
