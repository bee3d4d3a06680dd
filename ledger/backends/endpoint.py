"""A server that is up, and that this program neither starts nor ends.

What it does: stands in the place of a backend where a site names servers by their URLs. What it does not do: reach a node, or
speak to the server (``run`` does, over HTTP). Rules kept: nothing is started, stopped or read beside the server's own answers;
what would need a node is refused with one reason, so that whoever asks can say that it is not known here.
"""

from collections.abc import Sequence

from attrs import frozen

from ledger.backends.base import Backend, Exit, Observed, RankLaunch, Running
from ledger.backends.reach import Reach
from ledger.core.errors import BackendError, Problem
from ledger.spec.model import ENDPOINT

UNSEEN = "not known here: the server was up before the run, and its node is not reached"


class EndpointBackend(Backend):
    """The backend called ``endpoint``."""

    name = ENDPOINT

    def _start(self, launches: tuple[RankLaunch, ...], pause_s: float) -> Running:
        for launch in launches:
            if launch.argv:
                hint = "leave the command out, or take a backend that starts servers"
                raise BackendError(Problem(what="an endpoint starts nothing", value=launch.argv[0], hint=hint))
        return EndpointRunning(launches=launches)

    def _free_port(self, ip: str, host: str) -> int:
        raise BackendError(f"no port of {host} is this run's to take", hint="its server has one: say it in the endpoint's url")

    def _reach(self, node: str, host: str) -> Reach:
        raise BackendError(UNSEEN)


@frozen(kw_only=True)
class EndpointRunning(Running):
    """A server that goes on whatever becomes of the run."""

    launches: tuple[RankLaunch, ...]

    def exits(self) -> Sequence[Exit]:
        """None: whether the server still answers is asked over HTTP."""
        return []

    def observe(self) -> Sequence[Observed]:
        """Nothing of a process was seen."""
        return [Observed(rank=launch.rank, unseen=UNSEEN) for launch in self.launches]

    def stop(self) -> None:
        """Nothing: it is not this run's to end."""
