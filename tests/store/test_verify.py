"""Every way in which a ledger can be wrong is told with its file, and nothing else is."""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.cli.main import run
from ledger.receipt import codec
from ledger.store import finding, layout, verify_session
from ledger.store import verify as verify_module
from ledger.store.ledger import MAX_RECEIPT, Ledger
from ledger.store.verify import Checked, Finding, verify
from tests.builder import Builder
from tests.store.packs_to_be_wrong import WRONG_PACKS, pack_has_a_flipped_bit, packed
from tests.store.ways_to_be_wrong import (
    WRONG,
    Wrong,
    a_boot_that_is_a_trial,
    a_link_that_is_a_path,
    emptied,
    files,
    flipped_bit,
    forge,
    name_that_is_no_text,
    truncated,
    write,
    wrong_file_name,
)

EVERY = (*WRONG, *WRONG_PACKS)


def findings(ledger: Ledger) -> list[Finding]:
    """What verify finds."""
    return list(verify(ledger, Checked()))


def codes(ledger: Ledger) -> set[str]:
    return {finding.code for finding in findings(ledger)}


def test_a_whole_ledger_has_no_finding_and_is_counted(whole: Ledger, build: Builder) -> None:
    checked = Checked()
    assert list(verify(whole, checked)) == []
    total = sum(path.stat().st_size for path in build.writer.folder.glob("*.json"))
    assert checked.counts() == {"sessions": 1, "receipts": 8, "blobs": 1, "unnamed": 0, "bytes": total, "packs": 0, "away": 0}


def test_an_empty_ledger_and_one_without_its_folder_are_whole(ledger: Ledger) -> None:
    assert findings(ledger) == []
    (ledger.receipts / ".gitkeep").unlink()
    ledger.receipts.rmdir()
    assert findings(ledger) == []


def test_what_a_killed_session_leaves_is_no_finding(whole: Ledger, build: Builder) -> None:
    build.writer.blob(b"nobody came to name this", "text/plain")
    (whole.receipts / "2026" / "11" / "01T0000-exp-00ff" / "blobs").mkdir(parents=True)
    (whole.scratch / "999999999.aa.bb.tmp").write_bytes(b"half")
    checked = Checked()
    assert list(verify(whole, checked)) == []
    assert checked.unnamed == 1


def snapshot(folder: Path) -> Iterator[tuple[str, int, int]]:
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        yield str(path), stat.S_IFMT(status.st_mode), status.st_mtime_ns


def names_one_of(receipt: Path, touched: set[Path]) -> bool:
    """Whether a receipt that was left alone names a blob or receipt that was not."""
    return any(path.name[:64].encode() in receipt.read_bytes() for path in touched if layout.HEX.match(path.name))


def test_there_is_a_wrong_ledger_for_each_code_of_verify() -> None:
    modules = (verify_module, verify_session, finding)
    source = "".join(Path(module.__file__).read_text(encoding="utf-8") for module in modules)
    assert {code for _, code in EVERY} >= set(re.findall(r'finding\([^"]*"([a-z-]+)"', source))


@pytest.mark.parametrize(("wrong", "code"), EVERY, ids=lambda value: getattr(value, "__name__", ""))
def test_a_wrong_ledger_is_told(whole: Ledger, build: Builder, wrong: Wrong, code: str) -> None:
    before = set(snapshot(whole.root))
    wrong(whole, build)
    kept = list(snapshot(whole.receipts))
    touched = {Path(name) for name, _, _ in before ^ set(snapshot(whole.root))}
    found = findings(whole)
    named = [whole.root / item.path for item in found if item.code == code]
    assert named
    assert all(path in touched or names_one_of(path, touched) or "\\x" in path.name for path in named), "it names the file"
    assert list(snapshot(whole.receipts)) == kept, "verify changes nothing"
    for item in found:
        assert item.path.isprintable()
        assert item.what
        orjson.dumps([item.path, item.what, item.hint])


