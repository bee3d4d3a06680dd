"""What a session's own decisions hold: the effect, its interval, the noise band with its boots, and the odds of the rule."""

from pathlib import Path

import pytest

from ledger.cli.main import run
from ledger.core.words import Verdict
from ledger.receipt.model import Decision
from ledger.store.ledger import Ledger
from tests.run.conftest import MakeSpec
from tests.run.test_session import FASTER, RULE, assert_sound, ledger_run, receipts

TWICE = FASTER.replace('base = "base"', 'base = "base"\nboots = 2')


def twice(spec: Path) -> Path:
    """The spec with two boots of its control."""
    spec.write_text(spec.read_text().replace('role = "control"', 'role = "control"\nboots = 2', 1))
    return spec


def decisions(ledger: Ledger) -> list[Decision]:
    return [receipt.body for receipt in receipts(ledger) if isinstance(receipt.body, Decision)]


def test_a_decision_of_a_run_holds_what_decide_says_of_it(
    ledger: Ledger, make_spec: MakeSpec, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = twice(make_spec(arms=TWICE, more=RULE + 'drift = "900 %"\n', levels="[1, 2]"))
    assert ledger_run(ledger, spec) == 0
    assert "odds with 2 boots a side, 2000 draws: an arm without effect is kept in" in capsys.readouterr().err
    session = receipts(ledger)[0].session
    assert run(["-C", str(ledger.root), "decide", session]) == 0
    of_run, of_decide = decisions(ledger)
    assert of_run.effects == of_decide.effects
    assert of_run.odds == of_decide.odds
    for effect in of_run.effects:
        assert (effect.n_arm, effect.n_control, effect.noise_boots) == (2, 2, 4)
        assert None not in (effect.low, effect.high, effect.band)
    assert of_run.odds is not None
    assert {name: (each.source, each.boots) for name, each in of_run.odds.noise.items()} == {
        "C1": ("ledger", 4),
        "C2": ("ledger", 4),
    }
    assert 0 <= of_run.odds.false_keep <= of_run.odds.false_keep_ladder <= 1
    assert_sound(ledger)


def test_the_noise_is_that_of_all_sessions(ledger: Ledger, make_spec: MakeSpec) -> None:
    spec = make_spec(arms=FASTER, more=RULE, levels="[1, 2]")
    assert ledger_run(ledger, spec) == 0
    assert ledger_run(ledger, spec) == 0
    # Two sessions of one minute have no order by name.
    first, second = sorted(decisions(ledger), key=lambda each: each.effects[0].noise_boots or 0)
    assert [effect.noise_boots for effect in first.effects] == [None, None]
    assert [effect.noise_boots for effect in second.effects] == [4, 4]
    assert first.odds is not None
    assert second.odds is not None
    assert {each.source for each in first.odds.noise.values()} == {"assumed"}
    assert {each.source for each in second.odds.noise.values()} == {"ledger"}


def test_without_the_index_the_decision_is_made_and_says_so(ledger: Ledger, make_spec: MakeSpec) -> None:
    (ledger.state / "index.duckdb").mkdir(parents=True)
    assert ledger_run(ledger, make_spec(arms=FASTER, more=RULE)) == 0
    (decision,) = decisions(ledger)
    assert decision.verdict in (Verdict.KEEP, Verdict.REVERT)
    assert "the noise that the ledger has seen is not known here" in decision.reasons[-1]
    assert decision.odds is not None
