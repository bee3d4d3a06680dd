"""An OpenAI-style server that is up before the run: it wants a key, says what it is, and tells the key wherever it can.

What it does: serves as :mod:`tests.run.small_server` does, in a thread of the tests' process, to whoever sends the key. What it
does not do: end by itself. Rule kept: what it heard is there for the test to look at.
"""

import argparse
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from typing import Any

from tests.run.small_server import Handler

KEY = "rack-5-key-0123456789abcdef"
PROPS = {"build_info": "b1", "total_slots": 4, "model_path": "/m/w.gguf"}


class Keyed(Handler):
    """One server of a test; each has a class of its own, so that none shares what it heard."""

    models: tuple[str, ...] | None = ("none",)
    facts: dict[str, Any]
    heard: list[tuple[str, str | None]]
    redirect: str | None = None
    refuse_from: int | None = None

    def log_message(self, format: str, *args: object) -> None: ...

    def do_GET(self) -> None:  # noqa: N802 - the name that http.server calls
        if self._let_in():
            found = {"/v1/models": self._models(), "/props": self.facts or None}.get(self.path)
            if found is None:
                self._answer(404, {"error": f"no {self.path} for {KEY}"})
            else:
                self._answer(200, found)

    def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
        if self._let_in():
            if self.path == "/v1/chat/completions":
                super().do_POST()
            else:
                self._answer(404, {"error": f"no {self.path} for {KEY}"})

    def _let_in(self) -> bool:
        sent = self.headers.get("Authorization")
        self.heard.append((self.path, sent))
        if self.refuse_from is not None and len(self.heard) > self.refuse_from:
            self._answer(503, {"error": "going away"})
        elif self.redirect is not None:
            self.send_response(307)
            self.send_header("Location", self.redirect + self.path)
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif sent != f"Bearer {KEY}":
            self._answer(401, {"error": f"the key is wrong: {sent}"})
        else:
            return True
        return False

    def _models(self) -> dict[str, Any] | None:
        return None if self.models is None else {"data": [{"id": name, "owned_by": f"me {KEY}"} for name in self.models]}

    def _answer(self, status: int, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("X-Seen", KEY)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def serving(**said: Any) -> Iterator[tuple[str, type[Keyed]]]:
    """A server whose class has the attributes ``said``; its URL, and the class."""
    options = argparse.Namespace(mode="ok", after=0, delay=0.01, says=f"said {KEY}", cache="")
    kind = type("Keyed", (Keyed,), {"facts": dict(PROPS), "heard": [], "options": options, **said})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", kind
    finally:
        server.shutdown()
        server.server_close()
