"""Files that are written whole or not at all, and never written over.

What it does: puts bytes under a name durably and exclusively, and reads files without surprises. What it does not do: know what
the bytes are. Rules kept: bytes go to a file of the state folder first, are synced, and are linked into place, so that a name
in ``receipts/`` always has all of its bytes; an existing name with the same bytes is fine, with others it is an error; no link
is followed below the ledger's folder, neither for a file nor for a folder above it.
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ledger.core.errors import Place, Problem, StoreError

_HINTS = {
    errno.ENOSPC: "the disk is full: free some space and run it again; nothing was half-written",
    errno.EDQUOT: "the disk quota is used up; nothing was half-written",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "check who owns the folder",
    errno.EPERM: "check who owns the folder",
    errno.EXDEV: "the state folder must be on the file system of the receipts",
    errno.EIO: "the disk does not read or write: look at the kernel's log",
    errno.EMFILE: "too many files are open: ulimit -n",
    errno.ENFILE: "too many files are open on this machine",
}
# What the system refuses for a reason outside of this program.
FAULTS = frozenset(_HINTS)
# What file systems without hard links answer (exFAT, some network and container mounts).
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
_PIECE = 1 << 20
# No link is followed, and nobody waits at a pipe.
_TO_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


def put(path: Path, data: bytes, *, root: Path, scratch: Path, mode: int = 0o644) -> bool:
    """Write ``data`` to ``path`` durably; whether it is new there. ``path`` and ``scratch`` are below ``root``, on one disk.

    Raises:
        StoreError: the name is taken by other bytes, a link is in the way, or the disk refuses.
    """
    try:
        if _is_there(path, data):
            return False
        make_folder(path.parent, root)
        make_folder(scratch, root)
        return _link(_write(scratch, path.name, [data], mode), path, data)
    except OSError as error:
        raise refused(error, path) from error


def put_pieces(path: Path, pieces: Iterable[bytes], *, root: Path, scratch: Path) -> bool:
    """As :func:`put`, with bytes that come in pieces and are too many to hold; a file that is there is left as it is.

    Raises:
        StoreError: a link is in the way, or the disk refuses. Whatever ``pieces`` raises; nothing is left then.
    """
    try:
        if os.path.lexists(path) and not path.is_symlink():
            return False
        make_folder(path.parent, root)
        make_folder(scratch, root)
        temporary = _write(scratch, path.name, pieces)
        temporary.rename(path)
        sync_folder(path.parent)
    except OSError as error:
        raise refused(error, path) from error
    return True


def replace(path: Path, data: bytes, *, scratch: Path | None = None) -> None:
    """Write ``data`` to ``path`` durably, whole or not at all, in the place and with the permissions of a file that is there.

    It is written in ``scratch`` first, on the same disk, or beside ``path``.

    Raises:
        StoreError: the disk refuses; what was there is as it was.
    """
    try:
        temporary = _write(scratch or path.parent, path.name, [data])
        try:
            if path.exists():
                temporary.chmod(path.stat().st_mode & 0o777)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(path.parent)
    except OSError as error:
        raise refused(error, path) from error


def read(path: Path | str, limit: int) -> bytes:
    """The bytes of a regular file of at most ``limit`` bytes, without following a link. A ``str`` is read as quickly as can be.

    Raises:
        StoreError: missing, not a regular file, or larger.
    """
    try:
        fd = os.open(path, _TO_READ)
        try:
            return _read_regular(fd, path, limit)
        finally:
            os.close(fd)
    except OSError as error:
        raise refused(error, path) from error


@contextmanager
def opened(path: Path | str) -> Iterator[int]:
    """A descriptor to read ``path`` by, which is no link; not stuck on a pipe.

    Raises:
        OSError: it cannot be opened, or is a link.
    """
    fd = os.open(path, _TO_READ)
    try:
        yield fd
    finally:
        os.close(fd)


def make_folder(folder: Path, root: Path) -> None:
    """Make ``folder`` and what is missing above it below ``root``, durably; what is there must be real folders.

    Raises:
        StoreError: a link or a file stands where a folder should. OSError: the disk refuses.
    """
    for place in (*reversed(folder.relative_to(root).parents), folder.relative_to(root)):
        here = root / place
        try:
            mode = here.lstat().st_mode
        except FileNotFoundError:
            here.mkdir(exist_ok=True)
            sync_folder(here.parent)
            mode = here.lstat().st_mode
        if not stat.S_ISDIR(mode) and here != root:
            raise StoreError(Problem(what="not a folder, and a link is never followed", place=Place(file=str(here))))


def new_folder(folder: Path, root: Path) -> None:
    """Make ``folder`` below ``root``, durably.

    Raises:
        FileExistsError: it is there already. StoreError, OSError: as :func:`make_folder`.
    """
    make_folder(folder.parent, root)
    folder.mkdir()
    sync_folder(folder.parent)


def sweep(scratch: Path) -> int:
    """Remove what dead processes left in ``scratch``; how many files that were."""
    removed = 0
    for path in scratch.glob("*.tmp") if scratch.is_dir() else ():
        owner = path.name.split(".")[0]
        if not is_alive(owner):
            path.unlink(missing_ok=True)
            removed += 1
    return removed


def is_alive(process: str) -> bool:
    """Whether the process of this number runs; of what is no number, too, since nobody may then remove what it has."""
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except (ValueError, OverflowError, PermissionError):
        return True
    return True


def refused(error: OSError, path: Path | str | None) -> StoreError:
    """What the system refused, as an error with a way out; ``path`` is None where the system does not say of what."""
    what = "a link stands where a file should" if error.errno == errno.ELOOP else (error.strerror or str(error)).lower()
    place = Place(file=str(path)) if path is not None else None
    return StoreError(Problem(what=what, place=place, hint=_HINTS.get(error.errno or 0)))


def _read_regular(fd: int, path: Path | str, limit: int) -> bytes:
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        raise StoreError(Problem(what="not a regular file", place=Place(file=str(path))))
    if status.st_size > limit:
        what = f"{status.st_size} bytes, and at most {limit} are read"
        raise StoreError(Problem(what=what, place=Place(file=str(path))))
    data = os.read(fd, status.st_size)
    if len(data) == status.st_size:
        return data
    pieces = [data]
    while (left := status.st_size - sum(map(len, pieces))) and (piece := os.read(fd, min(left, _PIECE))):
        pieces.append(piece)
    return b"".join(pieces)


def _is_there(path: Path, data: bytes) -> bool:
    if not os.path.lexists(path):
        return False
    if path.lstat().st_size == len(data) and read(path, len(data)) == data:
        return True
    raise StoreError(Problem(what="other bytes stand under this name already", place=Place(file=str(path)), hint="ledger verify"))


def _write(scratch: Path, name: str, pieces: Iterable[bytes], mode: int = 0o644) -> Path:
    temporary = scratch / f"{os.getpid()}.{os.urandom(6).hex()}.{name[:16]}.tmp"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(fd, "wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _link(temporary: Path, path: Path, data: bytes) -> bool:
    try:
        os.link(temporary, path)
    except FileExistsError:
        return not _is_there(path, data)
    except OSError as error:
        if error.errno not in _NO_LINKS or os.path.lexists(path):
            raise
        # Between two writers of one name the later one wins here; a name is a digest, so both have the same bytes.
        temporary.rename(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)
    return True


def sync_folder(folder: Path) -> None:
    """Have the names in ``folder`` on disk.

    Raises:
        OSError: the disk refuses.
    """
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
