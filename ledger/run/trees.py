"""Pinned checkouts of source trees: the commit is there, checked out, unchanged, to be had from its remote, and says its version.

What it does: asks git on each node. What it does not do: fetch into the checkout, or change it. Rules kept: that a commit can
be had is proven by getting it anew into an empty repository, since git asks nobody for what it has; nothing is asked of a
person (no prompt, no password); what a tree declares is read at the pinned commit.
"""

import re

from attrs import frozen

from ledger.backends.reach import Ran, Reach
from ledger.core.errors import Problem
from ledger.core.text import one_line
from ledger.spec.model import Tree

QUIET = {"GIT_TERMINAL_PROMPT": "0", "GIT_SSH_COMMAND": "ssh -o BatchMode=yes", "LC_ALL": "C"}
GIT = ("git", "-c", "core.fsmonitor=false", "-c", "protocol.ext.allow=never")
FETCH_S = 300.0
VERSION_FILES = ("pyproject.toml", "Cargo.toml", "package.json", "setup.cfg", "VERSION", "version.txt")
_VERSION = re.compile(r"""(?m)^\s*"?(?:__)?version(?:__)?"?\s*[:=]\s*["']?(?P<version>[0-9][\w.+!-]*)""")
_ALONE = re.compile(r"\s*v?(?P<version>[0-9][\w.+!-]*)\s*")
_SHORTHAND = re.compile(r"[\w.-]+/[\w.-]+")


def check_tree(tree: Tree, reach: Reach, proven: set[str]) -> list[Problem]:
    """Everything that is not as pinned of a checkout on a node; nothing where the tree names no ``path``.

    ``proven`` holds the commits that could be had in this run, by node and remote; they are not asked for again, so that a
    remote that is away for an hour of the night refuses no boot.
    """
    if tree.path is None or tree.commit is None:
        return []
    return _Checkout(tree=tree, reach=reach, path=tree.path, pinned=tree.commit, proven=proven).problems()


@frozen(kw_only=True)
class _Checkout:
    tree: Tree
    reach: Reach
    path: str
    pinned: str
    proven: set[str]

    def problems(self) -> list[Problem]:
        if not (inside := self._git("rev-parse", "--git-dir")).ok:
            return [self._problem(f"no checkout at {self.path}: {_told(inside)}", f"git clone … {self.path}")]
        found = self._git("rev-parse", "--verify", "--quiet", f"{self.pinned}^{{commit}}")
        if not found.ok:
            return [self._problem(f"the commit {self.pinned} is not there", f"git -C {self.path} fetch")]
        commit = _line(found)
        return [*self._checked_out(commit), *self._clean(), *self._to_be_had(commit), *self._declares(commit)]

    def _checked_out(self, commit: str) -> list[Problem]:
        head = _line(self._git("rev-parse", "HEAD"))
        if head == commit:
            return []
        return [
            self._problem(f"{head[:12]} is checked out, expected {self.pinned}", f"git -C {self.path} checkout {self.pinned}")
        ]

    def _clean(self) -> list[Problem]:
        ran = self._git("status", "--porcelain")
        changed = ran.out.decode("utf-8", "replace").splitlines()
        if ran.ok and not changed:
            return []
        what = f"{len(changed)} files are not as committed, expected none: {', '.join(changed[:5])}" if ran.ok else _told(ran)
        return [self._problem(what, "commit them and pin that commit, or restore them")]

    def _to_be_had(self, commit: str) -> list[Problem]:
        remotes = self._remotes()
        if not remotes:
            return [self._problem("the commit cannot be had: no remote is known", "name its repo, or add a remote")]
        ways = {remote: f"{self.reach.key} {remote} {commit}" for remote in remotes}
        if self.proven & set(ways.values()):
            return []
        tried = []
        for remote, way in ways.items():
            if not (why := self._fetch(remote, commit)):
                self.proven.add(way)
                return []
            tried.append(f"{remote}: {why}")
        return [self._problem(f"the commit {self.pinned} cannot be had from its remote ({'; '.join(tried)})", "push it")]

    def _remotes(self) -> list[str]:
        """The repo as it is; for ``owner/name`` the remotes of the checkout that end so; without one, all of them."""
        urls = [words[1] for line in self._git("remote", "-v").out.decode().splitlines() if len(words := line.split()) > 1]
        repo = self.tree.repo
        if repo is None:
            return list(dict.fromkeys(urls))
        if not _SHORTHAND.fullmatch(repo):
            return [repo]
        return list(dict.fromkeys(url for url in urls if re.split(r"[/:]", url.removesuffix(".git"))[-2:] == repo.split("/")))

    def _fetch(self, remote: str, commit: str) -> str:
        """Get the commit anew; why that failed, or nothing."""
        tips = self._git("ls-remote", "--", remote)
        if not tips.ok:
            return _told(tips)
        if commit in {line.split()[0] for line in tips.out.decode("utf-8", "replace").splitlines() if line.strip()}:
            return ""
        made = self.reach.run(["mktemp", "-d"])
        empty = _line(made)
        if not made.ok or not empty:
            return made.told
        try:
            self.reach.run([*GIT, "init", "-q", "--bare", empty], env=QUIET)
            argv = [*GIT, "-C", empty, "fetch", "-q", "--no-tags", "--depth=1", "--filter=tree:0", "--", remote, commit]
            return _told(self.reach.run(argv, env=QUIET, timeout_s=FETCH_S))
        finally:
            self.reach.run(["rm", "-rf", "--", empty])

    def _declares(self, commit: str) -> list[Problem]:
        if self.tree.declares is None:
            return []
        names = (self.tree.version_file,) if self.tree.version_file else VERSION_FILES
        for name in names:
            found = version_in(name, self._git("show", f"{commit}:{name}"))
            if found == self.tree.declares:
                return []
            if found is not None:
                what = f"declares {found}, at {self.pinned}; expected: declares {self.tree.declares}, at {self.pinned}"
                return [self._problem(what, f"{name} at that commit says so: pin what it declares")]
        hint = "name the file that says it: version_file"
        return [self._problem(f"declares no version, at {self.pinned}; expected: declares {self.tree.declares}", hint)]

    def _git(self, *words: str) -> Ran:
        return self.reach.run([*GIT, "-C", self.path, *words], env=QUIET, timeout_s=FETCH_S)

    def _problem(self, what: str, hint: str) -> Problem:
        return Problem(what=f"node {self.reach.node}: tree {self.tree.name}: {what}", hint=hint)


def version_in(name: str, ran: Ran) -> str | None:
    """The version that a file of a tree declares, or None."""
    text = ran.out.decode("utf-8", "replace") if ran.ok else ""
    alone = name.rsplit("/", 1)[-1].lower() in ("version", "version.txt")
    match = _ALONE.fullmatch(text) if alone else _VERSION.search(text)
    return match["version"] if match else None


def _line(ran: Ran) -> str:
    return ran.out.decode("utf-8", "replace").strip()


def _told(ran: Ran) -> str:
    return one_line(ran.told)
