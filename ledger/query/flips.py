"""What a correction would turn over: the verdicts and claims that rest on its targets, made again without them.

What it does: applies a decision's own rule to its own inputs less the ones that would be struck, and asks a claim's question
again as if they were. What it does not do: write anything. Rules kept: nothing but the targets changes between *now* and
*then*; what cannot be made again says so.
"""

import statistics
from collections.abc import Mapping, Sequence

import duckdb
from attrs import evolve

from ledger.analysis.claims import agrees
from ledger.analysis.rule import Limits, Sides, judge
from ledger.core import units
from ledger.core.errors import LedgerError
from ledger.query.ask import answer
from ledger.query.blast import Dependent
from ledger.query.claims import known
from ledger.query.compile import Tables
from ledger.query.language import parse
from ledger.receipt.model import Claim, Decision
from ledger.store.ledger import Ledger

STRUCK_IF = "struck_if"
Values = dict[str, dict[str, list[float]]]


def flips(
    ledger: Ledger, connection: duckdb.DuckDBPyConnection, struck: Sequence[str], dependents: Sequence[Dependent]
) -> tuple[Dependent, ...]:
    """The dependents with what each would say then."""
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE {STRUCK_IF} AS SELECT digest, action FROM last_strike "
        "UNION SELECT i.digest, 'this correction' FROM (SELECT unnest(?::VARCHAR[]) AS digest) i ANTI JOIN struck USING (digest)",
        [list(struck)],
    )
    return tuple(evolve(item, then=_then(ledger, connection, item, set(struck))) for item in dependents)


def _then(ledger: Ledger, connection: duckdb.DuckDBPyConnection, item: Dependent, struck: set[str]) -> str:
    body = ledger.read(item.digest).body
    try:
        if isinstance(body, Decision):
            return _verdict(connection, body, struck)
        return _claim(connection, body) if isinstance(body, Claim) else ""
    except LedgerError:
        return "cannot be made again"


def _verdict(connection: duckdb.DuckDBPyConnection, body: Decision, struck: set[str]) -> str:
    if body.mend is not None:
        return str(body.verdict)  # its control did not qualify, and a strike alone makes no new boot
    rule = body.rule
    if not rule.get("metrics"):
        return "not known: it holds no rule"
    values = _values(connection, [name for name in body.inputs if name not in struck])
    limits = Limits(
        metrics=tuple(str(name) for name in rule["metrics"]),
        better_than=_ratio(rule.get("better_than", "2 %")),
        worse_than=_ratio(rule.get("worse_than", "2 %")),
    )
    sides = Sides(arm=values.get(body.subject.arm, {}), control=values.get(body.control or "", {}))
    return str(judge(limits, sides).verdict)


def _values(connection: duckdb.DuckDBPyConnection, digests: Sequence[str]) -> Values:
    rows = connection.execute(
        "SELECT arm, metric, boot, list(value) FROM metrics WHERE digest IN (SELECT unnest(?::VARCHAR[])) AND struck_by IS NULL "
        "AND value IS NOT NULL AND coalesce(prefix_cache, '') <> 'hit' GROUP BY arm, metric, boot ORDER BY boot",
        [list(digests)],
    ).fetchall()
    found: Values = {}
    for arm, metric, _, values in rows:
        found.setdefault(arm, {}).setdefault(metric, []).append(statistics.median(values))
    return found


def _claim(connection: duckdb.DuckDBPyConnection, body: Claim) -> str:
    rows = known(answer(connection, parse(body.expression), tables=Tables(struck=STRUCK_IF)).rows)
    if len(rows) != 1:
        return "no figure"
    ((_, value),) = rows
    return "holds" if agrees(body.says, value) else f"false: {value:.{body.decimals}f}"


def _ratio(text: object) -> float:
    return units.parse(str(text), dimension="ratio", default_unit="ratio").number


def changed(item: Dependent) -> bool:
    """Whether it would say something else."""
    outcomes: Mapping[str, str] = {"decision": item.said, "claim": "holds"}
    return item.then != outcomes.get(item.kind, item.then)
