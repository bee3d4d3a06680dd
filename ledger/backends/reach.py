"""A node, as commands are run and files are read on it.

What it does: defines :class:`Reach`, the one seam through which anything outside a rank's own start touches a node (counters,
digests, hygiene, samplers), and :class:`LocalReach` for this machine. What it does not do: start ranks (:class:`Backend`), or
judge what it reads. Rules kept: argv is never a shell string; output is bounded; a program that is not there, a node that
cannot be reached and a limit that passed are values, told apart from a program's own exit status; another reach needs
``_run`` and ``_hold`` alone, since files are read with coreutils where nothing better is known.
"""

import contextlib
import hashlib
import os
import select
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from attrs import frozen

OUTPUT_LIMIT = 8 * 2**20
TIMEOUT_S = 60.0
ASK_TIMEOUT_S = 10.0
END_OF_ANSWER = b"\n.\n"
HASH_TIMEOUT_S = 6 * 3600.0
CHUNK = 2**20
BytesDone = Callable[[int], None]


@frozen(kw_only=True)
class Ran:
    """How a command ended: its exit status (negative for a signal), or ``failed``, the reason why there is none.

    ``out`` and ``err`` hold at most the limit's bytes; ``cut`` says that there was more.
    """

    status: int | None = None
    out: bytes = b""
    err: bytes = b""
    failed: str | None = None
    cut: bool = False

    @property
    def ok(self) -> bool:
        """Whether it ran and exited with 0."""
        return self.status == 0

    @property
    def told(self) -> str:
        """Why it is not ok, in one line; empty when it is."""
        if self.ok:
            return ""
        last = self.err.decode("utf-8", "replace").strip().splitlines()[-1:]
        return self.failed or ": ".join([f"exit status {self.status}", *last])


@frozen(kw_only=True)
class Content:
    """A file's bytes, or ``unread``, the reason why there are none."""

    data: bytes = b""
    unread: str | None = None

    @property
    def text(self) -> str:
        """The bytes as text; what is not UTF-8 is replaced."""
        return self.data.decode("utf-8", "replace")


@frozen(kw_only=True)
class FileStatus:
    """What tells a changed file from an unchanged one, and ``missing``, the reason where there is none."""

    size: int = 0
    mtime: str = ""
    inode: int = 0
    missing: str | None = None


class Held(ABC):
    """A program that runs on the node until it is told to end, and answers lines with lines."""

    @abstractmethod
    def ask(self, line: str, *, timeout_s: float = ASK_TIMEOUT_S) -> Content:
        """Send one line; what it prints until a line that is a full stop alone, which is left out."""

    @abstractmethod
    def stop(self) -> Ran:
        """Close its standard input, wait for its end, and return what it printed and nobody read. Safe to call twice."""


class Reach(ABC):
    """One node. ``node`` is its name in receipts, ``key`` tells machines apart (two names of one machine share it).

    ``python`` is the Python that runs the small programs of the standard library that this project brings to a node.
    """

    def __init__(self, node: str, key: str, *, python: str = "python3") -> None:
        self.node = node
        self.key = key
        self.python = python

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        timeout_s: float = TIMEOUT_S,
        limit: int = OUTPUT_LIMIT,
    ) -> Ran:
        """Run ``argv`` to its end. ``env`` is set beside what the node gives every program, as a rank's is."""
        return self._run(tuple(argv), stdin=stdin, env=dict(env or {}), timeout_s=timeout_s, limit=limit)

    def hold(self, argv: Sequence[str]) -> Held:
        """Start ``argv`` and keep its standard input open until :meth:`Held.stop`.

        Raises:
            OSError: it cannot be started.
        """
        return self._hold(tuple(argv))

    def read(self, path: str, *, limit: int = OUTPUT_LIMIT) -> Content:
        """A file's first ``limit`` bytes."""
        return self._read(path, limit)

    def status(self, path: str) -> FileStatus:
        """Size, modification time and inode of a regular file, links followed."""
        return self._status(path)

    def sha256(self, path: str, done: BytesDone) -> Content:
        """The file's SHA-256 in 64 hexadecimal digits, as bytes; ``done`` hears how many bytes have been hashed so far."""
        return self._sha256(path, done)

    @abstractmethod
    def _run(self, argv: tuple[str, ...], *, stdin: bytes, env: dict[str, str], timeout_s: float, limit: int) -> Ran: ...

    @abstractmethod
    def _hold(self, argv: tuple[str, ...]) -> Held: ...

    def _read(self, path: str, limit: int) -> Content:
        ran = self.run(["head", "-c", str(limit), "--", path], limit=limit)
        return Content(data=ran.out) if ran.ok else Content(unread=ran.told)

    def _status(self, path: str) -> FileStatus:
        ran = self.run(["stat", "-L", "-c", "%F|%s|%.9Y|%i", "--", path])
        words = ran.out.decode("utf-8", "replace").strip().split("|")
        if not ran.ok or len(words) != 4:
            return FileStatus(missing=ran.told or "stat gave no status")
        if not words[0].startswith("regular"):
            return FileStatus(missing=f"it is a {words[0]}")
        return FileStatus(size=int(words[1]), mtime=words[2], inode=int(words[3]))

    def _sha256(self, path: str, done: BytesDone) -> Content:
        ran = self.run(["sha256sum", "--", path], timeout_s=HASH_TIMEOUT_S)
        return Content(data=ran.out.lstrip(b"\\")[:64]) if ran.ok else Content(unread=ran.told)


