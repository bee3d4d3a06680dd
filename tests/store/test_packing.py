"""Packing: every receipt is there at every moment, whatever kills it, and nothing but its place changes."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from ledger.core.errors import StoreError
from ledger.receipt.model import Note
from ledger.store import ledger as ledger_module
from ledger.store import packing, packs, verify_session
from ledger.store import verify as verify_module
from ledger.store.git import commit_paths, uncommitted
from ledger.store.history import check_history
from ledger.store.ledger import Ledger, load
from ledger.store.packing import choose, pack
from ledger.store.revision import receipts_at
from ledger.store.session import SessionWriter
from ledger.store.timeline import checkpoint, timeline
from ledger.store.verify import Checked, verify
from tests.builder import BEGINNING, Builder, git

SESSIONS = 12
NOTES = 4


@pytest.fixture
def many(ledger: Ledger) -> Ledger:
    """A committed ledger of sessions in three months."""
    for number in range(SESSIONS):
        record(ledger, number, when=BEGINNING + timedelta(days=6 * number))
    return ledger


def record(ledger: Ledger, number: int, *, when: datetime = BEGINNING, commit: bool = True) -> Builder:
    build = Builder(ledger, spec=f"session-{number}", token=f"{number:04x}", when=when)
    for step in range(NOTES):
        build.writer.record(Note(text=f"{number}/{step}", by="a tester"))
    if commit:
        commit_paths(ledger, build.writer.paths, f"receipts: {number}")
    return build


def contents(ledger: Ledger) -> Mapping[str, bytes]:
    """Every receipt's bytes by digest, read as every command reads them."""
    return {stored.digest: ledger.read_bytes(stored.digest) for stored in ledger.walk()}


def loose(ledger: Ledger) -> list[Path]:
    return sorted(ledger.receipts.glob("*/*/*/*.json"))


def packed(ledger: Ledger) -> list[Path]:
    return sorted(ledger.receipts.glob("*/*/*.jsonl.gz"))


def assert_whole(ledger: Ledger, before: Mapping[str, bytes]) -> None:
    assert contents(ledger) == before
    assert list(verify(ledger, Checked())) == []


def test_packing_changes_the_place_and_nothing_else(many: Ledger) -> None:
    before, order = contents(many), timeline(many)
    made = pack(many)
    assert (made.receipts, made.sessions, len(made.packs)) == (SESSIONS * NOTES, SESSIONS, 3)
    assert made.pack_bytes < made.loose_bytes
    assert loose(many) == []
    assert_whole(many, before)
    assert git(many.root, "status", "--porcelain") == ""
    assert list(check_history(many)) == []
    assert timeline(many) == order
    assert checkpoint(timeline(many)) == checkpoint(order)
    assert receipts_at(many, "HEAD") == receipts_at(many, "HEAD~1") == set(before)


def test_plain_tools_read_a_pack(many: Ledger) -> None:
    before = contents(many)
    for path in pack(many).packs:
        for line in subprocess.run(["zcat", path], capture_output=True, check=True).stdout.splitlines():
            done = subprocess.run(["sha256sum"], input=line, capture_output=True, check=True)
            assert before["sha256:" + done.stdout.decode().split()[0]] == line


def test_a_second_run_finds_nothing_and_a_new_session_makes_a_pack_beside_the_first(many: Ledger) -> None:
    pack(many)
    head = git(many.root, "rev-parse", "HEAD")
    again = pack(many)
    assert (again.receipts, again.commit.commit) == (0, None)
    assert git(many.root, "rev-parse", "HEAD") == head
    record(many, 99)
    before = contents(many)
    first = packed(many)
    assert pack(many).receipts == NOTES
    assert set(first) < set(packed(many))
    assert_whole(many, before)


def test_the_same_receipts_make_the_same_pack(many: Ledger, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(many.root), "clone")
    clone = Ledger(root=tmp_path / "clone")
    assert [path.name for path in pack(many).packs] == [path.name for path in pack(clone).packs]


