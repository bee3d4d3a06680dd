"""The index: a DuckDB file under the state folder, derived from the receipts and kept up with them.

What it does: finds what is new or gone by folders and names, reads just that, and opens the file for questions. What it does
not do: verify a receipt, or answer (``ask``). Rules kept: the index is never the truth: when it is missing, damaged or of
another version, it is built again and nobody is bothered; a receipt that cannot be read is left out and counted; one process
writes at a time, and readers never fail for it.
"""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import IO

import duckdb
import orjson

from ledger.analysis.currency import CorrectionFact, standings
from ledger.core.digest import PREFIX
from ledger.core.errors import StoreError
from ledger.query import wire
from ledger.store import layout
from ledger.store.ledger import Ledger

FILE = "index.duckdb"
LOCK = "index.lock"
OPEN_FOR_S = 20.0
WRITE_FOR_S = 2.0
PAUSE_S = 0.01
MAX_BYTES = 64 * 2**20
# A folder that was touched this recently may be touched again within the same tick of its clock, so it is listed again.
RACY_NS = 2 * 10**9
MEMORY = "300MB"
BATCH_BYTES = 16 * 2**20

Folders = dict[str, int]
Connection = duckdb.DuckDBPyConnection


def open_index(ledger: Ledger) -> duckdb.DuckDBPyConnection:
    """A read-only connection to an index that knows every receipt now on disk.

    Raises:
        StoreError: the state folder cannot be written, or another process holds the index for too long.
    """
    path = ledger.state / FILE
    seen = scan(ledger)
    connection = _try_current(path, seen)
    if connection is not None:
        return connection
    ledger.state.mkdir(parents=True, exist_ok=True)
    with _locked(ledger.state / LOCK):
        connection = _try_current(path, seen)
        if connection is not None:
            return connection
        catch_up(ledger, path, seen)
    return _open(path, read_only=True, limit_s=OPEN_FOR_S)


def known_names(ledger: Ledger) -> dict[str, list[str]]:
    """The metrics, arms, lanes and so on that the index knows as it is; nothing when it is not there or is busy."""
    statements = {name: f"SELECT DISTINCT {name} FROM receipt" for name in ("arm", "lane", "spec", "role", "evidence", "session")}
    statements |= {
        "metric": "SELECT DISTINCT metric FROM figure WHERE NOT contains(metric, '/')",
        "measure": "SELECT DISTINCT measure FROM trial",
        "name": "SELECT DISTINCT r.arm || coalesce('/' || t.measure, '') FROM receipt r LEFT JOIN trial t USING (id) "
        "WHERE r.kind IN ('boot', 'trial')",
    }
    try:
        with duckdb.connect(str(ledger.state / FILE), read_only=True) as connection:
            return {
                name: sorted(str(row[0]) for row in connection.execute(statement).fetchall() if row[0])
                for name, statement in statements.items()
            }
    except duckdb.Error:
        return {}


def scan(ledger: Ledger) -> Folders:
    """Every session folder, relative to the ledger, with the stamp of its last change; no file is looked at."""
    found: Folders = {}
    now = time.time_ns()
    for year in _subfolders(ledger.receipts):
        for month in _subfolders(year):
            with os.scandir(month) as entries:
                for entry in entries:
                    if layout.SESSION.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                        stamp = entry.stat(follow_symlinks=False).st_mtime_ns
                        found[f"{year.name}/{month.name}/{entry.name}"] = stamp if now - stamp > RACY_NS else 0
    return found


def catch_up(ledger: Ledger, path: Path, seen: Folders) -> None:
    """Bring the file at ``path`` up to ``seen``, from what it is or from nothing. Hold the lock."""
    if _known(path) is None:
        _replace(ledger, path, seen, None)
        return
    try:
        with _open(path, read_only=False, limit_s=WRITE_FOR_S) as connection:
            _apply(ledger, connection, seen)
    except StoreError:
        # A reader holds the file for long: it keeps the old one, and the next gets a new one.
        _replace(ledger, path, seen, path)
    except duckdb.Error:
        _replace(ledger, path, seen, None)


def _replace(ledger: Ledger, path: Path, seen: Folders, start: Path | None) -> None:
    """Build the index in a file of its own and move it into place."""
    made = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        if start is not None:
            shutil.copyfile(start, made)
        with _open(made, read_only=False, limit_s=WRITE_FOR_S) as connection:
            if start is None:
                connection.execute(_sql("schema.sql"))
                connection.execute("INSERT INTO meta VALUES ('version', ?)", [wire.VERSION])
            _apply(ledger, connection, seen)
        made.replace(path)
    finally:
        for left in (made, made.with_name(made.name + ".wal")):
            left.unlink(missing_ok=True)


