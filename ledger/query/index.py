"""The index: a DuckDB file under the state folder, derived from the receipts and kept up with them.

What it does: reads what ``arrivals`` finds to be new, forgets what is gone, and opens the file for questions. What it does not
do: verify a receipt, or answer (``ask``). Rules kept: the index is never the truth: when it is missing, damaged or of
another version, it is built again and nobody is bothered; a receipt that cannot be read is left out and counted; one process
writes at a time, and readers never fail for it.
"""

import fcntl
import os
import shutil
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb

from ledger.analysis.currency import CorrectionFact, equivalences, standings, taken_as_one
from ledger.core.errors import AgainError, StoreError
from ledger.query import wire
from ledger.query.arrivals import Listed, News, Stamps, broken, compare, is_pack, listed, scan
from ledger.query.ingest import (
    Connection,
    Intake,
    forget,
    insert,
    names_in,
    orphans,
    replace_bad,
    sessions_known,
    sql,
)
from ledger.store.ledger import Ledger
from ledger.store.objects import refused

FILE = "index.duckdb"
LOCK = "index.lock"
OPEN_FOR_S = 20.0
WRITE_FOR_S = 2.0
PAUSE_S = 0.01
# What DuckDB may hold while it builds, and while it answers: an answer over a million receipts is slow when it has to spill.
MEMORY = "260MB"
ANSWER_MEMORY = "1GB"

_FOLDERS: Mapping[str, str] = {"folder": "VARCHAR", "stamp": "BIGINT"}


@contextmanager
def open_index(ledger: Ledger) -> Iterator[Connection]:
    """A read-only connection to an index that knows every receipt now on disk.

    Raises:
        StoreError: the state folder cannot be written, or another process holds the index for too long.
        AgainError: the file turned out to be damaged where it was read; it is gone, and whoever asks again gets a new one.
    """
    with _current(ledger) as connection:
        try:
            yield connection
        except duckdb.Error as error:
            if not damaged(error):
                raise
            (ledger.state / FILE).unlink(missing_ok=True)
            raise AgainError("the index was damaged and is removed", hint="ask again: it is built anew") from error


def damaged(error: duckdb.Error) -> bool:
    """Whether the error is of the file, not of a statement; DuckDB checks a block only when it reads it."""
    return type(error) is duckdb.Error or isinstance(error, duckdb.FatalException | duckdb.InternalException)


def _current(ledger: Ledger) -> Connection:
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
        try:
            catch_up(ledger, path, seen)
        except OSError as error:
            raise refused(error, path) from error
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


def catch_up(ledger: Ledger, path: Path, seen: Stamps) -> None:
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


def _replace(ledger: Ledger, path: Path, seen: Stamps, start: Path | None) -> None:
    """Build the index in a file of its own and move it into place."""
    made = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        if start is not None:
            shutil.copyfile(start, made)
        with _open(made, read_only=False, limit_s=WRITE_FOR_S) as connection:
            if start is None:
                connection.execute(sql("schema.sql"))
                connection.execute("INSERT INTO meta VALUES ('version', ?)", [wire.VERSION])
            # A file that nobody has yet may be committed in steps; what is not committed is held in memory.
            _apply(ledger, connection, seen, in_steps=start is None)
        made.replace(path)
    finally:
        for left in (made, made.with_name(made.name + ".wal")):
            left.unlink(missing_ok=True)


def _apply(ledger: Ledger, connection: Connection, seen: Stamps, *, in_steps: bool = False) -> None:
    """Add what is new and remove what is gone, in one transaction or in steps."""
    news = compare(seen, dict(connection.execute("SELECT folder, stamp FROM folders").fetchall()))
    connection.execute("BEGIN")
    _ingest(ledger, connection, seen, news, in_steps=in_steps)
    entries = [*news.changed, *news.gone]
    connection.execute("DELETE FROM folders WHERE folder IN (SELECT unnest(?::VARCHAR[]))", [entries])
    if news.changed:
        insert(connection, ledger.state, "folders", _FOLDERS, [(entry, seen[entry]) for entry in news.changed])
    apply_corrections(connection, ledger.state)
    connection.execute("COMMIT")


