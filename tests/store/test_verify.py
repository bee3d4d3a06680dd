"""Every way in which a ledger can be wrong, each built here in a real ledger and named for what it is."""

import hashlib
import os
import random
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from ledger.cli.main import run
from ledger.core import canonical
from ledger.core.words import CorrectionKind
from ledger.receipt.model import Correction, Note
from ledger.store import layout
from ledger.store.ledger import MAX_RECEIPT, Ledger
from ledger.store.verify import Checked, Finding, verify
from tests.builder import Builder, new_ledger

Wrong = Callable[[Ledger, Builder], None]
FAR = "sha256:" + "f" * 64


def findings(ledger: Ledger) -> list[Finding]:
    """What verify finds."""
    return list(verify(ledger, Checked()))


def codes(ledger: Ledger) -> set[str]:
    return {finding.code for finding in findings(ledger)}


def files(ledger: Ledger, kind: str) -> list[Path]:
    """The receipts of a kind, in chain order."""
    found = [(orjson.loads(item.path.read_bytes()), item.path) for item in ledger.walk()]
    return [path for wire, path in sorted(found, key=lambda item: item[0]["chain"]["n"]) if wire["kind"] == kind]


def write(folder: Path, data: bytes) -> Path:
    """Put bytes under their own digest, as a forger would."""
    path = folder / f"{hashlib.sha256(data).hexdigest()}.json"
    path.write_bytes(data)
    return path


def forge(path: Path, change: Callable[[dict[str, Any]], object], encode: Callable[[Any], bytes] = canonical.encode) -> Path:
    """Replace a receipt by a changed one under the name of the changed bytes."""
    wire = orjson.loads(path.read_bytes())
    change(wire)
    path.unlink()
    return write(path.parent, encode(wire))


@pytest.fixture
def whole(ledger: Ledger, build: Builder) -> Ledger:
    """A ledger of two attempts, two boots, two trials, a correction and a note."""
    _, first = build.arm("a", {"C1": 1.5, "C6": 6.0, "ttft@C6": 0.1})
    _, second = build.arm("b", {"C1": 1.25, "C6": 7.0})
    by = "A Tester"
    build.writer.record(
        Correction(
            action=CorrectionKind.SUPERSEDE, targets=(first,), replacements=(second,), reason="it was the wrong one", by=by
        )
    )
    build.writer.record(Note(text="seen", by=by, about=(first, second)))
    return ledger


def test_a_whole_ledger_has_no_finding_and_is_counted(whole: Ledger, build: Builder) -> None:
    checked = Checked()
    assert list(verify(whole, checked)) == []
    total = sum(path.stat().st_size for path in build.writer.folder.glob("*.json"))
    assert checked.counts() == {"sessions": 1, "receipts": 8, "blobs": 1, "unnamed": 0, "bytes": total}


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


# --- bytes and form -----------------------------------------------------------------------------------------------------------


def flipped_bit(ledger: Ledger, build: Builder) -> None:
    path = files(ledger, "trial")[0]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def truncated(ledger: Ledger, build: Builder) -> None:
    path = files(ledger, "trial")[0]
    path.write_bytes(path.read_bytes()[:-40])


def emptied(ledger: Ledger, build: Builder) -> None:
    files(ledger, "trial")[0].write_bytes(b"")


def respelled_with_spaces(ledger: Ledger, build: Builder) -> None:
    forge(files(ledger, "note")[0], lambda wire: None, lambda wire: orjson.dumps(wire, option=orjson.OPT_INDENT_2))


def respelled_number(ledger: Ledger, build: Builder) -> None:
    path = files(ledger, "note")[0]
    data = path.read_bytes()
    path.unlink()
    write(path.parent, data.replace(b'"ledger":1,', b'"extra":1.0,"ledger":1,'))


def a_key_twice(ledger: Ledger, build: Builder) -> None:
    path = files(ledger, "note")[0]
    data = path.read_bytes()
    path.unlink()
    write(path.parent, data.replace(b'"kind":"note",', b'"kind":"note","kind":"note",'))


def a_null(ledger: Ledger, build: Builder) -> None:
    forge(files(ledger, "note")[0], lambda wire: wire.update(extra=None), lambda w: orjson.dumps(w, option=orjson.OPT_SORT_KEYS))


