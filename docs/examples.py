"""The fenced examples of the documentation: found, run, and written again.

What it does: finds the fenced blocks of a page; runs the commands of its ``console`` blocks one after the other in a copy of the
example ledger; compares what they print with what the page shows, or writes it into the page. What it does not do: judge TOML or
Python blocks (``tests/docs/test_examples.py``). Rules kept: ``…`` in a page stands for any text; a command that ends with
another code than 0 is followed by a line ``(exit code N)``; a page's commands share one folder, and pages share nothing.

usage: python -m docs.examples [PAGE…]    Write the real output under every command of these pages, or of all.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import evolve, frozen

from docs.example_ledger import build
from ledger.store.git import commit_paths
from ledger.store.start import start

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
# What a fresh clone holds: one real session, and both editions of the worked example's post.
OWN_SESSIONS = ("2026/12/01T1019-smollm2-a530", "2026/10/19T0000-post-2026-10-96fe", "2026/10/20T1040-post-2026-10-96fe")
ANY = "…"
PROMPT = "$ "
TIMEOUT_S = 120
_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[a-z]*)[^\n]*\n(?P<body>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)


@frozen(kw_only=True)
class Block:
    """A fenced block: its language, its text, and the line on which the text begins, counted from 1."""

    language: str
    text: str
    line: int
    start: int
    end: int


@frozen(kw_only=True)
class Step:
    """A command of a console block and what the page shows under it; ``end`` with a newline unless empty."""

    command: str
    shown: str


def pages() -> list[Path]:
    """Every Markdown page of the documentation, and those at the top of the repository."""
    return sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    for match in _FENCE.finditer(text):
        indent = match["indent"]
        body = "".join(line.removeprefix(indent) for line in match["body"].splitlines(keepends=True))
        line = text.count("\n", 0, match.start("body")) + 1
        yield Block(language=match["language"], text=body, line=line, start=match.start("body"), end=match.end("body"))


def steps(block: Block) -> list[Step]:
    """The commands of a console block; a line that ends in a backslash goes on in the next."""
    found: list[Step] = []
    for line in block.text.splitlines(keepends=True):
        if found and found[-1].command.endswith("\\\n") and not found[-1].shown:
            found[-1] = evolve(found[-1], command=found[-1].command + line)
        elif line.startswith(PROMPT):
            found.append(Step(command=line.removeprefix(PROMPT), shown=""))
        elif found:
            found[-1] = evolve(found[-1], shown=found[-1].shown + line)
    return found


def run(command: str, folder: Path) -> str:
    """What a command prints on both streams, without trailing spaces, and its exit code where that is not 0."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "LEDGER_"))}
    environment |= {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}",
        "COLUMNS": "110",
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "TZ": "UTC",
    }
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=TIMEOUT_S,
        check=False,
    )
    lines = done.stdout.decode("utf-8", "replace").replace(str(folder), "/home/reader/example").splitlines()
    lines += [f"(exit code {done.returncode})"] if done.returncode else []
    return "".join(f"{line.rstrip()}\n" for line in lines)


def agrees(shown: str, printed: str) -> bool:
    """Whether what a page shows is what was printed; ``…`` stands for any text, also of several lines."""
    pattern = ".*".join(re.escape(part) for part in shown.split(ANY))
    return re.fullmatch(pattern, printed, re.DOTALL) is not None


def stage(folder: Path) -> Path:
    """A new example ledger, with its spec and site beside it; returns its folder."""
    root = folder / "example"
    build(root)
    shutil.copytree(DOCS / "example", root / "specs")
    return root


def stage_for(page: Path, folder: Path) -> Path:
    """Where a page's commands are run: the README's on a copy of the sessions that this repository holds."""
    return stage_own(folder) if page == ROOT / "README.md" else stage(folder)


def stage_own(folder: Path) -> Path:
    """A new ledger with the receipts of the repository's own sessions; returns its folder."""
    root = folder / "ledger"
    root.mkdir(parents=True)
    for arguments in (
        ["init", "-q", "-b", "main"],
        ["config", "user.name", "reader"],
        ["config", "user.email", "reader@localhost"],
    ):
        subprocess.run(["git", *arguments], cwd=root, check=True)
    ledger, _ = start(root)
    for session in OWN_SESSIONS:
        shutil.copytree(ROOT / "receipts" / session, root / "receipts" / session)
    commit_paths(ledger, [path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts], "the sessions")
    return root


def has_commands(page: Path) -> bool:
    """Whether a page shows commands with what they print."""
    return any(block.language == "console" for block in blocks(page.read_text(encoding="utf-8")))


def rewrite(page: Path) -> bool:
    """Write what every command prints under it, where the page shows something else; whether the page changed."""
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as scratch:
        folder = stage_for(page, Path(scratch))
        made = [(block, _rewritten(block, folder)) for block in blocks(text) if block.language == "console"]
    new = text
    for block, body in reversed(made):
        new = new[: block.start] + body + new[block.end :]
    if new != text:
        page.write_text(new, encoding="utf-8")
    return new != text


def _rewritten(block: Block, folder: Path) -> str:
    parts = []
    for step in steps(block):
        printed = run(step.command, folder)
        parts.append(f"{PROMPT}{step.command}{step.shown if agrees(step.shown, printed) else printed}")
    return "".join(parts)


def main(arguments: Sequence[str]) -> None:
    """Rewrite the pages that are named, or all that show commands."""
    named = [Path(name).resolve() for name in arguments] or [page for page in pages() if has_commands(page)]
    for page in named:
        sys.stdout.write(f"{'written' if rewrite(page) else 'as it was'}: {page.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
