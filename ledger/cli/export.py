"""``ledger export``: the views as Parquet, CSV or JSON Lines.

What it does: writes them to a new folder. What it does not do: export receipts; they are files already. Rule kept: nothing that
is there is written over.
"""

from pathlib import Path

import click

from ledger.cli.screen import show_json, show_line
from ledger.cli.state import State, json_option, pass_state
from ledger.core.errors import ExitCode
from ledger.query.export import FORMATS
from ledger.query.export import export as write
from ledger.query.index import open_index
from ledger.store.ledger import Ledger


@click.command()
@click.argument("style", type=click.Choice(list(FORMATS)))
@click.argument("folder", type=click.Path(path_type=Path))
@json_option
@pass_state
def export(state: State, style: str, folder: Path, as_json: bool) -> int:
    """Write every view to FOLDER, which must not be there yet: as parquet (partitioned by month), csv or jsonl."""
    ledger = Ledger.find(state.directory)
    with open_index(ledger) as connection:
        written = write(connection, state.directory / folder, style)
    if as_json:
        show_json({"folder": str(folder), "views": list(written)})
    else:
        show_line(f"{len(written)} views to {folder}: {', '.join(written)}")
    return ExitCode.YES
