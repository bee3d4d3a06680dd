"""Sessions on real processes and sockets: what is recorded when all goes well, and when each thing goes wrong."""

import gzip
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger.cli.asked import resumable
from ledger.cli.main import run
from ledger.core.words import Holds, Outcome, Verdict
from ledger.instruments import registry
from ledger.instruments.transcript import decode as decode_transcript
from ledger.receipt.model import Attempt, Boot, Decision, Gate, Receipt, Trial
from ledger.run import lane
from ledger.run.evidence import Evidence, Piece
from ledger.run.telemetry import figures_of
from ledger.store.ledger import Ledger
from ledger.store.verify import Checked, verify
from tests.builder import git, new_ledger
from tests.run.conftest import SERVER, SITE, MakeSpec

FASTER = """
[[arms]]
id = "faster"
base = "base"
change = { args = ["--delay", "0.008"] }
"""
HOST_FIGURES = ("mem_available_floor", "temperature", "power", "clock", "network")
RULE = """
[rule]
metrics = ["C1", "C2"]
"""
NO_FAILURES = """
[[gates]]
id = "no-failures"
text = "no request failed"
when = "after"
reads = "requests.failed"
op = "=="
value = "0"
"""


def ledger_run(ledger: Ledger, spec: Path, *more: str) -> int:
    return run(["-C", str(ledger.root), "run", spec.name, *more])


def receipts(ledger: Ledger) -> list[Receipt]:
    found = [ledger.read(stored.digest) for stored in ledger.walk()]
    return sorted(found, key=lambda receipt: (receipt.session, receipt.chain.n))


def boots(ledger: Ledger) -> list[Boot]:
    return [receipt.body for receipt in receipts(ledger) if isinstance(receipt.body, Boot)]


def trials(ledger: Ledger) -> list[Trial]:
    return [receipt.body for receipt in receipts(ledger) if isinstance(receipt.body, Trial)]


def gates(ledger: Ledger) -> dict[str, Gate]:
    return {receipt.body.gate: receipt.body for receipt in receipts(ledger) if isinstance(receipt.body, Gate)}


def servers(ledger: Ledger) -> list[int]:
    """The live small servers of this ledger's session, by the tag in their command line."""
    tag = ledger.root.parent.name.encode()
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and b"small_server.py" in (line := (entry / "cmdline").read_bytes()) and tag in line:
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def assert_sound(ledger: Ledger) -> None:
    assert list(verify(ledger, Checked())) == []
    assert servers(ledger) == []
    assert not list(ledger.receipts.rglob("*.tmp"))


def test_every_outcome_is_a_committed_receipt_and_a_second_run_changes_none(ledger: Ledger, make_spec: MakeSpec) -> None:
    spec = make_spec(arms=FASTER, more=RULE + NO_FAILURES)
    git(ledger.root, "add", "-A")
    git(ledger.root, "commit", "-qm", "spec")
    assert ledger_run(ledger, spec) == 0
    kinds = Counter(receipt.kind for receipt in receipts(ledger))
    assert kinds == {"attempt": 2, "boot": 2, "trial": 2, "gate": 4, "decision": 1}
    assert git(ledger.root, "status", "--porcelain") == ""
    before = {stored.path: stored.path.read_bytes() for stored in ledger.walk()}
    assert ledger_run(ledger, spec) == 0
    assert {path: path.read_bytes() for path in before} == before
    assert len(list(ledger.walk())) == 2 * len(before)
    assert git(ledger.root, "status", "--porcelain") == ""
    assert_sound(ledger)


