"""Declarative experiment specs and a ledger of receipts.

A TOML spec says what is asked and what must be true; a runner does it; every outcome becomes an immutable, content-addressed
receipt in git; queries read what is true now or was true on a day; a correction supersedes without erasing. The rooms of the
package, and which may import which, are drawn in ``docs/explanation/floor-plan.md`` and held by ``tests/test_architecture.py``.
"""

__version__ = "0.1.0"
