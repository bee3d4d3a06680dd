"""What a git revision holds.

What it does: the digests of the receipts in the tree of a revision. What it does not do: look at the work tree. Rule kept: a
revision is an argument and never an option.
"""

from ledger.core.digest import PREFIX
from ledger.core.errors import Problem, StoreError
from ledger.store import layout
from ledger.store.ledger import Ledger
from ledger.store.program import git


def receipts_at(ledger: Ledger, revision: str) -> set[str]:
    """The digests of the receipts that ``revision`` holds.

    Raises:
        StoreError: git knows no such revision, or is not there.
    """
    try:
        commit = git(ledger, "rev-parse", "--verify", "-q", "--end-of-options", f"{revision}^{{commit}}").strip()
    except StoreError as error:
        raise StoreError(Problem(what="git knows no such revision", value=revision)) from error
    found = git(ledger, "ls-tree", "-r", "-z", "--name-only", "--full-tree", commit)
    names = (layout.hex_of(path.rpartition("/")[2]) for path in found.split("\0") if f"{layout.RECEIPTS}/" in path)
    return {PREFIX + name for name in names if name is not None}
