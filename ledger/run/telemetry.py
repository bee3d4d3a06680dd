"""What the nodes did while a trial ran: samples of their counters, raw and as figures.

What it does: holds one sampler on each node for the length of a boot, marks where trials and their parts begin and end, and
reduces the samples of a trial to figures. What it does not do: sample (``backends.sampler`` does, on the node), or judge. Rules
kept: samples are a blob before they are a figure; nodes are never compared by their clocks, since marks stand among the samples
themselves; a node that cannot be sampled has no figure, and the figure of the others says so.
"""

import gzip
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from ledger.backends import sampler
from ledger.backends.reach import Held, Reach
from ledger.core import metrics
from ledger.receipt.model import Figure
from ledger.run.evidence import MEASURE, NODE, SOURCE, Evidence, Piece

MEDIA_TYPE = "application/vnd.ledger.telemetry.v1+jsonl+gzip"
PERIOD_S = 1.0
TELEMETRY = "telemetry"
END = "end"
MAX_BYTES = 64 * 2**20
Sample = Mapping[str, Any]
Reduce = Callable[[Sequence[Sample]], float | None]


class Telemetry:
    """The samplers of a boot's nodes; a node whose sampler does not start or answer is ``unread`` with its reason."""

    def __init__(self, nodes: Sequence[Reach], period_s: float = PERIOD_S) -> None:
        self._held: dict[str, Held] = {}
        self._nodes = tuple(reach.node for reach in nodes)
        self._unread: dict[tuple[str, str], str] = {}
        source = Path(sampler.__file__).read_text(encoding="utf-8")
        for reach in {each.key: each for each in reversed(nodes)}.values():
            try:
                self._held[reach.node] = reach.hold((reach.python, "-I", "-S", "-c", source, str(period_s)))
            except OSError as error:
                self._unread[reach.node, TELEMETRY] = f"the sampler cannot be started: {error.strerror}"

    def begin(self) -> None:
        """Forget what was sampled so far, and take a sample."""
        self._ask("take")
        self._ask("mark begin")

    def part(self, name: str) -> None:
        """A part of the trial ended; what was sampled since the mark before belongs to it."""
        self._ask(f"mark {' '.join(name.split())}")

    def end(self, measure: str, number: int) -> Evidence:
        """The samples since :meth:`begin`, one piece for each machine."""
        self._ask(f"mark {END}")
        pieces = []
        for node, data in self._ask("take").items():
            where = {NODE: node, SOURCE: TELEMETRY, MEASURE: f"{measure}/{number}"}
            pieces.append(Piece(annotations=where, data=gzip.compress(data, 6, mtime=0), media_type=MEDIA_TYPE))
        return Evidence(nodes=self._nodes, pieces=tuple(pieces), unread=dict(self._unread))

    def stop(self) -> None:
        """End every sampler. Safe to call twice."""
        for held in self._held.values():
            held.stop()
        self._held.clear()

    def _ask(self, line: str) -> dict[str, bytes]:
        """The answer of every node that still answers."""
        answers = {}
        for node, held in list(self._held.items()):
            answer = held.ask(line)
            if answer.unread is None:
                answers[node] = answer.data
            else:
                self._unread[node, TELEMETRY] = f"the sampler: {answer.unread}"
                self._held.pop(node).stop()
        return answers


def samples_of(piece: Piece) -> list[Sample]:
    """The samples in a piece, in order; the sampler's own last line is none."""
    text = gzip.decompress(piece.data) if len(piece.data) < MAX_BYTES else b""
    lines = [orjson.loads(line) for line in text.splitlines()]
    return [line for line in lines if "t" in line]


def figures_of(evidence: Evidence) -> dict[str, Figure]:
    """The figures of a trial's samples over all nodes; none where no node was sampled."""
    by_node = [samples_of(piece) for piece in evidence.pieces]
    if not any(by_node):
        return {}
    missing = tuple(f"no samples of {node}" for node, _ in evidence.unread)
    found = {name: _pooled(name, by_node, take, pool, missing) for name, (take, pool) in _FIGURES.items()}
    parts = [part for part in dict.fromkeys(name for samples in by_node for name, _ in parts_of(samples)) if part != END]
    for part in parts if len(parts) > 1 else ():
        inside = [[sample for name, each in parts_of(samples) if name == part for sample in each] for samples in by_node]
        name = f"mem_available_floor@{part}"
        found[name] = _pooled(name, inside, *_FIGURES["mem_available_floor"], missing)
    return {name: figure for name, figure in found.items() if figure is not None}


def parts_of(samples: Sequence[Sample]) -> list[tuple[str, list[Sample]]]:
    """The samples by the part of the trial that they belong to; the mark at a part's end belongs to it and to the next."""
    found: list[tuple[str, list[Sample]]] = []
    since: list[Sample] = []
    for sample in samples:
        since.append(sample)
        mark = sample.get("mark")
        if mark is not None and mark != "begin":
            # `prefill@2000/1` and `prefill@2000/2` are runs of one part.
            found.append((str(mark).partition("/")[0], since))
            since = [sample]
    return found


def _pooled(
    name: str,
    by_node: Sequence[Sequence[Sample]],
    take: Reduce,
    pool: Callable[[Sequence[float]], float],
    missing: tuple[str, ...],
) -> Figure | None:
    values = [value for samples in by_node if (value := take(samples)) is not None]
    known = metrics.describe(name)
    if not values:
        return None
    return Figure(
        unit=known.unit,
        better=known.better,
        value=round(pool(values), 3),
        n=sum(len(samples) for samples in by_node),
        statistic="sum over nodes" if pool is sum else f"{pool.__name__} over nodes",
        marks=missing,
    )


def _each(samples: Sequence[Sample], key: str) -> list[float]:
    return [float(sample[key]) for sample in samples if key in sample]


def _memory_floor(samples: Sequence[Sample]) -> float | None:
    found = _each(samples, "MemAvailable")
    return min(found) / 2**30 if found else None


def _hottest(samples: Sequence[Sample]) -> float | None:
    return max(_each(samples, "temperature"), default=None)


def _slowest_clock(samples: Sequence[Sample]) -> float | None:
    return min(_each(samples, "clock"), default=None)


def _slowest_accelerator(samples: Sequence[Sample]) -> float | None:
    return min(_each(samples, "accelerator_clock"), default=None)


def _mean_power(samples: Sequence[Sample]) -> float | None:
    found = _each(samples, "power")
    return sum(found) / len(found) if found else None


def _network(samples: Sequence[Sample]) -> float | None:
    moved = [received + sent for received, sent in zip(_each(samples, "rx"), _each(samples, "tx"), strict=True)]
    # A counter that began again with its interface would give less than nothing.
    return (moved[-1] - moved[0]) / 2**20 if len(moved) > 1 and moved[-1] >= moved[0] else None


_FIGURES: Mapping[str, tuple[Reduce, Callable[[Sequence[float]], float]]] = {
    "mem_available_floor": (_memory_floor, min),
    "temperature_peak": (_hottest, max),
    "power_mean": (_mean_power, sum),
    "clock_floor": (_slowest_clock, min),
    "accelerator_clock_floor": (_slowest_accelerator, min),
    "network_bytes": (_network, sum),
}
