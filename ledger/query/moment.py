"""``as-of:``: a date, a date and a time, or a git revision, as the last moment that counts.

What it does: turns the word into a condition on receipts, and says which corrections existed then. What it does not do: ask git
itself; whoever calls hands in a function that does. Rules kept: times are UTC unless they carry an offset, and a date alone means
its end; a revision is what git's tree held, whatever the clocks said.
"""

from collections.abc import Callable, Collection
from datetime import UTC, date, datetime, time

import duckdb
from attrs import frozen

from ledger.analysis.currency import CorrectionFact
from ledger.core.errors import LedgerError
from ledger.query.compile import Then
from ledger.query.index import corrections
from ledger.query.language import Word, wrong

Revision = Callable[[str], Collection[str]]
HINT = "write a date (2026-10-19), a time (2026-10-19T05:40:00-05:00) or a git revision (HEAD~3)"
EXISTED = "existed"


@frozen(kw_only=True)
class Moment:
    """A moment: the condition on receipts, and the corrections that existed then."""

    then: Then
    corrections: tuple[CorrectionFact, ...]


def moment(connection: duckdb.DuckDBPyConnection, text: str, word: Word, revision: Revision | None) -> Moment:
    """The moment that ``word`` of the question ``text`` names.

    Raises:
        QueryError: not a date, a time, or a revision that git knows.
    """
    when = parse_time(word.text)
    if when is not None:
        then = Then(condition="r.time <= ?::TIMESTAMP", values=(when,))
        return Moment(then=then, corrections=tuple(corrections(connection, when)))
    if revision is None:
        raise wrong(text, word, "not a date or a time", hint=HINT)
    try:
        digests = set(revision(word.text))
    except LedgerError as error:
        raise wrong(text, word, "not a date, a time or a revision", hint=HINT) from error
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {EXISTED} AS SELECT unnest(?::VARCHAR[]) AS digest", [sorted(digests)])
    then = Then(condition=f"r.digest IN (SELECT digest FROM {EXISTED})")
    return Moment(then=then, corrections=tuple(item for item in corrections(connection) if item.digest in digests))


def parse_time(text: str) -> str | None:
    """A date or time as a UTC timestamp, the last that counts; None when it is neither."""
    try:
        if len(text) == len("2026-10-19"):
            return datetime.combine(date.fromisoformat(text), time.max).isoformat()
        when = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC).replace(tzinfo=None).isoformat()
