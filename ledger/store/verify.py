"""Is the ledger what it says it is? Every way in which it is not, as a value.

What it does: checks each receipt's bytes, canonical form, shape, place, links, chain and blobs, and names what does not belong.
What it does not do: mend anything, follow a link, or read git's history. Rules kept: nothing that it finds stops it; each
finding names its file; what is too large is not read; the receipts are read once, session by session, in flat memory but for
the set of their digests.
"""

import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import define, frozen

from ledger.core import canonical, digest
from ledger.core.digest import Descriptor
from ledger.core.errors import LedgerError, StoreError, shorten
from ledger.receipt import codec
from ledger.receipt.model import Boot, Receipt, blobs, links
from ledger.store import layout, objects
from ledger.store.ledger import MAX_BLOB, MAX_RECEIPT, Ledger

KEPT = (".gitkeep", "README.md")


@frozen(kw_only=True)
class Finding:
    """One thing that is wrong: the file below the ledger's folder, a code for programs, and what and why for people."""

    path: str
    code: str
    what: str
    hint: str = ""


@define
class Checked:
    """How much was looked at."""

    sessions: int = 0
    receipts: int = 0
    blobs: int = 0
    bytes: int = 0

    def counts(self) -> dict[str, int]:
        """The counts by name."""
        return {"sessions": self.sessions, "receipts": self.receipts, "blobs": self.blobs, "bytes": self.bytes}


@frozen(kw_only=True)
class _Read:
    """A receipt that could be read, and where."""

    digest: str
    path: Path
    receipt: Receipt


def verify(ledger: Ledger, checked: Checked) -> Iterator[Finding]:
    """Every finding, session after session; ``checked`` is counted up as it goes."""
    known = {stored.digest for stored in ledger.walk()}
    yield from _strangers(ledger)
    for folder in ledger.sessions():
        checked.sessions += 1
        read: list[_Read] = []
        for item in _receipts(ledger, folder, checked):
            if isinstance(item, Finding):
                yield item
            else:
                read.append(item)
                yield from _one(ledger, item, known)
        yield from _chain(ledger, folder, read)
        yield from _blobs(ledger, folder, read, checked)


def _strangers(ledger: Ledger) -> Iterator[Finding]:
    """What stands above the sessions and is no part of a ledger."""
    levels = [(ledger.receipts, layout.YEAR)]
    levels += [(year, layout.MONTH) for year in _real_folders(ledger.receipts, layout.YEAR)]
    levels += [(month, layout.SESSION) for parent, _ in levels[1:] for month in _real_folders(parent, layout.MONTH)]
    for parent, pattern in levels:
        for entry in _entries(parent):
            if entry.is_symlink():
                yield _finding(ledger, Path(entry.path), "link", "a symbolic link, which is never followed", "remove it")
            elif entry.name in KEPT and parent == ledger.receipts:
                continue
            elif not pattern.fullmatch(entry.name) or not entry.is_dir(follow_symlinks=False):
                yield _finding(ledger, Path(entry.path), "stranger", "no part of a ledger", "move it out of receipts/")


def _receipts(ledger: Ledger, folder: Path, checked: Checked) -> Iterator[_Read | Finding]:
    for entry in sorted(_entries(folder), key=lambda item: item.name):
        path = Path(entry.path)
        if entry.name == layout.BLOBS and entry.is_dir(follow_symlinks=False):
            continue
        if entry.is_symlink():
            yield _finding(ledger, path, "link", "a symbolic link, which is never followed", "remove it")
        elif layout.hex_of(entry.name) is None:
            yield _finding(ledger, path, "stranger", "not the name of a receipt", "move it out of receipts/")
        else:
            yield _read(ledger, path, checked)


def _read(ledger: Ledger, path: Path, checked: Checked) -> _Read | Finding:
    try:
        data = objects.read(path, MAX_RECEIPT)
    except StoreError as error:
        return _finding(ledger, path, "unreadable", error.problems[0].what)
    checked.receipts += 1
    checked.bytes += len(data)
    name = digest.PREFIX + (layout.hex_of(path.name) or "")
    found = digest.of_bytes(data)
    if found != name:
        hint = f"its bytes have {digest.short(found, 16)}…; restore it: git checkout -- <file>"
        return _finding(ledger, path, "digest", "the bytes are not those of the name", hint)
    try:
        receipt = codec.decode(data)
    except LedgerError as error:
        return _finding(ledger, path, "shape", f"not a receipt: {shorten(str(error), 300)}")
    if not canonical.is_canonical(data):
        return _finding(ledger, path, "canonical", "a receipt, but not in canonical form")
    return _Read(digest=name, path=path, receipt=receipt)


