"""What a session tells of itself while it runs.

What it does: the events, as records, and the protocol of whoever listens. What it does not do: show them (``cli``). Rule kept:
a watcher only hears; nothing it does can change what is measured or recorded.
"""

from collections.abc import Mapping
from typing import Protocol

from attrs import field, frozen

from ledger.core.words import Outcome, Role, Verdict
from ledger.receipt.model import Figure


@frozen(kw_only=True)
class SessionStarted:
    """A session began; ``boots`` is how many it will try."""

    session: str
    boots: int
    estimate_s: float | None = None


@frozen(kw_only=True)
class BootStarted:
    """The attempt of one boot was recorded."""

    position: int
    of: int
    arm: str
    lane: str
    role: Role
    evidence: str


@frozen(kw_only=True)
class Phase:
    """What is being done now (``preflight``, ``boot``, ``warm-up``, ``decode C6``, ``teardown``) and how far it is."""

    name: str
    done: int = 0
    of: int = 0


@frozen(kw_only=True)
class BootEnded:
    """A boot was recorded: ready after so many seconds, or not, and why."""

    arm: str
    outcome: Outcome
    seconds: float | None = None
    reason: str | None = None
    agreement: str | None = None


@frozen(kw_only=True)
class TrialEnded:
    """A trial was recorded."""

    arm: str
    measure: str
    figures: Mapping[str, Figure] = field(factory=dict)
    failed: int = 0
    launched: int = 0
    marks: tuple[str, ...] = ()


@frozen(kw_only=True)
class Decided:
    """A verdict was recorded."""

    arm: str
    control: str | None
    verdict: Verdict
    reasons: tuple[str, ...]


@frozen(kw_only=True)
class Restored:
    """The config that stays was booted again, or was not: its arm, why it stays, and what keeps it from being proven."""

    arm: str | None
    why: str
    unproven: tuple[str, ...] = ()


@frozen(kw_only=True)
class SessionEnded:
    """All is recorded and committed; ``commit`` is None when there was nothing to commit."""

    session: str
    receipts: int
    commit: str | None
    remarks: tuple[str, ...] = ()


Event = SessionStarted | BootStarted | Phase | BootEnded | TrialEnded | Decided | Restored | SessionEnded


class Watcher(Protocol):
    """Hears every event, in order, on the runner's thread."""

    def __call__(self, event: Event) -> None:
        """Hear one event."""
        ...
