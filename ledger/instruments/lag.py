"""How late this program itself is while it measures.

What it does: a thread that wants to wake every 10 ms and notes by how much it did not, and a context that keeps the garbage
collector out of the measured window. What it does not do: correct any stamp. Rule kept: a percentile is given only where there
are enough samples for one.
"""

import gc
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Self

PERIOD_NS = 10_000_000
ENOUGH = 100


class Ticker:
    """A context manager; after it, :meth:`p99_ms` is the lateness that 99 of 100 ticks stayed within."""

    def __init__(self) -> None:
        self._late_ns: list[int] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ledger-ticker", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()

    def p99_ms(self) -> float | None:
        """The 99th percentile of the lateness in ms, or None before ``ENOUGH`` ticks."""
        late = percentile(self._late_ns, 0.99)
        return None if late is None else late / 1e6

    def _run(self) -> None:
        due = time.perf_counter_ns() + PERIOD_NS
        while not self._stop.wait(max(0, due - time.perf_counter_ns()) / 1e9):
            now = time.perf_counter_ns()
            self._late_ns.append(max(0, now - due))
            # A tick that was missed whole is one late tick, not many.
            due = max(due + PERIOD_NS, now)


def percentile(samples: Sequence[float], share: float, *, enough: int = ENOUGH) -> float | None:
    """The ``share`` quantile by linear interpolation between ordered samples; None for fewer than ``enough`` of them."""
    if len(samples) < enough:
        return None
    ordered = sorted(samples)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


@contextmanager
def collector_paused() -> Iterator[None]:
    """No garbage collection inside; what is alive at the start is set aside, and all is as before at the end."""
    enabled = gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if enabled:
            gc.enable()
