"""Commits of receipts in real repositories: what they hold, what they leave alone, and what git can have in the way."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ledger.core.errors import NoLedgerError, StoreError
from ledger.receipt.model import Note
from ledger.store import git as store_git
from ledger.store.git import commit_paths, uncommitted, user_name
from ledger.store.ledger import Ledger
from ledger.store.program import ELSEWHERE
from ledger.store.start import start
from ledger.store.verify import Checked, verify
from tests.builder import Builder, git, new_ledger, new_repository


def note(build: Builder, text: str = "a remark") -> list[Path]:
    """Record a note; the files of its session."""
    build.writer.record(Note(text=text, by="A Tester"))
    return build.writer.paths


def names_in(folder: Path, revision: str = "HEAD") -> set[str]:
    """The files of a commit."""
    return set(git(folder, "ls-tree", "-r", "--name-only", "-z", revision).split("\0")) - {""}


def changed_by(folder: Path, revision: str = "HEAD") -> set[str]:
    """The files that a commit touched."""
    return set(git(folder, "show", "--name-only", "--format=", "-z", revision).split("\0")) - {""}


def relative(ledger: Ledger, paths: list[Path]) -> set[str]:
    return {path.relative_to(ledger.root).as_posix() for path in paths}


def test_a_commit_holds_exactly_the_files_and_status_is_clean(ledger: Ledger, build: Builder) -> None:
    paths = note(build)
    before = git(ledger.root, "rev-parse", "HEAD").strip()
    made = commit_paths(ledger, paths, "receipts: a note\n\nwith a body\n")
    assert made.branch == "main"
    assert made.files == len(paths) == 2
    assert made.remarks == ()
    assert made.commit == git(ledger.root, "rev-parse", "main").strip()
    assert git(ledger.root, "rev-parse", "HEAD^").strip() == before
    assert changed_by(ledger.root) == relative(ledger, paths)
    assert git(ledger.root, "log", "-1", "--format=%an <%ae>|%cn|%B").strip() == (
        "A Tester <tester@example.invalid>|A Tester|receipts: a note\n\nwith a body"
    )
    assert git(ledger.root, "status", "--porcelain") == ""
    assert git(ledger.root, "for-each-ref", "refs/ledger") == ""
    git(ledger.root, "fsck", "--strict")


def test_the_bytes_in_git_are_the_bytes_on_disk(ledger: Ledger, build: Builder) -> None:
    blob = bytes(range(256)) + b"\r\n\r\n"
    build.writer.blob(blob, "application/octet-stream")
    git(ledger.root, "config", "core.autocrlf", "true")
    paths = note(build, "\r\n and \x00")
    commit_paths(ledger, paths, "receipts")
    for path in paths:
        stored = subprocess.run(
            ["git", "cat-file", "blob", f"HEAD:{path.relative_to(ledger.root)}"], cwd=ledger.root, capture_output=True, check=True
        )
        assert stored.stdout == path.read_bytes()
    assert git(ledger.root, "status", "--porcelain") == ""


def test_what_the_user_staged_changed_and_did_not_add_stays_as_it_was(ledger: Ledger) -> None:
    (ledger.root / "kept.txt").write_text("one\n")
    (ledger.root / "gone.txt").write_text("x\n")
    git(ledger.root, "add", "kept.txt", "gone.txt")
    git(ledger.root, "commit", "-qm", "files")
    (ledger.root / "staged.txt").write_text("staged\n")
    (ledger.root / "kept.txt").write_text("two\n")
    git(ledger.root, "add", "staged.txt", "kept.txt")
    (ledger.root / "kept.txt").write_text("three\n")
    (ledger.root / "new.txt").write_text("new\n")
    git(ledger.root, "rm", "-q", "--cached", "gone.txt")
    before = git(ledger.root, "status", "--porcelain")
    staged = git(ledger.root, "diff", "--cached")
    paths = note(Builder(ledger))
    commit_paths(ledger, paths, "receipts")
    assert changed_by(ledger.root) == relative(ledger, paths)
    assert git(ledger.root, "status", "--porcelain") == before
    assert git(ledger.root, "diff", "--cached") == staged
    assert (ledger.root / "kept.txt").read_text() == "three\n"
    git(ledger.root, "commit", "-qm", "mine")
    assert changed_by(ledger.root) == {"staged.txt", "kept.txt", "gone.txt"}
    assert relative(ledger, paths) <= names_in(ledger.root)


def test_nothing_to_commit_makes_no_commit(ledger: Ledger, build: Builder) -> None:
    paths = note(build)
    first = commit_paths(ledger, paths, "receipts")
    again = commit_paths(ledger, paths, "receipts")
    assert again.commit is None
    assert again.files == 0
    assert commit_paths(ledger, [], "receipts").commit is None
    assert git(ledger.root, "rev-parse", "HEAD").strip() == first.commit


def test_the_first_commit_of_an_empty_repository(tmp_path: Path) -> None:
    ledger, _ = start(new_repository(tmp_path))
    paths = note(Builder(ledger))
    assert set(uncommitted(ledger)) == set(paths)
    made = commit_paths(ledger, paths, "receipts")
    assert names_in(tmp_path) == relative(ledger, paths)
    assert git(tmp_path, "rev-list", "--count", "main").strip() == "1"
    assert made.commit
    assert uncommitted(ledger) == []


def test_a_detached_head_is_moved_and_told(ledger: Ledger, build: Builder) -> None:
    git(ledger.root, "checkout", "-q", "--detach")
    made = commit_paths(ledger, note(build), "receipts")
    assert made.branch is None
    assert any("git switch -c" in remark for remark in made.remarks)
    assert git(ledger.root, "rev-parse", "HEAD").strip() == made.commit
    assert git(ledger.root, "rev-parse", "main").strip() != made.commit


def test_a_ledger_below_the_top_of_its_repository(tmp_path: Path) -> None:
    new_repository(tmp_path)
    ledger, _ = start(tmp_path / "bench [1]" / "ledger")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "start")
    paths = note(Builder(ledger))
    assert set(uncommitted(ledger)) == set(paths)
    commit_paths(ledger, paths, "receipts")
    assert changed_by(tmp_path) == {f"bench [1]/ledger/{name}" for name in relative(ledger, paths)}
    assert git(tmp_path, "status", "--porcelain") == ""
    assert uncommitted(ledger) == []


def test_a_linked_work_tree_commits_on_its_own_branch(ledger: Ledger, tmp_path: Path) -> None:
    git(ledger.root, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    linked = Ledger.find(tmp_path / "side")
    made = commit_paths(linked, note(Builder(linked)), "receipts")
    assert made.branch == "side"
    assert git(linked.root, "status", "--porcelain") == ""
    assert git(ledger.root, "status", "--porcelain") == ""
    assert git(ledger.root, "rev-parse", "side").strip() == made.commit


def test_the_environment_cannot_lead_elsewhere(
    ledger: Ledger, build: Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = new_ledger(tmp_path / "other").root
    before = git(other, "rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path / "objects"))
    monkeypatch.setenv("GIT_PREFIX", "nowhere/")
    paths = note(build)
    made = commit_paths(ledger, paths, "receipts")
    assert uncommitted(ledger) == []
    for name in ELSEWHERE:
        monkeypatch.delenv(name, raising=False)
    assert git(ledger.root, "rev-parse", "HEAD").strip() == made.commit
    assert git(ledger.root, "status", "--porcelain") == ""
    assert git(other, "rev-parse", "HEAD") == before
    assert not (tmp_path / "index").exists()
    assert not (tmp_path / "objects").exists()


# --- who commits --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch, ledger: Ledger) -> None:
    """A machine where git has been told of no user."""
    for name in ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL"):
        monkeypatch.delenv(f"GIT_{name}", raising=False)
    monkeypatch.delenv("EMAIL", raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    git(ledger.root, "config", "--unset", "user.name")
    git(ledger.root, "config", "--unset", "user.email")


@pytest.mark.usefixtures("nobody")
def test_without_a_user_it_commits_as_ledger_and_says_so(ledger: Ledger, build: Builder) -> None:
    made = commit_paths(ledger, note(build), "receipts")
    assert git(ledger.root, "log", "-1", "--format=%an <%ae> %cn <%ce>").strip() == (
        "ledger <ledger@localhost> ledger <ledger@localhost>"
    )
    assert any("git config user.email" in remark for remark in made.remarks)
    assert user_name(ledger) is None


@pytest.mark.usefixtures("nobody")
def test_an_author_of_the_environment_is_kept_beside_the_stand_in_committer(
    ledger: Ledger, build: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_AUTHOR_NAME", "An Author")
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "author@example.invalid")
    made = commit_paths(ledger, note(build), "receipts")
    assert git(ledger.root, "log", "-1", "--format=%an <%ae> %cn <%ce>").strip() == (
        "An Author <author@example.invalid> ledger <ledger@localhost>"
    )
    assert made.remarks


def test_a_signed_commit_is_asked_for_and_made(ledger: Ledger, build: Builder, tmp_path: Path) -> None:
    key = tmp_path / "key"
    made_key = subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=False)
    if made_key.returncode:
        pytest.skip("no ssh-keygen here")
    git(ledger.root, "config", "gpg.format", "ssh")
    git(ledger.root, "config", "user.signingkey", str(key))
    git(ledger.root, "config", "commit.gpgsign", "yes")
    commit_paths(ledger, note(build), "receipts")
    assert "-----BEGIN SSH SIGNATURE-----" in git(ledger.root, "cat-file", "commit", "HEAD")
    git(ledger.root, "config", "user.signingkey", str(tmp_path / "no such key"))
    paths = note(Builder(ledger, token="0002"))
    with pytest.raises(StoreError, match="git refused"):
        commit_paths(ledger, paths, "receipts")
    assert set(uncommitted(ledger)) == set(paths)


def test_the_users_commit_hooks_are_not_run(ledger: Ledger, build: Builder) -> None:
    for name in ("pre-commit", "commit-msg", "post-commit"):
        hook = ledger.root / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text("#!/bin/sh\necho ran >> hooked\nexit 1\n")
        hook.chmod(0o755)
    assert commit_paths(ledger, note(build), "receipts").commit
    assert not (ledger.root / "hooked").exists()


# --- what git can have in the way -----------------------------------------------------------------------------------------------


def conflict(root: Path) -> None:
    """Two branches that changed one line to different ends."""
    for branch, text in (("side", "theirs\n"), ("main", "ours\n")):
        git(root, "switch", "-q", *(["-c"] if branch == "side" else []), branch)
        (root / "line.txt").write_text(text)
        git(root, "add", "line.txt")
        git(root, "commit", "-qm", branch)


def may_fail(root: Path, *arguments: str) -> int:
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=False).returncode


@pytest.mark.parametrize("ending", ["commit", "abort"])
def test_a_merge_under_way_goes_on_after_it(ledger: Ledger, build: Builder, ending: str) -> None:
    conflict(ledger.root)
    assert may_fail(ledger.root, "merge", "-q", "side") != 0
    paths = note(build)
    made = commit_paths(ledger, paths, "receipts")
    assert changed_by(ledger.root) == relative(ledger, paths)
    assert git(ledger.root, "status", "--porcelain") == "AA line.txt\n"
    if ending == "abort":
        git(ledger.root, "merge", "--abort")
        assert git(ledger.root, "rev-parse", "HEAD").strip() == made.commit
    else:
        (ledger.root / "line.txt").write_text("both\n")
        git(ledger.root, "add", "line.txt")
        git(ledger.root, "commit", "-qm", "merged")
        assert git(ledger.root, "rev-parse", "HEAD^1").strip() == made.commit
    assert git(ledger.root, "status", "--porcelain") == ""
    assert relative(ledger, paths) <= names_in(ledger.root)


def test_during_a_rebase_nothing_is_committed_and_the_next_commit_takes_it_up(ledger: Ledger, build: Builder) -> None:
    conflict(ledger.root)
    assert may_fail(ledger.root, "rebase", "-q", "side") != 0
    before = git(ledger.root, "rev-parse", "HEAD")
    paths = note(build)
    with pytest.raises(StoreError, match="a rebase is under way"):
        commit_paths(ledger, paths, "receipts")
    assert git(ledger.root, "rev-parse", "HEAD") == before
    git(ledger.root, "rebase", "--abort")
    assert set(uncommitted(ledger)) == set(paths)
    assert commit_paths(ledger, uncommitted(ledger), "receipts").files == len(paths)
    assert git(ledger.root, "status", "--porcelain") == ""


def test_during_a_bisection_nothing_is_committed(ledger: Ledger, build: Builder) -> None:
    git(ledger.root, "bisect", "start")
    with pytest.raises(StoreError, match="a bisection is under way"):
        commit_paths(ledger, note(build), "receipts")


def test_a_locked_index_is_waited_for_and_then_told(ledger: Ledger, build: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_git, "INDEX_WAIT_S", 0.2)
    lock = ledger.root / ".git" / "index.lock"
    lock.touch()
    paths = note(build)
    made = commit_paths(ledger, paths, "receipts")
    assert made.commit
    assert "index.lock" in made.remarks[0]
    assert "git reset -q" in made.remarks[0]
    lock.unlink()
    # What the index still lacks is found, and telling it makes no second commit.
    assert set(uncommitted(ledger)) == set(paths)
    assert commit_paths(ledger, uncommitted(ledger), "receipts").commit is None
    assert git(ledger.root, "status", "--porcelain") == ""


def test_a_branch_that_stays_locked_is_a_clear_error(ledger: Ledger, build: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_git, "TRIES", 2)
    (ledger.root / ".git" / "refs" / "heads" / "main.lock").touch()
    with pytest.raises(StoreError, match=r"main\.lock"):
        commit_paths(ledger, note(build), "receipts")


def test_a_head_that_leads_to_nothing_is_told_and_not_taken_for_a_new_branch(ledger: Ledger, build: Builder) -> None:
    (ledger.root / ".git" / "refs" / "heads" / "main").write_text("0" * 39 + "1\n")
    with pytest.raises(StoreError, match="Not a valid commit"):
        commit_paths(ledger, note(build), "receipts")
    assert git(ledger.root, "rev-parse", "main").strip() == "0" * 39 + "1"


def test_a_path_with_a_line_break_is_told(tmp_path: Path) -> None:
    ledger, _ = start(new_repository(tmp_path / "two\nlines"))
    with pytest.raises(StoreError, match="line break"):
        commit_paths(ledger, note(Builder(ledger)), "receipts")


@pytest.mark.parametrize("message", ["", "-x --amend", "# a comment", "\n\n"])
def test_any_message_is_a_message(ledger: Ledger, build: Builder, message: str) -> None:
    assert commit_paths(ledger, note(build), message).commit
    assert git(ledger.root, "log", "-1", "--format=%B").strip() == message.strip()


def test_outside_a_repository_and_in_a_bare_one(tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    alone.mkdir()
    with pytest.raises(NoLedgerError, match="git init"):
        uncommitted(Ledger(root=alone))
    bare = tmp_path / "bare"
    git(tmp_path, "init", "-q", "--bare", str(bare))
    with pytest.raises(NoLedgerError, match="bare"):
        uncommitted(Ledger(root=bare))


def test_a_repository_of_another_user_is_refused_as_git_refuses_it(
    ledger: Ledger, build: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = note(build)
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    with pytest.raises(StoreError, match=r"safe\.directory"):
        commit_paths(ledger, paths, "receipts")


def test_without_git_it_says_so(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(StoreError, match="install git"):
        uncommitted(ledger)


# --- what killed processes leave ------------------------------------------------------------------------------------------------


def test_what_a_killed_session_left_is_found_and_nothing_else(ledger: Ledger, build: Builder, tmp_path: Path) -> None:
    paths = note(build)
    staged, loose = paths[:1], paths[1:]
    git(ledger.root, "add", "-f", str(staged[0]))
    outside = tmp_path / "secret"
    outside.write_text("not ours\n")
    (build.writer.folder / f"{'0' * 64}.json").symlink_to(outside)
    (build.writer.folder / "notes.txt").write_text("mine\n")
    (ledger.root / "draft.txt").write_text("mine\n")
    (ledger.root / ".git" / "info").mkdir(exist_ok=True)
    (ledger.root / ".git" / "info" / "exclude").write_text("*.json\n")
    assert set(uncommitted(ledger)) == {*staged, *loose}
    commit_paths(ledger, uncommitted(ledger), "receipts")
    assert changed_by(ledger.root) == relative(ledger, paths)
    assert uncommitted(ledger) == []


def test_a_leftover_with_other_bytes_than_its_name_is_left_out_and_told(ledger: Ledger, build: Builder) -> None:
    paths = note(build)
    broken = next(path for path in paths if path.suffix == ".json")
    broken.write_bytes(broken.read_bytes()[:-1])
    made = commit_paths(ledger, uncommitted(ledger), "receipts")
    assert changed_by(ledger.root) == relative(ledger, [path for path in paths if path != broken])
    assert broken.name in made.remarks[0]


KILLED = """
import sys
from pathlib import Path
from git import Git
from ledger.store import git as store_git
from ledger.store.ledger import Ledger

