"""What stays after a ladder is booted again and proven: on real processes, by its replies and its verdicts."""

import json
from pathlib import Path

import pytest

from ledger.cli.main import run
from ledger.core.words import Holds, Verdict
from ledger.receipt.model import Attempt, Boot, Decision, Gate, Note, Trial
from ledger.store.ledger import Ledger
from tests.run.conftest import MakeSpec
from tests.run.test_resume import has, kill_once
from tests.run.test_session import assert_sound, ledger_run, receipts

FASTER = '\n[[arms]]\nid = "faster"\nbase = "base"\nchange = { args = ["--delay", "0.010"] }\n'
LOOSE = '\n[rule]\nmetrics = ["C1"]\nbetter_than = "20 %"\nworse_than = "90 %"\ndrift = "90 %"\n'
RESTORE = '\n[restore]\nreplies = "decode"\n'


def made(ledger: Ledger) -> list[tuple[int, str]]:
    return [(each.body.position, each.body.subject.arm) for each in receipts(ledger) if isinstance(each.body, Attempt)]


def verdicts(ledger: Ledger, name: str) -> list[Gate]:
    return [each.body for each in receipts(ledger) if isinstance(each.body, Gate) and each.body.gate == name]


def test_the_kept_arm_is_booted_again_and_its_replies_are_those_of_before(
    ledger: Ledger, make_spec: MakeSpec, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = make_spec(server="--delay 0.03", arms=FASTER, levels="[1]", more=LOOSE + RESTORE)
    assert ledger_run(ledger, spec) == 0
    said = capsys.readouterr().err
    assert "restore: faster stays (kept), proven: it is what was measured" in said
    assert made(ledger) == [(1, "base"), (2, "faster"), (3, "faster")]
    (last,) = [each.body for each in receipts(ledger) if isinstance(each.body, Attempt) and each.body.position == 3]
    assert "booted again" in str(last.added)
    (gate,) = verdicts(ledger, "restored-replies")
    assert (gate.holds, gate.value, gate.limit) == (Holds.PASS, "0", "<= 0")
    assert {blob.annotations["side"] for blob in gate.evidence} == {"arm", "control"}
    boots = [each.body for each in receipts(ledger) if isinstance(each.body, Boot)]
    assert boots[1].fingerprint == boots[2].fingerprint
    assert_sound(ledger)


def test_a_config_that_does_not_come_back_as_it_was_is_not_proven(
    ledger: Ledger, make_spec: MakeSpec, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counter = tmp_path / "boots"
    spec = make_spec(server=f"--says-by {counter}", levels="[1]", more='\n[restore]\nreplies = "decode"\narm = "base"\n')
    assert ledger_run(ledger, spec) == 1
    said = capsys.readouterr().err
    assert "restore: base stays (the spec names it), not proven" in said
    (gate,) = verdicts(ledger, "restored-replies")
    assert (gate.holds, gate.boot is not None) == (Holds.FAIL, True)
    assert int(gate.value or 0) > 0


def test_arms_that_were_kept_beside_each_other_leave_a_note_and_no_boot(
    ledger: Ledger, make_spec: MakeSpec, capsys: pytest.CaptureFixture[str]
) -> None:
    other = FASTER.replace("faster", "quicker").replace("0.010", "0.012")
    spec = make_spec(server="--delay 0.03", arms=FASTER + other, levels="[1]", more=LOOSE + RESTORE)
    assert ledger_run(ledger, spec) == 0
    assert [arm for _, arm in made(ledger)] == ["base", "faster", "quicker"]
    assert "restore: nothing was booted again: faster, quicker were kept" in capsys.readouterr().err
    (note,) = [each.body for each in receipts(ledger) if isinstance(each.body, Note)]
    assert "declare an arm that joins them" in note.text


def test_a_ladder_that_stops_restores_nothing(ledger: Ledger, make_spec: MakeSpec) -> None:
    spec = make_spec(server="--mode exits", arms=FASTER, more=LOOSE + RESTORE)
    spec.write_text(spec.read_text().replace("warmup = 1\n", 'warmup = 1\non_failure = "stop"\n', 1))
    assert ledger_run(ledger, spec) == 1
    assert made(ledger) == [(1, "base")]
    (note,) = [each.body for each in receipts(ledger) if isinstance(each.body, Note)]
    assert "the ladder stopped" in note.text


@pytest.mark.parametrize("moment", ["decided", "measured"])
def test_a_session_that_is_killed_while_it_restores_goes_on_there(ledger: Ledger, make_spec: MakeSpec, moment: str) -> None:
    spec = make_spec(server="--delay 0.03", arms=FASTER, levels="[1]\ntrials = 2", more=LOOSE + RESTORE)
    kill_once(ledger, spec, has(Decision) if moment == "decided" else has(Trial, 5))
    assert run(["-C", str(ledger.root), "run", "--resume"]) == 0
    found = [each.body for each in receipts(ledger) if isinstance(each.body, Trial)]
    assert sorted((trial.subject.arm, trial.number) for trial in found) == [
        ("base", 1),
        ("base", 2),
        *[("faster", number) for number in (1, 1, 2, 2)],
    ]
    gates = verdicts(ledger, "restored-replies")
    assert {gate.holds for gate in gates} == {Holds.PASS}
    decisions = [each.body.verdict for each in receipts(ledger) if isinstance(each.body, Decision)]
    assert decisions == [Verdict.KEEP]
    assert_sound(ledger)


def test_the_plan_says_which_boot_is_added(ledger: Ledger, make_spec: MakeSpec, capsys: pytest.CaptureFixture[str]) -> None:
    spec = make_spec(arms=FASTER, more=LOOSE + RESTORE)
    assert run(["-C", str(ledger.root), "plan", spec.name]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "3 boots" in said
    assert "boot 3 of the arm that the verdicts leave: one of base, faster is added" in said
    assert run(["-C", str(ledger.root), "plan", spec.name, "--json"]) == 0
    assert [boot["arm"] for boot in json.loads(capsys.readouterr().out)["restores"]] == ["base", "faster"]


@pytest.mark.engine
def test_the_real_engine_comes_back_as_it_was(ledger: Ledger) -> None:
    example = Path(__file__).parents[2] / "docs/example"
    text = (example / "threads.toml").read_text(encoding="utf-8")
    head, measures = text.split("[[arms]]", 1)[0], '[measures.decode]\nuses = "openai/decode"\nlevels = [1]\nmax_tokens = 16\n'
    arms = '[[arms]]\nid = "control"\nlane = "smol"\nrole = "control"\n\n'
    (ledger.root / "sites").mkdir()
    (ledger.root / "sites/here.toml").write_text('ledger = 1\nname = "here"\n\n[[nodes]]\nname = "here"\n')
    spec = ledger.root / "proven.toml"
    spec.write_text(head + arms + measures + '\n[restore]\nreplies = "decode"\narm = "control"\n')
    assert ledger_run(ledger, spec) == 0
    (gate,) = verdicts(ledger, "restored-replies")
    assert (gate.holds, gate.value) == (Holds.PASS, "0")
