"""The nodes of one boot, from its hygiene to its last gate.

What it does: cleans the nodes, finds their conditions, gathers what gates read before, during and after the boot, and samples
them while trials run. What it does not do: judge a gate (``gates``), record anything, or start a rank (``boot``). Rules kept: a
node is reached through the backend's own :class:`Reach`; what cannot be reached or read is told in the evidence and never taken
for good.
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from attrs import define, field, frozen

from ledger.backends.base import Observed
from ledger.backends.reach import LocalReach, Reach
from ledger.core.clock import Clock
from ledger.core.errors import BackendError, LedgerError
from ledger.core.words import Holds
from ledger.receipt.model import RankConfig, Trial
from ledger.run import host, kernel, sides
from ledger.run.conditions import HostBook, cache_condition, host_conditions, load_conditions
from ledger.run.evidence import Evidence, Piece, joined, text_piece
from ledger.run.gates import GateVerdict, judge
from ledger.run.hygiene import clean
from ledger.run.manifests import MANIFEST
from ledger.run.preflight import Checks, check_manifest, nodes_of
from ledger.run.secrets import Concealer
from ledger.run.serving import Served, serving
from ledger.run.sides import ReadBlob
from ledger.run.telemetry import TELEMETRY, Telemetry
from ledger.spec.model import GateSpec, Site, Spec
from ledger.spec.plan import BootPlan
from ledger.spec.readings import is_of_nodes, room

CUT_SHORT = "the runner was ended before this was read"

ControlTrials = Callable[[str | None], Sequence[Trial] | None]
"""The trials of the last boot of an arm, or of the boot's own control where no arm is named; None without a control."""


@frozen(kw_only=True)
class Care:
    """What nodes are cared for with: the checks and how nodes are reached, this clone's book of hosts, and secrets."""

    checks: Checks
    book: HostBook
    conceal: Concealer
    clock: Clock
    read_blob: ReadBlob


