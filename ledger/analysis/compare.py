"""Whether two boots can be compared, and what the differences between them mean.

What it does: takes the factors of two boots apart by class and says ``same``, ``clean``, ``caveat`` or ``confounded``, or that
they cannot be compared. What it does not do: look at a figure (``diff``). Rules kept: the class of a field, written with it,
decides and nothing else; exactly one identity factor is a clean comparison; two engines have no flag in common, so that where the
engine differs, its launch is part of that one difference; a difference in evidence or in the definition of the measurement
refuses it.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from attrs import frozen

from ledger.core.words import FieldClass
from ledger.receipt.model import Factors

ENGINE = "engine"
# What only the engine reads or is made of; of another engine it can be nothing but something else.
OF_THE_ENGINE = ("args.", "argv.", "env.", "container.", "tree.", "package.", "file.", "manifest.", "image", "rank.", "change")


class Comparability(StrEnum):
    """What a comparison is worth."""

    SAME = "same"
    CLEAN = "clean"
    CAVEAT = "caveat"
    CONFOUNDED = "confounded"
    REFUSED = "refused"


@frozen(kw_only=True)
class FactorChange:
    """One field that differs; a side that does not have it is None."""

    key: str
    kind: FieldClass
    left: str | None
    right: str | None


@frozen(kw_only=True)
class Comparison:
    """The verdict, why, and every difference by class: identity first."""

    verdict: Comparability
    reason: str
    changes: tuple[FactorChange, ...]

    def of(self, kind: FieldClass) -> tuple[FactorChange, ...]:
        """The differences of one class."""
        return tuple(change for change in self.changes if change.kind is kind)


def changes(left: Factors, right: Factors) -> tuple[FactorChange, ...]:
    """Every field that differs, identity first, then context, then provenance, each in key order."""
    found: list[FactorChange] = []
    for kind in FieldClass:
        ours: Mapping[str, str] = getattr(left, kind.value)
        theirs: Mapping[str, str] = getattr(right, kind.value)
        found += [
            FactorChange(key=key, kind=kind, left=ours.get(key), right=theirs.get(key))
            for key in sorted({*ours, *theirs})
            if ours.get(key) != theirs.get(key)
        ]
    return tuple(found)


def compare(left: Factors, right: Factors, *, refusals: Sequence[str] = (), equivalent: str | None = None) -> Comparison:
    """The comparison of two boots.

    ``refusals`` are reasons outside the factors that forbid it; ``equivalent`` is why a correction says that both have the same
    configuration, and then no identity factor counts as a difference.
    """
    found = changes(left, right)
    identity = [change.key for change in found if change.kind is FieldClass.IDENTITY]
    context = [change.key for change in found if change.kind is FieldClass.CONTEXT]
    if ENGINE in identity:
        context = [key for key in context if not key.startswith(OF_THE_ENGINE)]
    verdict, reason = _verdict([] if equivalent else _apart(identity), context)
    if equivalent and identity:
        reason = f"{reason}, as a correction says of {_listed(identity)}: {equivalent}"
    if refusals:
        verdict, reason = Comparability.REFUSED, "; ".join(refusals)
    return Comparison(verdict=verdict, reason=reason, changes=found)


def _apart(identity: Sequence[str]) -> list[str]:
    """The identity factors that can differ without one another: another engine is one difference, whatever its launch."""
    if ENGINE not in identity:
        return list(identity)
    own = [key for key in identity if key.startswith(OF_THE_ENGINE)]
    named = f"{ENGINE} (and {len(own)} settings of its launch)" if own else ENGINE
    return [named if key == ENGINE else key for key in identity if key not in own]


def _verdict(identity: Sequence[str], context: Sequence[str]) -> tuple[Comparability, str]:
    if len(identity) > 1:
        return Comparability.CONFOUNDED, f"{_listed(identity)} differ: a change of a figure cannot be given to any one of them"
    said = f"{identity[0]} alone differs" if identity else "the same configuration"
    if context:
        return Comparability.CAVEAT, f"{said}, but not in the same context: {_listed(context)}"
    return (Comparability.CLEAN if identity else Comparability.SAME), said


def _listed(keys: Sequence[str], most: int = 6) -> str:
    shown = ", ".join(keys[:most])
    return f"{shown} and {len(keys) - most} more" if len(keys) > most else shown
