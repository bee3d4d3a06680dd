"""``ledger correct``: a receipt that says what another one is worth now.

What it does: shows what rests on the target, asks, writes the correction and commits it. What it does not do: change or remove
the target. Rules kept: the blast radius is shown before anything is written; without a terminal nothing is asked and ``--yes``
must say so; a correction always has a reason and an author.
"""

import secrets
import sys
from typing import Any

import click
from attrs import evolve

from ledger.cli.author import author_of
from ledger.cli.complete import complete_name
from ledger.cli.run import this_tool
from ledger.cli.screen import show_json, show_line, show_remark, show_table
from ledger.cli.state import State, json_option, pass_state
from ledger.core.clock import SystemClock
from ledger.core.digest import short
from ledger.core.errors import ExitCode, Problem, UsageError
from ledger.core.words import CorrectionKind
from ledger.publish.formats import number
from ledger.query.blast import Blast, blast
from ledger.query.flips import changed, flips
from ledger.query.index import open_index
from ledger.query.names import resolve
from ledger.receipt.model import Correction
from ledger.store.git import commit_paths
from ledger.store.ledger import Ledger
from ledger.store.session import SessionWriter

CODES = (
    "wrong-config",
    "unprepared-host",
    "cold-cache",
    "warm-cache",
    "single-shot",
    "contention",
    "instrument",
    "outlier",
    "other",
)
STRIKING = (CorrectionKind.SUPERSEDE, CorrectionKind.RETRACT, CorrectionKind.CONCERN)
CELLS_SHOWN = 20


