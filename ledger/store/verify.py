"""Is the ledger what it says it is? Every way in which it is not, as a value.

What it does: checks each receipt's bytes, canonical form, shape, place, links, chain and blobs, and names what does not belong.
What it does not do: mend anything, follow a link, or read git's history. Rules kept: nothing that it finds stops it; each
finding names its file; what is too large is not read; the receipts are read once, session by session, in flat memory but for
the set of their digests.
"""

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from attrs import asdict, define, frozen

from ledger.core import canonical, digest
from ledger.core.digest import Descriptor
from ledger.core.errors import LedgerError, StoreError, shorten
from ledger.core.text import visible
from ledger.core.words import Kind
from ledger.receipt import codec, shape
from ledger.receipt.model import blobs, links
from ledger.store import layout, objects
from ledger.store.ledger import MAX_BLOB, MAX_RECEIPT, Ledger

KEPT = (".gitkeep", "README.md")
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
    """How much was looked at. ``unnamed`` are whole blobs that no receipt names: what a killed session leaves, no fault."""

    sessions: int = 0
    receipts: int = 0
    blobs: int = 0
    unnamed: int = 0
    bytes: int = 0

    def counts(self) -> dict[str, int]:
        """The counts by name."""
        return asdict(self)


@frozen(kw_only=True)
class _Read:
    """What the rest of its session must know of a receipt that could be read."""

    digest: str
    path: Path
    kind: str
    n: int
    after: str | None
    links: Mapping[str, str]
    blobs: Sequence[Descriptor]


def verify(ledger: Ledger, checked: Checked) -> Iterator[Finding]:
    """Every finding, session after session; ``checked`` is counted up as it goes."""
    known = {stored.digest for stored in ledger.walk()}
    yield from _above_sessions(ledger)
    for folder in ledger.sessions():
        checked.sessions += 1
        yield from _session(ledger, folder, known, checked)


def _above_sessions(ledger: Ledger) -> Iterator[Finding]:
    """What stands in the folders above the sessions and is no part of a ledger."""
    if ledger.receipts.is_symlink():
        yield _finding(ledger, ledger.receipts, "link", "a symbolic link, which is never followed", REMOVE)
        return
    levels = [ledger.receipts]
    for pattern in (layout.YEAR, layout.MONTH, layout.SESSION):
        below: list[Path] = []
        for parent in levels:
            for entry in _listed(parent):
                if isinstance(entry, str):
                    yield _finding(ledger, parent, "unreadable", entry)
                elif pattern.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                    below.append(Path(entry.path))
                elif entry.name not in KEPT or parent != ledger.receipts or entry.is_symlink():
                    yield _stranger(ledger, entry, "no part of a ledger")
        levels = below


def _session(ledger: Ledger, folder: Path, known: set[str], checked: Checked) -> Iterator[Finding]:
    read: list[_Read] = []
    unread = 0
    for item in _receipts(ledger, folder, known, checked):
        if isinstance(item, _Read):
            read.append(item)
        else:
            unread += item.code in ("unreadable", "digest", "shape")
            yield item
    yield from _chain(ledger, folder, read, unread)
    yield from _roles(ledger, read)
    yield from _blobs(ledger, folder, read, unread, checked)


def _receipts(ledger: Ledger, folder: Path, known: set[str], checked: Checked) -> Iterator[_Read | Finding]:
    for entry in _listed(folder):
        if isinstance(entry, str):
            yield _finding(ledger, folder, "unreadable", entry)
        elif layout.hex_of(entry.name) is not None and not entry.is_symlink():
            yield from _receipt(ledger, folder / entry.name, known, checked)
        elif entry.name != layout.BLOBS or not entry.is_dir(follow_symlinks=False):
            yield _stranger(ledger, entry, "not the name of a receipt")


