"""The control that was cold: a real server that is slower while its cache is empty, and an arm that only seems better for it."""

import json
import re
from pathlib import Path

import pytest

from ledger.analysis.rule import Limits, Sides, judge
from ledger.cli.main import run
from ledger.core.words import Verdict
from ledger.receipt.model import Attempt, Boot, Decision, Trial
from ledger.store.ledger import Ledger
from tests.run.conftest import MakeSpec
from tests.run.test_session import assert_sound, ledger_run, receipts

# The arm's argument changes nothing: whatever it gains, it gains from the state of the host.
ARM = """
[[arms]]
id = "merge"
base = "base"
change = { args = ["--after", "7"] }
"""
RULE = """
[rule]
metrics = ["C1", "C2"]
better_than = "40 %"
worse_than = "40 %"
drift = "40 %"
"""


@pytest.fixture
def spec(ledger: Ledger, make_spec: MakeSpec, tmp_path: Path) -> Path:
    cache = tmp_path / "cache"
    cache.mkdir()
    path = make_spec(arms=ARM, more=RULE, server=f"--delay 0.02 --cache {cache}")
    path.write_text(path.read_text().replace("env = {", f'caches = ["{cache}"]\nenv = {{', 1))
    return path


def decisions(ledger: Ledger) -> list[Decision]:
    return [receipt.body for receipt in receipts(ledger) if isinstance(receipt.body, Decision)]


def states(ledger: Ledger) -> list[tuple[str, str]]:
    bodies = [receipt.body for receipt in receipts(ledger)]
    return [(body.subject.arm, body.conditions["jit_cache"]) for body in bodies if isinstance(body, Boot)]


def figures(ledger: Ledger, arm: str) -> dict[str, list[float]]:
    (trial,) = [each.body for each in receipts(ledger) if isinstance(each.body, Trial) and each.body.subject.arm == arm]
    return {name: [trial.figures[name].value or 0.0] for name in ("C1", "C2")}


def test_a_cold_control_is_refused_and_the_mend_that_is_named_gives_a_verdict(
    ledger: Ledger, spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ledger_run(ledger, spec, "--only", "base", "--only", "merge") == 0
    assert states(ledger) == [("base", "cold"), ("merge", "warm")]
    trap = judge(
        Limits(metrics=("C1", "C2"), better_than=0.4, worse_than=0.4),
        Sides(arm=figures(ledger, "merge"), control=figures(ledger, "base")),
    )
    assert trap.verdict is Verdict.KEEP
    (refused,) = decisions(ledger)
    assert refused.verdict is Verdict.BLOCKED
    assert "its jit_cache was cold and the arm's warm" in " ".join(refused.reasons)
    assert re.fullmatch(r"one warm reboot of base, about \d+ s", refused.mend or "")
    assert "mend: one warm reboot of base" in capsys.readouterr().err

    assert ledger_run(ledger, spec, "--only", "base") == 0
    assert run(["-C", str(ledger.root), "decide", spec.name]) == 0
    shown = capsys.readouterr().out
    assert "merge against base: revert" in shown
    assert "95 % interval unknown" in shown
    assert "not counted: boot" in shown
    assert {item.verdict for item in decisions(ledger)} == {Verdict.BLOCKED, Verdict.REVERT}
    assert run(["-C", str(ledger.root), "log", "--kind", "decision", "--json"]) == 0
    assert [row["said"] for row in json.loads(capsys.readouterr().out)] == ["blocked", "revert"]
    assert_sound(ledger)


def test_the_runner_adds_the_warm_control_that_the_rule_needs(
    ledger: Ledger, spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["-C", str(ledger.root), "plan", spec.name]) == 0
    assert "boot 2 of base is added: its first boot may find the caches of lane L empty" in capsys.readouterr().out
    assert ledger_run(ledger, spec) == 0
    assert states(ledger) == [("base", "cold"), ("base", "warm"), ("merge", "warm")]
    attempts = [receipt.body for receipt in receipts(ledger) if isinstance(receipt.body, Attempt)]
    assert [(body.order, body.round, body.added is not None) for body in attempts] == [
        ("written", 1, False),
        ("written", 2, True),
        ("written", 1, False),
    ]
    (decision,) = decisions(ledger)
    assert decision.verdict is Verdict.REVERT
    assert decision.effects[0].n_control == 1


def test_a_session_is_judged_again_by_the_spec_that_it_ran(
    ledger: Ledger, spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ledger_run(ledger, spec) == 0
    spec.write_text(spec.read_text().replace('better_than = "40 %"', 'better_than = "1000 %"'))
    name = receipts(ledger)[0].session
    capsys.readouterr()
    assert run(["-C", str(ledger.root), "decide", name[-4:], "--dry-run", "--json"]) == 0
    (said,) = json.loads(capsys.readouterr().out)
    assert (said["arm"], said["verdict"]) == ("merge", "revert")
    assert said["odds"]["noise"]["C1"]["source"] == "assumed"
    assert len(decisions(ledger)) == 1
    assert run(["-C", str(ledger.root), "decide", "no-such-session"]) != 0
    assert "no such spec or session" in capsys.readouterr().err
