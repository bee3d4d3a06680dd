"""Whether a page says what the ledger says.

What it does: lists everything about a page that is not so, each with its line and column. What it does not do: mend it (``fill``
does). Rules kept: all findings at once, in the page's order; a finding about a corrected figure names the correction and its
reason; a page that is bound to nothing is a finding, since nothing could ever go stale in it.
"""

from collections.abc import Iterator, Sequence
from enum import StrEnum

from attrs import frozen

from ledger.analysis.claims import SOUND
from ledger.core.digest import short
from ledger.core.errors import shorten
from ledger.publish.loose import loose_numbers
from ledger.publish.orientation import reversed_words
from ledger.publish.page import Page
from ledger.publish.values import Filled, fill_in, why
from ledger.query.ingest import Connection
from ledger.query.moment import Revision


class Kind(StrEnum):
    """What is not so."""

    SYNTAX = "syntax"
    QUESTION = "question"
    DIFFERS = "differs"
    CLAIM = "claim"
    ORIENTATION = "orientation"
    UNBOUND = "unbound"
    NO_BINDING = "no-binding"
    NO_NOTES = "no-notes"


@frozen(kw_only=True)
class Finding:
    """One thing that is not so: where, what, and the way out."""

    line: int
    column: int
    kind: Kind
    what: str
    hint: str = ""


def check(connection: Connection, page: Page, revision: Revision | None = None) -> list[Finding]:
    """Everything about ``page`` that the ledger does not bear out, in the page's order."""
    filled = fill_in(connection, page, revision)
    found = list(_own_mistakes(page, filled))
    for item in filled:
        found += _of_binding(connection, page, item)
    for at, text in loose_numbers(page):
        hint = "bind it: <!--= question -->, or say why not: <!--! reason -->…<!--/-->"
        found.append(_finding(page, at, Kind.UNBOUND, f"this number is bound to nothing: {text}", hint))
    return sorted(found, key=lambda item: (item.line, item.column))


def _own_mistakes(page: Page, filled: Sequence[Filled]) -> Iterator[Finding]:
    for mistake in page.mistakes:
        yield _finding(page, mistake.at, Kind.SYNTAX, mistake.what)
    if not page.bindings:
        yield _finding(page, 0, Kind.NO_BINDING, "no figure of this page is bound to the ledger")
    noted = [item.binding for item in filled if item.style.note]
    if noted and not any(item.kind == "notes" for item in page.bindings):
        hint = "add <!--= notes --><!--/--> on lines of its own"
        yield _finding(page, noted[0].at, Kind.NO_NOTES, "the marks of this figure stand nowhere on the page", hint)


def _of_binding(connection: Connection, page: Page, item: Filled) -> Iterator[Finding]:
    at = item.binding.at
    if item.problem is not None:
        what = f"{item.problem.what}: {item.problem.value or ''}{_because(connection, item)}"
        yield _finding(page, at, Kind.QUESTION, what, item.problem.hint or "")
        return
    said = page.text[item.binding.start : item.binding.end].strip()
    if turned := reversed_words(page, item):
        yield _finding(page, at, Kind.ORIENTATION, turned + _because(connection, item))
    elif said != item.text.strip():
        about = f"{shorten(item.binding.question)}: the page says {_cut(said)}, the ledger {_cut(item.text.strip())}"
        if item.binding.kind in ("table", "notes"):
            yield from _rows_that_differ(connection, page, item)
        else:
            yield _finding(page, at, Kind.DIFFERS, about + _because(connection, item), "ledger render writes it")
    if item.claim is not None and item.claim.state not in SOUND:
        because = "; ".join(item.claim.because)
        what = f"the claim {item.claim.name!r} is {item.claim.state}" + (f": {because}" if because else "")
        yield _finding(page, at, Kind.CLAIM, what, "look at it and claim it again: ledger claim")


def _rows_that_differ(connection: Connection, page: Page, item: Filled) -> Iterator[Finding]:
    """The lines of a table or of notes that are not what they should be; a line that lacks is told at the opening."""
    start, end = item.binding.start, item.binding.end
    wanted = item.text.strip().splitlines()
    said = page.text[start:end].strip()
    at = start + page.text[start:end].find(said) if said else item.binding.at
    because, hint = _because(connection, item), "ledger render writes it"
    lines = said.splitlines()
    for number, line in enumerate(lines):
        expected = wanted[number] if number < len(wanted) else "no such row"
        if line.strip() != expected.strip():
            what = f"this row is not what the ledger says: {_cut(line.strip())}, the ledger: {_cut(expected)}"
            yield _finding(page, at, Kind.DIFFERS, what + because, hint)
        at += len(line) + 1
    if len(wanted) > len(lines):
        lacking = len(wanted) - len(lines)
        yield _finding(page, item.binding.at, Kind.DIFFERS, f"{lacking} lines of this are not there{because}", hint)


def _because(connection: Connection, item: Filled) -> str:
    found = [f"{short(cause.correction)} {cause}" for cause in why(connection, item)]
    return f" ({'; '.join(found)})" if found else ""


def _cut(text: str) -> str:
    return repr(shorten(text, 100)) if text else "nothing"


def _finding(page: Page, at: int, kind: Kind, what: str, hint: str = "") -> Finding:
    line, column = page.place(at)
    return Finding(line=line, column=column, kind=kind, what=what, hint=hint)
