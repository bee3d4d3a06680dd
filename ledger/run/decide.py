"""The rule at the end of a session: one decision for each arm that the rule is about.

What it does: gathers the boot-level figures of each arm and its control from the session's own trials, has ``analysis`` judge
them, and records the decision with its inputs by digest. What it does not do: look at other sessions; ``ledger decide`` does, and
knows their noise. Rules kept: only cold, unmarked-as-failed trials of ready boots count; an arm or a control that has no figure
is judged inconclusive or blocked, and still gets its decision.
"""

import statistics
from collections.abc import Mapping, Sequence

import attrs

from ledger.analysis.control import BootFacts, Bounds
from ledger.analysis.rule import Limits
from ledger.analysis.verdict import Case, Found, find
from ledger.core import units
from ledger.core.words import Outcome, Verdict
from ledger.receipt.model import Decision, Odds, Subject
from ledger.run.records import Bench, BootResult
from ledger.run.watch import Decided
from ledger.spec.model import Arm, Rule
from ledger.spec.order import control_of


def decide(bench: Bench, rule: Rule, results: Sequence[BootResult], *, decided: Mapping[str, Verdict]) -> Mapping[str, Verdict]:
    """Judge every arm of ``results`` that has a control, but those ``decided`` before, and record what the rule says.

    Returns the verdict of every arm, those of ``decided`` with them.
    """
    verdicts = dict(decided)
    arms = {result.subject.arm: result.plan.arm for result in results}
    for arm in arms.values():
        control = control_of(arm, rule, list(arms.values()))
        if control is None or arm.id in verdicts:
            continue
        found = find(_case(bench, rule, results, arm, control))
        chosen = [result for result in results if result.digest in found.boots or not _is_ready(result)]
        both = [result for result in chosen if result.subject.arm in (arm.id, control)]
        subject = next(result.subject for result in results if result.subject.arm == arm.id)
        said = found.judgement
        bench.recorder.record(decision(found, subject, control, rule, _inputs(both)))
        bench.watch(Decided(arm=arm.id, control=control, verdict=said.verdict, reasons=_reasons(found)))
        verdicts[arm.id] = said.verdict
    return verdicts


def decision(
    found: Found, subject: Subject, control: str, rule: Rule, inputs: Sequence[str], odds: Odds | None = None
) -> Decision:
    """The receipt of what was found."""
    return Decision(
        subject=subject,
        verdict=found.judgement.verdict,
        reasons=found.judgement.reasons,
        inputs=tuple(inputs),
        control=control,
        rule={name: value for name, value in attrs.asdict(rule).items() if value not in (None, {})},
        effects=found.judgement.effects,
        mend=found.mend,
        odds=odds,
    )


def limits_of(rule: Rule) -> Limits:
    """The rule with its ratios as numbers."""
    return Limits(metrics=rule.metrics, better_than=ratio(rule.better_than), worse_than=ratio(rule.worse_than))


def bounds_of(rule: Rule) -> Bounds:
    """What the rule asks of a control, in numbers."""
    window = units.parse(rule.window, dimension="time", default_unit="s")
    return Bounds(age_s=window.number, drift=ratio(rule.drift), alike=rule.alike)


def ratio(text: str) -> float:
    """``2 %`` as 0.02."""
    return units.parse(text, dimension="ratio", default_unit="ratio").number


def boot_value(result: BootResult, metric: str) -> float | None:
    """A boot's figure: the median over its trials, those that a prefix cache answered left out; None where there is none."""
    figures = [trial.figures[metric] for _, trial in result.trials if metric in trial.figures]
    values = [item.value for item in figures if item.value is not None and item.conditions.get("prefix_cache") != "hit"]
    return statistics.median(values) if values else None


def _case(bench: Bench, rule: Rule, results: Sequence[BootResult], arm: Arm, control: str) -> Case:
    base = next((result.boot.fingerprint for result in results if result.subject.arm == arm.base), None)
    ours, theirs = ([result for result in results if result.subject.arm == name] for name in (arm.id, control))
    return Case(
        names=(arm.id, control),
        arm=_facts(rule, ours),
        control=_facts(rule, theirs),
        limits=limits_of(rule),
        bounds=bounds_of(rule),
        now=bench.clock.now().timestamp(),
        seed=bench.recorder.session,
        base=base,
        blocked=_blocked(ours, theirs, control),
    )


def _facts(rule: Rule, results: Sequence[BootResult]) -> list[BootFacts]:
    return [
        BootFacts(
            digest=result.digest,
            config=result.boot.fingerprint,
            at=result.at,
            nodes=tuple(rank.node.name for rank in result.plan.ranks),
            conditions=result.boot.conditions,
            values={name: value for name in rule.metrics if (value := boot_value(result, name)) is not None},
            seconds=(result.boot.seconds or 0.0) + sum(trial.seconds or 0.0 for _, trial in result.trials),
        )
        for result in results
        if _is_ready(result)
    ]


def _blocked(ours: Sequence[BootResult], theirs: Sequence[BootResult], control: str) -> tuple[str, ...]:
    blocked = [text for result in ours for text in result.blocked]
    blocked += [f"control {control}: {text}" for result in theirs for text in result.blocked]
    if not any(_is_ready(result) for result in ours):
        blocked.append("no boot of this arm got ready")
    if not any(_is_ready(result) for result in theirs):
        blocked.append(f"no boot of its control {control} got ready")
    return tuple(blocked)


def _is_ready(result: BootResult) -> bool:
    return result.boot.outcome is Outcome.READY


def _inputs(results: Sequence[BootResult]) -> list[str]:
    found = [digest for result in results for digest in (result.digest, *(name for name, _ in result.trials))]
    return found + [name for result in results for name, _ in result.gates]


def _reasons(found: Found) -> tuple[str, ...]:
    return (*found.judgement.reasons, *((f"mend: {found.mend}",) if found.mend else ()))
