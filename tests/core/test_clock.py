"""Clocks: stamps are in UTC with whole seconds, durations never step back, and both are asked as one protocol."""

from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.core.clock import Clock, SystemClock, stamp
from tests.builder import StillClock

ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
TIMES = st.datetimes(datetime(1000, 1, 2), datetime(9999, 12, 30), timezones=ZONES)


@given(TIMES)
def test_a_stamp_is_the_same_moment_in_utc_cut_to_its_second(when: datetime) -> None:
    text = stamp(when)
    assert len(text) == len("2026-12-01T06:12:00Z")
    assert datetime.fromisoformat(text) == when.astimezone(UTC).replace(microsecond=0)


@given(TIMES, TIMES)
def test_stamps_are_in_the_order_of_their_moments(one: datetime, other: datetime) -> None:
    first, second = sorted((one, other))
    assert stamp(first) <= stamp(second)


@given(TIMES, ZONES)
def test_a_stamp_does_not_know_where_it_was_taken(when: datetime, zone: timezone) -> None:
    assert stamp(when.astimezone(zone)) == stamp(when)


def test_a_known_stamp() -> None:
    assert stamp(datetime(2026, 12, 1, 0, 30, 59, 999999, timezone(timedelta(hours=2)))) == "2026-11-30T22:30:59Z"


def test_the_clock_of_this_machine_says_its_zone_and_never_steps_back() -> None:
    clock = SystemClock()
    assert clock.now().tzinfo is UTC
    stamps = [clock.monotonic_ns() for _ in range(1000)]
    assert all(first <= second for first, second in pairwise(stamps))


def test_it_sleeps_at_least_as_long_as_it_is_told() -> None:
    clock = SystemClock()
    began = clock.monotonic_ns()
    clock.sleep(0.01)
    assert clock.monotonic_ns() - began >= 10_000_000


@pytest.mark.parametrize("clock", [SystemClock(), StillClock()], ids=["real", "still"])
def test_what_a_runner_asks_is_answered_by_each(clock: Clock) -> None:
    before = clock.now()
    clock.sleep(0)
    assert clock.now() >= before
    assert isinstance(clock.monotonic_ns(), int)
