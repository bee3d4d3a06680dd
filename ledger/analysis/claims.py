"""Whether a claim still holds.

What it does: reads the number that a person wrote, rounds the ledger's value as they did, and says what became of a claim. What
it does not do: ask the ledger. Rules kept: a claim is about the rounded number; an input that was struck makes it stale even
when the number stayed, since nobody has said it again; a number that changed makes it false.
"""

import re
from decimal import ROUND_HALF_EVEN, Decimal
from enum import StrEnum

from ledger.core.errors import Problem, UsageError

_NUMBER = re.compile(r"[-+]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.(?P<decimals>[0-9]+))?")


class State(StrEnum):
    """What became of a claim; of one that a publication makes, ``reported`` says that the ledger has no figures to hold it to."""

    HOLDS = "holds"
    STALE = "stale"
    FALSE = "false"
    LOST = "lost"
    REPORTED = "reported"


SOUND = (State.HOLDS, State.REPORTED)


def decimals_of(says: str) -> int:
    """How many decimals the written number has.

    Raises:
        UsageError: not a plain number.
    """
    match = _NUMBER.fullmatch(says.strip())
    if match is None:
        raise UsageError(Problem(what="a claim says a number", value=says, hint="write it as 1.10, 286.6 or 6,100"))
    return len(match["decimals"] or "")


def rounded(value: float, decimals: int) -> Decimal:
    """``value`` with so many decimals, halves to even."""
    return Decimal(repr(value)).quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_HALF_EVEN)


def agrees(says: str, value: float) -> bool:
    """Whether the written number is ``value`` under its own rounding."""
    return Decimal(says.strip().replace(",", "")) == rounded(value, decimals_of(says))


def state_of(says: str, now: float | None, struck_inputs: int, *, is_reported: bool = False) -> State:
    """What became of a claim, given the value now (None when there is none) and how many of its inputs were struck."""
    if now is None:
        return State.REPORTED if is_reported else State.LOST
    if not agrees(says, now):
        return State.FALSE
    return State.STALE if struck_inputs else State.HOLDS
