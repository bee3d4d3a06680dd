"""How often the KEEP rule would be wrong, before anything is run: its operating characteristics.

What it does: draws boots from a stated noise, has the rule itself judge them, and counts what it keeps: one arm, and a ladder of
arms that share one control. What it does not do: know the noise (the caller states it, or takes it from the ledger), or draw
noise that metrics of one boot have in common. Rules kept: the judging is the rule's own, never a formula beside it; the same seed
gives the same answer; every rate carries its draws and the interval that so many draws allow.
"""

import math
import random
from collections.abc import Mapping, Sequence

from attrs import field, frozen

from ledger.analysis.rule import Limits, Sides, keeps
from ledger.analysis.stats import boot_variation
from ledger.core import metrics
from ledger.core.words import Better
from ledger.receipt import model

DRAWS = 2000
ASSUMED = 0.01
Spreads = Mapping[str, tuple[float, float]]
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
    null, moved = _spreads(ladder, {}), _spreads(ladder, effects or {})
    one = some = 0
    for _ in range(draws):
        control = _boots(ladder, null, draw)
        first = _kept(ladder, control, moved, draw)
        one += first
        some += first or any(_kept(ladder, control, moved, draw) for _ in range(ladder.arms - 1))
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


def noise_of(names: Sequence[str], seen: Mapping[str, Sequence[Sequence[float]]], stated: float | None) -> dict[str, model.Noise]:
    """The noise of each metric: what the ledger has ``seen``, else what the spec states, else ``ASSUMED``; and which it is."""
    found = {}
    for name in names:
        sides = [side for side in seen.get(name, ()) if len(side) > 1]
        known = boot_variation(sides)
        if known is not None:
            found[name] = model.Noise(ratio=known, source="ledger", boots=sum(map(len, sides)))
        elif stated is not None:
            found[name] = model.Noise(ratio=stated, source="spec")
        else:
            found[name] = model.Noise(ratio=ASSUMED, source="assumed")
    return found


def characteristics(
    limits: Limits, noise: Mapping[str, model.Noise], *, boots: int, arms: int, effect: float, seed: str, draws: int = DRAWS
) -> model.Odds:
    """What the rule does with arms without effect, and with one whose noisiest metric alone gains ``effect``, as a record."""
    ratios = {name: each.ratio for name, each in noise.items()}
    ladder = Ladder(limits=limits, noise=ratios, boots=boots, arms=arms)
    null = keep_odds(ladder, seed=f"{seed}/null", draws=draws)
    noisiest = max(limits.metrics, key=lambda name: ratios[name])
    single = Ladder(limits=limits, noise=ratios, boots=boots)
    moved = keep_odds(single, seed=f"{seed}/effect", effects={noisiest: effect}, draws=draws)
    return model.Odds(
        false_keep=null.arm.value,
        false_keep_ladder=null.ladder.value,
        power=moved.arm.value,
        effect=effect,
        arms=arms,
        boots=boots,
        draws=draws,
        seed=seed,
        noise=dict(noise),
    )


def rate(hits: int, draws: int) -> Rate:
    """``hits`` of ``draws`` as a rate with Wilson's 95 % interval."""
    share, square = hits / draws, _Z95**2 / draws
    middle = (share + square / 2) / (1 + square)
    half = _Z95 * math.sqrt(share * (1 - share) / draws + square / (4 * draws)) / (1 + square)
    return Rate(value=share, low=max(0.0, middle - half), high=min(1.0, middle + half), draws=draws)


def _power(ladder: Ladder, metric: str, effect: float, seed: str, draws: int) -> float:
    return keep_odds(ladder, seed=seed, effects={metric: effect}, draws=draws).arm.value


def _kept(ladder: Ladder, control: Mapping[str, Sequence[float]], spreads: Spreads, draw: random.Random) -> bool:
    return keeps(ladder.limits, Sides(arm=_boots(ladder, spreads, draw), control=control))


def _spreads(ladder: Ladder, effects: Mapping[str, float]) -> Spreads:
    """By metric, the middle of one side's values, moved by the effect in the better direction, and their spread as logarithms."""
    found = {}
    for name in ladder.limits.metrics:
        gain = effects.get(name, 0.0)
        middle = 1 - gain if metrics.describe(name).better is Better.LOWER else 1 + gain
        found[name] = (middle, math.sqrt(math.log1p(ladder.noise[name] ** 2)))
    return found


def _boots(ladder: Ladder, spreads: Spreads, draw: random.Random) -> dict[str, list[float]]:
    """One side's values by metric, log-normal with the stated variation."""
    boots = range(ladder.boots)
    return {name: [middle * math.exp(draw.gauss(0.0, sigma)) for _ in boots] for name, (middle, sigma) in spreads.items()}