class LocalReach(Reach):
    """This machine. ``inherited`` is what every program gets before ``env`` is set."""

    def __init__(self, node: str, inherited: Callable[[Mapping[str, str]], dict[str, str]] = dict) -> None:
        super().__init__(node, "localhost", python=sys.executable)
        self._environment = inherited

    def _run(self, argv: tuple[str, ...], *, stdin: bytes, env: dict[str, str], timeout_s: float, limit: int) -> Ran:
        with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
            given.write(stdin)
            given.seek(0)
            try:
                done = subprocess.run(
                    argv, stdin=given, stdout=out, stderr=err, env=self._environment(env), timeout=timeout_s, check=False
                )
            except subprocess.TimeoutExpired:
                return Ran(failed=f"{argv[0]} did not end within {timeout_s:g} s", out=_start_of(out, limit)[0])
            except OSError as error:
                return Ran(failed=f"cannot run {argv[0]}: {error.strerror}")
            data, cut = _start_of(out, limit)
            return Ran(status=done.returncode, out=data, err=_start_of(err, limit)[0], cut=cut)

    def _hold(self, argv: tuple[str, ...]) -> Held:
        return HeldProcess(
            subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=self._environment({}),
                bufsize=0,
            )
        )

    def _read(self, path: str, limit: int) -> Content:
        try:
            with Path(path).open("rb") as file:
                return Content(data=file.read(limit))
        except OSError as error:
            return Content(unread=f"{path}: {error.strerror}")

    def _status(self, path: str) -> FileStatus:
        try:
            found = Path(path).stat()
        except OSError as error:
            return FileStatus(missing=error.strerror or "it cannot be read")
        if not Path(path).is_file():
            return FileStatus(missing="it is no regular file")
        return FileStatus(size=found.st_size, mtime=str(found.st_mtime_ns), inode=found.st_ino)

    def _sha256(self, path: str, done: BytesDone) -> Content:
        state, read = hashlib.sha256(), 0
        try:
            with Path(path).open("rb") as file:
                while piece := file.read(CHUNK):
                    state.update(piece)
                    read += len(piece)
                    done(read)
        except OSError as error:
            return Content(unread=error.strerror or "it cannot be read")
        return Content(data=state.hexdigest().encode())


class HeldProcess(Held):
    """A held program behind the pipes of a child process, which may be a client that reaches another machine."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._stdin, self._stdout = process.stdin, process.stdout
        self._unread = b""
        self._ended: Ran | None = None

    def ask(self, line: str, *, timeout_s: float = ASK_TIMEOUT_S) -> Content:
        """Write the line and read until the full stop; what came so far is kept where the limit passes."""
        try:
            self._stdin.write(line.encode() + b"\n")
            return self._answer(time.monotonic() + timeout_s)
        except (OSError, ValueError) as error:
            return Content(unread=f"it does not answer: {error}")

    def stop(self) -> Ran:
        """Close the pipe, and kill what does not end by itself."""
        if self._ended is None:
            with contextlib.suppress(OSError):
                self._stdin.close()
            try:
                self._process.wait(timeout=ASK_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
            left = self._unread + (self._stdout.read(OUTPUT_LIMIT) or b"")
            self._stdout.close()
            self._ended = Ran(status=self._process.wait(), out=left)
        return self._ended

    def _answer(self, until: float) -> Content:
        while not self._unread.endswith(END_OF_ANSWER) and self._unread != END_OF_ANSWER[1:]:
            ready, _, _ = select.select([self._stdout], [], [], max(0.0, until - time.monotonic()))
            piece = os.read(self._stdout.fileno(), CHUNK) if ready else b""
            if not piece or len(self._unread) > OUTPUT_LIMIT:
                return Content(unread="it ended" if ready else "it did not answer in time")
            self._unread += piece
        answer, self._unread = self._unread.removesuffix(END_OF_ANSWER[1:]), b""
        return Content(data=answer)


def _start_of(file: IO[bytes], limit: int) -> tuple[bytes, bool]:
    size = os.fstat(file.fileno()).st_size
    file.seek(0)
    return file.read(limit), size > limit
