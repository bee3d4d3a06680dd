"""``ledger reproduce``: the block that a reader pastes to make a boot and its figures again.

What it does: finds the boot that a receipt is about, and prints its recipe. What it does not do: run it. Rule kept: what is
printed comes from receipts and their blobs alone, so that it says what was done and not what a file says today.
"""

import click
from attrs import asdict

from ledger.cli.complete import complete_name
from ledger.cli.screen import show_json, show_line
from ledger.cli.state import State, json_option, pass_state
from ledger.core.digest import short
from ledger.core.errors import ExitCode, LedgerError, NotFoundError, Problem
from ledger.query.index import open_index
from ledger.query.names import resolve
from ledger.receipt import codec
from ledger.receipt.model import Attempt, Boot, Receipt, Trial
from ledger.run.recipe import Recipe, recipe
from ledger.spec.load import read_spec
from ledger.spec.model import Spec
from ledger.store.ledger import Ledger, load


@click.command()
@click.argument("name", shell_complete=complete_name)
@json_option
@pass_state
def reproduce(state: State, name: str, as_json: bool) -> int:
    """Print how to make the boot NAME, or the boot of the trial NAME, again: pins, commands, measures, warnings.

    \b
    ledger reproduce threads-2/decode
    """
    ledger = Ledger.find(state.directory)
    with open_index(ledger) as connection:
        digest = resolve(connection, name)
    wanted, boot, receipt = _boot(ledger, digest)
    spec = _spec(ledger, boot)
    made = recipe(wanted, boot, _trials(ledger, receipt, wanted), spec)
    if as_json:
        show_json(asdict(made))
    else:
        _show(made, boot, receipt)
        if spec is not None:
            _show_run(boot)
    return ExitCode.YES


def _boot(ledger: Ledger, digest: str) -> tuple[str, Boot, Receipt]:
    receipt = ledger.read(digest)
    if isinstance(receipt.body, Trial):
        digest = receipt.body.boot
        receipt = ledger.read(digest)
    if not isinstance(receipt.body, Boot):
        hint = "ledger log --kind boot lists them"
        raise NotFoundError(Problem(what=f"neither a boot nor a trial, but: {receipt.kind}", value=short(digest), hint=hint))
    return digest, receipt.body, receipt


def _trials(ledger: Ledger, receipt: Receipt, boot: str) -> list[Trial]:
    """The trials of a boot, in the order of their session."""
    folder = next(folder for folder in ledger.sessions() if folder.name == receipt.session)
    read = [codec.decode(load(stored)) for stored in ledger.in_session(folder)]
    found = [(item.chain.n, item.body) for item in read if isinstance(item.body, Trial) and item.body.boot == boot]
    return [trial for _, trial in sorted(found, key=lambda item: item[0])]


def _spec(ledger: Ledger, boot: Boot) -> Spec | None:
    """The spec that the session kept; None where its text is not here or was none."""
    try:
        attempt = ledger.read(boot.attempt)
        if not isinstance(attempt.body, Attempt):
            return None
        return read_spec(ledger.read_blob(attempt.session, attempt.body.spec.text), attempt.body.spec.name).value
    except LedgerError:
        return None


def _show(made: Recipe, boot: Boot, receipt: Receipt) -> None:
    show_line(f"# {made.title}", "bold")
    show_line(f"# boot {short(made.boot, 16)} of {receipt.at}, session {receipt.session}")
    if made.question:
        show_line(f"# {made.question}")
    for heading, lines in (("pins", made.pins), ("before the boot", made.hygiene), ("gates", made.gates)):
        _listed(heading, lines)
    for launch in made.launches:
        show_line(
            f"\n# rank {launch.rank} on {launch.node}" + (", started last" if len(made.launches) > 1 and not launch.rank else "")
        )
        show_line(launch.command)
    for heading, lines in (("measures", made.measures), ("where it ran", made.machine), ("be warned", made.warnings)):
        _listed(heading, lines)


def _show_run(boot: Boot) -> None:
    attempt = short(boot.attempt)
    show_line("\n# or, with the spec and the site that it was made of")
    show_line(f"ledger show {attempt} --blob 1 > spec.toml && ledger show {attempt} --blob 2 > site.toml")
    show_line(f"ledger run spec.toml --site site.toml --only {boot.subject.arm}")


def _listed(heading: str, lines: tuple[str, ...]) -> None:
    if lines:
        show_line(f"\n# {heading}")
        for line in lines:
            show_line(f"# - {line}")
