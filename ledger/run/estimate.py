"""How long a plan may take, from rough speeds that the site gives.

What it does: adds up boots, prompts and replies. What it does not do: promise; it is for a person who wonders whether to wait.
Rule kept: without the site's speeds there is no estimate, rather than an invented one.
"""

from collections.abc import Mapping, Sequence

from ledger.instruments.base import Instrument
from ledger.spec.model import SPEEDS
from ledger.spec.plan import BootPlan, Plan


def estimate(plan: Plan, instruments: Mapping[str, Instrument]) -> float | None:
    """Seconds for the whole plan, the longest boot that may be restored with it, or None when the site gives no speeds."""
    made = _total(plan.boots, plan, instruments)
    again = [_total([boot], plan, instruments) for boot in plan.restores.values()]
    known = [seconds for seconds in again if seconds is not None]
    return made + max(known, default=0.0) if made is not None and len(known) == len(again) else None


def _total(boots: Sequence[BootPlan], plan: Plan, instruments: Mapping[str, Instrument]) -> float | None:
    found = [boot_seconds(boot, instruments, plan.site.speed) for boot in boots]
    known = [seconds for seconds in found if seconds is not None]
    return sum(known) if len(known) == len(found) else None


def boot_seconds(boot: BootPlan, instruments: Mapping[str, Instrument], speed: Mapping[str, float]) -> float | None:
    """Seconds for one boot, its start and each trial's prompt and completion tokens; None without all of ``SPEEDS``."""
    if not set(SPEEDS) <= set(speed):
        return None
    seconds = speed["boot_s"]
    for measure in boot.measures:
        prompt, completion = instruments[measure.uses].size(measure.parameters)
        seconds += measure.trials * (prompt / speed["prefill_tok_s"] + completion / speed["decode_tok_s"])
    return seconds
