"""A ledger on disk: found, walked and read.

What it does: finds the folder that ``ledger.toml`` marks, walks its receipts and reads them by digest, loose ones and packed ones
alike. What it does not do: write receipts (``session``), commit (``git``) or judge what it finds (``verify``). Rules kept: a
walk is in name order, follows no link and reads no content but the headers of packs; what is no session folder, receipt or
whole pack is passed over here and told by ``verify``; loose receipts are listed before packs, and one that is packed after it was
listed is read from its pack, so that nothing is missed while ``packing`` is at work.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from attrs import frozen

from ledger.core import digest
from ledger.core.digest import Descriptor
from ledger.core.errors import NoLedgerError, NotFoundError, Place, Problem, StoreError
from ledger.core.late import Late
from ledger.store import layout, objects, packs
from ledger.store.packs import Block, packed_in
from ledger.store.settings import settings_of

if TYPE_CHECKING:
    from ledger.receipt import codec
    from ledger.receipt.model import Receipt
else:
    codec = Late("ledger.receipt.codec")

MAX_RECEIPT = 64 * 2**20
MAX_BLOB = 4 * 2**30
LISTED = 8
SHORTEST = 4
MARKER_TEXT = """\
# This folder is a ledger: receipts are under receipts/, what can be rebuilt is under .ledger/ (git-ignored).
ledger = 1
"""


@frozen(kw_only=True)
class Stored:
    """A receipt's place: its digest, its session, the file, and the block of it when that file is a pack."""

    digest: str
    session: str
    path: Path
    block: Block | None = None


@frozen(kw_only=True)
class Ledger:
    """A ledger, by the folder that holds ``ledger.toml``."""

    root: Path

    @property
    def receipts(self) -> Path:
        """The folder of all receipts."""
        return self.root / layout.RECEIPTS

    @property
    def state(self) -> Path:
        """What can be rebuilt, and is not in git: indexes, caches, scratch."""
        return self.root / layout.STATE

    @property
    def scratch(self) -> Path:
        """Where files are written before they are linked into place."""
        return self.state / "tmp"

    @classmethod
    def find(cls, start: Path) -> Self:
        """The ledger that holds ``start``, in a git work tree.

        Raises:
            NoLedgerError: no ``ledger.toml`` here or above, one of a newer layout, or no git repository around it.
            StoreError: ``ledger.toml`` cannot be read, or a link stands where a folder of the ledger should.
        """
        here = start.resolve()
        if not here.is_dir():
            raise NoLedgerError(Problem(what="no such folder", value=str(start)))
        for folder in (here, *here.parents):
            if (folder / layout.MARKER).is_file():
                if git_root(folder) is None:
                    raise NoLedgerError("a ledger outside a git repository", hint=f"git init {folder}")
                settings_of(folder)
                _refuse_links(folder)
                return cls(root=folder)
        if git_root(here) is None:
            raise NoLedgerError("no ledger here, and no git repository", hint="git init, then: ledger init")
        raise NoLedgerError("no ledger here: no ledger.toml in this folder or above", hint="ledger init starts one")

    def months(self) -> Iterator[Path]:
        """The folders of all months, in name order."""
        if self.receipts.is_symlink():
            return
        for year in folders(self.receipts, layout.YEAR.fullmatch):
            yield from folders(year, layout.MONTH.fullmatch)

    def sessions(self) -> Iterator[Path]:
        """The folders of all sessions, in name order; one whose receipts are all packed may not be there as a folder."""
        for month in self.months():
            names = {folder.name for folder in folders(month, layout.SESSION.fullmatch)}
            yield from (month / name for name in sorted(names | packed_in(month).keys()))

    def walk(self) -> Iterator[Stored]:
        """Every receipt, session after session, each by name; one that is both loose and packed is given once, as loose."""
        for folder, loose, blocks in self._listed():
            yield from _stored(folder, loose, blocks)

    def names(self) -> Iterator[tuple[str, set[str]]]:
        """Every session with the bare digests of its receipts: what is left of a walk where nobody asks for places."""
        for folder, loose, blocks in self._listed():
            yield folder.name, {*loose, *(name for block in blocks for name in block.names())}

    def _listed(self) -> Iterator[tuple[Path, frozenset[str], Sequence[Block]]]:
        """Every session folder in name order, its loose receipts, and its blocks in packs."""
        for month in self.months():
            loose = {folder.name: _loose(folder) for folder in folders(month, layout.SESSION.fullmatch)}
            packed = packed_in(month)
            for name in sorted(loose.keys() | packed.keys()):
                yield month / name, loose.get(name, frozenset()), packed.get(name, ())

    def in_session(self, folder: Path) -> list[Stored]:
        """The receipts of a session, by name."""
        loose = _loose(folder)
        return list(_stored(folder, loose, packed_in(folder.parent).get(folder.name, ())))

    def place_of(self, wanted: str) -> Stored:
        """Where the receipt of a full digest stands.

        Raises:
            NotFoundError: the ledger has no such receipt.
        """
        plain = digest.hex_of(wanted)
        name = layout.receipt_name(plain)
        blocks: list[Block] = []
        for month in self.months():
            for folder in folders(month, layout.SESSION.fullmatch):
                if os.path.lexists(folder / name):
                    return Stored(digest=wanted, session=folder.name, path=folder / name)
            blocks += (block for listed in packed_in(month).values() for block in listed)
        for block in blocks if layout.HEX.fullmatch(plain) else ():
            if block.holds(plain):
                return Stored(digest=wanted, session=block.session, path=block.path, block=block)
        raise NotFoundError(Problem(what="no such receipt", value=wanted))

    def path_of(self, wanted: str) -> Path:
        """The file of a full digest: its own, or the pack that holds it.

        Raises:
            NotFoundError: the ledger has no such receipt.
        """
        return self.place_of(wanted).path

    def read(self, wanted: str) -> "Receipt":
        """The receipt of a full digest; its bytes are checked against its name.

        Raises:
            NotFoundError: there is none. StoreError: its bytes are not those of its name.
        """
        return codec.decode(self.read_bytes(wanted))

    def read_bytes(self, wanted: str) -> bytes:
        """The bytes of a receipt, checked against its name."""
        return load(self.place_of(wanted))

    def read_blob(self, session: str, wanted: Descriptor) -> bytes:
        """The bytes of a blob of ``session``, checked against its descriptor.

        Raises:
            NotFoundError: it is not there. StoreError: other bytes stand in its place.
        """
        if not digest.is_digest(wanted.digest) or not 0 <= wanted.size <= MAX_BLOB:
            raise StoreError(Problem(what="not the descriptor of a blob", value=f"{wanted.digest}, {wanted.size} bytes"))
        for folder in self.sessions():
            path = folder / layout.BLOBS / digest.hex_of(wanted.digest)
            if folder.name == session and not path.parent.is_symlink() and os.path.lexists(path):
                data = objects.read(path, wanted.size)
                return _checked(data, wanted, path)
        if (kept := self.large_blob(wanted.digest)) is not None:
            return _checked(objects.read(kept, wanted.size), wanted, kept)
        raise NotFoundError(Problem(what=f"no such blob in session {session}", value=wanted.digest))

    def large_blob(self, name: str) -> Path | None:
        """The file of a blob that is kept outside of git on this machine, by its digest; None when it is not here."""
        plain = digest.hex_of(name)
        found = (self.state / layout.BLOBS / part / plain for part in (layout.WAITING, layout.KEPT))
        return next((path for path in found if layout.HEX.fullmatch(plain) and path.is_file() and not path.is_symlink()), None)

    def resolve(self, prefix: str) -> str:
        """The full digest of the one receipt whose digest begins with ``prefix`` (at least four hex digits).

        Raises:
            NotFoundError: none begins so, or several; those are listed.
        """
        wanted = digest.hex_of(prefix.strip().lower())
        if len(wanted) < SHORTEST:
            raise NotFoundError(Problem(what=f"fewer than {SHORTEST} digits of a digest", value=prefix, hint="give more digits"))
        found = {name: session for session, names in self.names() for name in names if name.startswith(wanted)}
        if not found:
            raise NotFoundError(Problem(what="no receipt begins so", value=prefix, hint="ledger log lists them"))
        if len(found) > 1:
            listed = ", ".join(f"{digest.short(name, 16)} ({session})" for name, session in sorted(found.items())[:LISTED])
            raise NotFoundError(Problem(what=f"{len(found)} receipts begin so", value=prefix, hint=f"give more digits: {listed}"))
        return digest.PREFIX + next(iter(found))


