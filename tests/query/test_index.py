"""The index: built, kept up, rebuilt when damaged, and never in the way of another process."""

import multiprocessing
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import duckdb
import pytest

from ledger.cli.main import run
from ledger.core.errors import AgainError
from ledger.query import arrivals, index
from ledger.query.index import FILE, open_index
from ledger.store.ledger import Ledger
from tests.builder import Builder, new_ledger


def count(ledger: Ledger, table: str = "receipt") -> int:
    with open_index(ledger) as connection:
        row = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    assert row is not None
    return int(row[0])


def test_an_empty_ledger_has_an_empty_index(ledger: Ledger) -> None:
    assert count(ledger) == 0


def test_what_is_new_is_found_and_what_is_known_is_not_read_again(
    ledger: Ledger, build: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    build.arm("a", {"C6": 1.0})
    assert count(ledger) == 3
    monkeypatch.setattr(arrivals, "RACY_NS", 0)
    assert count(ledger) == 3
    opened: list[str] = []
    real = os.open

    def spy(path: str, *rest: object) -> int:
        opened.append(str(path))
        return real(path, *rest)  # type: ignore[arg-type]  # passed on as it came

    monkeypatch.setattr(os, "open", spy)
    build.arm("b", {"C6": 1.0})
    assert count(ledger) == 6
    assert len([path for path in opened if path.endswith(".json")]) == 3


def test_receipts_that_are_gone_leave_the_index(ledger: Ledger, build: Builder) -> None:
    _, trial = build.arm("a", {"C6": 1.0})
    build.arm("b", {"C6": 1.0})
    assert (count(ledger), count(ledger, "figure")) == (6, 2)
    ledger.path_of(trial).unlink()
    assert (count(ledger), count(ledger, "figure")) == (5, 1)
    shutil.rmtree(build.writer.folder)
    assert [count(ledger, table) for table in ("receipt", "figure", "boot", "link", "factor", "folders")] == [0] * 6


@pytest.mark.parametrize("damage", [b"", b"not a database", b"\0" * 8192])
def test_a_damaged_index_is_built_again_and_nobody_is_told(
    ledger: Ledger, build: Builder, damage: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    build.arm("a", {"C6": 1.0})
    count(ledger)
    (ledger.state / FILE).write_bytes(damage)
    assert count(ledger) == 3
    assert capsys.readouterr() == ("", "")


def test_a_cut_index_is_built_again(ledger: Ledger, build: Builder) -> None:
    build.arm("a", {"C6": 1.0})
    count(ledger)
    data = (ledger.state / FILE).read_bytes()
    (ledger.state / FILE).write_bytes(data[: len(data) // 2])
    assert count(ledger) == 3


def test_an_index_of_another_version_is_built_again(ledger: Ledger, build: Builder) -> None:
    build.arm("a", {"C6": 1.0})
    count(ledger)
    with duckdb.connect(str(ledger.state / FILE)) as connection:
        connection.execute("UPDATE meta SET value = 'another'")
        connection.execute("DROP VIEW cells")
    assert count(ledger, "cells") == 1


BAD = {
    "not-json": b"{",
    "not-utf8": b'{"kind":"\xff"}',
    "a-list": b"[]",
    "no-kind": b'{"ledger":1}',
    "two-lines": b'{"kind":"note",\n"note":{}}',
    "empty": b"",
    "deep": b'{"kind":' + b"[" * 100_000,
    "huge-number": b'{"kind":"trial","trial":{"seconds":1e400}}',
    "wrong-types": b'{"kind":"trial","trial":{"number":"x","figures":7}}',
    "surrogate": b'{"kind":"\\ud800"}',
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD.keys())
def test_a_file_that_is_no_receipt_is_left_out_and_the_rest_is_answered(ledger: Ledger, build: Builder, data: bytes) -> None:
    build.arm("a", {"C6": 1.0})
    (build.writer.folder / f"{'0' * 64}.json").write_bytes(data)
    assert count(ledger, "cells") == 1
    assert count(ledger, "metrics") == 1


def test_links_and_pipes_in_place_of_receipts_are_not_followed(ledger: Ledger, build: Builder, tmp_path: Path) -> None:
    build.arm("a", {"C6": 1.0})
    outside = tmp_path / "outside.json"
    outside.write_bytes(b'{"kind":"note","note":{}}')
    (build.writer.folder / f"{'1' * 64}.json").symlink_to(outside)
    os.mkfifo(build.writer.folder / f"{'2' * 64}.json")
    (ledger.receipts / "2026" / "10" / "01T0000-elsewhere-0000").symlink_to(tmp_path)
    assert count(ledger) == 3


def _record(root: str, number: int) -> None:
    ledger = Ledger(root=Path(root))
    build = Builder(ledger, token=f"{number:04x}")
    for _ in range(5):
        build.arm("a", {"C6": float(number)})
        with open_index(ledger) as connection:
            connection.execute("SELECT count(*) FROM cells").fetchone()


def test_several_writers_and_readers_at_once_lose_nothing(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path / "repo")
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_record, args=(str(ledger.root), number)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert (count(ledger), count(ledger, "cells")) == (60, 20)


def test_a_reader_that_holds_the_file_does_not_stop_a_writer(
    ledger: Ledger, build: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "WRITE_FOR_S", 0.2)
    build.arm("a", {"C6": 1.0})
    count(ledger)
    script = (
        "import duckdb, sys, time; c = duckdb.connect(sys.argv[1], read_only=True); print('open', flush=True); time.sleep(60)"
    )
    reader = subprocess.Popen([sys.executable, "-c", script, str(ledger.state / FILE)], stdout=subprocess.PIPE, text=True)
    assert reader.stdout is not None
    assert reader.stdout.readline() == "open\n"
    try:
        build.arm("b", {"C6": 1.0})
        assert count(ledger) == 6
    finally:
        reader.kill()
        reader.wait()


def test_damage_that_is_met_in_a_question_is_mended_and_nobody_is_told(
    ledger: Ledger, build: Builder, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(20):
        build.arm(f"a{number}", {f"C{level}": float(level * number) for level in range(1, 30)})
    os.utime(build.writer.folder, (1e9, 1e9))
    assert run(["-C", str(ledger.root), "query", "C*", "--json"]) == 0
    wanted = capsys.readouterr()
    file = ledger.state / FILE
    whole = file.read_bytes()
    broken = [at for at in range(0, len(whole), len(whole) // 60) if _breaks_a_question(file, whole, at)]
    assert broken
    for at in (broken[0], broken[-1]):
        _flip(file, whole, at)
        with pytest.raises(AgainError), open_index(ledger) as connection:
            connection.execute(QUESTION).fetchone()
        assert not file.exists()
        _flip(file, whole, at)
        assert run(["-C", str(ledger.root), "query", "C*", "--json"]) == 0
        assert capsys.readouterr() == wanted


QUESTION = "SELECT sum(value), max(fingerprint) FROM metrics JOIN boots ON boots.digest = metrics.boot"


def _flip(file: Path, whole: bytes, at: int) -> None:
    file.write_bytes(whole[:at] + bytes(byte ^ 0xFF for byte in whole[at : at + 64]) + whole[at + 64 :])


def _breaks_a_question(file: Path, whole: bytes, at: int) -> bool:
    """Whether the file still opens with these bytes damaged, and a question then fails."""
    _flip(file, whole, at)
    with suppress(duckdb.Error), duckdb.connect(str(file), read_only=True) as connection:
        connection.execute("SELECT value FROM meta").fetchone()
        connection.execute("SELECT folder, stamp FROM folders").fetchall()
        try:
            connection.execute(QUESTION).fetchone()
        except duckdb.Error:
            return True
    return False


@pytest.mark.parametrize("data", BAD.values(), ids=BAD.keys())
def test_a_file_that_is_no_receipt_is_counted_once_until_it_is_gone(ledger: Ledger, build: Builder, data: bytes) -> None:
    build.arm("a", {"C6": 1.0})
    bad = build.writer.folder / f"{'0' * 64}.json"
    bad.write_bytes(data)
    assert [count(ledger, "bad"), count(ledger, "bad"), count(ledger)] == [1, 1, 3]
    bad.unlink()
    assert count(ledger, "bad") == 0


def test_a_receipt_that_is_wrong_in_one_field_is_left_out_whole(ledger: Ledger, build: Builder) -> None:
    _, trial = build.arm("a", {"C6": 1.0, "C1": 2.0})
    data = ledger.path_of(trial).read_bytes()
    (build.writer.folder / f"{'3' * 64}.json").write_bytes(data.replace(b'"value":2', b'"value":"2"'))
    assert [count(ledger, "bad"), count(ledger), count(ledger, "figure")] == [1, 3, 2]


def test_a_receipt_in_two_folders_is_one_receipt_and_outlives_either(ledger: Ledger, build: Builder) -> None:
    boot, trial = build.arm("a", {"C6": 1.0})
    build.trial(boot, "a", {"C6": 5.0}, number=2)
    assert (count(ledger), count(ledger, "metrics")) == (4, 2)
    first = ledger.path_of(trial)
    moved = ledger.receipts / "2026/11/01T0000-moved-0001" / first.name
    moved.parent.mkdir(parents=True)
    shutil.copy(first, moved)
    assert (count(ledger), count(ledger, "metrics")) == (4, 2)
    first.unlink()
    assert (count(ledger), count(ledger, "metrics")) == (4, 2)
    shutil.copy(moved, first)
    assert (count(ledger), count(ledger, "metrics")) == (4, 2)
    shutil.rmtree(moved.parent)
    assert (count(ledger), count(ledger, "metrics")) == (4, 2)
    first.unlink()
    assert (count(ledger), count(ledger, "metrics")) == (3, 1)
