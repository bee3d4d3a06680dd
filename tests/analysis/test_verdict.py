"""From boots to a verdict: monotone, symmetric, blind to the order of boots, and an interval that covers what it says."""

import math
import random

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.analysis.control import BootFacts, Bounds
from ledger.analysis.interval import bootstrap
from ledger.analysis.odds import ASSUMED, characteristics, noise_of
from ledger.analysis.rule import Limits, Sides, judge, keeps
from ledger.analysis.verdict import Case, Found, find
from ledger.core.words import Better, Verdict

LIMITS = Limits(metrics=("C1", "ttft@C1"), better_than=0.02, worse_than=0.02)
SIDE = st.lists(st.floats(90, 110), min_size=1, max_size=4)


def boots(config: str, values: list[float], cache: str = "warm") -> list[BootFacts]:
    return [
        BootFacts(
            digest=f"sha256:{config}{index:060}",
            config=config,
            conditions={"jit_cache": cache},
            values={"C1": value, "ttft@C1": 1.0},
        )
        for index, value in enumerate(values)
    ]


def case(arm: list[float], control: list[float], cache: str = "warm") -> Case:
    return Case(
        names=("B1", "C0"),
        arm=boots("armm", arm),
        control=boots("base", control, cache),
        limits=LIMITS,
        bounds=Bounds(age_s=3600, drift=1.0, alike=("jit_cache",)),
        now=0.0,
        seed="s",
        base="base",
    )


def judged(arm: list[float], control: list[float]) -> Found:
    return find(case(arm, control))


def test_a_cold_control_gives_no_verdict_but_a_mend() -> None:
    found = find(case([120.0], [40.0], cache="cold"))
    assert found.judgement.verdict is Verdict.BLOCKED
    assert found.judgement.effects == ()
    assert (found.mend or "").startswith("one warm reboot of C0")


def test_what_is_blocked_for_another_reason_names_no_mend() -> None:
    found = find(attrs.evolve(case([120.0], [100.0]), blocked=("a gate failed",)))
    assert (found.judgement.verdict, found.judgement.reasons, found.mend) == (Verdict.BLOCKED, ("a gate failed",), None)


def test_one_boot_a_side_has_no_interval_and_two_have_one() -> None:
    (effect, _) = judged([120.0], [100.0]).judgement.effects
    assert (effect.low, effect.high, effect.band) == (None, None, None)
    (effect, _) = judged([118.0, 122.0], [99.0, 101.0]).judgement.effects
    assert effect.low is not None
    assert effect.high is not None
    assert 118 / 101 - 1 <= effect.low <= effect.change <= effect.high <= 122 / 99 - 1 + 1e-9


def test_noise_of_other_sessions_makes_a_band_where_one_boot_a_side_has_none() -> None:
    with_noise = attrs.evolve(case([103.0], [100.0]), noise={"C1": [[95.0, 100.0, 105.0]], "ttft@C1": [[1.0, 1.01]]})
    found = find(with_noise).judgement
    assert found.effects[0].noise_boots == 3
    assert (found.effects[0].band or 0) > 0.03
    assert found.verdict is Verdict.REVERT
    assert judged([103.0], [100.0]).judgement.verdict is Verdict.KEEP


RANK = {Verdict.REVERT: 0, Verdict.KEEP: 1}


@given(st.floats(50, 150), st.floats(50, 150), st.floats(1, 2))
def test_a_faster_arm_is_never_judged_worse(arm: float, control: float, factor: float) -> None:
    slow, fast = judged([arm], [control]), judged([arm * factor], [control])
    assert RANK[slow.judgement.verdict] <= RANK[fast.judgement.verdict]


