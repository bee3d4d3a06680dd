"""Paired yes/no outcomes of two sides: what broke, what was fixed, and what that many items could have shown.

What it does: McNemar's exact two-sided p and its mid-p variant, the power of the test at a drop, and the smallest drop that it
sees. What it does not do: pair items by id (``run``), or decide. Rules kept: pure; sums are of exact binomial terms, in logs
where they would underflow; a p never stands without the power that says how much it was worth.
"""

import math
from collections.abc import Iterator, Mapping
from functools import cache

from attrs import frozen

ALPHA = 0.05
POWER = 0.8
# Items that change sides by chance when nothing was changed, on top of a drop: at least this share is assumed.
CHURN = 0.02
NEVER = 1e-15


@frozen(kw_only=True)
class Paired:
    """Items that both sides have, by what became of them; ``left_out`` are those that one side alone has."""

    kept: int
    broke: int
    fixed: int
    both_fail: int
    left_out: int = 0

    @property
    def items(self) -> int:
        """How many items are paired."""
        return self.kept + self.broke + self.fixed + self.both_fail

    @property
    def drop(self) -> float:
        """Broke less fixed over all paired items; 0 without any."""
        return (self.broke - self.fixed) / self.items if self.items else 0.0


def pair(control: Mapping[str, bool], arm: Mapping[str, bool]) -> Paired:
    """Pair two sides by the ids of their items."""
    both = control.keys() & arm.keys()
    outcomes = [(control[name], arm[name]) for name in both]
    return Paired(
        kept=outcomes.count((True, True)),
        broke=outcomes.count((True, False)),
        fixed=outcomes.count((False, True)),
        both_fail=outcomes.count((False, False)),
        left_out=len(control.keys() ^ arm.keys()),
    )


def exact_p(broke: int, fixed: int) -> float:
    """The exact two-sided p of ``broke`` and ``fixed`` under equal chances; 1 without a discordant item."""
    total, less = broke + fixed, min(broke, fixed)
    if broke == fixed:
        return 1.0
    return min(1.0, 2 * math.fsum(_half(total, hits) for hits in range(less + 1)))


def mid_p(broke: int, fixed: int) -> float:
    """As :func:`exact_p`, with half of the chance of the outcome itself."""
    total, less = broke + fixed, min(broke, fixed)
    if total == 0:
        return 1.0
    if broke == fixed:
        return 1.0 - _half(total, less) / 2
    return min(1.0, 2 * math.fsum(_half(total, hits) for hits in range(less)) + _half(total, less))


def power(items: int, drop: float, *, churn: float = CHURN, alpha: float = ALPHA) -> float:
    """The chance that the exact test says p < ``alpha`` of ``items`` whose true drop is ``drop``.

    Each item breaks with chance ``drop + churn / 2`` and is fixed with chance ``churn / 2``, for an arm that loses ``drop``
    and changes ``churn`` of its items by chance besides. The result is exact for that model, but for numbers of discordant
    items that come about less often than once in ``1 / NEVER`` times.
    """
    if not 0 <= drop <= 1 or not 0 <= churn <= 1 or drop + churn > 1:
        raise ValueError("a drop and a churn are shares of the items")
    discordant = drop + churn
    if items == 0 or discordant == 0:
        return 0.0
    breaks = (drop + churn / 2) / discordant
    return math.fsum(
        chance * _rejects(total, breaks, alpha)
        for total in range(1, items + 1)
        if (chance := _binomial(items, total, discordant))
    )


def smallest_drop(items: int, *, churn: float = CHURN, alpha: float = ALPHA, wanted: float = POWER) -> float | None:
    """The smallest drop, in steps of one item, that the test sees with chance ``wanted``; None where none is large enough."""
    low, high = 1, math.floor(items * (1 - churn))
    if high < 1 or power(items, high / items, churn=churn, alpha=alpha) < wanted:
        return None
    while low < high:  # power grows with the drop
        middle = (low + high) // 2
        if power(items, middle / items, churn=churn, alpha=alpha) >= wanted:
            high = middle
        else:
            low = middle + 1
    return low / items


def _rejects(total: int, breaks: float, alpha: float) -> float:
    """The chance of p < alpha among ``total`` discordant items of which each broke with chance ``breaks``."""
    return math.fsum(_binomial(total, broke, breaks) for broke in _rejected(total, alpha))


def _rejected(total: int, alpha: float) -> Iterator[int]:
    """Every number of broken items among ``total`` discordant ones that gives p < alpha."""
    edge = _edge(total, alpha)
    yield from range(edge)
    yield from range(max(edge, total - edge + 1), total + 1)


@cache
def _edge(total: int, alpha: float) -> int:
    """The least number of broken items, counted from 0, at which p is no longer below alpha."""
    tail = 0.0
    for broke in range(total // 2 + 1):
        tail += _half(total, broke)
        if 2 * tail >= alpha:
            return broke
    return total // 2 + 1


def _half(total: int, hits: int) -> float:
    return _binomial(total, hits, 0.5)


def _binomial(total: int, hits: int, chance: float) -> float:
    if chance in (0.0, 1.0):
        return float(hits == round(total * chance))
    ways = math.lgamma(total + 1) - math.lgamma(hits + 1) - math.lgamma(total - hits + 1)
    return math.exp(ways + hits * math.log(chance) + (total - hits) * math.log1p(-chance))
