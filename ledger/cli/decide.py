"""``ledger decide SPEC``: apply a spec's rule to what the ledger holds now.

What it does: takes, for each arm and its control, every boot that counts of its latest configuration, has ``analysis`` judge
them, and records a decision for each. What it does not do: boot anything. Rules kept: the inputs are named by digest; arms of
different evidence are not judged against each other; with ``--dry-run`` nothing is written.
"""

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import click

from ledger.analysis.rule import Judgement, Sides, judge
from ledger.cli.live import STYLES
from ledger.cli.run import this_tool
from ledger.cli.screen import show_json, show_line
from ledger.cli.state import State, json_option, pass_state
from ledger.core.clock import SystemClock
from ledger.core.errors import ExitCode, UsageError
from ledger.core.words import Evidence
from ledger.query.index import open_index
from ledger.query.ingest import Connection
from ledger.query.sides import SideOf, arm_side, receipts_of
from ledger.receipt.model import Decision, Subject
from ledger.run.decide import limits_of
from ledger.spec.load import load_spec
from ledger.spec.model import Arm, Rule, Spec
from ledger.spec.order import control_of
from ledger.spec.plan import lineage
from ledger.store.git import commit_paths
from ledger.store.ledger import Ledger
from ledger.store.session import SessionWriter


@click.command()
@click.argument("spec", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Show the verdicts and write nothing.")
@json_option
@pass_state
def decide(state: State, spec: Path, dry_run: bool, as_json: bool) -> int:
    """Apply the rule of SPEC to the figures that count now, and record a decision for each arm."""
    found = load_spec(state.directory / spec).value
    if found.rule is None:
        raise UsageError(f"spec {found.name!r} has no rule", hint="add a [rule] with its metrics")
    ledger = Ledger.find(state.directory)
    with open_index(ledger) as connection:
        decisions = [made for arm in found.arms if (made := _decision(connection, found, found.rule, arm)) is not None]
    if not dry_run and decisions:
        _write(ledger, found.name, decisions)
    if as_json:
        show_json([_data(item) for item in decisions])
    for item in () if as_json else decisions:
        show_line(f"{item.subject.arm} against {item.control}: {item.verdict}", STYLES[item.verdict])
        for reason in item.reasons:
            show_line(f"  {reason}")
    return ExitCode.YES if decisions else ExitCode.NO


def _decision(connection: Connection, spec: Spec, rule: Rule, arm: Arm) -> Decision | None:
    control = control_of(arm, rule, spec.arms)
    ours = arm_side(connection, f"{spec.name}:{arm.id}")
    theirs = arm_side(connection, f"{spec.name}:{control}") if control else None
    if control is None or ours is None:
        return None
    said = judge(limits_of(rule), _sides(rule, ours, theirs, control))
    boots = [*ours.boots, *(theirs.boots if theirs else ())]
    return Decision(
        subject=Subject(
            spec=spec.name,
            lane=lineage(arm, spec)[0].lane or "",
            arm=arm.id,
            role=arm.role,
            evidence=Evidence(ours.evidence),
        ),
        verdict=said.verdict,
        reasons=said.reasons,
        inputs=tuple(receipts_of(connection, boots)),
        control=control,
        rule={name: value for name, value in attrs.asdict(rule).items() if value not in (None, {})},
        effects=said.effects,
    )


def _sides(rule: Rule, ours: SideOf, theirs: SideOf | None, control: str) -> Sides:
    blocked = []
    if theirs is None:
        blocked.append(f"no boot of its control {control} counts")
    elif theirs.evidence != ours.evidence:
        blocked.append(f"the evidence differs: {ours.evidence} and {theirs.evidence} of its control {control}")
    return Sides(arm=_values(rule, ours), control=_values(rule, theirs) if theirs else {}, blocked=tuple(blocked))


def _values(rule: Rule, side: SideOf) -> Mapping[str, tuple[float, ...]]:
    return {name: side.samples[name].values for name in rule.metrics if name in side.samples}


def _write(ledger: Ledger, spec: str, decisions: list[Decision]) -> None:
    writer = SessionWriter(ledger, spec, clock=SystemClock(), token=secrets.token_hex(2), tool=this_tool())
    for item in decisions:
        writer.record(item)
    commit_paths(ledger, writer.paths, f"receipts: {spec}, {len(decisions)} decisions\n")


def _data(item: Decision) -> dict[str, Any]:
    said = Judgement(verdict=item.verdict, reasons=item.reasons, effects=item.effects)
    return {
        "arm": item.subject.arm,
        "control": item.control,
        "verdict": said.verdict,
        "reasons": list(said.reasons),
        "effects": [attrs.asdict(effect, filter=lambda field, _: field.name != "extra") for effect in said.effects],
    }
