"""Answers as a table, JSON, CSV or Markdown.

What it does: turns the rows of a query into text. What it does not do: ask. Rules kept: every format carries n, spread, evidence
and marks; numbers are whole in JSON and CSV and rounded for people elsewhere; a cell of CSV that a spreadsheet would run as a
formula is quoted as text.
"""

import csv
import io
from collections.abc import Mapping, Sequence

from ledger.core.digest import PREFIX, short
from ledger.core.text import visible
from ledger.query.ask import Answer, Row

Cells = dict[str, str]
DASH = "–"
MARKS_SHOWN = 4


def as_data(row: Row) -> dict[str, object]:
    """A row as JSON holds it."""
    data: dict[str, object] = {
        **row.dims,
        "spec": row.spec,
        "metric": row.metric,
        "value": row.value,
        "unit": row.unit,
        "n_boots": row.n_boots,
        "low": row.low,
        "high": row.high,
        "spread": row.high - row.low if row.n_boots > 1 or row.value is None else None,
        "evidence": row.evidence,
        "marks": list(row.marks),
    }
    return data | ({"struck": row.struck} if row.struck else {})


def number(value: float) -> str:
    """Four significant digits, without an exponent where people would not write one."""
    return f"{value:.4g}" if abs(value) < 10_000 else f"{value:,.0f}"


def spread(row: Row) -> str:
    """Lowest to highest boot or the range that was reported, or a dash for one boot."""
    return f"{number(row.low)} … {number(row.high)}" if row.n_boots > 1 or row.value is None else DASH


def value(row: Row) -> str:
    """The value, struck through in plain text too where it no longer counts, or a dash where a range stands in its place."""
    shown = number(row.value) if row.value is not None else DASH
    return f"~~{shown}~~" if row.struck else shown


def people_cells(row: Row) -> Cells:
    """The columns that people read, in order; a struck value is struck through in plain text too."""
    marks = [mark for mark in row.marks if mark != row.evidence]
    listed = marks[:MARKS_SHOWN] + ([f"+{len(marks) - MARKS_SHOWN} more"] if len(marks) > MARKS_SHOWN else [])
    dims = {name: short(value) if value.startswith(PREFIX) else value for name, value in row.dims.items()}
    return {
        **dims,
        "metric": row.metric,
        "value": value(row),
        "unit": row.unit,
        "n boots": str(row.n_boots or DASH),
        "low … high": spread(row),
        "evidence": row.evidence,
        "marks": ", ".join(listed),
    }


def pivot(answer: Answer, across: str) -> tuple[list[str], list[Cells]]:
    """One column of values for each value of the dimension ``across``; n stands behind each value."""
    columns = list(dict.fromkeys(row.dims.get(across, row.evidence) for row in answer.rows))
    table: dict[tuple[str, ...], Cells] = {}
    for row in answer.rows:
        dims = {name: value for name, value in row.dims.items() if name != across}
        key = (*dims.values(), row.metric, row.unit, row.evidence)
        cells = table.setdefault(key, {**dims, "metric": row.metric, "unit": row.unit, "evidence": row.evidence})
        column = row.dims.get(across, row.evidence)
        notes = [
            f"n={row.n_boots}" if row.n_boots else spread(row),
            *(mark for mark in row.marks if mark not in (row.evidence, "n=1 boot")),
        ]
        shown = f"{value(row)} ({', '.join(notes)})"
        cells[column] = f"{cells[column]}; {shown}" if column in cells else shown
    names = [name for name in answer.dims if name != across]
    return [*names, "metric", "unit", "evidence", *columns], list(table.values())


def as_csv(answer: Answer) -> str:
    """CSV with a header line; marks are joined by semicolons."""
    out = io.StringIO()
    rows = [as_data(row) for row in answer.rows]
    fields = list(dict.fromkeys(name for row in rows for name in row)) or ["metric"]
    writer = csv.DictWriter(out, fields, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _plain(value) for name, value in row.items()})
    return out.getvalue()


def as_markdown(columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> str:
    """A Markdown table; a struck row is struck through."""
    lines = [_line(columns), _line(["---"] * len(columns))]
    lines += [_line([_escaped(row.get(name, "")) for name in columns]) for row in rows]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _escaped(text: str) -> str:
    return visible(text, keep=frozenset()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def _plain(value: object) -> object:
    if isinstance(value, list):
        value = "; ".join(map(str, value))
    # A spreadsheet runs a cell that begins so as a formula.
    return f"'{value}" if isinstance(value, str) and value[:1] in {"=", "+", "-", "@", "\t", "\r"} else value
