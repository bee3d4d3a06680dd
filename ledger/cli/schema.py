"""``ledger schema``: the JSON Schemas of spec, site and receipt.

What it does: writes them to a folder, or says which of the files there differ. What it does not do: validate a document. Rule
kept: the same version writes the same bytes.
"""

from pathlib import Path

import click
import orjson

from ledger.cli.screen import show_json, show_line
from ledger.cli.state import State, json_option, pass_state
from ledger.core.errors import ExitCode, Problem, StoreError
from ledger.receipt.schema import receipt_schema
from ledger.spec.schema import site_schema, spec_schema

SCHEMAS = {"spec": spec_schema, "site": site_schema, "receipt": receipt_schema}


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=Path("schemas"))
@click.option("--check", is_flag=True, help="Write nothing; exit 1 when a file differs.")
@json_option
@pass_state
def schema(state: State, folder: Path, check: bool, as_json: bool) -> int:
    """Write the JSON Schemas of spec, site and receipt to FOLDER (schemas/ by default)."""
    try:
        differing = _differing(state.directory / folder, write=not check)
    except OSError as error:
        raise StoreError(Problem(what=f"cannot write the schemas: {error.strerror}", value=error.filename)) from error
    if as_json:
        show_json({"differ" if check else "written": differing})
    for name in () if as_json else differing:
        show_line(f"{name} differs" if check else f"wrote {name}")
    return ExitCode.NO if check and differing else ExitCode.YES


def _differing(folder: Path, *, write: bool) -> list[str]:
    """The names of the files in ``folder`` that are not what this version writes; with ``write`` they are after it."""
    differing = []
    for name, make in SCHEMAS.items():
        path = folder / f"{name}.schema.json"
        data = orjson.dumps(make(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        if path.is_file() and path.read_bytes() == data:
            continue
        differing.append(path.name)
        if write:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    return differing
