"""The docker backend against a real rootful Podman behind its Docker-compatible socket, with an image built here."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from attrs import evolve, frozen

from ledger.backends.base import Backend, RankLaunch
from ledger.backends.container import DockerBackend
from ledger.backends.process import ProcessBackend
from ledger.backends.settings import engine_settings
from ledger.core.errors import BackendError
from ledger.spec.model import Container
from tests.backends.contract import wait_for

NEEDED = ("podman", "runc", "cc")
missing = [name for name in NEEDED if shutil.which(name) is None]
needs_podman = pytest.mark.skipif(
    bool(missing) or os.geteuid() != 0, reason=f"needs root and podman, runc, cc; missing: {', '.join(missing) or 'root'}"
)
IMAGE = "localhost/ledger-test:1"
# In a machine that may not raise its limits, the defaults of Podman cannot be set; runc copes with cgroups of both kinds.
CONFIG = """[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
"""
PROGRAM = """
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void end(int number) { (void)number; printf("asked to end\\n"); fflush(stdout); _exit(0); }
int main(int count, char **words) {
  if (count > 1 && words[1][0] == 'x') { printf("bad flag\\n"); return atoi(words[1] + 1); }
  signal(SIGTERM, end);
  printf("up %s\\n", getenv("A") ? getenv("A") : "");
  fflush(stdout);
  for (;;) pause();
}
"""


@frozen(kw_only=True)
class Podman:
    """A Podman with storage of its own: the socket's URL, and its command line."""

    url: str
    words: tuple[str, ...]
    env: dict[str, str]

    def run(self, *words: str) -> str:
        """Run podman and return what it printed."""
        return subprocess.run([*self.words, *words], env=self.env, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


@pytest.fixture(scope="module")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    folder = tmp_path_factory.mktemp("podman")
    (folder / "containers.conf").write_text(CONFIG)
    (folder / "init.c").write_text(PROGRAM)
    (folder / "Dockerfile").write_text('FROM scratch\nLABEL team=x\nCOPY init /init\nENTRYPOINT ["/init"]\n')
    subprocess.run(["cc", "-static", "-O", "-o", str(folder / "init"), str(folder / "init.c")], check=True)
    words = ("podman", "--root", str(folder / "root"), "--runroot", str(folder / "run"))
    made = Podman(
        url=f"unix://{folder}/podman.sock", words=words, env={**os.environ, "CONTAINERS_CONF": str(folder / "containers.conf")}
    )
    made.run("build", "-q", "-t", IMAGE, str(folder))
    service = subprocess.Popen([*words, "system", "service", "--time=0", made.url], env=made.env, stderr=subprocess.DEVNULL)
    assert wait_for((folder / "podman.sock").exists)
    yield made
    service.terminate()
    service.wait()
    made.run("rm", "-af")
    made.run("rmi", "-af")


@pytest.fixture
def backend(podman: Podman) -> Iterator[Backend]:
    before = podman.run("ps", "-aq")
    yield DockerBackend(podman.url)
    assert podman.run("ps", "-aq") == before, "a container was left behind"


@pytest.fixture
def launch(tmp_path: Path) -> RankLaunch:
    return RankLaunch(
        rank=0,
        node="here",
        host="localhost",
        argv=("serve", "--a b", ""),
        env={"A": "it's $A"},
        log=tmp_path / "0.log",
        image=IMAGE,
        container=Container(network="none"),
    )


def text_of(launch: RankLaunch) -> Callable[[], str]:
    return lambda: launch.log.read_text() if launch.log.exists() else ""


@needs_podman
def test_a_container_boots_is_inspected_and_is_stopped(backend: Backend, launch: RankLaunch, podman: Podman) -> None:
    wanted = Container(network="none", shm_size="64m", ulimits={"nofile": "512:512", "nproc": "512"}, cap_add=("IPC_LOCK",))
    launch = evolve(
        launch,
        container=wanted,
        image_labels={"team": "x"},
        image_id=podman.run("image", "inspect", IMAGE, "--format", "{{.Id}}")[:12],
    )
    with backend.start([launch]) as running:
        assert wait_for(lambda: "up it's $A" in text_of(launch)())
        (seen,) = running.observe()
        assert (seen.argv, dict(seen.env)) == (launch.argv, dict(launch.env))
        host = seen.engine["host_config"]
        assert (host["NetworkMode"], host["ShmSize"]) == ("none", 64 * 2**20)
        assert json.dumps(seen.engine)
        assert running.exits() == []
    assert text_of(launch)().endswith("asked to end\n")
    running.stop()


@needs_podman
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"image": "localhost/nowhere:1"}, "no such image"),
        ({"image_id": "sha256:0123456789ab"}, "another id than 0123456789ab"),
        ({"image_labels": {"team": "y"}}, "another label team than 'y'"),
        ({"container": Container(network="none", restart="always")}, "a restart policy"),
        ({"container": Container(network="none", cap_add=("NO_SUCH",))}, "could not be started"),
    ],
)
def test_what_cannot_be_started_is_told(backend: Backend, launch: RankLaunch, change: dict[str, object], told: str) -> None:
    with pytest.raises(BackendError) as caught:
        backend.start([evolve(launch, **change)])
    assert told in str(caught.value)


