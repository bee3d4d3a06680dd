"""One trial: plan the load, have the lane execute it, keep it raw, reduce it to figures.

What it does: joins an instrument and a live lane into a trial receipt. What it does not do: know HTTP or a prompt. Rules kept:
the raw samples are a blob before the figures are a receipt, and pass the concealer before either; the seed of the prompts is
the session's, the measure's and the trial's, so that arms of one session are asked the same and no two sessions are.
"""

from collections import Counter
from collections.abc import Mapping

from attrs import define, evolve, field, frozen

from ledger.instruments.base import LoadPlan, Transcript
from ledger.instruments.openai import chat
from ledger.instruments.transcript import MEDIA_TYPE, encode
from ledger.receipt.model import Client, Figure, Instrument, Requests, Subject, Trial
from ledger.run.evidence import Evidence, keep
from ledger.run.lane import LiveLane
from ledger.run.masking import masked
from ledger.run.records import Bench
from ledger.run.telemetry import Telemetry, figures_of
from ledger.run.watch import Phase, TrialEnded
from ledger.spec.model import Measure


@frozen(kw_only=True)
class Taken:
    """A load plan that was executed, and the seconds it took."""

    plan: LoadPlan
    transcript: Transcript
    seconds: float


@define(kw_only=True)
class TrialRunner:
    """Runs the trials of one boot. ``sampled`` is what the nodes did meanwhile, trial by trial."""

    bench: Bench
    lane: LiveLane
    subject: Subject
    boot: str
    model: str
    telemetry: Telemetry
    sampled: list[Evidence] = field(factory=list)
    _touched: set[str] = field(factory=set)

    def trial(self, measure: Measure, number: int) -> tuple[str, Trial]:
        """Run ``measure`` once and record it; returns the receipt's digest and body."""
        taken = self._take(measure, f"{self.bench.recorder.session}/{measure.id}/{number}")
        sampled = self.telemetry.end(measure.id, number)
        self.sampled.append(sampled)
        trial = self._reduce(taken, measure, number, sampled)
        digest = self.bench.recorder.record(trial)
        requests = trial.requests
        self.bench.watch(
            TrialEnded(
                arm=self.subject.arm,
                measure=measure.id,
                figures=trial.figures,
                failed=requests.failed,
                launched=requests.launched,
                marks=trial.marks,
            )
        )
        return digest, trial

    def _take(self, measure: Measure, seed: str) -> Taken:
        instrument = self.bench.instruments[measure.uses]
        plan = instrument.plan(measure.parameters, model=self.model, seed=seed, tokenize=self.lane.tokenizer())

        def wave_done(wave: str, done: int, of: int) -> None:
            self.telemetry.part(wave)
            self.bench.watch(Phase(name=f"{measure.id} {wave}", done=done, of=of))

        self.telemetry.begin()
        started = self.bench.clock.monotonic_ns()
        transcript = self.lane.execute(plan, wave_done)
        seconds = (self.bench.clock.monotonic_ns() - started) / 1e9
        return Taken(plan=plan, transcript=masked(transcript, self.bench.conceal), seconds=seconds)

    def _reduce(self, taken: Taken, measure: Measure, number: int, sampled: Evidence) -> Trial:
        instrument = self.bench.instruments[measure.uses]
        samples = self.bench.recorder.blob(encode(taken.plan, taken.transcript), MEDIA_TYPE)
        reading = instrument.reduce(measure.parameters, taken.plan, taken.transcript)
        transcript = taken.transcript
        figures = with_first_touch(reading.figures, taken.plan, self._touched)
        return Trial(
            subject=self.subject,
            boot=self.boot,
            measure=measure.id,
            number=number,
            instrument=Instrument(
                name=instrument.name, version=instrument.version, parameters=instrument.resolve(measure.parameters)
            ),
            figures={**figures, **figures_of(sampled)},
            requests=Requests(
                launched=reading.launched,
                ok=reading.ok,
                failed=reading.failed,
                cancelled=reading.cancelled,
                reasons=reading.reasons,
            ),
            samples=(samples, *keep(sampled.pieces, self.bench.recorder.blob)),
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


def warm_up(bench: Bench, lane: LiveLane, model: str, requests: int) -> None:
    """Send ``requests`` one after the other, with prompts that no instrument sends. Nothing is recorded."""
    plan = chat.warm_up(requests, model=model, seed=f"{bench.recorder.session}/warm-up")
    lane.execute(plan, lambda _, done, of: bench.watch(Phase(name="warm-up", done=done, of=of)))


def with_first_touch(figures: Mapping[str, Figure], plan: LoadPlan, touched: set[str]) -> dict[str, Figure]:
    """The figures, those that hold the boot's first run of a prompt length with the condition ``first_touch``.

    ``touched`` are the lengths that the boot has had; those of ``plan`` are added to it.
    """
    runs = Counter(length for wave in plan.waves if (length := wave.labels.get("length")) is not None)
    fresh = [length for length in runs if length not in touched]
    touched.update(runs)
    found = dict(figures)
    for length in fresh:
        for name, figure in figures.items():
            if name.partition("/")[0].endswith(f"@{length}"):
                found[name] = evolve(figure, conditions={**figure.conditions, "first_touch": f"run 1 of {runs[length]}"})
    return found
