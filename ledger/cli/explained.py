"""How an explanation looks: what moved a figure between two moments, and which factor the ledger can isolate.

What it does: shows them as tables or data. What it does not do: work them out (``query``). Rules kept: what cannot be isolated is
said, with the run that would isolate it; where the order of changes matters, the spread over orders is shown.
"""

from collections.abc import Sequence
from typing import Any

from attrs import asdict

from ledger.analysis.attribute import Share
from ledger.analysis.counting import BOOTS, REST, SHOTS, STATISTIC
from ledger.cli.screen import show_json, show_line, show_table
from ledger.core.metrics import describe, sort_key
from ledger.publish.formats import number
from ledger.query.counting import Counting
from ledger.query.explain import Explained
from ledger.query.isolate import Isolated

HEADLINES = ("C", "prefill")
SHOWN = 4


def show_explained(found: Explained, question: str, as_json: bool) -> None:
    """What each session and correction between two moments did to the answer."""
    done = found.attribution
    if as_json:
        show_json(
            {"question": question, "before": done.before, "after": done.after, "exact": done.exact, "changes": _data(found)}
        )
        return
    show_line(f"{question}: {number(done.before)} → {number(done.after)}", "bold")
    rows = [
        [found.changes[share.name].words, _move(share.mean), _order(share), _move(share.alone), _move(share.last)]
        for share in done.shares
    ]
    show_table(
        ["what happened", "moves it by", "over orders", "alone", "as the last"],
        rows,
        right=["moves it by", "alone", "as the last"],
    )
    if not done.exact:
        show_line(f"{len(done.shares)} changes: not every order was tried, but 200 drawn from a seed")


def show_isolated(found: Sequence[Isolated], label: str) -> None:
    """What each differing factor does alone, where a boot shows it."""
    for item in found:
        change = f"{item.change.key} {item.change.left or '(none)'} → {item.change.right or '(none)'}"
        if not item.boots:
            show_line(f"not isolated: {change}; one boot of {label} with this alone would")
            continue
        names = sorted((name for name in item.moved if "/" not in name), key=sort_key)
        first = [name for name in names if (family := describe(name).family) is not None and family.name in HEADLINES]
        moves = ", ".join(f"{name} {item.moved[name][1] / item.moved[name][0] - 1:+.1%}" for name in first[:SHOWN])
        show_line(f"isolated: {change} alone: {moves or 'no common metric'} ({len(item.boots)} boots)")


def show_counting(found: Sequence[Counting]) -> None:
    """How much of each change is how it was counted, and what its samples cannot tell apart."""
    for item in found:
        done = item.attribution
        parts = [_part(share, item) for share in done.shares]
        show_line(f"counted otherwise: {item.metric} {number(done.before)} → {number(done.after)}: {'; '.join(parts)}")


def _part(share: Share, item: Counting) -> str:
    words = {
        BOOTS: f"{item.right.boots} boots in place of {item.left.boots}",
        SHOTS: f"{item.right.shots} shots in place of {item.left.shots}",
        STATISTIC: f"the {item.right.statistic} in place of the {item.left.statistic}",
        REST: "the rest",
    }
    order = "" if share.commutes else f" ({share.low:+.4g} … {share.high:+.4g} over orders)"
    told = f"{words[share.name]} {_move(share.mean)}{order}"
    # Neither by itself nor as the last one: the samples of one side do not allow it.
    return told if share.alone is not None or share.last is not None else f"{words[share.name]} cannot be isolated"


def counting_data(item: Counting) -> dict[str, Any]:
    """How a metric was counted on both sides, as plain data."""
    return {
        "metric": item.metric,
        "a": asdict(item.left),
        "b": asdict(item.right),
        "before": item.attribution.before,
        "after": item.attribution.after,
        "parts": [asdict(share) for share in item.attribution.shares],
    }


def isolated_data(item: Isolated) -> dict[str, Any]:
    """An isolated factor as plain data."""
    return {
        "key": item.change.key,
        "a": item.change.left,
        "b": item.change.right,
        "boots": list(item.boots),
        "moved": {name: {"a": before, "alone": after} for name, (before, after) in item.moved.items()},
    }


def _data(found: Explained) -> list[dict[str, Any]]:
    return [
        {
            "name": share.name,
            "what": found.changes[share.name].words,
            "mean": share.mean,
            "low": share.low,
            "high": share.high,
            "alone": share.alone,
            "last": share.last,
        }
        for share in found.attribution.shares
    ]


def _move(value: float | None) -> str:
    return f"{value:+.4g}" if value is not None else "no value"


def _order(share: Share) -> str:
    return "any" if share.commutes else f"{share.low:+.4g} … {share.high:+.4g}"
