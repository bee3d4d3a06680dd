"""A question, answered: rows with their spread, evidence and marks, and what was left out.

What it does: runs an :class:`Ask` on the index and gives rows as values. What it does not do: print them. Rules kept: every row
carries n, spread, evidence and marks, and nothing turns a mark off; struck figures are left out and counted, or shown as rows
of their own; a name that the ledger does not know is an error that offers the nearest, never an empty table.
"""

from collections.abc import Mapping, Sequence

from attrs import evolve, field, frozen

from ledger.analysis.compare import Comparability, compare
from ledger.analysis.currency import standings
from ledger.core import metrics
from ledger.core.words import Better, Evidence
from ledger.query import compile as sql
from ledger.query.alike import why_alike
from ledger.query.compile import NOW, Tables, Then
from ledger.query.factors import factors_of
from ledger.query.index import same_configs
from ledger.query.ingest import Connection
from ledger.query.known import check_words
from ledger.query.language import Ask, Side, Word
from ledger.query.moment import Moment, Revision, moment

STRUCK_THEN = "struck_then"
SAME_THEN = "same_config_then"
# How many metrics are asked for at once without a look at how many figures they have, and how many figures are pooled at once.
FEW = 6
LISTED = 6
PORTION = 400_000


@frozen(kw_only=True)
class Row:
    """A cell: its dimensions, the median over boots with low, high and n, and what must be known with it.

    ``value`` is None where a publication gives a range alone; ``n_boots`` is 0 there, and where all that is known is a reported
    claim. ``struck`` names the correction's action when the row holds figures that no longer count.
    """

    dims: Mapping[str, str]
    metric: str
    value: float | None
    low: float
    high: float
    n_boots: int
    unit: str
    better: Better
    evidence: str
    spec: str
    marks: tuple[str, ...] = ()
    struck: str | None = None


@frozen(kw_only=True)
class Missing:
    """A figure that was asked for and is absent, and why."""

    dims: Mapping[str, str]
    metric: str
    reason: str
    trials: int


@frozen(kw_only=True)
class Answer:
    """Rows in reading order, figures that are absent, how many struck rows were left out, and the SQL that was run."""

    ask: Ask
    dims: tuple[str, ...]
    rows: tuple[Row, ...]
    missing: tuple[Missing, ...] = ()
    left_out: int = 0
    unreadable: int = 0
    sql: str = ""
    values: tuple[object, ...] = field(factory=tuple)


def answer(
    connection: Connection,
    ask: Ask,
    *,
    show_struck: bool = False,
    tables: Tables = NOW,
    revision: Revision | None = None,
) -> Answer:
    """The answer to ``ask``.

    ``tables`` says what does not count, where that is not what the corrections say now; ``revision`` gives the digests of the
    receipts that a git revision holds.

    Raises:
        QueryError: a metric, arm, lane or value of a filter that the ledger does not know; the nearest is offered.
    """
    then = None
    if ask.as_of is not None:
        at = moment(connection, ask.text, ask.as_of, revision)
        then, tables = at.then, _tables_at(connection, at)
    found = _ratio(connection, ask, tables, then) if ask.over else _plain(connection, ask, ask.side, tables, then)
    if not found.rows and (said := reported(connection, ask, tables, then)):
        found = evolve(found, rows=said)
    else:
        check_words(connection, ask, {row.metric for row in found.rows} | {item.metric for item in found.missing})
    kept = tuple(row for row in found.rows if show_struck or row.struck is None)
    (unreadable,) = connection.execute("SELECT count(DISTINCT path) FROM bad").fetchone() or (0,)
    return evolve(found, rows=kept, left_out=len(found.rows) - len(kept), unreadable=unreadable)


def reported(connection: Connection, ask: Ask, tables: Tables, then: Then | None) -> tuple[Row, ...]:
    """What publications say of a question that no figure of the ledger answers: their claims in its very words."""
    statement = sql.reported(ask, tables=tables, then=then)
    return tuple(
        Row(
            dims={},
            metric=str(record["expression"]),
            value=_number(record["value"]),
            low=_number(record["value"]),
            high=_number(record["value"]),
            n_boots=0,
            unit=str(record["unit"]),
            better=Better.NEITHER,
            evidence=str(record["evidence"]),
            spec="",
            marks=(f"a claim: {record['name']}", *((f"{record['struck_by']}d",) if record["struck_by"] else ())),
            struck=str(record["struck_by"]) if record["struck_by"] else None,
        )
        for record in _records(connection, statement)
    )


def in_words(rows: Sequence[Row]) -> str:
    """The first few rows, each with what tells it from the others."""
    return "; ".join(" ".join([*row.dims.values(), row.metric, row.evidence]) for row in rows[:LISTED])


