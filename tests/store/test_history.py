"""Git's history and checkpoints: every way in which a published ledger could be made to say something else."""

import subprocess
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

import pytest

from ledger.cli.main import run
from ledger.core.errors import UsageError
from ledger.store.git import commit_paths
from ledger.store.history import check_history, check_signatures
from ledger.store.ledger import Ledger
from ledger.store.start import start
from ledger.store.timeline import checkpoint, extends, read_checkpoint, timeline
from ledger.store.verify import Finding
from tests.builder import BEGINNING, Builder, git, new_repository


def record(ledger: Ledger, token: str, day: int = 0, arms: int = 2) -> list[Path]:
    """A committed session; its files."""
    build = Builder(ledger, token=token, when=BEGINNING + timedelta(days=day))
    for _ in range(arms):
        build.arm("a", {"C6": 1.0})
    commit_paths(ledger, build.writer.paths, f"session {token}")
    return [path for path in build.writer.paths if path.suffix == ".json"]


def codes(found: Iterable[Finding]) -> set[tuple[str, str]]:
    return {(item.code, Path(item.path).name) for item in found}


def test_a_history_of_appends_is_clean(ledger: Ledger) -> None:
    record(ledger, "0001")
    record(ledger, "0002", day=1)
    assert list(check_history(ledger)) == []
    assert run(["-C", str(ledger.root), "verify", "--history"]) == 0


def test_a_receipt_changed_in_place_is_found_although_it_was_put_back(ledger: Ledger) -> None:
    path = record(ledger, "0001")[0]
    data = path.read_bytes()
    path.chmod(0o644)
    for content, message in ((data.replace(b"1.0", b"2.0") + b" ", "edit"), (data, "put back")):
        path.write_bytes(content)
        git(ledger.root, "commit", "-qam", message)
    assert codes(check_history(ledger)) == {("changed", path.name)}
    assert run(["-C", str(ledger.root), "verify", "--history"]) == 1


def test_a_receipt_that_is_gone_from_the_disk_alone_is_told(ledger: Ledger) -> None:
    last = record(ledger, "0001")[-1]
    last.unlink()
    assert codes(check_history(ledger)) == {("removed", last.name)}
    git(ledger.root, "rm", "-q", "--cached", str(last))
    (found,) = check_history(ledger)
    subprocess.run(found.hint.split(), cwd=ledger.root, check=True)
    assert list(check_history(ledger)) == []


def test_a_ledger_without_a_commit_has_no_history(tmp_path: Path) -> None:
    ledger, _ = start(new_repository(tmp_path / "new"))
    Builder(ledger).arm("a", {"C6": 1.0})
    assert list(check_history(ledger)) == []


def test_a_change_on_a_branch_that_was_merged_and_deleted_is_found(ledger: Ledger) -> None:
    path = record(ledger, "0001")[0]
    data = path.read_bytes()
    git(ledger.root, "checkout", "-qb", "side")
    for content in (b"{}", data):
        path.write_bytes(content)
        git(ledger.root, "commit", "-qam", "edit")
    git(ledger.root, "checkout", "-q", "main")
    git(ledger.root, "commit", "-q", "--allow-empty", "-m", "work of another kind")
    git(ledger.root, "merge", "-q", "--no-ff", "-m", "merge", "side")
    git(ledger.root, "branch", "-qD", "side")
    assert codes(check_history(ledger)) == {("changed", path.name)}


@pytest.mark.parametrize("how", ["replace", "graft"])
def test_what_is_laid_over_the_history_hides_nothing(ledger: Ledger, how: str) -> None:
    path = record(ledger, "0001")[0]
    good = git(ledger.root, "rev-parse", "HEAD").strip()
    path.write_bytes(b"{}")
    git(ledger.root, "commit", "-qam", "edit")
    bad = git(ledger.root, "rev-parse", "HEAD").strip()
    git(ledger.root, "rm", "-q", str(path))
    git(ledger.root, "commit", "-qm", "oops")
    last = git(ledger.root, "rev-parse", "HEAD").strip()
    before = list(check_history(ledger))
    assert codes(before) == {("changed", path.name), ("removed", path.name)}
    if how == "replace":
        git(ledger.root, "replace", bad, good)
        git(ledger.root, "replace", last, good)
    else:
        (ledger.root / ".git" / "info").mkdir(exist_ok=True)
        (ledger.root / ".git" / "info" / "grafts").write_text(f"{last}\n")
    assert list(check_history(ledger)) == before


