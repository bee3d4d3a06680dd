"""What ``ledger.toml`` says: the layout of the ledger, and where large blobs go.

What it does: reads the file strictly. What it does not do: use what it says (``large``). Rules kept: every mistake is told at
once with its place; a secret in an address is refused, since the file is in git; a file without ``[blobs]`` keeps every blob in
git.
"""

import re
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from ledger.core import units
from ledger.core.errors import LedgerError, NoLedgerError, Place, Problem, StoreError, UsageError, did_you_mean, shorten
from ledger.spec.locate import locate, nearest_spot
from ledger.store import layout, objects

MAX_MARKER = 2**20
LAYOUT = 1
ABOVE = 2**20
_TOP = ("ledger", "blobs")
_BLOBS = ("store", "above")
_WITH_SECRET = re.compile(r"://[^/]*@|[?&](?:[A-Za-z-]*(?:key|token|secret|sig|signature|password))=", re.IGNORECASE)


@frozen(kw_only=True)
class BlobSettings:
    """Where blobs of more than ``above`` bytes go: a folder (below the ledger's own when relative) or the URL of a bucket."""

    store: str
    above: int = ABOVE


@frozen(kw_only=True)
class Settings:
    """The settings of a ledger."""

    blobs: BlobSettings | None = None


def settings_of(root: Path) -> Settings:
    """The settings of the ledger in this folder.

    Raises:
        NoLedgerError: a layout of another version. UsageError: with every mistake. StoreError: it cannot be read.
    """
    path = root / layout.MARKER
    try:
        about = path.lstat()
    except OSError as error:
        raise objects.refused(error, path) from error
    return _settings(path, about.st_mtime_ns, about.st_size, about.st_ino)


@lru_cache(maxsize=64)
def _settings(path: Path, _changed: int, _size: int, _inode: int) -> Settings:
    try:
        table = tomllib.loads(objects.read(path, MAX_MARKER).decode())
    except ValueError as error:
        raise StoreError(Problem(what=f"not TOML: {error}", place=Place(file=str(path)))) from error
    check_layout(table, path)
    problems: list[Problem] = []
    _unknown(table, "", _TOP, path, problems)
    blobs = _blobs(table["blobs"], path, problems) if "blobs" in table else None
    if problems:
        raise UsageError(_located(problem, objects.read(path, MAX_MARKER).decode()) for problem in problems)
    return Settings(blobs=blobs)


def check_layout(table: Mapping[str, Any], path: Path) -> None:
    """Refuse a ledger whose layout this version does not know, before anything is written into it."""
    if table.get("ledger") != LAYOUT:
        what = f"a ledger of another layout; this version knows {LAYOUT}"
        hint = "a newer version of ledger reads it"
        place = Place(file=str(path), path="ledger")
        raise NoLedgerError(Problem(what=what, place=place, value=shorten(table.get("ledger")), hint=hint))


def _blobs(table: Any, path: Path, problems: list[Problem]) -> BlobSettings | None:
    if not isinstance(table, Mapping):
        problems.append(_problem(path, "blobs", "expected a table", table, "[blobs]"))
        return None
    _unknown(table, "blobs.", _BLOBS, path, problems)
    store, above = table.get("store"), _above(table.get("above", ABOVE), path, problems)
    if not isinstance(store, str) or not store.strip() or "\0" in store:
        problems.append(_problem(path, "blobs.store", "expected a folder or an address", store, 'store = "s3://bucket/prefix"'))
        return None
    if _WITH_SECRET.search(store):
        hint = "the file is in git: credentials belong into the environment"
        problems.append(_problem(path, "blobs.store", "an address with credentials in it", None, hint))
        return None
    return None if above is None else BlobSettings(store=store, above=above)


def _above(value: Any, path: Path, problems: list[Problem]) -> int | None:
    if isinstance(value, str | int) and not isinstance(value, bool):
        try:
            return max(0, int(units.parse(value, dimension="bytes", default_unit="B").number))
        except LedgerError as error:
            problems += (_problem(path, "blobs.above", item.what, item.value, item.hint) for item in error.problems)
            return None
    problems.append(_problem(path, "blobs.above", "expected a size", value, 'above = "1 MiB"'))
    return None


def _unknown(table: Mapping[str, Any], at: str, known: tuple[str, ...], path: Path, problems: list[Problem]) -> None:
    for key in table:
        if key not in known:
            problems.append(_problem(path, f"{at}{key}", "unknown key", key, did_you_mean(key, known)))


def _located(problem: Problem, text: str) -> Problem:
    """The problem with the line of its key."""
    if problem.place is None:
        return problem
    spot = nearest_spot(locate(text), tuple(problem.place.path.split(".")))
    return evolve(problem, place=evolve(problem.place, line=spot.line)) if spot else problem


def _problem(path: Path, key: str, what: str, value: Any, hint: str | None) -> Problem:
    return Problem(what=what, place=Place(file=str(path), path=key), value=None if value is None else shorten(value), hint=hint)
