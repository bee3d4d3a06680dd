"""Merkle trees against the definition of RFC 6962, and proofs that hold for the truth and for nothing else."""

import hashlib
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from ledger.store import merkle

LEAVES = st.lists(st.binary(max_size=4).map(merkle.leaf_hash), max_size=40)


def naive(leaves: Sequence[bytes]) -> bytes:
    """MTH as section 2.1 writes it."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return hashlib.sha256(b"\1" + naive(leaves[:split]) + naive(leaves[split:])).digest()


@given(LEAVES)
def test_the_root_is_the_definitions(leaves: list[bytes]) -> None:
    assert merkle.root(leaves) == naive(leaves)


def test_known_roots() -> None:
    """The test vectors that certificate transparency implementations share."""
    inputs = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
    leaves = [merkle.leaf_hash(bytes.fromhex(text)) for text in inputs]
    assert merkle.root([]).hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert merkle.root(leaves[:1]).hex() == "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
    assert merkle.root(leaves).hex() == "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"


@given(LEAVES.filter(bool), st.data())
def test_an_inclusion_proof_holds_for_its_leaf_and_place_alone(leaves: list[bytes], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(leaves) - 1))
    proof = merkle.inclusion_proof(leaves, index)
    tree = merkle.root(leaves)
    assert merkle.included(leaves[index], index, len(leaves), proof, tree)
    assert not merkle.included(merkle.leaf_hash(b"another leaf"), index, len(leaves), proof, tree)
    assert not merkle.included(leaves[index], len(leaves), len(leaves), proof, tree)
    assert not merkle.included(leaves[index], index, len(leaves), [*proof, tree], tree)
    if proof:
        assert not merkle.included(leaves[index], index, len(leaves), proof[:-1], tree)


@given(LEAVES, st.data())
def test_a_consistency_proof_holds_for_the_very_prefix_alone(leaves: list[bytes], data: st.DataObject) -> None:
    old = data.draw(st.integers(0, len(leaves)))
    proof = merkle.consistency_proof(leaves, old)
    before, after = merkle.root(leaves[:old]), merkle.root(leaves)
    assert merkle.consistent(old, before, len(leaves), after, proof)
    if old > 0:
        other = merkle.root([merkle.leaf_hash(b"another leaf"), *leaves[1:old]])
        assert other == before or not merkle.consistent(old, other, len(leaves), after, proof)
    if proof:
        assert not merkle.consistent(old, before, len(leaves), after, proof[:-1])
        assert not merkle.consistent(old, before, len(leaves), before, proof)
