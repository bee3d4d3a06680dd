"""Comparisons and movements: the classes of the fields decide, and the noise of boots bounds what is said."""

import pytest

from ledger.analysis.compare import Comparability, compare
from ledger.analysis.movement import Direction, Sample, movements
from ledger.core.words import Better, FieldClass
from ledger.receipt.model import Factors

BASE = Factors(identity={"engine": "e", "args.--x": "1"}, context={"backend": "process"}, provenance={"site": "a"})


@pytest.mark.parametrize(
    ("other", "verdict", "named"),
    [
        (BASE, Comparability.SAME, "same configuration"),
        (Factors(identity={**BASE.identity, "args.--x": "2"}, context=BASE.context), Comparability.CLEAN, "args.--x"),
        (Factors(identity={"engine": "e"}, context=BASE.context), Comparability.CLEAN, "args.--x"),
        (Factors(identity=BASE.identity, context={"backend": "docker"}), Comparability.CAVEAT, "backend"),
        (
            Factors(identity={**BASE.identity, "args.--x": "2", "args.--y": "3"}, context=BASE.context),
            Comparability.CONFOUNDED,
            "args.--x, args.--y",
        ),
        (
            Factors(identity={"engine": "f", "args.--z": "2"}, context=BASE.context),
            Comparability.CLEAN,
            "engine (and 2 settings of its launch) alone differs",
        ),
        (
            Factors(identity={"engine": "f", "args.--z": "2", "quantization": "q4"}, context=BASE.context),
            Comparability.CONFOUNDED,
            "engine (and 2 settings of its launch), quantization differ",
        ),
        (Factors(identity={**BASE.identity, "args.--x": "2"}, context={}), Comparability.CAVEAT, "backend"),
    ],
)
def test_the_verdict_names_the_factors(other: Factors, verdict: Comparability, named: str) -> None:
    found = compare(BASE, other)
    assert found.verdict is verdict
    assert named in found.reason


def test_provenance_is_listed_and_decides_nothing() -> None:
    found = compare(BASE, Factors(identity=BASE.identity, context=BASE.context, provenance={"site": "b"}))
    assert found.verdict is Comparability.SAME
    assert [change.key for change in found.of(FieldClass.PROVENANCE)] == ["site"]


def test_a_refusal_from_outside_the_factors_wins() -> None:
    found = compare(BASE, BASE, refusals=["the evidence differs"])
    assert (found.verdict, found.reason) == (Comparability.REFUSED, "the evidence differs")


def test_an_equivalence_takes_identity_out_and_leaves_the_context_in() -> None:
    other = Factors(identity={"engine": "f", "args.--x": "2"}, context=BASE.context)
    found = compare(BASE, other, equivalent="a rebuild of the same source")
    assert found.verdict is Comparability.SAME
    assert "args.--x, engine: a rebuild of the same source" in found.reason
    assert len(found.of(FieldClass.IDENTITY)) == 2
    cold = compare(BASE, Factors(identity=other.identity, context={"backend": "docker"}), equivalent="a rebuild")
    assert cold.verdict is Comparability.CAVEAT


def sample(*values: float, better: Better = Better.HIGHER) -> Sample:
    return Sample(unit="tok/s", better=better, values=values)


@pytest.mark.parametrize(
    ("left", "right", "direction"),
    [
        (sample(100, 101), sample(150, 151), Direction.BETTER),
        (sample(100, 101), sample(50, 51), Direction.WORSE),
        (sample(100, 101), sample(100, 102), Direction.NOISE),
        (sample(100), sample(150), Direction.UNKNOWN),
        (sample(100, 101, better=Better.LOWER), sample(50, 51, better=Better.LOWER), Direction.BETTER),
        (sample(100, 101, better=Better.NEITHER), sample(50, 51, better=Better.NEITHER), Direction.MOVED),
    ],
)
def test_a_movement_is_judged_against_the_noise(left: Sample, right: Sample, direction: Direction) -> None:
    (found,) = movements({"x": left}, {"x": right})
    assert found.direction is direction


def test_only_metrics_of_both_sides_are_compared_in_reading_order() -> None:
    left = {name: sample(1) for name in ("C10", "C2", "C1/code")}
    assert [item.metric for item in movements(left, {**left, "C3": sample(1)})] == ["C1/code", "C2", "C10"]


def test_noise_known_from_other_boots_is_used() -> None:
    (found,) = movements({"x": sample(100)}, {"x": sample(101)}, {"x": [[99.0, 100.0, 101.0], [101.0]]})
    assert found.band is not None
    assert found.direction is Direction.NOISE
