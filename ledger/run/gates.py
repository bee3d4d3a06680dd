"""Gates: what was read, compared with its limit.

What it does: takes a gate's reading from evidence, on each node or trial, and says whether the condition holds. What it does
not do: gather evidence (``host``, ``kernel``, ``telemetry``, ``sides``), or decide what follows from a failed gate (``boot``).
Rules kept: a pure function of the gate and the evidence, so that an old boot can be judged again from its blobs; the worst node
decides; what cannot be read gives ``unknown`` with its reason, never ``pass``.
"""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence

from attrs import frozen

from ledger.core import units
from ledger.core.digest import Descriptor
from ledger.core.words import Holds
from ledger.receipt.model import Gate, Subject, Trial
from ledger.run import host, kernel, sides
from ledger.run.evidence import NODE, SOURCE, Evidence, Piece
from ledger.run.manifests import MANIFEST, count_differing
from ledger.run.samples import Sample, Taken
from ledger.run.telemetry import TELEMETRY, samples_of
from ledger.spec import readings
from ledger.spec.gates import matches
from ledger.spec.model import GateSpec

OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    ">": operator.gt,
}
COUNTER_SOURCES = (host.MEMINFO, host.LOADAVG, host.SENSORS)
REQUEST_COUNTS = ("failed", "ok", "launched")
MOST_REASONS = 5


@frozen(kw_only=True)
class GateVerdict:
    """What a gate said: whether it holds, the value that decided (as text), why, and the evidence it was read from."""

    gate: GateSpec
    holds: Holds
    value: str | None = None
    reason: str | None = None
    evidence: tuple[Piece, ...] = ()


def judge(gate: GateSpec, evidence: Evidence) -> GateVerdict:
    """Whether ``gate`` holds by ``evidence``."""
    taken = _take(gate, evidence)
    readable = readings.find(gate.reads)
    limit = units.parse(gate.value, default_unit="ratio" if readable and readable.dimension == "ratio" else "")
    known = [sample for sample in taken.samples if sample.value is not None]
    unknown = [f"{sample.where}: {sample.why}".removeprefix(": ") for sample in taken.samples if sample.value is None]
    worst = _worst(gate.op, [float(sample.value) for sample in known if sample.value is not None], limit.number)
    reasons = list(dict.fromkeys([*([taken.reason] if taken.reason else []), *unknown]))
    if worst is None:
        reasons = reasons or ["nothing was read"]
        return GateVerdict(gate=gate, holds=Holds.UNKNOWN, reason=_said(reasons), evidence=taken.pieces)
    fails = not OPERATORS[gate.op](worst, limit.number)
    where = next(sample.where for sample in known if sample.value == worst)
    if len(known) > 1 and where:
        reasons.insert(0, f"the worst of {len(known)}: {where}")
    return GateVerdict(
        gate=gate,
        holds=Holds.FAIL if fails else Holds.UNKNOWN if unknown else Holds.PASS,
        value=str(units.Quantity(number=worst, dimension=limit.dimension, unit=limit.unit)),
        reason=_said(reasons) or None,
        evidence=taken.pieces,
    )


def gate_receipt(
    verdict: GateVerdict,
    subject: Subject,
    attempt: str,
    boot: str | None,
    evidence: tuple[Descriptor, ...],
    regates: str | None = None,
) -> Gate:
    """The receipt of a verdict."""
    gate = verdict.gate
    return Gate(
        subject=subject,
        gate=gate.id,
        version=gate.version,
        when=gate.when,
        holds=verdict.holds,
        text=gate.text,
        attempt=attempt,
        boot=boot,
        value=verdict.value,
        limit=f"{gate.op} {gate.value}",
        reason=verdict.reason,
        regates=regates,
        evidence=evidence,
    )


def blocks(verdict: GateVerdict) -> str | None:
    """What a gate that blocks says; None where it holds, or only marks."""
    gate = verdict.gate
    if verdict.holds is Holds.PASS or gate.on_fail != "block":
        return None
    why = f": {verdict.reason}" if verdict.reason else ""
    return f"gate {gate.id!r} {verdict.holds}: {gate.text} ({gate.reads} {gate.op} {gate.value}, read {verdict.value}{why})"


def _take(gate: GateSpec, evidence: Evidence) -> Taken:
    """The gate's reading, for each node or trial."""
    room, _, name = gate.reads.partition(".")
    if room == "host" and gate.when == "during":
        return _sampled(name, evidence)
    if room == "host" and name == "disk_free":
        return _of_nodes(evidence, host.DISK + (gate.of or "."), host.parse_disk)
    if room == "host" and name == "processes":
        return _of_nodes(evidence, f"{host.PROCESSES}{gate.of}", host.count_processes)
    if room == "host":
        return _counters(name, evidence)
    if room == "manifest":
        return _of_nodes(evidence, f"{MANIFEST}{gate.of}", count_differing)
    if room == "kernel":
        return _of_nodes(evidence, kernel.SOURCE, lambda text: kernel.count(text, lambda line: matches(gate.of or "", line)))
    if room == "paired":
        return sides.paired(name, gate.of, evidence)
    if room == "greedy":
        return sides.greedy(gate.of, evidence)
    trials = [trial for trial in evidence.trials if gate.of in (None, trial.measure)]
    return _requests(name, trials) if room == "requests" else _figures(gate.reads, trials)


