"""A lane whose server is up before the run: asked what it is, measured, and left as it was.

What it does: takes the keys that the site names from the environment, waits until the server completes a token, and notices when
it becomes another or goes away. What it does not do: start or end anything. Rules kept: the key is in no record that this makes
and goes to the site's own URL alone (nothing is redirected); a refusal that waiting cannot mend is told at once; a server that
says otherwise than before ends the boot, for its figures would be another's.
"""

import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from ledger.backends.base import Backend, Exit, RankLaunch
from ledger.core.clock import Clock
from ledger.core.errors import BackendError, Collected
from ledger.core.text import one_line
from ledger.core.words import Outcome
from ledger.receipt.model import RankConfig
from ledger.run.lane import PROBE_TIMEOUT_S, HttpLane, LiveLane, Readiness, log_path
from ledger.run.secrets import SHORTEST
from ledger.spec.endpoint import Target
from ledger.spec.plan import BootPlan

GONE = 255
# Too early (408, 425) and too many (429) may pass; a connection may come up again, a certificate will not be another.
FINAL = re.compile(r"http (?!408|425|429)[34]\d\d|connect: (?!timed out)")


@frozen(kw_only=True)
class EndpointStarter:
    """Takes up the servers of a site of the backend ``endpoint``. ``keys`` are the API keys by the names of their variables."""

    backend: Backend
    clock: Clock
    cancel: threading.Event
    keys: Mapping[str, str] = field(factory=dict, repr=False)

    def __call__(self, boot: BootPlan, values: Mapping[str, str], logs: Path) -> LiveLane:
        """The server of the boot's endpoint."""
        there = boot.endpoint
        assert there is not None
        node = boot.ranks[0].node
        launches = (RankLaunch(rank=0, node=node.name, host=node.host, argv=(), log=log_path(logs, boot, 0)),)
        return EndpointLane(
            running=self.backend.start(launches),
            launches=launches,
            base_url=there.url,
            model=boot.lane.served_model or boot.lane.model,
            clock=self.clock,
            cancel=self.cancel,
            started_ns=self.clock.monotonic_ns(),
            api_key=self.keys.get(there.api_key_env or ""),
        )


@define(kw_only=True)
class EndpointLane(HttpLane):
    """A server that is up. What it said of itself when it was ready is held against what it says later."""

    _first: Mapping[str, Any] | None = field(default=None, init=False)

    def wait_ready(self, within_s: float) -> Readiness:
        """As for any lane; once it is ready, what it says of itself is kept."""
        ready = super().wait_ready(within_s)
        if ready.outcome is Outcome.READY:
            self._first = self.server_facts()
        return ready

    def resolved(self) -> Sequence[RankConfig]:
        """Nothing was rendered, since nothing was started."""
        return []

    def exits(self) -> Sequence[Exit]:
        """Whether the server that was ready is still there, and still says the same of itself."""
        first = self._first
        if first is None:
            return []
        now = self.server_facts()
        changed = [
            f"{name} was {one_line(str(value), 80)} and is {one_line(str(now[name]), 80)}"
            for name, value in first.items()
            if name in now and now[name] != value
        ]
        if changed:
            return [Exit(rank=0, status=GONE, reason=f"the server is another than before: {'; '.join(changed)}")]
        if now or (answer := self._token(PROBE_TIMEOUT_S)) is None:
            return []
        return [Exit(rank=0, status=GONE, reason=f"the server answers no more: {answer}")]

    def _is_final(self, answer: str) -> bool:
        return FINAL.match(answer) is not None


def keys_of(targets: Iterable[Target], environment: Mapping[str, str]) -> dict[str, str]:
    """The API keys that ``targets`` name, by the names of their variables.

    Raises:
        BackendError: with each variable that is not set, or holds what cannot be kept out of receipts or into a request.
    """
    found, problems = {}, Collected()
    for name in sorted({each.api_key_env for each in targets if each.api_key_env}):
        key = environment.get(name, "")
        if not key:
            problems.add(f"the variable {name} holds no API key", hint=f"export {name}=… in the shell that runs ledger")
        elif len(key) < SHORTEST:
            what = f"the API key in {name} has fewer than {SHORTEST} characters: they stand in innocent words too"
            problems.add(what, hint="leave api_key_env out where the server takes any key, else give it a longer one")
        elif not (key.isascii() and key.isprintable() and " " not in key):
            problems.add(f"the API key in {name} has characters that a request cannot carry", hint="is there a line end in it?")
        else:
            found[name] = key
    problems.raise_if_any(BackendError)
    return found
