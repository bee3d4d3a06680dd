"""Secrets in a file that is about to be kept for ever.

What it does: finds values that are named or shaped like secrets in another tool's result file, and takes them out of its bytes
when that is asked. What it does not do: find a secret of no known name or shape. Rules kept: a file with a secret is refused
unless it is said that it may be changed; in a ZIP nothing is changed, so such a file is refused always.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ledger.core.errors import Problem, UsageError
from ledger.instruments.extract.document import Document
from ledger.run.secrets import NAMED, SHAPED, Concealer

SHOWN = 5


def without_secrets(document: Document, data: bytes, concealer: Concealer, *, allowed: bool) -> bytes:
    """The bytes to keep: ``data`` itself, or without its secrets where it has some and that is ``allowed``.

    Raises:
        UsageError: it has secrets, and may not or cannot be changed.
    """
    found = dict(_secrets(document))
    if not found:
        return data
    if not allowed or document.members:
        hint = "take them out of the archive" if document.members else "take them out, or --conceal keeps the file without them"
        where = ", ".join(sorted(set(found.values()))[:SHOWN])
        raise UsageError(
            Problem(what=f"the file holds {len(found)} values that look like secrets, at {where}", value=document.name, hint=hint)
        )
    for secret in sorted(found, key=len, reverse=True):
        data = data.replace(secret.encode(), concealer.value(secret).encode())
    return data


def _secrets(document: Document) -> Iterator[tuple[str, str]]:
    """Each secret of the file with where it stands."""
    for value in (*document.values, *document.members.values()):
        yield from _within(value, "$")
    for row in document.rows:
        yield from _within(row, "a column")
    yield from ((match.group(), "the text") for match in SHAPED.finditer(document.text))


def _within(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield from ((match.group(), path) for match in SHAPED.finditer(value))
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(item, str) and item and NAMED.search(str(key)):
                yield item, f"{path}.{key}"
            else:
                yield from _within(item, f"{path}.{key}")
    elif isinstance(value, list):
        for item in value:
            yield from _within(item, f"{path}[]")
