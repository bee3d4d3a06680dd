"""Shell completion of what a ledger holds: words of the query language, and names of receipts.

What it does: offers the words that could stand next. What it does not do: complain; without a ledger, or while its index is busy,
it offers the fixed words alone. Rule kept: completion never builds an index, since a shell waits for it.
"""

from collections.abc import Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from ledger.core.errors import LedgerError
from ledger.query.index import known_names
from ledger.query.language import DIMENSIONS, FILTERS
from ledger.store.ledger import Ledger


def complete_question(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The words of a question: dimensions behind ``by`` and ``across``, values behind a filter, else metrics and keywords."""
    names = _names(context)
    said = " ".join([*(context.params.get("question") or ()), incomplete])
    done, _, word = said.rpartition(" ")
    key, colon, value = word.partition(":")
    before = done.split()[-1:] or [""]
    if colon:
        return _items((f"{key}:{name}" for name in names.get(key, ())), f"{key}:{value}", done)
    if before[0].rstrip(",") in {"by", "across"} or (before[0].endswith(",") and " by " in f" {done} "):
        return _items(DIMENSIONS, word, done)
    if before[0] == "of":
        return _items([*names.get("lane", ()), *names.get("arm", ())], word, done)
    words = [*names.get("metric", ()), *(("by", "of", "across", *(f"{name}:" for name in FILTERS)) if done else ())]
    return _items(words, word, done)


def complete_name(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The names of receipts: arms, and arms with their measures."""
    return _items(_names(context).get("name", ()), incomplete, "")


def _items(words: Iterable[str], incomplete: str, done: str) -> list[CompletionItem]:
    """A shell takes a quoted question as one word, so what is done already is put in front."""
    front = f"{done} " if done else ""
    return [CompletionItem(front + word) for word in dict.fromkeys(words) if word.startswith(incomplete)]


def _names(context: click.Context) -> dict[str, list[str]]:
    folder = context.find_root().params.get("directory") or Path()
    try:
        return known_names(Ledger.find(Path(folder)))
    except LedgerError:
        return {}
