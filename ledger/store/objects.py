"""Files that are written whole or not at all, and never written over.

What it does: puts bytes under a name durably and exclusively, and reads files without surprises. What it does not do: know what
the bytes are. Rules kept: bytes go to a file of the state folder first, are synced, and are linked into place, so that a name
in ``receipts/`` always has all of its bytes; an existing name with the same bytes is fine, with others it is an error; a link
is never followed.
"""

import errno
import os
import stat
from pathlib import Path

from ledger.core.errors import Place, Problem, StoreError

_HINTS = {
    errno.ENOSPC: "the disk is full: free some space and run it again; nothing was half-written",
    errno.EDQUOT: "the disk quota is used up; nothing was half-written",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "check who owns the folder",
    errno.EPERM: "check who owns the folder",
}


def put(path: Path, data: bytes, scratch: Path) -> bool:
    """Write ``data`` to ``path`` durably; whether it is new there. ``scratch`` is a folder of the same file system.

    Raises:
        StoreError: the name is taken by other bytes, or the disk refuses.
    """
    try:
        if _is_there(path, data):
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch.mkdir(parents=True, exist_ok=True)
        return _link(_write(scratch, path.name, data), path, data)
    except OSError as error:
        raise refused(error, path) from error


def read(path: Path, limit: int) -> bytes:
    """The bytes of a regular file of at most ``limit`` bytes, without following a link.

    Raises:
        StoreError: missing, not a regular file, or larger.
    """
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise StoreError(Problem(what="not a regular file", place=Place(file=str(path))))
            if status.st_size > limit:
                what = f"{status.st_size} bytes, and at most {limit} are read"
                raise StoreError(Problem(what=what, place=Place(file=str(path))))
            return file.read(limit)
    except OSError as error:
        raise refused(error, path) from error


def sweep(scratch: Path) -> int:
    """Remove what dead processes left in ``scratch``; how many files that were."""
    removed = 0
    for path in scratch.glob("*.tmp") if scratch.is_dir() else ():
        owner = path.name.split(".")[0]
        if owner.isdigit() and not Path("/proc", owner).exists():
            path.unlink(missing_ok=True)
            removed += 1
    return removed


def refused(error: OSError, path: Path) -> StoreError:
    """What the system refused, as an error with a way out."""
    what = "a link stands where a file should" if error.errno == errno.ELOOP else (error.strerror or str(error)).lower()
    return StoreError(Problem(what=what, place=Place(file=str(path)), hint=_HINTS.get(error.errno or 0)))


def _is_there(path: Path, data: bytes) -> bool:
    if not os.path.lexists(path):
        return False
    if read(path, max(len(data), path.lstat().st_size)) == data:
        return True
    raise StoreError(Problem(what="other bytes stand under this name already", place=Place(file=str(path)), hint="ledger verify"))


def _write(scratch: Path, name: str, data: bytes) -> Path:
    temporary = scratch / f"{os.getpid()}.{os.urandom(6).hex()}.{name[:16]}.tmp"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
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
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(path.parent)
    return True


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