def _ingest(ledger: Ledger, connection: Connection, seen: Stamps, news: News, *, in_steps: bool) -> None:
    """Read every receipt that the index lacks of what has changed, and forget those that are gone.

    A pack that came or went may have taken receipts from any session of its month, or given them back.
    """
    months = {entry[:7] for entry in news.packs()}
    sessions = news.sessions() | sessions_known(connection, months)
    sessions |= {entry for entry in seen if entry[:7] in months and not is_pack(entry)}
    replace_bad(connection, news.packs(), broken(ledger, (entry for entry in news.changed if is_pack(entry))))
    intake = Intake(ledger.receipts, ledger.state, connection, in_steps=in_steps)
    for items in listed(ledger, sessions, months):
        intake.settle()
        have = names_in(connection, [item.folder for item in items])
        for item in items:
            if lost := have.get(item.folder, set()) - item.names():
                forget(connection, item.folder, lost)
        # From here on the connection is the intake's own.
        for item in items:
            _take(intake, item, item.names() - have.get(item.folder, set()))
    intake.settle()
    _take_again(ledger, intake, orphans(connection))
    _take_again(ledger, intake, intake.vanished)
    intake.close()


def _take(intake: Intake, item: Listed, wanted: set[str]) -> None:
    """Have the intake read the receipts of these digests, each block unpacked once."""
    for name in sorted(wanted & item.loose):
        intake.add(item.folder, name)
    packed = wanted - item.loose
    for block in dict.fromkeys(item.packed[name] for name in packed):
        intake.unpack(item.folder, block, packed)


def _take_again(ledger: Ledger, intake: Intake, places: Sequence[tuple[str, str]]) -> None:
    """Read receipts wherever in their sessions they stand by now; one that is nowhere is gone."""
    wanted: dict[str, set[str]] = defaultdict(set)
    for folder, name in places:
        wanted[folder].add(name)
    for items in listed(ledger, wanted):
        for item in items:
            _take(intake, item, wanted[item.folder] & item.names())


def apply_corrections(connection: Connection, scratch: Path) -> None:
    """Fill ``struck``, ``last_strike`` and ``same_config`` from all corrections."""
    made = corrections(connection)
    struck = [(item.digest, item.by, item.action, item.replacement, item.reason) for item in standings(made)]
    alike = list(same_configs(connection, made).items())
    for table, rows in (("struck", struck), ("same_config", alike)):
        connection.execute(f"DELETE FROM {table}")
        if rows:
            insert(connection, scratch, table, _CORRECTED[table], rows)
    connection.execute("DELETE FROM last_strike")
    connection.execute(_LAST_STRIKE)


_LAST_STRIKE = """
INSERT INTO last_strike
SELECT s.digest, last(s.by_digest ORDER BY r.place, r.n, r.digest), last(s.action ORDER BY r.place, r.n, r.digest)
FROM struck s JOIN receipt r ON r.digest = s.by_digest GROUP BY s.digest
"""
_CORRECTED: Mapping[str, Mapping[str, str]] = {
    "struck": dict.fromkeys(("digest", "by_digest", "action", "replacement", "reason"), "VARCHAR"),
    "same_config": dict.fromkeys(("fingerprint", "taken_as"), "VARCHAR"),
}


def same_configs(connection: Connection, made: Sequence[CorrectionFact]) -> dict[str, str]:
    """Each fingerprint that a correction calls the same as another, with the one that stands for all of them."""
    found = equivalences(made)
    rows = connection.execute(
        "SELECT r.digest, b.fingerprint FROM receipt r LEFT JOIN trial t USING (id) "
        "JOIN boot b ON b.digest = coalesce(t.boot, r.digest) WHERE r.digest IN (SELECT unnest(?::VARCHAR[]))",
        [[name for item in found for name in (item.left, item.right)]],
    ).fetchall()
    of = dict(rows)
    return taken_as_one([(of[item.left], of[item.right]) for item in found if item.left in of and item.right in of])


def corrections(connection: Connection, until: str | None = None) -> list[CorrectionFact]:
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


def _try_current(path: Path, seen: Stamps) -> Connection | None:
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


def _known(path: Path) -> Stamps | None:
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


def _open(path: Path, *, read_only: bool, limit_s: float) -> Connection:
    """Open the file, waiting while another process has it in a way that forbids it."""
    deadline = time.monotonic() + limit_s
    while True:
        try:
            limit = ANSWER_MEMORY if read_only else MEMORY
            return duckdb.connect(str(path), read_only=read_only, config={"memory_limit": limit, "threads": 2})
        except duckdb.IOException as error:
            if "lock" not in str(error).lower():
                raise
            if time.monotonic() > deadline:
                raise StoreError("another process has the index", hint="wait for it to end, and ask again") from error
        time.sleep(PAUSE_S)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the one lock of writers; it goes with its holder."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
