"""What a git revision holds.

What it does: the digests of the receipts in the tree of a revision, loose and packed. What it does not do: look at the work
tree. Rule kept: a revision is an argument and never an option.
"""

from ledger.core.digest import PREFIX
from ledger.core.errors import Problem, StoreError
from ledger.store import layout
from ledger.store.ledger import Ledger
from ledger.store.packs import packed_names
from ledger.store.program import git, git_bytes


def receipts_at(ledger: Ledger, revision: str) -> set[str]:
    """The digests of the receipts that ``revision`` holds.

    Raises:
        StoreError: git knows no such revision or is not there, or a pack of it is none.
    """
    try:
        commit = git(ledger, "rev-parse", "--verify", "-q", "--end-of-options", f"{revision}^{{commit}}").strip()
    except StoreError as error:
        raise StoreError(Problem(what="git knows no such revision", value=revision)) from error
    listed = git(ledger, "ls-tree", "-r", "-z", "--full-tree", commit)
    found: set[str] = set()
    for what, path in (entry.split("\t", 1) for entry in listed.split("\0") if f"{layout.RECEIPTS}/" in entry):
        name = path.rpartition("/")[2]
        if loose := layout.hex_of(name):
            found.add(PREFIX + loose)
        elif layout.pack_of(name):
            found |= packed_names(git_bytes(ledger, "cat-file", "blob", what.split()[2]), ledger.root / path)
    return found
