"""What an extractor is: a tool's result file to figures.

What it does: defines the records that an extractor gives and the abstract :class:`Extractor`, with the few ways in which
figures are made of other tools' numbers. What it does not do: read files (``document``) or write receipts (``cli``). Rules
kept: a figure keeps the tool's unit and is named after the tool, so that two tools' definitions are never one metric; a number
that is not there is absent with a reason, never zero; a quantile of few samples says so; the tool's own warnings are carried
over.
"""

import math
import re
import statistics
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from attrs import evolve, field, frozen

from ledger.core.words import Better
from ledger.instruments.extract.document import Document, ExtractError
from ledger.receipt.model import Figure, Requests

FEW = 100
NOT_THERE = "the file does not say"
ALL_FAILED = "no request succeeded"
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")
MAX_NAME = 80


@frozen(kw_only=True)
class Extracted:
    """One run of the tool: a trial. ``parameters`` are what the file says of how it was run."""

    measure: str
    figures: Mapping[str, Figure]
    requests: Requests
    parameters: Mapping[str, Any] = field(factory=dict)
    conditions: Mapping[str, str] = field(factory=dict)
    marks: tuple[str, ...] = ()
    seconds: float | None = None


@frozen(kw_only=True)
class Extraction:
    """What a file holds: the tool, its version and definitions, its runs, and what it warned of.

    ``definitions`` says, for each kind of figure, what the tool means by it. ``command`` is the tool's own, where it is told.
    """

    tool: str
    version: str | None
    trials: tuple[Extracted, ...]
    definitions: Mapping[str, str] = field(factory=dict)
    warnings: tuple[str, ...] = ()
    command: str | None = None
    model: str | None = None
    label: str | None = None


class Extractor(ABC):
    """Reads one format. ``name`` is the tool's, ``definitions`` says what it means by its figures, by their names.

    ``definition_version`` counts up when a figure's meaning changes here.
    """

    name: str
    definitions: Mapping[str, str] = MappingProxyType({})
    definition_version: int = 1

    def recognises(self, document: Document) -> bool:
        """Whether the file is of this format, by its keys. Never raises."""
        return self._recognises(document)

    def extract(self, document: Document) -> Extraction:
        """The figures of a file that :meth:`recognises` took.

        Raises:
            ExtractError: it has not what files of the format have.
        """
        try:
            found = self._extract(document)
        except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
            what = f"not a whole result of {self.name}: {type(error).__name__}: {error}"
            raise ExtractError(what, hint="the file may be cut, or of a version that is not known here") from error
        if not any(trial.figures for trial in found.trials):
            raise ExtractError(f"a result of {self.name} without a single figure")
        return evolve(found, definitions=self.definitions, warnings=(*document.notes, *found.warnings))

    @abstractmethod
    def _recognises(self, document: Document) -> bool: ...

    @abstractmethod
    def _extract(self, document: Document) -> Extraction: ...


def has(value: Any, *keys: str) -> bool:
    """Whether ``value`` is a table with all of these keys."""
    return isinstance(value, Mapping) and all(key in value for key in keys)


def number(value: Any) -> float | None:
    """A finite number, also one that is written as text; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def whole(value: Any) -> int | None:
    """A whole number that is not negative; None for anything else."""
    found = number(value)
    return int(found) if found is not None and found >= 0 and found == int(found) else None


def text(value: Any) -> str | None:
    """Text that is not empty; None for anything else."""
    return value if isinstance(value, str) and value.strip() else None


def name_of(value: Any) -> str:
    """Text as a part of a metric's name: letters, digits, dots, dashes and underscores."""
    return _NOT_IN_A_NAME.sub("-", str(value)).strip("-")[:MAX_NAME] or "unnamed"


def single(value: Any, unit: str, better: Better = Better.NEITHER, *, absent: str = NOT_THERE, **rest: Any) -> Figure:
    """A figure of one number; absent, with the reason, when it is none."""
    found = number(value)
    if found is None:
        return Figure(unit=unit, better=better, absent=absent)
    return Figure(unit=unit, better=better, value=found, **rest)


def samples(values: Sequence[Any], unit: str, better: Better = Better.NEITHER, *, absent: str = NOT_THERE) -> Figure:
    """The median of a tool's own samples, with all of them."""
    found = [each for value in values if (each := number(value)) is not None]
    if not found:
        return Figure(unit=unit, better=better, absent=absent)
    return Figure(
        unit=unit,
        better=better,
        value=statistics.median(found),
        n=len(found),
        statistic="median",
        low=min(found),
        high=max(found),
        values=tuple(found),
    )


def distribution(name: str, stats: Mapping[str, Any], unit: str, better: Better, *, n: int | None) -> dict[str, Figure]:
    """A tool's summary of many samples: the median by this name (else the mean), the rest as ``name/mean``, ``name/p99``, ….

    ``stats`` has the tool's numbers by ``median``, ``mean``, ``p90``, ``min``, ``max``.
    """
    found = {key: each for key, value in stats.items() if (each := number(value)) is not None}
    head = next((key for key in ("median", "mean") if key in found), None)
    if head is None:
        return {name: Figure(unit=unit, better=better, absent=NOT_THERE)}
    low, high = found.get("min"), found.get("max")
    figures = {name: Figure(unit=unit, better=better, value=found[head], n=n, statistic=head, low=low, high=high)}
    for key, value in found.items():
        if key not in (head, "min", "max"):
            figures[f"{name}/{key}"] = Figure(unit=unit, better=better, value=value, n=n, statistic=key, marks=_few(key, n))
    return figures


def _few(statistic: str, n: int | None) -> tuple[str, ...]:
    """A mark on a high quantile of few samples, which is the largest of them or beside it."""
    if n is None or n >= FEW or statistic not in ("p95", "p99", "p999"):
        return ()
    return (f"{statistic} of {n} samples",)


def counted(*, ok: Any, failed: Any = 0, cancelled: Any = 0, why: str = "told by the tool") -> Requests:
    """Request counts as the tool tells them; what it does not tell is zero."""
    good, bad, gone = (whole(value) or 0 for value in (ok, failed, cancelled))
    return Requests(launched=good + bad + gone, ok=good, failed=bad, cancelled=gone, reasons={why: bad} if bad else {})
