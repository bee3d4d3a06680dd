"""Every way in which a ledger can be wrong, as functions that make a whole one so, each with the code that verify has for it.

What it does: damages, forges and misplaces files of a real ledger. What it does not do: check; ``test_verify`` does. Rule kept:
each function makes one thing wrong.
"""

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from ledger.core import canonical
from ledger.store import layout
from ledger.store.ledger import Ledger
from tests.builder import Builder, new_ledger

Wrong = Callable[[Ledger, Builder], None]
FAR = "sha256:" + "f" * 64


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
    (blob_of_another_size_than_said, "blob-size"),
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
