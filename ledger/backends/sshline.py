"""The line to the warden of one rank on another machine.

What it does: starts the rank through :mod:`~ledger.backends.outpost`, follows its output into the local log, makes the
connection again when it drops, asks for argv and environment, and ends the rank. What it does not do: decide which ranks there
are. Rules kept: what the other side says is bounded before it is parsed; output is asked for from the byte after the last one
received, so that nothing of it is missing or doubled; a rank is called lost after the lease alone, when its warden has ended it.
"""

import base64
import binascii
import os
import queue
import shlex
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import orjson
from attrs import frozen

from ledger.backends import outpost, warden
from ledger.backends.base import Exit, Observed, RankLaunch
from ledger.core.errors import BackendError, Problem

MAX_LINE = 16 * 2**20
MAX_PIECE = outpost.PIECE
SEEN_S = 15.0
BOOTSTRAP = """
import os, sys, types
def take(size):
    data = b""
    while len(data) < size:
        piece = os.read(0, size - len(data))
        if not piece:
            sys.exit(3)
        data += piece
    return data
if sys.version_info < (3, 9):
    sys.exit("python3 is %d.%d here, and 3.9 is needed" % sys.version_info[:2])
made = {}
for name in ("ledger", "ledger.backends", "ledger.backends.warden", "ledger.backends.outpost"):
    made[name] = sys.modules[name] = types.ModuleType(name)
    made[name].__path__ = []
    above, _, own = name.rpartition(".")
    if above:
        setattr(made[above], own, made[name])
sources = [take(int(size)) for size in sys.argv[1:]]
for name, source in zip(("ledger.backends.warden", "ledger.backends.outpost"), sources):
    exec(compile(source, name, "exec"), made[name].__dict__)
made["ledger.backends.outpost"].main()
"""


@frozen(kw_only=True)
class Times:
    """Seconds: for connecting, between signs of life, between tries, until a silent node ends its rank, and for SIGTERM."""

    connect_s: float = 30.0
    beat_s: float = 5.0
    retry_s: float = 1.0
    lease_s: float = 60.0
    grace_s: float = 10.0


