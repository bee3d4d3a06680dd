"""The journal of a session: what it was asked, and each step before it acts.

What it does: appends one line for each step, synced before the step begins; reads the journals that no ended session removed.
What it does not do: hold a result (those are receipts), or decide what is left to do (``past``). Rules kept: a line counts when
its checksum is right, and what a crash left behind the last such line is cut off; one process at a time holds a journal, by a
lock that ends with it; the file is its owner's alone, since it holds the spec and the site word for word.
"""

import fcntl
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from attrs import asdict, frozen

from ledger.core import canonical
from ledger.core.errors import Place, Problem, StoreError
from ledger.store import objects

SUFFIX = ".journal"
CHECK = 16
MAX_JOURNAL = 64 * 2**20


@frozen(kw_only=True)
class Opening:
    """What a session was asked: all that it takes to plan it again.

    ``plan`` is the digest of the plan that was made of it. The files are where spec and site were read, for messages.
    """

    session: str
    at: str
    spec_file: str
    spec: str
    site_file: str
    site: str
    plan: str
    only: tuple[str, ...] = ()


@frozen(kw_only=True)
class Past:
    """A journal as it was read: its file, its opening, the steps, and whether a process holds it now."""

    path: Path
    opening: Opening
    steps: tuple[Mapping[str, Any], ...]
    is_running: bool

    @property
    def last(self) -> str:
        """What the session was about to do when it was last heard of, in words."""
        return str(self.steps[-1].get("step", "")) if self.steps else "begin"


class Journal:
    """A journal that this process holds; use :func:`begin` or :func:`reopen`."""

    def __init__(self, path: Path, fd: int) -> None:
        self._path = path
        self._fd = fd

    @classmethod
    def begin(cls, folder: Path, opening: Opening) -> Self:
        """Start the journal of a session, durably.

        Raises:
            StoreError: the disk refuses.
        """
        path = folder / (opening.session + SUFFIX)
        temporary = path.with_suffix(".new")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _append(fd, asdict(opening))
            temporary.rename(path)
            objects.sync_folder(folder)
        except OSError as error:
            raise objects.refused(error, path) from error
        return cls(path, fd)

    @classmethod
    def reopen(cls, past: Past) -> Self:
        """Hold the journal of a killed session, cut to its last whole line.

        Raises:
            StoreError: another process holds it, or the disk refuses.
        """
        try:
            fd = os.open(past.path, os.O_RDWR | os.O_NOFOLLOW)
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            whole = sum(len(line) for line in _whole_lines(_read(fd)))
            os.ftruncate(fd, whole)
            os.lseek(fd, whole, os.SEEK_SET)
        except BlockingIOError as error:
            what = "this session is running in another process"
            raise StoreError(Problem(what=what, value=past.opening.session, hint="wait for it to end")) from error
        except OSError as error:
            raise objects.refused(error, past.path) from error
        return cls(past.path, fd)

    def note(self, step: str, **facts: str | int) -> None:
        """Say what is about to be done; on disk when this returns.

        Raises:
            StoreError: the disk refuses.
        """
        try:
            _append(self._fd, {"step": step, **facts})
        except OSError as error:
            raise objects.refused(error, self._path) from error

    def end(self) -> None:
        """The session is over and committed: nothing is left to resume."""
        self._path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the journal, so that a session that did not end can be resumed."""
        os.close(self._fd)


def unfinished(folder: Path) -> list[Past]:
    """The journals of sessions that did not end, the oldest first; one without a whole first line began nothing.

    Raises:
        StoreError: a journal cannot be read.
    """
    found = []
    for path in folder.glob(f"*{SUFFIX}") if folder.is_dir() else ():
        try:
            past = _past(path)
        except FileNotFoundError:
            continue  # it ended just now
        except OSError as error:
            raise objects.refused(error, path) from error
        if past is not None:
            found.append(past)
    return sorted(found, key=lambda past: past.opening.at)


def _past(path: Path) -> Past | None:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        lines = _whole_lines(_read(fd))
        is_running = _is_held(fd)
    finally:
        os.close(fd)
    if not lines:
        return None
    first, *steps = (canonical.decode(line[CHECK + 1 : -1]) for line in lines)
    try:
        opening = Opening(**{**first, "only": tuple(first.get("only", ()))})
    except TypeError as error:
        what, hint = "the journal of another version of ledger", "resume it with the version that began it"
        raise StoreError(Problem(what=what, place=Place(file=str(path)), hint=hint)) from error
    return Past(path=path, opening=opening, steps=tuple(steps), is_running=is_running)


def _is_held(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _read(fd: int) -> bytes:
    os.lseek(fd, 0, os.SEEK_SET)
    pieces = []
    left = MAX_JOURNAL
    while left and (piece := os.read(fd, min(left, 2**20))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def _whole_lines(data: bytes) -> Sequence[bytes]:
    """The lines from the first on whose checksum is right."""
    found = []
    for line in data.splitlines(keepends=True):
        if not line.endswith(b"\n") or line[:CHECK] != _check(line[CHECK + 1 : -1]) or line[CHECK : CHECK + 1] != b" ":
            break
        found.append(line)
    return found


def _append(fd: int, value: Mapping[str, Any]) -> None:
    text = canonical.encode({name: list(item) if isinstance(item, tuple) else item for name, item in value.items()})
    line = memoryview(_check(text) + b" " + text + b"\n")
    while line:
        line = line[os.write(fd, line) :]
    os.fsync(fd)


def _check(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest()[:CHECK].encode()
