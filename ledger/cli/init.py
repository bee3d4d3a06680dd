"""``ledger init``: start a ledger in a git repository that is there.

What it does: writes the marker and the lines that git needs. What it does not do: commit them. Rule kept: doing it again changes
nothing.
"""

import os
import shlex
from pathlib import Path

import click

from ledger.cli.screen import show_json, show_line, show_remark
from ledger.cli.state import State, json_option, pass_state
from ledger.core.errors import ExitCode
from ledger.store.start import start


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=Path())
@json_option
@pass_state
def init(state: State, folder: Path, as_json: bool) -> int:
    """Start a ledger in FOLDER (here by default), which must be in a git repository."""
    ledger, written = start(state.directory / folder)
    names = [path.relative_to(ledger.root).as_posix() for path in written]
    if as_json:
        show_json({"root": str(ledger.root), "written": names})
        return ExitCode.YES
    for name in names:
        show_line(f"wrote {name}")
    show_line(f"{'a ledger' if names else 'already a ledger'}: {ledger.root}")
    if names:
        here = shlex.join(os.path.relpath(path) for path in written)
        show_remark(f"next: git add {here} && git commit -m 'start a ledger'")
    return ExitCode.YES
