"""What ``ledger run`` was asked for: a spec, or a session to go on with.

What it does: finds and plans either; opens its journal; says how a session that did not end goes on. What it does not do: run
it. Rules kept: a resumed session has the spec and the site that it began with, and a file that was changed since is told; a
session that ended is not resumed; one that would be planned otherwise now is refused.
"""

import os
import secrets
import tempfile
from collections.abc import Mapping
from pathlib import Path

import click
from attrs import frozen
from click.shell_completion import CompletionItem

from ledger.cli.screen import show_remark
from ledger.cli.sites import SpecAndSite, load_for, read_for
from ledger.core.clock import Clock, stamp
from ledger.core.errors import LedgerError, NotFoundError, Problem, StoreError, did_you_mean
from ledger.instruments.base import Instrument
from ledger.receipt.model import Tool
from ledger.run.journal import Journal, Opening, Past, unfinished
from ledger.run.past import Done, done_in, plan_digest
from ledger.spec.plan import Plan, make_plan
from ledger.store.ledger import Ledger
from ledger.store.session import SessionWriter

LOCKS = "LEDGER_LOCKS"


@frozen(kw_only=True)
class Asked:
    """A spec and site with their plan; ``past`` is the journal of the session that goes on, if one does."""

    found: SpecAndSite
    plan: Plan
    only: tuple[str, ...]
    past: Past | None = None

    def writer(
        self, ledger: Ledger, clock: Clock, tool: Tool, instruments: Mapping[str, Instrument]
    ) -> tuple[SessionWriter, Done]:
        """The writer of the session, and what the session has done.

        Raises:
            StoreError: another process is writing it, or it would be planned otherwise now.
        """
        if self.past is None:
            return SessionWriter(ledger, self.plan.spec.name, clock=clock, token=secrets.token_hex(2), tool=tool), Done()
        opening = self.past.opening
        if plan_digest(self.plan, instruments) != opening.plan:
            what = "this version of ledger plans the session otherwise"
            hint = "resume it with the version that began it, or run it anew"
            raise StoreError(Problem(what=what, value=opening.session, hint=hint))
        writer = SessionWriter.resume(ledger, opening.session, clock=clock, tool=tool)
        done = done_in((name, ledger.read(name)) for name in writer.names)
        show_remark(f"session {opening.session} goes on: {done.trials} trials have a receipt")
        return writer, done

    def journal(self, ledger: Ledger, writer: SessionWriter, clock: Clock, instruments: Mapping[str, Instrument]) -> Journal:
        """The session's journal, begun or taken up."""
        if self.past is not None:
            return Journal.reopen(self.past)
        spec, site = self.found.spec, self.found.site
        opening = Opening(
            session=writer.session,
            at=stamp(clock.now()),
            spec_file=str(Path(spec.file).absolute()),
            spec=spec.text.decode(),
            site_file=str(Path(site.file).absolute()),
            site=site.text.decode(),
            plan=plan_digest(self.plan, instruments),
            only=self.only,
        )
        return Journal.begin(journals(ledger), opening)


def fresh(spec: Path, site: Path | None, only: tuple[str, ...]) -> Asked:
    """A new session of the spec in a file.

    Raises:
        SpecError: with every mistake in it.
    """
    found = load_for(spec, site)
    return Asked(found=found, plan=make_plan(found.spec, found.site, only=only), only=only)


def resumed(ledger: Ledger, wanted: str | None) -> Asked:
    """The session to go on with: the one whose name ends with ``wanted``, or the only one there is.

    Raises:
        NotFoundError: there is none, it ended, or several would do.
    """
    past = _choose(ledger, wanted)
    opening = past.opening
    _tell_changes(opening)
    found = read_for(opening.spec.encode(), opening.spec_file, opening.site.encode(), opening.site_file)
    return Asked(found=found, plan=make_plan(found.spec, found.site, only=opening.only), only=opening.only, past=past)


def resumable(ledger: Ledger) -> list[Past]:
    """The sessions that did not end and that no process runs now."""
    return [past for past in unfinished(journals(ledger)) if not past.is_running]


def journals(ledger: Ledger) -> Path:
    """The folder of the journals."""
    return ledger.state / "journals"


def how_to_resume(past: Past) -> str:
    """One line that says that a session did not end, and what goes on with it."""
    opening = past.opening
    return f"session {opening.session} did not end (it was about to {past.last}): ledger run --resume {opening.session}"


def _choose(ledger: Ledger, wanted: str | None) -> Past:
    there = resumable(ledger)
    chosen = [past for past in there if wanted is None or past.opening.session.endswith(wanted)]
    if len(chosen) == 1:
        return chosen[0]
    names = [past.opening.session for past in there]
    if len(chosen) > 1:
        raise NotFoundError([Problem(what="several sessions can be resumed", hint="name one"), *map(_listed, chosen)])
    if wanted is None:
        raise NotFoundError("no session to resume: every session ended, or runs now", hint="ledger run SPEC begins one")
    if any(folder.name.endswith(wanted) for folder in ledger.sessions()):
        what = "this session ended, or runs now, and is not resumed"
        raise NotFoundError(Problem(what=what, value=wanted, hint=f"that can be resumed: {', '.join(names) or 'none'}"))
    raise NotFoundError(Problem(what="no such session", value=wanted, hint=did_you_mean(wanted, names)))


def _listed(past: Past) -> Problem:
    return Problem(what=how_to_resume(past))


def _tell_changes(opening: Opening) -> None:
    for file, text in ((opening.spec_file, opening.spec), (opening.site_file, opening.site)):
        try:
            same = Path(file).read_bytes() == text.encode()
        except OSError:
            show_remark(f"{file} is not there any more; the session goes on with the one it began with")
            continue
        if not same:
            show_remark(f"{file} has changed since; the session goes on with the one it began with")


def locks_folder(environ: Mapping[str, str]) -> Path:
    """Where this user's locks of nodes are: ``LEDGER_LOCKS``, else in the user's run-time folder or that of temporary files."""
    if environ.get(LOCKS):
        return Path(environ[LOCKS])
    if environ.get("XDG_RUNTIME_DIR"):
        return Path(environ["XDG_RUNTIME_DIR"]) / "ledger"
    return Path(tempfile.gettempdir()) / f"ledger-{os.getuid()}"


def complete_run(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Files, or with ``--resume`` the sessions that can be resumed."""
    if not context.params.get("resume"):
        return [CompletionItem(incomplete, type="file")]
    try:
        there = resumable(Ledger.find(context.find_root().params.get("directory") or Path()))
    except LedgerError:
        return []
    return [CompletionItem(past.opening.session) for past in there if past.opening.session.startswith(incomplete)]
