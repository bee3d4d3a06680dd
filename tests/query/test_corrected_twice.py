"""A receipt that several corrections strike is one row, in every view and in the log, with the latest of them."""

import pytest

from ledger.core.words import CorrectionKind
from ledger.query.index import open_index
from ledger.query.listing import newest
from ledger.receipt.model import Correction
from ledger.store.ledger import Ledger
from tests.builder import Builder


def correct(build: Builder, action: CorrectionKind, target: str) -> str:
    return build.writer.record(Correction(action=action, targets=(target,), reason="why not", by="A Tester"))


@pytest.fixture
def corrected(build: Builder) -> tuple[str, str]:
    """The trial that three corrections strike, and the last of the three."""
    _, trial = build.arm("a", {"C6": 1.0})
    correct(build, CorrectionKind.CONCERN, trial)
    correct(build, CorrectionKind.CONCERN, trial)
    return trial, correct(build, CorrectionKind.RETRACT, trial)


@pytest.mark.parametrize("view", ["receipts", "trials", "metrics"])
def test_a_view_shows_it_once_with_the_latest(ledger: Ledger, corrected: tuple[str, str], view: str) -> None:
    with open_index(ledger) as connection:
        rows = connection.execute(f"SELECT struck_by FROM {view} WHERE digest = ?", [corrected[0]]).fetchall()
    assert rows == [("retract",)]


def test_the_views_name_the_correction(ledger: Ledger, corrected: tuple[str, str]) -> None:
    with open_index(ledger) as connection:
        rows = connection.execute("SELECT struck_by_digest FROM receipts WHERE digest = ?", [corrected[0]]).fetchall()
        all_of_them = connection.execute("SELECT count(*) FROM struck").fetchone()
    assert rows == [(corrected[1],)]
    assert all_of_them == (3,)


def test_the_log_lists_it_once(ledger: Ledger, corrected: tuple[str, str]) -> None:
    with open_index(ledger) as connection:
        found = newest(connection, 100)
    assert [row[0] for row in found.rows].count(corrected[0]) == 1
    assert len(found.rows) == 6


def test_a_later_correction_and_a_reinstatement_are_taken_up(ledger: Ledger, build: Builder, corrected: tuple[str, str]) -> None:
    trial, last = corrected
    for action, expected in ((CorrectionKind.REINSTATE, "concern"), (CorrectionKind.SUPERSEDE, "supersede")):
        correct(build, action, last if action is CorrectionKind.REINSTATE else trial)
        with open_index(ledger) as connection:
            assert connection.execute("SELECT action FROM last_strike WHERE digest = ?", [trial]).fetchall() == [(expected,)]
