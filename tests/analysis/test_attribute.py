"""Attribution: shares add up to the whole, order is told where it matters, and what cannot be tried is drawn from a seed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.analysis.attribute import EXACT, attribute

NAMES = [f"d{number}" for number in range(EXACT)]


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=EXACT), st.floats(-100, 100))
def test_differences_that_add_up_are_each_told_as_they_are(moves: list[float], base: float) -> None:
    by_name = dict(zip(NAMES, moves, strict=False))
    found = attribute(list(by_name), lambda taken: base + sum(by_name[name] for name in taken), seed="s")
    assert found is not None
    for share in found.shares:
        assert share.mean == pytest.approx(by_name[share.name], abs=1e-6)
        assert share.alone == pytest.approx(by_name[share.name], abs=1e-6)
        assert share.last == pytest.approx(by_name[share.name], abs=1e-6)


@given(st.dictionaries(st.frozensets(st.sampled_from(NAMES[:4])), st.floats(-100, 100)))
def test_the_shares_add_up_to_the_whole_whatever_the_value_is(table: dict[frozenset[str], float]) -> None:
    found = attribute(NAMES[:4], lambda taken: table.get(taken, float(len(taken))), seed="s")
    assert found is not None
    assert sum(share.mean for share in found.shares) == pytest.approx(found.after - found.before, abs=1e-6)
    assert all(share.low - 1e-9 <= share.mean <= share.high + 1e-9 for share in found.shares)


def test_where_order_matters_the_spread_is_told() -> None:
    found = attribute(["a", "b"], lambda taken: 1.0 if len(taken) == 2 else 0.0, seed="s")
    assert found is not None
    assert [(share.alone, share.last, share.mean, share.commutes) for share in found.shares] == [(0.0, 1.0, 0.5, False)] * 2


def test_a_set_without_a_value_is_told() -> None:
    found = attribute(["gone", "new"], lambda taken: None if taken == {"gone"} else 2.0 if "new" in taken else 1.0, seed="s")
    assert found is not None
    gone, new = found.shares
    assert gone.alone is None
    assert new.alone == 1.0
    assert gone.mean + new.mean == pytest.approx(1.0)
    assert attribute(["a"], lambda taken: None, seed="s") is None


def test_many_differences_are_drawn_from_the_seed_and_still_add_up() -> None:
    names = [f"d{number}" for number in range(12)]

    def value(taken: frozenset[str]) -> float:
        return float(sum(int(name[1:]) for name in taken) + len(taken) ** 2)

    one, two, other = (attribute(names, value, seed=seed) for seed in ("s", "s", "t"))
    assert one == two
    assert one != other
    assert one is not None
    assert not one.exact
    assert sum(share.mean for share in one.shares) == pytest.approx(one.after - one.before)