step, root = sys.argv[1], Path(sys.argv[2])
real = Git.execute

def until_the_step(self, command, *more, **options):
    if step in " ".join(command):
        import os, signal
        os.kill(os.getpid(), signal.SIGKILL)
    return real(self, command, *more, **options)

Git.execute = until_the_step
ledger = Ledger.find(root)
store_git.commit_paths(ledger, store_git.uncommitted(ledger), "receipts")
"""


@pytest.mark.parametrize(
    "step", ["fast-import", "rev-parse refs/", "update-ref -d", "commit-tree", "update-ref -m", "update-index"]
)
def test_a_kill_between_any_two_steps_leaves_what_the_next_commit_mends(ledger: Ledger, build: Builder, step: str) -> None:
    paths = note(build)
    done = subprocess.run([sys.executable, "-c", KILLED, step, str(ledger.root)], capture_output=True, check=False)
    assert done.returncode == -9, done.stderr
    assert list(verify(ledger, Checked())) == []
    commit_paths(ledger, uncommitted(ledger), "receipts")
    assert git(ledger.root, "status", "--porcelain") == ""
    assert relative(ledger, paths) <= names_in(ledger.root)
    assert git(ledger.root, "rev-list", "--count", "HEAD").strip() == "2"
    # A commit sweeps what it finds before it imports; a process that died after that leaves its ref to the next one.
    commit_paths(ledger, note(Builder(ledger, token="0002")), "receipts")
    assert git(ledger.root, "for-each-ref", "refs/ledger") == ""


WRITER = """
import sys
from pathlib import Path
from ledger.receipt.model import Note
from ledger.store.git import commit_paths
from ledger.store.ledger import Ledger
from tests.builder import Builder

