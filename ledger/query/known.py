"""The words of a question against what the ledger knows.

What it does: raises for the first metric, name or value of a filter that the ledger has never heard of, and offers the nearest.
What it does not do: answer. Rules kept: a word is looked up even when others of the question have answers, since a figure that is
silently missing misleads as much as an empty table; a wildcard may match nothing.
"""

from collections.abc import Collection, Iterator

from ledger.core.errors import did_you_mean
from ledger.query.compile import MARKS, spelled
from ledger.query.ingest import Connection
from ledger.query.language import Ask, Range, Word, wrong

# filter -> all its values; boots are named by their first digits and dates are of the calendar
_VALUES = {
    "arm": "SELECT DISTINCT arm FROM receipt",
    "lane": "SELECT DISTINCT lane FROM receipt",
    "spec": "SELECT DISTINCT spec FROM receipt",
    "role": "SELECT DISTINCT role FROM receipt",
    "evidence": "SELECT DISTINCT evidence FROM receipt",
    "session": "SELECT DISTINCT session FROM receipt",
    "measure": "SELECT DISTINCT measure FROM trial",
    "date": "SELECT DISTINCT CAST(time AS DATE)::VARCHAR FROM receipt",
}
_NAMES = "SELECT DISTINCT lane FROM receipt UNION SELECT DISTINCT arm FROM receipt"
_MARKS = "SELECT DISTINCT unnest(marks) FROM figure"
_METRICS = "SELECT DISTINCT metric FROM figure"


def check_words(connection: Connection, ask: Ask, answered: Collection[str]) -> None:
    """Look up every word of ``ask``; the metrics of ``answered`` are known.

    Raises:
        QueryError: a word that the ledger does not know.
    """
    for item in _metrics(ask):
        _check_metric(connection, ask, item, answered)
    _check(connection, ask, [*ask.side.of, *(ask.over.of if ask.over else ())], _NAMES, "no lane or arm of this name")
    for key, statement in _VALUES.items():
        _check(connection, ask, ask.filters.get(key, ()), statement, f"no {key} of this name")
    for word in ask.filters.get("boot", ()):
        _check_boot(connection, ask, word)
    strange = [word for word in ask.filters.get("not", ()) if spelled(word.text) not in MARKS]
    _check(connection, ask, strange, _MARKS, "no mark of this name", MARKS)


def _metrics(ask: Ask) -> Iterator[Word | Range]:
    yield from ask.side.metrics
    yield from ask.over.metrics if ask.over else ()


def _check_metric(connection: Connection, ask: Ask, item: Word | Range, answered: Collection[str]) -> None:
    if isinstance(item, Range):
        if not any(name.startswith(item.head) for name in answered):
            known = _known(connection, _METRICS)
            if not any(name.startswith(item.head) for name in known):
                raise wrong(ask.text, item.word, "no figure of this family", hint=did_you_mean(item.word.text, known))
    elif item.text not in answered and not _is_pattern(item.text):
        known = _known(connection, _METRICS)
        if item.text not in known:
            raise wrong(ask.text, item, "no figure of this metric", hint=did_you_mean(item.text, known))


def _check(
    connection: Connection, ask: Ask, words: Collection[Word], statement: str, what: str, more: Collection[str] = ()
) -> None:
    exact = [word for word in words if not _is_pattern(word.text)]
    known = _known(connection, statement) | set(more) if exact else set()
    for word in exact:
        if word.text not in known:
            raise wrong(ask.text, word, what, hint=did_you_mean(word.text, known))


def _check_boot(connection: Connection, ask: Ask, word: Word) -> None:
    found = connection.execute(
        "SELECT 1 FROM receipt WHERE kind = 'boot' AND digest GLOB ? LIMIT 1", [f"sha256:{word.text}*"]
    ).fetchone()
    if found is None:
        raise wrong(ask.text, word, "no boot begins with these digits", hint="ledger log --kind boot lists them")


def _is_pattern(text: str) -> bool:
    return "*" in text or "?" in text


def _known(connection: Connection, statement: str) -> set[str]:
    return {str(row[0]) for row in connection.execute(statement).fetchall() if row[0]}
