"""A ledger on disk: found, started, walked and read, with what a stranger's branch may have put there."""

import os
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.core.digest import Descriptor, describe
from ledger.core.errors import NoLedgerError, NotFoundError, StoreError
from ledger.receipt.model import Note
from ledger.store import layout
from ledger.store.ledger import Ledger
from ledger.store.start import start
from tests.builder import Builder, git, new_repository


def note(build: Builder, text: str = "x") -> str:
    return build.writer.record(Note(text=text, by="A Tester"))


# --- names --------------------------------------------------------------------------------------------------------------------


@given(
    st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", fullmatch=True),
    st.datetimes(min_value=datetime(1000, 1, 2), max_value=datetime(9999, 12, 30)),
    st.integers(-12, 14),
    st.from_regex(r"[0-9a-f]{4,16}", fullmatch=True),
)
def test_a_session_that_is_named_is_found_again(spec: str, when: datetime, hours: int, token: str) -> None:
    there = when.replace(tzinfo=timezone(timedelta(hours=hours)))
    name = layout.session_name(spec, there, token)
    match = layout.SESSION.fullmatch(name)
    assert match is not None
    assert match["token"] == name.rpartition("-")[2] == token
    place = f"{layout.month_folder(there).removeprefix('receipts/')}/{name}"
    assert layout.is_object(f"{place}/{layout.receipt_name('a' * 64)}")
    assert layout.is_object(f"{place}/blobs/{'a' * 64}")
    assert not layout.is_object(f"{place}/{'a' * 64}")
    assert not layout.is_object(f"{place}/blobs/{'a' * 64}.json")
    assert not layout.is_object(f"{place}/blobs/../{'a' * 64}.json")


@given(st.text())
def test_no_other_text_is_the_name_of_a_receipt(text: str) -> None:
    assert layout.hex_of(text) is None
    assert not layout.is_object(text)


def test_the_layout_is_the_documented_one() -> None:
    when = datetime(2026, 12, 1, 6, 12, tzinfo=UTC)
    assert layout.session_name("round2", when, "3f2a") == "01T0612-round2-3f2a"
    assert layout.month_folder(when) == "receipts/2026/12"
    assert layout.hex_of(layout.receipt_name("0" * 64)) == "0" * 64
    assert layout.hex_of("A" * 64 + ".json") is None
    assert layout.hex_of("0" * 64 + ".json\n") is None


# --- starting and finding -------------------------------------------------------------------------------------------------------


def test_starting_writes_what_is_missing_and_twice_changes_nothing(tmp_path: Path) -> None:
    new_repository(tmp_path)
    (tmp_path / ".gitignore").write_text("*.log\n!keep")
    ledger, written = start(tmp_path)
    assert {path.relative_to(tmp_path).as_posix() for path in written} == {
        "ledger.toml",
        "receipts/.gitkeep",
        ".gitignore",
        ".gitattributes",
    }
    assert (tmp_path / ".gitignore").read_text() == "*.log\n!keep\n.ledger/\n"
    before = {path: path.read_bytes() for path in written}
    assert start(tmp_path) == (ledger, [])
    assert {path: path.read_bytes() for path in written} == before
    ledger.state.mkdir()
    (ledger.state / "index").touch()
    assert ".ledger" not in git(tmp_path, "status", "--porcelain", "--untracked-files=all")
    assert git(tmp_path, "check-attr", "text", "receipts/2026/12/x").endswith("text: unset\n")


def test_it_is_found_from_any_folder_below(ledger: Ledger, build: Builder) -> None:
    note(build)
    for folder in (ledger.root, ledger.receipts, build.writer.folder / "blobs"):
        assert Ledger.find(folder) == ledger


def test_where_there_is_none_the_way_out_is_told(tmp_path: Path) -> None:
    for folder, hint in ((tmp_path, "git init"), (tmp_path / "missing", "no such folder")):
        with pytest.raises(NoLedgerError, match=hint):
            Ledger.find(folder)
    with pytest.raises(NoLedgerError, match="git init"):
        start(tmp_path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "ledger.toml").write_text("ledger = 1\n")
    with pytest.raises(NoLedgerError, match="outside a git repository"):
        Ledger.find(tmp_path)
    new_repository(tmp_path / "repo")
    (tmp_path / "ledger.toml").unlink()
    with pytest.raises(NoLedgerError, match="ledger init"):
        Ledger.find(tmp_path / "repo")


@pytest.mark.parametrize(
    ("marker", "error", "what"),
    [
        (b"ledger = 2\n", NoLedgerError, "another layout"),
        (b"", NoLedgerError, "another layout"),
        (b"ledger = '1'\n", NoLedgerError, "another layout"),
        (b"ledger = \n", StoreError, "not TOML"),
        (b"\xff\xfe", StoreError, "not TOML"),
        (b"#" * (2**20 + 1), StoreError, "at most"),
    ],
)
def test_a_marker_that_is_not_ours_is_refused(ledger: Ledger, marker: bytes, error: type[Exception], what: str) -> None:
    (ledger.root / "ledger.toml").write_bytes(marker)
    with pytest.raises(error, match=what):
        Ledger.find(ledger.root)


