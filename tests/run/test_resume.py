"""Sessions that are killed, and go on: at any moment nothing is lost and nothing is done twice."""

import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from ledger.cli.asked import journals, resumable
from ledger.receipt.model import Trial
from ledger.store.ledger import Ledger
from tests.builder import git
from tests.run.conftest import MakeSpec
from tests.run.test_session import FASTER, NO_FAILURES, RULE, assert_sound, gone, receipts

KILLS = 40
TWO_TRIALS = "[1]\ntrials = 2"
EXPECTED = Counter({(arm, "decode", number): 1 for arm in ("base", "faster") for number in (1, 2)})


def begin(ledger: Ledger, *words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "ledger", "-C", str(ledger.root), "run", *words]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def seen(ledger: Ledger) -> tuple[int, int]:
    """What a session has written so far: the bytes of its journal and its files."""
    size = 0
    for path in journals(ledger).glob("*.journal") if journals(ledger).is_dir() else ():
        try:
            size += path.stat().st_size
        except FileNotFoundError:
            continue
    return size, sum(1 for _ in ledger.receipts.rglob("*"))


def kill_after(process: subprocess.Popen[bytes], ledger: Ledger, writes: int, more_s: float) -> bool:
    """Kill the runner so long after so many writes; False where it ended before."""
    last = seen(ledger)
    limit = time.monotonic() + 60
    while writes and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.002)
        if (now := seen(ledger)) != last:
            last, writes = now, writes - 1
    time.sleep(more_s)
    process.kill()
    _, said = process.communicate()
    assert b"defect" not in said, said
    return process.returncode != 0


def trials_of(ledger: Ledger, session: str) -> Counter[tuple[str, str, int]]:
    return Counter(
        (receipt.body.subject.arm, receipt.body.measure, receipt.body.number)
        for receipt in receipts(ledger)
        if receipt.session == session and isinstance(receipt.body, Trial)
    )


def kill_once(ledger: Ledger, spec: Path, until: Callable[[Ledger], bool]) -> None:
    process = begin(ledger, spec.name)
    limit = time.monotonic() + 60
    while not until(ledger) and time.monotonic() < limit:
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert gone(ledger)


def has(kind: type, count: int = 1) -> Callable[[Ledger], bool]:
    return lambda ledger: sum(isinstance(each.body, kind) for each in receipts(ledger)) >= count


def test_killed_at_forty_moments_the_trials_are_those_of_an_undisturbed_run(ledger: Ledger, make_spec: MakeSpec) -> None:
    spec = make_spec(arms=FASTER, levels=TWO_TRIALS, more=NO_FAILURES + RULE, server="--delay 0.004")
    drawn = random.Random(4)
    kills = on_resume = 0
    ended: set[str] = set()
    while kills < KILLS or resumable(ledger):
        there = resumable(ledger)
        process = begin(ledger, *(["--resume"] if there else [spec.name]))
        if kills < KILLS and kill_after(process, ledger, drawn.randrange(45), drawn.uniform(0, 0.04)):
            kills += 1
            on_resume += bool(there)
        elif kills >= KILLS:
            process.communicate()
        assert gone(ledger)
        assert_sound(ledger)
        assert len(resumable(ledger)) <= 1
        unfinished = {past.opening.session for past in resumable(ledger)}
        for session in {receipt.session for receipt in receipts(ledger)} - unfinished - ended:
            assert trials_of(ledger, session) == EXPECTED
            ended.add(session)
    assert ended
    assert on_resume >= KILLS // 4
    assert git(ledger.root, "status", "--porcelain", "receipts") == ""
