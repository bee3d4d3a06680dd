"""``ledger transcribe``: what a publication reports, as receipts of the evidence ``reported``.

What it does: reads the file, records each edition in a session of its own, commits, and says what was recorded. What it does not
do: take a reported figure for a measured one. Rules kept: the times of the receipts are those of the publication, and git has
that of the transcription; what is recorded already is not recorded again; with ``--dry-run`` nothing is written.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import click

from ledger import __version__
from ledger.cli.screen import show_json, show_line, show_remark
from ledger.cli.state import State, json_option, pass_state
from ledger.core.errors import ExitCode
from ledger.receipt.model import Tool
from ledger.run.publication import Edition, Publication, moment_of, read_publication
from ledger.run.transcribe import EditionClock, Transcriber
from ledger.spec.load import load_spec
from ledger.spec.model import Spec
from ledger.store import layout
from ledger.store.git import commit_paths
from ledger.store.ledger import Ledger
from ledger.store.session import SessionWriter

SPECS = "specs"


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Check the file and write nothing.")
@json_option
@pass_state
def transcribe(state: State, file: Path, dry_run: bool, as_json: bool) -> int:
    """Record what the publication that FILE describes reports: figures, effects, claims, corrections, what served.

    \b
    ledger transcribe specs/published/post-2026-10.toml
    """
    ledger = Ledger.find(state.directory)
    publication, text = read_publication(state.directory / file)
    there = {folder.name for folder in ledger.sessions()}
    sessions = {name: _session(publication, edition, text) for name, edition in _in_order(publication)}
    new = [name for name in sessions if sessions[name] not in there]
    if new and not dry_run:
        _record(ledger, publication, text)
    data = {
        "publication": publication.name,
        "editions": {name: {"session": session, "recorded": name in new and not dry_run} for name, session in sessions.items()},
        "figures": len(publication.figures),
        "effects": len(publication.effects),
        "corrections": len(publication.corrections),
    }
    if as_json:
        show_json(data)
    else:
        _show(publication, sessions, new, dry_run)
    return ExitCode.YES


def _show(publication: Publication, sessions: Mapping[str, str], new: list[str], dry_run: bool) -> None:
    show_line(f"{publication.title}, by {publication.by}")
    for name, session in sessions.items():
        done = "is there already" if name not in new else "would be recorded" if dry_run else "recorded"
        show_line(f"edition {name} of {publication.editions[name].at}: {session} {done}")
    counts = {
        kind: len(getattr(publication, kind)) for kind in ("boots", "figures", "effects", "claims", "serving", "corrections")
    }
    show_line(", ".join(f"{number} {kind}" for kind, number in counts.items()))
    for text in publication.not_recorded:
        show_remark(f"the publication does not say: {text}")


def _in_order(publication: Publication) -> list[tuple[str, Edition]]:
    return sorted(publication.editions.items(), key=lambda item: str(moment_of(item[1].at)))


def _clock(edition: Edition) -> EditionClock:
    at = moment_of(edition.at)
    assert at is not None  # checked when the file was read
    return EditionClock(at=at)


def _token(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:4]


def _session(publication: Publication, edition: Edition, text: bytes) -> str:
    return layout.session_name(publication.name, _clock(edition).now(), _token(text))


def _record(ledger: Ledger, publication: Publication, text: bytes) -> None:
    transcriber = Transcriber(publication=publication, text=text, specs=_specs(ledger, publication))
    paths: list[Path] = []
    for name, edition in _in_order(publication):
        # What the program ran on is left out: the receipts are the same wherever they are made.
        tool = Tool(name="ledger", version=__version__)
        writer = SessionWriter(ledger, publication.name, clock=_clock(edition), token=_token(text), tool=tool)
        transcriber.edition(name, writer)
        paths += writer.paths
    commit_paths(ledger, paths, f"receipts: {publication.title}\n\nTranscribed; every figure is reported evidence.\n")


def _specs(ledger: Ledger, publication: Publication) -> dict[str, Spec]:
    """The specs that the publication names, as far as the ledger has them."""
    names = dict.fromkeys(boot.spec for boot in publication.boots)
    paths = {name: ledger.root / SPECS / f"{name}.toml" for name in names}
    return {name: load_spec(path).value for name, path in paths.items() if path.is_file()}
