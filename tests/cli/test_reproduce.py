"""``ledger reproduce``: what somebody else is told to make a boot again, and what is no boot."""

import json
import shlex
from pathlib import Path

import pytest
from attrs import evolve

from ledger.cli.main import run
from ledger.core.errors import ExitCode
from ledger.core.words import Outcome
from ledger.receipt.model import Boot, RankConfig
from ledger.run.recipe import recipe
from ledger.store.ledger import Ledger
from tests.builder import Builder

ROOT = Path(__file__).resolve().parents[2]
LAUNCH = ROOT / "tests/golden/launch/vllm.txt"
CONTAINER = {"name": "x", "network": "host", "ulimits": {"core": "0"}}


def test_a_real_boot_of_this_repository(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-C", str(ROOT), "reproduce", "smollm2:threads-2/decode"]) == 0
    out = capsys.readouterr().out
    for text in (
        "# smollm2: arm threads-2 on lane smol, measured",
        "# - package.xllamacpp: 2026.10.11549",
        "# - 2 warm-up requests after the server is ready",
        "# - memory (before): the machine has room for the server [host.MemAvailable >= 1 GiB]",
        '"${venv}/bin/python3" -m ledger.engine.llama_server --model "${venv}/lib/',
        "--threads 2 --no-cache-prompt --flash-attn on",
        "# - prefill: openai/prefill v1; lengths [500], repeats 3",
        "# - thinking is left to the server's own default",
        "ledger run spec.toml --site site.toml --only threads-2",
    ):
        assert text in out
    assert [line for line in out.splitlines() if line.startswith("'${")] == []


def test_what_was_reported_says_that_there_is_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-C", str(ROOT), "reproduce", "vllm-ladder:C0"]) == 0
    out = capsys.readouterr().out
    assert "the command is not known" in out
    assert "its compile cache was cold" in out
    assert "reported by a publication" in out
    assert "ledger run" not in out


def test_workers_come_first_the_head_last_each_with_what_docker_was_told() -> None:
    boot = read_boot()
    ranks = tuple(
        RankConfig(rank=rank, node=f"n{rank}", argv=("serve", "--rank", str(rank)), env={"A": "x y"}) for rank in range(3)
    )
    made = recipe("d", evolve(boot, resolved=ranks, requested={"lane": {"image": "i:1", "container": CONTAINER}}), (), None)
    assert [launch.rank for launch in made.launches] == [1, 2, 0]
    words = shlex.split(made.launches[-1].command)
    assert words[:3] == ["docker", "run", "-d"]
    assert words[words.index("i:1") :] == ["i:1", "serve", "--rank", "0"]
    assert words[words.index("--env") + 1] == "A=x y"


def test_what_stands_in_the_way_is_a_warning() -> None:
    boot = read_boot()
    rank = RankConfig(rank=0, node="n", argv=("serve",), env={"API_KEY": "secret:hmac-sha256:0123456789abcdef"})
    failed = evolve(boot, outcome=Outcome.FAILED, reason="no such image", resolved=(rank,), conditions={"neighbours": "vllm"})
    said = " ".join(recipe("d", failed, (), None).warnings)
    for text in ("did not get ready (failed): no such image", "stand as digests", "neighbours on the machine: vllm"):
        assert text in said


def test_what_is_no_boot_is_told(ledger: Ledger, build: Builder, capsys: pytest.CaptureFixture[str]) -> None:
    boot = build.boot("a")
    attempt = ledger.read(boot).body
    assert isinstance(attempt, Boot)
    assert run(["-C", str(ledger.root), "reproduce", attempt.attempt]) == ExitCode.NOT_FOUND
    assert "neither a boot nor a trial, but: attempt" in capsys.readouterr().err
    trial = build.trial(boot, "a", {"C6": 1.0})
    capsys.readouterr()
    assert run(["-C", str(ledger.root), "reproduce", trial, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["boot"] == boot


def read_boot() -> Boot:
    ledger = Ledger.find(ROOT)
    return next(body for item in ledger.walk() if isinstance(body := ledger.read(item.digest).body, Boot))