@define(kw_only=True)
class BootNodes:
    """The nodes of one boot; made for it and used once. ``unreached`` holds why a node has no reach."""

    care: Care
    plan: BootPlan
    spec: Spec
    site: Site
    control_trials: ControlTrials
    reaches: tuple[Reach, ...] = field(init=False, default=())
    unreached: dict[str, str] = field(init=False, factory=dict)
    telemetry: Telemetry | None = field(init=False, default=None)
    _marks: dict[str, kernel.Mark] = field(init=False, factory=dict)
    _before: Evidence = field(init=False, factory=Evidence)

    def __attrs_post_init__(self) -> None:
        found: list[Reach] = []
        for node in nodes_of(self.plan):
            try:
                found.append(self.care.checks.reach(node.name, node.host))
            except BackendError as error:
                self.unreached[node.name] = "; ".join(problem.what for problem in error.problems)
        self.reaches = tuple(found)

    def prepare(self) -> tuple[Mapping[str, str], tuple[Piece, ...]]:
        """Do the hygiene and read the nodes; the boot's conditions, and what hygiene did."""
        hygiene = clean(self.spec.hygiene, self.site, self.reaches, self.care.conceal)
        now = self.care.clock.now().timestamp()
        conditions = {
            "position": str(self.plan.position),
            **hygiene.conditions,
            **cache_condition(self.plan.lane.caches, self.reaches),
            **host_conditions(self.reaches, self.care.book, now),
        }
        self._before = self._read("before", (os.getpid(),))
        return conditions | load_conditions(self._before, self.site.neighbours), hygiene.pieces

    def gates_before(self) -> list[GateVerdict]:
        """The gates that come before, by what was read after the hygiene."""
        return [judge(gate, self._before) for gate in self._gates("before")]

    def begin(self) -> None:
        """Note where each kernel log ends; called just before ranks are started."""
        if any(gate.reads == "kernel.events" for gate in self._gates("during")):
            self._marks = {reach.node: kernel.mark(reach) for reach in self.reaches}

    def served(self, ranks: Sequence[RankConfig], observed: Sequence[Observed]) -> list[Served]:
        """What serves below each rank whose process the backend tells."""
        by_node = {reach.node: reach for reach in self.reaches}
        pids = {item.rank: int(item.facts["pid"]) for item in observed if item.facts.get("pid", "").isdigit()}
        found: list[Served] = []
        for rank in ranks:
            if rank.rank in pids and rank.node in by_node:
                found += serving(rank.rank, pids[rank.rank], tuple(rank.env), by_node[rank.node])
        return found

    def watch(self) -> Telemetry:
        """Start sampling the nodes, for the trials."""
        self.telemetry = Telemetry(self.reaches)
        return self.telemetry

    def gates_after(self, trials: Sequence[Trial], sampled: Sequence[Evidence], own: Iterable[int]) -> list[GateVerdict]:
        """The gates of ``during`` and ``after``; ``own`` are the processes of the boot's ranks."""
        unread = self._unreached((TELEMETRY, kernel.SOURCE))
        during = joined([Evidence(nodes=self._names(), unread=unread), *sampled, *self._kernel_logs()])
        verdicts = [judge(gate, during) for gate in self._gates("during")]
        gates = self._gates("after")
        read = self._read("after", (os.getpid(), *own)) if any(is_of_nodes(gate.reads) for gate in gates) else Evidence()
        for gate in gates:
            beside = self._sides(gate, trials)
            if beside is not None:
                verdicts.append(judge(gate, joined([read, Evidence(trials=tuple(trials)), beside])))
        return verdicts

    def gates_cut_short(self, trials: Sequence[Trial], known: Collection[str]) -> list[GateVerdict]:
        """The gates of ``during`` and ``after`` but ``known``, for a boot whose runner was ended: by its trials alone."""
        verdicts: list[GateVerdict] = []
        for gate in (*self._gates("during"), *self._gates("after")):
            if gate.id in known:
                continue
            if gate.when == "during" or is_of_nodes(gate.reads):
                verdicts.append(GateVerdict(gate=gate, holds=Holds.UNKNOWN, reason=CUT_SHORT))
            elif (beside := self._sides(gate, trials)) is not None:
                verdicts.append(judge(gate, joined([Evidence(trials=tuple(trials)), beside])))
        return verdicts

    def end(self) -> None:
        """Stop the samplers and note the time; called when the ranks are gone."""
        if self.telemetry is not None:
            self.telemetry.stop()
        for reach in self.reaches:
            self.care.book.end(reach.key, self.care.clock.now().timestamp())

    def _names(self) -> tuple[str, ...]:
        return tuple(node.name for node in nodes_of(self.plan))

    def _gates(self, when: str) -> list[GateSpec]:
        return [gate for gate in self.plan.gates if gate.when == when]

    def _read(self, when: str, own: Sequence[int]) -> Evidence:
        gates = self._gates(when)
        neighbours = self.site.neighbours if when == "before" else ()
        wanted = host.Wanted(
            disks=tuple(dict.fromkeys(gate.of or "." for gate in gates if gate.reads == "host.disk_free")),
            patterns=tuple(dict.fromkeys([*neighbours, *(gate.of or "" for gate in gates if gate.reads == "host.processes")])),
        )
        parts = [self._read_one(reach, wanted, own) for reach in self.reaches]
        names = dict.fromkeys(gate.of or "" for gate in gates if gate.reads == "manifest.differs")
        parts += [self._manifest(name, reach) for name in names for reach in self.reaches]
        sources = [host.MEMINFO, host.LOADAVG, host.SENSORS, *(MANIFEST + name for name in names)]
        sources += [*(host.DISK + path for path in wanted.disks), *(host.PROCESSES + pattern for pattern in wanted.patterns)]
        unread = self._unreached(sources)
        return joined([Evidence(nodes=self._names(), unread=unread), *parts])

    def _read_one(self, reach: Reach, wanted: host.Wanted, own: Sequence[int]) -> Evidence:
        root = str(self.care.checks.root) if isinstance(reach, LocalReach) else "."
        return host.read_node(reach, wanted, self.care.conceal, own=own, folder=root)

    def _unreached(self, sources: Sequence[str]) -> dict[tuple[str, str], str]:
        return {(node, source): why for node, why in self.unreached.items() for source in sources}

    def _manifest(self, name: str, reach: Reach) -> Evidence:
        source = MANIFEST + name
        try:
            checked = check_manifest(name, self.plan, reach, self.care.checks)
        except KeyError:
            return Evidence(unread={(reach.node, source): f"the lane that boots has no manifest {name!r}"})
        except LedgerError as error:
            return Evidence(unread={(reach.node, source): "; ".join(problem.what for problem in error.problems)})
        return Evidence(pieces=(text_piece(reach.node, source, checked.text),))

    def _kernel_logs(self) -> list[Evidence]:
        return [kernel.since(reach, mark, self.care.conceal) for reach in self.reaches if (mark := self._marks.get(reach.node))]

    def _sides(self, gate: GateSpec, trials: Sequence[Trial]) -> Evidence | None:
        """The blobs of the boot and of its control that a gate compares; None where there is no control to compare with."""
        source = {"paired": sides.ITEMS, "greedy": sides.REPLIES}.get(room(gate.reads))
        if source is None:
            return Evidence()
        read, control = self.care.read_blob, self.control_trials(gate.against)
        if control is None:
            return None
        return Evidence(
            pieces=(
                *sides.gather(source, sides.CONTROL, control, read, gate.of),
                *sides.gather(source, sides.ARM, trials, read, gate.of),
            )
        )
