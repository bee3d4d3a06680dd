"""Time as a thing that is handed in.

What it does: one wall clock for people and one monotonic clock for durations, behind a protocol, so that a rehearsal can run
in virtual time. What it does not do: order receipts; the chain does. Rule kept: the monotonic clock is ``perf_counter_ns``
everywhere, so that stamps of one host compare.
"""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What the runner asks of time."""

    def now(self) -> datetime:
        """The wall clock, in UTC."""
        ...

    def monotonic_ns(self) -> int:
        """Nanoseconds of a clock that never steps back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Let ``seconds`` pass."""
        ...


class SystemClock:
    """The clocks of this machine."""

    def now(self) -> datetime:
        """The wall clock, in UTC."""
        return datetime.now(UTC)

    def monotonic_ns(self) -> int:
        """``time.perf_counter_ns``."""
        return time.perf_counter_ns()

    def sleep(self, seconds: float) -> None:
        """``time.sleep``."""
        time.sleep(seconds)


def stamp(when: datetime) -> str:
    """RFC 3339 text in UTC with whole seconds, as receipts hold it."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