def _apply(ledger: Ledger, connection: duckdb.DuckDBPyConnection, seen: Folders) -> None:
    """Add what is new and remove what is gone, in one transaction."""
    known = dict(connection.execute("SELECT folder, stamp FROM folders").fetchall())
    changed = [folder for folder, stamp in seen.items() if stamp == 0 or known.get(folder) != stamp]
    gone = [folder for folder in known if folder not in seen]
    connection.execute("BEGIN")
    for folder in gone:
        _forget(connection, folder, None)
    _ingest(ledger, connection, changed)
    if changed:
        rows = "".join(orjson.dumps({"f": folder, "s": seen[folder]}).decode() + "\n" for folder in changed)
        with _scratch_file(ledger.state) as file:
            file.write(rows.encode())
            file.flush()
            columns = "{'f': 'VARCHAR', 's': 'BIGINT'}"
            source = f"SELECT f, s FROM read_json(?, columns={columns}, format='newline_delimited')"
            connection.execute(f"INSERT OR REPLACE INTO folders {source}", [file.name])
    strike(connection)
    connection.execute("COMMIT")


def _ingest(ledger: Ledger, connection: duckdb.DuckDBPyConnection, changed: Sequence[str]) -> None:
    """Read every receipt of ``changed`` folders that the index lacks, in batches, and forget those that are gone."""
    have = _names_in(connection, changed)
    batch = _Batch(ledger.state, connection)
    for folder in changed:
        known = have.get(folder, set())
        names = {item for item in _names(ledger.receipts / folder) if layout.hex_of(item)}
        if lost := known - names:
            _forget(connection, folder, lost)
        for item in sorted(names - known):
            batch.add(ledger.receipts / folder / item, folder)
    batch.flush()


class _Batch:
    """Receipts staged as JSON lines, and spread over the tables whenever there are enough of them to be worth it."""

    def __init__(self, scratch: Path, connection: duckdb.DuckDBPyConnection) -> None:
        self._scratch = scratch
        self._connection = connection
        self._lines: list[bytes] = []
        self._bytes = 0

    def add(self, path: Path, folder: str) -> None:
        """Stage one receipt; one that cannot be read is noted in ``bad``."""
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(fd, "rb") as source:
                data = source.read(MAX_BYTES + 1)
            reason = _unfit(data)
        except OSError as error:
            data, reason = b"", error.strerror or str(error)
        if reason is not None:
            self._connection.execute("INSERT INTO bad VALUES (?, ?)", [f"{folder}/{path.name}", reason])
            return
        digest = f"{PREFIX}{path.name.removesuffix(layout.SUFFIX)}"
        self._lines.append(b'{"digest":"%s","folder":"%s","r":%s}\n' % (digest.encode(), folder.encode(), data))
        self._bytes += len(data)
        if self._bytes > BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Spread what is staged."""
        if not self._lines:
            return
        with _scratch_file(self._scratch) as file:
            file.writelines(self._lines)
            file.flush()
            _spread(self._connection, file.name, max(map(len, self._lines)))
        self._lines, self._bytes = [], 0


def _unfit(data: bytes) -> str | None:
    """Why these bytes are no receipt that a line can hold, or None."""
    if len(data) > MAX_BYTES:
        return f"larger than {MAX_BYTES} bytes"
    if b"\n" in data:
        return "not canonical"
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        return f"not JSON: {error}"
    return None if isinstance(value, dict) and isinstance(value.get("kind"), str) else "not a receipt"


def _spread(connection: duckdb.DuckDBPyConnection, name: str, longest: int) -> None:
    columns = ", ".join(f"'{column}': '{kind}'" for column, kind in wire.COLUMNS.items())
    options = f"format='newline_delimited', columns={{{columns}}}, ignore_errors=true, maximum_object_size={longest + 1}"
    (first,) = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM receipt").fetchone() or (1,)
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE incoming AS SELECT row_number() OVER () + {int(first)} AS id, digest, folder, "
        f"{wire.SUBJECT} AS subject, r FROM read_json(?, {options}) WHERE digest IS NOT NULL AND r.kind IS NOT NULL",
        [name],
    )
    connection.execute(_sql("ingest.sql"))
    connection.execute("DROP TABLE incoming")


def strike(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill ``struck`` from all corrections."""
    rows = [(item.digest, item.by, item.action, item.replacement, item.reason) for item in standings(corrections(connection))]
    connection.execute("DELETE FROM struck")
    if rows:
        connection.executemany("INSERT INTO struck VALUES (?, ?, ?, ?, ?)", rows)


