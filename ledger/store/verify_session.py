"""One session of a ledger, checked: bytes, canonical form, shape, place, links, chain and blobs.

What it does: reads each receipt of the session once, loose or packed, and gives every finding about it. What it does not do: look
for links that lead to other sessions; it names them, and ``verify`` looks. Rules kept: nothing that it finds stops it; what is
too large is not read; a session is checked without any other, so that several can be checked at once.
"""

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from attrs import field, frozen

from ledger.core import canonical, digest
from ledger.core.digest import Descriptor
from ledger.core.errors import LedgerError, StoreError, shorten
from ledger.core.words import Kind
from ledger.receipt import codec, shape
from ledger.receipt.model import Boot, Correction, blobs, links
from ledger.receipt.shape import Outline
from ledger.store import large, layout, objects, packs
from ledger.store.finding import RESTORE, Checked, Finding, finding, listed, reason, stranger
from ledger.store.ledger import MAX_BLOB, MAX_RECEIPT, Ledger, Stored, bytes_of
from ledger.store.packs import Block

Entries = Sequence[os.DirEntry[str] | str]
"""What ``finding.listed`` gave for a folder."""


@frozen(kw_only=True)
class Report:
    """What became of some sessions: the findings, the counts, and the links that lead out of their session."""

    findings: list[Finding] = field(factory=list)
    checked: Checked = field(factory=Checked)
    outward: list["Outward"] = field(factory=list)
    away: list["Away"] = field(factory=list)


@frozen(kw_only=True)
class Away:
    """A large blob that is not on this machine: the file of a receipt that names it, and its descriptor."""

    path: str
    blob: Descriptor


@frozen(kw_only=True)
class Outward:
    """A link from a receipt to one that is not in its session: the receipt's file, the role, and the digest it names."""

    path: str
    role: str
    target: str


@frozen(kw_only=True)
class _Read:
    """What the rest of its session must know of a receipt that could be read."""

    digest: str
    path: str
    said: Outline
    correction: Correction | None = None


def check_session(ledger: Ledger, folder: Path, entries: Entries, blocks: Sequence[Block], report: Report) -> None:
    """Check the session of this folder, as it was listed, and of these blocks of packs, into ``report``."""
    report.checked.sessions += 1
    read: dict[str, _Read] = {}
    unread = 0
    for item in _receipts(ledger, folder, entries, blocks, report.checked):
        if isinstance(item, _Read):
            read.setdefault(item.digest, item)
        else:
            unread += item.code in ("unreadable", "digest", "shape")
            report.findings.append(item)
    items = list(read.values())
    report.checked.corrections |= {item.digest: item.correction for item in items if item.correction is not None}
    report.findings.extend(_chain(ledger, folder, items, unread))
    report.findings.extend(_roles(ledger, items))
    report.findings.extend(_blobs(ledger, folder, items, unread, report))
    report.outward.extend(
        Outward(path=item.path, role=role, target=target)
        for item in items
        for role, target in item.said.links.items()
        if target not in read
    )


def _receipts(
    ledger: Ledger, folder: Path, entries: Entries, blocks: Sequence[Block], checked: Checked
) -> Iterator[_Read | Finding]:
    """Every receipt of the session that can be read, and what is wrong with each alone; first the loose ones."""
    loose = set()
    for entry in entries:
        if isinstance(entry, str):
            yield finding(ledger, folder, "unreadable", entry)
        elif (name := layout.hex_of(entry.name)) is not None and not entry.is_symlink():
            loose.add(name)
            yield from _loose(ledger, folder, entry.path, name, checked)
        elif entry.name != layout.BLOBS or not entry.is_dir(follow_symlinks=False):
            yield stranger(ledger, entry, "not the name of a receipt")
    for block in blocks:
        yield from _packed(ledger, folder, block, loose, checked)


def _loose(ledger: Ledger, folder: Path, path: str, named: str, checked: Checked) -> Iterator[_Read | Finding]:
    try:
        data = _bytes(folder, path, named)
    except StoreError as error:
        yield finding(ledger, path, "unreadable", error.problems[0].what)
        return
    checked.receipts += 1
    checked.bytes += len(data)
    name = digest.of_bytes(data)
    if digest.hex_of(name) != named:
        hint = f"its bytes have {digest.short(name, 16)}…; {RESTORE}"
        yield finding(ledger, path, "digest", "the bytes are not those of the name", hint)
    else:
        yield from _receipt(ledger, folder, path, data, name)


