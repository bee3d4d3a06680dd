"""How much of a change is how it was counted: how many boots, how many shots, which statistic; and how much is the rest.

What it does: counts each side the way the other was counted, as far as its own samples allow, and attributes the change over
these substitutions and what is left. What it does not do: find samples (``query``). Rules kept: a count that a side has no
samples for does not exist and is not guessed; what is the same on both sides is no substitution; the parts add up to the whole
change.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence

from attrs import frozen

from ledger.analysis.attribute import Attribution, attribute

BOOTS, SHOTS, STATISTIC, REST = "boots", "shots", "statistic", "the rest"
_STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "median": statistics.median,
    "mean": statistics.fmean,
    "min": min,
    "max": max,
}


@frozen(kw_only=True)
class Shot:
    """One trial's figure: its value, the statistic that pooled it (None for a single shot), and its samples in order if kept."""

    value: float
    statistic: str | None = None
    samples: tuple[float, ...] = ()


@frozen(kw_only=True)
class Way:
    """A way of counting: the first so many boots, of each trial the first so many shots, pooled by a statistic."""

    boots: int
    shots: int
    statistic: str | None


Boots = Sequence[Sequence[Shot]]
"""The trials of each boot, oldest first."""


def way_of(side: Boots) -> Way | None:
    """How a side was counted; None when it has no figure, or its trials were counted in different ways."""
    found = {(max(1, len(shot.samples)), shot.statistic if len(shot.samples) > 1 else None) for boot in side for shot in boot}
    if len(found) != 1:
        return None
    ((shots, statistic),) = found
    return Way(boots=len(side), shots=shots, statistic=statistic)


def counted(side: Boots, way: Way) -> float | None:
    """The side's value in that way: the median over boots of the median over each boot's trials; None without the samples."""
    if not 0 < way.boots <= len(side):
        return None
    boots = []
    for boot in side[: way.boots]:
        trials = [_trial(shot, way) for shot in boot]
        known = [value for value in trials if value is not None]
        if not known or len(known) < len(trials):
            return None
        boots.append(statistics.median(known))
    return statistics.median(boots)


def _trial(shot: Shot, way: Way) -> float | None:
    own = max(1, len(shot.samples))
    if way.shots == own and (own == 1 or way.statistic == shot.statistic):
        return shot.value
    if way.shots > own or own == 1:
        return None
    kept = shot.samples[: way.shots]
    if len(kept) == 1:
        return kept[0]
    pooled = _STATISTICS.get(way.statistic or "")
    return pooled(kept) if pooled is not None else None


def how_counted(left: Boots, right: Boots) -> Attribution | None:
    """The change from ``left`` to ``right`` over the substitutions that differ and the rest.

    None when both were counted alike, so that nothing of it is counting, or when one was counted in several ways.
    """
    ours, theirs = way_of(left), way_of(right)
    if ours is None or theirs is None or ours == theirs:
        return None
    differing = [
        name
        for name, one, other in (
            (BOOTS, ours.boots, theirs.boots),
            (SHOTS, ours.shots, theirs.shots),
            (STATISTIC, ours.statistic, theirs.statistic),
        )
        # A single shot has no statistic, so that shots and statistic are one substitution where one side has one shot.
        if one != other and not (name == STATISTIC and 1 in (ours.shots, theirs.shots))
    ]

    def value(taken: frozenset[str]) -> float | None:
        shots = theirs if SHOTS in taken else ours
        way = Way(
            boots=(theirs if BOOTS in taken else ours).boots,
            shots=shots.shots,
            statistic=(theirs if STATISTIC in taken else shots if STATISTIC not in differing else ours).statistic,
        )
        return counted(right if REST in taken else left, way)

    return attribute([*differing, REST], value, seed="how it was counted")
