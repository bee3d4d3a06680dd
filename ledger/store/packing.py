"""Packing: committed loose receipts become packs, in one commit.

What it does: chooses sessions, writes their receipts into packs, reads the packs back, commits packs and removals together, and
takes the loose files away. What it does not do: touch blobs, or undo a pack (``zcat`` does). Rules kept: a receipt leaves its
file only when a pack that was read back from disk has its bytes and is committed; what is not committed, not canonical, damaged
or being written stays loose and is told; a process that is killed at any step leaves every receipt readable, and the next run
goes on from there.
"""

import errno
import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path

from attrs import define, field, frozen

from ledger.core import canonical, digest
from ledger.core.errors import Problem, StoreError
from ledger.store import layout, objects
from ledger.store.git import CommitInfo, commit_paths, uncommitted
from ledger.store.ledger import MAX_RECEIPT, Ledger, folders
from ledger.store.packs import Proofs, make

Watch = Callable[[int, int], None]


def _nobody(done: int, of: int) -> None:
    """Hear nothing."""


@frozen(kw_only=True)
class Packed:
    """What became of it: how many receipts of how many sessions left their files, their bytes before and after, and remarks."""

    sessions: int
    receipts: int
    loose_bytes: int
    packs: tuple[Path, ...]
    pack_bytes: int
    commit: CommitInfo
    remarks: tuple[str, ...] = ()


@define
class _Work:
    """What a run has gathered so far."""

    ledger: Ledger
    loose: list[Path] = field(factory=list)
    packs: list[Path] = field(factory=list)
    sessions: set[Path] = field(factory=set)
    bytes: int = 0
    remarks: list[str] = field(factory=list)

    def take(self, path: Path, size: int) -> None:
        """Note a loose receipt that a pack holds now."""
        self.loose.append(path)
        self.sessions.add(path.parent)
        self.bytes += size


@frozen(kw_only=True)
class Chosen:
    """A session folder, and its loose receipts that may be packed, by bare digest."""

    folder: Path
    names: tuple[str, ...]


@frozen(kw_only=True)
class Choice:
    """The sessions whose loose receipts may be packed, month by month, and why others may not."""

    months: tuple[tuple[Path, tuple[Chosen, ...]], ...]
    remarks: tuple[str, ...]

    def loose(self) -> Iterator[Path]:
        """Every loose receipt of them."""
        for _, chosen in self.months:
            for item in chosen:
                yield from (item.folder / layout.receipt_name(name) for name in item.names)


def choose(ledger: Ledger, *, before: date | None = None) -> Choice:
    """Every session that is committed, is not being written, and began before that day (UTC) where one is given.

    Raises:
        StoreError: git does not say what is committed.
    """
    months = [(month, [item for item in _with_loose(month) if _is_before(item.folder, before)]) for month in ledger.months()]
    # Listed first and asked of git after, so that a receipt which is recorded meanwhile is not taken for a committed one.
    pending = {path.parent for path in uncommitted(ledger)}
    reasons = {
        item.folder: reason
        for _, found in months
        for item in found
        if (reason := _reason_against(item.folder, pending)) is not None
    }
    return Choice(
        months=tuple((month, tuple(item for item in found if item.folder not in reasons)) for month, found in months),
        remarks=tuple(f"left loose, since it is {reason}: {folder.name}" for folder, reason in reasons.items()),
    )


def pack(ledger: Ledger, *, before: date | None = None, watch: Watch = _nobody) -> Packed:
    """Pack the receipts of every session that :func:`choose` finds; ``watch`` is told how many months are done, and of how many.

    Raises:
        StoreError: the disk or git refuses, or a pack does not read back as it was written; nothing is lost.
    """
    choice = choose(ledger, before=before)
    work = _Work(ledger=ledger, remarks=[*choice.remarks])
    for done, (month, chosen) in enumerate(choice.months, start=1):
        _pack_month(work, month, chosen)
        watch(done, len(choice.months))
    message = f"receipts: pack {len(work.loose)} of {len(work.sessions)} sessions"
    info = commit_paths(ledger, work.packs, message, removed=work.loose)
    if not_there := set(work.packs) & set(uncommitted(ledger)):
        what = f"{len(not_there)} packs are not committed, so every receipt stays loose, too"
        raise StoreError(Problem(what=what, value=str(min(not_there)), hint="run it again"))
    _remove(work)
    return Packed(
        sessions=len(work.sessions),
        receipts=len(work.loose),
        loose_bytes=work.bytes,
        packs=tuple(work.packs),
        pack_bytes=sum(path.stat().st_size for path in work.packs),
        commit=info,
        remarks=(*work.remarks, *info.remarks),
    )


