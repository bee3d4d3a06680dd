"""Gates: a condition read, compared with its limit, and recorded with its raw evidence.

What it does: evaluates a gate of the spec against a host reading, the requests of a boot's trials, or their figures. What it
does not do: decide what follows from a failed gate (``session``). Rules kept: what cannot be read gives ``unknown``, never
``pass``; the value and the limit are kept as text in the units that the spec wrote.
"""

import operator
from collections.abc import Callable, Mapping, Sequence

from attrs import frozen

from ledger.core import units
from ledger.core.words import Holds
from ledger.receipt.model import Trial
from ledger.run.host import HostReading
from ledger.spec.model import GateSpec

OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    ">": operator.gt,
}


@frozen(kw_only=True)
class GateVerdict:
    """What a gate said: whether it holds, the value read (as text) and the raw evidence."""

    gate: GateSpec
    holds: Holds
    value: str | None
    evidence: str


def judge_before(gate: GateSpec, host: HostReading) -> GateVerdict:
    """Evaluate a gate on the host, before a boot. Only ``host.*`` can be read then."""
    name = gate.reads.removeprefix("host.")
    value = host.values.get(name) if gate.reads.startswith("host.") else None
    return _verdict(gate, value, host.raw)


def judge_after(gate: GateSpec, trials: Sequence[Trial], host: HostReading) -> GateVerdict:
    """Evaluate a gate on what the trials of a boot gave: ``requests.failed``, ``requests.ok``, a metric, or ``host.*``."""
    if gate.reads.startswith("host."):
        return judge_before(gate, host)
    if gate.reads.startswith("requests."):
        return _verdict(gate, _requests(gate.reads, trials), _counts(trials))
    values = [found.value for trial in trials if (found := trial.figures.get(gate.reads)) and found.value is not None]
    evidence = "\n".join(f"{trial.measure}: {trial.figures.get(gate.reads)}" for trial in trials)
    # Every trial must satisfy the limit, so the gate reads the worst of them.
    worst = (max if gate.op in {"<", "<="} else min)(values) if values else None
    return _verdict(gate, worst, evidence + "\n")


def _verdict(gate: GateSpec, value: float | None, evidence: str) -> GateVerdict:
    limit = units.parse(gate.value)
    if value is None:
        return GateVerdict(gate=gate, holds=Holds.UNKNOWN, value=None, evidence=evidence)
    holds = Holds.PASS if OPERATORS[gate.op](value, limit.number) else Holds.FAIL
    shown = str(units.Quantity(number=value, dimension=limit.dimension, unit=limit.unit))
    return GateVerdict(gate=gate, holds=holds, value=shown, evidence=evidence)


def _requests(reads: str, trials: Sequence[Trial]) -> float | None:
    counters = {"requests.failed": "failed", "requests.ok": "ok", "requests.launched": "launched"}
    if reads not in counters or not trials:
        return None
    return float(sum(getattr(trial.requests, counters[reads]) for trial in trials))


def _counts(trials: Sequence[Trial]) -> str:
    return "".join(
        f"{trial.measure} trial {trial.number}: launched {trial.requests.launched}, ok {trial.requests.ok}, "
        f"failed {trial.requests.failed}, reasons {dict(trial.requests.reasons)}\n"
        for trial in trials
    )
