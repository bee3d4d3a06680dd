"""How well an effect is known: a bootstrap interval over boots.

What it does: draws boots of both sides again, with replacement, and takes the middle 95 % of the gains. What it does not do: draw
requests, which are no replicates. Rules kept: a side of one boot has no interval rather than one made of its requests; the order
of the boots does not matter; the same seed gives the same interval.
"""

import random
import statistics
from collections.abc import Sequence

from attrs import frozen

from ledger.analysis.stats import gain
from ledger.core.words import Better

RESAMPLES = 2000
_TAIL = 0.025


@frozen(kw_only=True)
class Interval:
    """The 95 % interval of a gain."""

    low: float
    high: float


def bootstrap(
    arm: Sequence[float], control: Sequence[float], better: Better, *, seed: str, resamples: int = RESAMPLES
) -> Interval | None:
    """The percentile interval of the gain of the arm's median over the control's; None where a side has fewer than two boots."""
    if min(len(arm), len(control)) < 2:
        return None
    draw = random.Random(seed)
    ours, theirs = sorted(arm), sorted(control)
    found = []
    for _ in range(resamples):
        new, old = (statistics.median(draw.choices(side, k=len(side))) for side in (ours, theirs))
        change = gain(new, old, better)
        if change is None:
            return None
        found.append(change)
    found.sort()
    return Interval(low=found[int(_TAIL * resamples)], high=found[-1 - int(_TAIL * resamples)])
