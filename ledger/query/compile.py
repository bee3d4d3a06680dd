"""A question to SQL.

What it does: turns one side of an :class:`Ask` into a parameterised statement over the index's tables. What it does not do: run
it. Rules kept: no word of the question becomes SQL text, all go in as parameters; a boot's value is the median of its trials
before boots are pooled, so that a boot with more trials weighs no more; figures of different evidence, and cached and cold
ones, are separate rows; what is struck counts only in a row of its own.
"""

import re
from collections.abc import Sequence

from attrs import frozen

from ledger.query.language import Ask, Range, Side, Word

# dimension of the language -> column of the statement's source
COLUMNS = {
    "arm": "arm",
    "lane": "lane",
    "boot": "boot",
    "session": "session",
    "spec": "spec",
    "role": "role",
    "measure": "measure",
    "evidence": "evidence",
    "date": "date",
    "trial": "trial",
}
# What `not:` takes away, figure by figure: the condition that what stays fulfils.
_KEPT = {
    "unverified": "coalesce(b.agreement, 'agrees') = 'agrees'",
    "hit": "coalesce(f.prefix_cache, t.prefix_cache, '') <> 'hit'",
    "cache unproven": "coalesce(f.prefix_cache, t.prefix_cache, '') <> 'unproven'",
    "superseded": "coalesce(s.action, sb.action) IS DISTINCT FROM 'supersede'",
    "retracted": "coalesce(s.action, sb.action) IS DISTINCT FROM 'retract'",
    "stand-in": "r.evidence <> 'stand-in'",
    "rehearsed": "r.evidence <> 'rehearsed'",
    "reported": "r.evidence <> 'reported'",
    "imported": "r.evidence <> 'imported'",
}
# And row by row, where the mark is of the whole row.
_ROWS_KEPT = {
    "n=1 boot": "count(DISTINCT boot_key) > 1",
    "single shot": "min(samples) IS DISTINCT FROM 1",
    "mixed config": "count(DISTINCT config_key) < 2",
    "mixed definition": "len(list_distinct(list(DISTINCT definition_low) || list(DISTINCT definition_high))) < 2",
}
_SPELLED = {"n=1": "n=1 boot", "single-shot": "single shot", "unproven": "cache unproven", "mixed": "mixed config"}
MARKS = (*_KEPT, *_ROWS_KEPT)
_OPS = {">=": ">=", "<=": "<=", ">": ">", "<": "<", "=": "="}

# Boots and configurations are told apart by 64-bit hashes here: their digests are long, and a group of each is held in memory.
_SOURCE = """
figures AS (
  SELECT r.spec, r.lane, r.arm, r.role, r.evidence, r.session, CAST(r.time AS DATE)::VARCHAR AS date, r.digest,
         CASE WHEN r.kind = 'boot' THEN r.digest ELSE coalesce(t.boot, r.digest) END AS boot, hash(boot) AS boot_key,
         t.measure, t.number AS trial,
         f.metric, f.value, f.unit, f.better, f.n, f.low, f.high,
         f.absent, coalesce(f.prefix_cache, t.prefix_cache, '') = 'hit' AS hit,
         coalesce(f.prefix_cache, t.prefix_cache, '') = 'unproven' AS unproven, f.marks,
         hash(t.instrument, t.instrument_version, t.parameters) AS definition,
         if(b.fingerprint IS NULL, NULL, hash(coalesce(e.taken_as, b.fingerprint))) AS config_key,
         coalesce(b.agreement, 'agrees') AS agreement,
         coalesce(s.action, sb.action) AS struck_by
  FROM figure f JOIN receipt r ON r.id = f.receipt
  LEFT JOIN trial t ON t.id = f.receipt
  LEFT JOIN boot b ON b.digest = coalesce(t.boot, r.digest)
  LEFT JOIN {same_config} e ON e.fingerprint = b.fingerprint
  LEFT JOIN {struck} s ON s.digest = r.digest
  LEFT JOIN {struck} sb ON sb.digest = t.boot
  WHERE {where}
),
per_boot AS (
  SELECT {dims} metric, unit, better, evidence, spec, hit, struck_by, boot_key, median(value) AS value, sum(n) AS samples,
         any_value(config_key) AS config_key,
         min(definition) AS definition_low, max(definition) AS definition_high, any_value(agreement) AS agreement,
         bool_or(unproven) AS unproven, flatten(list(marks) FILTER (len(marks) > 0)) AS marks
  FROM figures WHERE value IS NOT NULL GROUP BY ALL
)
"""
_POOLED = """
SELECT {dims} metric, any_value(unit) AS unit, any_value(better) AS better, evidence, spec, hit, struck_by,
       median(value) AS value, min(value) AS low, max(value) AS high, count(DISTINCT boot_key) AS n_boots,
       min(samples) AS samples,
       count(DISTINCT config_key) AS fingerprints,
       len(list_distinct(list(DISTINCT definition_low) || list(DISTINCT definition_high))) AS definitions,
       count(*) FILTER (agreement <> 'agrees') AS unverified, bool_or(unproven) AS unproven,
       list_sort(list_distinct(flatten(list(marks) FILTER (len(marks) > 0)))) AS marks
FROM per_boot GROUP BY {group}
HAVING {having}
"""
_SIZES = """
SELECT metric, count(*) FROM figures GROUP BY metric ORDER BY metric
"""
# What has no value: a figure that is absent, with the reason of one of them, or a range that was reported in a value's place.
_VALUELESS = """
SELECT {dims} metric, any_value(unit) AS unit, any_value(better) AS better, evidence, spec, hit, struck_by,
       absent IS NOT NULL AS is_absent,
       count(DISTINCT digest) AS trials, any_value(absent) AS absent, min(low) AS low, max(high) AS high,
       count(*) FILTER (agreement <> 'agrees') AS unverified, bool_or(unproven) AS unproven,
       list_sort(list_distinct(flatten(list(marks) FILTER (len(marks) > 0)))) AS marks
FROM figures WHERE value IS NULL AND (absent IS NOT NULL AND struck_by IS NULL OR low IS NOT NULL AND high IS NOT NULL)
GROUP BY {group}, is_absent
"""

