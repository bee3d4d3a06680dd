"""The items of a trial: for each task, whether it was solved, as one blob, and back.

What it does: writes and reads one JSON line for each item: ``id``, ``pass``, and the ``bucket`` that says how it ended. What it
does not do: score a reply (an instrument does). Rules kept: an id stands once; a blob that is not items is an error that says
why; an item whose request failed is there and not solved, so that no side gets rid of a hard one.
"""

from collections.abc import Iterable

import orjson
from attrs import frozen

from ledger.core.errors import LedgerError, shorten

MEDIA_TYPE = "application/vnd.ledger.items.v1+jsonl"
MAX_BYTES = 64 * 2**20


class ItemsError(LedgerError):
    """Bytes that are not items."""


@frozen(kw_only=True)
class Item:
    """One task of a trial: ``solved`` or not, and the ``bucket`` (``right``, ``wrong``, ``truncated``, ``error``, …)."""

    id: str
    solved: bool
    bucket: str = ""


def encode(items: Iterable[Item]) -> bytes:
    """The blob of ``items``, in their order."""
    lines = ({"id": item.id, "pass": item.solved, **({"bucket": item.bucket} if item.bucket else {})} for item in items)
    return b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines)


def decode(data: bytes) -> tuple[Item, ...]:
    """The items in a blob.

    Raises:
        ItemsError: too large, not JSON Lines, a line of another shape, or an id that stands twice.
    """
    if len(data) > MAX_BYTES:
        raise ItemsError(f"items of more than {MAX_BYTES} bytes are not read")
    found = {}
    for number, line in enumerate(data.splitlines(), start=1):
        item = _item(line, number)
        if item.id in found:
            raise ItemsError(f"line {number} of the items: a second {shorten(item.id)}")
        found[item.id] = item
    return tuple(found.values())


def _item(line: bytes, number: int) -> Item:
    try:
        match orjson.loads(line):
            case {"id": str(name), "pass": bool(solved), **rest}:
                return Item(id=name, solved=solved, bucket=str(rest.get("bucket", "")))
    except orjson.JSONDecodeError as error:
        raise ItemsError(f"line {number} of the items is not JSON: {error}") from error
    raise ItemsError(f"line {number} of the items has no text 'id' and true or false 'pass'")
