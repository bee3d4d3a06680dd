"""What a single value of a spec or site may be.

What it does: names, numbers in a range, words of a list, quantities, digests, variables, addresses. What it does not do: look at
two values at once (``check``). Rule kept: each check tells its own mistake to ``complain`` and returns nothing.
"""

import ipaddress
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

from ledger.core import units
from ledger.core.errors import LedgerError, did_you_mean
from ledger.spec import interpolate
from ledger.spec.locate import Path, spell
from ledger.spec.model import NAME, PACKAGE, SHA256, VARIABLE_NAME

Complain = Callable[..., None]
"""``complain(what, path=…, value=…, hint=…, rests_on=…, inside=…)``; see ``load``."""


def name(text: str, path: Path, complain: Complain) -> None:
    """An id: it becomes part of paths, queries and Markdown."""
    if not re.fullmatch(NAME, text):
        hint = "a name has letters, digits, '.', '_' and '-', begins with a letter or digit, and has at most 64 of them"
        complain("not a name", path=path, value=text, hint=hint)


def env_name(text: str, path: Path, complain: Complain) -> None:
    """The name of an environment variable."""
    if not re.fullmatch(VARIABLE_NAME, text):
        complain("not the name of a variable", path=path, value=text)


def package_name(text: str, path: Path, complain: Complain) -> None:
    """The name of a Python distribution."""
    if not re.fullmatch(PACKAGE, text):
        complain("not the name of a package", path=path, value=text)


def filled(text: str, path: Path, complain: Complain) -> None:
    """A text that says something."""
    if not text.strip():
        complain("an empty text", path=path, value=text)


def sha256(text: str, path: Path, complain: Complain) -> None:
    """The hexadecimal digits of a SHA-256 digest."""
    if not re.fullmatch(SHA256, text):
        complain("expected 64 hexadecimal digits, lower case", path=path, value=text)


def between(value: float, low: float, high: float, path: Path, complain: Complain) -> None:
    """A number from ``low`` to ``high``; NaN is none."""
    if not low <= value <= high:
        complain(f"expected a number from {low} to {high}", path=path, value=value)


def at_most(items: Collection[object], limit: int, kind: str, complain: Complain) -> None:
    """A list or table of bounded length."""
    if len(items) > limit:
        hint = "the rest is checked once there are fewer"
        complain(f"{kind} has {len(items)} entries, and at most {limit} are read", path=(kind,), hint=hint)


def one_of(word: str, words: Sequence[str], path: Path, complain: Complain) -> None:
    """A word of a closed list."""
    if word not in words:
        complain(f"expected one of {', '.join(words)}", path=path, value=word, hint=did_you_mean(word, words))


def quantity(text: str, path: Path, complain: Complain, *, dimension: str | None = None) -> units.Quantity | None:
    """A number with a unit, of a dimension where one is asked for; None when it is not one."""
    try:
        return units.parse(text, dimension=dimension, default_unit="ratio" if dimension == "ratio" else "")
    except LedgerError as error:
        for problem in error.problems:
            complain(problem.what, path=path, value=problem.value, hint=problem.hint)
    return None


def quantity_between(text: str, dimension: str, low: str, high: str, path: Path, complain: Complain) -> None:
    """A quantity of a dimension, from ``low`` to ``high``."""
    found = quantity(text, path, complain, dimension=dimension)
    if found is not None and not units.parse(low).number <= found.number <= units.parse(high).number:
        complain(f"expected from {low} to {high}", path=path, value=text)


def address(text: str, path: Path, complain: Complain) -> None:
    """An IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        complain("not an IP address", path=path, value=text, hint='as in "127.0.0.1" or "::1"')


def template(text: str, path: Path, known: Collection[str], complain: Complain) -> None:
    """A text that may hold ``${…}`` of ``known``, and that a process can be given."""
    without_nul(text, path, complain)
    for problem in interpolate.check(text, known):
        complain(problem.what, path=path, value=problem.value, hint=problem.hint)


def variables(text: str) -> list[str]:
    """The variables that ``text`` names; nothing more after one that is not closed."""
    return interpolate.names_or_none(text)


def without_nul(text: str, path: Path, complain: Complain) -> None:
    """A text that the operating system can be given."""
    if "\0" in text:
        complain("a NUL character, which no argument or variable can hold", path=path, value=text)


def unique(names: Sequence[str], path: Path, key: str, complain: Complain) -> None:
    """Ids of a list of tables, each there once."""
    first: dict[str, int] = {}
    for index, each in enumerate(names):
        if each in first:
            hint = f"the first is {spell((*path, first[each]))}"
            complain(f"a second {each!r}", path=(*path, index, key), value=each, hint=hint)
        first.setdefault(each, index)


def words(texts: Sequence[str], path: Path, complain: Complain) -> None:
    """Texts that each say something and that the operating system can be given."""
    for index, text in enumerate(texts):
        filled(text, (*path, index), complain)
        without_nul(text, (*path, index), complain)


def names_once(names: Sequence[str], path: Path, complain: Complain) -> None:
    """Names, each there once."""
    for index, text in enumerate(names):
        name(text, (*path, index), complain)
    for text in repeated(names):
        complain(f"{text!r} stands twice", path=path, value=text)


def repeated(words: Iterable[str]) -> list[str]:
    """The words that stand more than once, in order."""
    return [word for word, times in Counter(words).items() if times > 1]
