"""What the global options say, handed to every command through click's context.

What it does: holds ``-C`` and ``--debug``. What it does not do: open a ledger (the command's module does, so that help stays
light).
"""

from pathlib import Path

import click
from attrs import frozen


@frozen(kw_only=True)
class State:
    """The global options."""

    directory: Path
    debug: bool = False


pass_state = click.make_pass_decorator(State)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
