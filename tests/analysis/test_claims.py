"""Claims: the number as written, its rounding, and what becomes of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.analysis.claims import State, agrees, decimals_of, state_of
from ledger.core.errors import UsageError


@pytest.mark.parametrize(
    ("says", "value", "holds"),
    [
        ("1.10", 1.0957, True),
        ("1.10", 1.0949, False),
        ("1.1", 1.0949, True),
        ("286.6", 286.6, True),
        ("6,100", 6100.4, True),
        ("6100", 6100.6, False),
        ("-0.5", -0.46, True),
        ("+2", 2.4, True),
    ],
)
def test_a_number_agrees_under_its_own_rounding(says: str, value: float, holds: bool) -> None:
    assert agrees(says, value) is holds


@pytest.mark.parametrize("says", ["", "about 2", "1e3", "1,10", "2%", "nan", "1.2.3"])
def test_what_is_no_plain_number_is_refused(says: str) -> None:
    with pytest.raises(UsageError, match="a claim says a number"):
        decimals_of(says)


@given(st.floats(-1e6, 1e6), st.integers(0, 6))
def test_a_value_written_with_any_decimals_agrees_with_itself(value: float, decimals: int) -> None:
    assert agrees(f"{value:.{decimals}f}", value) or decimals < 6


@pytest.mark.parametrize(
    ("now", "struck", "state"),
    [(1.1, 0, State.HOLDS), (1.1, 2, State.STALE), (1.3, 0, State.FALSE), (1.3, 2, State.FALSE), (None, 0, State.LOST)],
)
def test_states(now: float | None, struck: int, state: State) -> None:
    assert state_of("1.1", now, struck) is state
