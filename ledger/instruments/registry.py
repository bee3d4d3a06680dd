"""Instruments by name: the built-in ones, and those that other packages add through the entry point ``ledger.instruments``.

What it does: finds one by the name that a measure ``uses``. What it does not do: load what nobody asked for. Rule kept: a
built-in name cannot be taken over by another package.
"""

from collections.abc import Mapping
from importlib.metadata import entry_points

from ledger.core.errors import Problem, UsageError, did_you_mean
from ledger.instruments.base import Instrument
from ledger.instruments.openai.decode import DecodeInstrument
from ledger.instruments.openai.prefill import PrefillInstrument

GROUP = "ledger.instruments"
BUILT_IN: Mapping[str, type[Instrument]] = {kind.name: kind for kind in (DecodeInstrument, PrefillInstrument)}


def names() -> list[str]:
    """Every instrument that could be asked for."""
    return sorted({*BUILT_IN, *(point.name for point in entry_points(group=GROUP))})


def get(name: str) -> Instrument:
    """The instrument called ``name``.

    Raises:
        UsageError: there is none; the nearest name is offered.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]()
    for point in entry_points(group=GROUP, name=name):
        found = point.load()()
        if isinstance(found, Instrument):
            return found
        raise UsageError(f"the entry point {GROUP}:{name} is not an Instrument")
    raise UsageError(Problem(what="unknown instrument", value=name, hint=did_you_mean(name, names())))
