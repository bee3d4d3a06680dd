"""``ledger render`` and ``ledger check``: pages whose figures are bound to the ledger.

What it does: fills pages in, or says what in them is not so. What it does not do: either of it itself (``publish``). Rules kept:
``check`` writes nothing; a page is written whole or not at all; every finding says file, line and column.
"""

from functools import partial
from pathlib import Path

import click

from ledger.cli.screen import show_json, show_line, show_remark
from ledger.cli.state import State, json_option, pass_state
from ledger.core.errors import ExitCode, Problem
from ledger.publish.annotations import FORMATS, annotated
from ledger.publish.check import Finding, check
from ledger.publish.fill import filled, read_text
from ledger.publish.page import read_page
from ledger.publish.values import fill_in
from ledger.query.index import open_index
from ledger.store import objects
from ledger.store.ledger import Ledger
from ledger.store.revision import receipts_at

DOCUMENTS = click.argument("documents", nargs=-1, required=True, type=click.Path(dir_okay=False, exists=True, path_type=Path))


@click.command()
@DOCUMENTS
@json_option
@pass_state
def render(state: State, documents: tuple[Path, ...], as_json: bool) -> int:
    """Fill in every binding of DOCUMENTS with what the ledger says now.

    Text outside of bindings stays as it is. Exit code 1 when a question has no answer; its text is left as it was.
    """
    ledger = Ledger.find(state.directory)
    done = []
    with open_index(ledger) as connection:
        for path in documents:
            page = read_page(read_text(path))
            answers = fill_in(connection, page, partial(receipts_at, ledger))
            text = filled(page, answers)
            if text != page.text:
                objects.replace(path, text.encode())
            places = [(page.place(item.binding.at), item.problem) for item in answers if item.problem is not None]
            places += [(page.place(item.at), Problem(what=item.what)) for item in page.mistakes]
            done.append({"file": str(path), "bindings": len(answers), "changed": text != page.text, "problems": len(places)})
            for (line, column), problem in places:
                show_remark(f"{path}:{line}:{column}: {problem}")
    if as_json:
        show_json(done)
    else:
        for item in done:
            count = f"{item['bindings']} binding" + ("" if item["bindings"] == 1 else "s")
            show_line(f"{item['file']}: {count}, {'written' if item['changed'] else 'as before'}")
    return ExitCode.NO if any(item["problems"] for item in done) else ExitCode.YES


@click.command("check")
@DOCUMENTS
@click.option("--format", "style", type=click.Choice(list(FORMATS)), default="text", show_default=True, help="How to show it.")
@json_option
@pass_state
def check_command(state: State, documents: tuple[Path, ...], style: str, as_json: bool) -> int:
    """Say what in DOCUMENTS the ledger does not bear out: exit code 0 when nothing, 1 when something.

    \b
    ledger check post.md
    """
    ledger = Ledger.find(state.directory)
    found: list[tuple[str, Finding]] = []
    with open_index(ledger) as connection:
        for path in documents:
            page = read_page(read_text(path))
            found += [(str(path), item) for item in check(connection, page, partial(receipts_at, ledger))]
    shown = annotated("json" if as_json else style, found)
    if as_json or style in ("json", "gitlab"):
        show_json(shown)
    else:
        for line in shown:
            show_line(str(line))
    if not found and not as_json and style == "text":
        show_remark(f"{len(documents)} pages say what the ledger says" if len(documents) > 1 else "it says what the ledger says")
    return ExitCode.NO if found else ExitCode.YES
