"""How far long work has come, on a terminal.

What it does: shows a bar that goes away when the work is done. What it does not do: show anything on a pipe, or on a terminal
that cannot take a line back. Rule kept: it is on the error stream, so that what a command prints is never mixed with it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TextColumn

from ledger.cli.screen import err

Watch = Callable[[int, int], None]
"""Is told how many are done, and of how many."""


@contextmanager
def bar(doing: str, of: str) -> Iterator[Watch]:
    """A bar: ``packing ━━━━ 3 of 12 months``."""
    if not err.is_terminal or err.is_dumb_terminal:
        yield lambda done, total: None
        return
    columns = (TextColumn(doing), BarColumn(), TextColumn("{task.completed} of {task.total} " + of))
    with Progress(*columns, console=err, transient=True) as progress:
        task = progress.add_task(doing, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