def infinite_number(ledger: Ledger, build: Builder) -> None:
    write(build.writer.folder, b'{"ledger":1,"kind":"note","note":{"text":"x","by":"y","big":1e400}}')


def nested_for_ever(ledger: Ledger, build: Builder) -> None:
    write(build.writer.folder, b'{"a":' * 100_000 + b"1" + b"}" * 100_000)


def not_utf8(ledger: Ledger, build: Builder) -> None:
    write(build.writer.folder, b'{"kind":"\xff\xfe"}')


def a_lone_surrogate(ledger: Ledger, build: Builder) -> None:
    write(build.writer.folder, b'{"kind":"\\ud800"}')


def not_an_object(ledger: Ledger, build: Builder) -> None:
    write(build.writer.folder, b"[1,2,3]")


def no_kind(ledger: Ledger, build: Builder) -> None:
    write(build.writer.folder, b'{"ledger":1}')


def another_version(ledger: Ledger, build: Builder) -> None:
    forge(files(ledger, "note")[0], lambda wire: wire.update(ledger=99))


def a_field_is_missing(ledger: Ledger, build: Builder) -> None:
    forge(files(ledger, "trial")[-1], lambda wire: wire["trial"].pop("measure"))


def a_field_of_another_type(ledger: Ledger, build: Builder) -> None:
    forge(files(ledger, "trial")[-1], lambda wire: wire["trial"]["figures"]["C1"].update(value="fast"))


def a_word_outside_its_vocabulary(ledger: Ledger, build: Builder) -> None:
    forge(files(ledger, "boot")[-1], lambda wire: wire["boot"].update(outcome="splendid"))


def no_time(ledger: Ledger, build: Builder) -> None:
    forge(files(ledger, "note")[0], lambda wire: wire.update(at="yesterday"))


# --- place, links and chain -----------------------------------------------------------------------------------------------------


def in_another_sessions_folder(ledger: Ledger, build: Builder) -> None:
    shutil.copytree(build.writer.folder, build.writer.folder.with_name("01T0000-exp-0abc"))


def a_dangling_boot(ledger: Ledger, build: Builder) -> None:
    forge(files(ledger, "trial")[-1], lambda wire: wire["trial"].update(boot=FAR))


def a_correction_of_nothing(ledger: Ledger, build: Builder) -> None:
    forge(files(ledger, "correction")[0], lambda wire: wire["correction"].update(targets=[FAR]))


def a_link_that_is_a_path(ledger: Ledger, build: Builder) -> None:
    forge(files(ledger, "note")[0], lambda wire: wire["note"].update(about=["../../../etc/passwd"]))


def a_boot_that_is_a_trial(ledger: Ledger, build: Builder) -> None:
    trial = files(ledger, "trial")[0].stem
    forge(files(ledger, "trial")[-1], lambda wire: wire["trial"].update(boot=f"sha256:{trial}"))


def a_receipt_is_gone(ledger: Ledger, build: Builder) -> None:
    files(ledger, "correction")[0].unlink()


def a_second_receipt_at_one_place(ledger: Ledger, build: Builder) -> None:
    path = files(ledger, "note")[0]
    wire = orjson.loads(path.read_bytes())
    wire["note"]["text"] = "another"
    write(path.parent, canonical.encode(wire))


def after_the_wrong_one(ledger: Ledger, build: Builder) -> None:
    first = files(ledger, "attempt")[0].stem
    forge(files(ledger, "note")[0], lambda wire: wire["chain"].update(after=f"sha256:{first}"))


def a_beginning_after_something(ledger: Ledger, build: Builder) -> None:
    other = files(ledger, "note")[0].stem
    forge(files(ledger, "attempt")[0], lambda wire: wire["chain"].update(after=f"sha256:{other}"))


def a_place_far_out(ledger: Ledger, build: Builder) -> None:
    forge(files(ledger, "note")[0], lambda wire: wire["chain"].update(n=2**53 - 1))


def a_place_before_the_first(ledger: Ledger, build: Builder) -> None:
    forge(files(ledger, "note")[0], lambda wire: wire["chain"].update(n=-5))


def a_fingerprint_of_other_factors(ledger: Ledger, build: Builder) -> None:
    forge(files(ledger, "boot")[-1], lambda wire: wire["boot"]["factors"]["identity"].update(engine="another"))


# --- blobs ----------------------------------------------------------------------------------------------------------------------


