"""What a query should answer, worked out slowly from the receipts themselves, without an index."""

import statistics
from collections import defaultdict

from attrs import frozen

from ledger.analysis.currency import CorrectionFact, standings
from ledger.receipt.model import Boot, Correction, Receipt, Trial
from ledger.store.ledger import Ledger


@frozen(kw_only=True)
class Cell:
    """A cell as the reference sees it."""

    value: float
    low: float
    high: float
    n: int


def all_receipts(ledger: Ledger, until: str | None = None) -> dict[str, Receipt]:
    """Every receipt by digest, or those made no later than ``until``."""
    found = {stored.digest: ledger.read(stored.digest) for stored in ledger.walk()}
    return {digest: receipt for digest, receipt in found.items() if until is None or receipt.at <= until}


def struck(receipts: dict[str, Receipt]) -> set[str]:
    """The digests that no longer count, the trials of a struck boot included."""
    facts = [
        CorrectionFact(digest=digest, action=body.action, targets=body.targets, replacements=body.replacements)
        for digest, receipt in receipts.items()
        if isinstance(body := receipt.body, Correction)
    ]
    direct = {item.digest for item in standings(facts)}
    return direct | {d for d, receipt in receipts.items() if isinstance(receipt.body, Trial) and receipt.body.boot in direct}


def by_arm(ledger: Ledger, metric: str, until: str | None = None) -> dict[tuple[str, str, str, bool], Cell]:
    """The cells of ``metric by arm``: by spec, arm, evidence and whether the prefix cache answered."""
    receipts = all_receipts(ledger, until)
    gone = struck(receipts)
    boots: dict[tuple[str, str, str, bool], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for digest, receipt in receipts.items():
        body = receipt.body
        if isinstance(body, Trial) and digest not in gone and metric in body.figures:
            figure = body.figures[metric]
            if figure.value is not None:
                state = figure.conditions.get("prefix_cache", body.conditions.get("prefix_cache", ""))
                key = (body.subject.spec, body.subject.arm, str(body.subject.evidence), state == "hit")
                boots[key][body.boot].append(figure.value)
    return {key: _cell([statistics.median(values) for values in found.values()]) for key, found in boots.items()}


def _cell(values: list[float]) -> Cell:
    return Cell(value=statistics.median(values), low=min(values), high=max(values), n=len(values))


def boots_of(ledger: Ledger) -> list[Boot]:
    """Every boot."""
    return [receipt.body for receipt in all_receipts(ledger).values() if isinstance(receipt.body, Boot)]
