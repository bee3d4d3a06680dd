"""Many people and processes at once: one clone, and several clones that are pushed and merged; nothing is lost."""

import multiprocessing
from pathlib import Path

from ledger.receipt.model import Note
from ledger.store.git import commit_paths, uncommitted
from ledger.store.history import check_history
from ledger.store.ledger import Ledger
from ledger.store.timeline import timeline
from ledger.store.verify import Checked, verify
from tests.builder import Builder, git

PROCESSES = 8
RECEIPTS = 500


def _record(root: str, number: int) -> None:
    ledger = Ledger(root=Path(root))
    build = Builder(ledger, spec=f"writer-{number}", token=f"{number:04x}")
    for step in range(RECEIPTS):
        build.writer.record(Note(text=f"{number}/{step}", by="a tester"))
    commit_paths(ledger, build.writer.paths, f"receipts: writer {number}")


def at_once(roots: list[Path]) -> list[int | None]:
    """Record in each folder at the same time; the exit codes."""
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_record, args=(str(root), number)) for number, root in enumerate(roots)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(300)
    return [worker.exitcode for worker in workers]


def test_eight_processes_record_into_one_clone(ledger: Ledger) -> None:
    (ledger.root / "work").write_text("the user's own work, not committed")
    git(ledger.root, "add", "work")
    assert at_once([ledger.root] * PROCESSES) == [0] * PROCESSES
    checked = Checked()
    assert list(verify(ledger, checked)) == []
    assert checked.receipts == PROCESSES * RECEIPTS
    assert len(timeline(ledger)) == PROCESSES * RECEIPTS
    assert uncommitted(ledger) == []
    assert git(ledger.root, "status", "--porcelain") == "A  work\n"
    assert list(check_history(ledger)) == []


def test_eight_clones_are_pushed_and_merged_without_conflict(ledger: Ledger, tmp_path: Path) -> None:
    clones = []
    for number in range(PROCESSES):
        clone = tmp_path / f"clone-{number}"
        git(tmp_path, "clone", "-q", str(ledger.root), str(clone))
        git(clone, "config", "user.email", "tester@example.invalid")
        git(clone, "config", "user.name", "A Tester")
        git(clone, "checkout", "-q", "-b", f"writer-{number}")
        clones.append(clone)
    assert at_once(clones) == [0] * PROCESSES
    for number, clone in enumerate(clones):
        git(clone, "push", "-q", "origin", f"writer-{number}")
        git(ledger.root, "merge", "-q", "-m", f"merge writer {number}", f"writer-{number}")
    checked = Checked()
    assert list(verify(ledger, checked)) == []
    assert checked.receipts == PROCESSES * RECEIPTS
    assert len(timeline(ledger)) == PROCESSES * RECEIPTS
    assert git(ledger.root, "status", "--porcelain") == ""
    assert list(check_history(ledger)) == []


def test_the_ledger_goes_on_after_somebody_rebased(ledger: Ledger) -> None:
    git(ledger.root, "checkout", "-q", "-b", "side")
    _record_few(ledger, 1)
    git(ledger.root, "checkout", "-q", "main")
    _record_few(ledger, 2)
    git(ledger.root, "checkout", "-q", "side")
    git(ledger.root, "rebase", "-q", "main")
    _record_few(ledger, 3)
    assert list(verify(ledger, Checked())) == []
    assert len(timeline(ledger)) == 9
    assert list(check_history(ledger)) == []


def _record_few(ledger: Ledger, number: int) -> None:
    build = Builder(ledger, spec=f"few-{number}", token=f"{number:04x}")
    for step in range(3):
        build.writer.record(Note(text=str(step), by="a tester"))
    commit_paths(ledger, build.writer.paths, f"few {number}")
