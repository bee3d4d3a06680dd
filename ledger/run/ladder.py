"""The positions of a plan: what was done of each before, and a boot for what is left.

What it does: settles the tries that a killed runner left, boots what they lack, and gives each boot the trials that its gates
compare with. What it does not do: order the positions or judge an arm (``session``). Rules kept: what has a receipt is not done
again; a gate whose trials were all taken by an earlier try keeps the verdict of that try; no boot is compared with itself.
"""

from collections import Counter
from collections.abc import Collection, Sequence

from attrs import define, evolve, field, frozen

from ledger.core.words import Outcome, Role
from ledger.receipt.model import Subject, Trial
from ledger.run.boot import ALIVE, BootRunner, Rest
from ledger.run.nodes import BootNodes, ControlTrials
from ledger.run.past import Done, TrialKey, Try, is_over, measured, wanted
from ledger.run.records import Bench, BootResult
from ledger.run.settle import settle, why_again
from ledger.spec.model import GateSpec
from ledger.spec.order import RANDOM, control_of
from ledger.spec.plan import BootPlan, Plan
from ledger.spec.readings import is_of_nodes


@frozen(kw_only=True)
class Summary:
    """What a session gave, boot by boot. ``complete`` when every boot got ready and every trial ran without a failed gate."""

    boots: tuple[BootResult, ...]

    @property
    def complete(self) -> bool:
        """Whether all that was planned was measured and nothing blocks a verdict."""
        return all(item.boot.outcome is Outcome.READY and not item.blocked for item in self.boots)


@define(kw_only=True)
class Ladder:
    """The positions of a plan, one after the other. ``results`` has what each gave, in their order."""

    bench: Bench
    plan: Plan
    before: Done
    results: list[BootResult] = field(factory=list, init=False)
    _numbers: Counter[str] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._numbers = Counter(self.before.attempts)

    def summary(self) -> Summary:
        """What was done so far."""
        return Summary(boots=tuple(self.results))

    def position(self, boot: BootPlan) -> None:
        """What was done of it before, and a boot for what is left."""
        tries = self.before.tries.get(boot.position, ())
        self.results += [settle(self.bench, boot, each, self._nodes(boot)) for each in tries if each.boot is not None]
        if not is_over(boot, tries, ALIVE.id):
            self.results.append(self._boot(boot, tries))

    def _boot(self, boot: BootPlan, tries: tuple[Try, ...]) -> BootResult:
        spec = self.plan.spec
        taken = measured(tries)
        left = evolve(boot, gates=tuple(gate for gate in boot.gates if not _is_settled(gate, boot, taken)))
        self._numbers[boot.arm.id] += 1
        runner = BootRunner(
            self.bench,
            left,
            _subject(self.plan, boot),
            of=self.plan.count,
            number=self._numbers[boot.arm.id],
            nodes=self._nodes(left),
            order=(spec.order, spec.order_seed if spec.order == RANDOM else None),
            rest=Rest(taken=taken, reason=why_again(tries)),
        )
        return runner.run(spec.warmup)

    def _nodes(self, boot: BootPlan) -> BootNodes:
        return BootNodes(
            care=self.bench.care,
            plan=boot,
            spec=self.plan.spec,
            site=self.plan.site,
            control_trials=self._control_trials(boot),
        )

    def _control_trials(self, boot: BootPlan) -> ControlTrials:
        """The trials of the last boot of the arm that a gate names, or of the control, but never those of ``boot`` itself."""
        spec = self.plan.spec
        base = boot.arm.base if boot.arm.role is Role.CANDIDATE else None
        own = control_of(boot.arm, spec.rule, spec.arms) if spec.rule else base

        def control_trials(arm: str | None) -> Sequence[Trial] | None:
            control = arm or own
            if control is None or (control == boot.arm.id and not boot.restores):
                return None
            others = (each for each in reversed(self.results) if each.plan.position != boot.position)
            last = next((each for each in others if each.subject.arm == control and each.trials), None)
            return [trial for _, trial in last.trials] if last else []

        return control_trials


def _is_settled(gate: GateSpec, boot: BootPlan, taken: Collection[TrialKey]) -> bool:
    """Whether a gate is about one measure whose trials were all taken before, so that a new boot has nothing for it to read."""
    about = {key for key in wanted(boot) if key[0] == gate.of}
    return gate.when == "after" and not is_of_nodes(gate.reads) and bool(about) and about <= set(taken)


def _subject(plan: Plan, boot: BootPlan) -> Subject:
    return Subject(
        spec=plan.spec.name,
        lane=boot.declared.id,
        arm=boot.arm.id,
        role=boot.arm.role,
        evidence=boot.evidence,
    )
