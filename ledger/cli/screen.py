"""Printing: tables, JSON and plain lines, to a terminal, a pipe or a file.

What it does: one small set of ways to show a result, each safe for text from outside. What it does not do: decide what is
shown. Rules kept: everything passes :func:`ledger.core.text.visible`; colour follows the terminal, ``NO_COLOR`` and
``FORCE_COLOR``; results go to stdout, remarks and progress to stderr; JSON is one document with a final newline.
"""

import sys
from collections.abc import Sequence
from typing import Any

import orjson
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ledger.core.text import visible, visible_json

# A pipe has no width; a table in it is not folded to that of a terminal nobody looks at.
PIPE_WIDTH = 200

out = Console(soft_wrap=True, highlight=False, markup=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)
err = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)


def show_json(value: Any) -> None:
    """Print ``value`` as indented JSON, with what a terminal would obey written as escapes."""
    sys.stdout.write(visible_json(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()))


def show_line(text: str, style: str = "") -> None:
    """Print one line of a result."""
    out.print(Text(visible(text), style=style))


def show_remark(text: str, style: str = "") -> None:
    """Print one line that is not the result."""
    err.print(Text(visible(text), style=style))


def show_table(
    columns: Sequence[str], rows: Sequence[Sequence[str | Text]], *, right: Sequence[str] = (), title: str = ""
) -> None:
    """Print a table; the columns named in ``right`` are right-aligned, and cells may hold a style as ``Text``."""
    table = Table(box=SIMPLE_HEAD, title=title or None, title_justify="left", pad_edge=False)
    for column in columns:
        table.add_column(visible(column), justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(visible(cell)) for cell in row))
    out.print(table)
