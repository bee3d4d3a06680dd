"""What a backend is: the way in which a boot's ranks are started, watched and stopped.

What it does: defines the records that pass between the runner and a backend, and the abstract :class:`Backend` and
:class:`Running`. What it does not do: decide what is started (``spec``) or when it is ready (``run``). Rules kept: whatever a
backend started is gone after :meth:`Running.stop`, and also after the death of this program; argv is never a shell string.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from attrs import field, frozen

from ledger.backends.reach import Reach
from ledger.core.errors import BackendError
from ledger.spec.model import Container


@frozen(kw_only=True)
class RankLaunch:
    """One process to start: where, with which argv and environment, and the file that takes its output.

    ``env`` holds only what the spec sets. ``container`` and the image are there where argv is run in a container.
    """

    rank: int
    node: str
    host: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(factory=dict)
    log: Path
    container: Container | None = None
    image: str | None = None
    image_id: str | None = None
    image_labels: Mapping[str, str] = field(factory=dict)


@frozen(kw_only=True)
class Observed:
    """What was read back from a live rank: its argv and the variables asked for, or why they could not be read.

    ``engine`` is what a container engine says of the rank's container, as plain data.
    """

    rank: int
    argv: tuple[str, ...] | None = None
    env: Mapping[str, str] = field(factory=dict)
    facts: Mapping[str, str] = field(factory=dict)
    engine: Mapping[str, Any] = field(factory=dict)
    unseen: str | None = None


@frozen(kw_only=True)
class Exit:
    """A rank that ended: its exit status (negative for a signal), and ``reason`` where there is more to say."""

    rank: int
    status: int
    reason: str | None = None

    def __str__(self) -> str:
        said = f"rank {self.rank} ended with status {self.status}"
        return f"{said}: {self.reason}" if self.reason else said


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
    """Starts ranks. ``name`` is what a site says, ``holds_containers`` whether it runs images rather than programs."""

    name: str
    holds_containers = False

    def start(self, launches: Sequence[RankLaunch], *, pause_s: float = 0.0) -> Running:
        """Start every rank, or none: a rank that cannot be started ends those before it.

        Workers are started first, ``pause_s`` later the head (rank 0), so that the head finds those whom it waits for.

        Raises:
            BackendError: a program that is not there, or a node that cannot be reached.
        """
        if not self.holds_containers and any(launch.container is not None for launch in launches):
            hint = 'take a backend that runs containers, such as backend = "docker"'
            raise BackendError(f"the lane is run in a container, and the backend {self.name!r} starts programs", hint=hint)
        return self._start(tuple(launches), pause_s)

    def free_port(self, ip: str, *, host: str = "localhost") -> int:
        """A port at ``ip`` that nobody listens on at this moment, on the machine that is reached as ``host``.

        Raises:
            BackendError: the machine cannot be reached, or has no such address.
        """
        return self._free_port(ip, host)

    def reach(self, node: str, host: str) -> Reach:
        """The node called ``node`` at ``host``, for whatever is read or done on it beside its ranks.

        Raises:
            BackendError: this backend never reaches that host.
        """
        return self._reach(node, host)

    @abstractmethod
    def _start(self, launches: tuple[RankLaunch, ...], pause_s: float) -> Running: ...

    @abstractmethod
    def _free_port(self, ip: str, host: str) -> int: ...

    @abstractmethod
    def _reach(self, node: str, host: str) -> Reach: ...


def waves(launches: Sequence[RankLaunch]) -> tuple[tuple[RankLaunch, ...], ...]:
    """The launches in the order of their start: all workers, then the head; a lone head is one wave."""
    workers = tuple(launch for launch in launches if launch.rank)
    head = tuple(launch for launch in launches if not launch.rank)
    return tuple(wave for wave in (workers, head) if wave)
