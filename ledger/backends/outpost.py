"""A program of its own: the warden of a rank on another machine, and the line between it and the runner.

What it does: ``serve`` leaves a warden behind on this machine that starts the rank, keeps its output in a file and listens on a
socket of a private folder; ``attach`` joins that socket to standard input and output, again and again if need be. What it does
not do: interpret output, restart, or listen on the network. Rules kept: the warden ends the rank with everything that descends
from it when it is told to, when the runner is gone, and when nobody has spoken to it for the lease; it removes its folder; it
keeps the end of the output until it has been told that it was received, or the lease has passed. Imports the standard library
and :mod:`~ledger.backends.warden` alone, and needs Python 3.9 on Linux: both sources are sent to ``python3`` over the
connection, so that nothing is installed there.

What is said, in lines of JSON. To the warden: ``{"from": offset}``, ``{"beat": 1}``, ``{"observe": 1}``, ``{"stop": 1}``.
From it: ``{"pid": n}``, ``{"log": n}`` and n bytes, ``{"seen": …}``, ``{"exit": status}``, ``{"gone": 1}``.
"""

import base64
import contextlib
import json
import os
import select
import shutil
import signal
import socket
import tempfile
import time
from typing import Any

from ledger.backends import warden

PIECE = 1 << 16
TICK_S = 0.2
SOCKET, LOG = "line", "log"
INHERITED = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH")


class Warden:
    """Owns one rank: its process, its output, and the line to the runner, if there is one now."""

    def __init__(self, folder: str, asked: "dict[str, Any]") -> None:
        self.folder = folder
        self.asked = asked
        self.door = socket.socket(socket.AF_UNIX)
        self.door.bind(os.path.join(folder, SOCKET))  # noqa: PTH118 - no Path in a program this small
        self.door.listen(4)
        self.line: socket.socket | None = None
        self.heard = b""
        self.sent = 0
        self.told_exit = self.stopping = False
        self.last_word = time.monotonic()
        self.log = os.open(os.path.join(folder, LOG), os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)  # noqa: PTH118 - as above
        self.server = 0

    def start(self) -> None:
        """Start the rank, with its output in the log."""
        os.environ.clear()
        os.environ.update(self.asked["env"])
        os.dup2(self.log, 1)
        os.dup2(self.log, 2)
        self.server = warden.spawn(self.asked["argv"], close=(self.door.fileno(), self.log))

    def watch(self) -> None:
        """Serve the line until told to stop, or until nobody has spoken for the lease; then end everything."""
        while not self.stopping and time.monotonic() - self.last_word < self.asked["lease_s"]:
            watched: list[socket.socket] = [self.door] + ([self.line] if self.line else [])
            ready = select.select(watched, [], [], TICK_S)[0]
            if self.door in ready:
                self._join(self.door.accept()[0])
            if self.line is not None and self.line in ready:
                self._hear()
            warden.reap()
            self._tell_news()
        warden.end_all(self.server, self.asked["grace_s"])
        self._tell_news()
        self._say({"gone": 1})

    def _join(self, line: socket.socket) -> None:
        """A new line takes the place of the old one, and begins with what it asks for."""
        if self.line is not None:
            self.line.close()
        line.settimeout(self.asked["lease_s"])
        self.line, self.heard, self.told_exit = line, b"", False
        self.sent = -1
        self._say({"pid": self.server})

    def _hear(self) -> None:
        assert self.line is not None
        try:
            piece = self.line.recv(PIECE)
        except OSError:
            piece = b""
        if not piece:
            self.line.close()
            self.line = None
            return
        self.last_word = time.monotonic()
        *lines, self.heard = (self.heard + piece).split(b"\n")
        for text in lines:
            word = json.loads(text)
            self.sent = word.get("from", self.sent)
            self.stopping = self.stopping or "stop" in word
            if "observe" in word:
                self._say({"seen": look(self.server)})

    def _tell_news(self) -> None:
        """Output since the last time, and the end of the rank once all of its output has been told."""
        if self.line is None or self.sent < 0:
            return
        ended = self.server in warden.ENDED
        while piece := os.pread(self.log, PIECE, self.sent):
            if not self._say({"log": len(piece)}, piece):
                return
            self.sent += len(piece)
        if ended and not self.told_exit:
            status = warden.ENDED[self.server]
            self.told_exit = self._say({"exit": status})

    def _say(self, word: "dict[str, Any]", payload: bytes = b"") -> bool:
        if self.line is None:
            return False
        try:
            self.line.sendall(json.dumps(word).encode() + b"\n" + payload)
        except OSError:
            self.line.close()
            self.line = None
        return self.line is not None


def look(pid: int) -> "dict[str, Any]":
    """argv and environment of a live process, in base64, or why there is none."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123 - as above
            argv = file.read()
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 - as above
            env = file.read()
    except OSError as error:
        return {"unseen": f"/proc/{pid}: {error.strerror}"}
    if not argv:
        return {"unseen": f"process {pid} has ended"}
    return {"argv": base64.b64encode(argv).decode(), "env": base64.b64encode(env).decode()}


def serve(asked: "dict[str, Any]") -> None:
    """Leave a warden behind and print the folder of its socket."""
    folder = tempfile.mkdtemp(prefix="ledger-rank-")
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    asked["env"] = {**inherited, **asked["env"]}
    up, told = os.pipe()
    if os.fork() == 0:
        try:
            _be_warden(folder, asked, told)
        except Exception as error:
            os.write(2, f"warden: {type(error).__name__}: {error}\n".encode())
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            os._exit(0)
    os.close(told)
    os.read(up, 1)
    attach(folder)


def _be_warden(folder: str, asked: "dict[str, Any]", told: int) -> None:
    """In the child: leave the connection's session, start, and watch."""
    os.setsid()
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    warden.become_subreaper()
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    own = Warden(folder, asked)
    signal.signal(signal.SIGTERM, lambda *_: setattr(own, "stopping", True))
    own.start()
    os.close(told)
    own.watch()


def attach(folder: str) -> None:
    """Join standard input and output to the warden of ``folder`` until one side closes."""
    line = socket.socket(socket.AF_UNIX)
    os.write(1, json.dumps({"folder": folder}).encode() + b"\n")
    try:
        line.connect(os.path.join(folder, SOCKET))  # noqa: PTH118 - as above
    except OSError:
        os.write(1, b'{"lost": 1}\n')
        return
    with contextlib.suppress(OSError):
        _pump(line)


def _pump(line: socket.socket) -> None:
    while True:
        for ready in select.select([0, line.fileno()], [], [])[0]:
            if ready == 0:
                piece = os.read(0, PIECE)
                if not piece:
                    return _input_ended(line)
                line.sendall(piece)
            else:
                piece = line.recv(PIECE)
                if not piece:
                    return None
                while piece:
                    piece = piece[os.write(1, piece) :]


def _input_ended(line: socket.socket) -> None:
    """The runner closed its end, or the connection is gone: after the latter nobody takes our output either."""
    out = select.poll()
    out.register(1, select.POLLERR | select.POLLHUP)
    if not out.poll(500):
        line.sendall(b'{"stop": 1}\n')
        while piece := line.recv(PIECE):
            os.write(1, piece)


def main() -> None:
    """What is asked for comes as one line of JSON on standard input."""
    text = b""
    while not text.endswith(b"\n"):
        piece = os.read(0, 1)
        if not piece:
            return
        text += piece
    asked = json.loads(text)
    if "attach" in asked:
        attach(asked["attach"])
    else:
        serve(asked)


if __name__ == "__main__":
    main()
