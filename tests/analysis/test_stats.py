"""Statistics: medians, oriented changes, and a noise band that one boot cannot give."""

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.analysis.stats import gain, noise_band, pool, relative_change, t95
from ledger.core.words import Better

FIGURES = st.floats(min_value=0.1, max_value=1e6, allow_nan=False)


@given(st.lists(FIGURES, min_size=1))
def test_a_pool_lies_between_its_lowest_and_highest(values: list[float]) -> None:
    found = pool(values)
    assert found is not None
    assert found.low <= found.value <= found.high
    assert (found.value, found.n) == (statistics.median(values), len(values))


def test_nothing_pools_to_nothing() -> None:
    assert pool([]) is None


@given(FIGURES, FIGURES)
def test_a_gain_is_the_change_turned_so_that_positive_is_better(new: float, old: float) -> None:
    change = relative_change(new, old)
    assert gain(new, old, Better.HIGHER) == change
    assert gain(new, old, Better.LOWER) == -(change or 0.0)


def test_a_change_from_zero_is_unknown() -> None:
    assert relative_change(1, 0) is None
    assert gain(1, 0, Better.LOWER) is None


def test_one_boot_a_side_has_no_noise_band() -> None:
    assert noise_band([[100.0], [101.0]]) is None
    assert noise_band([[], [101.0, 102.0]]) is None


def test_the_band_uses_the_boots_known_and_the_sizes_compared() -> None:
    known = [[100.0, 102.0], [50.0]]
    narrow, wide = noise_band(known, [4, 4]), noise_band(known, [1, 1])
    assert narrow is not None
    assert wide is not None
    assert wide == pytest.approx(2 * narrow)


def test_a_band_covers_no_effect_about_95_times_in_100() -> None:
    draw = random.Random(7)
    outside = 0
    rounds = 4000
    for _ in range(rounds):
        sides = [[draw.gauss(100, 1) for _ in range(3)] for _ in range(2)]
        band = noise_band(sides)
        change = relative_change(statistics.fmean(sides[1]), statistics.fmean(sides[0]))
        assert band is not None
        assert change is not None
        outside += abs(change) > band
    assert outside / rounds == pytest.approx(0.05, abs=3 * math.sqrt(0.05 * 0.95 / rounds))


def test_students_t_falls_to_the_normal_point() -> None:
    points = [t95(freedom) for freedom in range(1, 200)]
    assert points == sorted(points, reverse=True)
    assert t95(1) == 12.706
    assert t95(10_000) == pytest.approx(1.96, abs=0.001)
