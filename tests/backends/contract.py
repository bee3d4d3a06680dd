"""What every backend must do; a test class for a backend inherits this and gives the fixtures ``backend`` and ``node``.

A backend starts what it is given, tells of its end, reads it back, and leaves nothing behind.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ledger.backends.base import Backend, Exit, RankLaunch

WAIT_S = 20.0
SLEEPER = (sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)")


def wait_for(condition: Callable[[], bool]) -> bool:
    """Poll until the condition holds, for at most ``WAIT_S``."""
    limit = time.monotonic() + WAIT_S
    while time.monotonic() < limit:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def alive(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class BackendContract:
    """The contract; subclasses provide ``backend``."""

    @pytest.fixture
    def backend(self) -> Iterator[Backend]:
        raise NotImplementedError

    def launch(self, tmp_path: Path, *argv: str, rank: int = 0, env: dict[str, str] | None = None) -> RankLaunch:
        log = tmp_path / f"rank-{rank}.log"
        return RankLaunch(rank=rank, node="here", host="localhost", argv=argv, env=env or {}, log=log)

    def test_a_rank_runs_and_its_output_reaches_its_log(self, backend: Backend, tmp_path: Path) -> None:
        with backend.start([self.launch(tmp_path, *SLEEPER)]) as running:
            assert wait_for(lambda: "up" in (tmp_path / "rank-0.log").read_text())
            assert running.exits() == []

    def test_argv_and_env_are_read_back_as_given(self, backend: Backend, tmp_path: Path) -> None:
        odd = 'a "quoted" $word {"json": [1, 2]} é'
        launch = self.launch(tmp_path, *SLEEPER, odd, "", env={"ODD": odd, "EMPTY": ""})
        with backend.start([launch]) as running:
            assert wait_for(lambda: running.observe()[0].argv == launch.argv)
            assert dict(running.observe()[0].env) == dict(launch.env)

    def test_a_variable_of_the_caller_does_not_leak(
        self, backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("LEDGER_TEST_LEAK", "1")
        code = "import os; print('leak' if 'LEDGER_TEST_LEAK' in os.environ else 'clean', flush=True)"
        with backend.start([self.launch(tmp_path, sys.executable, "-c", code)]) as running:
            assert wait_for(lambda: bool(running.exits()))
        assert "clean" in (tmp_path / "rank-0.log").read_text()

    @pytest.mark.parametrize(("code", "status"), [("raise SystemExit(0)", 0), ("raise SystemExit(7)", 7)])
    def test_an_exit_status_is_told(self, backend: Backend, tmp_path: Path, code: str, status: int) -> None:
        with backend.start([self.launch(tmp_path, sys.executable, "-c", code)]) as running:
            assert wait_for(lambda: running.exits() == [Exit(rank=0, status=status)])

    def test_the_end_by_a_signal_is_told(self, backend: Backend, tmp_path: Path) -> None:
        with backend.start([self.launch(tmp_path, sys.executable, "-c", "import os; os.kill(os.getpid(), 9)")]) as running:
            assert wait_for(lambda: running.exits() == [Exit(rank=0, status=-9)])

    def test_a_rank_that_has_ended_is_unseen_not_empty(self, backend: Backend, tmp_path: Path) -> None:
        with backend.start([self.launch(tmp_path, sys.executable, "-c", "")]) as running:
            assert wait_for(lambda: bool(running.exits()))
            (seen,) = running.observe()
            assert seen.argv is None
            assert seen.unseen

    def test_a_program_that_is_not_there_ends_with_127_and_says_so(self, backend: Backend, tmp_path: Path) -> None:
        with backend.start([self.launch(tmp_path, "/nowhere/engine")]) as running:
            assert wait_for(lambda: running.exits() == [Exit(rank=0, status=127)])
        assert "/nowhere/engine" in (tmp_path / "rank-0.log").read_text()

    def test_stop_ends_every_descendant_and_can_be_called_twice(self, backend: Backend, tmp_path: Path) -> None:
        script = "sleep 600 & setsid sleep 600 & (sleep 600 & echo $! ) & echo $$; wait"
        with backend.start([self.launch(tmp_path, "/bin/sh", "-c", script)]) as running:
            assert wait_for(lambda: len((tmp_path / "rank-0.log").read_text().split()) == 2)
            pids = [int(word) for word in (tmp_path / "rank-0.log").read_text().split()]
            running.stop()
            running.stop()
        assert not [pid for pid in pids if alive(pid)]

    def test_a_rank_that_ignores_sigterm_is_killed(self, backend: Backend, tmp_path: Path) -> None:
        code = "import signal, os, time; signal.signal(15, signal.SIG_IGN); print(os.getpid(), flush=True); time.sleep(600)"
        with backend.start([self.launch(tmp_path, sys.executable, "-c", code)]) as running:
            assert wait_for(lambda: (tmp_path / "rank-0.log").read_text().strip().isdigit())
            running.stop()
        assert not alive(int((tmp_path / "rank-0.log").read_text()))

    def test_several_ranks_are_started_and_stopped_together(self, backend: Backend, tmp_path: Path) -> None:
        with backend.start([self.launch(tmp_path, *SLEEPER, rank=rank) for rank in range(4)]) as running:
            assert wait_for(lambda: all("up" in (tmp_path / f"rank-{rank}.log").read_text() for rank in range(4)))
            assert [seen.rank for seen in running.observe()] == [0, 1, 2, 3]
        assert len(running.exits()) == 4

    def test_a_free_port_can_be_listened_on(self, backend: Backend) -> None:
        assert 1024 <= backend.free_port("127.0.0.1") <= 65535


def own_children() -> set[int]:
    """The live processes whose parent is this one."""
    return {
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and alive(int(entry.name)) and _parent(entry) == os.getpid()
    }


def _parent(entry: Path) -> int:
    try:
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return 0