def inputs_of(connection: Connection, ask: Ask) -> tuple[str, ...]:
    """The digests of the receipts that the answer to ``ask`` is pooled from, both sides of a ratio."""
    found: set[str] = set()
    for part in (ask.side, *((ask.over,) if ask.over else ())):
        statement = sql.inputs(ask, part)
        found |= {str(row[0]) for row in connection.execute(statement.sql, list(statement.values)).fetchall()}
    return tuple(sorted(found))


def _plain(connection: Connection, ask: Ask, side: Side, tables: Tables, then: Then | None) -> Answer:
    names = sql.dimensions(ask)
    records = [
        record
        for part in _portions(connection, ask, side, then)
        for record in _records(connection, sql.pooled(ask, part, tables=tables, then=then))
    ]
    valueless = _records(connection, sql.valueless(ask, side, tables=tables, then=then))
    # A range has no count of boots that could be asked for.
    records += [record for record in valueless if not record["is_absent"] and not ask.counts]
    rows = [_row(names, record) for record in records]
    several = len({row.spec for row in rows}) > 1 or any(word.text == "spec" for word in ask.by)
    shown = ["spec", *names] if several else names
    rows = [evolve(row, dims={"spec": row.spec, **row.dims}) for row in rows] if several else rows
    missing = [_missing(names, record) for record in valueless if record["is_absent"]]
    whole = sql.pooled(ask, side, tables=tables, then=then)
    return Answer(
        ask=ask,
        dims=tuple(shown),
        rows=tuple(sorted(rows, key=_reading_order)),
        missing=tuple(missing),
        sql=whole.sql,
        values=whole.values,
    )


def _portions(connection: Connection, ask: Ask, side: Side, then: Then | None) -> list[Side]:
    """The side in parts that memory can hold: medians of boots keep every figure of their metrics until they are done."""
    if all(isinstance(item, Word) and not _is_pattern(item.text) for item in side.metrics) and len(side.metrics) <= FEW:
        return [side]
    statement = sql.sizes(ask, side, then=then)
    portions: list[list[Word]] = []
    room = 0
    for name, size in connection.execute(statement.sql, list(statement.values)).fetchall():
        if not portions or size > room:
            portions.append([])
            room = PORTION
        portions[-1].append(Word(text=str(name), at=0))
        room -= size
    return [evolve(side, metrics=tuple(part)) for part in portions]


def _reading_order(row: Row) -> tuple[object, ...]:
    """By metric and dimensions; then what counts before what is struck, and the cold before the cached."""
    words = (metrics.sort_key(text) for text in row.dims.values())
    return (metrics.sort_key(row.metric), *words, row.evidence, row.struck or "", "hit" in row.marks)


def _is_pattern(text: str) -> bool:
    return "*" in text or "?" in text


def _ratio(connection: Connection, ask: Ask, tables: Tables, then: Then | None) -> Answer:
    """Numerator over denominator, cell by cell of equal dimensions; the evidence of a mixed one names both."""
    assert ask.over is not None
    above = _plain(connection, ask, ask.side, tables, then)
    below = _plain(connection, ask, ask.over, tables, then)
    tops = [row for row in above.rows if row.struck is None and row.value is not None]
    bottoms = [row for row in below.rows if row.struck is None and row.value]
    pairs = [(top, bottom) for top in tops for bottom in bottoms if _fits(top, bottom, ask)]
    if len({row.spec for row in tops}) > 1 or len({row.spec for row in bottoms}) > 1:
        pairs = [(top, bottom) for top, bottom in pairs if top.spec == bottom.spec]
    specs = {(top.spec, bottom.spec) for top, bottom in pairs}
    verdicts = {spec: comparability(connection, ask, *spec) for spec in specs}
    rows = [_divided(top, bottom, verdicts[top.spec, bottom.spec]) for top, bottom in pairs]
    return evolve(above, rows=tuple(rows), missing=(*above.missing, *below.missing), sql=f"{above.sql}\n-- over\n{below.sql}")


def comparability(connection: Connection, ask: Ask, spec: str, over: str) -> str | None:
    """What a ratio of figures of two specs is worth, as a mark: None where it is clean, else the verdict and the factors."""
    assert ask.over is not None
    above, below = _boots(connection, ask, ask.side, spec), _boots(connection, ask, ask.over, over)
    alike = why_alike(connection, above, below)
    found = compare(factors_of(connection, above), factors_of(connection, below), equivalent=alike)
    return None if found.verdict in (Comparability.SAME, Comparability.CLEAN) else f"{found.verdict}: {found.reason}"


def _boots(connection: Connection, ask: Ask, part: Side, spec: str) -> list[str]:
    statement = sql.inputs(ask, part)
    rows = connection.execute(
        f"SELECT DISTINCT coalesce(boot, digest) FROM ({statement.sql}) JOIN metrics USING (digest) WHERE coalesce(spec, '') = ?",
        [*statement.values, spec],
    )
    return [str(row[0]) for row in rows.fetchall()]


