"""One receipt as text for people.

What it does: prints what a receipt of any kind says, with its marks, links and blobs. What it does not do: find or judge it.
Rules kept: everything in it passes as text from outside; beside every figure stand its n, spread, evidence and marks, the same
marks that a query prints, and nothing turns one off.
"""

from collections.abc import Iterator, Mapping, Sequence

from ledger.cli.screen import show_line, show_remark, show_table
from ledger.core.digest import short
from ledger.core.metrics import sort_key
from ledger.core.words import FieldClass
from ledger.publish.formats import DASH, number
from ledger.query.ask import marks_of
from ledger.query.standing import Standing
from ledger.receipt.model import Attempt, Boot, Claim, Decision, Figure, Foreign, Gate, Receipt, Serving, Trial, blobs, links

AGREES = "agrees"
LOG_LINES = 20
LINKS_SHOWN = 8
# What a body says in a word or a sentence, in the order in which people want to know it.
PLAIN = (
    "name",
    "expression",
    "says",
    "outcome",
    "verdict",
    "holds",
    "text",
    "note",
    "action",
    "code",
    "scope",
    "reason",
    "by",
    "control",
    "measure",
    "seconds",
)


def show_receipt(digest: str, receipt: Receipt, standing: Standing, *, show_all: bool) -> None:
    """Print a receipt; ``show_all`` prints every figure and link, not just the headlines."""
    show_line(f"{receipt.kind} {short(digest, 16)}", "bold")
    show_line(f"  {receipt.at}, {receipt.session} no. {receipt.chain.n}, {receipt.tool.name} {receipt.tool.version}")
    body = receipt.body
    subject = getattr(body, "subject", None)
    if subject is not None:
        show_line(f"  {subject.spec}: arm {subject.arm} ({subject.role}) on lane {subject.lane}, evidence {subject.evidence}")
    for field in PLAIN:
        value = getattr(body, field, None)
        if value not in (None, "", ()):
            show_line(f"  {field}: {value}")
    match body:
        case Attempt():
            _show_attempt(body)
        case Boot():
            _show_boot(body)
        case Trial():
            _show_trial(body, standing, show_all)
        case Decision():
            _show_decision(body)
        case Claim():
            show_line(f"  the ledger said: {number(body.value)} {body.unit}, {body.orientation}, {body.figure_evidence}")
        case Gate():
            show_line(f"  gate: {body.gate} v{body.version}, {body.when}")
            show_line(f"  value: {body.value or DASH}, limit: {body.limit or DASH}")
        case Serving():
            show_line(f"  lane {body.lane}: {body.state} since {body.since}, evidence {body.known_as}")
            show_line(f"  arm {body.arm or DASH} on {', '.join(body.nodes) or DASH}, port {body.port or DASH}")
        case Foreign():
            show_line("  a kind that this version has no words for; --json shows all of it")
    _show_links(receipt, show_all)
    for item in standing.strikes:
        of = "" if item.of == digest else f" its boot {short(item.of)}"
        show_line(f"struck:{of} {item.action} by {short(item.correction)}: {item.reason}", "yellow")


def _show_attempt(body: Attempt) -> None:
    show_line(f"  attempt {body.number}, boot {body.position} of {body.of} that were planned")
    show_line(f"  spec: {body.spec.name}, site: {body.site.name}")


def _show_boot(body: Boot) -> None:
    show_line(f"  config: {body.agreement.state}", "" if body.agreement.state == AGREES else "yellow")
    for item in body.agreement.differences:
        show_line(f"    {item.field}: resolved {item.resolved}, observed {item.observed}", "red")
    if body.agreement.unseen:
        show_line(f"    not seen: {', '.join(body.agreement.unseen)}")
    show_line(f"  fingerprint: {short(body.fingerprint, 16)}")
    factors = [(kind, key, value) for kind in FieldClass for key, value in getattr(body.factors, kind).items()]
    if factors:
        show_table(["class", "factor", "value"], factors)
    _show_map("conditions", body.conditions)
    if body.log_tail:
        show_line("  the end of its log:")
        for line in body.log_tail.splitlines()[-LOG_LINES:]:
            show_line(f"    {line}")


