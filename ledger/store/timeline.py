"""The order of all receipts, as git tells it, and the checkpoint over them.

What it does: lists the receipts of a revision in the order in which its branch got them, and makes and checks checkpoints. What
it does not do: read a clock. Rules kept: the order is that of the first-parent commits that brought a receipt; within one commit
it is by session and by chain; so a later commit, merge or pack only ever appends. What is not committed is in no checkpoint.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Sequence

import orjson
from attrs import frozen

from ledger.core.digest import PREFIX
from ledger.core.errors import Problem, UsageError
from ledger.store import layout, merkle
from ledger.store.ledger import Ledger, Stored, bytes_of
from ledger.store.packs import contents, packed_names
from ledger.store.program import git, git_bytes

ORIGIN = "receipt-ledger"
_SHORT = re.compile(r"(?P<size>[0-9]{1,12}):(?P<root>[0-9a-f]{64})")


@frozen(kw_only=True)
class Checkpoint:
    """How many receipts there were, and the root of the tree over their digests."""

    size: int
    root: bytes

    def text(self) -> str:
        """The three lines to publish: origin, size, root in base64."""
        return f"{ORIGIN}\n{self.size}\n{base64.b64encode(self.root).decode()}\n"

    def short(self) -> str:
        """``<size>:<root in hex>``, for a sentence."""
        return f"{self.size}:{self.root.hex()}"


def timeline(ledger: Ledger, revision: str = "HEAD") -> list[str]:
    """The digests of the receipts of ``revision``, in the order in which its branch got them."""
    listed = git(
        ledger, "log", "--first-parent", "-m", "--reverse", "--no-renames", "--diff-filter=A", "--name-only", "-z",
        "--format=%x01%H", revision, "--", str(ledger.receipts),
    )  # fmt: skip
    there = {stored.digest: stored for stored in ledger.walk()}
    packed = _packed_places(there.values())
    order: dict[str, None] = {}
    for commit in listed.split("\x01")[1:]:
        identity, *paths = (part.strip() for part in commit.split("\0"))
        names = [name for path in paths for name in _names(ledger, identity, path)]
        brought = []
        for stored in (there[name] for name in names if name in there):
            place = packed[stored.digest] if stored.block else _place(bytes_of(stored))
            brought.append((stored.session, place, stored.digest))
        order |= {digest: None for _, _, digest in sorted(brought)}
    return list(order)


def _names(ledger: Ledger, commit: str, path: str) -> Iterable[str]:
    """The digests that a file of a commit brought: a receipt's own, or all of a pack."""
    name = path.rpartition("/")[2]
    loose = layout.hex_of(name)
    if loose is not None:
        return [PREFIX + loose]
    if layout.pack_of(name) is None:
        return []
    return packed_names(git_bytes(ledger, "cat-file", "blob", f"{commit}:{path}"), ledger.root / path)


def _packed_places(receipts: Iterable[Stored]) -> dict[str, int]:
    """The place of every packed receipt in its chain, each block unpacked once."""
    blocks = {(stored.block.path, stored.block.offset): stored.block for stored in receipts if stored.block}
    return {
        PREFIX + name: _place(data)
        for block in blocks.values()
        for name, data in zip(block.names(), contents(block), strict=True)
    }


def checkpoint(digests: Sequence[str]) -> Checkpoint:
    """The checkpoint over receipts in order."""
    return Checkpoint(size=len(digests), root=merkle.root(leaves(digests)))


def leaves(digests: Sequence[str]) -> list[bytes]:
    """The leaf hashes: a leaf is a receipt's digest, as text."""
    return [merkle.leaf_hash(digest.encode()) for digest in digests]


def extends(digests: Sequence[str], old: Checkpoint) -> bool:
    """Whether the receipts in order extend the checkpoint: its first ``size`` are the very ones it was made over."""
    return len(digests) >= old.size and merkle.root(leaves(digests[: old.size])) == old.root


def read_checkpoint(text: str) -> Checkpoint:
    """A checkpoint from its three lines, or from ``<size>:<root>``.

    Raises:
        UsageError: neither.
    """
    match = _SHORT.fullmatch(text.strip())
    if match is not None:
        return Checkpoint(size=int(match["size"]), root=bytes.fromhex(match["root"]))
    lines = text.splitlines()
    try:
        if len(lines) < 3 or lines[0] != ORIGIN:
            raise ValueError("not three lines")
        made = Checkpoint(size=int(lines[1]), root=base64.b64decode(lines[2], validate=True))
    except (ValueError, binascii.Error) as error:
        hint = "what `ledger checkpoint` printed: three lines, or SIZE:ROOT"
        raise UsageError(Problem(what="not a checkpoint", value=text.strip()[:80], hint=hint)) from error
    if len(made.root) != len(merkle.EMPTY) or made.size < 0:
        raise UsageError(Problem(what="not a checkpoint", value=text.strip()[:80]))
    return made


def _place(data: bytes) -> int:
    """A receipt's place in its chain; what cannot be read stands first, and ``verify`` names it."""
    try:
        place = orjson.loads(data)["chain"]["n"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return -1
    return place if isinstance(place, int) else -1