def test_settings_of_the_user_do_not_change_what_is_read(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    path = record(ledger, "0001")[0]
    order = timeline(ledger)
    path.write_bytes(b"{}")
    git(ledger.root, "commit", "-qam", "edit")
    settings = {
        "log.showSignature": "true",
        "log.follow": "true",
        "log.date": "relative",
        "color.ui": "always",
        "core.quotePath": "true",
        "diff.noprefix": "true",
        "diff.renames": "copies",
        "diff.relative": "true",
        "format.pretty": "oneline",
    }
    for name, value in settings.items():
        git(ledger.root, "config", name, value)
    assert codes(check_history(ledger)) == {("changed", path.name)}
    assert set(timeline(ledger)) == set(order)


def test_a_removed_receipt_is_found_with_its_commit(ledger: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    path = record(ledger, "0001")[-1]
    git(ledger.root, "rm", "-q", str(path))
    git(ledger.root, "commit", "-qm", "oops")
    assert codes(check_history(ledger)) == {("removed", path.name)}
    run(["-C", str(ledger.root), "verify", "--history"])
    shown = capsys.readouterr()
    assert git(ledger.root, "rev-parse", "HEAD")[:12] in shown.out
    assert path.name in shown.out


def test_a_receipt_removed_in_a_merge_is_found(ledger: Ledger) -> None:
    record(ledger, "0001")
    git(ledger.root, "checkout", "-qb", "side")
    lost = record(ledger, "0002", day=1)[0]
    git(ledger.root, "checkout", "-q", "main")
    record(ledger, "0003", day=2)
    git(ledger.root, "merge", "-q", "--no-commit", "--no-ff", "side")
    git(ledger.root, "rm", "-qf", str(lost))
    git(ledger.root, "commit", "-qm", "merge")
    assert codes(check_history(ledger)) == {("removed", lost.name)}


def test_a_receipt_that_moved_is_no_loss(ledger: Ledger) -> None:
    path = record(ledger, "0001")[0]
    other = path.parent.with_name(path.parent.name.replace("0001", "00aa"))
    other.mkdir()
    git(ledger.root, "mv", str(path), str(other / path.name))
    git(ledger.root, "commit", "-qm", "move")
    assert list(check_history(ledger)) == []


def test_later_sessions_and_merges_extend_a_checkpoint_whatever_their_names(ledger: Ledger) -> None:
    record(ledger, "0005", day=5)
    old = checkpoint(timeline(ledger))
    git(ledger.root, "checkout", "-qb", "side")
    record(ledger, "0001", day=1)
    git(ledger.root, "checkout", "-q", "main")
    record(ledger, "0009", day=9)
    middle = checkpoint(timeline(ledger))
    git(ledger.root, "merge", "-q", "--no-ff", "-m", "merge", "side")
    order = timeline(ledger)
    assert len(order) == 18
    assert extends(order, old)
    assert extends(order, middle)
    assert not extends(order[:-1], checkpoint(order))


def published(ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert run(["-C", str(ledger.root), "checkpoint"]) == 0
    path = tmp_path / "checkpoint"
    path.write_text(capsys.readouterr().out)
    return path


def test_a_rewritten_history_does_not_extend_what_was_published(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(ledger, "0001")
    lost = record(ledger, "0002", day=1)
    path = published(ledger, tmp_path, capsys)
    assert run(["-C", str(ledger.root), "verify", "--checkpoint", str(path)]) == 0
    record(ledger, "0003", day=2)
    assert run(["-C", str(ledger.root), "verify", "--checkpoint", str(path)]) == 0
    git(ledger.root, "reset", "-q", "--hard", "HEAD~2")
    git(ledger.root, "reflog", "expire", "--expire=now", "--all")
    assert not lost[0].exists()
    record(ledger, "0004", day=3)
    record(ledger, "0005", day=4)
    assert list(check_history(ledger)) == []
    assert run(["-C", str(ledger.root), "verify"]) == 0
    assert run(["-C", str(ledger.root), "verify", "--checkpoint", str(path)]) == 1
    assert "do not extend the checkpoint" in capsys.readouterr().out


def test_a_checkpoint_is_read_in_both_spellings_and_nothing_else() -> None:
    made = checkpoint(["sha256:a", "sha256:b"])
    assert read_checkpoint(made.text()) == made
    assert read_checkpoint(made.short()) == made
    assert read_checkpoint(made.text() + "\n— signed by somebody\n") == made
    for wrong in (
        "",
        "2",
        "receipt-ledger\n2\n",
        "receipt-ledger\nx\nAAAA\n",
        "other\n2\nAAAA\n",
        "receipt-ledger\n2\nAAAA\n",
        "2:zz",
    ):
        with pytest.raises(UsageError, match="not a checkpoint"):
            read_checkpoint(wrong)


def ssh_key(folder: Path, name: str) -> Path:
    key = folder / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(key)], check=True)
    return key


@pytest.fixture
def signed(ledger: Ledger, tmp_path: Path) -> tuple[Ledger, Path]:
    """A ledger whose commits are signed by a key of one allowed signer, and the file that allows it."""
    try:
        key = ssh_key(tmp_path, "good")
    except FileNotFoundError:
        pytest.skip("ssh-keygen is not installed")
    for name, value in (("gpg.format", "ssh"), ("user.signingkey", str(key)), ("commit.gpgsign", "true")):
        git(ledger.root, "config", name, value)
    signers = tmp_path / "signers"
    signers.write_text(f"tester@example.invalid {key.with_suffix('.pub').read_text()}")
    return ledger, signers


def test_signed_commits_of_an_allowed_signer_hold(signed: tuple[Ledger, Path]) -> None:
    ledger, signers = signed
    record(ledger, "0001")
    # The commit that started the ledger was made before there was a key.
    assert [item.what for item in check_signatures(ledger, signers)] == ["no signature"]


def test_an_unsigned_commit_and_another_key_are_found(signed: tuple[Ledger, Path], tmp_path: Path) -> None:
    ledger, signers = signed
    record(ledger, "0001")
    git(ledger.root, "config", "user.signingkey", str(ssh_key(tmp_path, "stranger")))
    record(ledger, "0002", day=1)
    git(ledger.root, "config", "commit.gpgsign", "false")
    record(ledger, "0003", day=2)
    said = [item.what.partition(" (")[0] for item in check_signatures(ledger, signers)]
    assert said == ["no signature", "a signature by a key that no allowed signer has", "no signature"]
    assert run(["-C", str(ledger.root), "verify", "--signers", str(signers)]) == 1
    assert run(["-C", str(ledger.root), "verify", "--signers", "nowhere"]) == 2
