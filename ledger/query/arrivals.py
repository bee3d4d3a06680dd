"""What stands in a ledger's folders now, by names alone, and what of that the index has not seen.

What it does: stamps every session folder and every pack, and lists the receipts of some sessions, loose and packed. What it does
not do: read a receipt. Rules kept: a folder is listed only when its stamp is new, and of a pack nothing but the headers is read;
loose receipts are listed before packs, so that one which moves from its file into a pack meanwhile is not missed; no link is
followed.
"""

import os
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from attrs import frozen

from ledger.core.errors import StoreError
from ledger.store import layout, packs
from ledger.store.ledger import Ledger
from ledger.store.packs import Block

# A folder that was touched this recently may be touched again within the same tick of its clock, so it is listed again.
RACY_NS = 2 * 10**9

Stamps = dict[str, int]
"""Session folders (``2026/10/18T1200-round2-3f2a``) and packs (``2026/10/<hex>.jsonl.gz``), each with the stamp of its change."""


@frozen(kw_only=True)
class News:
    """What differs from what was seen before: entries that are new or changed, and entries that are gone."""

    changed: tuple[str, ...]
    gone: tuple[str, ...]

    def packs(self) -> set[str]:
        """The packs among them."""
        return {entry for entry in (*self.changed, *self.gone) if is_pack(entry)}

    def sessions(self) -> set[str]:
        """The session folders among them."""
        return {entry for entry in (*self.changed, *self.gone) if not is_pack(entry)}


@frozen(kw_only=True)
class Listed:
    """The receipts of one session by bare hex digest: those that are files, and the block of each that is packed alone."""

    folder: str
    loose: frozenset[str]
    packed: Mapping[str, Block]

    def names(self) -> set[str]:
        """Every receipt of the session."""
        return {*self.loose, *self.packed}


def scan(ledger: Ledger) -> Stamps:
    """Every session folder and pack, relative to the receipts, with the stamp of its last change; no file is opened."""
    found: Stamps = {}
    now = time.time_ns()
    for month in ledger.months():
        with os.scandir(month) as entries:
            for entry in entries:
                name = f"{month_of(month)}/{entry.name}"
                if layout.SESSION.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                    stamp = entry.stat(follow_symlinks=False).st_mtime_ns
                    found[name] = stamp if now - stamp > RACY_NS else 0
                elif is_pack(entry.name) and entry.is_file(follow_symlinks=False):
                    found[name] = entry.stat(follow_symlinks=False).st_mtime_ns
    return found


def compare(seen: Mapping[str, int], known: Mapping[str, int]) -> News:
    """What is in ``seen`` and not, or otherwise, in ``known``, and the other way round."""
    changed = tuple(entry for entry, stamp in seen.items() if stamp == 0 or known.get(entry) != stamp)
    return News(changed=changed, gone=tuple(entry for entry in known if entry not in seen))


def listed(ledger: Ledger, sessions: Iterable[str], months: Collection[str] = ()) -> Iterator[list[Listed]]:
    """The receipts of ``sessions``, and of all that packs of ``months`` (``2026/10``) hold, month after month."""
    by_month: dict[str, set[str]] = defaultdict(set)
    for folder in sessions:
        by_month[folder[:7]].add(folder)
    for month in sorted({*by_month, *months}):
        loose = {folder: _loose(ledger.receipts / folder) for folder in by_month[month]}
        packed = packs.packed_in(ledger.receipts / month)
        wanted = set(loose) | ({f"{month}/{session}" for session in packed} if month in months else set())
        yield [_listed(folder, loose, packed) for folder in sorted(wanted)]


def broken(ledger: Ledger, entries: Iterable[str]) -> list[tuple[str, str]]:
    """The packs of these whose headers cannot be read, each with the reason."""
    found = []
    for entry in entries:
        try:
            packs.blocks(ledger.receipts / entry)
        except StoreError as error:
            found.append((entry, error.problems[0].what))
    return found


def is_pack(entry: str) -> bool:
    """Whether an entry is a pack, and not a session folder."""
    return entry.endswith(layout.PACK_SUFFIX) and layout.pack_of(entry.rpartition("/")[2]) is not None


def month_of(month: Path) -> str:
    """``2026/10`` of the folder of a month."""
    return f"{month.parent.name}/{month.name}"


def _listed(folder: str, loose: Mapping[str, frozenset[str]], packed: Mapping[str, list[Block]]) -> Listed:
    files = loose.get(folder, frozenset())
    blocks = packed.get(folder.rpartition("/")[2], ())
    inside = {name: block for block in blocks for name in block.names() if name not in files}
    return Listed(folder=folder, loose=files, packed=inside)


def _loose(folder: Path) -> frozenset[str]:
    try:
        names = os.listdir(folder)  # noqa: PTH208 - many names, no Path for each
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()
    return frozenset(name for item in names if (name := layout.hex_of(item)) is not None)