def _of_nodes(evidence: Evidence, source: str, value: Callable[[str], float | None]) -> Taken:
    pieces = evidence.of(source)
    samples = []
    for node in evidence.nodes:
        found = value(pieces[node].text) if node in pieces else None
        why = f"{source} says no number" if node in pieces else evidence.why_not(node, source)
        samples.append(Sample(where=node, value=found, why=why))
    return Taken(samples=tuple(samples), pieces=tuple(pieces.values()))


def _counters(name: str, evidence: Evidence) -> Taken:
    """A counter of each node; the whole of what a node told is the evidence, so that another counter can be read from it."""
    samples, pieces = [], []
    for node in evidence.nodes:
        mine = [piece for piece in evidence.pieces if piece.node == node and piece.source in COUNTER_SOURCES]
        found = host.counters({piece.source: piece.text for piece in mine}).get(name)
        unread = [evidence.unread[node, source] for source in COUNTER_SOURCES if (node, source) in evidence.unread]
        samples.append(Sample(where=node, value=found, why="; ".join([f"no counter {name}", *unread])))
        pieces += mine
    return Taken(samples=tuple(samples), pieces=tuple(pieces))


def _sampled(name: str, evidence: Evidence) -> Taken:
    """Every sample of every node while trials ran."""
    pieces = [piece for piece in evidence.pieces if piece.source == TELEMETRY]
    samples = [
        Sample(where=piece.node, value=value)
        for piece in pieces
        for sample in samples_of(piece)
        if (value := _of_sample(name, sample)) is not None
    ]
    seen = {sample.where for sample in samples}
    missing = [
        Sample(where=node, why=evidence.unread.get((node, TELEMETRY), f"no sample of {name}"))
        for node in dict.fromkeys(piece.node for piece in pieces)
        if node not in seen
    ]
    missing += [Sample(where=node, why=why) for (node, source), why in evidence.unread.items() if source == TELEMETRY]
    return Taken(samples=(*samples, *missing), pieces=tuple(pieces))


def _of_sample(name: str, sample: Mapping[str, float]) -> float | None:
    if name == "SwapUsed" and {"SwapTotal", "SwapFree"} <= sample.keys():
        return sample["SwapTotal"] - sample["SwapFree"]
    return sample.get(name)


def _requests(name: str, trials: Sequence[Trial]) -> Taken:
    if name not in REQUEST_COUNTS or not trials:
        return Taken(reason="no trial ran")
    total = float(sum(getattr(trial.requests, name) for trial in trials))
    return Taken(samples=(Sample(value=total),), pieces=(_trials_piece(map(_counts, trials)),))


def _figures(name: str, trials: Sequence[Trial]) -> Taken:
    """A metric of every trial that has it."""
    samples, lines = [], []
    for trial in trials:
        if (figure := trial.figures.get(name)) is not None:
            where = f"{trial.measure} trial {trial.number}"
            samples.append(Sample(where=where, value=figure.value, why=f"absent: {figure.absent}"))
            lines.append(f"{where}: {figure.value if figure.value is not None else figure.absent} {figure.unit} n={figure.n}\n")
    return Taken(
        samples=tuple(samples), pieces=(_trials_piece(lines),) if lines else (), reason="" if lines else f"no trial has {name}"
    )


def _trials_piece(lines: Iterable[str]) -> Piece:
    return Piece(annotations={NODE: "", SOURCE: "trials"}, data="".join(lines).encode())


def _counts(trial: Trial) -> str:
    return (
        f"{trial.measure} trial {trial.number}: launched {trial.requests.launched}, ok {trial.requests.ok}, "
        f"failed {trial.requests.failed}, reasons {dict(trial.requests.reasons)}\n"
    )


def _worst(op: str, values: Sequence[float], limit: float) -> float | None:
    """The value that is the furthest from holding."""
    if not values:
        return None
    if op in ("<", "<="):
        return max(values)
    if op in (">", ">="):
        return min(values)
    return next((value for value in values if not OPERATORS[op](value, limit)), values[0])


def _said(reasons: Sequence[str]) -> str:
    more = len(reasons) - MOST_REASONS
    return "; ".join([*reasons[:MOST_REASONS], *([f"and {more} more"] if more > 0 else [])])
