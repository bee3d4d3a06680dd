"""``ledger regate SPEC``: judge old evidence under the spec's gates of today.

What it does: reads the kept evidence of every verdict that an older version of a gate gave, judges it again, lists which past
boots would be refused, and records the new verdicts. What it does not do: boot anything, or touch an old receipt. Rules kept: a
new verdict names the one whose evidence it read; with ``--dry-run`` nothing is written; exit code 1 when a boot would be
refused.
"""

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from ledger.cli.run import this_tool
from ledger.cli.screen import show_json, show_line, show_remark, show_table
from ledger.cli.state import State, json_option, pass_state
from ledger.core.clock import SystemClock
from ledger.core.digest import short
from ledger.core.errors import ExitCode, LedgerError
from ledger.receipt import codec
from ledger.receipt.model import Receipt
from ledger.run.regate import Regated, new_receipt, regate
from ledger.spec.load import load_spec
from ledger.store.git import commit_paths
from ledger.store.ledger import Ledger, load
from ledger.store.session import SessionWriter


@click.command("regate")
@click.argument("spec", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Show the verdicts and write nothing.")
@json_option
@pass_state
def regate_command(state: State, spec: Path, dry_run: bool, as_json: bool) -> int:
    """Judge old evidence under SPEC's gates whose version was raised, and record the new verdicts.

    Exit code 0 when every past boot would pass, 1 when one would be refused.
    """
    found = load_spec(state.directory / spec).value
    ledger = Ledger.find(state.directory)
    lost: list[LedgerError] = []
    made = regate(found, _receipts(ledger, lost), ledger.read_blob)
    for error in lost:
        show_remark(f"left out: {error}", "yellow")
    if made and not dry_run:
        _write(ledger, found.name, made)
    if as_json:
        show_json([_data(item) for item in made])
    else:
        _show(made, dry_run=dry_run)
    return ExitCode.NO if any(item.blocked is not None for item in made) else ExitCode.YES


def _receipts(ledger: Ledger, lost: list[LedgerError]) -> Iterator[tuple[str, Receipt]]:
    """Every receipt; why one cannot be read goes to ``lost``, and the others are judged all the same."""
    for stored in ledger.walk():
        try:
            receipt = codec.decode(load(stored))
        except LedgerError as error:
            lost.append(error)
        else:
            yield stored.digest, receipt


def _write(ledger: Ledger, spec: str, made: list[Regated]) -> None:
    writer = SessionWriter(ledger, spec, clock=SystemClock(), token=secrets.token_hex(2), tool=this_tool())
    for item in made:
        writer.record(new_receipt(item, writer.blob))
    commit_paths(ledger, writer.paths, f"receipts: {spec}, {len(made)} gates judged again\n")


def _show(made: list[Regated], *, dry_run: bool) -> None:
    if not made:
        show_remark("no verdict of an older version: raise a gate's version to have its evidence judged again")
        return
    rows = [
        [
            item.old.subject.arm,
            short(item.old.boot or item.old.attempt),
            item.old.gate,
            f"{item.old.version} -> {item.verdict.gate.version}",
            f"{item.old.holds} -> {item.verdict.holds}",
            item.verdict.value or item.verdict.reason or "",
        ]
        for item in made
    ]
    show_table(["arm", "boot", "gate", "version", "verdict", "read"], rows)
    refused = [item for item in made if item.newly_refused]
    for item in refused:
        show_line(f"would be refused: {item.old.subject.arm} {short(item.old.boot or item.old.attempt)}: {item.blocked}", "red")
    passed = sum(item.newly_passed for item in made)
    written = "nothing was written" if dry_run else f"{len(made)} receipts"
    show_remark(f"{len(refused)} boots would be refused now, {passed} would now pass; {written}")


def _data(item: Regated) -> dict[str, Any]:
    return {
        "arm": item.old.subject.arm,
        "attempt": item.old.attempt,
        "boot": item.old.boot,
        "gate": item.old.gate,
        "regates": item.digest,
        "was": {"version": item.old.version, "holds": item.old.holds, "value": item.old.value},
        "is": {"version": item.verdict.gate.version, "holds": item.verdict.holds, "value": item.verdict.value},
        "reason": item.verdict.reason,
        "refused": item.blocked is not None,
    }
