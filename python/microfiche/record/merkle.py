"""The Merkle tree of RFC 9162 section 2.1 over the leaves of a record, and its proofs.

All hashes are 32 bytes of SHA-256. Leaves are numbered by *size*: the leaf of entry ``n`` is the one
that makes the tree ``n`` large. Nothing here knows what a leaf covers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

HASH = 32
"""Bytes of a hash."""

EMPTY = hashlib.sha256(b"").digest()
"""The root of no leaves (RFC 9162, 2.1.1)."""

NodeAt = Callable[[int, int], bytes]
"""``(end, level)`` -> the root of the ``2**level`` leaves that end with leaf number ``end``."""

_sha256 = hashlib.sha256


def leaf_hash(data: bytes) -> bytes:
    """SHA-256(0x00 ‖ data)."""
    return _sha256(b"\0" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """SHA-256(0x01 ‖ left ‖ right)."""
    return _sha256(b"\1" + left + right).digest()


@dataclass(slots=True)
class Frontier:
    """The roots of the perfect subtrees that make up the tree, largest first: all that an append needs."""

    size: int = 0
    peaks: list[bytes] = field(default_factory=list)

    @classmethod
    def restore(cls, size: int, node: NodeAt) -> Frontier:
        """The frontier of a tree whose nodes are kept: one look-up a set bit of ``size``."""
        peaks, end = [], 0
        for level in reversed(range(size.bit_length())):
            if size >> level & 1:
                end += 1 << level
                peaks.append(node(end, level))
        return cls(size, peaks)

    def push(self, leaf: bytes) -> bytes:
        """Add a leaf; gives it and the roots of the subtrees it completes, levels 0, 1, … end to end."""
        self.size += 1
        kept = node = leaf
        left = self.size
        while not left & 1:
            node = _sha256(b"\1" + self.peaks.pop() + node).digest()
            kept += node
            left >>= 1
        self.peaks.append(node)
        return kept

    @property
    def root(self) -> bytes:
        if not self.peaks:
            return EMPTY
        root = self.peaks[-1]
        for peak in reversed(self.peaks[:-1]):
            root = _sha256(b"\1" + peak + root).digest()
        return root

    def copy(self) -> Frontier:
        return Frontier(self.size, list(self.peaks))


def _subtree(first: int, size: int, node: NodeAt) -> bytes:
    """Root of ``size`` leaves from index ``first``, which is a multiple of the next power of two."""
    if size & (size - 1) == 0:
        return node(first + size, size.bit_length() - 1)
    left = 1 << (size - 1).bit_length() - 1
    return node_hash(_subtree(first, left, node), _subtree(first + left, size - left, node))


def inclusion_path(number: int, size: int, node: NodeAt) -> tuple[bytes, ...]:
    """PATH of RFC 9162, 2.1.3.1, for leaf ``number`` (from 1) in the tree of ``size`` leaves.

    At most ⌈log2 size⌉ hashes, from the leaf upwards.
    """
    if not 0 < number <= size:
        raise ValueError(f"no leaf {number} in a tree of {size}")
    index, first, path = number - 1, 0, []
    while size > 1:
        left = 1 << (size - 1).bit_length() - 1
        if index < left:
            path.append(_subtree(first + left, size - left, node))
            size = left
        else:
            path.append(_subtree(first, left, node))
            first, index, size = first + left, index - left, size - left
    return tuple(reversed(path))


def check_inclusion(leaf: bytes, number: int, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Whether ``leaf`` is number ``number`` (from 1) of the tree with this size and root (RFC 9162, 2.1.3.2)."""
    if not 0 < number <= size:
        return False
    at, last, found = number - 1, size - 1, leaf
    for step in path:
        if last == 0:
            return False
        if at & 1 or at == last:
            found = node_hash(step, found)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            found = node_hash(found, step)
        at, last = at >> 1, last >> 1
    return last == 0 and found == root


def growth_path(old: int, size: int, node: NodeAt) -> tuple[bytes, ...]:
    """PROOF of RFC 9162, 2.1.4.1: that the tree of ``size`` begins with the tree of ``old`` leaves.

    Empty where there is nothing to prove: ``old`` is 0 or ``size``.
    """
    if not 0 <= old <= size:
        raise ValueError(f"a tree of {size} has not grown from one of {old}")
    if old in (0, size):
        return ()
    path: list[bytes] = []
    first, whole = 0, True
    while old != size:
        left = 1 << (size - 1).bit_length() - 1
        if old <= left:
            path.append(_subtree(first + left, size - left, node))
            size = left
        else:
            path.append(_subtree(first, left, node))
            first, old, size, whole = first + left, old - left, size - left, False
    if not whole:
        path.append(_subtree(first, size, node))
    return tuple(reversed(path))


def check_growth(old: int, old_root: bytes, size: int, root: bytes, path: Sequence[bytes]) -> bool:
    """Whether the tree of ``size`` leaves only adds to the tree of ``old`` (RFC 9162, 2.1.4.2)."""
    if not 0 <= old <= size:
        return False
    if old == 0:
        return not path and old_root == EMPTY
    if old == size:
        return not path and old_root == root
    steps = list(path)
    if old & (old - 1) == 0:
        steps.insert(0, old_root)
    if not steps:
        return False
    at, last = old - 1, size - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    before = after = steps[0]
    for step in steps[1:]:
        if last == 0:
            return False
        if at & 1 or at == last:
            before, after = node_hash(step, before), node_hash(step, after)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            after = node_hash(after, step)
        at, last = at >> 1, last >> 1
    return last == 0 and before == old_root and after == root


def tree_root(leaves: Iterable[bytes]) -> bytes:
    """The root over leaf hashes."""
    frontier = Frontier()
    for leaf in leaves:
        frontier.push(leaf)
    return frontier.root
