"""The KEEP rule, applied to figures.

What it does: turns the boot-level values of an arm and of its control into a verdict with its reasons and effects. What it does
not do: find the figures or record the verdict. Rules kept: a metric that was not measured on both sides cannot be judged; an
effect inside the noise band is not an effect; where one boot a side leaves the band unknown, the reasons say so.
"""

from collections.abc import Mapping, Sequence

from attrs import field, frozen

from ledger.analysis.stats import gain, noise_band, pool
from ledger.core import metrics
from ledger.core.words import Verdict
from ledger.receipt.model import Effect


@frozen(kw_only=True)
class Limits:
    """The rule as data: the metrics it looks at, and by what ratio one must be better and none may be worse."""

    metrics: tuple[str, ...]
    better_than: float
    worse_than: float


@frozen(kw_only=True)
class Judgement:
    """A verdict with its reasons, and the effect of every metric that could be judged."""

    verdict: Verdict
    reasons: tuple[str, ...]
    effects: tuple[Effect, ...] = ()


@frozen(kw_only=True)
class Sides:
    """Boot-level values by metric, of the arm and of its control; ``blocked`` holds what forbids a verdict.

    ``noise`` holds, by metric, the boot-level values of each configuration over all boots that are known, where more are than
    are compared.
    """

    arm: Mapping[str, Sequence[float]]
    control: Mapping[str, Sequence[float]]
    blocked: tuple[str, ...] = ()
    missing: Mapping[str, str] = field(factory=dict)
    noise: Mapping[str, Sequence[Sequence[float]]] = field(factory=dict)


def judge(limits: Limits, sides: Sides) -> Judgement:
    """KEEP when some metric is better by more than the limit and none is worse; see the reasons for anything else."""
    if sides.blocked:
        return Judgement(verdict=Verdict.BLOCKED, reasons=sides.blocked)
    effects = tuple(found for name in limits.metrics if (found := _effect(name, sides)) is not None)
    absent = [name for name in limits.metrics if name not in {effect.metric for effect in effects}]
    better = [effect for effect in effects if _beyond(effect, limits.better_than, +1)]
    worse = [effect for effect in effects if _beyond(effect, limits.worse_than, -1)]
    reasons = [
        *(f"{effect.metric} is worse by {-effect.change:.1%}, more than {limits.worse_than:.1%}" for effect in worse),
        *(f"{effect.metric} is better by {effect.change:.1%}, more than {limits.better_than:.1%}" for effect in better),
        *(f"{name} was not measured on both sides{_why(name, sides)}" for name in absent),
        *_noise_reasons(effects, limits),
    ]
    return Judgement(verdict=_verdict(better, worse, absent), reasons=tuple(reasons), effects=effects)


def keeps(limits: Limits, sides: Sides) -> bool:
    """Whether :func:`judge` would say keep of sides that nothing blocks, without its words."""
    better = False
    for name in limits.metrics:
        effect = _effect(name, sides)
        if effect is None or _beyond(effect, limits.worse_than, -1):
            return False
        better = better or _beyond(effect, limits.better_than, +1)
    return better


def _verdict(better: Sequence[Effect], worse: Sequence[Effect], absent: Sequence[str]) -> Verdict:
    if worse:
        return Verdict.REVERT
    if absent:
        return Verdict.INCONCLUSIVE
    return Verdict.KEEP if better else Verdict.REVERT


def _effect(name: str, sides: Sides) -> Effect | None:
    arm, control = pool(sides.arm.get(name, ())), pool(sides.control.get(name, ()))
    if arm is None or control is None:
        return None
    change = gain(arm.value, control.value, metrics.describe(name).better)
    if change is None:
        return None
    known = sides.noise.get(name) or [sides.arm[name], sides.control[name]]
    return Effect(
        metric=name,
        arm=arm.value,
        control=control.value,
        change=change,
        band=noise_band(known, [arm.n, control.n]),
        n_arm=arm.n,
        n_control=control.n,
        noise_boots=sum(len(side) for side in known if len(side) > 1) or None,
    )


def _beyond(effect: Effect, limit: float, sign: int) -> bool:
    """Whether the effect passes the limit in this direction, and the noise band where it is known."""
    size = sign * effect.change
    return size > limit and (effect.band is None or size > effect.band)


def _noise_reasons(effects: Sequence[Effect], limits: Limits) -> list[str]:
    said = []
    for effect in effects:
        if effect.band is not None and abs(effect.change) <= effect.band:
            said.append(f"{effect.metric} moved by {effect.change:+.1%}, inside the noise band of ±{effect.band:.1%}")
        elif effect.band is not None and -limits.worse_than <= effect.change <= limits.better_than:
            said.append(f"{effect.metric} moved by {effect.change:+.1%}, within the limits")
    unknown = [effect.metric for effect in effects if effect.band is None]
    if unknown:
        said.append(f"one boot a side: the noise of {', '.join(unknown)} is unknown, so this verdict may be chance")
    return said


def _why(name: str, sides: Sides) -> str:
    return f" ({sides.missing[name]})" if name in sides.missing else ""
