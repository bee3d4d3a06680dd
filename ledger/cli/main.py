"""The entry point: the table of commands, and what becomes of an error.

What it does: finds a command's module only when it is asked for, so that ``ledger --help`` loads no duckdb, git or rich; turns
every :class:`LedgerError` into located lines on stderr and its exit code. What it does not do: any work of a command. Rules
kept: no traceback reaches a user without ``--debug``; a broken pipe ends quietly; Ctrl-C exits with 130.
"""

import gc
import os
import signal
import sys
import traceback
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import click

from ledger import __version__
from ledger.cli.state import State
from ledger.core.errors import AgainError, ExitCode, LedgerError, did_you_mean
from ledger.core.text import visible
from ledger.store.objects import FAULTS, refused

# command -> ("module:attribute", what `ledger --help` says of it); in the order in which people meet them.
COMMANDS: Mapping[str, tuple[str, str]] = {
    "init": ("ledger.cli.init:init", "Start a ledger in an existing git repository."),
    "plan": ("ledger.cli.plan:plan", "Show what a spec would boot and measure, and how long it may take."),
    "spec": ("ledger.cli.spec:spec", "Print the lane that a docker run or a Compose file is."),
    "run": ("ledger.cli.run:run", "Run a spec: boot, measure, record a receipt for every outcome, commit."),
    "query": ("ledger.cli.query:query", 'Ask for figures: ledger query "C6 by arm".'),
    "diff": ("ledger.cli.diff:diff", "Say what differed between two receipts and what moved."),
    "compare": ("ledger.cli.diff:compare_command", "Say whether two arms or receipts can be compared, and the factors."),
    "show": ("ledger.cli.show:show", "Show one receipt."),
    "reproduce": ("ledger.cli.reproduce:reproduce", "Print how to make a boot and its figures again."),
    "log": ("ledger.cli.log:log", "List receipts in the order in which they were made."),
    "correct": ("ledger.cli.correct:correct", "Supersede, retract or annotate a receipt, without erasing it."),
    "corrections": ("ledger.cli.corrections:corrections", "List corrections, and conflicts between them."),
    "stale": ("ledger.cli.corrections:stale", "List what rests on corrected receipts and must be made again."),
    "history": ("ledger.cli.corrections:history", "Show every value a cell has had, and why it changed."),
    "decide": ("ledger.cli.decide:decide", "Apply a spec's rule to the figures that count now."),
    "regate": ("ledger.cli.regate:regate_command", "Judge old evidence under a gate's new version."),
    "claim": ("ledger.cli.claims:claim", "Record a statement about a figure, and what it rests on."),
    "claims": ("ledger.cli.claims:claims", "Show which claims still hold."),
    "render": ("ledger.cli.document:render", "Fill in the figures of a page that are bound to the ledger."),
    "check": ("ledger.cli.document:check_command", "Say what in a page the ledger does not bear out."),
    "sql": ("ledger.cli.sql:sql", "Run a read-only SQL query over the documented views."),
    "import": ("ledger.cli.import_file:import_command", "Record figures from other tools' result files."),
    "transcribe": ("ledger.cli.transcribe:transcribe", "Record what a publication reports, as reported evidence."),
    "serving": ("ledger.cli.serving:serving", "Show what each lane serves, now or at some moment."),
    "export": ("ledger.cli.export:export", "Write the views as Parquet, CSV or JSON Lines."),
    "verify": ("ledger.cli.verify:verify_command", "Check every digest, schema and link of the ledger."),
    "blobs": ("ledger.cli.blobs:blobs_command", "Count, send and fetch large blobs that are kept outside of git."),
    "pack": ("ledger.cli.pack:pack_command", "Put committed receipts into compressed packs, in one commit."),
    "checkpoint": ("ledger.cli.checkpoint:checkpoint", "Print a root and a count over all receipts, to publish."),
    "schema": ("ledger.cli.schema:schema", "Write the JSON Schemas of spec, site and receipt."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are run; its help text comes from the table."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, in the table's order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command, or None when there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        # Importing makes many objects and no garbage: looking for some takes a tenth of a query.
        gc.disable()
        try:
            command = getattr(import_module(module), attribute)
        finally:
            gc.enable()
        gc.freeze()
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """As click, with the nearest command in the message for an unknown one."""
        name = click.utils.make_str(args[0])
        if name not in COMMANDS and not name.startswith("-"):
            ctx.fail(f"No such command {visible(name)!r}. {did_you_mean(name, COMMANDS)}")
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, "-V", "--version", prog_name="ledger")
@click.option(
    "-C",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Act as if started in DIR.",
    metavar="DIR",
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def cli(context: click.Context, directory: Path, debug: bool) -> None:
    """Declarative experiment specs and a ledger of receipts.

    A spec says what is asked; a run records every outcome as a receipt in git; queries read what is true now.
    """
    context.obj = State(directory=directory, debug=debug)


def main(arguments: list[str] | None = None) -> None:
    """Run the program and exit with its code."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: list[str]) -> int:
    """Run the program and return its exit code; errors are shown on stderr."""
    debug = "--debug" in arguments[:4]
    try:
        result = _invoke(arguments)
    except (KeyboardInterrupt, click.Abort):
        _tell("interrupted")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except LedgerError as error:
        _show_problems(error)
        if debug:
            traceback.print_exc()
        return error.exit_code
    except Exception as error:
        if isinstance(error, OSError) and error.errno in FAULTS:
            return _show_fault(error, debug)
        _show_defect(error, debug)
        return ExitCode.DEFECT
    return result if isinstance(result, int) else ExitCode.YES


def _invoke(arguments: list[str]) -> object:
    """Run the command; once more where it only met something derived that was damaged."""
    try:
        return cli.main(args=list(arguments), prog_name="ledger", standalone_mode=False)
    except AgainError:
        return cli.main(args=list(arguments), prog_name="ledger", standalone_mode=False)


def _show_problems(error: LedgerError) -> None:
    for problem in error.problems:
        where = f"{problem.place}: " if problem.place else ""
        _tell(f"{where}{problem.what}" + (f" (got {problem.value})" if problem.value is not None else ""))
        if problem.hint:
            _tell(f"  {problem.hint}", prefix="")
    if len(error.problems) > 1:
        _tell(f"{len(error.problems)} problems", prefix="")


def _show_fault(error: OSError, debug: bool) -> int:
    """What a disk or the system refused where nobody was prepared for it; no defect of this program."""
    found = refused(error, Path(os.fsdecode(error.filename)) if error.filename else None)
    _show_problems(found)
    if debug:
        traceback.print_exc()
    return found.exit_code


def _show_defect(error: Exception, debug: bool) -> None:
    _tell(f"this is a defect of ledger {__version__}: {type(error).__name__}: {error}")
    if debug:
        traceback.print_exc()
    else:
        _tell("  run it again as `ledger --debug …` for the traceback, and please report it", prefix="")


def _tell(text: str, prefix: str = "ledger: ") -> None:
    click.echo(prefix + visible(text), err=True)