ledger = Ledger.find(Path(sys.argv[1]))
build = Builder(ledger, token=sys.argv[2])
for number in range(5):
    build.writer.record(Note(text=f"{sys.argv[2]} {number}", by="A Tester"))
made = commit_paths(ledger, build.writer.paths, f"receipts: {sys.argv[2]}")
assert made.remarks == (), made.remarks
"""


def test_eight_processes_that_commit_at_once_lose_nothing(ledger: Ledger) -> None:
    (ledger.root / "staged.txt").write_text("mine\n")
    git(ledger.root, "add", "staged.txt")
    here = Path(__file__).resolve().parents[2]
    running = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(ledger.root), f"{number:04x}"], cwd=here, stderr=subprocess.PIPE)
        for number in range(8)
    ]
    assert [process.communicate()[1] for process in running] == [b""] * 8
    assert len(list(ledger.walk())) == 40
    assert git(ledger.root, "rev-list", "--count", "HEAD").strip() == "9"
    assert git(ledger.root, "status", "--porcelain") == "A  staged.txt\n"
    assert len([name for name in names_in(ledger.root) if name.endswith(".json")]) == 40
    assert uncommitted(ledger) == []
    assert list(verify(ledger, Checked())) == []
    git(ledger.root, "fsck", "--strict")


def test_branches_of_several_people_merge_without_a_conflict(ledger: Ledger, tmp_path: Path) -> None:
    clones = []
    for number in range(3):
        git(tmp_path, "clone", "-q", str(ledger.root), f"clone{number}")
        clone = Ledger.find(tmp_path / f"clone{number}")
        git(clone.root, "config", "user.email", "tester@example.invalid")
        git(clone.root, "config", "user.name", "A Tester")
        commit_paths(clone, note(Builder(clone, token=f"{number:04x}")), "receipts")
        clones.append(clone)
    for clone in clones:
        git(ledger.root, "pull", "-q", "--no-rebase", "--no-edit", str(clone.root), "main")
    assert len(list(ledger.walk())) == 3
    assert list(verify(ledger, Checked())) == []
