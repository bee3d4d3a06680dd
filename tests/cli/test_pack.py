"""pack and verify as commands: what they print for people and for programs, and how far they have come on a terminal."""

import json
from pathlib import Path
from typing import Any

import pytest

from ledger.cli.main import run
from ledger.receipt.model import Note
from ledger.store.git import commit_paths
from ledger.store.ledger import Ledger
from tests.builder import Builder, git
from tests.cli.test_keeping import on_a_terminal


@pytest.fixture
def two(ledger: Ledger) -> Ledger:
    """A ledger of two sessions, of which one is committed."""
    for token, is_committed in (("0001", True), ("0002", False)):
        build = Builder(ledger, token=token)
        build.arm("a", {"C1": 1.0})
        build.writer.record(Note(text="x", by="a tester"))
        if is_committed:
            commit_paths(ledger, build.writer.paths, "receipts: one")
    return ledger


def asked(ledger: Ledger, capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> Any:
    assert run(["-C", str(ledger.root), *arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_what_would_be_packed_is_what_is_packed(two: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    head = git(two.root, "rev-parse", "HEAD")
    planned = asked(two, capsys, "pack", "--dry-run")
    assert git(two.root, "rev-parse", "HEAD") == head
    made = asked(two, capsys, "pack")
    assert {name: made[name] for name in planned} == planned
    assert (made["sessions"], made["receipts"]) == (1, 4)
    assert made["commit"] == git(two.root, "rev-parse", "HEAD").strip()
    assert [Path(two.root / name).stat().st_size for name in made["packs"]] == [made["pack_bytes"]]
    (remark,) = made["remarks"]
    assert "not committed" in remark
    assert "0002" in remark
    again = asked(two, capsys, "pack")
    assert (again["receipts"], again["packs"], again["commit"]) == (0, [], None)


def test_people_are_told_the_same(two: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-C", str(two.root), "pack", "--dry-run"]) == 0
    assert "would pack 4 receipts of 1 sessions" in capsys.readouterr().out
    assert run(["-C", str(two.root), "pack"]) == 0
    shown = capsys.readouterr()
    assert "4 receipts of 1 sessions in 1 packs" in shown.out
    assert "not committed" in shown.err
    assert run(["-C", str(two.root), "pack"]) == 0
    assert capsys.readouterr().out == "nothing to pack\n"


def test_a_day_that_is_none_and_one_before_everything(two: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-C", str(two.root), "pack", "--before", "yesterday"]) == 2
    assert "yesterday" in capsys.readouterr().err
    assert asked(two, capsys, "pack", "--before", "2020-01-01")["receipts"] == 0


def test_a_bisection_under_way_is_told_and_every_file_stays(two: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(two.receipts.rglob("*.json"))
    (two.root / ".git" / "BISECT_LOG").write_text("")
    assert run(["-C", str(two.root), "pack"]) != 0
    assert "bisection" in capsys.readouterr().err
    assert sorted(two.receipts.rglob("*.json")) == before


def test_verify_counts_packs_and_names_a_damaged_one(two: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    (name,) = asked(two, capsys, "pack")["packs"]
    found = asked(two, capsys, "verify", "--history")
    assert (found["ok"], found["checked"]["packs"], found["checked"]["receipts"]) == (True, 1, 8)
    path = two.root / name
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    found = asked(two, capsys, "verify", code=1)
    assert {item["path"] for item in found["findings"]} >= {name}
    path.write_bytes(data)
    path.unlink()
    git(two.root, "checkout", "--", name)
    assert asked(two, capsys, "verify")["ok"]


@pytest.mark.parametrize(("command", "word"), [("pack", "packing"), ("verify", "verifying")])
def test_a_terminal_is_told_how_far_it_has_come(two: Ledger, command: str, word: str) -> None:
    assert word in on_a_terminal(two, command, term="xterm")
    assert word not in on_a_terminal(two, command, term="dumb")
