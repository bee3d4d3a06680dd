"""Operating characteristics: the published rates, a reference that integrates instead of drawing, and what a seed fixes."""

import itertools
import math
from statistics import NormalDist

import pytest

from ledger.analysis.odds import Ladder, keep_odds, rate, smallest_effect
from ledger.analysis.rule import Limits

RULE = Limits(metrics=("C1", "C6", "prefill@500"), better_than=0.02, worse_than=0.02)
DRAWS = 2000


def ladder(boots: int, *, arms: int = 1, noise: float = 0.01, rule: Limits = RULE) -> Ladder:
    return Ladder(limits=rule, noise=dict.fromkeys(rule.metrics, noise), boots=boots, arms=arms)


def keep_chance(control: tuple[float, ...], noise: float, limit: float) -> float:
    """The chance that an arm of one boot is kept against these control values: none worse, less the chance of none better."""
    not_worse = within = 1.0
    for value in control:
        arm = NormalDist(1.0, noise)
        worse, better = arm.cdf(value * (1 - limit)), 1 - arm.cdf(value * (1 + limit))
        not_worse *= 1 - worse
        within *= 1 - worse - better
    return not_worse - within


def integrated(arms: int, noise: float = 0.01, limit: float = 0.02, steps: int = 31) -> float:
    """The chance that a ladder of one boot a side keeps at least one arm without effect, over a grid of control values."""
    grid = [-4 + 8 * index / (steps - 1) for index in range(steps)]
    weight = [math.exp(-z * z / 2) for z in grid]
    total = sum(weight)
    chance = 0.0
    for picked in itertools.product(range(steps), repeat=3):
        kept = keep_chance(tuple(1 + noise * grid[index] for index in picked), noise, limit)
        chance += math.prod(weight[index] / total for index in picked) * (1 - (1 - kept) ** arms)
    return chance


def test_the_published_rates_come_out_of_the_integration() -> None:
    assert integrated(1) == pytest.approx(0.18, abs=0.01)
    assert integrated(10) == pytest.approx(0.66, abs=0.02)


@pytest.mark.parametrize("arms", [1, 10])
def test_drawing_through_the_rule_agrees_with_the_integration(arms: int) -> None:
    found = keep_odds(ladder(1, arms=arms), seed="odds", draws=DRAWS)
    for said, exact in ((found.arm.value, integrated(1)), (found.ladder.value, integrated(arms))):
        assert said == pytest.approx(exact, abs=3.5 * math.sqrt(exact * (1 - exact) / DRAWS))


def test_three_boots_a_side_keep_about_one_null_arm_in_fifty() -> None:
    """Means of three boots and no noise band would keep 2.1 %; this rule takes medians and asks for the band, and 40,000 draws
    of it keep 2.4 %."""
    found = keep_odds(ladder(3), seed="odds", draws=DRAWS)
    assert found.arm.value == pytest.approx(0.024, abs=3.5 * math.sqrt(0.024 * 0.976 / DRAWS))


def test_a_ladder_keeps_more_than_an_arm_and_less_than_independent_arms_would() -> None:
    found = keep_odds(ladder(1, arms=10), seed="odds", draws=DRAWS)
    assert found.arm.value < found.ladder.value < 1 - (1 - found.arm.value) ** 10


def test_without_noise_only_a_true_effect_beyond_the_limit_is_kept() -> None:
    still = ladder(1, noise=0.0)
    for effects, kept in (({}, 0.0), ({"C6": 0.019}, 0.0), ({"C6": 0.021}, 1.0), ({"C6": 0.5, "C1": -0.021}, 0.0)):
        assert keep_odds(still, seed="s", effects=effects, draws=5).arm.value == kept


def test_an_effect_is_a_gain_whichever_way_the_metric_points() -> None:
    latency = ladder(1, noise=0.0, rule=Limits(metrics=("ttft@C1",), better_than=0.02, worse_than=0.02))
    assert keep_odds(latency, seed="s", effects={"ttft@C1": 0.03}, draws=5).arm.value == 1.0
    assert keep_odds(latency, seed="s", effects={"ttft@C1": -0.03}, draws=5).arm.value == 0.0


def test_a_seed_fixes_the_answer_and_another_one_draws_anew() -> None:
    one, again, other = (keep_odds(ladder(1, arms=3), seed=seed, draws=400) for seed in ("a", "a", "b"))
    assert one == again
    assert one != other


def test_the_smallest_effect_has_the_power_asked_for_and_a_smaller_one_has_not() -> None:
    planned = ladder(3)
    found = smallest_effect(planned, "C6", seed="s", draws=500)
    assert found is not None
    assert keep_odds(planned, seed="s", effects={"C6": found}, draws=500).arm.value >= 0.8
    assert keep_odds(planned, seed="s", effects={"C6": found * 0.8}, draws=500).arm.value < 0.8


def test_what_the_noise_drowns_has_no_smallest_effect_and_what_chance_keeps_needs_none() -> None:
    assert smallest_effect(ladder(1, noise=0.2), "C6", seed="s", draws=300) is None
    assert smallest_effect(ladder(1), "C6", seed="s", power=0.05, draws=300) == 0.0


def test_a_rate_says_what_its_draws_allow() -> None:
    assert rate(0, 100).low == 0.0
    assert rate(0, 100).high == pytest.approx(0.037, abs=0.001)
    assert rate(100, 100).high == pytest.approx(1.0)
    few, many = rate(18, 100), rate(1800, 10_000)
    assert few.low < many.low < 0.18 < many.high < few.high


@pytest.mark.parametrize(("boots", "arms"), [(0, 1), (1, 0)])
def test_nothing_cannot_be_judged(boots: int, arms: int) -> None:
    with pytest.raises(ValueError, match="at least one"):
        ladder(boots, arms=arms)


def test_a_metric_without_a_noise_is_no_guess() -> None:
    with pytest.raises(KeyError, match="C6"):
        keep_odds(Ladder(limits=RULE, noise={"C1": 0.01}, boots=1), seed="s", draws=1)
