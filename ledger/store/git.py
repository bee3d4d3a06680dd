"""Commits of receipts, through GitPython's command interface; the one module that imports it.

What it does: adds files to the current branch in one commit, and lists what is on disk but in no commit. What it does not do:
merge, push, rewrite, or run the user's hooks. Rules kept: the commit holds the branch's own tree plus these files and nothing
else: what the user has staged, changed or not added stays as it is; the branch moves by compare-and-swap and the commit is made
again when somebody was faster; afterwards the user's index knows these files too, so that ``git status`` is clean.
"""

import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen
from git import Repo
from git.exc import GitCommandError, GitCommandNotFound, GitError, InvalidGitRepositoryError, NoSuchPathError

from ledger.core.errors import NoLedgerError, Problem, StoreError
from ledger.store import layout
from ledger.store.ledger import Ledger

TRIES = 40
INDEX_WAIT_S = 10.0
PAUSE_S = 0.05
NOBODY = {"NAME": "ledger", "EMAIL": "ledger@localhost"}
IMPORT_REFS = "refs/ledger/import/"
# While one of these is under way, HEAD is not the user's branch, and what is committed there may be thrown away.
UNDER_WAY: Mapping[str, str] = {
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "BISECT_LOG": "a bisection",
}


@frozen(kw_only=True)
class CommitInfo:
    """What became of it: the commit (None when there was nothing to commit), the branch, and what the user should know."""

    commit: str | None
    branch: str | None
    files: int = 0
    remarks: tuple[str, ...] = ()


def commit_paths(ledger: Ledger, paths: Sequence[Path], message: str) -> CommitInfo:
    """Commit exactly ``paths`` on the current branch, on a detached HEAD, or as the first commit of an empty repository.

    Raises:
        StoreError: git refuses, or a rebase or bisection is under way; the files stay on disk for the next commit.
    """
    with _opened(ledger) as repo:
        top = Path(str(repo.working_tree_dir)).resolve()
        names = sorted({path.resolve().relative_to(top).as_posix() for path in paths})
        if not names:
            return CommitInfo(commit=None, branch=_branch(repo))
        _refuse_under_way(repo)
        with _identity(repo) as identity:
            commit = _swap_in(repo, top, names, message)
        remarks = [*identity, *_tell_index(repo, names)]
        return CommitInfo(commit=commit, branch=_branch(repo), files=len(names) if commit else 0, remarks=tuple(remarks))


def uncommitted(ledger: Ledger) -> list[Path]:
    """The receipts and blobs on disk that the user's index does not know: what a killed session left."""
    with _opened(ledger) as repo:
        top = Path(str(repo.working_tree_dir))
        found = repo.git.ls_files("--others", "-z", "--", str(ledger.receipts))
        return [top / name for name in found.split("\0") if name and layout.STATE not in name.split("/")]


def user_name(ledger: Ledger) -> str | None:
    """The name that git would sign a commit with, if one is set."""
    with _opened(ledger) as repo:
        return _config(repo, "user.name")


@contextmanager
def _opened(ledger: Ledger) -> Iterator[Repo]:
    try:
        with Repo(ledger.root, search_parent_directories=True) as repo:
            if repo.bare:
                raise NoLedgerError("a bare repository has no files to keep receipts in", hint="work in a clone of it")
            # Named in full, so that GIT_DIR or GIT_INDEX_FILE of the caller's environment cannot lead elsewhere.
            index = Path(repo.git_dir) / "index"
            with repo.git.custom_environment(
                GIT_DIR=str(repo.git_dir), GIT_WORK_TREE=str(repo.working_tree_dir), GIT_INDEX_FILE=str(index), LC_ALL="C"
            ):
                yield repo
    except (InvalidGitRepositoryError, NoSuchPathError) as error:
        raise NoLedgerError(f"not in a git repository: {ledger.root}", hint="git init") from error
    except GitCommandNotFound as error:
        raise StoreError("the git program is not there", hint="install git") from error
    except GitCommandError as error:
        raise StoreError(
            Problem(what="git refused", value=_words(error), hint="the receipts are on disk; mend it and run again")
        ) from error
    except GitError as error:
        raise StoreError(f"git: {error}") from error


def _swap_in(repo: Repo, top: Path, names: Sequence[str], message: str) -> str | None:
    """Build the commit on the branch's tip and move the branch to it, again and again while others move it."""
    for attempt in range(TRIES):
        tip = _tip(repo)
        tree = _tree_with(repo, top, names, tip)
        if tip is not None and tree == str(repo.git.rev_parse(f"{tip}^{{tree}}")):
            return None
        commit = _commit_tree(repo, tree, tip, message)
        if _move(repo, commit, tip, message):
            return commit
        time.sleep(PAUSE_S * (1 + attempt % 4))
    raise StoreError("the branch kept moving while receipts were committed", hint="the receipts are on disk; run it again")