def corrections(connection: duckdb.DuckDBPyConnection, until: str | None = None) -> list[CorrectionFact]:
    """Every correction that the index holds, or those made no later than ``until`` (a timestamp)."""
    found = connection.execute(
        "SELECT r.digest, c.action, c.reason, c.scope, list(l.target) FILTER (l.role = 'targets'), "
        "list(l.target) FILTER (l.role = 'replacements') FROM correction c JOIN receipt r USING (id) "
        "LEFT JOIN link l ON l.source = r.digest WHERE ? IS NULL OR r.time <= ?::TIMESTAMP GROUP BY ALL ORDER BY r.digest",
        [until, until],
    ).fetchall()
    return [
        CorrectionFact(
            digest=name,
            action=action,
            reason=reason or "",
            scope=scope,
            targets=tuple(targets or ()),
            replacements=tuple(new or ()),
        )
        for name, action, reason, scope, targets, new in found
    ]


def _forget(connection: duckdb.DuckDBPyConnection, folder: str, names: set[str] | None) -> None:
    """Remove a folder's rows, or those of some of its receipts."""
    where, values = "folder = ?", [folder]
    if names is not None:
        where += f" AND digest IN ({', '.join('?' * len(names))})"
        values += [PREFIX + name.removesuffix(layout.SUFFIX) for name in names]
    connection.execute(f"CREATE OR REPLACE TEMP TABLE leaving AS SELECT id, digest FROM receipt WHERE {where}", values)
    for table, key in _KEYS.items():
        connection.execute(f"DELETE FROM {table} WHERE {key} IN (SELECT {'digest' if key == 'source' else 'id'} FROM leaving)")
    connection.execute("DROP TABLE leaving")
    connection.execute("DELETE FROM bad WHERE starts_with(path, ?)", [f"{folder}/"])
    if names is None:
        connection.execute("DELETE FROM folders WHERE folder = ?", [folder])


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
    "link": "source",
    "receipt": "id",
}


def _names_in(connection: duckdb.DuckDBPyConnection, folders: Sequence[str]) -> dict[str, set[str]]:
    """The receipt file names that the index has of each folder."""
    connection.execute("DELETE FROM bad WHERE path[:-71] IN (SELECT unnest(?::VARCHAR[]))", [list(folders)])
    rows = connection.execute(
        "SELECT folder, list(digest) FROM receipt WHERE folder IN (SELECT unnest(?::VARCHAR[])) GROUP BY folder", [list(folders)]
    ).fetchall()
    return {folder: {name.removeprefix(PREFIX) + layout.SUFFIX for name in names} for folder, names in rows}


def _try_current(path: Path, seen: Folders) -> duckdb.DuckDBPyConnection | None:
    """A connection when the file is there, whole, of this version, and knows all of ``seen``."""
    if not path.exists():
        return None
    try:
        connection = _open(path, read_only=True, limit_s=OPEN_FOR_S)
        version = connection.execute("SELECT value FROM meta WHERE key = 'version'").fetchone()
        known = dict(connection.execute("SELECT folder, stamp FROM folders").fetchall())
    except duckdb.Error:
        return None
    if version == (wire.VERSION,) and known == seen and 0 not in seen.values():
        return connection
    connection.close()
    return None


def _known(path: Path) -> Folders | None:
    """The folders that the file knows; None when it is missing, damaged or of another version."""
    if not path.exists():
        return None
    try:
        with _open(path, read_only=True, limit_s=OPEN_FOR_S) as connection:
            version = connection.execute("SELECT value FROM meta WHERE key = 'version'").fetchone()
            known = dict(connection.execute("SELECT folder, stamp FROM folders").fetchall())
    except duckdb.Error:
        return None
    return known if version == (wire.VERSION,) else None


def _open(path: Path, *, read_only: bool, limit_s: float) -> duckdb.DuckDBPyConnection:
    """Open the file, waiting while another process has it in a way that forbids it."""
    limit = time.monotonic() + limit_s
    while True:
        try:
            return duckdb.connect(str(path), read_only=read_only, config={"memory_limit": MEMORY, "threads": 2})
        except duckdb.IOException as error:
            if "lock" not in str(error).lower():
                raise
            if time.monotonic() > limit:
                raise StoreError("another process has the index", hint="wait for it to end, and ask again") from error
        time.sleep(PAUSE_S)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the one lock of writers; it goes with its holder."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def _scratch_file(folder: Path) -> Iterator[IO[bytes]]:
    with tempfile.NamedTemporaryFile(dir=folder, suffix=".jsonl") as file:
        yield file


def _subfolders(parent: Path) -> list[Path]:
    try:
        with os.scandir(parent) as entries:
            return [parent / entry.name for entry in entries if entry.name.isdigit() and entry.is_dir(follow_symlinks=False)]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - many names, no Path for each
    except FileNotFoundError:
        return []


def _sql(name: str) -> str:
    return files("ledger.query").joinpath(name).read_text(encoding="utf-8")
