"""``ledger plan``: what a run would do.

What it does: shows the boots in order, what each changes, the steps of a boot, remarks, and about how long it takes. What it
does not do: touch a node. Rules kept: what is shown is what ``ledger run`` would do; ``--commands`` can be pasted into a shell
once the values that only the node knows (``${port}``) are filled in.
"""

import json
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import click
import tomli_w
from attrs import frozen

from ledger.cli.live import minutes
from ledger.cli.odds import Seen, in_words, judged, odds_of
from ledger.cli.screen import show_json, show_line, show_remark, show_table
from ledger.cli.sites import load_for
from ledger.cli.state import State, json_option, pass_state
from ledger.core.errors import ExitCode, LedgerError
from ledger.instruments.base import Instrument
from ledger.query.index import open_index
from ledger.query.stood import noise_of
from ledger.receipt.codec import fingerprint
from ledger.receipt.model import Odds
from ledger.run.estimate import boot_seconds, estimate
from ledger.run.session import find_instruments
from ledger.spec.change import in_words as change_in_words
from ledger.spec.docker_run import render, with_texts
from ledger.spec.interpolate import interpolate, names
from ledger.spec.model import ENDPOINT, Measure
from ledger.spec.plan import BootPlan, Plan, RankPlan, make_plan, node_values
from ledger.spec.restore import WHY_ADDED
from ledger.store.ledger import Ledger


@frozen(kw_only=True)
class _Against:
    """The odds of the arms that are judged against one control."""

    control: str
    odds: Odds


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
    instruments = find_instruments(made)
    odds = _odds(state.directory, made)
    if as_json:
        show_json(as_data(made, instruments, odds))
        return ExitCode.YES
    if as_toml:
        sys.stdout.write(tomli_w.dumps(as_data(made, instruments, odds)))
        return ExitCode.YES
    if commands:
        _show_commands(made)
    else:
        _show(made, instruments)
        for each in odds:
            for line in in_words(each.odds):
                show_line(f"against {each.control}: {line}")
    for remark in made.remarks:
        show_remark(f"note: {remark}", "yellow")
    return ExitCode.YES


def _show(made: Plan, instruments: Mapping[str, Instrument]) -> None:
    seconds = estimate(made, instruments)
    about = f", about {minutes(seconds)}" if seconds is not None else ""
    show_line(f"{made.spec.name} on site {made.site.name}: {made.count} boots{about}", "bold")
    show_line(made.spec.question)
    rows = [
        [str(boot.position), boot.arm.id, boot.declared.id, boot.arm.role, boot.evidence, change_of(boot, made)]
        for boot in made.boots
    ]
    show_table(["", "arm", "lane", "role", "evidence", "change"], rows, right=[""])
    for line in added(made):
        show_line(line, "yellow")
    show_line(order_of(made))
    for line in (f"each boot: {', '.join(steps(made))}", *measures(made), *conditions(made)):
        show_line(line)


def _odds(folder: Path, made: Plan) -> list[_Against]:
    """The odds of the rule against each control that is booted, under the noise that the ledger has seen of it."""
    rule = made.spec.rule
    if rule is None:
        return []
    booted = {boot.arm.id: boot for boot in made.boots}
    groups = {
        control: [name for name in names if name in booted]
        for control, names in judged(made.spec, rule).items()
        if control in booted and any(name in booted for name in names)
    }
    seen = _seen(folder, [booted[control] for control in groups])
    count = Counter(boot.arm.id for boot in made.boots)
    return [
        _Against(
            control=control,
            odds=odds_of(
                rule,
                seen.get(control, {}),
                boots=min(count[name] for name in (control, *names)),
                arms=len(names),
                seed=f"{made.spec.name}/{control}",
            ),
        )
        for control, names in groups.items()
    ]


def _seen(folder: Path, boots: Sequence[BootPlan]) -> dict[str, Seen]:
    """What the ledger around ``folder`` has seen of these configurations; nothing where there is no ledger."""
    try:
        ledger = Ledger.find(folder)
    except LedgerError:
        return {}
    with open_index(ledger) as connection:
        return {boot.arm.id: noise_of(connection, [fingerprint(boot.identity)], boot.evidence) for boot in boots}


def order_of(made: Plan) -> str:
    """How the boots are laid out, with the seed of a random order."""
    seed = f", seed {made.spec.order_seed}" if made.spec.order == "random" else ""
    rounds = max(boot.round for boot in made.boots)
    return f"order: {made.spec.order}{seed}, {rounds} {'round' if rounds == 1 else 'rounds'}"


def added(made: Plan) -> Iterator[str]:
    """Each boot that the spec does not ask for, with why it is made."""
    for boot in made.boots:
        if boot.added:
            yield f"boot {boot.position} of {boot.arm.id} is added: {boot.added}"
    if made.restores:
        which = "" if len(made.restores) == 1 else "the arm that the verdicts leave: one of "
        yield f"boot {made.count} of {which}{', '.join(made.restores)} is added: {WHY_ADDED}"


def _show_commands(made: Plan) -> None:
    for boot in made.boots:
        show_line(f"# boot {boot.position}: arm {boot.arm.id}, lane {boot.declared.id} ({boot.evidence})", "bold")
        if boot.endpoint is not None:
            show_line(f"# nothing is started: it is measured at {boot.endpoint.url}")
            continue
        for rank in boot.ranks:
            if len(boot.ranks) > 1:
                show_line(f"# rank {rank.rank} on {rank.node.name}")
            known = node_values(rank.node, boot.ranks[0].node)
            show_line(_command(boot, rank, partial(_as_started, known=known)))


