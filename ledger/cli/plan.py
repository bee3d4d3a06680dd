"""``ledger plan``: what a run would do.

What it does: shows the boots in order, what each changes and measures, remarks, and about how long it takes. What it does not
do: touch a node. Rules kept: what is shown is what ``ledger run`` would do; ``--commands`` can be pasted into a shell once the
values that only the node knows (``${port}``) are filled in.
"""

import shlex
import sys
from pathlib import Path
from typing import Any

import click
import tomli_w

from ledger.cli.live import minutes
from ledger.cli.screen import show_json, show_line, show_remark, show_table
from ledger.cli.sites import load_for
from ledger.cli.state import State, json_option, pass_state
from ledger.core.errors import ExitCode
from ledger.run.estimate import estimate
from ledger.run.session import find_instruments
from ledger.spec.change import in_words
from ledger.spec.plan import BootPlan, Plan, make_plan


@click.command()
@click.argument("spec", type=click.Path(path_type=Path))
@click.option("--site", type=click.Path(path_type=Path), help="The site file; else LEDGER_SITE, else the one the spec names.")
@click.option("--only", multiple=True, metavar="ARM", help="Plan this arm alone; may be given more than once.")
@click.option("--toml", "as_toml", is_flag=True, help="Print the resolved plan as TOML, to read or to keep beside the spec.")
@click.option("--commands", is_flag=True, help="Show each rank's command, quoted for a shell.")
@json_option
@pass_state
def plan(state: State, spec: Path, site: Path | None, only: tuple[str, ...], as_toml: bool, commands: bool, as_json: bool) -> int:
    """Show what SPEC would boot and measure, and how long it may take."""
    found = load_for(state.directory / spec, site)
    made = make_plan(found.spec, found.site, only=only)
    seconds = estimate(made, find_instruments(made))
    if as_json or as_toml:
        data = as_data(made, seconds)
        if as_toml:
            sys.stdout.write(tomli_w.dumps({name: value for name, value in data.items() if value is not None}))
        else:
            show_json(data)
        return ExitCode.YES
    if commands:
        _show_commands(made)
    else:
        _show(made, seconds)
    for remark in made.remarks:
        show_remark(f"note: {remark}", "yellow")
    return ExitCode.YES


def _show(made: Plan, seconds: float | None) -> None:
    about = f", about {minutes(seconds)}" if seconds is not None else ""
    show_line(f"{made.spec.name} on site {made.site.name}: {len(made.boots)} boots{about}", "bold")
    show_line(made.spec.question)
    rows = [
        [str(boot.position), boot.arm.id, boot.declared.id, boot.arm.role, boot.evidence, change_of(boot), measures_of(boot)]
        for boot in made.boots
    ]
    show_table(["", "arm", "lane", "role", "evidence", "change", "measures"], rows, right=[""])
    for gate in made.spec.gates:
        show_line(f"gate {gate.id} ({gate.when}): {gate.text} [{gate.reads} {gate.op} {gate.value}]")
    if made.spec.rule is not None:
        rule = made.spec.rule
        show_line(
            f"rule: keep if one of {', '.join(rule.metrics)} is better by more than {rule.better_than} "
            f"and none is worse by more than {rule.worse_than}"
        )


def _show_commands(made: Plan) -> None:
    for boot in made.boots:
        show_line(f"# boot {boot.position}: arm {boot.arm.id}, lane {boot.declared.id} ({boot.evidence})", "bold")
        for rank in boot.ranks:
            if len(boot.ranks) > 1:
                show_line(f"# rank {rank.rank} on {rank.node.name}")
            env = [f"{name}={shlex.quote(value)}" for name, value in rank.env.items()]
            show_line(" ".join([*env, shlex.join(rank.argv)]))


def change_of(boot: BootPlan) -> str:
    """The arm's change in words; for a stand-in, its own change too."""
    said = in_words(boot.arm.change) if boot.arm.base is not None else "base"
    own = boot.requested.get("stand_in")
    changes = own.get("changes", {}) if isinstance(own, dict) else {}
    mine = changes.get(boot.arm.id) if isinstance(changes, dict) else None
    if not mine:
        return said
    args = " ".join([*mine.get("args", []), *(f"without {flag}" for flag in mine.get("drop_args", []))])
    return f"{said} (stand-in: {args or 'unchanged'})"


def measures_of(boot: BootPlan) -> str:
    """The measures with the parameters that the spec or site gives."""
    return "; ".join(
        f"{measure.id} " + " ".join(f"{key}={value}" for key, value in measure.parameters.items()) for measure in boot.measures
    )


def as_data(made: Plan, seconds: float | None) -> dict[str, Any]:
    """The plan as plain data, for ``--json``."""
    return {
        "spec": made.spec.name,
        "site": made.site.name,
        "estimate_s": seconds,
        "remarks": list(made.remarks),
        "boots": [
            {
                "position": boot.position,
                "arm": boot.arm.id,
                "lane": boot.declared.id,
                "role": boot.arm.role,
                "evidence": boot.evidence,
                "change": change_of(boot),
                "identity": dict(boot.identity),
                "ranks": [
                    {"rank": rank.rank, "node": rank.node.name, "argv": list(rank.argv), "env": dict(rank.env)}
                    for rank in boot.ranks
                ],
                "measures": [{"id": item.id, "uses": item.uses, "parameters": dict(item.parameters)} for item in boot.measures],
            }
            for boot in made.boots
        ],
    }
