"""The index over packs: a receipt that moves into a pack is the same receipt, and nothing is asked of it twice."""

import subprocess
import sys
import time
from datetime import date, timedelta
from pathlib import Path

import orjson
import pytest

from ledger.cli.main import run
from ledger.core.words import CorrectionKind
from ledger.query import index, ingest
from ledger.query.index import FILE, open_index
from ledger.query.sqlguard import views
from ledger.receipt.model import Correction
from ledger.store import packs
from ledger.store.git import commit_paths
from ledger.store.ledger import Ledger
from ledger.store.packing import pack
from tests.builder import BEGINNING, Builder, git

SESSIONS = 9


@pytest.fixture
def many(ledger: Ledger) -> Ledger:
    """A committed ledger of sessions in three months, with a correction in the last."""
    first = ""
    for number in range(SESSIONS):
        build = Builder(ledger, spec="exp", token=f"{number:04x}", when=BEGINNING + timedelta(days=8 * number))
        _, trial = build.arm(f"arm-{number % 3}", {"C1": 10.0 + number, "C6": 60.0 + number})
        first = first or trial
        if number == SESSIONS - 1:
            said = Correction(action=CorrectionKind.RETRACT, targets=(first,), reason="the cache was warm", by="A Tester")
            build.writer.record(said)
        commit_paths(ledger, build.writer.paths, f"session {number}")
    return ledger


def everything(ledger: Ledger) -> dict[str, list[str]]:
    """Every row of every documented view."""
    with open_index(ledger) as connection:
        names = [name for name, _ in views(connection)]
        return {view: sorted(map(repr, connection.execute(f"SELECT * FROM {view}").fetchall())) for view in names}


def unreadable(ledger: Ledger) -> int:
    with open_index(ledger) as connection:
        (count,) = connection.execute("SELECT count(DISTINCT path) FROM bad").fetchone() or (0,)
    return int(count)


def test_packing_between_two_questions_changes_no_answer_and_reads_no_receipt(
    many: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = everything(many)
    pack(many, before=date(2026, 11, 20))
    read: list[object] = []
    monkeypatch.setattr(ingest, "read", read.append)
    monkeypatch.setattr(packs, "contents", read.append)
    assert everything(many) == before
    assert read == []
    monkeypatch.undo()
    pack(many)
    assert everything(many) == before


def test_an_index_built_from_packs_is_the_one_built_from_files(many: Ledger) -> None:
    before = everything(many)
    pack(many)
    (many.state / FILE).unlink()
    assert everything(many) == before
    assert unreadable(many) == 0


def test_packs_that_come_and_go_with_git(many: Ledger, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(many.root), "clone")
    clone = Ledger(root=tmp_path / "clone")
    before = everything(clone)
    assert before == everything(many)
    pack(many)
    git(clone.root, "pull", "-q")
    assert not list(clone.receipts.glob("*/*/*/*.json"))
    assert everything(clone) == before
    git(clone.root, "checkout", "-q", "HEAD~1")
    assert everything(clone) == before
    git(clone.root, "checkout", "-q", "HEAD~5")
    assert len(everything(clone)["trials"]) < len(before["trials"])
    git(clone.root, "checkout", "-q", "main")
    assert everything(clone) == before


def test_a_new_receipt_of_a_packed_session_and_a_new_pack_are_found(many: Ledger) -> None:
    pack(many)
    everything(many)
    build = Builder(many, spec="exp", token="00aa", when=BEGINNING)
    build.arm("late", {"C6": 1.0})
    assert sum("late" in row for row in everything(many)["trials"]) == 1
    commit_paths(many, build.writer.paths, "late")
    pack(many)
    assert sum("late" in row for row in everything(many)["trials"]) == 1


@pytest.mark.parametrize("at", [1, -100], ids=["header", "contents"])
def test_a_damaged_pack_is_counted_and_the_rest_is_answered(many: Ledger, at: int) -> None:
    before = everything(many)
    path = pack(many).packs[0]
    whole = path.read_bytes()
    (many.state / FILE).unlink()
    damaged = bytearray(whole)
    damaged[at] ^= 0xFF
    path.write_bytes(damaged)
    assert unreadable(many) == 1
    left = everything(many)["trials"]
    assert left
    assert set(left) < set(before["trials"])
    assert run(["-C", str(many.root), "query", "C6 by arm"]) == 0
    time.sleep(0.01)
    path.write_bytes(whole)
    assert everything(many) == before
    assert unreadable(many) == 0


def test_a_receipt_that_is_packed_between_its_listing_and_its_reading_is_found(
    many: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = everything(many)
    (many.state / FILE).unlink()
    real = index._take

    def late(*arguments: object) -> None:
        monkeypatch.undo()
        pack(many)
        real(*arguments)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(index, "_take", late)
    assert everything(many) == before
    assert unreadable(many) == 0


def test_questions_while_somebody_packs_have_every_receipt(many: Ledger) -> None:
    total = len(everything(many)["receipts"])
    command = [sys.executable, "-m", "ledger", "-C", str(many.root), "pack"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as packing:
        counts = []
        while packing.poll() is None:
            counts.append(len(everything(many)["receipts"]))
    assert packing.returncode == 0
    assert set(counts) == {total}


def test_a_question_as_of_a_revision_before_or_after_the_pack(many: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    answers = []
    pack(many)
    for revision in ("HEAD", "HEAD~1"):
        assert run(["-C", str(many.root), "query", f"C6 by arm as-of:{revision}", "--json"]) == 0
        answers.append(orjson.loads(capsys.readouterr().out))
    assert answers[0] == answers[1]
