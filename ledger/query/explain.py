"""Why a figure changed between two moments: which new receipts and which corrections moved it, and by how much.

What it does: takes everything about a question that happened between the two moments apart into sessions and corrections, and
puts them in place one at a time, in every order. What it does not do: explain what the ledger does not hold. Rules kept: a ratio
is made of its two sides each time; what has no effect is left out; where the order matters, the spread over orders is told.
"""

from collections.abc import Callable, Mapping, Sequence

import duckdb
from attrs import frozen

from ledger.analysis.attribute import Attribution, attribute
from ledger.analysis.currency import CorrectionFact, standings
from ledger.core.digest import short
from ledger.core.errors import UsageError
from ledger.query.compile import raw
from ledger.query.language import Ask, Side, Word
from ledger.query.moment import Moment, Revision, moment
from ledger.query.replay import Sample, cells, samples_of

MOST = 40


@frozen(kw_only=True)
class Change:
    """One thing that happened: how it is called in the attribution, and what it was in words."""

    name: str
    words: str


@frozen(kw_only=True)
class Explained:
    """The attribution of the change, and what each of its names was."""

    attribution: Attribution
    changes: Mapping[str, Change]


def explain(connection: duckdb.DuckDBPyConnection, ask: Ask, left: str, right: str, revision: Revision) -> Explained:
    """Attribute the change of the one answer to ``ask`` from moment ``left`` to moment ``right``.

    Raises:
        UsageError: the question has no single answer at one of the moments, or too much happened between them.
    """
    first = moment(connection, left, Word(text=left, at=0), revision)
    held = [_held(connection, ask, part, first) for part in _sides(ask)]
    last = moment(connection, right, Word(text=right, at=0), revision)
    now = [_held(connection, ask, part, last) for part in _sides(ask)]
    players = _players(connection, held, now, first, last)
    if len(players) > MOST:
        raise UsageError(
            f"{len(players)} sessions and corrections lie between the two moments", hint=f"take moments with at most {MOST}"
        )
    value = _value(held, now, first, players)
    found = attribute(list(players), value, seed=ask.text)
    if found is None:
        raise UsageError(
            "the question has no single answer at one of the moments", hint="narrow it until `ledger query` gives one row"
        )
    return Explained(attribution=found, changes={name: change for name, (change, _, _) in players.items()})


Players = dict[str, tuple[Change, set[str], CorrectionFact | None]]


def _sides(ask: Ask) -> list[Side]:
    return [ask.side, *((ask.over,) if ask.over else ())]


def _held(connection: duckdb.DuckDBPyConnection, ask: Ask, part: Side, at: Moment) -> dict[str, list[Sample]]:
    return samples_of(connection, raw(ask, part, then=at.then))


def _players(
    connection: duckdb.DuckDBPyConnection,
    held: Sequence[Mapping[str, list[Sample]]],
    now: Sequence[Mapping[str, list[Sample]]],
    first: Moment,
    last: Moment,
) -> Players:
    """Each session that brought figures, and each correction, between the two moments."""
    new = sorted({digest for before, after in zip(held, now, strict=True) for digest in set(after) - set(before)})
    rows = connection.execute(
        "SELECT session, list(digest), any_value(strftime(time, '%Y-%m-%d')) FROM receipt "
        "WHERE digest IN (SELECT unnest(?::VARCHAR[])) GROUP BY session ORDER BY any_value(place)",
        [new],
    ).fetchall()
    players: Players = {}
    for session, digests, day in rows:
        words = f"{len(digests)} new trials of session {session} ({day})"
        players[session] = (Change(name=session, words=words), set(digests), None)
    before = {item.digest for item in first.corrections}
    for item in last.corrections:
        if item.digest not in before and _touches(item, now):
            words = f"{item.action} of {', '.join(short(target) for target in item.targets)}: {item.reason}"
            players[short(item.digest)] = (Change(name=short(item.digest), words=words), set(), item)
    return players


def _touches(item: CorrectionFact, now: Sequence[Mapping[str, list[Sample]]]) -> bool:
    there = {name for part in now for found in part.values() for sample in found for name in (sample.digest, sample.boot)}
    return bool(there & set(item.targets)) or item.action == "reinstate"


def _value(
    held: Sequence[Mapping[str, list[Sample]]], now: Sequence[Mapping[str, list[Sample]]], first: Moment, players: Players
) -> Callable[[frozenset[str]], float | None]:
    def at(taken: frozenset[str]) -> float | None:
        added = {digest for name in taken for digest in players[name][1]}
        made = [*first.corrections, *(fact for name in taken if (fact := players[name][2]) is not None)]
        gone = {item.digest for item in standings(made)}
        values = [_one(before, after, added, gone) for before, after in zip(held, now, strict=True)]
        if any(value is None for value in values):
            return None
        top, *under = [value for value in values if value is not None]
        return top / under[0] if under and under[0] else top if not under else None

    return at


def _one(before: Mapping[str, list[Sample]], after: Mapping[str, list[Sample]], added: set[str], gone: set[str]) -> float | None:
    """The one cell of a side with these receipts added and struck; None when there is none, or more than one."""
    there = [sample for digest, found in after.items() if digest in before or digest in added for sample in found]
    found = cells(there, gone)
    return next(iter(found.values()))[0] if len(found) == 1 else None
