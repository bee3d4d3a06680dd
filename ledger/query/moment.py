"""``as-of:``: a date, or a date and a time, as the last moment that counts.

What it does: turns the word into a timestamp; a date alone means its end. What it does not do: look into git. Rule kept:
times are UTC unless they carry an offset.
"""

from datetime import UTC, date, datetime, time

from ledger.query.language import Ask, wrong

HINT = "write a date (2026-10-19) or a time (2026-10-19T05:40:00-05:00)"


def moment(ask: Ask) -> str:
    """The last moment that counts, as a UTC timestamp.

    Raises:
        QueryError: not a date or a time.
    """
    word = ask.as_of
    assert word is not None
    try:
        if len(word.text) == len("2026-10-19"):
            return datetime.combine(date.fromisoformat(word.text), time.max).isoformat()
        when = datetime.fromisoformat(word.text)
    except ValueError as error:
        raise wrong(ask.text, word, "not a date or a time", hint=HINT) from error
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC).replace(tzinfo=None).isoformat()
