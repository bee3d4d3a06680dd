"""Starting a ledger where something is in the way: it is told, nothing is followed, and nothing is half started."""

import os
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from ledger.cli.main import run
from ledger.core.errors import LedgerError, NoLedgerError, StoreError
from ledger.store.ledger import Ledger
from ledger.store.start import start
from tests.builder import git, new_repository


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A git repository with one folder beside it."""
    (tmp_path / "outside").mkdir()
    return new_repository(tmp_path / "repo")


def link_for(name: str, target: str) -> Callable[[Path], None]:
    return lambda root: (root / name).symlink_to(root.parent / target)


def folder_for(name: str) -> Callable[[Path], None]:
    return lambda root: (root / name).mkdir(parents=True)


IN_THE_WAY: dict[str, tuple[Callable[[Path], None], type[LedgerError]]] = {
    "receipts is a file": (lambda root: (root / "receipts").touch(), StoreError),
    "receipts is a link to a folder": (link_for("receipts", "outside"), StoreError),
    "receipts is a link to nothing": (link_for("receipts", "missing"), StoreError),
    ".gitignore is a link": (link_for(".gitignore", "outside/ignored"), StoreError),
    ".gitattributes is a link": (link_for(".gitattributes", "missing"), StoreError),
    "ledger.toml is a link": (link_for("ledger.toml", "missing"), StoreError),
    ".gitignore is a folder": (folder_for(".gitignore"), StoreError),
    "ledger.toml is a folder": (folder_for("ledger.toml"), StoreError),
    "the marker is of another tool": (lambda root: (root / "ledger.toml").write_text("name = 'x'\n") and None, NoLedgerError),
    "the marker is no TOML": (lambda root: (root / "ledger.toml").write_bytes(b"\xff") and None, StoreError),
}


def everything_in(folder: Path) -> dict[str, bytes | None]:
    """Every path below ``folder`` with its bytes, outside git's own folder."""
    paths = [path for path in sorted(folder.rglob("*")) if ".git" not in path.relative_to(folder).parts]
    return {str(path): path.read_bytes() if path.is_file() and not path.is_symlink() else None for path in paths}


@pytest.mark.parametrize("case", IN_THE_WAY)
def test_what_is_in_the_way_is_told_and_nothing_is_written(repository: Path, case: str) -> None:
    put, error = IN_THE_WAY[case]
    put(repository)
    before = everything_in(repository.parent)
    with pytest.raises(error):
        start(repository)
    assert everything_in(repository.parent) == before


@pytest.mark.parametrize("lines", [b"caf\xe9", b"a\r\nb\r\n", b"\x00\n", "größe\n".encode("utf-16")])
def test_the_users_own_lines_are_kept_byte_for_byte(repository: Path, lines: bytes) -> None:
    (repository / ".gitignore").write_bytes(lines)
    start(repository)
    data = (repository / ".gitignore").read_bytes()
    assert data.startswith(lines)
    assert data.removeprefix(lines).strip() == b".ledger/"
    assert start(repository)[1] == []


def test_a_folder_that_is_not_there_is_made(repository: Path) -> None:
    ledger, _ = start(repository / "a" / "b")
    assert ledger == Ledger.find(repository / "a" / "b") == Ledger(root=repository / "a" / "b")


@pytest.mark.parametrize("place", [".git", ".git/hooks", "receipts", "receipts/2026", ".ledger", ".ledger/tmp"])
def test_a_folder_that_is_kept_for_something_else_is_refused(repository: Path, place: str) -> None:
    start(repository)
    before = everything_in(repository)
    with pytest.raises(NoLedgerError):
        start(repository / place)
    assert everything_in(repository) == before


def test_what_the_disk_refuses_is_told(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def refuse(path: object, *rest: int) -> int:
        if str(path).endswith("ledger.toml"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *rest)  # type: ignore[arg-type]  # whatever os.open takes

    # A superuser may write everywhere, so the refusal itself is the one thing here that is not real.
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(StoreError, match=r"ledger\.toml: permission denied; check who owns"):
        start(repository)


def test_the_next_step_that_is_told_works_from_where_one_stands(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "my notes").mkdir()
    monkeypatch.chdir(repository / "my notes")
    assert run(["init", "../a ledger"]) == 0
    told = capsys.readouterr().err.strip().removeprefix("next: ").partition(" && ")[0]
    git(repository / "my notes", *shlex.split(told)[1:])
    assert git(repository, "diff", "--cached", "--name-only").count("a ledger/") == 4
