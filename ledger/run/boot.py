"""One boot, from its attempt to its teardown.

What it does: records the attempt; checks pins and gates; starts the lane and waits until it is ready; records the boot with its
three config blocks; warms up, runs the trials, judges the gates that come after; ends the lane. What it does not do: order
boots or apply the rule (``session``). Rules kept: the attempt is recorded before anything starts; whatever goes wrong becomes
the boot's receipt with a reason; the lane is stopped on every way out.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from ledger.backends.base import Observed
from ledger.core.digest import Descriptor
from ledger.core.errors import BackendError
from ledger.core.words import FieldClass, Holds, Outcome
from ledger.receipt.codec import fingerprint
from ledger.receipt.model import Agreement, Attempt, Boot, Factors, Gate, RankConfig, Subject, Trial
from ledger.run import host
from ledger.run.agreement import UNVERIFIED, agree, conceal, observed_tree, reported
from ledger.run.evidence import Evidence, keep, text_piece
from ledger.run.gates import GateVerdict, blocks, gate_receipt
from ledger.run.lane import LiveLane, Readiness, log_path, ready_within_s
from ledger.run.nodes import BootNodes
from ledger.run.preflight import check_pins
from ledger.run.records import TEXT, Bench, BootResult
from ledger.run.trial import TrialRunner, warm_up
from ledger.run.watch import BootEnded, BootStarted, Phase
from ledger.spec.factors import NOT_KNOWN_HERE, reported_factors, split
from ledger.spec.model import SERVER_ALIVE, GateSpec
from ledger.spec.plan import BootPlan

NOTHING: Mapping[str, str] = {}
LOG_TAIL = 4_000
LOG_LIMIT = 4 * 2**20
ALIVE = GateSpec(
    id=SERVER_ALIVE,
    text="the server lived until its last trial had ended",
    reads="server.exits",
    op="==",
    value="0",
    when="after",
)


@frozen(kw_only=True)
class Rest:
    """What an earlier boot of the same position left over: ``taken`` are the trials that it measured, ``reason`` why it ended."""

    taken: frozenset[tuple[str, int]] = frozenset()
    reason: str | None = None


class BootRunner:
    """Runs one boot of a plan; made for it and used once."""

    def __init__(
        self,
        bench: Bench,
        plan: BootPlan,
        subject: Subject,
        *,
        of: int,
        number: int,
        nodes: BootNodes,
        order: tuple[str, int | None] = ("written", None),
        rest: Rest = Rest(),
    ) -> None:
        self._bench = bench
        self._plan = plan
        self._subject = subject
        self._nodes = nodes
        self._rest = rest
        self._gate_receipts: list[tuple[str, Gate]] = []
        self._conditions: Mapping[str, str] = {"position": str(plan.position)}
        self._evidence: tuple[Descriptor, ...] = ()
        self._unread: list[str] = []
        bench.steps.note("attempt", position=plan.position, arm=subject.arm, number=number)
        self._attempt = bench.recorder.record(
            Attempt(
                subject=subject,
                spec=bench.spec,
                site=bench.site,
                number=number,
                position=plan.position,
                of=of,
                order=order[0],
                order_seed=order[1],
                round=plan.round,
                added=plan.added,
                reason=rest.reason,
            )
        )
        bench.watch(
            BootStarted(
                position=plan.position,
                of=of,
                arm=subject.arm,
                lane=subject.lane,
                role=subject.role,
                evidence=subject.evidence,
            )
        )

    def run(self, warmup: int) -> BootResult:
        """Do all of it and return what it gave."""
        try:
            return self._run(warmup)
        finally:
            self._nodes.end()

    def _run(self, warmup: int) -> BootResult:
        self._bench.watch(Phase(name="preflight"))
        preflight = check_pins(self._plan, self._bench.care.checks)
        refusals = [str(problem) for problem in preflight.problems]
        if not refusals:
            refusals = self._prepared()
        if refusals:
            return self._ended(self._boot(Outcome.REFUSED, reason="; ".join(refusals)))
        self._bench.watch(Phase(name="boot"))
        self._nodes.begin()
        self._note("boot")
        try:
            lane = self._bench.start(self._plan, preflight.values, self._bench.logs)
        except BackendError as error:
            return self._ended(self._boot(Outcome.FAILED, reason=str(error)))
        try:
            return self._with(lane, warmup)
        finally:
            self._bench.watch(Phase(name="teardown"))
            lane.stop()

    def _prepared(self) -> list[str]:
        """Clean the nodes and judge the gates that come before; the texts of those that block."""
        self._bench.watch(Phase(name="hygiene"))
        self._conditions, pieces = self._nodes.prepare()
        self._evidence = keep(pieces, self._bench.recorder.blob)
        refusals = self._record_gates(self._nodes.gates_before(), None)
        if self._plan.endpoint is None:
            return refusals
        # Nothing is booted at an endpoint, so that there is no boot to refuse: what cannot be known blocks the verdict.
        self._unread = refusals
        return []

    def _with(self, lane: LiveLane, warmup: int) -> BootResult:
        ready = lane.wait_ready(ready_within_s(self._plan))
        if ready.outcome is not Outcome.READY:
            return self._ended(self._boot(ready.outcome, ready=ready, reason=ready.reason))
        result = self._ended(self._observed_boot(lane, ready))
        trials, sampled = self._trials(lane, result.digest, warmup)
        self._note("gates")
        verdicts = self._nodes.gates_after([trial for _, trial in trials], sampled, _processes(lane.observe()))
        blocked = self._record_gates([self._alive(lane), *verdicts], result.digest)
        return evolve(result, trials=tuple(trials), gates=tuple(self._gate_receipts), blocked=(*self._unread, *blocked))

    def _observed_boot(self, lane: LiveLane, ready: Readiness) -> Boot:
        observed = lane.observe()
        resolved = lane.resolved()
        served = self._nodes.served(resolved, observed)
        facts = lane.server_facts()
        is_ours = self._plan.endpoint is None
        agreement = agree(resolved, observed, served) if is_ours else reported(self._model, facts)
        return self._boot(
            ready.outcome,
            ready=ready,
            resolved=resolved,
            observed=observed_tree(observed, facts, self._bench.conceal, served),
            reported={} if is_ours else reported_factors(facts),
            agreement=conceal(agreement, self._bench.conceal),
        )

    def _boot(
        self,
        outcome: Outcome,
        *,
        ready: Readiness | None = None,
        reason: str | None = None,
        resolved: Sequence[RankConfig] = (),
        observed: Mapping[str, Any] | None = None,
        agreement: Agreement | None = None,
        reported: Mapping[str, str] = NOTHING,
    ) -> Boot:
        factors = self._factors(reported)
        logs, tail = self._logs()
        hide = self._bench.conceal
        return Boot(
            subject=self._subject,
            attempt=self._attempt,
            outcome=outcome,
            fingerprint=fingerprint(factors.identity),
            factors=factors,
            requested=hide.tree(self._plan.requested),
            resolved=tuple(evolve(rank, argv=hide.argv(rank.argv), env=hide.env(rank.env)) for rank in resolved),
            observed=observed or {},
            agreement=agreement or Agreement(state=UNVERIFIED),
            conditions=self._conditions,
            seconds=round(ready.seconds, 3) if ready and self._plan.endpoint is None else None,
            reason=hide.text(reason) if reason else None,
            log_tail=None if outcome is Outcome.READY else tail,
            logs=logs,
            evidence=self._evidence,
        )

    def _ended(self, boot: Boot) -> BootResult:
        digest = self._bench.recorder.record(boot)
        self._bench.watch(
            BootEnded(
                arm=self._subject.arm,
                outcome=boot.outcome,
                seconds=boot.seconds,
                reason=boot.reason,
                agreement=boot.agreement.state,
            )
        )
        at = self._bench.clock.now().timestamp()
        gates = tuple(self._gate_receipts)
        return BootResult(plan=self._plan, subject=self._subject, digest=digest, boot=boot, gates=gates, at=at)

    def _factors(self, reported: Mapping[str, str]) -> Factors:
        """The factors of the plan, of this machine where it runs something, and of what a server says of itself."""
        hide, said = self._bench.conceal, split(reported)
        here = host.context() if self._plan.endpoint is None else {"host": NOT_KNOWN_HERE}
        return Factors(
            identity=_flat(hide.tree({**self._plan.identity, **said[FieldClass.IDENTITY]})),
            context=_flat(hide.tree({**self._plan.context, **said[FieldClass.CONTEXT], **here})),
            provenance=_flat(hide.tree(self._plan.provenance)),
        )

    def _logs(self) -> tuple[tuple[Descriptor, ...], str | None]:
        """The output so far of every rank as blobs, and the tail of the head's."""
        texts = [self._log_text(rank.rank) for rank in self._plan.ranks]
        blobs = tuple(self._bench.recorder.blob(text.encode(), TEXT) for text in texts if text)
        return blobs, texts[0][-LOG_TAIL:] or None if texts else None

    def _log_text(self, rank: int) -> str:
        """At most ``LOG_LIMIT`` bytes of a rank's output, the end of it where it is longer."""
        path = log_path(self._bench.logs, self._plan, rank)
        if not path.exists():
            return ""
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - LOG_LIMIT))
            return self._bench.conceal.text(file.read(LOG_LIMIT).decode("utf-8", "replace"))

    def _trials(self, lane: LiveLane, boot: str, warmup: int) -> tuple[list[tuple[str, Trial]], list[Evidence]]:
        """Every trial while the server lives, and what its nodes did meanwhile."""
        if warmup:
            warm_up(self._bench, lane, self._model, warmup)
        run = TrialRunner(
            bench=self._bench, lane=lane, subject=self._subject, boot=boot, model=self._model, telemetry=self._nodes.watch()
        )
        found: list[tuple[str, Trial]] = []
        for measure in self._plan.measures:
            for number in range(1, measure.trials + 1):
                if (measure.id, number) in self._rest.taken:
                    continue
                if lane.exits():
                    return found, run.sampled
                self._note("trial", measure=measure.id, number=number)
                found.append(run.trial(measure, number))
        return found, run.sampled

    @property
    def _model(self) -> str:
        """The model's name in the API."""
        return self._plan.lane.served_model or self._plan.lane.model

    def _note(self, step: str, **facts: str | int) -> None:
        self._bench.steps.note(step, position=self._plan.position, arm=self._subject.arm, **facts)

    def _alive(self, lane: LiveLane) -> GateVerdict:
        exits = lane.exits()
        log = "\n".join(self._log_text(rank.rank) for rank in self._plan.ranks)
        holds = Holds.FAIL if exits else Holds.PASS
        piece = text_piece("", "logs", log)
        reason = "; ".join(item.reason for item in exits if item.reason) or None
        return GateVerdict(gate=ALIVE, holds=holds, value=str(len(exits)), reason=reason, evidence=(piece,) if log else ())

    def _record_gates(self, verdicts: Sequence[GateVerdict], boot: str | None) -> list[str]:
        """Record what the gates said; the texts of those that block."""
        return [text for verdict in verdicts if (text := self._record_gate(verdict, boot))]

    def _record_gate(self, verdict: GateVerdict, boot: str | None) -> str | None:
        body = gate_receipt(verdict, self._subject, self._attempt, boot, keep(verdict.evidence, self._bench.recorder.blob))
        self._gate_receipts.append((self._bench.recorder.record(body), body))
        return blocks(verdict)


def _flat(tree: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in tree.items()}


def _processes(observed: Sequence[Observed]) -> list[int]:
    """The process ids of the ranks, where the backend tells them."""
    return [int(item.facts["pid"]) for item in observed if item.facts.get("pid", "").isdigit()]
