"""Large blobs: kept beside git until they are in the blob store, sent there, and fetched from there.

What it does: holds blobs above the limit of ``ledger.toml`` in the state folder, sends those that wait, fetches others on
demand. What it does not do: touch the network while something is measured (its caller sends afterwards). Rules kept: a blob is
on disk before its descriptor is in a receipt, and stays here when it could not be sent; what is fetched is checked against
digest and size before it has a name; no address of a repository is used before the user of this machine said so, unless it is a
folder inside the ledger's own.
"""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from attrs import frozen

from ledger.core import digest
from ledger.core.digest import Descriptor
from ledger.core.errors import NotFoundError, Place, Problem, StoreError, UsageError
from ledger.store import layout, objects
from ledger.store.blobstore import BlobStore, open_store
from ledger.store.ledger import MAX_BLOB, Ledger
from ledger.store.settings import BlobSettings, settings_of

ALLOWED = "allowed"
ALLOW_HINT = "ledger blobs allow, if you trust where it leads"
Watch = Callable[[int, int], None]


def _nobody(done: int, of: int) -> None:
    """Hear nothing."""


@frozen(kw_only=True)
class Sent:
    """What became of the blobs that waited: how many are in the store now, their bytes, and why the others are not."""

    blobs: int = 0
    bytes: int = 0
    left: int = 0
    problem: str | None = None


def folder_of(ledger: Ledger) -> Path:
    """Where large blobs are kept on this machine."""
    return ledger.state / layout.BLOBS


def is_large(ledger: Ledger, size: int) -> bool:
    """Whether a blob of so many bytes is kept outside of git."""
    blobs = settings_of(ledger.root).blobs
    return blobs is not None and size > blobs.above


def keep(ledger: Ledger, described: Descriptor, data: bytes) -> None:
    """Keep a large blob here, durably, to be sent later.

    Raises:
        StoreError: the disk refuses.
    """
    name = digest.hex_of(described.digest)
    if not (folder_of(ledger) / layout.KEPT / name).exists():
        objects.put(folder_of(ledger) / layout.WAITING / name, data, root=ledger.root, scratch=ledger.scratch)


def waiting(ledger: Ledger) -> list[Path]:
    """The blobs that are to be sent."""
    try:
        names = sorted(os.listdir(folder_of(ledger) / layout.WAITING))  # noqa: PTH208 - names are enough
    except FileNotFoundError:
        return []
    return [folder_of(ledger) / layout.WAITING / name for name in names if layout.HEX.fullmatch(name)]


def is_allowed(ledger: Ledger, blobs: BlobSettings) -> bool:
    """Whether this machine's user agreed to the address, or it is a folder inside the ledger's."""
    if "://" not in blobs.store and (ledger.root / blobs.store).resolve().is_relative_to(ledger.root.resolve()):
        return True
    with suppress(OSError):
        return (folder_of(ledger) / ALLOWED).read_text(encoding="utf-8") == blobs.store
    return False


def allow(ledger: Ledger) -> str:
    """Agree to the address that ``ledger.toml`` names now, on this machine; the address.

    Raises:
        UsageError: it names none. StoreError: the state folder cannot be written.
    """
    blobs = _named(ledger)
    path = folder_of(ledger) / ALLOWED
    try:
        objects.make_folder(path.parent, ledger.root)
        objects.make_folder(ledger.scratch, ledger.root)
    except OSError as error:
        raise objects.refused(error, path) from error
    objects.replace(path, blobs.store.encode(), scratch=ledger.scratch)
    return blobs.store


def send(ledger: Ledger, watch: Watch = _nobody) -> Sent:
    """Send every blob that waits; one that cannot be sent goes on waiting, and the reason is told. Never raises for the store."""
    found = waiting(ledger)
    if not found or settings_of(ledger.root).blobs is None:
        return Sent(left=len(found))
    sent = size = 0
    try:
        store = opened(ledger)
        for path in found:
            size += _send(ledger, store, path)
            sent += 1
            watch(sent, len(found))
    except (StoreError, UsageError) as error:
        return Sent(blobs=sent, bytes=size, left=len(found) - sent, problem=str(error))
    return Sent(blobs=sent, bytes=size)