def session_day(folder: Path) -> date | None:
    """The day on which the session of this folder began (UTC), by its name; None when there is no such day."""
    with suppress(ValueError):
        return date(int(folder.parent.parent.name), int(folder.parent.name), int(folder.name[:2]))
    return None


def _is_before(folder: Path, before: date | None) -> bool:
    day = session_day(folder)
    return before is None or (day is not None and day < before)


def _reason_against(folder: Path, pending: set[Path]) -> str | None:
    if folder in pending:
        return "not committed"
    return "being written" if _is_being_written(folder) else None


def _is_being_written(folder: Path) -> bool:
    """Whether a session writer holds the folder."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno == errno.EWOULDBLOCK
    finally:
        os.close(fd)
    return False


def _with_loose(month: Path) -> Iterator[Chosen]:
    for folder in folders(month, layout.SESSION.fullmatch):
        if names := tuple(_loose(folder)):
            yield Chosen(folder=folder, names=names)


def _pack_month(work: _Work, month: Path, chosen: Sequence[Chosen]) -> None:
    """Write the packs of a month, or find that they are there, and take every loose receipt that they are proven to hold."""
    before = Proofs()
    receipts = ((item.folder.name, found) for item in chosen if (found := _receipts(work, item, before)))
    for data in make(receipts):
        path = month / layout.pack_name(digest.hex_of(digest.of_bytes(data)))
        objects.put(path, data, root=work.ledger.root, scratch=work.ledger.scratch)
    # What was written is read back here, from the disk, before anything rests on it.
    after = Proofs()
    used = set()
    for item in chosen:
        for name in item.names:
            path = item.folder / layout.receipt_name(name)
            holder = after.holder(path)
            if holder is not None and os.path.lexists(path):
                used.add(holder)
                work.take(path, path.lstat().st_size)
    work.packs += sorted(used)


def _receipts(work: _Work, chosen: Chosen, packed: Proofs) -> dict[str, bytes]:
    """The receipts of a session that can be packed and are in no whole pack, by digest."""
    found = {}
    for name in chosen.names:
        path = chosen.folder / layout.receipt_name(name)
        if packed.holds(path):
            continue
        data = _whole(path, name)
        if data is not None:
            found[name] = data
        elif os.path.lexists(path):  # or else another process has packed it meanwhile
            work.remarks.append(f"left loose, since ledger verify finds it wrong: {path.relative_to(work.ledger.root)}")
    return found


def _whole(path: Path, name: str) -> bytes | None:
    """The bytes of a receipt, canonical and of that digest; None when they are not, or cannot be read."""
    try:
        data = objects.read(path, MAX_RECEIPT)
    except StoreError:
        return None
    return data if digest.hex_of(digest.of_bytes(data)) == name and canonical.is_canonical(data) else None


def _loose(folder: Path) -> Iterator[str]:
    for item in sorted(os.listdir(folder)):  # noqa: PTH208 - many names, no Path for each
        name = layout.hex_of(item)
        if name is not None and not (folder / item).is_symlink() and (folder / item).is_file():
            yield name


def _remove(work: _Work) -> None:
    """Take away the loose files, and the folders that are empty then."""
    for path in work.loose:
        path.unlink(missing_ok=True)
    for folder in work.sessions:
        with suppress(OSError):  # it has blobs, or something else that is not ours to remove
            if not _is_being_written(folder):  # or else its writer would hold a folder that is gone
                folder.rmdir()
