"""Instruments by name: the built-in ones, and those of the entry point ``ledger.instruments``.

What it does: finds one by the name that a measure ``uses``. What it does not do: measure. Rules kept: those of
:mod:`ledger.core.plugins`.
"""

from ledger.core.plugins import Plugins
from ledger.instruments.base import Instrument
from ledger.instruments.openai.decode import DecodeInstrument
from ledger.instruments.openai.prefill import PrefillInstrument

INSTRUMENTS: Plugins[Instrument] = Plugins(
    kind=Instrument,  # type: ignore[type-abstract]  # only asked whether something is one
    group="ledger.instruments",
    called="instrument",
    built_in={kind.name: kind for kind in (DecodeInstrument, PrefillInstrument)},
)
names = INSTRUMENTS.names
get = INSTRUMENTS.get