def test_a_boot_holds_what_was_asked_rendered_and_seen(ledger: Ledger, make_spec: MakeSpec) -> None:
    ledger_run(ledger, make_spec(env='KEPT = "1", HF_TOKEN = "hunter2"'))
    (boot,) = boots(ledger)
    assert boot.agreement.state == "agrees"
    assert boot.requested["lane"]["engine"] == "small"
    (rank,) = boot.resolved
    assert "/bin/python" in rank.argv[0]
    assert "${port}" not in " ".join(rank.argv)
    assert boot.observed["ranks"][0]["argv"] == list(rank.argv)
    assert boot.factors.identity["env.KEPT"] == "1"
    assert "hunter2" not in "".join(stored.path.read_text() for stored in ledger.walk() if "HF_TOKEN" in stored.path.read_text())


def test_figures_can_be_made_again_from_the_blobs_alone(ledger: Ledger, make_spec: MakeSpec) -> None:
    ledger_run(ledger, make_spec())
    (trial,) = trials(ledger)
    session = next(receipt.session for receipt in receipts(ledger))
    plan, transcript = decode_transcript(ledger.read_blob(session, trial.samples[0]))
    again = registry.get(trial.instrument.name).reduce(trial.instrument.parameters, plan, transcript)
    data = ledger.read_blob(session, trial.samples[1])
    piece = Piece(annotations=trial.samples[1].annotations, data=data, media_type=trial.samples[1].mediaType)
    sampled = figures_of(Evidence(nodes=("here",), pieces=(piece,)))
    assert {"mem_available_floor", "mem_available_floor@C1", "mem_available_floor@C2", "network_bytes"} <= set(sampled)
    assert {**again.figures, **sampled} == dict(trial.figures)
    assert trial.requests.ok == trial.requests.launched == 6


def test_an_override_that_the_launcher_drops_is_told(ledger: Ledger, make_spec: MakeSpec) -> None:
    ledger_run(ledger, make_spec(server="--mode drops", env='KEPT = "1"'))
    (boot,) = boots(ledger)
    assert boot.agreement.state == "differs"
    assert [item.field for item in boot.agreement.differences] == ["rank 0 env.KEPT"]


@pytest.mark.parametrize("of_the_node", [False, True])
def test_a_secret_that_the_server_gives_away_reaches_no_file(ledger: Ledger, make_spec: MakeSpec, of_the_node: bool) -> None:
    secret = "-".join(["correct", "horse", "battery"])
    said = f'MY_API_KEY = "{secret}"'
    spec = make_spec(server="--mode echoes", env="" if of_the_node else said)
    if of_the_node:
        (ledger.root / "site.toml").write_text(f"{SITE}env = {{ {said} }}\n")
    ledger_run(ledger, spec)
    (trial,) = trials(ledger)
    assert trial.requests.failed == 0
    assert "C1" in trial.figures
    held = {path: path.read_bytes() for path in ledger.receipts.rglob("*") if path.is_file()}
    opened = {path: gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data for path, data in held.items()}
    told = [path for path, data in opened.items() if secret.encode() in data]
    assert told == []
    assert any(b"*" * len(secret) in data for data in opened.values()), "the replies are kept, masked"


