"""Claims: made from a question, and looked at again.

What it does: evaluates a question that must have one answer, and says of every recorded claim whether it still holds. What it
does not do: record one (``cli`` does, through ``store``). Rules kept: a claim that a correction struck is not looked at; a
correction for one claim alone counts for that claim; the value now is asked anew, never remembered.
"""

from collections.abc import Iterable, Sequence

import duckdb
from attrs import frozen

from ledger.analysis.claims import State, state_of
from ledger.analysis.currency import in_force
from ledger.core.errors import LedgerError, Problem, UsageError
from ledger.core.words import Evidence
from ledger.query.ask import Row, answer, in_words, inputs_of
from ledger.query.index import corrections
from ledger.query.language import Ask, parse


@frozen(kw_only=True)
class Evaluated:
    """The one row of a question, its value, what the number is, and the receipts it rests on."""

    ask: Ask
    row: Row
    value: float
    orientation: str
    inputs: tuple[str, ...]


@frozen(kw_only=True)
class ClaimNow:
    """A recorded claim and what became of it. ``because`` names the corrections that struck its inputs, with their reasons."""

    digest: str
    name: str
    expression: str
    says: str
    then: float
    now: float | None
    state: State
    because: tuple[str, ...] = ()


def evaluate(connection: duckdb.DuckDBPyConnection, expression: str) -> Evaluated:
    """The answer to a question that has just one.

    Raises:
        UsageError: no answer, or several; the rows are named.
    """
    asked = parse(expression)
    rows = known(answer(connection, asked).rows)
    if len(rows) != 1:
        hint = f"narrow it to one of: {in_words([row for row, _ in rows])}" if rows else "ledger query shows what there is"
        raise UsageError(
            Problem(what=f"a claim is about one figure, and this question has {len(rows)}", value=expression, hint=hint)
        )
    (row, value), *_ = rows
    return Evaluated(ask=asked, row=row, value=value, orientation=orientation(asked), inputs=inputs_of(connection, asked))


def known(rows: Iterable[Row]) -> list[tuple[Row, float]]:
    """The rows that rest on figures of the ledger, each with its value: no range, and nothing that is only claimed."""
    return [(row, row.value) for row in rows if row.n_boots and row.value is not None]


def orientation(ask: Ask) -> str:
    """What the number is: ``value``, or ``ratio: <above> over <below>``."""
    if ask.over is None:
        return "value"
    above, _, below = ask.text.partition(" / ")
    return f"ratio: {above.strip()} over {below.strip()}"


def claims_now(connection: duckdb.DuckDBPyConnection) -> list[ClaimNow]:
    """Every claim that counts, in the order in which they were made."""
    rows = connection.execute(
        "SELECT r.digest, c.name, c.expression, c.says, c.value, c.evidence FROM claim c JOIN receipt r USING (id) "
        "LEFT JOIN struck s ON s.digest = r.digest WHERE s.digest IS NULL ORDER BY r.place, r.n"
    ).fetchall()
    return [_now(connection, *row) for row in rows]


def _now(
    connection: duckdb.DuckDBPyConnection, digest: str, name: str, expression: str, says: str, then: float, evidence: str
) -> ClaimNow:
    because = struck_inputs(connection, digest, f"claim:{name}")
    now = _value(connection, expression)
    return ClaimNow(
        digest=digest,
        name=name,
        expression=expression,
        says=says,
        then=then,
        now=now,
        state=_state(says, now, because, evidence),
        because=tuple(because),
    )


def _state(says: str, now: float | None, because: Sequence[str], evidence: str) -> State:
    try:
        return state_of(says, now, len(because), is_reported=evidence == Evidence.REPORTED)
    except UsageError:
        return State.FALSE


def _value(connection: duckdb.DuckDBPyConnection, expression: str) -> float | None:
    try:
        return evaluate(connection, expression).value
    except LedgerError:
        return None


def struck_inputs(connection: duckdb.DuckDBPyConnection, digest: str, use: str) -> list[str]:
    """The corrections that struck what a receipt rests on, for every use or for this one, as ``action: reason``."""
    rows = connection.execute(
        "SELECT DISTINCT s.action || ': ' || s.reason FROM link l "
        "JOIN receipt i ON i.digest = l.target LEFT JOIN trial it ON it.id = i.id "
        "JOIN struck s ON s.digest = i.digest OR s.digest = it.boot WHERE l.source = ? AND l.role = 'inputs' ORDER BY 1",
        [digest],
    ).fetchall()
    return [str(row[0]) for row in rows] + unfit_for(connection, _inputs(connection, digest), use)


def unfit_for(connection: duckdb.DuckDBPyConnection, digests: Sequence[str], use: str) -> list[str]:
    """The corrections in force that make one of the receipts unfit for ``use`` alone."""
    wanted = set(digests)
    kind = use.partition(":")[0]
    return [
        f"{item.action} for {item.scope}: {item.reason}"
        for item in in_force(corrections(connection))
        if item.scope in (use, kind) and wanted & set(item.targets)
    ]


def _inputs(connection: duckdb.DuckDBPyConnection, digest: str) -> list[str]:
    rows = connection.execute("SELECT target FROM link WHERE source = ? AND role = 'inputs'", [digest]).fetchall()
    return [str(row[0]) for row in rows]
