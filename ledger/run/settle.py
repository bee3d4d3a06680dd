"""A boot whose runner was ended: its result from its receipts, and the gates that nobody came to judge.

What it does: makes the result of such a boot again, judges from its trials the gates that have no receipt, and says why a
position is booted again. What it does not do: start anything. Rules kept: what could only be read while the boot lived is
``unknown``, never ``pass``; a boot without a trial has nothing that a gate could vouch for, and is not judged.
"""

from collections.abc import Sequence

from ledger.core.digest import short
from ledger.core.words import Holds, Outcome
from ledger.receipt.model import Gate, Trial
from ledger.run.boot import ALIVE
from ledger.run.evidence import keep
from ledger.run.gates import GateVerdict, blocks, gate_receipt
from ledger.run.nodes import CUT_SHORT, BootNodes
from ledger.run.past import Try
from ledger.run.records import Bench, BootResult
from ledger.spec.model import GateSpec
from ledger.spec.plan import BootPlan


def settle(bench: Bench, plan: BootPlan, each: Try, nodes: BootNodes) -> BootResult:
    """The result of a try that has a boot receipt; the gates that it lacks are judged and recorded first."""
    assert each.boot is not None
    digest, boot = each.boot
    found = list(each.gates)
    if boot.outcome is Outcome.READY and each.trials:
        trials = [trial for _, trial in each.trials]
        known = {gate.gate for _, gate in each.gates if gate.boot is not None}
        alive = [] if ALIVE.id in known else [_alive(trials)]
        for verdict in [*alive, *nodes.gates_cut_short(trials, known)]:
            evidence = keep(verdict.evidence, bench.recorder.blob)
            body = gate_receipt(verdict, boot.subject, each.attempt, digest, evidence)
            found.append((bench.recorder.record(body), body))
    counted = [gate for _, gate in found if gate.boot is not None or boot.outcome is Outcome.READY]
    blocked = [text for gate in counted if (text := _blocks(gate, plan.gates))]
    return BootResult(
        plan=plan,
        subject=boot.subject,
        digest=digest,
        boot=boot,
        trials=each.trials,
        gates=tuple(found),
        blocked=tuple(blocked),
        at=each.at,
    )


def _alive(trials: Sequence[Trial]) -> GateVerdict:
    """That the server lived until its last trial had ended is certain when every request was answered, and else not known."""
    failed = sum(trial.requests.failed for trial in trials)
    if failed:
        return GateVerdict(gate=ALIVE, holds=Holds.UNKNOWN, reason=f"{CUT_SHORT}, and {failed} requests failed")
    return GateVerdict(gate=ALIVE, holds=Holds.PASS, value="0", reason="every request of its trials was answered")


def _blocks(gate: Gate, gates: Sequence[GateSpec]) -> str | None:
    spec = next((each for each in (ALIVE, *gates) if each.id == gate.gate), None)
    return blocks(GateVerdict(gate=spec, holds=gate.holds, value=gate.value, reason=gate.reason)) if spec else None


def why_again(tries: Sequence[Try]) -> str | None:
    """Why a position is booted again; None when it was not booted before."""
    if not tries:
        return None
    last = tries[-1]
    done = f"after {len(last.trials)} trials" if last.boot else "before its boot was recorded"
    return f"resumed: the runner of attempt {short(last.attempt)} was ended {done}"
