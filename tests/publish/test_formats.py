"""The formats of an answer, byte for byte: each carries n, spread, evidence and marks of every row, the struck one too."""

import json

import pytest

from ledger.cli.main import run
from ledger.core.words import CorrectionKind, Evidence
from ledger.receipt.model import Correction
from ledger.store.ledger import Ledger
from tests.builder import Builder

CSV = """\
arm,spec,metric,value,unit,n_boots,low,high,spread,evidence,marks,struck
cold|x,exp,C6,2.0,tok/s,1,2.0,2.0,,measured,n=1 boot,
cold|x,exp,C6,1.0,tok/s,1,1.0,1.0,,measured,n=1 boot; superseded,supersede
control,exp,C6,202.25,tok/s,2,200.0,204.5,4.5,measured,,
fast,exp,C6,12345.678,tok/s,1,12345.678,12345.678,,stand-in,n=1 boot; single shot; unverified; stand-in; starts 9.0 ms apart,
"""
MARKDOWN = """\
| arm | metric | value | unit | n boots | low … high | evidence | marks |
| --- | --- | --- | --- | --- | --- | --- | --- |
| cold\\|x | C6 | 2 | tok/s | 1 | – | measured | n=1 boot |
| cold\\|x | C6 | ~~1~~ | tok/s | 1 | – | measured | n=1 boot, superseded |
| control | C6 | 202.2 | tok/s | 2 | 200 … 204.5 | measured |  |
| fast | C6 | 12,346 | tok/s | 1 | – | stand-in | n=1 boot, single shot, unverified, starts 9.0 ms apart |
"""
TABLE = """\

 arm       metric    value   unit    n boots    low … high   evidence   marks
 ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
 cold|x    C6            2   tok/s         1             –   measured   n=1 boot
 cold|x    C6        ~~1~~   tok/s         1             –   measured   n=1 boot, superseded
 control   C6        202.2   tok/s         2   200 … 204.5   measured
 fast      C6       12,346   tok/s         1             –   stand-in   n=1 boot, single shot, unverified, starts 9.0 ms apart

"""
ACROSS = """\

 role        metric   unit    evidence   cold|x    control       fast
 ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
 candidate   C6       tok/s   measured   2 (n=1)   202.2 (n=2)
 candidate   C6       tok/s   stand-in                           12,346 (n=1, single shot, unverified, starts 9.0 ms apart)

"""
JSON = [
    {"arm": "cold|x", "value": 2.0, "n_boots": 1, "low": 2.0, "high": 2.0, "spread": None, "marks": ["n=1 boot"]},
    {
        "arm": "cold|x",
        "value": 1.0,
        "n_boots": 1,
        "low": 1.0,
        "high": 1.0,
        "spread": None,
        "marks": ["n=1 boot", "superseded"],
        "struck": "supersede",
    },
    {"arm": "control", "value": 202.25, "n_boots": 2, "low": 200.0, "high": 204.5, "spread": 4.5, "marks": []},
    {
        "arm": "fast",
        "value": 12345.678,
        "n_boots": 1,
        "low": 12345.678,
        "high": 12345.678,
        "spread": None,
        "evidence": "stand-in",
        "marks": ["n=1 boot", "single shot", "unverified", "stand-in", "starts 9.0 ms apart"],
    },
]


@pytest.fixture
def story(ledger: Ledger, build: Builder, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """Two boots pooled, a marked stand-in, and a figure with the one that took its place."""
    monkeypatch.setenv("COLUMNS", "200")
    build.arm("control", {"C6": 200.0})
    build.arm("control", {"C6": 204.5})
    fast = build.boot("fast", agreement="differs", evidence=Evidence.STAND_IN)
    build.trial(fast, "fast", {"C6": 12345.678}, n=1, evidence=Evidence.STAND_IN, marks=("starts 9.0 ms apart",))
    (_, old), (_, new) = build.arm("cold|x", {"C6": 1.0}), build.arm("cold|x", {"C6": 2.0})
    build.writer.record(
        Correction(action=CorrectionKind.SUPERSEDE, targets=(old,), replacements=(new,), reason="cold", by="A Tester")
    )
    return ledger


def shown(ledger: Ledger, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["-C", str(ledger.root), "query", *arguments]) == 0
    return "".join(line.rstrip() + "\n" for line in capsys.readouterr().out.splitlines())


@pytest.mark.parametrize(("style", "golden"), [("csv", CSV), ("markdown", MARKDOWN), ("table", TABLE)])
def test_the_text_of_a_format(story: Ledger, capsys: pytest.CaptureFixture[str], style: str, golden: str) -> None:
    assert shown(story, capsys, "C6 by arm", "--all", "--format", style) == golden


def test_the_rows_of_json(story: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    same = {"spec": "exp", "metric": "C6", "unit": "tok/s", "evidence": "measured"}
    assert json.loads(shown(story, capsys, "C6 by arm", "--all", "--format", "json")) == [{**same, **row} for row in JSON]


def test_as_of_is_an_option_too_and_not_beside_the_filter(story: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    for when in ("2026-10-18", "2026-10-18T12:00:08Z"):
        assert shown(story, capsys, "C6 by arm", "--as-of", when) == shown(story, capsys, f"C6 by arm as-of:{when}")
    for question, option in (("C6 as-of:2026-10-18", "2026-10-19"), ("C6", 'a"b'), ("C6", "")):
        assert run(["-C", str(story.root), "query", question, "--as-of", option]) == 2
        assert "ledger: " in capsys.readouterr().err


def test_a_dimension_across(story: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(story, capsys, "C6 by role across arm") == ACROSS
