"""Nodes over the OpenSSH client, with the user's own configuration.

What it does: runs commands on a node (:class:`SshReach`), and starts ranks there, each under a warden of its own
(:class:`SshBackend`). What it does not do: hold a password, ask for one, or write any ssh configuration: jump hosts, keys, agents
and shared connections are what ``ssh HOST`` has. Rules kept: argv is quoted word by word; variables travel on standard input,
never on a command line; ranks are started, read and ended side by side, so that a slow node delays no other; a connection that
drops is made again, and a node that cannot be reached for the lease has ended its rank by itself.
"""

import os
import re
import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from secrets import token_hex
from typing import TypeVar

from attrs import define, evolve, field

from ledger.backends.base import Backend, Exit, Observed, RankLaunch, Running, waves
from ledger.backends.reach import Held, LocalReach, Ran, Reach
from ledger.backends.sshline import Line, Times
from ledger.core.errors import BackendError, LedgerError, Problem

SSH = ("ssh",)
OPTIONS = ("-T", "-oBatchMode=yes", "-oConnectTimeout=10", "-oServerAliveInterval=5", "-oServerAliveCountMax=3")
CONNECT_S = 30.0
MAX_SIGNAL = 64
MAX_TOLD = 65_536  # bytes of stderr that are read in any case, for the marks in it
PORT_PROGRAM = (
    "import socket,sys; a=sys.argv[1]; s=socket.socket(socket.AF_INET6 if ':' in a else socket.AF_INET); "
    "s.bind((a,0)); print(s.getsockname()[1])"
)
T = TypeVar("T")
R = TypeVar("R")


class SshReach(Reach):
    """One node, as ``ssh HOST`` reaches it. It needs a POSIX shell there, and the programs that are run."""

    def __init__(self, node: str, host: str, ssh: Sequence[str] = SSH) -> None:
        super().__init__(node, host)
        self._ssh = client(ssh, host)
        self._here = LocalReach(node, _as_the_user)

    def _run(self, argv: tuple[str, ...], *, stdin: bytes, env: dict[str, str], timeout_s: float, limit: int) -> Ran:
        mark = f"ledger-{token_hex(8)}"
        given = _exports(env)
        limited = ("timeout", "-k", "5", f"{timeout_s:g}", *argv)
        script = f'eval "$(dd bs=1 count={len(given)} 2>/dev/null)"; echo {mark} >&2; "$@"; s=$?; echo {mark} >&2; exit $s'
        line = shlex.join(("sh", "-c", script, "sh", *limited))
        begun = time.monotonic()
        ran = self._here.run([*self._ssh, line], stdin=given + stdin, timeout_s=timeout_s + CONNECT_S, limit=max(limit, MAX_TOLD))
        ended = _without_marks(ran, f"{mark}\n".encode(), argv[0], limit)
        if ended.status in (124, -9) and time.monotonic() - begun >= timeout_s:
            return evolve(ended, status=None, failed=f"{argv[0]} did not end within {timeout_s:g} s")
        return ended

    def _hold(self, argv: tuple[str, ...]) -> Held:
        return self._here.hold([*self._ssh, shlex.join(argv)])


def _as_the_user(env: Mapping[str, str]) -> dict[str, str]:
    """The client's environment: the user's own, with the agent's socket and the home folder; the node gets none of it."""
    return {**os.environ, **env}


def client(ssh: Sequence[str], host: str) -> tuple[str, ...]:
    """The ssh client's words up to the remote command.

    Raises:
        BackendError: a host that ssh would take for an option.
    """
    if host.startswith("-") or not re.fullmatch(r"[^\s\x00-\x1f]+", host):
        raise BackendError(Problem(what="no host that ssh could reach", value=host, hint="write it as `ssh HOST` takes it"))
    return (*ssh, *OPTIONS, "--", host)


def _exports(env: Mapping[str, str]) -> bytes:
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in env.items()).encode()


def _without_marks(ran: Ran, mark: bytes, program: str, limit: int) -> Ran:
    """What the program itself gave. It began behind the first mark; without the second one, 255 is the client's own status."""
    if ran.failed is not None:
        return ran
    said, begun, own = ran.err.partition(mark)
    before, ended, after = own.rpartition(mark)
    kept = (before + after if ended else own)[:limit]
    cut = ran.cut or len(ran.out) > limit
    status = ran.status if ran.status is not None else 255
    if status < 0 or not begun or (status == 255 and not ended and len(ran.err) < max(limit, MAX_TOLD)):
        last = said.decode("utf-8", "replace").strip().splitlines()[-1:]
        what = "the connection dropped" if begun else "the node cannot be reached"
        return Ran(failed=": ".join([what, *last]), out=ran.out[:limit], err=kept, cut=cut)
    if status in (126, 127):
        return Ran(failed=f"cannot run {program}: exit status {status}", err=kept)
    signed = 128 - status if 128 < status <= 128 + MAX_SIGNAL else status
    return Ran(status=signed, out=ran.out[:limit], err=kept, cut=cut)


class SshBackend(Backend):
    """The backend called ``ssh``: each rank is a process on its node. A node needs ``python3``, 3.9 or later, on Linux."""

    name = "ssh"

    def __init__(self, ssh: Sequence[str] = SSH, times: Times | None = None) -> None:
        self._ssh = tuple(ssh)
        self._times = times or Times()

    def _start(self, launches: tuple[RankLaunch, ...], pause_s: float) -> Running:
        running = SshRunning(lines=[Line(launch, client(self._ssh, launch.host), self._times) for launch in launches])
        try:
            for number, wave in enumerate(waves(launches)):
                time.sleep(pause_s if number else 0)
                ranks = {launch.rank for launch in wave}
                _open_all([line for line in running.lines if line.launch.rank in ranks])
        except BaseException:
            running.stop()
            raise
        return running

    def _free_port(self, ip: str, host: str) -> int:
        ran = self.reach(host, host).run(["python3", "-c", PORT_PROGRAM, ip])
        if not ran.ok or not ran.out.strip().isdigit():
            raise BackendError(
                Problem(what=f"no free port at {ip} on {host}", value=ran.told, hint="check the node's `ip` in the site")
            )
        return int(ran.out)

    def _reach(self, node: str, host: str) -> Reach:
        return SshReach(node, host, self._ssh)


@define(kw_only=True)
class SshRunning(Running):
    """Live ranks, each at the end of its line."""

    lines: list[Line] = field(factory=list)

    def exits(self) -> Sequence[Exit]:
        """The ranks that have ended, and those whose node has been out of reach for the lease."""
        return [found for line in self.lines if (found := line.exit()) is not None]

    def observe(self) -> Sequence[Observed]:
        """argv and the asked-for variables of each rank, from ``/proc`` of its node."""
        return at_once(Line.observe, self.lines)

    def stop(self) -> None:
        """End every rank side by side; where the node is out of reach, wait until its warden must have done so."""
        at_once(Line.stop, self.lines)


def at_once(do: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """``do`` for every item side by side, in the items' order; each is done, and then the first error is raised."""
    todo = list(items)
    with ThreadPoolExecutor(max_workers=max(1, len(todo))) as pool:
        return [each.result() for each in [pool.submit(do, item) for item in todo]]


def _open_all(lines: Sequence[Line]) -> None:
    """Start the ranks of one wave; every node that could not be reached is told, not the first alone."""
    problems = [problem for told in at_once(_opened, lines) for problem in told]
    if problems:
        raise BackendError(problems)


def _opened(line: Line) -> tuple[Problem, ...]:
    try:
        line.open()
    except LedgerError as error:
        return error.problems
    return ()
