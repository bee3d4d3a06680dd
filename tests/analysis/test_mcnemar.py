"""McNemar's test against counting every outcome, and the figures that are known of it."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.analysis.mcnemar import Paired, exact_p, mid_p, pair, power, smallest_drop

SMALL = st.integers(0, 9)


def by_counting(broke: int, fixed: int) -> tuple[float, float]:
    """Exact and mid p over every way in which the discordant items can fall, each as likely."""
    total, far = broke + fixed, abs(broke - fixed)
    distances = [abs(2 * sum(fall) - total) for fall in itertools.product((0, 1), repeat=total)]
    beyond = sum(1 for distance in distances if distance > far)
    level = sum(1 for distance in distances if distance == far)
    return (beyond + level) / len(distances), (beyond + level / 2) / len(distances)


@given(SMALL, SMALL)
def test_both_p_are_those_of_counting_every_outcome(broke: int, fixed: int) -> None:
    exact, mid = by_counting(broke, fixed)
    assert exact_p(broke, fixed) == pytest.approx(exact)
    assert mid_p(broke, fixed) == pytest.approx(mid if broke + fixed else 1.0)


@given(st.integers(0, 5000), st.integers(0, 5000))
def test_a_p_is_a_chance_and_the_sides_are_alike(broke: int, fixed: int) -> None:
    assert 0 <= mid_p(broke, fixed) <= exact_p(broke, fixed) <= 1
    assert exact_p(broke, fixed) == exact_p(fixed, broke)
    assert mid_p(broke, fixed) == mid_p(fixed, broke)


@pytest.mark.parametrize(("broke", "fixed", "p"), [(6, 0, 0.03125), (5, 0, 0.0625), (10, 2, 0.03857421875), (0, 0, 1.0)])
def test_known_values(broke: int, fixed: int, p: float) -> None:
    assert exact_p(broke, fixed) == pytest.approx(p)


@given(st.integers(1, 7), st.floats(0, 0.6), st.floats(0, 0.3))
def test_power_is_that_of_counting_every_outcome(items: int, drop: float, churn: float) -> None:
    chances = (drop + churn / 2, churn / 2, 1 - drop - churn)
    counted = 0.0
    for falls in itertools.product(range(3), repeat=items):
        if exact_p(falls.count(0), falls.count(1)) < 0.05:
            counted += math.prod(chances[fall] for fall in falls)
    assert power(items, drop, churn=churn) == pytest.approx(counted, abs=1e-9)


def test_seventy_five_items_see_little_of_a_drop_of_five_points() -> None:
    assert 0.10 < power(75, 0.05, churn=0.08) < 0.20
    assert power(75, 0.05, churn=0.0) < 0.25
    assert power(1000, 0.05) > 0.99


@given(st.integers(1, 60), st.floats(0, 0.2))
def test_the_smallest_drop_is_seen_and_the_next_smaller_is_not(items: int, churn: float) -> None:
    found = smallest_drop(items, churn=churn)
    if found is None:
        assert power(items, math.floor(items * (1 - churn)) / items, churn=churn) < 0.8
        return
    assert power(items, found, churn=churn) >= 0.8
    if found > 1 / items:
        assert power(items, round(found * items - 1) / items, churn=churn) < 0.8


@pytest.mark.parametrize(("drop", "churn"), [(-0.1, 0), (1.1, 0), (0.6, 0.6), (0.1, -1), (math.nan, 0)])
def test_what_is_no_share_is_refused(drop: float, churn: float) -> None:
    with pytest.raises(ValueError, match="shares"):
        power(10, drop, churn=churn)


SIDES = st.dictionaries(st.text("abcdef", min_size=1, max_size=2), st.booleans(), max_size=12)


@given(SIDES, SIDES)
def test_every_item_is_counted_once(control: dict[str, bool], arm: dict[str, bool]) -> None:
    found = pair(control, arm)
    assert found.items + found.left_out == len(control.keys() | arm.keys())
    assert found.kept + found.broke == sum(control[name] for name in control.keys() & arm.keys())
    assert found.drop * max(found.items, 1) == pytest.approx(found.broke - found.fixed)


def test_nothing_paired_is_no_drop() -> None:
    assert pair({"a": True}, {"b": True}) == Paired(kept=0, broke=0, fixed=0, both_fail=0, left_out=2)
    assert pair({}, {}).drop == 0.0
