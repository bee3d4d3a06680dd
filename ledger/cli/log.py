"""``ledger log``: receipts in the order in which they were made.

What it does: lists sessions in order and, in each, its chain. What it does not do: sort by a clock. Rules kept: the newest
stand last, where a terminal ends; ``--attempts`` shows what was tried, and the attempts that no boot followed.
"""

import click
import duckdb

from ledger.cli.screen import show_json, show_remark, show_table
from ledger.cli.state import State, json_option, pass_state
from ledger.core.digest import short
from ledger.core.errors import ExitCode
from ledger.query.index import open_index
from ledger.store.ledger import Ledger

RECEIPTS = """
SELECT r.digest, r.kind, strftime(r.time, '%Y-%m-%d %H:%M:%S') AS time, r.session, r.n, coalesce(r.spec, '') AS spec,
       coalesce(r.arm, '') AS arm,
       coalesce(b.outcome, d.verdict, g.gate || ' ' || g.holds, c.action, t.measure || ' ' || t.ok || '/' || t.launched, '')
         AS said,
       coalesce(s.action, '') AS struck
FROM receipt r LEFT JOIN boot b USING (id) LEFT JOIN decision d USING (id) LEFT JOIN gate g USING (id)
LEFT JOIN correction c USING (id) LEFT JOIN trial t USING (id) LEFT JOIN struck s ON s.digest = r.digest
"""
ATTEMPTS = """
SELECT r.digest, strftime(r.time, '%Y-%m-%d %H:%M:%S') AS time, r.session, coalesce(r.spec, '') AS spec,
       coalesce(r.arm, '') AS arm, a.number, a.position || ' of ' || a.planned AS position,
       coalesce(b.outcome, 'no boot receipt') AS outcome, coalesce(b.reason, '') AS reason
FROM receipt r JOIN attempt a USING (id) LEFT JOIN boot b ON b.attempt = r.digest
"""


@click.command()
@click.option("--attempts", is_flag=True, help="What was tried, and what became of it.")
@click.option("--session", help="One session, by its name or the end of it.")
@click.option("--spec", help="One spec.")
@click.option("--arm", help="One arm.")
@click.option("--kind", help="One kind of receipt.")
@click.option("--limit", "-n", type=click.IntRange(1), default=50, show_default=True, help="At most so many, the newest.")
@json_option
@pass_state
def log(state: State, /, attempts: bool, limit: int, as_json: bool, **wanted: str | None) -> int:
    """List receipts in the order in which they were made, the newest last."""
    ledger = Ledger.find(state.directory)
    with open_index(ledger) as connection:
        columns, rows = _rows(connection, attempts, limit + 1, wanted)
    if as_json:
        show_json([dict(zip(columns, row, strict=True)) for row in rows[:limit][::-1]])
        return ExitCode.YES
    shown = [[short(str(row[0])), *map(str, row[1:])] for row in rows[:limit][::-1]]
    show_table(["receipt", *columns[1:]], shown, right=["n", "number"])
    if len(rows) > limit:
        show_remark(f"the newest {limit}; -n shows more")
    return ExitCode.YES


def _rows(
    connection: duckdb.DuckDBPyConnection, attempts: bool, limit: int, wanted: dict[str, str | None]
) -> tuple[list[str], list[tuple[object, ...]]]:
    conditions = ["true"]
    values: list[object] = []
    for column, value in wanted.items():
        if value is not None:
            conditions.append("ends_with(r.session, ?)" if column == "session" else f"r.{column} = ?")
            values.append(value)
    statement = f"{ATTEMPTS if attempts else RECEIPTS} WHERE {' AND '.join(conditions)} ORDER BY r.folder DESC, r.n DESC LIMIT ?"
    cursor = connection.execute(statement, [*values, limit])
    return [str(column[0]) for column in cursor.description or ()], cursor.fetchall()
