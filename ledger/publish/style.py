"""How a bound value is written.

What it does: reads the words behind `` | `` of a binding and writes a value so. What it does not do: ask for the value. Rules
kept: a mark stands beside the figure unless ``note`` moves it to the page's notes, and no word turns it off; a phrase says which
way round the value is, so the words cannot contradict the number.
"""

import re

from attrs import frozen

from ledger.core.errors import Problem, UsageError
from ledger.core.words import Better
from ledger.publish.formats import DASH, number
from ledger.query.ask import Row

_NUMBER = re.compile(r"(?P<comma>,?)\.(?P<decimals>[0-9])(?P<kind>[f%])")
_TIE = re.compile(r"tie=(?P<percent>[0-9]+(?:\.[0-9]+)?)%")
WORDS = ("note", "change", "faster", "range", "unit")


@frozen(kw_only=True)
class Style:
    """How a value is written: the number's format, a phrase in its place, the tolerance of a tie, and where marks stand."""

    spec: str = ""
    phrase: str = ""
    tie: float | None = None
    note: bool = False
    unit: bool = False


def read_style(text: str) -> Style:
    """The style in ``text``, words in any order.

    Raises:
        UsageError: a word that is none of them.
    """
    spec, phrase, tie, note, unit = "", "", None, False, False
    for word in text.split():
        if _NUMBER.fullmatch(word):
            spec = word
        elif match := _TIE.fullmatch(word):
            tie = float(match["percent"]) / 100
        elif word == "note":
            note = True
        elif word == "unit":
            unit = True
        elif word in WORDS:
            phrase = word
        else:
            hint = f"a number is .1f, ,.0f or .0%; the words are {', '.join(WORDS)} and tie=2%"
            raise UsageError(Problem(what="unknown way to write a value", value=word, hint=hint))
    return Style(spec=spec, phrase=phrase, tie=tie, note=note, unit=unit)


def written(row: Row, style: Style) -> str:
    """The value of ``row`` in that style, without its marks.

    Raises:
        UsageError: a phrase that needs a ratio, of a value.
    """
    if row.value is None or style.phrase == "range":
        shown = f"{_shown(row.low, style)} to {_shown(row.high, style)}"
    elif style.phrase in ("change", "faster") or style.tie is not None:
        shown = _phrase(row, row.value, style)
    else:
        shown = _shown(row.value, style)
    return f"{shown} {row.unit}" if style.unit and row.unit != "ratio" else shown


def marks(row: Row) -> str:
    """The marks of a row, as they stand beside the figure."""
    return ", ".join(row.marks) or ("" if row.n_boots else DASH)


def _phrase(row: Row, value: float, style: Style) -> str:
    if row.unit != "ratio":
        raise UsageError(Problem(what="a phrase compares, and this is no ratio", value=row.metric, hint="ask for A / B"))
    change = value - 1
    if style.tie is not None and abs(change) <= style.tie:
        return "tie"
    if style.phrase == "change":
        return f"{change:+{style.spec or '.0%'}}"
    if style.phrase == "faster":
        if row.better is Better.NEITHER:
            raise UsageError(Problem(what="neither side of this ratio is the faster one", value=row.metric, hint="write change"))
        # Of times, the smaller one is the faster: by how much is asked of rates.
        gain = change if row.better is Better.HIGHER else 1 / value - 1
        return f"{abs(gain):{style.spec or '.0%'}} {'faster' if gain > 0 else 'slower'}"
    return _shown(value, style)


def _shown(value: float, style: Style) -> str:
    return format(value, style.spec) if style.spec else number(value)
