"""Where large blobs are kept outside of git, and the store that is a folder.

What it does: defines :class:`BlobStore`, a place that holds blobs by digest, and :class:`BlobStores`, a kind of such places;
has the kind for folders. What it does not do: decide which blobs go there (``large``), or speak to a network (``remote``).
Rules kept: a blob is ``sha256/<first two>/<hex>``; what is there is never written over; what is read is checked against digest
and size by whoever asked.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

from ledger.core.errors import Problem, StoreError
from ledger.core.plugins import Plugins
from ledger.store import objects

PIECE = 1 << 20


class BlobStore(ABC):
    """A place that holds blobs under their bare hex digests."""

    def size_of(self, hex_digest: str) -> int | None:
        """How many bytes the blob has there; None when it is not there.

        Raises:
            StoreError: the place cannot be asked.
        """
        return self._size_of(self._name(hex_digest))

    def put(self, hex_digest: str, source: Path) -> None:
        """Keep the file's bytes there, durably; a blob that is there already stays as it is.

        Raises:
            StoreError: the place cannot be written.
        """
        self._put(self._name(hex_digest), source)

    def pieces(self, hex_digest: str) -> Iterator[bytes]:
        """The blob's bytes, piece by piece.

        Raises:
            StoreError: it is not there, or the place cannot be read.
        """
        return self._pieces(self._name(hex_digest))

    @staticmethod
    def _name(hex_digest: str) -> str:
        return f"sha256/{hex_digest[:2]}/{hex_digest}"

    @abstractmethod
    def _size_of(self, name: str) -> int | None: ...

    @abstractmethod
    def _put(self, name: str, source: Path) -> None: ...

    @abstractmethod
    def _pieces(self, name: str) -> Iterator[bytes]: ...


class BlobStores(ABC):
    """A kind of store, by the scheme of its addresses."""

    @abstractmethod
    def open(self, address: str, root: Path) -> BlobStore:
        """The store at ``address``; ``root`` is the ledger's folder, below which a relative one is.

        Raises:
            StoreError: there is no such place.
        """


class Folders(BlobStores):
    """Stores that are folders of this machine, or of a file system that is mounted on it."""

    def open(self, address: str, root: Path) -> BlobStore:
        """The folder, which need not be there yet; what is above it must be."""
        folder = (root / Path(address).expanduser()).resolve()
        if not folder.parent.is_dir():
            hint = "mount it, or make the folder above it"
            raise StoreError(Problem(what="no such place for blobs", value=str(folder), hint=hint))
        return FolderStore(folder)


class FolderStore(BlobStore):
    """One folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _size_of(self, name: str) -> int | None:
        try:
            return (self._folder / name).lstat().st_size
        except FileNotFoundError:
            return None
        except OSError as error:
            raise objects.refused(error, self._folder) from error

    def _put(self, name: str, source: Path) -> None:
        try:
            self._folder.mkdir(exist_ok=True)
            objects.put_pieces(self._folder / name, pieces_of(source), root=self._folder, scratch=self._folder / "tmp")
        except OSError as error:
            raise objects.refused(error, self._folder) from error

    def _pieces(self, name: str) -> Iterator[bytes]:
        return pieces_of(self._folder / name)


def pieces_of(path: Path) -> Iterator[bytes]:
    """A file's bytes, piece by piece.

    Raises:
        StoreError: it cannot be read, or is a link.
    """
    try:
        with objects.opened(path) as fd:
            while piece := os.read(fd, PIECE):
                yield piece
    except OSError as error:
        raise objects.refused(error, path) from error


STORES: Plugins[BlobStores] = Plugins(
    kind=BlobStores,  # type: ignore[type-abstract]  # only asked whether something is one
    group="ledger.blob_stores",
    called="kind of blob store",
    built_in={"folder": Folders},
)


def open_store(address: str, root: Path) -> BlobStore:
    """The store at an address: a URL by its scheme, anything else as a folder.

    Raises:
        UsageError: no kind of store has this scheme. StoreError: there is no such place.
    """
    scheme, separator, _ = address.partition("://")
    return STORES.get(scheme if separator else "folder").open(address, root)
