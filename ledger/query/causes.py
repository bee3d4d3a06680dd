"""Why the answer to a question is not what it was: the corrections that strike figures which it is about.

What it does: finds the figures of a question, struck ones too, and the corrections in force that strike them or their boots. What
it does not do: say what the answer was (``replay`` does). Rule kept: both sides of a ratio count.
"""

from attrs import frozen

from ledger.query import compile as sql
from ledger.query.ingest import Connection
from ledger.query.language import Ask

_CAUSES = """
SELECT DISTINCT s.by_digest, s.action, coalesce(s.reason, ''), CAST(r.time AS DATE)::VARCHAR, r.place, r.n
FROM (SELECT unnest(?::VARCHAR[]) AS digest) f
JOIN receipt fr ON fr.digest = f.digest LEFT JOIN trial t ON t.id = fr.id
JOIN struck s ON s.digest = f.digest OR s.digest = t.boot
JOIN receipt r ON r.digest = s.by_digest ORDER BY r.place, r.n
"""


@frozen(kw_only=True)
class Cause:
    """A correction in force: its digest, what it does, why, and the day on which it was made."""

    correction: str
    action: str
    reason: str
    date: str

    def __str__(self) -> str:
        return f"{self.action}: {self.reason}"


def causes(connection: Connection, ask: Ask) -> tuple[Cause, ...]:
    """The corrections that strike figures which ``ask`` is about, in the order in which they were made."""
    digests: list[str] = []
    for side in (ask.side, *((ask.over,) if ask.over else ())):
        statement = sql.raw(ask, side)
        digests += [str(row[0]) for row in connection.execute(statement.sql, list(statement.values)).fetchall()]
    rows = connection.execute(_CAUSES, [digests]).fetchall() if digests else []
    return tuple(Cause(correction=by, action=action, reason=reason, date=date) for by, action, reason, date, *_ in rows)
