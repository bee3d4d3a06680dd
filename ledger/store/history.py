"""What git's history says of the receipts: that none was ever changed or removed, and who signed.

What it does: reads every reachable commit's changes below ``receipts/``, in merges against each parent, compares HEAD with the
disk, and checks signatures when asked. What it does not do: see a history that was rewritten before it was fetched; a published
checkpoint does. Rules kept: each finding names the commit and the file; a receipt that moved or was packed is no loss, since its
name is its content.
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
    for gone, names in _gone_from_disk(ledger, there):
        yield gone
        there |= names  # HEAD has these, so no commit has lost them
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


def _gone_from_disk(ledger: Ledger, there: set[str]) -> Iterator[tuple[Finding, set[str]]]:
    """A finding for each receipt and pack that HEAD has and the work tree has in no form, with the digests of what is missing."""
    if not _has_head(ledger):
        return
    listed = git(
        ledger, "diff-index", "--raw", "--no-abbrev", "--no-renames", "--diff-filter=D", "-z", "HEAD", "--", str(ledger.receipts)
    ).split("\0")
    for raw, path in zip(listed[::2], listed[1::2], strict=False):
        missing = _missing(ledger, raw.split()[2], path, there)
        if missing is None or missing:
            what = f"HEAD has it, and the disk has not: {_count(missing)}"
            yield Finding(path=path, code="removed", what=what, hint=f"git checkout HEAD -- {path}"), missing or set()


def _has_head(ledger: Ledger) -> bool:
    """Whether anything was ever committed."""
    try:
        return bool(git(ledger, "rev-parse", "-q", "--verify", "HEAD"))
    except StoreError:
        return False


def _missing(ledger: Ledger, blob: str, path: str, there: set[str]) -> set[str] | None:
    """The digests of a receipt or of a pack's receipts that are not ``there``; None when the pack cannot be read."""
    name = path.rpartition("/")[2]
    if loose := layout.hex_of(name):
        return {digest.PREFIX + loose} - there
    if layout.pack_of(name) is None:
        return set()
    try:
        return packed_names(git_bytes(ledger, "cat-file", "blob", blob), ledger.root / path) - there
    except StoreError:
        return None


def _count(missing: set[str] | None) -> str:
    return "nobody can say which receipts" if missing is None else f"{len(missing)} receipts"


def _lost_with_pack(ledger: Ledger, blob: str, commit: str, path: str, there: set[str]) -> Finding | None:
    """A finding when a pack was removed and a receipt of it is nowhere else."""
    missing = _missing(ledger, blob, path, there)
    if missing is not None and not missing:
        return None
    what = f"removed in commit {commit[:12]}, and with it {_count(missing)}"
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
