"""What every instrument must keep to. A test class for an instrument inherits :class:`InstrumentContract` and says which."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from attrs import evolve

from ledger.core import canonical
from ledger.core.errors import UsageError
from ledger.core.metrics import describe
from ledger.instruments import transcript as blobs
from ledger.instruments.base import Instrument, LoadPlan, Reading, Request, StreamRecord, Transcript
from tests.instruments.streams import end, record, text, words_and_template

REASONS = {
    "http 500": {"status": 500},
    "idle timeout after 5 s": {"error": "idle timeout after 5 s"},
    "connect": {"status": None, "error": "connect: refused"},
}


def answer(sent: Request, at_ns: int) -> StreamRecord:
    """A complete reply to ``sent``: the allowance of tokens, 20 ms apart, and the prompt length that was expected."""
    tokens = max(1, min(sent.max_tokens, 12))
    timed = [(80 + 20 * index, text(f"word{index} ")) for index in range(tokens)]
    timed.append((80 + 20 * tokens, end(tokens, sent.expect_prompt_tokens or 30, cached=0)))
    return record(*timed, name=sent.id, t0_ns=at_ns)


def transcript_of(plan: LoadPlan) -> Transcript:
    """Every request of ``plan`` answered well, one wave a minute."""
    came = [
        evolve(answer(sent, minute * 60_000_000_000), wave=wave.id)
        for minute, wave in enumerate(plan.waves)
        for sent in wave.requests
    ]
    return Transcript(records=tuple(came), client="contract", stamps="virtual", lag_p99_ms=0.1, start_spread_ms=0.0)


class InstrumentContract:
    """The contract; ``make`` gives the instrument, ``parameters`` some that it can be planned with."""

    make: Callable[[], Instrument]
    parameters: Mapping[str, Any] = {}

    def planned(self, seed: str = "seed") -> LoadPlan:
        """The plan of ``parameters``."""
        return type(self).make().plan(self.parameters, model="m", seed=seed, tokenize=words_and_template)

    def read(self, plan: LoadPlan, transcript: Transcript) -> Reading:
        """The reduction."""
        return type(self).make().reduce(self.parameters, plan, transcript)

    def test_it_has_a_name_and_a_version(self) -> None:
        instrument = type(self).make()
        assert "/" in instrument.name
        assert instrument.version >= 1

    def test_defaults_are_good_and_resolving_is_idempotent(self) -> None:
        instrument = type(self).make()
        for parameters in ({}, self.parameters):
            assert instrument.check(parameters) == ()
            resolved = instrument.resolve(parameters)
            assert instrument.check(resolved) == ()
            assert instrument.resolve(resolved) == resolved
            assert canonical.encode(resolved)

    def test_an_unknown_parameter_is_a_problem_that_names_the_nearest(self) -> None:
        instrument = type(self).make()
        for key in instrument.resolve({}):
            misspelt = key[:-1] + "zz"
            (problem,) = instrument.check({misspelt: 1})
            assert problem.key == misspelt
            assert key in (problem.hint or "")

    @pytest.mark.parametrize(
        "odd", [None, -1, 0, 1.5, "x", [], {}, [None], ["x"], [-1], [True], {"a": {}}, [[]], [{}], float("nan")]
    )
    def test_no_value_raises_in_check_and_bad_ones_are_usage_errors(self, odd: object) -> None:
        instrument = type(self).make()
        for key in instrument.resolve({}):
            if problems := instrument.check({key: odd}):
                assert {problem.key for problem in problems} == {key}
                with pytest.raises(UsageError):
                    instrument.resolve({key: odd})

    def test_all_mistakes_come_at_once(self) -> None:
        keys = [problem.key for problem in type(self).make().check({"zzz": 1, "yyy": 2})]
        assert keys == ["zzz", "yyy"]

    def test_a_plan_is_a_pure_function_of_parameters_and_seed(self) -> None:
        assert self.planned() == self.planned()
        assert self.planned("a") != self.planned("b")

    def test_requests_have_ids_of_their_own_and_bodies_that_are_json(self) -> None:
        plan = self.planned()
        ids = [sent.id for wave in plan.waves for sent in wave.requests]
        assert ids
        assert len(set(ids)) == len(ids)
        assert all(canonical.encode(sent.body) for wave in plan.waves for sent in wave.requests)

    def test_it_can_be_planned_without_a_tokenizer(self) -> None:
        assert type(self).make().plan(self.parameters, model="m", seed="s", tokenize=None).waves

    def test_a_good_run_gives_every_figure(self) -> None:
        plan = self.planned()
        reading = self.read(plan, transcript_of(plan))
        assert reading.launched == reading.ok > 0
        assert reading.figures
        for name, figure in reading.figures.items():
            assert figure.absent is None, f"{name}: {figure.absent}"
            assert figure.value is not None
            assert math.isfinite(figure.value)
            assert figure.n is not None
            assert figure.n >= 1
            assert (figure.unit, figure.better) == (describe(name).unit, describe(name).better)
            assert figure.statistic

    def test_reducing_is_pure(self) -> None:
        plan = self.planned()
        transcript = transcript_of(plan)
        assert self.read(plan, transcript) == self.read(plan, transcript)

    def test_the_blob_alone_gives_the_same_figures(self) -> None:
        plan = self.planned()
        transcript = transcript_of(plan)
        assert self.read(*blobs.decode(blobs.encode(plan, transcript))) == self.read(plan, transcript)

    @pytest.mark.parametrize("reason", sorted(REASONS))
    def test_failed_requests_enter_no_figure(self, reason: str) -> None:
        """When every request fails, figures are absent with a reason; nothing is zero."""
        plan = self.planned()
        transcript = transcript_of(plan)
        failed = tuple(evolve(each, **{"reads": (), **REASONS[reason]}) for each in transcript.records)
        reading = self.read(plan, evolve(transcript, records=failed))
        assert (reading.ok, reading.failed) == (0, reading.launched)
        assert dict(reading.reasons) == {reason: reading.launched}
        assert all(figure.value is None and figure.absent for figure in reading.figures.values())

    def test_one_failed_request_is_counted_and_changes_no_value(self) -> None:
        """A figure after one failure is either absent or what the others alone give."""
        plan = self.planned()
        transcript = transcript_of(plan)
        whole = self.read(plan, transcript)
        slow = evolve(transcript.records[0], status=500)
        reading = self.read(plan, evolve(transcript, records=(slow, *transcript.records[1:])))
        assert (reading.failed, reading.launched) == (1, whole.launched)
        for name, figure in reading.figures.items():
            assert figure.value is None or figure.value == pytest.approx(whole.figures[name].value)

    def test_cancelled_and_missing_requests_are_counted(self) -> None:
        plan = self.planned()
        transcript = transcript_of(plan)
        ended = evolve(transcript.records[-1], reads=(), status=None, error="cancelled")
        reading = self.read(plan, evolve(transcript, records=(*transcript.records[1:-1], ended)))
        assert reading.launched == reading.ok + reading.failed + reading.cancelled
        assert (reading.cancelled, dict(reading.reasons)) == (1, {"no record": 1})

    def test_the_size_is_positive(self) -> None:
        instrument = type(self).make()
        for parameters in ({}, self.parameters):
            prompt, completion = instrument.size(parameters)
            assert prompt > 0
            assert completion > 0
