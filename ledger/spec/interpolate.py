"""``${name}`` in the texts of a spec: the only thing that is ever replaced, and never executed.

What it does: replaces variables by their values, lists those that a text names, and can leave the volatile ones as they stand.
What it does not do: evaluate, nest, or read the environment. Rules kept: ``$$`` is a dollar sign; a ``$`` before anything else
than ``{`` or ``$`` stays as it is; braces alone are plain text, since arguments hold JSON; a value is never expanded again.
"""

import re
from collections.abc import Collection, Mapping

from ledger.core.errors import LedgerError, Problem, did_you_mean

_TOKEN = re.compile(r"\$(?:\$|\{(?P<name>[^{}$]*)\}|(?P<open>\{))")
# What only the node knows, and knows anew at each boot: it is no part of a boot's identity.
VOLATILE = ("port", "python", "node.ip", "head.ip", "node.name")
VOLATILE_PREFIX = "file."


class InterpolationError(LedgerError):
    """A text with a variable that is not known, or one that is not closed."""


def is_volatile(name: str) -> bool:
    """Whether a variable may differ from boot to boot of the same plan."""
    return name in VOLATILE or name.startswith(VOLATILE_PREFIX)


def names(text: str) -> list[str]:
    """The variables that ``text`` names, in order.

    Raises:
        InterpolationError: a ``${`` that is not closed.
    """
    found = []
    for match in _TOKEN.finditer(text):
        if match["open"] is not None:
            raise InterpolationError(_unclosed(text))
        if match["name"] is not None:
            found.append(match["name"])
    return found


def names_or_none(text: str) -> list[str]:
    """As :func:`names`, and nothing for a text that is not well formed."""
    return [match["name"] for match in _TOKEN.finditer(text) if match["name"] is not None]


def interpolate(text: str, scope: Mapping[str, str]) -> str:
    """``text`` with every variable replaced and every ``$$`` made a ``$``.

    Raises:
        InterpolationError: a variable that is not in ``scope`` (the nearest one is offered), or a ``${`` that is not closed.
    """
    names(text)
    return _TOKEN.sub(lambda match: "$" if match["name"] is None else _value(text, match["name"], scope), text)


def interpolate_stable(text: str, scope: Mapping[str, str]) -> str:
    """``text`` with the stable variables replaced; volatile ones and ``$$`` stay, so that the result is a template again."""
    names(text)

    def replaced(match: re.Match[str]) -> str:
        name = match["name"]
        if name is None or is_volatile(name):
            return match.group()
        return escape(_value(text, name, scope))

    return _TOKEN.sub(replaced, text)


def escape(text: str) -> str:
    """``text`` such that interpolation gives it back."""
    return text.replace("$", "$$")


def check(text: str, known: Collection[str]) -> list[Problem]:
    """A problem for each different variable of ``text`` that is not among ``known``, and for a ``${`` that is not closed."""
    try:
        wanted = names(text)
    except InterpolationError as error:
        return list(error.problems)
    return [_unknown(text, name, known) for name in dict.fromkeys(wanted) if name not in known]


def _value(text: str, name: str, scope: Mapping[str, str]) -> str:
    if name not in scope:
        raise InterpolationError(_unknown(text, name, scope))
    return scope[name]


def _unknown(text: str, name: str, known: Collection[str]) -> Problem:
    return Problem(what=f"unknown variable ${{{name}}}", value=text, hint=f"{did_you_mean(name, known)} A plain dollar is $$.")


def _unclosed(text: str) -> Problem:
    return Problem(what="a '${' that is not closed by '}'", value=text, hint="write $${ for these two characters themselves")
