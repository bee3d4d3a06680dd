"""A session: every boot of a plan, one after the other, then the rule, then one commit.

What it does: checks the pins of all boots at once; runs the boots in the plan's order; applies the rule to what they gave. What
it does not do: a boot's own steps (``boot``), or commit (its caller does). Rules kept: when a pin fails, nothing has been
booted and nothing recorded; a boot that fails does not stop the ladder; an interrupt keeps every receipt that was written.
"""

from collections import Counter
from collections.abc import Sequence

from attrs import frozen

from ledger.core.errors import BackendError, Problem
from ledger.core.words import Outcome, Role
from ledger.instruments import registry
from ledger.instruments.base import Instrument
from ledger.receipt.model import Subject, Trial
from ledger.run.boot import BootRunner
from ledger.run.decide import decide
from ledger.run.nodes import BootNodes
from ledger.run.preflight import Checks, check_pins
from ledger.run.records import Bench, BootResult
from ledger.run.watch import SessionStarted
from ledger.spec.order import RANDOM, control_of
from ledger.spec.plan import BootPlan, Plan


class PreflightError(BackendError):
    """A pin does not hold; nothing was booted."""


@frozen(kw_only=True)
class Summary:
    """What a session gave, boot by boot. ``complete`` when every boot got ready and every trial ran without a failed gate."""

    boots: tuple[BootResult, ...]

    @property
    def complete(self) -> bool:
        """Whether all that was planned was measured and nothing blocks a verdict."""
        return all(item.boot.outcome is Outcome.READY and not item.blocked for item in self.boots)


def find_instruments(plan: Plan) -> dict[str, Instrument]:
    """The instruments of a plan by name; ``measures`` has checked their parameters.

    Raises:
        UsageError: an unknown instrument.
    """
    used = {measure.uses for boot in plan.boots for measure in boot.measures}
    return {name: registry.get(name) for name in sorted(used)}


def run_session(bench: Bench, plan: Plan) -> Summary:
    """Run every boot of ``plan`` and record what the rule says. Call :func:`check_all_pins` before."""
    bench.watch(SessionStarted(session=bench.recorder.session, boots=len(plan.boots)))
    done: list[BootResult] = []
    numbers: Counter[str] = Counter()
    for boot in plan.boots:
        numbers[boot.arm.id] += 1
        runner = BootRunner(
            bench,
            boot,
            _subject(plan, boot),
            of=len(plan.boots),
            number=numbers[boot.arm.id],
            nodes=_nodes(bench, plan, boot, done),
            order=(plan.spec.order, plan.spec.order_seed if plan.spec.order == RANDOM else None),
        )
        done.append(runner.run(plan.spec.warmup))
    if plan.spec.rule is not None:
        decide(bench, plan.spec.rule, done)
    return Summary(boots=tuple(done))


def check_all_pins(plan: Plan, checks: Checks) -> None:
    """Check the pins of every boot; each distinct failure is told once.

    Raises:
        PreflightError: with every pin that does not hold; nothing has been booted or recorded.
    """
    problems: dict[str, Problem] = {}
    for boot in plan.boots:
        for problem in check_pins(boot, checks).problems:
            problems.setdefault(str(problem), problem)
    if problems:
        raise PreflightError(problems.values())


def _nodes(bench: Bench, plan: Plan, boot: BootPlan, done: Sequence[BootResult]) -> BootNodes:
    """The nodes of one boot; gates that compare see the last ready boot of the arm that they name, or of the control."""
    is_judged = boot.arm.role is Role.CANDIDATE
    own = control_of(boot.arm, plan.spec.rule, plan.spec.arms) if plan.spec.rule else boot.arm.base if is_judged else None

    def control_trials(arm: str | None) -> Sequence[Trial] | None:
        control = arm or own
        if control is None or control == boot.arm.id:
            return None
        last = next((each for each in reversed(done) if each.subject.arm == control and each.trials), None)
        return [trial for _, trial in last.trials] if last else []

    return BootNodes(care=bench.care, plan=boot, spec=plan.spec, site=plan.site, control_trials=control_trials)


def _subject(plan: Plan, boot: BootPlan) -> Subject:
    return Subject(
        spec=plan.spec.name,
        lane=boot.declared.id,
        arm=boot.arm.id,
        role=boot.arm.role,
        evidence=boot.evidence,
    )