@pytest.mark.parametrize("name", ["receipts", ".ledger"])
def test_a_folder_of_the_ledger_that_is_a_link_is_refused(ledger: Ledger, build: Builder, tmp_path: Path, name: str) -> None:
    note(build)
    (ledger.root / name).rename(tmp_path / "outside")
    (ledger.root / name).symlink_to(tmp_path / "outside")
    with pytest.raises(StoreError, match="never followed"):
        Ledger.find(ledger.root)
    assert name == ".ledger" or list(ledger.walk()) == []


# --- walking and reading --------------------------------------------------------------------------------------------------------


def test_a_walk_is_in_name_order_and_passes_over_what_is_no_receipt(ledger: Ledger, build: Builder, tmp_path: Path) -> None:
    later = Builder(ledger, token="0002", when=datetime(2027, 1, 2, tzinfo=UTC))
    earlier = Builder(ledger, token="0003", when=datetime(2026, 2, 1, tzinfo=UTC))
    made = [sorted(note(item, f"{number}") for number in range(5)) for item in (earlier, build, later)]
    (build.writer.folder / "notes.txt").touch()
    (ledger.receipts / "2026" / "13").mkdir()
    (ledger.receipts / "2026" / "12").symlink_to(tmp_path)
    assert [stored.digest for stored in ledger.walk()] == [digest for group in made for digest in group]
    assert [folder.name for folder in ledger.sessions()] == [item.writer.session for item in (earlier, build, later)]


def test_a_receipt_is_read_by_its_digest_and_checked(ledger: Ledger, build: Builder) -> None:
    made = note(build)
    assert ledger.read(made).body == Note(text="x", by="A Tester")
    with pytest.raises(NotFoundError, match="no such receipt"):
        ledger.read("sha256:" + "0" * 64)
    path = ledger.path_of(made)
    path.write_bytes(path.read_bytes().replace(b'"x"', b'"y"'))
    with pytest.raises(StoreError, match="not those of the name"):
        ledger.read(made)


def test_a_blob_is_checked_against_its_descriptor(ledger: Ledger, build: Builder, tmp_path: Path) -> None:
    data = b"raw samples"
    made = build.writer.blob(data, "text/plain")
    session = build.writer.session
    path = build.writer.folder / "blobs" / made.digest[7:]
    with pytest.raises(NotFoundError, match="no such blob"):
        ledger.read_blob("01T0000-exp-ffff", made)
    with pytest.raises(NotFoundError, match="no such blob"):
        ledger.read_blob(session, describe(b"other", "text/plain"))
    for digest, size in (("sha256:../../../ledger.toml", 11), (made.digest.upper(), 11), (made.digest, -1), (made.digest, 2**60)):
        with pytest.raises(StoreError, match="not the descriptor of a blob"):
            ledger.read_blob(session, Descriptor(mediaType="text/plain", digest=digest, size=size))
    with pytest.raises(StoreError, match="at most 3 are read"):
        ledger.read_blob(session, Descriptor(mediaType="text/plain", digest=made.digest, size=3))
    with pytest.raises(StoreError, match="not those of its name"):
        ledger.read_blob(session, Descriptor(mediaType="text/plain", digest=made.digest, size=12))
    path.write_bytes(b"raw sampler")
    with pytest.raises(StoreError, match="not those of its name"):
        ledger.read_blob(session, made)
    path.unlink()
    (tmp_path / "outside").write_bytes(data)
    path.symlink_to(tmp_path / "outside")
    with pytest.raises(StoreError, match="a link stands"):
        ledger.read_blob(session, made)
    path.unlink()
    path.parent.rename(tmp_path / "moved")
    (tmp_path / made.digest[7:]).write_bytes(data)
    path.parent.symlink_to(tmp_path)
    with pytest.raises(NotFoundError, match="no such blob"):
        ledger.read_blob(session, made)


def test_a_prefix_names_one_receipt_or_says_which(ledger: Ledger, build: Builder) -> None:
    made = note(build)
    for prefix in (made, made[:11], made[7:], made[7:11], f" {made[7:].upper()} "):
        assert ledger.resolve(prefix) == made
    with pytest.raises(NotFoundError, match="fewer than 4 digits"):
        ledger.resolve(made[7:10])
    with pytest.raises(NotFoundError, match="no receipt begins so"):
        ledger.resolve("zzzz")
    twin = build.writer.folder / f"{made[7:15]}{'0' * 56}.json"
    twin.write_bytes(b"{}")
    with pytest.raises(NotFoundError, match=f"2 receipts begin so.*{made[7:23]}"):
        ledger.resolve(made[7:15])
    assert ledger.resolve(made[7:17]) == made
    # The same receipt in two folders, as a merge of a moved session leaves it, is one receipt.
    twin.unlink()
    other = build.writer.folder.with_name("01T0000-exp-0002")
    other.mkdir()
    os.link(ledger.path_of(made), other / f"{made[7:]}.json")
    assert ledger.resolve(made[7:15]) == made