def _show_trial(body: Trial, standing: Standing, show_all: bool) -> None:
    counts = body.requests
    cancelled = f", {counts.cancelled} cancelled" if counts.cancelled else ""
    show_line(
        f"  {body.instrument.name} v{body.instrument.version}: {counts.launched} requests, {counts.ok} ok, "
        f"{counts.failed} failed{cancelled}"
    )
    _show_map("failures", {reason: str(count) for reason, count in counts.reasons.items()})
    _show_map("conditions", body.conditions)
    names = sorted((name for name in body.figures if show_all or "/" not in name), key=sort_key)
    rows = [[name, *_figure(body, body.figures[name], standing)] for name in names]
    show_table(["metric", "value", "unit", "n", "low … high", "evidence", "marks"], rows, right=["value", "n"])
    if len(names) < len(body.figures):
        show_remark(f"{len(body.figures) - len(names)} more figures, by part; --all shows them")


def _figure(body: Trial, figure: Figure, standing: Standing) -> Iterator[str]:
    """The cells of a figure: value, unit, n, spread, evidence, marks."""
    marks = [mark for mark in _marks(body, figure, standing) if mark != body.subject.evidence]
    if figure.value is None:
        yield "absent"
        marks.append(figure.absent or "no reason was given")
    else:
        yield f"~~{number(figure.value)}~~" if standing.strikes else number(figure.value)
    yield figure.unit
    yield str(figure.n) if figure.n is not None else DASH
    yield f"{number(figure.low)} … {number(figure.high)}" if figure.low is not None and figure.high is not None else DASH
    yield body.subject.evidence
    yield ", ".join(marks)


def _marks(body: Trial, figure: Figure, standing: Standing) -> Sequence[str]:
    """The marks that a query over this one figure prints."""
    conditions = {**body.conditions, **figure.conditions}
    cache = conditions.get("prefix_cache")
    record = {
        "n_boots": 1,
        "samples": figure.n,
        "unverified": standing.agreement not in (None, AGREES),
        "hit": cache == "hit",
        "unproven": cache == "unproven",
        "fingerprints": 1,
        "definitions": 1,
        "evidence": body.subject.evidence,
        "struck_by": standing.strikes[0].action if standing.strikes else None,
        "marks": [*figure.marks, *body.marks],
    }
    return marks_of(record)


def _show_decision(body: Decision) -> None:
    for reason in body.reasons:
        show_line(f"  because: {reason}")
    if not body.effects:
        return
    rows = [
        [
            item.metric,
            number(item.arm),
            str(item.n_arm),
            number(item.control),
            str(item.n_control),
            f"{item.change:+.1%}",
            DASH if item.band is None else f"±{item.band:.1%}",
            body.subject.evidence,
            "n=1 boot" if 1 in (item.n_arm, item.n_control) else "",
        ]
        for item in body.effects
    ]
    columns = ["metric", "arm", "n arm", "control", "n control", "change", "noise band", "evidence", "marks"]
    show_table(columns, rows, right=columns[1:7])


def _show_map(title: str, items: Mapping[str, str]) -> None:
    if items:
        show_line(f"  {title}: " + ", ".join(f"{key} {value}" for key, value in items.items()))


def _show_links(receipt: Receipt, show_all: bool) -> None:
    listed = [(role, target) for role, target in links(receipt).items() if role != "chain.after"]
    for role, target in listed if show_all else listed[:LINKS_SHOWN]:
        show_line(f"  {role}: {short(target, 16)}")
    if len(listed) > LINKS_SHOWN and not show_all:
        show_remark(f"{len(listed) - LINKS_SHOWN} more links; --all shows them")
    for index, item in enumerate(blobs(receipt), start=1):
        show_line(f"  blob {index}: {item.mediaType}, {item.size} bytes, {short(item.digest, 16)}")
