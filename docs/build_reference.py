"""The pages of the reference that are made from the code: commands, instruments, metrics.

What it does: writes ``reference/commands.md`` from click's own records of every command, ``reference/instruments.md`` from the
instruments' tables of parameters, and ``reference/metrics.md`` from the families of ``core.metrics``. What it does not do:
explain (the other pages are written by hand and tested against the code).
Rules kept: the same code gives the same bytes; no page depends on the width of a terminal.

usage: python -m docs.build_reference [--check]    Write the pages, or say which of them differ.
"""

import inspect
import json
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import click

from ledger.cli.main import COMMANDS, cli
from ledger.core.metrics import FAMILIES
from ledger.core.words import Better
from ledger.instruments.extract.registry import EXTRACTORS
from ledger.instruments.openai import decode, prefill
from ledger.instruments.parameters import Parameter
from ledger.instruments.registry import INSTRUMENTS

PAGES = Path(__file__).resolve().parent / "reference"
NOTE = "<!-- Made by `python -m docs.build_reference`; edit the code that it describes. -->"
IMPORTS_NOTES = """
[`ledger import`](../how-to/import-results.md) recognises a file by its keys. A figure is named after the tool
(`aiperf.ttft@C2`), keeps the tool's unit, and is never the same metric as another tool's or as one that this ledger measures,
since tools mean different things by the same word. v41bench alone has this ledger's own definitions and names. `@C8` is a
concurrency, `@4rps` a request rate. The headline of many samples is their median where the file has it, else their mean; the
others are parts of it (`aiperf.ttft@C2/p99`).

Formats without a sample in `tests/golden/samples/` (vLLM, SGLang, genai-perf, llama-bench, qeval, RigMark) were written from the
tools' documents and sources and are tested on files made by hand.
"""
DIRECTIONS: Mapping[Better, str] = {Better.HIGHER: "higher", Better.LOWER: "lower", Better.NEITHER: "neither"}


def commands_page() -> str:
    """``commands.md``: the global options, then each command with its help, arguments and options."""
    context = click.Context(cli, info_name="ledger")
    parts = [
        "# Commands",
        NOTE,
        "`ledger --help` and `ledger COMMAND --help` say the same in a terminal. Results go to stdout, remarks and progress to "
        "stderr. Every command takes `--json`. Exit codes are on [a page of their own](exit-codes.md). Receipts are named by the "
        "first digits of their digest, or by words: `ARM` (its latest boot), `ARM/MEASURE` (its latest trial), "
        "`SPEC:ARM/MEASURE`; `~1` behind a name is the one before.",
        "| command | |\n|---|---|\n"
        + "\n".join(f"| [`ledger {name}`](#ledger-{name}) | {_cell(text)} |" for name, (_, text) in COMMANDS.items()),
        "## Before every command",
        _table(cli),
    ]
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        parts += _command(name, command)
        for below, inner in command.commands.items() if isinstance(command, click.Group) else ():
            parts += _command(f"{name} {below}", inner)
    return _page(parts)


def instruments_page() -> str:
    """``instruments.md``: each built-in instrument with its version, what it measures and its parameters."""
    parts = [
        "# Instruments",
        NOTE,
        'A measure of a spec `uses = "<instrument>"`; its other keys are the parameters below. A receipt keeps them with every '
        "default filled in, and the version of the definitions. [Another package can add one](../how-to/add-an-instrument.md).",
    ]
    for name, parameters in PARAMETERS.items():
        about = inspect.cleandoc(inspect.getmodule(INSTRUMENTS.built_in[name]).__doc__ or "")
        parts += [
            f"## {name}",
            f"Version {INSTRUMENTS.built_in[name].version}. {_sentence(about.partition(': ')[2])}",
            "\n".join(["| parameter | default | meaning |", "|---|---|---|", *_parameters(parameters)]),
        ]
    return _page(parts)


# The built-in instruments and their tables of parameters.
PARAMETERS: Mapping[str, Mapping[str, Parameter]] = {"openai/decode": decode.PARAMETERS, "openai/prefill": prefill.PARAMETERS}


def _parameters(parameters: Mapping[str, Parameter]) -> Iterator[str]:
    for key, parameter in parameters.items():
        value = json.dumps(parameter.default) if parameter.default is not None else ""
        yield f"| `{key}` | {f'`{value}`' if value else 'none'} | {_cell(_sentence(parameter.about))} |"


def _sentence(text: str) -> str:
    """The first paragraph of ``text`` on one line, as a sentence."""
    flat = " ".join(text.partition("\n\n")[0].replace("``", "`").split())
    return flat[:1].upper() + flat[1:].rstrip(".") + "."


def imports_page() -> str:
    """``imports.md``: each format that ``ledger import`` reads, with the tool's own definitions."""
    parts = ["# Formats that can be imported", NOTE, IMPORTS_NOTES.strip()]
    for name in sorted(EXTRACTORS.built_in):
        extractor = EXTRACTORS.built_in[name]()
        rows = [f"| `{figure}` | {_cell(text)} |" for figure, text in extractor.definitions.items()]
        parts += [f"## `{name}`", _sentence(inspect.getdoc(type(extractor)) or "")]
        parts += ["\n".join(["| figure | what the tool means by it |", "|---|---|", *rows])] if rows else []
    return _page(parts)