_REPORTED = """
SELECT c.name, c.expression, c.value, c.unit, c.evidence, s.action AS struck_by
FROM claim c JOIN receipt r USING (id) LEFT JOIN {struck} s ON s.digest = r.digest
WHERE c.evidence = 'reported' AND c.expression = ? AND {then} ORDER BY r.place, r.n
"""

_INPUTS = """
SELECT DISTINCT digest FROM figures WHERE value IS NOT NULL AND struck_by IS NULL ORDER BY digest
"""

_RAW = """
SELECT digest, boot, value, spec, {dims} metric, evidence, CASE WHEN hit THEN 'hit' ELSE '' END
FROM figures WHERE value IS NOT NULL ORDER BY digest
"""


@frozen(kw_only=True)
class Statement:
    """SQL with its parameters, in order."""

    sql: str
    values: tuple[object, ...] = ()


@frozen(kw_only=True)
class Then:
    """A moment as a condition on receipts: those made no later than a time, or those of the table ``existed``."""

    condition: str
    values: tuple[object, ...] = ()


@frozen(kw_only=True)
class Tables:
    """The tables that say what corrections do, a receipt or fingerprint at most once in each: now, or at some other moment."""

    struck: str = "last_strike"
    same_config: str = "same_config"


NOW = Tables()


class _Where:
    """Conditions that grow, with their parameters in the same order."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.values: list[object] = []

    def add(self, part: str, *values: object) -> None:
        self.parts.append(part)
        self.values += values


def pooled(ask: Ask, side: Side, *, tables: Tables = NOW, then: Then | None = None) -> Statement:
    """The statement whose rows are pooled cells of ``side``, one for each value of the dimensions, evidence and cache state."""
    return _statement(_POOLED, ask, side, tables, then)


def sizes(ask: Ask, side: Side, *, then: Then | None = None) -> Statement:
    """The statement whose rows are the metrics that ``side`` means, each with how many figures it has."""
    return _statement(_SIZES, ask, side, NOW, then)


def valueless(ask: Ask, side: Side, *, tables: Tables = NOW, then: Then | None = None) -> Statement:
    """The statement whose rows are figures without a value: absent ones, and ranges."""
    return _statement(_VALUELESS, ask, side, tables, then)


def reported(ask: Ask, *, tables: Tables = NOW, then: Then | None = None) -> Statement:
    """The statement whose rows are the claims of publications in the words of the question."""
    words = " ".join(word for word in ask.text.split() if not word.startswith(("as-of:", "evidence:reported")))
    condition, values = (then.condition, then.values) if then else ("true", ())
    return Statement(sql=_REPORTED.format(struck=tables.struck, then=condition), values=(words, *values))


def inputs(ask: Ask, side: Side, *, tables: Tables = NOW, then: Then | None = None) -> Statement:
    """The statement whose rows are the digests of the receipts that ``side`` is pooled from."""
    return _statement(_INPUTS, ask, side, tables, then)


def raw(ask: Ask, side: Side, *, then: Then | None = None) -> Statement:
    """The statement whose rows are single figures, struck ones too: digest, boot, value, and the words of the cell."""
    return _statement(_RAW, ask, side, NOW, then)


def dimensions(ask: Ask) -> list[str]:
    """The dimensions of the rows, in the question's order; a question without any is asked by arm, a ratio by nothing."""
    named = [word.text for word in ask.by] + ([ask.across.text] if ask.across else [])
    if not named and ask.over is None:
        named = ["arm"]
    return [name for name in dict.fromkeys(named) if name not in ("evidence", "spec")]


