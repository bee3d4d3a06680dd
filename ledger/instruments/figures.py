"""Figures and counts of a trial, built from values and from what is missing.

What it does: pools values by a named statistic with n, low, high and the values themselves where they are few, and counts how
requests ended. What it does not do: define a rate (``rates``). Rules kept: pooling over something that is missing is missing;
every request of the plan is counted once, as ok, failed or cancelled.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, median

from attrs import evolve, frozen

from ledger.core.metrics import describe
from ledger.instruments.base import LoadPlan, Request, StreamRecord, Transcript, Wave
from ledger.instruments.rates import Missing, Value
from ledger.instruments.stream import CANCELLED, Reply, decode
from ledger.receipt.model import Figure

FEW = 32
STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = {"mean": fmean, "median": median}


@frozen(kw_only=True)
class Batch:
    """The replies of one wave, in the order of its requests."""

    wave: Wave
    replies: tuple[Reply, ...]

    @property
    def ok(self) -> bool:
        """Whether every request of the wave is complete."""
        return all(reply.ok for reply in self.replies)

    def failure(self) -> str:
        """What kept the wave from being whole: ``2 of 6 requests failed: http 500, short``."""
        bad = [reply.outcome for reply in self.replies if not reply.ok]
        return f"{len(bad)} of {len(self.replies)} requests failed: {', '.join(sorted(set(bad)))}"


def batches(plan: LoadPlan, transcript: Transcript) -> tuple[Batch, ...]:
    """Every wave of the plan with its decoded replies; a request without a record is a failure of its own."""
    records = {record.request: record for record in transcript.records}
    return tuple(
        Batch(wave=wave, replies=tuple(_reply(records.get(request.id), request, wave) for request in wave.requests))
        for wave in plan.waves
    )


def _reply(record: StreamRecord | None, request: Request, wave: Wave) -> Reply:
    if record is None:
        return Reply(request=request.id, wave=wave.id, t0_ns=0, outcome="no record")
    return decode(record, request)


@frozen(kw_only=True)
class Counts:
    """How the requests of a plan ended; ``reasons`` counts the failures by cause."""

    launched: int
    ok: int
    failed: int
    cancelled: int
    reasons: Mapping[str, int]


def count(done: Sequence[Batch]) -> Counts:
    """The counts of every request of every wave."""
    replies = [reply for batch in done for reply in batch.replies]
    reasons = Counter(reply.outcome for reply in replies if not reply.ok and reply.outcome != CANCELLED)
    return Counts(
        launched=len(replies),
        ok=sum(reply.ok for reply in replies),
        failed=reasons.total(),
        cancelled=sum(reply.outcome == CANCELLED for reply in replies),
        reasons=dict(sorted(reasons.items())),
    )


def absent(name: str, why: str) -> Figure:
    """The figure called ``name``, without a value."""
    metric = describe(name)
    return Figure(unit=metric.unit, better=metric.better, absent=why)


def pooled(name: str, values: Mapping[str, Value] | Sequence[Value], *, statistic: str) -> Figure:
    """The ``statistic`` of ``values``; absent when one of them is, with the names and reasons of those that are."""
    items = values if isinstance(values, Mapping) else {f"stream {number}": value for number, value in enumerate(values, start=1)}
    known = [value for value in items.values() if not isinstance(value, Missing)]
    if len(known) < len(items) or not known:
        return absent(name, _why(items))
    metric = describe(name)
    return Figure(
        unit=metric.unit,
        better=metric.better,
        value=STATISTICS[statistic](known),
        n=len(known),
        statistic=statistic,
        low=min(known),
        high=max(known),
        values=tuple(known) if len(known) <= FEW else None,
    )


def single(name: str, value: Value) -> Figure:
    """The figure of one sample."""
    if isinstance(value, Missing):
        return absent(name, value.why)
    metric = describe(name)
    return Figure(unit=metric.unit, better=metric.better, value=value, n=1, statistic="single")


def marked(figure: Figure, marks: Sequence[str]) -> Figure:
    """``figure`` with more marks; an absent one needs none."""
    return evolve(figure, marks=(*figure.marks, *marks)) if marks and figure.value is not None else figure


def _why(items: Mapping[str, Value]) -> str:
    missing: dict[str, list[str]] = {}
    for name, value in items.items():
        if isinstance(value, Missing):
            missing.setdefault(value.why, []).append(name)
    if not missing:
        return "nothing was measured"
    if len(items) == 1:
        return next(iter(missing))
    return "; ".join(f"{why} ({', '.join(names)})" for why, names in missing.items())