def _bytes(folder: Path, path: str, named: str) -> bytes:
    """The bytes of a receipt's file; where it was packed since it was listed, those in the pack."""
    try:
        return objects.read(path, MAX_RECEIPT)
    except StoreError:
        if os.path.lexists(path):
            raise
    return bytes_of(Stored(digest=digest.PREFIX + named, session=folder.name, path=Path(path)))


def _packed(ledger: Ledger, folder: Path, block: Block, loose: set[str], checked: Checked) -> Iterator[_Read | Finding]:
    """The receipts of a block; one that is loose too is counted once."""
    try:
        lines = packs.contents(block)
    except StoreError as error:
        yield finding(ledger, block.path, "unreadable", error.problems[0].what, RESTORE)
        return
    for named, data in zip(block.names(), lines, strict=True):
        checked.receipts += named not in loose
        checked.bytes += len(data)
        name = digest.of_bytes(data)
        if digest.hex_of(name) != named:
            what = f"the receipt {digest.short(named, 16)}… of {block.session} has other bytes"
            yield finding(ledger, block.path, "digest", what, RESTORE)
        else:
            yield from _receipt(ledger, folder, f"{folder}/{layout.receipt_name(named)}", data, name)


def _receipt(ledger: Ledger, folder: Path, path: str, data: bytes, name: str) -> Iterator[_Read | Finding]:
    """One receipt of this digest: what it says of itself, or why it cannot be read, and what is wrong with it alone."""
    try:
        wire = canonical.decode(data)
        is_canonical = canonical.spells(wire, data)
        # Where a key stands twice the quick check and the codec may read another one, so it is asked of canonical bytes alone.
        said = (shape.outline(data) if is_canonical else None) or _by_the_model(wire)
        item = _Read(digest=name, path=path, said=said, correction=_correction(wire) if said.kind == Kind.CORRECTION else None)
    except LedgerError as error:
        yield finding(ledger, path, "shape", f"not a receipt: {shorten(str(error), 300)}")
        return
    if not is_canonical:
        yield finding(ledger, path, "canonical", "a receipt, but not in canonical form")
    yield from _alone(ledger, folder, item)
    yield item


def _correction(wire: Any) -> Correction | None:
    body = codec.from_wire(wire).body
    return body if isinstance(body, Correction) else None


def _by_the_model(wire: Any) -> Outline:
    """The outline of a receipt as the codec reads it, which says what is wrong where something is."""
    receipt = codec.from_wire(wire)
    boot = receipt.body if isinstance(receipt.body, Boot) else None
    return Outline(
        kind=receipt.kind,
        at=receipt.at,
        session=receipt.session,
        n=receipt.chain.n,
        after=receipt.chain.after,
        links=links(receipt),
        blobs=blobs(receipt),
        identity=boot.factors.identity if boot else None,
        fingerprint=boot.fingerprint if boot else None,
    )


def _alone(ledger: Ledger, folder: Path, item: _Read) -> Iterator[Finding]:
    """What is wrong with a receipt whatever stands beside it in its session."""
    said = item.said
    if said.session != folder.name:
        what = f"it says session {shorten(said.session)}, and stands in another folder"
        yield finding(ledger, item.path, "session", what, "move it to the folder of its session")
    if not _is_time(said.at):
        yield finding(ledger, item.path, "time", f"no time in UTC: {shorten(said.at)}")
    if said.identity is not None and codec.fingerprint(said.identity) != said.fingerprint:
        yield finding(ledger, item.path, "fingerprint", "the fingerprint is not the digest of the identity factors")


def _is_time(text: str) -> bool:
    try:
        return text.endswith("Z") and datetime.fromisoformat(text) is not None
    except ValueError:
        return False


