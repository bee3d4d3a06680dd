"""init, verify, show and log on real ledgers: what they say, and that nothing from a receipt reaches a terminal raw."""

import gzip
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from ledger.cli.main import run
from ledger.core.errors import ExitCode
from ledger.receipt.model import Note
from ledger.store.ledger import Ledger
from tests.builder import Builder, git, new_repository

HOSTILE = "\x1b]0;title\x07\x9b31mred\u202egpj.exe\u2028\U000e0041"
OBEYED = "\x1b\x07\x9b\u202e\u2028\U000e0041"


def on_a_terminal(ledger: Ledger, *arguments: str, term: str = "dumb") -> str:
    """What the command prints on a real pseudo-terminal."""
    parent, child = pty.openpty()
    command = [sys.executable, "-m", "ledger", "-C", str(ledger.root), *arguments]
    environment = {**os.environ, "NO_COLOR": "1", "TERM": term}
    with subprocess.Popen(command, stdout=child, stderr=child, stdin=child, env=environment) as process:
        os.close(child)
        pieces = []
        while True:
            try:
                piece = os.read(parent, 65536)
            except OSError:  # how Linux tells the end of a terminal
                break
            if not piece:
                break
            pieces.append(piece)
        process.wait()
    os.close(parent)
    return b"".join(pieces).decode()


@pytest.fixture
def hostile(ledger: Ledger, build: Builder) -> str:
    """The digest of a receipt whose every text is meant for a terminal."""
    return build.writer.record(Note(text=HOSTILE, by=HOSTILE))


@pytest.mark.parametrize("option", [[], ["--json"], ["--raw"]])
def test_nothing_that_a_terminal_obeys_is_shown(ledger: Ledger, hostile: str, option: list[str]) -> None:
    shown = on_a_terminal(ledger, "show", hostile, *option)
    assert "red" in shown
    assert not set(OBEYED) & set(shown)


def test_a_blob_is_shown_escaped_on_a_terminal_and_whole_on_a_pipe(
    ledger: Ledger, build: Builder, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    data = HOSTILE.encode() + b"\xff\x00"
    build.source = build.source.__class__(name="x", text=build.writer.blob(gzip.compress(data), "text/plain+gzip"))
    build.boot("a")
    (attempt,) = [stored.digest for stored in ledger.walk() if ledger.read(stored.digest).kind == "attempt"]
    shown = on_a_terminal(ledger, "show", attempt, "--blob", "1")
    assert "red" in shown
    assert not set(OBEYED) & set(shown)
    assert run(["-C", str(ledger.root), "show", attempt, "--blob", "1"]) == 0
    assert capfdbinary.readouterr().out == data
    assert run(["-C", str(ledger.root), "show", attempt, "--blob", "9"]) == ExitCode.NOT_FOUND


def test_json_of_a_receipt_is_the_receipt(ledger: Ledger, hostile: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-C", str(ledger.root), "show", hostile[:15], "--json"]) == 0
    out = capsys.readouterr().out
    assert not set(OBEYED) & set(out)
    data = json.loads(out)
    assert data["digest"] == hostile
    assert data["receipt"]["note"] == {"text": HOSTILE, "by": HOSTILE}


def test_verify_says_what_it_looked_at_and_what_not(ledger: Ledger, build: Builder, capsys: pytest.CaptureFixture[str]) -> None:
    build.arm("a", {"C6": 1.0})
    build.writer.blob(b"nobody names this", "text/plain")
    assert run(["-C", str(ledger.root), "verify"]) == 0
    shown = capsys.readouterr()
    assert "3 receipts and 2 blobs of 1 sessions: all of it holds" in shown.out
    assert "1 of these blobs are named by no receipt" in shown.err
    assert "not looked at: git's history" in shown.err
    assert run(["-C", str(ledger.root), "verify", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["checked"]["unnamed"] == 1


def test_the_log_is_in_chain_order_with_the_newest_last(
    ledger: Ledger, build: Builder, capsys: pytest.CaptureFixture[str]
) -> None:
    made = [build.writer.record(Note(text=f"{number}", by="A Tester")) for number in range(12)]
    assert run(["-C", str(ledger.root), "log", "--json", "-n", "5"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["digest"] for row in rows] == made[-5:]
    assert run(["-C", str(ledger.root), "log", "-n", "3"]) == 0
    shown = capsys.readouterr()
    assert [digest[7:17] in shown.out for digest in made] == [False] * 9 + [True] * 3
    assert "the newest 3" in shown.err


def test_init_in_a_folder_of_a_repository_starts_the_ledger_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new_repository(tmp_path)
    assert run(["-C", str(tmp_path), "init", "bench", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["root"] == str(tmp_path / "bench")
    assert "receipts/.gitkeep" in data["written"]
    assert Ledger.find(tmp_path / "bench" / "receipts").root == tmp_path / "bench"
    assert run(["-C", str(tmp_path / "bench"), "init"]) == 0
    assert "already a ledger" in capsys.readouterr().out
    git(tmp_path, "add", "-A")
    assert git(tmp_path, "status", "--porcelain").count("A  bench/") == 4