def _one(ledger: Ledger, item: _Read, known: set[str]) -> Iterator[Finding]:
    receipt = item.receipt
    if receipt.session != item.path.parent.name:
        what = f"it says session {shorten(receipt.session)}, and stands in another folder"
        yield _finding(ledger, item.path, "session", what)
    for role, target in links(receipt).items():
        if target not in known:
            what = f"{role} names {digest.short(target, 16)}…, which is not in the ledger"
            yield _finding(ledger, item.path, "dangling", what, "fetch the branch that has it")
    body = receipt.body
    if isinstance(body, Boot) and codec.fingerprint(body.factors.identity) != body.fingerprint:
        yield _finding(ledger, item.path, "fingerprint", "the fingerprint is not the digest of the identity factors")


def _chain(ledger: Ledger, folder: Path, read: Sequence[_Read]) -> Iterator[Finding]:
    """The receipts of a session form one chain from 0 without a gap or a fork."""
    by_place: dict[int, list[_Read]] = {}
    for item in read:
        by_place.setdefault(item.receipt.chain.n, []).append(item)
    for place in range(max(by_place, default=-1) + 1):
        here = by_place.get(place, [])
        if not here:
            yield _finding(ledger, folder, "gap", f"the chain has no receipt at {place}", "a receipt of this session is missing")
        for item in here[1:]:
            yield _finding(ledger, item.path, "fork", f"a second receipt at {place} of the chain")
        before = {item.digest for item in by_place.get(place - 1, [])}
        for item in here:
            after = item.receipt.chain.after
            if (place == 0) != (after is None) or (before and after not in before):
                yield _finding(ledger, item.path, "chain", f"at {place} of the chain, but not after the receipt before it")
    for place in (number for number in by_place if number < 0):
        yield _finding(ledger, by_place[place][0].path, "chain", f"{place} is no place in a chain")


def _blobs(ledger: Ledger, folder: Path, read: Sequence[_Read], checked: Checked) -> Iterator[Finding]:
    wanted: dict[str, tuple[_Read, Descriptor]] = {}
    for item in read:
        for descriptor in blobs(item.receipt):
            wanted.setdefault(descriptor.digest, (item, descriptor))
    there = set()
    for entry in _entries(folder / layout.BLOBS):
        path = Path(entry.path)
        if not layout.HEX.fullmatch(entry.name) or not entry.is_file(follow_symlinks=False):
            yield _finding(ledger, path, "stranger", "not a blob", "move it out of receipts/")
            continue
        name = digest.PREFIX + entry.name
        there.add(name)
        checked.blobs += 1
        if name in wanted:
            yield from _blob(ledger, path, wanted[name][1])
        else:
            yield _finding(ledger, path, "orphan", "no receipt of this session names this blob")
    for name in sorted(set(wanted) - there):
        item, descriptor = wanted[name]
        what = f"its blob {digest.short(name, 16)}… ({descriptor.mediaType}) is not there"
        yield _finding(ledger, item.path, "blob-missing", what)


def _blob(ledger: Ledger, path: Path, descriptor: Descriptor) -> Iterator[Finding]:
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BLOB:
        yield _finding(ledger, path, "unreadable", "not a regular file, or too large to be read")
    elif status.st_size != descriptor.size or digest.of_file(path) != descriptor.digest:
        yield _finding(ledger, path, "blob", "the blob's bytes are not those of its name", "restore it: git checkout -- <file>")


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


def _real_folders(parent: Path, pattern: re.Pattern[str]) -> list[Path]:
    return [Path(item.path) for item in _entries(parent) if item.is_dir(follow_symlinks=False) and pattern.fullmatch(item.name)]


def _finding(ledger: Ledger, path: Path, code: str, what: str, hint: str = "") -> Finding:
    return Finding(path=path.relative_to(ledger.root).as_posix(), code=code, what=what, hint=hint)
