"""Commits of receipts, through GitPython's command interface; the one module that imports it.

What it does: adds files to the current branch in one commit, and lists what is on disk but in no commit. What it does not do:
merge, push, rewrite, or run the user's commit hooks. Rules kept: the commit holds the branch's own tree plus these files and
nothing else: what the user has staged, changed or not added stays as it is; the branch moves by compare-and-swap and the commit
is made again when somebody was faster; afterwards the user's index knows these files too, so that ``git status`` is clean; a
receipt or blob whose bytes are not those of its name is left out and told.

During a merge, a cherry-pick or a revert the commit goes before the one that the user is making. During a rebase or a bisection
nothing is committed, since what HEAD is then may be thrown away.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from attrs import frozen
from git import Git
from git.exc import GitCommandError, GitCommandNotFound

from ledger.core import digest
from ledger.core.errors import NoLedgerError, Problem, StoreError
from ledger.store import layout, objects, packs
from ledger.store.ledger import MAX_BLOB, Ledger
from ledger.store.program import ELSEWHERE

TRIES = 40
INDEX_WAIT_S = 10.0
PAUSE_S = 0.05
NAME, EMAIL = "ledger", "ledger@localhost"
IMPORT_REFS = "refs/ledger/import/"
# Git's object of each file by its name; None for a file that is to be gone.
Entries = Mapping[str, str | None]
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


@frozen(kw_only=True)
class _Repository:
    """Git's commands on one repository: its work tree, its own folder, and the folder that linked work trees share."""

    git: Git
    top: Path
    folder: Path
    shared: Path


def commit_paths(ledger: Ledger, paths: Sequence[Path], message: str, *, removed: Sequence[Path] = ()) -> CommitInfo:
    """Commit exactly ``paths`` on the current branch, on a detached HEAD, or as the first commit of an empty repository.

    In the same commit the branch and the user's index forget ``removed``, whose files are left where they are.

    Raises:
        StoreError: git refuses, or a rebase or bisection is under way; the files stay on disk for the next commit.
    """
    with _opened(ledger) as repository:
        branch = _branch(repository)
        if not paths:
            return CommitInfo(commit=None, branch=branch)
        _refuse_under_way(repository)
        _sweep(repository)
        files, left_out = _import_files(repository, ledger, paths)
        gone: dict[str, str | None] = {} if left_out else {_name_of(repository, ledger, path): None for path in removed}
        entries: Entries = {**gone, **files}
        with _identity(repository) as identity:
            commit = _swap_in(repository, entries, message)
        remarks = [*left_out, *identity, *_tell_index(repository, entries)]
        if branch is None:
            remarks.append("HEAD is on no branch: git switch -c NAME keeps this commit")
        return CommitInfo(commit=commit, branch=branch, files=len(files) if commit else 0, remarks=tuple(remarks))


def uncommitted(ledger: Ledger) -> list[Path]:
    """The receipts, blobs and packs on disk that HEAD or the user's index does not know: what a killed session left.

    A loose receipt that a whole pack on disk holds is none of them: the pack is what is committed.
    """
    with _opened(ledger) as repository:
        place = _name_of(repository, ledger, ledger.receipts)
        unknown = repository.git.ls_files("--others", "-z", "--", place)
        tip = _tip(repository)
        staged = (
            repository.git.ls_files("--cached", "-z", "--", place)
            if tip is None
            else repository.git.diff_index("--cached", "--name-only", "--no-renames", "--diff-filter=A", "-z", tip, "--", place)
        )
        names = {name for name in f"{unknown}\0{staged}".split("\0") if layout.is_object(name.removeprefix(f"{place}/"))}
        found = [path for name in sorted(names) if _is_real(path := repository.top / name)]
        packed = packs.Proofs()
        return [path for path in found if not packed.holds(path)]


def user_name(ledger: Ledger) -> str | None:
    """The name that git would sign a commit with, if one is set."""
    with _opened(ledger) as repository:
        return _config(repository, "user.name")


# --- the repository -----------------------------------------------------------------------------------------------------------


@contextmanager
def _opened(ledger: Ledger) -> Iterator[_Repository]:
    repository = _discover(ledger.root)
    named = {
        "GIT_DIR": str(repository.folder),
        "GIT_WORK_TREE": str(repository.top),
        "GIT_COMMON_DIR": str(repository.shared),
        "GIT_INDEX_FILE": str(repository.folder / "index"),
        "GIT_OBJECT_DIRECTORY": str(repository.shared / "objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": "",
        "GIT_NAMESPACE": "",
        "GIT_LITERAL_PATHSPECS": "1",
        "LC_ALL": "C",
    }
    try:
        with repository.git.custom_environment(**named):
            yield repository
    except GitCommandNotFound as error:
        raise StoreError("the git program is not there", hint="install git") from error
    except GitCommandError as error:
        hint = "the receipts are on disk; mend it, and the next run commits them"
        raise StoreError(Problem(what="git refused", value=_words(error), hint=hint)) from error
    except OSError as error:
        raise objects.refused(error, error.filename or repository.folder) from error


def _discover(root: Path) -> _Repository:
    """The repository that holds ``root``, as git finds it; git's own guard against folders of other users is heeded."""
    # GitPython can add to the environment of a command, but not take GIT_DIR out of it.
    environment = {name: value for name, value in os.environ.items() if name not in ELSEWHERE} | {"LC_ALL": "C"}
    command = ["git", "rev-parse", "--absolute-git-dir", "--git-common-dir", "--show-toplevel"]
    try:
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, check=False)
    except FileNotFoundError as error:
        raise StoreError("the git program is not there", hint="install git") from error
    if done.returncode:
        raise _no_repository(root, " ".join(done.stderr.decode(errors="replace").split()))
    found = os.fsdecode(done.stdout).removesuffix("\n").split("\n")
    if len(found) != len(command) - 2:
        raise StoreError("the path of this repository has a line break in it, which git's answers cannot show", hint="move it")
    folder, shared, top = found
    return _Repository(git=Git(top), top=Path(top), folder=Path(folder), shared=(root / shared).resolve())


