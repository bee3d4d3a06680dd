"""Writing the receipts of one session, in a chain.

What it does: wraps a body into a receipt with its place in the chain, and writes receipts and blobs durably. What it does not
do: commit them. Rules kept: a receipt's bytes are on disk before its digest is returned; every receipt names the one before it;
two threads of a session never get the same place.
"""

import threading
from datetime import datetime
from pathlib import Path

from ledger.core import digest
from ledger.core.clock import Clock, stamp
from ledger.core.digest import Descriptor
from ledger.core.words import Kind
from ledger.receipt import codec
from ledger.receipt.model import BODIES, Body, Chain, Receipt, Tool
from ledger.store import layout, objects
from ledger.store.ledger import Ledger

_KINDS: dict[type, str] = {body: Kind(kind).value for kind, body in BODIES.items()}


class SessionWriter:
    """The writer of one session. ``token`` is four or more hex digits that keep sessions of one minute apart."""

    def __init__(self, ledger: Ledger, spec: str, *, clock: Clock, token: str, tool: Tool) -> None:
        began: datetime = clock.now()
        self.session = layout.session_name(spec, began, token)
        self.folder = ledger.root / layout.month_folder(began) / self.session
        self._ledger = ledger
        self._clock = clock
        self._tool = tool
        self._lock = threading.Lock()
        self._next = 0
        self._last: str | None = None
        self._paths: list[Path] = []
        objects.sweep(ledger.scratch)

    @property
    def paths(self) -> list[Path]:
        """Every file written so far."""
        return list(self._paths)

    @property
    def count(self) -> int:
        """How many receipts were written."""
        return self._next

    def record(self, body: Body) -> str:
        """Write ``body`` as the next receipt and return its digest.

        Raises:
            StoreError: the disk refuses; the chain has not moved.
        """
        with self._lock:
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

        Raises:
            StoreError: the disk refuses.
        """
        described = digest.describe(data, media_type)
        with self._lock:
            self._put(self.folder / layout.BLOBS / digest.hex_of(described.digest), data)
        return described

    def _put(self, path: Path, data: bytes) -> None:
        if objects.put(path, data, self._ledger.scratch):
            self._paths.append(path)
