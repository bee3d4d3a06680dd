"""The plan: every boot that a spec asks for on a site, in order, with what is launched and measured.

What it does: resolves bases, changes, stand-ins and scales into :class:`BootPlan` records, and renders a boot's launch once the
node's own values are known. What it does not do: touch a node, pick a port, or know an instrument. Rules kept: the plan is a
pure function of spec and site; what only the node knows (``${port}``, ``${python}``, ``${file.*}``) stays a placeholder until
the boot, so that equal plans have equal fingerprints.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

import attrs
from attrs import field, frozen

from ledger.core import units
from ledger.core.errors import SpecError
from ledger.core.words import Evidence, FieldClass
from ledger.spec import factors
from ledger.spec.bases import lines
from ledger.spec.change import count_changes, in_words, sets_something
from ledger.spec.docker_run import factors_of, with_texts
from ledger.spec.endpoint import Target, target
from ledger.spec.interpolate import interpolate, interpolate_stable
from ledger.spec.joint import problems, remarks, too_large
from ledger.spec.load import Loaded
from ledger.spec.model import ENDPOINT, Arm, Container, FilePin, GateSpec, Lane, Measure, Node, Restore, Site, Spec
from ledger.spec.order import Slot, slots
from ledger.spec.resolve import Resolved, resolve
from ledger.spec.restore import WHY_ADDED, gates_of, may_stay, measures_of, reads_then


@frozen(kw_only=True)
class RankPlan:
    """One process of a boot: its node, and argv and env as templates (volatile ``${…}`` and ``$$`` not yet replaced)."""

    rank: int
    node: Node
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(factory=dict)
    container: Container | None = None


@frozen(kw_only=True)
class RankLaunch:
    """One process of a boot as it is started: nothing is left to replace."""

    rank: int
    node: Node
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(factory=dict)
    container: Container | None = None


@frozen(kw_only=True)
class BootPlan:
    """One boot to make. ``lane`` is what really starts (the stand-in where there is one); ``declared`` is the spec's lane.

    ``position`` counts from 1, and so does ``round``; ``added`` is why a boot is made that nobody asked for. ``restores`` says
    that it proves its arm against an earlier boot of the same arm. ``requested`` is the spec's side and the site's side as plain
    data, for the receipt.
    ``identity``, ``context`` and ``provenance`` are the factors known before the boot. With an ``endpoint`` nothing is started:
    the one rank stands for the server that is up there.
    """

    position: int
    round: int = 1
    added: str | None = None
    restores: bool = False
    arm: Arm
    declared: Lane
    lane: Lane
    evidence: Evidence
    ranks: tuple[RankPlan, ...]
    measures: tuple[Measure, ...]
    gates: tuple[GateSpec, ...] = ()
    files: Mapping[str, FilePin] = field(factory=dict)
    packages: Mapping[str, str] = field(factory=dict)
    pause_s: float = 0.0
    endpoint: Target | None = None
    requested: Mapping[str, object] = field(factory=dict)
    identity: Mapping[str, str] = field(factory=dict)
    context: Mapping[str, str] = field(factory=dict)
    provenance: Mapping[str, str] = field(factory=dict)


@frozen(kw_only=True)
class Plan:
    """All boots of a session, in order, and remarks that a person should read before it starts.

    ``restores`` has the boot that ends the session for each arm that may stay; one of them is made, at the same position.
    """

    spec: Spec
    site: Site
    boots: tuple[BootPlan, ...]
    restores: Mapping[str, BootPlan] = field(factory=dict)
    remarks: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """How many boots a whole session makes."""
        return len(self.boots) + bool(self.restores)


def make_plan(spec: Loaded[Spec], site: Loaded[Site], *, only: Collection[str] = ()) -> Plan:
    """The plan of ``spec`` on ``site``; ``only`` narrows it to some arms.

    Raises:
        SpecError: with everything in the spec that this site cannot do.
    """
    too_large(spec, site).raise_if_any(SpecError)
    arms = resolve(spec.value, site.value)
    problems(spec, site, arms, only).raise_if_any(SpecError)
    chosen = [arm for arm in spec.value.arms if not only or arm.id in only]
    caches = {name: arm.declared.id for name, arm in arms.items() if arm.lane.caches}
    order = slots(spec.value, chosen, narrowed=bool(only), caches=caches)
    boots = tuple(
        _boot(position, slot, arms[slot.arm.id], spec.value, site.value) for position, slot in enumerate(order, start=1)
    )
    said = remarks(spec.value, site.value, {arm.id: arms[arm.id] for arm in chosen})
    again, why = _restores(boots, arms, spec.value, site.value, narrowed=bool(only))
    return Plan(spec=spec.value, site=site.value, boots=boots, restores=again, remarks=(*said, *why))


def launch(boot: BootPlan, values: Mapping[str, str]) -> tuple[RankLaunch, ...]:
    """The boot's ranks with nothing left to replace; ``values`` has ``port``, ``python`` and the ``file.*``."""
    head = boot.ranks[0].node
    rendered = []
    for rank in boot.ranks:
        scope = {**values, **node_values(rank.node, head)}
        argv = tuple(interpolate(word, scope) for word in rank.argv)
        env = {name: interpolate(value, scope) for name, value in rank.env.items()}
        container = rank.container and with_texts(rank.container, partial(interpolate, scope=scope))
        rendered.append(RankLaunch(rank=rank.rank, node=rank.node, argv=argv, env=env, container=container))
    return tuple(rendered)


