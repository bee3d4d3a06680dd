"""Backends by name: the built-in ones, and those that other packages add through the entry point ``ledger.backends``.

What it does: finds one by the name that a site says. What it does not do: load what nobody asked for. Rule kept: a built-in
name cannot be taken over by another package.
"""

from collections.abc import Mapping
from importlib.metadata import entry_points

from ledger.backends.base import Backend
from ledger.backends.process import ProcessBackend
from ledger.core.errors import Problem, UsageError, did_you_mean

GROUP = "ledger.backends"
BUILT_IN: Mapping[str, type[Backend]] = {ProcessBackend.name: ProcessBackend}


def names() -> list[str]:
    """Every backend that could be asked for."""
    return sorted({*BUILT_IN, *(point.name for point in entry_points(group=GROUP))})


def get(name: str) -> Backend:
    """The backend called ``name``.

    Raises:
        UsageError: there is none; the nearest name is offered.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]()
    for point in entry_points(group=GROUP, name=name):
        found = point.load()()
        if isinstance(found, Backend):
            return found
        raise UsageError(f"the entry point {GROUP}:{name} is not a Backend")
    raise UsageError(Problem(what="unknown backend", value=name, hint=did_you_mean(name, names())))
