"""``ledger query``: ask for figures.

What it does: parses the question, brings the index up to date, and shows the answer. What it does not do: compute it (``query``).
Rules kept: what is left out or absent is said on stderr; exit 0 when there are rows, 1 when there are none.
"""

import sys
from functools import partial

import click
from rich.text import Text

from ledger.cli.complete import complete_question
from ledger.cli.screen import show_json, show_line, show_remark, show_table
from ledger.cli.state import State, json_option, pass_state
from ledger.core.digest import short
from ledger.core.errors import ExitCode
from ledger.core.text import visible
from ledger.publish.formats import as_csv, as_data, as_markdown, people_cells, pivot
from ledger.query.ask import Answer, answer
from ledger.query.index import open_index
from ledger.query.language import parse
from ledger.store.ledger import Ledger
from ledger.store.revision import receipts_at

FORMATS = ("table", "json", "csv", "markdown")
RIGHT = ("value", "n boots", "low … high")
HELP_ALL = "Show struck figures too, as rows of their own."


@click.command()
@click.argument("question", nargs=-1, required=True, shell_complete=complete_question)
@click.option("--format", "style", type=click.Choice(FORMATS), default="table", show_default=True, help="How to show the answer.")
@click.option("--sql", "show_sql", is_flag=True, help="Show the SQL and its parameters instead of running it for you.")
@click.option("--all", "show_all", is_flag=True, help=HELP_ALL)
@click.option("--as-of", "when", metavar="WHEN", help="What was true then: a date, a time or a git revision, as as-of:WHEN.")
@json_option
@pass_state
def query(
    state: State, question: tuple[str, ...], style: str, show_sql: bool, show_all: bool, when: str | None, as_json: bool
) -> int:
    """Ask for figures: METRICS [of LANES-OR-ARMS] [by DIMENSIONS] [across DIMENSION] [FILTERS].

    \b
    ledger query "C6 by arm"
    ledger query "C1..C6 by lane evidence:measured n>=3"
    ledger query "prefill@* by arm, boot spec:smollm2"
    ledger query "C6 of C / C6 of B as-of:2026-10-19"
    """
    asked = parse(" ".join((*question, *([f'as-of:"{when}"'] if when is not None else []))))
    ledger = Ledger.find(state.directory)
    with open_index(ledger) as connection:
        found = answer(connection, asked, show_struck=show_all, revision=partial(receipts_at, ledger))
    if show_sql:
        show_line(found.sql)
        show_line(f"-- parameters: {list(found.values)}")
        return ExitCode.YES
    _show(found, "json" if as_json else style)
    _remarks(found)
    return ExitCode.YES if found.rows else ExitCode.NO


def _show(found: Answer, style: str) -> None:
    if style == "json":
        show_json([as_data(row) for row in found.rows])
        return
    if style == "csv":
        sys.stdout.write(as_csv(found))
        return
    rows = [people_cells(row) for row in found.rows]
    columns = list(rows[0]) if rows else [*found.dims, "metric", "value"]
    if found.ask.across is not None:
        columns, rows = pivot(found, found.ask.across.text)
    if style == "markdown":
        sys.stdout.write(as_markdown(columns, rows))
    else:
        struck = [found.ask.across is None and row.struck is not None for row in found.rows]
        table = [
            [Text(visible(row.get(name, "")), style="strike" if gone else "") for name in columns]
            for row, gone in zip(rows, struck, strict=False)
        ]
        show_table(columns, table, right=RIGHT)


def _remarks(found: Answer) -> None:
    if found.left_out:
        rows = "1 row" if found.left_out == 1 else f"{found.left_out} rows"
        show_remark(f"{rows} of corrected figures left out; --all shows them")
    for item in found.missing:
        dims = ", ".join(short(value) if value.startswith("sha256:") else value for value in item.dims.values() if value)
        show_remark(f"{item.metric} of {dims or 'all'} is absent in {item.trials} trials: {item.reason}")
    if found.unreadable:
        show_remark(f"{found.unreadable} files are no receipts and were left out; ledger verify names them", "yellow")
