"""A program of its own: what ends containers when the runner is gone.

What it does: waits until its standard input closes, for whatever reason, then stops and removes every container that has the
runner's token as a label. What it does not do: start, watch or read containers. Rules kept: a container of another token is never
touched; SIGTERM first, SIGKILL after the grace; it exits with 1 when a container could not be removed, and says which.

usage: python -m ledger.backends.keeper URL TOKEN GRACE_SECONDS
"""

import os
import signal
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import docker
from docker.errors import APIError, DockerException, NotFound

LABEL = "ledger.token"
SLACK_S = 30  # how much longer than the grace an answer to `stop` may take


def connect(url: str, timeout_s: int) -> Any:
    """A client of the daemon at ``url``; ``ssh://`` goes through the user's own ssh client."""
    return docker.DockerClient(base_url=url, use_ssh_client=url.startswith("ssh://"), timeout=timeout_s)


def end_all(url: str, token: str, grace_s: float) -> list[str]:
    """Stop and remove every container of ``token`` side by side; what could not be removed, and why."""
    client = connect(url, int(grace_s) + SLACK_S)
    found = client.containers.list(all=True, filters={"label": f"{LABEL}={token}"})
    with ThreadPoolExecutor(max_workers=max(1, len(found))) as pool:
        return [told for told in pool.map(partial(_end, grace_s=grace_s), found) if told]


def _end(container: Any, grace_s: float) -> str | None:
    try:
        # Without a time podman's Docker API kills at once.
        container.stop(timeout=max(1, round(grace_s)))
        container.remove(force=True)
    except NotFound:
        return None
    except APIError as error:
        return f"{container.name}: {error.explanation or error}"
    return None


def main(arguments: Sequence[str]) -> int:
    """Wait for the end of standard input, then end all."""
    url, token, grace = arguments
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the end of the input says it; a Ctrl-C reaches the whole group
    while os.read(0, 4096):
        pass
    try:
        left = end_all(url, token, float(grace))
    except DockerException as error:
        left = [str(error)]
    for told in left:
        sys.stderr.write(f"keeper: {told}\n")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
