"""What the sampler of a node costs: its processor time over the time it ran, at the period of a real boot.

What it does: holds one sampler on this machine as a boot does, marks as many parts as a busy trial has, and prints the share of
one core. What it does not do: judge by wall time; the share is the sampler's own processor time, start-up apart, over the
seconds.

usage: python benchmarks/sampler.py [SECONDS] [MARKS_A_SECOND]
"""

import sys
import time

import orjson

from ledger.backends.process import environment
from ledger.backends.reach import LocalReach
from ledger.run.telemetry import PERIOD_S, Telemetry

LIMIT = 0.01


def main(seconds: float, marks: float) -> int:
    """Sample for so long; 1 when it took more than ``LIMIT`` of one core."""
    telemetry = Telemetry([LocalReach("here", environment)])
    (held,) = telemetry._held.values()
    started = _cpu(held.ask("take").data)
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        time.sleep(1 / marks)
        telemetry.part("part")
    lasted = time.monotonic() - began
    data = held.ask("take").data
    telemetry.stop()
    used = _cpu(data) - started
    samples = len(data.splitlines()) - 1
    sys.stdout.write(
        f"sampler: a period of {PERIOD_S:g} s and {marks:g} marks a second for {lasted:.0f} s: {samples} samples of "
        f"{len(data) / max(samples, 1):.0f} bytes, {used / max(samples, 1) * 1e3:.2f} ms each, {used / lasted:.3%} of one core, "
        f"{started * 1e3:.0f} ms to start\n"
    )
    return int(used / lasted > LIMIT)


def _cpu(data: bytes) -> float:
    return float(orjson.loads(data.splitlines()[-1])["cpu_s"])


if __name__ == "__main__":
    sys.exit(main(*(float(word) for word in [*sys.argv[1:], *["20", "2"][len(sys.argv) - 1 :]])))
