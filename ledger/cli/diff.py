"""``ledger diff A B``: what differed, what moved, and what the comparison is worth.

What it does: shows the differences by class, the movement of every common metric against the noise band, and the verdict. What
it does not do: judge by the rule of a spec. Rules kept: exit 0 for the same or a clean comparison, 1 for one that does not
hold; marks of both sides are printed with the verdict.
"""

from functools import partial
from typing import Any

import click
from rich.text import Text

from ledger.analysis.compare import Comparability, Comparison, changes, compare
from ledger.analysis.movement import Direction, Movement, movements
from ledger.cli.complete import complete_name
from ledger.cli.explained import counting_data, isolated_data, show_counting, show_explained, show_isolated
from ledger.cli.screen import show_json, show_line, show_remark, show_table
from ledger.cli.state import State, json_option, pass_state
from ledger.core.digest import short
from ledger.core.errors import ExitCode
from ledger.core.text import one_line
from ledger.core.words import FieldClass
from ledger.publish.formats import number
from ledger.query.alike import why_alike
from ledger.query.claims import unfit_for
from ledger.query.counting import counting, is_headline
from ledger.query.explain import explain
from ledger.query.index import open_index
from ledger.query.isolate import isolate
from ledger.query.language import parse
from ledger.query.names import resolve
from ledger.query.sides import SideOf, arm_side, noise, side
from ledger.store.ledger import Ledger
from ledger.store.revision import receipts_at

STYLES = {Direction.BETTER: "green", Direction.WORSE: "red", Direction.MOVED: "yellow"}
HOLDS = (Comparability.SAME, Comparability.CLEAN)


@click.command()
@click.argument("left", metavar="A", shell_complete=complete_name)
@click.argument("right", metavar="B", shell_complete=complete_name)
@click.option(
    "--of", "question", help="A and B are moments (dates, times, git revisions): say why this question's answer changed."
)
@click.option("--all", "show_all", is_flag=True, help="Show every metric and every provenance field.")
@json_option
@pass_state
def diff(state: State, left: str, right: str, question: str | None, show_all: bool, as_json: bool) -> int:
    """Say what differed between A and B, and what moved.

    A and B are arms (ARM or SPEC:ARM: all boots of its latest configuration), or single receipts: a digest's first digits,
    ARM/MEASURE, or ARM~0 for an arm's latest boot; ~1 is the one before.
    Exit code 0 when the comparison is clean (or both are the same), 1 when it is not.

    \b
    ledger diff control threads-2
    ledger diff 2026-10-19 2026-10-20 --of "prefill@93335 of C / prefill@93335 of B"
    """
    ledger = Ledger.find(state.directory)
    if question is not None:
        with open_index(ledger) as connection:
            explained = explain(connection, parse(question), left, right, partial(receipts_at, ledger))
        show_explained(explained, question, as_json)
        return ExitCode.YES
    with open_index(ledger) as connection:
        ours, theirs = (arm_side(connection, name) or side(connection, resolve(connection, name)) for name in (left, right))
        bands = noise(connection, [ours.config, theirs.config], ours.evidence) if ours.evidence == theirs.evidence else {}
        unfit = unfit_for(connection, [*ours.boots, ours.digest, *theirs.boots, theirs.digest], "comparison")
        alike = why_alike(connection, ours.boots, theirs.boots)
        alone = isolate(connection, ours, changes(ours.factors, theirs.factors))
        both = [name for name in ours.samples if name in theirs.samples and (show_all or is_headline(name))]
        ways = counting(ledger, connection, ours, theirs, both)
    found = compare(ours.factors, theirs.factors, refusals=[*refusals(ours, theirs), *unfit], equivalent=alike)
    moved = movements(ours.samples, theirs.samples, bands)
    if as_json:
        more = {"isolated": [isolated_data(item) for item in alone], "counting": [counting_data(item) for item in ways]}
        show_json({**as_data(ours, theirs, found, moved), **more})
    else:
        _show(ours, theirs, found, moved, show_all)
        if len(alone) > 1:
            show_isolated(alone, ours.label)
        show_counting(ways)
    return ExitCode.YES if found.verdict in HOLDS else ExitCode.NO


