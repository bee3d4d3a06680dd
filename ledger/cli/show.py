"""``ledger show``: one receipt, for people.

What it does: prints what a receipt says, with its marks, links and blobs, and the corrections that touch it. What it does not
do: judge it. Rules kept: everything in it passes as text from outside; ``--raw`` gives the bytes of the file and
nothing else, but to a terminal as text.
"""

import sys
import zlib
from collections.abc import Mapping

import click

from ledger.cli.complete import complete_name
from ledger.cli.formats import number
from ledger.cli.screen import show_json, show_line, show_remark, show_table
from ledger.cli.state import State, json_option, pass_state
from ledger.core.digest import short
from ledger.core.errors import ExitCode, NotFoundError, Problem
from ledger.core.metrics import sort_key
from ledger.query.index import open_index
from ledger.query.names import resolve
from ledger.receipt import codec
from ledger.receipt.model import Boot, Figure, Receipt, Trial, blobs, links
from ledger.store.ledger import Ledger

BLOB_SHOWN = 4 * 2**20
PLAIN = (
    "reason",
    "outcome",
    "verdict",
    "holds",
    "text",
    "value",
    "limit",
    "action",
    "by",
    "code",
    "control",
    "seconds",
    "measure",
)


@click.command()
@click.argument("name", shell_complete=complete_name)
@click.option("--raw", is_flag=True, help="Print the file's bytes, as they are; on a terminal, escaped.")
@click.option("--blob", "blob_number", type=click.IntRange(1), metavar="N", help="Print its Nth blob, unpacked if it is gzip.")
@click.option("--all", "show_all", is_flag=True, help="Show every figure, the parts too.")
@json_option
@pass_state
def show(state: State, name: str, raw: bool, blob_number: int | None, show_all: bool, as_json: bool) -> int:
    """Show the receipt NAME: a digest's first digits, ARM, ARM/MEASURE or SPEC:ARM/MEASURE; `~1` is the one before."""
    ledger = Ledger.find(state.directory)
    with open_index(ledger) as connection:
        digest = resolve(connection, name)
        touching = connection.execute("SELECT by_digest, action, reason FROM struck WHERE digest = ?", [digest]).fetchall()
    data = ledger.read_bytes(digest)
    receipt = codec.decode(data)
    if raw:
        _show_bytes(data)
    elif blob_number is not None:
        _show_blob(ledger, receipt, blob_number)
    elif as_json:
        show_json({"digest": digest, "receipt": codec.to_wire(receipt), "corrections": [list(map(str, row)) for row in touching]})
    else:
        _show(digest, receipt, show_all)
        for by_digest, action, reason in touching:
            show_line(f"struck: {action} by {short(by_digest)}: {reason}", "yellow")
    return ExitCode.YES


def _show(digest: str, receipt: Receipt, show_all: bool) -> None:
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
    for reason in getattr(body, "reasons", ()):
        show_line(f"  because: {reason}")
    if isinstance(body, Boot):
        _show_boot(body)
    if isinstance(body, Trial):
        _show_trial(body, show_all)
    _show_links(receipt)


def _show_boot(body: Boot) -> None:
    show_line(f"  config: {body.agreement.state}")
    for item in body.agreement.differences:
        show_line(f"    {item.field}: resolved {item.resolved}, observed {item.observed}", "red")
    rows = [
        [kind, key, value] for kind in ("identity", "context", "provenance") for key, value in getattr(body.factors, kind).items()
    ]
    show_table(["class", "factor", "value"], rows)
    _show_map("conditions", body.conditions)
    if body.log_tail:
        show_line("  the end of its log:")
        for line in body.log_tail.splitlines()[-20:]:
            show_line(f"    {line}")


def _show_trial(body: Trial, show_all: bool) -> None:
    counts = body.requests
    show_line(
        f"  {body.instrument.name} v{body.instrument.version}: {counts.launched} requests, {counts.ok} ok, {counts.failed} failed"
    )
    _show_map("failures", {reason: str(count) for reason, count in counts.reasons.items()})
    _show_map("conditions", body.conditions)
    names = sorted((name for name in body.figures if show_all or "/" not in name), key=sort_key)
    rows = [[name, *_figure(body.figures[name])] for name in names]
    show_table(["metric", "value", "unit", "n", "low … high", "notes"], rows, right=["value", "n"])
    if len(names) < len(body.figures):
        show_remark(f"{len(body.figures) - len(names)} more figures, by part; --all shows them")


def _figure(figure: Figure) -> list[str]:
    spread = f"{number(figure.low)} … {number(figure.high)}" if figure.low is not None and figure.high is not None else ""
    notes = [*figure.marks, *(f"{key} {value}" for key, value in figure.conditions.items())]
    shown = number(figure.value) if figure.value is not None else "absent"
    notes += [figure.absent] if figure.absent else []
    return [shown, figure.unit, str(figure.n or ""), spread, ", ".join(notes)]


def _show_map(title: str, items: Mapping[str, str]) -> None:
    if items:
        show_line(f"  {title}: " + ", ".join(f"{key} {value}" for key, value in items.items()))


def _show_links(receipt: Receipt) -> None:
    for role, target in links(receipt).items():
        if role != "chain.after":
            show_line(f"  {role}: {short(target, 16)}")
    for index, item in enumerate(blobs(receipt), start=1):
        show_line(f"  blob {index}: {item.mediaType}, {item.size} bytes, {short(item.digest, 16)}")


def _show_blob(ledger: Ledger, receipt: Receipt, wanted: int) -> None:
    """Print a blob, unpacked where its type says that it is packed."""
    listed = blobs(receipt)
    if wanted > len(listed):
        raise NotFoundError(Problem(what=f"this receipt has {len(listed)} blobs", value=str(wanted)))
    data = ledger.read_blob(receipt.session, listed[wanted - 1])
    if listed[wanted - 1].mediaType.endswith("+gzip"):
        data = _unpacked(data)
    _show_bytes(data)


def _show_bytes(data: bytes) -> None:
    """Print bytes as they are; on a terminal, as text that it cannot be harmed by."""
    if sys.stdout.isatty():
        show_line(data[:BLOB_SHOWN].decode("utf-8", "replace"))
    else:
        sys.stdout.buffer.write(data)


def _unpacked(data: bytes) -> bytes:
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        return unpacker.decompress(data, 2**30)
    except zlib.error as error:
        raise NotFoundError(Problem(what=f"the blob is not gzip: {error}")) from error
