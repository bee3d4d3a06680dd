"""What a git revision holds, asked of the git program itself.

What it does: the digests of the receipts in the tree of a revision. What it does not do: need GitPython, which takes longer to
load than a query takes to answer. Rule kept: a revision is an argument and never an option; git runs in the ledger's own
repository whatever the caller's environment says.
"""

import os
import subprocess

from ledger.core.digest import PREFIX
from ledger.core.errors import Problem, StoreError
from ledger.store import layout
from ledger.store.ledger import Ledger

TIMEOUT_S = 60.0


def receipts_at(ledger: Ledger, revision: str) -> set[str]:
    """The digests of the receipts that ``revision`` holds.

    Raises:
        StoreError: git knows no such revision, or is not there.
    """
    commit = _git(ledger, "rev-parse", "--verify", "-q", "--end-of-options", f"{revision}^{{commit}}").strip()
    found = _git(ledger, "ls-tree", "-r", "-z", "--name-only", "--full-tree", commit)
    names = (layout.hex_of(path.rpartition("/")[2]) for path in found.split("\0") if f"{layout.RECEIPTS}/" in path)
    return {PREFIX + name for name in names if name is not None}


def _git(ledger: Ledger, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-C", str(ledger.root), *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StoreError(f"git did not answer: {error}", hint="install git") from error
    if done.returncode:
        raise StoreError(Problem(what="git knows no such revision", value=arguments[-1]))
    return done.stdout