def node_values(node: Node, head: Node) -> dict[str, str]:
    """What the site says of a rank's node, by the names of its variables."""
    return {"node.ip": node.ip, "node.name": node.name, "head.ip": head.ip}


def lineage(arm: Arm, spec: Spec) -> list[Arm]:
    """The arm's bases from the first one down to the arm itself."""
    return list(lines(spec.arms)[arm.id])


def _boot(position: int, slot: Slot, arm: Resolved, spec: Spec, site: Site) -> BootPlan:
    there = target(site, arm.declared.id, arm.line)
    ranks = _ranks(arm, site) if there is None else (_stand_alone(there, site),)
    found = factors.split(_factors(arm, ranks, site) if there is None else _endpoint_factors(arm, site))
    scaled = arm.stand_in is not None
    return BootPlan(
        position=position,
        round=slot.round,
        added=slot.added,
        arm=arm.arm,
        declared=arm.declared,
        lane=arm.lane,
        evidence=Evidence.STAND_IN if scaled else Evidence.MEASURED,
        ranks=ranks,
        measures=tuple(_scaled(measure, site, scale=scaled) for measure in spec.measures.values()),
        gates=spec.gates,
        files=arm.lane.files,
        packages=arm.lane.packages,
        pause_s=units.parse(site.pause, dimension="time").number,
        endpoint=there,
        requested=_requested(arm, site),
        identity=found[FieldClass.IDENTITY],
        context=found[FieldClass.CONTEXT],
        provenance=found[FieldClass.PROVENANCE],
    )


def _ranks(arm: Resolved, site: Site) -> tuple[RankPlan, ...]:
    nodes = site.nodes_of(arm.declared.id)
    return tuple(_rank(rank, nodes[rank], arm, site) for rank in range(arm.lane.nodes))


def _stand_alone(there: Target, site: Site) -> RankPlan:
    """The one rank of an endpoint: a node that has the site's name and is never reached, and no command."""
    return RankPlan(rank=0, node=Node(name=site.name, host=there.host), argv=())


def _restores(
    boots: Sequence[BootPlan], arms: Mapping[str, Resolved], spec: Spec, site: Site, *, narrowed: bool
) -> tuple[dict[str, BootPlan], tuple[str, ...]]:
    """For each arm that may stay, the boot that proves it; or why none is made."""
    if spec.restore is None:
        return {}, ()
    if narrowed:
        return {}, ("a run of some arms alone does not restore what stays",)
    if site.backend == ENDPOINT:
        return {}, ("an endpoint is never booted, so that nothing is restored",)
    slots_of = {name: Slot(arm=arms[name].arm, round=boots[-1].round + 1, added=WHY_ADDED) for name in may_stay(spec)}
    made = {name: _boot(len(boots) + 1, slot, arms[name], spec, site) for name, slot in slots_of.items()}
    return {name: _proving(boot, spec.restore) for name, boot in made.items()}, ()


