"""The history of a cell: every value it has had, when, and why it changed.

What it does: replays the receipts that a question is about and all corrections, in the order in which they were made, and notes
each change of the answer. What it does not do: look at git. Rules kept: order is that of sessions and of the chain in each; a
step that changes nothing is not told.
"""

import statistics
from collections.abc import Iterator, Mapping, Sequence

import duckdb
from attrs import frozen

from ledger.analysis.currency import CorrectionFact, standings
from ledger.query import compile as sql
from ledger.query.index import corrections
from ledger.query.language import Ask, Word, wrong

Key = tuple[str, ...]


@frozen(kw_only=True)
class Moment:
    """A change of a cell: when and by which receipt, the value from then on (None when nothing is left), boots, and why."""

    time: str
    receipt: str
    cell: str
    value: float | None
    n_boots: int
    why: str


@frozen(kw_only=True)
class Sample:
    """One figure: its receipt, its boot, the words of its cell, and its value."""

    digest: str
    boot: str
    key: Key
    value: float


def history(connection: duckdb.DuckDBPyConnection, ask: Ask) -> list[Moment]:
    """Every change of every cell that ``ask`` is about, oldest first.

    Raises:
        QueryError: a ratio; ask for its two sides.
    """
    if ask.over is not None:
        first = ask.over.metrics[0]
        word = first if isinstance(first, Word) else first.word
        raise wrong(ask.text, word, "a history is of one side", hint="ask for each side of the ratio by itself")
    samples = samples_of(connection, sql.raw(ask, ask.side))
    facts = {item.digest: item for item in corrections(connection)}
    steps = _order(connection, [*samples, *facts])
    return list(_replay(steps, samples, facts))


def _replay(
    steps: Sequence[tuple[str, str]], samples: Mapping[str, list[Sample]], facts: Mapping[str, CorrectionFact]
) -> Iterator[Moment]:
    there: list[Sample] = []
    made: list[CorrectionFact] = []
    before: dict[Key, tuple[float, int]] = {}
    for digest, time in steps:
        if digest in facts:
            made.append(facts[digest])
            why = f"{facts[digest].action}: {facts[digest].reason}"
        else:
            there += samples[digest]
            why = "measured"
        after = cells(there, {item.digest for item in standings(made)})
        for key in sorted({*before, *after}):
            if before.get(key) != after.get(key):
                value, boots = after.get(key, (None, 0))
                yield Moment(time=time, receipt=digest, cell=" ".join(key), value=value, n_boots=boots, why=why)
        before = after


def cells(samples: Sequence[Sample], struck: set[str]) -> dict[Key, tuple[float, int]]:
    """Each cell's value and number of boots, without what is struck; a struck boot takes its trials along."""
    boots: dict[Key, dict[str, list[float]]] = {}
    for item in samples:
        if item.digest not in struck and item.boot not in struck:
            boots.setdefault(item.key, {}).setdefault(item.boot, []).append(item.value)
    return {
        key: (statistics.median(statistics.median(values) for values in found.values()), len(found))
        for key, found in boots.items()
    }


def samples_of(connection: duckdb.DuckDBPyConnection, statement: sql.Statement) -> dict[str, list[Sample]]:
    """The single figures of a raw statement, by receipt."""
    found: dict[str, list[Sample]] = {}
    for digest, boot, value, *key in connection.execute(statement.sql, list(statement.values)).fetchall():
        names = tuple(str(part) for part in key if part not in (None, "", False))
        found.setdefault(str(digest), []).append(Sample(digest=str(digest), boot=str(boot), key=names, value=float(value)))
    return found


def _order(connection: duckdb.DuckDBPyConnection, digests: Sequence[str]) -> list[tuple[str, str]]:
    rows = connection.execute(
        "SELECT digest, strftime(time, '%Y-%m-%d %H:%M:%S') FROM receipt WHERE digest IN (SELECT unnest(?::VARCHAR[])) "
        "ORDER BY place, n",
        [list(digests)],
    ).fetchall()
    return [(str(digest), str(time)) for digest, time in rows]
