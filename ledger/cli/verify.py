"""``ledger verify``: check every digest, schema and link.

What it does: shows each finding with its file, and what was looked at. What it does not do: mend, or ask the index, which is made
from what is checked here. Rules kept: exit 0 when nothing was found, 1 when something was.
"""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

import click
from attrs import asdict

from ledger.analysis.currency import CorrectionFact, conflicts
from ledger.cli.bar import bar
from ledger.cli.screen import show_json, show_line, show_remark
from ledger.cli.state import State, json_option, pass_state
from ledger.core import digest
from ledger.core.errors import ExitCode
from ledger.receipt.model import Correction
from ledger.store.history import check_history, check_signatures
from ledger.store.ledger import Ledger
from ledger.store.timeline import Checkpoint, extends, read_checkpoint, timeline
from ledger.store.verify import Checked, Finding, verify

SHOWN = 200


def _conflicts(corrections: Mapping[str, Correction]) -> list[Finding]:
    """Corrections in force that strike one receipt to different ends."""
    facts = [
        CorrectionFact(
            digest=name,
            action=item.action,
            targets=item.targets,
            replacements=item.replacements,
            reason=item.reason,
            scope=item.scope,
        )
        for name, item in sorted(corrections.items())
    ]
    hint = "ledger corrections shows them; a third correction settles it"
    return [
        Finding(
            path=digest.short(item.digest, 16), code="conflict", what=f"{len(item.corrections)} corrections disagree", hint=hint
        )
        for item in conflicts(facts)
    ]


def _checkpoint(ledger: Ledger, given: str) -> list[Finding]:
    """A finding when the committed receipts do not extend the checkpoint, which is a file or ``SIZE:ROOT``."""
    path = Path(given)
    old = read_checkpoint(path.read_text(encoding="utf-8", errors="replace") if path.is_file() else given)
    order = timeline(ledger)
    if extends(order, old):
        return []
    what = f"the {len(order)} committed receipts do not extend the checkpoint over {old.size}"
    return [
        Finding(path=short_root(old), code="checkpoint", what=what, hint="a receipt was changed, removed or slipped in since")
    ]


def short_root(old: Checkpoint) -> str:
    """The checkpoint's size and the first digits of its root."""
    return f"checkpoint {old.size}:{old.root.hex()[:16]}"


@click.command(name="verify")
@click.option("--history", "history", is_flag=True, help="Also read git's history: no receipt was ever changed or removed.")
@click.option("--checkpoint", "given", metavar="FILE", help="Also prove that the ledger extends this checkpoint (or SIZE:ROOT).")
@click.option(
    "--signers", type=click.Path(path_type=Path), help="Also check commit signatures against this allowed-signers file."
)
@click.option("--fetch", is_flag=True, help="Also fetch and check large blobs that are not on this machine.")
@json_option
@pass_state
def verify_command(state: State, history: bool, given: str | None, signers: Path | None, fetch: bool, as_json: bool) -> int:
    """Check every digest, schema and link of the ledger.

    Exit code 0 when all of it holds, 1 when something does not.
    """
    checked = Checked()
    ledger = Ledger.find(state.directory)
    with bar("verifying", "sessions") as watch:
        found = list(verify(ledger, checked, watch, fetch=fetch))
    found += _conflicts(checked.corrections)
    found += check_history(ledger) if history else []
    found += check_signatures(ledger, signers) if signers is not None else []
    found += _checkpoint(ledger, given) if given is not None else []
    if as_json:
        show_json({"ok": not found, "checked": checked.counts(), "findings": [asdict(item) for item in found]})
        return ExitCode.NO if found else ExitCode.YES
    _show_findings(found)
    verdict = f"{len(found)} findings" if found else "all of it holds"
    show_line(
        f"{checked.receipts} receipts and {checked.blobs} blobs of {checked.sessions} sessions: {verdict}",
        "red" if found else "green",
    )
    _show_limits(checked, history, signers)
    return ExitCode.NO if found else ExitCode.YES


def _show_findings(found: Sequence[Finding]) -> None:
    """Each finding on a line; the way out stands once behind all in a row that have the same."""
    shown = found[:SHOWN]
    for item, following in zip_longest(shown, shown[1:]):
        show_line(f"{item.path}: {item.what} [{item.code}]", "red")
        if item.hint and (following is None or following.hint != item.hint):
            show_remark(f"  {item.hint}")
    if len(found) > SHOWN:
        show_remark(f"{len(found) - SHOWN} more findings; --json lists them all")


def _show_limits(checked: Checked, history: bool, signers: Path | None) -> None:
    """What was seen and is no fault, and what was not looked at."""
    if checked.unnamed:
        show_remark(f"{checked.unnamed} of these blobs are named by no receipt: a session that was killed leaves such")
    if checked.away:
        show_remark(f"{checked.away} large blobs are not on this machine: --fetch gets them from the blob store and checks them")
    options = {"git's history (--history)": history, "signatures (--signers)": signers is not None}
    left = [what for what, asked in options.items() if not asked]
    if left:
        show_remark(f"not looked at: {', '.join(left)}")
