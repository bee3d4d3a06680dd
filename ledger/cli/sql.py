"""``ledger sql``: one read-only SELECT over the documented views.

What it does: runs it under the guard and shows the rows. What it does not do: anything that the guard refuses. Rule kept: a
result that was cut says so.
"""

import csv
import sys

import click

from ledger.cli.screen import show_json, show_remark, show_table
from ledger.cli.state import State, json_option, pass_state
from ledger.core.errors import ExitCode, UsageError
from ledger.query.index import open_index
from ledger.query.sqlguard import Table, lock, select, views
from ledger.store.ledger import Ledger


@click.command()
@click.argument("statement", required=False)
@click.option("--views", "show_views", is_flag=True, help="List the views and their columns.")
@click.option("--format", "style", type=click.Choice(("table", "json", "csv")), default="table", show_default=True)
@click.option("--timeout", type=click.FloatRange(0.1, 3600), default=30.0, show_default=True, help="Seconds until it is stopped.")
@json_option
@pass_state
def sql(state: State, statement: str | None, show_views: bool, style: str, timeout: float, as_json: bool) -> int:
    """Run one SELECT over the documented views.

    \b
    ledger sql "select arm, median(value) from cells where metric = 'C6' group by arm"
    """
    ledger = Ledger.find(state.directory)
    with open_index(ledger) as connection:
        if show_views:
            lock(connection)
            found = Table(columns=("view", "columns"), rows=tuple(views(connection)))
        elif statement is None:
            raise UsageError("no statement", hint='for example: ledger sql "select * from boots"; --views lists the views')
        else:
            found = select(connection, statement, limit_s=timeout)
    _show(found, "json" if as_json else style)
    if found.cut:
        show_remark(f"cut after {len(found.rows)} rows", "yellow")
    return ExitCode.YES


def _show(found: Table, style: str) -> None:
    if style == "json":
        show_json([{name: _json(value) for name, value in zip(found.columns, row, strict=True)} for row in found.rows])
    elif style == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerows([found.columns, *found.rows])
    else:
        show_table(found.columns, [["" if value is None else str(value) for value in row] for row in found.rows])


def _json(value: object) -> object:
    return value if value is None or isinstance(value, str | int | float | bool | list | dict) else str(value)
