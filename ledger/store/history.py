"""What git's history says of the receipts: that none was ever changed or removed, and who signed.

What it does: reads every reachable commit's changes below ``receipts/``, in merges against each parent, and checks signatures
when asked. What it does not do: see a history that was rewritten before it was fetched; a published checkpoint does. Rules kept:
each finding names the commit and the file; a receipt that moved or was packed is no loss, since its name is its content.
"""

from collections.abc import Iterator
from pathlib import Path

from ledger.core import digest
from ledger.core.errors import Place, Problem, StoreError, UsageError
from ledger.store import layout
from ledger.store.finding import Finding
from ledger.store.ledger import Ledger
from ledger.store.packs import packed_names
from ledger.store.program import git, git_bytes

GOOD = "G"
SAID = {
    "N": "no signature",
    "B": "a bad signature",
    "U": "a signature by a key that no allowed signer has",
    "E": "a signature that cannot be checked",
    "X": "a signature that has expired",
    "Y": "a signature by a key that has expired",
    "R": "a signature by a key that was revoked",
}


def check_history(ledger: Ledger) -> Iterator[Finding]:
    """A finding for each receipt or blob that some reachable commit changed or lost."""
    there = {digest.PREFIX + name for _, names in ledger.names() for name in names}
    listed = git(
        ledger, "log", "--all", "--full-history", "-m", "--raw", "--no-abbrev", "--no-renames", "--diff-filter=MDT", "-z",
        "--format=%x01%H", "--", str(ledger.receipts),
    )  # fmt: skip
    told: set[tuple[str, str]] = set()
    for entry in listed.split("\x01")[1:]:
        commit, *fields = entry.split("\0")
        for what, path in zip(fields[::2], fields[1::2], strict=False):
            status = what.strip().split(" ")[-1][:1]
            found = _finding(status, commit.strip(), path, there)
            if status == "D" and layout.pack_of(path.rpartition("/")[2]):
                found = _lost_with_pack(ledger, what.split()[2], commit.strip(), path, there)
            if found is not None and (found.path, found.code) not in told:
                told.add((found.path, found.code))
                yield found


def check_signatures(ledger: Ledger, signers: Path) -> Iterator[Finding]:
    """A finding for each commit that touched receipts and is not signed by one of the allowed signers.

    Raises:
        UsageError: there is no such file.
    """
    if not signers.is_file():
        raise UsageError(Problem(what="no such file of allowed signers", place=Place(file=str(signers))))
    allowed = ("-c", f"gpg.ssh.allowedSignersFile={signers.resolve()}")
    listed = git(ledger, *allowed, "log", "--full-history", "--format=%H%x09%G?%x09%GS", "HEAD", "--", str(ledger.receipts))
    for line in listed.splitlines():
        commit, status, signer = [*line.split("\t"), "", ""][:3]
        if status != GOOD:
            what = SAID.get(status, f"signature status {status}") + (f" ({signer})" if signer else "")
            yield Finding(path=f"commit {commit[:12]}", code="signature", what=what, hint="git log --show-signature")


def _lost_with_pack(ledger: Ledger, blob: str, commit: str, path: str, there: set[str]) -> Finding | None:
    """A finding when a pack was removed and a receipt of it is nowhere else."""
    try:
        lost = str(len(packed_names(git_bytes(ledger, "cat-file", "blob", blob), ledger.root / path) - there))
    except StoreError:
        lost = "nobody can say which"
    if lost == "0":
        return None
    what = f"removed in commit {commit[:12]}, and with it {lost} receipts"
    return Finding(path=path, code="removed", what=what, hint=f"git checkout {commit[:12]}~ -- {path}")


def _finding(status: str, commit: str, path: str, there: set[str]) -> Finding | None:
    name = path.rpartition("/")[2]
    hex_digest = layout.hex_of(name)
    if layout.digest_in(name) is None:
        return None
    if status == "D":
        if hex_digest is None or digest.PREFIX + hex_digest in there:
            return None
        return Finding(
            path=path, code="removed", what=f"removed in commit {commit[:12]}", hint=f"git checkout {commit[:12]}~ -- {path}"
        )
    return Finding(path=path, code="changed", what=f"changed in commit {commit[:12]}", hint=f"git show {commit[:12]} -- {path}")