def test_what_is_not_committed_or_being_written_or_too_young_stays_loose(many: Ledger) -> None:
    pending = record(many, 50, commit=False)
    writing = record(many, 51)
    choice = choose(many, before=date(2026, 10, 25))
    assert {path.parent.name for path in choice.loose()} == {"18T1200-session-0-0000", "24T1200-session-1-0001"}
    made = pack(many)
    names = (pending.writer.folder.name, writing.writer.folder.name)
    assert [any(name in remark for remark in made.remarks) for name in names] == [True, True]
    assert {path.parent.name for path in loose(many)} == set(names)


def test_a_wrong_receipt_stays_loose_and_is_told(many: Ledger) -> None:
    wrong = loose(many)[5]
    whole = wrong.read_bytes()
    wrong.write_bytes(whole[:-1])
    made = pack(many)
    assert [remark for remark in made.remarks if wrong.name in remark]
    assert loose(many) == [wrong]
    wrong.write_bytes(whole)
    assert pack(many).receipts == 1
    assert loose(many) == []


def test_a_session_goes_on_after_it_was_packed(many: Ledger) -> None:
    build = record(many, 70)
    session, clock, tool = build.writer.session, build.writer._clock, build.writer._tool
    del build
    pack(many)
    writer = SessionWriter.resume(many, session, clock=clock, tool=tool)
    assert writer.count == NOTES
    writer.record(Note(text="more", by="a tester"))
    commit_paths(many, writer.paths, "more")
    assert list(verify(many, Checked())) == []