def _tip(repo: Repo) -> str | None:
    try:
        return str(repo.git.rev_parse("--verify", "-q", "HEAD^{commit}"))
    except GitCommandError:
        return None


def _tree_with(repo: Repo, top: Path, names: Sequence[str], tip: str | None) -> str:
    """The tree of ``tip`` with the files in it. ``fast-import`` reads no index, and rewrites only the folders it touches."""
    ref = f"{IMPORT_REFS}{os.getpid()}-{os.urandom(4).hex()}"
    with tempfile.TemporaryFile() as stream:
        stream.write(f"commit {ref}\ncommitter ledger <ledger@localhost> 0 +0000\ndata 0\n".encode())
        if tip is not None:
            stream.write(f"from {tip}\n".encode())
        for name in names:
            data = top.joinpath(name).read_bytes()
            stream.write(f"M 100644 inline {_quoted(name)}\ndata {len(data)}\n".encode())
            stream.write(data)
            stream.write(b"\n")
        stream.write(b"done\n")
        stream.seek(0)
        repo.git.fast_import("--quiet", "--done", istream=stream)
    try:
        return str(repo.git.rev_parse(f"{ref}^{{tree}}"))
    finally:
        repo.git.update_ref("-d", ref)


def _commit_tree(repo: Repo, tree: str, tip: str | None, message: str) -> str:
    parents = ["-p", tip] if tip is not None else []
    sign = ["-S"] if _config(repo, "commit.gpgsign") == "true" else []
    return str(repo.git.commit_tree(tree, *parents, *sign, "-m", message))


def _move(repo: Repo, commit: str, tip: str | None, message: str) -> bool:
    """Compare-and-swap of HEAD, or of the branch it names; False when it was no longer at ``tip``."""
    try:
        repo.git.update_ref("-m", f"ledger: {message.splitlines()[0]}", "HEAD", commit, tip or "0" * len(commit))
    except GitCommandError:
        if _tip(repo) == tip and not _ref_locked(repo):
            raise
        return False
    return True


def _ref_locked(repo: Repo) -> bool:
    branch = _branch(repo)
    common = Path(repo.common_dir)
    locks = [Path(repo.git_dir) / "HEAD.lock", *([common / f"refs/heads/{branch}.lock"] if branch else [])]
    return any(lock.exists() for lock in locks)


def _tell_index(repo: Repo, names: Sequence[str]) -> list[str]:
    """Add the committed files to the user's index, waiting for its lock; a remark when that did not work."""
    listed = _entries(repo, names)
    limit = time.monotonic() + INDEX_WAIT_S
    while True:
        with tempfile.TemporaryFile() as stream:
            stream.write("".join(listed).encode())
            stream.seek(0)
            try:
                repo.git.update_index("-z", "--index-info", istream=stream)
                return []
            except GitCommandError as error:
                if "index.lock" not in _words(error) or time.monotonic() > limit:
                    return [
                        f"the receipts are committed, but git's index could not be told: {_words(error)}; `git reset -q` mends it"
                    ]
        time.sleep(PAUSE_S)


def _entries(repo: Repo, names: Sequence[str]) -> list[str]:
    wanted = set(names)
    # A folder lists all that is in it, in one call for many files; a file at the top names itself.
    places = sorted({f"{folder}/" if (folder := name.rpartition("/")[0]) else name for name in names})
    found = repo.git.ls_tree("-z", "HEAD", "--", *places, stdout_as_string=True)
    entries = [entry for entry in found.split("\0") if entry]
    return [f"{entry}\0" for entry in entries if entry.partition("\t")[2] in wanted]


@contextmanager
def _identity(repo: Repo) -> Iterator[list[str]]:
    """Commit as the user; where git knows no user, as ``ledger``, and say so."""
    if _config(repo, "user.email") or os.environ.get("GIT_AUTHOR_EMAIL") or os.environ.get("EMAIL"):
        yield []
        return
    names = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in NOBODY.items()}
    with repo.git.custom_environment(**names):
        yield [f"git knows no user here: committed as {NOBODY['NAME']} <{NOBODY['EMAIL']}>; git config user.email sets one"]


def _config(repo: Repo, name: str) -> str | None:
    try:
        return str(repo.git.config("--get", name)) or None
    except GitCommandError:
        return None


def _branch(repo: Repo) -> str | None:
    try:
        return str(repo.git.symbolic_ref("--short", "-q", "HEAD")) or None
    except GitCommandError:
        return None


def _refuse_under_way(repo: Repo) -> None:
    for name, what in UNDER_WAY.items():
        if (Path(repo.git_dir) / name).exists():
            hint = "finish or abort it; the receipts are on disk, and the next run commits them"
            raise StoreError(f"{what} is under way in this repository, so nothing is committed", hint=hint)


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _words(error: GitCommandError) -> str:
    text = error.stderr or error.stdout or str(error)
    return " ".join(str(text).replace("stderr:", "").split()).strip("' ")
