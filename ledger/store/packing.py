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
class Choice:
    """The session folders whose loose receipts may be packed, month by month, and why others may not."""

    months: tuple[tuple[Path, tuple[Path, ...]], ...]
    remarks: tuple[str, ...]

    def loose(self) -> Iterator[Path]:
        """Every loose receipt of them."""
        for _, chosen in self.months:
            for folder in chosen:
                yield from (folder / layout.receipt_name(name) for name in _loose(folder))


def choose(ledger: Ledger, *, before: date | None = None) -> Choice:
    """Every session that is committed, is not being written, and began before that day (UTC) where one is given.

    Raises:
        StoreError: git does not say what is committed.
    """
    pending = {path.parent for path in uncommitted(ledger)}
    months: list[tuple[Path, tuple[Path, ...]]] = []
    remarks: list[str] = []
    for month in ledger.months():
        found = [folder for folder in folders(month, layout.SESSION.fullmatch) if _is_before(folder, before)]
        reasons = {folder: reason for folder in found if (reason := _reason_against(folder, pending)) is not None}
        remarks += (f"left loose, since it is {reason}: {folder.name}" for folder, reason in reasons.items())
        months.append((month, tuple(folder for folder in found if folder not in reasons)))
    return Choice(months=tuple(months), remarks=tuple(remarks))


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
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno == errno.EWOULDBLOCK
    finally:
        os.close(fd)
    return False


def _pack_month(work: _Work, month: Path, chosen: Sequence[Path]) -> None:
    """Write the packs of a month, or find that they are there, and take every loose receipt that they are proven to hold."""
    before = Proofs()
    receipts = ((folder.name, found) for folder in chosen if (found := _receipts(work, folder, before)))
    for data in make(receipts):
        path = month / layout.pack_name(digest.hex_of(digest.of_bytes(data)))
        objects.put(path, data, root=work.ledger.root, scratch=work.ledger.scratch)
    # What was written is read back here, from the disk, before anything rests on it.
    after = Proofs()
    used = set()
    for folder in chosen:
        for name in _loose(folder):
            path = folder / layout.receipt_name(name)
            holder = after.holder(path)
            if holder is not None:
                used.add(holder)
                work.take(path, path.lstat().st_size)
    work.packs += sorted(used)


def _receipts(work: _Work, folder: Path, packed: Proofs) -> dict[str, bytes]:
    """The loose receipts of a session that can be packed and are in no whole pack, by digest."""
    found = {}
    for name in _loose(folder):
        path = folder / layout.receipt_name(name)
        if packed.holds(path):
            continue
        data = objects.read(path, MAX_RECEIPT)
        if digest.hex_of(digest.of_bytes(data)) != name or not canonical.is_canonical(data):
            work.remarks.append(f"left loose, since ledger verify finds it wrong: {path.relative_to(work.ledger.root)}")
        else:
            found[name] = data
    return found


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
            folder.rmdir()
