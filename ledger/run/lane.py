"""A live lane, as a session sees it, and the real one: ranks of a backend answered over HTTP.

What it does: the protocol of what can be booted and measured, and its real implementation. What it does not do: record
anything. Rules kept: everything a session does to a lane goes through :class:`LiveLane`, so that a lane model in virtual time
can take its place; ready means that a one-token generation was completed, not that a port is open.
"""

import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from attrs import define, field, frozen

from ledger.backends.base import Backend, Exit, Observed, RankLaunch, Running
from ledger.core import units
from ledger.core.clock import Clock
from ledger.core.errors import BackendError, Problem
from ledger.core.words import Outcome
from ledger.instruments import probe
from ledger.instruments.base import LoadPlan, Tokenize, Transcript
from ledger.instruments.http import HttpClient
from ledger.receipt.model import RankConfig
from ledger.spec.model import Node
from ledger.spec.plan import BootPlan, launch
from ledger.spec.plan import RankLaunch as Rendered

POLL_S = 0.1
PROBE_TIMEOUT_S = 60.0
CONNECT_S = 2.0
# How long a server of the boot before this one may take to give its port back.
PORT_WAIT_S = 15.0
WaveDone = Callable[[str, int, int], None]


@frozen(kw_only=True)
class Readiness:
    """How the start went: ``outcome`` ready, failed or timeout, the seconds it took, and the reason if it did not."""

    outcome: Outcome
    seconds: float
    reason: str | None = None


class LiveLane(Protocol):
    """One boot that was started."""

    def wait_ready(self, within_s: float) -> Readiness:
        """Wait for the first completed one-token generation, the end of a rank, or the limit."""
        ...

    def resolved(self) -> Sequence[RankConfig]:
        """Each rank's argv and environment as they were given to it."""
        ...

    def observe(self) -> Sequence[Observed]:
        """Each rank's argv and environment, read back."""
        ...

    def server_facts(self) -> Mapping[str, Any]:
        """What the server says of itself, as plain data; empty when it says nothing."""
        ...

    def tokenizer(self) -> Tokenize | None:
        """The server's own token count, where it offers one."""
        ...

    def execute(self, plan: LoadPlan, wave_done: WaveDone) -> Transcript:
        """Send a load plan and return what came back."""
        ...

    def exits(self) -> Sequence[Exit]:
        """The ranks that have ended."""
        ...

    def stop(self) -> None:
        """End every rank."""
        ...


class Starter(Protocol):
    """Starts the ranks of a boot. ``values`` are the volatile variables; ``logs`` is where output goes."""

    def __call__(self, boot: BootPlan, values: Mapping[str, str], logs: Path) -> LiveLane:
        """Start every rank, or raise ``BackendError``."""
        ...


@frozen(kw_only=True)
class BackendStarter:
    """Starts ranks through a backend, and measures them over HTTP."""

    backend: Backend
    clock: Clock
    cancel: threading.Event

    def __call__(self, boot: BootPlan, values: Mapping[str, str], logs: Path) -> LiveLane:
        """Pick a port if the lane has none of its own, render argv and env, and start.

        Raises:
            BackendError: the lane's own port is in use, or a rank could not be started.
        """
        head = boot.ranks[0].node
        if boot.lane.port:
            self._wait_until_free(head, boot.lane.port)
        port = boot.lane.port or self.backend.free_port(head.ip, host=head.host)
        rendered = launch(boot, {**values, "port": str(port)})
        launches = tuple(_rank_launch(boot, rank, logs) for rank in rendered)
        started = self.clock.monotonic_ns()
        return HttpLane(
            running=self.backend.start(launches, pause_s=boot.pause_s),
            launches=launches,
            base_url=f"http://{head.ip}:{port}",
            model=boot.lane.served_model or boot.lane.model,
            clock=self.clock,
            cancel=self.cancel,
            started_ns=started,
        )

    def _wait_until_free(self, head: Node, port: int) -> None:
        """Wait until nothing answers on a fixed port: what does is another server, and its figures would pass for this lane's."""
        deadline = self.clock.monotonic_ns() + int(PORT_WAIT_S * 1e9)
        while _answers(head.ip, port):
            if self.clock.monotonic_ns() > deadline:
                what = f"port {port} of {head.name} is in use: another server answers there"
                hint = f"end it (on the node: ss -ltnp sport = :{port}), or give the lane another port"
                raise BackendError(Problem(what=what, value=f"{head.ip}:{port}", hint=hint))
            self.clock.sleep(POLL_S)


