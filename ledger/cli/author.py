"""Who says so: the author of a correction, a claim or a decision.

What it does: takes what was given, else git's user, else the user of this system. What it does not do: prove it; signatures do.
"""

import getpass

from ledger.store.git import user_name
from ledger.store.ledger import Ledger


def author_of(ledger: Ledger, given: str | None) -> str:
    """The author's name, never empty."""
    return given or user_name(ledger) or getpass.getuser()
