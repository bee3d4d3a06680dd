"""What the receipts of a session say was done, and what of its plan is left.

What it does: sorts receipts into tries of each position of the plan. What it does not do: read a file, or act. Rules kept: a
receipt is the only proof that something was done, whatever a journal says; nothing that has one is done again.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

from attrs import evolve, field, frozen

from ledger.core import digest
from ledger.core.words import Outcome, Verdict
from ledger.instruments.base import Instrument
from ledger.receipt.model import Attempt, Boot, Decision, Gate, Note, Receipt, Trial
from ledger.spec.plan import BootPlan, Plan, plain

TrialKey = tuple[str, int]


@frozen(kw_only=True)
class Try:
    """One attempt at a position, with what came of it. ``at`` is the boot receipt's time, as a timestamp."""

    attempt: str
    taken: Attempt
    boot: tuple[str, Boot] | None = None
    at: float = 0.0
    trials: tuple[tuple[str, Trial], ...] = ()
    gates: tuple[tuple[str, Gate], ...] = ()

    def has_gate(self, name: str) -> bool:
        """Whether a gate was recorded for the boot itself, not before it."""
        return any(gate.gate == name and gate.boot is not None for _, gate in self.gates)


@frozen(kw_only=True)
class Done:
    """The tries of every position, how many attempts each arm had, the verdict of each arm that has one, and what was noted."""

    tries: Mapping[int, tuple[Try, ...]] = field(factory=dict)
    attempts: Mapping[str, int] = field(factory=dict)
    decided: Mapping[str, Verdict] = field(factory=dict)
    notes: frozenset[str] = frozenset()

    @property
    def trials(self) -> int:
        """How many trials have a receipt."""
        return sum(len(each.trials) for tries in self.tries.values() for each in tries)


def done_in(receipts: Iterable[tuple[str, Receipt]]) -> Done:
    """What a session has done; ``receipts`` are its own, in the order of the chain."""
    tries: dict[str, Try] = {}
    decided: dict[str, Verdict] = {}
    notes: set[str] = set()
    for name, receipt in receipts:
        body = receipt.body
        if isinstance(body, Attempt):
            tries[name] = Try(attempt=name, taken=body)
        elif isinstance(body, Decision):
            decided[body.subject.arm] = body.verdict
        elif isinstance(body, Note):
            notes.add(body.text)
        elif (attempt := _attempt_of(body, tries)) is not None:
            tries[attempt] = _with(tries[attempt], name, receipt)
    by_position: dict[int, tuple[Try, ...]] = {}
    for each in tries.values():
        by_position[each.taken.position] = (*by_position.get(each.taken.position, ()), each)
    attempts = Counter(each.taken.subject.arm for each in tries.values())
    return Done(tries=by_position, attempts=attempts, decided=decided, notes=frozenset(notes))


def _attempt_of(body: object, tries: Mapping[str, Try]) -> str | None:
    if isinstance(body, Boot | Gate):
        return body.attempt if body.attempt in tries else None
    if isinstance(body, Trial):
        return next((name for name, each in tries.items() if each.boot and each.boot[0] == body.boot), None)
    return None


def _with(each: Try, name: str, receipt: Receipt) -> Try:
    body = receipt.body
    if isinstance(body, Boot):
        return evolve(each, boot=(name, body), at=datetime.fromisoformat(receipt.at).timestamp())
    if isinstance(body, Trial):
        return evolve(each, trials=(*each.trials, (name, body)))
    assert isinstance(body, Gate)
    return evolve(each, gates=(*each.gates, (name, body)))


def measured(tries: Iterable[Try]) -> frozenset[TrialKey]:
    """The trials that have a receipt, by measure and number."""
    return frozenset((trial.measure, trial.number) for each in tries for _, trial in each.trials)


def is_over(boot: BootPlan, tries: tuple[Try, ...], last_gate: str) -> bool:
    """Whether nothing of a position is left to boot for.

    It is over when every trial has a receipt, when its last boot did not get ready, or when the trials of its last boot had
    ended, which the gate ``last_gate`` shows.
    """
    if not tries or tries[-1].boot is None:
        return bool(tries) and not wanted(boot) - measured(tries)
    if tries[-1].boot[1].outcome is not Outcome.READY or tries[-1].has_gate(last_gate):
        return True
    return not wanted(boot) - measured(tries)


def wanted(boot: BootPlan) -> frozenset[TrialKey]:
    """The trials that a position asks for."""
    return frozenset((measure.id, number) for measure in boot.measures for number in range(1, measure.trials + 1))


def plan_digest(plan: Plan, instruments: Mapping[str, Instrument]) -> str:
    """The digest of all that decides what a plan boots and measures, the versions of its instruments included."""
    versions = {name: instrument.version for name, instrument in instruments.items()}
    boots = [
        {
            "arm": boot.arm.id,
            "lane": boot.declared.id,
            "identity": dict(boot.identity),
            "measures": [[each.id, each.uses, each.trials, repr(sorted(each.parameters.items()))] for each in boot.measures],
        }
        for boot in plan.boots
    ]
    restored = {"restore": plain(plan.spec.restore)} if plan.spec.restore is not None else {}
    return digest.of_value({"boots": boots, "instruments": versions, **restored})
