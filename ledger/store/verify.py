"""Is the ledger what it says it is? Every way in which it is not, as a value.

What it does: checks what stands in the folders, packs, and every session (``verify_session``), several at once where there are
processors for it, and that what receipts name is there. What it does not do: mend anything, follow a link, or read git's history.
Rules kept: nothing that it finds stops it; each finding names its file; every receipt is read once, in flat memory but for the
links between sessions.
"""

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import groupby
from pathlib import Path

from ledger.core import digest
from ledger.core.errors import LedgerError, StoreError, shorten
from ledger.store import large, layout, packs
from ledger.store.finding import REMOVE, RESTORE, Checked, Finding, finding, listed, reason, stranger
from ledger.store.ledger import Ledger
from ledger.store.packs import packed_in
from ledger.store.verify_session import Away, Outward, Report, check_session

__all__ = ["Checked", "Finding", "verify"]

KEPT = (".gitkeep", "README.md")
# Sessions that one process takes at a time, and from how many on more than one process is worth its start.
AT_A_TIME = 32
FEW = 256

Watch = Callable[[int, int], None]


def _nobody(done: int, of: int) -> None:
    """Hear nothing."""


def verify(ledger: Ledger, checked: Checked, watch: Watch = _nobody, *, fetch: bool = False) -> Iterator[Finding]:
    """Every finding: of the folders, session after session, and of links between sessions; ``checked`` is counted up.

    ``watch`` is told now and then how many sessions are done, and of how many. With ``fetch`` large blobs that are not on this
    machine are fetched from the blob store and checked; without it nothing touches a network.
    """
    yield from _above_sessions(ledger, checked)
    outward: list[Outward] = []
    sessions = list(ledger.sessions())
    for report in _reports(ledger, sessions):
        checked.add(report.checked)
        watch(checked.sessions, len(sessions))
        yield from report.findings
        outward += report.outward
        yield from _fetched(ledger, report.away, checked) if fetch else ()
    yield from _dangling(ledger, outward)


def _fetched(ledger: Ledger, away: Sequence[Away], checked: Checked) -> Iterator[Finding]:
    """Fetch the blobs; what is wrong with those that could not be, or that have other bytes."""
    for item in away:
        try:
            large.fetch(ledger, item.blob)
        except LedgerError as error:
            problem = error.problems[0]
            what = f"its blob {digest.short(shorten(item.blob.digest), 16)}…: {problem.what}"
            yield finding(ledger, item.path, "blob-missing", what, problem.hint or RESTORE)
        else:
            checked.away -= 1
            checked.blobs += 1


def _reports(ledger: Ledger, sessions: Sequence[Path]) -> Iterator[Report]:
    """A report for every few sessions of a month, in order."""
    parts = [
        tuple(month[at : at + AT_A_TIME])
        for month in (list(group) for _, group in groupby(sessions, key=lambda folder: folder.parent))
        for at in range(0, len(month), AT_A_TIME)
    ]
    check = partial(_check, ledger)
    # Where a process cannot be split off safely, and where a second one has no processor, there is one.
    workers = len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
    if workers < 2 or len(sessions) < FEW:
        yield from map(check, parts)
        return
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("fork"), _leave_interrupts_to_the_parent)
    try:
        yield from pool.map(check, parts)
    finally:
        pool.shutdown(cancel_futures=True)


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _check(ledger: Ledger, sessions: Sequence[Path]) -> Report:
    """Check some sessions of one month; loose receipts are listed before packs, so that none is missed on its way into one."""
    report = Report()
    entries = [listed(folder) for folder in sessions]
    packed = packed_in(sessions[0].parent)
    for folder, loose in zip(sessions, entries, strict=True):
        check_session(ledger, folder, loose, packed.get(folder.name, ()), report)
    return report


def _dangling(ledger: Ledger, outward: Sequence[Outward]) -> Iterator[Finding]:
    """Links between sessions that lead to no receipt of the ledger."""
    wanted = {item.target for item in outward}
    if wanted:
        wanted.difference_update(digest.PREFIX + name for _, names in ledger.names() for name in names)
    for item in outward:
        if item.target in wanted:
            what = f"{item.role} names {digest.short(shorten(item.target), 16)}…, which is not in the ledger"
            yield finding(ledger, item.path, "dangling", what, "fetch the branch that has it")


def _pack(ledger: Ledger, path: Path, checked: Checked) -> Iterator[Finding]:
    """A pack as a file; its receipts are checked with their sessions."""
    checked.packs += 1
    try:
        packs.blocks(path)
        whole = layout.pack_name(digest.hex_of(digest.of_file(path))) == path.name
    except StoreError as error:
        yield finding(ledger, path, "pack", error.problems[0].what, RESTORE)
    except OSError as error:
        yield finding(ledger, path, "unreadable", reason(error))
    else:
        if not whole:
            yield finding(ledger, path, "pack", "the bytes are not those of the name", RESTORE)


def _above_sessions(ledger: Ledger, checked: Checked) -> Iterator[Finding]:
    """What stands in the folders above the sessions and is no part of a ledger."""
    if ledger.receipts.is_symlink():
        yield finding(ledger, ledger.receipts, "link", "a symbolic link, which is never followed", REMOVE)
        return
    levels = [ledger.receipts]
    for pattern in (layout.YEAR, layout.MONTH, layout.SESSION):
        below: list[Path] = []
        for parent in levels:
            for entry in listed(parent):
                if isinstance(entry, str):
                    yield finding(ledger, parent, "unreadable", entry)
                elif pattern.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                    below.append(Path(entry.path))
                elif pattern is layout.SESSION and layout.pack_of(entry.name) and entry.is_file(follow_symlinks=False):
                    yield from _pack(ledger, Path(entry.path), checked)
                elif entry.name not in KEPT or parent != ledger.receipts or entry.is_symlink():
                    yield stranger(ledger, entry, "no part of a ledger")
        levels = below
