"""Modules that are imported when something of them is first asked for.

What it does: stands in for a module whose import costs more than most runs of a command gain from it (the decoder of receipts
costs a query 40 ms, and a query over a current index decodes none). What it does not do: hide an import from the floor plan:
beside each use the same module is imported under ``TYPE_CHECKING``, which types it, and which the architecture test reads.
Rules kept: every access goes through the import system, so two threads may be the first at once, and what a test puts in the
place of a function is seen. Not for loops over many small calls: an access costs about a microsecond.
"""

from importlib import import_module
from typing import Any


class Late:
    """A module by its full name, imported at the first access to an attribute of it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)