@pytest.mark.parametrize(
    ("mode", "state", "words"),
    [
        ("launches", "unverified", "does not show --mode launches"),
        ("launches-without-env", "differs", "rank 0 (the process that serves) env.KEPT"),
        ("launches-without-args", "unverified", "the process that serves does not show --delay 0.012"),
    ],
)
def test_what_a_launcher_does_not_pass_on_is_never_silent(
    ledger: Ledger, make_spec: MakeSpec, capsys: pytest.CaptureFixture[str], mode: str, state: str, words: str
) -> None:
    ledger_run(ledger, make_spec(server=f"--mode {mode} --delay 0.012", env='KEPT = "1"'))
    (boot,) = boots(ledger)
    assert boot.agreement.state == state
    assert words in " ".join([*boot.agreement.unseen, *(item.field for item in boot.agreement.differences)])
    assert boot.observed["serving"][0]["argv"][-1] != "", "what really serves is recorded"
    capsys.readouterr()
    assert run(["-C", str(ledger.root), "query", "C1 by arm"]) == 0
    assert "unverified" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("server", "ready", "outcome", "words"),
    [
        ("--mode exits", "10 s", Outcome.FAILED, "ended with status 3"),
        ("--mode never", "1 s", Outcome.TIMEOUT, "not ready within 1 s"),
        ("--mode dies", "10 s", Outcome.FAILED, "ended with status 9"),
    ],
)
def test_a_boot_that_fails_is_a_receipt_and_the_next_arm_goes_on(
    ledger: Ledger, make_spec: MakeSpec, server: str, ready: str, outcome: Outcome, words: str
) -> None:
    good = """
    [[arms]]
    id = "good"
    base = "base"
    change = { args = ["--mode", "ok"] }
    """
    assert ledger_run(ledger, make_spec(server=server, arms=good, ready=ready, more=RULE)) == 1
    bad, fine = boots(ledger)
    assert (bad.outcome, fine.outcome) == (outcome, Outcome.READY)
    assert words in (bad.reason or "")
    assert bad.log_tail
    decision = next(receipt.body for receipt in receipts(ledger) if isinstance(receipt.body, Decision))
    assert decision.verdict is Verdict.BLOCKED
    assert_sound(ledger)


@pytest.mark.parametrize(("says", "made"), [("continue", 2), ("stop", 1)])
def test_what_follows_a_boot_that_failed_is_what_the_spec_says(ledger: Ledger, make_spec: MakeSpec, says: str, made: int) -> None:
    spec = make_spec(server="--mode exits", arms=FASTER, more=RULE)
    spec.write_text(spec.read_text().replace("warmup = 1", f'warmup = 1\non_failure = "{says}"'))
    assert ledger_run(ledger, spec) == 1
    assert [boot.outcome for boot in boots(ledger)] == [Outcome.FAILED] * made
    assert resumable(ledger) == []
    assert_sound(ledger)


def test_a_server_that_dies_in_a_trial_fails_its_requests_and_a_gate(ledger: Ledger, make_spec: MakeSpec) -> None:
    assert ledger_run(ledger, make_spec(server="--mode dies --after 5", more=NO_FAILURES)) == 1
    (trial,) = trials(ledger)
    assert trial.requests.failed > 0
    assert trial.requests.ok + trial.requests.failed == trial.requests.launched
    assert trial.figures["C2"].value is None
    assert trial.figures["C2"].absent
    assert gates(ledger)["server-alive"].holds is Holds.FAIL
    assert gates(ledger)["no-failures"].holds is Holds.FAIL
    assert_sound(ledger)


def test_a_stream_that_hangs_fails_alone_after_the_measures_limit(ledger: Ledger, make_spec: MakeSpec) -> None:
    spec = make_spec(server="--mode hangs --after 4", more=NO_FAILURES)
    spec.write_text(spec.read_text().replace("max_tokens = 8", 'max_tokens = 8\nidle_timeout = "1 s"'))
    assert ledger_run(ledger, spec) == 1
    (trial,) = trials(ledger)
    assert trial.requests.failed > 0
    assert trial.requests.ok + trial.requests.failed == trial.requests.launched
    assert any(reason.startswith("idle timeout") for reason in trial.requests.reasons)
    assert gates(ledger)["server-alive"].holds is Holds.PASS
    assert_sound(ledger)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)], check=False, capture_output=True)
    if mounted.returncode:
        pytest.skip("a file system of a few megabytes needs the right to mount one")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("left", [0, 40, 64, 120])