def blob_of(build: Builder) -> Path:
    return build.writer.folder / layout.BLOBS / build.source.text.digest.removeprefix("sha256:")


def blob_is_gone(ledger: Ledger, build: Builder) -> None:
    blob_of(build).unlink()


def blob_has_other_bytes(ledger: Ledger, build: Builder) -> None:
    blob_of(build).write_bytes(b"ledger = 2\n")


def blob_is_longer(ledger: Ledger, build: Builder) -> None:
    blob_of(build).write_bytes(b"ledger = 1\n#\n")


def blob_of_another_size_than_said(ledger: Ledger, build: Builder) -> None:
    path = files(ledger, "attempt")[-1]
    forge(path, lambda wire: wire["attempt"]["spec"]["text"].update(size=3))


def unnamed_blob_has_other_bytes(ledger: Ledger, build: Builder) -> None:
    (blob_of(build).parent / ("a" * 64)).write_bytes(b"x")


def blob_descriptor_is_a_path(ledger: Ledger, build: Builder) -> None:
    path = files(ledger, "attempt")[-1]
    forge(path, lambda wire: wire["attempt"]["spec"]["text"].update(digest="sha256:../../../../../../etc/passwd"))


def blob_is_a_link(ledger: Ledger, build: Builder) -> None:
    target = ledger.root.parent / "outside"
    blob_of(build).rename(target)
    blob_of(build).symlink_to(target)


def blobs_folder_is_a_link(ledger: Ledger, build: Builder) -> None:
    target = ledger.root.parent / "outside"
    blob_of(build).parent.rename(target)
    blob_of(build).parent.symlink_to(target)


def not_a_blob(ledger: Ledger, build: Builder) -> None:
    (blob_of(build).parent / "core.1234").write_bytes(b"x")


# --- what does not belong -----------------------------------------------------------------------------------------------------


def receipt_is_a_link(ledger: Ledger, build: Builder) -> None:
    path = files(ledger, "note")[0]
    target = ledger.root.parent / path.name
    path.rename(target)
    path.symlink_to(target)


def session_is_a_link(ledger: Ledger, build: Builder) -> None:
    outside = new_ledger(ledger.root.parent / "other")
    Builder(outside, token="0bad").arm("x", {"C1": 1.0})
    folder = next(outside.sessions())
    (build.writer.folder.parent / folder.name).symlink_to(folder)


def receipts_is_a_link(ledger: Ledger, build: Builder) -> None:
    target = ledger.root.parent / "moved"
    ledger.receipts.rename(target)
    ledger.receipts.symlink_to(target)


def wrong_file_name(ledger: Ledger, build: Builder) -> None:
    (build.writer.folder / "result.json").write_bytes(b"{}")


def upper_case_name(ledger: Ledger, build: Builder) -> None:
    (build.writer.folder / f"{'A' * 64}.json").write_bytes(b"{}")


def name_that_is_no_text(ledger: Ledger, build: Builder) -> None:
    Path(os.fsdecode(os.fsencode(build.writer.folder) + b"/\xff\x1b[31m\n.json")).write_bytes(b"{}")


def wrong_session_name(ledger: Ledger, build: Builder) -> None:
    (build.writer.folder.parent / "my results").mkdir()


def file_among_the_months(ledger: Ledger, build: Builder) -> None:
    (build.writer.folder.parents[1] / "13").write_text("x")


def folder_with_the_name_of_a_receipt(ledger: Ledger, build: Builder) -> None:
    (build.writer.folder / f"{'b' * 64}.json").mkdir()


def pipe_with_the_name_of_a_receipt(ledger: Ledger, build: Builder) -> None:
    os.mkfifo(build.writer.folder / f"{'c' * 64}.json")


def four_gigabytes(ledger: Ledger, build: Builder) -> None:
    with (build.writer.folder / f"{'d' * 64}.json").open("wb") as file:
        file.truncate(4 * 2**30)


def oversize_blob(ledger: Ledger, build: Builder) -> None:
    with (blob_of(build).parent / ("e" * 64)).open("wb") as file:
        file.truncate(5 * 2**30)


