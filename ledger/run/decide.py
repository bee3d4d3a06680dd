"""The rule at the end of a session: one decision for each arm that the rule is about.

What it does: gathers the boot-level figures of each arm and its control from the session's own trials, has ``analysis`` judge
them, and records the decision with its inputs by digest. What it does not do: look at other sessions. Rules kept: only cold,
unmarked-as-failed trials of ready boots count; an arm or a control that has no figure is judged inconclusive or blocked, and
still gets its decision.
"""

import statistics
from collections.abc import Sequence

import attrs

from ledger.analysis.rule import Judgement, Limits, Sides, judge
from ledger.core import units
from ledger.core.words import Outcome
from ledger.receipt.model import Decision
from ledger.run.records import Bench, BootResult
from ledger.run.watch import Decided
from ledger.spec.model import Rule
from ledger.spec.order import control_of


def decide(bench: Bench, rule: Rule, results: Sequence[BootResult]) -> None:
    """Judge every arm of ``results`` that has a control, and record what the rule says."""
    arms = {result.subject.arm: result.plan.arm for result in results}
    for arm in arms.values():
        control = control_of(arm, rule, list(arms.values()))
        if control is None:
            continue
        ours = [result for result in results if result.subject.arm == arm.id]
        theirs = [result for result in results if result.subject.arm == control]
        said = judge(limits_of(rule), _sides(rule, ours, theirs, control))
        _record(bench, rule, ours, theirs, control, said)


def limits_of(rule: Rule) -> Limits:
    """The rule with its ratios as numbers."""
    return Limits(
        metrics=rule.metrics,
        better_than=units.parse(rule.better_than, dimension="ratio", default_unit="ratio").number,
        worse_than=units.parse(rule.worse_than, dimension="ratio", default_unit="ratio").number,
    )


def boot_values(results: Sequence[BootResult], metric: str) -> list[float]:
    """One value for each ready boot: the median of its trials' figures, those that a prefix cache answered left out."""
    found = []
    for result in results:
        figures = [trial.figures[metric] for _, trial in result.trials if metric in trial.figures]
        values = [item.value for item in figures if item.value is not None and item.conditions.get("prefix_cache") != "hit"]
        if result.boot.outcome is Outcome.READY and values:
            found.append(statistics.median(values))
    return found


def _sides(rule: Rule, ours: Sequence[BootResult], theirs: Sequence[BootResult], control: str) -> Sides:
    blocked = [text for result in ours for text in result.blocked]
    blocked += [f"control {control}: {text}" for result in theirs for text in result.blocked]
    if not any(result.boot.outcome is Outcome.READY for result in ours):
        blocked.append("no boot of this arm got ready")
    if not any(result.boot.outcome is Outcome.READY for result in theirs):
        blocked.append(f"no boot of its control {control} got ready")
    return Sides(
        arm={name: boot_values(ours, name) for name in rule.metrics},
        control={name: boot_values(theirs, name) for name in rule.metrics},
        blocked=tuple(blocked),
    )


def _record(
    bench: Bench, rule: Rule, ours: Sequence[BootResult], theirs: Sequence[BootResult], control: str, said: Judgement
) -> None:
    both = [*ours, *theirs]
    inputs = [digest for result in both for digest in (result.digest, *(name for name, _ in result.trials))]
    inputs += [name for result in both for name, _ in result.gates]
    bench.recorder.record(
        Decision(
            subject=ours[0].subject,
            verdict=said.verdict,
            reasons=said.reasons,
            inputs=tuple(inputs),
            control=control,
            rule={name: value for name, value in attrs.asdict(rule).items() if value not in (None, {})},
            effects=said.effects,
        )
    )
    bench.watch(Decided(arm=ours[0].subject.arm, control=control, verdict=said.verdict, reasons=said.reasons))
