"""The tree against the recursive definitions of RFC 9162, and its proofs against forgers."""

from __future__ import annotations

import hashlib
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from microfiche.record import merkle

LEAVES = [merkle.leaf_hash(bytes([at])) for at in range(70)]


def mth(leaves: list[bytes]) -> bytes:
    """MTH as RFC 9162 2.1.1 writes it, over leaf hashes."""
    if not leaves:
        return hashlib.sha256().digest()
    if len(leaves) == 1:
        return leaves[0]
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return hashlib.sha256(b"\x01" + mth(leaves[:k]) + mth(leaves[k:])).digest()


def kept(size: int) -> tuple[merkle.Frontier, merkle.NodeAt]:
    frontier, nodes = merkle.Frontier(), {}
    for at, leaf in enumerate(LEAVES[:size], 1):
        joined = frontier.push(leaf)
        nodes[at] = [joined[i : i + 32] for i in range(0, len(joined), 32)]
    return frontier, lambda end, level: nodes[end][level]


def test_known_roots() -> None:
    # From the test vectors of certificate-transparency: the empty tree, and one empty leaf.
    assert merkle.EMPTY.hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert merkle.leaf_hash(b"").hex() == "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"


@pytest.mark.parametrize("size", range(len(LEAVES) + 1))
def test_roots_nodes_and_restored_frontiers(size: int) -> None:
    frontier, node = kept(size)
    assert frontier.root == mth(LEAVES[:size])
    assert merkle.Frontier.restore(size, node) == frontier


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 64, 70])
def test_every_leaf_proves_its_place_and_no_other(size: int) -> None:
    frontier, node = kept(size)
    for number in range(1, size + 1):
        path = merkle.inclusion_path(number, size, node)
        assert len(path) <= math.ceil(math.log2(size)) if size > 1 else not path
        leaf = LEAVES[number - 1]
        assert merkle.check_inclusion(leaf, number, size, path, frontier.root)
        assert not merkle.check_inclusion(LEAVES[number % size], number, size, path, frontier.root) or size == 1
        assert not any(
            merkle.check_inclusion(leaf, other, size, path, frontier.root)
            for other in range(size + 2)
            if other != number
        )
        assert not merkle.check_inclusion(leaf, number, size, (*path, leaf), frontier.root)
        assert not path or not merkle.check_inclusion(leaf, number, size, path[:-1], frontier.root)


def test_growth_between_any_two_sizes() -> None:
    for size in range(41):
        frontier, node = kept(size)
        for old in range(size + 1):
            path = merkle.growth_path(old, size, node)
            before = mth(LEAVES[:old])
            assert merkle.check_growth(old, before, size, frontier.root, path)
            assert len(path) <= (math.ceil(math.log2(size)) + 1 if size > 1 else 0)
            wrong = merkle.node_hash(before, before)
            assert not merkle.check_growth(old, wrong, size, frontier.root, path)
            assert not merkle.check_growth(old, before, size, wrong, path) or old == 0
            if path:
                assert not merkle.check_growth(old, before, size, frontier.root, path[:-1])
                assert not merkle.check_growth(old, before, size, frontier.root, (*path, before))


@given(st.integers(1, 70), st.data())
def test_a_proof_with_any_byte_changed_fails(size: int, data: st.DataObject) -> None:
    frontier, node = kept(size)
    number = data.draw(st.integers(1, size))
    path = list(merkle.inclusion_path(number, size, node))
    if path:
        at = data.draw(st.integers(0, len(path) - 1))
        broken = bytearray(path[at])
        broken[data.draw(st.integers(0, 31))] ^= data.draw(st.integers(1, 255))
        path[at] = bytes(broken)
        assert not merkle.check_inclusion(LEAVES[number - 1], number, size, path, frontier.root)


def test_a_leaf_is_never_a_node() -> None:
    left, right = LEAVES[:2]
    assert merkle.leaf_hash(left + right) != merkle.node_hash(left, right)


def test_sizes_out_of_range() -> None:
    _, node = kept(5)
    for number, size in ((0, 5), (6, 5)):
        with pytest.raises(ValueError, match="no leaf"):
            merkle.inclusion_path(number, size, node)
    with pytest.raises(ValueError, match="not grown"):
        merkle.growth_path(6, 5, node)
    assert not merkle.check_growth(6, LEAVES[0], 5, LEAVES[0], ())


def test_a_copy_of_a_frontier_grows_apart() -> None:
    frontier, _ = kept(33)
    twin = frontier.copy()
    random.Random(1).shuffle(order := list(range(33, 60)))
    for at in order:
        twin.push(LEAVES[at])
    assert frontier.root == mth(LEAVES[:33])
    assert twin.root == mth([*LEAVES[:33], *(LEAVES[at] for at in order)])
