"""Receipts by name: a digest's first digits, or the words that people use.

What it does: finds the one receipt that a name means: ``3f2a…``, ``B1a`` (its latest boot), ``B1a/decode`` (its latest trial),
``round2:B1a/decode``, each with ``~1`` for the one before. What it does not do: guess between two. Rules kept: latest is by
session and chain, never by clock; an unknown name is an error that offers the nearest.
"""

import re

import duckdb

from ledger.core.digest import PREFIX, short
from ledger.core.errors import NotFoundError, Place, Problem, did_you_mean

_NAME = re.compile(r"(?:(?P<spec>[^:/~]+):)?(?P<arm>[^:/~]+)(?:/(?P<measure>[^~]+))?(?:~(?P<back>[0-9]{1,6}))?")
_HEX = re.compile(r"(?:sha256:)?(?P<hex>[0-9a-f]{4,64})")
LISTED = 6


def resolve(connection: duckdb.DuckDBPyConnection, name: str) -> str:
    """The digest of the receipt that ``name`` means.

    Raises:
        NotFoundError: nothing is called so, or several receipts are; the nearest names, or the several, are told.
    """
    match = _HEX.fullmatch(name.strip().lower())
    if match is not None and (found := _by_digest(connection, match["hex"], name)):
        return found
    words = _NAME.fullmatch(name.strip())
    if words is None:
        raise NotFoundError(
            Problem(what="not a name of a receipt", value=name, hint="a digest's first digits, ARM or ARM/MEASURE")
        )
    return _by_words(connection, name, words)


def _by_digest(connection: duckdb.DuckDBPyConnection, digits: str, name: str) -> str | None:
    rows = connection.execute(
        "SELECT digest, kind, session FROM receipt WHERE starts_with(digest, ?) ORDER BY session, n LIMIT ?",
        [PREFIX + digits, LISTED + 1],
    ).fetchall()
    if len(rows) > 1:
        listed = ", ".join(f"{short(digest, 16)} ({kind}, {session})" for digest, kind, session in rows[:LISTED])
        raise NotFoundError(Problem(what="several receipts begin so", value=name, hint=f"give more digits: {listed}"))
    if not rows and (bad := _damaged(connection, digits)):
        path, reason = bad
        raise NotFoundError(
            Problem(what=f"this file is no receipt: {reason}", place=Place(file=path), value=name, hint="ledger verify says more")
        )
    return str(rows[0][0]) if rows else None


def _damaged(connection: duckdb.DuckDBPyConnection, digits: str) -> tuple[str, str] | None:
    """A file that has the name of such a receipt and is none, below ``receipts/``, and why."""
    row = connection.execute(
        "SELECT path, reason FROM bad WHERE starts_with(split_part(path, '/', -1), ?) LIMIT 1", [digits]
    ).fetchone()
    return (str(row[0]), str(row[1])) if row else None


def _by_words(connection: duckdb.DuckDBPyConnection, name: str, words: re.Match[str]) -> str:
    kind, measure = ("trial", words["measure"]) if words["measure"] else ("boot", None)
    rows = connection.execute(
        "SELECT r.digest FROM receipt r LEFT JOIN trial t USING (id) WHERE r.kind = ? AND r.arm = ? "
        "AND (? IS NULL OR r.spec = ?) AND (? IS NULL OR t.measure = ?) ORDER BY r.place DESC, r.n DESC LIMIT 1 OFFSET ?",
        [kind, words["arm"], words["spec"], words["spec"], measure, measure, int(words["back"] or 0)],
    ).fetchall()
    if rows:
        return str(rows[0][0])
    raise NotFoundError(Problem(what="no receipt of this name", value=name, hint=did_you_mean(name, _known(connection))))


def _known(connection: duckdb.DuckDBPyConnection) -> list[str]:
    rows = connection.execute(
        "SELECT DISTINCT r.arm, t.measure FROM receipt r LEFT JOIN trial t USING (id) "
        "WHERE r.kind IN ('boot', 'trial') LIMIT 5000"
    ).fetchall()
    return [f"{arm}/{measure}" if measure else str(arm) for arm, measure in rows]
