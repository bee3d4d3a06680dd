"""Receipts in the order in which they were made.

What it does: reads the newest receipts, or attempts with what became of them, as rows. What it does not do: show them. Rule kept:
the order is that of sessions and, in each, of the chain; never that of a clock.
"""

from collections.abc import Mapping

import duckdb
from attrs import frozen

RECEIPTS = """
SELECT r.digest, r.kind, strftime(r.time, '%Y-%m-%d %H:%M:%S') AS time, r.session, r.n, coalesce(r.spec, '') AS spec,
       coalesce(r.arm, '') AS arm,
       coalesce(b.outcome, d.verdict, g.gate || ' ' || g.holds, c.action, t.measure || ' ' || t.ok || '/' || t.launched, '')
         AS said,
       coalesce(s.action, '') AS struck
FROM receipt r LEFT JOIN boot b USING (id) LEFT JOIN decision d USING (id) LEFT JOIN gate g USING (id)
LEFT JOIN correction c USING (id) LEFT JOIN trial t USING (id) LEFT JOIN last_strike s ON s.digest = r.digest
"""
ATTEMPTS = """
SELECT r.digest, strftime(r.time, '%Y-%m-%d %H:%M:%S') AS time, r.session, coalesce(r.spec, '') AS spec,
       coalesce(r.arm, '') AS arm, a.number, a.position || ' of ' || a.planned AS position,
       coalesce(b.outcome, 'no boot receipt') AS outcome,
       coalesce(b.reason, CASE WHEN b.attempt IS NULL THEN coalesce((
         SELECT arg_min(later.reason, rr.n) FROM receipt rr JOIN attempt later USING (id)
         WHERE rr.session = r.session AND later.position = a.position AND rr.n > r.n
       ), 'the runner was ended') END, '') AS reason
FROM receipt r JOIN attempt a USING (id) LEFT JOIN boot b ON b.attempt = r.digest
"""


@frozen(kw_only=True)
class Listing:
    """Column names and rows, the newest first."""

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]


def newest(
    connection: duckdb.DuckDBPyConnection, limit: int, *, attempts: bool = False, wanted: Mapping[str, str | None] | None = None
) -> Listing:
    """At most ``limit`` receipts or attempts. ``wanted`` maps ``session`` (its end), ``spec``, ``arm`` or ``kind`` to a value."""
    conditions = ["true"]
    values: list[object] = []
    for column, value in (wanted or {}).items():
        if value is not None:
            conditions.append("ends_with(r.session, ?)" if column == "session" else f"r.{column} = ?")
            values.append(value)
    statement = f"{ATTEMPTS if attempts else RECEIPTS} WHERE {' AND '.join(conditions)} ORDER BY r.place DESC, r.n DESC LIMIT ?"
    cursor = connection.execute(statement, [*values, limit])
    columns = tuple(str(column[0]) for column in cursor.description or ())
    return Listing(columns=columns, rows=tuple(cursor.fetchall()))
