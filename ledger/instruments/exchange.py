"""One streamed request over one fresh connection, stamped.

What it does: connects, waits at the gate, writes headers and body in one piece, and keeps every read with the stamp taken right
after it. What it does not do: understand the reply. Rules kept: the loop that reads does nothing else (no parsing, no logging,
no lock); nothing is retried, redirected or unpacked; whatever ends the stream early is told in ``error``; the API key is in
no record, even when the server sends it back.
"""

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPException, HTTPResponse, IncompleteRead, RemoteDisconnected

import attrs
from attrs import define, field, frozen

from ledger import __version__
from ledger.core.errors import UsageError
from ledger.core.text import one_line
from ledger.instruments.address import Server
from ledger.instruments.base import LoadPlan, Read, Request, StreamRecord, Wave
from ledger.instruments.stream import CANCELLED

READ_BYTES = 65_536
MAX_STREAM_BYTES = 256 * 1024 * 1024
# After [DONE] a server that keeps the connection open is not waited for as long as for a token.
DONE_GRACE_S = 5.0
_UNKEPT_HEADERS = frozenset({"set-cookie"})


class NeverSentError(Exception):
    """The plan was ended while a stream waited for its start."""


@frozen(kw_only=True)
class Limits:
    """Times for one request, in seconds."""

    connect_s: float
    idle_s: float
    deadline_s: float | None

    @classmethod
    def of(cls, plan: LoadPlan) -> "Limits":
        """The limits of a plan."""
        return cls(connect_s=plan.connect_timeout_s, idle_s=plan.idle_timeout_s, deadline_s=plan.deadline_s)


@define(kw_only=True)
class Lines:
    """The open sockets of a run, so that all can be ended from outside, and the flag that says so."""

    stopped: threading.Event = field(factory=threading.Event)
    _open: set[socket.socket] = field(factory=set)
    _lock: threading.Lock = field(factory=threading.Lock)

    def announce(self, sock: socket.socket) -> None:
        """Note a socket that is about to be used; ended at once when the run is over."""
        with self._lock:
            self._open.add(sock)
        if self.stopped.is_set():
            raise ConnectionAbortedError(CANCELLED)

    def forget(self) -> None:
        """Drop the sockets that are closed."""
        with self._lock:
            self._open = {sock for sock in self._open if sock.fileno() >= 0}

    def stop(self) -> None:
        """End every connection; may be called again while some are still being opened."""
        self.stopped.set()
        with self._lock:
            ending = list(self._open)
        for sock in ending:
            with suppress(OSError):
                # Not the TLS socket's own method, which would take its session away from the thread that reads.
                socket.socket.shutdown(sock, socket.SHUT_RDWR)


def wire(server: Server, path: str, payload: bytes, api_key: str | None, *, method: str = "POST") -> bytes:
    """Request line, headers and body as the one piece of bytes that is written.

    Raises:
        UsageError: an API key or path that cannot stand in a header.
    """
    for what, text in (("the API key", api_key or ""), ("the path", path)):
        if not (text.isascii() and text.isprintable() and " " not in text):
            raise UsageError(f"{what} has characters that a request cannot carry")
    head = [
        f"{method} {server.path(path)} HTTP/1.1",
        f"Host: {server.host_header}",
        f"User-Agent: ledger/{__version__}",
        "Accept: text/event-stream, application/json",
        "Accept-Encoding: identity",
        "Content-Type: application/json",
        f"Content-Length: {len(payload)}",
        "Connection: close",
        *([f"Authorization: Bearer {api_key}"] if api_key else []),
    ]
    return "\r\n".join([*head, "", ""]).encode("ascii") + payload