def spelled(mark: str) -> str:
    """The mark that a word behind ``not:`` means."""
    return _SPELLED.get(mark, mark)


def _statement(template: str, ask: Ask, side: Side, tables: Tables, then: Then | None) -> Statement:
    where = _Where()
    _metrics(side.metrics, where)
    _of(side.of, where)
    for key, words in ask.filters.items():
        if key == "not":
            for word in words:
                _not(spelled(word.text), where)
        else:
            _matches(f"f.{key}" if key == "metric" else _column(key), words, where)
    if then is not None:
        where.add(then.condition, *then.values)
    dims = "".join(f"{COLUMNS[name]}, " for name in dimensions(ask))
    having = _having(ask)
    source = _SOURCE.format(struck=tables.struck, same_config=tables.same_config, where=" AND ".join(where.parts), dims=dims)
    body = template.format(
        dims=dims, having=" AND ".join(having.parts) or "true", group=f"{dims}metric, evidence, spec, hit, struck_by"
    )
    return Statement(sql=f"WITH {source.strip()}{body}", values=(*where.values, *(having.values if template is _POOLED else ())))


def _having(ask: Ask) -> _Where:
    having = _Where()
    for op, number in ask.counts:
        having.add(f"count(DISTINCT boot_key) {_OPS[op]} ?", number)
    for word in ask.filters.get("not", ()):
        if spelled(word.text) in _ROWS_KEPT:
            having.add(_ROWS_KEPT[spelled(word.text)])
    return having


def _column(key: str) -> str:
    return {"date": "CAST(r.time AS DATE)::VARCHAR", "boot": "coalesce(t.boot, r.digest)", "measure": "t.measure"}.get(
        key, f"r.{key}"
    )


def _metrics(metrics: Sequence[Word | Range], where: _Where) -> None:
    parts = _Where()
    for item in metrics:
        if isinstance(item, Range):
            number = "try_cast(substr(f.metric, ?) AS BIGINT)"
            parts.add(
                f"(starts_with(f.metric, ?) AND {number} BETWEEN ? AND ?)", item.head, len(item.head) + 1, item.low, item.high
            )
        elif any(char in item.text for char in "*?"):
            parts.add("f.metric GLOB ?", _glob(item.text))
        else:
            parts.add("f.metric = ?", item.text)
    where.add(f"({' OR '.join(parts.parts)})", *parts.values)


def _of(words: Sequence[Word], where: _Where) -> None:
    """A name is a lane or an arm; several are any of them."""
    if words:
        either = " OR ".join("r.lane GLOB ? OR r.arm GLOB ?" for _ in words)
        where.add(f"({either})", *(_glob(word.text) for word in words for _ in range(2)))


def _matches(column: str, words: Sequence[Word], where: _Where) -> None:
    prefix = "sha256:" if column.endswith("r.digest)") else ""
    globs = [prefix + _glob(word.text) + ("*" if prefix else "") for word in words]
    where.add(f"({' OR '.join(f'{column} GLOB ?' for _ in words)})", *globs)


def _not(mark: str, where: _Where) -> None:
    if mark in _KEPT:
        where.add(_KEPT[mark])
    elif mark not in _ROWS_KEPT:
        where.add("NOT list_contains(f.marks, ?)", mark)


def _glob(text: str) -> str:
    """The language's wildcards are ``*`` and ``?``; brackets are plain text."""
    return re.sub(r"[\[\]]", lambda match: f"[{match.group()}]", text)
