"""A program of its own: the process that owns a server, so that none outlives the runner.

What it does: starts the given argv in a session of its own, and ends it with everything that descends from it when its
standard input closes (the runner went away, also by SIGKILL), or on SIGTERM. What it does not do: restart, log or interpret.
Rules kept: it reaps every descendant, since it is their subreaper; SIGTERM first and SIGKILL after the grace; it exits with
the server's own status (128 + signal when a signal ended it), and 127 when the program could not be started. Imports the
standard library alone and is run by its path with ``python -I -S``, so that it is up at once.

usage: warden GRACE_SECONDS STATUS_FD ARGV…    One line on the file descriptor STATUS_FD is the server's process id.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
import time
from collections.abc import Sequence

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
REAP_EVERY_S = 0.02
STOP = b"x"
CHILD = b"c"


def become_subreaper() -> None:
    """Adopt orphaned descendants, on Linux; elsewhere only the process group can be ended."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def spawn(argv: Sequence[str], *, close: Sequence[int]) -> int:
    """Fork and run ``argv`` as the leader of a new session, without the descriptors in ``close``; returns its process id."""
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    os.setsid()
    if libc is not None:
        # When the warden itself is killed, the kernel ends the server.
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(128 + signal.SIGKILL)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    for fd in close:
        os.close(fd)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(argv[0], list(argv))
    except OSError as error:
        os.write(2, f"warden: cannot run {argv[0]!r}: {error.strerror}\n".encode())
    os._exit(127)


def descendants(root: int) -> list[int]:
    """Every live process below ``root``, from /proc; empty where there is no /proc."""
    parents: dict[int, list[int]] = {}
    try:
        names = [name for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - no Path in a program this small
    except OSError:
        return []
    for name in names:
        try:
            with open(f"/proc/{name}/stat", encoding="latin-1") as file:  # noqa: PTH123 - as above
                parents.setdefault(int(file.read().rpartition(")")[2].split()[1]), []).append(int(name))
        except (OSError, IndexError, ValueError):
            continue
    found: list[int] = []
    todo = [root]
    while todo:
        children = parents.get(todo.pop(), [])
        found += children
        todo += children
    return found


def end_all(server: int, grace: float) -> None:
    """SIGTERM to the server's group and all descendants, then SIGKILL until none is left."""
    _signal_all(server, signal.SIGTERM)
    limit = time.monotonic() + grace
    while time.monotonic() < limit:
        if not reap():
            return
        time.sleep(REAP_EVERY_S)
    while reap():
        _signal_all(server, signal.SIGKILL)
        time.sleep(REAP_EVERY_S)


def _signal_all(server: int, number: signal.Signals) -> None:
    targets = descendants(os.getpid())
    with contextlib.suppress(OSError):
        os.killpg(server, number)
    for pid in targets:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


ENDED: dict[int, int] = {}


def reap() -> bool:
    """Collect whatever has ended, into ``ENDED``; whether any child is still there."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True
        ENDED[pid] = os.waitstatus_to_exitcode(status)


def watch(server: int, wake: int, grace: float) -> int:
    """Until the server ends, standard input closes, or a signal says stop; returns the exit status."""
    poller = select.poll()
    poller.register(0, select.POLLIN | select.POLLHUP)
    poller.register(wake, select.POLLIN)
    while server not in ENDED:
        told = {fd for fd, _ in poller.poll()}
        reap()
        if (wake in told and STOP in os.read(wake, 4096)) or (0 in told and os.read(0, 4096) == b""):
            break
    end_all(server, grace)
    status = ENDED.get(server, -signal.SIGKILL)
    return status if status >= 0 else 128 - status


def main(arguments: Sequence[str]) -> int:
    """Parse, start, watch."""
    if len(arguments) < 3:
        sys.stderr.write("usage: warden GRACE_SECONDS STATUS_FD ARGV…\n")
        return 2
    become_subreaper()
    wake, waker = os.pipe()
    signal.signal(signal.SIGCHLD, lambda *_: os.write(waker, CHILD))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: os.write(waker, STOP))
    status = int(arguments[1])
    server = spawn(arguments[2:], close=(status, wake, waker))
    os.write(status, f"{server}\n".encode())
    os.close(status)
    return watch(server, wake, float(arguments[0]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
