"""After the rule: the config that stays is booted again and proven to be the one that was measured.

What it does: finds the arm that stays, has it booted at the position behind the ladder, and tells what its gates said. What it
does not do: choose (``spec.restore``), compare (``gates``), or leave the server running; a run stops all that it started. Rules
kept: where nothing can be booted again there is a receipt that says why, once.
"""

from collections.abc import Mapping

from ledger.core.words import Outcome, Verdict
from ledger.receipt.model import Note
from ledger.run.ladder import Ladder
from ledger.run.past import Done
from ledger.run.records import Bench, BootResult
from ledger.run.watch import Restored
from ledger.spec.model import SAME_QUALITY, SAME_REPLIES
from ledger.spec.plan import Plan
from ledger.spec.restore import Chosen, final_arm

BY = "ledger"


def restore(bench: Bench, plan: Plan, ladder: Ladder, verdicts: Mapping[str, Verdict], before: Done) -> None:
    """Boot the arm that stays once more and prove it; without such an arm, note why not."""
    chosen = _chosen(plan, ladder, verdicts)
    if chosen.arm is None:
        _note(bench, f"nothing was restored: {chosen.why}", before)
        bench.watch(Restored(arm=None, why=chosen.why))
        return
    bench.steps.note("restore", arm=chosen.arm)
    first = len(ladder.results)
    ladder.position(plan.restores[chosen.arm])
    made = ladder.results[first:]
    bench.watch(Restored(arm=chosen.arm, why=chosen.why, unproven=_unproven(made, plan, chosen.arm)))


def _chosen(plan: Plan, ladder: Ladder, verdicts: Mapping[str, Verdict]) -> Chosen:
    if plan.spec.on_failure == "stop" and not ladder.summary().complete:
        return Chosen(arm=None, why="the ladder stopped at a boot that failed or that a gate blocks")
    return final_arm(plan.spec, verdicts)


def _note(bench: Bench, text: str, before: Done) -> None:
    if text not in before.notes:
        bench.recorder.record(Note(text=text, by=BY))


def _unproven(made: list[BootResult], plan: Plan, arm: str) -> tuple[str, ...]:
    """What stands against the proof: a boot that did not get ready, gates that block, and gates that were never judged."""
    said = [f"boot {result.boot.outcome}: {result.boot.reason}" for result in made if result.boot.outcome is not Outcome.READY]
    said += [text for result in made for text in result.blocked]
    judged = {gate.gate for result in made for _, gate in result.gates if gate.boot is not None}
    own = {gate.id for gate in plan.restores[arm].gates} & {SAME_REPLIES, SAME_QUALITY}
    return (*said, *(f"gate {name!r} was not judged" for name in sorted(own - judged)))
