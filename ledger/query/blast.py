"""What rests on a receipt: the cells, decisions and notes that a correction of it would touch.

What it does: follows links backwards from the targets, and works out every cell that they are part of, with and without them.
What it does not do: write the correction. Rules kept: a boot carries its trials with it; a cell is shown with the value that it
would have, or as empty when nothing is left.
"""

import statistics
from collections.abc import Sequence

import duckdb
from attrs import frozen


@frozen(kw_only=True)
class CellChange:
    """A cell (spec, arm, metric, evidence) before and after; ``after`` is None when no boot is left in it."""

    spec: str
    arm: str
    metric: str
    unit: str
    evidence: str
    before: float
    after: float | None
    n_before: int
    n_after: int


@frozen(kw_only=True)
class Dependent:
    """A decision (``name`` is its arm), claim or correction that rests on a target; ``then`` is what it would say."""

    digest: str
    kind: str
    name: str
    said: str
    then: str = ""


@frozen(kw_only=True)
class Blast:
    """All that a correction would touch. ``struck`` are the receipts that stop counting, the trials of a boot included."""

    struck: tuple[str, ...]
    cells: tuple[CellChange, ...]
    dependents: tuple[Dependent, ...]


def blast(connection: duckdb.DuckDBPyConnection, targets: Sequence[str], *, strikes: bool) -> Blast:
    """The blast radius of a correction of ``targets``; ``strikes`` when it takes figures out of the cells."""
    struck = _with_trials(connection, targets)
    cells = _cells(connection, struck) if strikes else ()
    return Blast(struck=struck, cells=cells, dependents=_dependents(connection, struck))


def _with_trials(connection: duckdb.DuckDBPyConnection, targets: Sequence[str]) -> tuple[str, ...]:
    rows = connection.execute(
        "SELECT digest FROM receipt WHERE digest IN (SELECT unnest(?::VARCHAR[])) "
        "UNION SELECT r.digest FROM trial t JOIN receipt r USING (id) WHERE t.boot IN (SELECT unnest(?::VARCHAR[])) ORDER BY 1",
        [list(targets), list(targets)],
    ).fetchall()
    return tuple(str(row[0]) for row in rows)


def _cells(connection: duckdb.DuckDBPyConnection, struck: Sequence[str]) -> tuple[CellChange, ...]:
    rows = connection.execute(
        "WITH part AS (SELECT DISTINCT spec, arm, metric, evidence FROM metrics WHERE digest IN (SELECT unnest(?::VARCHAR[])) "
        "AND struck_by IS NULL AND value IS NOT NULL) "
        "SELECT spec, arm, metric, evidence, any_value(unit), boot, median(value), "
        "median(value) FILTER (digest NOT IN (SELECT unnest(?::VARCHAR[]))) "
        "FROM metrics JOIN part USING (spec, arm, metric, evidence) WHERE struck_by IS NULL AND value IS NOT NULL "
        "GROUP BY spec, arm, metric, evidence, boot ORDER BY spec, arm, metric",
        [list(struck), list(struck)],
    ).fetchall()
    cells: dict[tuple[str, str, str, str, str], tuple[list[float], list[float]]] = {}
    for spec, arm, metric, evidence, unit, _, before, after in rows:
        values = cells.setdefault((spec, arm, metric, unit or "", evidence), ([], []))
        values[0].append(float(before))
        if after is not None:
            values[1].append(float(after))
    return tuple(_change(*key, before, after) for key, (before, after) in cells.items())


def _change(
    spec: str, arm: str, metric: str, unit: str, evidence: str, before: Sequence[float], after: Sequence[float]
) -> CellChange:
    return CellChange(
        spec=spec,
        arm=arm,
        metric=metric,
        unit=unit,
        evidence=evidence,
        before=statistics.median(before),
        after=statistics.median(after) if after else None,
        n_before=len(before),
        n_after=len(after),
    )


def _dependents(connection: duckdb.DuckDBPyConnection, struck: Sequence[str]) -> tuple[Dependent, ...]:
    rows = connection.execute(
        "WITH RECURSIVE up AS (SELECT source FROM link WHERE role IN ('inputs', 'replacements') "
        "AND target IN (SELECT unnest(?::VARCHAR[])) "
        "UNION SELECT l.source FROM link l JOIN up ON l.target = up.source WHERE l.role = 'inputs') "
        "SELECT r.digest, r.kind, coalesce(r.arm, m.name, ''), coalesce(d.verdict, c.action, m.says, '') FROM up "
        "JOIN receipt r ON r.digest = up.source LEFT JOIN decision d USING (id) LEFT JOIN correction c USING (id) "
        "LEFT JOIN claim m USING (id) LEFT JOIN struck s ON s.digest = r.digest WHERE s.digest IS NULL "
        "ORDER BY r.place, r.n",
        [list(struck)],
    ).fetchall()
    return tuple(Dependent(digest=str(row[0]), kind=str(row[1]), name=str(row[2]), said=str(row[3])) for row in rows)
