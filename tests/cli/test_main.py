"""The way in: errors, exit codes, pipes, colour, and JSON on every command."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ledger.cli import main as entry
from ledger.cli.main import COMMANDS, run
from ledger.core.errors import ExitCode
from ledger.store.ledger import Ledger
from tests.builder import Builder, git

SPEC = Path(__file__).resolve().parents[2] / "specs" / "smollm2.toml"


def ledger_command(ledger: Ledger, *arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ledger", "-C", str(ledger.root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=env, check=False, stdin=subprocess.DEVNULL)


def test_every_command_is_found_and_has_a_help_text() -> None:
    for name in COMMANDS:
        assert run([name, "--help"]) == 0


def test_an_unknown_command_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["qurey"]) == ExitCode.USAGE
    assert "did you mean 'query'" in capsys.readouterr().err


def test_an_unknown_option_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["query", "--formt", "json", "C6"]) == ExitCode.USAGE
    assert "--format" in capsys.readouterr().err


def test_a_defect_shows_no_traceback_without_debug(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(**_: object) -> None:
        raise KeyError("oops")

    monkeypatch.setattr(entry.cli, "main", broken)
    assert run(["verify"]) == ExitCode.DEFECT
    shown = capsys.readouterr().err
    assert "this is a defect" in shown
    assert "Traceback" not in shown
    assert run(["--debug", "verify"]) == ExitCode.DEFECT
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(entry.cli, "main", interrupted)
    assert run(["verify"]) == ExitCode.INTERRUPTED


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", str(SPEC), "--json"],
        ["query", "C6 by arm", "--json"],
        ["sql", "select 1 as one", "--json"],
        ["diff", "a", "b", "--json"],
        ["show", "a/decode", "--json"],
        ["log", "--json"],
        ["log", "--attempts", "--json"],
        ["verify", "--json"],
        ["init", "--json"],
        ["correct", "a/decode", "--retract", "--reason", "r", "--dry-run", "--json"],
        ["schema", "--check", "--json"],
    ],
)
def test_json_is_one_document_on_stdout(
    ledger: Ledger, build: Builder, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    build.arm("a", {"C6": 1.0})
    build.arm("b", {"C6": 2.0})
    run(["-C", str(ledger.root), *arguments])
    assert json.loads(capsys.readouterr().out) is not None


@pytest.mark.parametrize(
    "command", [["verify"], ["query", "C6"], ["log"], ["show", "x"], ["sql", "select 1"], ["diff", "a", "b"]]
)
def test_outside_a_ledger_every_command_says_the_way_out(
    tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["-C", str(tmp_path), *command]) == ExitCode.NO_LEDGER
    assert "ledger init" in capsys.readouterr().err


def test_no_colour_reaches_a_pipe_and_force_color_does(ledger: Ledger, build: Builder) -> None:
    build.arm("a", {"C6": 1.0})
    plain = ledger_command(ledger, "verify", env={"PATH": "/usr/bin:/bin"})
    forced = ledger_command(ledger, "verify", env={"PATH": "/usr/bin:/bin", "FORCE_COLOR": "1"})
    neither = ledger_command(ledger, "verify", env={"PATH": "/usr/bin:/bin", "FORCE_COLOR": "1", "NO_COLOR": "1"})
    assert ("\x1b" in plain.stdout, "\x1b[32m" in forced.stdout, "\x1b[32m" in neither.stdout) == (False, True, False)


def test_a_closed_pipe_ends_quietly(ledger: Ledger, build: Builder) -> None:
    for _ in range(40):
        build.arm("a", {"C6": 1.0})
    command = f"{sys.executable} -m ledger -C {ledger.root} log -n 1000 --json | head -c 10"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_text_from_a_receipt_cannot_reach_the_terminal_raw(ledger: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    build = Builder(ledger)
    boot = build.boot("a", identity={"engine": "\x1b]0;title\x07\x1b[31mred\u202e"})
    build.trial(boot, "a", {"C6": 1.0}, marks=("\x1b[2J",))
    for arguments in (["show", "a"], ["query", "C6 by arm"], ["diff", "a~0", "a~0"], ["log"], ["show", "a/decode"]):
        run(["-C", str(ledger.root), *arguments])
        shown = capsys.readouterr()
        assert "\x1b" not in shown.out + shown.err
        assert "\u202e" not in shown.out


def test_init_outside_git_and_inside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", str(tmp_path)]) == ExitCode.NO_LEDGER
    assert "git init" in capsys.readouterr().err
    git(tmp_path, "init", "-q")
    (tmp_path / ".gitignore").write_text("*.log")
    assert run(["init", str(tmp_path)]) == 0
    assert (tmp_path / ".gitignore").read_text() == "*.log\n.ledger/\n"
    capsys.readouterr()
    assert run(["init", str(tmp_path)]) == 0
    assert "already a ledger" in capsys.readouterr().out
