"""``ledger claim`` and ``ledger claims``: statements about figures, recorded, and looked at again.

What it does: checks what a person says against the ledger and records it with what it rests on; shows which claims still hold.
What it does not do: read documents. Rules kept: a claim that does not hold now is not recorded unless ``--anyway`` says so;
``ledger claims`` exits 1 when one of them no longer holds.
"""

import secrets

import click
from rich.text import Text

from ledger.analysis.claims import SOUND, State, agrees, decimals_of
from ledger.cli.author import author_of
from ledger.cli.run import this_tool
from ledger.cli.screen import show_json, show_line, show_remark, show_table
from ledger.cli.state import State as Globals
from ledger.cli.state import json_option, pass_state
from ledger.core.clock import SystemClock
from ledger.core.digest import short
from ledger.core.errors import ExitCode
from ledger.core.words import Evidence
from ledger.publish.formats import number
from ledger.query.claims import ClaimNow, Evaluated, claims_now, evaluate
from ledger.query.index import open_index
from ledger.receipt.model import Claim
from ledger.store.git import commit_paths
from ledger.store.ledger import Ledger
from ledger.store.session import SessionWriter

STYLES = {State.HOLDS: "green", State.REPORTED: "", State.STALE: "yellow", State.FALSE: "red", State.LOST: "red"}


@click.command()
@click.argument("expression")
@click.option("--says", required=True, help="The number as it is written: 1.10, 286.6, 6,100.")
@click.option("--name", help="What to call it; the question itself by default.")
@click.option("--by", help="Who says so; else git's user.name.")
@click.option("--anyway", is_flag=True, help="Record it although the ledger does not agree.")
@json_option
@pass_state
def claim(state: Globals, /, expression: str, says: str, name: str | None, by: str | None, anyway: bool, as_json: bool) -> int:
    """Record that EXPRESSION, a question with one answer, is what --says says.

    \b
    ledger claim "C6 of threads-2 / C6 of control" --says 1.53
    """
    decimals = decimals_of(says)
    ledger = Ledger.find(state.directory)
    with open_index(ledger) as connection:
        found = evaluate(connection, expression)
    holds = agrees(says, found.value)
    written = _write(ledger, _body(ledger, found, says, decimals, name, by)) if holds or anyway else None
    if as_json:
        show_json({"claim": written, "holds": holds, "value": found.value, "says": says, "inputs": list(found.inputs)})
    else:
        _show_claim(found, says, holds, written)
    return ExitCode.YES if holds else ExitCode.NO


@click.command()
@json_option
@pass_state
def claims(state: Globals, as_json: bool) -> int:
    """Show which claims still hold, which are stale and which are false now.

    What a publication claims and the ledger has no figures for is reported. Exit code 0 when no claim is stale, false or lost.
    """
    ledger = Ledger.find(state.directory)
    with open_index(ledger) as connection:
        found = claims_now(connection)
    if as_json:
        show_json([_data(item) for item in found])
    elif found:
        show_table(["claim", "says", "then", "now", "", "because"], [_row(item) for item in found], right=["says", "then", "now"])
    else:
        show_remark("no claims yet; ledger claim records one")
    return ExitCode.YES if all(item.state in SOUND for item in found) else ExitCode.NO


def _body(ledger: Ledger, found: Evaluated, says: str, decimals: int, name: str | None, by: str | None) -> Claim:
    return Claim(
        name=name or found.ask.text,
        expression=found.ask.text,
        says=says,
        decimals=decimals,
        value=found.value,
        unit=found.row.unit,
        orientation=found.orientation,
        figure_evidence=Evidence(found.row.evidence),
        inputs=found.inputs,
        by=author_of(ledger, by),
    )


def _write(ledger: Ledger, body: Claim) -> str:
    writer = SessionWriter(ledger, "claim", clock=SystemClock(), token=secrets.token_hex(2), tool=this_tool())
    digest = writer.record(body)
    commit_paths(ledger, writer.paths, f"receipts: claim {body.says}\n\n{body.expression}\n")
    return digest


def _show_claim(found: Evaluated, says: str, holds: bool, written: str | None) -> None:
    marks = ", ".join(mark for mark in found.row.marks if mark != found.row.evidence)
    about = f"{number(found.value)} {found.row.unit}, {found.orientation}, {found.row.evidence}" + (
        f" [{marks}]" if marks else ""
    )
    show_line(f"{found.ask.text}: {about}, from {len(found.inputs)} receipts")
    if not holds:
        show_line(f"the ledger does not say {says}", "red")
    if written:
        show_line(f"claim {short(written)} recorded: {says}")
    else:
        show_remark("nothing was recorded; --anyway records it all the same")


def _row(item: ClaimNow) -> list[str | Text]:
    now = number(item.now) if item.now is not None else "–"
    state = Text(item.state.value, style=STYLES[item.state])
    return [item.name, item.says, number(item.then), now, state, "; ".join(item.because)]


def _data(item: ClaimNow) -> dict[str, object]:
    return {
        "claim": item.digest,
        "name": item.name,
        "expression": item.expression,
        "says": item.says,
        "then": item.then,
        "now": item.now,
        "state": item.state,
        "because": list(item.because),
    }
