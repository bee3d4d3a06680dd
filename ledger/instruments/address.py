"""Where a server is: its address resolved once, and a plain or TLS connection to it.

What it does: reads a base URL, resolves its host, connects with ``TCP_NODELAY``. What it does not do: HTTP. Rules kept: no proxy
is ever used, whatever the environment says; a host is resolved before anything is measured; a socket is announced before it
connects, so that a cancelled plan can end it.
"""

import socket
import ssl
from collections.abc import Callable
from urllib.parse import urlsplit

from attrs import field, frozen

from ledger.core.errors import BackendError, Problem, UsageError, shorten

Announce = Callable[[socket.socket], None]


@frozen(kw_only=True)
class Server:
    """A resolved server. ``prefix`` is the path of its base URL, without a slash at the end."""

    host: str
    port: int
    prefix: str = ""
    places: tuple[tuple[int, tuple[object, ...]], ...]
    tls: ssl.SSLContext | None = field(default=None, eq=False)

    @property
    def host_header(self) -> str:
        """The value of ``Host``."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        usual = 443 if self.tls else 80
        return name if self.port == usual else f"{name}:{self.port}"

    def path(self, below: str) -> str:
        """The request's path for an endpoint; a version that stands in both parts (``/v1``) is taken once."""
        last = self.prefix.rsplit("/", 1)[-1]
        if last and below.startswith(f"/{last}/"):
            below = below[len(last) + 1 :]
        return self.prefix + below

    def connect(self, timeout_s: float, announce: Announce) -> socket.socket:
        """An open connection, the TLS handshake included.

        Raises:
            OSError: no address answered within ``timeout_s`` each.
        """
        failure: OSError = ConnectionRefusedError("no address")
        for family, address in self.places:
            try:
                return self._connect(family, address, timeout_s, announce)
            except OSError as error:
                failure = error
        raise failure

    def _connect(self, family: int, address: tuple[object, ...], timeout_s: float, announce: Announce) -> socket.socket:
        plain = socket.socket(family, socket.SOCK_STREAM)
        try:
            plain.settimeout(timeout_s)
            announce(plain)
            plain.connect(address)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return plain if self.tls is None else self._secure(plain, self.tls, announce)
        except BaseException:
            plain.close()
            raise

    def _secure(self, plain: socket.socket, tls: ssl.SSLContext, announce: Announce) -> ssl.SSLSocket:
        secure = tls.wrap_socket(plain, server_hostname=self.host, do_handshake_on_connect=False)
        try:
            announce(secure)
            secure.do_handshake()
        except BaseException:
            secure.close()
            raise
        return secure


def locate(base_url: str, *, tls: ssl.SSLContext | None = None) -> Server:
    """The server at ``base_url`` (``http://host:port``, with or without a path); ``tls`` replaces the default context.

    Raises:
        UsageError: not an http or https URL.
        BackendError: the host has no address.
    """
    try:
        parts = urlsplit(base_url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    usable = host and parts.scheme in {"http", "https"} and base_url.isascii() and base_url.isprintable() and " " not in base_url
    if not usable or not host or parts.query or parts.fragment or parts.username:
        raise UsageError(Problem(what="not the base URL of a server", value=shorten(base_url), hint="write http://host:port"))
    secure = parts.scheme == "https"
    port = port or (443 if secure else 80)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise BackendError(f"{host} has no address: {error}") from error
    context = (tls or ssl.create_default_context()) if secure else None
    places = tuple((int(family), tuple(address)) for family, _, _, _, address in found)
    return Server(host=host, port=port, prefix=parts.path.rstrip("/"), places=places, tls=context)
