"""Ranks as child processes of this machine.

What it does: starts each rank under a warden of its own, reads argv and environment back from ``/proc``, and stops them. What
it does not do: reach another machine. Rules kept: a rank gets the variables that the spec sets and the few named in
``INHERITED``, nothing else; its output goes to its log file from the first byte; when this program dies, by whatever signal,
the warden sees its pipe close and ends the rank.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import define, field, frozen

from ledger.backends import warden
from ledger.backends.base import Backend, Exit, Observed, RankLaunch, Running, waves
from ledger.backends.reach import LocalReach, Reach
from ledger.core.errors import BackendError, Problem

INHERITED = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
GRACE_S = 10.0
LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})


@frozen(kw_only=True)
class _Rank:
    launch: RankLaunch
    warden: subprocess.Popen[bytes]
    pid: int


class ProcessBackend(Backend):
    """The backend called ``process``: every node must be this machine."""

    name = "process"

    def _start(self, launches: tuple[RankLaunch, ...], pause_s: float) -> Running:
        running = ProcessRunning()
        try:
            for number, wave in enumerate(waves(launches)):
                time.sleep(pause_s if number else 0)
                for launch in wave:
                    running.ranks.append(_spawn(launch))
        except BaseException:
            running.stop()
            raise
        running.ranks.sort(key=lambda rank: rank.launch.rank)
        return running

    def _free_port(self, ip: str, host: str) -> int:
        with socket.socket(socket.AF_INET6 if ":" in ip else socket.AF_INET) as probe:
            probe.bind((ip, 0))
            return int(probe.getsockname()[1])

    def _reach(self, node: str, host: str) -> Reach:
        _only_here(node, host)
        return LocalReach(node, environment)


@define
class ProcessRunning(Running):
    """Live ranks, each behind its warden."""

    ranks: list[_Rank] = field(factory=list)

    def exits(self) -> Sequence[Exit]:
        """The ranks that have ended, by the status that their warden tells."""
        polled = [(rank, _status(rank)) for rank in self.ranks]
        return [Exit(rank=rank.launch.rank, status=_signed(status)) for rank, status in polled if status is not None]

    def observe(self) -> Sequence[Observed]:
        """argv and the asked-for variables of each rank, from ``/proc``."""
        return [_observe(rank) for rank in self.ranks]

    def stop(self) -> None:
        """Close every warden's pipe first, then wait for all, so that ranks end side by side."""
        for rank in self.ranks:
            if rank.warden.stdin is not None:
                rank.warden.stdin.close()
        for rank in self.ranks:
            rank.warden.wait()


def environment(wanted: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of a rank: the inherited few, then what the spec sets."""
    return {name: os.environ[name] for name in INHERITED if name in os.environ} | dict(wanted)


def _only_here(node: str, host: str) -> None:
    if host not in LOCAL_HOSTS:
        raise BackendError(
            Problem(
                what=f"node {node!r} is not this machine, and the backend 'process' starts nothing elsewhere",
                value=host,
                hint='set host = "localhost" in the site, or take a backend that reaches other machines',
            )
        )


def _spawn(launch: RankLaunch) -> _Rank:
    _only_here(launch.node, launch.host)
    told, status = os.pipe()
    try:
        launch.log.parent.mkdir(parents=True, exist_ok=True)
        with launch.log.open("ab") as log:
            owner = subprocess.Popen(
                [sys.executable, "-I", "-S", str(Path(warden.__file__)), str(GRACE_S), str(status), *launch.argv],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment(launch.env),
                pass_fds=(status,),
                start_new_session=True,
            )
        os.close(status)
        status = -1
        with os.fdopen(told, "rb", closefd=True) as line:
            told = -1
            return _Rank(launch=launch, warden=owner, pid=int(line.readline() or b"0"))
    except OSError as error:
        raise BackendError(f"cannot start rank {launch.rank} on {launch.node}: {error.strerror}") from error
    finally:
        for fd in (told, status):
            if fd >= 0:
                os.close(fd)


def _status(rank: _Rank) -> int | None:
    """The warden's exit status, or None while its rank lives.

    A rank that is gone already is waited for: on a busy machine its warden may not have had the time to say so, and a server
    that died must never pass for one that lives.
    """
    status = rank.warden.poll()
    return rank.warden.wait() if status is None and not _lives(rank.pid) else status


def _lives(pid: int) -> bool:
    """Whether a process is there and not a zombie; without /proc, whether it can be signalled."""
    try:
        return Path("/proc", str(pid), "stat").read_text(encoding="latin-1").rpartition(")")[2].split()[0] != "Z"
    except (OSError, IndexError):
        return not Path("/proc/self").exists()


def _signed(status: int) -> int:
    return 128 - status if status > 128 else status


def _observe(rank: _Rank) -> Observed:
    proc = Path("/proc") / str(rank.pid)
    try:
        argv = proc.joinpath("cmdline").read_bytes()
        env = dict(_pair(item) for item in proc.joinpath("environ").read_bytes().split(b"\0") if b"=" in item)
    except OSError as error:
        return Observed(rank=rank.launch.rank, unseen=f"/proc/{rank.pid}: {error.strerror}")
    if not argv:
        return Observed(rank=rank.launch.rank, unseen=f"process {rank.pid} has ended")
    return Observed(
        rank=rank.launch.rank,
        argv=tuple(os.fsdecode(word) for word in argv.removesuffix(b"\0").split(b"\0")),
        env={name: value for name, value in env.items() if name in rank.launch.env},
        facts={"pid": str(rank.pid)},
    )


def _pair(item: bytes) -> tuple[str, str]:
    name, _, value = item.partition(b"=")
    return os.fsdecode(name), os.fsdecode(value)
