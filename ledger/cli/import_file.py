"""``ledger import``: figures that other tools measured, from their result files.

What it does: reads the files, records what they hold as imported receipts with each file as a blob, commits, and shows the
figures. What it does not do: run a tool, or take an imported figure for a measured one. Rules kept: all files of one command
are taken to come from one boot, unless it is said that each came from its own; a file with a secret in it is refused, or kept
without it when asked; with ``--dry-run`` nothing is written.
"""

import secrets
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import tomli_w

from ledger.cli.import_secrets import without_secrets
from ledger.cli.run import this_tool
from ledger.cli.screen import show_json, show_line, show_remark, show_table
from ledger.cli.state import State, json_option, pass_state
from ledger.core.clock import SystemClock
from ledger.core.errors import ExitCode, Place, Problem, UsageError
from ledger.core.words import Evidence, Role
from ledger.instruments.extract import registry
from ledger.instruments.extract.base import Extracted, Extraction, Extractor, name_of
from ledger.instruments.extract.declared import read_declared
from ledger.instruments.extract.document import MAX_BYTES, ExtractError, read_document
from ledger.receipt.model import Figure, Source, Subject
from ledger.run.imported import Origin, Taken, record_boot, record_trials
from ledger.run.secrets import Concealer, load_key, places
from ledger.store.git import commit_paths
from ledger.store.ledger import Ledger
from ledger.store.session import SessionWriter

JSON, CSV, ZIP, TEXT, TOML = "application/json", "text/csv", "application/zip", "text/plain", "application/toml"
MAX_TABLE = 1 << 20
Read = tuple[str, Extractor, Extraction, bytes]


