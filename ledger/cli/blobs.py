"""``ledger blobs``: large blobs that are kept outside of git.

What it does: counts where the ledger's blobs are, sends those that wait, fetches others, and records that this machine's user
agrees to the store. What it does not do: delete any. Rules kept: only ``push`` and ``fetch`` touch the store; what could not be
sent or fetched is told and exits 1.
"""

from collections.abc import Iterator

import click
from attrs import frozen

from ledger.cli.bar import bar
from ledger.cli.screen import show_json, show_line, show_remark, show_table
from ledger.cli.state import State, json_option, pass_state
from ledger.core.digest import Descriptor
from ledger.core.errors import ExitCode, LedgerError, NotFoundError, Problem
from ledger.receipt import codec
from ledger.receipt.model import blobs
from ledger.store import large, layout
from ledger.store.ledger import Ledger, load
from ledger.store.settings import BlobSettings, settings_of


@frozen(kw_only=True)
class Place:
    """Where some blobs are, how many they are, and their bytes."""

    where: str
    count: int
    bytes: int


@click.group(name="blobs", invoke_without_command=True)
@json_option
@pass_state
@click.pass_context
def blobs_command(context: click.Context, state: State, as_json: bool) -> int:
    """Count the ledger's blobs by where they are; send and fetch large ones."""
    if context.invoked_subcommand is not None:
        return ExitCode.YES
    ledger = Ledger.find(state.directory)
    found = list(_places(ledger))
    settings = settings_of(ledger.root).blobs
    if as_json:
        store = (
            {"store": settings.store, "above": settings.above, "allowed": large.is_allowed(ledger, settings)} if settings else {}
        )
        show_json({**store, "places": [{"where": item.where, "blobs": item.count, "bytes": item.bytes} for item in found]})
        return ExitCode.YES
    rows = [[item.where, str(item.count), _size(item.bytes)] for item in found]
    show_table(("where", "blobs", "bytes"), rows, right=("blobs", "bytes"))
    if settings is None:
        show_remark("no blob store is named in ledger.toml, so every blob is in git")
    else:
        allowed = "" if large.is_allowed(ledger, settings) else f", which is not allowed here: {large.ALLOW_HINT}"
        show_remark(f"blobs above {_size(settings.above)} go to {settings.store}{allowed}")
    return ExitCode.YES


@blobs_command.command()
@json_option
@pass_state
def push(state: State, as_json: bool) -> int:
    """Send every blob that waits to the blob store."""
    ledger = Ledger.find(state.directory)
    large.opened(ledger)
    with bar("sending", "blobs") as watch:
        sent = large.send(ledger, watch)
    if as_json:
        show_json({"sent": sent.blobs, "bytes": sent.bytes, "left": sent.left, "problem": sent.problem})
    else:
        show_line(f"{sent.blobs} blobs sent, {_size(sent.bytes)}")
        if sent.problem:
            show_remark(f"{sent.left} blobs wait: {sent.problem}", "yellow")
    return ExitCode.NO if sent.left else ExitCode.YES


@blobs_command.command()
@click.argument("digests", nargs=-1, metavar="[DIGEST]…")
@json_option
@pass_state
def fetch(state: State, digests: tuple[str, ...], as_json: bool) -> int:
    """Fetch the blobs of these digests, or every large one that is not here; each is checked."""
    ledger = Ledger.find(state.directory)
    wanted = _wanted(ledger, digests)
    large.opened(ledger)
    done, problems = 0, []
    with bar("fetching", "blobs") as watch:
        for number, item in enumerate(wanted, start=1):
            try:
                large.fetch(ledger, item)
                done += 1
            except LedgerError as error:
                problems.append(str(error))
            watch(number, len(wanted))
    if as_json:
        show_json({"fetched": done, "problems": problems})
    else:
        show_line(f"{done} blobs fetched")
        for problem in problems:
            show_remark(problem, "red")
    return ExitCode.NO if problems else ExitCode.YES


@blobs_command.command()
@json_option
@pass_state
def allow(state: State, as_json: bool) -> int:
    """Agree, on this machine, to the store that ledger.toml names: a repository alone must not send you anywhere."""
    address = large.allow(Ledger.find(state.directory))
    if as_json:
        show_json({"allowed": address})
    else:
        show_line(f"allowed here: {address}")
    return ExitCode.YES


def _store(ledger: Ledger, settings: BlobSettings | None) -> dict[str, object]:
    if settings is None:
        return {}
    return {"store": settings.store, "above": settings.above, "allowed": large.is_allowed(ledger, settings)}


def _named(ledger: Ledger) -> Iterator[Descriptor]:
    """Every large blob that a receipt names, once."""
    seen: set[str] = set()
    for stored in ledger.walk():
        try:
            found = blobs(codec.decode(load(stored)))
        except LedgerError:
            continue  # verify tells of it
        for item in found:
            if large.is_large(ledger, item.size) and item.digest not in seen:
                seen.add(item.digest)
                yield item


def _wanted(ledger: Ledger, digests: tuple[str, ...]) -> list[Descriptor]:
    named = list(_named(ledger))
    if not digests:
        return [item for item in named if ledger.large_blob(item.digest) is None]
    found, problems = [], []
    for asked in digests:
        matching = [item for item in named if item.digest.removeprefix("sha256:").startswith(asked.removeprefix("sha256:"))]
        if len(matching) == 1:
            found += matching
        else:
            what = "several large blobs begin so" if matching else "no receipt names a large blob that begins so"
            problems.append(Problem(what=what, value=asked))
    if problems:
        raise NotFoundError(problems)
    return found


def _places(ledger: Ledger) -> Iterator[Place]:
    inside = [
        path for folder in ledger.sessions() for path in (folder / layout.BLOBS).glob("*") if layout.HEX.fullmatch(path.name)
    ]
    yield Place(where="in git", count=len(inside), bytes=sum(path.lstat().st_size for path in inside))
    waiting = large.waiting(ledger)
    yield Place(where="here, to be sent", count=len(waiting), bytes=sum(path.stat().st_size for path in waiting))
    named = list(_named(ledger))
    here = [item for item in named if ledger.large_blob(item.digest) is not None]
    sent = [item for item in here if layout.WAITING not in str(ledger.large_blob(item.digest))]
    yield Place(where="here and in the store", count=len(sent), bytes=sum(item.size for item in sent))
    away = [item for item in named if ledger.large_blob(item.digest) is None]
    yield Place(where="not here, to be fetched", count=len(away), bytes=sum(item.size for item in away))


def _size(count: int) -> str:
    return f"{count / 2**20:.1f} MiB" if count >= 2**20 else f"{count / 2**10:.1f} KiB"
