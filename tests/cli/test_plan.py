"""``ledger plan``: what it shows is what a run would do, in words, as commands and as data."""

import json
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from ledger.cli.main import run
from ledger.spec.load import load_site, load_spec
from ledger.spec.plan import launch, make_plan

SPECS = Path(__file__).resolve().parents[2] / "specs"
ROUND2, SMOLLM2 = str(SPECS / "round2.toml"), str(SPECS / "smollm2.toml")
SPEC = """\
ledger = 1
name = "exp"
question = "Does \\u001b[31mit\\u202e work?"
site = "site.toml"

[lanes.L]
engine = "e"
model = "m"
nodes = 2
command = ["printf", "%s\\\\n", "it's", "a b", "$$HOME", "$${port}", "`id`", "$(id)", "*", "",
  "${rank}", "${node.ip}", "${head.ip}", "${port}"]
env = { A = "x y", B = "$$1'2" }

[[arms]]
id = "base"
lane = "L"
role = "control"

[measures.decode]
uses = "openai/decode"
"""
SITE = """\
ledger = 1
name = "here"
nodes = [{ name = "one" }, { name = "two", ip = "10.0.0.2" }]
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """A spec whose command has everything that a shell could trip over, on a site of two nodes."""
    (tmp_path / "site.toml").write_text(SITE)
    path = tmp_path / "spec.toml"
    path.write_text(SPEC)
    return path


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    assert run(["plan", *arguments]) == 0
    captured = capsys.readouterr()
    return captured.out, captured.err


def data(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    return json.loads(shown(capsys, *arguments, "--json")[0])


def test_boots_are_shown_in_order_with_what_each_changes(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = shown(capsys, ROUND2)
    rows = [line.split() for line in out.splitlines() if line.strip()[:1].isdigit()]
    assert [row[1] for row in rows] == [
        *("A", "B0", "B0ctl", "B1a", "B1b", "B2", "B3", "C0ctl2", "C7ced"),
        *("C-max-parallel-prefills-2", "C-nvfp4-draft-head-and-markov"),
    ]
    assert rows[0][2:] == ["A", "diagnostic", "stand-in", "base"]
    assert rows[2][2:] == ["B", "control", "stand-in", "nothing"]
    assert " ".join(rows[5][2:]) == (
        "B candidate stand-in --swa-prefix-tails 64 (stand-in: --cache-prompt, without --no-cache-prompt)"
    )
    assert " ".join(rows[8][5:]) == "overlay that skips non-final rows (stand-in: --kv-unified)"
    assert "round2 on site laptop: 11 boots, about " in out
    assert "stands in for lane A, B, C" in err


def test_steps_measures_gates_and_the_rule_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = shown(capsys, SMOLLM2)
    for line in (
        "each boot: gate memory, start, one token as the sign of readiness, 2 warm-up requests, decode, prefill, gate",
        "measure decode: openai/decode, levels [1, 2, 4, 6], max_tokens 32, fixed_length true",
        "gate memory (before): the machine has room for the server [host.MemAvailable >= 1 GiB]",
        "rule: keep if one of C1, C6, prefill@500 is better by more than 2 % and none is worse by more than 2 %",
    ):
        assert line in out


def test_a_measure_that_is_scaled_for_some_lanes_is_shown_for_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = '[lanes.M]\nengine = "e"\nmodel = "m"\n\n[[arms]]\nid = "m"\nlane = "M"\nrole = "control"\n'
    site = '\n[stand_ins.M]\nwhy = "w"\nengine = "e"\nmodel = "m"\ncommand = ["x"]\n\n[scale.decode]\nlevels = [1]\n'
    (tmp_path / "site.toml").write_text(SITE + site)
    path = tmp_path / "spec.toml"
    path.write_text(f"{SPEC}levels = [6]\n\n{more}")
    out, _ = shown(capsys, str(path))
    assert "measure decode for lane L: openai/decode, levels [6]\n" in out
    assert "measure decode for lane M: openai/decode, levels [1]\n" in out


def test_commands_are_what_a_shell_makes_of_the_launch(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = shown(capsys, str(spec), "--commands")
    plan = make_plan(load_spec(spec), load_site(spec.parent / "site.toml"))
    started = launch(plan.boots[0], {"port": "80", "python": "py"})
    lines = [line for line in out.splitlines() if not line.startswith("#")]
    assert len(lines) == len(started) == 2
    for line, rank in zip(lines, started, strict=True):
        words = shlex.split(line)
        assert words[:2] == [f"{name}={value}" for name, value in rank.env.items()]
        assert words[2:] == [*rank.argv[:-1], "${port}"]
        ran = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True).stdout
        assert ran.splitlines() == [*rank.argv[2:-1], "${port}"]
    assert [line for line in out.splitlines() if line.startswith("#")] == [
        "# boot 1: arm base, lane L (measured)",
        "# rank 0 on one",
        "# rank 1 on two",
    ]


def test_nothing_of_a_spec_reaches_the_terminal_raw(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = shown(capsys, str(spec))
    assert r"Does \x1b[31mit\u202e work?" in out
    assert not {"\x1b", "\u202e"} & set(out)


def test_data_holds_what_is_started(capsys: pytest.CaptureFixture[str]) -> None:
    found = data(capsys, SMOLLM2)
    plan = make_plan(load_spec(Path(SMOLLM2)), load_site(SPECS / "sites/laptop.toml"))
    assert [boot["position"] for boot in found["boots"]] == list(range(1, 11))
    for told, boot in zip(found["boots"], plan.boots, strict=True):
        assert told["ranks"][0]["argv"] == list(boot.ranks[0].argv)
        assert told["identity"] == boot.identity
        assert told["measures"][0]["parameters"] == boot.measures[0].parameters
    assert found["estimate_s"] == pytest.approx(sum(boot["estimate_s"] for boot in found["boots"]), abs=1)
    assert found["steps"][-1] == "stop"


def test_toml_holds_what_json_holds(capsys: pytest.CaptureFixture[str]) -> None:
    assert tomllib.loads(shown(capsys, SMOLLM2, "--toml")[0]) == data(capsys, SMOLLM2)


def test_without_speeds_there_is_no_time(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "1 boots\n" in shown(capsys, str(spec))[0]
    found = data(capsys, str(spec))
    assert "estimate_s" not in found
    assert "estimate_s" not in found["boots"][0]


def test_only_some_arms(capsys: pytest.CaptureFixture[str]) -> None:
    found = data(capsys, SMOLLM2, "--only", "no-flash", "--only", "control")
    assert [boot["arm"] for boot in found["boots"]] == ["control", "no-flash"] * 2
    assert run(["plan", SMOLLM2, "--only", "no-flsh"]) == 2
    assert "did you mean 'no-flash'?" in capsys.readouterr().err


def test_the_site_that_counts(spec: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    other, third = spec.with_name("other.toml"), spec.with_name("third.toml")
    other.write_text(SITE.replace('"here"', '"other"'))
    third.write_text(SITE.replace('"here"', '"third"'))
    assert data(capsys, str(spec))["site"] == "here"
    monkeypatch.setenv("LEDGER_SITE", str(other))
    assert data(capsys, str(spec))["site"] == "other"
    assert data(capsys, str(spec), "--site", str(third))["site"] == "third"


def test_planning_leaves_nothing_behind(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(spec.parent.rglob("*"))
    shown(capsys, str(spec))
    assert sorted(spec.parent.rglob("*")) == before
