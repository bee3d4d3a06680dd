"""The bindings of a page, answered: what each should say now.

What it does: asks the ledger every question of a page and writes the answer in the binding's style, with its marks. What it does
not do: compare it with what the page says (``check``) or write a file (``fill``). Rules kept: a question that has not one answer
is a problem with the binding's place; text of a receipt is escaped before it enters a page; marks always travel, beside the
figure or into the page's notes.
"""

from collections.abc import Callable, Mapping
from functools import partial

from attrs import evolve, field, frozen

from ledger.analysis.claims import State
from ledger.core.errors import LedgerError, Problem, UsageError, did_you_mean
from ledger.core.text import visible
from ledger.publish.formats import as_markdown, people_cells, pivot
from ledger.publish.page import Binding, Page
from ledger.publish.style import Style, marks, read_style, written
from ledger.query.ask import Answer, Row, answer
from ledger.query.causes import Cause, causes
from ledger.query.claims import ClaimNow, claims_now
from ledger.query.ingest import Connection
from ledger.query.language import Ask, parse
from ledger.query.moment import Revision

SOUND = (State.HOLDS, State.REPORTED)
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
    found = [_filled(connection, page, revision, item) for item in page.bindings]
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


def _filled(connection: Connection, page: Page, revision: Revision | None, binding: Binding) -> Filled:
    if binding.kind == "notes":
        return Filled(binding=binding)
    try:
        style = read_style(binding.style)
        work = {"table": _table, "claim": _claim, "value": _value}[binding.kind]
        return work(partial(_ask, connection, page, revision), connection, binding, style)
    except LedgerError as error:
        return Filled(binding=binding, problem=error.problems[0])


Asker = Callable[[str], Answer]


def _ask(connection: Connection, page: Page, revision: Revision | None, question: str) -> Answer:
    asked = parse(question)
    if page.as_of is not None and asked.as_of is None:
        asked = parse(f'{question} as-of:"{page.as_of}"')
    return answer(connection, asked, revision=revision)


def _value(ask: Asker, connection: Connection, binding: Binding, style: Style) -> Filled:
    found = ask(binding.question)
    row = _one(found)
    if found.ask.as_of is not None and _superseded_since(connection, found.ask, row):
        row = _marked(row, f"as of {found.ask.as_of.text}", SINCE)
    return Filled(binding=binding, text=_beside(row, style), row=row, ask=found.ask, style=style)


def _claim(ask: Asker, connection: Connection, binding: Binding, style: Style) -> Filled:
    there: Mapping[str, ClaimNow] = {item.name: item for item in claims_now(connection)}
    if binding.question not in there:
        raise UsageError(
            Problem(what="no claim of this name counts", value=binding.question, hint=did_you_mean(binding.question, there))
        )
    claim = there[binding.question]
    if claim.now is None:
        return Filled(binding=binding, text=f"{escaped(claim.says)} (reported claim)", style=style, claim=claim)
    found = ask(claim.expression)
    row = _one(found)
    return Filled(binding=binding, text=_beside(row, style), row=row, ask=found.ask, style=style, claim=claim)


def _table(ask: Asker, connection: Connection, binding: Binding, style: Style) -> Filled:
    found = ask(binding.question)
    if not found.rows:
        raise UsageError(Problem(what="no figure answers this", value=binding.question, hint="ledger query shows what there is"))
    if found.ask.across is not None:
        columns, rows = pivot(found, found.ask.across.text)
    else:
        rows = [{**people_cells(row), "value": written(row, style)} for row in found.rows]
        rows = [{**cells, "marks": ", ".join(row.marks)} for cells, row in zip(rows, found.rows, strict=True)]
        columns = list(rows[0])
    return Filled(binding=binding, text=f"\n\n{as_markdown(columns, rows)}\n", ask=found.ask, style=style)


def _one(found: Answer) -> Row:
    if len(found.rows) == 1:
        return found.rows[0]
    if not found.rows:
        what, hint = "no figure answers this", "it was corrected away, or never measured; ledger query --all shows struck ones"
    else:
        named = "; ".join(" ".join([*row.dims.values(), row.metric, row.evidence]) for row in found.rows[:6])
        what, hint = f"a figure in a sentence is one, and this question has {len(found.rows)}", f"narrow it to one of: {named}"
    raise UsageError(Problem(what=what, value=found.ask.text, hint=hint))


def _superseded_since(connection: Connection, ask: Ask, then: Row) -> bool:
    """Whether the figure was another at that moment than it is now, because of a correction."""
    assert ask.as_of is not None
    now = parse(f"{ask.text[: ask.text.index('as-of:')].rstrip()}")
    try:
        rows = answer(connection, now).rows
    except LedgerError:
        rows = ()
    return [row.value for row in rows] != [then.value] and bool(causes(connection, now))


def _marked(row: Row, *more: str) -> Row:
    return evolve(row, marks=tuple(dict.fromkeys((*row.marks, *more))))


def _beside(row: Row, style: Style) -> str:
    shown, known = written(row, style), marks(row)
    return shown if style.note or not known else f"{shown} ({escaped(known)})"


def _name(item: Filled) -> str:
    return escaped(item.binding.question)