def _receipt(ledger: Ledger, path: Path, known: set[str], checked: Checked) -> Iterator[_Read | Finding]:
    """One receipt: what it says of itself, or why it cannot be read, and what is wrong with it alone."""
    try:
        data = objects.read(path, MAX_RECEIPT)
    except StoreError as error:
        yield _finding(ledger, path, "unreadable", error.problems[0].what)
        return
    checked.receipts += 1
    checked.bytes += len(data)
    name = digest.of_bytes(data)
    if layout.receipt_name(digest.hex_of(name)) != path.name:
        hint = f"its bytes have {digest.short(name, 16)}…; {RESTORE}"
        yield _finding(ledger, path, "digest", "the bytes are not those of the name", hint)
        return
    try:
        wire = canonical.decode(data)
        item = _understood(wire, name, path)
    except LedgerError as error:
        yield _finding(ledger, path, "shape", f"not a receipt: {shorten(str(error), 300)}")
        return
    if not canonical.spells(wire, data):
        yield _finding(ledger, path, "canonical", "a receipt, but not in canonical form")
    yield from _alone(ledger, item, wire, known)
    yield item


def _understood(wire: Any, name: str, path: Path) -> _Read:
    """The receipt, by the quick check where that is certain, else by the codec, which says what is wrong."""
    if shape.fits(wire):
        kind, n, after = wire["kind"], wire["chain"]["n"], wire["chain"].get("after")
        return _Read(digest=name, path=path, kind=kind, n=n, after=after, links=shape.links(wire), blobs=shape.blobs(wire))
    receipt = codec.from_wire(wire)
    return _Read(
        digest=name,
        path=path,
        kind=receipt.kind,
        n=receipt.chain.n,
        after=receipt.chain.after,
        links=links(receipt),
        blobs=blobs(receipt),
    )


def _alone(ledger: Ledger, item: _Read, wire: Any, known: set[str]) -> Iterator[Finding]:
    """What is wrong with a receipt whatever stands beside it in its session."""
    if wire["session"] != item.path.parent.name:
        what = f"it says session {shorten(wire['session'])}, and stands in another folder"
        yield _finding(ledger, item.path, "session", what, "move it to the folder of its session")
    if not _is_time(wire["at"]):
        yield _finding(ledger, item.path, "time", f"no time in UTC: {shorten(wire['at'])}")
    for role, target in item.links.items():
        if target not in known:
            what = f"{role} names {digest.short(shorten(target), 16)}…, which is not in the ledger"
            yield _finding(ledger, item.path, "dangling", what, "fetch the branch that has it")
    if item.kind == Kind.BOOT:
        boot = wire[Kind.BOOT]
        if codec.fingerprint(boot["factors"].get("identity", {})) != boot["fingerprint"]:
            yield _finding(ledger, item.path, "fingerprint", "the fingerprint is not the digest of the identity factors")


def _is_time(text: str) -> bool:
    try:
        return text.endswith("Z") and datetime.fromisoformat(text) is not None
    except ValueError:
        return False


def _chain(ledger: Ledger, folder: Path, read: Sequence[_Read], unread: int) -> Iterator[Finding]:
    """The receipts of a session form one chain from 0 without a gap or a fork."""
    by_place: dict[int, list[_Read]] = defaultdict(list)
    for item in read:
        by_place[item.n].append(item)
    yield from _gaps(ledger, folder, sorted(by_place), unread)
    for place, here in sorted(by_place.items()):
        before = {item.digest for item in by_place.get(place - 1, ())}
        for index, item in enumerate(here):
            if index:
                yield _finding(ledger, item.path, "fork", f"a second receipt at {place} of the chain")
            if place < 0:
                yield _finding(ledger, item.path, "chain", f"{place} is no place in a chain")
            elif (place == 0) != (item.after is None) or (before and item.after not in before):
                yield _finding(ledger, item.path, "chain", f"at {place} of the chain, but not after the receipt before it")


def _gaps(ledger: Ledger, folder: Path, places: Sequence[int], unread: int) -> Iterator[Finding]:
    """Places without a receipt; where no more are missing than could not be read, those are the ones, and told already."""
    runs = []
    expected = 0
    for place in places:
        if place > expected:
            runs.append((expected, place - 1))
        expected = max(expected, place + 1)
    if sum(last - first + 1 for first, last in runs) <= unread:
        return
    for first, last in runs:
        where = f"at {first}" if first == last else f"from {first} to {last}"
        hint = "a receipt of this session is missing: fetch the branch that has it"
        yield _finding(ledger, folder, "gap", f"the chain has no receipt {where}", hint)


