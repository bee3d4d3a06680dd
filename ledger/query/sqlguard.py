"""SQL from a person, run on the documented views and on nothing else.

What it does: takes one SELECT, locks the database down, and runs it within a time, a memory and a row limit. What it does not
do: parse SQL itself; DuckDB says what kind of statement it is. Rules kept: the connection is read-only, its file and network
access and its configuration are locked before the statement is seen, and a statement that takes too long is interrupted. Memory
is bounded twice, since DuckDB's own limit does not count what its functions on text take.
"""

import resource
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb
from attrs import frozen

from ledger.core.errors import Problem, UsageError
from ledger.query.index import damaged

MAX_ROWS = 100_000
HEADROOM = 2**30
SPILL = "1GB"
_STATM = Path("/proc/self/statm")
LOCKS = (
    f"SET max_temp_directory_size = '{SPILL}'",
    "SET enable_external_access = false",
    "SET allow_community_extensions = false",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET lock_configuration = true",
)


class SqlError(UsageError):
    """A statement that is refused, wrong, or took too long."""


@frozen(kw_only=True)
class Table:
    """The columns and rows of a result; ``cut`` when there were more rows than the limit."""

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    cut: bool = False


def lock(connection: duckdb.DuckDBPyConnection) -> None:
    """Take away from a connection all that reaches outside the index."""
    for statement in LOCKS:
        connection.execute(statement)


def select(connection: duckdb.DuckDBPyConnection, statement: str, *, limit_s: float, max_rows: int = MAX_ROWS) -> Table:
    """The result of one SELECT, at most ``max_rows`` rows of it.

    Raises:
        SqlError: not one SELECT, wrong, longer than ``limit_s``, or in need of more memory than there is for it.
    """
    lock(connection)
    _refuse_other(connection, statement)
    timer = threading.Timer(limit_s, connection.interrupt)
    timer.start()
    try:
        with _bounded_memory():
            cursor = connection.execute(statement)
            rows = cursor.fetchmany(max_rows + 1)
        columns = tuple(str(column[0]) for column in cursor.description or ())
    except duckdb.InterruptException as error:
        raise SqlError(f"stopped after {limit_s:g} s", hint="ask for less, or give --timeout more seconds") from error
    except (MemoryError, duckdb.OutOfMemoryException) as error:
        raise SqlError("the statement needs more memory than there is for it", hint="ask for fewer or shorter values") from error
    except duckdb.Error as error:
        if damaged(error):
            raise
        raise SqlError(Problem(what=str(error).strip(), hint="the views: ledger sql --views")) from error
    finally:
        timer.cancel()
    return Table(columns=columns, rows=tuple(rows[:max_rows]), cut=len(rows) > max_rows)


@contextmanager
def _bounded_memory() -> Iterator[None]:
    """Let the process take ``HEADROOM`` more than it has, where the system says how much that is."""
    if not _STATM.exists():
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = int(_STATM.read_text().split()[0]) * resource.getpagesize() + HEADROOM
    resource.setrlimit(resource.RLIMIT_AS, (limit if soft == resource.RLIM_INFINITY else min(limit, soft), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def views(connection: duckdb.DuckDBPyConnection) -> Sequence[tuple[str, str]]:
    """The documented views with their columns."""
    rows = connection.execute(
        "SELECT table_name, string_agg(column_name, ', ' ORDER BY ordinal_position) FROM information_schema.columns "
        "WHERE table_name IN (SELECT view_name FROM duckdb_views() WHERE NOT internal) GROUP BY table_name ORDER BY table_name"
    ).fetchall()
    return [(str(name), str(columns)) for name, columns in rows]


def _refuse_other(connection: duckdb.DuckDBPyConnection, statement: str) -> None:
    try:
        found = connection.extract_statements(statement)
    except duckdb.Error as error:
        raise SqlError(Problem(what=str(error).strip(), hint="the views: ledger sql --views")) from error
    if len(found) != 1 or found[0].type != duckdb.StatementType.SELECT:
        kind = found[0].type.name.lower() if found else "nothing"
        what = "one SELECT is run at a time" if len(found) > 1 else f"only a SELECT is run, and this is {kind}"
        raise SqlError(Problem(what=what, hint="receipts change by `ledger run` and `ledger correct` alone"))