IN_A_RECEIPT = [
    (wrong, code)
    for wrong, code in WRONG
    if code
    in {"shape", "canonical", "time", "dangling", "role", "gap", "fork", "chain", "fingerprint", "blob-missing", "blob-size"}
]


@pytest.mark.parametrize(("wrong", "code"), IN_A_RECEIPT, ids=lambda value: getattr(value, "__name__", ""))
def test_what_is_wrong_with_a_receipt_is_told_of_a_packed_one(whole: Ledger, build: Builder, wrong: Wrong, code: str) -> None:
    wrong(whole, build)
    before = findings(whole)
    if any(b"\n" in path.read_bytes() for path in build.writer.folder.glob("*.json")):
        code = "unreadable"  # a receipt of several lines is none, and makes no block
    packed(whole)
    assert not list(build.writer.folder.glob("*.json"))
    assert code in codes(whole)
    if code != "unreadable":
        assert set(findings(whole)) == set(before)


def test_several_processes_find_what_one_finds(whole: Ledger, build: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        Builder(whole, token=f"{number:04x}", spec="more").arm("x", {"C1": 1.0})
    a_boot_that_is_a_trial(whole, build)
    pack_has_a_flipped_bit(whole, build)
    counts: list[dict[str, int]] = []
    found: list[set[Finding]] = []
    heard: list[tuple[int, int]] = []
    for few, at_a_time in ((256, 32), (0, 1), (0, 4)):
        monkeypatch.setattr(verify_module, "FEW", few)
        monkeypatch.setattr(verify_module, "AT_A_TIME", at_a_time)
        checked = Checked()
        found.append(set(verify(whole, checked, lambda done, of: heard.append((done, of)))))
        counts.append(checked.counts())
    assert len(found[0]) > 1
    assert found[0] == found[1] == found[2]
    assert counts[0] == counts[1] == counts[2]
    assert [done for done, of in heard if of == 6] == [6, 1, 2, 3, 4, 5, 6, 4, 6]


@pytest.mark.parametrize("wrong", [flipped_bit, truncated, emptied, name_that_is_no_text, a_link_that_is_a_path, wrong_file_name])
def test_the_command_names_the_file_and_exits_1(
    whole: Ledger, build: Builder, wrong: Wrong, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = ["-C", str(whole.root)]
    assert run([*directory, "verify"]) == 0
    assert "all of it holds" in capsys.readouterr().out
    wrong(whole, build)
    expected = findings(whole)
    assert run([*directory, "verify"]) == 1
    out = capsys.readouterr().out
    assert all(item.path in out for item in expected)
    assert "\x1b" not in out
    assert run([*directory, "verify", "--json"]) == 1
    data = orjson.loads(capsys.readouterr().out)
    assert data["ok"] is False
    assert {item["path"] for item in data["findings"]} >= {item.path for item in expected}


def test_the_command_asks_no_index(whole: Ledger) -> None:
    assert run(["-C", str(whole.root), "verify"]) == 0
    assert not whole.state.exists() or not [path for path in whole.state.rglob("*") if path.suffix == ".duckdb"]


def test_the_same_way_out_is_told_once(whole: Ledger, build: Builder, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.txt", "b.txt", "c.txt"):
        (build.writer.folder / name).write_text("x")
    assert run(["-C", str(whole.root), "verify"]) == 1
    shown = capsys.readouterr()
    assert shown.out.count("not the name of a receipt") == 3
    assert shown.err.count("move it out of receipts/") == 1


def test_one_changed_byte_is_one_finding(whole: Ledger, build: Builder) -> None:
    for path in files(whole, "boot") + files(whole, "note") + files(whole, "attempt"):
        data = path.read_bytes()
        path.write_bytes(data[:-2] + bytes([data[-2] ^ 4]) + data[-1:])
        found = findings(whole)
        assert [(item.code, whole.root / item.path) for item in found] == [("digest", path)]
        path.write_bytes(data)
    assert findings(whole) == []


def test_a_receipt_of_a_newer_kind_with_unknown_fields_is_whole(whole: Ledger, build: Builder) -> None:
    def newer(wire: dict[str, Any]) -> None:
        wire.pop("note")
        wire.update(kind="omen", omen={"targets": 7, "boot": [1], "text": "x"}, unknown={"a": [1]})

    forge(files(whole, "note")[0], newer)
    assert findings(whole) == []


def test_a_folder_that_may_not_be_read_is_told(whole: Ledger, build: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.scandir

    def refuse(path: Any) -> Any:
        if Path(path) in (build.writer.folder, build.writer.folder / layout.BLOBS):
            raise PermissionError(13, "Permission denied")
        return real(path)

    # A superuser reads everything, so the refusal itself is the one thing here that is not real.
    monkeypatch.setattr(os, "scandir", refuse)
    assert "unreadable" in codes(whole)


# The ledger stays the same from one example to the next: each puts back what it changed.
ON_ONE_LEDGER = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@st.composite
def one_bit(draw: st.DrawFn, data: bytes) -> bytes:
    """``data`` with one bit flipped."""
    changed = bytearray(data)
    changed[draw(st.integers(0, len(data) - 1))] ^= 1 << draw(st.integers(0, 7))
    return bytes(changed)


def part(data: bytes) -> st.SearchStrategy[bytes]:
    """``data`` cut off somewhere before its end."""
    return st.integers(0, len(data) - 1).map(lambda end: data[:end])


@ON_ONE_LEDGER
@given(draw=st.data())
def test_any_flipped_bit_and_any_cut_is_found_and_none_crashes(whole: Ledger, build: Builder, draw: st.DataObject) -> None:
    path = draw.draw(st.sampled_from(sorted(build.writer.folder.glob("*.json"))))
    data = path.read_bytes()
    path.write_bytes(draw.draw(one_bit(data) | part(data)))
    try:
        assert ("digest", path) in [(item.code, whole.root / item.path) for item in findings(whole)]
    finally:
        path.write_bytes(data)


@ON_ONE_LEDGER
@given(draw=st.data())
def test_any_flipped_bit_and_any_cut_of_a_blob_is_found(whole: Ledger, build: Builder, draw: st.DataObject) -> None:
    (path,) = (build.writer.folder / layout.BLOBS).iterdir()
    data = path.read_bytes()
    path.write_bytes(draw.draw(one_bit(data) | part(data)))
    try:
        assert [(item.code, whole.root / item.path) for item in findings(whole)] == [("blob", path)]
    finally:
        path.write_bytes(data)


@ON_ONE_LEDGER
@given(draw=st.data())
def test_a_forged_receipt_never_crashes_and_passes_only_as_a_receipt(whole: Ledger, build: Builder, draw: st.DataObject) -> None:
    """A flipped bit under its own right name is found by form, shape, links or chain, or it says something else and holds."""
    last = files(whole, "note")[0]
    data = last.read_bytes()
    changed = draw.draw(one_bit(data))
    last.unlink()
    forged = write(last.parent, changed)
    try:
        if not findings(whole):
            assert codec.encode(codec.decode(changed)) == changed
    finally:
        forged.unlink()
        last.write_bytes(data)


def test_a_forged_receipt_that_others_rest_on_is_always_found(whole: Ledger, build: Builder) -> None:
    for kind in ("attempt", "boot", "trial"):
        path = files(whole, kind)[0]
        data = path.read_bytes()
        path.unlink()
        forged = write(path.parent, data.replace(b'"lane":"L"', b'"lane":"M"'))
        assert {"dangling", "chain"} <= codes(whole)
        forged.unlink()
        path.write_bytes(data)
    assert findings(whole) == []


def test_a_receipt_of_the_greatest_size_is_not_read_beyond_it(whole: Ledger, build: Builder) -> None:
    with (build.writer.folder / f"{'d' * 64}.json").open("wb") as file:
        file.truncate(MAX_RECEIPT + 1)
    checked = Checked()
    assert [item.code for item in verify(whole, checked)] == ["unreadable"]
    assert checked.receipts == 8
