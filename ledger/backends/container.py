"""Ranks as containers, through the Docker Engine API of Docker or Podman.

What it does: creates and starts each rank's container on its node's daemon (``DOCKER_HOST`` or the usual socket here, ssh for
another machine), follows its output, reads back how it runs, and ends it. What it does not do: pull, build or tag an image, or
touch a container that it did not make. Rules kept: a name in use is refused, never replaced; the image is run by its id, after
id and labels were compared with the pins; every container has the run's token as a label, and a keeper process for each daemon
removes those when this program is gone.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from secrets import token_hex
from typing import Any

import docker
from attrs import define, field, frozen
from docker.errors import APIError, DockerException, ImageNotFound, NotFound

from ledger.backends.base import Backend, Exit, Observed, RankLaunch, Running, waves
from ledger.backends.keeper import LABEL, connect
from ledger.backends.process import LOCAL_HOSTS, ProcessBackend
from ledger.backends.reach import Reach
from ledger.backends.settings import engine_settings
from ledger.backends.ssh import SSH, SshBackend, at_once
from ledger.core.errors import BackendError, Problem
from ledger.spec.model import Container

GRACE_S = 10.0
TIMEOUT_S = 60
LOG_TRIES = 5


class DockerBackend(Backend):
    """The backend called ``docker``. ``url`` is the daemon of this machine; absent, what the Docker SDK takes."""

    name = "docker"
    holds_containers = True

    def __init__(self, url: str | None = None, ssh: Sequence[str] = SSH) -> None:
        self._url = url
        self._ssh = SshBackend(ssh)
        self._here = ProcessBackend()

    def _start(self, launches: tuple[RankLaunch, ...], pause_s: float) -> Running:
        running = DockerRunning(token=token_hex(16))
        try:
            clients = {host: self._client(host, running) for host in dict.fromkeys(launch.host for launch in launches)}
            for number, wave in enumerate(waves(launches)):
                time.sleep(pause_s if number else 0)
                at_once(lambda launch: running.add(launch, clients[launch.host]), wave)
        except BaseException:
            running.stop()
            raise
        return running

    def _client(self, host: str, running: "DockerRunning") -> Any:
        url = (
            (self._url or docker.utils.parse_host(docker.utils.kwargs_from_env().get("base_url")))
            if _here(host)
            else f"ssh://{host}"
        )
        try:
            client = connect(url, TIMEOUT_S)
            client.version()
        except (DockerException, OSError) as error:
            hint = "start the daemon (`systemctl start docker`, `podman system service`), or set DOCKER_HOST to its socket"
            raise BackendError(Problem(what=f"no container engine answers for {host}", value=str(error), hint=hint)) from error
        running.keep(url)
        return client

    def _free_port(self, ip: str, host: str) -> int:
        return (self._here if _here(host) else self._ssh).free_port(ip, host=host)

    def _reach(self, node: str, host: str) -> Reach:
        return (self._here if _here(host) else self._ssh).reach(node, host)


def _here(host: str) -> bool:
    return host in LOCAL_HOSTS


@frozen(kw_only=True)
class _Rank:
    launch: RankLaunch
    container: Any
    follower: threading.Thread


@define(kw_only=True)
class DockerRunning(Running):
    """Live containers, and the keepers that outlive this program by as long as it takes to remove them."""

    token: str
    ranks: list[_Rank] = field(factory=list)
    keepers: list["subprocess.Popen[bytes]"] = field(factory=list)
    _exits: dict[int, Exit] = field(factory=dict, init=False)

    def keep(self, url: str) -> None:
        """Have a keeper for the daemon at ``url``, before anything is made there."""
        words = [sys.executable, "-m", "ledger.backends.keeper", url, self.token, str(GRACE_S)]
        self.keepers.append(subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True))

    def add(self, launch: RankLaunch, client: Any) -> None:
        """Make and start the container of one rank.

        Raises:
            BackendError: an image that is missing or not as pinned, a name in use, or whatever the engine refuses.
        """
        launch.log.parent.mkdir(parents=True, exist_ok=True)
        launch.log.touch()
        image = _image(launch, client)
        settings = launch.container or Container()
        name = settings.name or f"ledger-{self.token[:8]}-rank-{launch.rank}"
        try:
            made = client.containers.create(
                image.id,
                list(launch.argv),
                name=name,
                environment=dict(launch.env),
                labels={**settings.labels, LABEL: self.token},
                **engine_settings(settings),
            )
            made.start()
        except APIError as error:
            raise BackendError(_refused(launch, name, client, self.token, error)) from error
        follower = threading.Thread(target=_follow, args=(made, launch), daemon=True)
        follower.start()
        self.ranks.append(_Rank(launch=launch, container=made, follower=follower))
        self.ranks.sort(key=lambda rank: rank.launch.rank)

    def exits(self) -> Sequence[Exit]:
        """The containers that have ended, by what the engine says of them."""
        for rank in self.ranks:
            if rank.launch.rank not in self._exits and (ended := _ended(rank)) is not None:
                self._exits[rank.launch.rank] = ended
        return [self._exits[number] for number in sorted(self._exits)]

    def observe(self) -> Sequence[Observed]:
        """argv and the asked-for variables of each container, and how the engine runs it, from its own inspection."""
        return at_once(_observe, self.ranks)

    def stop(self) -> None:
        """End every container, wait for the last of its output, and have the keepers remove it."""
        at_once(_stop, self.ranks)
        for keeper in self.keepers:
            if keeper.stdin is not None:
                keeper.stdin.close()
        left = [_last_words(keeper) for keeper in self.keepers]
        for rank in self.ranks:
            self._exits.setdefault(rank.launch.rank, Exit(rank=rank.launch.rank, status=-15, reason="it was stopped"))
        told = [text for text in left if text]
        if told:
            raise BackendError("containers could not be removed: " + "; ".join(told), hint=f"docker ps -a --filter label={LABEL}")


def _stop(rank: _Rank) -> None:
    """Stop a container and hear it out; whatever goes wrong here, its keeper removes it."""
    try:
        rank.container.stop(timeout=max(1, round(GRACE_S)))
    except (DockerException, OSError):
        return
    rank.follower.join(GRACE_S)


def _last_words(keeper: "subprocess.Popen[bytes]") -> str:
    """What a keeper could not do; empty when it has been asked before."""
    told = b""
    if keeper.stderr is not None and not keeper.stderr.closed:
        told = keeper.stderr.read()
        keeper.stderr.close()
    keeper.wait()
    return told.decode("utf-8", "replace").strip()


def _image(launch: RankLaunch, client: Any) -> Any:
    """The image on the node, compared with its pins."""
    try:
        image = client.images.get(launch.image or "")
    except ImageNotFound as error:
        hint = f"docker pull {launch.image}, or build it there: the runner pulls nothing"
        raise BackendError(Problem(what=f"node {launch.node} has no such image", value=str(launch.image), hint=hint)) from error
    problems = list(_wrong(launch, image))
    if problems:
        raise BackendError(problems)
    return image


def _wrong(launch: RankLaunch, image: Any) -> Iterator[Problem]:
    pinned, found = (launch.image_id or "").removeprefix("sha256:"), str(image.id).removeprefix("sha256:")
    if not found.startswith(pinned):
        hint = "pull the pinned image, or pin what is really meant"
        yield Problem(what=f"image {launch.image} on node {launch.node} has another id than {pinned}", value=found, hint=hint)
    for name, wanted in launch.image_labels.items():
        if image.labels.get(name) != wanted:
            what = f"image {launch.image} on node {launch.node} has another label {name} than {wanted!r}"
            yield Problem(what=what, value=image.labels.get(name, "none"))


def _refused(launch: RankLaunch, name: str, client: Any, token: str, error: APIError) -> Problem:
    """Why the engine made no container; a name in use is told with whose it is."""
    told = str(error.explanation or error)
    try:
        other = client.containers.get(name)
    except (NotFound, APIError):
        other = None
    if other is not None and other.labels.get(LABEL) != token:
        hint = f"it is not this run's and stays as it is: `docker rm {name}` if it is yours, or give the lane another name"
        return Problem(
            what=f"the name {name!r} is in use on node {launch.node}, by a container that is {other.status}", hint=hint
        )
    return Problem(what=f"rank {launch.rank} could not be started on node {launch.node}", value=told)


def _follow(container: Any, launch: RankLaunch) -> None:
    """Append the container's output to the log until it ends."""
    with launch.log.open("ab", buffering=0) as log:
        try:
            for piece in container.logs(stream=True, follow=True, stdout=True, stderr=True):
                log.write(piece)
        except (DockerException, OSError) as error:
            log.write(f"ledger: the output could not be followed any longer: {error}\n".encode())