def _no_repository(root: Path, said: str) -> NoLedgerError | StoreError:
    if "must be run in a work tree" in said:
        return NoLedgerError("a bare repository has no files to keep receipts in", hint="work in a clone of it")
    if "not a git repository" in said:
        return NoLedgerError(f"not in a git repository: {root}", hint="git init")
    return StoreError(Problem(what="git does not open this repository", value=said, hint="git says above what would allow it"))


def _refuse_under_way(repository: _Repository) -> None:
    for name, what in UNDER_WAY.items():
        if (repository.folder / name).exists():
            hint = "finish or abort it; the receipts are on disk, and the next run commits them"
            raise StoreError(f"{what} is under way in this repository, so nothing is committed", hint=hint)


def _sweep(repository: _Repository) -> None:
    """Remove the temporary refs of processes that were killed between an import and its end."""
    for name in repository.git.for_each_ref("--format=%(refname)", IMPORT_REFS).split():
        if not objects.is_alive(name.removeprefix(IMPORT_REFS).partition("-")[0]):
            with suppress(GitCommandError):
                repository.git.update_ref("-d", name)


# --- the files ----------------------------------------------------------------------------------------------------------------


def _name_of(repository: _Repository, ledger: Ledger, path: Path) -> str:
    return (ledger.root.resolve() / path.relative_to(ledger.root)).relative_to(repository.top).as_posix()


