"""From the boots of an arm and of its control to a verdict.

What it does: lets ``control`` choose the boots that may be compared, ``rule`` judge them, and ``interval`` say how well each
effect is known. What it does not do: find boots, or record a decision. Rules kept: an arm whose control does not qualify gets no
verdict, and is told the cheapest run after which it would; what the verdict rests on is told boot by boot.
"""

from collections.abc import Mapping, Sequence

import attrs
from attrs import field, frozen

from ledger.analysis.control import BootFacts, Bounds, Pairing, pair
from ledger.analysis.interval import bootstrap
from ledger.analysis.rule import Judgement, Limits, Sides, judge
from ledger.core import metrics
from ledger.core.words import Verdict
from ledger.receipt.model import Effect

Values = Mapping[str, tuple[float, ...]]


@frozen(kw_only=True)
class Case:
    """What is judged: the arm and its control by name and boots, in the order of their making, and by what.

    ``base`` is the configuration of the arm's base, None where no boot of it is known. ``blocked`` holds what forbids a verdict,
    ``noise`` the boot-level values of each configuration by metric, ``now`` the time in Unix seconds.
    """

    names: tuple[str, str]
    arm: Sequence[BootFacts]
    control: Sequence[BootFacts]
    limits: Limits
    bounds: Bounds
    now: float
    seed: str
    base: str | None = None
    blocked: tuple[str, ...] = ()
    noise: Mapping[str, Sequence[Sequence[float]]] = field(factory=dict)


@frozen(kw_only=True)
class Found:
    """A judgement, the digests of the boots that it rests on, and the cheapest mend where it was refused."""

    judgement: Judgement
    boots: tuple[str, ...]
    mend: str | None = None


def find(case: Case) -> Found:
    """Judge ``case``."""
    everything = tuple(boot.digest for boot in (*case.arm, *case.control))
    if case.blocked:
        return Found(judgement=Judgement(verdict=Verdict.BLOCKED, reasons=case.blocked), boots=everything)
    chosen = pair(case.arm, case.control, names=case.names, base=case.base, bounds=case.bounds, now=case.now)
    if chosen.refused:
        reasons = (f"no boot of control {case.names[1]} qualifies, so there is no verdict", *chosen.refused)
        return Found(judgement=Judgement(verdict=Verdict.BLOCKED, reasons=reasons), boots=everything, mend=chosen.mend)
    return Found(judgement=_judged(case, chosen), boots=(*chosen.arm, *chosen.control))


def _judged(case: Case, chosen: Pairing) -> Judgement:
    sides = Sides(arm=_values(case.arm, chosen.arm), control=_values(case.control, chosen.control), noise=case.noise)
    said = judge(case.limits, sides)
    effects = tuple(_with_interval(effect, sides, case.seed) for effect in said.effects)
    left_out = tuple(f"not counted: {text}" for text in chosen.left_out)
    return attrs.evolve(said, effects=effects, reasons=(*said.reasons, *left_out, *chosen.remarks))


def _values(boots: Sequence[BootFacts], chosen: Sequence[str]) -> Values:
    found: dict[str, tuple[float, ...]] = {}
    for boot in boots:
        for name, value in boot.values.items() if boot.digest in chosen else ():
            found[name] = (*found.get(name, ()), value)
    return found


def _with_interval(effect: Effect, sides: Sides, seed: str) -> Effect:
    name = effect.metric
    known = bootstrap(sides.arm[name], sides.control[name], metrics.describe(name).better, seed=f"{seed}/{name}")
    return attrs.evolve(effect, low=known.low, high=known.high) if known is not None else effect
