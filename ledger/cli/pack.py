"""``ledger pack``: put committed receipts into packs.

What it does: packs, commits, and says how much smaller the ledger is. What it does not do: pack blobs. Rules kept: what stays
loose is said with the reason; nothing to pack is no failure.
"""

from datetime import UTC, date, datetime

import click

from ledger.cli.bar import bar
from ledger.cli.screen import show_json, show_line, show_remark
from ledger.cli.state import State, json_option, pass_state
from ledger.core.errors import ExitCode
from ledger.store.ledger import Ledger
from ledger.store.packing import Choice, Packed, choose, pack

HELP_BEFORE = "Only sessions that began before this day (UTC)."


@click.command(name="pack")
@click.option("--before", type=click.DateTime(["%Y-%m-%d"]), metavar="YYYY-MM-DD", help=HELP_BEFORE)
@click.option("--dry-run", is_flag=True, help="Say what would be packed, and change nothing.")
@json_option
@pass_state
def pack_command(state: State, before: datetime | None, dry_run: bool, as_json: bool) -> int:
    """Put committed receipts into compressed packs, in one commit.

    A packed receipt is the same receipt: every command reads it as before, and `zcat` gives its bytes. Blobs stay where they are.
    """
    ledger = Ledger.find(state.directory)
    if dry_run:
        _show_choice(choose(ledger, before=_day(before)), as_json)
        return ExitCode.YES
    with bar("packing", "months") as watch:
        packed = pack(ledger, before=_day(before), watch=watch)
    if as_json:
        show_json(_as_data(ledger, packed))
    else:
        show_line(_summary(packed))
    for remark in packed.remarks:
        show_remark(remark, "yellow")
    return ExitCode.YES


def _show_choice(choice: Choice, as_json: bool) -> None:
    loose = list(choice.loose())
    sessions = len({path.parent for path in loose})
    size = sum(path.stat().st_size for path in loose)
    if as_json:
        show_json({"sessions": sessions, "receipts": len(loose), "bytes": size, "remarks": list(choice.remarks)})
    else:
        show_line(f"would pack {len(loose)} receipts of {sessions} sessions: {_size(size)}" if loose else "nothing to pack")
    for remark in choice.remarks:
        show_remark(remark, "yellow")


def _day(given: datetime | None) -> date | None:
    return given.replace(tzinfo=UTC).date() if given else None


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.1f} kB"


def _summary(packed: Packed) -> str:
    if not packed.receipts:
        return "nothing to pack"
    sizes = f"{_size(packed.loose_bytes)}, now {_size(packed.pack_bytes)}"
    return f"{packed.receipts} receipts of {packed.sessions} sessions in {len(packed.packs)} packs: {sizes}"


def _as_data(ledger: Ledger, packed: Packed) -> dict[str, object]:
    return {
        "sessions": packed.sessions,
        "receipts": packed.receipts,
        "bytes": packed.loose_bytes,
        "packs": [path.relative_to(ledger.root).as_posix() for path in packed.packs],
        "pack_bytes": packed.pack_bytes,
        "commit": packed.commit.commit,
        "remarks": list(packed.remarks),
    }