class Line:
    """One rank on one node: open it once, stop it as often as one likes."""

    def __init__(self, launch: RankLaunch, ssh: Sequence[str], times: Times) -> None:
        self.launch = launch
        self._ssh = tuple(ssh)
        self._times = times
        self._process: subprocess.Popen[bytes] | None = None
        self._said: IO[bytes] | None = None
        self._folder: str | None = None
        self._received = 0
        self._pid: int | None = None
        self._status: int | None = None
        self._lost: str | None = None
        self.opened_at = 0.0  # monotonic seconds; when the rank was known to run
        self._dropped = 0.0
        self._drops = 0
        self._seen: queue.Queue[dict[str, Any]] = queue.Queue()
        self._writing = threading.Lock()
        self._known = threading.Event()
        self._over = threading.Event()
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []

    @property
    def drops(self) -> int:
        """How often the connection dropped and was made again."""
        return self._drops

    def open(self) -> None:
        """Start the rank.

        Raises:
            BackendError: the node cannot be reached, or has no fitting ``python3``.
        """
        self.launch.log.parent.mkdir(parents=True, exist_ok=True)
        self.launch.log.touch()
        asked = {
            "argv": list(self.launch.argv),
            "env": dict(self.launch.env),
            "lease_s": self._times.lease_s,
            "grace_s": self._times.grace_s,
        }
        self._connect(asked)
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._follow, self._beat)]
        for thread in self._threads:
            thread.start()
        if not self._known.wait(self._times.connect_s) or self._pid is None:
            why = self._why()
            self.stop()
            raise BackendError(self._unreachable(why))
        self.opened_at = time.monotonic()

    def exit(self) -> Exit | None:
        """How the rank ended, or None while it lives as far as one can know."""
        if self._status is not None:
            return Exit(rank=self.launch.rank, status=self._status)
        if self._lost is not None:
            return Exit(rank=self.launch.rank, status=255, reason=self._lost)
        return None

    def observe(self) -> Observed:
        """argv and the asked-for variables of the live rank."""
        if (ended := self.exit()) is not None:
            return Observed(rank=self.launch.rank, unseen=str(ended))
        while not self._seen.empty():
            self._seen.get_nowait()
        self._say({"observe": 1})
        try:
            seen = self._seen.get(timeout=SEEN_S)
            return self._observed(seen)
        except queue.Empty:
            return Observed(rank=self.launch.rank, unseen=f"{self.launch.node} did not answer within {SEEN_S:g} s")
        except (KeyError, TypeError, binascii.Error):
            return Observed(rank=self.launch.rank, unseen=f"{self.launch.node} gave no such thing as argv and environment")

    def stop(self) -> None:
        """End the rank and wait; where its node is out of reach, until its lease and grace have passed."""
        self._stopping.set()
        if self._process is None:
            return
        self._say({"stop": 1})
        self._over.wait(self._times.lease_s + self._times.grace_s)
        self._over.set()
        self._hang_up()
        for thread in self._threads:
            thread.join(self._times.retry_s + 1)

    def _connect(self, asked: dict[str, Any]) -> None:
        """A new ssh client, which is given both programs and what is asked of them."""
        sources = [Path(str(module.__file__)).read_bytes() for module in (warden, outpost)]
        remote = shlex.join(["python3", "-I", "-S", "-c", BOOTSTRAP, *(str(len(source)) for source in sources)])
        self._said = TemporaryFile()  # noqa: SIM115 - read when the client has ended
        try:
            self._process = subprocess.Popen(
                [*self._ssh, remote], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, start_new_session=True
            )
        except OSError as error:
            raise BackendError(f"cannot run {self._ssh[0]}: {error.strerror}") from error
        self._write(b"".join(sources) + orjson.dumps(asked) + b"\n")

    def _follow(self) -> None:
        """Take what the warden says; connect again while there is a rank to come back to."""
        while not self._over.is_set():
            if self._listen() or not self._dropped:
                self._dropped = time.monotonic()
            if self._over.is_set() or self._folder is None:
                break
            self._again()
        self._over.set()
        self._known.set()

    def _again(self) -> None:
        left = self._dropped + self._times.lease_s - time.monotonic()
        if left <= 0:
            self._lost = f"node {self.launch.node} could not be reached for {self._times.lease_s:g} s ({self._why()})"
            self._over.set()
            return
        self._over.wait(min(self._times.retry_s, left))
        self._hang_up()
        if not self._over.is_set():
            self._connect({"attach": self._folder})

    def _listen(self) -> bool:
        """Hear the warden until the line closes; whether it was heard at all."""
        assert self._process is not None
        assert self._process.stdout is not None
        out, heard = self._process.stdout, False
        while line := out.readline(MAX_LINE):
            try:
                word = orjson.loads(line)
                piece = out.read(min(int(word["log"]), MAX_PIECE)) if "log" in word else b""
            except (orjson.JSONDecodeError, TypeError, ValueError):
                break  # no warden speaks like this: a shell's greeting, or a line that was cut
            self._hear(word, piece)
            heard = True
        return heard

    def _hear(self, word: dict[str, Any], piece: bytes) -> None:
        if piece:
            with self.launch.log.open("ab") as log:
                log.write(piece)
            self._received += len(piece)
        if "folder" in word:
            self._folder = str(word["folder"])
        if "pid" in word:
            self._pid = int(word["pid"])
            self._say({"from": self._received})
            if self._stopping.is_set():
                self._say({"stop": 1})
            self._drops += self._known.is_set()
            self._known.set()
        if "seen" in word:
            self._seen.put(word["seen"])
        if "exit" in word:
            self._status = int(word["exit"])
        if "lost" in word and self._status is None:
            self._lost = f"its warden on node {self.launch.node} is gone"
        if "gone" in word or "lost" in word:
            self._over.set()

    def _beat(self) -> None:
        while not self._over.wait(self._times.beat_s):
            self._say({"beat": 1})

    def _say(self, word: dict[str, Any]) -> None:
        self._write(orjson.dumps(word) + b"\n")

    def _write(self, data: bytes) -> None:
        """Send; what a closed connection does not take is asked for again once there is a new one."""
        process = self._process
        with self._writing:
            try:
                assert process is not None
                assert process.stdin is not None
                process.stdin.write(data)
                process.stdin.flush()
            except (OSError, ValueError):
                return

    def _hang_up(self) -> None:
        process = self._process
        if process is None:
            return
        with self._writing:
            try:
                assert process.stdin is not None
                process.stdin.close()
            except OSError:
                pass
        try:
            process.wait(self._times.retry_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _why(self) -> str:
        """The last thing that the ssh client said."""
        if self._said is None:
            return "ssh said nothing"
        size = os.fstat(self._said.fileno()).st_size
        text = os.pread(self._said.fileno(), 4000, max(0, size - 4000)).decode("utf-8", "replace").strip()
        return text.splitlines()[-1] if text else "ssh said nothing"

    def _unreachable(self, why: str) -> Problem:
        return Problem(
            what=f"rank {self.launch.rank} could not be started on node {self.launch.node}",
            value=why,
            hint=f"try: ssh {shlex.quote(self.launch.host)} python3 --version",
        )

    def _observed(self, seen: dict[str, Any]) -> Observed:
        if "unseen" in seen:
            return Observed(rank=self.launch.rank, unseen=str(seen["unseen"]))
        words = base64.b64decode(seen["argv"]).removesuffix(b"\0").split(b"\0")
        pairs = [item.partition(b"=") for item in base64.b64decode(seen["env"]).split(b"\0") if b"=" in item]
        env = {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
        return Observed(
            rank=self.launch.rank,
            argv=tuple(os.fsdecode(word) for word in words),
            env={name: value for name, value in env.items() if name in self.launch.env},
            facts={"pid": str(self._pid), "host": self.launch.host},
        )
