"""What passes between the steps of a session.

What it does: the protocol of whoever keeps receipts, what every step is handed, and the result of a boot. What it does not do:
act. Rule kept: steps share these and nothing else.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from attrs import frozen

from ledger.core.clock import Clock
from ledger.core.digest import Descriptor
from ledger.instruments.base import Instrument
from ledger.receipt.model import Body, Boot, Gate, Source, Subject, Trial
from ledger.run.lane import Starter
from ledger.run.nodes import Care
from ledger.run.secrets import Concealer
from ledger.run.watch import Watcher
from ledger.spec.plan import BootPlan

TEXT = "text/plain"


class Recorder(Protocol):
    """Where receipts and blobs go; the session writer of ``store`` is one."""

    @property
    def session(self) -> str:
        """The name of the session's folder."""
        ...

    def record(self, body: Body) -> str:
        """Write a receipt, durably, and return its digest."""
        ...

    def blob(self, data: bytes, media_type: str) -> Descriptor:
        """Write a blob, durably, and return its descriptor."""
        ...

    def read_blob(self, wanted: Descriptor) -> bytes:
        """The bytes of a blob of this session."""
        ...


class Steps(Protocol):
    """Who is told of each step before it acts; a journal is one."""

    def note(self, step: str, **facts: str | int) -> None:
        """Note a step, durably."""
        ...


@frozen(kw_only=True)
class Bench:
    """What every step works with: where receipts go, what starts lanes, time, and whoever watches."""

    recorder: Recorder
    start: Starter
    instruments: Mapping[str, Instrument]
    clock: Clock
    watch: Watcher
    conceal: Concealer
    care: Care
    steps: Steps
    logs: Path
    spec: Source
    site: Source


@frozen(kw_only=True)
class BootResult:
    """What one boot gave, and when (``at``, in Unix seconds). ``blocked`` holds the texts of gates that block a verdict."""

    plan: BootPlan
    subject: Subject
    digest: str
    boot: Boot
    trials: tuple[tuple[str, Trial], ...] = ()
    gates: tuple[tuple[str, Gate], ...] = ()
    blocked: tuple[str, ...] = ()
    at: float | None = None
