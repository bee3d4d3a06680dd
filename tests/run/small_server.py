"""A small OpenAI-style server with chosen faults, for sessions that need no real engine.

What it does: streams as many words as were asked for, with usage, over real sockets, and fails as it is told. What it does not
do: know a model. Rule kept: the standard library alone, so that it starts at once.

usage: small_server.py --port PORT [--mode MODE] [--after N] [--delay SECONDS] [--cache FOLDER]
A server that finds no file in FOLDER leaves one there and is three times slower until it ends, as one that still compiles.
modes: ok, never (listens and answers 503), exits (at once, status 3), dies (on request N), errors (500 from request N),
hangs (in the stream of request N), drops (the environment variable KEPT, by starting itself again without it),
launches (another process that serves, as a wrapper does), launches-without-env (the same, without KEPT), launches-without-args
(the same, without --delay), echoes (the environment variable MY_API_KEY in its log, headers and replies), faults (tells the
kernel's log the variable FAULT at request N); ``--says`` is the word that it says, and with
``--says-by FILE`` a number stands behind it, one more for each boot that counts in FILE
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    options: argparse.Namespace
    seen = 0
    lock = threading.Lock()

    def log_message(self, format: str, *args: object) -> None:
        print(format % args, flush=True)

    def do_GET(self) -> None:
        self.send_error(404)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with Handler.lock:
            Handler.seen += 1
            number = Handler.seen
        mode = self.options.mode if number >= self.options.after else "ok"
        if mode == "never":
            self.send_error(503, "loading")
        elif mode == "errors":
            self.send_error(500, "out of memory")
        elif mode == "faults" and number == self.options.after:
            Path("/dev/kmsg").write_text(f"<3>{os.environ['FAULT']}\n")
            self.stream(body, hang=False)
        elif mode == "dies":
            print("CUDA error: out of memory", flush=True)
            os._exit(9)
        else:
            self.stream(body, hang=mode == "hangs")

    def stream(self, body: dict, *, hang: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        if self.options.mode == "echoes":
            key = os.environ["MY_API_KEY"]
            self.send_header("X-Api-Key", key)
            self.send_header("X-Told", f"Bearer {key}")
            print(f"key {key}, http://me:{key}@proxy/?api_key={key}", flush=True)
        self.end_headers()
        tokens = int(body["max_tokens"])
        for _ in range(tokens):
            time.sleep(self.options.delay)
            said = os.environ["MY_API_KEY"] if self.options.mode == "echoes" else f" {self.options.says}"
            self.event({"choices": [{"index": 0, "delta": {"content": said}}]})
            if hang:
                time.sleep(600)
        self.event({"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]})
        prompt = sum(len(message["content"].split()) for message in body["messages"])
        usage = {"prompt_tokens": prompt, "completion_tokens": tokens, "prompt_tokens_details": {"cached_tokens": 0}}
        self.event({"choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def event(self, value: dict) -> None:
        self.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n")
        self.wfile.flush()


def launch(mode: str) -> None:
    env = {name: value for name, value in os.environ.items() if name != "KEPT" or mode != "launches-without-env"}
    argv = [word if word != mode else "ok" for word in sys.argv]
    if mode == "launches-without-args":
        at = argv.index("--delay")
        del argv[at : at + 2]
    sys.exit(subprocess.run([sys.executable, *argv], env=env, check=False).returncode)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--mode", default="ok")
    parser.add_argument("--after", type=int, default=0)
    parser.add_argument("--delay", type=float, default=0.01)
    parser.add_argument("--tag", default="")
    parser.add_argument("--says", default="word")
    parser.add_argument("--says-by", default="")
    parser.add_argument("--cache", default="")
    options = parser.parse_args()
    if options.mode == "exits":
        print("cannot load the model: no such file", flush=True)
        sys.exit(3)
    if options.mode == "drops" and "KEPT" in os.environ:
        kept = {name: value for name, value in os.environ.items() if name != "KEPT"}
        os.execve(sys.executable, [sys.executable, *sys.argv], kept)
    if options.mode.startswith("launches"):
        launch(options.mode)
    if options.cache and not any(Path(options.cache).iterdir()):
        Path(options.cache, "kernel").write_bytes(b"compiled")
        options.delay *= 3
    if options.says_by:
        boots = Path(options.says_by)
        boots.write_text(str(int(boots.read_text() or 0) + 1 if boots.exists() else 1))
        options.says += boots.read_text()
    Handler.options = options
    ThreadingHTTPServer(("127.0.0.1", options.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