def _is_real(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _import_files(repository: _Repository, ledger: Ledger, paths: Sequence[Path]) -> tuple[dict[str, str], list[str]]:
    """Put the files into git's object store: the object of each name, and a remark for each file that is left out."""
    names: list[str] = []
    left_out: list[str] = []
    scratch, mine = _scratch(ledger), f"{os.getpid()}."
    # Beside the receipts, since the system's folder for temporary files may be small and in memory.
    with (
        tempfile.NamedTemporaryFile(dir=scratch, prefix=mine, suffix=".tmp") as marks,
        tempfile.TemporaryFile(dir=scratch) as stream,
    ):
        for path in sorted(set(paths)):
            name = _name_of(repository, ledger, path)
            data = objects.read(path, MAX_BLOB)
            if not _is_what_it_says(ledger, path, data):
                left_out.append(f"left out, since its bytes are not those of its name: {name}")
                continue
            names.append(name)
            stream.write(b"blob\nmark :%d\ndata %d\n%b\n" % (len(names), len(data), data))
        if names:
            _import(repository, stream, f"--export-marks={marks.name}")
        by_mark = dict(line.split() for line in Path(marks.name).read_text(encoding="ascii").splitlines())
    return {name: by_mark[f":{mark}"] for mark, name in enumerate(names, start=1)}, left_out


def _is_what_it_says(ledger: Ledger, path: Path, data: bytes) -> bool:
    """Whether a receipt or blob has the bytes of its name; any other file says nothing of its bytes."""
    if not path.is_relative_to(ledger.receipts) or not layout.is_object(path.relative_to(ledger.receipts).as_posix()):
        return True
    return digest.hex_of(digest.of_bytes(data)) == layout.digest_in(path.name)


def _tree_with(repository: _Repository, entries: Entries, tip: str | None) -> str:
    """The tree of ``tip`` with the files in it. ``fast-import`` reads no index, and rewrites only the folders it touches."""
    ref = f"{IMPORT_REFS}{os.getpid()}-{os.urandom(4).hex()}"
    with tempfile.TemporaryFile() as stream:
        stream.write(f"commit {ref}\ncommitter {NAME} <{EMAIL}> 0 +0000\ndata 0\n".encode())
        if tip is not None:
            stream.write(f"from {tip}\n".encode())
        for name, entry in entries.items():
            stream.write(f"M 100644 {entry} {_quoted(name)}\n".encode() if entry else f"D {_quoted(name)}\n".encode())
        _import(repository, stream)
    try:
        return str(repository.git.rev_parse(f"{ref}^{{tree}}"))
    finally:
        repository.git.update_ref("-d", ref)


def _import(repository: _Repository, stream: IO[bytes], *options: str) -> None:
    stream.write(b"done\n")
    stream.seek(0)
    repository.git.fast_import("--quiet", "--done", *options, istream=stream)


def _scratch(ledger: Ledger) -> Path:
    objects.make_folder(ledger.scratch, ledger.root)
    return ledger.scratch


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


# --- the commit ---------------------------------------------------------------------------------------------------------------


def _swap_in(repository: _Repository, entries: Entries, message: str) -> str | None:
    """Build the commit on the branch's tip and move the branch to it, again and again while others move it."""
    said = ""
    for attempt in range(TRIES if entries else 0):
        tip = _tip(repository)
        tree = _tree_with(repository, entries, tip)
        if tip is not None and tree == str(repository.git.rev_parse(f"{tip}^{{tree}}")):
            return None
        commit = _commit_tree(repository, tree, tip, message)
        said = _move(repository, commit, tip, message)
        if not said:
            return commit
        time.sleep(PAUSE_S * (1 + attempt % 4))
    if not entries:
        return None
    hint = "the receipts are on disk, and the next run commits them"
    raise StoreError(Problem(what="the branch could not be moved", value=said, hint=hint))


def _tip(repository: _Repository) -> str | None:
    """What HEAD leads to, whether it is there or not; None on a branch without a commit."""
    try:
        return str(repository.git.rev_parse("--verify", "-q", "HEAD"))
    except GitCommandError:
        return None


def _commit_tree(repository: _Repository, tree: str, tip: str | None, message: str) -> str:
    parents = ["-p", tip] if tip is not None else []
    sign = ["-S"] if _config(repository, "commit.gpgsign", "--type=bool") == "true" else []
    return str(repository.git.commit_tree(tree, *parents, *sign, "-m", message))


def _move(repository: _Repository, commit: str, tip: str | None, message: str) -> str:
    """Compare-and-swap of HEAD, or of the branch it names; what git said when it was not at ``tip`` any more, or locked."""
    summary = message.partition("\n")[0]
    try:
        repository.git.update_ref("-m", f"ledger: {summary}", "HEAD", commit, tip or "0" * len(commit))
    except GitCommandError as error:
        said = _words(error)
        if "cannot lock ref" not in said or "ermission denied" in said or "ead-only" in said:
            raise
        return said
    return ""


def _tell_index(repository: _Repository, entries: Entries) -> list[str]:
    """Add the committed files to the user's index and take out the removed ones, waiting for its lock; a remark if it failed."""
    limit = time.monotonic() + INDEX_WAIT_S
    nothing = "0" * max((len(entry) for entry in entries.values() if entry), default=40)
    while entries:
        with tempfile.TemporaryFile() as stream:
            for name, entry in entries.items():
                stream.write(f"100644 {entry}\t{name}\0".encode() if entry else f"0 {nothing}\t{name}\0".encode())
            stream.seek(0)
            try:
                repository.git.update_index("-z", "--index-info", istream=stream)
                break
            except GitCommandError as error:
                if "index.lock" not in _words(error) or time.monotonic() > limit:
                    what = f"the receipts are committed, but git's index could not be told: {_words(error)}"
                    return [f"{what}; `git reset -q -- {layout.RECEIPTS}` mends it"]
        time.sleep(PAUSE_S)
    return []


@contextmanager
def _identity(repository: _Repository) -> Iterator[list[str]]:
    """Commit as the user; where git knows no address or no name, as ``ledger``, and say so."""
    # With useConfigOnly git says whether an address was given, where it would else make one up from the host's name.
    given = () if os.environ.get("EMAIL") else ("user.useConfigOnly=true", "user.name=x")
    missing = [who for who in ("AUTHOR", "COMMITTER") if not _knows(repository, who, *given)]
    nameless = [who for who in ("AUTHOR", "COMMITTER") if who not in missing and not _knows(repository, who)]
    names = {f"GIT_{who}_NAME": NAME for who in (*missing, *nameless)} | {f"GIT_{who}_EMAIL": EMAIL for who in missing}
    with repository.git.custom_environment(**names):
        told = f"git knows no user here: committed as {NAME} <{EMAIL}>; git config user.email sets one"
        yield [told] if missing else []


def _knows(repository: _Repository, who: str, *settings: str) -> bool:
    """Whether git has an identity to commit with, under these settings."""
    options = [part for setting in settings for part in ("-c", setting)]
    try:
        repository.git.execute(["git", *options, "var", f"GIT_{who}_IDENT"])
    except GitCommandError:
        return False
    return True


def _config(repository: _Repository, name: str, *options: str) -> str | None:
    try:
        return str(repository.git.config(*options, "--get", name)) or None
    except GitCommandError:
        return None


def _branch(repository: _Repository) -> str | None:
    try:
        return str(repository.git.symbolic_ref("--short", "-q", "HEAD")) or None
    except GitCommandError:
        return None


def _words(error: GitCommandError) -> str:
    text = error.stderr or error.stdout or str(error)
    return " ".join(str(text).replace("stderr:", "").split()).strip("' ")
