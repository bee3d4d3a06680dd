"""One session at a time on a node.

What it does: takes a lock for each machine of a session, all or none, and names the holder of one that is taken. What it does not
do: reach a node; a lock is kept on the machine of the runner, and holds for the sessions that one user starts there. Rules kept:
the kernel holds the lock and lets go of it when its holder ends, however it ends, so that no age and no left-over file is ever
taken for a holder; sessions on other nodes are not held up.
"""

import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from attrs import asdict, frozen

from ledger.core import canonical
from ledger.core.errors import BackendError, Problem
from ledger.core.text import visible
from ledger.store import objects

LOCAL = ("localhost", "127.0.0.1", "::1")
MAX_HOLDER = 4096


class BusyError(BackendError):
    """Another session runs on a node."""


@frozen(kw_only=True)
class Holder:
    """Who holds a lock: the process, its machine, its session, and since when (RFC 3339)."""

    pid: int
    host: str
    session: str
    since: str


@contextmanager
def held(folder: Path, hosts: Iterable[str], holder: Holder) -> Iterator[None]:
    """Hold every machine of ``hosts`` while the body runs.

    Raises:
        BusyError: with one problem for each machine that another session holds.
        StoreError: the folder of locks cannot be written.
    """
    machines = sorted({"localhost" if host.lower() in (*LOCAL, holder.host.lower()) else host for host in hosts})
    problems: list[Problem] = []
    with ExitStack() as stack:
        for machine in machines:
            path = folder / f"{hashlib.sha256(machine.encode()).hexdigest()[:16]}.lock"
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
                stack.callback(os.close, fd)
                if _take(fd, holder):
                    continue
            except OSError as error:
                raise objects.refused(error, path) from error
            problems.append(_busy(machine, fd))
        if problems:
            raise BusyError(problems)
        yield


def _take(fd: int, holder: Holder) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    os.ftruncate(fd, 0)
    os.pwrite(fd, canonical.encode(asdict(holder)), 0)
    return True


def _busy(machine: str, fd: int) -> Problem:
    """Who has it, by what the holder wrote; a holder that has not written yet is still a holder."""
    try:
        found = canonical.decode(os.pread(fd, MAX_HOLDER, 0))
        told = f"session {found['session']}, process {found['pid']} on {found['host']}, since {found['since']}"
    except (canonical.CanonicalError, KeyError, TypeError):
        told = "a session that is just beginning"
    what = f"another session runs on node host {machine}: {visible(told)}"
    return Problem(what=what, hint="wait for it to end, or end that process: the lock goes with it")
