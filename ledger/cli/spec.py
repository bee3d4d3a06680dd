"""``ledger spec``: a lane from what people have.

What it does: prints the lane that a ``docker run`` or any other command line is, as TOML to be put into a spec. What it does not
do: write a file, look at the image, or run anything. Rule kept: what it does not understand is refused with the way out, so that
nothing of a command is lost on the way.
"""

import sys
from pathlib import Path
from typing import Any

import click
import tomli_w

from ledger.cli.screen import show_json
from ledger.cli.state import State, json_option, pass_state
from ledger.core.errors import ExitCode, UsageError
from ledger.spec.docker_run import MAX_TEXT, read

FORMS = ("from-docker-run",)


@click.command()
@click.argument("form", type=click.Choice(FORMS))
@click.argument("text")
@click.option("--lane", "name", default="A", show_default=True, help="The id of the lane.")
@click.option("--engine", help="The engine; else the image's name, or the program's.")
@click.option("--model", help="The model; else what the command says it serves.")
@json_option
@pass_state
def spec(state: State, form: str, text: str, name: str, engine: str | None, model: str | None, as_json: bool) -> int:
    """Print the lane that a command line is: ledger spec from-docker-run 'docker run …'.

    TEXT is the command line as one argument, @FILE, or - for standard input. A command that is no `docker run` is a lane without
    a container.
    """
    launch = read(_given(state, text))
    program = launch.image.rpartition("/")[2].partition(":")[0] if launch.image else Path(launch.command[0]).name
    lane = launch.as_lane(engine=engine or program, model=model or "")
    lane["model"] = lane["model"] or lane.get("served_model") or _no_model()
    found: dict[str, Any] = {"lanes": {name: lane}}
    if as_json:
        show_json(found)
    else:
        sys.stdout.write(tomli_w.dumps(found))
    return ExitCode.YES


def _given(state: State, text: str) -> str:
    if text == "-":
        return sys.stdin.read(MAX_TEXT + 1)
    if not text.startswith("@"):
        return text
    try:
        with (state.directory / text[1:]).open(encoding="utf-8", errors="replace") as file:
            return file.read(MAX_TEXT + 1)
    except OSError as error:
        raise UsageError(f"cannot read {text[1:]}: {error.strerror}") from error


def _no_model() -> str:
    raise UsageError("the command does not say which model it serves", hint="say it: --model NAME")
