"""Where things stand in a ledger: the names of folders and files, and nothing else.

What it does: makes and parses names. What it does not do: touch a disk. Rules kept: a receipt is
``receipts/<YYYY>/<MM>/<session>/<hex>.json`` and a blob is ``blobs/<hex>`` below the same session, so that what was made
together stays together; a pack of receipts is ``<hex>.jsonl.gz`` beside the sessions of its month; a folder is no part of a
receipt's identity.
"""

import re
from datetime import UTC, datetime

RECEIPTS = "receipts"
BLOBS = "blobs"
SUFFIX = ".json"
PACK_SUFFIX = ".jsonl.gz"
STATE = ".ledger"
MARKER = "ledger.toml"
# Below the state folder: large blobs that the store is to get, and those that it has.
WAITING, KEPT = "waiting", "kept"

YEAR = re.compile(r"[0-9]{4}")
MONTH = re.compile(r"(?:0[1-9]|1[0-2])")
SESSION = re.compile(
    r"(?P<day>0[1-9]|[12][0-9]|3[01])T(?P<time>[0-2][0-9][0-5][0-9])-(?P<name>[A-Za-z0-9][A-Za-z0-9._-]{0,63})-(?P<token>[0-9a-f]{4,16})"
)
HEX = re.compile(r"[0-9a-f]{64}")


def session_name(spec: str, when: datetime, token: str) -> str:
    """``01T0612-round2-3f2a``: the day and time in UTC, the spec, and a token that keeps two sessions of a minute apart.

    Raises:
        ValueError: the spec or the token makes no name that would be found again.
    """
    name = f"{when.astimezone(UTC):%dT%H%M}-{spec}-{token}"
    if SESSION.fullmatch(name) is None:
        raise ValueError(f"not the name of a session: {name!r}")
    return name


def month_folder(when: datetime) -> str:
    """``receipts/2026/12``: the folder of a session that begins at ``when``."""
    return f"{RECEIPTS}/{when.astimezone(UTC):%Y/%m}"


def receipt_name(hex_digest: str) -> str:
    """The file name of a receipt."""
    return hex_digest + SUFFIX


def hex_of(name: str) -> str | None:
    """The digest in a receipt's file name, or None when it is not one."""
    stem = name.removesuffix(SUFFIX)
    return stem if name.endswith(SUFFIX) and HEX.fullmatch(stem) else None


def pack_name(hex_digest: str) -> str:
    """The file name of a pack."""
    return hex_digest + PACK_SUFFIX


def pack_of(name: str) -> str | None:
    """The digest in a pack's file name, or None when it is not one."""
    stem = name.removesuffix(PACK_SUFFIX)
    return stem if name.endswith(PACK_SUFFIX) and HEX.fullmatch(stem) else None


def digest_in(name: str) -> str | None:
    """The digest in the file name of a receipt, a pack or a blob, or None when it is none of them."""
    return hex_of(name) or pack_of(name) or (name if HEX.fullmatch(name) else None)


def is_object(relative: str) -> bool:
    """Whether a path below ``receipts/`` is where a receipt, a blob or a pack stands: ``2026/12/<session>/[blobs/]<name>``."""
    year, _, rest = relative.partition("/")
    month, _, rest = rest.partition("/")
    session, _, name = rest.partition("/")
    if not (YEAR.fullmatch(year) and MONTH.fullmatch(month)):
        return False
    if not name:
        return pack_of(session) is not None
    if not SESSION.fullmatch(session):
        return False
    return hex_of(name) is not None or (name.startswith(f"{BLOBS}/") and HEX.fullmatch(name[len(BLOBS) + 1 :]) is not None)