@define(kw_only=True)
class Exchange:
    """One request being made; :meth:`run` is the body of its thread.

    ``gate`` returns when the request may be sent, and raises :class:`NeverSentError` when it never will.
    """

    server: Server
    request: Request
    wave: Wave
    bytes_out: bytes = field(repr=False)
    limits: Limits
    lines: Lines
    gate: Callable[[], None]
    _t0: int = field(default=0, init=False)
    _connect_ns: int = field(default=0, init=False)
    _status: int | None = field(default=None, init=False)
    _headers: dict[str, str] = field(factory=dict, init=False)
    _headers_at: int | None = field(default=None, init=False)
    _reads: list[tuple[int, bytes]] = field(factory=list, init=False)

    def run(self) -> StreamRecord:
        """The record of this request, however it went."""
        sock: socket.socket | None = None
        error: str | None = None
        began = time.perf_counter_ns()
        try:
            sock = self.server.connect(self.limits.connect_s, self.lines.announce)
        except OSError as failure:
            error = f"connect: {_words(failure)}"
        self._connect_ns = time.perf_counter_ns() - began
        try:
            # A stream that could not connect waits too: the others are counted on to start together.
            self.gate()
            self._t0 = time.perf_counter_ns()
            if sock is not None:
                error = self._talk(sock)
        except NeverSentError:
            self._t0 = time.perf_counter_ns()
            error = CANCELLED
        finally:
            if sock is not None:
                sock.close()
        return self._record(error, time.perf_counter_ns())

    def _talk(self, sock: socket.socket) -> str | None:
        """Send, and read to the end; what ended it early, if something did."""
        sock.settimeout(self.limits.idle_s)
        response = HTTPResponse(sock, method="POST")
        try:
            sock.settimeout(self._patience(self.limits.idle_s))
            sock.sendall(self.bytes_out)
            response.begin()
            self._headers_at = time.perf_counter_ns()
            self._status = response.status
            self._headers = {name.lower(): value for name, value in response.getheaders()}
            return self._read(sock, response)
        except TimeoutError:
            return self._late()
        except RemoteDisconnected:
            return "no response: the connection was closed before a status line"
        except IncompleteRead:
            return "cut in mid-stream: the connection ended inside a chunk"
        except (HTTPException, OSError, ValueError) as failure:
            return f"connection lost: {_words(failure)}"
        finally:
            response.close()

    def _read(self, sock: socket.socket, response: HTTPResponse) -> str | None:
        idle, reads, size, length = self.limits.idle_s, self._reads, 0, response.length
        deadline = self.limits.deadline_s is not None
        while length is None or size < length:
            if deadline:
                sock.settimeout(self._patience(idle))
            data = response.read1(READ_BYTES)
            reads.append((time.perf_counter_ns(), data))
            if not data:
                break
            size += len(data)
            if size > MAX_STREAM_BYTES:
                return f"too large: more than {MAX_STREAM_BYTES} bytes"
            if b"[DONE]" in data[-32:]:
                idle = min(idle, DONE_GRACE_S)
                sock.settimeout(self._patience(idle))
        if length is not None and size < length:
            return f"cut in mid-stream: {size} of {length} bytes"
        return None

    def _patience(self, idle_s: float) -> float:
        """Seconds that the next read may take."""
        if self.limits.deadline_s is None:
            return idle_s
        left = self.limits.deadline_s - (time.perf_counter_ns() - self._t0) / 1e9
        if left <= 0:
            raise TimeoutError
        return min(idle_s, left)

    def _late(self) -> str:
        deadline = self.limits.deadline_s
        if deadline is not None and (time.perf_counter_ns() - self._t0) / 1e9 >= deadline:
            return f"deadline: {deadline:g} s"
        return f"idle timeout after {self.limits.idle_s:g} s"

    def _record(self, error: str | None, now: int) -> StreamRecord:
        reads = [Read(t_ns=stamp - self._t0, data=data) for stamp, data in self._reads if data]
        return StreamRecord(
            request=self.request.id,
            wave=self.wave.id,
            t0_ns=self._t0,
            connect_ns=self._connect_ns,
            headers_ns=None if self._headers_at is None else self._headers_at - self._t0,
            end_ns=now - self._t0,
            status=self._status,
            headers={name: value for name, value in self._headers.items() if name not in _UNKEPT_HEADERS},
            reads=tuple(reads),
            # Ending a connection looks like its end to the thread that reads; a reply that is complete counts all the same.
            error=CANCELLED if self.lines.stopped.is_set() else error,
        )


def without(record: StreamRecord, secret: str | None) -> StreamRecord:
    """``record`` with every ``secret`` in it overwritten by as many asterisks, also where reads cut it in two."""
    if not secret:
        return record
    stars = "*" * len(secret)
    whole = b"".join(read.data for read in record.reads)
    headers = {name: value.replace(secret, stars) for name, value in record.headers.items()}
    error = record.error.replace(secret, stars) if record.error else record.error
    record = attrs.evolve(record, headers=headers, error=error)
    if secret.encode() not in whole:
        return record
    whole = whole.replace(secret.encode(), stars.encode())
    reads, at = [], 0
    for read in record.reads:
        reads.append(attrs.evolve(read, data=whole[at : at + len(read.data)]))
        at += len(read.data)
    return attrs.evolve(record, reads=tuple(reads))


def _words(failure: BaseException) -> str:
    text = failure.strerror if isinstance(failure, OSError) and failure.strerror else str(failure)
    return one_line(text or type(failure).__name__, 200)
