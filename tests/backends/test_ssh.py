"""The ssh backend against real sshds: the contract, four hosts, and every way in which a connection or a rank can end."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger.backends.base import Backend, RankLaunch
from ledger.backends.ssh import SshBackend, SshReach, SshRunning
from ledger.backends.sshline import Times
from ledger.core.errors import BackendError
from tests.backends.contract import SLEEPER, BackendContract, alive, wait_for
from tests.backends.sshd import Rack, free_port, loopback, needs_rack, needs_sshd, rack

QUICK = Times(beat_s=0.3, retry_s=0.2, lease_s=6, grace_s=0.5)
FOLDERS = Path("/tmp")


@pytest.fixture(scope="module")
def ssh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ...]]:
    with loopback(tmp_path_factory.mktemp("sshd"), free_port()) as words:
        yield words


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    with rack(tmp_path_factory.mktemp("rack"), 4) as made:
        yield made


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    before = set(FOLDERS.glob("ledger-rank-*"))
    yield
    assert wait_for(lambda: set(FOLDERS.glob("ledger-rank-*")) <= before), "a warden was left behind"


@needs_sshd
class TestSsh(BackendContract):
    @pytest.fixture
    def backend(self, ssh: tuple[str, ...]) -> Backend:
        return SshBackend(ssh, QUICK)


@needs_sshd
def test_a_command_gets_its_words_input_and_variables(ssh: tuple[str, ...]) -> None:
    reach = SshReach("near", "localhost", ssh)
    program = "import os, sys; print(sys.argv[1:], sys.stdin.read(), os.environ['X']); sys.exit(3)"
    odd = "a 'b' \"c\" $HOME\n`id` é"
    ran = reach.run(["python3", "-c", program, odd, ""], stdin=b"in", env={"X": odd})
    assert (ran.status, ran.out.decode(), ran.err) == (3, f"{[odd, '']!r} in {odd}\n", b"")


@needs_sshd
@pytest.mark.parametrize(
    ("host", "argv", "told"),
    [
        ("localhost", ["sleep", "9"], "did not end within"),
        ("localhost", ["/nowhere"], "cannot run /nowhere"),
        ("nowhere.invalid", ["true"], "cannot be reached"),
    ],
)
def test_what_could_not_be_done_is_a_value(ssh: tuple[str, ...], host: str, argv: list[str], told: str) -> None:
    ran = SshReach("far", host, ssh).run(argv, timeout_s=1)
    assert ran.status is None
    assert told in ran.told


def test_the_client_has_the_users_own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent's socket, a home folder and a PATH are what makes it the user's own ssh."""
    fake = tmp_path / "ssh"
    fake.write_text('#!/bin/sh\necho "$SSH_AUTH_SOCK" > "$0.agent"\necho up > "$0.held"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    SshReach("far", "far").run(["true"])
    assert (tmp_path / "ssh.agent").read_text() == "/run/agent\n"


@needs_sshd
def test_an_exit_of_255_is_the_programs_own_where_the_connection_held(ssh: tuple[str, ...]) -> None:
    assert SshReach("near", "localhost", ssh).run(["sh", "-c", "exit 255"]).told.startswith("exit status 255")


@needs_sshd
def test_files_are_read_and_hashed_over_ssh(ssh: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "a b"
    path.write_bytes(b"x" * 10)
    reach = SshReach("near", "localhost", ssh)
    assert reach.read(str(path), limit=3).data == b"xxx"
    assert reach.status(str(path)).size == 10
    held = reach.hold(["sh", "-c", "read line; echo got $line; echo ."])
    assert held.ask("word").text == "got word\n"
    assert held.stop().ok


@pytest.mark.parametrize("host", ["-oProxyCommand=touch /tmp/x", "a b", ""])
def test_a_host_that_ssh_takes_for_something_else_is_refused(host: str) -> None:
    with pytest.raises(BackendError):
        SshReach("far", host)


def launches(four: Rack, tmp_path: Path, *argv: str) -> list[RankLaunch]:
    return [
        RankLaunch(
            rank=number,
            node=host.name,
            host=host.name,
            argv=argv or SLEEPER,
            env={"R": str(number)},
            log=tmp_path / f"{number}.log",
        )
        for number, host in enumerate(four.hosts)
    ]


def pids(running: SshRunning) -> list[int]:
    return [int(seen.facts["pid"]) for seen in running.observe()]


def start(four: Rack, tmp_path: Path, *argv: str, times: Times = QUICK) -> SshRunning:
    running = SshBackend(four.ssh, times).start(launches(four, tmp_path, *argv))
    assert isinstance(running, SshRunning)
    return running


@needs_rack
def test_four_ranks_boot_workers_first_and_leave_nothing(four: Rack, tmp_path: Path) -> None:
    stamp = "import time, os; print(time.time_ns(), os.environ['R'], flush=True); time.sleep(600)"
    with SshBackend(four.ssh, QUICK).start(launches(four, tmp_path, sys.executable, "-c", stamp), pause_s=1.0) as running:
        assert isinstance(running, SshRunning)
        logs = [tmp_path / f"{number}.log" for number in range(4)]
        assert wait_for(lambda: all(log.read_text().endswith("\n") for log in logs))
        started = [int(log.read_text().split()[0]) for log in logs]
        assert started[0] > max(started[1:])
        assert [seen.env for seen in running.observe()] == [{"R": str(number)} for number in range(4)]
        live = pids(running)
    assert not [pid for pid in live if alive(pid)]


@needs_rack
def test_a_host_that_is_unreachable_starts_nothing_and_is_named(four: Rack, tmp_path: Path) -> None:
    four.hosts[2].down()
    try:
        assert wait_for(lambda: not (four.hosts[2].folder / "node2.pid").exists())
        with pytest.raises(BackendError) as caught:
            start(four, tmp_path)
    finally:
        four.hosts[2].up()
    assert ["node2" in problem.what for problem in caught.value.problems] == [True]
    assert "refused" in str(caught.value)
    assert caught.value.problems[0].hint


@needs_rack
def test_a_rank_that_dies_is_told_and_the_others_are_ended(four: Rack, tmp_path: Path) -> None:
    with start(four, tmp_path) as running:
        live = pids(running)
        os.kill(live[3], signal.SIGKILL)
        assert wait_for(lambda: [(end.rank, end.status) for end in running.exits()] == [(3, -9)])
    assert not [pid for pid in live if alive(pid)]


COUNT = "i=0; while :; do i=$((i+1)); echo line $i; sleep 0.02; done"


@needs_rack
def test_a_connection_that_drops_comes_back_with_every_line_of_output(four: Rack, tmp_path: Path) -> None:
    log = tmp_path / "1.log"
    with start(four, tmp_path, "sh", "-c", COUNT) as running:
        line = running.lines[1]
        assert wait_for(lambda: b"line 5\n" in log.read_bytes())
        client = line._process
        assert client is not None
        client.kill()
        assert wait_for(lambda: line.drops == 1)
        size = log.stat().st_size
        assert wait_for(lambda: log.stat().st_size > size + 100)
        assert running.exits() == []
    lines = log.read_text().splitlines()
    assert lines[:-1] == [f"line {number}" for number in range(1, len(lines))]


@needs_rack
def test_a_host_cut_off_ends_its_rank_by_itself_and_is_told_as_lost(four: Rack, tmp_path: Path) -> None:
    times = Times(beat_s=0.3, retry_s=0.2, lease_s=2, grace_s=0.5, connect_s=10)
    with start(four, tmp_path, times=times) as running:
        lost = pids(running)[1]
        four.cut(1)
        try:
            assert wait_for(lambda: not alive(lost))
            client = running.lines[1]._process
            assert client is not None
            client.kill()
            assert wait_for(lambda: [end.rank for end in running.exits()] == [1])
            assert "node1 could not be reached" in str(running.exits()[0])
        finally:
            four.mend(1)


RUNNER = """
import sys, time
from pathlib import Path
from ledger.backends.base import RankLaunch
from ledger.backends.ssh import SshBackend
launch = RankLaunch(rank=0, node="near", host="localhost", argv=("sleep", "600"), log=Path(sys.argv[1]))
running = SshBackend(sys.argv[2:]).start([launch])
print(running.observe()[0].facts["pid"], flush=True)
time.sleep(600)
"""


@needs_sshd
def test_no_rank_outlives_its_runner(ssh: tuple[str, ...], tmp_path: Path) -> None:
    runner = subprocess.Popen([sys.executable, "-c", RUNNER, str(tmp_path / "log"), *ssh], stdout=subprocess.PIPE, text=True)
    assert runner.stdout is not None
    rank = int(runner.stdout.readline())
    with runner:
        assert alive(rank)
        runner.kill()
    assert wait_for(lambda: not alive(rank))


@needs_sshd
def test_a_port_is_free_on_the_node(ssh: tuple[str, ...]) -> None:
    backend = SshBackend(ssh)
    assert 1024 <= backend.free_port("127.0.0.1", host="localhost") <= 65535
    with pytest.raises(BackendError):
        backend.free_port("192.0.2.1", host="localhost")


FAKE = """#!/bin/sh
for word; do last=$word; shift; case "$word" in n7) sleep 3;; esac; done
exec sh -c "$last"
"""


def test_thirty_two_nodes_start_and_end_side_by_side(tmp_path: Path) -> None:
    """A double of the ssh client that runs the command here; one node takes 3 s to answer, and adds no more than that."""
    fake = tmp_path / "ssh"
    fake.write_text(FAKE)
    fake.chmod(0o755)
    many = [RankLaunch(rank=n, node=f"n{n}", host=f"n{n}", argv=("sleep", "600"), log=tmp_path / f"{n}.log") for n in range(32)]
    begun = time.monotonic()
    with SshBackend([str(fake)], Times(connect_s=60)).start(many) as running:
        assert isinstance(running, SshRunning)
        live = pids(running)
        opened = [line.opened_at for line in running.lines]
    assert len(live) == 32
    assert not [pid for pid in live if alive(pid)]
    before_the_slow_one = [at for at in opened if at < opened[7]]
    assert len(before_the_slow_one) >= 20, (time.monotonic() - begun, opened)