def _command(boot: BootPlan, rank: RankPlan, started: Callable[[str], str]) -> str:
    """What starts a rank, quoted for a shell."""
    argv, env = [started(word) for word in rank.argv], {name: started(value) for name, value in rank.env.items()}
    if rank.container is not None:
        return shlex.join(render(boot.lane.image or "", with_texts(rank.container, started), argv, env))
    return " ".join([*(f"{name}={shlex.quote(value)}" for name, value in env.items()), shlex.join(argv)])


def _as_started(template: str, known: Mapping[str, str]) -> str:
    """The text with ``$$`` as the dollar that is started, and what is known only at the boot still a placeholder."""
    return interpolate(template, {**{name: f"${{{name}}}" for name in names(template)}, **known})


def change_of(boot: BootPlan, made: Plan) -> str:
    """The arm's change in words, and for a stand-in what is changed in its place."""
    said = change_in_words(boot.arm.change)
    if boot.arm.base is None and said == "nothing":
        return "base"
    stand_in = made.site.stand_ins.get(boot.declared.id)
    own = stand_in.arms.get(boot.arm.id) if stand_in is not None else None
    return f"{said} (stand-in: {change_in_words(own)})" if own is not None else said


def steps(made: Plan) -> Iterator[str]:
    """What is done for each boot, in order."""
    before = [gate.id for gate in made.spec.gates if gate.when == "before"]
    after = [gate.id for gate in made.spec.gates if gate.when != "before"]
    yield from (f"{name} (forbidden here)" if name in made.site.forbid else name for name in made.spec.hygiene)
    yield from (f"gate {name}" for name in before)
    started = made.site.backend != ENDPOINT
    yield "start" if started else "nothing: it is up"
    yield "one token as the sign of readiness"
    if made.spec.warmup:
        yield f"{made.spec.warmup} warm-up requests"
    for measure in made.spec.measures.values():
        yield measure.id if measure.trials == 1 else f"{measure.id} {measure.trials} times"
    yield from (f"gate {name}" for name in after)
    yield "stop" if started else "leave it up"


def measures(made: Plan) -> Iterator[str]:
    """Each measure with its parameters on one line; those that a site scales for some lanes alone, once for each set of them."""
    variants: dict[str, dict[str, list[str]]] = {}
    for boot in made.boots:
        for measure in boot.measures:
            lanes = variants.setdefault(measure.id, {}).setdefault(_parameters(measure), [])
            lanes += [boot.declared.id] if boot.declared.id not in lanes else []
    for name, found in variants.items():
        for parameters, lanes in found.items():
            where = f" for lane {', '.join(lanes)}" if len(found) > 1 else ""
            yield f"measure {name}{where}: {made.spec.measures[name].uses}{parameters}"


def _parameters(measure: Measure) -> str:
    return "".join(f", {key} {json.dumps(value, ensure_ascii=False)}" for key, value in measure.parameters.items())


def conditions(made: Plan) -> Iterator[str]:
    """The gates and the rule in words."""
    for gate in made.spec.gates:
        read = f"{gate.reads} of {gate.of}" if gate.of else gate.reads
        yield f"gate {gate.id} ({gate.when}): {gate.text} [{read} {gate.op} {gate.value}]"
    rule = made.spec.rule
    if rule is not None:
        yield (
            f"rule: keep if one of {', '.join(rule.metrics)} is better by more than {rule.better_than} "
            f"and none is worse by more than {rule.worse_than}"
        )


def as_data(made: Plan, instruments: Mapping[str, Instrument], odds: Sequence[_Against] = ()) -> dict[str, Any]:
    """The plan as plain data, for programs. There is no ``estimate_s`` where the site gives no speeds."""
    return {
        "spec": made.spec.name,
        "site": made.site.name,
        "question": made.spec.question,
        "order": made.spec.order,
        **({"order_seed": made.spec.order_seed} if made.spec.order == "random" else {}),
        **_seconds(estimate(made, instruments)),
        "steps": list(steps(made)),
        "remarks": list(made.remarks),
        **({"odds": [{"control": each.control, **_plain(each.odds)} for each in odds]} if odds else {}),
        "boots": [_boot_data(boot, made, instruments) for boot in made.boots],
        **({"restores": [_boot_data(boot, made, instruments) for boot in made.restores.values()]} if made.restores else {}),
    }


def _boot_data(boot: BootPlan, made: Plan, instruments: Mapping[str, Instrument]) -> dict[str, Any]:
    return {
        "position": boot.position,
        "round": boot.round,
        **({"added": boot.added} if boot.added else {}),
        "arm": boot.arm.id,
        "lane": boot.declared.id,
        "role": boot.arm.role,
        "evidence": boot.evidence,
        "change": change_of(boot, made),
        **_seconds(boot_seconds(boot, instruments, made.site.speed)),
        "identity": dict(boot.identity),
        "ranks": [
            {"rank": rank.rank, "node": rank.node.name, "argv": list(rank.argv), "env": dict(rank.env)} for rank in boot.ranks
        ],
        "measures": [{"id": item.id, "uses": item.uses, "parameters": dict(item.parameters)} for item in boot.measures],
    }


def _plain(odds: Odds) -> dict[str, Any]:
    return attrs.asdict(odds, filter=lambda field, _: field.name != "extra")


def _seconds(seconds: float | None) -> dict[str, float]:
    return {} if seconds is None else {"estimate_s": round(seconds, 1)}
