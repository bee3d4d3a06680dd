"""Old receipts, read as new ones.

What it does: lifts the wire form of any version ever written to the current one, step by step. What it does not do: rewrite a
file; the bytes on disk stay what they were. Rule kept: one step for each version, and one receipt of each version in
``tests/golden/``. Version 1 is the first, so there is no step yet.
"""

from collections.abc import Callable, Mapping
from typing import Any

Step = Callable[[Mapping[str, Any]], Mapping[str, Any]]

STEPS: Mapping[int, Step] = {}


def upcast(wire: Mapping[str, Any]) -> Mapping[str, Any]:
    """``wire`` in the current format; a version without a step is returned as it is."""
    seen: set[int] = set()
    while True:
        version = wire.get("ledger")
        if not isinstance(version, int) or version in seen or version not in STEPS:
            return wire
        seen.add(version)
        wire = STEPS[version](wire)
