"""The statistics of figures: middle, spread, change, noise band.

What it does: pools trials into a boot's value and boots into a cell, and measures a change against the spread of boots. What it
does not do: drop a value. Rules kept: the boot is the unit of replication; a spread of one boot is not zero but unknown; every
change is oriented so that positive is better.
"""

import math
import statistics
from collections.abc import Iterable, Sequence

from attrs import frozen

from ledger.core.words import Better

# Two-sided 95 % points of Student's t by degrees of freedom, then the normal one.
_T95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120)
_Z95 = 1.960


@frozen(kw_only=True)
class Pooled:
    """The boot-level values of a cell: their median, lowest and highest, and how many boots."""

    value: float
    low: float
    high: float
    n: int


def pool(values: Iterable[float]) -> Pooled | None:
    """Pool boot-level values; None when there are none."""
    found = sorted(values)
    if not found:
        return None
    return Pooled(value=statistics.median(found), low=found[0], high=found[-1], n=len(found))


def relative_change(new: float, old: float) -> float | None:
    """(new - old) / old; None when old is zero."""
    return (new - old) / old if old else None


def gain(new: float, old: float, better: Better) -> float | None:
    """The relative change, oriented so that positive is better; a metric without a direction counts higher as better."""
    change = relative_change(new, old)
    return -change if change is not None and better is Better.LOWER else change


def noise_band(sides: Sequence[Sequence[float]], sizes: Sequence[int] | None = None) -> float | None:
    """Half the width of the 95 % interval of a relative difference of two sides, from the spread of boots within each.

    ``sides`` are boot-level values, one list for each configuration that is known; their relative variances are pooled.
    ``sizes`` are how many boots each compared side has, where that is not all of ``sides``. None when no side has two boots,
    since one boot says nothing of its own noise.
    """
    freedom = sum(len(side) - 1 for side in sides if len(side) > 1)
    variation = boot_variation(sides)
    if variation is None:
        return None
    counts = sizes if sizes is not None else [len(side) for side in sides]
    return t95(freedom) * variation * math.sqrt(sum(1 / count for count in counts))


def boot_variation(sides: Sequence[Sequence[float]]) -> float | None:
    """The relative spread from boot to boot (0.01 is 1 %), pooled within ``sides``; None when no side has two boots."""
    freedom = sum(len(side) - 1 for side in sides if len(side) > 1)
    if freedom == 0 or any(not side or not statistics.fmean(side) for side in sides):
        return None
    means = [(side, statistics.fmean(side)) for side in sides if len(side) > 1]
    squares = sum((value / mean - 1) ** 2 for side, mean in means for value in side)
    return math.sqrt(squares / freedom)


def t95(freedom: int) -> float:
    """The two-sided 95 % point of Student's t."""
    return _T95[freedom - 1] if freedom <= len(_T95) else _Z95 + 2.4 / freedom
