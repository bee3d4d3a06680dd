"""One request against a server of chosen bytes."""

from collections.abc import Callable
from typing import Any

import pytest

from ledger.instruments.base import LoadPlan, Request, Transcript, Wave
from ledger.instruments.http import HttpClient
from ledger.instruments.stream import Reply, decode
from tests.instruments.byte_server import ByteServer, Script


def plan_of(*requests: Request, **more: Any) -> LoadPlan:
    """One wave of ``requests``, with limits short enough for a test."""
    given: dict[str, Any] = {"idle_timeout_s": 10.0, "connect_timeout_s": 5.0, **more}
    return LoadPlan(waves=(Wave(id="w", requests=requests),), **given)


def asked(max_tokens: int = 64, *, exact: bool = False, name: str = "r") -> Request:
    """A small streamed request."""
    return Request(id=name, body={"model": "m", "messages": [], "stream": True}, max_tokens=max_tokens, exact=exact)


Ask = Callable[..., tuple[Reply, Transcript]]


@pytest.fixture
def ask() -> Ask:
    """Runs a script once and gives the decoded reply and the transcript."""

    def run(script: Script, request: Request | None = None, **limits: Any) -> tuple[Reply, Transcript]:
        request = request or asked()
        with ByteServer(script) as server:
            transcript = HttpClient(server.url).execute(plan_of(request, **limits))
        return decode(transcript.records[0], request), transcript

    return run