def _answers(ip: str, port: int) -> bool:
    try:
        socket.create_connection((ip, port), timeout=CONNECT_S).close()
    except OSError:
        return False
    return True


def _rank_launch(boot: BootPlan, rank: Rendered, logs: Path) -> RankLaunch:
    return RankLaunch(
        rank=rank.rank,
        node=rank.node.name,
        host=rank.node.host,
        argv=rank.argv,
        env=rank.env,
        log=log_path(logs, boot, rank.rank),
        container=rank.container,
        image=boot.lane.image,
        image_id=boot.lane.image_id,
        image_labels=boot.lane.image_labels,
    )


def _config(launch: RankLaunch) -> RankConfig:
    mounts = (*launch.container.mounts, *launch.container.volumes) if launch.container else ()
    return RankConfig(rank=launch.rank, node=launch.node, argv=launch.argv, env=launch.env, mounts=mounts)


def log_path(logs: Path, boot: BootPlan, rank: int) -> Path:
    """The file that takes the output of a rank."""
    return logs / f"boot-{boot.position:03}-rank-{rank}.log"


@define(kw_only=True)
class HttpLane:
    """Ranks of a backend whose head answers OpenAI-compatible HTTP."""

    running: Running
    launches: tuple[RankLaunch, ...]
    base_url: str
    model: str
    clock: Clock
    cancel: threading.Event
    started_ns: int
    api_key: str | None = field(default=None, repr=False)
    _tokenize: Tokenize | None = field(default=None, init=False)

    def wait_ready(self, within_s: float) -> Readiness:
        """Try a one-token generation until it completes, a rank ends, or the limit passes."""
        reason = "the server did not answer"
        while (left := within_s - self._elapsed()) > 0:
            if ended := self.exits():
                told = ", ".join(str(item) for item in ended)
                return Readiness(outcome=Outcome.FAILED, seconds=self._elapsed(), reason=told)
            answer = self._token(min(left, PROBE_TIMEOUT_S))
            if answer is None:
                return Readiness(outcome=Outcome.READY, seconds=self._elapsed())
            if self._is_final(answer):
                return Readiness(outcome=Outcome.FAILED, seconds=self._elapsed(), reason=answer)
            reason = answer
            self.clock.sleep(min(POLL_S, left))
        return Readiness(outcome=Outcome.TIMEOUT, seconds=self._elapsed(), reason=f"not ready within {within_s:g} s: {reason}")

    def resolved(self) -> Sequence[RankConfig]:
        """What each rank was started with."""
        return [_config(item) for item in self.launches]

    def observe(self) -> Sequence[Observed]:
        """Each rank's argv and environment, from the backend."""
        return self.running.observe()

    def server_facts(self) -> Mapping[str, Any]:
        """Plain answers of ``/version``, ``/props`` and ``/v1/models``, where the server has them."""
        return probe.server_facts(self.base_url, api_key=self.api_key)

    def tokenizer(self) -> Tokenize | None:
        """The server's own count, found once."""
        if self._tokenize is None:
            self._tokenize = probe.server_tokenizer(self.base_url, self.model, api_key=self.api_key)
        return self._tokenize

    def execute(self, plan: LoadPlan, wave_done: WaveDone) -> Transcript:
        """Send the plan with one thread for each stream."""
        return HttpClient(self.base_url, api_key=self.api_key, cancel=self.cancel).execute(plan, wave_done)

    def exits(self) -> Sequence[Exit]:
        """The ranks that have ended."""
        return self.running.exits()

    def stop(self) -> None:
        """End every rank."""
        self.running.stop()

    def _token(self, timeout_s: float) -> str | None:
        """Have one token generated: None when it was, else why not."""
        return probe.generate_once(self.base_url, self.model, timeout_s=timeout_s, api_key=self.api_key)

    def _is_final(self, answer: str) -> bool:
        """Whether waiting cannot mend it; a server that was started here may still be loading, whatever it answers."""
        return False

    def _elapsed(self) -> float:
        return (self.clock.monotonic_ns() - self.started_ns) / 1e9


def ready_within_s(boot: BootPlan) -> float:
    """The lane's limit for getting ready, in seconds."""
    return units.parse(boot.lane.ready_within, dimension="time").number