def _proving(boot: BootPlan, restore: Restore) -> BootPlan:
    """The boot with the measures and gates that prove it, and those gates of the spec that then have something to read."""
    wanted = measures_of(restore)
    kept = tuple(gate for gate in boot.gates if reads_then(gate, wanted))
    measures = tuple(measure for measure in boot.measures if measure.id in wanted)
    return attrs.evolve(boot, restores=True, measures=measures, gates=(*kept, *gates_of(restore, boot.arm.id)))


def _rank(rank: int, node: Node, arm: Resolved, site: Site) -> RankPlan:
    scope = _stable_scope(arm.lane, site) | {"rank": str(rank)}
    return RankPlan(
        rank=rank,
        node=node,
        argv=tuple(interpolate_stable(word, scope) for word in arm.argv),
        env={name: interpolate_stable(value, scope) for name, value in {**arm.env, **node.env}.items()},
        container=arm.lane.container and with_texts(arm.lane.container, partial(interpolate_stable, scope=scope)),
    )


def _stable_scope(lane: Lane, site: Site) -> dict[str, str]:
    texts = {item.name: getattr(lane, item.name) for item in attrs.fields(Lane)}
    scope = {f"lane.{name}": value for name, value in texts.items() if isinstance(value, str)}
    return scope | {"site.name": site.name, "lane.served_model": lane.served_model or lane.model}


def _factors(arm: Resolved, ranks: Sequence[RankPlan], site: Site) -> dict[str, str]:
    found = factors.lane_factors(arm.lane)
    for rank in ranks:
        prefix = f"rank.{rank.rank}." if rank.rank else ""
        launched = factors.launch_factors(rank.argv, rank.env)
        found |= {prefix + key: value for key, value in launched.items() if not prefix or found.get(key) != value}
        if rank.container is not None:
            held = factors_of(rank.container)
            found |= {prefix + key: value for key, value in held.items() if not prefix or found.get(key) != value}
    found |= factors.node_factors([rank.node for rank in ranks], site.backend)
    found |= {"site": site.name}
    if arm.stand_in is not None:
        return found | {"stand_in.why": arm.stand_in.why}
    told = [each.change.about for each in arm.line if each.change.about and not sets_something(each.change)]
    return found | ({"change": "; ".join(told)} if told else {})


def _endpoint_factors(arm: Resolved, site: Site) -> dict[str, str]:
    """What is known of a server that is up: what the spec says it is. What it says of itself is added when it has been asked."""
    said = factors.declared_factors(arm.declared)
    change = "; ".join(in_words(each.change) for each in arm.line if count_changes(each.change))
    found = said | ({"change": change} if change else {}) | {"launch": factors.NOT_KNOWN_HERE, "site": site.name}
    return found | factors.node_factors([Node(name=site.name)], site.backend)


def _scaled(measure: Measure, site: Site, *, scale: bool) -> Measure:
    changed = site.scale.get(measure.id, {}) if scale else {}
    return attrs.evolve(measure, parameters={**measure.parameters, **changed}) if changed else measure


def _requested(arm: Resolved, site: Site) -> dict[str, Any]:
    """What spec and site ask for, as plain data: the lane, the line of arms, and the stand-in with its own changes."""
    asked: dict[str, Any] = {"lane": plain(arm.declared), "arms": [plain(each) for each in arm.line], "site": site.name}
    if arm.stand_in is not None:
        own = {each.id: plain(arm.stand_in.arms[each.id]) for each in arm.line if each.id in arm.stand_in.arms}
        asked["stand_in"] = {**plain(attrs.evolve(arm.stand_in, arms={})), "changes": own}
    return asked


def plain(record: Any) -> dict[str, Any]:
    """An attrs record as tables, lists, text and numbers; fields that are absent or empty are left out."""
    return attrs.asdict(record, filter=lambda _, value: value not in (None, "", (), {}))
