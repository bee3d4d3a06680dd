"""``ledger decide SPEC|SESSION``: apply a rule to what the ledger holds now.

What it does: takes, for each arm and its control, every boot that counts of its latest configuration (of one session, where a
session or a receipt of one is named), has ``analysis`` judge them under the noise that the ledger has seen, and records a
decision for each. What it does not do: boot anything. Rules kept: the inputs are named by digest; arms of different evidence are
not judged against each other; a session is judged by the rule of the spec that it ran; with ``--dry-run`` nothing is written.
"""

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import click
from attrs import frozen

from ledger.analysis.verdict import Case, find
from ledger.cli.live import STYLES
from ledger.cli.odds import in_words, judged, odds_of
from ledger.cli.run import this_tool
from ledger.cli.screen import show_json, show_line
from ledger.cli.state import State, json_option, pass_state
from ledger.core.clock import SystemClock
from ledger.core.errors import ExitCode, NotFoundError, Problem, UsageError
from ledger.core.words import Evidence
from ledger.query.index import open_index
from ledger.query.ingest import Connection
from ledger.query.sides import receipts_of
from ledger.query.stood import Stood, noise_of, session_of, stood
from ledger.receipt.model import Attempt, Decision, Subject
from ledger.run.decide import bounds_of, decision, limits_of
from ledger.spec.load import load_spec, read_spec
from ledger.spec.model import Arm, Rule, Spec
from ledger.spec.order import control_of
from ledger.spec.plan import lineage
from ledger.store.git import commit_paths
from ledger.store.ledger import Ledger
from ledger.store.session import SessionWriter


@frozen(kw_only=True)
class _Docket:
    """What is judged: a spec with its rule, in one session or in the whole ledger, and how many arms share each control."""

    spec: Spec
    rule: Rule
    session: str | None
    arms: Mapping[str, int]


@click.command()
@click.argument("what", metavar="SPEC|SESSION", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Show the verdicts and write nothing.")
@json_option
@pass_state
def decide(state: State, what: Path, dry_run: bool, as_json: bool) -> int:
    """Apply a rule to the figures that count now, and record a decision for each arm.

    A SPEC is judged over every session of the ledger; a SESSION (its name or the end of it) over its own boots, by the spec that
    it ran.
    """
    ledger = Ledger.find(state.directory)
    with open_index(ledger) as connection:
        docket = _docket(ledger, connection, what, state.directory / what)
        made = [_decision(connection, docket, arm) for arm in docket.spec.arms]
    decisions = [item for item in made if item is not None]
    if not dry_run and decisions:
        _write(ledger, docket.spec.name, decisions)
    if as_json:
        show_json([_data(item) for item in decisions])
    for item in () if as_json else decisions:
        _show(item)
    return ExitCode.YES if decisions else ExitCode.NO


def _docket(ledger: Ledger, connection: Connection, what: Path, path: Path) -> _Docket:
    session = None if path.is_file() else session_of(connection, str(what))
    if session is None:
        if not path.is_file():
            raise NotFoundError(Problem(what="no such spec or session", value=str(what), hint="ledger log lists sessions"))
        spec = load_spec(path).value
    else:
        body = ledger.read(session.attempt).body
        assert isinstance(body, Attempt)
        spec = read_spec(ledger.read_blob(session.name, body.spec.text), f"the spec of session {session.name}").value
    if spec.rule is None:
        raise UsageError(f"spec {spec.name!r} has no rule", hint="add a [rule] with its metrics")
    arms = {control: len(names) for control, names in judged(spec, spec.rule).items()}
    return _Docket(spec=spec, rule=spec.rule, session=session.name if session else None, arms=arms)


def _decision(connection: Connection, docket: _Docket, arm: Arm) -> Decision | None:
    control = control_of(arm, docket.rule, docket.spec.arms)
    ours = stood(connection, docket.spec.name, arm.id, docket.session)
    if control is None or not ours.boots:
        return None
    theirs = stood(connection, docket.spec.name, control, docket.session)
    base = stood(connection, docket.spec.name, arm.base, docket.session).config if arm.base else None
    state = ours.boots[-1].conditions.get("jit_cache")
    configs = [config for config in (ours.config, theirs.config) if config]
    noise = noise_of(connection, configs, ours.evidence, state)
    seed = f"{docket.session or docket.spec.name}/{arm.id}"
    found = find(_case(docket, arm.id, control, ours, theirs, base, noise, seed))
    subject = Subject(
        spec=docket.spec.name,
        lane=lineage(arm, docket.spec)[0].lane or "",
        arm=arm.id,
        role=arm.role,
        evidence=Evidence(ours.evidence),
    )
    boots = max(1, min(len(ours.boots), len(theirs.boots)))
    odds = odds_of(docket.rule, noise, boots=boots, arms=docket.arms[control], seed=seed)
    return decision(found, subject, control, docket.rule, receipts_of(connection, found.boots), odds)


def _case(
    docket: _Docket,
    arm: str,
    control: str,
    ours: Stood,
    theirs: Stood,
    base: str | None,
    noise: Mapping[str, list[list[float]]],
    seed: str,
) -> Case:
    return Case(
        names=(arm, control),
        arm=ours.boots,
        control=theirs.boots,
        limits=limits_of(docket.rule),
        bounds=bounds_of(docket.rule),
        now=SystemClock().now().timestamp(),
        seed=seed,
        base=base,
        blocked=_blocked(ours, theirs, control),
        noise=noise,
    )


def _blocked(ours: Stood, theirs: Stood, control: str) -> tuple[str, ...]:
    if not theirs.boots:
        return (f"no boot of its control {control} counts",)
    if theirs.evidence != ours.evidence:
        return (f"the evidence differs: {ours.evidence} and {theirs.evidence} of its control {control}",)
    return ()


def _write(ledger: Ledger, spec: str, decisions: list[Decision]) -> None:
    writer = SessionWriter(ledger, spec, clock=SystemClock(), token=secrets.token_hex(2), tool=this_tool())
    for item in decisions:
        writer.record(item)
    commit_paths(ledger, writer.paths, f"receipts: {spec}, {len(decisions)} decisions\n")


def _show(item: Decision) -> None:
    show_line(f"{item.subject.arm} against {item.control}: {item.verdict}", STYLES[item.verdict])
    for reason in item.reasons:
        show_line(f"  {reason}")
    for effect in item.effects:
        known = f"{effect.low:+.1%} to {effect.high:+.1%}" if effect.low is not None and effect.high is not None else "unknown"
        band = f"±{effect.band:.1%} (n={effect.noise_boots} boots)" if effect.band is not None else "unknown"
        count = f"n={effect.n_arm} and {effect.n_control} boots"
        show_line(f"  {effect.metric}: {effect.change:+.1%} ({count}), 95 % interval {known}, noise band {band}")
    for text in in_words(item.odds) if item.odds is not None else ():
        show_line(f"  {text}")
    if item.mend:
        show_line(f"  mend: {item.mend}", "bold")


def _data(item: Decision) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "arm": item.subject.arm,
        "control": item.control,
        "verdict": item.verdict,
        "reasons": list(item.reasons),
        "effects": [_plain(effect) for effect in item.effects],
    }
    if item.odds is not None:
        plain["odds"] = _plain(item.odds)
    return plain | ({"mend": item.mend} if item.mend else {})


def _plain(record: Any) -> dict[str, Any]:
    """A record as tables, without what is absent."""
    return attrs.asdict(record, filter=lambda field, value: field.name != "extra" and value is not None)
