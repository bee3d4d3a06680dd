"""Which of several differing factors the ledger can isolate.

What it does: for each factor that differs between two sides, looks for boots that have all of the left side's configuration but
this one value of the right side's, and says how far they move each metric. What it does not do: run one. Rules kept: nothing but
the one factor may differ, context included; what no boot isolates is named with the run that would.
"""

import statistics
from collections.abc import Mapping, Sequence

import duckdb
from attrs import frozen

from ledger.analysis.compare import FactorChange
from ledger.core.words import FieldClass
from ledger.query.sides import SideOf, samples_of_boots

CLASSES = (FieldClass.IDENTITY, FieldClass.CONTEXT)


@frozen(kw_only=True)
class Isolated:
    """One factor: the boots that differ from the left side in it alone, and the left's and their median of each metric."""

    change: FactorChange
    boots: tuple[str, ...]
    moved: Mapping[str, tuple[float, float]]


def isolate(connection: duckdb.DuckDBPyConnection, left: SideOf, changes: Sequence[FactorChange]) -> list[Isolated]:
    """What the ledger holds for each differing factor that counts, alone."""
    return [_one(connection, left, change) for change in changes if change.kind in CLASSES]


def _one(connection: duckdb.DuckDBPyConnection, left: SideOf, change: FactorChange) -> Isolated:
    wanted = {**left.factors.identity, **left.factors.context}
    wanted.pop(change.key, None)
    if change.right is not None:
        wanted[change.key] = change.right
    boots = _boots_with(connection, wanted, left.evidence)
    theirs = samples_of_boots(connection, boots) if boots else {}
    moved = {
        name: (statistics.median(left.samples[name].values), statistics.median(theirs[name].values))
        for name in sorted(set(theirs) & set(left.samples))
    }
    return Isolated(change=change, boots=tuple(boots), moved=moved)


def _boots_with(connection: duckdb.DuckDBPyConnection, wanted: Mapping[str, str], evidence: str) -> list[str]:
    """The ready boots that count whose identity and context are exactly these."""
    rows = connection.execute(
        "WITH want AS (SELECT unnest(?::VARCHAR[]) AS key, unnest(?::VARCHAR[]) AS value), "
        "held AS (SELECT f.boot, count(*) AS all_of, count(w.key) AS matching FROM factor f "
        "LEFT JOIN want w ON w.key = f.key AND w.value = f.value WHERE f.class IN ('identity', 'context') GROUP BY f.boot) "
        "SELECT r.digest FROM held h JOIN receipt r ON r.id = h.boot JOIN boot b ON b.id = r.id "
        "LEFT JOIN struck s ON s.digest = r.digest WHERE h.all_of = ? AND h.matching = ? AND b.outcome = 'ready' "
        "AND r.evidence = ? AND s.digest IS NULL ORDER BY r.place, r.n",
        [list(wanted), list(wanted.values()), len(wanted), len(wanted), evidence],
    ).fetchall()
    return [str(row[0]) for row in rows]
