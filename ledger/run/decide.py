"""The rule at the end of a session: one decision for each arm that the rule is about.

What it does: gathers the boot-level figures of each arm and its control from the session's own trials, has ``analysis`` judge
them under the noise that the ledger has seen, and records the decision with its inputs by digest and the odds of the rule. What
it does not do: judge boots of other sessions (``ledger decide`` does). Rules kept: only cold, unmarked-as-failed trials of ready
boots count; an arm or a control that has no figure is judged inconclusive or blocked, and still gets its decision; where the
ledger cannot be asked for its noise, the decision is made without and says so.
"""

import statistics
from collections.abc import Collection, Sequence

import attrs

from ledger.analysis.control import BootFacts, Bounds
from ledger.analysis.verdict import Case, Found, find
from ledger.core import units
from ledger.core.errors import LedgerError
from ledger.core.words import Outcome
from ledger.receipt.model import Decision, Odds, Subject
from ledger.run.odds import Seen, judged, limits_of, odds_of, ratio
from ledger.run.records import Bench, BootResult
from ledger.run.watch import Decided
from ledger.spec.model import Arm, Rule
from ledger.spec.order import control_of


def decide(bench: Bench, rule: Rule, results: Sequence[BootResult], *, decided: Collection[str] = ()) -> None:
    """Judge every arm of ``results`` that has a control, but those ``decided`` before, and record what the rule says."""
    arms = list({result.subject.arm: result.plan.arm for result in results}.values())
    for arm in arms:
        control = control_of(arm, rule, arms)
        if control is None or arm.id in decided:
            continue
        made = _decided(bench, rule, results, arm, control, len(judged(arms, rule)[control]))
        bench.recorder.record(made)
        mend = (f"mend: {made.mend}",) if made.mend else ()
        bench.watch(Decided(arm=arm.id, control=control, verdict=made.verdict, reasons=(*made.reasons, *mend), odds=made.odds))


def _decided(bench: Bench, rule: Rule, results: Sequence[BootResult], arm: Arm, control: str, arms: int) -> Decision:
    """The decision on one arm; ``arms`` is how many are judged against the same control."""
    ours, theirs = ([result for result in results if result.subject.arm == name] for name in (arm.id, control))
    seed = f"{bench.recorder.session}/{arm.id}"
    noise, untold = _noise(bench, ours, theirs)
    found = find(_case(bench, rule, results, arm, control, seed, noise))
    both = [
        result
        for result in results
        if result.subject.arm in (arm.id, control) and (result.digest in found.boots or not _is_ready(result))
    ]
    boots = max(1, min(sum(map(_is_ready, side)) for side in (ours, theirs)))
    odds = odds_of(rule, noise, boots=boots, arms=arms, seed=seed)
    made = decision(found, ours[0].subject, control, rule, _inputs(both), odds)
    return attrs.evolve(made, reasons=(*made.reasons, *untold))


def _noise(bench: Bench, ours: Sequence[BootResult], theirs: Sequence[BootResult]) -> tuple[Seen, tuple[str, ...]]:
    """What the ledger has seen of both configurations in the arm's last state, and why nothing where it cannot say."""
    configs = list(dict.fromkeys(result.boot.fingerprint for side in (ours, theirs) for result in side))
    last = [result for result in ours if _is_ready(result)] or ours
    try:
        return bench.seen(configs, last[-1].subject.evidence, last[-1].boot.conditions.get("jit_cache")), ()
    except LedgerError as error:
        return {}, (f"the noise that the ledger has seen is not known here: {error}",)


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


def bounds_of(rule: Rule) -> Bounds:
    """What the rule asks of a control, in numbers."""
    window = units.parse(rule.window, dimension="time", default_unit="s")
    return Bounds(age_s=window.number, drift=ratio(rule.drift), alike=rule.alike)


def boot_value(result: BootResult, metric: str) -> float | None:
    """A boot's figure: the median over its trials, those that a prefix cache answered left out; None where there is none."""
    figures = [trial.figures[metric] for _, trial in result.trials if metric in trial.figures]
    values = [item.value for item in figures if item.value is not None and item.conditions.get("prefix_cache") != "hit"]
    return statistics.median(values) if values else None


def _case(bench: Bench, rule: Rule, results: Sequence[BootResult], arm: Arm, control: str, seed: str, noise: Seen) -> Case:
    base = next((result.boot.fingerprint for result in results if result.subject.arm == arm.base), None)
    ours, theirs = ([result for result in results if result.subject.arm == name] for name in (arm.id, control))
    return Case(
        names=(arm.id, control),
        arm=_facts(rule, ours),
        control=_facts(rule, theirs),
        limits=limits_of(rule),
        bounds=bounds_of(rule),
        now=bench.clock.now().timestamp(),
        seed=seed,
        base=base,
        blocked=_blocked(ours, theirs, control),
        noise=noise,
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