def metrics_page() -> str:
    """``metrics.md``: each family with an example, unit, direction and definition."""
    rows = [
        f"| `{family.name}` | `{family.example}` | {family.unit} | {DIRECTIONS[family.better]} | {_cell(family.definition)} |"
        for family in FAMILIES
    ]
    parts = [
        "# Metrics",
        NOTE,
        "A metric's name says what was measured: a family, and the level or length behind it. A name of no family here is a "
        "metric of its own, without a direction. Every figure carries its unit, the number of samples `n`, the statistic that "
        "pooled them, and the lowest and highest; a figure that could not be had carries the reason instead.",
        "\n".join(["| family | for example | unit | better | definition |", "|---|---|---|---|---|", *rows]),
        METRICS_NOTES.strip(),
    ]
    return _page(parts)


def _page(parts: Sequence[str]) -> str:
    """The parts under each other; lines of plain prose are filled to the width that the other pages have."""
    filled = [
        textwrap.fill(part, 130) if "\n" not in part and part[0] not in "#<|" and part[:3] != "```" else part for part in parts
    ]
    return "\n\n".join(filled) + "\n"


METRICS_NOTES = """
`/<category>` behind a name of `C`, `per_stream` or `ttft` is one prompt category of it: `C6/code`, `ttft@C1/summary`.

## What the definitions rest on

- **Start** is just before the request is written, on a connection that is already open. Connecting is not in any figure.
- **First output** is the first event with content, reasoning or tool-call text. A chunk that only names the role is not output.
- **Tokens** come from the server's `usage`. Chunks are never counted as tokens: with speculative decoding one
  chunk holds several.
- **A failed request** is counted in the trial's `requests`, enters no figure, and is never sent again to make it succeed. A batch
  with a failed request has no aggregate.
- **A rate** needs two tokens and a window of at least 50 ms. Text that came in one read has no rate.
- **A prompt that the prefix cache answered** is marked `hit`. In one trial cold repeats alone are pooled where there are some; in
  queries cold figures and hits are separate rows.

## From samples to a cell

1. An instrument pools the samples of one trial into a figure (`mean` or `median`, named in the figure).
2. The trials of one boot are pooled by their median. A boot with more trials weighs no more than another.
3. The boots of a cell are pooled by their median; `low … high` is the lowest and highest boot, and `n` counts boots. Requests
   inside one boot are not replicates: they share its every accident.
"""


def _command(name: str, command: click.Command) -> Iterator[str]:
    arguments = [_argument(item) for item in command.params if isinstance(item, click.Argument)]
    yield f"## ledger {name}"
    yield f"```text\nledger {' '.join([name, '[OPTIONS]', *arguments])}\n```"
    yield _help(command)
    yield _table(command)


def _help(command: click.Command) -> str:
    """The help text; a paragraph under ``\\b`` is shown as it stands."""
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    shown = []
    for paragraph in paragraphs:
        first, _, rest = paragraph.partition("\n")
        shown.append(f"```text\n{rest}\n```" if first.strip() == "\b" else paragraph.replace("<", "&lt;"))
    return "\n\n".join(shown)


def _table(command: click.Command) -> str:
    options = [item for item in command.params if isinstance(item, click.Option) and not item.hidden]
    rows = [f"| `{_option(item)}` | {_cell((item.help or '') + ' ' + _notes(item))} |" for item in options]
    return "\n".join(["| option | |", "|---|---|", *rows])


# Spelled here and not by click, whose spelling of a type changes between versions.
def _argument(item: click.Argument) -> str:
    name = (item.metavar or item.name or "").upper() + ("…" if item.nargs == -1 else "")
    return name if item.required else f"[{name}]"


def _option(item: click.Option) -> str:
    names = ", ".join([*item.opts, *item.secondary_opts])
    return names if item.is_flag or item.count else f"{names} {item.metavar or _type(item.type)}"


def _type(kind: object) -> str:
    names = {click.Choice: "WORD", click.Path: "PATH", click.IntRange: "N", click.FloatRange: "N"}
    return next((name for cls, name in names.items() if isinstance(kind, cls)), "TEXT")


def _notes(item: click.Option) -> str:
    """What a value may be, and what holds without one."""
    said = []
    if isinstance(item.type, click.Choice):
        said.append("One of " + ", ".join(f"`{word}`" for word in item.type.choices) + ".")
    if isinstance(item.type, click.IntRange | click.FloatRange):
        low, high = item.type.min, item.type.max
        said.append(f"From {low:g}" + (f" to {high:g}." if high is not None else " up.") if low is not None else "")
    if item.required:
        said.append("Required.")
    if item.show_default and not item.is_flag:
        said.append(f"Default: `{item.default}`.")
    return " ".join(said)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


MADE: Mapping[str, Callable[[], str]] = {
    "commands.md": commands_page,
    "instruments.md": instruments_page,
    "imports.md": imports_page,
    "metrics.md": metrics_page,
}


def main(arguments: Sequence[str]) -> int:
    """Write the pages; with ``--check`` only compare, and return 1 when one differs."""
    check = "--check" in arguments
    differing = 0
    for name, make in MADE.items():
        path, text = PAGES / name, make()
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            differing += 1
            if not check:
                path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"{'differs' if check else 'written'}: {name}\n")
    return 1 if check and differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
