"""Shell completion, the plan as TOML, and exports."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import duckdb
import pytest

from ledger.cli.main import run
from ledger.query.index import open_index
from ledger.store.ledger import Ledger
from tests.builder import Builder

SPEC = Path(__file__).resolve().parents[2] / "specs" / "smollm2.toml"


def completed(ledger: Ledger, words: str, current: int) -> list[str]:
    """What bash is offered for the word ``current`` of ``words``."""
    environment = {"_LEDGER_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(current), "PATH": "/usr/bin:/bin"}
    environment["PYTHONPATH"] = str(SPEC.parents[1])
    code = "from ledger.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ledger.root, env=environment, capture_output=True, text=True, check=False
    )
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


@pytest.fixture
def known(ledger: Ledger, build: Builder) -> Ledger:
    for arm, lane in (("base", "L"), ("fast", "M")):
        build.trial(build.boot(arm, lane=lane), arm, {"C1": 1.0, "C6": 2.0, "prefill@500": 3.0}, lane=lane)
    with open_index(ledger):
        pass
    return ledger


def test_commands_and_names_are_completed(known: Ledger) -> None:
    assert completed(known, "ledger ver", 1) == ["verify"]
    assert completed(known, "ledger show ba", 2) == ["base", "base/decode"]
    assert completed(known, "ledger query C", 2) == ["C1", "C6"]
    assert completed(known, "ledger query C6 by ", 4)[:2] == ["arm", "lane"] or completed(known, "ledger query 'C6 by '", 2)


def test_without_a_ledger_nothing_breaks(tmp_path: Path) -> None:
    assert completed(Ledger(root=tmp_path), "ledger show x", 2) == []


def test_a_plan_is_printed_as_toml(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", str(SPEC), "--toml"]) == 0
    plan = tomllib.loads(capsys.readouterr().out)
    assert [boot["arm"] for boot in plan["boots"]][:2] == ["control", "threads-2"]
    assert plan["boots"][1]["identity"]["args.--threads"] == "2"


@pytest.mark.parametrize("style", ["parquet", "csv", "jsonl"])
def test_views_are_exported_and_read_elsewhere(
    known: Ledger, tmp_path: Path, style: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    assert run(["-C", str(known.root), "export", style, str(folder), "--json"]) == 0
    assert "metrics" in json.loads(capsys.readouterr().out)["views"]
    place = {"parquet": "metrics/**/*.parquet", "csv": "metrics.csv", "jsonl": "metrics.jsonl"}[style]
    reader = {"parquet": "read_parquet", "csv": "read_csv", "jsonl": "read_json"}[style]
    with duckdb.connect() as connection:
        row = connection.execute(f"SELECT count(*), max(value) FROM {reader}('{folder}/{place}')").fetchone()
    assert row == (6, 3.0)
    if style == "parquet":
        assert (folder / "metrics" / "month=2026-10").is_dir()
    assert run(["-C", str(known.root), "export", style, str(folder)]) == 5
    assert "not there yet" in capsys.readouterr().err