@click.command()
@click.argument("target", shell_complete=complete_name)
@click.option("--supersede-with", "replacement", metavar="B", help="B takes the target's place.")
@click.option("--retract", is_flag=True, help="The target no longer counts, and nothing takes its place.")
@click.option("--amend", is_flag=True, help="The reason adds precision; the target still counts.")
@click.option("--concern", is_flag=True, help="Reported, not averaged in.")
@click.option("--equivalent-to", "equivalent", metavar="B", help="The two configurations are the same for identity.")
@click.option("--reinstate", is_flag=True, help="Undo what corrections do to the target.")
@click.option("--reason", required=True, help="Why, in a sentence.")
@click.option("--code", type=click.Choice(CODES), default="other", show_default=True, help="The kind of reason.")
@click.option("--for", "scope", metavar="USE", help="Unfit for one use alone: comparison, or claim:NAME.")
@click.option("--by", help="Who says so; else git's user.name.")
@click.option("--dry-run", is_flag=True, help="Show what it would touch, and write nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@pass_state
def correct(state: State, /, target: str, reason: str, code: str, by: str | None, **rest: Any) -> int:
    """Supersede, retract or annotate the receipt TARGET, without erasing it.

    \b
    ledger correct B1a/decode~1 --supersede-with B1a/decode --reason "the host was not prepared"
    """
    ledger = Ledger.find(state.directory)
    action, other = chosen(rest["replacement"], rest["equivalent"], rest)
    with open_index(ledger) as connection:
        targets = [resolve(connection, target)]
        replacements = [resolve(connection, other)] if other is not None else []
        if action is CorrectionKind.REINSTATE:
            targets = undone_by(connection.execute("SELECT by_digest FROM struck WHERE digest = ?", targets).fetchall(), target)
        if targets == replacements:
            raise UsageError("a receipt cannot take its own place")
        strikes = action in STRIKING and rest["scope"] is None
        touched = blast(connection, targets, strikes=strikes)
        if strikes:
            touched = evolve(touched, dependents=flips(ledger, connection, touched.struck, touched.dependents))
    body = Correction(
        action=action,
        targets=tuple(targets),
        replacements=tuple(replacements),
        reason=reason,
        code=code,
        by=author_of(ledger, by),
        scope=scope_of(rest["scope"]),
    )
    if not rest["as_json"]:
        show_blast(body, touched)
    written = None if rest["dry_run"] or not agreed(rest["yes"]) else write(ledger, body)
    if rest["as_json"]:
        show_json(as_data(body, touched, written))
    elif written:
        show_line(f"correction {short(written)} recorded: {action} {short(targets[0])}")
    return ExitCode.YES if written or rest["dry_run"] else ExitCode.NO


def chosen(replacement: str | None, equivalent: str | None, flags: dict[str, Any]) -> tuple[CorrectionKind, str | None]:
    """The one action that was asked for, and the other receipt that it names."""
    asked: list[tuple[CorrectionKind, str | None]] = []
    if replacement is not None:
        asked.append((CorrectionKind.SUPERSEDE, replacement))
    if equivalent is not None:
        asked.append((CorrectionKind.EQUIVALENT, equivalent))
    asked += [(kind, None) for kind in CorrectionKind if flags.get(kind.value) is True]
    if len(asked) != 1:
        what = "more than one action is asked for" if asked else "no action is asked for"
        raise UsageError(what, hint="one of --supersede-with B, --retract, --amend, --concern, --equivalent-to B, --reinstate")
    return asked[0]


def scope_of(text: str | None) -> str | None:
    """The one use that a correction is about, checked."""
    if text is None or text == "comparison" or text.partition(":")[0] == "claim":
        return text
    raise UsageError(Problem(what="not a use", value=text, hint="comparison, or claim:NAME"))


def undone_by(rows: list[tuple[Any, ...]], target: str) -> list[str]:
    """The corrections that a reinstatement of ``target`` undoes."""
    if not rows:
        raise UsageError("no correction strikes this receipt, so there is nothing to undo", hint=f"ledger show {target}")
    return [str(row[0]) for row in rows]


def agreed(yes: bool) -> bool:
    """Ask on a terminal; elsewhere ``--yes`` must have been given."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise UsageError("nobody is here to ask", hint="--yes writes it, --dry-run only shows what it would touch")
    return click.confirm("Write this correction?", err=True)


def write(ledger: Ledger, body: Correction) -> str:
    """Record the correction in a session of its own and commit it."""
    writer = SessionWriter(ledger, "correction", clock=SystemClock(), token=secrets.token_hex(2), tool=this_tool())
    digest = writer.record(body)
    made = commit_paths(ledger, writer.paths, f"receipts: {body.action} {short(body.targets[0])}\n\n{body.reason}\n")
    for remark in made.remarks:
        show_remark(remark, "yellow")
    return digest


def show_blast(body: Correction, touched: Blast) -> None:
    """What the correction would touch, before it is written."""
    named = f" with {short(body.replacements[0])}" if body.replacements else ""
    show_line(f"{body.action} {', '.join(short(target) for target in body.targets)}{named}: {body.reason}", "bold")
    rows = [
        [
            f"{cell.spec}:{cell.arm}",
            cell.metric,
            *_before_after(cell.before, cell.after, cell.unit),
            f"{cell.n_before} → {cell.n_after}",
        ]
        for cell in touched.cells
        if "/" not in cell.metric
    ]
    if rows:
        show_table(["cell", "metric", "now", "then", "n boots"], rows[:CELLS_SHOWN], right=["now", "then"])
    if len(touched.cells) > min(len(rows), CELLS_SHOWN):
        show_remark(f"{len(touched.cells) - min(len(rows), CELLS_SHOWN)} more cells change")
    for item in touched.dependents:
        then = f", then {item.then}" if item.then and changed(item) else ""
        show_line(
            f"stale: {item.kind} {short(item.digest)} {item.name} ({item.said}{then}) rests on it", "red" if then else "yellow"
        )
    if not touched.cells and not touched.dependents:
        show_line("nothing else rests on it")


def _before_after(before: float, after: float | None, unit: str) -> tuple[str, str]:
    return f"{number(before)} {unit}", f"{number(after)} {unit}" if after is not None else "no figure"


def as_data(body: Correction, touched: Blast, written: str | None) -> dict[str, Any]:
    """The correction and its blast radius as plain data."""
    return {
        "correction": written,
        "action": body.action,
        "targets": list(body.targets),
        "replacements": list(body.replacements),
        "reason": body.reason,
        "code": body.code,
        "by": body.by,
        "cells": [
            {
                "spec": cell.spec,
                "arm": cell.arm,
                "metric": cell.metric,
                "before": cell.before,
                "after": cell.after,
                "n_before": cell.n_before,
                "n_after": cell.n_after,
            }
            for cell in touched.cells
        ],
        "dependents": [
            {"receipt": item.digest, "kind": item.kind, "name": item.name, "said": item.said, "then": item.then}
            for item in touched.dependents
        ],
    }
