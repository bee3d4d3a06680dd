"""``ledger checkpoint``: a root and a count to publish.

What it does: prints the checkpoint over all committed receipts. What it does not do: publish or sign it. Rule kept: whoever has
the three lines can prove later, with ``ledger verify --checkpoint``, that no receipt that they cover was changed, removed or
slipped in.
"""

import base64
import sys

import click

from ledger.cli.screen import show_json, show_remark
from ledger.cli.state import State, json_option, pass_state
from ledger.core.errors import ExitCode
from ledger.store.ledger import Ledger
from ledger.store.timeline import checkpoint as make_checkpoint
from ledger.store.timeline import timeline


@click.command()
@json_option
@pass_state
def checkpoint(state: State, as_json: bool) -> int:
    """Print the size and root of the tree over all committed receipts, to publish in a post.

    `ledger verify --checkpoint FILE` proves later that the ledger still extends it.
    """
    made = make_checkpoint(timeline(Ledger.find(state.directory)))
    if as_json:
        show_json({"size": made.size, "root": base64.b64encode(made.root).decode(), "short": made.short()})
    else:
        sys.stdout.write(made.text())
        show_remark(f"in a sentence: {made.short()}")
    return ExitCode.YES