def _chain(ledger: Ledger, folder: Path, read: Sequence[_Read], unread: int) -> Iterator[Finding]:
    """The receipts of a session form one chain from 0 without a gap or a fork."""
    by_place: dict[int, list[_Read]] = defaultdict(list)
    for item in read:
        by_place[item.said.n].append(item)
    yield from _gaps(ledger, folder, sorted(by_place), unread)
    for place, here in sorted(by_place.items()):
        before = {item.digest for item in by_place.get(place - 1, ())}
        for index, item in enumerate(here):
            if index:
                yield finding(ledger, item.path, "fork", f"a second receipt at {place} of the chain")
            if place < 0:
                yield finding(ledger, item.path, "chain", f"{place} is no place in a chain")
            elif (place == 0) != (item.said.after is None) or (before and item.said.after not in before):
                yield finding(ledger, item.path, "chain", f"at {place} of the chain, but not after the receipt before it")


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
        yield finding(ledger, folder, "gap", f"the chain has no receipt {where}", hint)


def _roles(ledger: Ledger, read: Sequence[_Read]) -> Iterator[Finding]:
    """A link called ``boot`` or ``attempt`` leads to a receipt of that kind."""
    kinds = {item.digest: item.said.kind for item in read}
    for item in read:
        for role in (Kind.ATTEMPT, Kind.BOOT):
            found = kinds.get(item.said.links.get(role, ""), role)
            if found != role:
                yield finding(ledger, item.path, "role", f"its {role} is a receipt of another kind: {shorten(found)}")


def _blobs(ledger: Ledger, folder: Path, read: Sequence[_Read], unread: int, report: Report) -> Iterator[Finding]:
    """Every blob has its bytes, and every named one is there. A receipt that could not be read may name any of the others."""
    wanted: dict[str, dict[int, _Read]] = defaultdict(dict)
    for item in read:
        for descriptor in item.said.blobs:
            wanted[descriptor.digest].setdefault(descriptor.size, item)
    there = set()
    for entry in () if (folder / layout.BLOBS).is_symlink() else listed(folder / layout.BLOBS):
        if isinstance(entry, str):
            yield finding(ledger, folder / layout.BLOBS, "unreadable", entry)
        elif not layout.HEX.fullmatch(entry.name) or not entry.is_file(follow_symlinks=False):
            yield stranger(ledger, entry, "not a blob")
        else:
            name = digest.PREFIX + entry.name
            there.add(name)
            report.checked.blobs += 1
            report.checked.unnamed += not unread and name not in wanted
            yield from _blob(ledger, Path(entry.path), name, wanted[name])
    missing = {descriptor.digest: (item, descriptor) for item in reversed(read) for descriptor in item.said.blobs}
    for name in sorted(missing.keys() - there):
        item, descriptor = missing[name]
        if large.is_large(ledger, descriptor.size):
            yield from _large(ledger, item, descriptor, report)
            continue
        what = f"its blob {digest.short(shorten(name), 16)}… ({shorten(descriptor.mediaType)}) is not there"
        yield finding(ledger, item.path, "blob-missing", what, "fetch it, or restore it from git")


def _large(ledger: Ledger, item: _Read, descriptor: Descriptor, report: Report) -> Iterator[Finding]:
    """A blob that is kept outside of git: whole if it is here, else noted, to be fetched when that is asked."""
    path = ledger.large_blob(descriptor.digest)
    if path is None:
        report.checked.away += 1
        report.away.append(Away(path=str(item.path), blob=descriptor))
        return
    report.checked.blobs += 1
    yield from _blob(ledger, path, descriptor.digest, {descriptor.size: item})


def _blob(ledger: Ledger, path: Path, name: str, sizes: Mapping[int, _Read]) -> Iterator[Finding]:
    """One blob; ``sizes`` are those that receipts say it has, each with a receipt that says so."""
    try:
        size = path.lstat().st_size
        if size > MAX_BLOB:
            yield finding(ledger, path, "unreadable", f"{size} bytes, and at most {MAX_BLOB} are read")
        elif digest.of_file(path) != name:
            yield finding(ledger, path, "blob", "the blob's bytes are not those of its name", RESTORE)
        else:
            for said in sorted(sizes.keys() - {size}):
                what = f"it says that its blob {digest.short(name, 16)}… has {said} bytes, and it has {size}"
                yield finding(ledger, sizes[said].path, "blob-size", what)
    except OSError as error:
        yield finding(ledger, path, "unreadable", reason(error))
