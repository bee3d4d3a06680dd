"""Receipts from files into the index's tables, and out of them again.

What it does: reads receipts, checks that they are some, and spreads them over the tables in batches; forgets what is gone. What
it does not do: find out what is new, or hold a lock (``index``). Rules kept: a file that is no receipt of a known version is
noted with the reason and never half read; a receipt that stands in several folders is one receipt; nothing that is not a plain
file is read, and no link is followed.
"""

import os
import stat
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from threading import Thread
from typing import IO, TYPE_CHECKING, Any

import duckdb
import orjson

from ledger.core.digest import PREFIX
from ledger.core.errors import LedgerError, StoreError
from ledger.core.late import Late
from ledger.query import wire
from ledger.store import layout, packs
from ledger.store.packs import Block

if TYPE_CHECKING:
    from ledger.receipt import codec, shape
else:
    codec = Late("ledger.receipt.codec")
    shape = Late("ledger.receipt.shape")

Connection = duckdb.DuckDBPyConnection
MAX_BYTES = 64 * 2**20
BATCH_BYTES = 20 * 2**20
# How much an index that is built in steps takes between two commits: each costs a checkpoint.
STEP_BYTES = 256 * 2**20
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Intake:
    """Receipts staged as JSON lines, and spread over the tables whenever there are enough of them to be worth it.

    While one batch is spread, the next one is read; :meth:`close` waits for the last. Between the two the connection is the
    intake's own. With ``in_steps`` batches are committed as they become many.
    """

    def __init__(self, receipts: Path, scratch: Path, connection: Connection, *, in_steps: bool) -> None:
        self._root = str(receipts)
        self._scratch = scratch
        self._connection = connection
        self._in_steps = in_steps
        self._uncommitted = 0
        (self._id,) = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM receipt").fetchone() or (1,)
        self._lines: list[bytes] = []
        self._bad: list[tuple[str, str]] = []
        self._bytes = 0
        self._spreading: Thread | None = None
        self._failed: BaseException | None = None
        self.vanished: list[tuple[str, str]] = []

    def add(self, folder: str, name: str) -> None:
        """Stage the loose receipt of this bare digest; one that cannot be read is noted in ``bad``.

        One whose file is gone since it was listed is added to ``vanished``: it may be in a pack by now.
        """
        data = b""
        try:
            data, reason = read(f"{self._root}/{folder}/{layout.receipt_name(name)}")
        except FileNotFoundError:
            self.vanished.append((folder, name))
            return
        except OSError as error:
            reason = error.strerror or str(error)
        self._stage(folder, name, data, reason)

    def unpack(self, folder: str, block: Block, wanted: Collection[str]) -> None:
        """Stage those receipts of a block that are wanted; a block that cannot be read is noted as its pack."""
        try:
            lines = packs.contents(block)
        except StoreError as error:
            self._bad.append((f"{folder[:8]}{block.path.name}", error.problems[0].what))
            return
        for name, line in zip(block.names(), lines, strict=True):
            if name in wanted:
                self._stage(folder, name, *_current(line))

    def settle(self) -> None:
        """Wait until the connection is free for others.

        Raises:
            duckdb.Error: a batch could not be spread.
        """
        self._wait()

    def close(self) -> None:
        """Spread what is left, and wait until all of it is in the tables.

        Raises:
            duckdb.Error: a batch could not be spread.
        """
        self._flush()
        self._wait()

    def _stage(self, folder: str, name: str, data: bytes, reason: str | None) -> None:
        if reason is not None:
            self._bad.append((f"{folder}/{layout.receipt_name(name)}", reason))
            return
        digest = PREFIX + name
        self._lines.append(b'{"id":%d,"digest":"%s","folder":"%s","r":%s}\n' % (self._id, digest.encode(), folder.encode(), data))
        self._id += 1
        self._bytes += len(data)
        if self._bytes > BATCH_BYTES:
            self._flush()

    def _flush(self) -> None:
        self._wait()
        self._spreading = Thread(target=self._spread, args=(self._lines, self._bad))
        self._spreading.start()
        self._lines, self._bad, self._bytes = [], [], 0

    def _wait(self) -> None:
        if self._spreading is not None:
            self._spreading.join()
            self._spreading = None
        if self._failed is not None:
            raise self._failed

    def _spread(self, lines: list[bytes], bad: list[tuple[str, str]]) -> None:
        try:
            if bad:
                self._connection.executemany("INSERT INTO bad VALUES (?, ?)", bad)
            if lines:
                # DuckDB reads a file in one thread, and several files in several.
                with scratch_file(self._scratch) as one, scratch_file(self._scratch) as other:
                    middle = len(lines) // 2
                    for file, part in ((one, lines[:middle]), (other, lines[middle:])):
                        file.write(b"".join(part))
                        file.flush()
                    _spread(self._connection, [one.name, other.name], max(map(len, lines)))
            self._uncommitted += sum(map(len, lines))
            if self._in_steps and self._uncommitted > STEP_BYTES:
                self._connection.execute("COMMIT")
                self._connection.execute("BEGIN")
                self._uncommitted = 0
        except BaseException as error:
            self._failed = error  # raised where it is waited for


def read(path: str) -> tuple[bytes, str | None]:
    """A receipt's JSON of the current version on one line, or why the file is no receipt.

    Raises:
        OSError: the file cannot be read, or is a link.
    """
    fd = os.open(path, _FLAGS)
    try:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode):
            return b"", "not a plain file"
        if about.st_size > MAX_BYTES:
            return b"", f"larger than {MAX_BYTES} bytes"
        data = os.read(fd, about.st_size + 1)
    finally:
        os.close(fd)
    return _current(data)


