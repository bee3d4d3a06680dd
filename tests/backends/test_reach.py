"""What a reach gives, for this machine and for a node that is reached by commands alone."""

import hashlib
import os
import sys
from pathlib import Path

import pytest

from ledger.backends.process import ProcessBackend, environment
from ledger.backends.reach import Held, LocalReach, Ran, Reach
from ledger.core.errors import BackendError


class ByCommands(Reach):
    """As a node behind ssh is: commands alone, so that every file is read with coreutils."""

    def __init__(self) -> None:
        super().__init__("far", "far")
        self._local = LocalReach("far")

    def _run(self, argv: tuple[str, ...], *, stdin: bytes, env: dict[str, str], timeout_s: float, limit: int) -> Ran:
        return self._local.run(argv, stdin=stdin, env={"PATH": os.environ["PATH"], **env}, timeout_s=timeout_s, limit=limit)

    def _hold(self, argv: tuple[str, ...]) -> Held:
        return self._local.hold(argv)


@pytest.fixture(params=["local", "by commands"])
def reach(request: pytest.FixtureRequest) -> Reach:
    return LocalReach("here", environment) if request.param == "local" else ByCommands()


def ignore(done: int) -> None:
    """Hear how far a digest is, and do nothing."""


def test_a_file_is_read_hashed_and_known_by_its_status(reach: Reach, tmp_path: Path) -> None:
    path = tmp_path / "with space\n and é"
    path.write_bytes(b"weights" * 1000)
    assert reach.read(str(path), limit=7).data == b"weights"
    assert reach.sha256(str(path), ignore).text == hashlib.sha256(b"weights" * 1000).hexdigest()
    before = reach.status(str(path))
    assert (before.size, before.inode, before.missing) == (7000, path.stat().st_ino, None)
    os.utime(path, ns=(1, 1_000_000_001))
    assert reach.status(str(path)).mtime != before.mtime


@pytest.mark.parametrize("kind", ["gone", "folder"])
def test_what_is_no_file_is_a_value_with_its_reason(reach: Reach, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    if kind == "folder":
        path.mkdir()
    assert reach.status(str(path)).missing
    assert reach.read(str(path)).unread
    assert reach.sha256(str(path), ignore).unread


def test_a_command_gets_its_words_its_input_and_its_variables(reach: Reach) -> None:
    program = "import os, sys; print(sys.argv[1:], sys.stdin.read(), os.environ['X']); sys.exit(3)"
    ran = reach.run([sys.executable, "-c", program, "$HOME; ls", ""], stdin=b"in", env={"X": "a\nb"})
    assert (ran.status, ran.ok, ran.failed) == (3, False, None)
    assert ran.out == b"['$HOME; ls', ''] in a\nb\n"


def test_no_program_a_limit_and_too_much_output_are_values(reach: Reach) -> None:
    assert "no-such-program" in (reach.run(["no-such-program"]).failed or "")
    slow = reach.run([sys.executable, "-c", "import time; time.sleep(60)"], timeout_s=0.5)
    assert slow.status is None
    assert "0.5 s" in slow.told
    long = reach.run([sys.executable, "-c", "print('x' * 10_000)"], limit=100)
    assert (len(long.out), long.cut, long.ok) == (100, True, True)


def test_a_held_program_answers_until_it_is_stopped(reach: Reach) -> None:
    program = "import sys\nfor line in sys.stdin: print('told', line.strip() * 3, '.', sep='\\n', flush=True)\nprint('end')"
    held = reach.hold([sys.executable, "-c", program])
    assert [held.ask(word).text for word in ("a", "b")] == ["told\naaa\n", "told\nbbb\n"]
    ran = held.stop()
    assert (ran.status, ran.out) == (0, b"end\n")
    assert held.stop() == ran
    assert held.ask("c").unread


def test_a_held_program_that_says_nothing_is_not_waited_for(reach: Reach) -> None:
    held = reach.hold([sys.executable, "-c", "import sys; sys.stdin.read()"])
    assert held.ask("a", timeout_s=0.1).unread == "it did not answer in time"
    assert held.stop().status == 0
    gone = reach.hold([sys.executable, "-c", "pass"])
    assert gone.ask("a").unread
    gone.stop()


def test_the_process_backend_reaches_this_machine_alone() -> None:
    assert ProcessBackend().reach("here", "localhost").read("/proc/self/stat").data
    with pytest.raises(BackendError, match="not this machine"):
        ProcessBackend().reach("there", "192.0.2.1")
