"""``ledger run``: run a spec and record every outcome.

What it does: loads spec and site, opens the ledger, runs the session under the live view, commits its receipts in one commit.
What it does not do: any step of the session (``run``). Rules kept: an interrupt (Ctrl-C, SIGTERM, SIGHUP) ends the servers,
commits what was recorded and exits 130; exit 0 when all that was planned was measured, 1 when some of it was not.
"""

import os
import platform
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import click

from ledger import __version__
from ledger.backends import registry as backends
from ledger.backends.base import Backend
from ledger.cli.asked import Asked, complete_run, fresh, locks_folder, resumed
from ledger.cli.live import LiveView, headline
from ledger.cli.screen import show_json, show_remark
from ledger.cli.sites import SpecAndSite
from ledger.cli.state import State, json_option, pass_state
from ledger.core.clock import Clock, SystemClock, stamp
from ledger.core.errors import ExitCode, LedgerError, StoreError, UsageError
from ledger.instruments.base import Instrument
from ledger.receipt.model import Source, Tool
from ledger.run.conditions import HostBook
from ledger.run.endpoint import EndpointStarter, keys_of
from ledger.run.estimate import estimate
from ledger.run.hashes import HashCache
from ledger.run.journal import Journal
from ledger.run.ladder import Summary
from ledger.run.lane import BackendStarter
from ledger.run.locks import Holder, held
from ledger.run.nodes import Care
from ledger.run.preflight import Checks
from ledger.run.records import Bench, BootResult
from ledger.run.secrets import Concealer, load_key, places, secrets_in
from ledger.run.session import check_all_pins, find_instruments, run_session
from ledger.run.watch import SessionEnded, Watcher
from ledger.spec.model import ENDPOINT
from ledger.spec.plan import Plan
from ledger.store.git import commit_paths, uncommitted
from ledger.store.large import send
from ledger.store.ledger import Ledger
from ledger.store.session import SessionWriter

TOML = "application/toml"
Starting = BackendStarter | EndpointStarter
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.command()
@click.argument("spec", metavar="SPEC", required=False, shell_complete=complete_run)
@click.option("--site", type=click.Path(path_type=Path), help="The site file; else LEDGER_SITE, else the one the spec names.")
@click.option("--only", multiple=True, metavar="ARM", help="Run this arm alone; may be given more than once.")
@click.option("--rehash", is_flag=True, help="Hash every pinned file anew, also those that look unchanged.")
@click.option("--resume", is_flag=True, help="Continue a session that was ended; SPEC is then its name, or the end of it.")
@json_option
@pass_state
def run(
    state: State, spec: str | None, site: Path | None, only: tuple[str, ...], rehash: bool, resume: bool, as_json: bool
) -> int:
    """Run SPEC: boot, measure, record a receipt for every outcome, commit.

    Exit code 0 when everything planned was measured, 1 when a boot failed or a gate blocks a verdict.
    """
    if resume and (site or only):
        raise UsageError("--resume takes the site and the arms of the session", hint="leave out --site and --only")
    if spec is None and not resume:
        raise UsageError("which spec?", hint="ledger run SPEC, or ledger run --resume")
    asked = resumed(Ledger.find(state.directory), spec) if resume else fresh(state.directory / str(spec), site, only)
    instruments = find_instruments(asked.plan)
    ledger = Ledger.find(state.directory)
    cancel = threading.Event()
    with LiveView(estimate_s=estimate(asked.plan, instruments)) as view, interruptible(cancel):
        session, summary = _session(ledger, asked, instruments, view, cancel, rehash=rehash)
    if as_json:
        show_json(as_data(session, summary))
    else:
        show_remark(f'next: ledger query "C1..C6 by arm spec:{asked.plan.spec.name}"')
    return ExitCode.YES if summary.complete else ExitCode.NO


def _session(
    ledger: Ledger, asked: Asked, instruments: dict[str, Instrument], view: LiveView, cancel: threading.Event, *, rehash: bool
) -> tuple[str, Summary]:
    """One session under its locks and its journal, from the check of its pins to its commit."""
    plan, clock = asked.plan, SystemClock()
    writer, before = asked.writer(ledger, clock, this_tool(), instruments)
    holder = Holder(pid=os.getpid(), host=platform.node(), session=writer.session, since=stamp(clock.now()))
    with held(locks_folder(os.environ), [rank.node.host for boot in plan.boots for rank in boot.ranks], holder):
        backend = backends.get(plan.site.backend)
        checks = checks_of(ledger, backend, view, rehash=rehash)
        check_all_pins(plan, checks)
        start = _starter(plan, backend, clock, cancel)
        conceal = concealer_of(ledger, asked.found)
        # The session's folder is there before its journal, so that a journal always has a session to resume.
        sources = _sources(writer, asked.found, conceal)
        journal = asked.journal(ledger, writer, clock, instruments)
        try:
            bench = _bench(ledger, writer, start, instruments, conceal, checks, sources, journal)
            with _committed(lambda: _commit(ledger, writer, plan, view, journal)):
                summary = run_session(bench, plan, before)
            journal.end()
        except BaseException:
            show_remark(f"session {writer.session} did not end: ledger run --resume {writer.session}")
            raise
        finally:
            journal.close()
    return writer.session, summary


@contextmanager
def _committed(commit: Callable[[], None]) -> Iterator[None]:
    """What was recorded is committed whatever ends the session, and what ended it is the error that is told."""
    try:
        yield
    except BaseException:
        try:
            commit()
        except LedgerError as error:
            show_remark(f"what was recorded is on disk, and is not committed: {error}")
        raise
    commit()


