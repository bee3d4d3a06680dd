"""What ``verify`` finds, as values, and how folders are listed without surprises.

What it does: holds a finding and the counts of what was looked at, and lists a folder or says why it cannot be. What it does not
do: look for anything. Rules kept: a finding names its file below the ledger's folder, escaped so that it can be shown and
written as JSON whatever bytes its name has; no link is followed.
"""

import os
from pathlib import Path

from attrs import asdict, define, field, frozen

from ledger.core.text import visible
from ledger.receipt.model import Correction
from ledger.store.ledger import Ledger

RESTORE = "restore it: git checkout -- <file>"
REMOVE = "remove it"
MOVE = "move it out of receipts/"


@frozen(kw_only=True)
class Finding:
    """One thing that is wrong: the file below the ledger's folder, a code for programs, and what and why for people."""

    path: str
    code: str
    what: str
    hint: str = ""


@define
class Checked:
    """How much was looked at, and the corrections among it by digest, for those who judge them.

    ``unnamed`` are whole blobs that no receipt names: what a killed session leaves, no fault. ``away`` are large blobs that are
    not on this machine and that the blob store may have.
    """

    sessions: int = 0
    receipts: int = 0
    blobs: int = 0
    unnamed: int = 0
    bytes: int = 0
    packs: int = 0
    away: int = 0
    corrections: dict[str, Correction] = field(factory=dict)

    def counts(self) -> dict[str, int]:
        """The counts by name."""
        return asdict(self, filter=lambda attribute, _: attribute.name != "corrections")

    def add(self, other: "Checked") -> None:
        """Count what was looked at elsewhere, too."""
        for name, number in other.counts().items():
            setattr(self, name, getattr(self, name) + number)
        self.corrections |= other.corrections


def finding(ledger: Ledger, path: Path | str, code: str, what: str, hint: str = "") -> Finding:
    """A finding about a file or folder of the ledger."""
    shown = visible(Path(path).relative_to(ledger.root).as_posix(), keep=frozenset())
    return Finding(path=shown, code=code, what=what, hint=hint)


def stranger(ledger: Ledger, entry: os.DirEntry[str], what: str) -> Finding:
    """A finding about something that does not belong where it stands."""
    if entry.is_symlink():
        return finding(ledger, entry.path, "link", "a symbolic link, which is never followed", REMOVE)
    return finding(ledger, entry.path, "stranger", what, MOVE)


def listed(folder: Path) -> list[os.DirEntry[str] | str]:
    """The entries of a folder in name order, or why there are none; a folder that is not there has none."""
    try:
        with os.scandir(folder) as entries:
            return [*sorted(entries, key=lambda entry: entry.name)]
    except FileNotFoundError:
        return []
    except OSError as error:
        return [reason(error)]


def reason(error: OSError) -> str:
    """What the system says, in its own words."""
    return (error.strerror or str(error)).lower()
