"""What the rest of the ledger says of one receipt.

What it does: tells the corrections in force that strike a receipt or, for a trial, its boot, and whether the boot's configuration
was seen to be what was resolved. What it does not do: read the receipt itself. Rule kept: what strikes a boot strikes its trials.
"""

import duckdb
from attrs import frozen


@frozen(kw_only=True)
class Strike:
    """A correction in force: its digest, what it does and why, and the digest of what it strikes."""

    correction: str
    action: str
    reason: str
    of: str


@frozen(kw_only=True)
class Standing:
    """What strikes a receipt, the latest first, and the agreement of a trial's boot; None when the ledger has no such boot."""

    strikes: tuple[Strike, ...]
    agreement: str | None


def standing(connection: duckdb.DuckDBPyConnection, digest: str) -> Standing:
    """The standing of the receipt ``digest``."""
    row = connection.execute(
        "SELECT t.boot, b.agreement FROM trial t JOIN receipt r USING (id) LEFT JOIN boot b ON b.digest = t.boot "
        "WHERE r.digest = ?",
        [digest],
    ).fetchone()
    boot, agreement = row or (None, None)
    rows = connection.execute(
        "SELECT s.by_digest, s.action, s.reason, s.digest FROM struck s JOIN receipt r ON r.digest = s.by_digest "
        "WHERE s.digest IN (?, ?) ORDER BY r.place DESC, r.n DESC",
        [digest, boot],
    ).fetchall()
    strikes = tuple(Strike(correction=by, action=action, reason=reason or "", of=of) for by, action, reason, of in rows)
    return Standing(strikes=strikes, agreement=agreement)