def _starter(plan: Plan, backend: Backend, clock: Clock, cancel: threading.Event) -> Starting:
    """What starts the boots of a plan, or takes up the servers that are up."""
    if plan.site.backend != ENDPOINT:
        return BackendStarter(backend=backend, clock=clock, cancel=cancel)
    keys = keys_of([boot.endpoint for boot in plan.boots if boot.endpoint], os.environ)
    return EndpointStarter(backend=backend, clock=clock, cancel=cancel, keys=keys)


def _bench(
    ledger: Ledger,
    writer: SessionWriter,
    start: Starting,
    instruments: dict[str, Instrument],
    conceal: Concealer,
    checks: Checks,
    sources: tuple[Source, Source],
    journal: Journal,
) -> Bench:
    return Bench(
        recorder=writer,
        start=start,
        instruments=instruments,
        clock=start.clock,
        watch=checks.watch,
        conceal=conceal,
        care=Care(
            checks=checks,
            book=HostBook(ledger.state / "hosts.json"),
            conceal=conceal,
            clock=start.clock,
            read_blob=writer.read_blob,
        ),
        steps=journal,
        logs=ledger.state / "sessions" / writer.session,
        spec=sources[0],
        site=sources[1],
    )


def _sources(writer: SessionWriter, found: SpecAndSite, conceal: Concealer) -> tuple[Source, Source]:
    """Spec and site word for word but for secrets, as blobs."""
    return (
        Source(name=found.spec.value.name, text=writer.blob(conceal.source(found.spec.text), TOML)),
        Source(name=found.site.value.name, text=writer.blob(conceal.source(found.site.text), TOML)),
    )


def checks_of(ledger: Ledger, backend: Backend, watch: Watcher, *, rehash: bool = False) -> Checks:
    """What checking the pins of a plan takes, with the clone's cache of file digests."""
    hashes = HashCache(ledger.state / "hashes.json", rehash=rehash)
    return Checks(root=ledger.root, reach=backend.reach, hashes=hashes, watch=watch)


def concealer_of(ledger: Ledger, found: SpecAndSite) -> Concealer:
    """What hides secrets of this clone's runs: by name, by shape, and by the values that spec and environment hold."""
    spec, site = found.spec.value, found.site.value
    asked = [lane.env for lane in spec.lanes.values()] + [arm.change.env for arm in spec.arms]
    asked += [node.env for node in site.nodes] + [stand_in.env for stand_in in site.stand_ins.values()]
    asked += [change.env for stand_in in site.stand_ins.values() for change in stand_in.arms.values()]
    return Concealer(
        key=load_key(ledger.state),
        places=places(ledger.root, sys.prefix, str(Path.home())),
        known=secrets_in(os.environ, *asked, named=[each.api_key_env or "" for each in site.endpoints.values()]),
    )


def this_tool() -> Tool:
    """This program, as receipts name it."""
    return Tool(
        name="ledger", version=__version__, python=platform.python_version(), platform=f"{sys.platform}-{platform.machine()}"
    )


@contextmanager
def interruptible(cancel: threading.Event) -> Iterator[None]:
    """Turn the signals that end a program into KeyboardInterrupt, once; ``cancel`` tells the streams under way."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        cancel.set()
        for ending in ENDING:
            signal.signal(ending, signal.SIG_IGN)
        raise KeyboardInterrupt

    # What the program was told to ignore stays so: under nohup the night goes on when the terminal is gone.
    heeded = [number for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, interrupt) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _commit(ledger: Ledger, writer: SessionWriter, plan: Plan, view: LiveView, journal: Journal) -> None:
    """One commit of the session's files, and of whatever a killed session left on disk."""
    journal.note("commit")
    left = set(uncommitted(ledger)) - set(writer.paths)
    remarks = [f"{len(left)} files that an earlier session left uncommitted are committed too"] if left else []
    title = f"receipts: {plan.spec.name}, session {writer.session}"
    try:
        made = commit_paths(
            ledger, [*writer.paths, *sorted(left)], f"{title}\n\n{writer.count} receipts, site {plan.site.name}.\n"
        )
    except StoreError as error:
        view(SessionEnded(session=writer.session, receipts=writer.count, commit=None, remarks=(str(error),)))
        raise
    # Nothing is measured any more, so that the network may be used.
    sent = send(ledger)
    remarks += [f"{sent.left} large blobs wait for the blob store: {sent.problem}"] if sent.problem else []
    view(SessionEnded(session=writer.session, receipts=writer.count, commit=made.commit, remarks=(*remarks, *made.remarks)))


def as_data(session: str, summary: Summary) -> dict[str, Any]:
    """The summary as plain data, for ``--json``."""
    return {"session": session, "complete": summary.complete, "boots": [_boot_data(item) for item in summary.boots]}


def _boot_data(result: BootResult) -> dict[str, Any]:
    return {
        "arm": result.subject.arm,
        "lane": result.subject.lane,
        "evidence": result.subject.evidence,
        "outcome": result.boot.outcome,
        "boot": result.digest,
        "reason": result.boot.reason,
        "config": result.boot.agreement.state,
        "blocked": list(result.blocked),
        "trials": [
            {"receipt": name, "measure": trial.measure, "figures": headline(trial.figures)} for name, trial in result.trials
        ],
    }
