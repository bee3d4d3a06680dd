"""How the figures of two sides moved, against the noise of boots.

What it does: pairs the metrics that both sides have and measures each change against the noise band. What it does not do:
explain a change. Rules kept: a change inside the band is no change; without two boots on a side the band is unknown and said
to be; better and worse follow the metric's own direction.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from attrs import frozen

from ledger.analysis.stats import gain, noise_band, pool, relative_change
from ledger.core import metrics
from ledger.core.words import Better


class Direction(StrEnum):
    """What a change is."""

    BETTER = "better"
    WORSE = "worse"
    MOVED = "moved"
    NOISE = "within noise"
    UNKNOWN = "noise unknown"


@frozen(kw_only=True)
class Movement:
    """One metric on both sides: medians over boots, the relative change of the right over the left, the band, and n."""

    metric: str
    unit: str
    left: float
    right: float
    change: float | None
    band: float | None
    n_left: int
    n_right: int
    direction: Direction


@frozen(kw_only=True)
class Sample:
    """The boot-level values of one metric on one side."""

    unit: str
    better: Better
    values: tuple[float, ...]


def movements(
    left: Mapping[str, Sample], right: Mapping[str, Sample], noise: Mapping[str, Sequence[Sequence[float]]] | None = None
) -> list[Movement]:
    """The movement of every metric that both sides have, in reading order.

    ``noise`` gives, by metric, the boot-level values of each side's fingerprint, where the ledger holds more boots than are
    compared; without it the band comes from the compared values alone.
    """
    shared = sorted(set(left) & set(right), key=metrics.sort_key)
    return [_movement(name, left[name], right[name], (noise or {}).get(name)) for name in shared]


def _movement(name: str, left: Sample, right: Sample, noise: Sequence[Sequence[float]] | None) -> Movement:
    ours, theirs = pool(left.values), pool(right.values)
    assert ours is not None
    assert theirs is not None
    change = relative_change(theirs.value, ours.value)
    band = noise_band(noise or [left.values, right.values], [ours.n, theirs.n])
    return Movement(
        metric=name,
        unit=left.unit,
        left=ours.value,
        right=theirs.value,
        change=change,
        band=band,
        n_left=ours.n,
        n_right=theirs.n,
        direction=_direction(theirs.value, ours.value, left.better, band),
    )


def _direction(new: float, old: float, better: Better, band: float | None) -> Direction:
    change = gain(new, old, better)
    if band is None:
        return Direction.UNKNOWN
    if change is None or abs(change) <= band:
        return Direction.NOISE
    if better is Better.NEITHER:
        return Direction.MOVED
    return Direction.BETTER if change > 0 else Direction.WORSE