@needs_podman
def test_a_name_in_use_is_refused_and_its_owner_untouched(backend: Backend, launch: RankLaunch, podman: Podman) -> None:
    other = podman.run("run", "-d", "--network", "none", "--name", "taken", IMAGE)
    try:
        with pytest.raises(BackendError) as caught:
            backend.start([evolve(launch, container=Container(name="taken", network="none"))])
        assert "the name 'taken' is in use" in str(caught.value)
        assert podman.run("inspect", "taken", "--format", "{{.Id}} {{.State.Running}}") == f"{other} true"
    finally:
        podman.run("rm", "-f", "-t", "0", "taken")


@needs_podman
def test_a_container_that_dies_at_once_tells_its_status_and_output(backend: Backend, launch: RankLaunch) -> None:
    with backend.start([evolve(launch, argv=("x7",))]) as running:
        assert wait_for(lambda: [(end.rank, end.status) for end in running.exits()] == [(0, 7)])
        assert running.observe()[0].unseen
    assert "bad flag" in text_of(launch)()


@needs_podman
def test_the_ranks_before_one_that_cannot_start_are_removed(backend: Backend, launch: RankLaunch, tmp_path: Path) -> None:
    worker = evolve(launch, rank=1, log=tmp_path / "1.log")
    with pytest.raises(BackendError):
        backend.start([evolve(launch, image="localhost/nowhere:1"), worker])


RUNNER = """
import sys, time
from pathlib import Path
from ledger.backends.base import RankLaunch
from ledger.backends.container import DockerBackend
from ledger.spec.model import Container
launch = RankLaunch(rank=0, node="here", host="localhost", argv=(), log=Path(sys.argv[2]), image=sys.argv[3],
                    container=Container(network="none"))
running = DockerBackend(sys.argv[1]).start([launch])
print(running.observe()[0].facts["container"], flush=True)
time.sleep(600)
"""


@needs_podman
def test_no_container_outlives_its_runner(podman: Podman, tmp_path: Path) -> None:
    words = [sys.executable, "-c", RUNNER, podman.url, str(tmp_path / "log"), IMAGE]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as runner:
        assert runner.stdout is not None
        made = runner.stdout.readline().strip()
        assert made in podman.run("ps", "-aq", "--no-trunc")
        runner.kill()
    assert wait_for(lambda: made not in podman.run("ps", "-aq", "--no-trunc"))


def test_an_engine_that_does_not_answer_is_told_with_the_way_out(launch: RankLaunch, tmp_path: Path) -> None:
    with pytest.raises(BackendError) as caught:
        DockerBackend(f"unix://{tmp_path}/nowhere.sock").start([launch])
    assert "DOCKER_HOST" in str(caught.value)


def test_a_backend_of_programs_refuses_a_container(launch: RankLaunch) -> None:
    with pytest.raises(BackendError) as caught:
        ProcessBackend().start([launch])
    assert "run in a container" in str(caught.value)


def test_every_setting_reaches_the_engine() -> None:
    wanted = Container(
        network="host",
        gpus="device=0,1",
        devices=("/dev/x:/dev/x:rwm",),
        ulimits={"memlock": "-1:-1", "core": "0"},
        memory="112g",
        memory_swap="112g",
        mounts=("type=bind,src=/a,dst=/b,readonly",),
        device_cgroup_rules=("c 226:* rw",),
        volumes=("/m:/models:ro",),
        restart="no",
        init=True,
    )
    found = engine_settings(wanted)
    assert found["network_mode"] == "host"
    assert found["ulimits"] == [{"Name": "memlock", "Soft": -1, "Hard": -1}, {"Name": "core", "Soft": 0, "Hard": 0}]
    assert found["device_requests"][0]["DeviceIDs"] == ["0", "1"]
    assert (found["mounts"][0]["Source"], found["mounts"][0]["Target"], found["mounts"][0]["ReadOnly"]) == ("/a", "/b", True)
    assert (found["mem_limit"], found["memswap_limit"], found["volumes"]) == ("112g", "112g", ["/m:/models:ro"])
    assert (found["device_cgroup_rules"], found["devices"], found["init"]) == (["c 226:* rw"], ["/dev/x:/dev/x:rwm"], True)


@pytest.mark.parametrize(
    "wrong",
    [{"gpus": "some"}, {"ulimits": {"core": "big"}}, {"mounts": ("type=bind,source=/a",)}, {"mounts": ("target=/a,odd=1",)}],
)
def test_a_setting_that_cannot_be_said_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(BackendError):
        engine_settings(Container(**wrong))  # type: ignore[arg-type]  # each is a field with a value of its type
