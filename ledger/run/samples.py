"""What a gate's reading is made of.

What it does: the records between whoever takes a reading and the gate that judges it. What it does not do: read or judge. Rule
kept: a value and the reason for its absence exclude each other.
"""

from attrs import frozen

from ledger.run.evidence import Piece


@frozen(kw_only=True)
class Sample:
    """One value of a reading, and ``where`` it was read (a node, a trial); without a value, ``why``."""

    where: str = ""
    value: float | None = None
    why: str = ""


@frozen(kw_only=True)
class Taken:
    """A reading: its samples, the evidence that they were made from, and what a person should know of it."""

    samples: tuple[Sample, ...] = ()
    pieces: tuple[Piece, ...] = ()
    reason: str = ""