def _ended(rank: _Rank) -> Exit | None:
    try:
        rank.container.reload()
    except NotFound:
        return Exit(rank=rank.launch.rank, status=255, reason="its container was removed")
    state = rank.container.attrs["State"]
    if state["Running"] or state["Status"] in ("created", "restarting"):
        return None
    status = int(state["ExitCode"])
    reason = "out of memory" if state.get("OOMKilled") else state.get("Error") or None
    return Exit(rank=rank.launch.rank, status=128 - status if 128 < status <= 192 else status, reason=reason)


def _observe(rank: _Rank) -> Observed:
    if (ended := _ended(rank)) is not None:
        return Observed(rank=rank.launch.rank, unseen=str(ended))
    attrs: Mapping[str, Any] = rank.container.attrs
    env = dict(item.partition("=")[::2] for item in attrs["Config"].get("Env") or ())
    host = {name: value for name, value in attrs["HostConfig"].items() if value not in (None, "", 0, False, [], {})}
    return Observed(
        rank=rank.launch.rank,
        argv=tuple(attrs["Config"].get("Cmd") or ()),
        env={name: value for name, value in env.items() if name in rank.launch.env},
        facts={"image_id": str(attrs["Image"]), "container": str(attrs["Id"])},
        engine={"image_id": attrs["Image"], "entrypoint": attrs["Config"].get("Entrypoint") or [], "host_config": host},
    )
