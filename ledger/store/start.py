"""Starting a ledger in a git repository that is there.

What it does: writes ``ledger.toml``, the ``receipts/`` folder, and the lines of ``.gitignore`` and ``.gitattributes`` that a
ledger needs. What it does not do: commit them, or make a repository. Rules kept: what is there is kept, lines are only added;
doing it twice changes nothing.
"""

from pathlib import Path

from ledger.core.errors import NoLedgerError
from ledger.store import layout
from ledger.store.ledger import MARKER_TEXT, Ledger, git_root

IGNORED = f"{layout.STATE}/"
ATTRIBUTES = f"{layout.RECEIPTS}/** -text"


def start(folder: Path) -> tuple[Ledger, list[Path]]:
    """Make ``folder`` a ledger; returns it and the files that were written.

    Raises:
        NoLedgerError: the folder is in no git repository.
    """
    root = folder.resolve()
    if git_root(root) is None:
        raise NoLedgerError(
            "no git repository here: receipts are kept in git", hint=f"git init {folder}, then: ledger init {folder}"
        )
    written = [
        *_ensure_file(root / layout.MARKER, MARKER_TEXT),
        *_ensure_file(root / layout.RECEIPTS / ".gitkeep", ""),
        *_ensure_line(root / ".gitignore", IGNORED),
        *_ensure_line(root / ".gitattributes", ATTRIBUTES),
    ]
    return Ledger(root=root), written


def _ensure_file(path: Path, text: str) -> list[Path]:
    if path.exists():
        return []
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return [path]


def _ensure_line(path: Path, line: str) -> list[Path]:
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if line in text.splitlines():
        return []
    # A file whose last line has no newline must not have two lines glued together.
    gap = "" if not text or text.endswith("\n") else "\n"
    path.write_text(f"{text}{gap}{line}\n", encoding="utf-8")
    return [path]
