"""Digests, and the descriptor that names a blob.

What it does: spells a digest one way, ``sha256:<64 hex>``, and a file name as the bare hex. What it does not do: read files
of receipts (``store``). Rule kept: sha256 only; another algorithm would be another prefix.
"""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

from ledger.core import canonical

PREFIX = "sha256:"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
CHUNK = 1024 * 1024


@frozen(kw_only=True)
class Descriptor:
    """An OCI-style descriptor: what the bytes are, their digest, and how many there are.

    ``annotations`` say where they came from (``node``, ``source``); ``extra`` holds what else a newer version wrote into it.
    """

    mediaType: str  # noqa: N815 - the name that OCI descriptors use on the wire
    digest: str
    size: int
    annotations: Mapping[str, str] = field(factory=dict, hash=False)
    extra: Mapping[str, Any] = field(factory=dict, hash=False)


def of_bytes(data: bytes) -> str:
    """``sha256:<hex>`` of ``data``."""
    return PREFIX + hashlib.sha256(data).hexdigest()


def of_value(value: Any) -> str:
    """``sha256:<hex>`` of the canonical JSON of ``value``."""
    return of_bytes(canonical.encode(value))


def of_file(path: Path) -> str:
    """``sha256:<hex>`` of a file's bytes, read in pieces."""
    state = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(CHUNK):
            state.update(piece)
    return PREFIX + state.hexdigest()


def describe(data: bytes, media_type: str) -> Descriptor:
    """The descriptor of ``data``."""
    return Descriptor(mediaType=media_type, digest=of_bytes(data), size=len(data))


def is_digest(text: str) -> bool:
    """Whether ``text`` is a full digest with its prefix."""
    return _DIGEST.fullmatch(text) is not None


def hex_of(digest: str) -> str:
    """The bare hex of a digest: the name of its file."""
    return digest.removeprefix(PREFIX)


def short(digest: str, length: int = 10) -> str:
    """The first characters of the hex, for people."""
    return hex_of(digest)[:length]
