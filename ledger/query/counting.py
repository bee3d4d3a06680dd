"""The samples behind two sides of a diff, so that it can be told how much of a change is how it was counted.

What it does: reads the figures of the trials of each side's boots from their receipts, in order, with their single shots. What
it does not do: attribute (``analysis``). Rules kept: a side of very many trials is passed over and said to be; struck trials
and figures that a cache answered are left out, as everywhere else.
"""

from collections.abc import Mapping, Sequence

import duckdb
from attrs import frozen

from ledger.analysis.attribute import Attribution
from ledger.analysis.counting import Boots, Shot, Way, how_counted, way_of
from ledger.core.metrics import describe
from ledger.query.sides import SideOf
from ledger.receipt.model import Trial
from ledger.store.ledger import Ledger

MOST = 200
HEADLINES = ("C", "prefill")


@frozen(kw_only=True)
class Counting:
    """A metric whose two sides were counted differently: how each was, and what that does to the change."""

    metric: str
    left: Way
    right: Way
    attribution: Attribution


def counting(
    ledger: Ledger, connection: duckdb.DuckDBPyConnection, left: SideOf, right: SideOf, metrics: Sequence[str]
) -> list[Counting]:
    """What of the change of each metric is counting; metrics that were counted alike are left out."""
    ours, theirs = _shots(ledger, connection, left), _shots(ledger, connection, right)
    found = []
    for metric in metrics:
        one, other = ours.get(metric, ()), theirs.get(metric, ())
        done, ways = how_counted(one, other), (way_of(one), way_of(other))
        if done is not None and ways[0] is not None and ways[1] is not None:
            found.append(Counting(metric=metric, left=ways[0], right=ways[1], attribution=done))
    return found


def is_headline(metric: str) -> bool:
    """Whether a metric is one that people compare first."""
    family = describe(metric).family
    return "/" not in metric and (family is None or family.name in HEADLINES)


def _shots(ledger: Ledger, connection: duckdb.DuckDBPyConnection, side: SideOf) -> Mapping[str, Boots]:
    """The shots of each metric, boot by boot."""
    is_trial = side.kind == "trial"
    where = "r.digest = ?" if is_trial else "list_contains(?::VARCHAR[], t.boot)"
    values: list[object] = [side.digest] if is_trial else [list(side.boots)]
    rows = connection.execute(
        "SELECT t.boot, r.digest FROM trial t JOIN receipt r USING (id) LEFT JOIN last_strike s ON s.digest = r.digest "
        f"WHERE {where} AND (s.digest IS NULL OR r.digest = ?) ORDER BY r.place, r.n, r.digest LIMIT {MOST + 1}",
        [*values, side.digest],
    ).fetchall()
    if len(rows) > MOST:
        return {}
    found: dict[str, dict[str, list[Shot]]] = {}
    for boot, digest in rows:
        body = ledger.read(digest).body
        if isinstance(body, Trial) and body.conditions.get("prefix_cache") != "hit":
            for name, shot in _of(body):
                found.setdefault(name, {}).setdefault(boot, []).append(shot)
    return {name: list(boots.values()) for name, boots in found.items()}


def _of(trial: Trial) -> list[tuple[str, Shot]]:
    return [
        (name, Shot(value=figure.value, statistic=figure.statistic, samples=figure.values or ()))
        for name, figure in trial.figures.items()
        if figure.value is not None and figure.conditions.get("prefix_cache") != "hit"
    ]
