"""How far each of several differences moves a number.

What it does: substitutes differences one at a time, in every order, and says how far each moves the value: alone, last, and on
average over the orders, with the spread. What it does not do: know what a difference is; the caller's function works out the
value with any set of them in place. Rules kept: the average over orders adds up to the whole change, whatever the order; a set
without a value is told, not guessed, and orders that pass through one count only where there is no other; more differences than
can be tried in every order are tried in orders drawn from a seed.
"""

import itertools
import random
import statistics
from collections.abc import Callable, Iterator, Sequence

from attrs import frozen

Value = Callable[[frozenset[str]], float | None]
EXACT = 6
DRAWN_ORDERS = 200


@frozen(kw_only=True)
class Share:
    """What one difference does: by itself, as the last one, on average over the orders, and the least and most of them.

    ``alone`` and ``last`` are None where the value does not exist without the others.
    """

    name: str
    alone: float | None
    last: float | None
    mean: float
    low: float
    high: float

    @property
    def commutes(self) -> bool:
        """Whether the order does not matter."""
        return abs(self.high - self.low) <= 1e-9 * max(1.0, abs(self.mean))


@frozen(kw_only=True)
class Attribution:
    """The value before and after, and the share of each difference. ``exact`` when every order was tried."""

    before: float
    after: float
    shares: tuple[Share, ...]
    exact: bool


def attribute(names: Sequence[str], value: Value, *, seed: str) -> Attribution | None:
    """The shares of ``names``; None when the value before or after does not exist."""
    known: dict[frozenset[str], float | None] = {}

    def at(taken: frozenset[str]) -> float | None:
        if taken not in known:
            known[taken] = value(taken)
        return known[taken]

    everything = frozenset(names)
    before, after = at(frozenset()), at(everything)
    if before is None or after is None:
        return None
    walks = [_walk(order, at, before) for order in _orders(names, seed)]
    told = [walk for walk, is_whole in walks if is_whole] or [walk for walk, _ in walks]
    moves = {name: [walk[name] for walk in told] for name in names}
    shares = tuple(_share(name, moves[name], at, before, after, everything) for name in names)
    return Attribution(before=before, after=after, shares=shares, exact=len(names) <= EXACT)


def _orders(names: Sequence[str], seed: str) -> Iterator[Sequence[str]]:
    if len(names) <= EXACT:
        yield from itertools.permutations(names)
        return
    draw = random.Random(seed)
    for _ in range(DRAWN_ORDERS):
        yield draw.sample(list(names), len(names))


def _walk(order: Sequence[str], at: Value, before: float) -> tuple[dict[str, float], bool]:
    """Put the differences in place one by one: how far each moves the value, and whether there was one at every step.

    Where there is none, what happens goes to the difference that brings it back.
    """
    moves: dict[str, float] = {}
    taken: frozenset[str] = frozenset()
    last, is_whole = before, True
    for name in order:
        taken |= {name}
        here = at(taken)
        moves[name] = here - last if here is not None else 0.0
        last, is_whole = (here, is_whole) if here is not None else (last, False)
    return moves, is_whole


def _share(name: str, moves: Sequence[float], at: Value, before: float, after: float, everything: frozenset[str]) -> Share:
    first, without = at(frozenset({name})), at(everything - {name})
    return Share(
        name=name,
        alone=first - before if first is not None else None,
        last=after - without if without is not None else None,
        mean=statistics.fmean(moves),
        low=min(moves),
        high=max(moves),
    )
