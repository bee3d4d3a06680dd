"""ledger.toml: what it may say, and every mistake at its line."""

from pathlib import Path

import pytest

from ledger.core.errors import LedgerError, NoLedgerError, StoreError
from ledger.store.settings import BlobSettings, settings_of


def read(folder: Path, text: str) -> BlobSettings | None:
    (folder / "ledger.toml").write_text(text)
    return settings_of(folder).blobs


def test_without_blobs_everything_is_in_git(tmp_path: Path) -> None:
    assert read(tmp_path, "ledger = 1\n") is None


@pytest.mark.parametrize(("above", "size"), [('"2 MiB"', 2**21), ('"1 kB"', 1000), ("512", 512), ("0", 0), ("", 2**20)])
def test_a_store_and_its_limit(tmp_path: Path, above: str, size: int) -> None:
    line = f"above = {above}\n" if above else ""
    assert read(tmp_path, f'ledger = 1\n[blobs]\nstore = "s3://b/p"\n{line}') == BlobSettings(store="s3://b/p", above=size)


def test_a_change_is_seen(tmp_path: Path) -> None:
    assert read(tmp_path, "ledger = 1\n") is None
    assert read(tmp_path, 'ledger = 1\n[blobs]\nstore = "x"\n') is not None


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("ledger = 1\nblob = 1\n", 2, ("unknown key", "did you mean 'blobs'")),
        ("ledger = 1\n[blobs]\nstor = 'x'\n", 3, ("unknown key", "did you mean 'store'")),
        ("ledger = 1\n[blobs]\n\nstore = 7\n", 4, ("expected a folder or an address", "7")),
        ("ledger = 1\n[blobs]\nstore = 'x'\nabove = '3 s'\n", 4, ("expected a bytes", "units")),
        ("ledger = 1\n[blobs]\nstore = 'x'\nabove = true\n", 4, ("expected a size",)),
        ("ledger = 1\nblobs = 3\n", 2, ("expected a table",)),
        ("ledger = 1\n[blobs]\nstore = 's3://AK:secret@b/p'\n", 3, ("credentials", "environment")),
        ("ledger = 1\n[blobs]\nstore = 'https://x/?sig=abc'\n", 3, ("credentials", "environment")),
    ],
)
def test_a_mistake_is_told_at_its_line(tmp_path: Path, text: str, line: int, words: tuple[str, ...]) -> None:
    with pytest.raises(LedgerError) as told:
        read(tmp_path, text)
    said = str(told.value)
    assert f"ledger.toml:{line}" in said
    assert all(word in said for word in words)
    assert "secret" not in said
    assert "abc" not in said


def test_every_mistake_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(LedgerError) as told:
        read(tmp_path, "ledger = 1\nx = 1\n[blobs]\ny = 2\nstore = 3\nabove = 'z'\n")
    assert len(told.value.problems) == 4


@pytest.mark.parametrize(("text", "error"), [("ledger = 2\n", NoLedgerError), ("", NoLedgerError), ("ledger = [", StoreError)])
def test_another_layout_or_no_toml(tmp_path: Path, text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        read(tmp_path, text)
