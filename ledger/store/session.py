"""Writing the receipts of one session, in a chain.

What it does: wraps a body into a receipt with its place in the chain, and writes receipts and blobs durably; takes up a session
that a killed process left. What it does not do: commit them. Rules kept: a receipt's bytes are on disk before its digest is
returned; every receipt names the one before it; two threads of a session never get the same place; a session has one writer at
a time, which a lock on its folder holds and the end of the process releases.
"""

import errno
import fcntl
import os
import threading
import weakref
from pathlib import Path
from typing import Self

from ledger.core import digest
from ledger.core.clock import Clock, stamp
from ledger.core.digest import Descriptor
from ledger.core.errors import LedgerError, NotFoundError, Place, Problem, StoreError
from ledger.core.words import Kind
from ledger.receipt import codec
from ledger.receipt.model import BODIES, Body, Chain, Receipt, Tool
from ledger.store import large, layout, objects
from ledger.store.ledger import Ledger, Stored, load

_KINDS: dict[type, str] = {body: Kind(kind).value for kind, body in BODIES.items()}


class SessionWriter:
    """The writer of one session. ``token`` is four or more hex digits that keep sessions of one minute apart.

    The session's folder is made with the first file, and must be new then. ``resume`` gives the writer of one that is there.
    """

    def __init__(self, ledger: Ledger, spec: str, *, clock: Clock, token: str, tool: Tool) -> None:
        began = clock.now()
        session = layout.session_name(spec, began, token)
        self._open(ledger, ledger.root / layout.month_folder(began) / session, clock, tool)

    def _open(self, ledger: Ledger, folder: Path, clock: Clock, tool: Tool) -> None:
        self.session = folder.name
        self.folder = folder
        self._ledger = ledger
        self._clock = clock
        self._tool = tool
        self._mutex = threading.Lock()
        self._next = 0
        self._last: str | None = None
        self._paths: list[Path] = []
        self._is_mine = False
        for place in (ledger.scratch, ledger.state):
            objects.sweep(place)

    @classmethod
    def resume(cls, ledger: Ledger, session: str, *, clock: Clock, tool: Tool) -> Self:
        """The writer of a session that is on disk, ready to add the receipt after its last one.

        Raises:
            NotFoundError: there is no such session.
            StoreError: another process is writing it, or its receipts are not one chain.
        """
        folder = next((item for item in ledger.sessions() if item.name == session), None)
        if folder is None:
            raise NotFoundError(Problem(what="no such session", value=session, hint="ledger log lists them"))
        writer = cls.__new__(cls)
        writer._open(ledger, folder, clock, tool)
        writer._hold()
        writer._next, writer._last = _end_of_chain(ledger, folder)
        return writer

    @property
    def paths(self) -> list[Path]:
        """Every file written so far by this writer."""
        return list(self._paths)

    @property
    def names(self) -> list[str]:
        """The digests of the session's receipts, in the order of the chain, as the disk has them."""
        chain = sorted((_place(stored), stored.digest) for stored in self._ledger.in_session(self.folder))
        return [name for _, name in chain]

    @property
    def count(self) -> int:
        """How many receipts the session has."""
        return self._next

    def record(self, body: Body) -> str:
        """Write ``body`` as the next receipt and return its digest.

        Raises:
            StoreError: the disk refuses; the chain has not moved.
        """
        with self._mutex:
            receipt = Receipt(
                kind=_KINDS[type(body)],
                at=stamp(self._clock.now()),
                session=self.session,
                chain=Chain(n=self._next, after=self._last),
                tool=self._tool,
                body=body,
            )
            data = codec.encode(receipt)
            name = digest.of_bytes(data)
            self._put(self.folder / layout.receipt_name(digest.hex_of(name)), data)
            self._next, self._last = self._next + 1, name
            return name

    def blob(self, data: bytes, media_type: str) -> Descriptor:
        """Write ``data`` as a blob and return its descriptor; the same bytes are written once.

        One above the limit of ``ledger.toml`` is kept outside of git, until ``large.send`` is asked to send it.

        Raises:
            StoreError: the disk refuses.
        """
        described = digest.describe(data, media_type)
        if large.is_large(self._ledger, described.size):
            large.keep(self._ledger, described, data)
            return described
        with self._mutex:
            self._put(self.folder / layout.BLOBS / digest.hex_of(described.digest), data)
        return described

    def read_blob(self, wanted: Descriptor) -> bytes:
        """The bytes of a blob of this session, checked against its descriptor.

        Raises:
            NotFoundError: it is not there. StoreError: other bytes stand in its place.
        """
        return self._ledger.read_blob(self.session, wanted)

    def _put(self, path: Path, data: bytes) -> None:
        if not self._is_mine:
            self._begin()
        if objects.put(path, data, root=self._ledger.root, scratch=self._ledger.scratch):
            self._paths.append(path)

    def _begin(self) -> None:
        """Make the session's folder, which nobody else may have made."""
        try:
            objects.new_folder(self.folder, self._ledger.root)
        except FileExistsError as error:
            problem = Problem(what="a session of this name is there already", value=self.session, hint="run it again")
            raise StoreError(problem) from error
        except OSError as error:
            raise objects.refused(error, self.folder) from error
        self._hold()

    def _hold(self) -> None:
        """Lock the folder for as long as this writer lives; that of a packed session is made again."""
        try:
            objects.make_folder(self.folder, self._ledger.root)
            fd = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError as error:
            raise objects.refused(error, self.folder) from error
        weakref.finalize(self, os.close, fd)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            # A file system that cannot lock folders leaves the promise to the name, which is drawn by chance.
            if error.errno == errno.EWOULDBLOCK:
                problem = Problem(what="another process is writing this session", value=self.session, hint="wait for it to end")
                raise StoreError(problem) from error
        self._is_mine = True


def _end_of_chain(ledger: Ledger, folder: Path) -> tuple[int, str | None]:
    """The place after the last receipt of the session, and the last receipt's digest."""
    chain = sorted((_place(stored), stored.digest) for stored in ledger.in_session(folder))
    if [place for place, _ in chain] != list(range(len(chain))):
        raise _broken(folder, "its receipts are not one chain without a gap")
    return len(chain), chain[-1][1] if chain else None


def _place(stored: Stored) -> int:
    try:
        return codec.decode(load(stored)).chain.n
    except LedgerError as error:
        raise _broken(stored.path, "not a receipt") from error


def _broken(path: Path, what: str) -> StoreError:
    return StoreError(Problem(what=what, place=Place(file=str(path)), hint="ledger verify says what is wrong"))