def fetch(ledger: Ledger, described: Descriptor) -> Path:
    """The file of a large blob, fetched if it is not here; its bytes are those of the descriptor.

    Raises:
        NotFoundError: the store has not got it. StoreError: other bytes stand there, or the store does not answer.
        UsageError: no store is named, or its address is not allowed here.
    """
    path = ledger.large_blob(described.digest)
    if path is not None and digest.of_file(path) == described.digest:
        return path
    if not digest.is_digest(described.digest) or not 0 <= described.size <= MAX_BLOB:
        raise StoreError(Problem(what="not the descriptor of a blob", value=f"{described.digest}, {described.size} bytes"))
    store, name = opened(ledger), digest.hex_of(described.digest)
    if store.size_of(name) is None:
        raise NotFoundError(Problem(what="the blob store has no such blob", value=described.digest))
    target = folder_of(ledger) / layout.KEPT / name
    if path is not None:
        path.unlink(missing_ok=True)  # it has other bytes
    objects.put_pieces(target, _checked(store, described), root=ledger.root, scratch=ledger.scratch)
    return target


def opened(ledger: Ledger) -> BlobStore:
    """The store that ``ledger.toml`` names.

    Raises:
        UsageError: it names none, one of an unknown kind, or one that is not allowed here. StoreError: there is no such place.
    """
    blobs = _named(ledger)
    if not is_allowed(ledger, blobs):
        what = "a blob store that nobody on this machine agreed to"
        raise UsageError(Problem(what=what, place=_place(ledger), value=blobs.store, hint=ALLOW_HINT))
    return open_store(blobs.store, ledger.root)


def _named(ledger: Ledger) -> BlobSettings:
    blobs = settings_of(ledger.root).blobs
    if blobs is None:
        hint = '[blobs] with store = "s3://bucket/prefix", or a folder'
        raise UsageError(Problem(what="no blob store is named", place=_place(ledger), hint=hint))
    return blobs


def _place(ledger: Ledger) -> Place:
    return Place(file=str(ledger.root / layout.MARKER), path="blobs.store")


def _send(ledger: Ledger, store: BlobStore, path: Path) -> int:
    """Send one blob and move it to those that are kept; its size."""
    if digest.hex_of(digest.of_file(path)) != path.name:
        raise StoreError(Problem(what="the bytes are not those of the name", place=Place(file=str(path)), hint="remove it"))
    size = path.stat().st_size
    there = store.size_of(path.name)
    if there is None:
        store.put(path.name, path)
        there = store.size_of(path.name)
    if there != size:
        what = f"the blob store has {there} bytes under a digest of {size}"
        raise StoreError(Problem(what=what, value=path.name, hint="remove it there, and send it again"))
    kept = folder_of(ledger) / layout.KEPT
    objects.make_folder(kept, ledger.root)
    with suppress(FileNotFoundError):  # another process sent it, too
        path.rename(kept / path.name)
    return size


def _checked(store: BlobStore, described: Descriptor) -> Iterator[bytes]:
    """The blob's pieces, as long as they can be its own.

    Raises:
        StoreError: they are more, fewer or others than the descriptor says.
    """
    state, size = hashlib.sha256(), 0
    for piece in store.pieces(digest.hex_of(described.digest)):
        size += len(piece)
        if size > described.size:
            break
        state.update(piece)
        yield piece
    if size != described.size or digest.PREFIX + state.hexdigest() != described.digest:
        what = "the blob store has other bytes under this digest"
        raise StoreError(Problem(what=what, value=described.digest, hint="somebody changed them there: restore them"))