def _roles(ledger: Ledger, read: Sequence[_Read]) -> Iterator[Finding]:
    """A link called ``boot`` or ``attempt`` leads to a receipt of that kind."""
    kinds = {item.digest: item.kind for item in read}
    for item in read:
        for role in (Kind.ATTEMPT, Kind.BOOT):
            found = kinds.get(item.links.get(role, ""), role)
            if found != role:
                yield _finding(ledger, item.path, "role", f"its {role} is a receipt of another kind: {shorten(found)}")


def _blobs(ledger: Ledger, folder: Path, read: Sequence[_Read], unread: int, checked: Checked) -> Iterator[Finding]:
    """Every blob has its bytes, and every named one is there. A receipt that could not be read may name any of the others."""
    wanted: dict[str, dict[int, _Read]] = defaultdict(dict)
    for item in read:
        for descriptor in item.blobs:
            wanted[descriptor.digest].setdefault(descriptor.size, item)
    there = set()
    for entry in () if (folder / layout.BLOBS).is_symlink() else _listed(folder / layout.BLOBS):
        if isinstance(entry, str):
            yield _finding(ledger, folder / layout.BLOBS, "unreadable", entry)
        elif not layout.HEX.fullmatch(entry.name) or not entry.is_file(follow_symlinks=False):
            yield _stranger(ledger, entry, "not a blob")
        else:
            name = digest.PREFIX + entry.name
            there.add(name)
            checked.blobs += 1
            checked.unnamed += not unread and name not in wanted
            yield from _blob(ledger, Path(entry.path), name, wanted[name])
    missing = {descriptor.digest: (item, descriptor) for item in reversed(read) for descriptor in item.blobs}
    for name in sorted(missing.keys() - there):
        item, descriptor = missing[name]
        what = f"its blob {digest.short(shorten(name), 16)}… ({shorten(descriptor.mediaType)}) is not there"
        yield _finding(ledger, item.path, "blob-missing", what, "fetch it, or restore it from git")


def _blob(ledger: Ledger, path: Path, name: str, sizes: Mapping[int, _Read]) -> Iterator[Finding]:
    """One blob; ``sizes`` are those that receipts say it has, each with a receipt that says so."""
    try:
        size = path.lstat().st_size
        if size > MAX_BLOB:
            yield _finding(ledger, path, "unreadable", f"{size} bytes, and at most {MAX_BLOB} are read")
        elif digest.of_file(path) != name:
            yield _finding(ledger, path, "blob", "the blob's bytes are not those of its name", RESTORE)
        else:
            for said in sorted(sizes.keys() - {size}):
                what = f"it says that its blob {digest.short(name, 16)}… has {said} bytes, and it has {size}"
                yield _finding(ledger, sizes[said].path, "blob-size", what)
    except OSError as error:
        yield _finding(ledger, path, "unreadable", (error.strerror or str(error)).lower())


def _listed(folder: Path) -> list[os.DirEntry[str] | str]:
    """The entries of a folder in name order, or why there are none; a folder that is not there has none."""
    try:
        with os.scandir(folder) as entries:
            return [*sorted(entries, key=lambda entry: entry.name)]
    except FileNotFoundError:
        return []
    except OSError as error:
        return [(error.strerror or str(error)).lower()]


def _stranger(ledger: Ledger, entry: os.DirEntry[str], what: str) -> Finding:
    if entry.is_symlink():
        return _finding(ledger, Path(entry.path), "link", "a symbolic link, which is never followed", REMOVE)
    return _finding(ledger, Path(entry.path), "stranger", what, MOVE)


def _finding(ledger: Ledger, path: Path, code: str, what: str, hint: str = "") -> Finding:
    # A name on disk may hold bytes that are no text; escaped, it can be shown and written as JSON.
    shown = visible(path.relative_to(ledger.root).as_posix(), keep=frozenset())
    return Finding(path=shown, code=code, what=what, hint=hint)
