"""A ledger with one of each thing that verify reads."""

import pytest

from ledger.core.words import CorrectionKind
from ledger.receipt.model import Correction, Note
from ledger.store.ledger import Ledger
from tests.builder import Builder


@pytest.fixture
def whole(ledger: Ledger, build: Builder) -> Ledger:
    """A ledger of two attempts, two boots, two trials, a correction and a note."""
    _, first = build.arm("a", {"C1": 1.5, "C6": 6.0, "ttft@C6": 0.1})
    _, second = build.arm("b", {"C1": 1.25, "C6": 7.0})
    by = "A Tester"
    build.writer.record(
        Correction(
            action=CorrectionKind.SUPERSEDE, targets=(first,), replacements=(second,), reason="it was the wrong one", by=by
        )
    )
    build.writer.record(Note(text="seen", by=by, about=(first, second)))
    return ledger
