"""The closed vocabularies of the glossary, as enumerations.

What it does: gives each word one spelling, in code and on the wire. What it does not do: explain them; that is
``docs/reference/glossary.md``. Rule kept: a value is never renamed, since receipts hold it for ever.
"""

from enum import StrEnum


class Kind(StrEnum):
    """What a receipt records."""

    ATTEMPT = "attempt"
    BOOT = "boot"
    TRIAL = "trial"
    GATE = "gate"
    DECISION = "decision"
    CORRECTION = "correction"
    CLAIM = "claim"
    SERVING = "serving"
    NOTE = "note"


class Evidence(StrEnum):
    """How a figure came to be. Figures of different evidence are never averaged together."""

    MEASURED = "measured"
    STAND_IN = "stand-in"
    REPORTED = "reported"
    IMPORTED = "imported"
    REHEARSED = "rehearsed"


class Role(StrEnum):
    """What an arm is for."""

    BASELINE = "baseline"
    CONTROL = "control"
    CANDIDATE = "candidate"
    DIAGNOSTIC = "diagnostic"


class FieldClass(StrEnum):
    """What a difference in a field means when two boots are compared."""

    IDENTITY = "identity"
    CONTEXT = "context"
    PROVENANCE = "provenance"


class Outcome(StrEnum):
    """How a boot ended its start."""

    READY = "ready"
    FAILED = "failed"
    TIMEOUT = "timeout"
    REFUSED = "refused"
    INTERRUPTED = "interrupted"


class Holds(StrEnum):
    """A gate's verdict."""

    PASS = "pass"
    FAIL = "fail"
    UNKNOWN = "unknown"


class Verdict(StrEnum):
    """What the rule says of an arm."""

    KEEP = "keep"
    REVERT = "revert"
    INCONCLUSIVE = "inconclusive"
    BLOCKED = "blocked"


class CorrectionKind(StrEnum):
    """What a correction does to its targets."""

    SUPERSEDE = "supersede"
    RETRACT = "retract"
    AMEND = "amend"
    CONCERN = "concern"
    EQUIVALENT = "equivalent"
    REINSTATE = "reinstate"


class Better(StrEnum):
    """Which direction of a metric is good."""

    HIGHER = "higher"
    LOWER = "lower"
    NEITHER = "neither"


VOCABULARIES: tuple[type[StrEnum], ...] = (
    Kind,
    Evidence,
    Role,
    FieldClass,
    Outcome,
    Holds,
    Verdict,
    CorrectionKind,
    Better,
)
