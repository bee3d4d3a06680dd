"""The odds of a rule, and where the noise behind them comes from.

What it does: takes the noise of a control from what the ledger has seen, the spec or the stated default, and has ``analysis``
draw. What it does not do: read the ledger (its caller does), or judge. Rule kept: every noise says who knows of it.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from ledger.analysis.odds import characteristics, noise_of
from ledger.analysis.rule import Limits
from ledger.core import units
from ledger.receipt.model import Odds
from ledger.spec.model import Arm, Rule
from ledger.spec.order import control_of

Seen = Mapping[str, Sequence[Sequence[float]]]
"""By metric, the boot-level values of each configuration that is known."""


class SeenBefore(Protocol):
    """What the ledger has seen of some configurations, by their fingerprints."""

    def __call__(self, configs: Sequence[str], evidence: str, state: str | None) -> Seen:
        """Their boot-level values, those whose ``jit_cache`` is known to be another than ``state`` left out.

        Raises:
            LedgerError: the ledger cannot be asked.
        """
        ...


def judged(arms: Sequence[Arm], rule: Rule) -> dict[str, list[str]]:
    """Which of ``arms`` are judged against each control, by the control."""
    found: dict[str, list[str]] = {}
    for arm in arms:
        control = control_of(arm, rule, arms)
        if control is not None:
            found.setdefault(control, []).append(arm.id)
    return found


def limits_of(rule: Rule) -> Limits:
    """The rule with its ratios as numbers."""
    return Limits(metrics=rule.metrics, better_than=ratio(rule.better_than), worse_than=ratio(rule.worse_than))


def ratio(text: str) -> float:
    """``2 %`` as 0.02."""
    return units.parse(text, dimension="ratio", default_unit="ratio").number


def odds_of(rule: Rule, seen: Seen, *, boots: int, arms: int, seed: str) -> Odds:
    """The odds of ``rule`` for ``arms`` arms of ``boots`` boots a side, under the noise that was ``seen``."""
    stated = ratio(rule.noise) if rule.noise is not None else None
    noise = noise_of(rule.metrics, seen, stated)
    return characteristics(limits_of(rule), noise, boots=boots, arms=arms, effect=ratio(rule.effect), seed=seed)
