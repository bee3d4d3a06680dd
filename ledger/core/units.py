"""Quantities written as people write them: ``"100 GiB"``, ``"120 s"``, ``"2 %"``, ``"500 tok/s"``.

What it does: parses them to a number in the base unit of their dimension, and formats that number again. What it does not do:
convert between dimensions. Rule kept: a quantity without a unit is a plain count; an unknown unit is an error, never a guess.
"""

import math
import re

from attrs import frozen

from ledger.core.errors import LedgerError, Problem, did_you_mean

# unit -> (dimension, size in the dimension's base unit); the first unit of size 1 is the base.
UNITS: dict[str, tuple[str, float]] = {
    "": ("count", 1),
    "B": ("bytes", 1),
    "KiB": ("bytes", 2**10),
    "MiB": ("bytes", 2**20),
    "GiB": ("bytes", 2**30),
    "TiB": ("bytes", 2**40),
    "kB": ("bytes", 1e3),
    "MB": ("bytes", 1e6),
    "GB": ("bytes", 1e9),
    "TB": ("bytes", 1e12),
    "ns": ("time", 1e-9),
    "us": ("time", 1e-6),
    "ms": ("time", 1e-3),
    "s": ("time", 1),
    "min": ("time", 60),
    "h": ("time", 3600),
    "%": ("ratio", 0.01),
    "ratio": ("ratio", 1),
    "tok/s": ("rate", 1),
    "tokens": ("tokens", 1),
    "degC": ("temperature", 1),
    "MHz": ("frequency", 1e6),
    "GHz": ("frequency", 1e9),
    "W": ("power", 1),
}
_QUANTITY = re.compile(r"\s*(?P<number>[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)\s*(?P<unit>\S*)\s*")


@frozen(kw_only=True)
class Quantity:
    """A number in the base unit of its dimension, with the unit that it was written in."""

    number: float
    dimension: str
    unit: str

    def __str__(self) -> str:
        return f"{self.number / UNITS[self.unit][1]:.12g} {self.unit}".strip()


def parse(text: str | float, *, dimension: str | None = None, default_unit: str = "") -> Quantity:
    """The quantity in ``text``; a bare number takes ``default_unit``.

    Raises:
        LedgerError: no finite number, an unknown unit, or a unit of another dimension than the one asked for.
    """
    if isinstance(text, bool):
        raise LedgerError(Problem(what="expected a quantity", value=str(text)))
    match = _QUANTITY.fullmatch(str(text))
    if match is None:
        raise LedgerError(Problem(what="expected a number and a unit", value=str(text), hint='write it as "100 GiB" or "30 s"'))
    unit = match["unit"] or default_unit
    if unit not in UNITS:
        raise LedgerError(Problem(what=f"unknown unit {unit!r}", value=str(text), hint=did_you_mean(unit, filter(None, UNITS))))
    kind, size = UNITS[unit]
    if dimension is not None and kind != dimension:
        wanted = ", ".join(name for name, (of, _) in UNITS.items() if of == dimension)
        raise LedgerError(Problem(what=f"expected a {dimension}, not a {kind}", value=str(text), hint=f"units: {wanted}"))
    number = float(match["number"]) * size
    if not math.isfinite(number):
        raise LedgerError(Problem(what="the number is too large", value=str(text)))
    return Quantity(number=number, dimension=kind, unit=unit)
