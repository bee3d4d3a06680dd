"""What a backend is: the way in which a boot's ranks are started, watched and stopped.

What it does: defines the records that pass between the runner and a backend, and the abstract :class:`Backend` and
:class:`Running`. What it does not do: decide what is started (``spec``) or when it is ready (``run``). Rules kept: whatever a
backend started is gone after :meth:`Running.stop`, and also after the death of this program; argv is never a shell string.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from attrs import field, frozen

from ledger.backends.reach import Reach


@frozen(kw_only=True)
class RankLaunch:
    """One process to start: where, with which argv and environment, and the file that takes its output.

    ``env`` holds only what the spec sets; ``inherited`` names the variables passed on from this program.
    """

    rank: int
    node: str
    host: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(factory=dict)
    log: Path


@frozen(kw_only=True)
class Observed:
    """What was read back from a live rank: its argv and the variables asked for, or why they could not be read."""

    rank: int
    argv: tuple[str, ...] | None = None
    env: Mapping[str, str] = field(factory=dict)
    facts: Mapping[str, str] = field(factory=dict)
    unseen: str | None = None


@frozen(kw_only=True)
class Exit:
    """A rank that ended: its exit status (negative for a signal)."""

    rank: int
    status: int


class Running(ABC):
    """A boot's live ranks; a context manager that stops them on the way out."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    @abstractmethod
    def exits(self) -> Sequence[Exit]:
        """The ranks that have ended so far; empty while all are alive."""

    @abstractmethod
    def observe(self) -> Sequence[Observed]:
        """Read each live rank's real argv and environment back."""

    @abstractmethod
    def stop(self) -> None:
        """End every rank and wait until all are gone. Safe to call twice."""


class Backend(ABC):
    """Starts ranks. ``name`` is what a site says."""

    name: str

    def start(self, launches: Sequence[RankLaunch]) -> Running:
        """Start every rank, or none: a rank that cannot be started ends those before it.

        Raises:
            BackendError: a program that is not there, or a node that cannot be reached.
        """
        return self._start(tuple(launches))

    def free_port(self, host: str) -> int:
        """A port on ``host`` that nobody listens on at this moment."""
        return self._free_port(host)

    def reach(self, node: str, host: str) -> Reach:
        """The node called ``node`` at ``host``, for whatever is read or done on it beside its ranks.

        Raises:
            BackendError: this backend never reaches that host.
        """
        return self._reach(node, host)

    @abstractmethod
    def _start(self, launches: tuple[RankLaunch, ...]) -> Running: ...

    @abstractmethod
    def _free_port(self, host: str) -> int: ...

    @abstractmethod
    def _reach(self, node: str, host: str) -> Reach: ...