def _checked(data: bytes, wanted: Descriptor, path: Path) -> bytes:
    """The bytes of a blob, if they are those that its descriptor names."""
    if len(data) != wanted.size or digest.of_bytes(data) != wanted.digest:
        raise StoreError(Problem(what="the blob's bytes are not those of its name and size", place=Place(file=str(path))))
    return data


def load(stored: Stored) -> bytes:
    """The bytes of a receipt, checked against its name.

    Raises:
        StoreError: it cannot be read, or its bytes are not those of its name.
    """
    data = bytes_of(stored)
    if digest.of_bytes(data) != stored.digest:
        raise StoreError(
            Problem(what="the bytes are not those of the name", place=Place(file=str(stored.path)), hint="ledger verify")
        )
    return data


def bytes_of(stored: Stored) -> bytes:
    """The bytes at a receipt's place; one that was packed since it was found there is read from its pack. Nothing is checked.

    Raises:
        StoreError: it cannot be read.
    """
    name = digest.hex_of(stored.digest)
    if stored.block is not None:
        return packs.line(stored.block, name)
    try:
        return objects.read(stored.path, MAX_RECEIPT)
    except StoreError:
        month = stored.path.parent.parent
        if os.path.lexists(stored.path) or (block := packs.find(month, stored.session, name)) is None:
            raise
    return packs.line(block, name)


def _loose(folder: Path) -> frozenset[str]:
    try:
        names = os.listdir(folder)  # noqa: PTH208 - many names, no Path for each
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()
    return frozenset(name for item in names if (name := layout.hex_of(item)) is not None)


def _stored(folder: Path, loose: frozenset[str], blocks: Sequence[Block]) -> Iterator[Stored]:
    packed = {name: block for block in blocks for name in block.names()}
    for name in sorted(loose | packed.keys()):
        block = None if name in loose else packed[name]
        path = block.path if block else folder / layout.receipt_name(name)
        yield Stored(digest=digest.PREFIX + name, session=folder.name, path=path, block=block)


def folders(parent: Path, named: Callable[[str], object]) -> list[Path]:
    """The real folders in ``parent`` whose name ``named`` accepts, in name order; links are passed over."""
    try:
        with os.scandir(parent) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False) and named(entry.name)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [parent / name for name in sorted(names)]


def git_root(start: Path) -> Path | None:
    """The work tree that holds ``start``: the folder with ``.git`` in it (a folder, or a file in a linked work tree)."""
    return next((folder for folder in (start, *start.parents) if (folder / ".git").exists()), None)


def _refuse_links(root: Path) -> None:
    """A link in place of these folders would lead reads and writes out of the repository."""
    for name in (layout.RECEIPTS, layout.STATE):
        if (root / name).is_symlink():
            what = "a symbolic link, which is never followed, stands where a folder of the ledger should"
            raise StoreError(Problem(what=what, place=Place(file=str(root / name)), hint="remove it"))
