"""``ledger serving``: what is deployed where, now or at some moment.

What it does: shows the latest state of each lane. What it does not do: look at a server. Rule kept: who says so and how it is
known stand beside each state.
"""

import click

from ledger.cli.screen import show_json, show_remark, show_table
from ledger.cli.state import State, json_option, pass_state
from ledger.core.errors import ExitCode, Problem, UsageError
from ledger.publish.formats import DASH
from ledger.query.index import open_index
from ledger.query.moment import parse_time
from ledger.query.serving import LaneState, states
from ledger.store.ledger import Ledger


@click.command()
@click.option("--as-of", "when", metavar="WHEN", help="What was served then: a date or a time.")
@json_option
@pass_state
def serving(state: State, when: str | None, as_json: bool) -> int:
    """Show what each lane serves, or that it is stopped.

    Exit code 0 when anything is known, 1 when nothing is.
    """
    at = parse_time(when) if when is not None else None
    if when is not None and at is None:
        raise UsageError(Problem(what="not a date or a time", value=when, hint="write 2026-10-19 or 2026-10-19T05:40:00-05:00"))
    with open_index(Ledger.find(state.directory)) as connection:
        found = states(connection, at)
    if as_json:
        show_json([item.data() for item in found])
    elif found:
        rows = [_row(item) for item in found]
        show_table(["lane", "state", "arm", "nodes", "port", "since", "evidence", "by", "note"], rows, right=["port"])
    else:
        show_remark("nothing is known of what is served" + (f" as of {when}" if when else ""))
    return ExitCode.YES if found else ExitCode.NO


def _row(item: LaneState) -> list[str]:
    where = [item.arm or DASH, ", ".join(item.nodes) or DASH, str(item.port or DASH)]
    return [item.lane, item.state, *where, item.since, item.evidence, item.author, item.note or ""]
