"""A page with its bindings filled in.

What it does: puts what each binding should say between its comments. What it does not do: touch a character outside of them, or
write a file. Rule kept: what cannot be answered stays as it is, so nothing is lost to a typing mistake.
"""

from collections.abc import Iterable
from pathlib import Path

from ledger.core.errors import UsageError
from ledger.publish.page import Page
from ledger.publish.values import Filled
from ledger.store.objects import read

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