def _current(data: bytes) -> tuple[bytes, str | None]:
    # The quick check passes over the bytes of what it does not read, and only ASCII needs no look at its encoding.
    if data.isascii() and b"\n" not in data and shape.fits(data):
        return data, None
    try:
        return codec.encode(codec.decode(data)), None
    except LedgerError as error:
        return b"", error.problems[0].what


def _spread(connection: Connection, names: list[str], longest: int) -> None:
    columns = ", ".join(f"'{column}': '{kind}'" for column, kind in wire.COLUMNS.items())
    options = f"format='newline_delimited', columns={{{columns}}}, ignore_errors=true, maximum_object_size={longest + 1}"
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE incoming AS SELECT id, digest, folder, {wire.SUBJECT} AS subject, r "
        f"FROM read_json(?, {options}) WHERE digest IS NOT NULL AND r.kind IS NOT NULL",
        [names],
    )
    connection.execute(sql("ingest.sql"))
    connection.execute("DROP TABLE incoming")


def forget(connection: Connection, folder: str, names: Collection[str]) -> None:
    """Remove the rows of some of a folder's receipts."""
    where = "folder = ? AND digest IN (SELECT unnest(?::VARCHAR[]))"
    values = [folder, [PREFIX + name for name in names]]
    connection.execute(f"DELETE FROM copy WHERE {where}", values)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE leaving AS SELECT id, digest FROM receipt WHERE {where}", values)
    for table, key in _KEYS.items():
        connection.execute(f"DELETE FROM {table} WHERE {key} IN (SELECT {'digest' if key == 'source' else 'id'} FROM leaving)")
    connection.execute("DROP TABLE leaving")


_KEYS: Mapping[str, str] = {
    "attempt": "id",
    "boot": "id",
    "factor": "boot",
    "condition": "receipt",
    "trial": "id",
    "figure": "receipt",
    "gate": "id",
    "decision": "id",
    "correction": "id",
    "claim": "id",
    "serves": "id",
    "link": "source",
    "receipt": "id",
}


def names_in(connection: Connection, folders: Sequence[str]) -> dict[str, set[str]]:
    """The receipts that the index has of each folder, by bare digest; what was bad there is to be read again."""
    connection.execute("DELETE FROM bad WHERE path[:-71] IN (SELECT unnest(?::VARCHAR[]))", [list(folders)])
    rows = connection.execute(
        "SELECT folder, list(digest) FROM (SELECT folder, digest FROM receipt UNION ALL SELECT folder, digest FROM copy) "
        "WHERE folder IN (SELECT unnest(?::VARCHAR[])) GROUP BY folder",
        [list(folders)],
    ).fetchall()
    return {folder: {name.removeprefix(PREFIX) for name in names} for folder, names in rows}


def sessions_known(connection: Connection, months: Collection[str]) -> set[str]:
    """The session folders of these months (``2026/10``) of which the index has receipts."""
    if not months:
        return set()
    rows = connection.execute(
        "SELECT folder FROM (SELECT folder FROM receipt UNION ALL SELECT folder FROM copy) "
        "WHERE folder[:7] IN (SELECT unnest(?::VARCHAR[])) GROUP BY folder",
        [sorted(months)],
    ).fetchall()
    return {folder for (folder,) in rows}


def replace_bad(connection: Connection, packs_read: Collection[str], bad: Sequence[tuple[str, str]]) -> None:
    """Note which of these packs cannot be read, in the place of what was noted of them."""
    if packs_read:
        connection.execute("DELETE FROM bad WHERE path IN (SELECT unnest(?::VARCHAR[]))", [sorted(packs_read)])
    if bad:
        connection.executemany("INSERT INTO bad VALUES (?, ?)", bad)


def orphans(connection: Connection) -> list[tuple[str, str]]:
    """Folder and bare digest of copies whose receipt is gone, one for each receipt; they are copies no longer."""
    rows = connection.execute(
        "SELECT min(folder), digest FROM copy WHERE digest NOT IN (SELECT digest FROM receipt) GROUP BY digest ORDER BY digest"
    ).fetchall()
    for row in rows:
        connection.execute("DELETE FROM copy WHERE folder = ? AND digest = ?", row)
    return [(folder, digest.removeprefix(PREFIX)) for folder, digest in rows]


def insert(
    connection: Connection, scratch: Path, table: str, columns: Mapping[str, str], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Put ``rows`` into ``table`` at once; ``columns`` are its columns with their types."""
    with scratch_file(scratch) as file:
        file.write(b"".join(orjson.dumps(dict(zip(columns, row, strict=True))) + b"\n" for row in rows))
        file.flush()
        typed = ", ".join(f"'{name}': '{kind}'" for name, kind in columns.items())
        named = ", ".join(columns)
        source = f"SELECT {named} FROM read_json(?, columns={{{typed}}}, format='newline_delimited')"
        connection.execute(f"INSERT INTO {table} ({named}) {source}", [file.name])


@contextmanager
def scratch_file(folder: Path) -> Iterator[IO[bytes]]:
    """A file that is gone afterwards."""
    with tempfile.NamedTemporaryFile(dir=folder, suffix=".jsonl") as file:
        yield file


def sql(name: str) -> str:
    """The statements of a file of this room."""
    return files("ledger.query").joinpath(name).read_text(encoding="utf-8")
