"""Parameters of an instrument as a table: key, default, and what a value must be.

What it does: finds every mistake in given parameters and fills the rest in. What it does not do: know any one instrument.
Rules kept: an unknown key is a mistake that names the nearest known one; filling is idempotent, so that what a receipt keeps
can be given again; an optional parameter that was not given stays away.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import frozen

from ledger.core import units
from ledger.core.errors import LedgerError, did_you_mean, shorten
from ledger.instruments.base import ParameterProblem

Check = Callable[[Any], str | None]
"""What is wrong with a value, ``None`` when nothing is; a way out may follow after ``; ``."""


@frozen(kw_only=True)
class Parameter:
    """One parameter: its default (None for an optional one), its check, and what it is for."""

    default: Any
    check: Check
    about: str


def problems(known: Mapping[str, Parameter], given: Mapping[str, Any]) -> list[ParameterProblem]:
    """Every mistake in ``given``."""
    found = []
    for key, value in given.items():
        if key not in known:
            found.append(ParameterProblem(key=key, what="unknown parameter", hint=did_you_mean(key, known)))
        elif wrong := known[key].check(value):
            what, _, hint = wrong.partition("; ")
            found.append(ParameterProblem(key=key, what=what, value=shorten(value), hint=hint or None))
    return found


def filled(known: Mapping[str, Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """``given`` with the defaults of the parameters that are not there."""
    values = {key: given.get(key, parameter.default) for key, parameter in known.items()}
    return {key: value for key, value in values.items() if value is not None}


def whole(low: int, high: int) -> Check:
    """A whole number from ``low`` to ``high``."""

    def check(value: Any) -> str | None:
        good = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
        return None if good else f"expected a whole number from {low} to {high}"

    return check


def flag(value: Any) -> str | None:
    """True or false."""
    return None if isinstance(value, bool) else "expected true or false"


def one_of(words: Sequence[str]) -> Check:
    """One of ``words``."""

    def check(value: Any) -> str | None:
        if isinstance(value, str) and value in words:
            return None
        return f"expected one of the known words; {did_you_mean(str(value), words)}"

    return check


def list_of(item: Check) -> Check:
    """A list of distinct values, at least one, each of which ``item`` accepts."""

    def check(value: Any) -> str | None:
        if not isinstance(value, list | tuple) or not value:
            return "expected a list of at least one value"
        for each in value:
            if wrong := item(each):
                return f"{shorten(each)}: {wrong}"
        return None if len(set(value)) == len(value) else "a value stands in the list twice"

    return check


def table_without(taken: Sequence[str]) -> Check:
    """A table that sets none of the keys in ``taken``."""

    def check(value: Any) -> str | None:
        if not isinstance(value, Mapping):
            return "expected a table"
        both = sorted(set(value) & set(taken))
        return f"{', '.join(both)} is set by the instrument itself" if both else None

    return check


def duration(value: Any) -> str | None:
    """A time with its unit, above zero."""
    try:
        found = units.parse(value, dimension="time") if isinstance(value, str) else None
    except LedgerError as error:
        return error.problems[0].what
    return None if found is not None and found.number > 0 else 'expected a time above zero; write it as "30 s"'


def digest_text(value: Any) -> str | None:
    """A digest as text."""
    return None if isinstance(value, str) and value.startswith("sha256:") else "expected a digest, sha256:<hex>"
