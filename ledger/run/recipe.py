"""What somebody else needs to make a boot and its figures again, from its receipts alone.

What it does: gathers pins, hygiene, gates, the command of each rank in the order of launch, measures with their parameters, the
machine, and what to be warned of. What it does not do: look at this machine, or run anything. Rules kept: a command is the one
that was started, quoted for a shell; what is concealed or was never told is a warning, and never filled in.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import evolve, field, frozen

from ledger.core.words import Evidence, Outcome
from ledger.receipt.model import Boot, RankConfig, Trial
from ledger.run.agreement import AGREES
from ledger.run.secrets import PREFIX
from ledger.spec.docker_run import render
from ledger.spec.model import Container, Spec
from ledger.spec.structure import structure

PIN_PREFIXES = ("package.", "file.", "manifest.", "image_label.", "tree.")
PINS = ("engine", "model", "model_revision", "quantization", "image", "image_id")
_PLACE = re.compile(r"\$\{(?:venv|root|home)\}")
NOT_MEASURED: Mapping[str, str] = {
    Evidence.STAND_IN: "the figures are those of a stand-in for the lane, not of the lane",
    Evidence.REPORTED: "the figures were reported by a publication; nothing of them was seen here",
    Evidence.IMPORTED: "the figures were measured by another tool, and only its file was seen here",
    Evidence.REHEARSED: "the figures were simulated",
}


@frozen(kw_only=True)
class Launch:
    """What starts a rank: its node and its command for a shell."""

    rank: int
    node: str
    command: str


@frozen(kw_only=True)
class Recipe:
    """How to make a boot again. Every field but the first two is a list of lines; ``launches`` are in the order of launch."""

    boot: str
    title: str
    question: str = ""
    pins: tuple[str, ...] = ()
    hygiene: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()
    launches: tuple[Launch, ...] = ()
    measures: tuple[str, ...] = ()
    machine: tuple[str, ...] = ()
    warnings: tuple[str, ...] = field(default=())


def recipe(digest: str, boot: Boot, trials: Sequence[Trial], spec: Spec | None) -> Recipe:
    """The recipe of the boot ``digest`` with its trials; ``spec`` is the one of its session, where that can be read."""
    subject = boot.subject
    made = Recipe(
        boot=digest,
        title=f"{subject.spec}: arm {subject.arm} on lane {subject.lane}, {subject.evidence}",
        pins=tuple(_pins(boot)),
        launches=tuple(_launches(boot)),
        measures=tuple(_measures(trials)),
        machine=tuple(f"{key}: {value}" for key, value in boot.factors.context.items() if not key.startswith("args.")),
    )
    if spec is not None:
        gates = (f"{gate.id} ({gate.when}): {gate.text} [{gate.reads} {gate.op} {gate.value}]" for gate in spec.gates)
        warm = (f"{spec.warmup} warm-up requests after the server is ready",) if spec.warmup else ()
        made = evolve(made, question=spec.question, hygiene=(*spec.hygiene, *warm), gates=tuple(gates))
    return evolve(made, warnings=tuple(_warnings(boot, trials, made)))


def _pins(boot: Boot) -> Iterator[str]:
    known = {**boot.factors.identity, **boot.factors.provenance}
    for key in (*PINS, "recipe", "recipe_revision"):
        if key in known:
            yield f"{key}: {known[key]}"
    for key, value in boot.factors.identity.items():
        if key.startswith(PIN_PREFIXES):
            yield f"{key}: {value}"


def _launches(boot: Boot) -> Iterator[Launch]:
    """Workers as they were started, the head last."""
    lane = boot.requested.get("lane", {})
    for rank in sorted(boot.resolved, key=lambda rank: (rank.rank == 0, rank.rank)):
        yield Launch(rank=rank.rank, node=rank.node, command=_command(rank, lane))


def _command(rank: RankConfig, lane: Mapping[str, Any]) -> str:
    held = lane.get("container")
    if isinstance(held, Mapping):
        container = structure(Container, held, (), _ignored)
        words = render(str(lane.get("image", "")), container, rank.argv, rank.env)
    else:
        words = rank.argv
    before = [] if isinstance(held, Mapping) else [f"{name}={_quoted(value)}" for name, value in rank.env.items()]
    return " ".join([*before, *map(_quoted, words)])


def _quoted(word: str) -> str:
    """For a shell, which is left the folders of the machine to fill in."""
    plain = _PLACE.sub("", word)
    return f'"{word}"' if plain != word and shlex.quote(plain) in (plain, "''") else shlex.quote(word)


def _ignored(*_: Any, **__: Any) -> None:
    """A receipt of a newer version may hold words of ``docker run`` that this one does not know."""


def _measures(trials: Sequence[Trial]) -> Iterator[str]:
    """Each measure once, with its parameters and the number of its trials."""
    of: dict[str, list[Trial]] = {}
    for trial in trials:
        of.setdefault(trial.measure, []).append(trial)
    for name, made in of.items():
        instrument = made[0].instrument
        said = ", ".join(f"{key} {json.dumps(value, ensure_ascii=False)}" for key, value in instrument.parameters.items())
        times = f", {len(made)} times" if len(made) > 1 else ""
        yield f"{name}: {instrument.name} v{instrument.version}{times}" + (f"; {said}" if said else "")


def _warnings(boot: Boot, trials: Sequence[Trial], made: Recipe) -> Iterator[str]:
    if boot.subject.evidence in NOT_MEASURED:
        yield NOT_MEASURED[boot.subject.evidence]
    if boot.outcome is not Outcome.READY:
        yield f"this boot did not get ready ({boot.outcome}): {boot.reason}"
    if not made.launches:
        yield "the command is not known"
    if boot.agreement.state != AGREES:
        yield f"whether the server ran this configuration: {boot.agreement.state}"
    if boot.conditions.get("jit_cache") == "cold":
        yield "its compile cache was cold: a boot on a warm one is another state, and faster"
    if any(PREFIX in launch.command for launch in made.launches):
        yield "values that were secret stand as digests: give your own"
    if any("${" in launch.command for launch in made.launches):
        yield "folders of the machine stand as ${venv}, ${root} and ${home}: set these to your own first"
    asked = [trial.instrument.parameters for trial in trials if trial.instrument.name.startswith("openai/")]
    if asked:
        yield "requests are greedy (temperature 0, top_p 1), whatever the server's own default is"
    if any(parameters.get("thinking") == "server" for parameters in asked):
        yield "thinking is left to the server's own default"
    if boot.conditions.get("neighbours"):
        yield f"neighbours on the machine: {boot.conditions['neighbours']}"
