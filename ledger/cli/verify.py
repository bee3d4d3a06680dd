"""``ledger verify``: check every digest, schema and link.

What it does: shows each finding with its file, and what was looked at. What it does not do: mend. Rules kept: exit 0 when
nothing was found, 1 when something was.
"""

import click
from attrs import asdict

from ledger.analysis.currency import conflicts
from ledger.cli.screen import show_json, show_line, show_remark
from ledger.cli.state import State, json_option, pass_state
from ledger.core import digest
from ledger.core.errors import ExitCode
from ledger.query.index import corrections, open_index
from ledger.store.ledger import Ledger
from ledger.store.verify import Checked, Finding, verify

SHOWN = 200


def _conflicts(ledger: Ledger) -> list[Finding]:
    """Corrections in force that strike one receipt to different ends."""
    with open_index(ledger) as connection:
        clashes = conflicts(corrections(connection))
    hint = "ledger corrections shows them; a third correction settles it"
    return [
        Finding(
            path=digest.short(item.digest, 16), code="conflict", what=f"{len(item.corrections)} corrections disagree", hint=hint
        )
        for item in clashes
    ]


@click.command(name="verify")
@json_option
@pass_state
def verify_command(state: State, as_json: bool) -> int:
    """Check every digest, schema and link of the ledger.

    Exit code 0 when all of it holds, 1 when something does not.
    """
    checked = Checked()
    ledger = Ledger.find(state.directory)
    found = [*verify(ledger, checked), *_conflicts(ledger)]
    if as_json:
        show_json({"ok": not found, "checked": checked.counts(), "findings": [asdict(item) for item in found]})
        return ExitCode.NO if found else ExitCode.YES
    for item in found[:SHOWN]:
        show_line(f"{item.path}: {item.what} [{item.code}]", "red")
        if item.hint:
            show_remark(f"  {item.hint}")
    if len(found) > SHOWN:
        show_remark(f"{len(found) - SHOWN} more findings; --json lists them all")
    verdict = f"{len(found)} findings" if found else "all of it holds"
    show_line(
        f"{checked.receipts} receipts and {checked.blobs} blobs of {checked.sessions} sessions: {verdict}",
        "red" if found else "green",
    )
    return ExitCode.NO if found else ExitCode.YES