def _fits(top: Row, bottom: Row, ask: Ask) -> bool:
    """Rows that are divided have the same dimensions, evidence, cache state, and metric unless each side asks for just one."""
    assert ask.over is not None
    same_dims = {**top.dims, "spec": ""} == {**bottom.dims, "spec": ""}
    single = len(ask.side.metrics) == len(ask.over.metrics) == 1
    same_cache = ("hit" in top.marks) == ("hit" in bottom.marks)
    return (single or top.metric == bottom.metric) and same_dims and top.evidence == bottom.evidence and same_cache


def _divided(top: Row, bottom: Row, verdict: str | None) -> Row:
    assert top.value is not None
    assert bottom.value is not None
    name = top.metric if top.metric == bottom.metric else f"{top.metric} / {bottom.metric}"
    return evolve(
        top,
        metric=name,
        value=top.value / bottom.value,
        low=top.low / bottom.high if bottom.high else top.value / bottom.value,
        high=top.high / bottom.low if bottom.low else top.value / bottom.value,
        n_boots=min(top.n_boots, bottom.n_boots),
        unit="ratio",
        marks=tuple(dict.fromkeys((*top.marks, *bottom.marks, *([verdict] if verdict else [])))),
    )


def _row(names: Sequence[str], record: Mapping[str, object]) -> Row:
    return Row(
        dims={name: str(record[name] or "") for name in names},
        metric=str(record["metric"]),
        value=_number(record["value"]) if record.get("value") is not None else None,
        low=_number(record["low"]),
        high=_number(record["high"]),
        n_boots=int(_number(record.get("n_boots", 0))),
        unit=str(record["unit"] or ""),
        better=Better(str(record["better"])),
        evidence=str(record["evidence"] or ""),
        spec=str(record["spec"] or ""),
        marks=marks_of(record),
        struck=str(record["struck_by"]) if record["struck_by"] else None,
    )


def marks_of(record: Mapping[str, object]) -> tuple[str, ...]:
    """The marks of a pooled row, the most important first."""
    found = []
    if record.get("n_boots") == 1:
        found.append("n=1 boot")
    if record.get("samples") == 1:
        found.append("single shot")
    if record["unverified"]:
        found.append("unverified")
    if record["hit"]:
        found.append("hit")
    if record["unproven"]:
        found.append("cache unproven")
    if _number(record.get("fingerprints", 0)) > 1:
        found.append(f"mixed config ({record['fingerprints']})")
    if _number(record.get("definitions") or 0) > 1:
        found.append(f"mixed definition ({record['definitions']})")
    if record["evidence"] in (Evidence.STAND_IN, Evidence.REHEARSED, Evidence.REPORTED, Evidence.IMPORTED):
        found.append(str(record["evidence"]))
    if record["struck_by"]:
        found.append(f"{record['struck_by']}d" if str(record["struck_by"]).endswith("e") else f"{record['struck_by']}ed")
    listed = record["marks"]
    return tuple(dict.fromkeys([*found, *(str(mark) for mark in (listed if isinstance(listed, list) else []))]))


def _missing(names: Sequence[str], record: Mapping[str, object]) -> Missing:
    return Missing(
        dims={name: str(record[name] or "") for name in names},
        metric=str(record["metric"]),
        reason=str(record["absent"]),
        trials=int(_number(record["trials"])),
    )


def _records(connection: Connection, statement: sql.Statement) -> list[dict[str, object]]:
    cursor = connection.execute(statement.sql, list(statement.values))
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]


def _tables_at(connection: Connection, at: Moment) -> Tables:
    """Make the tables of what the corrections that existed at that moment do."""
    found = standings(at.corrections)
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE {STRUCK_THEN} AS "
        "SELECT s.digest, last(s.action ORDER BY r.place, r.n, r.digest) AS action "
        "FROM (SELECT unnest(?::VARCHAR[]) AS digest, unnest(?::VARCHAR[]) AS by_digest, unnest(?::VARCHAR[]) AS action) s "
        "JOIN receipt r ON r.digest = s.by_digest GROUP BY s.digest",
        [[item.digest for item in found], [item.by for item in found], [item.action for item in found]],
    )
    alike = same_configs(connection, at.corrections)
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE {SAME_THEN} AS "
        "SELECT unnest(?::VARCHAR[]) AS fingerprint, unnest(?::VARCHAR[]) AS taken_as",
        [list(alike), list(alike.values())],
    )
    return Tables(struck=STRUCK_THEN, same_config=SAME_THEN)


def _number(value: object) -> float:
    assert isinstance(value, int | float)
    return float(value)
