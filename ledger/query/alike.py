"""Which boots have the same configuration because a correction says so.

What it does: says for two groups of boots whether corrections in force make one configuration of all of them, and why. What it
does not do: judge a comparison (``analysis``). Rule kept: boots whose fingerprints are equal anyway need no correction.
"""

from collections.abc import Sequence

from ledger.analysis.currency import equivalences
from ledger.query.index import corrections
from ledger.query.ingest import Connection


def why_alike(connection: Connection, left: Sequence[str], right: Sequence[str]) -> str | None:
    """The reasons of the corrections that make the boots of both sides one configuration; None when they do not, or need not."""
    rows = connection.execute(
        "SELECT DISTINCT b.fingerprint, coalesce(e.taken_as, b.fingerprint) FROM boot b "
        "LEFT JOIN same_config e ON e.fingerprint = b.fingerprint WHERE b.digest IN (SELECT unnest(?::VARCHAR[]))",
        [[*left, *right]],
    ).fetchall()
    if len({row[0] for row in rows}) < 2 or len({row[1] for row in rows}) > 1:
        return None
    there = connection.execute(
        "SELECT r.digest FROM receipt r LEFT JOIN trial t USING (id) JOIN boot b ON b.digest = coalesce(t.boot, r.digest) "
        "JOIN same_config e ON e.fingerprint = b.fingerprint WHERE e.taken_as = ?",
        [rows[0][1]],
    ).fetchall()
    members = {row[0] for row in there}
    reasons = [item.reason for item in equivalences(corrections(connection)) if members >= {item.left, item.right}]
    return "; ".join(sorted(set(reasons)))
