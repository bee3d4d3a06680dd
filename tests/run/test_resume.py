"""Sessions that are killed, and go on: at any moment nothing is lost and nothing is done twice."""

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from ledger.cli.asked import journals, resumable
from ledger.cli.main import run
from ledger.core.words import Holds
from ledger.instruments.openai.decode import DecodeInstrument
from ledger.receipt.model import Attempt, Boot, Gate, Trial
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
        time.sleep(0.004)
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
    # Which of the moments fall into a resumed session depends on the machine: it goes on until enough of them did.
    while (owed := kills < KILLS or on_resume < KILLS // 4) or resumable(ledger):
        assert kills < 4 * KILLS
        there = resumable(ledger)
        process = begin(ledger, *(["--resume"] if there else [spec.name]))
        if owed and kill_after(process, ledger, drawn.randrange(45), drawn.uniform(0, 0.04)):
            kills += 1
            on_resume += bool(there)
        elif not owed:
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


def test_a_resumed_session_says_what_was_cut_short_and_what_is_unknown(
    ledger: Ledger, make_spec: MakeSpec, capsys: pytest.CaptureFixture[str]
) -> None:
    free = '[[gates]]\nid = "free"\ntext = "room"\nwhen = "after"\nreads = "host.MemAvailable"\nop = ">"\nvalue = "1 B"\n'
    spec = make_spec(levels=TWO_TRIALS, more=NO_FAILURES + free, server="--delay 0.03")
    kill_once(ledger, spec, has(Trial))
    spec.write_text(spec.read_text().replace("Does it run?", "Does it still run?"))
    (past,) = resumable(ledger)
    assert run(["-C", str(ledger.root), "log"]) == 0
    assert f"ledger run --resume {past.opening.session}" in capsys.readouterr().err
    assert run(["-C", str(ledger.root), "run", "--resume", past.opening.session[-4:]]) == 1
    assert "small.toml has changed since" in capsys.readouterr().err
    first, again = [receipt.body for receipt in receipts(ledger) if isinstance(receipt.body, Attempt)]
    assert (first.number, again.number) == (1, 2)
    assert first.spec == again.spec
    assert "after 1 trials" in (again.reason or "")
    assert trials_of(ledger, past.opening.session) == Counter({("base", "decode", 1): 1, ("base", "decode", 2): 1})
    held = Counter((receipt.body.gate, receipt.body.holds) for receipt in receipts(ledger) if isinstance(receipt.body, Gate))
    assert held["free", Holds.UNKNOWN] == held["free", Holds.PASS] == 1
    assert held["server-alive", Holds.PASS] == held["no-failures", Holds.PASS] == 2
    assert resumable(ledger) == []
    assert run(["-C", str(ledger.root), "run", "--resume", past.opening.session]) == 4
    assert "ended" in capsys.readouterr().err
    assert_sound(ledger)


def test_an_attempt_that_never_booted_is_listed_with_its_reason(
    ledger: Ledger, make_spec: MakeSpec, capsys: pytest.CaptureFixture[str]
) -> None:
    kill_once(ledger, make_spec(), has(Attempt))
    assert len([each for each in receipts(ledger) if isinstance(each.body, Boot)]) == 0
    assert run(["-C", str(ledger.root), "run", "--resume"]) == 0
    capsys.readouterr()
    assert run(["-C", str(ledger.root), "log", "--attempts", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [(row["number"], row["outcome"]) for row in said] == [(1, "no boot receipt"), (2, "ready")]
    assert "before its boot was recorded" in said[0]["reason"]


def test_several_sessions_that_can_be_resumed_are_listed(
    ledger: Ledger, make_spec: MakeSpec, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = make_spec()
    kill_once(ledger, spec, has(Attempt))
    kill_once(ledger, spec, has(Attempt, 2))
    assert run(["-C", str(ledger.root), "run", "--resume"]) == 4
    said = capsys.readouterr().err
    assert all(past.opening.session in said for past in resumable(ledger))
    assert len(resumable(ledger)) == 2


def test_an_interrupted_session_is_committed_and_can_be_resumed(ledger: Ledger, make_spec: MakeSpec) -> None:
    process = begin(ledger, make_spec(levels=TWO_TRIALS, server="--delay 0.03").name)
    limit = time.monotonic() + 60
    while not has(Trial)(ledger) and time.monotonic() < limit:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130
    assert git(ledger.root, "status", "--porcelain", "receipts") == ""
    assert run(["-C", str(ledger.root), "run", "--resume"]) == 0
    assert max(trials_of(ledger, receipts(ledger)[0].session).values()) == 1
    assert git(ledger.root, "status", "--porcelain", "receipts") == ""


def test_a_plan_that_is_another_now_is_not_resumed(
    ledger: Ledger, make_spec: MakeSpec, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_once(ledger, make_spec(), has(Attempt))
    monkeypatch.setattr(DecodeInstrument, "version", DecodeInstrument.version + 1)
    assert run(["-C", str(ledger.root), "run", "--resume"]) == 5
    assert "plans the session otherwise" in capsys.readouterr().err
    assert len(resumable(ledger)) == 1


def test_a_second_session_on_the_node_is_refused_with_the_holder_s_name(
    ledger: Ledger, make_spec: MakeSpec, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = make_spec(server="--mode hangs --after 3")
    process = begin(ledger, spec.name)
    limit = time.monotonic() + 60
    while not has(Boot)(ledger) and time.monotonic() < limit:
        time.sleep(0.01)
    assert run(["-C", str(ledger.root), "run", spec.name]) == 6
    said = capsys.readouterr().err
    assert f"process {process.pid} on" in said
    assert receipts(ledger)[0].session in said
    assert run(["-C", str(ledger.root), "run", "--resume"]) == 4
    process.kill()
    process.communicate()
    assert gone(ledger)
    assert run(["-C", str(ledger.root), "run", make_spec().name]) == 0


def test_a_gate_on_what_was_measured_before_the_end_keeps_its_verdict(ledger: Ledger, make_spec: MakeSpec) -> None:
    """The second boot of a position runs what is left alone, and a gate on the rest has nothing to read there."""
    words = NO_FAILURES.replace('reads = "requests.failed"', 'reads = "requests.failed"\nof = "decode"')
    later = '\n[measures.later]\nuses = "openai/decode"\nlevels = [1]\ncategories = ["code"]\nmax_tokens = 8\ntrials = 2\n'
    spec = make_spec(levels="[1]", more=later + words, server="--delay 0.03")
    kill_once(ledger, spec, has(Trial, 2))
    assert run(["-C", str(ledger.root), "run", "--resume"]) == 0
    (gate,) = [each.body for each in receipts(ledger) if isinstance(each.body, Gate) and each.body.gate == "no-failures"]
    assert gate.holds is Holds.PASS