@settings(max_examples=30)
@given(SIDE, SIDE, st.randoms(use_true_random=False))
def test_the_order_of_boots_is_nothing(arm: list[float], control: list[float], shuffled: random.Random) -> None:
    before = judged(arm, control).judgement
    ours, theirs = list(arm), list(control)
    shuffled.shuffle(ours)
    shuffled.shuffle(theirs)
    after = judged(ours, theirs).judgement
    assert after.verdict is before.verdict
    for old, new in zip(before.effects, after.effects, strict=True):
        assert (new.change, new.low, new.high) == (old.change, old.low, old.high)
        assert new.band == pytest.approx(old.band)


@given(SIDE, SIDE)
def test_arm_and_control_are_never_both_kept_against_each_other(arm: list[float], control: list[float]) -> None:
    verdicts = [judged(arm, control).judgement.verdict, judged(control, arm).judgement.verdict]
    assert verdicts.count(Verdict.KEEP) <= 1


@given(SIDE, SIDE)
def test_the_quick_answer_is_that_of_the_rule(arm: list[float], control: list[float]) -> None:
    sides = Sides(arm={"C1": arm, "ttft@C1": [1.0]}, control={"C1": control, "ttft@C1": [1.0]})
    assert keeps(LIMITS, sides) == (judge(LIMITS, sides).verdict is Verdict.KEEP)
    assert not keeps(LIMITS, attrs.evolve(sides, control={"C1": control}))


@pytest.mark.parametrize("better", [Better.HIGHER, Better.LOWER])
def test_an_interval_covers_the_true_gain_about_as_often_as_it_says(better: Better) -> None:
    """Percentiles of the medians of ten boots cover about 95 %; 200 worlds allow some 4 % either way."""
    draw, worlds, hits = random.Random(5), 200, 0
    truth = 0.05
    middle = 1 + truth if better is Better.HIGHER else 1 - truth
    for world in range(worlds):
        arm = [middle * math.exp(draw.gauss(0, 0.02)) for _ in range(10)]
        control = [math.exp(draw.gauss(0, 0.02)) for _ in range(10)]
        found = bootstrap(arm, control, better, seed=str(world), resamples=200)
        assert found is not None
        hits += found.low <= truth <= found.high
    assert 0.90 <= hits / worlds <= 0.99


def test_the_same_seed_gives_the_same_interval() -> None:
    sides = ([1.0, 1.1, 1.2, 0.9], [1.0, 1.05, 0.95])
    one, again, other = (bootstrap(*sides, Better.HIGHER, seed=seed) for seed in ("a", "a", "b"))
    assert one == again
    assert one is not None
    assert other is not None
    assert bootstrap([1.0], [1.0, 1.1], Better.HIGHER, seed="a") is None
    assert bootstrap([1.0, 1.1], [0.0, 0.0], Better.HIGHER, seed="a") is None


def test_noise_comes_from_the_ledger_else_the_spec_else_is_called_assumed() -> None:
    seen = {"C1": [[99.0, 101.0], [50.0]], "C2": [[7.0]]}
    found = noise_of(("C1", "C2"), seen, None)
    assert (found["C1"].source, found["C1"].boots) == ("ledger", 2)
    assert found["C1"].ratio == pytest.approx(math.sqrt(2) / 100)
    assert (found["C2"].source, found["C2"].ratio, found["C2"].boots) == ("assumed", ASSUMED, 0)
    assert noise_of(("C2",), seen, 0.03)["C2"].source == "spec"


def test_characteristics_are_those_of_a_ladder_and_of_the_effect_asked_for() -> None:
    noise = noise_of(("C1", "C6"), {}, None)
    limits = Limits(metrics=("C1", "C6"), better_than=0.02, worse_than=0.02)
    found = characteristics(limits, noise, boots=3, arms=5, effect=0.08, seed="s", draws=400)
    assert 0 < found.false_keep < found.false_keep_ladder < 1 - (1 - found.false_keep) ** 5 + 0.03
    assert found.power > 0.9
    assert (found.arms, found.boots, found.draws, found.effect) == (5, 3, 400, 0.08)
