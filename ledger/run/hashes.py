"""Digests of files on nodes, hashed only when a file may have changed.

What it does: remembers a file's SHA-256 by machine, path, size, modification time and inode. What it does not do: compare with
a pin. Rules kept: losing the cache costs time alone; a full re-hash on demand believes nothing that an earlier run remembered.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import orjson

from ledger.backends.reach import Content, FileStatus, Reach
from ledger.core.errors import StoreError
from ledger.store import objects

SAVE_EVERY = 64
BytesDone = Callable[[int], None]


class HashCache:
    """Digests kept in one JSON file of the state folder. With ``rehash`` each file is hashed once more in this run."""

    def __init__(self, path: Path, *, rehash: bool = False) -> None:
        self._path = path
        self._fresh: set[str] = set()
        self._rehash = rehash
        self._unsaved = 0
        try:
            loaded = orjson.loads(path.read_bytes())
        except (OSError, orjson.JSONDecodeError):
            loaded = {}
        self._known: dict[str, str] = loaded if isinstance(loaded, dict) else {}

    def sha256(self, reach: Reach, path: str, status: FileStatus, done: BytesDone = lambda _: None) -> Content:
        """The file's digest in hexadecimal; ``status`` is what the node says of the file now."""
        key = f"{reach.key}:{path}:{status.size}:{status.mtime}:{status.inode}"
        if key in self._known and (key in self._fresh or not self._rehash):
            return Content(data=self._known[key].encode())
        found = reach.sha256(path, done)
        if found.unread is None and reach.status(path) == status:
            self._known[key] = found.text
            self._fresh.add(key)
            self._unsaved += 1
            if self._unsaved >= SAVE_EVERY:
                self.save()
        return found

    def save(self) -> None:
        """Write what was learnt since the last time; a disk that refuses costs the next run its time."""
        if self._unsaved:
            with suppress(StoreError, OSError):
                self._path.parent.mkdir(parents=True, exist_ok=True)
                objects.replace(self._path, orjson.dumps(self._known))
            self._unsaved = 0
