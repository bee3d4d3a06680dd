"""Servers that are up: what a site says of them, and which one serves an arm.

What it does: checks the endpoints of a site, and finds the :class:`Target` of an arm. What it does not do: reach one. Rules kept:
a site either starts servers on nodes or measures those that are up; a URL holds no user, password or query, for it stands in the
ledger; an API key is the name of a variable, never the key.
"""

from urllib.parse import urlsplit

from attrs import frozen

from ledger.spec import values
from ledger.spec.bases import Line
from ledger.spec.locate import Path
from ledger.spec.model import ENDPOINT, Endpoint, Site
from ledger.spec.values import Complain

LOOPBACK = ("localhost", "127.0.0.1", "::1")
NEEDS_NODES = ("nodes", "placement", "stand_ins")


@frozen(kw_only=True)
class Target:
    """The server that an arm is measured on: its base URL, and the variable that holds its API key."""

    url: str
    api_key_env: str | None = None

    @property
    def host(self) -> str:
        """The machine's name in the URL."""
        return urlsplit(self.url).hostname or ""

    @property
    def tells_its_key(self) -> bool:
        """Whether the key would cross a network in clear text."""
        return self.api_key_env is not None and self.url.startswith("http://") and self.host not in LOOPBACK


def target(site: Site, lane: str, line: Line) -> Target | None:
    """The server of an arm: that of the nearest arm of ``line`` that has one of its own, else the lane's; None where none is."""
    found = site.endpoints.get(lane)
    if found is None or site.backend != ENDPOINT:
        return None
    url = next((found.arms[arm.id] for arm in reversed(line) if arm.id in found.arms), found.url)
    return Target(url=url, api_key_env=found.api_key_env)


def check_endpoints(site: Site, complain: Complain) -> None:
    """Every mistake in the endpoints of a site."""
    if site.backend != ENDPOINT:
        for name in list(site.endpoints)[:1]:
            hint = f'backend = "{ENDPOINT}", or leave the table out'
            complain(f"the backend {site.backend!r} starts servers itself", path=("endpoints", name), value=name, hint=hint)
        return
    for key in NEEDS_NODES:
        if getattr(site, key):
            hint = "leave it out: where an endpoint runs is not known here"
            complain(f"the backend {ENDPOINT!r} has no {key}", path=(key,), hint=hint)
    if not site.endpoints:
        complain("no endpoints: nothing to measure", path=("endpoints",), hint='[endpoints.<lane>] with url = "http://host:port"')
    for name, endpoint in site.endpoints.items():
        _endpoint(endpoint, ("endpoints", name), complain)


def _endpoint(endpoint: Endpoint, path: Path, complain: Complain) -> None:
    values.name(endpoint.id, path, complain)
    _url(endpoint.url, (*path, "url"), complain)
    if endpoint.api_key_env is not None:
        values.env_name(endpoint.api_key_env, (*path, "api_key_env"), complain)
    for arm, url in endpoint.arms.items():
        _url(url, (*path, "arms", arm), complain)


def _url(text: str, path: Path, complain: Complain) -> None:
    """The base URL of a server; one that may hold a secret is told without it."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port or 1
    except ValueError:
        parts, host, port = urlsplit(""), None, 0
    clean = text.isascii() and text.isprintable() and " " not in text
    if not (clean and host and port and parts.scheme in ("http", "https")):
        hint = "write http://host:port or https://host, with or without a path"
        complain("not the base URL of a server", path=path, value=_without_secrets(text), hint=hint)
    elif parts.username is not None or parts.query or parts.fragment:
        hint = "a key goes into an environment variable: api_key_env"
        complain("a URL with more than a host and a path", path=path, value=_without_secrets(text), hint=hint)


def _without_secrets(text: str) -> str:
    """A URL without user, password, query and fragment, since a message about it reaches the screen."""
    start, slashes, rest = text.partition("?")[0].partition("#")[0].partition("://")
    return f"{start}{slashes}{rest.rpartition('@')[2]}"
