"""The odds of a rule in words.

What it does: says what the rule would do, and under which noise. What it does not do: draw or judge. Rule kept: noise that nobody
measured is called assumed, wherever its odds are shown.
"""

from collections.abc import Iterator

from ledger.receipt.model import Noise, Odds


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
