"""``ledger spec``: a lane from what people have.

What it does: prints the lane that a ``docker run``, a service of a Compose file or any other command line is, as TOML to be put
into a spec. What it does not do: write a file, look at the image, or run anything. Rule kept: what it does not understand is
refused with the way out, so that nothing of a command is lost on the way.
"""

import sys
from pathlib import Path
from typing import Any

import click
import tomli_w

from ledger.cli.screen import show_json, show_remark
from ledger.cli.state import State, json_option, pass_state
from ledger.core.errors import ExitCode, Problem, UsageError
from ledger.spec import compose
from ledger.spec.docker_run import MAX_TEXT, Launch, read

FORMS = ("from-docker-run", "from-compose")


@click.command()
@click.argument("form", type=click.Choice(FORMS))
@click.argument("text")
@click.option("--lane", "name", default="A", show_default=True, help="The id of the lane.")
@click.option("--engine", help="The engine; else the image's name, or the program's.")
@click.option("--model", help="The model; else what the command says it serves.")
@click.option("--service", help="from-compose: which service; may be left out where there is one.")
@click.option("--var", "variables", multiple=True, metavar="NAME=VALUE", help="from-compose: the value of ${NAME} in the file.")
@json_option
@pass_state
def spec(
    state: State,
    form: str,
    text: str,
    name: str,
    engine: str | None,
    model: str | None,
    service: str | None,
    variables: tuple[str, ...],
    as_json: bool,
) -> int:
    """Print the lane that a command line or a Compose file is.

    For from-docker-run TEXT is the command line as one argument, @FILE, or - for standard input; a command that is no
    `docker run` is a lane without a container. For from-compose it is FILE, or - for standard input.
    """
    if form == "from-compose":
        launch = _composed(state, text, service, variables)
    elif service or variables:
        raise UsageError("--service and --var are for from-compose")
    else:
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


def _composed(state: State, file: str, service: str | None, variables: tuple[str, ...]) -> Launch:
    """The service of a Compose file; what a lane does not have of it is remarked."""
    pairs = [each.partition("=") for each in variables]
    for name, equals, _ in pairs:
        if not equals or not name:
            raise UsageError(Problem(what="no variable with its value", value=name, hint="--var NAME=VALUE"))
    text = _given(state, "-" if file == "-" else f"@{file}")
    found = compose.read_service(text, file, name=service, given={name: value for name, _, value in pairs})
    for remark in found.remarks:
        show_remark(remark)
    return found.launch


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
