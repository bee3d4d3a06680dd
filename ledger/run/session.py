"""A session: every boot of a plan, one after the other, then the rule, then one commit.

What it does: checks the pins of all boots at once; runs the boots in the plan's order; applies the rule to what they gave. What
it does not do: a boot's own steps (``boot``), or commit (its caller does). Rules kept: when a pin fails, nothing has been
booted and nothing recorded; a boot that fails stops the ladder only where the spec says so; an interrupt keeps every receipt
that was written; what has a receipt is not done again.
"""

from collections import Counter
from collections.abc import Sequence

from attrs import define, field, frozen

from ledger.core.errors import BackendError, Problem
from ledger.core.words import Outcome, Role
from ledger.instruments import registry
from ledger.instruments.base import Instrument
from ledger.receipt.model import Subject, Trial
from ledger.run.boot import ALIVE, BootRunner, Rest
from ledger.run.decide import decide
from ledger.run.nodes import BootNodes
from ledger.run.past import Done, Try, is_over, measured
from ledger.run.preflight import Checks, check_pins
from ledger.run.records import Bench, BootResult
from ledger.run.settle import settle, why_again
from ledger.run.watch import SessionStarted
from ledger.spec.order import RANDOM, control_of
from ledger.spec.plan import BootPlan, Plan

NOTHING = Done()


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


def run_session(bench: Bench, plan: Plan, before: Done = NOTHING) -> Summary:
    """Run every boot of ``plan`` and record what the rule says. Call :func:`check_all_pins` before.

    ``before`` is what the session did until its runner was ended; none of it is done again.
    """
    bench.watch(SessionStarted(session=bench.recorder.session, boots=len(plan.boots)))
    ladder = _Ladder(bench=bench, plan=plan, before=before, numbers=Counter(before.attempts))
    for boot in plan.boots:
        ladder.position(boot)
        if plan.spec.on_failure == "stop" and not Summary(boots=tuple(ladder.results)).complete:
            break
    if plan.spec.rule is not None:
        bench.steps.note("decide")
        decide(bench, plan.spec.rule, ladder.results, decided=before.decided)
    return Summary(boots=tuple(ladder.results))


@define(kw_only=True)
class _Ladder:
    """The positions of a plan, one after the other; ``numbers`` counts the attempts of each arm."""

    bench: Bench
    plan: Plan
    before: Done
    numbers: Counter[str]
    results: list[BootResult] = field(factory=list)

    def position(self, boot: BootPlan) -> None:
        """What was done of it before, and a boot for what is left."""
        tries = self.before.tries.get(boot.position, ())
        self.results += [
            settle(self.bench, boot, each, self._nodes(boot), self.plan.spec.gates) for each in tries if each.boot is not None
        ]
        if not is_over(boot, tries, ALIVE.id):
            self.results.append(self._boot(boot, tries))

    def _boot(self, boot: BootPlan, tries: tuple[Try, ...]) -> BootResult:
        spec = self.plan.spec
        self.numbers[boot.arm.id] += 1
        runner = BootRunner(
            self.bench,
            boot,
            _subject(self.plan, boot),
            of=len(self.plan.boots),
            number=self.numbers[boot.arm.id],
            nodes=self._nodes(boot),
            order=(spec.order, spec.order_seed if spec.order == RANDOM else None),
            rest=Rest(taken=measured(tries), reason=why_again(tries)),
        )
        return runner.run(spec.warmup)

    def _nodes(self, boot: BootPlan) -> BootNodes:
        """The nodes of one boot; gates that compare see the last ready boot of the arm that they name, or of the control."""
        spec = self.plan.spec
        is_judged = boot.arm.role is Role.CANDIDATE
        own = control_of(boot.arm, spec.rule, spec.arms) if spec.rule else boot.arm.base if is_judged else None

        def control_trials(arm: str | None) -> Sequence[Trial] | None:
            control = arm or own
            if control is None or control == boot.arm.id:
                return None
            last = next((each for each in reversed(self.results) if each.subject.arm == control and each.trials), None)
            return [trial for _, trial in last.trials] if last else []

        return BootNodes(care=self.bench.care, plan=boot, spec=spec, site=self.plan.site, control_trials=control_trials)


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


def _subject(plan: Plan, boot: BootPlan) -> Subject:
    return Subject(
        spec=plan.spec.name,
        lane=boot.declared.id,
        arm=boot.arm.id,
        role=boot.arm.role,
        evidence=boot.evidence,
    )