def test_what_a_session_records_after_the_choice_stays_loose_for_its_own_commit(
    many: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = record(many, 70)
    session, clock, tool = build.writer.session, build.writer._clock, build.writer._tool
    del build
    writers = []

    def go_on() -> None:
        writers.append(SessionWriter.resume(many, session, clock=clock, tool=tool))
        writers[0].record(Note(text="more", by="a tester"))

    just_before(monkeypatch, packing, "_pack_month", go_on)
    pack(many)
    (left,) = loose(many)
    assert left in writers[0].paths
    commit_paths(many, writers[0].paths, "receipts: more")
    assert uncommitted(many) == []
    assert list(verify(many, Checked())) == []
    assert list(check_history(many)) == []


def test_a_session_that_is_taken_up_while_its_files_go_stays_its_writer_s(many: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    build = record(many, 70)
    session, clock, tool = build.writer.session, build.writer._clock, build.writer._tool
    for path in build.writer.folder.glob("blobs/*"):
        path.unlink()
    (build.writer.folder / "blobs").rmdir()
    git(many.root, "commit", "-qam", "no blobs")
    del build
    writers = []
    resume = partial(SessionWriter.resume, many, session, clock=clock, tool=tool)
    just_before(monkeypatch, packing, "_remove", lambda: writers.append(resume()))
    pack(many)
    with pytest.raises(StoreError, match="another process is writing"):
        resume()
    writers[0].record(Note(text="more", by="a tester"))
    assert list(verify(many, Checked())) == []


def test_a_receipt_that_cannot_be_read_is_told_and_the_others_are_packed(many: Ledger) -> None:
    wrong = loose(many)[3]
    wrong.unlink()
    wrong.mkdir()
    (wrong / "x").write_text("")
    pack(many)
    assert loose(many) == [wrong]


def test_branches_that_packed_differently_merge_and_lose_nothing(many: Ledger, tmp_path: Path) -> None:
    before = contents(many)
    git(many.root, "checkout", "-q", "-b", "early")
    pack(many, before=date(2026, 11, 1))
    git(many.root, "checkout", "-q", "main")
    record(many, 80, when=datetime(2026, 10, 30, tzinfo=UTC))
    after = contents(many)
    pack(many)
    git(many.root, "merge", "-q", "-m", "both", "early")
    assert set(before) < set(after)
    assert_whole(many, after)
    assert list(check_history(many)) == []
    assert git(many.root, "status", "--porcelain") == ""


def test_a_pack_that_is_removed_in_a_commit_is_told_with_what_it_held(many: Ledger) -> None:
    pack(many)
    gone = packed(many)[0]
    git(many.root, "rm", "-q", str(gone))
    git(many.root, "commit", "-qm", "tidy up")
    findings = {Path(item.path).name: item for item in check_history(many)}
    assert {item.code for item in findings.values()} == {"removed"}
    found = findings[gone.name]
    assert "receipts" in found.what
    subprocess.run(found.hint.split(), cwd=many.root, check=True)
    assert list(check_history(many)) == []


def test_a_pack_that_is_gone_from_the_disk_is_told_once_with_the_way_back(many: Ledger) -> None:
    pack(many)
    gone = packed(many)[0]
    gone.unlink()
    (found,) = check_history(many)
    assert (Path(found.path).name, found.code) == (gone.name, "removed")
    assert "receipts" in found.what
    subprocess.run(found.hint.split(), cwd=many.root, check=True)
    assert list(check_history(many)) == []


def test_a_pack_that_is_taken_back_is_no_loss(many: Ledger) -> None:
    before = contents(many)
    pack(many)
    git(many.root, "revert", "--no-edit", "HEAD")
    assert packed(many) == []
    assert_whole(many, before)
    assert list(check_history(many)) == []
    assert pack(many).receipts == len(before)
    assert_whole(many, before)


def test_a_commit_that_fails_leaves_every_file(many: Ledger) -> None:
    before = contents(many)
    (many.root / ".git" / "BISECT_LOG").write_text("")
    with pytest.raises(Exception, match="bisection"):
        pack(many)
    assert len(loose(many)) == SESSIONS * NOTES
    assert_whole(many, before)
    (many.root / ".git" / "BISECT_LOG").unlink()
    assert pack(many).receipts == SESSIONS * NOTES
    assert_whole(many, before)


def started(ledger: Ledger) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "ledger", "-C", str(ledger.root), "pack"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_a_kill_at_any_moment_loses_nothing_and_the_next_run_goes_on(many: Ledger) -> None:
    before, order = contents(many), checkpoint(timeline(many))
    draw = random.Random("packing")
    # It begins with the start of Python, which is not worth killing; the moments after it are.
    for _ in range(6):
        process = started(many)
        time.sleep(0.25 + draw.random() * 0.35)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        (many.root / ".git" / "index.lock").unlink(missing_ok=True)  # git's own, which git tells people to remove
        assert_whole(many, before)
    assert started(many).wait() == 0
    assert loose(many) == []
    assert_whole(many, before)
    assert uncommitted(many) == []
    assert git(many.root, "status", "--porcelain") == ""
    assert checkpoint(timeline(many)) == order
    assert list(check_history(many)) == []


# Run `ledger pack`, and die by SIGKILL at the n-th call of a function, before it or after it.
DYING = """
import os, signal, sys
from pathlib import Path
from ledger.cli.main import run
from ledger.store import git, objects, packing

owner, name, when, at, root = sys.argv[1:]
place = {"objects": objects, "packing": packing, "git": git, "Path": Path}[owner]
real, calls = getattr(place, name), []

def dying(*arguments, **named):
    calls.append(1)
    if len(calls) == int(at) and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    result = real(*arguments, **named)
    if len(calls) == int(at):
        os.kill(os.getpid(), signal.SIGKILL)
    return result

setattr(place, name, dying)
run(["-C", root, "pack"])
"""
STEPS = [
    ("objects", "put", "before", 2),
    ("objects", "put", "after", 1),
    ("objects", "_link", "before", 1),
    ("packing", "commit_paths", "before", 1),
    ("packing", "commit_paths", "after", 1),
    ("git", "_tell_index", "before", 1),
    ("packing", "_remove", "before", 1),
    ("Path", "unlink", "after", 9),
    ("Path", "rmdir", "before", 2),
]


@pytest.mark.parametrize(("owner", "name", "when", "at"), STEPS)
def test_a_kill_at_each_step_loses_nothing(many: Ledger, owner: str, name: str, when: str, at: int) -> None:
    before = contents(many)
    done = subprocess.run([sys.executable, "-c", DYING, owner, name, when, str(at), many.root], check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL
    assert_whole(many, before)
    assert pack(many).remarks == ()
    assert loose(many) == []
    assert_whole(many, before)
    assert uncommitted(many) == []
    assert git(many.root, "status", "--porcelain") == ""
    assert list(check_history(many)) == []


def test_sessions_are_recorded_while_others_are_packed(many: Ledger) -> None:
    first = started(many)
    for number in range(200, 208):
        record(many, number)
    assert first.wait() == 0
    expected = {Note(text=f"{number}/{step}", by="a tester").text for number in range(200, 208) for step in range(NOTES)}
    assert pack(many).remarks == ()
    texts = b"\n".join(contents(many).values()).decode()
    assert all(f'"{text}"' in texts for text in expected)
    assert list(verify(many, Checked())) == []
    assert git(many.root, "status", "--porcelain") == ""


def test_two_that_pack_at_once_lose_nothing(many: Ledger) -> None:
    before = contents(many)
    assert [process.wait() for process in [started(many), started(many), started(many)]] == [0, 0, 0]
    assert_whole(many, before)
    pack(many)
    assert loose(many) == []
    assert_whole(many, before)
    assert git(many.root, "status", "--porcelain") == ""
    assert list(check_history(many)) == []


def test_a_session_that_one_branch_packed_and_another_went_on_with_merges(many: Ledger) -> None:
    build = record(many, 70)
    session, clock, tool = build.writer.session, build.writer._clock, build.writer._tool
    del build
    git(many.root, "checkout", "-q", "-b", "runner")
    writer = SessionWriter.resume(many, session, clock=clock, tool=tool)
    for step in range(3):
        writer.record(Note(text=f"on the runner {step}", by="a tester"))
    commit_paths(many, writer.paths, "receipts: went on")
    del writer
    after = contents(many)
    git(many.root, "checkout", "-q", "main")
    pack(many)
    record(many, 71)
    after = contents(many) | after
    git(many.root, "merge", "-q", "-m", "both", "runner")
    assert_whole(many, after)
    assert list(check_history(many)) == []
    assert pack(many).receipts == 3 + NOTES
    assert_whole(many, after)


def just_before(monkeypatch: pytest.MonkeyPatch, place: object, name: str, act: Callable[[], object]) -> None:
    """Have ``act`` done once, right before the next call of a function."""
    real = getattr(place, name)

    def called(*arguments: object, **named: object) -> object:
        monkeypatch.setattr(place, name, real)
        act()
        return real(*arguments, **named)

    monkeypatch.setattr(place, name, called)


MOMENTS = [(verify_module, "listed"), (verify_module, "packed_in"), (verify_session, "_loose"), (verify_session, "_chain")]


@pytest.mark.parametrize(("place", "name"), MOMENTS)
def test_what_is_packed_while_verify_reads_is_found_whole(
    many: Ledger, monkeypatch: pytest.MonkeyPatch, place: object, name: str
) -> None:
    checked = Checked()
    just_before(monkeypatch, place, name, lambda: pack(many))
    assert list(verify(many, checked)) == []
    assert checked.receipts == SESSIONS * NOTES
    assert loose(many) == []


@pytest.mark.parametrize("name", ["folders", "packed_in", "_stored"])
def test_what_is_packed_during_a_walk_is_given_and_read(many: Ledger, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    before = contents(many)
    just_before(monkeypatch, ledger_module, name, lambda: pack(many))
    walked = list(many.walk())
    assert loose(many) == []
    assert {stored.digest: load(stored) for stored in walked} == before


def test_a_receipt_that_is_gone_is_told_and_not_looked_for_for_ever(many: Ledger) -> None:
    stored = next(many.walk())
    stored.path.unlink()
    with pytest.raises(StoreError, match="no such file"):
        load(stored)


def test_a_block_of_many_receipts_is_split_and_found_again(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "BLOCK_RECEIPTS", 3)
    monkeypatch.setattr(packs, "PACK_BYTES", 400)
    for number in range(4):
        record(ledger, number)
    before = contents(ledger)
    made = pack(ledger)
    assert len(made.packs) > 1
    assert_whole(ledger, before)
