"""The process backend: the contract, and what happens when the runner itself dies."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger.backends import process, registry
from ledger.backends.base import Backend, RankLaunch
from ledger.core.errors import BackendError, UsageError
from tests.backends.contract import SLEEPER, BackendContract, alive, own_children, wait_for

RUNNER = """
import sys, time
from pathlib import Path
from ledger.backends.base import RankLaunch
from ledger.backends.process import ProcessBackend
log = Path(sys.argv[1])
launch = RankLaunch(rank=0, node="here", host="localhost", argv=tuple(sys.argv[2:]), log=log)
running = ProcessBackend().start([launch])
print(running.ranks[0].pid, running.ranks[0].warden.pid, flush=True)
time.sleep(600)
"""


class TestProcess(BackendContract):
    @pytest.fixture
    def backend(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[Backend]:
        monkeypatch.setattr(process, "GRACE_S", 0.5)
        before = own_children()
        yield registry.get("process")
        assert own_children() <= before, "a warden was left behind"


def start_runner(tmp_path: Path, *argv: str) -> tuple[subprocess.Popen[str], int, int]:
    runner = subprocess.Popen([sys.executable, "-c", RUNNER, str(tmp_path / "log"), *argv], stdout=subprocess.PIPE, text=True)
    assert runner.stdout is not None
    server, warden = map(int, runner.stdout.readline().split())
    return runner, server, warden


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_server_outlives_its_runner(tmp_path: Path, number: signal.Signals) -> None:
    runner, server, warden = start_runner(tmp_path, *SLEEPER)
    with runner:
        assert wait_for(lambda: alive(server))
        runner.send_signal(number)
        runner.wait()
    assert wait_for(lambda: not alive(server) and not alive(warden))


def test_no_server_outlives_its_warden(tmp_path: Path) -> None:
    runner, server, warden = start_runner(tmp_path, *SLEEPER)
    with runner:
        os.kill(warden, signal.SIGKILL)
        assert wait_for(lambda: not alive(server))
        runner.kill()


def test_another_machine_is_refused_with_the_way_out(tmp_path: Path) -> None:
    launch = RankLaunch(rank=0, node="far", host="user@far", argv=("true",), log=tmp_path / "log")
    with pytest.raises(BackendError) as caught:
        registry.get("process").start([launch])
    assert "'far' is not this machine" in str(caught.value)
    assert caught.value.problems[0].hint


def test_the_ranks_before_one_that_cannot_start_are_ended(tmp_path: Path) -> None:
    before = own_children()
    good = RankLaunch(rank=0, node="here", host="localhost", argv=SLEEPER, log=tmp_path / "log")
    bad = RankLaunch(rank=1, node="far", host="user@far", argv=SLEEPER, log=tmp_path / "log")
    with pytest.raises(BackendError):
        registry.get("process").start([good, bad])
    assert own_children() <= before


def test_an_unknown_backend_names_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        registry.get("proces")
    assert "did you mean 'process'" in str(caught.value)