def test_a_full_disk_is_a_clear_error_and_the_session_goes_on_when_there_is_room(
    small_disk: Path, make_spec: MakeSpec, ledger: Ledger, capsys: pytest.CaptureFixture[str], left: int
) -> None:
    full = new_ledger(small_disk / "repo")
    for name in ("small.toml", "site.toml"):
        spec = make_spec().parent / name
        (full.root / name).write_text(spec.read_text())
    filler = small_disk / "filler"
    size = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize - left * 1024
    filler.write_bytes(b"x" * max(0, size))
    capsys.readouterr()
    assert ledger_run(full, full.root / "small.toml") == 5
    said = capsys.readouterr().err
    assert "no space left on device" in said.lower()
    assert f"{full.root}/" in said, "what could not be written is named"
    assert "Traceback" not in said
    filler.unlink()
    assert [item.code for item in verify(full, Checked())] == []
    for past in resumable(full):
        assert f"ledger run --resume {past.opening.session}" in said
        assert run(["-C", str(full.root), "run", "--resume"]) == 0
    assert ledger_run(full, full.root / "small.toml") == 0
    assert trials(full)
    assert_sound(full)


def test_a_port_in_use_is_refused_and_the_server_there_never_measured(
    ledger: Ledger, make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server of before that still answers would pass for the one that was just started."""
    monkeypatch.setattr(lane, "PORT_WAIT_S", 0.3)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(SERVER), "--port", str(port), "--tag", ledger.root.parent.name]
    stale = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while socket.socket().connect_ex(("127.0.0.1", port)):
            time.sleep(0.05)
        spec = make_spec()
        spec.write_text(spec.read_text().replace('engine = "small"', f'engine = "small"\nport = {port}'))
        assert ledger_run(ledger, spec) == 1
    finally:
        stale.kill()
        stale.wait()
    (boot,) = boots(ledger)
    assert boot.outcome is Outcome.FAILED
    assert f"port {port} of here is in use" in (boot.reason or "")
    assert trials(ledger) == []
    assert ledger_run(ledger, spec) == 0
    assert_sound(ledger)


def test_a_server_that_answers_500_gives_counted_failures_and_no_figure(ledger: Ledger, make_spec: MakeSpec) -> None:
    assert ledger_run(ledger, make_spec(server="--mode errors --after 3", more=NO_FAILURES)) == 1
    (trial,) = trials(ledger)
    assert trial.requests.failed == 6
    assert list(trial.requests.reasons) == ["http 500"]
    answered = {name: figure for name, figure in trial.figures.items() if not name.startswith(HOST_FIGURES)}
    assert len(answered) > 4
    assert all(figure.value is None for figure in answered.values())
    assert gates(ledger)["server-alive"].holds is Holds.PASS


def test_a_gate_that_fails_before_a_boot_refuses_it(ledger: Ledger, make_spec: MakeSpec) -> None:
    memory = '[[gates]]\nid = "memory"\ntext = "room"\nreads = "host.MemAvailable"\nop = ">="\nvalue = "900 TiB"\n'
    assert ledger_run(ledger, make_spec(more=memory)) == 1
    (boot,) = boots(ledger)
    assert boot.outcome is Outcome.REFUSED
    assert "room" in (boot.reason or "")
    gate = gates(ledger)["memory"]
    assert gate.holds is Holds.FAIL
    assert b"MemAvailable" in ledger.read_blob(receipts(ledger)[0].session, gate.evidence[0])


def test_a_pin_that_fails_boots_and_records_nothing(
    ledger: Ledger, make_spec: MakeSpec, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = make_spec(more='[lanes.L.packages]\nattrs = "0.0.1"\n')
    assert ledger_run(ledger, spec) == 6
    assert "attrs is at another version, expected 0.0.1" in capsys.readouterr().err
    assert list(ledger.walk()) == []


def test_only_narrows_the_run_to_some_arms(ledger: Ledger, make_spec: MakeSpec) -> None:
    assert ledger_run(ledger, make_spec(arms=FASTER), "--only", "faster") == 0
    assert [boot.subject.arm for boot in boots(ledger)] == ["faster"]


def test_a_wrong_parameter_is_told_before_anything_boots(
    ledger: Ledger, make_spec: MakeSpec, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ledger_run(ledger, make_spec(levels='["one"]')) == 2
    assert "measures.decode" in capsys.readouterr().err
    assert list(ledger.walk()) == []


def start(ledger: Ledger, spec: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "ledger", "-C", str(ledger.root), "run", spec.name]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def gone(ledger: Ledger) -> bool:
    limit = time.monotonic() + 20
    while servers(ledger) and time.monotonic() < limit:
        time.sleep(0.02)
    return not servers(ledger)


@pytest.mark.parametrize("seed", range(2))
def test_kill_at_any_moment_leaves_no_server_and_no_half_receipt(ledger: Ledger, make_spec: MakeSpec, seed: int) -> None:
    spec = make_spec(arms=FASTER, server="--delay 0.02")
    process = start(ledger, spec)
    time.sleep(random.Random(seed).uniform(0.2, 3.0))
    process.kill()
    process.wait()
    assert gone(ledger)
    left = {stored.digest for stored in ledger.walk()}
    assert_sound(ledger)
    assert ledger_run(ledger, spec) == 0
    assert left < {stored.digest for stored in ledger.walk()}
    assert git(ledger.root, "status", "--porcelain", "receipts") == ""
    assert_sound(ledger)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_ends_the_server_and_commits_what_was_recorded(ledger: Ledger, make_spec: MakeSpec, number: int) -> None:
    spec = make_spec(server="--mode hangs --after 3")
    process = start(ledger, spec)
    limit = time.monotonic() + 20
    while len(list(ledger.walk())) < 2 and time.monotonic() < limit:
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(number)
    assert process.wait(20) == 130
    assert gone(ledger)
    assert Counter(receipt.kind for receipt in receipts(ledger))["attempt"] == 1
    assert git(ledger.root, "status", "--porcelain", "receipts") == ""
    assert_sound(ledger)


def test_an_attempt_without_a_boot_is_listed(ledger: Ledger, make_spec: MakeSpec, capsys: pytest.CaptureFixture[str]) -> None:
    process = start(ledger, make_spec(server="--mode never", ready="60 s"))
    limit = time.monotonic() + 20
    while not list(ledger.walk()) and time.monotonic() < limit:
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert gone(ledger)
    assert [type(receipt.body) for receipt in receipts(ledger)] == [Attempt]
    assert run(["-C", str(ledger.root), "log", "--attempts"]) == 0
    assert "no boot receipt" in capsys.readouterr().out


def test_outside_a_repository_the_way_out_is_told(
    tmp_path: Path, make_spec: MakeSpec, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = make_spec()
    assert run(["-C", str(tmp_path), "run", str(spec)]) == 3
    assert "ledger init" in capsys.readouterr().err


def test_a_read_only_ledger_is_a_clear_error(ledger: Ledger, make_spec: MakeSpec, capsys: pytest.CaptureFixture[str]) -> None:
    spec = make_spec()
    in_namespace = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"']
    command = [sys.executable, "-m", "ledger", "-C", str(ledger.root), "run", spec.name]
    done = subprocess.run([*in_namespace, str(ledger.receipts), *command], capture_output=True, text=True, check=False)
    if os.geteuid() != 0 or done.stderr.startswith(("unshare:", "mount:")):
        pytest.skip(f"no mount namespace here: {done.stderr.strip()}")
    assert done.returncode == 5
    assert "read-only" in done.stderr
    assert "Traceback" not in done.stderr


def test_under_nohup_a_session_goes_on_when_the_terminal_is_gone(ledger: Ledger, make_spec: MakeSpec) -> None:
    spec = make_spec(levels="[1]", server="--delay 0.03")
    command = ["nohup", sys.executable, "-m", "ledger", "-C", str(ledger.root), "run", spec.name]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while not any(ledger.receipts.rglob("*.json")):
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGHUP)
        assert process.wait(60) == 0
    assert any(isinstance(receipt.body, Trial) for receipt in receipts(ledger))
