"""How much of a change is counting: the parts add up, and what no sample shows is not made up."""

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.analysis.counting import BOOTS, REST, SHOTS, STATISTIC, Shot, Way, counted, how_counted, way_of


def shots(*values: float, statistic: str = "median") -> Shot:
    pooled = {"median": statistics.median, "mean": statistics.fmean}[statistic]
    return Shot(value=pooled(values), statistic=statistic, samples=values)


SINGLE = Shot(value=100.0)


def parts(left: list[list[Shot]], right: list[list[Shot]]) -> dict[str, float]:
    found = how_counted(left, right)
    assert found is not None
    return {share.name: share.mean for share in found.shares}


def test_three_shots_in_place_of_one() -> None:
    found = parts([[SINGLE]], [[shots(108.0, 110.0, 112.0)]])
    assert found == {SHOTS: pytest.approx(2.0), REST: pytest.approx(8.0)}


def test_one_statistic_in_place_of_another() -> None:
    found = parts([[shots(1.0, 2.0, 6.0, statistic="mean")]], [[shots(1.0, 2.0, 6.0)]])
    assert found == {STATISTIC: pytest.approx(-1.0), REST: pytest.approx(0.0)}


def test_several_boots_in_place_of_one() -> None:
    found = parts([[SINGLE]], [[Shot(value=90.0)], [Shot(value=110.0)], [Shot(value=120.0)]])
    assert found == {BOOTS: pytest.approx(20.0), REST: pytest.approx(-10.0)}


def test_what_was_counted_alike_is_no_counting() -> None:
    assert how_counted([[SINGLE]], [[Shot(value=120.0)]]) is None
    assert how_counted([], [[SINGLE]]) is None
    assert how_counted([[SINGLE, shots(1.0, 2.0)]], [[SINGLE]]) is None


def test_a_side_without_samples_has_no_other_value() -> None:
    assert counted([[SINGLE]], Way(boots=1, shots=3, statistic="median")) is None
    assert counted([[SINGLE]], Way(boots=2, shots=1, statistic=None)) is None
    assert counted([[shots(1.0, 2.0, 3.0)]], Way(boots=1, shots=2, statistic="a statistic of somebody")) is None
    assert way_of([[shots(1.0, 2.0)], [shots(1.0, 2.0)]]) == Way(boots=2, shots=2, statistic="median")


SHOT = st.lists(st.floats(1, 100), min_size=1, max_size=4).map(tuple)


@st.composite
def sides(draw: st.DrawFn) -> list[list[Shot]]:
    count, statistic = draw(st.integers(1, 4)), draw(st.sampled_from(["median", "mean"]))
    boots = draw(st.integers(1, 3))
    values = st.lists(st.floats(1, 100), min_size=count, max_size=count)
    return [[shots(*draw(values), statistic=statistic)] for _ in range(boots)]


@given(sides(), sides())
def test_the_parts_add_up_to_the_change(left: list[list[Shot]], right: list[list[Shot]]) -> None:
    found = how_counted(left, right)
    ours, theirs = way_of(left), way_of(right)
    assert ours is not None
    assert theirs is not None
    assert (found is None) == (ours == theirs)
    if found is not None:
        assert found.before == counted(left, ours)
        assert found.after == counted(right, theirs)
        assert sum(share.mean for share in found.shares) == pytest.approx(found.after - found.before, abs=1e-9)
        assert all(share.low - 1e-9 <= share.mean <= share.high + 1e-9 for share in found.shares)
