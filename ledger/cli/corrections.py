"""``ledger corrections``, ``ledger stale`` and ``ledger history``: what was corrected, what that leaves to do, and how a cell got
its value.

What it does: lists them. What it does not do: change anything. Rules kept: conflicts are told with the corrections list, and make
it exit 1; ``stale`` exits 1 while something must be made again.
"""

import click

from ledger.analysis.currency import CorrectionFact, conflicts, in_force
from ledger.cli.complete import complete_question
from ledger.cli.screen import show_json, show_line, show_remark, show_table
from ledger.cli.state import State, json_option, pass_state
from ledger.core.digest import short
from ledger.core.errors import ExitCode
from ledger.publish.formats import number
from ledger.query.index import corrections as all_corrections
from ledger.query.index import open_index
from ledger.query.language import parse
from ledger.query.replay import history as replay
from ledger.query.stale import stale as find_stale
from ledger.store.ledger import Ledger


@click.command()
@json_option
@pass_state
def corrections(state: State, as_json: bool) -> int:
    """List corrections: what each does, whether it is in force, and conflicts.

    Exit code 1 when two corrections in force strike one receipt to different ends; a third settles it.
    """
    with open_index(Ledger.find(state.directory)) as connection:
        found = all_corrections(connection)
        order = [
            row[0]
            for row in connection.execute("SELECT digest FROM receipt WHERE kind = 'correction' ORDER BY place, n").fetchall()
        ]
    force = {item.digest for item in in_force(found)}
    clashes = conflicts(found)
    listed = sorted(found, key=lambda item: order.index(item.digest))
    if as_json:
        clashing = [{"receipt": item.digest, "corrections": list(item.corrections)} for item in clashes]
        show_json({"corrections": [_data(item, item.digest in force) for item in listed], "conflicts": clashing})
        return ExitCode.NO if clashes else ExitCode.YES
    rows = [_row(item, item.digest in force) for item in listed]
    show_table(["correction", "does", "to", "with", "for", "", "reason"], rows)
    for item in clashes:
        names = " and ".join(short(name) for name in item.corrections)
        show_line(f"conflict: {names} strike {short(item.digest)} to different ends", "red")
        show_remark(f"  settle it: ledger correct {short(item.corrections[0])} --retract --reason …")
    return ExitCode.NO if clashes else ExitCode.YES


@click.command()
@json_option
@pass_state
def stale(state: State, as_json: bool) -> int:
    """List decisions and claims that rest on what no longer counts, and the command that makes each again.

    Exit code 0 when there are none, 1 while there are some.
    """
    with open_index(Ledger.find(state.directory)) as connection:
        found = find_stale(connection)
    if as_json:
        show_json([{name: getattr(item, name) for name in ("digest", "kind", "name", "said", "why", "again")} for item in found])
    elif found:
        rows = [[item.kind, short(item.digest), item.name, item.said, item.why, item.again] for item in found]
        show_table(["stale", "receipt", "of", "said", "because", "make it again"], rows)
    else:
        show_line("nothing is stale")
    return ExitCode.NO if found else ExitCode.YES


@click.command()
@click.argument("question", nargs=-1, required=True, shell_complete=complete_question)
@json_option
@pass_state
def history(state: State, question: tuple[str, ...], as_json: bool) -> int:
    """Show every value that the cells of QUESTION have had, when, and why it changed.

    \b
    ledger history "C6 of control"
    """
    with open_index(Ledger.find(state.directory)) as connection:
        found = replay(connection, parse(" ".join(question)))
    if as_json:
        show_json(
            [{name: getattr(item, name) for name in ("time", "receipt", "cell", "value", "n_boots", "why")} for item in found]
        )
        return ExitCode.YES if found else ExitCode.NO
    rows = [
        [
            item.time,
            item.cell,
            number(item.value) if item.value is not None else "–",
            str(item.n_boots),
            item.why,
            short(item.receipt),
        ]
        for item in found
    ]
    show_table(["time", "cell", "value", "n boots", "why", "receipt"], rows, right=["value", "n boots"])
    return ExitCode.YES if found else ExitCode.NO


def _row(item: CorrectionFact, holds: bool) -> list[str]:
    targets = ", ".join(short(name) for name in item.targets)
    instead = ", ".join(short(name) for name in item.replacements)
    return [short(item.digest), item.action, targets, instead, item.scope or "", "" if holds else "undone", item.reason]


def _data(item: CorrectionFact, holds: bool) -> dict[str, object]:
    return {
        "correction": item.digest,
        "action": item.action,
        "targets": list(item.targets),
        "replacements": list(item.replacements),
        "scope": item.scope,
        "in_force": holds,
        "reason": item.reason,
    }