WRONG: tuple[tuple[Wrong, str], ...] = (
    (flipped_bit, "digest"),
    (truncated, "digest"),
    (emptied, "digest"),
    (respelled_with_spaces, "canonical"),
    (respelled_number, "canonical"),
    (a_key_twice, "canonical"),
    (a_null, "canonical"),
    (infinite_number, "shape"),
    (nested_for_ever, "shape"),
    (not_utf8, "shape"),
    (a_lone_surrogate, "shape"),
    (not_an_object, "shape"),
    (no_kind, "shape"),
    (another_version, "shape"),
    (a_field_is_missing, "shape"),
    (a_field_of_another_type, "shape"),
    (a_word_outside_its_vocabulary, "shape"),
    (no_time, "time"),
    (in_another_sessions_folder, "session"),
    (a_dangling_boot, "dangling"),
    (a_correction_of_nothing, "dangling"),
    (a_link_that_is_a_path, "dangling"),
    (a_boot_that_is_a_trial, "role"),
    (a_receipt_is_gone, "gap"),
    (a_second_receipt_at_one_place, "fork"),
    (after_the_wrong_one, "chain"),
    (a_beginning_after_something, "chain"),
    (a_place_far_out, "gap"),
    (a_place_before_the_first, "chain"),
    (a_fingerprint_of_other_factors, "fingerprint"),
    (blob_is_gone, "blob-missing"),
    (blob_has_other_bytes, "blob"),
    (blob_is_longer, "blob"),
    (blob_of_another_size_than_said, "blob"),
    (unnamed_blob_has_other_bytes, "blob"),
    (blob_descriptor_is_a_path, "blob-missing"),
    (blob_is_a_link, "link"),
    (blobs_folder_is_a_link, "link"),
    (not_a_blob, "stranger"),
    (receipt_is_a_link, "link"),
    (session_is_a_link, "link"),
    (receipts_is_a_link, "link"),
    (wrong_file_name, "stranger"),
    (upper_case_name, "stranger"),
    (name_that_is_no_text, "stranger"),
    (wrong_session_name, "stranger"),
    (file_among_the_months, "stranger"),
    (folder_with_the_name_of_a_receipt, "unreadable"),
    (pipe_with_the_name_of_a_receipt, "unreadable"),
    (four_gigabytes, "unreadable"),
    (oversize_blob, "unreadable"),
)


def snapshot(folder: Path) -> Iterator[tuple[str, int, int]]:
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        yield str(path), stat.S_IFMT(status.st_mode), status.st_mtime_ns


@pytest.mark.parametrize(("wrong", "code"), WRONG, ids=lambda value: getattr(value, "__name__", ""))
def test_a_wrong_ledger_is_told(whole: Ledger, build: Builder, wrong: Wrong, code: str) -> None:
    wrong(whole, build)
    kept = list(snapshot(whole.receipts))
    found = findings(whole)
    assert code in {item.code for item in found}
    assert list(snapshot(whole.receipts)) == kept, "verify changes nothing"
    for item in found:
        assert item.path.isprintable()
        assert item.what
        orjson.dumps([item.path, item.what, item.hint])


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


def test_any_flipped_bit_and_any_cut_is_found_and_none_crashes(whole: Ledger, build: Builder) -> None:
    draw = random.Random(7)
    for path in files(whole, "trial") + files(whole, "boot"):
        data = path.read_bytes()
        for _ in range(60):
            changed = bytearray(data)
            if draw.random() < 0.3:
                changed = changed[: draw.randrange(len(data))]
            else:
                changed[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
            path.write_bytes(changed)
            assert "digest" in codes(whole)
        path.write_bytes(data)


def test_forged_receipts_never_crash_and_never_pass_unless_they_are_whole(whole: Ledger, build: Builder) -> None:
    """Bit flips under their own right name: what remains is found by form, shape, links or chain, or is a receipt after all."""
    draw = random.Random(11)
    told = 0
    for path in files(whole, "trial") + files(whole, "boot") + files(whole, "correction"):
        data = path.read_bytes()
        path.unlink()
        for _ in range(60):
            changed = bytearray(data)
            changed[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
            forged = write(path.parent, bytes(changed))
            told += bool(findings(whole))
            forged.unlink()
        path.write_bytes(data)
    assert told > 200
    assert findings(whole) == []


def test_a_receipt_of_the_greatest_size_is_not_read_beyond_it(whole: Ledger, build: Builder) -> None:
    with (build.writer.folder / f"{'d' * 64}.json").open("wb") as file:
        file.truncate(MAX_RECEIPT + 1)
    checked = Checked()
    assert [item.code for item in verify(whole, checked)] == ["unreadable"]
    assert checked.receipts == 8
