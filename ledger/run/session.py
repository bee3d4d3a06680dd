"""A session: every boot of a plan, one after the other, then the rule, then what stays, then one commit.

What it does: checks the pins of all boots at once; runs the boots in the plan's order; applies the rule to what they gave; has
what stays booted again (``restore``). What it does not do: a boot's own steps (``boot``), or commit (its caller does). Rules
kept: when a pin fails, nothing has been booted and nothing recorded; a boot that fails stops the ladder only where the spec says
so; an interrupt keeps every receipt that was written; what has a receipt is not done again.
"""

from ledger.core.errors import BackendError, Problem
from ledger.core.words import Verdict
from ledger.instruments import registry
from ledger.instruments.base import Instrument
from ledger.run.decide import decide
from ledger.run.ladder import Ladder, Summary
from ledger.run.past import Done
from ledger.run.preflight import Checks, check_pins
from ledger.run.records import Bench
from ledger.run.restore import restore
from ledger.run.watch import SessionStarted
from ledger.spec.plan import Plan

NOTHING = Done()


class PreflightError(BackendError):
    """A pin does not hold; nothing was booted."""


def find_instruments(plan: Plan) -> dict[str, Instrument]:
    """The instruments of a plan by name; ``measures`` has checked their parameters.

    Raises:
        UsageError: an unknown instrument.
    """
    used = {measure.uses for boot in plan.boots for measure in boot.measures}
    return {name: registry.get(name) for name in sorted(used)}


def run_session(bench: Bench, plan: Plan, before: Done = NOTHING) -> Summary:
    """Run every boot of ``plan``, record what the rule says, and boot again what stays. Call :func:`check_all_pins` before.

    ``before`` is what the session did until its runner was ended; none of it is done again.
    """
    bench.watch(SessionStarted(session=bench.recorder.session, boots=plan.count))
    ladder = Ladder(bench=bench, plan=plan, before=before)
    for boot in plan.boots:
        ladder.position(boot)
        if plan.spec.on_failure == "stop" and not ladder.summary().complete:
            break
    verdicts = _decided(bench, plan, ladder, before)
    if plan.restores:
        restore(bench, plan, ladder, verdicts, before)
    return ladder.summary()


def _decided(bench: Bench, plan: Plan, ladder: Ladder, before: Done) -> dict[str, Verdict]:
    if plan.spec.rule is None:
        return {}
    bench.steps.note("decide")
    return dict(decide(bench, plan.spec.rule, ladder.results, decided=before.decided))


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
