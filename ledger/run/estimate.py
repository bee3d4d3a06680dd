"""How long a plan may take, from rough speeds that the site gives.

What it does: adds up boots, prompts and replies. What it does not do: promise; it is for a person who wonders whether to wait.
Rule kept: without the site's speeds there is no estimate, rather than an invented one.
"""

from collections.abc import Mapping

from ledger.instruments.base import Instrument
from ledger.spec.plan import BootPlan, Plan


def estimate(plan: Plan, instruments: Mapping[str, Instrument]) -> float | None:
    """Seconds for the whole plan, or None when the site gives no speeds."""
    speed = plan.site.speed
    if not {"boot_s", "prefill_tok_s", "decode_tok_s"} <= set(speed):
        return None
    return sum(boot_seconds(boot, instruments, speed) for boot in plan.boots)


def boot_seconds(boot: BootPlan, instruments: Mapping[str, Instrument], speed: Mapping[str, float]) -> float:
    """Seconds for one boot: its start, and each trial's prompt and completion tokens."""
    seconds = speed["boot_s"]
    for measure in boot.measures:
        prompt, completion = instruments[measure.uses].size(measure.parameters)
        seconds += measure.trials * (prompt / speed["prefill_tok_s"] + completion / speed["decode_tok_s"])
    return seconds
