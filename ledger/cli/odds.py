"""The odds of a rule in words, and where the noise behind them comes from.

What it does: takes the noise of a control from the ledger, the spec or the stated default, has ``analysis`` draw, and says what
came out. What it does not do: judge. Rule kept: noise that nobody measured is called assumed, wherever its odds are shown.
"""

from collections.abc import Iterator, Mapping, Sequence

from ledger.analysis.odds import characteristics, noise_of
from ledger.receipt.model import Noise, Odds
from ledger.run.decide import limits_of, ratio
from ledger.spec.model import Rule, Spec
from ledger.spec.order import control_of

Seen = Mapping[str, Sequence[Sequence[float]]]


def judged(spec: Spec, rule: Rule) -> dict[str, list[str]]:
    """The arms that are judged against each control, by the control."""
    found: dict[str, list[str]] = {}
    for arm in spec.arms:
        control = control_of(arm, rule, spec.arms)
        if control is not None:
            found.setdefault(control, []).append(arm.id)
    return found


def odds_of(rule: Rule, seen: Seen, *, boots: int, arms: int, seed: str) -> Odds:
    """The odds of ``rule`` for ``arms`` arms of ``boots`` boots a side, under the noise that was ``seen``."""
    stated = ratio(rule.noise) if rule.noise is not None else None
    noise = noise_of(rule.metrics, seen, stated)
    return characteristics(limits_of(rule), noise, boots=boots, arms=arms, effect=ratio(rule.effect), seed=seed)


def in_words(odds: Odds) -> Iterator[str]:
    """The odds as two sentences: what the rule does, and under which noise."""
    ladder = f", and in {odds.false_keep_ladder:.1%} one of {odds.arms} such arms" if odds.arms > 1 else ""
    side = "1 boot" if odds.boots == 1 else f"{odds.boots} boots"
    yield (
        f"odds with {side} a side, {odds.draws} draws: an arm without effect is kept in {odds.false_keep:.1%}{ladder}; "
        f"one that gains {odds.effect:.1%} in one metric is kept in {odds.power:.1%}"
    )
    yield "noise from boot to boot: " + ", ".join(f"{name} {_noise(each)}" for name, each in odds.noise.items())


def _noise(noise: Noise) -> str:
    if noise.source == "ledger":
        return f"{noise.ratio:.2%} (n={noise.boots} boots in the ledger)"
    return f"{noise.ratio:.2%} ({'stated in the spec' if noise.source == 'spec' else 'assumed: the ledger has seen none'})"
