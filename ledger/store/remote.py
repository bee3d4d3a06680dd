"""Blob stores that are buckets: S3 and what speaks like it, Google Cloud Storage, Azure, through ``obstore``.

What it does: keeps and reads blobs in a bucket. What it does not do: hold credentials; they come from the environment as each
service's own tools take them. Rules kept: an object that is there is never written over; every failure of the network is a
:class:`StoreError` with a way out. This module is loaded by its entry point alone, when an address asks for it.
"""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from obstore import exceptions, get, head, put
from obstore.store import ObjectStore, from_url

from ledger.core.errors import Problem, StoreError
from ledger.store.blobstore import PIECE, BlobStore, BlobStores

if TYPE_CHECKING:  # obstore has these names for type checkers alone
    from obstore.store import ClientConfig, RetryConfig

HINT = "ledger blobs push tries again; credentials and endpoints come from the environment (AWS_…, GOOGLE_…, AZURE_…)"
CONNECT_S, TRANSFER_S, RETRY_S, TRIES = 5, 600, 20, 2


class Buckets(BlobStores):
    """Stores that are buckets, by URL."""

    def open(self, address: str, root: Path) -> BlobStore:
        """The bucket and prefix of the URL; nothing is asked of it yet."""
        limits: ClientConfig = {
            "connect_timeout": timedelta(seconds=CONNECT_S),
            "timeout": timedelta(seconds=TRANSFER_S),
            "allow_http": True,  # only an endpoint that the user's environment names can be without TLS
        }
        retries: RetryConfig = {"max_retries": TRIES, "retry_timeout": timedelta(seconds=RETRY_S)}
        try:
            found = from_url(address, client_options=limits, retry_config=retries)
        except (exceptions.BaseError, ValueError) as error:
            raise _refused(error, address) from error
        return Bucket(found, address)


class Bucket(BlobStore):
    """One bucket below a prefix."""

    def __init__(self, store: ObjectStore, address: str) -> None:
        self._store = store
        self._address = address

    def _size_of(self, name: str) -> int | None:
        try:
            return int(head(self._store, name)["size"])
        except (exceptions.NotFoundError, FileNotFoundError):
            return None
        except exceptions.BaseError as error:
            raise _refused(error, self._address) from error

    def _put(self, name: str, source: Path) -> None:
        # Not every service refuses an existing name by itself, and a second object of one digest would be the same.
        if self._size_of(name) is not None:
            return
        try:
            put(self._store, name, source)
        except (exceptions.BaseError, OSError) as error:
            raise _refused(error, self._address) from error

    def _pieces(self, name: str) -> Iterator[bytes]:
        try:
            yield from map(bytes, get(self._store, name).stream(min_chunk_size=PIECE))
        except (exceptions.BaseError, OSError) as error:
            raise _refused(error, self._address) from error


def _refused(error: Exception, address: str) -> StoreError:
    said = str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
    return StoreError(Problem(what=f"the blob store does not answer as it should: {said}", value=address, hint=HINT))