@click.command(name="compare")
@click.argument("left", metavar="A", shell_complete=complete_name)
@click.argument("right", metavar="B", shell_complete=complete_name)
@json_option
@pass_state
def compare_command(state: State, left: str, right: str, as_json: bool) -> int:
    """Say whether A and B can be compared: same, clean, caveat, confounded or refused, and the factors.

    A and B are named as in `ledger diff`. Exit code 0 when the comparison is clean (or both are the same), 1 when it is not.
    """
    ledger = Ledger.find(state.directory)
    with open_index(ledger) as connection:
        ours, theirs = (arm_side(connection, name) or side(connection, resolve(connection, name)) for name in (left, right))
        unfit = unfit_for(connection, [*ours.boots, ours.digest, *theirs.boots, theirs.digest], "comparison")
        alike = why_alike(connection, ours.boots, theirs.boots)
    found = compare(ours.factors, theirs.factors, refusals=[*refusals(ours, theirs), *unfit], equivalent=alike)
    if as_json:
        show_json({"verdict": found.verdict, "reason": found.reason, "factors": factors_data(found)})
    else:
        show_line(f"{found.verdict}: {found.reason}", "green" if found.verdict in HOLDS else "yellow")
    return ExitCode.YES if found.verdict in HOLDS else ExitCode.NO


def factors_data(found: Comparison) -> dict[str, list[dict[str, str | None]]]:
    """The differences by class, as plain data."""
    return {
        kind.value: [{"key": change.key, "a": change.left, "b": change.right} for change in found.of(kind)] for kind in FieldClass
    }


def refusals(left: SideOf, right: SideOf) -> list[str]:
    """What forbids the comparison outright, whatever the factors say."""
    said = []
    if left.evidence != right.evidence:
        said.append(f"the evidence differs: {left.evidence} and {right.evidence}")
    for measure in sorted(set(left.definitions) & set(right.definitions)):
        if left.definitions[measure] != right.definitions[measure]:
            said.append(f"{measure} was measured as {left.definitions[measure]} and as {right.definitions[measure]}")
    return said


def marks(item: SideOf) -> list[str]:
    """What must be said of a side beside its figures."""
    said = [item.evidence]
    if item.agreement != "agrees":
        said.append(f"config {item.agreement}")
    return said + ([f"{item.struck}: struck"] if item.struck else [])


def _show(left: SideOf, right: SideOf, found: Comparison, moved: list[Movement], show_all: bool) -> None:
    for name, item in (("A", left), ("B", right)):
        what = f"{len(item.boots)} boots" if item.kind == "arm" else f"{item.kind} {short(item.digest)}"
        show_line(f"{name}  {item.label}  {what}  [{', '.join(marks(item))}]", "bold")
    for kind in FieldClass:
        listed = found.of(kind)
        if kind is FieldClass.PROVENANCE and not show_all:
            if listed:
                show_remark(f"{len(listed)} provenance fields differ too; --all shows them")
            continue
        rows = [[change.key, _shown(change.left), _shown(change.right)] for change in listed]
        if rows:
            show_table([kind.value, "A", "B"], rows)
    kept = [item for item in moved if show_all or "/" not in item.metric]
    if kept:
        show_table(
            ["metric", "A", "B", "change", "noise band", "n", ""], [_row(item) for item in kept], right=["A", "B", "change"]
        )
    if len(kept) < len(moved):
        show_remark(f"{len(moved) - len(kept)} more metrics, by part; --all shows them")
    if not moved:
        show_remark("no metric is on both sides")
    style = "green" if found.verdict in HOLDS else "yellow"
    show_line(f"{found.verdict}: {found.reason}", style)


def _row(item: Movement) -> list[str | Text]:
    band = f"±{item.band:.1%}" if item.band is not None else "unknown"
    change = f"{item.change:+.1%}" if item.change is not None else "–"
    return [
        item.metric,
        f"{number(item.left)} {item.unit}",
        f"{number(item.right)} {item.unit}",
        change,
        band,
        f"{item.n_left} and {item.n_right} boots",
        Text(item.direction.value, style=STYLES.get(item.direction, "")),
    ]


def _shown(value: str | None) -> str:
    return "(none)" if value is None else one_line(value, 60)


def as_data(left: SideOf, right: SideOf, found: Comparison, moved: list[Movement]) -> dict[str, Any]:
    """The diff as plain data, for ``--json``."""
    return {
        "a": _side_data(left),
        "b": _side_data(right),
        "verdict": found.verdict,
        "reason": found.reason,
        "differences": factors_data(found),
        "metrics": [
            {
                "metric": item.metric,
                "unit": item.unit,
                "a": item.left,
                "b": item.right,
                "change": item.change,
                "noise_band": item.band,
                "n_a": item.n_left,
                "n_b": item.n_right,
                "direction": item.direction,
            }
            for item in moved
        ],
    }


def _side_data(item: SideOf) -> dict[str, Any]:
    return {
        "receipt": item.digest,
        "kind": item.kind,
        "boots": list(item.boots),
        "label": item.label,
        "fingerprint": item.fingerprint,
        "marks": marks(item),
    }
