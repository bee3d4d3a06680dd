"""``ledger log``: receipts in the order in which they were made.

What it does: lists sessions in order and, in each, its chain. What it does not do: sort by a clock. Rules kept: the newest
stand last, where a terminal ends; ``--attempts`` shows what was tried, and the attempts that no boot followed; a session that
did not end is told, with the command that goes on with it.
"""

import click

from ledger.cli.asked import how_to_resume, resumable
from ledger.cli.screen import show_json, show_remark, show_table
from ledger.cli.state import State, json_option, pass_state
from ledger.core.digest import short
from ledger.core.errors import ExitCode
from ledger.query.index import open_index
from ledger.query.listing import newest
from ledger.store.ledger import Ledger


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
        found = newest(connection, limit + 1, attempts=attempts, wanted=wanted)
    columns, rows = found.columns, found.rows
    for past in resumable(ledger):
        show_remark(how_to_resume(past))
    if as_json:
        show_json([dict(zip(columns, row, strict=True)) for row in rows[:limit][::-1]])
        return ExitCode.YES
    shown = [[short(str(row[0])), *map(str, row[1:])] for row in rows[:limit][::-1]]
    show_table(["receipt", *columns[1:]], shown, right=["n", "number"])
    if len(rows) > limit:
        show_remark(f"the newest {limit}; -n shows more")
    return ExitCode.YES
