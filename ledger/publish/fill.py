"""A page with its bindings filled in.

What it does: puts what each binding should say between its comments, and writes the file whole or not at all. What it does not
do: touch a character outside of them. Rule kept: what cannot be answered stays as it is, so nothing is lost to a typing mistake.
"""

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from ledger.core.errors import UsageError
from ledger.publish.page import Page
from ledger.publish.values import Filled
from ledger.store.objects import read, refused

MAX_BYTES = 8_000_000


def filled(page: Page, answers: Iterable[Filled]) -> str:
    """The text of ``page`` with every answered binding filled in, each in the newlines of the page."""
    newline = "\r\n" if "\r\n" in page.text else "\n"
    pieces, at = [], 0
    for item in answers:
        if item.problem is None:
            pieces += [page.text[at : item.binding.start], item.text.replace("\n", newline)]
            at = item.binding.end
    return "".join([*pieces, page.text[at:]])


def read_text(path: Path) -> str:
    """The file as text, every byte of it kept.

    Raises:
        UsageError: not UTF-8, or not to be read.
    """
    try:
        return read(path, MAX_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 at byte {error.start}") from error


def write_text(path: Path, text: str) -> None:
    """Write the file whole, in place of the one that is there, with its permissions.

    Raises:
        StoreError: the disk or the system refuses; the old file is as it was.
    """
    real = path.resolve()
    made: Path | None = None
    try:
        with tempfile.NamedTemporaryFile(dir=real.parent, prefix=f".{real.name}.", delete=False) as file:
            made = Path(file.name)
            file.write(text.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        made.chmod(real.stat().st_mode & 0o777)
        made.replace(real)
    except OSError as error:
        if made is not None:
            made.unlink(missing_ok=True)
        raise refused(error, path) from error
