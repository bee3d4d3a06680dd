"""What each lane serves: the latest state of each that counts.

What it does: reads it from the index, now or at a moment. What it does not do: look at a server. Rule kept: the latest is by the
time from which on it is said to hold, and of two that begin together by the order in which they were recorded.
"""

from typing import Any

import attrs
import duckdb
from attrs import frozen


@frozen(kw_only=True)
class LaneState:
    """What a lane does from ``since`` on, and who says so."""

    lane: str
    state: str
    since: str
    arm: str | None
    nodes: tuple[str, ...]
    port: int | None
    note: str | None
    author: str
    evidence: str
    digest: str

    def data(self) -> dict[str, Any]:
        """The state as plain data, absent fields left out."""
        return {key: value for key, value in attrs.asdict(self).items() if value not in (None, ())}


def states(connection: duckdb.DuckDBPyConnection, at: str | None) -> list[LaneState]:
    """The state of every lane at ``at``, a UTC timestamp, or now; by lane."""
    rows = connection.execute(
        "SELECT v.lane, v.state, strftime(v.since, '%Y-%m-%dT%H:%M:%SZ'), v.arm, v.nodes, v.port, v.note, v.author, v.evidence, "
        "r.digest FROM serves v JOIN receipt r USING (id) LEFT JOIN last_strike s ON s.digest = r.digest "
        "WHERE s.digest IS NULL AND (?::TIMESTAMP IS NULL OR v.since <= ?::TIMESTAMP) "
        "QUALIFY row_number() OVER (PARTITION BY v.lane ORDER BY v.since DESC, r.place DESC, r.n DESC) = 1 ORDER BY v.lane",
        [at, at],
    ).fetchall()
    names = [item.name for item in attrs.fields(LaneState)]
    return [LaneState(**{**dict(zip(names, row, strict=True)), "nodes": tuple(row[4] or ())}) for row in rows]
