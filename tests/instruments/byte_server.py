"""A server that reads one request for each connection and writes chosen bytes at chosen times.

A script is a function of the request that yields what to do: bytes are sent, a float is waited for (in seconds), ``RESET`` ends
the connection with a TCP reset, ``HANG`` keeps it open until the server is closed. When the script ends, so does the connection.
"""

import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self

from attrs import frozen

RESET, HANG = object(), object()


@frozen(kw_only=True)
class Got:
    """A request as it came: the bytes of its first read, its head and body, when, and how many were in flight with it."""

    first_read: bytes
    head: str
    body: bytes
    at_ns: int
    in_flight: int

    @property
    def json(self) -> Any:
        """The body's JSON."""
        return json.loads(self.body)

    @property
    def line(self) -> str:
        """The request line."""
        return self.head.split("\r\n", 1)[0]

    def header(self, name: str) -> str | None:
        """A header's value."""
        for line in self.head.split("\r\n")[1:]:
            key, _, value = line.partition(": ")
            if key.lower() == name.lower():
                return value
        return None


Script = Callable[[Got], Iterable[Any]]


def head(status: str = "200 OK", kind: str | None = "text/event-stream", **headers: str) -> bytes:
    """A response head; the body ends with the connection unless a length is given."""
    lines = [f"HTTP/1.1 {status}", *([f"Content-Type: {kind}"] if kind else []), "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def chunked(piece: bytes) -> bytes:
    """One chunk of a chunked body."""
    return f"{len(piece):x}\r\n".encode() + piece + b"\r\n"


class ByteServer:
    """A context manager; ``got`` holds the requests, ``sent_ns`` when each piece of the last connection was sent."""

    def __init__(self, script: Script, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        self._script = script
        self._tls = tls
        self._socket = socket.create_server((host, 0), backlog=512)
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._in_flight = 0
        self.got: list[Got] = []
        self.sent_ns: list[int] = []
        self.most_in_flight = 0
        self.connections = 0
        self._threads: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)

    @property
    def url(self) -> str:
        """The base URL."""
        scheme = "https" if self._tls else "http"
        return f"{scheme}://localhost:{self.port}" if self._tls else f"{scheme}://127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._socket.getsockname()[1])

    def __enter__(self) -> Self:
        self._accepting.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._closing.set()
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._accepting.join()
        for thread in self._threads:
            thread.join(10)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            if self._tls:
                connection = self._tls.wrap_socket(connection, server_side=True)
            with connection:
                request = self._receive(connection)
                if request is not None:
                    self._act(connection, request)
        except OSError:
            return
        finally:
            connection.close()

    def _receive(self, connection: socket.socket) -> Got | None:
        first = raw = connection.recv(1 << 20)
        while raw and b"\r\n\r\n" not in raw:
            raw += connection.recv(1 << 20)
        if not raw:
            return None
        top, _, body = raw.partition(b"\r\n\r\n")
        length = next((int(line.split(b":")[1]) for line in top.split(b"\r\n") if line.lower().startswith(b"content-length")), 0)
        while len(body) < length:
            body += connection.recv(1 << 20)
        with self._lock:
            self._in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self._in_flight)
            request = Got(first_read=first, head=top.decode(), body=body, at_ns=time.perf_counter_ns(), in_flight=self._in_flight)
            self.got.append(request)
        return request

    def _act(self, connection: socket.socket, request: Got) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            for step in self._script(request):
                if step is RESET:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    return
                if step is HANG:
                    self._closing.wait(30)
                elif isinstance(step, float):
                    self._closing.wait(step)
                else:
                    self.sent_ns.append(time.perf_counter_ns())
                    connection.sendall(step)
        finally:
            with self._lock:
                self._in_flight -= 1
