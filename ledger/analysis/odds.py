"""How often the KEEP rule would be wrong, before anything is run: its operating characteristics.

What it does: draws boots from a stated noise, has the rule itself judge them, and counts what it keeps: one arm, and a ladder of
arms that share one control. What it does not do: know the noise (the caller states it, or takes it from the ledger), or draw
noise that metrics of one boot have in common. Rules kept: the judging is ``rule.judge``, never a formula beside it; the same seed
gives the same answer; every rate carries its draws and the interval that so many draws allow.
"""

import math
import random
from collections.abc import Mapping, Sequence

from attrs import field, frozen

from ledger.analysis.rule import Limits, Sides, judge
from ledger.core import metrics
from ledger.core.words import Better, Verdict

DRAWS = 2000
_Z95 = 1.96
_WIDEST_EFFECT = 1.0
_HALVINGS = 10


@frozen(kw_only=True)
class Ladder:
    """A planned comparison: the rule, boots a side, and how many arms are judged against the same control boots.

    ``noise`` is the boot-to-boot coefficient of variation (0.01 is 1 %) of every metric of the rule.
    """

    limits: Limits
    noise: Mapping[str, float]
    boots: int = field()
    arms: int = field(default=1)

    @boots.validator
    @arms.validator
    def _at_least_one(self, attribute: object, value: int) -> None:
        if value < 1:
            raise ValueError("a ladder has at least one arm, and a side at least one boot")


@frozen(kw_only=True)
class Rate:
    """A share of draws, with the 95 % interval (Wilson's) that so many draws allow."""

    value: float
    low: float
    high: float
    draws: int


@frozen(kw_only=True)
class Odds:
    """How often the first arm of a ladder is kept, and how often at least one of its arms is."""

    arm: Rate
    ladder: Rate


def keep_odds(ladder: Ladder, *, seed: str, effects: Mapping[str, float] | None = None, draws: int = DRAWS) -> Odds:
    """How often the rule keeps arms whose true effects are ``effects`` (a gain by metric, 0.03 is 3 % better; absent is none).

    Without effects the rates are false-keep rates; with an effect that is asked for, the arm's rate is the power.

    Raises:
        KeyError: a metric of the rule has no noise.
    """
    draw = random.Random(seed)
    one = some = 0
    for _ in range(draws):
        control = _boots(ladder, {}, draw)
        kept = [_kept(ladder, control, effects or {}, draw) for _ in range(ladder.arms)]
        one += kept[0]
        some += any(kept)
    return Odds(arm=rate(one, draws), ladder=rate(some, draws))


def smallest_effect(ladder: Ladder, metric: str, *, seed: str, power: float = 0.8, draws: int = DRAWS) -> float | None:
    """The smallest true gain of ``metric`` alone for which one arm is kept with at least ``power``; None when no gain up to 1 is.

    The keep rate of an arm without effect is part of every power: where that alone reaches ``power`` the answer is 0.

    Raises:
        KeyError: a metric of the rule has no noise.
    """
    low, high = 0.0, _WIDEST_EFFECT
    single = Ladder(limits=ladder.limits, noise=ladder.noise, boots=ladder.boots)
    if _power(single, metric, high, seed, draws) < power:
        return None
    if _power(single, metric, low, seed, draws) >= power:
        return low
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if _power(single, metric, middle, seed, draws) >= power else (middle, high)
    return high


def rate(hits: int, draws: int) -> Rate:
    """``hits`` of ``draws`` as a rate with Wilson's 95 % interval."""
    share, square = hits / draws, _Z95**2 / draws
    middle = (share + square / 2) / (1 + square)
    half = _Z95 * math.sqrt(share * (1 - share) / draws + square / (4 * draws)) / (1 + square)
    return Rate(value=share, low=max(0.0, middle - half), high=min(1.0, middle + half), draws=draws)


def _power(ladder: Ladder, metric: str, effect: float, seed: str, draws: int) -> float:
    return keep_odds(ladder, seed=seed, effects={metric: effect}, draws=draws).arm.value


def _kept(ladder: Ladder, control: Mapping[str, Sequence[float]], effects: Mapping[str, float], draw: random.Random) -> bool:
    arm = _boots(ladder, effects, draw)
    return judge(ladder.limits, Sides(arm=arm, control=control)).verdict is Verdict.KEEP


def _boots(ladder: Ladder, effects: Mapping[str, float], draw: random.Random) -> dict[str, list[float]]:
    """One side's values by metric: log-normal about 1 with the stated variation, moved by the effect in the better direction."""
    found = {}
    for name in ladder.limits.metrics:
        gain = effects.get(name, 0.0)
        middle = 1 - gain if metrics.describe(name).better is Better.LOWER else 1 + gain
        sigma = math.sqrt(math.log1p(ladder.noise[name] ** 2))
        found[name] = [middle * math.exp(draw.gauss(0.0, sigma)) for _ in range(ladder.boots)]
    return found
