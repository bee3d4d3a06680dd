"""Merkle trees as RFC 6962 defines them (section 2.1).

What it does: the root of a list of leaves, and proofs that a leaf is in a tree and that one tree extends another, with their
verification. What it does not do: order the leaves (``timeline``) or sign a root. Rules kept: leaves and inner nodes are hashed
with different first bytes, so that neither passes for the other; a proof is checked with nothing but hashes.
"""

import hashlib
from collections.abc import Sequence

EMPTY = hashlib.sha256(b"").digest()


def leaf_hash(data: bytes) -> bytes:
    """The hash of a leaf."""
    return hashlib.sha256(b"\0" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of an inner node."""
    return hashlib.sha256(b"\1" + left + right).digest()


def root(leaves: Sequence[bytes]) -> bytes:
    """The root over leaf hashes; linear in time, logarithmic in memory."""
    stack: list[tuple[int, bytes]] = []
    for leaf in leaves:
        height, made = 0, leaf
        while stack and stack[-1][0] == height:
            made = node_hash(stack.pop()[1], made)
            height += 1
        stack.append((height, made))
    if not stack:
        return EMPTY
    made = stack.pop()[1]
    while stack:
        made = node_hash(stack.pop()[1], made)
    return made


def inclusion_proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """The audit path of ``leaves[index]``, from the leaf up."""
    if len(leaves) <= 1:
        return []
    split = _split(len(leaves))
    if index < split:
        return [*inclusion_proof(leaves[:split], index), root(leaves[split:])]
    return [*inclusion_proof(leaves[split:], index - split), root(leaves[:split])]


def included(leaf: bytes, index: int, size: int, proof: Sequence[bytes], tree_root: bytes) -> bool:
    """Whether the proof shows that ``leaf`` stands at ``index`` of the tree of ``size`` leaves with this root."""
    if not 0 <= index < size:
        return False
    at, last, made = index, size - 1, leaf
    for step in proof:
        if last == 0:
            return False
        if at % 2 or at == last:
            made = node_hash(step, made)
            while at and not at % 2:
                at, last = at // 2, last // 2
        else:
            made = node_hash(made, step)
        at, last = at // 2, last // 2
    return last == 0 and made == tree_root


def consistency_proof(leaves: Sequence[bytes], old_size: int) -> list[bytes]:
    """The proof that the tree of ``leaves`` extends that of its first ``old_size``."""
    return _consistency(leaves, old_size, whole=True) if 0 < old_size < len(leaves) else []


def consistent(old_size: int, old_root: bytes, size: int, new_root: bytes, proof: Sequence[bytes]) -> bool:
    """Whether the proof shows that the tree of ``size`` leaves extends that of ``old_size``."""
    if old_size == size:
        return not proof and old_root == new_root
    if not 0 < old_size < size:
        return old_size == 0 and not proof and old_root == EMPTY
    steps = [old_root, *proof] if old_size & (old_size - 1) == 0 else list(proof)
    at, last = old_size - 1, size - 1
    while at % 2:
        at, last = at // 2, last // 2
    if not steps:
        return False
    old = new = steps[0]
    for step in steps[1:]:
        if last == 0:
            return False
        if at % 2 or at == last:
            old, new = node_hash(step, old), node_hash(step, new)
            while at and not at % 2:
                at, last = at // 2, last // 2
        else:
            new = node_hash(new, step)
        at, last = at // 2, last // 2
    return last == 0 and old == old_root and new == new_root


def _consistency(leaves: Sequence[bytes], old_size: int, *, whole: bool) -> list[bytes]:
    if old_size == len(leaves):
        return [] if whole else [root(leaves)]
    split = _split(len(leaves))
    if old_size <= split:
        return [*_consistency(leaves[:split], old_size, whole=whole), root(leaves[split:])]
    return [*_consistency(leaves[split:], old_size - split, whole=False), root(leaves[:split])]


def _split(size: int) -> int:
    """The largest power of two below ``size``."""
    return 1 << ((size - 1).bit_length() - 1)