def _list_formats(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        for name in registry.names():
            show_line(f"{name:18} {(type(registry.get(name)).__doc__ or '').splitlines()[0]}")
        context.exit()


def _pair(_: click.Context, parameter: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    found = dict(value.partition("=")[::2] for value in values)
    if bad := [value for value in values if not value.partition("=")[0] or "=" not in value]:
        raise UsageError(Problem(what=f"--{parameter.name} takes KEY=VALUE", value=bad[0]))
    return found


@click.command(name="import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE…")
@click.option("--lane", help="The system that was measured; else the model that the first file names.")
@click.option("--arm", help="The arm; else the file's own label, else the lane.")
@click.option("--spec", "spec", default="imported", show_default=True, help="The name that the session gets.")
@click.option("--format", "format_name", metavar="NAME", help="The format; else it is told by the file's keys.")
@click.option("--with", "table", type=click.Path(path_type=Path), metavar="TABLE", help="A TOML file that describes the format.")
@click.option("--identity", multiple=True, callback=_pair, metavar="KEY=VALUE", help="What is known of the server; repeatable.")
@click.option("--condition", multiple=True, callback=_pair, metavar="KEY=VALUE", help="A state it was measured in; repeatable.")
@click.option("--each-a-boot", is_flag=True, help="Each file came from a boot of its own.")
@click.option("--conceal", is_flag=True, help="Keep the files without the secrets in them, instead of refusing them.")
@click.option("--dry-run", is_flag=True, help="Show the figures and write nothing.")
@click.option("--formats", is_flag=True, is_eager=True, expose_value=False, callback=_list_formats, help="List the formats.")
@json_option
@pass_state
def import_command(
    state: State,
    files: tuple[Path, ...],
    lane: str | None,
    arm: str | None,
    spec: str,
    format_name: str | None,
    table: Path | None,
    identity: Mapping[str, str],
    condition: Mapping[str, str],
    each_a_boot: bool,
    conceal: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Record the figures of other tools' result FILES as imported receipts.

    They keep the tool's names, units and definitions, and are never averaged with figures that this ledger measured.
    """
    ledger = Ledger.find(state.directory)
    extractor = _extractor(state.directory, format_name, table)
    concealer = Concealer(key=load_key(ledger.state), places=places(ledger.root, sys.prefix, str(Path.home())))
    read = [_read(state.directory / path, extractor, concealer, conceal) for path in files]
    subject = _subject(spec, lane, arm, read)
    groups = [[item] for item in read] if each_a_boot else [read]
    if not dry_run:
        _record(ledger, subject, groups, concealer, identity, condition)
    shown = [(item[0], item[1].name, item[2]) for item in read]
    if as_json:
        show_json([_data(subject, *item) for item in shown])
        return ExitCode.YES
    for item in shown:
        _show(*item)
    boots = f"{len(groups)} boots" if len(groups) > 1 else "1 boot"
    done = "would be" if dry_run else "recorded as"
    show_remark(f"{done} {boots} of arm {subject.arm}, lane {subject.lane}, evidence imported")
    return ExitCode.YES


def _extractor(directory: Path, name: str | None, table: Path | None) -> Extractor | None:
    if name and table:
        raise UsageError("--format and --with cannot stand together", hint="--with describes a format of its own")
    if table is not None:
        return read_declared(_bytes(directory / table, MAX_TABLE), str(table))
    return registry.get(name) if name else None


def _read(path: Path, extractor: Extractor | None, concealer: Concealer, conceal: bool) -> Read:
    data = _bytes(path, MAX_BYTES)
    document = read_document(path.name, data)
    kept = without_secrets(document, data, concealer, allowed=conceal)
    chosen = extractor or registry.find(document)
    try:
        return path.name, chosen, chosen.extract(document), kept
    except ExtractError as error:
        raise ExtractError(_placed(problem, path) for problem in error.problems) from error


def _placed(problem: Problem, path: Path) -> Problem:
    return Problem(what=problem.what, place=Place(file=str(path)), value=problem.value, hint=problem.hint)


def _bytes(path: Path, limit: int) -> bytes:
    try:
        if not path.is_file():
            raise UsageError(Problem(what="no such file", value=str(path)))
        if path.stat().st_size > limit:
            raise UsageError(Problem(what=f"larger than {limit} bytes", value=str(path)))
        return path.read_bytes()
    except OSError as error:
        raise UsageError(Problem(what=(error.strerror or str(error)).lower(), value=str(path))) from error


def _subject(spec: str, lane: str | None, arm: str | None, read: Sequence[Read]) -> Subject:
    models = [item[2].model for item in read if item[2].model]
    labels = [item[2].label for item in read if item[2].label]
    chosen = name_of(lane or (models[0] if models else read[0][2].tool))[:64]
    return Subject(
        spec=name_of(spec)[:64],
        lane=chosen,
        arm=name_of(arm or (labels[0] if labels else chosen))[:64],
        role=Role.DIAGNOSTIC,
        evidence=Evidence.IMPORTED,
    )


def _record(
    ledger: Ledger,
    subject: Subject,
    groups: Sequence[Sequence[Read]],
    concealer: Concealer,
    identity: Mapping[str, str],
    conditions: Mapping[str, str],
) -> None:
    said = {"identity": dict(identity), "conditions": dict(conditions)}
    writer = SessionWriter(ledger, subject.spec, clock=SystemClock(), token=secrets.token_hex(2), tool=this_tool())
    for number, group in enumerate(groups, start=1):
        taken = [
            Taken(file=name, extractor=extractor, extraction=extraction, blob=writer.blob(data, _media_type(name, data)))
            for name, extractor, extraction, data in group
        ]
        told = Source(name=subject.spec, text=writer.blob(_statement(subject, taken, concealer.tree(said)).encode(), TOML))
        origin = Origin(subject=subject, told=told, identity=identity, conditions=conditions)
        boot = record_boot(writer, origin, taken, concealer, number=number, of=len(groups))
        record_trials(writer, boot, origin, taken, concealer)
    commit_paths(ledger, writer.paths, f"receipts: {subject.spec}, imported for arm {subject.arm}\n")


def _statement(subject: Subject, taken: Sequence[Taken], said: Mapping[str, Any]) -> str:
    """The import in words that a person can read: it stands where a spec and a site would."""
    files = [{"name": item.file, "format": item.extractor.name, "digest": item.blob.digest} for item in taken]
    about = {"lane": subject.lane, "arm": subject.arm, **said, "files": files}
    return "# What was imported, and what was said of where it was measured.\n" + tomli_w.dumps(about)


def _media_type(name: str, data: bytes) -> str:
    if data.startswith(b"PK\x03\x04"):
        return ZIP
    return {".json": JSON, ".jsonl": JSON, ".csv": CSV}.get(Path(name).suffix, TEXT)


def _show(name: str, format_name: str, extraction: Extraction) -> None:
    """The figures of a file; parts (``C6/json``, ``ttft@C2/p99``) are counted and left to ``--json``."""
    figures = [(run, key, figure) for run in extraction.trials for key, figure in run.figures.items()]
    rows = [_row(run, key, figure) for run, key, figure in figures if "/" not in key]
    version = f" {extraction.version}" if extraction.version else ""
    columns = ("metric", "value", "unit", "n", "statistic", "marks")
    show_table(columns, rows, right=("value", "n"), title=f"{name}: {extraction.tool}{version} ({format_name})")
    if len(rows) < len(figures):
        show_remark(f"{name}: {len(figures) - len(rows)} figures of parts are recorded, too; --json lists them")
    for warning in extraction.warnings:
        show_remark(f"{name}: {warning}", "yellow")


def _row(run: Extracted, key: str, figure: Figure) -> list[str]:
    states = [f"{state} {value}" for state, value in run.conditions.items()]
    marks = ", ".join((*figure.marks, *run.marks, *states))
    return [key, _value(figure), figure.unit, str(figure.n or ""), figure.statistic or "", marks]


def _value(figure: Figure) -> str:
    return f"absent: {figure.absent}" if figure.value is None else f"{figure.value:.6g}"


def _data(subject: Subject, name: str, format_name: str, extraction: Extraction) -> dict[str, Any]:
    return {
        "file": name,
        "format": format_name,
        "tool": extraction.tool,
        "tool_version": extraction.version,
        "lane": subject.lane,
        "arm": subject.arm,
        "warnings": list(extraction.warnings),
        "trials": [
            {
                "measure": run.measure,
                "requests": {"launched": run.requests.launched, "ok": run.requests.ok, "failed": run.requests.failed},
                "conditions": dict(run.conditions),
                "marks": list(run.marks),
                "figures": {key: _figure(figure) for key, figure in run.figures.items()},
            }
            for run in extraction.trials
        ],
    }


def _figure(figure: Figure) -> dict[str, Any]:
    names = ("value", "unit", "n", "statistic", "low", "high", "absent")
    found = {name: getattr(figure, name) for name in names if getattr(figure, name) is not None}
    return {**found, "marks": list(figure.marks)} if figure.marks else found
