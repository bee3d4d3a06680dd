"""Starting a ledger in a git repository that is there.

What it does: writes ``ledger.toml``, the ``receipts/`` folder, and the lines of ``.gitignore`` and ``.gitattributes`` that a
ledger needs. What it does not do: commit them, or make a repository. Rules kept: what is there is kept byte for byte, lines are
only added; doing it twice changes nothing; no link is followed, since it may lead out of the repository.
"""

import os
from pathlib import Path

from ledger.core.errors import NoLedgerError, Place, Problem, StoreError
from ledger.store import layout, objects
from ledger.store.ledger import MARKER_TEXT, Ledger, git_root
from ledger.store.settings import settings_of

IGNORED = f"{layout.STATE}/"
ATTRIBUTES = f"{layout.RECEIPTS}/** -text"
MAX_LINES = 16 * 2**20
RESERVED = frozenset({".git", layout.STATE})


def start(folder: Path) -> tuple[Ledger, list[Path]]:
    """Make ``folder`` a ledger; returns it and the files that were written.

    Raises:
        NoLedgerError: the folder is in no git repository, in git's own folder or in another ledger's, or is a ledger of another
            layout.
        StoreError: a link, or something that is no file or folder, is in the way, or the disk refuses.
    """
    root = folder.resolve()
    top = git_root(root)
    if top is None:
        raise NoLedgerError(
            "no git repository here: receipts are kept in git", hint=f"git init {folder}, then: ledger init {folder}"
        )
    _refuse_inside(root, top)
    _refuse_what_is_there(root)
    try:
        objects.make_folder(root / layout.RECEIPTS, top)
        written = [
            *_ensure_file(root / layout.MARKER, MARKER_TEXT),
            *_ensure_file(root / layout.RECEIPTS / ".gitkeep", ""),
            *_ensure_line(root / ".gitignore", IGNORED),
            *_ensure_line(root / ".gitattributes", ATTRIBUTES),
        ]
    except OSError as error:
        raise objects.refused(error, Path(error.filename or root)) from error
    return Ledger(root=root), written


def _refuse_inside(root: Path, top: Path) -> None:
    """Refuse git's own folder, and the folders that a ledger above keeps for itself."""
    if RESERVED & set(root.relative_to(top).parts):
        raise NoLedgerError(f"no place for a ledger: {root}", hint=f"a folder of your files, for example {top}")
    for above in (folder for folder in root.parents if (folder / layout.MARKER).is_file()):
        if root.is_relative_to(above / layout.RECEIPTS):
            raise NoLedgerError(f"a ledger is here already: {above}", hint="its receipts/ folder can hold no other")


def _refuse_what_is_there(root: Path) -> None:
    """Refuse what stands in the way before anything is written."""
    for name in (f"{layout.RECEIPTS}/.gitkeep", ".gitignore", ".gitattributes", layout.MARKER):
        _is_file(root / name)
    if (root / layout.MARKER).exists():
        settings_of(root)


def _ensure_file(path: Path, text: str) -> list[Path]:
    if _is_file(path):
        return []
    _append(path, text.encode())
    return [path]


def _ensure_line(path: Path, line: str) -> list[Path]:
    # As bytes: the user's own lines may be of any encoding.
    data = objects.read(path, MAX_LINES) if _is_file(path) else b""
    if line.encode() in data.splitlines():
        return []
    # A file whose last line has no newline must not have two lines glued together.
    gap = b"" if not data or data.endswith(b"\n") else b"\n"
    _append(path, gap + line.encode() + b"\n")
    return [path]


def _is_file(path: Path) -> bool:
    """Whether a regular file is there; whatever else stands in its place is refused."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise StoreError(Problem(what="not a regular file, and a link is never followed", place=Place(file=str(path))))
    return path.exists()


def _append(path: Path, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
