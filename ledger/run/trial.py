"""One trial: plan the load, have the lane execute it, keep it raw, reduce it to figures.

What it does: joins an instrument and a live lane into a trial receipt. What it does not do: know HTTP or a prompt. Rules kept:
the raw samples are a blob before the figures are a receipt; the seed of the prompts is the session's, the measure's and the
trial's, so that arms of one session are asked the same and no two sessions are.
"""

from attrs import frozen

from ledger.instruments.base import LoadPlan, Transcript
from ledger.instruments.openai import chat
from ledger.instruments.transcript import MEDIA_TYPE, encode
from ledger.receipt.model import Client, Instrument, Requests, Subject, Trial
from ledger.run.lane import LiveLane
from ledger.run.records import Bench
from ledger.run.watch import Phase, TrialEnded
from ledger.spec.model import Measure


@frozen(kw_only=True)
class Taken:
    """A load plan that was executed, and the seconds it took."""

    plan: LoadPlan
    transcript: Transcript
    seconds: float


def run_trial(
    bench: Bench, lane: LiveLane, subject: Subject, boot: str, measure: Measure, number: int, model: str
) -> tuple[str, Trial]:
    """Run ``measure`` once and record it; returns the receipt's digest and body."""
    seed = f"{bench.recorder.session}/{measure.id}/{number}"
    taken = _take(bench, lane, measure, model, seed)
    trial = _reduce(bench, taken, subject, boot, measure, number)
    digest = bench.recorder.record(trial)
    requests = trial.requests
    bench.watch(
        TrialEnded(
            arm=subject.arm,
            measure=measure.id,
            figures=trial.figures,
            failed=requests.failed,
            launched=requests.launched,
            marks=trial.marks,
        )
    )
    return digest, trial


def warm_up(bench: Bench, lane: LiveLane, model: str, requests: int) -> None:
    """Send ``requests`` one after the other, with prompts that no instrument sends. Nothing is recorded."""
    plan = chat.warm_up(requests, model=model, seed=f"{bench.recorder.session}/warm-up")
    lane.execute(plan, lambda _, done, of: bench.watch(Phase(name="warm-up", done=done, of=of)))


def _take(bench: Bench, lane: LiveLane, measure: Measure, model: str, seed: str) -> Taken:
    instrument = bench.instruments[measure.uses]
    plan = instrument.plan(measure.parameters, model=model, seed=seed, tokenize=lane.tokenizer())
    started = bench.clock.monotonic_ns()

    def wave_done(wave: str, done: int, of: int) -> None:
        bench.watch(Phase(name=f"{measure.id} {wave}", done=done, of=of))

    transcript = lane.execute(plan, wave_done)
    return Taken(plan=plan, transcript=transcript, seconds=(bench.clock.monotonic_ns() - started) / 1e9)


def _reduce(bench: Bench, taken: Taken, subject: Subject, boot: str, measure: Measure, number: int) -> Trial:
    instrument = bench.instruments[measure.uses]
    samples = bench.recorder.blob(encode(taken.plan, taken.transcript), MEDIA_TYPE)
    reading = instrument.reduce(measure.parameters, taken.plan, taken.transcript)
    transcript = taken.transcript
    return Trial(
        subject=subject,
        boot=boot,
        measure=measure.id,
        number=number,
        instrument=Instrument(
            name=instrument.name, version=instrument.version, parameters=instrument.resolve(measure.parameters)
        ),
        figures=reading.figures,
        requests=Requests(
            launched=reading.launched,
            ok=reading.ok,
            failed=reading.failed,
            cancelled=reading.cancelled,
            reasons=reading.reasons,
        ),
        samples=(samples,),
        client=Client(
            name=transcript.client,
            stamps=transcript.stamps,
            lag_p99_ms=transcript.lag_p99_ms,
            start_spread_ms=transcript.start_spread_ms,
        ),
        conditions=reading.conditions,
        marks=reading.marks,
        seconds=round(taken.seconds, 3),
    )
