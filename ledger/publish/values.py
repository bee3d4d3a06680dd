"""The bindings of a page, answered: what each should say now.

What it does: asks the ledger every question of a page and writes the answer in the binding's style, with its marks. What it does
not do: compare it with what the page says (``check``) or write a file (``fill``). Rules kept: a question that has not one answer
is a problem with the binding's place; text of a receipt is escaped before it enters a page; marks always travel, beside the
figure or into the page's notes.
"""

from collections.abc import Mapping
from functools import cached_property

from attrs import define, evolve, field, frozen

from ledger.analysis.claims import State
from ledger.core.errors import LedgerError, Problem, UsageError, did_you_mean
from ledger.core.text import visible
from ledger.publish.formats import as_markdown, people_cells, pivot
from ledger.publish.page import Binding, Page
from ledger.publish.style import Style, marks, read_style, written
from ledger.query.ask import Answer, Row, answer, in_words
from ledger.query.causes import Cause, causes
from ledger.query.claims import ClaimNow, claims_now
from ledger.query.ingest import Connection
from ledger.query.language import Ask, parse
from ledger.query.moment import Revision

SINCE = "superseded since"
# What Markdown or HTML would take for its own, in text that comes from a receipt.
_OWN = str.maketrans({"<": "&lt;", "`": "'", "[": "\\[", "]": "\\]", "|": "\\|", "*": "\\*", "\n": " "})


@frozen(kw_only=True)
class Filled:
    """A binding with what it should say: the text with its marks, the one row behind it, and why its value may have changed.

    ``problem`` stands in place of the text where the question has no answer; ``claim`` is the recorded claim it names.
    """

    binding: Binding
    text: str = ""
    row: Row | None = None
    ask: Ask | None = None
    style: Style = field(factory=Style)
    problem: Problem | None = None
    claim: ClaimNow | None = None


def fill_in(connection: Connection, page: Page, revision: Revision | None = None) -> list[Filled]:
    """What every binding of ``page`` should say, in the page's order. ``revision`` gives what a git revision holds."""
    asked = _Asked(connection=connection, page=page, revision=revision)
    found = [_filled(asked, item) for item in page.bindings]
    noted = "".join(f"\n- {_name(item)}: {marks_of(item)}" for item in found if item.style.note and item.row is not None)
    notes = f"\n{noted}\n\n" if noted else ""
    return [Filled(binding=item.binding, text=notes) if item.binding.kind == "notes" else item for item in found]


def why(connection: Connection, item: Filled) -> tuple[Cause, ...]:
    """The corrections that strike figures which a binding is about."""
    return causes(connection, item.ask) if item.ask is not None else ()


def marks_of(item: Filled) -> str:
    """The marks of a bound figure, escaped for Markdown."""
    return escaped(marks(item.row)) if item.row is not None else ""


def escaped(text: str) -> str:
    """``text`` of a receipt on one line, such that Markdown and HTML show it and obey none of it."""
    return visible(text, keep=frozenset("\n")).translate(_OWN)


@define(kw_only=True)
class _Asked:
    """The questions of one page: each is put to the ledger once, however often it stands there."""

    connection: Connection
    page: Page
    revision: Revision | None
    _answers: dict[tuple[str, str | None], Answer] = field(factory=dict, init=False)

    def question(self, text: str) -> Ask:
        """The question in ``text``, about the page's moment where it names none."""
        asked = parse(text)
        if self.page.as_of is not None and asked.as_of is None:
            asked = parse(f'{text} as-of:"{self.page.as_of}"')
        return asked

    def answer(self, ask: Ask) -> Answer:
        """What the ledger says to it."""
        key = ask.text, ask.as_of.text if ask.as_of is not None else None
        if key not in self._answers:
            self._answers[key] = answer(self.connection, ask, revision=self.revision)
        return self._answers[key]

    @cached_property
    def claims(self) -> Mapping[str, ClaimNow]:
        """The claims that count, by name."""
        return {item.name: item for item in claims_now(self.connection)}


def _filled(asked: _Asked, binding: Binding) -> Filled:
    if binding.kind == "notes":
        return Filled(binding=binding)
    ask = None
    try:
        style = read_style(binding.style)
        claim = _claim(asked, binding) if binding.kind == "claim" else None
        if claim is not None and claim.state is State.REPORTED and claim.now is None:
            return Filled(binding=binding, text=f"{escaped(claim.says)} (reported claim)", style=style, claim=claim)
        ask = asked.question(claim.expression if claim is not None else binding.question)
        found = asked.answer(ask)
        if binding.kind == "table":
            return Filled(binding=binding, text=_table(found, style), ask=ask, style=style)
        row = _dated(asked, found)
        return Filled(binding=binding, text=_beside(row, style), row=row, ask=ask, style=style, claim=claim)
    except LedgerError as error:
        return Filled(binding=binding, ask=ask, problem=error.problems[0])


def _claim(asked: _Asked, binding: Binding) -> ClaimNow:
    if binding.question not in asked.claims:
        hint = did_you_mean(binding.question, asked.claims)
        raise UsageError(Problem(what="no claim of this name counts", value=binding.question, hint=hint))
    return asked.claims[binding.question]


def _dated(asked: _Asked, found: Answer) -> Row:
    """The one row of an answer; one about an earlier moment says so where a correction has made it another since."""
    row, ask = _one(found), found.ask
    if ask.as_of is None or not _superseded_since(asked, ask, row):
        return row
    return evolve(row, marks=tuple(dict.fromkeys((*row.marks, f"as of {ask.as_of.text}", SINCE))))


def _table(found: Answer, style: Style) -> str:
    if not found.rows:
        raise UsageError(Problem(what="no figure answers this", value=found.ask.text, hint="ledger query shows what there is"))
    if found.ask.across is not None:
        columns, rows = pivot(found, found.ask.across.text)
    else:
        rows = [{**people_cells(row), "value": written(row, style), "marks": ", ".join(row.marks)} for row in found.rows]
        columns = list(rows[0])
    return f"\n\n{as_markdown(columns, rows)}\n"


def _one(found: Answer) -> Row:
    if len(found.rows) == 1:
        return found.rows[0]
    if not found.rows:
        what, hint = "no figure answers this", "it was corrected away, or never measured; ledger query --all shows struck ones"
    else:
        what = f"a figure in a sentence is one, and this question has {len(found.rows)}"
        hint = f"narrow it to one of: {in_words(found.rows)}"
    raise UsageError(Problem(what=what, value=found.ask.text, hint=hint))


def _superseded_since(asked: _Asked, ask: Ask, then: Row) -> bool:
    """Whether the figure was another at that moment than it is now, because of a correction."""
    now = evolve(ask, as_of=None)
    try:
        rows = asked.answer(now).rows
    except LedgerError:
        rows = ()
    return [row.value for row in rows] != [then.value] and bool(causes(asked.connection, now))


def _beside(row: Row, style: Style) -> str:
    shown, known = written(row, style), marks(row)
    return shown if style.note or not known else f"{shown} ({escaped(known)})"


def _name(item: Filled) -> str:
    return escaped(item.binding.question)
